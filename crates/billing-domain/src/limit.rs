//! Limits: the numbers of a customer that usage must not raise above a maximum (billing rules 11).
//!
//! This module holds the values. [`ledger::limit`](crate::ledger::limit) judges usage by them.

use rust_decimal::Decimal;

pub use crate::metric::{LimitReached, MetricKind};

use crate::calendar::{Date, Period, Timestamp};
use crate::decimal::{AmountOutOfRange, Digits, exact_add};
use crate::money::Currency;
use crate::receivables::AccountKey;
use crate::refs::{ContractRef, CustomerId, EntityRef, LimitRef, LineItemId, ProductNo, UsageProductRef};
use crate::refusal::Refusal;
use crate::violation::Violations;

/// The maximum number of limits of a customer.
pub const MAX_LIMITS: usize = 20;

/// The maximum number of thresholds of a limit.
pub const MAX_THRESHOLDS: usize = 20;

/// The maximum number of drafts that an account may have when a limit of its amount owed is created. Each of them is read for
/// each event.
pub const MAX_DRAFTS: usize = 500;

/// The maximum number of integer digits of a maximum and of a threshold.
const INTEGER_DIGITS: u32 = 15;

/// The maximum number of fractional digits of a quantity.
const QUANTITY_FRACTION: u32 = 9;

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
    /// The free prepaid credit of an account, of all grants that cover usage of today (billing rules 12).
    Prepaid {
        /// The entity that bills.
        entity_ref: EntityRef,
        /// The currency of the amounts.
        currency: Currency,
    },
    /// The price of a product's service period after the discount and before tax.
    Spend {
        /// The contract.
        contract_ref: ContractRef,
        /// The product of the contract.
        product_no: ProductNo,
        /// The currency of the amounts.
        currency: Currency,
    },
    /// The quantity of a usage product in a service period (billing rules 6).
    Quantity {
        /// The contract.
        contract_ref: ContractRef,
        /// The product of the contract.
        product_no: ProductNo,
        /// The usage product.
        usage_product_ref: UsageProductRef,
        /// The line item that counts the usage; all line items of the usage product if `None`.
        line_item_id: Option<LineItemId>,
    },
}

impl LimitMetric {
    /// Returns the kind of the number.
    pub const fn kind(&self) -> MetricKind {
        match self {
            Self::Owed { .. } => MetricKind::Owed,
            Self::Prepaid { .. } => MetricKind::Prepaid,
            Self::Spend { .. } => MetricKind::Spend,
            Self::Quantity { .. } => MetricKind::Quantity,
        }
    }

    /// Returns the contract product whose service periods the number counts; `None` for the number of an account.
    pub const fn product(&self) -> Option<(ContractRef, ProductNo)> {
        match self {
            Self::Owed { .. } | Self::Prepaid { .. } => None,
            Self::Spend { contract_ref, product_no, .. } | Self::Quantity { contract_ref, product_no, .. } => {
                Some((*contract_ref, *product_no))
            }
        }
    }

    /// Returns the currency of an amount; `None` for a quantity.
    pub const fn currency(&self) -> Option<Currency> {
        match self {
            Self::Owed { currency, .. } | Self::Prepaid { currency, .. } | Self::Spend { currency, .. } => Some(*currency),
            Self::Quantity { .. } => None,
        }
    }

    /// Returns zero in units of the metric.
    pub fn zero(&self) -> Decimal {
        Decimal::new(0, self.currency().map_or(0, |currency| currency.exponent()))
    }

    /// Returns the account whose amounts the metric counts; `None` for the number of a service period.
    pub fn account(&self, customer_id: CustomerId) -> Option<AccountKey> {
        match self {
            Self::Owed { entity_ref, currency } | Self::Prepaid { entity_ref, currency } => {
                Some(AccountKey { customer_id, entity_ref: entity_ref.clone(), currency: *currency })
            }
            Self::Spend { .. } | Self::Quantity { .. } => None,
        }
    }

    /// Parses the levels of a limit in units of the metric: the maximum, and the thresholds, which it sorts.
    ///
    /// # Errors
    /// Returns [`Refusal::Invalid`] for `max` or `thresholds`.
    pub fn parse_levels(&self, max: Option<&str>, thresholds: &[String]) -> Result<LimitLevels, Refusal> {
        let mut found = Violations::none();
        let mut max_level = None;
        let falls = self.kind().falls();
        if max.is_some() && falls {
            let detail =
                "must be omitted with the metric PREPAID: a limit of the metric OWED rejects usage that no credit covers";
            found.add(&["max"], "no_max", detail);
        } else if let Some(text) = max {
            match self.parse(text) {
                Ok(max) if max < Decimal::ZERO => found.add(&["max"], "out_of_range", "must be at least 0"),
                Ok(max) => max_level = Some(max),
                Err(detail) => found.add(&["max"], "invalid_format", detail),
            }
        }
        let mut sorted: Vec<Decimal> = Vec::new();
        for (index, text) in thresholds.iter().enumerate() {
            let index = index.to_string();
            let path = ["thresholds", index.as_str()];
            match self.parse(text) {
                // A period begins at zero, but a balance is an amount owed below zero.
                Ok(threshold) if threshold <= Decimal::ZERO && self.product().is_some() => {
                    found.add(&path, "out_of_range", "must be above 0, because each period begins at 0");
                }
                Ok(threshold) if threshold < Decimal::ZERO && falls => {
                    found.add(&path, "out_of_range", "must be at least 0, because free credit is never below 0");
                }
                Ok(threshold) if sorted.contains(&threshold) => found.add(&path, "duplicate", "must be given once"),
                Ok(threshold) => sorted.push(threshold),
                Err(detail) => found.add(&path, "invalid_format", detail),
            }
        }
        if thresholds.is_empty() && falls {
            found.add(&["thresholds"], "required", "must have at least one element with the metric PREPAID");
        } else if thresholds.is_empty() && max.is_none() {
            found.add(&["max"], "required", "must be given, or thresholds");
        }
        found.or(())?;
        sorted.sort_unstable();
        Ok(LimitLevels { max: max_level, thresholds: sorted })
    }

    fn parse(&self, text: &str) -> Result<Decimal, String> {
        let (fraction, unit) = match self.currency() {
            Some(currency) => (currency.exponent(), format!("an amount of {}", currency.code())),
            None => (QUANTITY_FRACTION, "a quantity".to_owned()),
        };
        let digits = Digits { integer: INTEGER_DIGITS, fraction };
        let mut number = digits.parse(text).map_err(|reason| format!("{reason}: it is {unit}"))?;
        if self.currency().is_some() {
            number.rescale(fraction);
        }
        // Minus zero would be written with its sign.
        Ok(if number.is_zero() { number.abs() } else { number })
    }
}

/// The levels of a number: where usage stops, and where notifications are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitLevels {
    /// The largest number up to which usage is accepted, in units of the metric; at least zero. Any number if `None`.
    pub max: Option<Decimal>,
    /// The numbers that notify when they are reached, in ascending order.
    pub thresholds: Vec<Decimal>,
}

/// The levels that a number has reached, as the last notifications stated. They can lag behind the number, because time, a default
/// tax and an edit of an entity change drafts without a transaction of the customer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReachedLevels {
    /// The first day of the service period whose number has reached the levels; `None` for the number of an account, and if none is
    /// reached.
    pub window_start: Option<Date>,
    /// How many thresholds are reached: the lowest ones, or the highest ones of free credit.
    pub thresholds: usize,
    /// The number at which the maximum was reached: above the maximum, or less, if usage was rejected there.
    pub max_at: Option<Decimal>,
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
    /// The levels of the number.
    pub levels: LimitLevels,
    /// The levels that notifications stated as reached.
    pub reached: ReachedLevels,
    /// The number of notifications about the limit.
    pub notifications: u64,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl Limit {
    /// Returns the account whose amounts the limit counts; `None` for the number of a service period.
    pub fn account(&self) -> Option<AccountKey> {
        self.metric.account(self.customer_id)
    }
}

/// The free prepaid credit beside an amount owed, in units of the currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitCredit {
    /// What further documents can take.
    pub free: Decimal,
    /// What open holds would take of it.
    pub held: Decimal,
}

/// The number of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitValue {
    /// The limit.
    pub limit: Limit,
    /// The service period that the number counts; `None` for the number of an account, and if the product has no such period.
    pub window: Option<Period>,
    /// Whether this is the number of now, not of another service period.
    pub is_present: bool,
    /// The number now, in units of the metric.
    pub value: Decimal,
    /// What open holds would add to the number.
    pub held: Decimal,
    /// The free prepaid credit that covers usage of any contract; zero for other numbers than an amount owed.
    pub credit: LimitCredit,
    /// What may still be used: the maximum less the number and the holds, with the free credit, at least zero. `None` without a
    /// maximum.
    pub left: Option<Decimal>,
    /// How far the number is above the maximum, without holds; at least zero.
    pub above: Decimal,
}

impl LimitValue {
    /// Creates the number of a limit.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn new(
        limit: Limit,
        (window, is_present): (Option<Period>, bool),
        (value, held): (Decimal, Decimal),
    ) -> Result<Self, AmountOutOfRange> {
        let (max, zero) = (limit.levels.max, limit.metric.zero());
        let above = max.map(|max| exact_add(value, -max)).transpose()?.unwrap_or(zero);
        let left = max.map(|max| exact_add(exact_add(max, -value)?, -held)).transpose()?;
        let (left, above) = (left.map(at_least_zero), at_least_zero(above));
        let credit = LimitCredit { free: zero, held: zero };
        Ok(Self { limit, window, is_present, value, held, credit, left, above })
    }

    /// Returns the same number with free prepaid credit. What holds don't take of it adds to what may still be used.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn with_credit(self, credit: LimitCredit) -> Result<Self, AmountOutOfRange> {
        let (max, judged) = (self.limit.levels.max, self.judged()?);
        let unheld = exact_add(credit.free, -credit.held)?;
        let left = max.map(|max| exact_add(exact_add(max, -judged)?, unheld)).transpose()?;
        Ok(Self { credit, left: left.map(at_least_zero), ..self })
    }

    /// Returns the number less the free credit. A rejection holds until it is lower: until less is owed, or more credit is free. Holds
    /// don't count, because each end of a hold would end the rejection.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn less_credit(&self) -> Result<Decimal, AmountOutOfRange> {
        exact_add(self.value, -self.credit.free)
    }

    /// Returns the same number with more holds: those that would carry it, and the credit that is left, to where judged usage does.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn with_usage_held(self, judged: &Self) -> Result<Self, AmountOutOfRange> {
        let held = exact_add(judged.judged()?, -self.value)?;
        let free = self.credit.free;
        let unheld = exact_add(judged.credit.free, -judged.credit.held)?;
        let credit = LimitCredit { free, held: exact_add(free, -unheld)? };
        Self::new(self.limit, (self.window, self.is_present), (self.value, held))?.with_credit(credit)
    }

    /// Returns the number by which usage is judged: with the open holds.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn judged(&self) -> Result<Decimal, AmountOutOfRange> {
        exact_add(self.value, self.held)
    }
}

/// Returns a number that is at least zero. Minus zero would be written with its sign.
fn at_least_zero(number: Decimal) -> Decimal {
    if number > Decimal::ZERO { number } else { Decimal::new(0, number.scale()) }
}
