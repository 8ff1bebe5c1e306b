//! Readiness: a thread checks the database and keeps the result, so that a readiness probe never waits for the database.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use billing_domain::ports::{DatabaseReplaced, Store, StoreError, StoreResult};
use thiserror::Error;
use tokio::sync::watch;

/// The interval between two checks without a probe.
const CHECKED_EVERY: Duration = Duration::from_secs(1);
/// The time that a probe waits for a check that begins after it. A probe is answered within 500 ms.
const PROBE_WAIT: Duration = Duration::from_millis(300);
/// The age of the last result from which the database counts as unusable: the next check is overdue by two seconds.
const OVERDUE_AFTER: Duration = Duration::from_secs(3);

/// The reason why the server is not ready. It is public, so it names no host and no path. The log has the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum NotReady {
    /// No check has ended since the start.
    #[error("the database has not been checked yet")]
    Unchecked,
    /// The last check failed.
    #[error("the service cannot use its database")]
    Unusable,
    /// No check has ended for too long.
    #[error("the service cannot use its database: no check of it has ended in the last {} seconds", OVERDUE_AFTER.as_secs())]
    Overdue,
    /// Another program replaced the database.
    #[error(transparent)]
    Replaced(DatabaseReplaced),
}

impl From<&StoreError> for NotReady {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable(reason) => {
                reason.downcast_ref::<DatabaseReplaced>().copied().map_or(Self::Unusable, Self::Replaced)
            }
            StoreError::Contended | StoreError::Corrupt(_) | StoreError::Unsupported(_) => Self::Unusable,
        }
    }
}

/// The handle of the thread. Dropping it stops the thread without waiting for the current check.
pub(crate) struct Readiness {
    requests: Arc<CheckRequests>,
    results: watch::Receiver<CheckResult>,
}

/// The result of a check.
#[derive(Clone, Copy)]
struct CheckResult {
    /// Counts the checks from 1. 0 stands for no check.
    number: u64,
    ended_at: Instant,
    outcome: Result<(), NotReady>,
}

/// What the thread has to do.
#[derive(Default)]
struct CheckRequests {
    state: Mutex<CheckState>,
    changed: Condvar,
}

#[derive(Default)]
struct CheckState {
    /// The number of the last check that has begun.
    begun: u64,
    is_requested: bool,
    is_over: bool,
}

impl Readiness {
    /// Starts the thread, which checks the store at once.
    pub(crate) fn start(store: Arc<dyn Store>) -> Self {
        let requests = Arc::new(CheckRequests::default());
        let unchecked = CheckResult { number: 0, ended_at: Instant::now(), outcome: Err(NotReady::Unchecked) };
        let (sender, results) = watch::channel(unchecked);
        let shared = Arc::clone(&requests);
        let run = move || check_repeatedly(&*store, &shared, &sender);
        if let Err(error) = std::thread::Builder::new().name("readiness".to_owned()).spawn(run) {
            tracing::error!(%error, "cannot start the thread that checks the database, so the server is never ready");
        }
        Self { requests, results }
    }

    /// Returns whether the database can be used. Requests a new check. After a failed check, the answer does not wait for it: a check
    /// of a stopped database takes seconds. Otherwise it waits, but only shortly: if the check takes longer, the last result applies.
    ///
    /// # Errors
    /// Returns the reason why the database cannot be used.
    pub(crate) async fn check(&self) -> Result<(), NotReady> {
        let wanted = self.requests.request();
        let mut results = self.results.clone();
        if let CheckResult { number: 1.., outcome: Err(reason), .. } = *results.borrow() {
            return Err(reason);
        }
        drop(tokio::time::timeout(PROBE_WAIT, results.wait_for(|result| result.number >= wanted)).await);
        let last = *self.results.borrow();
        if last.ended_at.elapsed() > OVERDUE_AFTER { Err(NotReady::Overdue) } else { last.outcome }
    }

    /// Stops the thread after its current check.
    pub(crate) fn stop(&self) {
        self.requests.lock().is_over = true;
        self.requests.changed.notify_all();
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.stop();
    }
}

impl CheckRequests {
    fn lock(&self) -> MutexGuard<'_, CheckState> {
        // No code panics halfway through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests a check that begins from now on, and returns its number.
    fn request(&self) -> u64 {
        let mut state = self.lock();
        state.is_requested = true;
        self.changed.notify_all();
        state.begun + 1
    }

    /// Returns the number of the check that begins now, or `None` if the thread must stop.
    fn begin(&self) -> Option<u64> {
        let mut state = self.lock();
        state.begun += 1;
        state.is_requested = false;
        (!state.is_over).then_some(state.begun)
    }

    /// Waits until the next check is due or requested.
    fn wait(&self) {
        let is_idle = |state: &mut CheckState| !state.is_requested && !state.is_over;
        drop(self.changed.wait_timeout_while(self.lock(), CHECKED_EVERY, is_idle));
    }
}

fn check_repeatedly(store: &dyn Store, requests: &CheckRequests, results: &watch::Sender<CheckResult>) {
    while let Some(number) = requests.begin() {
        let checked = store.ready();
        let outcome = checked.as_ref().copied().map_err(NotReady::from);
        let before = results.send_replace(CheckResult { number, ended_at: Instant::now(), outcome });
        log_change(before.outcome, &checked);
        requests.wait();
    }
}

/// Logs the first failed check and the first successful one after it.
fn log_change(before: Result<(), NotReady>, checked: &StoreResult<()>) {
    match checked {
        Err(error) if !matches!(before, Err(NotReady::Unusable | NotReady::Replaced(_))) => {
            let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
            tracing::warn!(reason, "the server is not ready, because it cannot use its database");
        }
        Ok(()) if before == Err(NotReady::Unusable) => tracing::info!("the server is ready again"),
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reason_that_names_no_internals_is_public() {
        let replaced = StoreError::Unavailable(DatabaseReplaced.into());
        assert_eq!(NotReady::from(&replaced).to_string(), DatabaseReplaced.to_string());
        let secret = StoreError::Unavailable("no connection to db.internal".into());
        assert_eq!(NotReady::from(&secret).to_string(), "the service cannot use its database");
    }

    #[tokio::test]
    async fn a_probe_after_a_failed_check_does_not_wait_for_the_next_one() {
        let failed = CheckResult { number: 1, ended_at: Instant::now(), outcome: Err(NotReady::Unusable) };
        let (sender, results) = watch::channel(failed);
        let readiness = Readiness { requests: Arc::default(), results };
        // No thread checks the database, so only a probe that does not wait ends within no time.
        let at_once = || tokio::time::timeout(Duration::ZERO, readiness.check());
        assert_eq!(at_once().await, Ok(Err(NotReady::Unusable)));
        assert!(readiness.requests.lock().is_requested, "the next check is requested");
        assert_eq!(readiness.requests.begin(), Some(1));
        sender.send_replace(CheckResult { outcome: Ok(()), ..failed });
        assert!(at_once().await.is_err(), "a probe after a successful check waits for the next one");
    }

    #[test]
    fn a_requested_check_begins_after_the_request() {
        let requests = CheckRequests::default();
        assert_eq!(requests.request(), 1);
        assert_eq!(requests.begin(), Some(1));
        // The first check is in progress, so it is too early for this request.
        assert_eq!(requests.request(), 2);
        requests.wait();
        assert_eq!(requests.begin(), Some(2));
        requests.lock().is_over = true;
        assert_eq!(requests.begin(), None);
    }
}
