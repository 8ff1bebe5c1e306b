//! Periodic tasks:
//! - the billing run, with the same use case as on request
//! - deletion of expired idempotency records
//! - numbering notifications, and deletion of old ones
//! - writing counts of rejected usage
//! - loading rotated secrets

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use billing_application::Services;
use billing_application::billing_run::run_billing_everywhere;
use billing_application::idempotency::forget_old_answers;
use billing_application::latest_instant::latest_recorded_instant;
use billing_application::notifications::{
    forget_old_notifications, number_notifications, wait_for_notifications, wake_numbering,
};
use billing_application::run_history::forget_old_billing_runs;
use billing_application::secrets::shared_secrets_in_use;
use billing_application::usage::{forget_old_holds, forget_old_imports, forget_old_refused_usage};
use billing_application::webhooks::WebhookWaker;
use billing_auth::JwtSigner;
use billing_domain::access::SecretPurpose;
use billing_domain::refs::ServerRef;
use billing_http::HttpState;
use billing_storage::SandboxLock;

use crate::drift_checked_clock::DriftCheckedClock;
use crate::environment::SystemClock;

/// A thread that runs a task periodically until it is stopped.
struct PeriodicTask {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl PeriodicTask {
    fn start(name: &str, every: Duration, mut what: impl FnMut() + Send + 'static) -> io::Result<Self> {
        Self::start_with_pauses(name, move || {
            what();
            every
        })
    }

    /// Starts a task that returns the pause until its next run. The thread has the name of the task.
    fn start_with_pauses(name: &str, mut what: impl FnMut() -> Duration + Send + 'static) -> io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            loop {
                let pause = what();
                match stopped.recv_timeout(pause) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Self { stop, thread })
    }

    fn stop(self) {
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!("a periodic task panicked");
        }
    }
}

/// The longest interval between two checks of a clock that is not trusted.
const CLOCK_CHECKED_EVERY: Duration = Duration::from_secs(60);

/// A periodic task that runs billing and deletes expired data. It waits while the clock is not trusted.
pub(crate) struct Scheduler(PeriodicTask);

impl Scheduler {
    /// Starts the task.
    ///
    /// # Errors
    /// Returns an error when the operating system cannot create a thread.
    pub(crate) fn start(state: HttpState, services: Services, clock: &SystemClock, every: Duration) -> io::Result<Self> {
        state.billing_runs_every(every);
        clock.check_drift(drift_check(&services));
        let task = PeriodicTask::start_with_pauses("billing-runs", move || {
            if services.clock.is_trusted() {
                run_billing(&state, &services);
                forget(&services);
                every
            } else {
                state.record_skipped_billing_run();
                every.min(CLOCK_CHECKED_EVERY)
            }
        })?;
        Ok(Self(task))
    }

    /// Waits for the current run and stops.
    pub(crate) fn stop(self) {
        self.0.stop();
    }
}

/// Returns the check of the clock of a server that starts. A database without a recorded instant has nothing to compare.
fn drift_check(services: &Services) -> DriftCheckedClock {
    let latest = latest_recorded_instant(services);
    let at = Instant::now();
    match latest {
        Ok(Some(latest)) => DriftCheckedClock::compared_with(latest, at),
        Ok(None) => DriftCheckedClock::new(services.now(), at),
        Err(error) => {
            tracing::warn!(%error, "cannot read the latest instant in the database");
            DriftCheckedClock::untrusted(at)
        }
    }
}

/// The interval for writing counts of rejected usage.
const COUNTS_WRITTEN_EVERY: Duration = Duration::from_secs(2);
/// The number of intervals after which expired counts are deleted: once an hour.
const FORGOTTEN_EVERY: u32 = 1800;

/// A periodic task that writes counts of rejected usage and the last use of keys, and deletes expired counts.
pub(crate) struct CountsWriter(PeriodicTask);

impl CountsWriter {
    /// Starts the task.
    ///
    /// # Errors
    /// Returns an error when the operating system cannot create a thread.
    pub(crate) fn start(state: HttpState, services: Services, forgets: bool) -> io::Result<Self> {
        let mut times = 0_u32;
        let task = PeriodicTask::start("counts-writer", COUNTS_WRITTEN_EVERY, move || {
            if let Err(error) = state.write_refused_usage() {
                tracing::warn!(%error, "cannot store the counts of rejected usage; the next attempt includes them");
            }
            if let Err(error) = state.write_key_uses() {
                tracing::warn!(%error, "cannot store the last uses of API keys; the next attempt includes them");
            }
            if forgets
                && times.is_multiple_of(FORGOTTEN_EVERY)
                && let Err(error) = forget_old_refused_usage(&services)
            {
                tracing::warn!(%error, "cannot delete old counts of rejected usage");
            }
            if forgets
                && times.is_multiple_of(FORGOTTEN_EVERY)
                && let Err(error) = forget_old_holds(&services)
            {
                tracing::warn!(%error, "cannot delete old holds");
            }
            times = times.wrapping_add(1);
        })?;
        Ok(Self(task))
    }

    /// Stops. The server's shutdown writes the remaining counts.
    pub(crate) fn stop(self) {
        self.0.stop();
    }
}

/// The longest pause between two looks at notifications without a position, which other servers can store.
const NUMBERED_EVERY: Duration = Duration::from_secs(1);
/// The pauses before looking at notifications that this process has stored, until they are committed.
const COMMIT_PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(80), Duration::from_millis(400)];
/// The interval for deleting old notifications.
const NOTIFICATIONS_FORGOTTEN_EVERY: Duration = Duration::from_secs(3600);

/// A thread that numbers notifications as soon as they are committed, and deletes old ones.
pub(crate) struct NotificationNumberer {
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl NotificationNumberer {
    /// Starts the thread. Notifications are retained for `days`, or without end. `deliverer` delivers numbered notifications.
    ///
    /// # Errors
    /// Returns an error when the operating system cannot create a thread.
    pub(crate) fn start(services: Services, days: Option<u16>, deliverer: WebhookWaker) -> io::Result<Self> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&is_stopped);
        let thread = std::thread::Builder::new().name("notifications".to_owned()).spawn(move || {
            let server = ServerRef::from_uuid(services.ids.new_id());
            let is_stopped = || stopped.load(Ordering::Relaxed);
            let mut forgotten: Option<Instant> = None;
            while !is_stopped() {
                if let Some(days) = days
                    && forgotten.is_none_or(|at| at.elapsed() >= NOTIFICATIONS_FORGOTTEN_EVERY)
                {
                    forgotten = Some(Instant::now());
                    forget_notifications(&services, days);
                }
                if wait_for_notifications(NUMBERED_EVERY) {
                    // A transaction that is slower than these pauses is numbered a second later.
                    let is_numbered = COMMIT_PAUSES.into_iter().any(|pause| {
                        std::thread::sleep(pause);
                        is_stopped() || number(&services, server, &is_stopped, &deliverer) > 0
                    });
                    if is_numbered {
                        continue;
                    }
                }
                number(&services, server, &is_stopped, &deliverer);
            }
        })?;
        Ok(Self { is_stopped, thread })
    }

    pub(crate) fn stop(self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        wake_numbering();
        if self.thread.join().is_err() {
            tracing::error!("the thread that numbers notifications panicked");
        }
    }
}

/// Numbers notifications and returns their number. Their deliveries are due at once.
fn number(services: &Services, server: ServerRef, is_stopped: &dyn Fn() -> bool, deliverer: &WebhookWaker) -> u64 {
    let numbered = number_notifications(services, server, is_stopped).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot number notifications; the next attempt numbers them");
        0
    });
    if numbered > 0 {
        deliverer.wake();
    }
    numbered
}

fn forget_notifications(services: &Services, days: u16) {
    match forget_old_notifications(services, days) {
        Ok(0) => {}
        Ok(notifications) => tracing::info!(notifications, "deleted old notifications"),
        Err(error) => tracing::error!(%error, "cannot delete old notifications"),
    }
}

/// The interval for reading the secrets in use. It is several times shorter than the delay before a new secret signs.
const SECRETS_READ_EVERY: Duration = Duration::from_secs(10);

/// A periodic task that loads the signing secrets of bearer tokens from the database.
pub(crate) struct SecretsReader(PeriodicTask);

impl SecretsReader {
    /// Starts the task.
    ///
    /// # Errors
    /// Returns an error when the operating system cannot create a thread.
    pub(crate) fn start(services: Services, signer: Arc<JwtSigner>) -> io::Result<Self> {
        let task = PeriodicTask::start("secrets-reader", SECRETS_READ_EVERY, move || {
            let taken_up = shared_secrets_in_use(&*services.store, services.machine_now(), SecretPurpose::BearerToken)
                .map_err(|error| error.to_string())
                .and_then(|secrets| signer.take_up(&secrets).map_err(|error| error.to_string()));
            if let Err(error) = taken_up {
                tracing::warn!(%error, "cannot load the secrets that sign tokens; the previous secrets stay in use");
            }
        })?;
        Ok(Self(task))
    }

    pub(crate) fn stop(self) {
        self.0.stop();
    }
}

/// The interval for checking that the server still has the lock of its sandbox.
const LOCK_CHECKED_EVERY: Duration = Duration::from_secs(2);

/// A periodic task that ends a server that lost the lock of its sandbox: another server may have moved the clock.
pub(crate) struct LockWatch(PeriodicTask);

impl LockWatch {
    /// Starts the task.
    ///
    /// # Errors
    /// Returns an error when the operating system cannot create a thread.
    pub(crate) fn start(mut lock: SandboxLock) -> io::Result<Self> {
        let task = PeriodicTask::start("sandbox-lock", LOCK_CHECKED_EVERY, move || {
            if !lock.is_held() {
                tracing::error!("the server lost the lock of its sandbox, and stops");
                std::process::exit(1);
            }
        })?;
        Ok(Self(task))
    }

    pub(crate) fn stop(self) {
        self.0.stop();
    }
}

fn run_billing(state: &HttpState, services: &Services) {
    let run = run_billing_everywhere(services);
    state.record_billing_run(&run);
    match run {
        Ok(report) if report.issued.is_empty() && report.voided.is_empty() && report.failed.is_empty() => {}
        Ok(report) => tracing::info!(
            issued = report.issued.len(),
            voided = report.voided.len(),
            failed = report.failed.len(),
            "billing run"
        ),
        Err(error) => tracing::error!(%error, "the billing run cannot load the due contracts"),
    }
}

fn forget(services: &Services) {
    match forget_old_answers(services) {
        Ok(0) => {}
        Ok(answers) => tracing::info!(answers, "deleted expired idempotency records"),
        Err(error) => tracing::error!(%error, "cannot delete expired idempotency records"),
    }
    match forget_old_billing_runs(services) {
        Ok(0) => {}
        Ok(runs) => tracing::info!(runs, "deleted old billing runs"),
        Err(error) => tracing::error!(%error, "cannot delete old billing runs"),
    }
    match forget_old_imports(services) {
        Ok(0) => {}
        Ok(imports) => tracing::info!(imports, "deleted old imports"),
        Err(error) => tracing::error!(%error, "cannot delete old imports"),
    }
}
