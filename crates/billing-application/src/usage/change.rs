//! Changes and deletes events. In the same transaction, drafts are rated again or adjustments are created (billing rules 5).
//! Single changes and groups of changes share this code.
//!
//! The contracts of a group are locked exclusively before any decision, in the order of their references. A decision must not
//! read rows that an earlier decision of the same transaction has yet to write. Changes that would read such rows are
//! deferred to a later transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::catalog::UsageProduct;
use billing_domain::contract::Contract;
use billing_domain::event_input::{EventUpdate, NamedCustomer, NamedUsageProduct, NewUsageEvent, require_not_future};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::ledger::{ContractBook, issue, post};
use billing_domain::matching::{EventFacts, check_validations, match_changed_event};
use billing_domain::party::{Customer, Entity};
use billing_domain::patch::Patch;
use billing_domain::ports::{StoreError, Tx};
use billing_domain::refs::{ContractKey, CustomerId, EventRef, OrganizationId, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{CountedEvent, EventKeyRecord, FactsDigest, Placement, UsageEvent, UsageKey};
use billing_domain::violation::Violations;

use super::ingest::MAX_HOLD_ATTEMPTS;
use super::outcome::EventAnswer;
use super::read::{EventView, view_events};
use super::working_books::{ChangeCandidate, TargetPeriod, WorkingBooks, contracts_of, is_read};
use crate::book_repository::{self, corrupt, entities_of};
use crate::carry_out::Cx;
use crate::credit_books::pass_credit_on;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// A change of an event.
#[derive(Clone, Debug)]
pub enum EventChange {
    /// Updates the event's fields. An update that changes nothing creates no revision.
    Update(Box<EventUpdate>),
    /// Deletes the event. It is no longer counted, but its row and all revisions remain.
    Delete,
}

/// The delivery of an event under the key of a recorded one.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    key: IdempotencyKey,
    /// The facts that were last delivered under the key.
    before: FactsDigest,
    facts: FactsDigest,
    answer: EventAnswer,
}

impl Delivery {
    /// Returns the delivery of an event and the update of the recorded event, or `None` if the event has no key.
    pub(super) fn of(event: &NewUsageEvent, before: FactsDigest, answer: EventAnswer) -> Option<(Self, EventUpdate)> {
        let update = EventUpdate {
            occurred_at: event.sent_time(),
            quantity: Some(event.quantity),
            report_data: event.report_data.clone().map_or(Patch::Clear, Patch::Set),
            validations: event.validations.clone().map_or(Patch::Keep, Patch::Set),
            // The key belongs to the customer.
            customer: None,
            usage_product: Some(event.usage_product.clone()),
            formatted: event.formatted.clone(),
        };
        Some((Self { key: event.key.clone()?, before, facts: event.facts(), answer }, update))
    }

    /// Returns the record of the key after the delivery.
    fn record(&self, view: &EventView) -> EventKeyRecord {
        let EventAnswer { form, render } = self.answer;
        EventKeyRecord { key: self.key.clone(), facts: self.facts, event_ref: view.event.event_ref, answer: render(view), form }
    }
}

/// The result of a change.
#[derive(Clone, Debug)]
pub enum ChangeOutcome {
    /// The event after the update.
    Updated(Box<EventView>),
    /// The event is deleted.
    Deleted,
}

/// Changes an event. An update that changes nothing creates no revision.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the event does not exist or is deleted.
/// - [`UseCaseError::NoMatch`] if no contract covers the new timestamp, or the contract does not meet the event's
///   validations.
pub fn update_event(cx: &mut Cx<'_>, event_ref: EventRef, update: &EventUpdate) -> UseCaseResult<EventView> {
    match change(cx, event_ref, &EventChange::Update(Box::new(update.clone())))? {
        ChangeOutcome::Updated(view) => Ok(*view),
        ChangeOutcome::Deleted => Err(UseCaseError::InvariantViolation("an updated event without a view")),
    }
}

/// Deletes an event. It is no longer counted, but its row and all revisions remain.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the event does not exist or is already deleted.
pub fn delete_event(cx: &mut Cx<'_>, event_ref: EventRef) -> UseCaseResult<()> {
    change(cx, event_ref, &EventChange::Delete).map(drop)
}

fn change(cx: &mut Cx<'_>, event_ref: EventRef, change: &EventChange) -> UseCaseResult<ChangeOutcome> {
    let changing = ChangeBatch { asked: &[ChangeRequest { event_ref, change, delivery: None }] };
    for _ in 0..MAX_HOLD_ATTEMPTS {
        if let Some(changed) = changing.decide(cx)?.pop().flatten() {
            return changed;
        }
    }
    Err(StoreError::Contended.into())
}

/// A requested change of one event.
#[derive(Clone, Copy)]
pub(super) struct ChangeRequest<'a> {
    pub(super) event_ref: EventRef,
    pub(super) change: &'a EventChange,
    /// Set if the change was delivered under the event's key.
    pub(super) delivery: Option<&'a Delivery>,
}

/// Changes of an organization's events to be made in one transaction.
pub(super) struct ChangeBatch<'a> {
    pub(super) asked: &'a [ChangeRequest<'a>],
}

/// The result of a change, or `None` if the change is deferred to another transaction.
type DeferrableResult<T> = Option<UseCaseResult<T>>;

/// A change of an event in the running totals that count it.
struct CountedChange<'a> {
    /// The total that counts the event before the change.
    old_key: &'a UsageKey,
    /// The period of another total that counts it afterwards.
    moved: Option<&'a TargetPeriod>,
    counted: CountedEvent,
    /// `None` if the event is deleted.
    after: Option<CountedEvent>,
}

impl ChangeBatch<'_> {
    /// Changes the events and returns the results in the order of the requests. Rejected changes have no effect.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Store`] or [`UseCaseError::InvariantViolation`].
    pub(super) fn decide(&self, cx: &mut Cx<'_>) -> UseCaseResult<Vec<DeferrableResult<ChangeOutcome>>> {
        let mut outcomes: Vec<DeferrableResult<ChangeOutcome>> = self.asked.iter().map(|_| None).collect();
        // Only the first of several changes of one event is made.
        let mut first: BTreeMap<EventRef, usize> = BTreeMap::new();
        for (index, asked) in self.asked.iter().enumerate() {
            first.entry(asked.event_ref).or_insert(index);
        }
        let first: BTreeSet<usize> = first.into_values().collect();
        let mut contracts: BTreeSet<ContractKey> = BTreeSet::new();
        let mut found: Vec<usize> = Vec::with_capacity(first.len());
        for (index, seen) in self.look(cx, first, None)? {
            match seen {
                Ok(seen) => {
                    contracts.extend(contracts_of(cx.organization, &seen));
                    found.push(index);
                }
                Err(refusal) => refuse(&mut outcomes, index, refusal)?,
            }
        }
        if found.is_empty() {
            return Ok(outcomes);
        }
        let customers = BTreeSet::from_iter(contracts.iter().map(|contract| contract.customer));
        let held = book_repository::lock_books(cx, &Vec::from_iter(contracts))?;
        let mut books = WorkingBooks::of(held);
        // Load the events again, because only now can nobody else change them.
        let seen = self.look(cx, found, Some(&Vec::from_iter(customers)))?;
        books.know(cx.tx, cx.organization, seen.iter().filter_map(|(_, seen)| seen.as_ref().ok()))?;
        books.know_labels(cx.tx, seen.iter().filter_map(|(_, seen)| seen.as_ref().ok()))?;
        let (mut shown, mut indices, mut revisions) = (Vec::new(), Vec::new(), Vec::new());
        for (index, seen) in seen {
            let outcome = seen.and_then(|seen| {
                if !contracts_of(cx.organization, &seen).iter().all(|contract| books.now.contains_key(&contract.contract)) {
                    return Ok(None);
                }
                if seen.revised == seen.event {
                    shown.push((index, seen.event));
                    return Ok(None);
                }
                let revised = self.revise(cx, &mut books, &seen)?;
                Ok(revised.map(|revised| (seen.event, revised)))
            });
            match outcome {
                Ok(Some(revision)) => {
                    indices.push(index);
                    revisions.push(revision);
                }
                Ok(None) => {}
                Err(refusal) => refuse(&mut outcomes, index, refusal)?,
            }
        }
        self.write(cx, &mut books, &revisions)?;
        for (index, (_, revised)) in indices.into_iter().zip(revisions) {
            if revised.deleted {
                outcomes[index] = Some(Ok(ChangeOutcome::Deleted));
            } else {
                shown.push((index, revised));
            }
        }
        let (indices, events): (Vec<usize>, Vec<UsageEvent>) = shown.into_iter().unzip();
        if !events.is_empty() {
            let views = view_events(cx.tx, cx.organization, &Vec::from_iter(books.now.values()), events)?;
            self.keep_deliveries(cx, indices.iter().copied().zip(&views))?;
            for (index, view) in indices.into_iter().zip(views) {
                outcomes[index] = Some(Ok(ChangeOutcome::Updated(Box::new(view))));
            }
        }
        Ok(outcomes)
    }

    /// Stores the facts and responses of deliveries under the keys of their events.
    fn keep_deliveries<'v>(&self, cx: &mut Cx<'_>, changed: impl Iterator<Item = (usize, &'v EventView)>) -> UseCaseResult<()> {
        let delivered = changed.filter_map(|(index, view)| {
            let delivery = self.asked[index].delivery?;
            Some((view.event.customer_id, delivery.before, delivery.record(view)))
        });
        let delivered: Vec<_> = delivered.collect();
        if !delivered.is_empty() {
            cx.tx.update_event_keys(cx.organization, &delivered)?;
        }
        Ok(())
    }

    /// Loads events, and finds the target periods of those whose timestamp or validations change. `again_of` is set for the second load and names the
    /// customers, which are known by then. Invalid fields of an update are reported before contracts are searched.
    fn look(
        &self,
        cx: &mut Cx<'_>,
        indices: impl IntoIterator<Item = usize>,
        again_of: Option<&[CustomerId]>,
    ) -> UseCaseResult<Vec<(usize, UseCaseResult<ChangeCandidate>)>> {
        let indices: Vec<usize> = indices.into_iter().collect();
        let refs: Vec<EventRef> = indices.iter().map(|index| self.asked[*index].event_ref).collect();
        let found = match again_of {
            None => cx.tx.events_by_refs(cx.organization, &refs)?,
            Some(customers) => cx.tx.events_of_customers(cx.organization, customers, &refs)?,
        };
        let (live, deleted): (Vec<UsageEvent>, Vec<UsageEvent>) = found.into_iter().partition(|event| !event.deleted);
        let live: BTreeMap<EventRef, UsageEvent> = live.into_iter().map(|event| (event.event_ref, event)).collect();
        // Names were compared at the first load, and customer and product of an event never change.
        let names = if again_of.is_none() { Some(self.names(cx, &indices, &live)?) } else { None };
        let mut seen: Vec<(usize, UseCaseResult<ChangeCandidate>)> = Vec::with_capacity(indices.len());
        for index in indices {
            let ChangeRequest { event_ref, change, delivery } = self.asked[index];
            let missing = || match delivery {
                Some(_) if deleted.iter().any(|event| event.event_ref == event_ref) => UseCaseError::EventDeleted(event_ref),
                _ => UseCaseError::Unknown(ResourceKind::Event),
            };
            let looked = live.get(&event_ref).cloned().ok_or_else(missing).and_then(|event| {
                let revised = match change {
                    EventChange::Delete => UsageEvent { deleted: true, ..event.clone() },
                    EventChange::Update(update) => {
                        if let Some(names) = &names {
                            names.require_same_names(update, &event)?;
                        }
                        update.applied_to(&event)
                    }
                };
                if revised.occurred_at != event.occurred_at {
                    require_not_future(revised.occurred_at, cx.now)?;
                }
                Ok(ChangeCandidate { event, revised, target: None })
            });
            seen.push((index, looked));
        }
        self.find_targets(cx, &mut seen)?;
        Ok(seen)
    }

    /// Finds the target periods of events whose timestamps or validations change.
    fn find_targets(&self, cx: &mut Cx<'_>, seen: &mut [(usize, UseCaseResult<ChangeCandidate>)]) -> UseCaseResult<()> {
        let moves = |seen: &ChangeCandidate| seen.is_rescheduled() || seen.changed_labels().next().is_some();
        let moving = seen.iter().filter_map(|(_, seen)| seen.as_ref().ok().filter(|seen| moves(seen)));
        let pairs: BTreeSet<(CustomerId, UsageProductRef)> =
            moving.map(|seen| (seen.event.customer_id, seen.event.usage_product_ref.clone())).collect();
        if pairs.is_empty() {
            return Ok(());
        }
        let mut candidates: BTreeMap<CustomerId, Vec<Contract>> = BTreeMap::new();
        for contract in cx.tx.contracts_metering(cx.organization, &Vec::from_iter(pairs), None)? {
            candidates.entry(contract.customer_id).or_default().push(contract);
        }
        let entities = entities_of(cx.tx, cx.organization, candidates.values().flatten())?;
        for (_, looked) in seen {
            if !looked.as_ref().is_ok_and(moves) {
                continue;
            }
            let moved = std::mem::replace(looked, Err(UseCaseError::InvariantViolation("an event that moves nowhere")));
            *looked = moved.and_then(|moved| {
                let of_customer = candidates.get(&moved.event.customer_id).map_or(&[][..], Vec::as_slice);
                if !moved.is_rescheduled() && !moved.changed_labels().any(|key| is_read(of_customer, &moved.event, key)) {
                    return Ok(moved);
                }
                let target = target_of(&moved, of_customer, &entities)?;
                let revised = UsageEvent { unique_digest: target.unique_digest, ..moved.revised };
                Ok(ChangeCandidate { target: Some(target), revised, ..moved })
            });
        }
        Ok(())
    }

    /// Loads the current customers and product names for the updates that name a customer or a usage product.
    fn names(&self, cx: &mut Cx<'_>, indices: &[usize], live: &BTreeMap<EventRef, UsageEvent>) -> UseCaseResult<ReferencedNames> {
        let (mut customers, mut products) = (BTreeSet::new(), BTreeSet::new());
        for index in indices {
            let ChangeRequest { event_ref, change: EventChange::Update(update), .. } = self.asked[*index] else { continue };
            let Some(event) = live.get(&event_ref) else { continue };
            if update.customer.is_some() {
                customers.insert(event.customer_id);
            }
            if let Some(NamedUsageProduct::Name(_)) = &update.usage_product {
                products.insert(event.usage_product_ref.clone());
            }
        }
        let mut names = ReferencedNames::default();
        if !customers.is_empty() {
            let found = cx.tx.customers_by_ids(cx.organization, &Vec::from_iter(customers))?;
            names.customers = found.into_iter().map(|customer| (customer.id, customer)).collect();
        }
        if !products.is_empty() {
            let found = cx.tx.usage_products_by_refs(cx.organization, &Vec::from_iter(products))?;
            let named = |product: UsageProduct| (product.usage_product_ref, product.profile.name);
            names.products = found.into_iter().map(named).collect();
        }
        Ok(names)
    }

    /// Moves an event from its old total to the new one and posts both changes. Returns the next revision, which the caller
    /// stores. Returns `None` if the change needs rows that earlier decisions have yet to write.
    fn revise(&self, cx: &mut Cx<'_>, books: &mut WorkingBooks, seen: &ChangeCandidate) -> UseCaseResult<Option<UsageEvent>> {
        let ChangeCandidate { event: present, revised, target } = seen;
        let from = present.placement.contract_ref;
        let old_key = books.key_of(present)?;
        // If the event stays in its period, the new date counts.
        let service_date = target.as_ref().map_or(present.service_date, |target| target.service_date);
        let moved = target.as_ref().filter(|target| target.key != old_key);
        let to = moved.map(|moved| moved.key.contract_ref).filter(|to| *to != from);
        if books.moved.contains(&from) || to.is_some_and(|to| books.moved.contains(&to)) {
            return Ok(None);
        }
        let mut book = books.take(from)?;
        let mut other = to.map(|to| books.take(to)).transpose()?;
        let live = books.live.clone();
        let counted = books.live.remove(&old_key, present.unique_digest, present.counted());
        let after = (!revised.deleted).then(|| {
            let key = moved.map_or(&old_key, |moved| &moved.key);
            books.live.add(key, revised.unique_digest, CountedEvent { service_date, ..revised.counted() })
        });
        let change = CountedChange { old_key: &old_key, moved, counted, after };
        let decided = self.revise_in(cx, books, (&mut book, other.as_mut()), seen, change);
        if !decided.as_ref().is_ok_and(Option::is_some) {
            books.live = live;
        }
        books.put(book);
        pass_credit_on(&mut books.now, from)?;
        if let Some(other) = other {
            let to = other.contract.contract_ref;
            books.put(other);
            pass_credit_on(&mut books.now, to)?;
        }
        if decided.as_ref().is_ok_and(Option::is_some) {
            books.changed.insert(old_key);
            books.changed.extend(moved.map(|moved| moved.key.clone()));
        }
        let placement = decided?;
        let first = present.first_matched();
        Ok(placement.map(|placement| UsageEvent {
            placement,
            first_match: (first != (placement.contract_ref, placement.product_no)).then_some(first),
            service_date,
            revision: present.revision + 1,
            revised_at: cx.now,
            revised_by: cx.by,
            ..revised.clone()
        }))
    }

    fn revise_in(
        &self,
        cx: &mut Cx<'_>,
        books: &WorkingBooks,
        (book, other): (&mut ContractBook, Option<&mut ContractBook>),
        ChangeCandidate { event: present, revised, .. }: &ChangeCandidate,
        CountedChange { old_key, moved, counted, after }: CountedChange<'_>,
    ) -> UseCaseResult<Option<Placement>> {
        let (organization, now) = (cx.organization, cx.now);
        let listed_on = present.placement.document_ref;
        let may_count = !books.changed.contains(old_key);
        let kept = book.usage().get(old_key);
        if !book.total_suffices(old_key, &kept) && !may_count {
            return Ok(None);
        }
        let total = book_repository::usage_total(cx.tx, organization, book, old_key)?;
        let mut without = total.minus(counted)?;
        // The reduced total may lack values that the line items need.
        if !book.total_suffices(old_key, &without) {
            if !may_count {
                return Ok(None);
            }
            let except = Some(present.event_ref);
            without = cx.tx.recount_usage(organization, &book.contract, &present.period_key(), except)?.total(old_key);
        }
        let change = post::PresentEvent { key: old_key, counted, without, listed_on };
        let ids = &mut cx.ids();
        let before = books.before(book)?;
        let Some(moved) = moved else {
            let period = book.contract.period_of(old_key);
            if let (Some(validations), Some(_), Some(period)) = (&revised.validations, after, period) {
                check_validations(validations, period.terms)?;
            }
            let after = after.map(|after| (old_key, after));
            let document_ref = book.decide_or_restore(before, |book| post::post_usage_change(book, change, after, now, ids))?;
            return Ok(Some(Placement { document_ref, ..present.placement }));
        };
        let counted = after.ok_or(UseCaseError::InvariantViolation("an event that moves and is deleted"))?;
        let target = other.as_deref().unwrap_or(&*book);
        if !target.total_suffices(&moved.key, &target.usage().get(&moved.key)) && books.changed.contains(&moved.key) {
            return Ok(None);
        }
        // The total may not exist yet.
        cx.tx.lock_usage(organization, &[(present.customer_id, moved.key.clone())])?;
        let document_ref = match other {
            Some(other) => {
                book_repository::usage_total(cx.tx, organization, other, &moved.key)?;
                let before_other = books.before(other)?;
                book.decide_or_restore(before, |book| {
                    post::post_usage_change(book, change, None, now, ids)?;
                    other.decide_or_restore(before_other, |other| post::post_usage(other, &moved.key, &[counted], now, ids))
                })?
            }
            None => {
                book_repository::usage_total(cx.tx, organization, book, &moved.key)?;
                book.decide_or_restore(before, |book| {
                    // Another line item of the same period: both totals change in one posting, so that one difference is billed.
                    if moved.key.is_of_same_period(old_key) {
                        return post::post_usage_change(book, change, Some((&moved.key, counted)), now, ids);
                    }
                    post::post_usage_change(book, change, None, now, ids)?;
                    post::post_usage(book, &moved.key, &[counted], now, ids)
                })?
            }
        };
        let (contract_ref, service_period) = (moved.key.contract_ref, moved.service_period);
        Ok(Some(Placement { contract_ref, product_no: moved.key.product_no, service_period, document_ref }))
    }

    /// Writes the decisions and the new revisions of the events.
    fn write(&self, cx: &mut Cx<'_>, books: &mut WorkingBooks, revisions: &[(UsageEvent, UsageEvent)]) -> UseCaseResult<()> {
        let mut decided: Vec<&mut ContractBook> = books.now.values_mut().filter(|book| !book.entries().is_empty()).collect();
        for book in &mut decided {
            issue::schedule_next_run(book, cx.now)?;
        }
        book_repository::write_all(cx, decided)?;
        if revisions.is_empty() { Ok(()) } else { Ok(cx.tx.revise_events(cx.organization, revisions)?) }
    }
}

/// The current names of customers and usage products.
#[derive(Default)]
struct ReferencedNames {
    customers: BTreeMap<CustomerId, Customer>,
    products: BTreeMap<UsageProductRef, OneLine>,
}

impl ReferencedNames {
    /// Rejects updates that name another customer or usage product, because those of an event never change.
    fn require_same_names(&self, update: &EventUpdate, event: &UsageEvent) -> UseCaseResult<()> {
        let mut found = Violations::none();
        let detail = "cannot change: delete the event and report another";
        let customer = || {
            let customer = self.customers.get(&event.customer_id);
            customer.ok_or_else(|| corrupt("an event", &event.event_ref, "has no customer"))
        };
        let (path, same) = match &update.customer {
            None => ("customer_ref", true),
            Some(NamedCustomer::Ref(given)) => ("customer_ref", *given == customer()?.customer_ref),
            Some(NamedCustomer::Name(given)) => ("customer_name", *given == customer()?.profile.name),
        };
        if !same {
            found.add(&[path], "not_changeable", detail);
        }
        let (path, same) = match &update.usage_product {
            None => ("usage_product_ref", true),
            Some(NamedUsageProduct::Ref(given)) => ("usage_product_ref", *given == event.usage_product_ref),
            Some(NamedUsageProduct::Name(given)) => {
                let name = self.products.get(&event.usage_product_ref);
                let name = name.ok_or_else(|| corrupt("an event", &event.event_ref, "has no usage product"))?;
                ("usage_product_name", given == name)
            }
        };
        if !same {
            found.add(&[path], "not_changeable", detail);
        }
        Ok(found.or(())?)
    }
}

/// Records a rejection. Store errors and invariant violations are no rejections: they abort the whole transaction.
fn refuse(outcomes: &mut [DeferrableResult<ChangeOutcome>], index: usize, error: UseCaseError) -> UseCaseResult<()> {
    if matches!(error, UseCaseError::Store(_) | UseCaseError::InvariantViolation(_)) {
        return Err(error);
    }
    outcomes[index] = Some(Err(error));
    Ok(())
}

/// Returns the service period for an event whose timestamp or validations change.
fn target_of(
    ChangeCandidate { event, revised, .. }: &ChangeCandidate,
    contracts: &[Contract],
    entities: &[Arc<Entity>],
) -> UseCaseResult<TargetPeriod> {
    let facts = EventFacts {
        usage_product_ref: &revised.usage_product_ref,
        occurred_at: revised.occurred_at,
        labels: revised.report_data.as_ref(),
        validations: revised.validations.as_ref(),
    };
    // A service date changes only with its timestamp.
    let service_date = (revised.occurred_at == event.occurred_at).then_some(event.service_date);
    let found = match_changed_event(facts, event.first_matched(), service_date, contracts, entities)?;
    Ok(TargetPeriod {
        key: found.usage_key(&revised.usage_product_ref),
        unique_digest: found.unique_digest,
        service_period: found.period.days(),
        service_date: found.service_date,
    })
}

pub(super) fn live_event(tx: &mut dyn Tx, organization: OrganizationId, event_ref: EventRef) -> UseCaseResult<UsageEvent> {
    let event = tx.event(organization, event_ref)?;
    event.filter(|event| !event.deleted).ok_or(UseCaseError::Unknown(ResourceKind::Event))
}
