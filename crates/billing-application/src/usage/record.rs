//! Taking usage events: each is put on its document in the transaction that stores it (billing rules 4).
//!
//! One event, a batch and a group of waiting requests are the same code: a slice.

use billing_domain::access::Principal;
use billing_domain::ports::{Access, StoreError, Tx, transact};
use billing_domain::reported::{Neighbours, NewUsageEvent};

use super::read::EventView;
use super::slice::{Lane, Reported, Slice, TakenUsage};
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Makes no answer: for events without a key, which have no repeats.
pub const NO_ANSWER: fn(&EventView) -> String = |_| String::new();

/// Takes events. The outer result is the whole call's: when it is `Ok`, what was taken is durable.
///
/// Events with a key are taken once, whatever contract or product changes later; `answer` makes the answer that repeats
/// get, in the transaction that stores it.
///
/// # Errors
/// [`UseCaseError::Store`] for the call, and [`UseCaseError::EventsRefused`] where [`Neighbours::AllOrNone`] was asked for;
/// for each event what refuses it.
pub fn record_usage(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    neighbours: Neighbours,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<Vec<UseCaseResult<TakenUsage>>> {
    record(services, principal, events, (neighbours, Outcome::Stored), answer)
}

/// Looks at what a slice did, in its transaction.
pub(super) type Look<'l> = dyn FnMut(&mut dyn Tx, &[UseCaseResult<TakenUsage>]) -> UseCaseResult<()> + 'l;

/// What [`record_usage`] would answer; stores nothing. Documents that it would open have no meaning beyond the answer and what
/// `look` sees of them.
pub(super) fn try_usage(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    look: &mut Look<'_>,
) -> UseCaseResult<Vec<UseCaseResult<TakenUsage>>> {
    record(services, principal, events, (Neighbours::Unaffected, Outcome::Undone(look)), &NO_ANSWER)
}

fn record(
    services: &Services,
    principal: &Principal,
    events: &[NewUsageEvent],
    (neighbours, mut outcome): (Neighbours, Outcome<'_, '_>),
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<Vec<UseCaseResult<TakenUsage>>> {
    let organization = allow(principal, UseCase::RecordUsage)?;
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let by = principal.actor();
    let events: Vec<Reported<'_>> = events.iter().map(|event| Reported { event, by, answer }).collect();
    let slice = Slice { services, organization, events: &events, by, now: services.now() };
    let mut work = |tx: &mut dyn Tx, lane| {
        let results: Option<Vec<_>> = slice.take(tx, lane).map_err(Stop::Failed)?.into_iter().collect();
        let results = results.ok_or(Stop::OtherLane)?;
        if neighbours == Neighbours::AllOrNone && results.iter().any(Result::is_err) {
            let refused = results.into_iter().enumerate().filter_map(|(index, result)| Some((index, result.err()?)));
            return Err(Stop::Failed(UseCaseError::EventsRefused(refused.collect())));
        }
        match &mut outcome {
            // With nothing taken there is nothing to commit, and what was only prepared goes too.
            Outcome::Stored if results.iter().any(Result::is_ok) => Ok(results),
            Outcome::Stored => Err(Stop::Undone(results)),
            Outcome::Undone(look) => {
                look(tx, &results).map_err(Stop::Failed)?;
                Err(Stop::Undone(results))
            }
        }
    };
    for lane in [Lane::Drafts, Lane::Any] {
        match transact(&*services.store, Access::Write, |tx| work(tx, lane)) {
            Ok(results) | Err(Stop::Undone(results)) => return Ok(results),
            Err(Stop::Failed(error)) => return Err(error),
            Err(Stop::OtherLane) => {}
        }
    }
    Err(UseCaseError::InvariantViolation("events for which there is no lane"))
}

/// Takes one event.
///
/// # Errors
/// What refuses it, or the store's.
pub fn record_event(
    services: &Services,
    principal: &Principal,
    event: NewUsageEvent,
    answer: &dyn Fn(&EventView) -> String,
) -> UseCaseResult<TakenUsage> {
    let mut results = record_usage(services, principal, &[event], Neighbours::Unaffected, answer)?;
    results.pop().unwrap_or(Err(UseCaseError::InvariantViolation("an event without an outcome")))
}

/// What becomes of what was taken.
enum Outcome<'o, 'l> {
    Stored,
    /// Once it was looked at.
    Undone(&'o mut Look<'l>),
}

/// Why the transaction of a slice isn't committed.
enum Stop {
    OtherLane,
    Undone(Vec<UseCaseResult<TakenUsage>>),
    Failed(UseCaseError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}
