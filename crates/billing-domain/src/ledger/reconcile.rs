//! Differences between prices and billed amounts, and the adjustments that correct them (billing rules 5, 7). Events, charges,
//! edits and cancels all use this module.

mod taxes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

use super::open::NewDocument;
use super::{ContractBook, Entry, IdGenerator};
use crate::calendar::{Period, Timestamp, day_after};
use crate::contract::ProductPeriod;
use crate::document::lines::{
    BillWith, BilledKey, DiscountAndTax, DocumentLine, LedgerLine, LedgerUsage, LineKey, kind_of, merge, negated,
};
use crate::document::totals::children_price;
use crate::document::{BookDocument, DocumentHead, DocumentKind, LifecycleStatus, Purpose};
use crate::money::{AmountOutOfRange, Money};
use crate::refs::{DocumentRef, LineItemId, ProductNo};
use crate::refusal::Refusal;

/// The maximum amount of a line, and of a product's lines in a service period, in minor units (billing rules 6).
pub(super) const MAX_PERIOD_MINOR: i64 = 1_000_000_000_000_000;

/// The part of a service period's price that isn't billed at the discount and tax in force.
pub(super) struct Unbilled {
    /// Each line of the price, and billed lines without a price.
    pub(super) lines: Vec<UnbilledLine>,
    /// The amounts billed at another discount or tax.
    pub(super) misrated: Vec<(BilledKey, i64)>,
}

/// A line of a price with its billed amounts.
pub(super) struct UnbilledLine {
    /// The line with its full price.
    pub(super) line: DocumentLine,
    /// Whether the price has no such line, so that the billed amount isn't owed.
    pub(super) is_unpriced: bool,
    /// The amounts billed at the discount and tax in force.
    pub(super) billed: Vec<(BilledKey, i64)>,
}

impl UnbilledLine {
    /// Returns the price less the billed amounts.
    pub(super) fn rest(&self) -> Result<Money, Refusal> {
        let currency = self.line.amount.currency();
        let billed = Money::sum(currency, self.billed.iter().map(|(_, minor)| Money::from_minor(*minor, currency)))?;
        Ok(self.line.amount.checked_sub(billed)?)
    }
}

/// An amount that a document family must bill, or credit if it is negative.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    /// The family.
    pub(super) family: DocumentRef,
    /// The line with the signed difference.
    pub(super) line: LedgerLine,
    /// Whether the difference reverses an amount that documents bill or credit. It then keeps that amount's tax.
    pub(super) is_reversal: bool,
}

/// A service period affected by a decision, with its previous and its current plan.
#[derive(Clone, Copy)]
pub(super) struct Revised<'c> {
    pub(super) product_no: ProductNo,
    pub(super) start: NaiveDate,
    pub(super) was: Option<ProductPeriod<'c>>,
    pub(super) is: Option<ProductPeriod<'c>>,
}

impl<'c> Revised<'c> {
    /// Creates the value for a period whose plan doesn't change.
    pub(super) const fn planned(period: ProductPeriod<'c>) -> Self {
        Self { product_no: period.product_no, start: period.start(), was: Some(period), is: Some(period) }
    }

    /// Returns all days of the period; only the first day if neither plan has the period.
    fn days(&self) -> Option<Period> {
        self.is.or(self.was).map(|period| period.days()).or_else(|| Period::new(self.start, day_after(self.start)))
    }

    /// Returns the days that an amount is for: the days that the period lost, for a negative amount, or gained. Returns all
    /// days if the end of the period didn't move accordingly.
    fn days_of(&self, amount: Money) -> Option<Period> {
        let ends = self.was.zip(self.is).map(|(was, is)| (was.days().end(), is.days().end()));
        let moved = ends.and_then(|(was, is)| if amount.minor() < 0 { Period::new(is, was) } else { Period::new(was, is) });
        moved.or(self.days())
    }

    /// Returns whether the contract states a different tax than before.
    fn has_other_tax(&self) -> bool {
        self.was.zip(self.is).is_some_and(|(was, is)| was.terms.stated_tax() != is.terms.stated_tax())
    }
}

impl ContractBook {
    /// Returns the lines of a price with their billed amounts, and the amounts billed at another discount or tax. If
    /// `is_strict` is set, a tax that the contract stated and now leaves to a default must be the tax in force.
    pub(super) fn unbilled(
        &self,
        period: &ProductPeriod<'_>,
        price: &[DocumentLine],
        is_strict: bool,
    ) -> Result<Unbilled, Refusal> {
        let currency = period.terms.pricing.currency;
        let mut billed: BTreeMap<LineKey, Vec<(BilledKey, i64)>> = BTreeMap::new();
        let mut misrated = Vec::new();
        for (key, minor) in self.documented().of_period(period.product_no, period.start()) {
            if self.is_right(period, key, is_strict)? {
                billed.entry(key.line.clone()).or_default().push((key.clone(), minor));
            } else {
                misrated.push((key.clone(), minor));
            }
        }
        let priced = |line: &DocumentLine| {
            let billed = billed.remove(&line.key(period.product_no)).unwrap_or_default();
            UnbilledLine { line: line.clone(), is_unpriced: false, billed }
        };
        let mut lines: Vec<UnbilledLine> = price.iter().map(priced).collect();
        for (key, billed) in billed {
            let (rates, has_default_tax) = (billed[0].0.rates.clone(), billed[0].0.has_default_tax);
            let (service_period, amount) = (period.days(), Money::zero(currency));
            let line = LedgerLine { key, service_period, rates, has_default_tax, usage: None, amount };
            let line = line.shown(Some(period), self.charges().name_of(line.key.line_item_id.as_ref()));
            lines.push(UnbilledLine { line, is_unpriced: true, billed });
        }
        Ok(Unbilled { lines, misrated })
    }

    /// Returns whether a billed amount of a period has the discount and tax in force. If `is_strict` is set, a tax that the
    /// contract stated and now leaves to a default must be the tax in force.
    fn is_right(&self, period: &ProductPeriod<'_>, billed: &BilledKey, is_strict: bool) -> Result<bool, Refusal> {
        let is_in_force =
            || Ok::<_, Refusal>(billed.rates.tax == self.rates_now(billed.line.line_item_id.as_ref(), period)?.0.tax);
        Ok(self.has_current_rates(billed, period.terms) && (!is_strict || billed.has_default_tax || is_in_force()?))
    }

    /// Removes lines whose discount or tax is no longer in force from open adjustments. They were never issued.
    pub(super) fn strip_adjustments(&mut self, revised: &Revised<'_>) -> Result<(), Refusal> {
        let Some(period) = revised.is else { return Ok(()) };
        let mut stripped = Vec::new();
        for draft in self.documents().filter(|it| it.status == LifecycleStatus::Draft && it.head.purpose == Purpose::Adjustment) {
            let lines = self.lines_of(draft.head.document_ref);
            let mut kept = Vec::new();
            for line in lines {
                let is_of_period = (line.key.product_no, line.key.period_start) == (revised.product_no, revised.start);
                let billed = line.billed_by(draft.family);
                if !is_of_period || line.amount.minor() == 0 || self.is_right(&period, &billed, revised.has_other_tax())? {
                    kept.push(line.clone());
                }
            }
            if kept.len() < lines.len() {
                stripped.push((draft.head.document_ref, kept));
            }
        }
        for (document_ref, lines) in stripped {
            self.put(Entry::Lines { document_ref, lines })?;
        }
        Ok(())
    }

    /// Gives open children and adjustments the days that the periods of their usage have now. A draft that waits is issued with
    /// the periods in force at its issue (billing rules 2).
    pub(super) fn adapt_periods(&mut self) -> Result<(), Refusal> {
        let contract = Arc::clone(&self.contract);
        let mut adapted = Vec::new();
        for draft in self.documents().filter(|draft| draft.status == LifecycleStatus::Draft) {
            let head = &draft.head;
            if matches!(head.purpose, Purpose::Regular(_)) {
                continue;
            }
            // Other lines of adjustments have the days that they give back or add.
            let days_of = |line: &LedgerLine| {
                let period = contract.period_from(line.key.product_no, line.key.period_start);
                period
                    .filter(|_| line.usage.is_some() || head.purpose == Purpose::Usage)
                    .map_or(line.service_period, |period| period.days())
            };
            let lines = self.lines_of(head.document_ref);
            let with_days = lines.iter().map(|line| LedgerLine { service_period: days_of(line), ..line.clone() });
            let changed = merge(Vec::new(), with_days.collect())?;
            let of_nothing = || {
                let own = head.parts.first().and_then(|no| contract.period_from(*no, head.period.start()));
                own.map(|period| period.days())
            };
            let days = if lines.is_empty() { of_nothing() } else { reach(&changed) };
            let period = days.filter(|_| lines.is_empty() || lines != changed).unwrap_or(head.period);
            if lines != changed || period != head.period {
                let is_partial_period = head.parts.first().is_some_and(|no| self.is_partial(*no, period));
                adapted.push((DocumentHead { period, is_partial_period, ..head.clone() }, changed));
            }
        }
        for (head, lines) in adapted {
            self.put(Entry::Lines { document_ref: head.document_ref, lines })?;
            self.put(Entry::Redrawn(Box::new(head)))?;
        }
        Ok(())
    }

    /// Returns the corrections of a service period for items billed with `with` (billing rules 5):
    /// - amounts billed at another discount or tax
    /// - amounts billed above the price
    /// - missing amounts, if an issued document bills the period
    ///
    /// Otherwise a draft bills the missing amounts. A draft never reverses amounts of other documents.
    pub(super) fn differences(&self, revised: &Revised<'_>, with: BillWith) -> Result<Vec<Difference>, Refusal> {
        let of_period = || self.documented().of_period(revised.product_no, revised.start);
        let Some(period) = revised.is else {
            // The period is no longer planned, so everything billed is reversed.
            let billed = of_period().filter(|(key, _)| key.line.bill_with == with);
            return billed.map(|(key, minor)| self.taken_back(revised, key, minor)).collect();
        };
        let home = self.billing_document(&period, with);
        let issued = home.filter(|home| home.status.is_issued()).map(|home| home.family);
        let children = if issued.is_none() && with == BillWith::Usage { self.family_of_children(&period)? } else { None };
        let price = self.price_of(&period)?;
        let children_price = if children.is_some() { children_price(&self.contract, &period, self.usage())? } else { Vec::new() };
        let unbilled = self.unbilled(&period, &price, revised.has_other_tax())?;
        let mut differences = Vec::new();
        for (key, minor) in unbilled.misrated.iter().filter(|(key, _)| key.line.bill_with == with) {
            differences.push(self.taken_back(revised, key, *minor)?);
        }
        let is_rerated = !differences.is_empty();
        for mut unbilled in unbilled.lines.into_iter().filter(|unbilled| unbilled.line.bill_with == with) {
            // Children bill the usage price without minimums; the draft bills the minimums. So the children's price replaces
            // the full price of the line.
            let of_children = children_price.iter().find(|line| line.line_item_id == unbilled.line.line_item_id);
            let family = if of_children.is_some() { children } else { issued };
            if let Some(line) = of_children.filter(|line| line.amount.minor() < unbilled.line.amount.minor()) {
                unbilled.line.amount = line.amount;
            }
            let rest = unbilled.rest()?;
            let key = unbilled.line.key(period.product_no);
            let mut left = rest.minor();
            for (billed, minor) in self.take_from(&unbilled.billed, -left, family) {
                left += minor;
                differences.push(self.taken_back(revised, &billed, minor)?);
            }
            if let Some(family) = family.filter(|_| left != 0) {
                let amount = Money::from_minor(left, rest.currency());
                let service_period = if is_rerated { revised.days() } else { revised.days_of(amount) };
                let service_period = service_period.unwrap_or(period.days());
                let lines = self.spread((&period, service_period), &key, family, amount, revised.has_other_tax())?;
                differences.extend(lines.into_iter().map(|line| Difference { family, line, is_reversal: false }));
            }
        }
        Ok(differences)
    }

    /// Returns the difference that reverses a billed amount in its family.
    fn taken_back(&self, revised: &Revised<'_>, billed: &BilledKey, minor: i64) -> Result<Difference, Refusal> {
        let currency = match revised.is.or(revised.was) {
            Some(period) => period.terms.pricing.currency,
            None => self.require_document(billed.family)?.head.currency,
        };
        let amount = Money::zero(currency).checked_sub(Money::from_minor(minor, currency))?;
        let is_rerated = revised.is.is_some_and(|period| !self.has_current_rates(billed, period.terms));
        let service_period = if is_rerated { revised.days() } else { revised.days_of(amount) };
        let service_period = service_period.ok_or_else(|| Refusal::Broken(format!("no period begins on {}", revised.start)))?;
        let BilledKey { line, rates, has_default_tax, family } = billed.clone();
        let line = LedgerLine { key: line, service_period, rates, has_default_tax, usage: None, amount };
        Ok(Difference { family, line, is_reversal: true })
    }

    /// Distributes an amount over the billed amounts of a line with the same sign. The family `first` comes first, then the
    /// latest families. Within a family, the amount is divided in proportion to the amounts at each tax.
    fn take_from(&self, billed: &[(BilledKey, i64)], amount: i64, first: Option<DocumentRef>) -> Vec<(BilledKey, i64)> {
        let sign = amount.signum();
        let mut families: BTreeMap<DocumentRef, Vec<(&BilledKey, i64)>> = BTreeMap::new();
        for (key, minor) in billed {
            families.entry(key.family).or_default().push((key, sign * minor));
        }
        let mut order: Vec<DocumentRef> = families.keys().copied().collect();
        let opened = |family: &DocumentRef| self.document(*family).map(|document| document.head.number_in_contract);
        order.sort_by_key(|family| (Some(*family) != first, std::cmp::Reverse((opened(family), *family))));
        let (mut left, mut taken) = (amount.abs(), Vec::new());
        for family in order {
            let of_family: Vec<(&BilledKey, i64)> = families.remove(&family).unwrap_or_default();
            let stands: i64 = of_family.iter().map(|(_, minor)| minor).sum();
            let most = left.min(stands.max(0));
            let above: Vec<i64> = of_family.iter().map(|(_, minor)| (*minor).max(0)).collect();
            for ((key, _), minor) in of_family.iter().zip(in_proportion(most, &above)) {
                if minor != 0 {
                    taken.push(((*key).clone(), sign * minor));
                }
            }
            left -= most;
        }
        taken
    }

    /// Returns the differences of a step of the incremental price, for a line that documents other than the period's own bill.
    /// The reversed amounts never exceed the billed amounts (billing rules 3).
    pub(super) fn step_differences(
        &self,
        period: &ProductPeriod<'_>,
        step: &DocumentLine,
        family: DocumentRef,
    ) -> Result<Vec<Difference>, Refusal> {
        let key = step.key(period.product_no);
        let billed = self.documented().of_period(period.product_no, period.start());
        let billed: Vec<(BilledKey, i64)> =
            billed.filter(|(billed, _)| billed.line == key).map(|(billed, minor)| (billed.clone(), minor)).collect();
        let mut minor = step.amount.minor();
        if minor > 0 {
            // The children together bill at most the line's price, both with and without its minimum.
            let same = |line: &&DocumentLine| line.key(period.product_no) == key;
            let costs = |lines: Vec<DocumentLine>| lines.iter().find(same).map_or(0, |line| line.amount.minor());
            let most = costs(children_price(&self.contract, period, self.usage())?).min(costs(self.price_of(period)?));
            let sum: i64 = billed.iter().map(|(_, minor)| minor).sum();
            minor = minor.min(most.saturating_sub(sum)).max(0);
        }
        let revised = Revised::planned(*period);
        let mut differences = Vec::new();
        for (billed, taken) in self.take_from(&billed, -minor, Some(family)) {
            minor += taken;
            differences.push(self.taken_back(&revised, &billed, taken)?);
        }
        if minor > 0 {
            let amount = Money::from_minor(minor, step.amount.currency());
            let lines = self.spread((period, period.days()), &key, family, amount, false)?;
            differences.extend(lines.into_iter().map(|line| Difference { family, line, is_reversal: false }));
        }
        Ok(differences)
    }

    /// Returns a line without an amount, at the rates of the family.
    pub(super) fn line_of_nothing(
        &self,
        period: &ProductPeriod<'_>,
        key: &LineKey,
        family: DocumentRef,
    ) -> Result<LedgerLine, Refusal> {
        let amount = Money::zero(period.terms.pricing.currency);
        Ok(self.spread((period, period.days()), key, family, amount, false)?.swap_remove(0))
    }

    /// Returns the discount and tax for a line of a period on a document that is issued now, and whether the tax follows a
    /// default.
    pub(super) fn rates_now(
        &self,
        line_item: Option<&LineItemId>,
        period: &ProductPeriod<'_>,
    ) -> Result<(DiscountAndTax, bool), Refusal> {
        let today = self.as_of().map(|now| self.today(period.terms, now)).transpose()?;
        self.rates_on(line_item, period, today.unwrap_or(NaiveDate::MAX))
    }

    /// Returns the family whose children bill the usage of a period whose own document is open. Returns `None` if no child
    /// bills usage of the period.
    pub(super) fn family_of_children(&self, period: &ProductPeriod<'_>) -> Result<Option<DocumentRef>, Refusal> {
        let carrier = self.billing_document(period, BillWith::Usage);
        if !super::open::is_due_upon_usage(self, carrier, period)? {
            return Ok(None);
        }
        let parent = self.document_in_slot(super::open::invoice_of(period).slot()).map(|parent| parent.family);
        let bills = |family: &DocumentRef| {
            self.documented().issued_in(period.product_no, period.start()).any(|key| {
                key.family == *family
                    && key.line.bill_with == BillWith::Usage
                    && key.line.line_item_id.as_ref().is_some_and(|id| !id.is_of_charge())
            })
        };
        Ok(parent.filter(bills))
    }

    /// Returns the invoice that is the parent of a document's adjustments (billing rules 5).
    pub(super) fn parent_for(&self, document: &BookDocument) -> Result<DocumentRef, Refusal> {
        match (document.head.kind, document.head.parent) {
            (DocumentKind::Invoice, _) => Ok(document.head.document_ref),
            (DocumentKind::Credit | DocumentKind::Debit, Some(parent)) => Ok(parent),
            (DocumentKind::Credit | DocumentKind::Debit, None) => {
                Err(Refusal::Broken(format!("document {} has no parent", document.head.document_ref)))
            }
        }
    }

    /// Adds the differences of an event or charge to open adjustments, one for each family, and returns the adjustments. `onto`
    /// is used for its own family, regardless of sign. Other families use the open adjustment of the parent, with the kind that
    /// their sum requires. `parent` applies to its own family; the parent in other families is their root invoice.
    pub(super) fn adjust(
        &mut self,
        period: (ProductNo, Period),
        differences: Vec<Difference>,
        (onto, parent): (Option<DocumentRef>, Option<DocumentRef>),
        now: Timestamp,
        id_generator: &mut impl IdGenerator,
    ) -> Result<Vec<DocumentRef>, Refusal> {
        let mut families: BTreeMap<DocumentRef, Vec<LedgerLine>> = BTreeMap::new();
        for Difference { family, line, .. } in differences {
            families.entry(family).or_default().push(line);
        }
        let family_of =
            |of: Option<DocumentRef>| of.map(|of| Ok::<_, Refusal>((self.require_document(of)?.family, of))).transpose();
        let (onto, parent) = (family_of(onto)?, family_of(parent)?);
        let mut adjusted = Vec::new();
        for (family, lines) in families {
            let document_ref = match onto.filter(|(of, _)| *of == family) {
                Some((_, onto)) => onto,
                None => {
                    let parent = parent.filter(|(of, _)| *of == family).map_or(family, |(_, parent)| parent);
                    let currency = self.require_document(parent)?.head.currency;
                    let kind = kind_of(Money::sum(currency, lines.iter().map(|line| line.amount))?);
                    self.adjustment(parent, kind, period, now, id_generator)?
                }
            };
            let is_credit = self.require_document(document_ref)?.head.kind == DocumentKind::Credit;
            let lines = if is_credit { negated(lines)? } else { lines };
            self.collect(document_ref, period, lines)?;
            adjusted.push(document_ref);
        }
        Ok(adjusted)
    }

    /// Adds the differences of changed terms to adjustments, and returns the adjustments (billing rules 7). Each family gets
    /// one credit with the products whose difference is negative, and one debit with the others. Changed rates are credited at
    /// the old rates and debited at the new rates. Open adjustments of the same parent and kind are extended.
    pub(super) fn adjust_terms(
        &mut self,
        differences: Vec<Difference>,
        now: Timestamp,
        id_generator: &mut impl IdGenerator,
    ) -> Result<Vec<DocumentRef>, Refusal> {
        let mut families: BTreeMap<DocumentRef, BTreeMap<(ProductNo, DiscountAndTax), Vec<LedgerLine>>> = BTreeMap::new();
        for Difference { family, line, .. } in differences.into_iter().filter(|difference| difference.line.amount.minor() != 0) {
            let key = (line.key.product_no, line.rates.clone());
            families.entry(family).or_default().entry(key).or_default().push(line);
        }
        let mut adjusted = Vec::new();
        for (family, products) in families {
            let (mut down, mut up): (Vec<LedgerLine>, Vec<LedgerLine>) = (Vec::new(), Vec::new());
            for lines in products.into_values() {
                let sum = Money::sum(lines[0].amount.currency(), lines.iter().map(|line| line.amount))?;
                match kind_of(sum) {
                    DocumentKind::Credit => down.extend(negated(lines)?),
                    DocumentKind::Debit | DocumentKind::Invoice => up.extend(lines),
                }
            }
            for (kind, lines) in [(DocumentKind::Credit, down), (DocumentKind::Debit, up)] {
                let Some(days) = reach(&lines) else { continue };
                let period = (lines[0].key.product_no, days);
                let adjustment = self.adjustment(family, kind, period, now, id_generator)?;
                self.collect(adjustment, period, lines)?;
                adjusted.push(adjustment);
            }
        }
        Ok(adjusted)
    }

    /// Returns the open adjustment of a parent and kind, and opens it if needed.
    pub(super) fn adjustment(
        &mut self,
        parent: DocumentRef,
        kind: DocumentKind,
        (product_no, period): (ProductNo, Period),
        now: Timestamp,
        id_generator: &mut impl IdGenerator,
    ) -> Result<DocumentRef, Refusal> {
        if let Some(open) = self.open_adjustment(parent, kind) {
            return Ok(open.head.document_ref);
        }
        let head = &self.require_document(parent)?.head;
        let new = NewDocument {
            kind,
            purpose: Purpose::Adjustment,
            entity_ref: head.entity_ref.clone(),
            currency: head.currency,
            period,
            is_partial_period: self.is_partial(product_no, period),
            parts: vec![product_no],
            net_terms: head.net_terms,
            payment: head.payment.clone(),
            parent: Some(parent),
            replaces: None,
        };
        self.open(new, now, id_generator)
    }

    fn is_partial(&self, product_no: ProductNo, days: Period) -> bool {
        let period = self.contract.product(product_no).and_then(|product| product.period_at(days.start()));
        period.is_none_or(|period| period.period.nominal() != days)
    }

    /// Adds lines to an open adjustment. Its period is extended to include the corrected days.
    pub(super) fn collect(
        &mut self,
        document_ref: DocumentRef,
        (product_no, days): (ProductNo, Period),
        lines: Vec<LedgerLine>,
    ) -> Result<(), Refusal> {
        let mut head = self.require_document(document_ref)?.head.clone();
        let mut merged = merge(self.lines_of(document_ref).to_vec(), lines)?;
        // A charge that an edit takes to another tax leaves no line of nothing at the former tax: a category that can't be beside
        // others would keep the document waiting.
        let charged: BTreeSet<LineKey> =
            merged.iter().filter(|line| line.amount.minor() != 0).map(|line| line.key.clone()).collect();
        let is_of_charge = |line: &LedgerLine| line.key.line_item_id.as_ref().is_some_and(LineItemId::is_of_charge);
        merged.retain(|line| line.amount.minor() != 0 || !is_of_charge(line) || !charged.contains(&line.key));
        if let Some(period) = Period::new(head.period.start().min(days.start()), head.period.end().max(days.end())) {
            head.is_partial_period =
                if period == head.period { head.is_partial_period } else { self.is_partial(product_no, period) };
            head.period = period;
        }
        let parts: BTreeSet<ProductNo> =
            head.parts.iter().copied().chain(merged.iter().map(|line| line.key.product_no)).chain([product_no]).collect();
        head.parts = parts.into_iter().collect();
        self.put(Entry::Lines { document_ref, lines: merged })?;
        if head != self.require_document(document_ref)?.head {
            self.put(Entry::Redrawn(Box::new(head)))?;
        }
        // The call rejects the change if the amounts can't be added up.
        self.content(document_ref)?;
        Ok(())
    }
}

/// Refuses a period's price that is above the limit, unless the price isn't above the previous one (billing rules 6). Few
/// prices are above the limit, so only then `before` computes the previous price.
pub(super) fn require_in_range(
    after: &[DocumentLine],
    before: impl FnOnce() -> Result<Vec<DocumentLine>, Refusal>,
) -> Result<(), Refusal> {
    let sum = |lines: &[DocumentLine]| lines.iter().map(|line| i128::from(line.amount.minor())).sum::<i128>();
    let is_large = |amount: i128| amount.abs() > i128::from(MAX_PERIOD_MINOR);
    let is_line_large = |line: &DocumentLine| is_large(line.amount.minor().into());
    if !after.iter().any(is_line_large) && !is_large(sum(after)) {
        return Ok(());
    }
    let before = before()?;
    let amount_before = |like: &DocumentLine| {
        let same = before.iter().find(|line| (&line.line_item_id, line.bill_with) == (&like.line_item_id, like.bill_with));
        same.map_or(0, |line| line.amount.minor())
    };
    let is_above = |after: i128, before: i128| is_large(after) && after.abs() > before.abs();
    let is_line_above = |line: &DocumentLine| is_above(line.amount.minor().into(), amount_before(line).into());
    if after.iter().any(is_line_above) || is_above(sum(after), sum(&before)) {
        return Err(AmountOutOfRange.into());
    }
    Ok(())
}

/// Adds changed quantities to the differences, on the first difference of each line. A line without a difference gets one
/// without an amount.
pub(super) fn with_quantities(
    mut differences: Vec<Difference>,
    family: DocumentRef,
    changed: Vec<(LedgerLine, LedgerUsage)>,
) -> Vec<Difference> {
    for (line, usage) in changed {
        let same = |difference: &&mut Difference| difference.family == family && difference.line.key == line.key;
        match differences.iter_mut().find(same) {
            Some(difference) => difference.line.usage = Some(usage),
            None => differences.push(Difference { family, line: LedgerLine { usage: Some(usage), ..line }, is_reversal: false }),
        }
    }
    differences
}

/// Divides an amount in proportion to non-negative weights. The parts add up to the amount.
fn in_proportion(amount: i64, weights: &[i64]) -> Vec<i64> {
    let total: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
    if total == 0 {
        return weights.iter().map(|_| 0).collect();
    }
    let (mut reached, mut given, mut parts) = (0, 0, Vec::with_capacity(weights.len()));
    for weight in weights {
        reached += i128::from(*weight);
        let until = i128::from(amount) * reached / total;
        // The value is between zero and the amount, so the conversion can't fail.
        parts.push(i64::try_from(until - given).unwrap_or_default());
        given = until;
    }
    parts
}

/// Returns the days from the first to the last billed or credited day of the lines; `None` without lines.
fn reach(lines: &[LedgerLine]) -> Option<Period> {
    let start = lines.iter().map(|line| line.service_period.start()).min()?;
    let end = lines.iter().map(|line| line.service_period.end()).max()?;
    Period::new(start, end)
}

/// Returns whether all lines have a zero amount.
pub(super) fn no_amount(lines: &[LedgerLine]) -> bool {
    lines.iter().all(|line| line.amount.minor() == 0)
}
