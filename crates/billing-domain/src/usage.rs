//! Usage events and running totals. [`rating`](crate::rating) prices them.

use chrono::NaiveDate;

pub use crate::report_data::{
    MAX_REPORT_KEY_CHARS, MAX_REPORT_KEYS, MAX_REPORT_VALUE_BYTES, ReportData, ReportKeyError, ReportValue, check_report_key,
};

use crate::access::Actor;
use crate::calendar::{Period, Timestamp};
use crate::catalog::Aggregation;
use crate::decimal::AmountOutOfRange;
use crate::document::numbering::DocumentNumber;
use crate::idempotency::IdempotencyKey;
use crate::labels::LabelDigest;
use crate::money::Currency;
use crate::quantity::{Quantity, QuantitySum};
use crate::refs::{ContractRef, CustomerId, DocumentRef, EntityRef, EventRef, FormatRef, LineItemId, ProductNo, UsageProductRef};

use rust_decimal::Decimal;
use uuid::Uuid;

/// The maximum time in seconds that a timestamp may be ahead of the clock.
pub const MAX_AHEAD_SECONDS: i64 = 300;

/// The bound of the total of one line item, so that the totals of all line items of a pricing can be joined.
const MAX_LINE_ITEM_SUM: Decimal = Decimal::from_parts(1_874_919_424, 2_328_306, 0, false, 0);

/// Checks that an event matches the document that bills it (billing rules 4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validations {
    /// The required currency of the document.
    pub currency: Option<Currency>,
    /// The required entity of the document.
    pub entity_ref: Option<EntityRef>,
}

/// The service period of a contract product that an event counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The contract.
    pub contract_ref: ContractRef,
    /// The product.
    pub product_no: ProductNo,
    /// The service period.
    pub service_period: Period,
    /// The document of the event's latest change.
    pub document_ref: DocumentRef,
}

/// The origin of an event that a usage format mapped. It makes the mapping traceable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormattedSource {
    /// The format.
    pub format_ref: FormatRef,
    /// The version of the format.
    pub format_version: u32,
    /// The submitted event: the text of a JSON object.
    pub raw_event: String,
}

/// A stored usage event at its latest revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageEvent {
    /// The reference, assigned by the service.
    pub event_ref: EventRef,
    /// The customer.
    pub customer_id: CustomerId,
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
    /// The time of the usage.
    pub occurred_at: Timestamp,
    /// The date of `occurred_at` in the entity's time zone at the time the event was recorded or moved (billing rules 2).
    pub service_date: NaiveDate,
    /// The quantity.
    pub quantity: Quantity,
    /// The columns for the usage report.
    pub report_data: Option<ReportData>,
    /// The checks submitted with the event. They run again when the event changes.
    pub validations: Option<Validations>,
    /// The service period and document of the event.
    pub placement: Placement,
    /// The digest of the label whose distinct texts the terms count (`UNIQUE`).
    pub unique_digest: Option<LabelDigest>,
    /// The contract product that the event was first matched to, if a change moved it to another one.
    pub first_match: Option<(ContractRef, ProductNo)>,
    /// The submitted event, if a usage format mapped it.
    pub formatted: Option<FormattedSource>,
    /// The time at which the event was first stored.
    pub recorded_at: Timestamp,
    /// The revision number, starting at 1.
    pub revision: u32,
    /// The time of this revision.
    pub revised_at: Timestamp,
    /// The actor of this revision.
    pub revised_by: Actor,
    /// Whether this revision deleted the event.
    pub deleted: bool,
}

/// The action of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// The event was recorded.
    Created,
    /// The event was changed.
    Updated,
    /// The event was deleted.
    Deleted,
}

impl UsageEvent {
    /// Returns the action of this revision.
    pub const fn action(&self) -> EventAction {
        match (self.deleted, self.revision) {
            (true, _) => EventAction::Deleted,
            (false, 1) => EventAction::Created,
            (false, _) => EventAction::Updated,
        }
    }

    /// Returns the contract product that the event was first matched to.
    pub fn first_matched(&self) -> (ContractRef, ProductNo) {
        self.first_match.unwrap_or((self.placement.contract_ref, self.placement.product_no))
    }

    /// Returns the values that count in a running total.
    pub const fn counted(&self) -> CountedEvent {
        CountedEvent {
            event_ref: self.event_ref,
            occurred_at: self.occurred_at,
            service_date: self.service_date,
            quantity: self.quantity,
            is_distinct: None,
        }
    }

    /// Returns the key of the running total of all line items in the event's period, of which the event counts in one. A
    /// contract's terms select the line item: [`Contract::usage_key`](crate::contract::Contract::usage_key).
    pub fn period_key(&self) -> UsageKey {
        UsageKey {
            contract_ref: self.placement.contract_ref,
            product_no: self.placement.product_no,
            period_start: self.placement.service_period.start(),
            usage_product_ref: self.usage_product_ref.clone(),
            line_item_id: None,
        }
    }
}

/// The digest of an event's facts: its timestamp, usage product, quantity and labels (billing rules 4). Events with the same key
/// and the same facts are the same event, in whatever form they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactsDigest(pub [u8; 16]);

/// The idempotency record of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventKeyRecord {
    /// The caller's key.
    pub key: IdempotencyKey,
    /// The facts that were last delivered under the key. They distinguish a repeated event from a corrected one.
    pub facts: FactsDigest,
    /// The event.
    pub event_ref: EventRef,
    /// The response that repeated requests get, byte for byte.
    pub answer: String,
    /// The fields of the response.
    pub form: AnswerForm,
}

/// A recorded event that gets the facts of another one with its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyConflict {
    /// The recorded event.
    pub event_ref: EventRef,
    /// The facts that were last delivered under the key.
    pub before: FactsDigest,
}

/// The fields of the response to a reported event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// The references of the event and its document, and the document's number.
    Place,
    /// All fields of the event.
    Event,
}

/// An idempotency record to save, with the document of its event. Most responses contain nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEventKeyRecord {
    /// The record.
    pub kept: EventKeyRecord,
    /// The document of the event at the time it was recorded.
    pub document_ref: DocumentRef,
    /// The number of that document.
    pub document_number: DocumentNumber,
}

/// The key of a running total: a usage product in a service period of a contract product, or one of its line items with `where`
/// or `rest`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageKey {
    /// The contract.
    pub contract_ref: ContractRef,
    /// The product.
    pub product_no: ProductNo,
    /// The first day of the service period. It identifies the period, because amendments shorten periods but never move their start.
    pub period_start: NaiveDate,
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
    /// The line item that counts the events; `None` if no line item of the usage product has `where` or `rest`.
    pub line_item_id: Option<LineItemId>,
}

impl UsageKey {
    /// Returns the key of the running total of a line item in the same period.
    #[must_use]
    pub fn of_line_item(&self, line_item_id: Option<&LineItemId>) -> Self {
        Self { line_item_id: line_item_id.cloned(), ..self.clone() }
    }

    /// Returns whether both running totals are of the same usage product and period.
    pub fn is_of_same_period(&self, other: &Self) -> bool {
        (self.contract_ref, self.product_no, self.period_start, &self.usage_product_ref)
            == (other.contract_ref, other.product_no, other.period_start, &other.usage_product_ref)
    }
}

/// The values of an event that count in a running total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedEvent {
    /// The reference. Of events with equal timestamps, the one with the greater reference arrived later and is the latest.
    pub event_ref: EventRef,
    /// The time of the usage.
    pub occurred_at: Timestamp,
    /// The service date.
    pub service_date: NaiveDate,
    /// The quantity.
    pub quantity: Quantity,
    /// Whether no other event of the running total has the text of its label that the terms count (`UNIQUE`). `None` if the terms
    /// count no label. [`LiveLabels`](crate::ledger::live_labels::LiveLabels) tells.
    pub is_distinct: Option<bool>,
}

/// Changes of events in a constant size: the sum of a digest of each event that now counts, less those that no longer do. Equal
/// sums are equal changes, and changes that cancel each other out have the sum zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventChanges(i64);

impl EventChanges {
    /// No change.
    pub const NONE: Self = Self(0);

    /// Returns the change of an event that counts from now on.
    pub fn counted(event: &CountedEvent) -> Self {
        let (high, low) = event.event_ref.as_uuid().as_u64_pair();
        let quantity = event.quantity.as_decimal().normalize();
        let (digits_high, digits_low) = Uuid::from_u128(quantity.mantissa().unsigned_abs()).as_u64_pair();
        let parts = [high, low, digits_high, digits_low, u64::from(quantity.scale())];
        // The finalizer of SplitMix64, applied to each part.
        let digest = parts.into_iter().fold(0_u64, |digest, part| {
            let mixed = (digest ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        });
        Self(digest.cast_signed())
    }

    /// Returns both changes together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// Returns the opposite change.
    #[must_use]
    pub const fn negated(self) -> Self {
        Self(self.0.wrapping_neg())
    }

    /// Creates changes from a stored sum.
    pub const fn from_sum(sum: i64) -> Self {
        Self(sum)
    }

    /// Returns the sum to store.
    pub const fn sum(self) -> i64 {
        self.0
    }
}

/// The running total of a service period. It supports every aggregation with constant size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageTotal {
    /// The sum of the quantities.
    pub sum: QuantitySum,
    /// The number of events.
    pub events: u64,
    /// The largest quantity. `None` without events, or if only a recount of the events can determine it.
    pub max: Option<Quantity>,
    /// The latest event. `None` without events, or if only a recount of the events can determine it.
    pub latest: Option<CountedEvent>,
    /// The latest service date, `None` under the same conditions as `latest`. After a time zone change, it can differ from the
    /// service date of the latest event.
    pub last_day: Option<NaiveDate>,
    /// The number of distinct texts of the label that `UNIQUE` counts. `None` without events, and if no line item counts a label.
    pub distinct: Option<u64>,
}

impl UsageTotal {
    /// A total without events.
    pub const ZERO: Self = Self { sum: QuantitySum::ZERO, events: 0, max: None, latest: None, last_day: None, distinct: None };

    /// Returns the total with one more event. The order of additions doesn't matter.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the sum exceeds its digits.
    pub fn plus(self, event: CountedEvent) -> Result<Self, AmountOutOfRange> {
        let adds = event.is_distinct.map(u64::from);
        let later = |latest: CountedEvent| (latest.occurred_at, latest.event_ref) < (event.occurred_at, event.event_ref);
        let first = self.events == 0;
        let distinct = if first { Some(0) } else { self.distinct };
        let event = CountedEvent { is_distinct: None, ..event };
        Ok(Self {
            sum: self.sum.plus(event.quantity)?,
            events: self.events.checked_add(1).ok_or(AmountOutOfRange)?,
            // An unknown value stays unknown, because an earlier event may determine it.
            max: if first { Some(event.quantity) } else { self.max.map(|max| max.max(event.quantity)) },
            latest: if first { Some(event) } else { self.latest.map(|latest| if later(latest) { event } else { latest }) },
            last_day: if first { Some(event.service_date) } else { self.last_day.map(|day| day.max(event.service_date)) },
            distinct: distinct.zip(adds).map(|(distinct, adds)| distinct.saturating_add(adds)),
        })
    }

    /// Returns the total of these events and of other events.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the sum exceeds its digits.
    pub fn joined(self, other: Self) -> Result<Self, AmountOutOfRange> {
        if self.events == 0 || other.events == 0 {
            return Ok(if self.events == 0 { other } else { self });
        }
        let later = |event: CountedEvent| (event.occurred_at, event.event_ref);
        Ok(Self {
            sum: self.sum.plus_sum(other.sum)?,
            events: self.events.checked_add(other.events).ok_or(AmountOutOfRange)?,
            max: self.max.zip(other.max).map(|(max, other)| max.max(other)),
            latest: self.latest.zip(other.latest).map(|(a, b)| if later(a) < later(b) { b } else { a }),
            last_day: self.last_day.zip(other.last_day).map(|(day, other)| day.max(other)),
            // Both can have the same texts.
            distinct: None,
        })
    }

    /// Returns a total that becomes this one when the last added events are added to it again. Its sum and count are those
    /// before these events. Its maximum, latest event and last day are unchanged, so it rates only sums and counts.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the events weren't part of the total.
    pub fn before_adding(self, added: Self) -> Result<Self, AmountOutOfRange> {
        let events = self.events.checked_sub(added.events).ok_or(AmountOutOfRange)?;
        let sum = self.sum.minus_sum(added.sum)?;
        Ok(if events == 0 { Self::ZERO } else { Self { sum, events, ..self } })
    }

    /// Returns the total without an event. The maximum, latest event or last day becomes unknown if the removed event may have
    /// determined it.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the event wasn't part of the total.
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
            distinct: self.distinct.zip(event.is_distinct).map(|(distinct, is_last)| distinct.saturating_sub(u64::from(is_last))),
        })
    }

    /// Returns whether the sum is small enough for the total of one of many line items, which can be joined.
    pub fn fits_line_item(&self) -> bool {
        self.sum.as_decimal() < MAX_LINE_ITEM_SUM
    }

    /// Returns whether the total determines the quantity Q of an aggregation. If not, the events must be recounted.
    pub fn knows(&self, aggregation: Aggregation) -> bool {
        match aggregation {
            Aggregation::Sum | Aggregation::Count => true,
            Aggregation::Max => self.events == 0 || self.max.is_some(),
            Aggregation::Latest => self.events == 0 || self.latest.is_some(),
            Aggregation::Unique => self.events == 0 || self.distinct.is_some(),
        }
    }

    /// Returns Q, the quantity that a period is rated by (billing rules 6).
    pub fn quantity(&self, aggregation: Aggregation) -> Decimal {
        match aggregation {
            Aggregation::Sum => self.sum.as_decimal(),
            Aggregation::Count => Decimal::from(self.events),
            Aggregation::Max => self.max.map_or(Decimal::ZERO, Quantity::as_decimal),
            Aggregation::Latest => self.latest.map_or(Decimal::ZERO, |latest| latest.quantity.as_decimal()),
            Aggregation::Unique => self.distinct.map_or(Decimal::ZERO, Decimal::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_does_not_depend_on_the_order_of_arrival() {
        let event = |n: u128, at: &str, quantity: &str| CountedEvent {
            event_ref: EventRef::from_uuid(Uuid::from_u128(n)),
            occurred_at: Timestamp::parse(at).expect(at),
            service_date: NaiveDate::MIN,
            quantity: Quantity::parse(quantity).expect(quantity),
            is_distinct: None,
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
            is_distinct: None,
        };
        // The second event arrived after the zone had moved west.
        let (first, second) = (event(1, "2026-03-10T03:00:00Z", 10), event(2, "2026-03-10T05:00:00Z", 9));
        let total = |events: &[CountedEvent]| events.iter().try_fold(UsageTotal::ZERO, |sum, e| sum.plus(*e)).expect("in range");
        assert_eq!(total(&[first, second]).last_day, Some(day(10)));
        assert_eq!(total(&[second, first]).last_day, Some(day(10)));
        assert_eq!(total(&[first, second]).minus(second).expect("counted").last_day, Some(day(10)), "it didn't decide");
        let without = total(&[first, second]).minus(first).expect("counted");
        assert_eq!(without.last_day, None, "only counting again tells");
        assert_eq!(without.plus(first).expect("in range").last_day, None);
        assert_eq!(without.minus(second).expect("counted"), UsageTotal::ZERO);
        // The latest event has the same service date.
        let third = event(3, "2026-03-10T09:00:00Z", 10);
        assert_eq!(total(&[first, second, third]).minus(first).expect("counted").last_day, Some(day(10)));
    }

    #[test]
    fn totals_are_joined_as_if_their_events_were_added_one_by_one() {
        let event = |n: u128, at: &str, quantity: &str, day: u32| CountedEvent {
            event_ref: EventRef::from_uuid(Uuid::from_u128(n)),
            occurred_at: Timestamp::parse(at).expect(at),
            service_date: NaiveDate::from_ymd_opt(2026, 1, day).expect("a day of January"),
            quantity: Quantity::parse(quantity).expect(quantity),
            is_distinct: None,
        };
        let events = [
            event(1, "2026-01-03T00:00:00Z", "2.5", 3),
            event(3, "2026-01-05T00:00:00Z", "0.1", 5),
            event(2, "2026-01-05T00:00:00Z", "7", 4),
            event(4, "2026-01-01T00:00:00Z", "9", 1),
        ];
        let total =
            |events: &[CountedEvent]| events.iter().try_fold(UsageTotal::ZERO, |total, e| total.plus(*e)).expect("in range");
        let all = total(&events);
        for split in 0..=events.len() {
            let (before, added) = (total(&events[..split]), total(&events[split..]));
            assert_eq!(before.joined(added).expect("in range"), all, "{split}");
            assert_eq!(added.joined(before).expect("in range"), all, "{split}");
            let again = all.before_adding(added).expect("counted");
            assert_eq!((again.sum, again.events), (before.sum, before.events), "{split}");
            assert_eq!(events[split..].iter().try_fold(again, |total, e| total.plus(*e)), Ok(all), "{split}");
        }
        // Unknown values stay unknown.
        let unknown = UsageTotal { max: None, latest: None, last_day: None, ..all };
        let joined = unknown.joined(total(&events[..1])).expect("in range");
        assert_eq!((joined.max, joined.latest, joined.last_day), (None, None, None));
        assert_eq!(total(&events[..1]).before_adding(all), Err(AmountOutOfRange));
    }

    #[test]
    fn changes_of_events_cancel_out_only_for_the_same_event_and_quantity() {
        let event = |n: u128, quantity: &str| {
            EventChanges::counted(&CountedEvent {
                event_ref: EventRef::from_uuid(Uuid::from_u128(n)),
                occurred_at: Timestamp::parse("2026-01-03T00:00:00Z").expect("an instant"),
                service_date: NaiveDate::MIN,
                quantity: Quantity::parse(quantity).expect(quantity),
                is_distinct: None,
            })
        };
        assert_eq!(event(1, "2").negated().plus(event(1, "2.0")), EventChanges::NONE);
        assert_eq!(event(1, "2").plus(event(2, "3")), event(2, "3").plus(event(1, "2")));
        for other in [event(2, "2"), event(1, "3"), event(1, "20"), event(1 << 64, "2")] {
            assert_ne!(event(1, "2"), other);
        }
        let sum = event(1, "2").plus(event(2, "3"));
        assert_eq!(EventChanges::from_sum(sum.sum()), sum);
    }
}
