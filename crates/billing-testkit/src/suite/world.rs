//! What the tests of the suite share: transactions, pages, and an organization with one object of each kind.

use billing_domain::access::{ApiKey, TokenClaims};
use billing_domain::catalog::{Pricing, UsageProduct};
use billing_domain::contract::Contract;
use billing_domain::document::linking::{BillingSlot, SlotKind};
use billing_domain::document::{DocumentHead, DraftContent, IssuedDocument, LifecycleStatus, Settlement};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::ledger::BookRows;
use billing_domain::ledger::receivables::AccountEntry;
use billing_domain::money::Money;
use billing_domain::page::{Direction, Page, PageRequest};
use billing_domain::party::{Customer, Entity, Organization};
use billing_domain::ports::{Access, Insertion, Lock, RollBack, Store, StoreError, StoreResult, Tx, Update, transact};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ApiKeyRef, ContractKey, ContractRef, CustomerId, DocumentRef, OrganizationId, ProductNo};
use billing_domain::usage::{EventKeyRecord, NewEventKeyRecord, UsageEvent, UsageKey, UsageTotal};
use chrono::{DateTime, SecondsFormat};
use uuid::Uuid;

use crate::Singly as _;
use crate::{FreshIds, fixtures};

/// Runs work and commits it.
pub(super) fn write<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> T {
    transact::<T, StoreError>(store, Access::Write, |tx| work(tx)).expect("the work is committed")
}

/// Runs read-only work.
pub(super) fn read<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> T {
    transact::<T, StoreError>(store, Access::Read, |tx| work(tx)).expect("the work is read")
}

/// Runs work, rolls it back and returns its result.
pub(super) fn undo<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> T {
    let mut made = None;
    let undone = store.run(Access::Write, &mut |tx| {
        made = Some(work(tx).expect("the work is done"));
        Err(RollBack)
    });
    undone.expect("a roll-back is no error");
    made.expect("the work has run")
}

/// Runs work that may fail. It is committed only on success.
pub(super) fn transact_answer<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> StoreResult<T> {
    transact::<T, StoreError>(store, Access::Write, |tx| work(tx))
}

/// Runs work that is contended on every attempt. None of its changes are stored.
pub(super) fn contended<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) {
    let mut attempts = Vec::new();
    // Some stores retry the work, which doesn't resolve the contention here.
    let outcome = store.run(Access::Write, &mut |tx| {
        attempts.push(matches!(work(tx), Err(StoreError::Contended)));
        Err(RollBack)
    });
    assert!(matches!(outcome, Ok(()) | Err(StoreError::Contended)), "{outcome:?}");
    assert!(!attempts.is_empty() && attempts.iter().all(|contended| *contended), "{attempts:?}");
}

/// Runs work like [`write`] and retries it when contention exceeds the store's own retries.
pub(super) fn write_contended<T>(store: &dyn Store, mut work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> T {
    loop {
        match transact::<T, StoreError>(store, Access::Write, |tx| work(tx)) {
            Err(StoreError::Contended) => std::thread::yield_now(),
            done => return done.expect("the work is committed"),
        }
    }
}

/// Creates the claims of a key's token.
pub(super) fn token_of(organization: OrganizationId, api_key_ref: ApiKeyRef, token_id: Uuid) -> TokenClaims {
    TokenClaims { api_key_ref, organization, token_id, issued_at: later(0), expires_at: later(3600) }
}

/// Returns the key that a token was issued for.
pub(super) fn key_of_token(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    api_key_ref: ApiKeyRef,
    token_id: Uuid,
) -> StoreResult<Option<ApiKey>> {
    Ok(tx.keys_of_tokens(&[token_of(organization, api_key_ref, token_id)])?.pop().flatten())
}

/// Returns the idempotency records of one customer's events.
pub(super) fn kept_events(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_id: CustomerId,
    keys: &[IdempotencyKey],
) -> StoreResult<Vec<EventKeyRecord>> {
    let keys: Vec<(CustomerId, IdempotencyKey)> = keys.iter().map(|key| (customer_id, key.clone())).collect();
    Ok(tx.event_key_records(organization, &keys)?.into_iter().map(|(_, kept)| kept).collect())
}

/// Saves idempotency records of one customer's events.
pub(super) fn keep_events(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_id: CustomerId,
    taken: &[NewEventKeyRecord],
) -> StoreResult<()> {
    let taken: Vec<(CustomerId, NewEventKeyRecord)> = taken.iter().map(|taken| (customer_id, taken.clone())).collect();
    tx.save_event_keys(organization, &taken)
}

pub(super) fn done(insertion: StoreResult<Insertion>) -> StoreResult<()> {
    assert_eq!(insertion?, Insertion::Done);
    Ok(())
}

pub(super) fn updated(update: StoreResult<Update>) -> StoreResult<()> {
    assert_eq!(update?, Update::Done);
    Ok(())
}

pub(super) fn page(size: u32, number: u32) -> PageRequest {
    PageRequest::new(size, number).expect("a page")
}

/// Requests all items of a small list.
pub(super) fn all() -> PageRequest {
    page(1000, 0)
}

/// Checks that the reverse of a list has the same elements in reverse order on every page.
pub(super) fn reads_backward<T: std::fmt::Debug + PartialEq>(list: impl Fn(PageRequest) -> Page<T>) {
    let forward = list(all());
    assert!(forward.items.len() > 2, "{forward:?}");
    let parts = (0..).map(|number| list(page(2, number).in_direction(Direction::Backward)));
    let parts = parts.inspect(|part| assert_eq!(part.total, forward.total));
    let mut backward: Vec<T> = parts.take_while(|part| !part.items.is_empty()).flat_map(|part| part.items).collect();
    backward.reverse();
    assert_eq!(backward, forward.items);
}

/// Returns a month of 2026.
pub(super) fn month(n: u32) -> billing_domain::calendar::Period {
    let start = fixtures::date(&format!("2026-{n:02}-01"));
    let end = billing_domain::calendar::plus_months(start, 1);
    billing_domain::calendar::Period::new(start, end).expect("a month")
}

/// Returns an instant some seconds after [`fixtures::CREATED_AT`].
pub(super) fn later(seconds: i64) -> billing_domain::calendar::Timestamp {
    fixtures::at(fixtures::CREATED_AT).plus_seconds(seconds)
}

/// Returns an old instant with a unique microsecond, for data that is identified by its time only.
pub(super) fn long_ago() -> billing_domain::calendar::Timestamp {
    let (seconds, nanos) = uuid::Uuid::now_v7().get_timestamp().expect("version 7 has a time").to_unix();
    let seconds = i64::try_from(seconds).expect("a time of our era") - 100 * 365 * 24 * 3600;
    let text = DateTime::from_timestamp(seconds, nanos).expect("an instant").to_rfc3339_opts(SecondsFormat::Micros, true);
    fixtures::at(&text)
}

/// An organization with one object of each kind. References are the same in every world.
pub(super) struct World {
    pub(super) organization: Organization,
    pub(super) org: OrganizationId,
    pub(super) entity: Entity,
    pub(super) customer: Customer,
    pub(super) product: UsageProduct,
    pub(super) pricing: Pricing,
    pub(super) contract: Contract,
}

/// Stores a new [`World`].
pub(super) fn world(store: &dyn Store) -> World {
    let organization = fixtures::organization(&FreshIds);
    let customer = fixtures::customer(&FreshIds, "acme");
    let pricing = fixtures::pricing("api", vec![fixtures::fixed("base", "10"), fixtures::per_unit("calls", "0.01")]);
    let contract = fixtures::contract(&FreshIds, &customer, vec![fixtures::agreed(&pricing, "2026-01-01", "2026-12-31")]);
    let world = World {
        org: organization.id,
        organization,
        entity: fixtures::entity("main"),
        customer,
        product: fixtures::usage_product("calls"),
        pricing,
        contract,
    };
    write(store, |tx| {
        done(tx.insert_organization(&world.organization))?;
        done(tx.insert_entity(world.org, &world.entity))?;
        done(tx.insert_customer(world.org, &world.customer))?;
        done(tx.insert_usage_product(world.org, &world.product))?;
        done(tx.insert_pricing(world.org, &world.pricing))?;
        tx.next_contract_number(world.org)?;
        tx.insert_contract(world.org, &world.contract, None)
    });
    world
}

/// Replaces the settlement of a document, as a decision on its account does. The amount due follows from the total.
pub(super) fn settle(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    head: &DocumentHead,
    total: Money,
    status: LifecycleStatus,
    settlement: Settlement,
) -> StoreResult<()> {
    settle_at(tx, organization, head, total, status, settlement, later(1))
}

/// Replaces the settlement of a document at an instant.
pub(super) fn settle_at(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    head: &DocumentHead,
    total: Money,
    status: LifecycleStatus,
    settlement: Settlement,
    at: billing_domain::calendar::Timestamp,
) -> StoreResult<()> {
    let key = AccountKey { customer_id: head.customer_id, entity_ref: head.entity_ref.clone(), currency: head.currency };
    let unapplied = tx.hold_account(organization, &key)?;
    let owed = settlement.owed(head.kind, status, total).expect("small amounts");
    let settled = AccountEntry::Settled { document_ref: head.document_ref, status, settlement, owed, before: owed };
    tx.put_account(organization, &key, &[settled], unapplied, at)
}

/// Locks running totals of one customer.
pub(super) fn lock_usage(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_id: CustomerId,
    keys: &[UsageKey],
) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
    let keys: Vec<(CustomerId, UsageKey)> = keys.iter().map(|key| (customer_id, key.clone())).collect();
    tx.lock_usage(organization, &keys)
}

/// Returns the existing running totals of one customer.
pub(super) fn usage(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_id: CustomerId,
    keys: &[UsageKey],
) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
    let contracts: std::collections::BTreeSet<ContractRef> = keys.iter().map(|key| key.contract_ref).collect();
    let mut found = Vec::new();
    for contract_ref in contracts {
        let kept = tx.book_rows(ContractKey { organization, customer: customer_id, contract: contract_ref })?.usage;
        found.extend(kept.iter().filter(|(key, _)| keys.contains(key)).map(|(key, total)| (key.clone(), *total)));
    }
    Ok(found)
}

/// Replaces running totals of one customer.
pub(super) fn put_usage(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_id: CustomerId,
    totals: &[(UsageKey, UsageTotal)],
) -> StoreResult<()> {
    let totals: Vec<_> = totals.iter().map(|(key, total)| (customer_id, key.clone(), *total)).collect();
    tx.put_usage(organization, &totals)
}

impl World {
    /// Creates another contract of the same customer without storing it.
    pub(super) fn another_contract(&self, number: u64) -> Contract {
        let terms = fixtures::agreed(&self.pricing, "2026-01-01", "2026-12-31");
        Contract { number, ..fixtures::contract(&FreshIds, &self.customer, vec![terms]) }
    }

    /// Creates the head of a draft with arbitrary numbers without storing it.
    pub(super) fn head(&self, month_of_2026: u32) -> DocumentHead {
        fixtures::document_head(&FreshIds, &self.contract, &self.entity, month(month_of_2026))
    }

    /// Stores a draft as use cases do. The contract is locked, and the numbers are reserved in the same transaction.
    pub(super) fn open(&self, store: &dyn Store, head: DocumentHead) -> DocumentHead {
        write(store, |tx| self.open_in(tx, head.clone()))
    }

    pub(super) fn open_in(&self, tx: &mut dyn Tx, head: DocumentHead) -> StoreResult<DocumentHead> {
        tx.lock_contract(head.contract_key(self.org), Lock::Exclusive)?;
        self.open_held(tx, head)
    }

    /// Stores a draft like [`open_in`](Self::open_in). The contract is already locked.
    pub(super) fn open_held(&self, tx: &mut dyn Tx, mut head: DocumentHead) -> StoreResult<DocumentHead> {
        head.number.sequence = tx.take_document_numbers(self.org, &head.entity_ref, head.kind, 1)?;
        head.number_in_contract = tx.take_numbers_in_contract(head.contract_key(self.org), 1)?;
        // The adjustment of a child names its document family itself.
        tx.open_document(self.org, &head, head.parent.unwrap_or(head.document_ref))?;
        Ok(head)
    }

    /// Locks the contract to change its documents.
    pub(super) fn hold(&self, tx: &mut dyn Tx) -> StoreResult<()> {
        tx.lock_contract(self.contract.key(self.org), Lock::Exclusive).map(drop)
    }

    /// Returns the rows of the contract's book.
    pub(super) fn rows(&self, tx: &mut dyn Tx) -> StoreResult<BookRows> {
        tx.book_rows(self.contract.key(self.org))
    }

    /// Stores events and the running totals of their periods.
    pub(super) fn insert_events(&self, tx: &mut dyn Tx, events: &[UsageEvent]) -> StoreResult<()> {
        tx.insert_events(self.org, events)?;
        let keys: Vec<UsageKey> = events.iter().map(UsageEvent::period_key).collect();
        lock_usage(tx, self.org, self.customer.id, &keys).map(drop)
    }

    /// Returns whether a draft or void document has an event that isn't deleted.
    pub(super) fn has_events(&self, store: &dyn Store, head: &DocumentHead) -> bool {
        read(store, |tx| self.rows(tx)).with_events.contains(&head.document_ref)
    }

    /// Returns the references of the documents in force in a slot.
    pub(super) fn in_place(&self, store: &dyn Store, product_no: u16, start: &str, kind: SlotKind) -> Vec<DocumentRef> {
        let slot = BillingSlot { product_no: ProductNo(product_no), period_start: fixtures::date(start), kind };
        let found = read(store, |tx| tx.documents_in_places(&[(self.contract.key(self.org), slot)]));
        found.into_iter().map(|document| document.head.document_ref).collect()
    }

    /// Creates the content of a draft with one line.
    pub(super) fn draft_content(&self, head: &DocumentHead) -> DraftContent {
        fixtures::draft_content(head, &self.contract, &self.customer, &self.entity, fixtures::cents(1))
    }

    /// Creates the issued form of a draft with one line.
    pub(super) fn frozen(&self, head: &DocumentHead, amount: Money) -> IssuedDocument {
        fixtures::frozen(head, &self.contract, &self.customer, &self.entity, amount)
    }

    /// Opens a draft and issues it.
    pub(super) fn issue(&self, store: &dyn Store, head: DocumentHead, amount: Money) -> DocumentHead {
        let head = self.open(store, head);
        let issued = self.frozen(&head, amount);
        assert!(write(store, |tx| {
            tx.lock_contract(head.contract_key(self.org), Lock::Exclusive)?;
            tx.issue_document(head.key(self.org), &issued)
        }));
        head
    }

    /// Voids a draft.
    pub(super) fn void(&self, store: &dyn Store, head: &DocumentHead) {
        assert!(write(store, |tx| {
            tx.lock_contract(head.contract_key(self.org), Lock::Exclusive)?;
            tx.void_draft(head.key(self.org), &self.draft_content(head), later(60))
        }));
    }
}

pub(super) fn refs_of(documents: &[billing_domain::document::Document]) -> Vec<DocumentRef> {
    documents.iter().map(|document| document.head.document_ref).collect()
}
