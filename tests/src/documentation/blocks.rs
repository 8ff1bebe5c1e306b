//! The fenced blocks of a page, and what their fences say.
//!
//! A fence names the language. `at=INSTANT` behind it turns the clock before the block's calls; `not-run: REASON` at its end says
//! why nobody makes them.

use std::fs;

use super::root;

/// A Markdown page.
#[derive(Debug)]
pub struct Page {
    /// Its path in the repository.
    pub path: String,
    /// Its blocks, in their order.
    pub blocks: Vec<Block>,
}

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// The line of its fence, from 1.
    pub line: usize,
    /// The heading of the section it stands in, of the second level; empty before the first.
    pub section: String,
    /// The first word of its fence.
    pub language: String,
    /// The instant of its calls, where it says one.
    pub at: Option<String>,
    /// Why it isn't run, where it says so.
    pub not_run: Option<String>,
    /// What is in it.
    pub text: String,
}

/// What is done with a block that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Calls of a shell.
    Calls,
    /// Commands behind `$ `, each with what it says.
    Transcript,
    /// What the calls before it answer last.
    Answer,
    /// A program that the documentation tests of a crate compile and run.
    DocTest,
    /// Nothing that can be run or compared.
    Other,
}

impl Page {
    /// Reads a page of the repository.
    ///
    /// # Panics
    /// When it isn't there, or a fence can't be read.
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
        assert!(open.is_none(), "{path}: a block without an end");
        Self { path: path.to_owned(), blocks }
    }

    /// Where a block is.
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
                None => panic!("{path}:{line}: {word} on a fence"),
            }
        }
        Self { line, section: section.to_owned(), language, at, not_run, text: String::new() }
    }

    /// What is done with it.
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
