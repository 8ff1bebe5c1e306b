//! One scenario per rule of billing-rules 2, 3, 5 and 7, with numbers worked by hand.

#[allow(dead_code, reason = "examples need more of it")]
#[path = "../documented_examples/books.rs"]
mod books;
mod contracts;
mod corrections;
mod formatted;
mod joined;
mod once;
mod preview;
mod slices;
#[path = "../support/mod.rs"]
mod support;
mod timing;
mod upon_usage;

use books::Books;

/// All documents, one line each with its lines after it, as the rules' words and numbers; every invariant holds.
#[track_caller]
fn assert_documents(books: &Books, expected: &[&str]) {
    let shown = books.documents();
    let found: Vec<String> =
        shown.split("\n\n").map(|block| block.replace("\n ", " |")).filter(|block| !block.is_empty()).collect();
    assert_eq!(found, expected, "\n{}", found.join("\n"));
}
