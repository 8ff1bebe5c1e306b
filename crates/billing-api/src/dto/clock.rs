//! The billing clock of a sandbox.

use billing_application::sandbox::{ClockAdvance, ClockView};
use billing_domain::calendar::Timestamp;

use super::billing::FailedContractJson;
use super::declare::{answer, body};
use super::values::TimestampText;

body! {
    /// An advance of a sandbox's clock.
    ClockAdvanceBody {
        /// Instant to move the clock to: not before the clock, and not after the year 2100. To repeat a request is harmless.
        to: Timestamp,
        /// Whether to do what falls due on the way. With false, time passes as if the server had been off: the next billing run
        /// issues what is due then, late. Default: true.
        run: bool = true,
    }
}

answer! {
    /// The billing clock of a sandbox.
    ClockJson of clock: ClockView {
        /// Instant that the clock shows.
        now: TimestampText = clock.now,
        /// First later instant at which something is due for any customer; null if nothing is.
        next: Option<TimestampText> = clock.next,
    }
}

answer! {
    /// What happened while a sandbox's clock was moved.
    ClockAdvanceJson of advance: ClockAdvance {
        /// Instant that the clock shows.
        now: TimestampText = advance.now,
        /// Whether this is the requested instant. If it is false, time ran out: send the request again.
        reached: bool = advance.reached,
        /// Number of issued documents.
        issued: u64 = advance.issued,
        /// Number of voided drafts, which had neither events nor an amount.
        voided: u64 = advance.voided,
        /// Number of notifications. All of them can be read.
        notifications: u64 = advance.notifications,
        /// Documents that could not be issued, and contracts that could not be billed at all. Each later instant tries them again.
        failed: Vec<FailedContractJson> = advance.failed.iter().map(|failed| FailedContractJson::of(failed, &advance.names)),
    }
}
