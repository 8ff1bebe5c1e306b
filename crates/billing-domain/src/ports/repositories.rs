//! The store: small ports over one transaction.
//!
//! Duties that hold for all of them:
//! - a read sees everything committed before its transaction began and everything its own transaction wrote;
//! - what belongs to another organization is not there;
//! - lists have a total order that doesn't change while rows are added: by creation, then by reference;
//! - an insert that meets an existing row changes nothing and says so; it doesn't end the transaction.

use std::time::Duration;

use thiserror::Error;

use crate::access::{Actor, AdminSession, Administrator, ApiKey, SecretDigest, SecretPurpose, SigningSecret};
use crate::calendar::{Period, Timestamp};
use crate::catalog::{Pricing, UsageProduct};
use crate::contract::Contract;
use crate::document::correction::LedgerLine;
use crate::document::linking::Slot;
use crate::document::{Document, DocumentHead, DocumentKind, DocumentState, IssuedDocument, Payment, Settlement};
use crate::idempotency::{IdempotencyKey, KeptRequest, RequestKey};
use crate::page::{Page, PageRequest};
use crate::party::{Customer, Entity, Organization};
use crate::ports::UsageReading;
use crate::refs::{
    AdminRef, ApiKeyRef, ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, EventRef, OrganizationId, PricingRef,
    ProductNo, UsageProductRef,
};
use crate::text::Line;
use crate::usage::{KeptEvent, UsageEvent, UsageKey, UsageTotal};

use super::UsageFormats;
use chrono::NaiveDate;
use uuid::Uuid;

/// What can go wrong in a store.
#[derive(Debug, Error)]
pub enum StoreError {
    /// It can't be reached, has no room, or took too long.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Others were faster, again and again.
    #[error("the store is contended")]
    Contended,
    /// A row says something that can't be.
    #[error("the store holds a row that can't be: {0}")]
    Corrupt(String),
}

/// What a port answers.
pub type StoreResult<T> = Result<T, StoreError>;

/// Whether an insert found its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Insertion {
    /// The row is there now.
    Done,
    /// Another row has this field's value; nothing was changed.
    Taken(&'static str),
}

/// Whether an update found its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Update {
    /// The row is changed.
    Done,
    /// There is no such row.
    Unknown,
    /// Another row has this field's value; nothing was changed.
    Taken(&'static str),
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads alone: one consistent view, waits for no writer.
    Read,
    /// Reads and writes.
    Write,
}

/// How strongly a row is held until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Others may read and hold it likewise, none may change it.
    Shared,
    /// Nobody else may hold it.
    Exclusive,
}

/// The work wants its transaction undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollBack;

/// Runs transactions.
pub trait Store: Send + Sync {
    /// Runs work in one transaction and commits it, or rolls it back when the work says so; both are `Ok`.
    /// After `Ok` from a committed [`Access::Write`], the work is durable and the next transaction sees it.
    /// The work may run again, from its beginning, after a conflict with others; the number of times is bounded.
    ///
    /// # Errors
    /// Any [`StoreError`]; nothing of the work is stored then.
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>;

    /// Whether the store can be reached and keeps what it is given.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] with the reason.
    fn ready(&self) -> StoreResult<()>;
}

/// Runs a use case's work in one transaction: an `Err` rolls it back.
///
/// # Errors
/// The work's own, or the store's.
pub fn transact<T, E: From<StoreError>>(
    store: &dyn Store,
    access: Access,
    mut work: impl FnMut(&mut dyn Tx) -> Result<T, E>,
) -> Result<T, E> {
    let mut outcome = None;
    store.run(access, &mut |tx| {
        let result = work(tx);
        let decision = if result.is_ok() { Ok(()) } else { Err(RollBack) };
        outcome = Some(result);
        decision
    })?;
    outcome.unwrap_or_else(|| Err(StoreError::Contended.into()))
}

/// Runs a part of a transaction's work that can be undone alone: an `Err` undoes what it has written.
///
/// # Errors
/// The part's own, or the store's.
pub fn attempt<T, E: From<StoreError>>(tx: &mut dyn Tx, mut part: impl FnMut(&mut dyn Tx) -> Result<T, E>) -> Result<T, E> {
    let mut outcome = None;
    tx.attempt(&mut |tx| {
        let result = part(tx);
        let decision = if result.is_ok() { Ok(()) } else { Err(RollBack) };
        outcome = Some(result);
        decision
    })?;
    outcome.unwrap_or_else(|| Err(StoreError::Contended.into()))
}

/// Parts of a transaction.
pub trait Savepoints {
    /// Runs a part of the work, once; when it says so, everything it has written is undone, and nothing else. Parts may
    /// have parts. What an undone part held may be let go. Committing the part doesn't make it durable: that is the
    /// transaction's business.
    ///
    /// # Errors
    /// Any [`StoreError`]; the transaction can't be committed then.
    fn attempt(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()>;
}

/// One transaction's view of everything.
pub trait Tx:
    Send
    + Savepoints
    + Organizations
    + Administrators
    + ApiKeys
    + Sessions
    + Tokens
    + SigningSecrets
    + Entities
    + Customers
    + UsageProducts
    + UsageFormats
    + Pricings
    + Contracts
    + UsageEvents
    + EventKeys
    + UsageReading
    + Documents
    + NumberSeries
    + ReplayLog
    + Inspection
{
}

impl<T> Tx for T where
    T: Send
        + Savepoints
        + Organizations
        + Administrators
        + ApiKeys
        + Sessions
        + Tokens
        + SigningSecrets
        + Entities
        + Customers
        + UsageProducts
        + UsageFormats
        + Pricings
        + Contracts
        + UsageEvents
        + EventKeys
        + UsageReading
        + Documents
        + NumberSeries
        + ReplayLog
        + Inspection
{
}

/// Organizations.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Organizations {
    /// Stores a new one. `Taken("name")` when the name is in use.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_organization(&mut self, organization: &Organization) -> StoreResult<Insertion>;
    /// By identity.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn organization(&mut self, id: OrganizationId) -> StoreResult<Option<Organization>>;
    /// By name.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn organization_by_name(&mut self, name: &Line) -> StoreResult<Option<Organization>>;
    /// How many there are.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn count_organizations(&mut self) -> StoreResult<u64>;
    /// Names the entity that bills where nothing else does.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn set_default_entity(&mut self, id: OrganizationId, entity_ref: &EntityRef) -> StoreResult<()>;
}

/// Administrators.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Administrators {
    /// Stores a new one. `Taken("email")` when the e-mail is in use, in any organization.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_administrator(&mut self, administrator: &Administrator) -> StoreResult<Insertion>;
    /// By e-mail in lower case.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn administrator_by_email(&mut self, email: &str) -> StoreResult<Option<Administrator>>;
    /// By reference.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn administrator(&mut self, admin_ref: AdminRef) -> StoreResult<Option<Administrator>>;
}

/// API keys.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait ApiKeys {
    /// Stores a new one. `Taken("api_key")` when the log-in name is in use.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_api_key(&mut self, key: &ApiKey) -> StoreResult<Insertion>;
    /// By log-in name, whatever the organization: who asks hasn't shown who they are.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn api_key_by_name(&mut self, api_key: &str) -> StoreResult<Option<ApiKey>>;
    /// By reference, within an organization.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>>;
    /// An organization's keys by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn api_keys(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<ApiKey>>;
    /// Notes that a token was issued for a key.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn touch_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef, at: Timestamp) -> StoreResult<()>;
    /// Removes a key; `false` when there is none.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn delete_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<bool>;
}

/// Administrators' sessions.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Sessions {
    /// Stores a new one.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_session(&mut self, session: &AdminSession) -> StoreResult<()>;
    /// By digest, live or not.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn session(&mut self, digest: SecretDigest) -> StoreResult<Option<AdminSession>>;
    /// Notes that a request used it.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn touch_session(&mut self, digest: SecretDigest, at: Timestamp) -> StoreResult<()>;
    /// Ends it; ending what isn't there is fine.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn delete_session(&mut self, digest: SecretDigest) -> StoreResult<()>;
    /// Removes those that began before an instant: none of them can be live any more.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn purge_sessions(&mut self, began_before: Timestamp) -> StoreResult<()>;
}

/// Bearer tokens ended before their time.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Tokens {
    /// Ends a token; ending it twice is fine. The entry may go once the token has expired.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn revoke_token(&mut self, token_id: Uuid, expires_at: Timestamp) -> StoreResult<()>;
    /// Whether a token was ended.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn is_token_revoked(&mut self, token_id: Uuid) -> StoreResult<bool>;
    /// Removes entries of tokens that expired before an instant.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn purge_revoked_tokens(&mut self, expired_before: Timestamp) -> StoreResult<()>;
}

/// Secrets that all replicas share.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait SigningSecrets {
    /// Stores a secret. `Taken("kid")` when its name is in use.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_signing_secret(&mut self, secret: &SigningSecret) -> StoreResult<Insertion>;
    /// Those of a purpose, newest first.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn signing_secrets(&mut self, purpose: SecretPurpose) -> StoreResult<Vec<SigningSecret>>;
}

/// Supplier entities.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Entities {
    /// Stores a new one. `Taken("entity_ref")` or `Taken("number_prefix")`, unique in the organization.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Insertion>;
    /// Replaces its profile.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn update_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Update>;
    /// Those of these references that exist.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn entities_by_refs(&mut self, organization: OrganizationId, refs: &[EntityRef]) -> StoreResult<Vec<Entity>>;
    /// All, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn entities(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Entity>>;
}

/// Customers.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Customers {
    /// Stores a new one. `Taken("customer_ref")`, unique in the organization.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Insertion>;
    /// Replaces its profile.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn update_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Update>;
    /// Those of these references that exist.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn customers_by_refs(&mut self, organization: OrganizationId, refs: &[CustomerRef]) -> StoreResult<Vec<Customer>>;
    /// Those of these identities that exist.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn customers_by_ids(&mut self, organization: OrganizationId, ids: &[CustomerId]) -> StoreResult<Vec<Customer>>;
    /// At most two with a name: enough to know whether the name says who is meant.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn customers_by_name(&mut self, organization: OrganizationId, name: &Line) -> StoreResult<Vec<Customer>>;
    /// All, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn customers(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Customer>>;
}

/// Usage products.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageProducts {
    /// Stores a new one. `Taken("usage_product_ref")`, unique in the organization.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Insertion>;
    /// Replaces its profile.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn update_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Update>;
    /// Those of these references that exist.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn usage_products_by_refs(
        &mut self,
        organization: OrganizationId,
        refs: &[UsageProductRef],
    ) -> StoreResult<Vec<UsageProduct>>;
    /// At most two with a name: enough to know whether the name says what is meant.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn usage_products_by_name(&mut self, organization: OrganizationId, name: &Line) -> StoreResult<Vec<UsageProduct>>;
    /// All, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn usage_products(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<UsageProduct>>;
}

/// Pricings.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Pricings {
    /// Stores a new one. `Taken("product_pricing_ref")`, unique in the organization.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Insertion>;
    /// Replaces its content.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn update_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Update>;
    /// Those of these references that exist.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn pricings_by_refs(&mut self, organization: OrganizationId, refs: &[PricingRef]) -> StoreResult<Vec<Pricing>>;
    /// All, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn pricings(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Pricing>>;
}

/// A contract with something to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueContract {
    /// Whose it is.
    pub organization: OrganizationId,
    /// Its customer.
    pub customer_id: CustomerId,
    /// The contract.
    pub contract_ref: ContractRef,
    /// Since when.
    pub due_at: Timestamp,
}

/// Contracts, with all their versions.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Contracts {
    /// Stores a new one with its first version; `next_due_at` is when it first has something to issue.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_contract(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        next_due_at: Option<Timestamp>,
    ) -> StoreResult<()>;
    /// By reference.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn contract(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<Contract>>;
    /// A customer's, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn contracts_of_customer(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        page: PageRequest,
    ) -> StoreResult<Page<Contract>>;
    /// A customer's contracts in which any version of a product meters a usage product, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn contracts_metering(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        usage_product_ref: &UsageProductRef,
    ) -> StoreResult<Vec<Contract>>;
    /// Holds a contract until the transaction ends, and answers its newest version's number.
    /// Contracts are held before documents, documents before totals and number series.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn lock_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        lock: Lock,
    ) -> StoreResult<Option<u32>>;
    /// Contracts with something to issue at an instant, longest due first, then by reference: at most `limit`,
    /// after the one a page ended with, of one organization or of all.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn contracts_due(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        after: Option<DueContract>,
        limit: u32,
    ) -> StoreResult<Vec<DueContract>>;
    /// Stores a contract's next version: what it adds to the one before. The contract must be held
    /// [`Lock::Exclusive`].
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn append_contract_version(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        at: Timestamp,
        by: Actor,
    ) -> StoreResult<()>;
    /// Brings the instant at which a contract next has something to issue forward; an earlier one stays.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn bring_due_forward(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        at: Timestamp,
    ) -> StoreResult<()>;
    /// Sets when a contract next has something to issue; `None` when it never has again.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn set_next_due(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        at: Option<Timestamp>,
    ) -> StoreResult<()>;
}

/// Usage events and their running totals.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageEvents {
    /// Stores new events, all or none.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_events(&mut self, organization: OrganizationId, events: &[UsageEvent]) -> StoreResult<()>;
    /// By reference, deleted ones too.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn event(&mut self, organization: OrganizationId, event_ref: EventRef) -> StoreResult<Option<UsageEvent>>;
    /// Replaces an event by its next revision and keeps the superseded one, and whether the document that one stood on
    /// was issued already.
    ///
    /// # Errors
    /// Any [`StoreError`]; [`StoreError::Contended`] when the stored revision isn't the superseded one.
    fn revise_event(&mut self, organization: OrganizationId, superseded: &UsageEvent, revised: &UsageEvent) -> StoreResult<()>;
    /// The superseded revisions of events, by event, oldest first.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn superseded_revisions(&mut self, organization: OrganizationId, events: &[EventRef]) -> StoreResult<Vec<UsageEvent>>;
    /// Puts all events of a document on another; their revisions stay as they are.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn move_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
    ) -> StoreResult<()>;
    /// Puts those events of a document on another that count in one service period of a product.
    ///
    /// # Errors
    /// Any [`StoreError`].
    #[allow(clippy::too_many_arguments, reason = "the parts of one key")]
    fn move_events_of_period(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        from: DocumentRef,
        to: DocumentRef,
        product_no: ProductNo,
        period_start: NaiveDate,
    ) -> StoreResult<()>;
    /// A total counted again from the events that aren't deleted, one left out where asked, whatever their number,
    /// in bounded memory.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn recount_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        key: &UsageKey,
        except: Option<EventRef>,
    ) -> StoreResult<UsageTotal>;
    /// A product's running totals with at least one event, of service periods that start on a day or later, by
    /// their keys.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn usage_since(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        from: NaiveDate,
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// Whether any event that isn't deleted stands on a document.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn has_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
    ) -> StoreResult<bool>;
    /// Holds running totals until the transaction ends, in the order of their keys, and answers them in that
    /// order; a total that isn't there is made, as zero.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn lock_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[UsageKey],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// Replaces running totals held by [`lock_usage`](Self::lock_usage).
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn put_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        totals: &[(UsageKey, UsageTotal)],
    ) -> StoreResult<()>;
    /// Reads running totals; those that aren't there are left out.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[UsageKey],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
}

/// The keys that events were sent with, kept for ever: longer than the events count.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait EventKeys {
    /// The events that were taken under any of a customer's keys, deleted ones too, by their keys.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn kept_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        keys: &[IdempotencyKey],
    ) -> StoreResult<Vec<KeptEvent>>;
    /// Keeps the keys of events of a customer that are stored, all or none.
    ///
    /// # Errors
    /// Any [`StoreError`]; [`StoreError::Contended`] when one of the keys is there already: a twin was faster, and
    /// the next attempt sees it.
    fn keep_events(&mut self, organization: OrganizationId, customer_id: CustomerId, kept: &[KeptEvent]) -> StoreResult<()>;
}

/// What a list of documents is narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// This customer's.
    pub customer_id: Option<CustomerId>,
    /// This contract's.
    pub contract_ref: Option<ContractRef>,
    /// This entity's.
    pub entity_ref: Option<EntityRef>,
    /// Of this kind.
    pub kind: Option<DocumentKind>,
    /// In this state.
    pub state: Option<DocumentState>,
    /// Whose period starts on this day or later.
    pub from: Option<NaiveDate>,
    /// Whose period starts on this day or earlier.
    pub to: Option<NaiveDate>,
}

/// A ledger line and the document it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentedLine {
    /// The document.
    pub document_ref: DocumentRef,
    /// What it does: the sign its amounts count with.
    pub kind: DocumentKind,
    /// Whether it is a period's own document, rather than a child or an adjustment.
    pub is_regular: bool,
    /// The line.
    pub line: LedgerLine,
}

/// Documents.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Documents {
    /// Stores a draft; its contract must be held [`Lock::Exclusive`].
    ///
    /// # Errors
    /// Any [`StoreError`]; [`StoreError::Corrupt`] when a regular document that isn't void has the same
    /// product, period and slot.
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<()>;
    /// By reference.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>>;
    /// Those of these references that exist.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn documents_by_refs(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<Document>>;
    /// All that pass a filter, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Document>>;
    /// The document in a slot of a product's period that isn't void, by the period's first day. With a lock it
    /// is held until the transaction ends.
    ///
    /// # Errors
    /// Any [`StoreError`].
    #[allow(clippy::too_many_arguments, reason = "the parts of one key")]
    fn regular_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        period_start: NaiveDate,
        slot: Slot,
        lock: Option<Lock>,
    ) -> StoreResult<Option<Document>>;
    /// A contract's documents whose own period has a day in common with a period, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn documents_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        within: Period,
    ) -> StoreResult<Vec<Document>>;
    /// A contract's drafts, by creation.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn drafts_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<Vec<Document>>;
    /// Freezes a draft that is held [`Lock::Exclusive`]; `false` when it is a draft no more. What it says is
    /// kept to the byte, with a hash chained to the one issued before it in its series.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn issue_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        issued: &IssuedDocument,
    ) -> StoreResult<bool>;
    /// Replaces what an amendment of its contract changes of a draft: slot, period, products and their rates, net terms
    /// and payment details; `false` when it is a draft no more.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool>;
    /// Puts an issued document out of force; `false` when it isn't issued. What it says stays.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn void_issued(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        at: Timestamp,
    ) -> StoreResult<bool>;
    /// The void document that was issued last in a slot of a product's period, by its number in the contract, because
    /// clocks go back: what a new one replaces.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn last_void(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        product_no: ProductNo,
        period_start: NaiveDate,
        slot: Slot,
    ) -> StoreResult<Option<DocumentRef>>;
    /// The open adjustment of a kind that names a document as its parent; the oldest, when there are several.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn open_adjustment(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
        kind: DocumentKind,
    ) -> StoreResult<Option<Document>>;
    /// The documents that name one as parent, by creation; void ones too.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn documents_of_parent(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parent: DocumentRef,
    ) -> StoreResult<Vec<Document>>;
    /// The ledger lines of a document: those of a draft adjustment, or those it was issued with.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
    ) -> StoreResult<Vec<LedgerLine>>;
    /// Replaces the ledger lines of a draft adjustment.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn put_ledger_lines(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        lines: &[LedgerLine],
    ) -> StoreResult<()>;
    /// The ledger lines of service periods on all documents that aren't void, each with its document.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn documented(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        periods: &[(ProductNo, NaiveDate)],
    ) -> StoreResult<Vec<DocumentedLine>>;
    /// Stores a payment of a document.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn insert_payment(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        payment: &Payment,
    ) -> StoreResult<()>;
    /// Replaces what payments and credits say about a document.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn settle_document(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        settlement: &Settlement,
    ) -> StoreResult<()>;
    /// Puts a draft out of force; `false` when it is a draft no more.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn void_draft(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        at: Timestamp,
    ) -> StoreResult<bool>;
}

/// What `verify` looks at: everything there is, told as it is.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Inspection {
    /// Every organization.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn all_organizations(&mut self) -> StoreResult<Vec<OrganizationId>>;
    /// An organization's contracts by reference, after one, at most `limit`.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn contracts_after(
        &mut self,
        organization: OrganizationId,
        after: Option<ContractRef>,
        limit: u32,
    ) -> StoreResult<Vec<Contract>>;
    /// The running totals of a contract, by their keys.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn usage_of_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// The same totals counted again from the events that aren't deleted; only those with an event.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn recount_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// The sum of a document's payments, in minor units.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn sum_of_payments(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
    ) -> StoreResult<i64>;
    /// Every series of document numbers that isn't 1…n, in a sentence each.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn broken_series(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
    /// Every issued document whose content doesn't have its hash, or whose hash isn't chained to the one before,
    /// in a sentence each.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn broken_seals(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
}

/// Sequences without gaps or repeats, under any concurrency, crash or roll-back.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait NumberSeries {
    /// The next number of an entity's documents of a kind, from 1. Rolled back with its transaction.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn next_document_number(
        &mut self,
        organization: OrganizationId,
        entity_ref: &EntityRef,
        kind: DocumentKind,
    ) -> StoreResult<u64>;
    /// The next contract number of an organization, from 1. Rolled back with its transaction.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn next_contract_number(&mut self, organization: OrganizationId) -> StoreResult<u64>;
    /// The next document number within a contract, from 1. The contract must be held [`Lock::Exclusive`].
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn next_number_in_contract(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<u32>;
}

/// Requests that succeeded under a key, and what they were answered.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait ReplayLog {
    /// Holds a request's key until the transaction ends, so that no two transactions hold it at a time, on whatever
    /// server. Waits for the one that does, at most this long; `false` when that was not enough. What was kept under
    /// the key before is seen then.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn hold_key(&mut self, organization: OrganizationId, request: &RequestKey, wait: Duration) -> StoreResult<bool>;
    /// What was kept under a key at this instant or later.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn kept_request(
        &mut self,
        organization: OrganizationId,
        request: &RequestKey,
        since: Timestamp,
    ) -> StoreResult<Option<KeptRequest>>;
    /// Keeps a request under its key, in the place of an older one. The key must be held.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn keep_request(&mut self, organization: OrganizationId, request: &RequestKey, kept: &KeptRequest) -> StoreResult<()>;
    /// Forgets what was kept before an instant, of every organization, the oldest first: about this many, because
    /// those of one instant go together. Answers how many went.
    ///
    /// # Errors
    /// Any [`StoreError`].
    fn purge_kept_requests(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
