//! Changing and deleting events: the draft is re-rated, or an adjustment is drawn up, in the same transaction
//! (billing rules 5).

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::catalog::UsageProduct;
use billing_domain::document::totals::usage_key;
use billing_domain::matching::{EventFacts, check_validations};
use billing_domain::party::Customer;
use billing_domain::patch::Patch;
use billing_domain::ports::{Access, Lock, StoreError, Tx, transact};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, EventRef};
use billing_domain::usage::{FormattedSource, Placement, ReportData, UsageEvent, UsageKey, UsageTotal, Validations};
use billing_domain::violation::Violations;

use super::place::{MAX_HOLD_ATTEMPTS, matching_account, place, refuse_future};
use super::read::{EventView, view_event};
use super::record::{NamedCustomer, NamedUsageProduct};
use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::ledger::{Account, Change, corrupt, settle};

/// What of an event is to change; the rest is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventUpdate {
    /// When it was used.
    pub occurred_at: Option<Timestamp>,
    /// How much.
    pub quantity: Option<Quantity>,
    /// Columns for the usage report, replaced whole.
    pub report_data: Patch<ReportData>,
    /// Checks against the document, replaced whole.
    pub validations: Patch<Validations>,
    /// The customer, repeated: it can't change.
    pub customer: Option<NamedCustomer>,
    /// The usage product, repeated: it can't change.
    pub usage_product: Option<NamedUsageProduct>,
    /// How the new values came in, when by a format. An update without it that changes anything leaves none: a
    /// revision never shows a submitted event that says something else.
    pub formatted: Option<FormattedSource>,
}

impl EventUpdate {
    /// The event with the changes; the event as it is where nothing changes.
    fn applied_to(&self, present: &UsageEvent) -> UsageEvent {
        let revised = UsageEvent {
            occurred_at: self.occurred_at.unwrap_or(present.occurred_at),
            quantity: self.quantity.unwrap_or(present.quantity),
            report_data: self.report_data.clone().apply(present.report_data.clone()),
            validations: self.validations.clone().apply(present.validations.clone()),
            ..present.clone()
        };
        if revised == *present && self.formatted.is_none() {
            return revised;
        }
        UsageEvent { formatted: self.formatted.clone(), ..revised }
    }
}

/// Changes an event. An update that changes nothing makes no revision.
///
/// # Errors
/// [`UseCaseError::Unknown`]; [`UseCaseError::NoMatch`] when no contract covers the new timestamp, or the event's
/// validations aren't met there.
pub fn update_event(
    services: &Services,
    principal: &Principal,
    event_ref: EventRef,
    update: &EventUpdate,
) -> UseCaseResult<EventView> {
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        let (present, accounts) = hold_event(tx, principal, event_ref, Some((update, now)))?;
        let revised = update.applied_to(&present);
        if revised == present {
            return view_event(tx, principal.organization, present);
        }
        let revised = revise(services, tx, principal, &present, revised, &accounts, now)?;
        view_event(tx, principal.organization, revised)
    })
}

/// Customer and usage product of an event never change.
fn refuse_other_names(
    tx: &mut dyn Tx,
    principal: &Principal,
    update: &EventUpdate,
    event: &UsageEvent,
    customer: &Customer,
) -> UseCaseResult<()> {
    let mut found = Violations::none();
    let detail = "can't be changed: delete the event and report another";
    let (path, same) = match &update.customer {
        None => ("customer_ref", true),
        Some(NamedCustomer::Ref(given)) => ("customer_ref", *given == customer.customer_ref),
        Some(NamedCustomer::Name(given)) => ("customer_name", *given == customer.profile.name),
    };
    if !same {
        found.add(&[path], "not_changeable", detail);
    }
    let (path, same) = match &update.usage_product {
        None => ("usage_product_ref", true),
        Some(NamedUsageProduct::Ref(given)) => ("usage_product_ref", *given == event.usage_product_ref),
        Some(NamedUsageProduct::Name(given)) => {
            let product = usage_product_of(tx, principal, event)?;
            ("usage_product_name", *given == product.profile.name)
        }
    };
    if !same {
        found.add(&[path], "not_changeable", detail);
    }
    Ok(found.or(())?)
}

/// Deletes an event: it stops counting; its row and every revision stay.
///
/// # Errors
/// [`UseCaseError::Unknown`], for an event deleted before, too.
pub fn delete_event(services: &Services, principal: &Principal, event_ref: EventRef) -> UseCaseResult<()> {
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        let (present, accounts) = hold_event(tx, principal, event_ref, None)?;
        let revised = UsageEvent { deleted: true, ..present.clone() };
        revise(services, tx, principal, &present, revised, &accounts, now)?;
        Ok(())
    })
}

/// The contract an event counts in, and the one it goes to where its timestamp moves it.
struct Accounts {
    present: Account,
    moved_to: Option<Account>,
}

/// Reads an event with its contracts held exclusively, in the order of their references. What is wrong with an
/// update's fields is told before a contract is looked for.
fn hold_event(
    tx: &mut dyn Tx,
    principal: &Principal,
    event_ref: EventRef,
    update: Option<(&EventUpdate, Timestamp)>,
) -> UseCaseResult<(UsageEvent, Accounts)> {
    for _ in 0..MAX_HOLD_ATTEMPTS {
        let event = live_event(tx, principal, event_ref)?;
        let customer = customer_of(tx, principal, &event)?;
        let mut moved = None;
        if let Some((update, now)) = update {
            refuse_other_names(tx, principal, update, &event, &customer)?;
            moved = Some(update.applied_to(&event)).filter(|revised| revised.occurred_at != event.occurred_at);
            refuse_future(moved.as_ref().map_or(now, |revised| revised.occurred_at), now)?;
        }
        let contract = tx.contract(principal.organization, event.placement.contract_ref)?;
        let contract = contract.ok_or_else(|| corrupt("an event", &event_ref, "has no contract"))?;
        let present = Account::of(tx, principal.organization, contract, customer.clone())?;
        let moved_to = match &moved {
            None => None,
            Some(revised) => Some(matching_account(tx, principal.organization, &customer, facts_of(revised))?),
        };
        let accounts = Accounts { present, moved_to };
        if accounts.hold(tx)? && live_event(tx, principal, event_ref)? == event {
            return Ok((event, accounts));
        }
    }
    Err(StoreError::Contended.into())
}

impl Accounts {
    /// Holds both contracts; `false` when one has changed since it was read.
    fn hold(&self, tx: &mut dyn Tx) -> UseCaseResult<bool> {
        let mut wanted: Vec<(ContractRef, &Account)> = [Some(&self.present), self.moved_to.as_ref()]
            .into_iter()
            .flatten()
            .map(|account| (account.contract.contract_ref, account))
            .collect();
        wanted.sort_by_key(|(contract_ref, _)| *contract_ref);
        let mut unchanged = true;
        for (contract_ref, account) in wanted {
            let version = tx.lock_contract(account.organization, account.contract.customer_id, contract_ref, Lock::Exclusive)?;
            unchanged &= version == Some(account.contract.version);
        }
        Ok(unchanged)
    }
}

pub(super) fn live_event(tx: &mut dyn Tx, principal: &Principal, event_ref: EventRef) -> UseCaseResult<UsageEvent> {
    let event = tx.event(principal.organization, event_ref)?;
    event.filter(|event| !event.deleted).ok_or(UseCaseError::Unknown(Thing::Event))
}

fn customer_of(tx: &mut dyn Tx, principal: &Principal, event: &UsageEvent) -> UseCaseResult<Customer> {
    let customer = tx.customers_by_ids(principal.organization, &[event.customer_id])?.into_iter().next();
    customer.ok_or_else(|| corrupt("an event", &event.event_ref, "has no customer"))
}

fn usage_product_of(tx: &mut dyn Tx, principal: &Principal, event: &UsageEvent) -> UseCaseResult<UsageProduct> {
    let refs = std::slice::from_ref(&event.usage_product_ref);
    let product = tx.usage_products_by_refs(principal.organization, refs)?.into_iter().next();
    product.ok_or_else(|| corrupt("an event", &event.event_ref, "has no usage product"))
}

fn facts_of(event: &UsageEvent) -> EventFacts<'_> {
    EventFacts {
        usage_product_ref: &event.usage_product_ref,
        occurred_at: event.occurred_at,
        validations: event.validations.as_ref(),
    }
}

/// Takes the present revision out of its total and puts the revised one in, each settled on its document, and
/// stores the next revision.
fn revise(
    services: &Services,
    tx: &mut dyn Tx,
    principal: &Principal,
    present: &UsageEvent,
    revised: UsageEvent,
    accounts: &Accounts,
    now: Timestamp,
) -> UseCaseResult<UsageEvent> {
    let from = &accounts.present;
    let old_key = present.usage_key();
    let target = match &accounts.moved_to {
        None => None,
        Some(account) => {
            let (period, _) = place(account, facts_of(&revised))?;
            let key = usage_key(account.contract.contract_ref, &period, &present.usage_product_ref);
            (key != old_key).then_some((account, period, key))
        }
    };
    let placement = match target {
        None => {
            let document_ref = change_in_place(services, tx, from, present, &revised, &old_key, now)?;
            Placement { document_ref, ..present.placement }
        }
        Some((account, period, key)) => {
            let keys = [old_key.clone(), key.clone()];
            tx.lock_usage(from.organization, present.customer_id, &keys)?;
            let gone = UsageEvent { deleted: true, ..present.clone() };
            change_in_place(services, tx, from, present, &gone, &old_key, now)?;
            let before = locked_total(tx, account, present, &key)?;
            let after = before.plus(revised.occurred_at, revised.event_ref, revised.quantity)?;
            let change = Change { period, usage_product_ref: &present.usage_product_ref, before, after, standing: None };
            let head = settle(services, tx, account, change, now)?;
            tx.put_usage(account.organization, present.customer_id, &[(key, after)])?;
            Placement {
                contract_ref: account.contract.contract_ref,
                product_no: period.product_no,
                service_period: period.period.span(),
                document_ref: head.document_ref,
            }
        }
    };
    let next = UsageEvent { placement, revision: present.revision + 1, revised_at: now, revised_by: principal.actor, ..revised };
    tx.revise_event(from.organization, present, &next)?;
    Ok(next)
}

/// Changes an event within its service period, and answers the document the change stands on.
fn change_in_place(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    present: &UsageEvent,
    revised: &UsageEvent,
    key: &UsageKey,
    now: Timestamp,
) -> UseCaseResult<billing_domain::refs::DocumentRef> {
    let product = account.product(key.product_no)?;
    let period = product.period_at(key.period_start);
    let period = period.ok_or_else(|| corrupt("an event", &present.event_ref, "has no period"))?;
    if let Some(validations) = &revised.validations
        && !revised.deleted
    {
        check_validations(validations, period.terms)?;
    }
    let before = locked_total(tx, account, present, key)?;
    let without = match before.minus(present.event_ref, present.quantity)? {
        Some(total) => total,
        None => tx.recount_usage(account.organization, present.customer_id, key, Some(present.event_ref))?,
    };
    let after = if revised.deleted { without } else { without.plus(revised.occurred_at, revised.event_ref, revised.quantity)? };
    let standing = present.placement.document_ref;
    if after == before {
        return Ok(standing);
    }
    let change = Change { period, usage_product_ref: &present.usage_product_ref, before, after, standing: Some(standing) };
    let head = settle(services, tx, account, change, now)?;
    tx.put_usage(account.organization, present.customer_id, &[(key.clone(), after)])?;
    Ok(head.document_ref)
}

fn locked_total(tx: &mut dyn Tx, account: &Account, event: &UsageEvent, key: &UsageKey) -> UseCaseResult<UsageTotal> {
    let totals = tx.lock_usage(account.organization, event.customer_id, std::slice::from_ref(key))?;
    totals.first().map(|(_, total)| *total).ok_or_else(|| corrupt("a running total", &key.usage_product_ref, "is not there"))
}
