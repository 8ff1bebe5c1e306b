//! Which document bills what, and when it is issued (billing rules 2).
//!
//! A *slot* is the place of a regular document in a product's life: which period it belongs to and which of
//! that period's documents it is. Everything here follows from the contract's plan alone, so events, previews and the
//! billing run can't disagree.

use chrono::NaiveDate;

use crate::calendar::Timestamp;
use crate::contract::terms::{PaymentTime, ProductTerms};
use crate::contract::{ContractProduct, ProductPeriod};
use crate::party::Entity;
use crate::refs::ProductNo;

use super::DocumentKind;
use super::lines::BillWith;

/// Which of a period's regular documents one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotKind {
    /// The period's invoice.
    Period,
    /// With `BEFORE_USE`, the debit of the period's usage.
    UsageDebit,
    /// With `DURING_USE`, the invoice of the last period's usage.
    Closing,
}

/// Where a regular document stands in a contract: what one document in force at most has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BillingSlot {
    /// The product.
    pub product_no: ProductNo,
    /// The first day of the document's own period.
    pub period_start: NaiveDate,
    /// Which of that period's documents.
    pub slot: SlotKind,
}

/// What one product bills on one of its regular documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductPart<'c> {
    /// The document's own period.
    pub own: ProductPeriod<'c>,
    /// Which of that period's documents.
    pub slot: SlotKind,
    /// The period whose fixed items it bills, and what of its usage is paid in advance.
    pub fixed: Option<ProductPeriod<'c>>,
    /// The period whose usage it bills, minimum fee included.
    pub usage: Option<ProductPeriod<'c>>,
}

impl SlotKind {
    /// The kind of the documents in it.
    pub const fn kind(self) -> DocumentKind {
        match self {
            Self::Period | Self::Closing => DocumentKind::Invoice,
            Self::UsageDebit => DocumentKind::Debit,
        }
    }
}

impl ProductPart<'_> {
    /// Where its document stands.
    pub const fn place(&self) -> BillingSlot {
        BillingSlot { product_no: self.own.product_no, period_start: self.own.start(), slot: self.slot }
    }

    /// The first day it may be issued on: its natural day, or the terms' issue day if that is later.
    pub fn issue_day(&self) -> NaiveDate {
        let span = self.own.days();
        let natural = match (self.slot, self.own.terms.payment_time) {
            (SlotKind::Period, PaymentTime::BeforeUse | PaymentTime::DuringUse) => span.start(),
            (SlotKind::Period, PaymentTime::AfterUse) | (SlotKind::UsageDebit | SlotKind::Closing, _) => span.end(),
        };
        self.own.terms.schedule.issue_day().map_or(natural, |day| natural.max(day))
    }

    /// The instant it is issued at: the entity's midnight of that day, and the entity's grace.
    pub fn due_at(&self, entity: &Entity) -> Timestamp {
        let grace = i64::from(entity.profile.grace_hours) * 3600;
        entity.profile.time_zone.start_of_day(self.issue_day()).plus_seconds(grace)
    }
}

/// The part of a product that bills the fixed items of one of its periods.
pub fn part_for_fixed<'c>(period: ProductPeriod<'c>) -> ProductPart<'c> {
    part(period, SlotKind::Period)
}

/// The part of a product that bills the usage of one of its periods.
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

/// The part of a product that bills what goes with the fixed items or the usage of one of its periods.
pub fn part_for(period: ProductPeriod<'_>, with: BillWith) -> ProductPart<'_> {
    match with {
        BillWith::Fixed => part_for_fixed(period),
        BillWith::Usage => part_for_usage(period),
    }
}

/// The regular documents that belong to one of a product's periods, in the order they are issued.
pub fn parts_of_period<'c>(own: ProductPeriod<'c>) -> Vec<ProductPart<'c>> {
    let mut parts = vec![part(own, SlotKind::Period)];
    let of_usage = part_for_usage(own);
    if of_usage.own == own && of_usage.slot != SlotKind::Period {
        parts.push(of_usage);
    }
    parts
}

/// What a product bills in a slot of one of its periods.
fn part(own: ProductPeriod<'_>, slot: SlotKind) -> ProductPart<'_> {
    let (fixed, usage) = match (slot, own.terms.payment_time) {
        (SlotKind::Period, PaymentTime::AfterUse) => (Some(own), Some(own)),
        (SlotKind::Period, PaymentTime::DuringUse) => (Some(own), carried_over(own)),
        (SlotKind::Period, PaymentTime::BeforeUse) => (Some(own), None),
        (SlotKind::UsageDebit | SlotKind::Closing, _) => (None, Some(own)),
    };
    ProductPart { own, slot, fixed, usage }
}

/// The part that stands in a place, where the plan has one there.
pub fn part_in(product: &ContractProduct, place: BillingSlot) -> Option<ProductPart<'_>> {
    let own = product.period_from(place.period_start)?;
    parts_of_period(own).into_iter().find(|part| part.slot == place.slot)
}

/// The period before, whose usage goes on this one's invoice.
fn carried_over<'c>(own: ProductPeriod<'c>) -> Option<ProductPeriod<'c>> {
    let before = own.product.period_before(own.start())?;
    (before.days().end() == own.start() && carries_over(before.terms, own.terms)).then_some(before)
}

/// The period after, on whose invoice this one's usage goes.
fn following<'c>(product: &'c ContractProduct, period: ProductPeriod<'c>) -> Option<ProductPeriod<'c>> {
    product.period_from(period.days().end()).filter(|next| carries_over(period.terms, next.terms))
}

/// Whether the usage of one period goes on the invoice of the next.
fn carries_over(terms: &ProductTerms, next: &ProductTerms) -> bool {
    terms.payment_time == PaymentTime::DuringUse
        && next.payment_time == PaymentTime::DuringUse
        && terms.entity_ref == next.entity_ref
        && terms.pricing.currency == next.pricing.currency
}
