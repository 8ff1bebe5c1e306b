//! What a writer has done, for whoever watches it.

use std::time::Duration;

/// The upper bounds of [`GroupFigures::sizes`].
const SIZES: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 1_000, 10_000];
/// The upper bounds of times, in microseconds.
const TIMES: &[u64] = &[250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

/// What a writer has done since it was started, and what waits for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterFigures {
    /// Groups of events.
    pub events: GroupFigures,
    /// Groups of changes of events.
    pub changes: GroupFigures,
    /// Transactions of one request, by as many events as it counts.
    pub whole: GroupFigures,
    /// What waits now.
    pub waiting: Load,
    /// Requests that were turned away, because too much was waiting.
    pub turned_away: u64,
    /// Requests whose time was up before they were begun.
    pub expired: u64,
}

/// What waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Single events.
    pub events: usize,
    /// Changes of events.
    pub changes: usize,
    /// Batches.
    pub batches: usize,
    /// About the bytes that they take.
    pub bytes: usize,
}

/// Groups that were committed, of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFigures {
    /// By how many were written in them.
    pub sizes: Distribution,
    /// By the time from the beginning of their transaction until it was durable, in microseconds.
    pub writing: Distribution,
    /// By the part of it that the commit took, in microseconds.
    pub committing: Distribution,
}

impl Default for GroupFigures {
    fn default() -> Self {
        Self { sizes: Distribution::new(SIZES), writing: Distribution::new(TIMES), committing: Distribution::new(TIMES) }
    }
}

impl GroupFigures {
    pub(super) fn note(&mut self, size: usize, times: Times) {
        self.sizes.note(u64::try_from(size).unwrap_or(u64::MAX));
        self.writing.note(micros(times.writing));
        if let Some(committing) = times.committing {
            self.committing.note(micros(committing));
        }
    }
}

/// How long a transaction took, and its commit, where that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) writing: Duration,
    pub(super) committing: Option<Duration>,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// How often values were how large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    bounds: &'static [u64],
    /// One more than there are bounds.
    counts: Vec<u64>,
    sum: u64,
    largest: u64,
}

impl Distribution {
    fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0, largest: 0 }
    }

    fn note(&mut self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        self.counts[place] += 1;
        self.sum = self.sum.saturating_add(value);
        self.largest = self.largest.max(value);
    }

    /// How many values there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Their sum.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest.
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// How many values were above the bound before and not above each bound; without those above all.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bounds.iter().copied().zip(self.counts.iter().copied())
    }

    /// How many were above all bounds.
    pub fn above_all(&self) -> u64 {
        self.counts.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_under_the_first_bound_that_it_is_not_above() {
        let mut sizes = Distribution::new(&[1, 2, 4]);
        for value in [0, 1, 2, 3, 4, 5, 100] {
            sizes.note(value);
        }
        assert_eq!(sizes.buckets().collect::<Vec<_>>(), [(1, 2), (2, 1), (4, 2)]);
        assert_eq!((sizes.above_all(), sizes.count(), sizes.sum(), sizes.largest()), (2, 7, 115, 100));
    }
}
