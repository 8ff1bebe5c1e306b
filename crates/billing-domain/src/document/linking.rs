//! Which document bills what, and when it is issued (billing rules 2).
//!
//! A *slot* is the place of a regular document in a product's life: which period it belongs to and which of
//! that period's documents it is. Everything here follows from the contract's chain of versions alone, so
//! events, previews and the billing run can't disagree.

use chrono::NaiveDate;

use crate::calendar::{Period, Timestamp};
use crate::contract::terms::{PaymentTime, ProductTerms, ResolvedTerms};
use crate::contract::{Contract, ContractProduct, ProductPeriod};
use crate::party::Entity;
use crate::refs::ProductNo;

use super::DocumentKind;

/// Which of a period's regular documents one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// The period's invoice.
    Period,
    /// With `BEFORE_USE`, the debit of the period's usage.
    UsageDebit,
    /// With `DURING_USE`, the invoice of the last period's usage.
    Closing,
}

/// What one product bills on one of its regular documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share<'c> {
    /// The document's own period.
    pub own: ProductPeriod<'c>,
    /// Which of that period's documents.
    pub slot: Slot,
    /// The period whose fixed items it bills, and what of its usage is paid in advance.
    pub fixed: Option<ProductPeriod<'c>>,
    /// The period whose usage it bills, minimum fee included.
    pub usage: Option<ProductPeriod<'c>>,
}

impl Slot {
    /// The kind of the documents in it.
    pub const fn kind(self) -> DocumentKind {
        match self {
            Self::Period | Self::Closing => DocumentKind::Invoice,
            Self::UsageDebit => DocumentKind::Debit,
        }
    }
}

impl Share<'_> {
    /// Whether it bills what is prepaid of the usage of [`fixed`](Self::fixed)'s period.
    pub fn bills_prepaid(&self) -> bool {
        self.slot == Slot::Period && self.own.terms.payment_time == PaymentTime::BeforeUse
    }

    /// The first day it may be issued on: its natural day, or the terms' issue day if that is later.
    pub fn issue_day(&self) -> NaiveDate {
        let span = self.own.period.span();
        let natural = match (self.slot, self.own.terms.payment_time) {
            (Slot::Period, PaymentTime::BeforeUse | PaymentTime::DuringUse) => span.start(),
            (Slot::Period, PaymentTime::AfterUse) | (Slot::UsageDebit | Slot::Closing, _) => span.end(),
        };
        self.own.terms.schedule.issue_day().map_or(natural, |day| natural.max(day))
    }

    /// The instant it is issued at: the entity's midnight of that day, and the entity's grace.
    pub fn due_at(&self, entity: &Entity) -> Timestamp {
        let grace = i64::from(entity.profile.grace_hours) * 3600;
        entity.profile.time_zone.start_of_day(self.issue_day()).plus_seconds(grace)
    }
}

/// The share of a product that bills the usage of one of its periods.
pub fn share_for_usage<'c>(product: &'c ContractProduct, period: ProductPeriod<'c>) -> Share<'c> {
    let (own, slot) = match period.terms.payment_time {
        PaymentTime::AfterUse => (period, Slot::Period),
        PaymentTime::BeforeUse => (period, Slot::UsageDebit),
        PaymentTime::DuringUse => match product.period_after(period.period.span().end()) {
            Some(next) if carries_over(period.terms, next.terms) => (next, Slot::Period),
            Some(_) | None => (period, Slot::Closing),
        },
    };
    share(product, own, slot)
}

/// The regular documents that bill a product's period, wherever they stand: its fixed items' and its usage's.
pub fn shares_billing<'c>(product: &'c ContractProduct, period: ProductPeriod<'c>) -> Vec<Share<'c>> {
    let of_fixed = share(product, period, Slot::Period);
    let of_usage = share_for_usage(product, period);
    if of_usage == of_fixed { vec![of_fixed] } else { vec![of_fixed, of_usage] }
}

/// The regular documents that belong to one of a product's periods, in the order they are issued.
pub fn shares_of_period<'c>(product: &'c ContractProduct, own: ProductPeriod<'c>) -> Vec<Share<'c>> {
    let mut shares = vec![share(product, own, Slot::Period)];
    let of_usage = share_for_usage(product, own);
    if of_usage.own == own && of_usage.slot != Slot::Period {
        shares.push(of_usage);
    }
    shares
}

/// What a product bills in a slot of one of its periods.
pub fn share<'c>(product: &'c ContractProduct, own: ProductPeriod<'c>, slot: Slot) -> Share<'c> {
    let before = || {
        let before = product.period_before(own.period.span().start())?;
        carries_over(before.terms, own.terms).then_some(before)
    };
    let (fixed, usage) = match (slot, own.terms.payment_time) {
        (Slot::Period, PaymentTime::AfterUse) => (Some(own), Some(own)),
        (Slot::Period, PaymentTime::DuringUse) => (Some(own), before()),
        (Slot::Period, PaymentTime::BeforeUse) => (Some(own), None),
        (Slot::UsageDebit | Slot::Closing, _) => (None, Some(own)),
    };
    Share { own, slot, fixed, usage }
}

/// Whether the usage of one period goes on the invoice of the next.
fn carries_over(terms: &ProductTerms, next: &ProductTerms) -> bool {
    terms.payment_time == PaymentTime::DuringUse
        && next.payment_time == PaymentTime::DuringUse
        && terms.entity_ref == next.entity_ref
        && terms.pricing.currency == next.pricing.currency
}

/// The products that share the document of one product's slot: the same period, and terms that agree in
/// entity, currency, payment time, net terms and payment details (billing rules 2). In contract order,
/// the product itself included.
pub fn companions<'c>(
    contract: &'c Contract,
    share_of_one: &Share<'_>,
    resolve: impl Fn(&ProductTerms) -> Option<ResolvedTerms>,
) -> Vec<(Share<'c>, ResolvedTerms)> {
    let Some(wanted) = resolve(share_of_one.own.terms) else { return Vec::new() };
    let span = share_of_one.own.period.span();
    let fits = |product: &'c ContractProduct| {
        let own = product.period_at(span.start()).filter(|own| own.period.span() == span)?;
        let terms = resolve(own.terms).filter(|terms| terms.shares_document_with(&wanted))?;
        let shares = shares_of_period(product, own);
        let share = shares.into_iter().find(|share| share.slot == share_of_one.slot)?;
        Some((share, terms))
    };
    contract.products.iter().filter_map(fits).collect()
}

/// The shares of a stored regular document, from its parts and its own period. Parts whose product no
/// longer has a period there are left out.
pub fn shares_of_document<'c>(contract: &'c Contract, parts: &[ProductNo], own: Period, slot: Slot) -> Vec<Share<'c>> {
    let share_of = |no: &ProductNo| {
        let product = contract.product(*no)?;
        let period = product.period_at(own.start())?;
        Some(share(product, period, slot))
    };
    parts.iter().filter_map(share_of).collect()
}
