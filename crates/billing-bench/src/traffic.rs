//! Which events are sent: spread evenly, as in life, or all on one document. Each is a new one.

use acceptance::catalog::API_CALLS;
use acceptance::random::Random;
use acceptance::when::{self, Day};
use hyper::Method;

use crate::load::{Outgoing, as_f64};
use crate::stage::BATCH;

/// The customer who has everything that is hot.
pub(crate) const HOT: u64 = 0;

/// The reference of a customer.
pub(crate) fn customer(number: u64) -> String {
    format!("c-{number}")
}

/// An event as it is sent.
pub(crate) fn event(timestamp: &str, customer: u64) -> String {
    event_of(timestamp, customer, "1.25")
}

fn event_of(timestamp: &str, customer: u64, quantity: &str) -> String {
    format!(
        "{{\"timestamp\":\"{timestamp}\",\"customer_ref\":\"c-{customer}\",\
         \"usage_product_ref\":\"{API_CALLS}\",\"quantity\":{quantity}}}"
    )
}

/// How events are spread over contracts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spread {
    /// All alike.
    Uniform,
    /// The n-th has 1/n of what the first has.
    Zipf,
    /// The first alone.
    Hot,
}

/// Chooses customers.
#[derive(Clone, Debug)]
pub(crate) struct Customers {
    random: Random,
    spread: Spread,
    many: u64,
    /// The share of the first so many, of Zipf's.
    shares: Vec<f64>,
}

/// Draws of a share: more than customers have.
const DRAWS: u64 = 1 << 40;

impl Customers {
    /// Of so many; the seed tells one run of choices from another.
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

    /// The next.
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

/// Single events that happen now.
pub(crate) fn singles(mut customers: Customers) -> impl FnMut() -> Option<Outgoing> {
    move || Some(Outgoing::post(EVENTS, event(&when::now(), customers.next())))
}

/// The same, each with a key that nobody has used.
pub(crate) fn keyed(mut customers: Customers, run: u64) -> impl FnMut() -> Option<Outgoing> {
    let process = std::process::id();
    let mut sent = 0_u64;
    move || {
        sent += 1;
        let key = format!("{process}-{run}-{sent}");
        Some(Outgoing { key: Some(key), ..Outgoing::post(EVENTS, event(&when::now(), customers.next())) })
    }
}

/// Events that are refused for a field: authenticated and parsed, and nothing is stored.
pub(crate) fn refused(mut customers: Customers) -> impl FnMut() -> Option<Outgoing> {
    move || Some(Outgoing::post(EVENTS, event_of(&when::now(), customers.next(), "-1.25")))
}

/// Events of the period before the current one, which is issued.
pub(crate) fn late(mut customers: Customers) -> impl FnMut() -> Option<Outgoing> {
    let over = Day::today().plus_days(-20).noon();
    move || Some(Outgoing::post(EVENTS, event(&over, customers.next())))
}

/// Batches over so many contracts, one after the other.
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

/// Batches of the usual size.
pub(crate) fn usual_batches(contracts: u64, many: u64) -> impl FnMut() -> Option<Outgoing> {
    batches(contracts, many, BATCH)
}

/// Changes of the quantity of events, each to another than it has.
pub(crate) fn edits(events: Vec<String>) -> impl FnMut() -> Option<Outgoing> {
    let mut sent = 0;
    move || {
        let event_ref = events.get(sent % events.len().max(1))?;
        sent += 1;
        let body = format!("{{\"event_ref\":\"{event_ref}\",\"quantity\":{}.5}}", 2 + sent);
        Some(Outgoing::post("/api/usage/event/update", body))
    }
}

/// Deletions of events.
pub(crate) fn deletes(events: Vec<String>) -> impl FnMut() -> Option<Outgoing> {
    let mut events = events.into_iter();
    move || {
        let path = format!("{EVENTS}/{}", events.next()?);
        Some(Outgoing { method: Method::DELETE, ..Outgoing::get(&path) })
    }
}
