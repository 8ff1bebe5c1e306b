//! Figures about the work of a usage writer, for monitoring.

use std::time::Duration;

/// The upper bounds of [`GroupFigures::sizes`].
const SIZES: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 1_000, 10_000];
/// The upper bounds of times, in microseconds.
const TIMES: &[u64] = &[250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000];

/// The work of a writer since its start, and its current load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterFigures {
    /// Groups of events.
    pub events: GroupFigures,
    /// Groups of changes.
    pub changes: GroupFigures,
    /// Transactions of one request, sized by the number of events as which it counts.
    pub whole: GroupFigures,
    /// The current load of the queue.
    pub waiting: Load,
    /// The number of requests rejected because the queue was full.
    pub turned_away: u64,
    /// The number of requests that expired before their work started.
    pub expired: u64,
}

/// The load of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The number of single events.
    pub events: usize,
    /// The number of changes.
    pub changes: usize,
    /// The number of batches.
    pub batches: usize,
    /// The number of transactions of their own.
    pub transactions: usize,
    /// The approximate memory of all requests, in bytes.
    pub bytes: usize,
}

/// The committed groups of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFigures {
    /// The numbers of items per group.
    pub sizes: Distribution,
    /// The times from the start of the transaction until it was durable, in microseconds.
    pub writing: Distribution,
    /// The times of the commits alone, in microseconds.
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

/// The duration of a transaction, and of its commit if known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) writing: Duration,
    pub(super) committing: Option<Duration>,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A histogram of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    bounds: &'static [u64],
    /// One more element than `bounds`, for values above all bounds.
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

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the values.
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the largest value.
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns each upper bound with the number of values in its bucket. Omits values above all bounds.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.bounds.iter().copied().zip(self.counts.iter().copied())
    }

    /// Returns the number of values above all bounds.
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
