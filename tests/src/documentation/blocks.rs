//! The fenced blocks of a page and the attributes of their fences.
//!
//! A fence names the language. After the language, `at=INSTANT` sets the clock before the calls of the block. At the
//! end, `not-run: REASON` states why the tests do not run the block.

use std::fs;

use super::root;

/// A Markdown page.
#[derive(Debug)]
pub struct Page {
    /// The path in the repository.
    pub path: String,
    /// The blocks in the order of the page.
    pub blocks: Vec<Block>,
}

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// The line number of the fence, starting at 1.
    pub line: usize,
    /// The second-level heading of the section that contains the block. Empty before the first heading.
    pub section: String,
    /// The language, which is the first word of the fence.
    pub language: String,
    /// The instant of the calls, if the fence sets it.
    pub at: Option<String>,
    /// The reason why the tests do not run the block, if the fence gives one.
    pub not_run: Option<String>,
    /// The content of the block.
    pub text: String,
}

/// The kind of a block, which determines how the tests use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Shell calls.
    Calls,
    /// Commands after `$ `, each with its output.
    Transcript,
    /// The last responses to the preceding calls.
    Answer,
    /// A program that the documentation tests of a crate compile and run.
    DocTest,
    /// Content that can be neither run nor compared.
    Other,
}

impl Page {
    /// Reads a page of the repository.
    ///
    /// # Panics
    /// Panics if the page does not exist or if a fence is invalid.
    pub fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self::of(path, &text)
    }

    fn of(path: &str, text: &str) -> Self {
        let (mut blocks, mut section, mut open) = (Vec::new(), String::new(), None::<Block>);
        for (line, text) in (1..).zip(text.lines()) {
            let fence = text.trim_start().strip_prefix("```");
            match (fence, open.take()) {
                (Some(info), None) => open = Some(Block::opened(path, line, &section, info)),
                (Some(_), Some(block)) => blocks.push(block),
                (None, Some(mut block)) => {
                    block.text.push_str(text);
                    block.text.push('\n');
                    open = Some(block);
                }
                (None, None) => {
                    if let Some(heading) = text.strip_prefix("## ") {
                        heading.clone_into(&mut section);
                    }
                }
            }
        }
        assert!(open.is_none(), "{path}: a block has no end");
        Self { path: path.to_owned(), blocks }
    }

    /// Returns the only block of a page in a language.
    ///
    /// # Panics
    /// Panics if the page has no such block, or several.
    pub fn program(path: &str, language: &str) -> String {
        let mut programs = Self::read(path).blocks.into_iter().filter(|block| block.language == language);
        let program = programs.next().unwrap_or_else(|| panic!("{path} has no block in {language}"));
        assert!(programs.next().is_none(), "{path} has two blocks in {language}");
        program.text
    }

    /// Returns the path of the page and the line of a block.
    pub fn place(&self, block: &Block) -> String {
        format!("{}:{}", self.path, block.line)
    }
}

impl Block {
    fn opened(path: &str, line: usize, section: &str, info: &str) -> Self {
        let (words, not_run) = match info.split_once("not-run:") {
            Some((words, reason)) => (words, Some(reason.trim().to_owned())),
            None => (info, None),
        };
        assert!(not_run.as_deref() != Some(""), "{path}:{line}: not-run without a reason");
        let mut words = words.split_whitespace();
        let language = words.next().unwrap_or_default().to_owned();
        let mut at = None;
        for word in words {
            match word.strip_prefix("at=") {
                Some(instant) => at = Some(instant.to_owned()),
                None => panic!("{path}:{line}: unknown word {word} on a fence"),
            }
        }
        Self { line, section: section.to_owned(), language, at, not_run, text: String::new() }
    }

    /// Returns the kind of the block.
    pub fn kind(&self) -> Kind {
        match self.language.as_str() {
            "sh" => Kind::Calls,
            "console" => Kind::Transcript,
            "json" | "csv" | "http" => Kind::Answer,
            "rust" => Kind::DocTest,
            _ => Kind::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_says_what_its_block_is_and_the_section_is_the_one_it_stands_in() {
        let page =
            Page::of("a.md", "```sh at=2026-01-01T00:00:00Z\na\n```\n## B\n  ```sql not-run: needs a server\n  b\n  ```\n");
        let [first, second] = &page.blocks[..] else { panic!("{page:?}") };
        assert_eq!((first.kind(), first.at.as_deref(), first.section.as_str()), (Kind::Calls, Some("2026-01-01T00:00:00Z"), ""));
        assert_eq!((second.kind(), second.not_run.as_deref()), (Kind::Other, Some("needs a server")));
        assert_eq!((second.section.as_str(), page.place(second).as_str()), ("B", "a.md:5"));
    }

    #[test]
    #[should_panic(expected = "a.md:1: not-run without a reason")]
    fn what_is_not_run_says_why() {
        Page::of("a.md", "```sh not-run:\n```\n");
    }
}
