//! The numbers of limits, as a transaction finds them under the lock of the customers' accounts (billing rules 11).
//!
//! No amount of a draft is stored. Everything that the content of a draft follows from changes only in transactions that lock
//! the accounts of the customer. The statements after the lock see what all earlier holders of the lock committed, so decisions
//! about a customer follow one another (docs/architecture.md, "Limits").

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::decimal::{Decimal, exact_add};
use billing_domain::ledger::limit::{added_to_number, window_at};
use billing_domain::ledger::{ContractBook, Extent};
use billing_domain::limit::{Limit, LimitValue};
use billing_domain::money::MoneySum;
use billing_domain::ports::Tx;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, OrganizationId, ProductNo};
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::basics::distinct;
use crate::book_repository;
use crate::carry_out::Cx;
use crate::error::UseCaseResult;

/// A service period: its contract product and first day.
type PeriodKey = (ContractRef, ProductNo, Date);

/// The numbers of limits that a transaction needs.
#[derive(Clone, Copy)]
pub(crate) enum WatchedNumbers<'p> {
    /// The numbers of now.
    Now,
    /// The numbers that usage in these periods of the transaction's books can change.
    Of(&'p BTreeSet<PeriodKey>),
}

/// The limits of customers, and the parts of their numbers that a transaction does not change.
#[derive(Default)]
pub(crate) struct Watch {
    /// The customers whose numbers are here.
    customers: Vec<CustomerId>,
    /// In the order of the limits' references.
    numbers: Vec<WatchedNumber>,
}

struct WatchedNumber {
    limit: Limit,
    window: Option<Period>,
    /// Whether this is the number of now.
    is_present: bool,
    /// The number without the contracts whose books the transaction has.
    without_own: Decimal,
}

impl WatchedNumber {
    fn added_by(&self, book: &ContractBook) -> UseCaseResult<Decimal> {
        Ok(added_to_number(book, &self.limit, self.window.map(|window| window.start()))?)
    }

    /// Returns whether a contract can change the number.
    fn counts(&self, book: &ContractBook) -> bool {
        let is_of_contract =
            self.limit.metric.product().is_none_or(|(contract_ref, _)| contract_ref == book.contract.contract_ref);
        self.limit.customer_id == book.contract.customer_id && is_of_contract
    }
}

/// What each book of a transaction adds to each number, by the index of the number.
pub(crate) type AddedNumbers = BTreeMap<(ContractRef, usize), Decimal>;

impl Watch {
    /// Reads the numbers of limits. The books `own` are added later.
    pub(crate) fn read(
        tx: &mut dyn Tx,
        organization: OrganizationId,
        limits: Vec<Limit>,
        own: &BTreeMap<ContractRef, ContractBook>,
        (wanted, now): (WatchedNumbers<'_>, Timestamp),
    ) -> UseCaseResult<Self> {
        let customers = distinct(limits.iter().map(|limit| limit.customer_id));
        let owed = owed_in(tx, organization, limits.iter().filter_map(Limit::account).collect())?;
        let mut others: BTreeSet<ContractKey> = match wanted {
            WatchedNumbers::Of(_) => BTreeSet::new(),
            WatchedNumbers::Now => limits.iter().filter_map(|limit| contract_of(organization, limit)).collect(),
        };
        if !owed.is_empty() {
            others.extend(tx.contracts_with_drafts(organization, &owed.keys().cloned().collect())?.into_keys());
        }
        others.retain(|contract| !own.contains_key(&contract.contract));
        let headers = if others.is_empty() {
            Vec::new()
        } else {
            book_repository::load_headers(tx, organization, &Vec::from_iter(others))?
        };
        let others = load_open_books(tx, organization, headers, now)?;
        let mut numbers: Vec<WatchedNumber> = Vec::new();
        for limit in limits {
            if let Some(account) = limit.account() {
                let sum = owed.get(&account).copied().unwrap_or(MoneySum::zero(account.currency));
                numbers.push(WatchedNumber { limit, window: None, is_present: true, without_own: sum.to_decimal() });
                continue;
            }
            let windows = windows_of(&limit, own.values(), &others, (wanted, now))?;
            let number = |(window, is_present)| {
                let (limit, without_own) = (limit.clone(), limit.metric.zero());
                WatchedNumber { limit, window, is_present, without_own }
            };
            numbers.extend(windows.into_iter().map(number));
        }
        for number in &mut numbers {
            for book in &others {
                if number.counts(book) {
                    number.without_own = exact_add(number.without_own, number.added_by(book)?)?;
                }
            }
        }
        Ok(Self { customers, numbers })
    }

    /// Locks the accounts of the watched customers among these books, and reads the numbers of their limits. Books that were
    /// loaded for drafts get the rows that the numbers need.
    pub(crate) fn lock(
        cx: &mut Cx<'_>,
        books: &mut BTreeMap<ContractRef, ContractBook>,
        periods: &BTreeSet<PeriodKey>,
    ) -> UseCaseResult<Self> {
        let watched = books.values().filter(|book| book.contract.is_watched);
        let customers = distinct(watched.map(|book| book.contract.customer_id));
        if customers.is_empty() {
            return Ok(Self::default());
        }
        cx.watch(&customers)?;
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
        Self::read(cx.tx, cx.organization, limits, books, (WatchedNumbers::Of(periods), cx.now))
    }

    /// Returns the customers with limits.
    pub(crate) fn customers(&self) -> impl Iterator<Item = CustomerId> {
        self.customers.iter().copied()
    }

    /// Returns whether a customer has numbers here.
    pub(crate) fn has(&self, customer_id: CustomerId) -> bool {
        self.numbers.iter().any(|number| number.limit.customer_id == customer_id)
    }

    /// Notes what a book adds to the numbers.
    pub(crate) fn note(&self, added: &mut AddedNumbers, book: &ContractBook) -> UseCaseResult<()> {
        for (index, number) in self.numbers.iter().enumerate().filter(|(_, number)| number.counts(book)) {
            added.insert((book.contract.contract_ref, index), number.added_by(book)?);
        }
        Ok(())
    }

    /// Returns the numbers of a customer's limits, with those of the transaction's books.
    pub(crate) fn values(&self, customer_id: CustomerId, added: &AddedNumbers) -> UseCaseResult<Vec<LimitValue>> {
        let of_customer = self.numbers.iter().enumerate().filter(|(_, number)| number.limit.customer_id == customer_id);
        let value = |(index, number): (usize, &WatchedNumber)| {
            let own = added.iter().filter(|((_, of), _)| *of == index).map(|(_, added)| *added);
            let value = own.into_iter().try_fold(number.without_own, exact_add)?;
            Ok(LimitValue::new(number.limit.clone(), (number.window, number.is_present), value)?)
        };
        of_customer.map(value).collect()
    }
}

/// Returns what is owed in accounts, without the drafts.
fn owed_in(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    accounts: BTreeSet<AccountKey>,
) -> UseCaseResult<BTreeMap<AccountKey, MoneySum>> {
    let customers = distinct(accounts.iter().map(|account| account.customer_id));
    let mut owed: BTreeMap<AccountKey, MoneySum> =
        accounts.into_iter().map(|key| (key.clone(), MoneySum::zero(key.currency))).collect();
    if customers.is_empty() {
        return Ok(owed);
    }
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
    Ok(owed)
}

/// Returns the contract whose service periods a limit counts.
fn contract_of(organization: OrganizationId, limit: &Limit) -> Option<ContractKey> {
    let (contract, _) = limit.metric.product()?;
    Some(ContractKey { organization, customer: limit.customer_id, contract })
}

/// Returns the service periods of a limit's product: the present one, and those that usage can change. Each has whether it is present.
/// If all numbers of now are wanted and there is no present period, the result is the number of no period.
fn windows_of<'b>(
    limit: &Limit,
    own: impl Iterator<Item = &'b ContractBook>,
    others: &'b [ContractBook],
    (wanted, now): (WatchedNumbers<'_>, Timestamp),
) -> UseCaseResult<Vec<(Option<Period>, bool)>> {
    let Some((contract_ref, product_no)) = limit.metric.product() else { return Ok(vec![(None, true)]) };
    let is_meant = |book: &&ContractBook| book.contract.contract_ref == contract_ref;
    let (book, changed) = match wanted {
        WatchedNumbers::Now => (own.chain(others).find(is_meant), None),
        WatchedNumbers::Of(periods) => ({ own }.find(is_meant), Some(periods)),
    };
    let present = book.map(|book| window_at(book, product_no, now)).transpose()?.flatten();
    let of_product = changed.into_iter().flatten().filter(|(contract, no, _)| (*contract, *no) == (contract_ref, product_no));
    let changed = of_product.filter_map(|(_, no, start)| Some(book?.contract.period_from(*no, *start)?.days()));
    let windows: BTreeMap<Date, Period> = present.into_iter().chain(changed).map(|window| (window.start(), window)).collect();
    if windows.is_empty() && matches!(wanted, WatchedNumbers::Now) {
        return Ok(vec![(None, true)]);
    }
    Ok(windows.into_values().map(|window| (Some(window), present == Some(window))).collect())
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
