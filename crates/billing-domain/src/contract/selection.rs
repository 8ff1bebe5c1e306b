//! Selection of the line item whose running total counts an event (billing rules 4).

use std::collections::BTreeSet;

use super::terms::{MeteredCharge, ProductTerms, SelectedLineItem};
use crate::catalog::{Aggregation, Selector, Sibling, UsageCharge, UsageProductProfile};
use crate::codes::UnitCode;
use crate::labels::{LabelDigest, LabelKey, UnpricedLabel, Where};
use crate::refs::{LineItemId, UsageProductRef};
use crate::usage::{ReportData, UsageKey};

/// The reason why terms don't count an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncounted {
    /// No selected line item meters the usage product.
    NotMetered,
    /// No line item has a price for a label of the event.
    UnpricedLabel(UnpricedLabel),
}

impl SelectedLineItem {
    /// Returns the usage line item among those of its usage product, or `None` for a fixed line item.
    pub(super) fn as_sibling(&self, index: usize) -> Option<Sibling<'_>> {
        let MeteredCharge { charge, aggregation, unique_by, .. } = self.metered()?;
        let is_unique = *aggregation == Aggregation::Unique;
        Some(Sibling { index, id: &self.id, charge, is_unique, unique_by: unique_by.as_ref() })
    }

    /// Returns the key of the running total that counts only for this line item, among those of a usage product in a period. It is
    /// `None` without `where` and `rest`: all running totals count.
    pub fn own_total(&self, period_key: &UsageKey) -> Option<UsageKey> {
        let is_selective = self.metered().is_some_and(|metered| metered.charge.selector.is_selective());
        is_selective.then(|| period_key.of_line_item(Some(&self.id)))
    }
}

impl MeteredCharge {
    /// Returns a charge with the present fields of its usage product.
    pub(super) fn frozen(charge: &UsageCharge, usage_product: &UsageProductProfile) -> Self {
        // A number of events or values doesn't have the unit of the quantities.
        let (unit, unit_code) = match charge.aggregation {
            Some(Aggregation::Count | Aggregation::Unique) => (None, UnitCode::ONE),
            _ => (usage_product.unit.clone(), usage_product.unit_code),
        };
        let aggregation = charge.aggregation.unwrap_or(usage_product.aggregation);
        let unique_by = charge.unique_by(usage_product).cloned();
        Self { charge: charge.clone(), unit, unit_code, aggregation, unique_by }
    }
}

impl ProductTerms {
    /// Selects the line item whose running total counts an event. Returns `None` if one running total counts all events of the
    /// usage product (billing rules 4):
    /// 1. The condition of the product must be met.
    /// 2. If line items of the usage product have `where` or `rest`, the one whose condition is met is selected, or else the one
    ///    with `rest`.
    ///
    /// # Errors
    /// Returns [`Uncounted`] if the terms don't count the event.
    pub fn select(
        &self,
        usage_product_ref: &UsageProductRef,
        labels: Option<&ReportData>,
    ) -> Result<Option<&LineItemId>, Uncounted> {
        if let Some(condition) = self.condition.as_ref().filter(|_| self.meters(usage_product_ref))
            && let Some(key) = condition.first_unmet(labels)
        {
            let priced = condition.values_of(key).cloned().unwrap_or_default();
            return Err(Uncounted::UnpricedLabel(UnpricedLabel::new(key, labels, priced)));
        }
        let (mut is_metered, mut is_selective, mut rest) = (false, false, None);
        for (item, metered) in self.metering(usage_product_ref) {
            is_metered = true;
            match &metered.charge.selector {
                Selector::Every => {}
                Selector::Rest => (is_selective, rest) = (true, Some(&item.id)),
                Selector::Where(condition) if condition.first_unmet(labels).is_none() => return Ok(Some(&item.id)),
                Selector::Where(_) => is_selective = true,
            }
        }
        match rest {
            Some(rest) => Ok(Some(rest)),
            None if is_selective => {
                Err(self.unpriced(usage_product_ref, labels).map_or(Uncounted::NotMetered, Uncounted::UnpricedLabel))
            }
            None if is_metered => Ok(None),
            None => Err(Uncounted::NotMetered),
        }
    }

    /// Returns the digest of the label whose distinct texts line items of a usage product count (`UNIQUE`), or `None` if none does.
    ///
    /// # Errors
    /// Returns [`Uncounted::UnpricedLabel`] if the event doesn't have the label.
    pub fn unique_digest(
        &self,
        usage_product_ref: &UsageProductRef,
        labels: Option<&ReportData>,
    ) -> Result<Option<LabelDigest>, Uncounted> {
        let Some(key) = self.unique_by(usage_product_ref).map(LabelKey::as_str) else { return Ok(None) };
        match labels.and_then(|labels| labels.label(key)) {
            Some(text) => Ok(Some(LabelDigest::of(&text))),
            None => Err(Uncounted::UnpricedLabel(UnpricedLabel::new(key, labels, BTreeSet::new()))),
        }
    }

    /// Returns the label whose distinct texts line items of a usage product count (`UNIQUE`).
    pub fn unique_by(&self, usage_product_ref: &UsageProductRef) -> Option<&LabelKey> {
        self.metering(usage_product_ref).find_map(|(_, metered)| metered.unique_by.as_ref())
    }

    /// Returns the label that the closest condition misses, with all priced values of its key. Returns `None` without conditions.
    fn unpriced(&self, usage_product_ref: &UsageProductRef, labels: Option<&ReportData>) -> Option<UnpricedLabel> {
        let conditions = || self.metering(usage_product_ref).filter_map(|(_, metered)| metered.charge.selector.condition());
        let missed = |condition: &Where| condition.unmet(labels).count();
        let closest = conditions().min_by_key(|condition| missed(condition))?;
        let (key, fewest) = (closest.first_unmet(labels)?, missed(closest));
        let alike = conditions().filter(|it| missed(it) == fewest && it.unmet(labels).any(|unmet| unmet == key));
        let priced = alike.filter_map(|condition| condition.values_of(key)).flatten().cloned().collect();
        Some(UnpricedLabel::new(key, labels, priced))
    }

    /// Returns the line items that the running total of a line item rates, or the total of all line items if it is `None`: its own
    /// line item, and those that count every event.
    pub fn rated_by<'t, 'k>(
        &'t self,
        key: &'k UsageKey,
    ) -> impl Iterator<Item = (&'t SelectedLineItem, &'t MeteredCharge)> + use<'t, 'k> {
        self.metering(&key.usage_product_ref)
            .filter(|(item, metered)| !metered.charge.selector.is_selective() || Some(&item.id) == key.line_item_id.as_ref())
    }

    /// Returns whether labels decide if and where events of a usage product count.
    pub fn reads_labels(&self, usage_product_ref: &UsageProductRef) -> bool {
        self.condition.is_some() || self.metering(usage_product_ref).any(|(_, metered)| metered.charge.selector.is_selective())
    }

    /// Returns whether a label can decide if and where events of a usage product count.
    pub fn reads_label(&self, usage_product_ref: &UsageProductRef, key: &str) -> bool {
        let has_key = |condition: &Where| condition.values_of(key).is_some();
        let of_items = self.metering(usage_product_ref).filter_map(|(_, metered)| metered.charge.selector.condition());
        self.condition.iter().chain(of_items).any(has_key)
            || self.unique_by(usage_product_ref).is_some_and(|it| it.as_str() == key)
    }

    /// Returns the selector of a line item that meters a usage product.
    fn selector_of(&self, usage_product_ref: &UsageProductRef, id: &LineItemId) -> Option<&Selector> {
        self.metering(usage_product_ref).find(|(item, _)| item.id == *id).map(|(_, metered)| &metered.charge.selector)
    }

    /// Returns whether later terms can select otherwise among the events that one of these terms' running totals counts: those
    /// of a line item with `where` or `rest`, or, without a line item, all events of the usage product (billing rules 7).
    pub fn is_reselected(&self, later: &Self, usage_product_ref: &UsageProductRef, counted_by: Option<&LineItemId>) -> bool {
        let covers = |later: &Where| self.condition.as_ref().is_some_and(|condition| later.covers(condition));
        if !later.condition.as_ref().is_none_or(covers) {
            return true;
        }
        let Some(id) = counted_by else {
            return later.metering(usage_product_ref).any(|(_, metered)| metered.charge.selector.is_selective());
        };
        match (self.selector_of(usage_product_ref, id), later.selector_of(usage_product_ref, id)) {
            (Some(Selector::Where(condition)), Some(Selector::Where(later))) => !later.covers(condition),
            // The rest loses events to a condition that is new or wider.
            (Some(Selector::Rest), Some(Selector::Rest)) => later.metering(usage_product_ref).any(|(item, metered)| {
                let was = self.selector_of(usage_product_ref, &item.id);
                metered.charge.selector.condition().is_some_and(|condition| match was {
                    Some(Selector::Where(was)) => !was.covers(condition),
                    _ => true,
                })
            }),
            _ => true,
        }
    }
}
