//! The billing clock of a sandbox, and the instants at which it finds something to do.

use super::{Clock, StoreResult};
use crate::calendar::Timestamp;

/// The billing clock of a sandbox. It stands still until a request moves it.
pub trait SandboxClock: Clock {
    /// Sets the clock. The store knows the instant already.
    fn move_to(&self, now: Timestamp);

    /// Begins an advance, and waits some seconds for another one to end. Returns whether it began; then the caller must end it.
    fn begin_advance(&self) -> bool;

    /// Ends an advance.
    fn end_advance(&self);
}

/// Storage of a sandbox's billing clock. A database without a stored instant is live.
pub trait SandboxClockStore {
    /// Returns the instant of the billing clock, or `None` in a live database.
    fn sandbox_now(&mut self) -> StoreResult<Option<Timestamp>>;
    /// Stores the instant of the billing clock. A database that has one is a sandbox from then on.
    fn put_sandbox_now(&mut self, now: Timestamp) -> StoreResult<()>;
    /// Deletes what lets anybody in and what sends anything: administrators, sessions, API keys, revoked tokens, signing secrets,
    /// kept responses, and webhook endpoints with their secrets and deliveries. For a copy that becomes a sandbox.
    fn delete_access(&mut self) -> StoreResult<()>;
    /// Returns the first instant after `after` at which a contract of any organization has a document to issue or a notice is
    /// due.
    fn next_due_instant(&mut self, after: Timestamp) -> StoreResult<Option<Timestamp>>;
}
