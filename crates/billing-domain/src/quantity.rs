//! Usage quantities. They are exact decimals without a currency, never floats.

use rust_decimal::Decimal;

use crate::decimal::{AmountOutOfRange, DecimalError, Digits, exact_add};

const DIGITS: Digits = Digits { integer: 15, fraction: 9 };
/// The sum of a period may exceed the limit of one event but stays exact.
const SUM_DIGITS: Digits = Digits { integer: 19, fraction: 9 };

/// A quantity of usage: at least zero, at most 15 integer and 9 fractional digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(Decimal);

impl Quantity {
    /// The quantity zero.
    pub const ZERO: Self = Self(Decimal::ZERO);
    /// The quantity one.
    pub const ONE: Self = Self(Decimal::ONE);

    /// Parses a quantity.
    ///
    /// # Errors
    /// Returns a [`DecimalError`] that names the violated limit.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        Self::new(DIGITS.parse(text)?)
    }

    /// Parses the quantity of reported usage, and rounds it half away from zero to 9 fractional digits. Usage is not rejected for
    /// the digits of a measurement, such as 0.30000000000000004. Agreed quantities are never rounded: see [`parse`](Self::parse).
    ///
    /// # Errors
    /// Returns [`DecimalError::NotANumber`], [`DecimalError::Negative`] or [`DecimalError::TooLarge`].
    pub fn parse_reported(text: &str) -> Result<Self, DecimalError> {
        let value = DIGITS.parse_rounded(text)?;
        // A negative number can be zero when it is rounded.
        let is_zero = || text.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).all(|byte| !matches!(byte, b'1'..=b'9'));
        if text.starts_with('-') && !is_zero() {
            return Err(DecimalError::Negative);
        }
        Self::new(value)
    }

    /// Creates a quantity from a decimal.
    ///
    /// # Errors
    /// Returns [`DecimalError::Negative`] or [`DecimalError::TooManyDigits`].
    pub fn new(value: Decimal) -> Result<Self, DecimalError> {
        if value < Decimal::ZERO {
            return Err(DecimalError::Negative);
        }
        if !DIGITS.hold(value) {
            return Err(DecimalError::TooManyDigits { integer: DIGITS.integer, fraction: DIGITS.fraction });
        }
        Ok(Self(value))
    }

    /// Returns the quantity as a decimal.
    pub const fn as_decimal(self) -> Decimal {
        self.0
    }
}

impl From<u32> for Quantity {
    fn from(whole: u32) -> Self {
        Self(whole.into())
    }
}

/// The sum of a period's quantities. It has four more integer digits than a [`Quantity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuantitySum(Decimal);

impl QuantitySum {
    /// The sum zero.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// Creates a sum from a decimal.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] below zero or beyond 19 integer and 9 fractional digits.
    pub fn new(value: Decimal) -> Result<Self, AmountOutOfRange> {
        if value < Decimal::ZERO || !SUM_DIGITS.hold(value) {
            return Err(AmountOutOfRange);
        }
        Ok(Self(value))
    }

    /// Adds the quantity of an event.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the sum exceeds its digits.
    pub fn plus(self, quantity: Quantity) -> Result<Self, AmountOutOfRange> {
        Self::new(exact_add(self.0, quantity.0)?)
    }

    /// Subtracts the quantity of an event.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the event wasn't part of the sum, so the result would be negative.
    pub fn minus(self, quantity: Quantity) -> Result<Self, AmountOutOfRange> {
        Self::new(exact_add(self.0, -quantity.0)?)
    }

    /// Adds the sum of other events.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the sum exceeds its digits.
    pub(crate) fn plus_sum(self, other: Self) -> Result<Self, AmountOutOfRange> {
        Self::new(exact_add(self.0, other.0)?)
    }

    /// Subtracts the sum of some of the events.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if these events weren't part of the sum.
    pub(crate) fn minus_sum(self, other: Self) -> Result<Self, AmountOutOfRange> {
        Self::new(exact_add(self.0, -other.0)?)
    }

    /// Returns the sum as a decimal.
    pub const fn as_decimal(self) -> Decimal {
        self.0
    }
}

from_str!(Quantity: DecimalError);
