//! The running totals of usage that lines are computed from (billing rules 4, 6).

use std::collections::BTreeMap;

use crate::contract::ProductPeriod;
use crate::contract::terms::{MeteredCharge, SelectedLineItem};
use crate::decimal::AmountOutOfRange;
use crate::refs::{ContractRef, UsageProductRef};
use crate::usage::{UsageKey, UsageTotal};

/// The running totals that lines are computed from. Service periods without usage may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals(BTreeMap<UsageKey, UsageTotal>);

impl UsageTotals {
    /// Creates the collection from stored totals.
    pub fn new(totals: impl IntoIterator<Item = (UsageKey, UsageTotal)>) -> Self {
        Self(totals.into_iter().collect())
    }

    /// Returns the total of a service period; zero if there is no usage.
    pub fn get(&self, key: &UsageKey) -> UsageTotal {
        self.0.get(key).copied().unwrap_or(UsageTotal::ZERO)
    }

    /// Inserts or replaces a total.
    pub fn put(&mut self, key: UsageKey, total: UsageTotal) {
        self.0.insert(key, total);
    }

    /// Returns the total of all line items of a usage product in a period.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the sum exceeds its digits.
    pub fn joined(&self, period_key: &UsageKey) -> Result<UsageTotal, AmountOutOfRange> {
        self.in_period(period_key).map(|(_, total)| *total).try_fold(UsageTotal::ZERO, UsageTotal::joined)
    }

    /// Returns the totals of all line items of a usage product in a period.
    #[must_use]
    pub fn of_period(&self, period_key: &UsageKey) -> Self {
        Self(self.in_period(period_key).map(|(key, total)| (key.clone(), *total)).collect())
    }

    fn in_period(&self, period_key: &UsageKey) -> impl Iterator<Item = (&UsageKey, &UsageTotal)> {
        let first = period_key.of_line_item(None);
        self.0.range(first..).take_while(|(key, _)| key.is_of_same_period(period_key))
    }

    /// Returns the total that a line item is rated by: its own with `where` or `rest`, or else that of all line items of its usage
    /// product.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the sum exceeds its digits.
    pub fn of_line_item(
        &self,
        contract_ref: ContractRef,
        period: &ProductPeriod<'_>,
        (item, metered): (&SelectedLineItem, &MeteredCharge),
    ) -> Result<UsageTotal, AmountOutOfRange> {
        let key = usage_key(contract_ref, period, &metered.charge.usage_product_ref);
        item.own_total(&key).map_or_else(|| self.joined(&key), |own| Ok(self.get(&own)))
    }

    /// Returns all totals.
    pub fn iter(&self) -> impl Iterator<Item = (&UsageKey, &UsageTotal)> {
        self.0.iter()
    }
}

impl IntoIterator for UsageTotals {
    type Item = (UsageKey, UsageTotal);
    type IntoIter = std::collections::btree_map::IntoIter<UsageKey, UsageTotal>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Returns the key of a usage product's running total in a period, if no line item has `where` or `rest`.
pub fn usage_key(contract_ref: ContractRef, period: &ProductPeriod<'_>, usage_product_ref: &UsageProductRef) -> UsageKey {
    UsageKey {
        contract_ref,
        product_no: period.product_no,
        period_start: period.start(),
        usage_product_ref: usage_product_ref.clone(),
        line_item_id: None,
    }
}
