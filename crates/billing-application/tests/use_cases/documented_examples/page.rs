//! Parses docs/billing-rules.md into examples with prose, blocks and bold amounts.

const PAGE: &str = include_str!("../../../../../docs/billing-rules.md");
const HEADING: &str = "#### Example ";

/// Returns the numbers of all examples, in the order of the page.
pub(crate) fn numbers() -> Vec<String> {
    PAGE.lines().filter_map(number).map(str::to_owned).collect()
}

fn number(line: &str) -> Option<&str> {
    line.strip_prefix(HEADING).and_then(|rest| rest.split(':').next())
}

/// An example with the progress of its test.
pub(crate) struct Page {
    number: String,
    prose: String,
    blocks: Vec<String>,
    shown: usize,
    asserted: String,
}

impl Page {
    /// Returns the example with this number.
    pub(crate) fn of(wanted: &str) -> Self {
        let mut lines = PAGE.lines().skip_while(|line| number(line) != Some(wanted));
        assert!(lines.next().is_some(), "docs/billing-rules.md has no example {wanted}");
        let (mut prose, mut blocks, mut open) = (String::new(), Vec::new(), None::<String>);
        for line in lines.take_while(|line| !line.starts_with('#')) {
            match (line.starts_with("```"), open.take()) {
                (true, None) => open = Some(String::new()),
                (true, Some(block)) => blocks.push(block),
                (false, Some(block)) => open = Some(format!("{block}{line}\n")),
                (false, None) => prose = format!("{prose}{line} "),
            }
        }
        Self { number: wanted.to_owned(), prose, blocks, shown: 0, asserted: String::new() }
    }

    /// Asserts that the next block of the page has this text.
    pub(crate) fn shows(&mut self, text: &str) {
        let block = self.blocks.get(self.shown).map_or("", String::as_str);
        assert!(
            block.trim_end() == text.trim_end(),
            "example {}, block {}: the page shows\n{block}\nbut the result is\n{text}",
            self.number,
            self.shown + 1
        );
        self.shown += 1;
        self.asserted.push_str(text);
    }

    /// Asserts that the prose of the page contains these words.
    pub(crate) fn says(&mut self, words: &str) {
        assert!(self.prose.contains(words), "example {} does not contain {words:?}", self.number);
        self.asserted.push_str(words);
        self.asserted.push('\n');
    }

    /// Asserts that the test compared all blocks and that the results contain all bold text.
    pub(crate) fn close(self) {
        assert_eq!(self.shown, self.blocks.len(), "example {}: the test does not compare all blocks", self.number);
        assert!(!self.asserted.is_empty(), "example {}: the test asserts nothing", self.number);
        for bold in self.prose.split("**").skip(1).step_by(2) {
            assert!(self.asserted.contains(bold), "example {}: the results do not contain {bold}", self.number);
        }
    }
}
