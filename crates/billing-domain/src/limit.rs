//! Limits: the numbers of a customer that usage must not raise above a maximum (billing rules 11).
//!
//! This module holds the values. [`ledger::limit`](crate::ledger::limit) judges usage by them.

use rust_decimal::Decimal;

pub use crate::metric::{LimitReached, MetricKind};

use crate::calendar::Timestamp;
use crate::decimal::{AmountOutOfRange, Digits, exact_add};
use crate::money::Currency;
use crate::receivables::AccountKey;
use crate::refs::{CustomerId, EntityRef, LimitRef};
use crate::refusal::Refusal;

/// The maximum number of limits of a customer.
pub const MAX_LIMITS: usize = 20;

/// The maximum number of drafts that an account may have when a limit of its amount owed is created. Each of them is read for
/// each event.
pub const MAX_DRAFTS: usize = 500;

/// The maximum number of integer digits of a maximum.
const INTEGER_DIGITS: u32 = 15;

/// The number that a limit watches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitMetric {
    /// The amount that the customer owes an entity in a currency, with the drafts (billing rules 11).
    Owed {
        /// The entity that bills.
        entity_ref: EntityRef,
        /// The currency of the amounts.
        currency: Currency,
    },
}

impl LimitMetric {
    /// Returns the kind of the number.
    pub const fn kind(&self) -> MetricKind {
        match self {
            Self::Owed { .. } => MetricKind::Owed,
        }
    }

    /// Parses a maximum in units of the metric.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] for `max`.
    pub fn parse_max(&self, text: &str) -> Result<Decimal, Refusal> {
        let Self::Owed { currency, .. } = self;
        let digits = Digits { integer: INTEGER_DIGITS, fraction: currency.exponent() };
        let max = digits.parse(text).map_err(|reason| {
            let detail = format!("{reason}: it is an amount of {}", currency.code());
            Refusal::field(&["max"], "invalid_format", detail)
        })?;
        if max.is_sign_negative() && !max.is_zero() {
            return Err(Refusal::field(&["max"], "out_of_range", "must be at least 0"));
        }
        let mut max = max;
        max.rescale(currency.exponent());
        Ok(max)
    }

    /// Returns the account whose amounts the metric counts.
    pub fn account(&self, customer_id: CustomerId) -> AccountKey {
        match self {
            Self::Owed { entity_ref, currency } => {
                AccountKey { customer_id, entity_ref: entity_ref.clone(), currency: *currency }
            }
        }
    }
}

/// A limit of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit's reference.
    pub limit_ref: LimitRef,
    /// The customer whose number the limit watches.
    pub customer_id: CustomerId,
    /// The number that the limit watches.
    pub metric: LimitMetric,
    /// The largest number up to which usage is accepted, in units of the metric; at least zero.
    pub max: Decimal,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl Limit {
    /// Returns the account whose amounts the limit counts.
    pub fn account(&self) -> AccountKey {
        self.metric.account(self.customer_id)
    }
}

/// The number of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitValue {
    /// The limit.
    pub limit: Limit,
    /// The number now, in units of the metric.
    pub value: Decimal,
    /// What may still be used: the maximum less the number, at least zero.
    pub left: Decimal,
    /// How far the number is above the maximum, at least zero.
    pub above: Decimal,
}

impl LimitValue {
    /// Creates the number of a limit.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn new(limit: Limit, value: Decimal) -> Result<Self, AmountOutOfRange> {
        let difference = exact_add(limit.max, -value)?;
        let zero = Decimal::new(0, difference.scale());
        // Minus zero would be written with its sign.
        let (left, above) = if difference < zero { (zero, difference.abs()) } else { (difference.abs(), zero) };
        Ok(Self { limit, value, left, above })
    }
}
