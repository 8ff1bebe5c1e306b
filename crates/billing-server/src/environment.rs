//! The system clock and the generator of identifiers.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Clock, IdSource};
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

/// UUIDs of version 7, increasing within the process.
pub(crate) struct UuidV7;

impl IdSource for UuidV7 {
    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}
