//! Documents as a table with one row per document.

use std::borrow::Cow;

use billing_application::documents::DocumentRow;
use billing_domain::calendar::Date;
use billing_domain::money::Money;
use billing_report::Cell;
use serde_json::Value;

use super::enums::{DocumentKindWord, DocumentStateWord, PurposeWord};

/// Column names.
pub const HEADINGS: [&str; 28] = [
    "document_ref",
    "document_number",
    "kind",
    "state",
    "purpose",
    "contract_number",
    "customer_ref",
    "customer_name",
    "entity_ref",
    "currency",
    "period_start",
    "period_end",
    "issue_date",
    "due_date",
    "paid_date",
    "sub_total",
    "total_discount",
    "total_prepaid",
    "total_tax",
    "total",
    "paid_amount",
    "credits_amount",
    "written_off_amount",
    "amount_due",
    "unapplied_amount",
    "po_number",
    "parent_document_ref",
    "parent_document_number",
];

/// Returns the cells of a row. Amounts have the sign that the document shows: a credit's are positive.
pub fn cells(row: &DocumentRow) -> [Cell<'_>; HEADINGS.len()] {
    [
        plain(row.document_ref),
        text(&row.number),
        word(&DocumentKindWord::from(row.kind)),
        word(&DocumentStateWord::from(row.state)),
        word(&PurposeWord::from(row.purpose)),
        plain(&row.contract_number),
        text(&row.customer_ref),
        text(row.customer_name.as_str()),
        text(&row.entity_ref),
        plain(row.total.currency().code()),
        Cell::Date(row.period.start()),
        Cell::Date(row.period.last_day()),
        day(row.issue_date),
        day(row.due_date),
        day(row.paid_date),
        amount(row.sub_total),
        amount(row.total_discount),
        amount(row.total_prepaid),
        amount(row.total_tax),
        amount(row.total),
        amount(row.paid),
        amount(row.credits),
        amount(row.owed.written_off),
        row.owed.amount_due.map_or(Cell::Null, amount),
        row.owed.unapplied.map_or(Cell::Null, amount),
        row.po_number.as_ref().map_or(Cell::Null, |po_number| text(po_number.as_str())),
        row.parent.as_ref().map_or(Cell::Null, |(parent, _)| plain(parent)),
        row.parent.as_ref().map_or(Cell::Null, |(_, number)| text(number)),
    ]
}

fn plain(value: impl ToString) -> Cell<'static> {
    Cell::Plain(Cow::Owned(value.to_string()))
}

fn text(value: impl ToString) -> Cell<'static> {
    Cell::Text(Cow::Owned(value.to_string()))
}

fn day(day: Option<Date>) -> Cell<'static> {
    day.map_or(Cell::Null, Cell::Date)
}

fn amount(amount: Money) -> Cell<'static> {
    Cell::Number(Cow::Owned(amount.to_decimal().to_string()))
}

fn word(word: &impl serde::Serialize) -> Cell<'static> {
    match serde_json::to_value(word) {
        Ok(Value::String(word)) => plain(word),
        _ => Cell::Null,
    }
}
