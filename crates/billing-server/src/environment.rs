//! The system clock and the generator of identifiers.

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Clock, IdSource};
use uuid::Uuid;

/// The operating system's clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let micros = chrono::Utc::now().timestamp_micros();
        Timestamp::from_micros(micros).unwrap_or(Timestamp::MIN)
    }
}

/// UUIDs of version 7, increasing within the process.
pub(crate) struct UuidV7;

impl IdSource for UuidV7 {
    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}
