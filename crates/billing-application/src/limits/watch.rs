//! The numbers of limits, as a transaction finds them under the lock of the customers' accounts (billing rules 11).
//!
//! No amount of a draft is stored. Everything that the content of a draft follows from changes only in transactions that lock
//! the accounts of the customer. The statements after the lock see what all earlier holders of the lock committed, so decisions
//! about a customer follow one another (docs/architecture.md, "Limits").

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Timestamp;
use billing_domain::ledger::limit::added_to_account;
use billing_domain::ledger::{ContractBook, Extent};
use billing_domain::limit::{Limit, LimitValue};
use billing_domain::money::MoneySum;
use billing_domain::ports::Tx;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, OrganizationId};
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::basics::distinct;
use crate::book_repository;
use crate::carry_out::Cx;
use crate::error::UseCaseResult;

/// The limits of customers, and the parts of their numbers that a transaction does not change.
#[derive(Default)]
pub(crate) struct Watch {
    /// In the order of their references.
    limits: Vec<Limit>,
    /// What is owed in each account, besides the contracts whose books the transaction has.
    owed: BTreeMap<AccountKey, MoneySum>,
}

/// What each book of a transaction adds to each account.
pub(crate) type BookAmounts = BTreeMap<(ContractRef, AccountKey), MoneySum>;

impl Watch {
    /// Reads the numbers of limits. The books of the contracts `own` are added later.
    pub(crate) fn read(
        tx: &mut dyn Tx,
        organization: OrganizationId,
        limits: Vec<Limit>,
        own: &BTreeSet<ContractRef>,
        now: Timestamp,
    ) -> UseCaseResult<Self> {
        if limits.is_empty() {
            return Ok(Self::default());
        }
        let keys: BTreeSet<AccountKey> = limits.iter().map(Limit::account).collect();
        let customers = distinct(limits.iter().map(|limit| limit.customer_id));
        let mut owed: BTreeMap<AccountKey, MoneySum> =
            keys.iter().map(|key| (key.clone(), MoneySum::zero(key.currency))).collect();
        for (key, unapplied) in tx.accounts(organization, Some(&customers))? {
            if let Some(sum) = owed.get_mut(&key) {
                *sum = sum.checked_sub(unapplied)?;
            }
        }
        let due = tx.due_by_day(organization, &customers)?.into_iter().map(|(key, _, amount)| (key, amount));
        for (key, amount) in due.chain(tx.written_off(organization, &customers)?) {
            if let Some(sum) = owed.get_mut(&key) {
                *sum = sum.checked_add(amount)?;
            }
        }
        let drafted = tx.contracts_with_drafts(organization, &keys)?;
        let others: Vec<ContractKey> = drafted.into_keys().filter(|contract| !own.contains(&contract.contract)).collect();
        if !others.is_empty() {
            let books = book_repository::load_headers(tx, organization, &others)?;
            for book in load_open_books(tx, organization, books, now)? {
                for (key, sum) in owed.iter_mut().filter(|(key, _)| key.customer_id == book.contract.customer_id) {
                    *sum = sum.checked_add(added_to_account(&book, key)?)?;
                }
            }
        }
        Ok(Self { limits, owed })
    }

    /// Locks the accounts of the watched customers among these books, and reads the numbers of their limits. Books that were
    /// loaded for drafts get the rows that the numbers need.
    pub(crate) fn lock(cx: &mut Cx<'_>, books: &mut BTreeMap<ContractRef, ContractBook>) -> UseCaseResult<Self> {
        let watched = books.values().filter(|book| book.contract.is_watched);
        let customers = distinct(watched.map(|book| book.contract.customer_id));
        if customers.is_empty() {
            return Ok(Self::default());
        }
        cx.lock_accounts(&customers)?;
        let limits = cx.tx.limits_of(cx.organization, &customers)?;
        let limited: BTreeSet<CustomerId> = limits.iter().map(|limit| limit.customer_id).collect();
        let needs_rows = |book: &ContractBook| book.extent() == Extent::Drafts && limited.contains(&book.contract.customer_id);
        let drafts: Vec<ContractRef> =
            books.iter().filter(|(_, book)| needs_rows(book)).map(|(contract_ref, _)| *contract_ref).collect();
        // The totals of the request's events are locked, and may be recounted.
        let mut locked: BTreeMap<ContractRef, Vec<(UsageKey, UsageTotal)>> = BTreeMap::new();
        let mut opened: Vec<ContractBook> = Vec::with_capacity(drafts.len());
        for contract_ref in drafts {
            let Some(book) = books.remove(&contract_ref) else { continue };
            locked.insert(contract_ref, book.usage().iter().map(|(key, total)| (key.clone(), *total)).collect());
            opened.push(book.without_rows());
        }
        for mut book in load_open_books(cx.tx, cx.organization, opened, cx.now)? {
            let contract_ref = book.contract.contract_ref;
            for (key, total) in locked.remove(&contract_ref).unwrap_or_default() {
                book.put_usage(key, total);
            }
            books.insert(contract_ref, book);
        }
        let own = books.keys().copied().collect();
        Self::read(cx.tx, cx.organization, limits, &own, cx.now)
    }

    /// Returns whether a customer has limits.
    pub(crate) fn has(&self, customer_id: CustomerId) -> bool {
        self.limits.iter().any(|limit| limit.customer_id == customer_id)
    }

    /// Notes what a book adds to the accounts of its customer's limits.
    pub(crate) fn note(&self, amounts: &mut BookAmounts, book: &ContractBook) -> UseCaseResult<()> {
        let contract_ref = book.contract.contract_ref;
        for key in self.owed.keys().filter(|key| key.customer_id == book.contract.customer_id) {
            amounts.insert((contract_ref, key.clone()), added_to_account(book, key)?);
        }
        Ok(())
    }

    /// Returns the numbers of a customer's limits, with the amounts of the transaction's books.
    pub(crate) fn values(&self, customer_id: CustomerId, amounts: &BookAmounts) -> UseCaseResult<Vec<LimitValue>> {
        let of_customer = self.limits.iter().filter(|limit| limit.customer_id == customer_id);
        let value = |limit: &Limit| {
            let key = limit.account();
            let mut sum = self.owed.get(&key).copied().unwrap_or(MoneySum::zero(key.currency));
            for (_, amount) in amounts.iter().filter(|((_, of), _)| *of == key) {
                sum = sum.checked_add(*amount)?;
            }
            Ok(LimitValue::new(limit.clone(), sum.to_decimal())?)
        };
        of_customer.map(value).collect()
    }
}

/// Loads the rows of several contracts' books that the content of their drafts needs, and returns the books in the same order.
fn load_open_books(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: Vec<ContractBook>,
    now: Timestamp,
) -> UseCaseResult<Vec<ContractBook>> {
    if books.is_empty() {
        return Ok(books);
    }
    let contracts: Vec<ContractKey> = books.iter().map(|book| book.contract.key(organization)).collect();
    let mut rows = tx.rows_of_books(&contracts)?;
    let mut open = Vec::with_capacity(books.len());
    for (book, contract) in books.into_iter().zip(contracts) {
        let mut book = book.with_rows(Extent::Open, rows.remove(&contract).unwrap_or_default())?;
        book.set_as_of(now);
        let lacking = |(key, total): (&UsageKey, &UsageTotal)| (!book.total_suffices(key, total)).then(|| key.clone());
        let lacking: BTreeSet<UsageKey> = book.usage().iter().filter_map(lacking).collect();
        book_repository::recount(tx, organization, &mut book, |key, _| lacking.contains(key))?;
        open.push(book);
    }
    Ok(open)
}
