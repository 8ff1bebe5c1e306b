//! Usage that was refused: counted by what was wrong and whose it was said to be, with a last example.

use chrono::NaiveDate;

use crate::access::RequestId;
use crate::calendar::{TimeZone, Timestamp};
use crate::refs::OrganizationId;

/// The most bytes that an example keeps of an event, and of what was said about it.
pub const MAX_EXAMPLE_BYTES: usize = 2048;
/// The most bytes that are kept of a customer or usage product, as they were told.
pub const MAX_TOLD_BYTES: usize = 64;
/// How many days counts are kept.
pub const REFUSED_KEPT_DAYS: i64 = 90;
/// The code of what was refused when a server counted too many different things to tell them apart.
pub const OTHER_CODE: &str = "other";

/// What refused usage is counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefusedKey {
    /// Whose API it was sent to.
    pub organization: OrganizationId,
    /// The day of UTC.
    pub day: NaiveDate,
    /// Why.
    pub code: String,
    /// The customer, as it was told; empty where none was.
    pub customer_ref: String,
    /// The usage product, as it was told; empty where none was.
    pub usage_product_ref: String,
}

impl RefusedKey {
    /// What an event is counted by: its texts without control characters, and cut where they are too long.
    pub fn of(organization: OrganizationId, at: Timestamp, code: &str, customer_ref: &str, usage_product_ref: &str) -> Self {
        Self {
            organization,
            day: TimeZone::UTC.service_date(at),
            code: code.to_owned(),
            customer_ref: kept(customer_ref, MAX_TOLD_BYTES),
            usage_product_ref: kept(usage_product_ref, MAX_TOLD_BYTES),
        }
    }

    /// What is counted in its place where it can't be told apart from others.
    pub fn other(&self) -> Self {
        Self { code: OTHER_CODE.to_owned(), customer_ref: String::new(), usage_product_ref: String::new(), ..self.clone() }
    }
}

/// How often something was refused, and what it was last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedCount {
    /// How often.
    pub count: u64,
    /// When first.
    pub first_at: Timestamp,
    /// When last.
    pub last_at: Timestamp,
    /// The last.
    pub example: RefusedExample,
}

impl RefusedCount {
    /// Something that was refused once.
    pub const fn once(at: Timestamp, example: RefusedExample) -> Self {
        Self { count: 1, first_at: at, last_at: at, example }
    }

    /// Both together; of two at the same instant the other is the last.
    pub fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.first_at = self.first_at.min(other.first_at);
        if other.last_at >= self.last_at {
            (self.last_at, self.example) = (other.last_at, other.example);
        }
    }
}

/// An event that was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedExample {
    /// It, as it was sent; cut where it is too long.
    pub event: String,
    /// Which field was wrong first.
    pub pointer: Option<String>,
    /// What was wrong with it.
    pub detail: String,
    /// Which request brought it.
    pub request_id: Option<RequestId>,
}

impl RefusedExample {
    /// An example, cut where its parts are too long.
    pub fn of(event: &str, pointer: Option<&str>, detail: &str, request_id: Option<RequestId>) -> Self {
        let short = |text: &str| kept(text, MAX_EXAMPLE_BYTES);
        Self { event: short(event), pointer: pointer.map(short), detail: short(detail), request_id }
    }
}

/// Text as it is kept: cut between characters, and without control characters, which not every store takes.
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
