//! Rate limits of log-in attempts: per address, and per principal after too many failures.
//!
//! A principal under attack is slowed down and never locked out. Its attempts are counted per address, so that attempts
//! from elsewhere do not block the owner.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::settings::LogInLimits;

type Limiter<K, C> = RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;
/// Hash of a principal's name with a random key, so that attempted names are not stored.
type Name = u64;

/// Placeholder key for attempts from all addresses.
const ANYWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
const MINUTE: Duration = Duration::from_secs(60);
const SHORTEST: Duration = Duration::from_millis(1);
/// Number of attempts between two cleanups of expired entries.
const ATTEMPTS_PER_CLEANING: u32 = 1024;
/// Maximum number of principals with counted failures. Beyond this number only the limit per address applies.
const MAX_PRINCIPALS: usize = 200_000;

/// The rate limiters of one server.
pub(crate) struct Throttle<C: Clock = DefaultClock> {
    clock: C,
    names: RandomState,
    by_address: Limiter<IpAddr, C>,
    failures: Limiter<Name, C>,
    turns: Limiter<(Name, IpAddr), C>,
    slow_until: Mutex<HashMap<Name, C::Instant>>,
    attempts: AtomicU32,
}

impl Throttle {
    pub(crate) fn new(limits: &LogInLimits) -> Self {
        Self::with_clock(limits, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Throttle<C> {
    fn with_clock(limits: &LogInLimits, clock: C) -> Self {
        let failures = at_least_one(limits.failures);
        let per_address = at_least_one(limits.attempts_per_address_per_minute);
        // The last failure of the limit finds the bucket empty.
        let before_last = at_least_one(failures.get() - 1);
        Self {
            names: RandomState::new(),
            by_address: limiter(quota(MINUTE / per_address.get(), per_address), &clock),
            failures: limiter(quota(limits.failure_window / failures.get(), before_last), &clock),
            turns: limiter(quota(limits.slow_interval, NonZeroU32::MIN), &clock),
            slow_until: Mutex::default(),
            attempts: AtomicU32::new(0),
            clock,
        }
    }

    /// Checks whether an attempt is allowed now; the error is the time to wait.
    pub(crate) fn attempt(&self, address: IpAddr, principal: &str) -> Result<(), Duration> {
        self.clean();
        let now = self.clock.now();
        self.by_address.check_key(&address).map_err(|wait| wait.wait_time_from(now))?;
        let name = self.names.hash_one(principal);
        if self.slow_until().get(&name).is_none_or(|until| *until <= now) {
            return Ok(());
        }
        self.turns.check_key(&(name, address)).map_err(|wait| wait.wait_time_from(now))
    }

    /// Checks whether an attempt is allowed now, with one limit across all addresses after too many failures.
    pub(crate) fn attempt_from_anywhere(&self, principal: &str) -> Result<(), Duration> {
        let now = self.clock.now();
        let name = self.names.hash_one(principal);
        if self.slow_until().get(&name).is_none_or(|until| *until <= now) {
            return Ok(());
        }
        self.turns.check_key(&(name, ANYWHERE)).map_err(|wait| wait.wait_time_from(now))
    }

    /// Counts a failed attempt.
    pub(crate) fn failed(&self, principal: &str) {
        if self.failures.len() >= MAX_PRINCIPALS {
            return;
        }
        let name = self.names.hash_one(principal);
        if let Err(wait) = self.failures.check_key(&name) {
            self.slow_until().insert(name, wait.earliest_possible());
        }
    }

    fn slow_until(&self) -> std::sync::MutexGuard<'_, HashMap<Name, C::Instant>> {
        // Entries are inserted and removed whole, so a panic elsewhere leaves the map consistent.
        self.slow_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clean(&self) {
        if self.attempts.fetch_add(1, Ordering::Relaxed) % ATTEMPTS_PER_CLEANING != ATTEMPTS_PER_CLEANING - 1 {
            return;
        }
        let now = self.clock.now();
        self.by_address.retain_recent();
        self.failures.retain_recent();
        self.turns.retain_recent();
        self.slow_until().retain(|_, until| *until > now);
    }
}

fn limiter<K: std::hash::Hash + Eq + Clone, C: Clock + Clone>(quota: Quota, clock: &C) -> Limiter<K, C> {
    RateLimiter::new(quota, DefaultKeyedStateStore::default(), clock.clone())
}

fn quota(interval: Duration, burst: NonZeroU32) -> Quota {
    Quota::with_period(interval.max(SHORTEST)).unwrap_or(Quota::per_second(NonZeroU32::MIN)).allow_burst(burst)
}

fn at_least_one(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    const HOME: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));

    fn throttle() -> (Throttle<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Throttle::with_clock(&LogInLimits::default(), clock.clone()), clock)
    }

    fn fail(throttle: &Throttle<FakeRelativeClock>, times: u32) {
        for n in 0..times {
            assert_eq!(throttle.attempt(ELSEWHERE, "owner"), Ok(()), "failure {n}");
            throttle.failed("owner");
        }
    }

    #[test]
    fn after_ten_failures_a_principal_gets_one_attempt_every_three_seconds() {
        let (throttle, clock) = throttle();
        fail(&throttle, 10);
        assert_eq!(throttle.attempt(ELSEWHERE, "owner"), Ok(()), "the first turn");
        let wait = throttle.attempt(ELSEWHERE, "owner").expect_err("no turn yet");
        assert!(wait > Duration::from_secs(2) && wait <= Duration::from_secs(3), "{wait:?}");
        clock.advance(wait);
        assert_eq!(throttle.attempt(ELSEWHERE, "owner"), Ok(()));
        assert_eq!(throttle.attempt(ELSEWHERE, "somebody else"), Ok(()));
    }

    #[test]
    fn guessing_from_elsewhere_does_not_take_the_owners_turns() {
        let (throttle, _) = throttle();
        fail(&throttle, 10);
        assert_eq!(throttle.attempt(ELSEWHERE, "owner"), Ok(()));
        assert!(throttle.attempt(ELSEWHERE, "owner").is_err());
        assert_eq!(throttle.attempt(HOME, "owner"), Ok(()));
    }

    #[test]
    fn codes_get_one_turn_for_all_addresses_once_too_many_have_failed() {
        let (throttle, clock) = throttle();
        for _ in 0..10 {
            assert_eq!(throttle.attempt_from_anywhere("code of owner"), Ok(()));
            throttle.failed("code of owner");
        }
        assert_eq!(throttle.attempt_from_anywhere("code of owner"), Ok(()), "the first turn");
        let wait = throttle.attempt_from_anywhere("code of owner").expect_err("no turn yet");
        assert!(wait <= Duration::from_secs(3), "{wait:?}");
        assert_eq!(throttle.attempt_from_anywhere("code of another"), Ok(()));
        clock.advance(wait);
        assert_eq!(throttle.attempt_from_anywhere("code of owner"), Ok(()));
    }

    #[test]
    fn a_slowed_down_principal_recovers_when_nobody_fails() {
        let (throttle, clock) = throttle();
        fail(&throttle, 10);
        clock.advance(Duration::from_secs(15 * 60));
        fail(&throttle, 9);
        for _ in 0..5 {
            assert_eq!(throttle.attempt(ELSEWHERE, "owner"), Ok(()));
        }
    }

    #[test]
    fn successes_are_not_counted_against_a_principal() {
        let (throttle, _) = throttle();
        for _ in 0..50 {
            assert_eq!(throttle.attempt(HOME, "busy software"), Ok(()));
        }
    }

    #[test]
    fn an_address_gets_100_attempts_a_minute_for_all_accounts() {
        let (throttle, clock) = throttle();
        for n in 0..100 {
            assert_eq!(throttle.attempt(HOME, &n.to_string()), Ok(()));
        }
        let wait = throttle.attempt(HOME, "another").expect_err("too many");
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(throttle.attempt(ELSEWHERE, "another"), Ok(()));
        clock.advance(Duration::from_secs(60));
        assert_eq!(throttle.attempt(HOME, "another"), Ok(()));
    }

    #[test]
    fn what_counts_no_more_is_forgotten() {
        let (throttle, clock) = throttle();
        for n in 0..ATTEMPTS_PER_CLEANING {
            let address = IpAddr::from(n.to_be_bytes());
            assert_eq!(throttle.attempt(address, "many"), Ok(()));
            throttle.failed(&n.to_string());
            clock.advance(Duration::from_secs(1));
        }
        assert!(throttle.by_address.len() < 10, "{}", throttle.by_address.len());
        assert!(throttle.failures.len() < 200, "{}", throttle.failures.len());
    }

    #[test]
    fn limits_of_zero_count_as_one() {
        let limits = LogInLimits {
            failures: 0,
            failure_window: Duration::ZERO,
            slow_interval: Duration::ZERO,
            attempts_per_address_per_minute: 0,
            ..LogInLimits::default()
        };
        let throttle = Throttle::with_clock(&limits, FakeRelativeClock::default());
        assert_eq!(throttle.attempt(HOME, "owner"), Ok(()));
        assert!(throttle.attempt(HOME, "owner").is_err());
    }
}
