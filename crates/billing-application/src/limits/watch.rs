//! The numbers of limits, as a transaction finds them under the lock of the customers' accounts (billing rules 11).
//!
//! No amount of a draft is stored. Everything that the content of a draft follows from changes only in transactions that lock
//! the accounts of the customer. The statements after the lock see what all earlier holders of the lock committed, so decisions
//! about a customer follow one another (docs/architecture.md, "Limits").

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::credit::CreditDraw;
use billing_domain::credit::unit::CreditUnit;
use billing_domain::decimal::{AmountOutOfRange, Decimal, exact_add};
use billing_domain::hold::{EntryKey, OpenEntry};
use billing_domain::ledger::credit::CreditView;
use billing_domain::ledger::limit::{added_to_number, window_at, with_held};
use billing_domain::ledger::{ContractBook, Extent};
use billing_domain::limit::{Limit, LimitCredit, LimitValue, MetricKind};
use billing_domain::money::MoneySum;
use billing_domain::ports::Tx;
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, EventRef, HoldRef, OrganizationId, ProductNo, UsageProductRef};
use billing_domain::usage::{UsageKey, UsageTotal};

use crate::basics::distinct;
use crate::book_repository;
use crate::book_rows::load_open_books;
use crate::carry_out::{Cx, UnappliedSums};
use crate::catalog::KnownEntities;
use crate::credit_books::{draws_of, set_credit_of, share};
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
    /// The customers with credit.
    credited: BTreeMap<CustomerId, CreditedCustomer>,
}

/// The credit of a customer, which all contracts of the customer share.
struct CreditedCustomer {
    view: CreditView,
    /// The books that the transaction does not change.
    others: Vec<ContractBook>,
    entities: KnownEntities,
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

/// What books add to the numbers, which have an index.
#[derive(Clone, Default)]
pub(crate) struct AddedNumbers {
    /// What each book adds to a number: to the value, and to the holds.
    of_books: BTreeMap<(ContractRef, usize), (Decimal, Decimal)>,
    /// The free credit of accounts.
    credit: BTreeMap<AccountKey, FreeCredit>,
}

/// The free credit of an account that covers usage of today.
#[derive(Clone, Copy)]
struct FreeCredit {
    /// Of all grants.
    of_all: LimitCredit,
    /// Of the grants that cover usage of any contract.
    for_any_contract: LimitCredit,
}

impl AddedNumbers {
    /// Returns the free credit of a customer's accounts.
    pub(crate) fn credit_of(&self, customer_id: CustomerId) -> impl Iterator<Item = (&AccountKey, LimitCredit)> {
        self.credit
            .iter()
            .filter(move |(account, _)| account.customer_id == customer_id)
            .map(|(account, free)| (account, free.of_all))
    }
}

/// The contracts whose books changed; `None` for all of them.
pub(crate) type ChangedBooks<'c> = Option<&'c BTreeSet<ContractRef>>;

/// The entries of holds that events of a transaction settle.
pub(crate) type SettledEntries = BTreeMap<EntryKey, EventRef>;

impl Watch {
    /// Reads the numbers of limits, and the unapplied sums of the accounts if they aren't given. The books `own` are added later. They
    /// get the credit of `customers`.
    pub(crate) fn read(
        cx: &mut Cx<'_>,
        customers: &[CustomerId],
        (limits, open, unapplied): (Vec<Limit>, Vec<OpenEntry>, Option<UnappliedSums>),
        own: &mut BTreeMap<ContractRef, ContractBook>,
        wanted: WatchedNumbers<'_>,
    ) -> UseCaseResult<Self> {
        let (organization, now) = (cx.organization, cx.now);
        let owed = owed_in(cx.tx, organization, limits.iter().filter_map(owed_account).collect(), unapplied)?;
        let others = contracts_of(cx, (&limits, &open), &owed, wanted)?;
        let others: Vec<ContractKey> = others.into_iter().filter(|contract| !own.contains_key(&contract.contract)).collect();
        let headers = if others.is_empty() { Vec::new() } else { book_repository::load_headers(cx.tx, organization, &others)? };
        let others = load_open_books(cx.tx, organization, headers, &open, now)?;
        let mut with_rows: Vec<&mut ContractBook> = own.values_mut().filter(|book| book.extent() != Extent::Drafts).collect();
        let (others, views) = set_credit_of(cx.tx, organization, customers, &mut with_rows, others, now)?;
        let mut numbers: Vec<WatchedNumber> = Vec::new();
        for limit in limits {
            if let Some(account) = limit.account() {
                let sum = owed_account(&limit).and_then(|account| owed.get(&account).copied());
                let sum = sum.unwrap_or(MoneySum::zero(account.currency));
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
        let customers = distinct(numbers.iter().map(|number| number.limit.customer_id));
        let mut watch = Self { customers, numbers, open, credited: BTreeMap::new() };
        for (customer_id, view) in views {
            let entities = KnownEntities::read(cx, view.grants.iter().map(|grant| &grant.account.entity_ref))?;
            watch.credited.insert(customer_id, CreditedCustomer { view, others: Vec::new(), entities });
        }
        for book in others {
            if let Some(credited) = watch.credited.get_mut(&book.contract.customer_id) {
                credited.others.push(book);
                continue;
            }
            let mut added = AddedNumbers::default();
            watch.note_book(cx, &mut added, &book, &SettledEntries::new())?;
            for ((_, index), added) in added.of_books {
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
        // A document that is issued takes credit, which the drafts of the customer's other contracts take too.
        let can_issue = books.values().filter(|book| book.contract.is_watched && book.extent() == Extent::Whole);
        let decided: BTreeSet<CustomerId> =
            limits.iter().map(|limit| limit.customer_id).chain(can_issue.map(|book| book.contract.customer_id)).collect();
        let needs_rows = |book: &ContractBook| book.extent() == Extent::Drafts && decided.contains(&book.contract.customer_id);
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
        Self::read(cx, &Vec::from_iter(decided), (limits, open, unapplied), books, WatchedNumbers::Of(periods))
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

    /// Notes what the changed books of a customer add to the numbers. Drafts of all contracts share the customer's credit, so with
    /// credit all books are noted again. Entries of holds in `settled` no longer count.
    pub(crate) fn note(
        &self,
        cx: &Cx<'_>,
        added: &mut AddedNumbers,
        customer_id: CustomerId,
        books: &BTreeMap<ContractRef, ContractBook>,
        (changed, settled): (ChangedBooks<'_>, &SettledEntries),
    ) -> UseCaseResult<()> {
        let of_customer = books.values().filter(|book| book.contract.customer_id == customer_id);
        if let Some(credited) = self.credited.get(&customer_id) {
            return self.note_credited(cx, added, (customer_id, credited), of_customer, settled);
        }
        let is_changed = |book: &&ContractBook| changed.is_none_or(|changed| changed.contains(&book.contract.contract_ref));
        of_customer.filter(is_changed).try_for_each(|book| self.note_book(cx, added, book, settled))
    }

    /// Notes what a book adds to the numbers, and what the open holds that are not settled would add.
    fn note_book(
        &self,
        cx: &Cx<'_>,
        added: &mut AddedNumbers,
        book: &ContractBook,
        settled: &SettledEntries,
    ) -> UseCaseResult<()> {
        let with_held = self.with_held(cx, book, settled)?;
        self.note_values(added, book, with_held.as_ref())
    }

    fn note_values(&self, added: &mut AddedNumbers, book: &ContractBook, with_held: Option<&ContractBook>) -> UseCaseResult<()> {
        for (index, number) in self.numbers.iter().enumerate().filter(|(_, number)| number.counts(book)) {
            let value = number.added_by(book)?;
            let held = match with_held {
                Some(with_held) => exact_add(number.added_by(with_held)?, -value)?,
                None => number.limit.metric.zero(),
            };
            added.of_books.insert((book.contract.contract_ref, index), (value, held));
        }
        Ok(())
    }

    /// Returns a copy of a book in which the open entries of holds are usage, or `None` if there are none.
    fn with_held(&self, cx: &Cx<'_>, book: &ContractBook, settled: &SettledEntries) -> UseCaseResult<Option<ContractBook>> {
        let contract_ref = book.contract.contract_ref;
        let is_open = |entry: &&OpenEntry| entry.key.contract_ref == contract_ref && !settled.contains_key(&entry.place);
        let open: Vec<&OpenEntry> = self.open.iter().filter(is_open).collect();
        if open.is_empty() { Ok(None) } else { Ok(Some(with_held(book, open, cx.now, &mut cx.ids())?)) }
    }

    /// Notes what all books of a customer add to the numbers, and the credit that is free.
    fn note_credited<'b>(
        &self,
        cx: &Cx<'_>,
        added: &mut AddedNumbers,
        (customer_id, credited): (CustomerId, &'b CreditedCustomer),
        own: impl Iterator<Item = &'b ContractBook>,
        settled: &SettledEntries,
    ) -> UseCaseResult<()> {
        let mut books: Vec<ContractBook> = own.chain(&credited.others).cloned().collect();
        // After a decision, its book has what it drew.
        let view = books.iter().find_map(ContractBook::credit).unwrap_or(&credited.view).clone();
        let view = share(view, books.iter_mut().collect())?;
        let draws = draws_of(&view)?;
        let is_open = |entry: &OpenEntry| entry.place.0 == customer_id && !settled.contains_key(&entry.place);
        let held = if self.open.iter().any(is_open) { Some(self.all_with_held(cx, &view, &books, settled)?) } else { None };
        for (position, book) in books.iter().enumerate() {
            self.note_values(added, book, held.as_ref().map(|(held, ..)| &held[position]))?;
        }
        let of_limits = self.numbers.iter().filter(|number| number.limit.customer_id == customer_id);
        let accounts = view.grants.iter().map(|grant| grant.account.clone());
        let accounts: BTreeSet<AccountKey> = accounts.chain(of_limits.filter_map(|number| number.limit.account())).collect();
        for account in accounts {
            let today = credited.today(&account, cx.now);
            let credit = |is_for_any_contract| {
                let free = view.free_on(&account, today, &draws, is_for_any_contract)?.to_decimal();
                let unheld = match &held {
                    Some((_, view, draws)) => view.free_on(&account, today, draws, is_for_any_contract)?.to_decimal(),
                    None => free,
                };
                UseCaseResult::Ok(LimitCredit { free, held: exact_add(free, -unheld)? })
            };
            let free = FreeCredit { of_all: credit(false)?, for_any_contract: credit(true)? };
            added.credit.insert(account, free);
        }
        Ok(())
    }

    /// Returns copies of all books of a customer in which the open entries of holds are usage, with the credit and what drafts take of
    /// it then. An entry can issue a document, so each book takes over what the ones before it drew.
    fn all_with_held(
        &self,
        cx: &Cx<'_>,
        view: &CreditView,
        books: &[ContractBook],
        settled: &SettledEntries,
    ) -> UseCaseResult<(Vec<ContractBook>, CreditView, Vec<CreditDraw>)> {
        let mut held: Vec<ContractBook> = Vec::with_capacity(books.len());
        for book in books {
            let mut next = book.clone();
            if let Some(before) = held.last() {
                next.take_over_credit(before)?;
            }
            held.push(self.with_held(cx, &next, settled)?.unwrap_or(next));
        }
        let view = held.last().and_then(ContractBook::credit).unwrap_or(view).clone();
        let view = share(view, held.iter_mut().collect())?;
        let draws = draws_of(&view)?;
        Ok((held, view, draws))
    }

    /// Returns the numbers of a customer's limits, with those of the transaction's books.
    pub(crate) fn values(&self, customer_id: CustomerId, added: &AddedNumbers) -> UseCaseResult<Vec<LimitValue>> {
        let of_customer = self.numbers.iter().enumerate().filter(|(_, number)| number.limit.customer_id == customer_id);
        let value = |(index, number): (usize, &WatchedNumber)| {
            let own = added.of_books.iter().filter(|((_, of), _)| *of == index).map(|(_, added)| *added);
            let mut numbers = own.into_iter().try_fold(number.without_own, sum)?;
            let credit = number.limit.account().and_then(|account| added.credit.get(&account));
            if let (Some(credit), MetricKind::Prepaid) = (credit, number.limit.metric.kind()) {
                numbers = (credit.of_all.free, -credit.of_all.held);
            }
            let value = LimitValue::new(number.limit.clone(), (number.window, number.is_present), numbers)?;
            Ok(match (credit, number.limit.metric.kind()) {
                (Some(credit), MetricKind::Owed) => value.with_credit(credit.for_any_contract)?,
                _ => value,
            })
        };
        of_customer.map(value).collect()
    }

    /// Returns the unit of credit of an account's entity, if it has one and the customer has credit.
    pub(super) fn credit_unit(&self, account: &AccountKey) -> Option<CreditUnit> {
        self.credited.get(&account.customer_id)?.entities.credit_unit(&account.entity_ref, account.currency)
    }
}

impl CreditedCustomer {
    fn today(&self, account: &AccountKey, now: Timestamp) -> Date {
        self.entities.today(&account.entity_ref, now)
    }
}

/// Returns the account whose amount owed a limit counts.
fn owed_account(limit: &Limit) -> Option<AccountKey> {
    limit.account().filter(|_| limit.metric.kind() == MetricKind::Owed)
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
    // What is due for credit is no usage: nothing of it is usable until it is paid.
    for (key, amount) in tx.due_of_sales(organization, &customers)? {
        if let Some(sum) = owed.get_mut(&key) {
            *sum = sum.checked_sub(amount)?;
        }
    }
    Ok(owed)
}

/// Returns the contracts whose books the numbers need.
fn contracts_of(
    cx: &mut Cx<'_>,
    (limits, open): (&[Limit], &[OpenEntry]),
    owed: &BTreeMap<AccountKey, MoneySum>,
    wanted: WatchedNumbers<'_>,
) -> UseCaseResult<BTreeSet<ContractKey>> {
    let organization = cx.organization;
    let mut found: BTreeSet<ContractKey> = match wanted {
        WatchedNumbers::Of(_) => BTreeSet::new(),
        WatchedNumbers::Now => limits.iter().filter_map(|limit| contract_of(organization, limit)).collect(),
    };
    if !owed.is_empty() {
        found.extend(cx.tx.contracts_with_drafts(organization, &owed.keys().cloned().collect())?.into_keys());
    }
    // A hold can open the first draft of a contract.
    let accounts = limits.iter().filter_map(Limit::account);
    let of_accounts: BTreeSet<CustomerId> = accounts.map(|account| account.customer_id).collect();
    let held = open.iter().filter(|entry| of_accounts.contains(&entry.place.0));
    let contract = |entry: &OpenEntry| ContractKey { organization, customer: entry.place.0, contract: entry.key.contract_ref };
    found.extend(held.map(contract));
    Ok(found)
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
