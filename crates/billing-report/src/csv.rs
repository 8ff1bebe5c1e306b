//! Comma-separated values: RFC 4180, UTF-8 without a byte order mark, lines that end with CR LF, a line of headings.

use std::borrow::Cow;
use std::io::{self, Write};

use billing_domain::account::{AccountStatement, StatementKind};
use billing_domain::money::Money;
use billing_domain::report::{FIXED_COLUMNS, ReportColumns, ReportedEvent};
use billing_domain::usage::ReportValue;
use csv::{Terminator, Writer, WriterBuilder};

use crate::values_by_column;

/// What stands before a text that a spreadsheet would take for a formula.
const GUARD: char = '\'';
/// What stands between cells where the decimal sign is a comma.
const SEPARATOR: char = ';';

pub(crate) struct CsvTable<W: Write> {
    columns: ReportColumns,
    out: Writer<W>,
}

impl<W: Write> CsvTable<W> {
    pub(crate) fn start(columns: ReportColumns, out: W) -> io::Result<Self> {
        let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
        let headings = FIXED_COLUMNS.into_iter().chain(columns.key_headings().iter().map(String::as_str));
        out.write_record(headings.map(|heading| guarded(heading).into_owned()))?;
        Ok(Self { columns, out })
    }

    pub(crate) fn row(&mut self, event: &ReportedEvent) -> io::Result<()> {
        let texts = [
            event.event_ref.to_string(),
            event.occurred_at.to_string(),
            guarded(event.customer_ref.as_str()).into_owned(),
            guarded(event.customer_name.as_str()).into_owned(),
            guarded(event.usage_product_ref.as_str()).into_owned(),
            guarded(event.usage_product_name.as_str()).into_owned(),
            event.quantity.as_decimal().to_string(),
            guarded(&event.document_numbers.to_string()).into_owned(),
        ];
        for text in &texts {
            self.out.write_field(text)?;
        }
        for value in values_by_column(&self.columns, event)? {
            self.out.write_field(cell(value).as_bytes())?;
        }
        self.out.write_record(None::<&[u8]>)?;
        Ok(())
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(csv::IntoInnerError::into_error)
    }
}

/// A customer's statement as one table: the opening balance of each account, its entries, its closing balance.
///
/// # Errors
/// None in memory but a defect of the writer's.
pub(crate) fn statement(accounts: &[AccountStatement]) -> io::Result<Vec<u8>> {
    let mut out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    out.write_record([
        "entity_ref",
        "currency",
        "date",
        "kind",
        "document_number",
        "document_ref",
        "payment_ref",
        "amount",
        "balance",
    ])?;
    for account in accounts {
        let (entity_ref, currency) = (guarded(account.entity_ref.as_str()), account.opening_balance.currency().code());
        let mut row =
            |date: String, kind: &str, number: String, document: String, payment: String, amount: String, balance: Money| {
                let balance = amount_text(balance);
                out.write_record([&*entity_ref, currency, &date, kind, &number, &document, &payment, &amount, &balance])
            };
        let none = String::new;
        row(none(), "OPENING_BALANCE", none(), none(), none(), none(), account.opening_balance)?;
        for line in &account.lines {
            let entry = &line.entry;
            row(
                entry.date.to_string(),
                word(entry.kind),
                guarded(&entry.document_number.to_string()).into_owned(),
                entry.document_ref.to_string(),
                entry.payment_ref.map(|payment| payment.to_string()).unwrap_or_default(),
                amount_text(entry.amount),
                line.balance,
            )?;
        }
        row(none(), "CLOSING_BALANCE", none(), none(), none(), none(), account.closing_balance)?;
    }
    out.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// With exactly the digits that the currency has.
fn amount_text(amount: Money) -> String {
    let text = amount.to_string();
    text.split_once(' ').map_or(text.clone(), |(digits, _)| digits.to_owned())
}

const fn word(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Invoice => "INVOICE",
        StatementKind::Debit => "DEBIT",
        StatementKind::Credit => "CREDIT",
        StatementKind::Payment => "PAYMENT",
        StatementKind::Refund => "REFUND",
        StatementKind::Reversal => "REVERSAL",
        StatementKind::WriteOff => "WRITE_OFF",
    }
}

fn cell(value: Option<&ReportValue>) -> Cow<'_, str> {
    match value {
        None | Some(ReportValue::Null) => Cow::Borrowed(""),
        Some(ReportValue::Bool(true)) => Cow::Borrowed("true"),
        Some(ReportValue::Bool(false)) => Cow::Borrowed("false"),
        // A JSON number is no formula, also with its sign.
        Some(ReportValue::Number(number)) => Cow::Borrowed(number),
        Some(ReportValue::Text(text)) => guarded(text),
    }
}

/// A text with `'` before it where a spreadsheet would calculate it, and where it begins with `'` itself. The same after
/// each `;`, where spreadsheets of many languages begin a cell, whatever the quotes. Taking one `'` away in each of these places
/// gives every text back.
fn guarded(text: &str) -> Cow<'_, str> {
    let begins_badly = |part: &str| part.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠', GUARD]);
    if !text.split(SEPARATOR).any(begins_badly) {
        return Cow::Borrowed(text);
    }
    let guard = |part: &str| if begins_badly(part) { format!("{GUARD}{part}") } else { part.to_owned() };
    Cow::Owned(text.split(SEPARATOR).map(guard).collect::<Vec<_>>().join(";"))
}
