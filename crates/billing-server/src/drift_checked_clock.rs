//! Checks the plausibility of the machine's clock. If the clock is set forward by mistake, billing issues documents too
//! early, which cannot be undone.

use std::time::{Duration, Instant};

use billing_domain::calendar::Timestamp;

/// The maximum accepted step of the clock. Synchronized clocks are slewed, not stepped.
const MAX_STEP: Duration = Duration::from_secs(5 * 60);
/// The time that a stepped clock must run steadily until it is trusted.
const BELIEVED_AFTER: Duration = Duration::from_secs(10 * 60);

/// The system clock, compared with the monotonic clock.
#[derive(Debug)]
pub(crate) struct DriftCheckedClock {
    start: Instant,
    /// The trusted time at the start, in microseconds since 1970.
    origin: i64,
    /// The time at the start according to a stepped clock, and the instant of the step.
    put: Option<(i64, Instant)>,
}

impl DriftCheckedClock {
    /// Creates a clock that trusts the current time.
    pub(crate) fn new(now: Timestamp, at: Instant) -> Self {
        Self { start: at, origin: now.as_micros(), put: None }
    }

    /// Returns whether the current time is trusted. After a step, the clock must first run steadily for long enough. A
    /// clock that was set back correctly is trusted at once.
    pub(crate) fn is_believed(&mut self, now: Timestamp, at: Instant) -> bool {
        let gone = i64::try_from(at.saturating_duration_since(self.start).as_micros()).unwrap_or(i64::MAX);
        let origin = now.as_micros().saturating_sub(gone);
        let is_near = |other: i64| u128::from(origin.abs_diff(other)) <= MAX_STEP.as_micros();
        let is_believed = match self.put {
            _ if is_near(self.origin) => true,
            Some((put, since)) if is_near(put) => at.saturating_duration_since(since) >= BELIEVED_AFTER,
            _ => {
                let step = Duration::from_micros(origin.abs_diff(self.origin));
                let way = if origin > self.origin { "forward" } else { "back" };
                tracing::warn!(
                    ?step,
                    way,
                    "the clock was put: nothing is billed by the server until it has gone on for ten minutes"
                );
                self.put = Some((origin, at));
                false
            }
        };
        if is_believed {
            (self.origin, self.put) = (origin, None);
        }
        is_believed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60;
    const DAY: i64 = 24 * 60 * MINUTE;

    /// Returns whether a clock is trusted at each check: the seconds elapsed, and the total step of the clock by then.
    fn believed(looks: &[(i64, i64)]) -> Vec<bool> {
        let (noon, at) = (1_800_000_000_000_000, Instant::now());
        let shows = |seconds: i64| Timestamp::from_micros(noon + seconds * 1_000_000).expect("a time");
        let mut clock = DriftCheckedClock::new(shows(0), at);
        let look = |(gone, put): &(i64, i64)| {
            let later = at + Duration::from_secs(u64::try_from(*gone).expect("later"));
            clock.is_believed(shows(gone + put), later)
        };
        looks.iter().map(look).collect()
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
}
