//! Tests of reads, writes, permissions, keys, audit events and dry runs. The domain tests the billing rules.

mod batches;
mod corrections;
mod dates;
mod deliveries;
mod dry_runs;
mod entities;
mod formatted;
mod holds;
mod imports;
mod limits;
mod log_in;
mod notified;
mod once;
mod permissions;
mod preview;
mod printing;
mod refused;
mod run_history;
mod slices;
mod upon_usage;
mod writer;

use billing_domain::document::DocumentKind;
use billing_domain::money::Money;
use billing_testkit::fixtures;

use crate::books::Books;

/// Asserts the documents, each with its lines on one text line, in the terms of the rules. Checks all invariants.
#[track_caller]
fn assert_documents(books: &Books, expected: &[&str]) {
    let shown = books.documents();
    let found: Vec<String> =
        shown.split("\n\n").map(|block| block.replace("\n ", " |")).filter(|block| !block.is_empty()).collect();
    assert_eq!(found, expected, "\n{}", found.join("\n"));
}

/// Returns Σ INVOICE + Σ DEBIT − Σ CREDIT of a line item for the period from a day. Checks all invariants.
#[track_caller]
fn billed(books: &Books, period_start: &str, id: &str) -> String {
    books.documents();
    let mut sum = Money::zero(fixtures::eur());
    for document in books.bench.documents() {
        for line in document.content.products.iter().flat_map(|product| &product.lines) {
            if line.period_start == fixtures::date(period_start) && line.line_item_id == Some(fixtures::line_item_id(id)) {
                sum = match document.kind {
                    DocumentKind::Credit => sum.checked_sub(line.amount),
                    DocumentKind::Invoice | DocumentKind::Debit => sum.checked_add(line.amount),
                }
                .expect("a small amount");
            }
        }
    }
    sum.to_decimal().to_string()
}
