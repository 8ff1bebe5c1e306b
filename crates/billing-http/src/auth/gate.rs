//! Limits the rate of log-in attempts and the number of concurrent password hashes.
//!
//! Two queues wait for hashes. Anybody can fill the common one with wrong passwords. The reserved one is for principals that
//! the service knows at their address, so that they do not wait behind strangers.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::address::ClientAddress;
use super::throttle::{ExceededLimit, Source, Throttle};
use crate::settings::LogInLimits;
use billing_api::problem::Problem;

/// Upper limit for concurrent and waiting hashes, beyond any practical need.
const MOST_TURNS: usize = 100_000;
/// Number of concurrent hashes that only known principals may run, in addition to those of the setting.
const RESERVED_HASHES: usize = 1;

/// The log-in limits of one server.
pub(crate) struct LogInGate {
    throttle: Throttle,
    common: HashQueue,
    reserved: HashQueue,
    /// The principals with a place in the reserved queue.
    holders: Holders,
    has_reported_proxy: AtomicBool,
}

/// A log-in attempt, or another request that checks a password or a code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    source: Source,
    unlisted_proxy: Option<IpAddr>,
}

impl Attempt {
    /// Returns the address that the limits count.
    pub(crate) const fn address(&self) -> IpAddr {
        self.source.address()
    }
}

/// The right to run one password hash. The work holds it until it is done, even if the request was abandoned.
pub(crate) struct HashPermit {
    _running: OwnedSemaphorePermit,
    _admitted: OwnedSemaphorePermit,
    _holder: Option<Holder>,
}

impl LogInGate {
    pub(crate) fn new(limits: &LogInLimits) -> Self {
        let concurrent = limits.concurrent_hashes.clamp(1, MOST_TURNS);
        let waiting = limits.waiting_hashes.min(MOST_TURNS);
        Self {
            throttle: Throttle::new(limits),
            common: HashQueue::new(concurrent, waiting),
            reserved: HashQueue::new(RESERVED_HASHES, waiting),
            holders: Holders::default(),
            has_reported_proxy: AtomicBool::new(false),
        }
    }

    /// Returns the log-in attempt of a principal from an address.
    pub(crate) fn log_in(&self, client: ClientAddress, principal: &str) -> Attempt {
        let source = self.throttle.source(client.counted, principal);
        Attempt { source, unlisted_proxy: client.unlisted_proxy }
    }

    /// Returns whether to look up the principal's known addresses, which all servers share. Nobody else delays the attempts from
    /// such an address.
    pub(crate) fn needs_look_up(&self, attempt: Attempt) -> bool {
        self.throttle.needs_look_up(attempt.source)
    }

    /// Returns the same attempt as one from a known address.
    pub(crate) fn recognize(&self, attempt: Attempt) -> Attempt {
        Attempt { source: self.throttle.recognize(attempt.source), ..attempt }
    }

    /// Returns the attempt of a principal who has a session, and therefore is known.
    pub(crate) fn in_session(&self, client: ClientAddress, principal: &str) -> Attempt {
        let source = self.throttle.session_source(client.counted, principal);
        Attempt { source, unlisted_proxy: client.unlisted_proxy }
    }

    /// Checks whether an attempt is allowed now, and counts it.
    pub(crate) fn check(&self, attempt: Attempt) -> Result<(), Problem> {
        self.throttle.attempt(attempt.source).map_err(|exceeded| {
            if let Some(peer) = self.proxy_to_report(exceeded, attempt) {
                tracing::warn!(
                    %peer,
                    "too many log-ins came from one address, whose requests have X-Forwarded-For or Forwarded: if {peer} is your \
                     proxy, add it to --trusted-proxies, so that its clients are limited separately"
                );
            }
            Problem::too_many_log_ins(whole_seconds(exceeded.wait()))
        })
    }

    /// Waits for a hashing permit of an attempt. Fails if too many log-ins wait, or if the attempt is not allowed now.
    pub(crate) async fn permit_hash(&self, attempt: Attempt) -> Result<HashPermit, Problem> {
        // The place in the queue comes first, so that a full queue costs the principal and the address no attempt.
        let places = self.enter(attempt.source)?;
        self.check(attempt)?;
        places.permit().await
    }

    /// Waits for a hashing permit of a principal who has a session, without a limit of attempts, for hashes that check
    /// nothing.
    pub(crate) async fn permit_unchecked_hash(&self, client: ClientAddress, principal: &str) -> Result<HashPermit, Problem> {
        let places = self.enter(self.throttle.session_source(client.counted, principal))?;
        places.permit().await
    }

    /// Counts a failed log-in if the credential was rejected.
    pub(crate) fn failed(&self, attempt: Attempt, problem: &Problem) {
        if problem.is_refused_credential() {
            self.throttle.failed(attempt.source);
        }
    }

    /// Remembers the address of a successful log-in, so that failures from elsewhere do not delay the principal there.
    pub(crate) fn succeeded(&self, attempt: Attempt) {
        self.throttle.succeeded(attempt.source);
    }

    /// Takes a place in the common queue and, for a known principal, in the reserved queue.
    fn enter(&self, source: Source) -> Result<Places, Problem> {
        let common = self.common.enter(None);
        // A principal has one place in the reserved queue, so that nobody fills it with requests of one account.
        let holder = if source.is_known() { Holder::new(&self.holders, source.name()) } else { None };
        let reserved = holder.and_then(|holder| self.reserved.enter(Some(holder)));
        match (common, reserved) {
            (Some(common), Some(reserved)) => Ok(Places::Both(common, reserved)),
            (Some(place), None) | (None, Some(place)) => Ok(Places::One(place)),
            (None, None) => Err(Problem::overloaded()),
        }
    }

    /// Returns the peer of an attempt if the operator has to know of it: the limit of its address is exceeded, but it
    /// seems to be a proxy that is not listed. Returns it once, so that nobody can fill the log.
    fn proxy_to_report(&self, exceeded: ExceededLimit, attempt: Attempt) -> Option<IpAddr> {
        let peer = attempt.unlisted_proxy.filter(|_| matches!(exceeded, ExceededLimit::Address(_)))?;
        (!self.has_reported_proxy.swap(true, Ordering::Relaxed)).then_some(peer)
    }
}

/// A first-come-first-served queue for a number of concurrent hashes.
struct HashQueue {
    running: Arc<Semaphore>,
    admitted: Arc<Semaphore>,
}

impl HashQueue {
    fn new(concurrent: usize, waiting: usize) -> Self {
        Self { running: Arc::new(Semaphore::new(concurrent)), admitted: Arc::new(Semaphore::new(concurrent + waiting)) }
    }

    /// Returns a place in the queue, or `None` if the queue is full.
    fn enter(&self, holder: Option<Holder>) -> Option<Place> {
        let admitted = Arc::clone(&self.admitted).try_acquire_owned().ok()?;
        Some(Place { running: Arc::clone(&self.running), admitted, holder })
    }
}

/// A place in a queue.
struct Place {
    running: Arc<Semaphore>,
    admitted: OwnedSemaphorePermit,
    holder: Option<Holder>,
}

impl Place {
    async fn permit(self) -> Result<HashPermit, Problem> {
        let Self { running, admitted, holder } = self;
        let running = running.acquire_owned().await.map_err(|_| Problem::overloaded())?;
        Ok(HashPermit { _running: running, _admitted: admitted, _holder: holder })
    }
}

/// The places of one request.
enum Places {
    One(Place),
    Both(Place, Place),
}

impl Places {
    /// Waits for the first permit, and leaves the other queue.
    async fn permit(self) -> Result<HashPermit, Problem> {
        match self {
            Self::One(place) => place.permit().await,
            Self::Both(common, reserved) => tokio::select! {
                // The reserved hash stays free as long as the common ones suffice.
                biased;
                permit = common.permit() => permit,
                permit = reserved.permit() => permit,
            },
        }
    }
}

/// The hashed names of the principals with a place in the reserved queue.
type Holders = Arc<Mutex<HashSet<u64>>>;

/// A principal's entry in [`Holders`], removed on drop.
struct Holder {
    all: Holders,
    name: u64,
}

impl Holder {
    /// Adds a principal. Returns `None` if it has an entry already.
    fn new(all: &Holders, name: u64) -> Option<Self> {
        locked(all).insert(name).then(|| Self { all: Arc::clone(all), name })
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        locked(&self.all).remove(&self.name);
    }
}

fn locked(holders: &Holders) -> MutexGuard<'_, HashSet<u64>> {
    // Names are inserted and removed whole, so a panic elsewhere leaves the set consistent.
    holders.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rounds up, so that a retry after this time is not too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0).max(u64::from(wait.is_zero()))
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};

    use super::*;

    const HOME: ClientAddress =
        ClientAddress { counted: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), unlisted_proxy: None };
    const ELSEWHERE: ClientAddress =
        ClientAddress { counted: IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1)), unlisted_proxy: None };

    /// Returns a gate with one concurrent hash and one waiting log-in.
    fn narrow_gate() -> LogInGate {
        LogInGate::new(&LogInLimits { concurrent_hashes: 1, waiting_hashes: 1, ..LogInLimits::default() })
    }

    async fn waits<T>(work: Pin<&mut impl Future<Output = T>>) -> bool {
        tokio::time::timeout(Duration::from_millis(5), work).await.is_err()
    }

    fn code(outcome: Result<HashPermit, Problem>) -> Option<&'static str> {
        outcome.err().map(|problem| problem.code())
    }

    /// Creates the attempt of an owner at an address where the owner has logged in.
    fn known(gate: &LogInGate) -> Attempt {
        gate.succeeded(gate.log_in(HOME, "owner"));
        gate.log_in(HOME, "owner")
    }

    #[actix_web::test]
    async fn more_than_may_wait_for_a_hash_are_turned_away() {
        let gate = narrow_gate();
        let stranger = gate.log_in(ELSEWHERE, "owner");
        let running = gate.permit_hash(stranger).await.expect("the first");
        let mut waiting = pin!(gate.permit_hash(stranger));
        assert!(waits(waiting.as_mut()).await, "it has to wait");
        assert_eq!(code(gate.permit_hash(stranger).await), Some("overloaded"));
        drop(running);
        assert!(waiting.await.is_ok());
    }

    #[actix_web::test]
    async fn a_full_queue_costs_no_attempt() {
        let gate = LogInGate::new(&LogInLimits {
            concurrent_hashes: 1,
            waiting_hashes: 0,
            attempts_per_address_per_minute: 2,
            ..LogInLimits::default()
        });
        let stranger = gate.log_in(ELSEWHERE, "owner");
        let running = gate.permit_hash(stranger).await.expect("the first attempt");
        for _ in 0..10 {
            assert_eq!(code(gate.permit_hash(stranger).await), Some("overloaded"));
        }
        drop(running);
        assert!(gate.permit_hash(stranger).await.is_ok(), "the second attempt");
        assert_eq!(code(gate.permit_hash(stranger).await), Some("too_many_log_ins"));
        assert_eq!(gate.common.admitted.available_permits(), 1, "a refused attempt leaves the queue");
    }

    #[actix_web::test]
    async fn who_is_known_at_an_address_does_not_wait_behind_strangers() {
        let gate = narrow_gate();
        let (owner, stranger) = (known(&gate), gate.log_in(ELSEWHERE, "owner"));
        let _running = gate.permit_hash(stranger).await.expect("the first");
        let mut waiting = pin!(gate.permit_hash(stranger));
        assert!(waits(waiting.as_mut()).await);
        assert_eq!(code(gate.permit_hash(stranger).await), Some("overloaded"));
        let permit = gate.permit_hash(owner).await.expect("the reserved hash");
        assert_eq!(code(gate.permit_hash(owner).await), Some("overloaded"), "one place for each principal");
        let mut colleague = pin!(gate.permit_hash(gate.in_session(HOME, "colleague")));
        assert!(waits(colleague.as_mut()).await, "the reserved hash is in use");
        drop(permit);
        assert!(colleague.await.is_ok());
        assert!(gate.permit_hash(owner).await.is_ok(), "the place is free again");
    }

    #[actix_web::test]
    async fn the_reserved_hash_stays_free_while_the_others_suffice() {
        let gate = narrow_gate();
        let owner = known(&gate);
        let _permit = gate.permit_hash(owner).await.expect("a common hash");
        assert_eq!((gate.common.running.available_permits(), gate.reserved.running.available_permits()), (0, 1));
        assert_eq!(gate.reserved.admitted.available_permits(), 2, "the reserved queue is left");
    }

    #[test]
    fn a_proxy_that_is_not_listed_is_reported_once_and_only_if_it_matters() {
        let gate = narrow_gate();
        let peer = ELSEWHERE.counted;
        let (address, principal) = (ExceededLimit::Address(Duration::ZERO), ExceededLimit::Principal(Duration::ZERO));
        let forwarded = gate.log_in(ClientAddress { counted: peer, unlisted_proxy: Some(peer) }, "owner");
        assert_eq!(gate.proxy_to_report(address, gate.log_in(ELSEWHERE, "owner")), None);
        assert_eq!(gate.proxy_to_report(principal, forwarded), None);
        assert_eq!(gate.proxy_to_report(address, forwarded), Some(peer));
        assert_eq!(gate.proxy_to_report(address, forwarded), None);
    }

    #[test]
    fn retry_after_is_never_too_early() {
        for (millis, seconds) in [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (2500, 3)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
    }
}
