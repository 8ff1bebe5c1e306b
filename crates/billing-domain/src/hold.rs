//! Holds: usage that is about to happen, for which limits reserve room (billing rules 11).

use sha2::{Digest as _, Sha256};

use crate::calendar::Timestamp;
use crate::quantity::Quantity;
use crate::refs::{CustomerId, EntityRef, EventRef, HoldRef};
use crate::usage::{CountedEvent, FactsDigest, UsageKey, Validations};

/// The maximum number of entries of a hold.
pub const MAX_ENTRIES: usize = 20;

/// The maximum number of open entries of a customer. Each of them is read for each event of the customer.
pub const MAX_OPEN_ENTRIES: usize = 10_000;

/// The time for which a hold stays open, in seconds: the least, the most and the default.
pub const EXPIRES_IN: (u32, u32, u32) = (1, 86_400, 300);

/// The time for which an expired hold is retained, in seconds.
pub const KEPT_SECONDS: i64 = 86_400;

/// The digest of the request for a hold. The same request again returns the hold.
pub type HoldDigest = [u8; 32];

/// Returns the digest of a request: the time for which it stays open, and the facts and checks of each entry.
pub fn digest_of<'u>(expires_in: u32, usage: impl IntoIterator<Item = (FactsDigest, Option<&'u Validations>)>) -> HoldDigest {
    let mut digest = Sha256::new();
    digest.update(expires_in.to_be_bytes());
    for (facts, validations) in usage {
        digest.update(facts.0);
        let currency = validations.and_then(|checks| checks.currency).map_or("", |currency| currency.code());
        let entity = validations.and_then(|checks| checks.entity_ref.as_ref()).map_or("", EntityRef::as_str);
        for text in [currency, entity] {
            // The length keeps neighbors apart.
            digest.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(text);
        }
    }
    digest.finalize().into()
}

/// How an entry ended before it expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldEnd {
    /// The time of the end.
    pub at: Timestamp,
    /// The event that settled the entry; `None` if it was released.
    pub event: Option<EventRef>,
}

/// An entry of a hold. While it is open, it counts like an event of the time at which the hold was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldEntry {
    /// The running total in which the entry counts.
    pub key: UsageKey,
    /// The quantity.
    pub quantity: Quantity,
    /// The end before the expiry.
    pub end: Option<HoldEnd>,
}

/// Usage for which limits of a customer reserve room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The caller's reference.
    pub hold_ref: HoldRef,
    /// The customer.
    pub customer_id: CustomerId,
    /// The digest of the request.
    pub digest: HoldDigest,
    /// The time of creation.
    pub made_at: Timestamp,
    /// The time from which the open entries no longer count.
    pub expires_at: Timestamp,
    /// The entries in the order of the request.
    pub entries: Vec<HoldEntry>,
}

/// The state of a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// At least one entry reserves room.
    Open,
    /// Events reported the usage of at least one entry.
    Settled,
    /// The hold was released.
    Released,
    /// The hold expired.
    Expired,
}

impl Hold {
    /// Returns the state at an instant.
    pub fn state(&self, now: Timestamp) -> HoldState {
        let ended =
            |is_event: bool| self.entries.iter().any(|entry| entry.end.is_some_and(|end| end.event.is_some() == is_event));
        if self.expires_at > now && self.entries.iter().any(|entry| entry.end.is_none()) {
            HoldState::Open
        } else if ended(true) {
            HoldState::Settled
        } else if ended(false) {
            HoldState::Released
        } else {
            HoldState::Expired
        }
    }
}

/// The place of an entry: the customer, the hold, and the position among the entries of the hold.
pub type EntryKey = (CustomerId, HoldRef, u16);

/// An entry that reserves room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEntry {
    /// The place.
    pub place: EntryKey,
    /// The running total in which the entry counts.
    pub key: UsageKey,
    /// The quantity.
    pub quantity: Quantity,
    /// The time at which the hold was made.
    pub made_at: Timestamp,
}

impl OpenEntry {
    /// Returns the entry as an event that counts.
    pub fn counted(&self) -> CountedEvent {
        CountedEvent {
            event_ref: EventRef::from_uuid(uuid::Uuid::nil()),
            occurred_at: self.made_at,
            service_date: self.key.period_start,
            quantity: self.quantity,
            is_distinct: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::refs::{ContractRef, ProductNo, UsageProductRef};

    #[test]
    fn a_hold_is_open_until_all_entries_ended_or_it_expires() {
        let at = |second: i64| Timestamp::parse("2026-01-10T10:00:00Z").expect("an instant").plus_seconds(second);
        let key = UsageKey {
            contract_ref: ContractRef::from_uuid(Uuid::nil()),
            product_no: ProductNo(0),
            period_start: chrono::NaiveDate::default(),
            usage_product_ref: UsageProductRef::parse("calls").expect("a reference"),
            line_item_id: None,
        };
        let entry = |end| HoldEntry { key: key.clone(), quantity: Quantity::ONE, end };
        let (open, released) = (entry(None), entry(Some(HoldEnd { at: at(5), event: None })));
        let settled = entry(Some(HoldEnd { at: at(5), event: Some(EventRef::from_uuid(Uuid::nil())) }));
        for (entries, before, after) in [
            (vec![open.clone()], HoldState::Open, HoldState::Expired),
            (vec![settled.clone(), open.clone()], HoldState::Open, HoldState::Settled),
            (vec![settled.clone()], HoldState::Settled, HoldState::Settled),
            (vec![released.clone(), settled], HoldState::Settled, HoldState::Settled),
            (vec![released], HoldState::Released, HoldState::Released),
        ] {
            let hold = Hold {
                hold_ref: HoldRef::parse("h").expect("a reference"),
                customer_id: CustomerId::from_uuid(Uuid::nil()),
                digest: [0; 32],
                made_at: at(0),
                expires_at: at(60),
                entries,
            };
            assert_eq!((hold.state(at(59)), hold.state(at(60))), (before, after), "{hold:?}");
        }
    }
}
