//! Holds of customers.

use billing_application::usage::{HeldUsage, HoldRequest, HoldView};
use billing_domain::hold::{EXPIRES_IN, HoldEntry, MAX_ENTRIES};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, UsageProductRef};
use billing_domain::usage::{ReportData, Validations};

use super::declare::{JsonString, Listed, answer, body, fields, object};
use super::enums::HoldStateWord;
use super::limits::LimitLeftJson;
use super::values::{HoldSeconds, NewHoldRef, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef};

object! {
    /// Usage that is about to happen.
    HeldUsage as "HeldUsage" {
        /// Usage product reference.
        usage_product_ref: UsageProductRef,
        /// Usage quantity.
        quantity: Quantity,
        /// Labels of the usage, which can decide where it counts.
        report_data as "additional_report_data": Option<ReportData>,
        /// Checks on the document of the usage, as an object or as a string with its JSON.
        validations: Option<JsonString<Validations>>,
    }
}

impl Listed for HeldUsage {
    const MAX: usize = MAX_ENTRIES;
}

fields! {
    HoldRequest {
        /// Reference of your choice, unique within the customer. The same request again returns the hold.
        hold_ref: NewHoldRef,
        /// Customer reference.
        customer_ref: CustomerRef,
        /// Usage; all of it gets room, or nothing.
        usage: Vec<HeldUsage>,
        /// Time for which the hold stays open, in seconds. Default: 300.
        expires_in: HoldSeconds = EXPIRES_IN.2,
    }
}

body! {
    /// A hold to make: limits reserve room for usage that is about to happen.
    HoldBody {
        @flat request: HoldRequest,
    }
}

answer! {
    /// An entry of a hold.
    HoldEntryJson of entry: HoldEntry {
        /// Usage product.
        usage_product_ref: NamedRef = &entry.key.usage_product_ref,
        /// Quantity.
        quantity: ExactNumber = entry.quantity,
        /// Contract whose period counts the entry.
        contract_ref: AssignedRef = entry.key.contract_ref,
        /// Time at which an event settled the entry, or at which it was released; null until then.
        ended_at: Option<TimestampText> = entry.end.map(|end| end.at),
        /// Event that settled the entry.
        event_ref: Option<AssignedRef> = entry.end.and_then(|end| end.event),
    }
}

answer! {
    /// A hold.
    HoldJson of view: HoldView {
        /// Reference.
        hold_ref: NamedRef = &view.hold.hold_ref,
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// State: `OPEN` while an entry reserves room; then `SETTLED` if an event reported an entry, else `RELEASED` or `EXPIRED`.
        state: HoldStateWord = view.state,
        /// Usage.
        usage: Vec<HoldEntryJson> = &view.hold.entries,
        /// Time of creation.
        made_at: TimestampText = view.hold.made_at,
        /// Time from which the hold is no longer open.
        expires_at: TimestampText = view.hold.expires_at,
        /// What is left of the customer's limits. Only in the response to the request that makes the hold.
        @omitted left: Option<Vec<LimitLeftJson>> = view.limits.as_ref().map(|limits| limits.iter().map(LimitLeftJson::from).collect::<Vec<_>>()),
    }
}
