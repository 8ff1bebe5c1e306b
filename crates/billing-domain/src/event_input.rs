//! Submitted usage: new events, events in files, and changes of events. [`usage`](crate::usage) has the stored events.

use std::borrow::Cow;
use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::calendar::Timestamp;
use crate::format::RefOrName;
use crate::idempotency::{IdempotencyKey, IdempotencyKeyError, MAX_KEY_CHARS};
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{CustomerRef, HoldRef, ImportRef, UsageProductRef};
use crate::usage::{FactsDigest, FormattedSource, MAX_AHEAD_SECONDS, ReportData, ReportValue, UsageEvent, Validations};
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
    /// Whether the sender left the time out. Then it is the time of receipt, and no fact of the event: a repeat comes later.
    pub is_time_of_receipt: bool,
    /// The quantity.
    pub quantity: Quantity,
    /// The columns for the usage report.
    pub report_data: Option<ReportData>,
    /// The checks against the document.
    pub validations: Option<Validations>,
    /// The submitted event, if a usage format mapped it.
    pub formatted: Option<FormattedSource>,
    /// The idempotency key, which identifies repeated and corrected events.
    pub key: Option<IdempotencyKey>,
    /// What happens if the key has other facts.
    pub on_conflict: OnConflict,
    /// Whether the sender states that the usage has already happened. This is no fact of the event.
    pub occurred: bool,
    /// The hold whose first open entry of the usage product the event ends. This is no fact of the event.
    pub hold_ref: Option<HoldRef>,
    /// The file import of the event.
    pub import: Option<ImportRef>,
}

impl NewUsageEvent {
    /// Returns whether a limit can reject the event (billing rules 11). A hold reserved room before the usage, and files contain usage
    /// that has already happened.
    pub const fn is_rejectable(&self) -> bool {
        !self.occurred && self.hold_ref.is_none() && self.import.is_none()
    }

    /// Returns the digest of the event's facts. The forms of the timestamp, of numbers and of labels make no difference, and the
    /// customer is none of them, because a key belongs to a customer.
    pub fn facts(&self) -> FactsDigest {
        FactsDigest::of(self.sent_time(), &self.usage_product, self.quantity, self.report_data.as_ref())
    }

    /// Returns the time of the usage, if the sender gave one.
    pub fn sent_time(&self) -> Option<Timestamp> {
        (!self.is_time_of_receipt).then_some(self.occurred_at)
    }

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
    /// The key that identifies repeated events, or `None`. A usage format can give the events of the line other keys.
    pub known_by: Option<FileEventKey>,
}

/// The key that identifies repeated events of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileEventKey {
    /// The event's own idempotency key. It identifies the event in any file or request.
    Own(IdempotencyKey),
    /// A key made of the file name and the line. The same event in a file with another name is a different event.
    Line(IdempotencyKey),
}

impl FileEventKey {
    /// Returns the key under which the event is stored.
    pub const fn key(&self) -> &IdempotencyKey {
        match self {
            Self::Own(key) | Self::Line(key) => key,
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

/// The maximum length in characters of the key of a record with several events: each event's key adds `#` and its number.
pub const MAX_RECORD_KEY_CHARS: usize = MAX_KEY_CHARS - 3;

/// The maximum number of events in a batch.
pub const MAX_BATCH_EVENTS: usize = 10_000;

/// What happens to an event whose key was used for an event with other facts (the parameter `on_conflict`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// The event is rejected.
    #[default]
    Reject,
    /// The recorded event gets these facts: the last delivery wins.
    Update,
}

impl FactsDigest {
    /// Returns the digest of facts. The usage product counts as it was named.
    pub fn of(
        occurred_at: Option<Timestamp>,
        usage_product: &NamedUsageProduct,
        quantity: Quantity,
        report_data: Option<&ReportData>,
    ) -> Self {
        let mut digest = Sha256::new();
        let mut add = |text: &str| {
            // The length keeps neighbors apart.
            digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(text);
        };
        add(&occurred_at.map_or_else(String::new, |at| at.to_string()));
        match usage_product {
            NamedUsageProduct::Ref(reference) => ["ref", reference.as_str()].map(&mut add),
            NamedUsageProduct::Name(name) => ["name", name.as_str()].map(&mut add),
        };
        add(&quantity.as_decimal().normalize().to_string());
        let labels: BTreeMap<&str, Cow<'_, str>> = report_data.into_iter().flat_map(ReportData::labels).collect();
        for (key, text) in labels {
            add(key);
            add(&text);
        }
        let hash: [u8; 32] = digest.finalize().into();
        Self(std::array::from_fn(|i| hash[i]))
    }
}

impl IdempotencyKey {
    /// Returns the key of a CloudEvent, which its `source` and `id` identify: their SHA-256 with a zero byte between them, in
    /// hexadecimal digits.
    ///
    /// # Errors
    /// Returns [`IdempotencyKeyError`] if one of them is empty or has a control character. With a zero byte, two pairs could have
    /// the same key, and the event of one would count as a repeat of the other.
    pub fn of_cloud_event(source: &str, id: &str) -> Result<Self, IdempotencyKeyError> {
        for text in [source, id] {
            if text.is_empty() {
                return Err(IdempotencyKeyError::Empty);
            }
            if text.chars().any(char::is_control) {
                return Err(IdempotencyKeyError::ControlCharacter);
            }
        }
        let hash: [u8; 32] = Sha256::new().chain_update(source).chain_update([0]).chain_update(id).finalize().into();
        let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self::parse(&digits)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the digest of facts: timestamp, quantity, and labels as keys and values.
    fn facts(at: &str, quantity: &str, labels: &[(&str, ReportValue)]) -> FactsDigest {
        let product = NamedUsageProduct::Ref(UsageProductRef::parse("calls").expect("a reference"));
        let labels: Vec<(String, ReportValue)> = labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let (at, quantity) = (Timestamp::parse(at).expect(at), Quantity::parse(quantity).expect(quantity));
        FactsDigest::of(Some(at), &product, quantity, Some(&ReportData::new(labels)))
    }

    #[test]
    fn facts_are_the_same_in_any_form() {
        let (number, text) = (|text: &str| ReportValue::Number(text.to_owned()), |text: &str| ReportValue::Text(text.to_owned()));
        let plain = facts("2026-01-20T12:00:00Z", "5", &[]);
        assert_eq!(facts("2026-01-20T13:00:00.000+01:00", "5.000", &[]), plain);
        assert_eq!(facts("2026-01-20T12:00:00Z", "5", &[("a", ReportValue::Null), ("b", text(""))]), plain);
        let labeled = facts("2026-01-20T12:00:00Z", "5", &[("a", number("1.50")), ("b", ReportValue::Bool(true))]);
        assert_eq!(facts("2026-01-20T12:00:00Z", "5", &[("b", text("true")), ("a", text("1.5"))]), labeled);
        let others = [
            facts("2026-01-20T12:00:00.001Z", "5", &[]),
            facts("2026-01-20T12:00:00Z", "5.000000001", &[]),
            labeled,
            facts("2026-01-20T12:00:00Z", "5", &[("a", text("1.5"))]),
            facts("2026-01-20T12:00:00Z", "5", &[("a", text("1.5b"))]),
            facts("2026-01-20T12:00:00Z", "5", &[("ab", text("1.5"))]),
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(*other != plain && !others[..index].contains(other), "{index}");
        }
        let at = Timestamp::parse("2026-01-20T12:00:00Z").expect("a time");
        let (calls, five) = (UsageProductRef::parse("calls").expect("a reference"), Quantity::parse("5").expect("a quantity"));
        assert_eq!(FactsDigest::of(Some(at), &NamedUsageProduct::Ref(calls), five, None), plain);
        let by_name = NamedUsageProduct::Name(crate::text::OneLine::parse("calls").expect("a name"));
        assert_ne!(FactsDigest::of(Some(at), &by_name, five, None), plain, "a usage product counts as it is named");
        assert_ne!(FactsDigest::of(None, &by_name, five, None), FactsDigest::of(Some(at), &by_name, five, None));
    }

    #[test]
    fn a_cloud_event_is_known_by_source_and_id() {
        let key = IdempotencyKey::of_cloud_event("/meters/1", "a7").expect("a key");
        // printf '/meters/1\0a7' | sha256sum
        assert_eq!(key.as_str(), "3f538513e5047f757e625de0f4b98223384ec2b81637eac640becf33bee49e52");
        assert_ne!(IdempotencyKey::of_cloud_event("/meters/1a", "7"), Ok(key));
        for (source, id) in [("/meters/1\0a", "7"), ("/meters/1", "a\0b"), ("/meters\n", "7")] {
            assert_eq!(
                IdempotencyKey::of_cloud_event(source, id),
                Err(IdempotencyKeyError::ControlCharacter),
                "{source:?} {id:?}"
            );
        }
        assert_eq!(IdempotencyKey::of_cloud_event("", "7"), Err(IdempotencyKeyError::Empty));
    }
}
