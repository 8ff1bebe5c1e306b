//! Billing run pages: results and preview.

use maud::{Markup, html};
use serde_json::Value;

use crate::list::{CellFormat, Column, table};
use crate::listings::{BILLING_RUNS, column};
use crate::parts::{actor, facts, grouped, href, identifier, instant, isolated, number, section, state};
use billing_api::json_view::JsonView;

const FAILURES: &[Column] = &[
    column("Customer", "customer_name", CellFormat::Name).leading("customers", "customer_ref"),
    column("Contract", "contract_number", CellFormat::Text).leading("contracts", "contract_ref"),
    column("Document", "document_number", CellFormat::Text).leading("documents", "document_ref"),
    column("Period start", "period_start", CellFormat::Day),
    column("Reason", "problem.detail", CellFormat::Prose),
];

/// Columns of the documents of a run.
const BILLED: &[Column] = &[
    column("Number", "document_number", CellFormat::Text).leading("documents", "document_ref"),
    column("Customer", "customer_name", CellFormat::Name).leading("customers", "customer_ref"),
    column("Total", "total", CellFormat::Money("currency")),
    column("Kind", "kind", CellFormat::Word),
];

/// Renders the page of a run.
pub fn billing_run(run: &Value) -> Markup {
    let at = JsonView::of(run);
    let (issued, voided) = by_fate(at.at_path("documents"));
    html! {
        h1 { "Billing run" }
        (facts(&[
            ("State", state(at.at_path("state"))),
            ("Started", instant(at.at_path("begun_at"))),
            ("Ended", instant(at.at_path("ended_at"))),
            ("Actor", isolated(&actor(at))),
            ("Contracts due", number(at.at_path("contracts"))),
            ("Documents issued", number(at.at_path("issued"))),
            ("Drafts voided", number(at.at_path("voided"))),
            ("Failures", number(at.at_path("failed"))),
            ("Request ID", identifier("Show", &at.at_path("request_id").to_text())),
        ]))
        @if at.at_path("state").is("UNFINISHED") {
            p { "The run is in progress, or the server stopped during it. Issued documents remain issued. The next run issues the rest." }
        }
        @if at.at_path("state").is("CUT_SHORT") {
            p { "The run reached its time limit. Run billing again to continue." }
        }
        (listed("Failures", FAILURES, at.at_path("failures"), &at.at_path("failed").to_text()))
        (listed("Documents issued", BILLED, JsonView::of(&issued), &at.at_path("issued").to_text()))
        (listed("Drafts voided", BILLED, JsonView::of(&voided), &at.at_path("voided").to_text()))
    }
}

/// Separates the issued from the voided documents.
fn by_fate(documents: JsonView<'_>) -> (Value, Value) {
    let (voided, issued): (Vec<Value>, Vec<Value>) = documents
        .elements()
        .map(|document| document.json().clone())
        .partition(|document| JsonView::of(document).at_path("voided").is_true());
    (Value::Array(issued), Value::Array(voided))
}

/// Renders a table of the first elements, unless it is empty.
fn listed(title: &str, columns: &[Column], elements: JsonView<'_>, count: &str) -> Markup {
    let shown = elements.elements().count();
    html! {
        @if shown > 0 {
            (section(title, &html! {
                (table(title, columns, elements))
                @if count != shown.to_string() { p.muted { "The first " (shown) " of " (grouped(count)) "." } }
            }))
        }
    }
}

/// Renders the preview of a run, with the button that starts it.
pub fn billing_preview(report: &Value) -> Markup {
    let at = JsonView::of(report);
    let count = |field: &str| at.at_path(field).elements().count().to_string();
    let nothing = ["issued", "voided", "failed"].iter().all(|field| at.at_path(field).elements().next().is_none());
    html! {
        h1 { "Run billing" }
        @if nothing {
            p { "No documents are due." }
            p { a href=(href(&[BILLING_RUNS.part])) { "All billing runs" } }
        } @else {
            p {
                "A run would issue " strong { (grouped(&count("issued"))) " documents" } " now"
                @if at.at_path("voided").elements().next().is_some() { " and void " (count("voided")) " empty drafts" }
                ". Issued documents are final. Usage reported for them later is billed by a debit or a credit."
            }
            @if at.at_path("next").is_there() { p { "The preview reached its time limit. A run would issue more documents." } }
            form method="post" action=(href(&["new", BILLING_RUNS.part])) {
                button { "Run billing" } " " a href=(href(&[BILLING_RUNS.part])) { "Cancel" }
            }
            (listed("Expected failures", FAILURES, at.at_path("failed"), &count("failed")))
            (listed("Documents that would be issued", BILLED, at.at_path("issued"), &count("issued")))
            (listed("Drafts that would be voided", BILLED, at.at_path("voided"), &count("voided")))
            p.muted { "Documents without a number would be created when they are issued." }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_shows_what_failed_and_how_much_is_not_listed() {
        let document =
            json!({"document_ref": "d", "document_number": "UB-INV-1", "kind": "INVOICE", "total": 1, "currency": "EUR"});
        let failure = json!({"contract_ref": "c<", "period_start": "2027-01-01", "document_ref": "d7", "contract_number": "C-7", "document_number": "UB-INV-7", "customer_ref": "acme", "customer_name": "Acme", "problem": {"code": "amount_out_of_range", "detail": "<b>"}});
        let run = json!({"state": "UNFINISHED", "issued": 1234, "voided": 0, "failed": 1, "documents": [document], "failures": [failure]});
        let shown = billing_run(&run).into_string();
        assert!(shown.contains("the server stopped") && shown.contains("The first 1 of 1,234."), "{shown}");
        assert!(shown.contains("/console/contracts/c%3C") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("2027-01-01") && shown.contains("<a href=\"/console/documents/d7\">UB-INV-7</a>"), "{shown}");
        assert!(shown.contains(">C-7</a>") && shown.contains("<a href=\"/console/customers/acme\">Acme</a>"), "{shown}");
        assert!(!shown.contains("<h2>Drafts voided</h2>"), "{shown}");
    }

    #[test]
    fn a_preview_has_a_button_only_where_something_is_due() {
        let report = json!({"issued": [], "voided": [], "failed": [], "next": null});
        assert!(!billing_preview(&report).into_string().contains("<button"));
        let report = json!({"issued": [{"document_ref": null, "document_number": null, "kind": "INVOICE", "total": 1, "currency": "EUR"}],
            "voided": [], "failed": [], "next": "x"});
        let shown = billing_preview(&report).into_string();
        assert!(shown.contains("<button>Run billing</button>") && shown.contains("time limit"), "{shown}");
    }
}
