//! Submitted usage: new events, events in files, and changes of events. [`usage`](crate::usage) has the stored events.

use crate::calendar::Timestamp;
use crate::format::RefOrName;
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{CustomerRef, ImportRef, UsageProductRef};
use crate::usage::{EventKey, FormattedSource, MAX_AHEAD_SECONDS, ReportData, ReportValue, UsageEvent, Validations};
use crate::violation::Violations;

/// A customer, by reference or by a name that only one customer has.
pub type NamedCustomer = RefOrName<CustomerRef>;
/// A usage product, by reference or by a name that only one usage product has.
pub type NamedUsageProduct = RefOrName<UsageProductRef>;

/// A submitted event.
#[derive(Clone, Debug)]
pub struct NewUsageEvent {
    /// The customer.
    pub customer: NamedCustomer,
    /// The usage product.
    pub usage_product: NamedUsageProduct,
    /// The time of the usage.
    pub occurred_at: Timestamp,
    /// The quantity.
    pub quantity: Quantity,
    /// The columns for the usage report.
    pub report_data: Option<ReportData>,
    /// The checks against the document.
    pub validations: Option<Validations>,
    /// The submitted event, if a usage format mapped it.
    pub formatted: Option<FormattedSource>,
    /// The idempotency key, which identifies repeated events.
    pub sent: Option<EventKey>,
    /// The file import of the event.
    pub import: Option<ImportRef>,
}

impl NewUsageEvent {
    /// Returns the approximate memory use of a queued event in bytes: its fixed size plus the texts that may be long.
    pub fn bytes(&self) -> usize {
        let reported = self.report_data.iter().flat_map(ReportData::entries);
        let raw = self.formatted.as_ref().map_or(0, |formatted| formatted.raw_event.len());
        size_of::<Self>() + raw + reported.map(|(key, value)| size_of::<ReportValue>() + key.len() + value.bytes()).sum::<usize>()
    }
}

/// A line of a file.
#[derive(Debug)]
pub struct FileLine {
    /// The number from 1: the first line of a record with several lines, or the position of an array element.
    pub number: u64,
    /// The source text.
    pub text: String,
    /// The event, or the reason why it cannot be parsed.
    pub event: Result<FileEvent, Violations>,
}

/// An event in a file, before a usage format maps it.
#[derive(Clone, Debug)]
pub struct FileEvent {
    /// The position of the event: the line, or the index in an array, starting at 1.
    pub line: u64,
    /// The text of a JSON object.
    pub event: String,
    /// The event in the default shape, or the reasons why it is none. `None` if a usage format maps it.
    pub shaped: Option<Result<NewUsageEvent, Violations>>,
    /// The reference of the recorded event that this event claims to be a copy of, or `None`.
    pub event_ref: Option<String>,
    /// The customer's reference, if the event has it in the default shape. `None` if only a usage format or a look-up of a
    /// name finds the customer.
    pub customer_ref: Option<CustomerRef>,
    /// The key that identifies repeated events, or `None`.
    pub known_by: Option<FileEventKey>,
}

/// The key that identifies repeated events of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEventKey {
    /// The event's own idempotency key. It identifies the event in any file or request.
    Own(EventKey),
    /// A key made of the file name and the line. The same event in a file with another name is a different event.
    Line(EventKey),
}

impl FileEventKey {
    /// Returns the key under which the event is stored.
    pub const fn sent(&self) -> &EventKey {
        match self {
            Self::Own(sent) | Self::Line(sent) => sent,
        }
    }
}

/// Rejects a timestamp too far ahead of the clock.
///
/// # Errors
/// Returns `timestamp_in_future` if the timestamp is more than [`MAX_AHEAD_SECONDS`] ahead.
pub fn require_not_future(occurred_at: Timestamp, now: Timestamp) -> Result<(), Violations> {
    if occurred_at > now.plus_seconds(MAX_AHEAD_SECONDS) {
        let detail = "must not be more than 5 minutes ahead of the server's clock";
        return Err(Violations::one(&["timestamp"], "timestamp_in_future", detail));
    }
    Ok(())
}

/// The maximum number of events in a batch.
pub const MAX_BATCH_EVENTS: usize = 10_000;

/// The effect of a rejected event on the other events of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// The other events are recorded.
    PerEvent,
    /// All events are recorded, or none.
    Atomic,
}

/// Events that are recorded together, at most [`MAX_BATCH_EVENTS`].
#[derive(Clone, Debug)]
pub struct UsageBatch {
    /// The events.
    pub events: Vec<NewUsageEvent>,
    /// The effect of a rejected event on the other events.
    pub neighbours: Atomicity,
}

/// The changes to an event. Fields without a value stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventUpdate {
    /// The time of the usage.
    pub occurred_at: Option<Timestamp>,
    /// The quantity.
    pub quantity: Option<Quantity>,
    /// The columns for the usage report, replaced as a whole.
    pub report_data: Patch<ReportData>,
    /// The checks against the document, replaced as a whole.
    pub validations: Patch<Validations>,
    /// The customer. It must match the event, because it can't change.
    pub customer: Option<NamedCustomer>,
    /// The usage product. It must match the event, because it can't change.
    pub usage_product: Option<NamedUsageProduct>,
    /// The submitted event with the new values, if a usage format mapped it. An update without one clears the stored one if it
    /// changes anything, so a revision never refers to a submitted event with different values.
    pub formatted: Option<FormattedSource>,
}

impl EventUpdate {
    /// Returns the event with the changes applied. The result equals `present` if nothing changes.
    pub fn applied_to(&self, present: &UsageEvent) -> UsageEvent {
        let revised = UsageEvent {
            occurred_at: self.occurred_at.unwrap_or(present.occurred_at),
            quantity: self.quantity.unwrap_or(present.quantity),
            report_data: self.report_data.clone().apply(present.report_data.clone()),
            validations: self.validations.clone().apply(present.validations.clone()),
            ..present.clone()
        };
        if revised == *present && self.formatted.is_none() {
            return revised;
        }
        UsageEvent { formatted: self.formatted.clone(), ..revised }
    }
}
