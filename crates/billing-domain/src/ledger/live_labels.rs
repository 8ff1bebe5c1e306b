//! The texts of the labels that `UNIQUE` counts, while events of running totals are added and removed (billing rules 6).

use std::collections::BTreeMap;

use crate::labels::LabelDigest;
use crate::usage::{CountedEvent, UsageKey};

/// How many events of running totals have each text of a label. Absent numbers are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveLabels(BTreeMap<UsageKey, BTreeMap<LabelDigest, u64>>);

impl LiveLabels {
    /// Sets the number of events of a running total that have a text. It may be too low if it stays above zero.
    pub fn put(&mut self, key: &UsageKey, digest: LabelDigest, events: u64) {
        *self.events(key, digest) = events;
    }

    /// Adds an event to a running total. Returns it with the information whether it is the first event with its text.
    #[must_use]
    pub fn add(&mut self, key: &UsageKey, digest: Option<LabelDigest>, event: CountedEvent) -> CountedEvent {
        let is_distinct = digest.map(|digest| {
            let events = self.events(key, digest);
            *events = events.saturating_add(1);
            *events == 1
        });
        CountedEvent { is_distinct, ..event }
    }

    /// Removes an event from a running total. Returns it with the information whether it was the last event with its text.
    #[must_use]
    pub fn remove(&mut self, key: &UsageKey, digest: Option<LabelDigest>, event: CountedEvent) -> CountedEvent {
        let is_distinct = digest.map(|digest| {
            let events = self.events(key, digest);
            *events = events.saturating_sub(1);
            *events == 0
        });
        CountedEvent { is_distinct, ..event }
    }

    fn events(&mut self, key: &UsageKey, digest: LabelDigest) -> &mut u64 {
        self.0.entry(key.clone()).or_default().entry(digest).or_default()
    }
}
