//! The taxes of adjustments (billing rules 5, 7).

use std::collections::BTreeMap;

use super::in_proportion;
use crate::calendar::Period;
use crate::contract::ProductPeriod;
use crate::document::lines::{BilledKey, DiscountAndTax, LedgerLine, LineKey};
use crate::ledger::ContractBook;
use crate::money::Money;
use crate::refs::DocumentRef;
use crate::refusal::Refusal;
use crate::tax::TaxTreatment;

impl ContractBook {
    /// Returns the lines on which an adjustment bills an amount, one for each tax (billing rules 5). A tax stated by the
    /// contract applies. Otherwise the amount is divided in proportion to the amounts billed at each tax.
    pub(super) fn spread(
        &self,
        (period, service_period): (&ProductPeriod<'_>, Period),
        key: &LineKey,
        family: DocumentRef,
        amount: Money,
        is_strict: bool,
    ) -> Result<Vec<LedgerLine>, Refusal> {
        let stated = period.terms.stated_tax();
        let at = |tax, has_default_tax, minor| {
            let rates = DiscountAndTax { discount: self.discount_of(key.line_item_id.as_ref(), period.terms), tax };
            let amount = Money::from_minor(minor, amount.currency());
            LedgerLine { key: key.clone(), service_period, rates, has_default_tax, usage: None, amount }
        };
        if stated.is_complete() {
            return Ok(vec![at(TaxTreatment::of(&[stated]), false, amount.minor())]);
        }
        let weights = match self.charges().supply_of(key.line_item_id.as_ref()) {
            Some(_) => self.taxes_of_charge(period, key, is_strict),
            None => self.taxes_of_period(period, key, family, amount, is_strict)?,
        };
        if weights.is_empty() {
            let (rates, _) = self.rates_now(key.line_item_id.as_ref(), period)?;
            return Ok(vec![at(rates.tax, true, amount.minor())]);
        }
        let parts = in_proportion(amount.minor(), &weights.values().copied().collect::<Vec<_>>());
        Ok(weights.into_keys().zip(parts).map(|(tax, part)| at(tax, true, part)).collect())
    }

    /// Returns the default taxes of a correction of a service period, with weights (billing rules 5): those at which the period was
    /// billed. A charge below zero corrects its period, so it has the taxes of the other lines.
    ///
    /// Charges above zero are supplies of their own, so their taxes aren't those of the period.
    fn taxes_of_period(
        &self,
        period: &ProductPeriod<'_>,
        key: &LineKey,
        family: DocumentRef,
        amount: Money,
        is_strict: bool,
    ) -> Result<BTreeMap<TaxTreatment, i64>, Refusal> {
        let mut right: Vec<(&BilledKey, i64)> = Vec::new();
        for (billed, minor) in self.documented().of_period(period.product_no, period.start()) {
            if self.is_right(period, billed, is_strict)? {
                right.push((billed, minor));
            }
        }
        let stands = |fits: &dyn Fn(&LineKey) -> bool| {
            let fitting = right.iter().filter(|(billed, _)| fits(&billed.line));
            let mut stands = sums_by_tax(fitting.copied());
            // Prefer sums with the sign of the amount, or else use all positive sums.
            let is_alike = |sum: &i64| sum.signum() == amount.minor().signum();
            let sign = if stands.values().any(is_alike) { amount.minor().signum() } else { 1 };
            stands.retain(|_, sum| sum.signum() == sign);
            stands.values_mut().for_each(|sum| *sum = sum.abs());
            stands
        };
        let is_supply = |line: &LineKey| self.charges().supply_of(line.line_item_id.as_ref()).is_some();
        let is_charge = self.charges().of_line(key.line_item_id.as_ref()).is_some();
        let same_line = |other: &LineKey| !is_charge && other == key;
        let of_period = |other: &LineKey| !(is_supply(other) || is_charge && other == key);
        let same_account = |other: &LineKey| other.bill_with == key.bill_with && of_period(other);
        let choices: [&dyn Fn(&LineKey) -> bool; 3] = [&same_line, &same_account, &of_period];
        if let Some(stands) = choices.into_iter().map(stands).find(|stands| !stands.is_empty()) {
            return Ok(stands);
        }
        // A line without an amount still determines the tax.
        let stated = period.terms.stated_tax();
        let on_family = self.lines().filter(|(document_ref, _)| self.family_of(*document_ref) == Some(family));
        let of_nothing = on_family.flat_map(|(_, lines)| lines).find(|line| {
            let is_of_period = (line.key.product_no, line.key.period_start) == (period.product_no, period.start());
            let is_allowed = stated.allows(&line.rates.tax) && (!is_strict || line.has_default_tax);
            is_of_period && of_period(&line.key) && is_allowed
        });
        match of_nothing {
            Some(line) => Ok(BTreeMap::from([(line.rates.tax.clone(), 1)])),
            None if is_charge => Ok(self.taxes_of_charge(period, key, is_strict)),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Returns the default taxes at which a charge itself is billed or, if it is below zero, credited, with weights. The discount
    /// doesn't matter. Amounts from a time when the charge was on the other side of zero don't count: they were a credit of the
    /// period, or a supply of their own.
    fn taxes_of_charge(&self, period: &ProductPeriod<'_>, key: &LineKey, is_strict: bool) -> BTreeMap<TaxTreatment, i64> {
        let stated = period.terms.stated_tax();
        let of_charge = self.documented().of_period(period.product_no, period.start()).filter(|(billed, _)| {
            billed.line == *key && stated.allows(&billed.rates.tax) && (!is_strict || billed.has_default_tax)
        });
        let sign = if self.charges().supply_of(key.line_item_id.as_ref()).is_some() { 1 } else { -1 };
        let mut sums = sums_by_tax(of_charge);
        sums.retain(|_, sum| sum.signum() == sign);
        sums.values_mut().for_each(|sum| *sum = sum.abs());
        sums
    }
}

/// Adds up billed amounts by their tax.
fn sums_by_tax<'k>(billed: impl IntoIterator<Item = (&'k BilledKey, i64)>) -> BTreeMap<TaxTreatment, i64> {
    let mut sums = BTreeMap::new();
    for (key, minor) in billed {
        *sums.entry(key.rates.tax.clone()).or_insert(0) += minor;
    }
    sums
}
