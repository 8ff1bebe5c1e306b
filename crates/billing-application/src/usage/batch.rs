//! Requests that bring events: how a batch is split into transactions, and what of a request is kept so that its repeats are
//! known.

use billing_domain::access::Principal;
use billing_domain::idempotency::{KeptAnswer, Reply};
use billing_domain::reported::{NamedCustomer, Neighbours, NewUsageEvent, UsageBatch};

use super::read::EventView;
use super::record::{record_event, record_usage};
use super::slice::TakenUsage;
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::{KeyedRequest, carry_out};

/// Events taken in one transaction where nothing asks for all in one: enough that each costs little, few enough that nobody
/// waits long for what it holds.
pub const EVENTS_PER_TRANSACTION: usize = 1_000;

/// What became of a batch.
#[derive(Debug, Default)]
pub struct TakenBatch {
    /// What became of events, in their order: of all of them, unless something stopped the batch.
    pub results: Vec<UseCaseResult<TakenUsage>>,
    /// Why the events without a result weren't taken. Those with one are as it says: to go on is to send the others.
    pub stopped_by: Option<UseCaseError>,
}

/// Takes a batch, [`EVENTS_PER_TRANSACTION`] in a transaction. What is all or none, or comes under a key, is taken in one:
/// an answer that is kept says what is stored, and nothing else is.
///
/// # Errors
/// As [`record_usage`] for the first transaction, and [`once`](crate::idempotency::once) under a key.
pub fn record_batch(
    services: &Services<'_>,
    principal: &Principal,
    request: Option<&KeyedRequest>,
    batch: &UsageBatch,
    answer: &dyn Fn(&EventView) -> String,
    render: impl Fn(TakenBatch) -> KeptAnswer,
) -> UseCaseResult<Reply> {
    let in_one = request.is_some() || batch.neighbours == Neighbours::AllOrNone;
    let per_transaction = if in_one { batch.events.len().max(1) } else { EVENTS_PER_TRANSACTION };
    let take = |services: &Services<'_>, principal: &Principal, (): &()| {
        let mut taken = TakenBatch::default();
        for events in batch.events.chunks(per_transaction) {
            match record_usage(services, principal, events, batch.neighbours, answer) {
                Ok(results) => taken.results.extend(results),
                Err(error) if taken.results.is_empty() => return Err(error),
                // What came before is stored, and the caller has to know.
                Err(error) => return Ok(TakenBatch { stopped_by: Some(error), ..taken }),
            }
        }
        Ok(taken)
    };
    carry_out(services, principal, request, |_, _| Ok(()), take, |taken| Ok(render(taken)))
}

/// Whether the repeats of an event are known by its key alone, which it keeps for ever, wherever it may come in again. One that
/// names its customer is a request to be known again, too: the name may be another customer's by then.
pub const fn is_known_by_its_key(event: &NewUsageEvent) -> bool {
    matches!(event.customer, NamedCustomer::Ref(_))
}

/// Takes an event whose request is to be known again, because the event [isn't by its key alone](is_known_by_its_key).
///
/// # Errors
/// As [`record_event`], and [`once`](crate::idempotency::once) under a key.
pub fn record_alone(
    services: &Services<'_>,
    principal: &Principal,
    request: Option<&KeyedRequest>,
    event: &NewUsageEvent,
    answer: &dyn Fn(&EventView) -> String,
    render: impl Fn(TakenUsage) -> KeptAnswer,
) -> UseCaseResult<Reply> {
    let take = |services: &Services<'_>, principal: &Principal, (): &()| record_event(services, principal, event.clone(), answer);
    carry_out(services, principal, request, |_, _| Ok(()), take, |taken| Ok(render(taken)))
}
