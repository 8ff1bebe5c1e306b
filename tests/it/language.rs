//! Forbidden names and phrases of the language guide in CONTRIBUTING.md.

use std::fs;
use std::path::{Path, PathBuf};

use acceptance::documentation::root;

/// Participles, verbs and pronouns that say nothing as the name of a type.
const TYPE_NAMES: [&str; 14] =
    ["Asked", "Kept", "Told", "Made", "Said", "Seen", "Taken", "Around", "Touched", "Shown", "Wanted", "Done", "Stop", "Who"];
/// In parts, so that this file doesn't contain them.
const PHRASES: [[&str; 2]; 3] = [["who", "ever"], ["is ", "told"], ["what ", "of it"]];
const QUESTIONS: [&str; 6] = ["Who.", "When.", "What.", "Which.", "How.", "Why."];
/// Decisions keep their file names, and the index links to them.
const FILE_NAMES: [&str; 1] = ["0053-whoever-takes-nothing-is-let-go.md"];

/// Returns the name of the type that a line of code declares.
fn declared_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|keyword| {
        let rest = line.strip_prefix(keyword)?;
        rest.split(|character: char| !character.is_alphanumeric() && character != '_').next()
    })
}

/// Returns what the guide forbids in a line of a file.
fn violation(line: &str, is_rust: bool) -> Option<String> {
    let lower = FILE_NAMES.iter().fold(line.to_owned(), |line, name| line.replace(name, "")).to_lowercase();
    if let Some(phrase) = PHRASES.iter().map(|parts| parts.concat()).find(|phrase| lower.contains(phrase)) {
        return Some(format!("the phrase \"{phrase}\""));
    }
    if !is_rust {
        return None;
    }
    if let Some(name) = declared_type(line).filter(|name| TYPE_NAMES.contains(name)) {
        return Some(format!("a type named {name}"));
    }
    let comment = line.trim_start().strip_prefix("/// ")?;
    QUESTIONS.contains(&comment).then(|| format!("the doc comment \"{comment}\""))
}

/// Collects the Rust files and Markdown pages below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.expect("a directory entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&name) {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            files.push(path);
        }
    }
}

#[test]
fn code_and_pages_use_no_forbidden_names_and_phrases() {
    let mut files = Vec::new();
    collect(&root(), &mut files);
    assert!(files.len() > 500, "only {} files were found", files.len());
    let mut found = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        for (number, line) in text.lines().enumerate() {
            if let Some(what) = violation(line, is_rust) {
                found.push(format!("{}:{}: {what}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "write plain English (CONTRIBUTING.md, \"Language\"):\n{}", found.join("\n"));
}

#[test]
fn the_guard_finds_each_kind_of_violation() {
    for line in [
        "/// Who.",
        "pub(crate) struct Kept<T> {",
        "pub enum Told {",
        "struct Who;",
        &format!("// {}.", PHRASES[0].concat().to_uppercase()),
    ] {
        assert!(violation(line, true).is_some(), "{line}");
    }
    for line in ["/// Who calls.", "pub struct KeptRow {", "    Kept(Row),"] {
        assert_eq!(violation(line, true), None, "{line}");
    }
}
