//! Limits the rate of log-in attempts and the number of concurrent password hashes.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::throttle::Throttle;
use crate::problem::Problem;
use crate::settings::LogInLimits;

/// Upper limit for concurrent and waiting hashes, beyond any practical need.
const MOST_TURNS: usize = 100_000;

/// The log-in limits of one server.
pub(crate) struct LogInGate {
    throttle: Throttle,
    hashing: Arc<Semaphore>,
    hashing_or_waiting: Arc<Semaphore>,
}

/// The right to run one password hash. The work holds it until it is done, even if the request was abandoned.
pub(crate) struct HashPermit {
    _running: OwnedSemaphorePermit,
    _admitted: OwnedSemaphorePermit,
}

impl LogInGate {
    pub(crate) fn new(limits: &LogInLimits) -> Self {
        let concurrent = limits.concurrent_hashes.clamp(1, MOST_TURNS);
        let waiting = limits.waiting_hashes.min(MOST_TURNS);
        Self {
            throttle: Throttle::new(limits),
            hashing: Arc::new(Semaphore::new(concurrent)),
            hashing_or_waiting: Arc::new(Semaphore::new(concurrent + waiting)),
        }
    }

    /// Checks whether a log-in attempt is allowed now.
    pub(crate) fn attempt(&self, address: IpAddr, principal: &str) -> Result<(), Problem> {
        self.throttle.attempt(address, principal).map_err(|wait| Problem::too_many_log_ins(whole_seconds(wait)))
    }

    /// Checks whether a second-factor attempt is allowed now. The password may be correct at this point.
    pub(crate) fn attempt_code(&self, principal: &str) -> Result<(), Problem> {
        self.throttle.attempt_from_anywhere(principal).map_err(|wait| Problem::too_many_log_ins(whole_seconds(wait)))
    }

    /// Counts a failed log-in if the credential was rejected.
    pub(crate) fn failed(&self, principal: &str, problem: &Problem) {
        if problem.is_refused_credential() {
            self.throttle.failed(principal);
        }
    }

    /// Waits for a hashing permit, or fails if too many log-ins wait.
    pub(crate) async fn hashing_turn(&self) -> Result<HashPermit, Problem> {
        let admitted = Arc::clone(&self.hashing_or_waiting).try_acquire_owned().map_err(|_| Problem::overloaded())?;
        let running = Arc::clone(&self.hashing).acquire_owned().await.map_err(|_| Problem::overloaded())?;
        Ok(HashPermit { _running: running, _admitted: admitted })
    }
}

/// Rounds up, so that a retry after this time is not too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0).max(u64::from(wait.is_zero()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix_web::test]
    async fn more_than_may_wait_for_a_hash_are_turned_away() {
        let gate = LogInGate::new(&LogInLimits { concurrent_hashes: 1, waiting_hashes: 1, ..LogInLimits::default() });
        let running = gate.hashing_turn().await.expect("the first");
        let (waiting, refused) = (gate.hashing_turn(), gate.hashing_turn());
        let mut waiting = std::pin::pin!(waiting);
        assert!(tokio::time::timeout(Duration::from_millis(5), waiting.as_mut()).await.is_err(), "it has to wait");
        assert_eq!(refused.await.err().map(|problem| problem.code()), Some("overloaded"));
        drop(running);
        assert!(waiting.await.is_ok());
    }

    #[test]
    fn retry_after_is_never_too_early() {
        for (millis, seconds) in [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (2500, 3)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis} ms");
        }
    }
}
