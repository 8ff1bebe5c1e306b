//! Usage events: what was reported, and where it was put. Rating is elsewhere.

use chrono::NaiveDate;
use thiserror::Error;

use crate::access::Actor;
use crate::calendar::{Period, Timestamp};
use crate::catalog::Aggregation;
use crate::decimal::AmountOutOfRange;
use crate::document::numbering::DocumentNumber;
use crate::idempotency::{BodyDigest, BodyHash, IdempotencyKey};
use crate::money::Currency;
use crate::quantity::{Quantity, QuantitySum};
use crate::refs::{ContractRef, CustomerId, DocumentRef, EntityRef, EventRef, FormatRef, ProductNo, UsageProductRef};

use rust_decimal::Decimal;

/// The most keys of a report.
pub const MAX_REPORT_KEYS: usize = 100;
/// The most characters of a report key.
pub const MAX_REPORT_KEY_CHARS: usize = 128;
/// The most bytes of a report value.
pub const MAX_REPORT_VALUE_BYTES: usize = 2048;
/// How far ahead of the clock a timestamp may be, in seconds.
pub const MAX_AHEAD_SECONDS: i64 = 300;

/// A value of additional report data. Numbers keep the text they came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportValue {
    /// JSON `null`.
    Null,
    /// JSON `true` or `false`.
    Bool(bool),
    /// A JSON number, as written.
    Number(String),
    /// A text.
    Text(String),
}

impl ReportValue {
    /// The bytes of its text.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(text) | Self::Text(text) => text.len(),
        }
    }
}

/// Free keys and values that become columns of the usage report; the order is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportData(Vec<(String, ReportValue)>);

/// Why report data is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReportDataError {
    /// More than [`MAX_REPORT_KEYS`].
    #[error("must have at most {MAX_REPORT_KEYS} keys")]
    TooManyKeys,
    /// A key that is empty, too long or has control characters.
    #[error("keys must be 1 to {MAX_REPORT_KEY_CHARS} characters without control characters")]
    Key(String),
    /// A value that is too long or has control characters.
    #[error("values must be at most {MAX_REPORT_VALUE_BYTES} bytes without control characters")]
    Value(String),
}

impl ReportData {
    /// Checks keys and values against their limits.
    ///
    /// # Errors
    /// [`ReportDataError`] names the first that breaks one.
    pub fn new(entries: Vec<(String, ReportValue)>) -> Result<Self, ReportDataError> {
        if entries.len() > MAX_REPORT_KEYS {
            return Err(ReportDataError::TooManyKeys);
        }
        for (key, value) in &entries {
            let chars = key.chars().count();
            if chars == 0 || chars > MAX_REPORT_KEY_CHARS || key.chars().any(char::is_control) {
                return Err(ReportDataError::Key(key.clone()));
            }
            let text = match value {
                ReportValue::Number(text) | ReportValue::Text(text) => text,
                ReportValue::Null | ReportValue::Bool(_) => continue,
            };
            if text.len() > MAX_REPORT_VALUE_BYTES || text.chars().any(char::is_control) {
                return Err(ReportDataError::Value(key.clone()));
            }
        }
        Ok(Self(entries))
    }

    /// Keys and values in the order given.
    pub fn entries(&self) -> &[(String, ReportValue)] {
        &self.0
    }
}

/// Checks that an event matches its document (billing rules 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validations {
    /// The document's currency must be this.
    pub currency: Option<Currency>,
    /// The document's entity must be this.
    pub entity_ref: Option<EntityRef>,
}

/// Where an event counts: one service period of one contract product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The contract.
    pub contract_ref: ContractRef,
    /// The product.
    pub product_no: ProductNo,
    /// The service period.
    pub service_period: Period,
    /// The document its latest change stands on.
    pub document_ref: DocumentRef,
}

/// How a formatted event came in; kept so that it can be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormattedSource {
    /// The format.
    pub format_ref: FormatRef,
    /// The format's version.
    pub format_version: u32,
    /// The event as submitted: a JSON object's text.
    pub raw_event: String,
}

/// A stored usage event, as its latest revision has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEvent {
    /// Assigned by the service.
    pub event_ref: EventRef,
    /// The customer.
    pub customer_id: CustomerId,
    /// What was used.
    pub usage_product_ref: UsageProductRef,
    /// When it was used.
    pub occurred_at: Timestamp,
    /// The date of that instant in the entity's time zone, as it was when the event was taken or moved (billing rules 2).
    pub service_date: NaiveDate,
    /// How much.
    pub quantity: Quantity,
    /// Columns for the usage report.
    pub report_data: Option<ReportData>,
    /// Checks given with the event; made again when it changes.
    pub validations: Option<Validations>,
    /// Where it counts.
    pub placement: Placement,
    /// How it came in, when by a format.
    pub formatted: Option<FormattedSource>,
    /// When it was first stored.
    pub recorded_at: Timestamp,
    /// Counts from 1.
    pub revision: u32,
    /// When this revision was made.
    pub revised_at: Timestamp,
    /// Who made this revision.
    pub revised_by: Actor,
    /// Whether this revision deleted it.
    pub deleted: bool,
}

/// What happened to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// It was taken.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
}

impl UsageEvent {
    /// What this revision did.
    pub const fn action(&self) -> EventAction {
        match (self.deleted, self.revision) {
            (true, _) => EventAction::Deleted,
            (false, 1) => EventAction::Created,
            (false, _) => EventAction::Updated,
        }
    }

    /// What of it counts.
    pub const fn counted(&self) -> CountedEvent {
        CountedEvent {
            event_ref: self.event_ref,
            occurred_at: self.occurred_at,
            service_date: self.service_date,
            quantity: self.quantity,
        }
    }

    /// The running total it counts in.
    pub fn usage_key(&self) -> UsageKey {
        UsageKey {
            contract_ref: self.placement.contract_ref,
            product_no: self.placement.product_no,
            period_start: self.placement.service_period.start(),
            usage_product_ref: self.usage_product_ref.clone(),
        }
    }
}

/// The key an event was sent with, and what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventKey {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// Tells a repeat from another event under the same key.
    pub body: BodyHash,
}

/// An event that was taken under a key, and what was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventKeyRecord {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// Tells a repeat from another event under the same key.
    pub body: BodyDigest,
    /// The event.
    pub event_ref: EventRef,
    /// What its repeats are answered, to the byte.
    pub answer: String,
}

/// An event whose key is to be kept, and where it was put: most answers say no more than that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEventKeyRecord {
    /// What is kept.
    pub kept: EventKeyRecord,
    /// The document the event was put on when it was stored.
    pub document_ref: DocumentRef,
    /// That document's number.
    pub document_number: DocumentNumber,
}

/// Names one running total: the usage of one usage product in one service period of a contract product.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageKey {
    /// The contract.
    pub contract_ref: ContractRef,
    /// The product.
    pub product_no: ProductNo,
    /// The service period's first day, which names it: amendments cut periods, they never move a start.
    pub period_start: NaiveDate,
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
}

/// What of an event counts in a running total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedEvent {
    /// Its reference; of equal timestamps the later arrival, whose reference is greater, is the latest.
    pub event_ref: EventRef,
    /// Its timestamp.
    pub occurred_at: Timestamp,
    /// The date it counts on.
    pub service_date: NaiveDate,
    /// Its quantity.
    pub quantity: Quantity,
}

/// The running total of a service period: enough for every aggregation, whatever the number of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageTotal {
    /// Sum of the quantities.
    pub sum: QuantitySum,
    /// Number of events.
    pub events: u64,
    /// The largest quantity; `None` without events, and where only counting again tells.
    pub max: Option<Quantity>,
    /// The latest event; `None` without events, and where only counting again tells.
    pub latest: Option<CountedEvent>,
    /// The latest service date, which a time zone can make another than the latest event's; `None` as of `latest`.
    pub last_day: Option<NaiveDate>,
}

impl UsageTotal {
    /// No usage.
    pub const ZERO: Self = Self { sum: QuantitySum::ZERO, events: 0, max: None, latest: None, last_day: None };

    /// With one more event. The order in which events are added doesn't matter.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when the sum grows beyond its digits.
    pub fn plus(self, event: CountedEvent) -> Result<Self, AmountOutOfRange> {
        let later = |latest: CountedEvent| (latest.occurred_at, latest.event_ref) < (event.occurred_at, event.event_ref);
        let first = self.events == 0;
        Ok(Self {
            sum: self.sum.plus(event.quantity)?,
            events: self.events.checked_add(1).ok_or(AmountOutOfRange)?,
            // What isn't known stays so: the others may have decided it.
            max: if first { Some(event.quantity) } else { self.max.map(|max| max.max(event.quantity)) },
            latest: if first { Some(event) } else { self.latest.map(|latest| if later(latest) { event } else { latest }) },
            last_day: if first { Some(event.service_date) } else { self.last_day.map(|day| day.max(event.service_date)) },
        })
    }

    /// With one event less. Where it may have decided the largest, the latest or the last day, that isn't known any more.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when the event wasn't part of the total.
    pub fn minus(self, event: CountedEvent) -> Result<Self, AmountOutOfRange> {
        let events = self.events.checked_sub(1).ok_or(AmountOutOfRange)?;
        let sum = self.sum.minus(event.quantity)?;
        if events == 0 {
            return Ok(Self::ZERO);
        }
        let latest = self.latest.filter(|latest| latest.event_ref != event.event_ref);
        let is_known = |day: &NaiveDate| *day != event.service_date || latest.is_some_and(|latest| latest.service_date == *day);
        Ok(Self {
            sum,
            events,
            max: self.max.filter(|max| *max != event.quantity),
            latest,
            last_day: self.last_day.filter(is_known),
        })
    }

    /// Whether it tells Q; else only counting the events again does.
    pub fn knows(&self, aggregation: Aggregation) -> bool {
        match aggregation {
            Aggregation::Sum | Aggregation::Count => true,
            Aggregation::Max => self.events == 0 || self.max.is_some(),
            Aggregation::Latest => self.events == 0 || self.latest.is_some(),
        }
    }

    /// Q: the one quantity a period is rated by (billing rules 6).
    pub fn quantity(&self, aggregation: Aggregation) -> Decimal {
        match aggregation {
            Aggregation::Sum => self.sum.as_decimal(),
            Aggregation::Count => Decimal::from(self.events),
            Aggregation::Max => self.max.map_or(Decimal::ZERO, Quantity::as_decimal),
            Aggregation::Latest => self.latest.map_or(Decimal::ZERO, |latest| latest.quantity.as_decimal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_total_does_not_depend_on_the_order_of_arrival() {
        let event = |n: u128, at: &str, quantity: &str| CountedEvent {
            event_ref: EventRef::from_uuid(Uuid::from_u128(n)),
            occurred_at: Timestamp::parse(at).expect(at),
            service_date: NaiveDate::MIN,
            quantity: Quantity::parse(quantity).expect(quantity),
        };
        let mut events = [
            event(1, "2026-01-03T00:00:00Z", "2.5"),
            event(2, "2026-01-05T00:00:00Z", "0.1"),
            event(3, "2026-01-05T00:00:00Z", "7"),
            event(4, "2026-01-01T00:00:00Z", "9"),
        ];
        let total =
            |events: &[CountedEvent]| events.iter().try_fold(UsageTotal::ZERO, |total, e| total.plus(*e)).expect("in range");
        let forwards = total(&events);
        events.reverse();
        assert_eq!(total(&events), forwards);
        let shown = [Aggregation::Sum, Aggregation::Count, Aggregation::Max, Aggregation::Latest]
            .map(|aggregation| forwards.quantity(aggregation).to_string());
        assert_eq!(shown, ["18.6", "4", "9", "7"]);

        let without_largest = forwards.minus(events[0]).expect("it was counted");
        let known = [Aggregation::Sum, Aggregation::Count, Aggregation::Max, Aggregation::Latest]
            .map(|aggregation| without_largest.knows(aggregation));
        assert_eq!(known, [true, true, false, true], "the largest has to be counted again, the sum hasn't");
        assert!(!without_largest.plus(events[1]).expect("in range").knows(Aggregation::Max), "one more doesn't tell the largest");
    }

    #[test]
    fn the_last_day_is_the_latest_service_date_whatever_the_order_of_timestamps() {
        let day = |day: u32| NaiveDate::from_ymd_opt(2026, 3, day).expect("a day of March");
        let event = |n: u128, at: &str, on: u32| CountedEvent {
            event_ref: EventRef::from_uuid(Uuid::from_u128(n)),
            occurred_at: Timestamp::parse(at).expect(at),
            service_date: day(on),
            quantity: Quantity::ONE,
        };
        // The second was taken after the zone had moved west.
        let (first, second) = (event(1, "2026-03-10T03:00:00Z", 10), event(2, "2026-03-10T05:00:00Z", 9));
        let total = |events: &[CountedEvent]| events.iter().try_fold(UsageTotal::ZERO, |sum, e| sum.plus(*e)).expect("in range");
        assert_eq!(total(&[first, second]).last_day, Some(day(10)));
        assert_eq!(total(&[second, first]).last_day, Some(day(10)));
        assert_eq!(total(&[first, second]).minus(second).expect("counted").last_day, Some(day(10)), "it didn't decide");
        let without = total(&[first, second]).minus(first).expect("counted");
        assert_eq!(without.last_day, None, "only counting again tells");
        assert_eq!(without.plus(first).expect("in range").last_day, None);
        assert_eq!(without.minus(second).expect("counted"), UsageTotal::ZERO);
        // The latest event is of the same day.
        let third = event(3, "2026-03-10T09:00:00Z", 10);
        assert_eq!(total(&[first, second, third]).minus(first).expect("counted").last_day, Some(day(10)));
    }

    #[test]
    fn report_data_keeps_its_order_and_limits() {
        let entry = |key: &str, value: &str| (key.to_owned(), ReportValue::Text(value.to_owned()));
        let data = ReportData::new(vec![entry("z", "1"), entry("a", "2")]).expect("two entries");
        assert_eq!(data.entries()[0].0, "z");
        assert!(ReportData::new(vec![entry("", "1")]).is_err());
        assert!(ReportData::new(vec![entry(&"k".repeat(129), "1")]).is_err());
        assert!(ReportData::new(vec![entry("k", &"v".repeat(2049))]).is_err());
        assert!(ReportData::new(vec![entry("k", "\0")]).is_err());
        assert_eq!(ReportData::new(vec![entry("k", "v"); 101]), Err(ReportDataError::TooManyKeys));
    }
}
