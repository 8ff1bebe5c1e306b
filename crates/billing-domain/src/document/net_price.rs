//! The price of a period's lines after the discount (billing rules 6).

use super::lines::DocumentLine;
use crate::charge::Charges;
use crate::contract::ProductPeriod;
use crate::money::{Money, MoneyError, Percentage};

/// The price of a period's lines after discount.
#[derive(Clone, Copy, Debug)]
pub struct NetPrice {
    discount: Percentage,
    /// The sum of the discountable amounts.
    discountable: Money,
    /// The sum of the other amounts.
    fixed: Money,
}

impl NetPrice {
    /// Computes the net price of lines, including charges.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn of(lines: &[DocumentLine], period: &ProductPeriod<'_>, charges: &Charges) -> Result<Self, MoneyError> {
        let zero = Money::zero(period.terms.pricing.currency);
        let discount = period.terms.discount.unwrap_or(Percentage::ZERO);
        let mut net = Self { discount, discountable: zero, fixed: zero };
        for line in lines {
            let charge = charges.of_line(line.line_item_id.as_ref());
            net = net.plus(line.amount, charge.is_none_or(|charge| charge.discountable))?;
        }
        Ok(net)
    }

    /// Returns the net price with an additional amount.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn plus(self, amount: Money, is_discountable: bool) -> Result<Self, MoneyError> {
        Ok(if is_discountable {
            Self { discountable: self.discountable.checked_add(amount)?, ..self }
        } else {
            Self { fixed: self.fixed.checked_add(amount)?, ..self }
        })
    }

    /// Returns the net amount.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when the amount is out of range.
    pub fn amount(&self) -> Result<Money, MoneyError> {
        self.discountable.checked_sub(self.discountable.percent(self.discount)?)?.checked_add(self.fixed)
    }

    /// Subtracts the largest part of a negative amount that doesn't make the price negative, and returns that part.
    pub(super) fn take(&mut self, amount: Money, is_discountable: bool) -> Result<Money, MoneyError> {
        let holds = |minor: i64| -> Result<Option<Self>, MoneyError> {
            let less = self.plus(Money::from_minor(minor, amount.currency()), is_discountable)?;
            Ok((less.amount()?.minor() >= 0).then_some(less))
        };
        let (mut taken, mut left, mut refused) = (0, *self, amount.minor());
        if let Some(less) = holds(refused)? {
            (taken, left) = (refused, less);
        }
        // The remaining price decreases as the subtracted part grows, so a binary search finds the largest part.
        while taken - refused > 1 {
            let tried = taken + (refused - taken) / 2;
            match holds(tried)? {
                Some(less) => (taken, left) = (tried, less),
                None => refused = tried,
            }
        }
        *self = left;
        Ok(Money::from_minor(taken, amount.currency()))
    }
}
