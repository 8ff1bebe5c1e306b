//! Rate limits of log-in attempts: per address, and per principal after too many failures.
//!
//! A principal under attack is slowed down and never locked out. Its attempts are counted per address, so that attempts
//! from elsewhere do not block the owner. At an address from which the principal logged in before, only the failures at
//! that address count.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};

use crate::settings::LogInLimits;

type Limiter<K, C> = RateLimiter<K, DefaultKeyedStateStore<K>, C, NoOpMiddleware<<C as Clock>::Instant>>;
/// Hash with a random key of a principal's name, or of a name and an address, so that attempted names are not stored.
type Digest = u64;

const MINUTE: Duration = Duration::from_secs(60);
const SHORTEST: Duration = Duration::from_millis(1);
/// Number of attempts between two cleanups of expired entries.
const ATTEMPTS_PER_CLEANING: u32 = 1024;
/// Maximum number of principals with counted failures. Beyond this number only the limit per address applies.
const MAX_PRINCIPALS: usize = 200_000;
/// Maximum number of principals with known addresses. Beyond this number, those of the principal whose first log-in was the
/// longest ago are forgotten.
const MAX_KNOWN_PRINCIPALS: usize = 50_000;

/// The principal and the address of an attempt, and how it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    address: IpAddr,
    name: Digest,
    /// The principal together with the address.
    pair: Digest,
    /// The entry that counts the failures: the principal, or the principal at a known address.
    failures: Digest,
    is_known: bool,
}

impl Source {
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Returns the hash of the principal's name.
    pub(crate) const fn name(&self) -> u64 {
        self.name
    }

    /// Returns whether the principal has logged in from the address before, or has a session.
    pub(crate) const fn is_known(&self) -> bool {
        self.is_known
    }
}

/// A limit that an attempt exceeds, with the time to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExceededLimit {
    /// The limit of all unknown principals of an address together.
    Address(Duration),
    /// A limit of one principal at one address.
    Principal(Duration),
}

impl ExceededLimit {
    pub(crate) const fn wait(self) -> Duration {
        match self {
            Self::Address(wait) | Self::Principal(wait) => wait,
        }
    }
}

/// The addresses from which principals logged in.
#[derive(Default)]
struct KnownAddresses {
    /// The pairs of each principal with its addresses, from the longest ago log-in to the latest.
    pairs: HashMap<Digest, VecDeque<Digest>>,
    /// The principals in the order of their first log-ins.
    principals: VecDeque<Digest>,
}

impl KnownAddresses {
    fn contains(&self, name: Digest, pair: Digest) -> bool {
        self.pairs.get(&name).is_some_and(|pairs| pairs.contains(&pair))
    }

    /// Adds the address of a log-in. Returns whether it is new.
    fn insert(&mut self, name: Digest, pair: Digest) -> bool {
        if !self.pairs.contains_key(&name) {
            self.principals.push_back(name);
            while self.principals.len() > MAX_KNOWN_PRINCIPALS {
                let Some(first) = self.principals.pop_front() else { break };
                self.pairs.remove(&first);
            }
        }
        let pairs = self.pairs.entry(name).or_default();
        let before = pairs.len();
        pairs.retain(|known| *known != pair);
        let is_new = pairs.len() == before;
        if pairs.len() >= billing_domain::access::KnownAddresses::MAX {
            pairs.pop_front();
        }
        pairs.push_back(pair);
        is_new
    }
}

/// The rate limiters of one server.
pub(crate) struct Throttle<C: Clock = DefaultClock> {
    clock: C,
    hasher: RandomState,
    known: Mutex<KnownAddresses>,
    by_address: Limiter<IpAddr, C>,
    /// Limits the attempts of each principal at a known address, beside the attempts of others from the same address.
    by_known_pair: Limiter<Digest, C>,
    /// Limits how often each address causes a look-up in the database.
    look_ups: Limiter<IpAddr, C>,
    failures: Limiter<Digest, C>,
    turns: Limiter<Digest, C>,
    slow_until: Mutex<HashMap<Digest, C::Instant>>,
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
        let attempts = quota(MINUTE / per_address.get(), per_address);
        // The last failure of the limit finds the bucket empty.
        let before_last = at_least_one(failures.get() - 1);
        Self {
            hasher: RandomState::new(),
            known: Mutex::default(),
            by_address: limiter(attempts, &clock),
            by_known_pair: limiter(attempts, &clock),
            look_ups: limiter(attempts, &clock),
            failures: limiter(quota(limits.failure_window / failures.get(), before_last), &clock),
            turns: limiter(quota(limits.slow_interval, NonZeroU32::MIN), &clock),
            slow_until: Mutex::default(),
            attempts: AtomicU32::new(0),
            clock,
        }
    }

    /// Returns the source of a log-in attempt.
    pub(crate) fn source(&self, address: IpAddr, principal: &str) -> Source {
        let (name, pair) = self.digests(address, principal);
        let is_known = self.known().contains(name, pair);
        Source { address, name, pair, failures: if is_known { pair } else { name }, is_known }
    }

    /// Returns whether the principal may be known at the address without this server's knowledge. The limit per address applies.
    pub(crate) fn needs_look_up(&self, source: Source) -> bool {
        !source.is_known && self.look_ups.check_key(&source.address).is_ok()
    }

    /// Remembers an address that the database knows. Returns the source of the attempt from this known address.
    pub(crate) fn recognize(&self, source: Source) -> Source {
        self.known().insert(source.name, source.pair);
        Source { failures: source.pair, is_known: true, ..source }
    }

    /// Returns the source of an attempt within a session. Only holders of the principal's sessions cause its failures, so
    /// the failures at all addresses count together.
    pub(crate) fn session_source(&self, address: IpAddr, principal: &str) -> Source {
        let (name, pair) = self.digests(address, principal);
        Source { address, name, pair, failures: name, is_known: true }
    }

    /// Checks whether an attempt is allowed now, and counts it.
    pub(crate) fn attempt(&self, source: Source) -> Result<(), ExceededLimit> {
        self.clean();
        let now = self.clock.now();
        if source.is_known {
            let allowed = self.by_known_pair.check_key(&source.pair);
            allowed.map_err(|wait| ExceededLimit::Principal(wait.wait_time_from(now)))?;
        } else {
            let allowed = self.by_address.check_key(&source.address);
            allowed.map_err(|wait| ExceededLimit::Address(wait.wait_time_from(now)))?;
        }
        if self.slow_until().get(&source.failures).is_none_or(|until| *until <= now) {
            return Ok(());
        }
        self.turns.check_key(&source.pair).map_err(|wait| ExceededLimit::Principal(wait.wait_time_from(now)))
    }

    /// Counts a failed attempt.
    pub(crate) fn failed(&self, source: Source) {
        if self.failures.len() >= MAX_PRINCIPALS {
            return;
        }
        if let Err(wait) = self.failures.check_key(&source.failures) {
            self.slow_until().insert(source.failures, wait.earliest_possible());
        }
    }

    /// Remembers the address of a successful log-in.
    pub(crate) fn succeeded(&self, source: Source) {
        let is_new = self.known().insert(source.name, source.pair);
        if is_new {
            // This log-in was counted among the attempts of the address, and counts among those of the pair too. It is over,
            // so no limit applies to it.
            self.by_known_pair.check_key(&source.pair).ok();
        }
    }

    /// Returns the digests of the principal's name, and of the name together with the address.
    fn digests(&self, address: IpAddr, principal: &str) -> (Digest, Digest) {
        (self.hasher.hash_one(principal), self.hasher.hash_one((principal, address)))
    }

    fn known(&self) -> MutexGuard<'_, KnownAddresses> {
        // No code within the lock can panic, so the entries are consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slow_until(&self) -> MutexGuard<'_, HashMap<Digest, C::Instant>> {
        // Entries are inserted and removed whole, so a panic elsewhere leaves the map consistent.
        self.slow_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clean(&self) {
        if self.attempts.fetch_add(1, Ordering::Relaxed) % ATTEMPTS_PER_CLEANING != ATTEMPTS_PER_CLEANING - 1 {
            return;
        }
        let now = self.clock.now();
        self.by_address.retain_recent();
        self.by_known_pair.retain_recent();
        self.look_ups.retain_recent();
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

    type TestThrottle = Throttle<FakeRelativeClock>;

    fn throttle() -> (TestThrottle, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Throttle::with_clock(&LogInLimits::default(), clock.clone()), clock)
    }

    fn attempt(throttle: &TestThrottle, address: IpAddr, principal: &str) -> Result<(), Duration> {
        throttle.attempt(throttle.source(address, principal)).map_err(ExceededLimit::wait)
    }

    fn fail_at(throttle: &TestThrottle, address: IpAddr, times: u32) {
        for n in 0..times {
            let source = throttle.source(address, "owner");
            assert_eq!(throttle.attempt(source), Ok(()), "failure {n}");
            throttle.failed(source);
        }
    }

    fn fail(throttle: &TestThrottle, times: u32) {
        fail_at(throttle, ELSEWHERE, times);
    }

    fn log_in(throttle: &TestThrottle, address: IpAddr, principal: &str) {
        let source = throttle.source(address, principal);
        assert_eq!(throttle.attempt(source), Ok(()), "a log-in");
        throttle.succeeded(source);
    }

    #[test]
    fn after_ten_failures_a_principal_gets_one_attempt_every_three_seconds() {
        let (throttle, clock) = throttle();
        fail(&throttle, 10);
        assert_eq!(attempt(&throttle, ELSEWHERE, "owner"), Ok(()), "the first turn");
        let wait = attempt(&throttle, ELSEWHERE, "owner").expect_err("no turn yet");
        assert!(wait > Duration::from_secs(2) && wait <= Duration::from_secs(3), "{wait:?}");
        clock.advance(wait);
        assert_eq!(attempt(&throttle, ELSEWHERE, "owner"), Ok(()));
        assert_eq!(attempt(&throttle, ELSEWHERE, "somebody else"), Ok(()));
    }

    #[test]
    fn guessing_from_elsewhere_does_not_take_the_owners_turns() {
        let (throttle, _) = throttle();
        fail(&throttle, 10);
        assert_eq!(attempt(&throttle, ELSEWHERE, "owner"), Ok(()));
        assert!(attempt(&throttle, ELSEWHERE, "owner").is_err());
        assert_eq!(attempt(&throttle, HOME, "owner"), Ok(()));
    }

    #[test]
    fn failures_from_elsewhere_do_not_slow_down_a_known_address() {
        let (throttle, _) = throttle();
        log_in(&throttle, HOME, "owner");
        fail(&throttle, 10);
        for _ in 0..20 {
            assert_eq!(attempt(&throttle, HOME, "owner"), Ok(()));
        }
        assert_eq!(attempt(&throttle, ELSEWHERE, "owner"), Ok(()), "the first turn");
        assert!(attempt(&throttle, ELSEWHERE, "owner").is_err(), "an unknown address is slowed down");
        assert!(!throttle.source(HOME, "somebody else").is_known(), "an address is known for one principal only");
    }

    #[test]
    fn an_address_that_the_database_knows_is_known_and_look_ups_are_limited_per_address() {
        let (throttle, _) = throttle();
        fail(&throttle, 10);
        let source = throttle.source(HOME, "owner");
        assert!(throttle.needs_look_up(source));
        let recognized = throttle.recognize(source);
        assert!(recognized.is_known() && !throttle.needs_look_up(recognized));
        assert_eq!(throttle.source(HOME, "owner"), recognized);
        for _ in 0..20 {
            assert_eq!(attempt(&throttle, HOME, "owner"), Ok(()), "failures from elsewhere do not count");
        }
        let look_ups = (0..1_000).filter(|_| throttle.needs_look_up(throttle.source(ELSEWHERE, "owner"))).count();
        assert_eq!(look_ups, 100, "as many as the attempts of one address");
    }

    #[test]
    fn failures_at_a_known_address_slow_down_this_address_alone() {
        let (throttle, _) = throttle();
        log_in(&throttle, HOME, "owner");
        fail_at(&throttle, HOME, 10);
        assert_eq!(attempt(&throttle, HOME, "owner"), Ok(()), "the first turn");
        let exceeded = throttle.attempt(throttle.source(HOME, "owner"));
        assert!(matches!(exceeded, Err(ExceededLimit::Principal(_))), "{exceeded:?}");
        for _ in 0..5 {
            assert_eq!(attempt(&throttle, ELSEWHERE, "owner"), Ok(()));
        }
    }

    #[test]
    fn strangers_do_not_use_up_the_attempts_of_who_is_known_at_their_address() {
        let (throttle, _) = throttle();
        log_in(&throttle, HOME, "owner");
        while attempt(&throttle, HOME, "a stranger").is_ok() {}
        let exceeded = throttle.attempt(throttle.source(HOME, "a stranger"));
        assert!(matches!(exceeded, Err(ExceededLimit::Address(_))), "{exceeded:?}");
        // The log-in that made the address known is one of the hundred.
        for _ in 0..99 {
            assert_eq!(attempt(&throttle, HOME, "owner"), Ok(()));
        }
        let exceeded = throttle.attempt(throttle.source(HOME, "owner"));
        assert!(matches!(exceeded, Err(ExceededLimit::Principal(_))), "{exceeded:?}");
    }

    #[test]
    fn failures_in_sessions_count_together_at_all_addresses() {
        let (throttle, _) = throttle();
        for n in 0..10_u8 {
            let source = throttle.session_source(IpAddr::from([192, 0, 2, n]), "own owner");
            assert_eq!(throttle.attempt(source), Ok(()));
            throttle.failed(source);
        }
        let source = throttle.session_source(HOME, "own owner");
        assert!(source.is_known());
        assert_eq!(throttle.attempt(source), Ok(()), "the first turn");
        assert!(throttle.attempt(source).is_err());
    }

    #[test]
    fn known_addresses_are_bounded_and_those_of_the_longest_ago_log_ins_are_forgotten() {
        let mut known = KnownAddresses::default();
        let last = u64::try_from(billing_domain::access::KnownAddresses::MAX).expect("a small number");
        for pair in 0..last {
            assert!(known.insert(7, pair));
        }
        assert!(!known.insert(7, 0), "known already");
        assert!(known.insert(7, last));
        assert!(known.contains(7, 0) && !known.contains(7, 1) && known.contains(7, last));
        for name in 0..MAX_KNOWN_PRINCIPALS as u64 {
            known.insert(1000 + name, 0);
        }
        assert!(!known.contains(7, 0) && known.contains(1000, 0));
        assert_eq!((known.pairs.len(), known.principals.len()), (MAX_KNOWN_PRINCIPALS, MAX_KNOWN_PRINCIPALS));
    }

    #[test]
    fn a_slowed_down_principal_recovers_when_nobody_fails() {
        let (throttle, clock) = throttle();
        fail(&throttle, 10);
        clock.advance(Duration::from_secs(15 * 60));
        fail(&throttle, 9);
        for _ in 0..5 {
            assert_eq!(attempt(&throttle, ELSEWHERE, "owner"), Ok(()));
        }
    }

    #[test]
    fn successes_are_not_counted_against_a_principal() {
        let (throttle, _) = throttle();
        for _ in 0..50 {
            log_in(&throttle, HOME, "busy software");
        }
    }

    #[test]
    fn an_address_gets_100_attempts_a_minute_for_all_accounts() {
        let (throttle, clock) = throttle();
        for n in 0..100 {
            assert_eq!(attempt(&throttle, HOME, &n.to_string()), Ok(()));
        }
        let wait = attempt(&throttle, HOME, "another").expect_err("too many");
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(attempt(&throttle, ELSEWHERE, "another"), Ok(()));
        clock.advance(Duration::from_secs(60));
        assert_eq!(attempt(&throttle, HOME, "another"), Ok(()));
    }

    #[test]
    fn what_counts_no_more_is_forgotten() {
        let (throttle, clock) = throttle();
        for n in 0..ATTEMPTS_PER_CLEANING {
            let source = throttle.source(IpAddr::from(n.to_be_bytes()), &n.to_string());
            assert_eq!(throttle.attempt(source), Ok(()));
            throttle.failed(source);
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
        assert_eq!(attempt(&throttle, HOME, "owner"), Ok(()));
        assert!(attempt(&throttle, HOME, "owner").is_err());
    }
}
