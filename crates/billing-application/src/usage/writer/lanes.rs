//! The lanes of the usage writer on a distributed store: one for each shard, so that all customers of a group are in one shard.
//! A thread takes the lane of its node that has waited longest, with everything that waits in it.
//!
//! Requests whose customers are not known yet wait until a thread looks all of them up with one statement.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use billing_domain::event_input::{NamedCustomer, NewUsageEvent};
use billing_domain::ports::{Shard, Store};
use billing_domain::refs::{CustomerRef, OrganizationId};

use super::fair_queue::{FairQueue, Group};
use super::figures::Load;
use super::queued::{Batch, QueuedBatch, QueuedRequest, ReplyCallback, Work};
use crate::error::{UseCaseError, UseCaseResult};
use crate::usage::batch::BatchOutcome;
use crate::usage::outcome::IngestOutcome;

/// The lanes, by shard. There are none on a store that is not distributed.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// Requests whose customers have to be looked up.
    unsorted: Vec<QueuedRequest>,
}

#[derive(Default)]
struct Lane {
    turns: FairQueue,
    /// Since when the oldest request waits.
    since: Option<Instant>,
    /// Whether a thread writes a group of this lane.
    is_busy: bool,
}

impl Lanes {
    pub(super) fn new(shards: usize) -> Self {
        let mut lanes = Vec::new();
        lanes.resize_with(shards, Lane::default);
        Self { lanes, unsorted: Vec::new() }
    }

    /// Returns whether requests have lanes.
    pub(super) fn are_used(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.unsorted.is_empty() && self.lanes.iter().all(|lane| lane.turns.is_empty())
    }

    /// Returns the load of all lanes.
    pub(super) fn load(&self) -> Load {
        let mut load = Load::default();
        for lane in &self.lanes {
            load.add(lane.turns.load());
        }
        for request in &self.unsorted {
            load.add(request.load());
        }
        load
    }

    /// Adds a request to the lane of its shard.
    pub(super) fn push(&mut self, shard: Shard, request: QueuedRequest, now: Instant) {
        if let Some(lane) = self.lanes.get_mut(shard.0) {
            lane.since.get_or_insert(now);
            lane.turns.push(request, now);
        }
    }

    /// Adds a request whose customers have to be looked up.
    pub(super) fn push_unsorted(&mut self, request: QueuedRequest) {
        self.unsorted.push(request);
    }

    /// Adds the rest of a batch of a lane.
    pub(super) fn push_rest(&mut self, shard: Shard, batch: Batch, now: Instant) {
        if let Some(lane) = self.lanes.get_mut(shard.0) {
            lane.since.get_or_insert(now);
            lane.turns.push_rest(batch);
        }
    }

    /// Returns the requests whose customers have to be looked up.
    pub(super) fn take_unsorted(&mut self) -> Vec<QueuedRequest> {
        mem::take(&mut self.unsorted)
    }

    /// Returns the group of the lane that has waited longest among those that a thread may take.
    pub(super) fn next_group(&mut self, may_take: impl Fn(Shard) -> bool, now: Instant) -> Option<(Shard, Group)> {
        let waiting = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.is_busy && !lane.turns.is_empty());
        let oldest = waiting.filter(|(index, _)| may_take(Shard(*index))).min_by_key(|(_, lane)| lane.since)?.0;
        let lane = self.lanes.get_mut(oldest)?;
        let group = lane.turns.next_group(now);
        lane.since = (!lane.turns.is_empty()).then_some(now);
        lane.is_busy = true;
        Some((Shard(oldest), group))
    }

    /// Records that a thread has written its group of a lane.
    pub(super) fn release(&mut self, shard: Shard) {
        if let Some(lane) = self.lanes.get_mut(shard.0) {
            lane.is_busy = false;
        }
    }
}

/// Returns the shard of a request that names one customer whose shard is known.
pub(super) fn known_shard(store: &dyn Store, request: &QueuedRequest) -> Option<Shard> {
    match &request.work {
        Work::Event(event) => store.known_shard(request.requester.organization(), reference(&event.event)?),
        Work::Batch(_) | Work::Change(_) | Work::Whole(_) => None,
    }
}

/// Returns whether the lane of a request depends on its customers.
pub(super) fn has_lane(request: &QueuedRequest) -> bool {
    match &request.work {
        Work::Event(event) => reference(&event.event).is_some(),
        Work::Batch(_) => true,
        Work::Change(_) | Work::Whole(_) => false,
    }
}

fn reference(event: &NewUsageEvent) -> Option<&CustomerRef> {
    match &event.customer {
        NamedCustomer::Ref(customer) => Some(customer),
        NamedCustomer::Name(_) => None,
    }
}

/// Looks up the customers of requests, and returns each request with its shard. A batch becomes a request for each shard. Requests
/// of unknown customers, and of all if the look-up fails, have no shard.
pub(super) fn sort(store: &dyn Store, requests: Vec<QueuedRequest>) -> Vec<(Option<Shard>, QueuedRequest)> {
    let mut wanted: BTreeMap<OrganizationId, BTreeSet<CustomerRef>> = BTreeMap::new();
    for request in &requests {
        let of_organization = wanted.entry(request.requester.organization()).or_default();
        match &request.work {
            Work::Event(event) => of_organization.extend(reference(&event.event).cloned()),
            Work::Batch(batch) => of_organization.extend(batch.events.iter().filter_map(reference).cloned()),
            Work::Change(_) | Work::Whole(_) => {}
        }
    }
    let mut shards: BTreeMap<(OrganizationId, CustomerRef), Shard> = BTreeMap::new();
    for (organization, customers) in wanted {
        let customers = Vec::from_iter(customers);
        match store.shards_of(organization, &customers) {
            Ok(found) => {
                let known = customers.into_iter().zip(found).filter_map(|(customer, shard)| Some((customer, shard?)));
                shards.extend(known.map(|(customer, shard)| ((organization, customer), shard)));
            }
            Err(error) => tracing::warn!(%error, "customers could not be looked up"),
        }
    }
    let mut sorted = Vec::with_capacity(requests.len());
    for request in requests {
        let organization = request.requester.organization();
        let shard_of = |event: &NewUsageEvent| shards.get(&(organization, reference(event)?.clone())).copied();
        let QueuedRequest { requester, until, work } = request;
        match work {
            Work::Event(event) => {
                sorted.push((shard_of(&event.event), QueuedRequest { requester, until, work: Work::Event(event) }))
            }
            Work::Batch(batch) => {
                let with = |(shard, work)| (shard, QueuedRequest { requester: requester.clone(), until, work });
                sorted.extend(split(batch, shard_of).into_iter().map(with));
            }
            work @ (Work::Change(_) | Work::Whole(_)) => sorted.push((None, QueuedRequest { requester, until, work })),
        }
    }
    sorted
}

/// Cuts a batch by shard. The order of each customer's events does not change.
fn split(batch: QueuedBatch, shard_of: impl Fn(&NewUsageEvent) -> Option<Shard>) -> Vec<(Option<Shard>, Work)> {
    let QueuedBatch { events, answer, goes_on, reply } = batch;
    let mut parts: BTreeMap<Option<Shard>, (Vec<usize>, Vec<NewUsageEvent>)> = BTreeMap::new();
    let many = events.len();
    let are_repeatable = events.iter().all(|event| event.key.is_some());
    for (index, event) in events.into_iter().enumerate() {
        let (places, events) = parts.entry(shard_of(&event)).or_default();
        places.push(index);
        events.push(event);
    }
    let mut results = Vec::new();
    results.resize_with(many, || None);
    let whole =
        Arc::new(SplitBatch { state: Mutex::new(SplitState { results, stopped_by: None, reply: Some(reply) }), are_repeatable });
    let part = |(shard, (places, events)): (Option<Shard>, (Vec<usize>, Vec<NewUsageEvent>))| {
        let whole = Arc::clone(&whole);
        let reply: ReplyCallback<BatchOutcome> = Box::new(move |_, outcome| whole.note(&places, outcome));
        (shard, Work::Batch(QueuedBatch { events, answer, goes_on, reply }))
    };
    parts.into_iter().map(part).collect()
}

/// A batch whose parts are in several lanes. It replies when the last part has replied or is dropped.
struct SplitBatch {
    state: Mutex<SplitState>,
    /// Whether the sender may repeat events that are recorded, because all have keys.
    are_repeatable: bool,
}

struct SplitState {
    results: Vec<Option<UseCaseResult<IngestOutcome>>>,
    stopped_by: Option<UseCaseError>,
    reply: Option<ReplyCallback<BatchOutcome>>,
}

impl SplitBatch {
    /// Records the results of a part.
    fn note(&self, places: &[usize], outcome: UseCaseResult<BatchOutcome>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let BatchOutcome { results, stopped_by } =
            outcome.unwrap_or_else(|error| BatchOutcome { results: Vec::new(), stopped_by: Some(error) });
        for (place, result) in places.iter().zip(results) {
            if let Some(noted) = state.results.get_mut(*place) {
                *noted = Some(result);
            }
        }
        if state.stopped_by.is_none() {
            state.stopped_by = stopped_by;
        }
    }
}

impl Drop for SplitBatch {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(reply) = state.reply.take() else { return };
        let (results, stopped_by) = (mem::take(&mut state.results), state.stopped_by.take());
        let recorded = results.iter().filter(|result| result.is_some()).count();
        if recorded == 0 && stopped_by.is_none() {
            // All parts expired, which the sender notices.
            return;
        }
        reply(None, merged(results, stopped_by, self.are_repeatable));
    }
}

/// Returns the outcome of a batch from the results of its events. If a part stopped, a batch of events with keys ends before the
/// first event without a result, because the sender can repeat the rest. Of other batches, each event without a result has an error.
fn merged(
    results: Vec<Option<UseCaseResult<IngestOutcome>>>,
    stopped_by: Option<UseCaseError>,
    are_repeatable: bool,
) -> UseCaseResult<BatchOutcome> {
    if results.iter().all(Option::is_some) {
        return Ok(BatchOutcome { results: results.into_iter().flatten().collect(), stopped_by });
    }
    let error = stopped_by.unwrap_or(UseCaseError::Overloaded);
    if results.iter().all(Option::is_none) {
        return Err(error);
    }
    if are_repeatable {
        let results: Vec<_> = results.into_iter().map_while(|result| result).collect();
        return if results.is_empty() { Err(error) } else { Ok(BatchOutcome { results, stopped_by: Some(error) }) };
    }
    let results = results.into_iter().map(|result| result.unwrap_or_else(|| Err(error.for_another()))).collect();
    Ok(BatchOutcome { results, stopped_by: None })
}
