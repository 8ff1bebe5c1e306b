//! Billing run pages: results and preview.

use std::collections::BTreeMap;

use maud::{Markup, html};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::list::{CellFormat, Column, table};
use crate::listings::{BILLING_RUNS, column};
use crate::parts::{
    actor, amount_alone, count_text, facts, grouped, href, identifier, instant, isolated, name, number, section, state,
};
use billing_api::dto::billing::{BilledDocumentJson, BillingReportJson, BillingRunJson, FailedContractJson, RunDocumentJson};
use billing_api::dto::document_summary::DocumentSummaryJson;
use billing_api::field;
use billing_api::json_view::{JsonAnswer, JsonView};

const FAILURES: &[Column] = &[
    column("Customer", field!(FailedContractJson, customer_name), CellFormat::Name)
        .leading("customers", field!(FailedContractJson, customer_ref)),
    column("Contract", field!(FailedContractJson, contract_number), CellFormat::Text)
        .leading("contracts", field!(FailedContractJson, contract_ref)),
    column("Document", field!(FailedContractJson, document_number), CellFormat::Text)
        .leading("documents", field!(FailedContractJson, document_ref)),
    column("Period start", field!(FailedContractJson, period_start), CellFormat::Day),
    column("Reason", field!(FailedContractJson, problem.detail), CellFormat::Prose),
];

/// Columns of the documents of a run.
const BILLED: &[Column] = &[
    column("Number", field!(BilledDocumentJson, document_number), CellFormat::Text)
        .leading("documents", field!(BilledDocumentJson, document_ref)),
    column("Customer", field!(BilledDocumentJson, customer_name), CellFormat::Name)
        .leading("customers", field!(BilledDocumentJson, customer_ref)),
    column("Total", field!(BilledDocumentJson, total), CellFormat::Money(field!(BilledDocumentJson, currency))),
    column("Kind", field!(BilledDocumentJson, kind), CellFormat::Word),
];

/// Columns of the documents in the preview of a run.
const PREVIEWED: &[Column] = &[
    BILLED[0],
    BILLED[1],
    BILLED[2],
    BILLED[3],
    column("Period start", field!(BilledDocumentJson, period_start), CellFormat::Day),
    column("Period end", field!(BilledDocumentJson, period_end), CellFormat::Day),
];

/// Renders the page of a run.
pub fn billing_run(at: JsonView<'_, BillingRunJson>) -> Markup {
    let (issued, voided) = by_fate(at.documents());
    html! {
        h1 { "Billing run" }
        (facts(&[
            ("State", state(at.state())),
            ("Started", instant(at.begun_at())),
            ("Ended", instant(at.ended_at())),
            ("Actor", isolated(&actor(at))),
            ("Contracts due", number(at.contracts())),
            ("Documents issued", number(at.issued())),
            ("Drafts voided", number(at.voided())),
            ("Failures", number(at.failed())),
            ("Request ID", identifier("Show", &at.request_id().to_text())),
        ]))
        @if at.state().is("UNFINISHED") {
            p { "The run is in progress, or the server stopped during it. Issued documents remain issued. The next run issues the rest." }
        }
        @if at.state().is("CUT_SHORT") {
            p { "The run reached its time limit. Run billing again to continue." }
        }
        (listed("Failures", FAILURES, at.failures().any(), &at.failed().to_text()))
        (listed("Documents issued", BILLED, JsonView::of(&issued), &at.issued().to_text()))
        (listed("Drafts voided", BILLED, JsonView::of(&voided), &at.voided().to_text()))
    }
}

/// Separates the issued from the voided documents.
fn by_fate(documents: JsonView<'_, Vec<RunDocumentJson>>) -> (Value, Value) {
    let (voided, issued): (Vec<Value>, Vec<Value>) = documents
        .items()
        .map(|document| document.json().clone())
        .partition(|document| JsonView::<RunDocumentJson>::of(document).voided().is_true());
    (Value::Array(issued), Value::Array(voided))
}

/// Maximum number of rows of a table, so that the page of a run of thousands of documents stays small.
const MAX_ROWS: usize = 100;

/// Renders a table of the first elements, unless it is empty.
fn listed(title: &str, columns: &[Column], elements: JsonView<'_>, count: &str) -> Markup {
    let first: Value = elements.elements().take(MAX_ROWS).map(|element| element.json().clone()).collect();
    let shown = first.as_array().map_or(0, Vec::len);
    html! {
        @if shown > 0 {
            (section(title, &html! {
                (table(title, columns, JsonView::of(&first)))
                @if count != shown.to_string() { p.muted { "The first " (shown) " of " (grouped(count)) "." } }
            }))
        }
    }
}

/// The documents issued in the month before a run, to compare the run with.
#[derive(Clone, Debug, Default)]
pub struct MonthBefore {
    /// Name with the year.
    pub name: String,
    /// Issued documents by currency; null if the visitor may not read them.
    pub billed: JsonAnswer<Vec<DocumentSummaryJson>>,
}

/// Returns the sums of the documents that a run would issue by currency. A credit reduces the sum.
fn totals(issued: JsonView<'_, Vec<BilledDocumentJson>>) -> BTreeMap<String, Decimal> {
    let mut sums: BTreeMap<String, Decimal> = BTreeMap::new();
    for document in issued.items() {
        let Ok(total) = Decimal::from_str_exact(&document.total().to_text()) else { continue };
        let total = if document.kind().is("CREDIT") { -total } else { total };
        let sum = sums.entry(document.currency().to_text()).or_default();
        *sum = sum.checked_add(total).unwrap_or(*sum);
    }
    sums
}

/// Renders the sums of a run beside the amounts of the month before.
fn compared(issued: JsonView<'_, Vec<BilledDocumentJson>>, before: &MonthBefore) -> Markup {
    let of_month = before.billed.view();
    let billed = |currency: &str| of_month.items().find(|month| month.currency().is(currency)).map(|month| month.billed());
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Total" {
            table.narrow {
                thead { tr {
                    th scope="col" { "Invoices and debits less credits" }
                    th.amount scope="col" { "This run" }
                    @if of_month.is_there() { th.amount scope="col" { "Billed in " (before.name) } }
                } }
                tbody { @for (currency, total) in totals(issued) { tr {
                    th scope="row" { (currency) }
                    td.amount { (amount_alone(&total.to_string(), &currency)) }
                    @if of_month.is_there() {
                        td.amount { @match billed(&currency) { Some(amount) => (amount_alone(&amount.to_text(), &currency)), None => "–" } }
                    }
                } } }
            }
        }
    }
}

/// Renders the preview of a run, with the button that starts it.
pub fn billing_preview(at: JsonView<'_, BillingReportJson>, before: &MonthBefore) -> Markup {
    let (issued, voided, failed) = (at.issued().any(), at.voided().any(), at.failed().any());
    let [issues, voids, failures] = [issued, voided, failed].map(|list| list.elements().count().to_string());
    let nothing = [issued, voided, failed].iter().all(|list| list.elements().next().is_none());
    html! {
        h1 { "Run billing" }
        @if nothing {
            p { "No documents are due." }
            p { a href=(href(&[BILLING_RUNS.part])) { "All billing runs" } }
        } @else {
            p {
                "A run would issue " strong { (count_text(&issues, "document")) } " now"
                @if voided.elements().next().is_some() { " and void " (count_text(&voids, "empty draft")) }
                ". Issued documents are final. Usage reported for them later is billed by a debit or a credit."
            }
            @for warning in at.warnings().items() { p.notice.refused role="alert" { "Possible mistake: " (name(warning.detail())) "." } }
            @if at.next().is_there() { p { "The preview reached its time limit. A run would issue more documents." } }
            @if issued.elements().next().is_some() { (compared(at.issued(), before)) }
            form method="post" action=(href(&["new", BILLING_RUNS.part])) {
                button { "Run billing" } " " a href=(href(&[BILLING_RUNS.part])) { "Cancel" }
            }
            (listed("Expected failures", FAILURES, failed, &failures))
            (listed("Documents that would be issued", PREVIEWED, issued, &issues))
            (listed("Drafts that would be voided", PREVIEWED, voided, &voids))
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
        let shown = billing_run(JsonView::of(&run)).into_string();
        assert!(shown.contains("the server stopped") && shown.contains("The first 1 of 1,234."), "{shown}");
        assert!(shown.contains("/console/contracts/c%3C") && !shown.contains("<b>"), "{shown}");
        assert!(shown.contains("2027-01-01") && shown.contains("<a href=\"/console/documents/d7\">UB-INV-7</a>"), "{shown}");
        assert!(shown.contains(">C-7</a>") && shown.contains("<a href=\"/console/customers/acme\">Acme</a>"), "{shown}");
        assert!(!shown.contains("<h2>Drafts voided</h2>"), "{shown}");
    }

    #[test]
    fn a_preview_has_a_button_only_where_something_is_due() {
        let report = json!({"issued": [], "voided": [], "failed": [], "next": null});
        assert!(!billing_preview(JsonView::of(&report), &MonthBefore::default()).into_string().contains("<button"));
        let report = json!({"issued": [{"document_ref": null, "document_number": null, "kind": "INVOICE", "total": 1, "currency": "EUR"}],
            "voided": [], "failed": [], "next": "x"});
        let shown = billing_preview(JsonView::of(&report), &MonthBefore::default()).into_string();
        assert!(shown.contains("<button>Run billing</button>") && shown.contains("time limit"), "{shown}");
    }

    #[test]
    fn a_preview_of_many_documents_shows_the_first() {
        let issued: Vec<Value> = (0..120).map(|n| json!({"kind": "INVOICE", "document_number": format!("UB-INV-{n}")})).collect();
        let shown = billing_preview(JsonView::of(&json!({"issued": issued})), &MonthBefore::default()).into_string();
        assert!(shown.contains("UB-INV-99<") && !shown.contains("UB-INV-100<"), "{shown}");
        assert!(shown.contains("The first 100 of 120."), "{shown}");
    }

    #[test]
    fn a_preview_has_periods_and_warnings() {
        let warned = json!({"issued": [{"kind": "DEBIT", "period_start": "2026-01-01", "period_end": "2026-01-31"}],
            "warnings": [{"code": "period_not_over", "detail": "1 document corrects"}]});
        let shown = billing_preview(JsonView::of(&warned), &MonthBefore::default()).into_string();
        assert!(shown.contains("1 document corrects") && shown.contains(">2026-01-31<"), "{shown}");
    }

    #[test]
    fn a_preview_has_a_total_by_currency_beside_the_month_before() {
        let document = |kind: &str, total: Value, currency: &str| json!({"kind": kind, "total": total, "currency": currency});
        let report = json!({"issued": [document("INVOICE", json!(1200), "EUR"), document("CREDIT", json!(0.5), "EUR"),
            document("DEBIT", json!(7), "JPY")], "voided": [], "failed": [], "next": null});
        let billed = json!([{"currency": "EUR", "billed": 900}, {"currency": "USD", "billed": 4}]);
        let before = MonthBefore { name: "October 2026".to_owned(), billed: billed.into() };
        let shown = billing_preview(JsonView::of(&report), &before).into_string();
        for part in ["Billed in October 2026", ">1,199.50<", ">900.00<", ">7<", "3 documents"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("USD"), "{shown}");
    }
}
