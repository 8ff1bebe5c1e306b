//! Resolves the customers and usage products of a batch, and filters out duplicates and future timestamps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::event_input::{OnConflict, require_not_future};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::party::Customer;
use billing_domain::refs::{CustomerId, EventRef};
use billing_domain::usage::{EventKeyRecord, KeyConflict, UsageEvent};

use super::ingest::{IngestBatch, IngestItem};
use super::names::NameLookup;
use super::outcome::Duplicate;
use super::progress::{IngestProgress, ResolvedEvent};
use super::read::{EventView, view_events};
use crate::book_repository::corrupt;
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// An event whose customer is known.
struct CustomerEvent<'n> {
    index: usize,
    customer: &'n Arc<Customer>,
}

impl IngestBatch<'_> {
    /// Returns the events that have to be put on documents. Keys are checked before data that may have changed since the
    /// first recording, such as the name of a product.
    pub(super) fn fresh<'n>(
        &self,
        cx: &mut Cx<'_>,
        names: &'n NameLookup,
        progress: &mut IngestProgress<'_>,
    ) -> UseCaseResult<Vec<ResolvedEvent<'n>>> {
        let mut arrived = Vec::with_capacity(self.events.len());
        for (index, IngestItem { event, .. }) in self.events.iter().enumerate() {
            match names.customer_of(event) {
                Ok(customer) => arrived.push(CustomerEvent { index, customer }),
                Err(mut violations) => {
                    if let Err(others) = names.product_of(event) {
                        violations.extend_below(&[], others);
                    }
                    progress.refuse(index, violations.into())?;
                }
            }
        }
        let mut resolved = Vec::with_capacity(arrived.len());
        for CustomerEvent { index, customer } in self.without_repeats(cx, arrived, progress)? {
            let event = self.events[index].event;
            match names.product_of(event).and_then(|product| require_not_future(event.occurred_at, cx.now).map(|()| product)) {
                Ok(product) => resolved.push(ResolvedEvent { index, customer, product }),
                Err(violations) => progress.refuse(index, violations.into())?,
            }
        }
        Ok(resolved)
    }

    /// Returns the events that are not duplicates. Events recorded earlier get their stored responses, and duplicates within
    /// the batch are marked.
    fn without_repeats<'n>(
        &self,
        cx: &mut Cx<'_>,
        arrived: Vec<CustomerEvent<'n>>,
        progress: &mut IngestProgress<'_>,
    ) -> UseCaseResult<Vec<CustomerEvent<'n>>> {
        let key_of = |arrived: &CustomerEvent<'_>| Some((arrived.customer.id, self.events[arrived.index].event.key.clone()?));
        let keys: BTreeSet<(CustomerId, IdempotencyKey)> = arrived.iter().filter_map(key_of).collect();
        if keys.is_empty() {
            return Ok(arrived);
        }
        let mut kept: BTreeMap<(CustomerId, IdempotencyKey), EventKeyRecord> = BTreeMap::new();
        for (customer_id, event) in cx.tx.event_key_records(cx.organization, &Vec::from_iter(keys))? {
            kept.insert((customer_id, event.key.clone()), event);
        }
        let mut changed: Vec<CustomerEvent<'n>> = Vec::new();
        let mut first: BTreeMap<(CustomerId, &IdempotencyKey), usize> = BTreeMap::new();
        // Later events with the key of one that changes a recorded event wait for it.
        let mut changing: BTreeSet<(CustomerId, &IdempotencyKey)> = BTreeSet::new();
        let mut fresh = Vec::with_capacity(arrived.len());
        for arrived in arrived {
            let IngestItem { event, answer, .. } = &self.events[arrived.index];
            let Some(key) = &event.key else {
                fresh.push(arrived);
                continue;
            };
            let of_customer = (arrived.customer.id, key);
            let updates = event.on_conflict == OnConflict::Update;
            if changing.contains(&of_customer) && updates {
                progress.mark_conflict(arrived.index, None);
            } else if let Some(kept) = kept.get(&(arrived.customer.id, key.clone())) {
                if kept.facts != event.facts() {
                    changing.insert(of_customer);
                    changed.push(arrived);
                } else {
                    progress.repeat(arrived.index, kept, answer.form);
                }
            } else if let Some(first) = first.get(&of_customer).copied() {
                let is_same = self.events[first].event.facts() == event.facts();
                if is_same || !updates {
                    progress.mark_duplicate(Duplicate { index: arrived.index, first, is_same });
                } else {
                    changing.insert(of_customer);
                    progress.mark_conflict(arrived.index, None);
                }
            } else {
                first.insert(of_customer, arrived.index);
                fresh.push(arrived);
            }
        }
        self.compare_changed(cx, &kept, changed, progress)?;
        Ok(fresh)
    }

    /// Decides on events whose keys were used for other facts. The same record is a repeat, even if its format was edited since.
    fn compare_changed(
        &self,
        cx: &mut Cx<'_>,
        kept: &BTreeMap<(CustomerId, IdempotencyKey), EventKeyRecord>,
        changed: Vec<CustomerEvent<'_>>,
        progress: &mut IngestProgress<'_>,
    ) -> UseCaseResult<()> {
        let record_of = |changed: &CustomerEvent<'_>| {
            let key = self.events[changed.index].event.key.clone()?;
            kept.get(&(changed.customer.id, key))
        };
        let refs: BTreeSet<EventRef> = changed.iter().filter_map(record_of).map(|kept| kept.event_ref).collect();
        if refs.is_empty() {
            return Ok(());
        }
        let found = recorded_events(cx, &Vec::from_iter(refs))?;
        for changed in changed {
            let IngestItem { event, answer, .. } = &self.events[changed.index];
            let Some(record) = record_of(&changed) else { continue };
            let present = recorded_event(&found, record.event_ref)?;
            let updates = event.on_conflict == OnConflict::Update;
            let is_resent = match (&event.formatted, &present.formatted) {
                (Some(sent), Some(present)) => sent.raw_event == present.raw_event && !updates,
                _ => false,
            };
            if is_resent {
                progress.repeat(changed.index, record, answer.form);
            } else if updates {
                let conflict = KeyConflict { event_ref: record.event_ref, before: record.facts };
                progress.mark_conflict(changed.index, Some(conflict));
            } else {
                progress.refuse(changed.index, UseCaseError::EventChanged(Some(record.event_ref)))?;
            }
        }
        Ok(())
    }

    /// Returns recorded events as they are now, for responses of another form than the stored ones.
    pub(super) fn views_of(&self, cx: &mut Cx<'_>, shown: Vec<(usize, EventRef)>) -> UseCaseResult<Vec<(usize, EventView)>> {
        if shown.is_empty() {
            return Ok(Vec::new());
        }
        let (indices, refs): (Vec<usize>, Vec<EventRef>) = shown.into_iter().unzip();
        let found = recorded_events(cx, &refs)?;
        let event = |event_ref: &EventRef| recorded_event(&found, *event_ref).cloned();
        let events = refs.iter().map(event).collect::<UseCaseResult<Vec<_>>>()?;
        Ok(indices.into_iter().zip(view_events(cx.tx, cx.organization, &[], events)?).collect())
    }
}

/// Loads the events of idempotency keys, also deleted ones.
fn recorded_events(cx: &mut Cx<'_>, refs: &[EventRef]) -> UseCaseResult<BTreeMap<EventRef, UsageEvent>> {
    let found = cx.tx.events_by_refs(cx.organization, refs)?;
    Ok(found.into_iter().map(|event| (event.event_ref, event)).collect())
}

fn recorded_event(found: &BTreeMap<EventRef, UsageEvent>, event_ref: EventRef) -> UseCaseResult<&UsageEvent> {
    found.get(&event_ref).ok_or_else(|| corrupt("an idempotency key", &event_ref, "names no event"))
}
