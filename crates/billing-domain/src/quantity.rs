//! Usage quantities. Money never appears here, nor a float.

use rust_decimal::Decimal;

use crate::decimal::{AmountOutOfRange, DecimalError, Digits, exact_add};

const DIGITS: Digits = Digits { integer: 15, fraction: 9 };
/// A period's sum may grow beyond one event's limit, but stays exact.
const SUM_DIGITS: Digits = Digits { integer: 19, fraction: 9 };

/// A quantity of usage: at least zero, at most 15 integer and 9 fractional digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(Decimal);

impl Quantity {
    /// None.
    pub const ZERO: Self = Self(Decimal::ZERO);
    /// One.
    pub const ONE: Self = Self(Decimal::ONE);

    /// Reads a quantity.
    ///
    /// # Errors
    /// [`DecimalError`] says which limit it breaks.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        Self::new(DIGITS.parse(text)?)
    }

    /// Takes a decimal that is already exact.
    ///
    /// # Errors
    /// [`DecimalError::Negative`] or [`DecimalError::TooManyDigits`].
    pub fn new(value: Decimal) -> Result<Self, DecimalError> {
        if value < Decimal::ZERO {
            return Err(DecimalError::Negative);
        }
        if !DIGITS.hold(value) {
            return Err(DecimalError::TooManyDigits { integer: DIGITS.integer, fraction: DIGITS.fraction });
        }
        Ok(Self(value))
    }

    /// The number.
    pub const fn as_decimal(self) -> Decimal {
        self.0
    }
}

impl From<u32> for Quantity {
    fn from(whole: u32) -> Self {
        Self(whole.into())
    }
}

/// The sum of a period's quantities: like a [`Quantity`], with four more integer digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuantitySum(Decimal);

impl QuantitySum {
    /// None.
    pub const ZERO: Self = Self(Decimal::ZERO);

    /// Takes a decimal that is already exact.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] below zero or beyond 19 integer and 9 fractional digits.
    pub fn new(value: Decimal) -> Result<Self, AmountOutOfRange> {
        if value < Decimal::ZERO || !SUM_DIGITS.hold(value) {
            return Err(AmountOutOfRange);
        }
        Ok(Self(value))
    }

    /// With one more event.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when the sum grows beyond its digits.
    pub fn plus(self, quantity: Quantity) -> Result<Self, AmountOutOfRange> {
        Self::new(exact_add(self.0, quantity.0)?)
    }

    /// With one event less.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when the event wasn't part of the sum.
    pub fn minus(self, quantity: Quantity) -> Result<Self, AmountOutOfRange> {
        Self::new(exact_add(self.0, -quantity.0)?)
    }

    /// The number.
    pub const fn as_decimal(self) -> Decimal {
        self.0
    }
}

from_str!(Quantity: DecimalError);
