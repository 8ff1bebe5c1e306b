//! Changing and deleting events: the draft is re-rated, or an adjustment is drawn up, in the same transaction
//! (billing rules 5).

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::contract::{Contract, ProductPeriod};
use billing_domain::document::totals::usage_key;
use billing_domain::ledger::{ContractBook, issue, post};
use billing_domain::matching::{EventFacts, check_validations, match_event};
use billing_domain::party::Customer;
use billing_domain::ports::{Access, StoreError, Tx, transact};
use billing_domain::refs::{ContractKey, EventRef, OrganizationId};
use billing_domain::reported::{EventUpdate, NamedCustomer, NamedUsageProduct, refuse_future};
use billing_domain::usage::{CountedEvent, Placement, UsageEvent, UsageKey, UsageTotal};
use billing_domain::violation::Violations;

use super::read::{EventView, only, view_events};
use super::slice::MAX_HOLD_ATTEMPTS;
use crate::accounts::Deciding;
use crate::books::{self, corrupt, entities_of, supplies, total_of};
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

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
    let organization = allow(principal, UseCase::UpdateEvent)?;
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        let held = match update.occurred_at {
            Some(_) => hold_moving(tx, principal, event_ref, update, now)?,
            None => hold_in_place(tx, principal, event_ref, Some(update), now)?,
        };
        let revised = update.applied_to(&held.event);
        if revised == held.event {
            return only(view_events(tx, organization, &[&held.present], vec![revised])?);
        }
        let (revised, books) = revise(services, tx, principal, held, revised, now)?;
        only(view_events(tx, organization, &Vec::from_iter(&books), vec![revised])?)
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
            let refs = std::slice::from_ref(&event.usage_product_ref);
            let product = tx.usage_products_by_refs(principal.organization(), refs)?.into_iter().next();
            let product = product.ok_or_else(|| corrupt("an event", &event.event_ref, "has no usage product"))?;
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
    allow(principal, UseCase::DeleteEvent)?;
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        let held = hold_in_place(tx, principal, event_ref, None, now)?;
        let revised = UsageEvent { deleted: true, ..held.event.clone() };
        revise(services, tx, principal, held, revised, now)?;
        Ok(())
    })
}

/// An event, with the contract it counts in, and the one it goes to where its timestamp moves it.
struct Held {
    event: UsageEvent,
    present: ContractBook,
    /// The period it goes to, and the contract where that is another one.
    moved: Option<Moved>,
}

/// Where a changed timestamp puts an event.
struct Moved {
    book: Option<ContractBook>,
    key: UsageKey,
    service_period: Period,
    service_date: Date,
}

/// Reads an event that stays in its period, with its contract held exclusively before anything of it is read.
fn hold_in_place(
    tx: &mut dyn Tx,
    principal: &Principal,
    event_ref: EventRef,
    update: Option<&EventUpdate>,
    now: Timestamp,
) -> UseCaseResult<Held> {
    let organization = principal.organization();
    let customer_id = tx.customer_of_event(organization, event_ref)?.ok_or(UseCaseError::Unknown(Thing::Event))?;
    for _ in 0..MAX_HOLD_ATTEMPTS {
        let Some((agreed, event)) = tx.hold_event(organization, customer_id, event_ref)? else { continue };
        if event.deleted {
            return Err(UseCaseError::Unknown(Thing::Event));
        }
        if let Some(update) = update {
            refuse_other_names(tx, principal, update, &event, &agreed.customer)?;
        }
        let book = books::with_parties(tx, organization, agreed)?;
        let mut present = books::whole(tx, organization, book, now)?;
        books::know(tx, organization, &mut present, &[event.placement.document_ref])?;
        return Ok(Held { event, present, moved: None });
    }
    Err(StoreError::Contended.into())
}

/// Reads an event that may move, with its contracts held exclusively, in the order of their references: both are known before
/// either is held. What is wrong with an update's fields is told before a contract is looked for.
fn hold_moving(
    tx: &mut dyn Tx,
    principal: &Principal,
    event_ref: EventRef,
    update: &EventUpdate,
    now: Timestamp,
) -> UseCaseResult<Held> {
    let organization = principal.organization();
    for _ in 0..MAX_HOLD_ATTEMPTS {
        let event = live_event(tx, principal, event_ref)?;
        let customer = tx.customers_by_ids(organization, &[event.customer_id])?.into_iter().next();
        let customer = customer.ok_or_else(|| corrupt("an event", &event.event_ref, "has no customer"))?;
        refuse_other_names(tx, principal, update, &event, &customer)?;
        let revised = update.applied_to(&event);
        if revised.occurred_at == event.occurred_at {
            return hold_in_place(tx, principal, event_ref, Some(update), now);
        }
        refuse_future(revised.occurred_at, now)?;
        let target = target_of(tx, organization, &customer, &revised)?;
        let present = event.placement.contract_ref;
        let both = [present, target.0.contract_ref];
        let keys = both.map(|contract| ContractKey { organization, customer: event.customer_id, contract });
        let held = books::held_all(tx, organization, &keys, now)?;
        // Again, as things are now that nobody can change them.
        let Some((_, again)) = tx.hold_event(organization, event.customer_id, event_ref)? else { continue };
        if again != event || target_of(tx, organization, &customer, &revised)? != target {
            continue;
        }
        let (_, mut moved) = target;
        let (mut of_event, mut others): (Vec<_>, Vec<_>) =
            held.into_iter().partition(|book| book.contract.contract_ref == present);
        moved.book = others.pop();
        let mut present = of_event.pop().ok_or_else(|| corrupt("an event", &event_ref, "has no contract"))?;
        books::know(tx, organization, &mut present, &[event.placement.document_ref])?;
        return Ok(Held { event, present, moved: Some(moved) });
    }
    Err(StoreError::Contended.into())
}

/// The contract and period that an event with another timestamp lands in.
fn target_of(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer: &Customer,
    revised: &UsageEvent,
) -> UseCaseResult<(Contract, Moved)> {
    let pair = (customer.id, revised.usage_product_ref.clone());
    let contracts = tx.contracts_metering(organization, &[pair], None)?;
    let entities = entities_of(tx, organization, &contracts)?;
    let facts = EventFacts {
        usage_product_ref: &revised.usage_product_ref,
        occurred_at: revised.occurred_at,
        validations: revised.validations.as_ref(),
    };
    let found = match_event(facts, &contracts, &entities)?;
    let moved = Moved {
        book: None,
        key: usage_key(found.contract.contract_ref, &found.period, &revised.usage_product_ref),
        service_period: found.period.days(),
        service_date: found.service_date,
    };
    Ok((found.contract.clone(), moved))
}

impl PartialEq for Moved {
    /// Before anything of a book is read.
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.service_date == other.service_date && self.service_period == other.service_period
    }
}

pub(super) fn live_event(tx: &mut dyn Tx, principal: &Principal, event_ref: EventRef) -> UseCaseResult<UsageEvent> {
    let event = tx.event(principal.organization(), event_ref)?;
    event.filter(|event| !event.deleted).ok_or(UseCaseError::Unknown(Thing::Event))
}

/// Takes the present revision out of its total and puts the revised one in, each on its document, and stores the next
/// revision.
fn revise(
    services: &Services,
    tx: &mut dyn Tx,
    principal: &Principal,
    held: Held,
    revised: UsageEvent,
    now: Timestamp,
) -> UseCaseResult<(UsageEvent, Vec<ContractBook>)> {
    let Held { event: present, present: mut book, moved } = held;
    let organization = principal.organization();
    let old_key = present.usage_key();
    let ids = &mut supplies(services);
    let (mut placement, mut service_date) = (present.placement, present.service_date);
    let mut other: Option<ContractBook> = None;
    let moves = moved.filter(|moved| {
        // Within its period an event takes its new date with it.
        service_date = moved.service_date;
        moved.key != old_key
    });
    match moves {
        None => {
            let total = total_of(tx, organization, &mut book, &old_key)?;
            let without = without(tx, organization, &book, &present, &old_key, total)?;
            let after = (!revised.deleted).then(|| CountedEvent { service_date, ..revised.counted() });
            if let (Some(validations), Some(period)) =
                (revised.validations.as_ref().filter(|_| after.is_some()), period_of(&book, &old_key))
            {
                check_validations(validations, period.terms)?;
            }
            placement.document_ref = post::change(&mut book, &old_key, without, after, placement.document_ref, now, ids)?;
        }
        Some(moved) => {
            let total = total_of(tx, organization, &mut book, &old_key)?;
            let without = without(tx, organization, &book, &present, &old_key, total)?;
            post::change(&mut book, &old_key, without, None, placement.document_ref, now, ids)?;
            other = moved.book;
            let target = other.as_mut().unwrap_or(&mut book);
            // It may not be there.
            tx.lock_usage(organization, &[(present.customer_id, moved.key.clone())])?;
            total_of(tx, organization, target, &moved.key)?;
            let counted = CountedEvent { service_date, ..revised.counted() };
            let (no, product) = (moved.key.product_no, &moved.key.usage_product_ref);
            placement = Placement {
                contract_ref: moved.key.contract_ref,
                product_no: no,
                service_period: moved.service_period,
                document_ref: post::add(target, no, product, &[counted], now, ids)?,
            };
        }
    }
    let mut decided: Vec<&mut ContractBook> =
        std::iter::once(&mut book).chain(&mut other).filter(|book| !book.entries().is_empty()).collect();
    for book in &mut decided {
        issue::remind(book, now)?;
    }
    let deciding = Deciding::of(services, principal, now);
    books::write_all(tx, deciding, decided)?;
    let next = UsageEvent {
        placement,
        service_date,
        revision: present.revision + 1,
        revised_at: now,
        revised_by: principal.actor(),
        ..revised
    };
    tx.revise_event(organization, &present, &next)?;
    Ok((next, std::iter::once(book).chain(other).collect()))
}

/// A total without an event, counted again where what its line items ask for isn't known any more.
fn without(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &ContractBook,
    event: &UsageEvent,
    key: &UsageKey,
    total: UsageTotal,
) -> UseCaseResult<UsageTotal> {
    let without = total.minus(event.event_ref, event.quantity)?;
    if !book.tells(key, &without) {
        return Ok(tx.recount_usage(organization, event.customer_id, key, Some(event.event_ref))?);
    }
    Ok(without)
}

fn period_of<'b>(book: &'b ContractBook, key: &UsageKey) -> Option<ProductPeriod<'b>> {
    book.contract.product(key.product_no).and_then(|product| product.period_from(key.period_start))
}
