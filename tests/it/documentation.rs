//! Runs every call in the documentation as a reader does. Each block that isn't run states the reason on the page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use acceptance::binary;
use acceptance::documentation::{Kind, Page, Start, root, try_page};
use serde_json::Value;

/// Pages that run here, in addition to the guides.
const RUN: [&str; 3] = ["README.md", "docs/api.md", "docs/operations.md"];
/// Pages whose blocks another test runs, with the file of that test.
const TRIED_ELSEWHERE: [(&str, &str); 4] = [
    ("docs/billing-rules.md", "crates/billing-application/tests/use_cases/documented_examples.rs"),
    ("docs/formats.md", "crates/billing-http/tests/interface/documented_formats.rs"),
    ("docs/guides/test-your-billing.md", "tests/all/billing_guide.rs"),
    ("docs/guides/first-integration.md", "tests/all/clients.rs"),
];
/// Sections whose blocks another test runs: page, heading and file of the test.
const SECTIONS_TRIED_ELSEWHERE: [(&str, &str, &str); 1] = [("docs/api.md", "Clients", "tests/all/clients.rs")];
/// The pages whose programs are documentation tests, and the files that include them as such.
const DOC_TESTS: [(&str, &str); 2] =
    [("README.md", "crates/billing-domain/src/lib.rs"), ("docs/library.md", "crates/billing-application/src/lib.rs")];
/// The number of blocks that aren't run, for each page that has any.
const NOT_RUN: [(&str, usize); 10] = [
    ("CONTRIBUTING.md", 2),
    ("README.md", 3),
    ("SECURITY.md", 1),
    ("docs/architecture.md", 1),
    ("docs/concepts.md", 1),
    ("docs/notifications.md", 1),
    ("docs/operations.md", 11),
    ("docs/performance.md", 2),
    ("docs/reliability.md", 1),
    ("docs/guides/usage-from-other-systems.md", 4),
];

/// Codes of the API guide that no operation describes: no operation returns them, or they belong to a line or an event.
const CODES_OF_NO_OPERATION: [&str; 4] = ["bad_request", "line_changed", "method_not_allowed", "route_not_found"];

fn try_all(pages: &[Page], start: Start) {
    let wrong: Vec<String> = pages.iter().filter_map(|page| try_page(page, start).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Returns the Markdown pages in a directory, without its subdirectories.
fn paths_in(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a UTF-8 name")).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"));
    names.sort();
    names.into_iter().map(|name| if directory == "." { name } else { format!("{directory}/{name}") }).collect()
}

/// Reads the pages in a directory, except pages that another test runs.
fn pages_in(directory: &str) -> Vec<Page> {
    let tried_here = |path: &String| TRIED_ELSEWHERE.iter().all(|(elsewhere, _)| elsewhere != path);
    paths_in(directory).into_iter().filter(tried_here).map(|path| page(&path)).collect()
}

/// Reads a page without the sections that another test runs.
fn page(path: &str) -> Page {
    let mut page = Page::read(path);
    page.blocks.retain(|block| !SECTIONS_TRIED_ELSEWHERE.iter().any(|(of, section, _)| *of == path && *section == block.section));
    page
}

#[test]
fn the_first_page_is_what_a_first_start_gives() {
    try_all(&[page("README.md")], Start::Sample);
}

#[test]
fn every_call_of_the_api_guide_answers_what_it_shows() {
    try_all(&[page("docs/api.md")], Start::Empty);
}

#[test]
fn every_command_of_the_operations_page_says_what_it_shows() {
    try_all(&[page("docs/operations.md")], Start::Sample);
}

#[test]
fn every_call_of_the_guides_answers_what_they_show() {
    try_all(&pages_in("docs/guides"), Start::LoggedIn);
}

#[test]
fn every_block_is_run_or_says_why_not() {
    let pages = [".", "docs", "docs/guides", "docs/decisions"].map(pages_in);
    let mut wrong = Vec::new();
    let mut not_run = Vec::new();
    for page in pages.into_iter().flatten() {
        let is_run = RUN.contains(&&*page.path) || page.path.starts_with("docs/guides/");
        let mut count = 0;
        for block in &page.blocks {
            let kind = block.kind();
            match block.not_run {
                Some(_) => count += 1,
                None if kind == Kind::DocTest && DOC_TESTS.iter().any(|(path, _)| *path == page.path) => {}
                None if is_run && !matches!(kind, Kind::Other | Kind::DocTest) => {}
                None => wrong.push(format!("{}: nobody runs this block; mend it, or add `not-run: …`", page.place(block))),
            }
        }
        if count > 0 {
            not_run.push((page.path, count));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let not_run: Vec<(&str, usize)> = not_run.iter().map(|(path, count)| (path.as_str(), *count)).collect();
    assert_eq!(not_run, NOT_RUN, "the numbers of blocks that aren't run");
}

#[test]
fn what_is_tried_elsewhere_is() {
    let tests = TRIED_ELSEWHERE.iter().map(|(_, test)| test).chain(SECTIONS_TRIED_ELSEWHERE.iter().map(|(_, _, test)| test));
    for test in tests {
        assert!(root().join(test).exists(), "{test}");
    }
    for (page, file) in DOC_TESTS {
        let including = fs::read_to_string(root().join(file)).expect("a file");
        assert!(including.contains(&format!("include_str!(\"../../../{page}\")")), "{page}: {including}");
    }
}

/// Returns the cells of the tables in a section of a page.
fn rows(path: &str, section: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let heading = format!("## {section}");
    let lines = text.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "));
    let rows = lines.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(|cell| cell.replace('`', "")).collect()).collect()
}

/// Collects every error code that the description enumerates.
fn described_codes(value: &Value, found: &mut BTreeSet<String>) {
    let codes = value["x-codes"].as_array().into_iter().flatten();
    found.extend(codes.filter_map(Value::as_str).map(str::to_owned));
    match value {
        Value::Object(members) => members.values().for_each(|member| described_codes(member, found)),
        Value::Array(elements) => elements.iter().for_each(|element| described_codes(element, found)),
        _ => {}
    }
}

#[test]
fn the_api_guide_says_what_to_do_about_every_code() {
    let description = serde_json::from_str(&binary::run(&["openapi"], &[]).stdout).expect("JSON");
    let mut described = CODES_OF_NO_OPERATION.map(str::to_owned).into();
    described_codes(&description, &mut described);
    let of_codes = rows("docs/api.md", "Errors").into_iter().filter(|row| row.len() == 3 && row[1] != "code");
    let explained: BTreeSet<String> =
        of_codes.flat_map(|row| row[1].split(", ").map(str::to_owned).collect::<Vec<_>>()).collect();
    assert!(described.len() > 100, "{described:?}");
    assert_eq!(explained, described);
}

#[test]
fn the_operations_page_has_every_setting_with_its_variable_and_default() {
    let help = binary::run(&["serve", "--help"], &[]).stdout;
    let words: Vec<&str> = help.split_whitespace().collect();
    let help = words.join(" ");
    let between = |text: &str, from: &str| {
        let (_, rest) = text.split_once(from)?;
        Some(rest.split([']', '=']).next()?.trim().to_owned())
    };
    let mut settings = Vec::new();
    for setting in help.split(" --").skip(1) {
        let Some(variable) = between(setting, "[env: ") else { continue };
        let flag = format!("--{}", setting.split(' ').next().expect("a flag"));
        settings.push((flag, variable, between(setting, "[default: ")));
    }
    assert!(settings.len() > 10, "{help}");
    let shown = rows("docs/operations.md", "Settings").into_iter().filter(|row| row[0].starts_with("--"));
    let shown: Vec<Vec<String>> = shown.collect();
    let flags = |shown: &[Vec<String>]| shown.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(flags(&shown), settings.iter().map(|(flag, ..)| flag.clone()).collect::<Vec<_>>());
    for (row, (flag, variable, default)) in shown.iter().zip(&settings) {
        assert_eq!(&row[1], variable, "{flag}");
        assert!(default.as_ref().is_none_or(|default| row[2] == *default), "{flag}: the default is {default:?}, not {}", row[2]);
    }
}

#[test]
fn the_architecture_page_lists_every_port_of_a_transaction() {
    let ports = fs::read_to_string(root().join("crates/billing-domain/src/ports/store.rs")).expect("a file");
    let (_, ports) = ports.split_once("pub trait Tx:").expect("the trait `Tx`");
    let (ports, _) = ports.split_once('{').expect("the body of the trait");
    let ports: BTreeSet<&str> = ports.split('+').map(str::trim).filter(|port| *port != "Send").collect();
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("a file");
    let (_, listed) = page.split_once("all the small ports at once:").expect("the list");
    let (listed, _) = listed.split_once(" for parts ").expect("the end of the list");
    assert_eq!(listed.split('`').skip(1).step_by(2).collect::<BTreeSet<_>>(), ports);
}

/// Returns the targets of a page's links into the repository: the file, and the heading as its anchor. The anchor is empty for a
/// whole page.
fn links(path: &str, text: &str) -> Vec<(PathBuf, String)> {
    let page = root().join(path);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).filter(|target| !target.contains("://"));
    let place = |target: &str| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if file.is_empty() { page.clone() } else { page.parent().expect("a directory").join(file) };
        (file, anchor.to_owned())
    };
    targets.map(place).collect()
}

/// Returns the anchors that renderers generate for a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| {
        let kept =
            heading.to_lowercase().chars().filter(|char| char.is_alphanumeric() || " -_".contains(*char)).collect::<String>();
        kept.replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let pages = [".", "docs", "docs/guides", "docs/decisions"].into_iter().flat_map(paths_in);
    let mut wrong = Vec::new();
    let mut followed = 0;
    for path in pages {
        for (file, anchor) in links(&path, &read(&root().join(&path))) {
            followed += 1;
            if !file.exists() || !anchor.is_empty() && !anchors(&read(&file)).contains(&anchor) {
                wrong.push(format!("{path}: {}#{anchor}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty() && followed > 100, "{followed} links, broken: {wrong:#?}");
}
