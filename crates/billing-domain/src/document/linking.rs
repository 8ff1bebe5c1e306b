//! Assignment of billed items to documents, and due dates of issue (billing rules 2).
//!
//! A *billing slot* identifies a regular document of a product by its period and by its kind within the period. All functions
//! depend on the contract's plan alone, so events, previews and the billing run can't disagree.

use chrono::NaiveDate;

use crate::calendar::Timestamp;
use crate::contract::terms::{PaymentTime, ProductTerms};
use crate::contract::{ContractProduct, ProductPeriod};
use crate::party::Entity;
use crate::refs::ProductNo;

use super::DocumentKind;
use super::lines::BillWith;

/// The kind of a regular document within its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKind {
    /// The period's invoice.
    Period,
    /// With `BEFORE_USE`, the debit for the period's usage.
    UsageDebit,
    /// With `DURING_USE`, the invoice for the last period's usage.
    Closing,
}

/// The identity of a regular document in a contract. At most one document in force occupies a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BillingSlot {
    /// The product.
    pub product_no: ProductNo,
    /// The first day of the document's own period.
    pub period_start: NaiveDate,
    /// The kind within that period.
    pub kind: SlotKind,
}

/// The part of a regular document that bills one product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductPart<'c> {
    /// The document's own period.
    pub own: ProductPeriod<'c>,
    /// The kind within that period.
    pub kind: SlotKind,
    /// The period whose fixed items and prepaid usage it bills.
    pub fixed: Option<ProductPeriod<'c>>,
    /// The period whose usage and minimum fee it bills.
    pub usage: Option<ProductPeriod<'c>>,
}

impl SlotKind {
    /// Returns the kind of the documents in the slot.
    pub const fn document_kind(self) -> DocumentKind {
        match self {
            Self::Period | Self::Closing => DocumentKind::Invoice,
            Self::UsageDebit => DocumentKind::Debit,
        }
    }
}

impl ProductPart<'_> {
    /// Returns the slot of the part's document.
    pub const fn slot(&self) -> BillingSlot {
        BillingSlot { product_no: self.own.product_no, period_start: self.own.start(), kind: self.kind }
    }

    /// Returns the first day on which the document may be issued: its natural day, or the terms' issue day if that is later.
    pub fn issue_day(&self) -> NaiveDate {
        let span = self.own.days();
        let natural = match (self.kind, self.own.terms.payment_time) {
            (SlotKind::Period, PaymentTime::BeforeUse | PaymentTime::DuringUse) => span.start(),
            (SlotKind::Period, PaymentTime::AfterUse) | (SlotKind::UsageDebit | SlotKind::Closing, _) => span.end(),
        };
        self.own.terms.schedule.issue_day().map_or(natural, |day| natural.max(day))
    }

    /// Returns the instant at which the document is due to be issued: the entity's midnight of that day plus the entity's grace
    /// period.
    pub fn due_at(&self, entity: &Entity) -> Timestamp {
        let grace = i64::from(entity.profile.grace_hours) * 3600;
        entity.profile.time_zone.start_of_day(self.issue_day()).plus_seconds(grace)
    }
}

/// Returns the part that bills the fixed items of a period.
pub fn part_for_fixed<'c>(period: ProductPeriod<'c>) -> ProductPart<'c> {
    part(period, SlotKind::Period)
}

/// Returns the part that bills the usage of a period.
pub fn part_for_usage<'c>(period: ProductPeriod<'c>) -> ProductPart<'c> {
    match period.terms.payment_time {
        PaymentTime::AfterUse => part(period, SlotKind::Period),
        PaymentTime::BeforeUse => part(period, SlotKind::UsageDebit),
        PaymentTime::DuringUse => match following(period.product, period) {
            Some(next) => part(next, SlotKind::Period),
            None => part(period, SlotKind::Closing),
        },
    }
}

/// Returns the part that bills the items that go with the fixed items or the usage of a period.
pub fn part_for(period: ProductPeriod<'_>, with: BillWith) -> ProductPart<'_> {
    match with {
        BillWith::Fixed => part_for_fixed(period),
        BillWith::Usage => part_for_usage(period),
    }
}

/// Returns the parts of the regular documents that belong to a period, in the order of issue.
pub fn parts_of_period<'c>(own: ProductPeriod<'c>) -> Vec<ProductPart<'c>> {
    let mut parts = vec![part(own, SlotKind::Period)];
    let of_usage = part_for_usage(own);
    if of_usage.own == own && of_usage.kind != SlotKind::Period {
        parts.push(of_usage);
    }
    parts
}

/// Returns the part of a product in a slot of a period.
fn part(own: ProductPeriod<'_>, kind: SlotKind) -> ProductPart<'_> {
    let (fixed, usage) = match (kind, own.terms.payment_time) {
        (SlotKind::Period, PaymentTime::AfterUse) => (Some(own), Some(own)),
        (SlotKind::Period, PaymentTime::DuringUse) => (Some(own), carried_over(own)),
        (SlotKind::Period, PaymentTime::BeforeUse) => (Some(own), None),
        (SlotKind::UsageDebit | SlotKind::Closing, _) => (None, Some(own)),
    };
    ProductPart { own, kind, fixed, usage }
}

/// Returns the part in a slot, if the plan has this slot.
pub fn part_in(product: &ContractProduct, slot: BillingSlot) -> Option<ProductPart<'_>> {
    let own = product.period_from(slot.period_start)?;
    parts_of_period(own).into_iter().find(|part| part.kind == slot.kind)
}

/// Returns the previous period if its usage is billed on this period's invoice.
fn carried_over<'c>(own: ProductPeriod<'c>) -> Option<ProductPeriod<'c>> {
    let before = own.product.period_before(own.start())?;
    (before.days().end() == own.start() && carries_over(before.terms, own.terms)).then_some(before)
}

/// Returns the next period if its invoice bills this period's usage.
fn following<'c>(product: &'c ContractProduct, period: ProductPeriod<'c>) -> Option<ProductPeriod<'c>> {
    product.period_from(period.days().end()).filter(|next| carries_over(period.terms, next.terms))
}

/// Returns whether the usage of one period is billed on the invoice of the next.
fn carries_over(terms: &ProductTerms, next: &ProductTerms) -> bool {
    terms.payment_time == PaymentTime::DuringUse
        && next.payment_time == PaymentTime::DuringUse
        && terms.entity_ref == next.entity_ref
        && terms.pricing.currency == next.pricing.currency
}
