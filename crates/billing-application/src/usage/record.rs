//! Taking usage events: each is put on its document in the transaction that stores it (billing rules 4).
//!
//! One event, a batch and a group of waiting requests are the same code: a slice. An event is refused
//! before anything of it is written (but for running totals of zero, which say nothing), so a refusal never
//! fails its neighbours.

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::contract::ProductPeriod;
use billing_domain::document::linking::{Share, share_for_usage};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::usage_key;
use billing_domain::matching::{EventFacts, match_event};
use billing_domain::party::Customer;
use billing_domain::ports::{Access, Lock, StoreError, Tx, transact};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, EventRef, OrganizationId, UsageProductRef};
use billing_domain::text::Line;
use billing_domain::usage::{MAX_AHEAD_SECONDS, Placement, ReportData, UsageEvent, Validations};
use billing_domain::violation::Violations;

use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult, unknown_reference};
use crate::ledger::{Account, Change, corrupt, entities_of, settle};

/// How often a contract or document may change between finding and holding it before the store is called
/// contended.
pub(super) const MAX_HOLD_ATTEMPTS: u32 = 4;

/// A customer, by reference or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedCustomer {
    /// By reference.
    Ref(CustomerRef),
    /// By name, when only one has it.
    Name(Line),
}

/// A usage product, by reference or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedUsageProduct {
    /// By reference.
    Ref(UsageProductRef),
    /// By name, when only one has it.
    Name(Line),
}

/// An event as reported.
#[derive(Clone, Debug)]
pub struct NewUsageEvent {
    /// Who used.
    pub customer: NamedCustomer,
    /// What was used.
    pub usage_product: NamedUsageProduct,
    /// When.
    pub occurred_at: Timestamp,
    /// How much.
    pub quantity: Quantity,
    /// Columns for the usage report.
    pub report_data: Option<ReportData>,
    /// Checks against the document.
    pub validations: Option<Validations>,
}

/// An event that was taken, and the document it is on.
#[derive(Clone, Debug)]
pub struct RecordedUsage {
    /// The stored event.
    pub event: UsageEvent,
    /// The number of the document.
    pub document_number: DocumentNumber,
}

/// Takes events. The outer result is the whole call's: when it is `Ok`, what was taken is durable.
///
/// # Errors
/// [`UseCaseError::Store`] for the call; for each event what refuses it.
pub fn record_usage(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
) -> UseCaseResult<Vec<UseCaseResult<RecordedUsage>>> {
    let now = services.now();
    let work = |tx: &mut dyn Tx| {
        let mut results = Vec::with_capacity(events.len());
        for event in events {
            match record_one(services, tx, principal, event, now) {
                Err(UseCaseError::Store(error)) => return Err(Stop::Failed(error)),
                result => results.push(result),
            }
        }
        // With nothing taken there is nothing to commit, and what was only prepared goes too.
        if results.iter().any(Result::is_ok) { Ok(results) } else { Err(Stop::AllRefused(results)) }
    };
    match transact(&*services.store, Access::Write, work) {
        Ok(results) | Err(Stop::AllRefused(results)) => Ok(results),
        Err(Stop::Failed(error)) => Err(error.into()),
    }
}

/// Why the transaction of a slice isn't committed.
enum Stop {
    AllRefused(Vec<UseCaseResult<RecordedUsage>>),
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Refuses a timestamp too far ahead of the clock.
pub(super) fn refuse_future(occurred_at: Timestamp, now: Timestamp) -> UseCaseResult<()> {
    if occurred_at > now.plus_seconds(MAX_AHEAD_SECONDS) {
        let detail = "must not be more than 5 minutes ahead of the server's clock";
        return Err(Violations::one(&["timestamp"], "timestamp_in_future", detail).into());
    }
    Ok(())
}

fn record_one(
    services: &Services,
    tx: &mut dyn Tx,
    principal: &Principal,
    event: &NewUsageEvent,
    now: Timestamp,
) -> UseCaseResult<RecordedUsage> {
    refuse_future(event.occurred_at, now)?;
    let (customer, usage_product_ref) = resolve(tx, principal, event)?;
    let customer_id = customer.id;
    let facts = EventFacts {
        usage_product_ref: &usage_product_ref,
        occurred_at: event.occurred_at,
        validations: event.validations.as_ref(),
    };
    let account = hold_account(tx, principal, customer, facts)?;
    let (period, _) = place(&account, facts)?;

    let organization = principal.organization;
    let event_ref = EventRef::from_uuid(services.ids.new_id());
    let key = usage_key(account.contract.contract_ref, &period, &usage_product_ref);
    let totals = tx.lock_usage(organization, customer_id, std::slice::from_ref(&key))?;
    let (_, before) = totals.first().ok_or_else(|| corrupt("a running total", &usage_product_ref, "is not there"))?;
    let after = before.plus(event.occurred_at, event_ref, event.quantity)?;
    let change = Change { period, usage_product_ref: &usage_product_ref, before: *before, after, standing: None };
    let head = settle(services, tx, &account, change, now)?;
    let placement = Placement {
        contract_ref: account.contract.contract_ref,
        product_no: period.product_no,
        service_period: period.period.span(),
        document_ref: head.document_ref,
    };
    let event = UsageEvent {
        event_ref,
        customer_id,
        usage_product_ref,
        occurred_at: event.occurred_at,
        quantity: event.quantity,
        report_data: event.report_data.clone(),
        validations: event.validations.clone(),
        placement,
        formatted: None,
        recorded_at: now,
        revision: 1,
        revised_at: now,
        revised_by: principal.actor,
        deleted: false,
    };
    tx.insert_events(organization, std::slice::from_ref(&event))?;
    tx.put_usage(organization, customer_id, &[(key, after)])?;
    Ok(RecordedUsage { event, document_number: head.number })
}

/// Finds the contract an event lands on and holds it: shared where the event goes on a draft that is there,
/// exclusively where a document has to be opened or corrected, so that nothing moves between here and the commit.
fn hold_account(tx: &mut dyn Tx, principal: &Principal, customer: Customer, facts: EventFacts<'_>) -> UseCaseResult<Account> {
    let organization = principal.organization;
    let mut lock = Lock::Shared;
    for _ in 0..MAX_HOLD_ATTEMPTS {
        let account = matching_account(tx, organization, &customer, facts)?;
        if !goes_on_a_draft(tx, &account, facts)? {
            lock = Lock::Exclusive;
        }
        let contract = &account.contract;
        let version = tx.lock_contract(organization, contract.customer_id, contract.contract_ref, lock)?;
        // Look again now that nobody can change it: the contract may have been edited, the document issued.
        if version == Some(contract.version) && (lock == Lock::Exclusive || goes_on_a_draft(tx, &account, facts)?) {
            return Ok(account);
        }
    }
    Err(StoreError::Contended.into())
}

/// The account of the contract an event lands on.
pub(super) fn matching_account(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer: &Customer,
    facts: EventFacts<'_>,
) -> UseCaseResult<Account> {
    let contracts = tx.contracts_metering(organization, customer.id, facts.usage_product_ref)?;
    let entities = entities_of(tx, organization, &contracts)?;
    let contract = match_event(facts, &contracts, &entities)?.contract.clone();
    Ok(Account { organization, contract, customer: customer.clone(), entities })
}

/// Whether an event only adds to the usage of a draft that is there.
fn goes_on_a_draft(tx: &mut dyn Tx, account: &Account, facts: EventFacts<'_>) -> UseCaseResult<bool> {
    let (period, share) = place(account, facts)?;
    match account.stored(tx, &share)? {
        Some(carrier) => Ok(carrier.is_draft() && !account.is_due_upon_usage(Some(&carrier), period)?),
        None => Ok(false),
    }
}

/// The period of the event's contract it counts in, and the share of a document that bills it.
pub(super) fn place<'c>(account: &'c Account, facts: EventFacts<'_>) -> UseCaseResult<(ProductPeriod<'c>, Share<'c>)> {
    let period = match_event(facts, std::slice::from_ref(&account.contract), &account.entities)?.period;
    Ok((period, share_for_usage(account.product(period.product_no)?, period)))
}

fn resolve(tx: &mut dyn Tx, principal: &Principal, event: &NewUsageEvent) -> UseCaseResult<(Customer, UsageProductRef)> {
    let organization = principal.organization;
    let mut found = Violations::none();
    let (path, customers) = match &event.customer {
        NamedCustomer::Ref(customer_ref) => {
            ("customer_ref", tx.customers_by_refs(organization, std::slice::from_ref(customer_ref))?)
        }
        NamedCustomer::Name(name) => ("customer_name", tx.customers_by_name(organization, name)?),
    };
    let customer = one_of(&mut found, path, Thing::Customer, customers);
    let (path, products) = match &event.usage_product {
        NamedUsageProduct::Ref(product_ref) => {
            ("usage_product_ref", tx.usage_products_by_refs(organization, std::slice::from_ref(product_ref))?)
        }
        NamedUsageProduct::Name(name) => ("usage_product_name", tx.usage_products_by_name(organization, name)?),
    };
    let product = one_of(&mut found, path, Thing::UsageProduct, products);
    match (customer, product) {
        (Some(customer), Some(product)) => Ok((customer, product.usage_product_ref)),
        (_, _) => Err(found.into()),
    }
}

fn one_of<T>(violations: &mut Violations, path: &str, thing: Thing, found: Vec<T>) -> Option<T> {
    if found.len() > 1 {
        let detail = format!("is the name of several {}s: give the reference instead", thing.word());
        violations.add(&[path], "ambiguous_name", detail);
        return None;
    }
    let one = found.into_iter().next();
    if one.is_none() {
        violations.extend_below(&[], unknown_reference(&[path], thing));
    }
    one
}
