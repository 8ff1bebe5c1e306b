//! The clocks and the generator of identifiers.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Clock, IdSource, SandboxClock};
use uuid::Uuid;

use crate::drift_checked_clock::DriftCheckedClock;

/// The operating system's clock.
#[derive(Default)]
pub(crate) struct SystemClock {
    /// Checks the clock, once the server's own billing runs have begun.
    drift: OnceLock<Mutex<DriftCheckedClock>>,
}

impl SystemClock {
    /// Trusts the clock only as far as the check does, from now on.
    pub(crate) fn check_drift(&self, check: DriftCheckedClock) {
        self.drift.get_or_init(|| Mutex::new(check));
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = chrono::Utc::now().timestamp_micros();
        Timestamp::from_micros(micros).unwrap_or(Timestamp::MIN)
    }

    fn is_trusted(&self) -> bool {
        // A check changes its state at once, so a panic elsewhere leaves the state consistent.
        self.drift
            .get()
            .is_none_or(|drift| drift.lock().unwrap_or_else(PoisonError::into_inner).is_believed(self.now(), Instant::now()))
    }
}

/// The time for which a request waits for another one that moves the clock of a sandbox.
const ADVANCE_PATIENCE: Duration = Duration::from_secs(5);

/// The billing clock of a sandbox. It stands still until it is moved.
pub(crate) struct StandingClock {
    micros: AtomicI64,
    /// Whether a request moves the clock.
    is_advancing: Mutex<bool>,
    has_ended: Condvar,
}

impl StandingClock {
    /// Returns a clock that shows an instant.
    pub(crate) const fn at(now: Timestamp) -> Self {
        Self { micros: AtomicI64::new(now.as_micros()), is_advancing: Mutex::new(false), has_ended: Condvar::new() }
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::SeqCst)).unwrap_or(Timestamp::MIN)
    }
}

impl SandboxClock for StandingClock {
    fn move_to(&self, now: Timestamp) {
        self.micros.store(now.as_micros(), Ordering::SeqCst);
    }

    fn begin_advance(&self) -> bool {
        let is_advancing = self.is_advancing.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.has_ended.wait_timeout_while(is_advancing, ADVANCE_PATIENCE, |is_advancing| *is_advancing);
        let (mut is_advancing, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !std::mem::replace(&mut *is_advancing, true)
    }

    fn end_advance(&self) {
        *self.is_advancing.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.has_ended.notify_one();
    }
}

/// The clocks of a server or a command.
#[derive(Clone)]
pub(crate) struct Clocks {
    pub(crate) machine: Arc<SystemClock>,
    /// The billing clock of a sandbox.
    pub(crate) sandbox: Option<Arc<StandingClock>>,
}

impl Clocks {
    /// Returns the clocks of a live database, or of a sandbox that shows an instant.
    pub(crate) fn new(sandbox: Option<Timestamp>) -> Self {
        Self { machine: Arc::default(), sandbox: sandbox.map(|now| Arc::new(StandingClock::at(now))) }
    }

    /// Returns the billing clock.
    pub(crate) fn billing(&self) -> Arc<dyn Clock> {
        match &self.sandbox {
            Some(sandbox) => Arc::clone(sandbox) as _,
            None => Arc::clone(&self.machine) as _,
        }
    }
}

/// UUIDs of version 7, increasing within the process.
pub(crate) struct UuidV7;

impl IdSource for UuidV7 {
    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}
