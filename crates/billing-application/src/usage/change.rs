//! Changing and deleting events: the draft is re-rated, or an adjustment is drawn up, in the same transaction
//! (billing rules 5).

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::document::totals::usage_key;
use billing_domain::matching::{EventFacts, check_validations};
use billing_domain::party::Customer;
use billing_domain::patch::Patch;
use billing_domain::ports::{Access, Lock, StoreError, Tx, transact};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CustomerRef, EventRef, UsageProductRef};
use billing_domain::usage::{Placement, ReportData, UsageEvent, UsageKey, UsageTotal};
use billing_domain::violation::Violations;

use super::place::{MAX_HOLD_ATTEMPTS, matching_account, place, refuse_future};
use super::read::{EventView, view_event};
use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::ledger::{Account, Change, corrupt, settle};

/// What of an event is to change; the rest is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventUpdate {
    /// When it was used.
    pub occurred_at: Option<Timestamp>,
    /// How much.
    pub quantity: Option<Quantity>,
    /// Columns for the usage report, replaced whole.
    pub report_data: Patch<ReportData>,
    /// The customer, repeated: it can't change.
    pub customer_ref: Option<CustomerRef>,
    /// The usage product, repeated: it can't change.
    pub usage_product_ref: Option<UsageProductRef>,
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
        let revised = UsageEvent {
            occurred_at: update.occurred_at.unwrap_or(present.occurred_at),
            quantity: update.quantity.unwrap_or(present.quantity),
            report_data: update.report_data.clone().apply(present.report_data.clone()),
            ..present.clone()
        };
        if revised == present {
            return view_event(tx, principal.organization, present);
        }
        let revised = revise(services, tx, principal, &present, revised, &accounts, now)?;
        view_event(tx, principal.organization, revised)
    })
}

/// Customer and usage product of an event never change.
fn refuse_other_names(update: &EventUpdate, event: &UsageEvent, customer_ref: &CustomerRef) -> UseCaseResult<()> {
    let mut found = Violations::none();
    let detail = "can't be changed: delete the event and report another";
    if update.customer_ref.as_ref().is_some_and(|given| given != customer_ref) {
        found.add(&["customer_ref"], "not_changeable", detail);
    }
    if update.usage_product_ref.as_ref().is_some_and(|given| *given != event.usage_product_ref) {
        found.add(&["usage_product_ref"], "not_changeable", detail);
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
        let mut moved_at = None;
        if let Some((update, now)) = update {
            refuse_other_names(update, &event, &customer.customer_ref)?;
            moved_at = update.occurred_at.filter(|at| *at != event.occurred_at);
            refuse_future(moved_at.unwrap_or(now), now)?;
        }
        let contract = tx.contract(principal.organization, event.placement.contract_ref)?;
        let contract = contract.ok_or_else(|| corrupt("an event", &event_ref, "has no contract"))?;
        let present = Account::of(tx, principal.organization, contract, customer.clone())?;
        let moved_to = match moved_at {
            None => None,
            Some(at) => Some(matching_account(tx, principal.organization, &customer, facts_at(&event, at))?),
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

fn live_event(tx: &mut dyn Tx, principal: &Principal, event_ref: EventRef) -> UseCaseResult<UsageEvent> {
    let event = tx.event(principal.organization, event_ref)?;
    event.filter(|event| !event.deleted).ok_or(UseCaseError::Unknown(Thing::Event))
}

fn customer_of(tx: &mut dyn Tx, principal: &Principal, event: &UsageEvent) -> UseCaseResult<Customer> {
    let customer = tx.customers_by_ids(principal.organization, &[event.customer_id])?.into_iter().next();
    customer.ok_or_else(|| corrupt("an event", &event.event_ref, "has no customer"))
}

fn facts_at(event: &UsageEvent, occurred_at: Timestamp) -> EventFacts<'_> {
    EventFacts { usage_product_ref: &event.usage_product_ref, occurred_at, validations: event.validations.as_ref() }
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
            let (period, _) = place(account, facts_at(present, revised.occurred_at))?;
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
    if let Some(validations) = &present.validations
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
