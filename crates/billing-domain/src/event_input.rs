//! Usage as it is reported: events to take, and changes of events. What is stored of them is [`usage`](crate::usage)'s.

use crate::calendar::Timestamp;
use crate::format::RefOrName;
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{CustomerRef, ImportRef, UsageProductRef};
use crate::usage::{EventKey, FormattedSource, MAX_AHEAD_SECONDS, ReportData, ReportValue, UsageEvent, Validations};
use crate::violation::Violations;

/// A customer, by reference or, when only one has it, by name.
pub type NamedCustomer = RefOrName<CustomerRef>;
/// A usage product, by reference or, when only one has it, by name.
pub type NamedUsageProduct = RefOrName<UsageProductRef>;

/// An event as reported.
#[derive(Clone, Debug)]
pub struct NewUsageEvent {
    /// Who used.
    pub customer: NamedCustomer,
    /// What was used.
    pub usage_product: NamedUsageProduct,
    /// When.
    pub occurred_at: Timestamp,
    /// How much.
    pub quantity: Quantity,
    /// Columns for the usage report.
    pub report_data: Option<ReportData>,
    /// Checks against the document.
    pub validations: Option<Validations>,
    /// How it came in, when by a format.
    pub formatted: Option<FormattedSource>,
    /// The key it was sent with, by which repeats are known.
    pub sent: Option<EventKey>,
    /// The import that brings it.
    pub import: Option<ImportRef>,
}

impl NewUsageEvent {
    /// About how many bytes it takes while it waits: what it is, and the texts that may be long.
    pub fn bytes(&self) -> usize {
        let reported = self.report_data.iter().flat_map(ReportData::entries);
        let raw = self.formatted.as_ref().map_or(0, |formatted| formatted.raw_event.len());
        size_of::<Self>() + raw + reported.map(|(key, value)| size_of::<ReportValue>() + key.len() + value.bytes()).sum::<usize>()
    }
}

/// An event as it stands in a file, before a usage format has read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// Where it stands: the line, or the place in an array, from 1.
    pub line: u64,
    /// The text of a JSON object.
    pub event: String,
    /// Of which recorded event it is said to be a copy, where it says so.
    pub event_ref: Option<String>,
    /// What its repeats are known by, if anything.
    pub known_by: Option<FileEventKey>,
}

/// What the repeats of an event in a file are known by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEventKey {
    /// A key of its own, wherever it comes in again.
    Own(EventKey),
    /// The file's name and its line: in a file of another name it is another event.
    Line(EventKey),
}

impl FileEventKey {
    /// The key it is kept under.
    pub const fn sent(&self) -> &EventKey {
        match self {
            Self::Own(sent) | Self::Line(sent) => sent,
        }
    }
}

/// Refuses a timestamp too far ahead of the clock.
///
/// # Errors
/// `timestamp_in_future`.
pub fn refuse_future(occurred_at: Timestamp, now: Timestamp) -> Result<(), Violations> {
    if occurred_at > now.plus_seconds(MAX_AHEAD_SECONDS) {
        let detail = "must not be more than 5 minutes ahead of the server's clock";
        return Err(Violations::one(&["timestamp"], "timestamp_in_future", detail));
    }
    Ok(())
}

/// The most events of a batch.
pub const MAX_BATCH_EVENTS: usize = 10_000;

/// Whether a refused event stops the others of its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomicity {
    /// They are taken.
    PerEvent,
    /// All are taken, or none.
    Atomic,
}

/// Events to take together, at most [`MAX_BATCH_EVENTS`].
#[derive(Clone, Debug)]
pub struct UsageBatch {
    /// The events.
    pub events: Vec<NewUsageEvent>,
    /// What a refused one is to the others.
    pub neighbours: Atomicity,
}

/// What of an event is to change; the rest is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventUpdate {
    /// When it was used.
    pub occurred_at: Option<Timestamp>,
    /// How much.
    pub quantity: Option<Quantity>,
    /// Columns for the usage report, replaced whole.
    pub report_data: Patch<ReportData>,
    /// Checks against the document, replaced whole.
    pub validations: Patch<Validations>,
    /// The customer, repeated: it can't change.
    pub customer: Option<NamedCustomer>,
    /// The usage product, repeated: it can't change.
    pub usage_product: Option<NamedUsageProduct>,
    /// How the new values came in, when by a format. An update without it that changes anything leaves none: a
    /// revision never shows a submitted event that says something else.
    pub formatted: Option<FormattedSource>,
}

impl EventUpdate {
    /// The event with the changes; the event as it is where nothing changes.
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
