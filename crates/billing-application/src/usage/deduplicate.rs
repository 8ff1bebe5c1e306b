//! Resolves the customers and usage products of a batch, and filters out duplicates and future timestamps.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::event_input::require_not_future;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::party::Customer;
use billing_domain::refs::CustomerId;
use billing_domain::usage::EventKeyRecord;

use super::ingest::{IngestBatch, IngestItem, IngestProgress, ResolvedEvent};
use super::names::NameLookup;
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};

/// An event whose customer is known.
struct CustomerEvent<'n> {
    index: usize,
    customer: &'n Customer,
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
        let key_of = |arrived: &CustomerEvent<'_>| {
            let sent = self.events[arrived.index].event.sent.as_ref()?;
            Some((arrived.customer.id, sent.key.clone()))
        };
        let keys: BTreeSet<(CustomerId, IdempotencyKey)> = arrived.iter().filter_map(key_of).collect();
        if keys.is_empty() {
            return Ok(arrived);
        }
        let mut kept: BTreeMap<(CustomerId, IdempotencyKey), EventKeyRecord> = BTreeMap::new();
        for (customer_id, event) in cx.tx.event_key_records(cx.organization, &Vec::from_iter(keys))? {
            kept.insert((customer_id, event.key.clone()), event);
        }
        let mut first: BTreeMap<(CustomerId, &IdempotencyKey), usize> = BTreeMap::new();
        let mut fresh = Vec::with_capacity(arrived.len());
        for arrived in arrived {
            let Some(sent) = &self.events[arrived.index].event.sent else {
                fresh.push(arrived);
                continue;
            };
            let customer_id = arrived.customer.id;
            if let Some(kept) = kept.get(&(customer_id, sent.key.clone())) {
                if kept.body == sent.body.digest() {
                    progress.repeat(arrived.index, kept.answer.clone());
                } else {
                    progress.refuse(arrived.index, UseCaseError::IdempotencyKeyReuse)?;
                }
                continue;
            }
            match first.get(&(customer_id, &sent.key)) {
                None => {
                    first.insert((customer_id, &sent.key), arrived.index);
                    fresh.push(arrived);
                }
                Some(first) if self.events[*first].event.sent.as_ref() == Some(sent) => {
                    progress.mark_duplicate(arrived.index, *first)
                }
                Some(_) => progress.refuse(arrived.index, UseCaseError::IdempotencyKeyReuse)?,
            }
        }
        Ok(fresh)
    }
}
