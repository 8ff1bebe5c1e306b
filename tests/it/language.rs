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
const FILE_NAMES: [&str; 1] = ["0053-stalled-connections-are-closed.md"];

/// Words that are never right as a name: the type or the content has a better one.
const IDENTIFIERS: [&str; 5] = ["supplies", "visitor", "said", "told", "reporter"];

/// Words that the texts of the console do not use, the words that it uses instead, and the files that may use the word: the page of
/// an account statement has balances.
const OF_CONSOLE: [(&str, &str, &[&str]); 3] =
    [("plan", "pricing", &[]), ("plans", "pricings", &[]), ("balance", "amount due or unapplied amount", &["customer.rs"])];

/// Returns the code of a Rust file without comments and texts. Line breaks stay, so that lines keep their numbers.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    let keep_lines = |code: &mut String, skipped: &str| code.extend(skipped.chars().filter(|character| *character == '\n'));
    while let Some(first) = rest.chars().next() {
        let hashes = rest.strip_prefix('r').map(|raw| raw.chars().take_while(|character| *character == '#').count());
        let raw_end =
            hashes.filter(|hashes| rest[1 + hashes..].starts_with('"')).map(|hashes| format!("\"{}", "#".repeat(hashes)));
        let is_word = code.ends_with(|character: char| character.is_alphanumeric() || character == '_');
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(end) = raw_end.filter(|_| !is_word || code.ends_with('b')) {
            let start = end.len() + 1;
            rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len())
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|character| {
                let ends = character == '"' && !escaped;
                escaped = character == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |at| at + 2)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            rest[2..].find('\'').map_or(rest.len(), |at| at + 3)
        } else {
            0
        };
        if skipped > 0 {
            keep_lines(&mut code, &rest[..skipped]);
            code.push(' ');
            rest = &rest[skipped..];
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

/// Returns the identifiers of a line of code that are never right.
fn wrong_identifiers(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|character: char| !character.is_alphanumeric() && character != '_');
    words.filter(|word| IDENTIFIERS.contains(word))
}

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
        let code = if is_rust { code_of(&text) } else { String::new() };
        for (number, line) in code.lines().enumerate() {
            let wrong = wrong_identifiers(line).map(|word| format!("{}:{}: the name {word}", path.display(), number + 1));
            found.extend(wrong);
        }
    }
    assert!(found.is_empty(), "write plain English (CONTRIBUTING.md, \"Language\"):\n{}", found.join("\n"));
}

/// Returns the words of the texts in a line of code, in lower case. A name of the API is one word.
fn words_of_texts(line: &str) -> Vec<String> {
    let texts = line.split('"').skip(1).step_by(2);
    let is_of_word = |character: char| character.is_alphanumeric() || character == '_' || character == '-';
    let words = texts.flat_map(|text| text.split(move |character| !is_of_word(character)));
    words.map(str::to_lowercase).collect()
}

#[test]
fn the_console_has_one_word_for_each_thing() {
    let mut files = Vec::new();
    collect(&root().join("crates/billing-console/src"), &mut files);
    let mut found = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        for (number, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let words = words_of_texts(line);
            let wrong =
                OF_CONSOLE.iter().filter(|(word, _, files)| words.iter().any(|one| one == word) && !files.contains(&name));
            found.extend(wrong.map(|(word, better, _)| format!("{}:{}: {word}: write {better}", path.display(), number + 1)));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!(words_of_texts("section(\"The Plan of apply_balance\", plan)"), ["the", "plan", "of", "apply_balance"]);
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

#[test]
fn names_are_found_in_code_alone() {
    let code = "let told = 1; // said\nlet a = \"visitor \\\" told\"; let b = r#\"said \"x\" told\"#; let c = '\"'; fn said(reporter_of: u8) {}";
    let lines = code_of(code);
    let found: Vec<Vec<&str>> = lines.lines().map(|line| wrong_identifiers(line).collect()).collect();
    assert_eq!(found, [vec!["told"], vec!["said"]]);
}
