//! A customer's statement as a table.

use std::borrow::Cow;
use std::io;

use billing_domain::money::MoneySum;
use billing_domain::receivables::{AccountStatement, StatementEntry, StatementKind};
use billing_domain::report::ReportFormat;

use crate::{Cell, TableWriter};

const HEADINGS: [&str; 10] = [
    "entity_ref",
    "currency",
    "date",
    "kind",
    "document_number",
    "document_ref",
    "payment_ref",
    "reference",
    "amount",
    "balance",
];
const TITLE: &str = "Statement";

/// Returns a customer's statement as CSV: for each account its opening balance, its entries and its closing balance.
///
/// # Errors
/// Returns write errors, which do not occur in memory.
pub fn statement_csv(accounts: &[AccountStatement]) -> io::Result<Vec<u8>> {
    let mut table = TableWriter::new(ReportFormat::Csv, TITLE, Vec::new());
    table.start(HEADINGS.map(str::to_owned).to_vec())?;
    for account in accounts {
        table.row(&of_balance(account, "OPENING_BALANCE", account.opening_balance))?;
        for line in &account.lines {
            table.row(&of_entry(account, &line.entry, line.balance))?;
        }
        table.row(&of_balance(account, "CLOSING_BALANCE", account.closing_balance))?;
    }
    table.finish()
}

fn of_balance<'a>(account: &'a AccountStatement, kind: &'static str, balance: MoneySum) -> [Cell<'a>; HEADINGS.len()] {
    [
        Cell::Text(Cow::Borrowed(account.entity_ref.as_str())),
        Cell::Plain(Cow::Borrowed(balance.currency().code())),
        Cell::Null,
        Cell::Plain(Cow::Borrowed(kind)),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        Cell::Null,
        amount(balance),
    ]
}

fn of_entry<'a>(account: &'a AccountStatement, entry: &'a StatementEntry, balance: MoneySum) -> [Cell<'a>; HEADINGS.len()] {
    [
        Cell::Text(Cow::Borrowed(account.entity_ref.as_str())),
        Cell::Plain(Cow::Borrowed(balance.currency().code())),
        Cell::Date(entry.date),
        Cell::Plain(Cow::Borrowed(word(entry.kind))),
        entry.document.as_ref().map_or(Cell::Null, |(_, number)| Cell::Text(Cow::Owned(number.to_string()))),
        entry.document.as_ref().map_or(Cell::Null, |(document_ref, _)| plain(document_ref)),
        entry.payment_ref.map_or(Cell::Null, plain),
        entry.reference.as_ref().map_or(Cell::Null, |reference| Cell::Text(Cow::Borrowed(reference.as_str()))),
        amount(entry.amount.into()),
        amount(balance),
    ]
}

fn plain(value: impl ToString) -> Cell<'static> {
    Cell::Plain(Cow::Owned(value.to_string()))
}

/// Returns an amount with exactly the digits of the currency.
fn amount(amount: MoneySum) -> Cell<'static> {
    Cell::Number(Cow::Owned(amount.to_decimal().to_string()))
}

const fn word(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Invoice => "INVOICE",
        StatementKind::Debit => "DEBIT",
        StatementKind::Credit => "CREDIT",
        StatementKind::Void => "VOID",
        StatementKind::Payment => "PAYMENT",
        StatementKind::Refund => "REFUND",
        StatementKind::Reversal => "REVERSAL",
        StatementKind::WriteOff => "WRITE_OFF",
    }
}
