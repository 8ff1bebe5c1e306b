//! Statistics of rejected usage: counts by error, customer and usage product, each with the latest example.

use chrono::NaiveDate;

use crate::access::RequestId;
use crate::calendar::{TimeZone, Timestamp};
use crate::refs::OrganizationId;

/// The maximum size in bytes of an example's event and of each of its texts.
pub const MAX_EXAMPLE_BYTES: usize = 2048;
/// The maximum length in bytes of a submitted customer or usage product.
pub const MAX_TOLD_BYTES: usize = 64;
/// The retention of counts in days.
pub const REFUSED_KEPT_DAYS: i64 = 90;
/// The code for further rejections after a server has counted too many different keys.
pub const OTHER_CODE: &str = "other";

/// The key by which rejected usage is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefusedKey {
    /// The organization that received the event.
    pub organization: OrganizationId,
    /// The day in UTC.
    pub day: NaiveDate,
    /// The error code.
    pub code: String,
    /// The customer as submitted, or empty if missing.
    pub customer_ref: String,
    /// The usage product as submitted, or empty if missing.
    pub usage_product_ref: String,
}

impl RefusedKey {
    /// Creates the key of an event. Control characters in its texts are replaced, and long texts are truncated.
    pub fn of(organization: OrganizationId, at: Timestamp, code: &str, customer_ref: &str, usage_product_ref: &str) -> Self {
        Self {
            organization,
            day: TimeZone::UTC.service_date(at),
            code: code.to_owned(),
            customer_ref: kept(customer_ref, MAX_TOLD_BYTES),
            usage_product_ref: kept(usage_product_ref, MAX_TOLD_BYTES),
        }
    }

    /// Returns the key that replaces this key after a server has counted too many different keys.
    pub fn other(&self) -> Self {
        Self { code: OTHER_CODE.to_owned(), customer_ref: String::new(), usage_product_ref: String::new(), ..self.clone() }
    }
}

/// The number of rejections with a key, and the latest example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCount {
    /// The number of rejections.
    pub count: u64,
    /// The time of the first rejection.
    pub first_at: Timestamp,
    /// The time of the latest rejection.
    pub last_at: Timestamp,
    /// The latest rejected event.
    pub example: RefusedExample,
}

impl RefusedCount {
    /// Creates the count of a single rejection.
    pub const fn once(at: Timestamp, example: RefusedExample) -> Self {
        Self { count: 1, first_at: at, last_at: at, example }
    }

    /// Adds another count. If both have the same latest time, the example of `other` wins.
    pub fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.first_at = self.first_at.min(other.first_at);
        if other.last_at >= self.last_at {
            (self.last_at, self.example) = (other.last_at, other.example);
        }
    }
}

/// An example of a rejected event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedExample {
    /// The event as submitted, truncated if it is too long.
    pub event: String,
    /// The first invalid field.
    pub pointer: Option<String>,
    /// The explanation of the error.
    pub detail: String,
    /// The id of the request.
    pub request_id: Option<RequestId>,
}

impl RefusedExample {
    /// Creates an example. Long texts are truncated.
    pub fn of(event: &str, pointer: Option<&str>, detail: &str, request_id: Option<RequestId>) -> Self {
        let short = |text: &str| kept(text, MAX_EXAMPLE_BYTES);
        Self { event: short(event), pointer: pointer.map(short), detail: short(detail), request_id }
    }
}

/// Truncates a text between characters and replaces control characters, which some stores reject.
fn kept(text: &str, most_bytes: usize) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut kept = String::new();
    for c in text.chars().map(visible) {
        if kept.len() + c.len_utf8() > most_bytes {
            break;
        }
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("an instant")
    }

    #[test]
    fn texts_are_cut_between_characters_and_have_no_control_characters() {
        assert_eq!(kept("abc", 3), "abc");
        assert_eq!(kept("aäb", 2), "a");
        assert_eq!(kept("a\0\n", 99), "a\u{fffd}\u{fffd}");
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let key = RefusedKey::of(organization, at("2026-01-01T00:30:00+01:00"), "c", &"x".repeat(65), "");
        assert_eq!((key.day.to_string(), key.customer_ref.len()), ("2025-12-31".to_owned(), 64));
        assert_eq!((key.other().code.as_str(), key.other().customer_ref.as_str(), key.other().day), ("other", "", key.day));
    }

    #[test]
    fn counts_add_up_and_the_latest_example_stays() {
        let example = |event: &str| RefusedExample::of(event, None, "", None);
        let mut count = RefusedCount::once(at("2026-01-01T10:00:00Z"), example("first"));
        count.add(RefusedCount::once(at("2026-01-01T12:00:00Z"), example("last")));
        count.add(RefusedCount::once(at("2026-01-01T09:00:00Z"), example("earlier")));
        assert_eq!((count.count, count.example.event.as_str()), (3, "last"));
        assert_eq!((count.first_at, count.last_at), (at("2026-01-01T09:00:00Z"), at("2026-01-01T12:00:00Z")));
    }
}
