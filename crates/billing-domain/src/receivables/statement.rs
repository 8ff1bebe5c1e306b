//! Customer statements: opening balance, entries by day and closing balance (billing rules 9).

use std::collections::BTreeMap;

use chrono::NaiveDate;

use crate::document::numbering::DocumentNumber;
use crate::money::{Currency, Money, MoneyError, MoneySum};
use crate::party::{Customer, Entity};
use crate::refs::{DocumentRef, EntityRef, PaymentRef};
use crate::text::OneLine;

/// The kind of a statement entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementKind {
    /// An invoice was issued.
    Invoice,
    /// A debit was issued.
    Debit,
    /// A credit was issued.
    Credit,
    /// An issued document was voided. The entry cancels out the document's entry, which remains.
    Void,
    /// A payment was recorded.
    Payment,
    /// A payment or credit was refunded.
    Refund,
    /// A payment or refund was reversed.
    Reversal,
    /// An amount was written off, or a write-off was reduced.
    WriteOff,
}

/// A change of the amount owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementEntry {
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The date of issue, void, payment or reversal.
    pub date: NaiveDate,
    /// The kind of the change.
    pub kind: StatementKind,
    /// The document that the change belongs to, with its number; `None` for a deposit, its refund and their reversals.
    pub document: Option<(DocumentRef, DocumentNumber)>,
    /// The payment or refund, for an entry of one.
    pub payment_ref: Option<PaymentRef>,
    /// The payer's or the bank's reference of the payment or refund.
    pub reference: Option<OneLine>,
    /// The change; negative if it reduces the amount owed.
    pub amount: Money,
}

/// A statement entry with the balance after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementLine {
    /// The entry.
    pub entry: StatementEntry,
    /// The amount owed after the entry.
    pub balance: MoneySum,
}

/// The statement of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStatement {
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The amount owed before the first day.
    pub opening_balance: MoneySum,
    /// The entries by day.
    pub lines: Vec<StatementLine>,
    /// The amount owed after the last day.
    pub closing_balance: MoneySum,
}

/// The maximum number of rows of printed statements. Printing needs about 70 KB for a row.
pub const MAX_PRINTED_ROWS: usize = 2000;

/// All data needed to print a customer's statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementPrintout {
    /// The customer.
    pub customer: Customer,
    /// The entities of the accounts.
    pub entities: Vec<Entity>,
    /// The statements.
    pub accounts: Vec<AccountStatement>,
    /// The first day; `None` from the beginning.
    pub from: Option<NaiveDate>,
    /// The last day; `None` to the end.
    pub to: Option<NaiveDate>,
    /// The day on which it is printed.
    pub day: NaiveDate,
}

/// Creates the statements of one customer's entries, one for each account, sorted by day and then by input order. Entries
/// before `from` form the opening balance; entries after `to` are omitted.
///
/// # Errors
/// Returns [`MoneyError`] when a balance is out of range.
pub fn statement(
    entries: Vec<StatementEntry>,
    from: Option<NaiveDate>,
    to: Option<NaiveDate>,
) -> Result<Vec<AccountStatement>, MoneyError> {
    let mut of_account: BTreeMap<(EntityRef, Currency), Vec<StatementEntry>> = BTreeMap::new();
    for entry in entries {
        of_account.entry((entry.entity_ref.clone(), entry.amount.currency())).or_default().push(entry);
    }
    let reported = |((entity_ref, currency), mut entries): ((EntityRef, Currency), Vec<StatementEntry>)| {
        entries.sort_by_key(|entry| entry.date);
        let mut balance = MoneySum::zero(currency);
        let mut opening_balance = balance;
        let mut lines = Vec::new();
        for entry in entries {
            if to.is_some_and(|to| entry.date > to) {
                break;
            }
            balance = balance.checked_add(entry.amount)?;
            if from.is_some_and(|from| entry.date < from) {
                opening_balance = balance;
            } else {
                lines.push(StatementLine { entry, balance });
            }
        }
        Ok(AccountStatement { entity_ref, opening_balance, lines, closing_balance: balance })
    };
    of_account.into_iter().map(reported).collect()
}
