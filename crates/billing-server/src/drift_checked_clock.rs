//! Checks the plausibility of the machine's clock. If the clock is set forward by mistake, billing issues documents too
//! early, which cannot be undone.
//!
//! At the start, the clock is compared with the latest instant in the database. After that, it is compared with the
//! monotonic clock.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use billing_domain::calendar::Timestamp;

/// The maximum accepted step of the clock. Synchronized clocks are slewed, not stepped.
const MAX_STEP: Duration = Duration::from_secs(5 * 60);
/// The longest time that the clock may be ahead of the latest instant in the database at the start. A server that was off
/// for longer waits.
const MAX_AHEAD: Duration = Duration::from_secs(24 * 60 * 60);
/// The time that a stepped clock must run steadily until it is trusted.
const BELIEVED_AFTER: Duration = Duration::from_secs(10 * 60);

/// The system clock, compared with the monotonic clock.
#[derive(Debug)]
pub(crate) struct DriftCheckedClock {
    start: Instant,
    /// The trusted times at the start, in microseconds since 1970. `None` if nothing is known about them.
    trusted: Option<RangeInclusive<i64>>,
    /// The latest instant in the database, until the clock is trusted.
    latest: Option<Timestamp>,
    /// The time at the start according to a clock that is not trusted, and the instant at which it was first seen.
    put: Option<(i64, Instant)>,
}

impl DriftCheckedClock {
    /// Creates a clock that trusts the current time.
    pub(crate) fn new(now: Timestamp, at: Instant) -> Self {
        Self { start: at, trusted: Some(around(now.as_micros())), latest: None, put: None }
    }

    /// Creates a clock that trusts a time that follows the latest instant in the database: up to one day later, or up to five
    /// minutes earlier.
    pub(crate) fn compared_with(latest: Timestamp, at: Instant) -> Self {
        let from = latest.as_micros().saturating_sub(micros(MAX_STEP));
        let to = latest.as_micros().saturating_add(micros(MAX_AHEAD));
        Self { start: at, trusted: Some(from..=to), latest: Some(latest), put: None }
    }

    /// Creates a clock that trusts no time at first.
    pub(crate) const fn untrusted(at: Instant) -> Self {
        Self { start: at, trusted: None, latest: None, put: None }
    }

    /// Returns whether the current time is trusted. After a step, the clock must first run steadily for long enough. A
    /// clock that was set back correctly is trusted at once.
    pub(crate) fn is_believed(&mut self, now: Timestamp, at: Instant) -> bool {
        let origin = now.as_micros().saturating_sub(micros(at.saturating_duration_since(self.start)));
        let is_believed = match self.put {
            _ if self.trusted.as_ref().is_some_and(|trusted| trusted.contains(&origin)) => true,
            Some((put, since)) if around(put).contains(&origin) => at.saturating_duration_since(since) >= BELIEVED_AFTER,
            _ => {
                self.warn(now, origin);
                self.put = Some((origin, at));
                false
            }
        };
        if is_believed {
            (self.trusted, self.latest, self.put) = (Some(around(origin)), None, None);
        }
        is_believed
    }

    fn warn(&self, now: Timestamp, origin: i64) {
        match (&self.trusted, self.latest) {
            (_, Some(latest)) => tracing::warn!(
                clock = %now,
                latest_recorded = %latest,
                "the clock is more than a day ahead of the latest instant in the database, or behind it: the server bills \
                 nothing until the clock has run steadily for ten minutes; correct the clock if it is wrong"
            ),
            (Some(trusted), None) => {
                // Without an instant of the database, the trusted times lie around one time.
                let before = trusted.start().saturating_add(micros(MAX_STEP));
                let step = Duration::from_micros(origin.abs_diff(before));
                let way = if origin > before { "forward" } else { "back" };
                tracing::warn!(
                    clock = %now,
                    ?step,
                    way,
                    "the clock was set: the server bills nothing until the clock has run steadily for ten minutes"
                );
            }
            (None, None) => tracing::warn!(
                clock = %now,
                "the clock cannot be compared with the database: the server bills nothing until the clock has run steadily for \
                 ten minutes"
            ),
        }
    }
}

/// Returns the times that differ from another one by the maximum step or less.
fn around(other: i64) -> RangeInclusive<i64> {
    other.saturating_sub(micros(MAX_STEP))..=other.saturating_add(micros(MAX_STEP))
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60;
    const DAY: i64 = 24 * 60 * MINUTE;
    const NOON: i64 = 1_800_000_000_000_000;

    /// Returns whether a clock is trusted at each check: the seconds elapsed, and the total step of the clock by then.
    fn believed(looks: &[(i64, i64)]) -> Vec<bool> {
        let at = Instant::now();
        believed_by(DriftCheckedClock::new(shows(0), at), at, looks)
    }

    /// Returns the same for a clock that was started at an instant and shows noon then.
    fn believed_by(mut clock: DriftCheckedClock, at: Instant, looks: &[(i64, i64)]) -> Vec<bool> {
        let look = |(gone, put): &(i64, i64)| {
            let later = at + Duration::from_secs(u64::try_from(*gone).expect("later"));
            clock.is_believed(shows(gone + put), later)
        };
        looks.iter().map(look).collect()
    }

    /// Returns the instant that is some seconds after noon.
    fn shows(seconds: i64) -> Timestamp {
        Timestamp::from_micros(NOON + seconds * 1_000_000).expect("a time")
    }

    #[test]
    fn a_clock_that_goes_is_believed_and_small_steps_add_up() {
        assert_eq!(believed(&[(1, 0), (60, 4 * MINUTE), (120, 8 * MINUTE), (180, 4 * MINUTE)]), [true; 4]);
    }

    #[test]
    fn one_that_was_put_is_not_until_it_has_gone_on_for_long_enough() {
        for put in [45 * DAY, -DAY, 6 * MINUTE] {
            let looks = [(60, put), (120, put), (659, put), (660, put), (720, put)];
            assert_eq!(believed(&looks), [false, false, false, true, true], "{put}");
        }
    }

    #[test]
    fn one_that_was_put_right_is_believed_at_once_and_one_that_is_put_again_waits_again() {
        assert_eq!(believed(&[(60, 45 * DAY), (64, 0), (70, 0)]), [false, true, true]);
        assert_eq!(believed(&[(60, DAY), (600, 2 * DAY), (700, 2 * DAY), (1300, 2 * DAY)]), [false, false, false, true]);
    }

    #[test]
    fn a_clock_that_follows_the_database_is_trusted_at_the_start() {
        for latest in [0, -MINUTE, -DAY, 5 * MINUTE] {
            let at = Instant::now();
            let clock = DriftCheckedClock::compared_with(shows(latest), at);
            assert_eq!(believed_by(clock, at, &[(0, 0), (60, 0)]), [true; 2], "{latest}");
        }
    }

    #[test]
    fn a_clock_far_from_the_database_is_trusted_after_it_has_run_steadily() {
        for latest in [-DAY - 1, -45 * DAY, 5 * MINUTE + 1, 45 * DAY] {
            let at = Instant::now();
            let clock = DriftCheckedClock::compared_with(shows(latest), at);
            let looks = [(0, 0), (60, 0), (599, 0), (600, 0), (660, 0)];
            assert_eq!(believed_by(clock, at, &looks), [false, false, false, true, true], "{latest}");
        }
    }

    #[test]
    fn a_clock_that_is_corrected_after_the_start_is_trusted_at_once() {
        let at = Instant::now();
        // At the start, the clock shows 45 days too much. It is corrected after a minute.
        let clock = DriftCheckedClock::compared_with(shows(-45 * DAY), at);
        assert_eq!(believed_by(clock, at, &[(0, 0), (60, -45 * DAY), (120, -45 * DAY)]), [false, true, true]);
        // Once it is trusted, a step within the day after the latest instant is a step.
        let clock = DriftCheckedClock::compared_with(shows(0), at);
        assert_eq!(believed_by(clock, at, &[(0, 0), (60, DAY / 2), (659, DAY / 2), (660, DAY / 2)]), [true, false, false, true]);
    }

    #[test]
    fn a_clock_without_a_comparison_is_trusted_after_it_has_run_steadily() {
        let at = Instant::now();
        assert_eq!(believed_by(DriftCheckedClock::untrusted(at), at, &[(0, 0), (599, 0), (600, 0)]), [false, false, true]);
    }
}
