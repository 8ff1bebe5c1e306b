//! The documentation, read by somebody who makes every call of it. What isn't run says why on the page.

use std::fs;
use std::path::Path;

use acceptance::documentation::{Kind, Page, Start, root, try_page};

/// Pages that are read here, beside the guides.
const RUN: [&str; 3] = ["README.md", "docs/api.md", "docs/operations.md"];
/// Pages whose blocks another test holds.
const TRIED_ELSEWHERE: [(&str, &str); 2] = [
    ("docs/billing-rules.md", "crates/billing-application/tests/documented_examples.rs"),
    ("docs/formats.md", "crates/billing-http/tests/documented_formats.rs"),
];
/// Sections whose blocks another test holds: page, heading, test.
const SECTIONS_TRIED_ELSEWHERE: [(&str, &str, &str); 1] = [("docs/api.md", "Clients", "tests/tests/clients.rs")];
/// The page whose programs are documentation tests, and the file that includes it as such.
const DOC_TESTS: (&str, &str) = ("README.md", "crates/billing-domain/src/lib.rs");
/// How many blocks aren't run, of each page that has any.
const NOT_RUN: [(&str, usize); 5] = [
    ("CONTRIBUTING.md", 2),
    ("README.md", 2),
    ("docs/architecture.md", 1),
    ("docs/operations.md", 3),
    ("docs/performance.md", 2),
];

fn try_all(pages: &[Page], start: Start) {
    let wrong: Vec<String> = pages.iter().filter_map(|page| try_page(page, start).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The Markdown pages in a directory, without those below it and those that are tried elsewhere.
fn pages_in(directory: &str) -> Vec<Page> {
    let entries = fs::read_dir(root().join(directory)).unwrap_or_else(|error| panic!("{directory}: {error}"));
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name of characters")).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"));
    names.sort();
    let path = |name: &String| if directory == "." { name.clone() } else { format!("{directory}/{name}") };
    let tried_here = |path: &String| TRIED_ELSEWHERE.iter().all(|(elsewhere, _)| elsewhere != path);
    names.iter().map(path).filter(tried_here).map(|path| page(&path)).collect()
}

/// A page without the sections that are tried elsewhere.
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
                None if kind == Kind::DocTest && page.path == DOC_TESTS.0 => {}
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
    assert_eq!(not_run, NOT_RUN, "how many blocks aren't run");
}

#[test]
fn what_is_tried_elsewhere_is() {
    let tests = TRIED_ELSEWHERE.iter().map(|(_, test)| test).chain(SECTIONS_TRIED_ELSEWHERE.iter().map(|(_, _, test)| test));
    for test in tests {
        assert!(root().join(test).exists(), "{test}");
    }
    let including = fs::read_to_string(root().join(DOC_TESTS.1)).expect("a file");
    assert!(including.contains(&format!("include_str!(\"../../../{}\")", DOC_TESTS.0)), "{including}");
}
