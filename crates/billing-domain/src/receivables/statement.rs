//! A customer's statement: what was owed, what happened day by day, what is owed (billing rules 9).

use std::collections::BTreeMap;

use chrono::NaiveDate;

use crate::document::numbering::DocumentNumber;
use crate::money::{Currency, Money, MoneyError, MoneySum};
use crate::refs::{DocumentRef, EntityRef, PaymentRef};

/// What changed what is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementKind {
    /// An invoice was issued.
    Invoice,
    /// A debit was issued.
    Debit,
    /// A credit was issued.
    Credit,
    /// An issued document was voided: the opposite of its entry, which stays.
    Void,
    /// A payment came.
    Payment,
    /// A payment or a credit was paid out.
    Refund,
    /// A payment or a refund bounced.
    Reversal,
    /// An amount was given up on, or that was lessened.
    WriteOff,
}

/// One change of what is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementEntry {
    /// Who bills.
    pub entity_ref: EntityRef,
    /// When: the day of issue, void, payment or reversal.
    pub date: NaiveDate,
    /// What.
    pub kind: StatementKind,
    /// The document it stands on.
    pub document_ref: DocumentRef,
    /// That document's number.
    pub document_number: DocumentNumber,
    /// The payment or refund, of one.
    pub payment_ref: Option<PaymentRef>,
    /// By how much; below zero where it lowers what is owed.
    pub amount: Money,
}

/// An entry, and what is owed after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementLine {
    /// The entry.
    pub entry: StatementEntry,
    /// What is owed after it.
    pub balance: MoneySum,
}

/// What happened to one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountStatement {
    /// Who bills.
    pub entity_ref: EntityRef,
    /// What was owed before the first day.
    pub opening_balance: MoneySum,
    /// What changed it, by day.
    pub lines: Vec<StatementLine>,
    /// What is owed after the last day.
    pub closing_balance: MoneySum,
}

/// Puts entries of one customer in order, account by account: by day, then as they came. Those before
/// `from` make the opening balance, those after `to` are left out.
///
/// # Errors
/// [`MoneyError`] when a balance can't be held.
pub fn statement(
    entries: Vec<StatementEntry>,
    from: Option<NaiveDate>,
    to: Option<NaiveDate>,
) -> Result<Vec<AccountStatement>, MoneyError> {
    let mut of_account: BTreeMap<(EntityRef, Currency), Vec<StatementEntry>> = BTreeMap::new();
    for entry in entries {
        of_account.entry((entry.entity_ref.clone(), entry.amount.currency())).or_default().push(entry);
    }
    let told = |((entity_ref, currency), mut entries): ((EntityRef, Currency), Vec<StatementEntry>)| {
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
    of_account.into_iter().map(told).collect()
}
