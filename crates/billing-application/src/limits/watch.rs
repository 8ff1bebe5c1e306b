//! The numbers of limits, as a transaction finds them under the lock of the customers' accounts (billing rules 11).
//!
//! No amount of a draft is stored. Everything that the content of a draft follows from changes only in transactions that lock
//! the accounts of the customer. The statements after the lock see what all earlier holders of the lock committed, so decisions
//! about a customer follow one another (docs/architecture.md, "Limits").

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::decimal::{AmountOutOfRange, Decimal, exact_add};
use billing_domain::hold::{EntryKey, OpenEntry};
use billing_domain::ledger::limit::{added_to_number, has_rows_of_held, window_at, with_held};
use billing_domain::ledger::{ContractBook, Extent};
use billing_domain::limit::{Limit, LimitValue};
use billing_domain::money::MoneySum;
use billing_domain::ports::Tx;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, EventRef, HoldRef, OrganizationId, ProductNo, UsageProductRef};
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::basics::distinct;
use crate::book_repository;
use crate::carry_out::{Cx, UnappliedSums};
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
    /// The open entries of holds, in the order of their places.
    open: Vec<OpenEntry>,
}

struct WatchedNumber {
    limit: Limit,
    window: Option<Period>,
    /// Whether this is the number of now.
    is_present: bool,
    /// The number and its holds, without the contracts whose books the transaction has.
    without_own: (Decimal, Decimal),
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

/// What each book of a transaction adds to each number, by the index of the number: to the value, and to the holds.
pub(crate) type AddedNumbers = BTreeMap<(ContractRef, usize), (Decimal, Decimal)>;

/// The entries of holds that events of a transaction settle.
pub(crate) type SettledEntries = BTreeMap<EntryKey, EventRef>;

impl Watch {
    /// Reads the numbers of limits, and the unapplied sums of the accounts if they aren't given. The books `own` are added later.
    pub(crate) fn read(
        cx: &mut Cx<'_>,
        (limits, open, unapplied): (Vec<Limit>, Vec<OpenEntry>, Option<UnappliedSums>),
        own: &BTreeMap<ContractRef, ContractBook>,
        wanted: WatchedNumbers<'_>,
    ) -> UseCaseResult<Self> {
        let (organization, now) = (cx.organization, cx.now);
        let customers = distinct(limits.iter().map(|limit| limit.customer_id));
        let owed = owed_in(cx.tx, organization, limits.iter().filter_map(Limit::account).collect(), unapplied)?;
        let mut others: BTreeSet<ContractKey> = match wanted {
            WatchedNumbers::Of(_) => BTreeSet::new(),
            WatchedNumbers::Now => limits.iter().filter_map(|limit| contract_of(organization, limit)).collect(),
        };
        if !owed.is_empty() {
            others.extend(cx.tx.contracts_with_drafts(organization, &owed.keys().cloned().collect())?.into_keys());
            // A hold can open the first draft of a contract.
            let owing: BTreeSet<CustomerId> = owed.keys().map(|account| account.customer_id).collect();
            let of_owing = open.iter().filter(|entry| owing.contains(&entry.place.0));
            let contract =
                |entry: &OpenEntry| ContractKey { organization, customer: entry.place.0, contract: entry.key.contract_ref };
            others.extend(of_owing.map(contract));
        }
        others.retain(|contract| !own.contains_key(&contract.contract));
        let headers = if others.is_empty() {
            Vec::new()
        } else {
            book_repository::load_headers(cx.tx, organization, &Vec::from_iter(others))?
        };
        let others = load_open_books(cx.tx, organization, headers, &open, now)?;
        let mut numbers: Vec<WatchedNumber> = Vec::new();
        for limit in limits {
            if let Some(account) = limit.account() {
                let sum = owed.get(&account).copied().unwrap_or(MoneySum::zero(account.currency));
                let without_own = (sum.to_decimal(), limit.metric.zero());
                numbers.push(WatchedNumber { limit, window: None, is_present: true, without_own });
                continue;
            }
            let windows = windows_of(&limit, own.values(), &others, (wanted, now))?;
            let number = |(window, is_present)| {
                let (limit, zero) = (limit.clone(), limit.metric.zero());
                WatchedNumber { limit, window, is_present, without_own: (zero, zero) }
            };
            numbers.extend(windows.into_iter().map(number));
        }
        let mut watch = Self { customers, numbers, open };
        for book in &others {
            let mut added = AddedNumbers::new();
            watch.note(cx, &mut added, book, &SettledEntries::new())?;
            for ((_, index), added) in added {
                let number = &mut watch.numbers[index];
                number.without_own = sum(number.without_own, added)?;
            }
        }
        Ok(watch)
    }

    /// Locks the accounts of the watched customers among these books, and reads the numbers of their limits. Books that were
    /// loaded for drafts get the rows that the numbers need. Also reads the open holds of `settling` customers.
    pub(crate) fn lock(
        cx: &mut Cx<'_>,
        books: &mut BTreeMap<ContractRef, ContractBook>,
        periods: &BTreeSet<PeriodKey>,
        settling: &BTreeSet<CustomerId>,
    ) -> UseCaseResult<Self> {
        let watched = books.values().filter(|book| book.contract.is_watched);
        let customers = distinct(watched.map(|book| book.contract.customer_id));
        let held_by = distinct(customers.iter().chain(settling).copied());
        if held_by.is_empty() {
            return Ok(Self::default());
        }
        let unapplied = cx.lock_accounts(&held_by)?;
        cx.watch(&customers)?;
        let limits = if customers.is_empty() { Vec::new() } else { cx.tx.limits_of(cx.organization, &customers)? };
        let open = cx.tx.open_entries(cx.organization, &held_by, cx.now)?;
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
        for mut book in load_open_books(cx.tx, cx.organization, opened, &open, cx.now)? {
            let contract_ref = book.contract.contract_ref;
            for (key, total) in locked.remove(&contract_ref).unwrap_or_default() {
                book.put_usage(key, total);
            }
            books.insert(contract_ref, book);
        }
        Self::read(cx, (limits, open, unapplied), books, WatchedNumbers::Of(periods))
    }

    /// Returns the first open entry of a hold for a usage product that no other event settles.
    pub(crate) fn entry_of(
        &self,
        (customer_id, hold_ref): (CustomerId, &HoldRef),
        usage_product_ref: &UsageProductRef,
        settled: &SettledEntries,
    ) -> Option<&EntryKey> {
        let is_meant = |entry: &&OpenEntry| {
            (entry.place.0, &entry.place.1) == (customer_id, hold_ref)
                && entry.key.usage_product_ref == *usage_product_ref
                && !settled.contains_key(&entry.place)
        };
        self.open.iter().find(is_meant).map(|entry| &entry.place)
    }

    /// Returns how many entries of holds of a customer are open.
    pub(crate) fn open_entries(&self, customer_id: CustomerId) -> usize {
        self.open.iter().filter(|entry| entry.place.0 == customer_id).count()
    }

    /// Returns the customers with limits.
    pub(crate) fn customers(&self) -> impl Iterator<Item = CustomerId> {
        self.customers.iter().copied()
    }

    /// Returns whether a customer has numbers here.
    pub(crate) fn has(&self, customer_id: CustomerId) -> bool {
        self.numbers.iter().any(|number| number.limit.customer_id == customer_id)
    }

    /// Notes what a book adds to the numbers, and what the open holds that are not settled would add.
    pub(crate) fn note(
        &self,
        cx: &Cx<'_>,
        added: &mut AddedNumbers,
        book: &ContractBook,
        settled: &SettledEntries,
    ) -> UseCaseResult<()> {
        let contract_ref = book.contract.contract_ref;
        let is_open = |entry: &&OpenEntry| entry.key.contract_ref == contract_ref && !settled.contains_key(&entry.place);
        let open: Vec<&OpenEntry> = self.open.iter().filter(is_open).collect();
        let with_held = if open.is_empty() { None } else { Some(with_held(book, open, cx.now, &mut cx.ids())?) };
        for (index, number) in self.numbers.iter().enumerate().filter(|(_, number)| number.counts(book)) {
            let value = number.added_by(book)?;
            let held = match &with_held {
                Some(with_held) => exact_add(number.added_by(with_held)?, -value)?,
                None => number.limit.metric.zero(),
            };
            added.insert((contract_ref, index), (value, held));
        }
        Ok(())
    }

    /// Returns the numbers of a customer's limits, with those of the transaction's books.
    pub(crate) fn values(&self, customer_id: CustomerId, added: &AddedNumbers) -> UseCaseResult<Vec<LimitValue>> {
        let of_customer = self.numbers.iter().enumerate().filter(|(_, number)| number.limit.customer_id == customer_id);
        let value = |(index, number): (usize, &WatchedNumber)| {
            let own = added.iter().filter(|((_, of), _)| *of == index).map(|(_, added)| *added);
            let numbers = own.into_iter().try_fold(number.without_own, sum)?;
            Ok(LimitValue::new(number.limit.clone(), (number.window, number.is_present), numbers)?)
        };
        of_customer.map(value).collect()
    }
}

fn sum(a: (Decimal, Decimal), b: (Decimal, Decimal)) -> Result<(Decimal, Decimal), AmountOutOfRange> {
    Ok((exact_add(a.0, b.0)?, exact_add(a.1, b.1)?))
}

/// Returns what is owed in accounts, without the drafts.
fn owed_in(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    accounts: BTreeSet<AccountKey>,
    unapplied: Option<UnappliedSums>,
) -> UseCaseResult<BTreeMap<AccountKey, MoneySum>> {
    let customers = distinct(accounts.iter().map(|account| account.customer_id));
    let mut owed: BTreeMap<AccountKey, MoneySum> =
        accounts.into_iter().map(|key| (key.clone(), MoneySum::zero(key.currency))).collect();
    if customers.is_empty() {
        return Ok(owed);
    }
    let unapplied = match unapplied {
        Some(unapplied) => unapplied,
        None => tx.accounts(organization, Some(&customers))?.into_iter().collect(),
    };
    for (key, unapplied) in unapplied {
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

/// Loads the rows of several contracts' books that the content of their drafts needs, and returns the books. Contracts with an open hold
/// whose usage would not go on a draft are loaded whole.
fn load_open_books(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: Vec<ContractBook>,
    held: &[OpenEntry],
    now: Timestamp,
) -> UseCaseResult<Vec<ContractBook>> {
    if books.is_empty() {
        return Ok(books);
    }
    let contracts: Vec<ContractKey> = books.iter().map(|book| book.contract.key(organization)).collect();
    let mut rows = tx.rows_of_books(&contracts)?;
    let (mut open, mut off_drafts) = (Vec::with_capacity(books.len()), Vec::new());
    for (book, contract) in books.into_iter().zip(contracts) {
        let mut book = book.with_rows(Extent::Open, rows.remove(&contract).unwrap_or_default())?;
        if !has_rows_of_held(&book, held.iter().filter(|entry| entry.key.contract_ref == contract.contract))? {
            off_drafts.push(book.without_rows());
            continue;
        }
        book.set_as_of(now);
        let lacking = |(key, total): (&UsageKey, &UsageTotal)| (!book.total_suffices(key, total)).then(|| key.clone());
        let lacking: BTreeSet<UsageKey> = book.usage().iter().filter_map(lacking).collect();
        book_repository::recount(tx, organization, &mut book, |key, _| lacking.contains(key))?;
        open.push(book);
    }
    open.extend(book_repository::load_books(tx, organization, off_drafts, now)?);
    Ok(open)
}
