//! Requests that bring events: what becomes of a batch, and what of a request is kept so that its repeats are known.

use billing_domain::access::Principal;
use billing_domain::event_input::{NamedCustomer, NewUsageEvent, UsageBatch};
use billing_domain::idempotency::{IdempotentResponse, StoredResponse};

use super::ingest::IngestOutcome;
use super::read::EventView;
use super::record::record_usage;
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::{IdempotentRequest, prepare_and_execute_once};

/// The most events taken in one transaction where nothing asks for all in one: enough that each costs little, few enough that
/// nobody waits long for what it holds.
pub const EVENTS_PER_TRANSACTION: usize = 1_000;

/// What became of a batch.
#[derive(Debug, Default)]
pub struct BatchOutcome {
    /// What became of events, in their order: of all of them, unless something stopped the batch.
    pub results: Vec<UseCaseResult<IngestOutcome>>,
    /// Why the events without a result weren't taken. Those with one are as it says: to go on is to send the others.
    pub stopped_by: Option<UseCaseError>,
}

/// Takes a batch that is all or none, or comes under a key, in one transaction: an answer that is kept says what is stored, and
/// nothing else is. Any other is the [writer](super::UsageWriter)'s.
///
/// # Errors
/// As [`record_usage`], and [`execute_once`](crate::idempotency::execute_once) under a key.
pub fn record_batch(
    services: &Services<'_>,
    principal: &Principal,
    request: Option<&IdempotentRequest>,
    batch: &UsageBatch,
    answer: &dyn Fn(&EventView) -> String,
    render: impl Fn(BatchOutcome) -> StoredResponse,
) -> UseCaseResult<IdempotentResponse> {
    let take = |services: &Services<'_>, principal: &Principal, (): &()| {
        let results = record_usage(services, principal, &batch.events, batch.neighbours, answer)?;
        Ok(BatchOutcome { results, stopped_by: None })
    };
    prepare_and_execute_once(services, principal, request, |_, _| Ok(()), take, |taken| Ok(render(taken)))
}

/// Whether the repeats of an event are known by its key alone, which it keeps for ever, wherever it may come in again. One that
/// names its customer is a request to be known again, too: the name may be another customer's by then.
pub const fn is_known_by_its_key(event: &NewUsageEvent) -> bool {
    matches!(event.customer, NamedCustomer::Ref(_))
}
