//! The events of a load. They are spread evenly, spread as in practice, or all on one document. Every event is new.

use acceptance::catalog::API_CALLS;
use acceptance::random::Random;
use acceptance::when::{self, Day};
use hyper::Method;

use crate::load::{Outgoing, as_f64};
use crate::stage::BATCH;

/// The customer that receives all events of a load on one document.
pub(crate) const HOT: u64 = 0;

/// Returns the reference of a customer.
pub(crate) fn customer(number: u64) -> String {
    format!("c-{number}")
}

/// Returns an event as JSON.
pub(crate) fn event(timestamp: &str, customer: u64) -> String {
    event_of(timestamp, customer, "1.25")
}

fn event_of(timestamp: &str, customer: u64, quantity: &str) -> String {
    format!(
        "{{\"timestamp\":\"{timestamp}\",\"customer_ref\":\"c-{customer}\",\
         \"usage_product_ref\":\"{API_CALLS}\",\"quantity\":{quantity}}}"
    )
}

/// The distribution of events over contracts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spread {
    /// The same probability for all contracts.
    Uniform,
    /// The n-th contract gets 1/n of the events of the first contract.
    Zipf,
    /// All events on the first contract.
    Hot,
}

/// A random choice of customers.
#[derive(Clone, Debug)]
pub(crate) struct Customers {
    random: Random,
    spread: Spread,
    many: u64,
    /// The cumulative shares of the first customers, for [`Spread::Zipf`].
    shares: Vec<f64>,
}

/// Number of possible values of a random share. The number of customers is smaller.
const DRAWS: u64 = 1 << 40;

impl Customers {
    /// Creates a choice among `many` customers. The seed distinguishes one sequence of choices from another.
    pub(crate) fn new(spread: Spread, many: u64, seed: u64) -> Self {
        let mut shares = Vec::new();
        if matches!(spread, Spread::Zipf) {
            let mut sum = 0.0;
            for rank in 1..=many {
                sum += 1.0 / as_f64(rank);
                shares.push(sum);
            }
            shares.iter_mut().for_each(|share| *share /= sum);
        }
        Self { random: Random::new(seed), spread, many, shares }
    }

    /// Returns the next customer.
    pub(crate) fn next(&mut self) -> u64 {
        match self.spread {
            Spread::Uniform => self.random.below(self.many),
            Spread::Hot => HOT,
            Spread::Zipf => {
                let drawn = as_f64(self.random.below(DRAWS)) / as_f64(DRAWS);
                self.shares.partition_point(|share| *share <= drawn).min(self.shares.len().saturating_sub(1)) as u64
            }
        }
    }
}

/// The path of single events.
pub(crate) const EVENTS: &str = "/api/usage/event";

/// Returns requests for single events at the current time.
pub(crate) fn singles(mut customers: Customers) -> impl FnMut() -> Option<Outgoing> {
    move || Some(Outgoing::post(EVENTS, event(&when::now(), customers.next())))
}

/// Returns requests for single events at the current time, each with a new idempotency key.
pub(crate) fn keyed(mut customers: Customers, run: u64) -> impl FnMut() -> Option<Outgoing> {
    let process = std::process::id();
    let mut sent = 0_u64;
    move || {
        sent += 1;
        let key = format!("{process}-{run}-{sent}");
        Some(Outgoing { key: Some(key), ..Outgoing::post(EVENTS, event(&when::now(), customers.next())) })
    }
}

/// Returns requests for events with an invalid field. The server authenticates and parses them, rejects them and stores nothing.
pub(crate) fn refused(mut customers: Customers) -> impl FnMut() -> Option<Outgoing> {
    move || Some(Outgoing::post(EVENTS, event_of(&when::now(), customers.next(), "-1.25")))
}

/// Returns requests for events of the previous period, which is already issued.
pub(crate) fn late(mut customers: Customers) -> impl FnMut() -> Option<Outgoing> {
    let over = Day::today().plus_days(-20).noon();
    move || Some(Outgoing::post(EVENTS, event(&over, customers.next())))
}

/// Returns batches that each cover `contracts` contracts, one contract after the other.
pub(crate) fn batches(contracts: u64, many: u64, events: u64) -> impl FnMut() -> Option<Outgoing> {
    let mut first = 0;
    move || {
        let now = when::now();
        let of = |n: u64| event(&now, if contracts == 1 { HOT } else { (first + n % contracts) % many });
        let events_sent: Vec<String> = (0..events).map(of).collect();
        first = (first + contracts) % many;
        let body = format!("{{\"events\":[{}]}}", events_sent.join(","));
        Some(Outgoing { worth: events, ..Outgoing::post("/api/usage/event/batch", body) })
    }
}

/// Returns batches of the usual size.
pub(crate) fn usual_batches(contracts: u64, many: u64) -> impl FnMut() -> Option<Outgoing> {
    batches(contracts, many, BATCH)
}

/// Returns changes of the quantity of events. Each new quantity differs from the current quantity.
pub(crate) fn edits(events: Vec<String>) -> impl FnMut() -> Option<Outgoing> {
    let mut sent = 0;
    move || {
        let event_ref = events.get(sent % events.len().max(1))?;
        sent += 1;
        let body = format!("{{\"event_ref\":\"{event_ref}\",\"quantity\":{}.5}}", 2 + sent);
        Some(Outgoing::post("/api/usage/event/update", body))
    }
}

/// Returns deletions of events.
pub(crate) fn deletes(events: Vec<String>) -> impl FnMut() -> Option<Outgoing> {
    let mut events = events.into_iter();
    move || {
        let path = format!("{EVENTS}/{}", events.next()?);
        Some(Outgoing { method: Method::DELETE, ..Outgoing::get(&path) })
    }
}
