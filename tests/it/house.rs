//! Rules of the repository that no other tool holds: the sizes of files, their kinds, and pictures.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use acceptance::documentation::root;

/// The maximum number of lines of a file with code.
const MAX_LINES: usize = 600;
/// The maximum number of pictures of pages.
const MAX_PICTURES: usize = 12;
/// The endings of the files that the repository has, and files without an ending.
const KINDS: [&str; 21] = [
    "c", "css", "go", "js", "json", "md", "mjs", "ndjson", "png", "py", "rs", "service", "sql", "toml", "tpl", "ts", "ttf",
    "txt", "typ", "yaml", "yml",
];
const WITHOUT_ENDING: [&str; 2] = ["Dockerfile", "run"];
/// Folders whose files have no ending: programs, and inputs of the fuzz tests.
const FOLDERS_WITHOUT_ENDINGS: [&str; 2] = ["scripts/", "crates/billing-fuzz/corpus/"];

/// Files that are one table: each operation, table of the database or setting is an entry.
const TABLES: [&str; 3] =
    ["crates/billing-api/src/operations.rs", "crates/billing-server/src/settings.rs", "crates/billing-storage/src/schema.rs"];

/// Files with more than [`MAX_LINES`] lines, and the lines that each may have. A file leaves the list when it is short enough, and no
/// file may grow.
const LONG_FILES: [(&str, usize); 27] = [
    ("crates/billing-application/src/documents/mod.rs", 633),
    ("crates/billing-application/src/usage/import.rs", 605),
    ("crates/billing-application/tests/use_cases/histories/mod.rs", 686),
    ("crates/billing-application/tests/use_cases/rules/writer.rs", 805),
    ("crates/billing-bench/src/rows.rs", 777),
    ("crates/billing-console/src/home.rs", 666),
    ("crates/billing-console/src/list.rs", 680),
    ("crates/billing-console/src/pages/contract_tasks.rs", 919),
    ("crates/billing-domain/src/access.rs", 848),
    ("crates/billing-domain/src/contract/terms.rs", 611),
    ("crates/billing-domain/src/document/calculation.rs", 644),
    ("crates/billing-domain/src/rating.rs", 749),
    ("crates/billing-domain/src/webhook.rs", 923),
    ("crates/billing-domain/tests/rules/amending.rs", 1424),
    ("crates/billing-domain/tests/rules/histories/generate.rs", 603),
    ("crates/billing-domain/tests/rules/histories/model/amend.rs", 758),
    ("crates/billing-domain/tests/rules/histories/world.rs", 1230),
    ("crates/billing-http/src/metrics.rs", 680),
    ("crates/billing-storage/src/database.rs", 646),
    ("crates/billing-storage/src/json/issued.rs", 626),
    ("crates/billing-storage/src/ports/contracts.rs", 675),
    ("crates/billing-storage/src/ports/lists.rs", 688),
    ("crates/billing-storage/src/ports/webhooks.rs", 675),
    ("crates/billing-testkit/src/suite/lists.rs", 660),
    ("crates/billing-typesetter/tests/printing/main.rs", 630),
    ("tests/all/bank.rs", 674),
    ("tests/it/team.rs", 682),
];

/// The folders with the files of the repository, and those in them that tools create.
const FOLDERS: [&str; 7] = [".ci", ".github", "crates", "docs", "packaging", "scripts", "tests"];
const OF_TOOLS: [&str; 3] = ["__pycache__", "node_modules", "target"];

/// Returns the paths of all files in the repository, relative to its root.
fn files() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.map(|folder| root().join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let entry = entry.expect("a directory entry");
            let path = entry.path();
            if OF_TOOLS.contains(&entry.file_name().to_string_lossy().as_ref()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(root()).expect("a path in the repository").to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn files_with_code_have_at_most_600_lines_and_the_longer_ones_do_not_grow() {
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| path.ends_with(".rs") && !TABLES.contains(&path.as_str())) {
        let lines = fs::read_to_string(root().join(path)).expect("a file").lines().count();
        match LONG_FILES.iter().find(|(known, _)| known == path) {
            None if lines > MAX_LINES => wrong.push(format!("{path} has {lines} lines, more than {MAX_LINES}: split it")),
            Some((_, most)) if lines > *most => wrong.push(format!("{path} grew from {most} to {lines} lines: split it")),
            Some(_) if lines <= MAX_LINES => wrong.push(format!("{path} has {lines} lines: remove it from the list")),
            Some((_, most)) if lines + 20 < *most => {
                wrong.push(format!("{path} has {lines} lines: shorten its limit in the list"))
            }
            Some(_) | None => {}
        }
    }
    let all = files();
    wrong.extend(
        LONG_FILES.iter().filter(|(path, _)| !all.iter().any(|file| file == path)).map(|(path, _)| format!("there is no {path}")),
    );
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_file_is_of_a_kind_that_something_reads() {
    let is_known = |path: &&String| {
        let name = Path::new(path.as_str()).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match name.rsplit_once('.') {
            Some((_, ending)) => KINDS.contains(&ending),
            None => WITHOUT_ENDING.contains(&name) || FOLDERS_WITHOUT_ENDINGS.iter().any(|folder| path.starts_with(folder)),
        }
    };
    let unknown: Vec<String> = files().into_iter().filter(|path| !is_known(&path)).collect();
    assert!(unknown.is_empty(), "nothing reads files of these kinds: {unknown:#?}");
}

#[test]
fn pages_show_twelve_pictures() {
    let all = files();
    let pictures: BTreeSet<&String> = all.iter().filter(|path| path.starts_with("docs/") && path.ends_with(".png")).collect();
    assert!(pictures.len() <= MAX_PICTURES, "{} pictures, more than {MAX_PICTURES}: {pictures:#?}", pictures.len());
    let readme = fs::read_to_string(root().join("README.md")).expect("a page");
    let pages =
        all.iter().filter(|path| path.ends_with(".md")).map(|path| fs::read_to_string(root().join(path)).expect("a page"));
    let pages: Vec<String> = pages.chain([readme]).collect();
    let name = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let unused: Vec<&&String> = pictures.iter().filter(|path| !pages.iter().any(|page| page.contains(&name(path)))).collect();
    assert!(unused.is_empty(), "no page shows {unused:#?}");
}

#[test]
fn the_architecture_page_lists_no_files() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("a page");
    // The reading order links to a few files.
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `") && line.contains(".rs`")).collect();
    assert!(rows.is_empty(), "the header of a file says what it has: {rows:#?}");
}

#[test]
fn decisions_name_the_test_that_counts_statements() {
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| path.starts_with("docs/decisions/")) {
        let page = fs::read_to_string(root().join(path)).expect("a page");
        let words: Vec<&str> = page.split_whitespace().collect();
        let counts = words.windows(3).any(|words| ["sends", "sent"].contains(&words[0]) && words[2].starts_with("statements"));
        if counts && !page.contains("tests/it/statements.rs") {
            wrong.push(path.clone());
        }
    }
    assert!(wrong.is_empty(), "name tests/it/statements.rs, which holds the count: {wrong:#?}");
}

#[test]
fn scripts_build_the_printing_program_from_its_package() {
    let mut wrong = Vec::new();
    for path in files().iter().filter(|path| path.starts_with("scripts/")) {
        let script = fs::read_to_string(root().join(path)).expect("a script");
        // Without a package, cargo builds the programs of the server's package alone.
        let lines = script.lines().filter(|line| line.contains("cargo build") && line.contains("--bin usage-billing-print"));
        wrong.extend(lines.filter(|line| !line.contains("-p billing-typesetter")).map(|line| format!("{path}: {line}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
