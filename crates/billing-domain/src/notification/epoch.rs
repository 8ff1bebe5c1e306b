//! Epochs: after the database was restored from a backup, positions continue where no earlier notification had one.
//!
//! A backup lacks the notifications of the time after it. Their positions would be used again, and a client that has seen them
//! would miss the new ones in silence.

use crate::calendar::Timestamp;

/// The distance of the first positions of two epochs whose numbers follow each other. A position in the year 2200 is still
/// below 2^53, so JavaScript represents it exactly.
const POSITIONS: u64 = 1_000_000;
/// A time that few transactions take, in seconds. A transaction can commit later than another one with a later instant.
const TRANSACTION_SECONDS: i64 = 60;

/// The time between two restores of a database: the seconds since 1970 at its start, or 0 before the first restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64);

impl Epoch {
    /// Creates an epoch from its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// Returns the position after which the positions of the epoch begin.
    pub const fn start(self) -> u64 {
        self.0.saturating_mul(POSITIONS)
    }
}

/// A restore of the database, which starts an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restore {
    /// The epoch.
    pub epoch: Epoch,
    /// An instant up to which the restored database has everything.
    pub restored_to: Timestamp,
}

impl Restore {
    /// Returns the next restore. Epochs rise even if the clock was set back, and no position is used twice.
    ///
    /// # Arguments
    /// - `earlier`: the earlier restores
    /// - `last_position`: the highest position of an organization
    /// - `latest`: the latest instant in the restored database
    pub fn next(earlier: &[Self], last_position: u64, latest: Option<Timestamp>, now: Timestamp) -> Self {
        let seconds = u64::try_from(now.as_micros() / 1_000_000).unwrap_or_default();
        let least = current(earlier).number().max(last_position / POSITIONS).saturating_add(1);
        let restored_to = latest.map_or(Timestamp::UNIX_EPOCH, |latest| latest.plus_seconds(-TRANSACTION_SECONDS));
        Self { epoch: Epoch(seconds.max(least)), restored_to }
    }
}

/// Returns the epoch after all these restores.
pub fn current(restores: &[Restore]) -> Epoch {
    restores.iter().map(|restore| restore.epoch).max().unwrap_or_default()
}

/// What a client does whose position is not of this feed: it drops what it has of later instants than `restored_to`, reads
/// what changed since then, and continues after `position`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedRestart {
    /// The last position.
    pub position: u64,
    /// An instant up to which the client knows everything that the database has. It is the beginning of 1970 if the service
    /// does not know such an instant.
    pub restored_to: Timestamp,
}

/// Checks the position after which a client reads. Returns `None` if the feed continues there: at its beginning, or between the
/// start of the current epoch and the last position.
///
/// `last_position` is the highest position that the organization had so far, in any epoch.
pub fn restart(restores: &[Restore], last_position: u64, after: u64) -> Option<FeedRestart> {
    let start = current(restores).start();
    let position = last_position.max(start);
    if after == 0 || (start..=position).contains(&after) {
        return None;
    }
    // The client may have missed several restores. Each of them lost what came after its instant.
    let missed = restores.iter().filter(|restore| restore.epoch.start() > after).map(|restore| restore.restored_to);
    Some(FeedRestart { position, restored_to: missed.min().unwrap_or(Timestamp::UNIX_EPOCH) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("an instant")
    }

    fn restore(epoch: u64, restored_to: &str) -> Restore {
        Restore { epoch: Epoch(epoch), restored_to: at(restored_to) }
    }

    #[test]
    fn an_epoch_is_the_time_of_its_restore_and_later_than_all_positions() {
        let now = at("2026-02-01T02:00:04Z");
        let latest = Some(at("2026-01-31T00:00:00Z"));
        let first = Restore::next(&[], 1_500, latest, now);
        assert_eq!(first, restore(1_769_911_204, "2026-01-30T23:59:00Z"));
        assert_eq!(first.epoch.start(), 1_769_911_204_000_000);
        // The same second, and a clock that was set back.
        for now in [now, at("2020-01-01T00:00:00Z")] {
            assert_eq!(Restore::next(&[first], 1_500, latest, now).epoch, Epoch(1_769_911_205));
        }
        let many = Restore::next(&[first], first.epoch.start() + 7_000_000, latest, now);
        assert_eq!(many.epoch, Epoch(1_769_911_212));
        assert_eq!(Restore::next(&[], 0, None, now).restored_to, at("1970-01-01T00:00:00Z"));
    }

    #[test]
    fn positions_stay_below_those_that_javascript_cannot_represent() {
        let late = Restore::next(&[], 0, None, at("2200-12-31T00:00:00Z"));
        assert!(late.epoch.start() + 1_000_000_000 < 1 << 53);
    }

    #[test]
    fn a_client_continues_at_the_beginning_or_within_the_epoch() {
        let feed = [restore(5, "2026-01-01T00:00:00Z"), restore(9, "2026-03-01T00:00:00Z")];
        for (restores, last, after) in [
            (&[][..], 7, 0),
            (&[], 7, 1),
            (&[], 7, 7),
            (&[], 0, 0),
            (&feed, 7, 0),
            (&feed, 7, 9_000_000),
            (&feed, 9_000_004, 9_000_000),
            (&feed, 9_000_004, 9_000_004),
        ] {
            assert_eq!(restart(restores, last, after), None, "{last} {after}");
        }
    }

    #[test]
    fn a_client_of_another_epoch_goes_back_to_the_earliest_restore_that_it_missed() {
        let feed = [restore(5, "2026-01-01T00:00:00Z"), restore(9, "2025-12-01T00:00:00Z"), restore(12, "2026-03-01T00:00:00Z")];
        let whole = "1970-01-01T00:00:00Z";
        for (restores, last, after, position, restored_to) in [
            (&feed[..1], 7, 7, 5_000_000, "2026-01-01T00:00:00Z"),
            (&feed[..1], 5_000_003, 1, 5_000_003, "2026-01-01T00:00:00Z"),
            // Two of three restores.
            (&feed, 5_000_003, 5_000_003, 12_000_000, "2025-12-01T00:00:00Z"),
            (&feed, 5_000_003, 9_000_003, 12_000_000, "2026-03-01T00:00:00Z"),
            // A position that no restore of this database explains.
            (&[], 7, 8, 7, whole),
            (&[], 0, 1, 0, whole),
            (&feed, 12_000_001, 12_000_002, 12_000_001, whole),
        ] {
            let expected = FeedRestart { position, restored_to: at(restored_to) };
            assert_eq!(restart(restores, last, after), Some(expected), "{last} {after}");
        }
    }
}
