//! Requests that bring events: what becomes of a batch, and what of a request is kept so that its repeats are known.

use billing_domain::access::Principal;
use billing_domain::idempotency::{KeptAnswer, Reply};
use billing_domain::reported::{NamedCustomer, NewUsageEvent, UsageBatch};

use super::read::EventView;
use super::record::record_usage;
use super::slice::TakenUsage;
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::{KeyedRequest, carry_out};

/// The most events taken in one transaction where nothing asks for all in one: enough that each costs little, few enough that
/// nobody waits long for what it holds.
pub const EVENTS_PER_TRANSACTION: usize = 1_000;

/// What became of a batch.
#[derive(Debug, Default)]
pub struct TakenBatch {
    /// What became of events, in their order: of all of them, unless something stopped the batch.
    pub results: Vec<UseCaseResult<TakenUsage>>,
    /// Why the events without a result weren't taken. Those with one are as it says: to go on is to send the others.
    pub stopped_by: Option<UseCaseError>,
}

/// Takes a batch that is all or none, or comes under a key, in one transaction: an answer that is kept says what is stored, and
/// nothing else is. Any other is the [writer](super::UsageWriter)'s.
///
/// # Errors
/// As [`record_usage`], and [`once`](crate::idempotency::once) under a key.
pub fn record_batch(
    services: &Services<'_>,
    principal: &Principal,
    request: Option<&KeyedRequest>,
    batch: &UsageBatch,
    answer: &dyn Fn(&EventView) -> String,
    render: impl Fn(TakenBatch) -> KeptAnswer,
) -> UseCaseResult<Reply> {
    let take = |services: &Services<'_>, principal: &Principal, (): &()| {
        let results = record_usage(services, principal, &batch.events, batch.neighbours, answer)?;
        Ok(TakenBatch { results, stopped_by: None })
    };
    carry_out(services, principal, request, |_, _| Ok(()), take, |taken| Ok(render(taken)))
}

/// Whether the repeats of an event are known by its key alone, which it keeps for ever, wherever it may come in again. One that
/// names its customer is a request to be known again, too: the name may be another customer's by then.
pub const fn is_known_by_its_key(event: &NewUsageEvent) -> bool {
    matches!(event.customer, NamedCustomer::Ref(_))
}
