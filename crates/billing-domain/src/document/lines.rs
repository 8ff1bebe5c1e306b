//! Document lines, and the sums of billed amounts and of families (billing rules 5).

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::DocumentKind;
use super::calculation::{self, LineCalculation, Unexplained};
use super::numbering::DocumentNumber;
use crate::calendar::Period;
use crate::codes::UnitCode;
use crate::contract::ProductPeriod;
use crate::contract::terms::QuantityStep;
use crate::decimal::exact_add;
use crate::money::{AmountOutOfRange, Currency, Money, MoneyError, Percentage, Price, SignedPrice};
use crate::quantity::Quantity;
use crate::rating::RatedTier;
use crate::refs::{CreditGrantRef, DocumentRef, LineItemId, ProductNo, UsageProductRef};
use crate::tax::{ConvertedTax, TaxTreatment};
use crate::text::OneLine;
use crate::usage::EventChanges;

/// The name of the line for the minimum fee's true-up.
pub const MINIMUM_FEE_NAME: &str = "Minimum fee";

/// The items of a period that a line is billed with. It decides which document carries the line (billing rules 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BillWith {
    /// With the fixed items, on the period's invoice. Prepaid usage is included.
    Fixed,
    /// With the usage, including the true-up.
    Usage,
}

/// The discount and tax that an amount is billed at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiscountAndTax {
    /// The discount in percent.
    pub discount: Percentage,
    /// The tax treatment.
    pub tax: TaxTreatment,
}

impl DiscountAndTax {
    /// Returns the rates in the form that the ledger compares ([`TaxTreatment::normalized`]).
    #[must_use]
    pub fn normalized(&self) -> Self {
        Self { discount: self.discount, tax: self.tax.normalized() }
    }
}

/// The key of an amount: a line item of a product's service period, or its true-up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineKey {
    /// The product.
    pub product_no: ProductNo,
    /// The first day of the service period, which identifies the period.
    pub period_start: NaiveDate,
    /// The line item; `None` for the true-up to the minimum fee.
    pub line_item_id: Option<LineItemId>,
    /// The items that the amount is billed with.
    pub bill_with: BillWith,
}

/// A line of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLine {
    /// The line item; `None` for the true-up to the minimum fee.
    pub line_item_id: Option<LineItemId>,
    /// The displayed name.
    pub name: OneLine,
    /// The first day of the service period whose price includes the line.
    pub period_start: NaiveDate,
    /// The days that the line bills or credits, all within that period.
    pub service_period: Period,
    /// The items that the line is billed with.
    pub bill_with: BillWith,
    /// The calculation of a usage line.
    pub usage: Option<LineUsage>,
    /// The agreed quantities of a fixed line if any differs from 1. Each applies from its day, the first from the period's
    /// start.
    pub quantities: Vec<QuantityStep>,
    /// The unit code for e-invoices; `None` for documents issued before unit codes existed.
    pub unit_code: Option<UnitCode>,
    /// The manually billed item, for a charge's line that isn't a difference.
    pub charge: Option<LineCharge>,
    /// Whether the tax follows a default of the customer or the entity instead of the contract alone.
    pub has_default_tax: bool,
    /// The amount, rounded once.
    pub amount: Money,
    /// The factors that give the amount; `None` for documents of formats 1 and 2, and for a line that isn't shown.
    pub calculation: Option<Box<LineCalculation>>,
}

/// The calculation of a usage line's amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUsage {
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
    /// The rated quantity `Q`.
    pub quantity: Decimal,
    /// The name of one unit.
    pub unit: Option<OneLine>,
    /// The price of one unit, if the pricing model has a single price.
    pub unit_price: Option<Price>,
    /// The tiers that the quantity reaches.
    pub tiers: Vec<RatedTier>,
}

/// The item of a charge's line (billing rules 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCharge {
    /// The charge's date.
    pub date: NaiveDate,
    /// The quantity.
    pub quantity: Quantity,
    /// The name of one unit.
    pub unit: Option<OneLine>,
    /// The price of one unit.
    pub unit_price: SignedPrice,
}

impl DocumentLine {
    /// Checks that the line's calculation gives its amount on a document of a kind.
    ///
    /// # Errors
    /// Returns [`Unexplained`] for a line that isn't explained, which is a defect.
    pub fn check(&self, kind: DocumentKind) -> Result<(), Unexplained> {
        let calculation = self.calculation.as_deref().ok_or(Unexplained::Missing)?;
        calculation::check(calculation, self.amount, kind)
    }

    /// Returns the key of the line's amount.
    pub fn key(&self, product_no: ProductNo) -> LineKey {
        LineKey {
            product_no,
            period_start: self.period_start,
            line_item_id: self.line_item_id.clone(),
            bill_with: self.bill_with,
        }
    }
}

/// A line stored for the sums of billing rules 5. Issued documents and open adjustments have ledger lines. The amount has the
/// sign of the document's kind: the lines of a credit are positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// The key of the amount.
    pub key: LineKey,
    /// The days that the line bills or credits.
    pub service_period: Period,
    /// The discount and tax.
    pub rates: DiscountAndTax,
    /// Whether the tax follows a default of the customer or the entity instead of the contract alone.
    pub has_default_tax: bool,
    /// The usage of a usage line.
    pub usage: Option<LedgerUsage>,
    /// The amount.
    pub amount: Money,
}

/// The usage of a ledger line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerUsage {
    /// The usage product.
    pub usage_product_ref: UsageProductRef,
    /// The quantity; for an adjustment, the change of the quantity.
    pub quantity: Decimal,
    /// For an open adjustment, the changes of events that the line bills or credits.
    pub changes: EventChanges,
}

/// A ledger line with its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLedgerLine {
    /// The document.
    pub document_ref: DocumentRef,
    /// The document's family.
    pub family: DocumentRef,
    /// The document's number. Its kind determines the sign of the amounts.
    pub number: DocumentNumber,
    /// The document's tax in the seller's tax currency, if it was converted.
    pub converted_tax: Option<ConvertedTax>,
    /// The line.
    pub line: LedgerLine,
}

impl LedgerLine {
    /// Converts a document's line to a ledger line.
    pub fn of(product_no: ProductNo, rates: DiscountAndTax, line: &DocumentLine) -> Self {
        let usage = line.usage.as_ref();
        Self {
            key: line.key(product_no),
            service_period: line.service_period,
            rates,
            has_default_tax: line.has_default_tax,
            usage: usage.map(|usage| LedgerUsage {
                usage_product_ref: usage.usage_product_ref.clone(),
                quantity: usage.quantity,
                changes: EventChanges::NONE,
            }),
            amount: line.amount,
        }
    }

    /// Returns the key of the line's amount among the amounts that a family bills.
    pub fn billed_by(&self, family: DocumentRef) -> BilledKey {
        BilledKey { line: self.key.clone(), rates: self.rates.clone(), has_default_tax: self.has_default_tax, family }
    }

    /// Returns the line as a document shows it. The name comes from the terms in force in its period, or from its charge.
    pub fn shown(&self, period: Option<&ProductPeriod<'_>>, charged: Option<&OneLine>) -> DocumentLine {
        let id = self.key.line_item_id.as_ref();
        let item = period.and_then(|period| period.terms.line_items.iter().find(|item| Some(&item.id) == id));
        let name = match (item, charged, id) {
            (Some(item), _, _) => item.name.clone(),
            (None, Some(charged), _) => charged.clone(),
            (None, None, Some(id)) => OneLine::of_id(id),
            (None, None, None) => OneLine::constant(MINIMUM_FEE_NAME),
        };
        let metered = item.and_then(|item| item.metered());
        let of_usage = self.usage.as_ref().map(|usage| (&usage.usage_product_ref, usage.quantity));
        // A change of terms corrects amounts of usage without a change of the quantity.
        let of_usage = of_usage.or_else(|| metered.map(|metered| (&metered.charge.usage_product_ref, Decimal::ZERO)));
        let usage = of_usage.map(|(usage_product_ref, quantity)| LineUsage {
            usage_product_ref: usage_product_ref.clone(),
            quantity,
            unit: metered.and_then(|metered| metered.unit.clone()),
            unit_price: None,
            tiers: Vec::new(),
        });
        DocumentLine {
            line_item_id: self.key.line_item_id.clone(),
            name,
            period_start: self.key.period_start,
            service_period: self.service_period,
            bill_with: self.key.bill_with,
            usage,
            quantities: Vec::new(),
            unit_code: Some(metered.map_or(UnitCode::ONE, |metered| metered.unit_code)),
            charge: None,
            has_default_tax: self.has_default_tax,
            amount: self.amount,
            calculation: None,
        }
    }
}

/// Returns the kind of an adjustment for a difference: a credit below zero, otherwise a debit.
pub const fn kind_of(difference: Money) -> DocumentKind {
    if difference.minor() < 0 { DocumentKind::Credit } else { DocumentKind::Debit }
}

/// Returns the sign of the amounts of a kind.
pub const fn sign(kind: DocumentKind) -> i64 {
    match kind {
        DocumentKind::Invoice | DocumentKind::Debit => 1,
        DocumentKind::Credit => -1,
    }
}

/// Returns an amount of a document of a kind as the family counts it: the amounts of a credit count below zero. The same function
/// converts a counted amount to the amount on the document.
///
/// # Errors
/// Returns [`MoneyError`] when the amount is out of range.
pub fn signed_amount(kind: DocumentKind, amount: Money) -> Result<Money, MoneyError> {
    if sign(kind) < 0 { Money::zero(amount.currency()).checked_sub(amount) } else { Ok(amount) }
}

/// Merges lines into a list. Lines with the same key, rates and days are added up.
///
/// # Errors
/// Returns [`MoneyError`] when an amount is out of range.
pub fn merge(mut into: Vec<LedgerLine>, lines: Vec<LedgerLine>) -> Result<Vec<LedgerLine>, MoneyError> {
    for line in lines {
        let same = |present: &&mut LedgerLine| {
            present.key == line.key
                && present.rates == line.rates
                && present.has_default_tax == line.has_default_tax
                && present.service_period == line.service_period
        };
        match into.iter_mut().find(same) {
            None => into.push(line),
            Some(present) => {
                present.amount = present.amount.checked_add(line.amount)?;
                present.usage = match (present.usage.take(), line.usage) {
                    (Some(a), Some(b)) => {
                        let (quantity, changes) = (exact_add(a.quantity, b.quantity)?, a.changes.plus(b.changes));
                        Some(LedgerUsage { quantity, changes, ..a })
                    }
                    (a, b) => a.or(b),
                };
            }
        }
    }
    Ok(into)
}

/// Returns the lines with the opposite sign, for a document of the opposite kind.
///
/// # Errors
/// Returns [`MoneyError`] when an amount is out of range.
pub fn negated(lines: Vec<LedgerLine>) -> Result<Vec<LedgerLine>, MoneyError> {
    let negate = |line: LedgerLine| {
        let amount = Money::zero(line.amount.currency()).checked_sub(line.amount)?;
        let opposite = |usage: LedgerUsage| LedgerUsage { quantity: -usage.quantity, changes: usage.changes.negated(), ..usage };
        let usage = line.usage.map(opposite);
        Ok(LedgerLine { amount, usage, ..line })
    };
    lines.into_iter().map(negate).collect()
}

/// The key of a billed amount: line, rates and document family.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BilledKey {
    /// The line's key.
    pub line: LineKey,
    /// The discount and tax.
    pub rates: DiscountAndTax,
    /// Whether the tax follows a default of the customer or the entity.
    pub has_default_tax: bool,
    /// The family: the root invoice of its documents.
    pub family: DocumentRef,
}

/// The amounts billed by documents in force: invoices and debits add, credits subtract (billing rules 5). Includes issued
/// documents and open adjustments. A period's regular draft bills the remainder.
///
/// Whether something is issued is counted beside the sums, because documents in force can sum to zero (billing rules 7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BilledAmounts(BTreeMap<(ProductNo, NaiveDate), BTreeMap<BilledKey, BilledAmount>>);

/// The sum of a key's lines, and the number of these lines that are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct BilledAmount {
    minor: i64,
    issued: u32,
}

/// Whether a line counts as issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineStatus {
    /// The line is on an issued document, or on the document of an event that waits to be issued.
    Issued,
    /// The line is on an open adjustment, which can still change.
    Open,
}

impl BilledAmounts {
    /// Returns an empty set of amounts.
    pub const fn nothing() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a line of a document of a kind and family.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn add(
        &mut self,
        family: DocumentRef,
        kind: DocumentKind,
        line: &LedgerLine,
        status: LineStatus,
    ) -> Result<(), AmountOutOfRange> {
        self.put(family, kind, line, (status, 1))
    }

    /// Removes a line that was added with the same status.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn remove(
        &mut self,
        family: DocumentRef,
        kind: DocumentKind,
        line: &LedgerLine,
        status: LineStatus,
    ) -> Result<(), AmountOutOfRange> {
        self.put(family, kind, line, (status, -1))
    }

    fn put(
        &mut self,
        family: DocumentRef,
        kind: DocumentKind,
        line: &LedgerLine,
        (status, times): (LineStatus, i32),
    ) -> Result<(), AmountOutOfRange> {
        let minor = line.amount.minor().checked_mul(sign(kind) * i64::from(times)).ok_or(AmountOutOfRange)?;
        let issued = if status == LineStatus::Issued { times } else { 0 };
        if minor == 0 && issued == 0 {
            return Ok(());
        }
        let period = (line.key.product_no, line.key.period_start);
        let key = line.billed_by(family);
        let of_period = self.0.entry(period).or_default();
        let before = of_period.get(&key).copied().unwrap_or_default();
        let sum = BilledAmount {
            minor: before.minor.checked_add(minor).ok_or(AmountOutOfRange)?,
            issued: before.issued.checked_add_signed(issued).ok_or(AmountOutOfRange)?,
        };
        if sum == BilledAmount::default() {
            of_period.remove(&key);
        } else {
            of_period.insert(key, sum);
        }
        if of_period.is_empty() {
            self.0.remove(&period);
        }
        Ok(())
    }

    /// Returns the amounts of a service period that aren't zero, with their keys.
    pub fn of_period(&self, product_no: ProductNo, start: NaiveDate) -> impl Iterator<Item = (&BilledKey, i64)> {
        self.0.get(&(product_no, start)).into_iter().flatten().filter_map(amount_not_zero)
    }

    /// Returns all amounts that aren't zero, with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&BilledKey, i64)> {
        self.0.values().flatten().filter_map(amount_not_zero)
    }

    /// Returns the keys of a service period that issued documents bill, whatever the sum of their amounts.
    pub fn issued_in(&self, product_no: ProductNo, start: NaiveDate) -> impl Iterator<Item = &BilledKey> {
        self.0.get(&(product_no, start)).into_iter().flatten().filter(|(_, sum)| sum.issued > 0).map(|(key, _)| key)
    }

    /// Returns the service periods of a product that documents bill, whatever the sum of their amounts, in order.
    pub fn periods_of(&self, product_no: ProductNo) -> impl Iterator<Item = NaiveDate> {
        self.0.range((product_no, NaiveDate::MIN)..=(product_no, NaiveDate::MAX)).map(|((_, start), _)| *start)
    }

    /// Returns the service periods that documents bill, whatever the sum of their amounts.
    pub fn periods(&self) -> impl Iterator<Item = (ProductNo, NaiveDate)> {
        self.0.keys().copied()
    }
}

fn amount_not_zero<'k>((key, sum): (&'k BilledKey, &BilledAmount)) -> Option<(&'k BilledKey, i64)> {
    (sum.minor != 0).then_some((key, sum.minor))
}

/// A base and its discount or tax, in signed minor units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaseAndAmount {
    /// The sum of the amounts that the rate applies to.
    pub base: i64,
    /// The sum of discounts or taxes.
    pub amount: i64,
}

/// The key of a family's sum.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SumKey {
    /// The discounts of a product's lines at one combination of discount and tax.
    Discount(ProductNo, DiscountAndTax),
    /// The tax of one treatment, on line amounts after discount and prepaid credit.
    Tax(TaxTreatment),
    /// The credit of a grant at one tax treatment. It has no base.
    Prepaid(TaxTreatment, CreditGrantRef),
}

impl SumKey {
    /// Returns the percentage that applies to the base; `None` for credit, which follows no rate.
    pub const fn rate(&self) -> Option<Percentage> {
        match self {
            Self::Discount(_, rates) => Some(rates.discount),
            Self::Tax(treatment) => Some(treatment.rate),
            Self::Prepaid(..) => None,
        }
    }
}

/// The discounts and taxes that a family's issued documents bill, with their bases, and the credit that they have taken (billing
/// rules 5, 12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilySums(BTreeMap<SumKey, BaseAndAmount>);

impl FamilySums {
    /// Creates the sums from stored values.
    pub fn new(sums: impl IntoIterator<Item = (SumKey, BaseAndAmount)>) -> Self {
        Self(sums.into_iter().collect())
    }

    /// Returns one sum; zero if it doesn't exist.
    pub fn get(&self, key: &SumKey) -> BaseAndAmount {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// Returns all sums.
    pub fn iter(&self) -> impl Iterator<Item = (&SumKey, BaseAndAmount)> + '_ {
        self.0.iter().map(|(key, sum)| (key, *sum))
    }

    /// Returns whether the family has no sums.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the credit that the family has taken at each tax treatment from each grant, in signed minor units.
    pub fn prepaid(&self) -> impl Iterator<Item = (&TaxTreatment, CreditGrantRef, i64)> {
        self.0.iter().filter_map(|(key, sum)| match key {
            SumKey::Prepaid(treatment, grant_ref) => Some((treatment, *grant_ref, sum.amount)),
            SumKey::Discount(..) | SumKey::Tax(_) => None,
        })
    }

    /// Returns the net amount of a tax treatment before credit, and the credit that the family has taken at it, in signed minor
    /// units. A base of tax is the net amount less the credit.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn net_and_prepaid(&self, treatment: &TaxTreatment) -> Result<(i64, i64), AmountOutOfRange> {
        let alike = self.prepaid().filter(|(other, ..)| *other == treatment);
        let prepaid = alike.map(|(.., minor)| minor).try_fold(0i64, i64::checked_add).ok_or(AmountOutOfRange)?;
        let base = self.get(&SumKey::Tax(treatment.clone())).base;
        Ok((base.checked_add(prepaid).ok_or(AmountOutOfRange)?, prepaid))
    }

    /// Returns the net amount of the family's documents before credit, at all tax treatments.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn net(&self, currency: Currency) -> Result<Money, AmountOutOfRange> {
        let mut net = 0i64;
        for (key, sum) in &self.0 {
            let added = match key {
                SumKey::Tax(_) => sum.base,
                SumKey::Prepaid(..) => sum.amount,
                SumKey::Discount(..) => 0,
            };
            net = net.checked_add(added).ok_or(AmountOutOfRange)?;
        }
        Ok(Money::from_minor(net, currency))
    }

    /// Returns whether the credit at each tax treatment is at least zero and at most the net amount, which counts as at least zero
    /// (billing rules 12). No grant gets back more than the family has taken of it.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn is_credit_lawful(&self) -> Result<bool, AmountOutOfRange> {
        for (treatment, _, of_grant) in self.prepaid() {
            let (net, prepaid) = self.net_and_prepaid(treatment)?;
            if of_grant < 0 || prepaid > net.max(0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds to one sum.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] on overflow.
    pub fn add(&mut self, key: SumKey, base: i64, amount: i64) -> Result<(), AmountOutOfRange> {
        let sum = self.0.entry(key).or_default();
        sum.base = sum.base.checked_add(base).ok_or(AmountOutOfRange)?;
        sum.amount = sum.amount.checked_add(amount).ok_or(AmountOutOfRange)?;
        Ok(())
    }

    /// Returns the discount or tax of a document with a base, in signed minor units. It is the difference that maintains `Σ
    /// amount = round(rate × Σ base)` (billing rules 5).
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] when an amount is out of range.
    pub fn step(&self, key: &SumKey, base: i64, currency: Currency) -> Result<i64, AmountOutOfRange> {
        let rate = key.rate().unwrap_or(Percentage::ZERO);
        let before = self.get(key);
        let whole = Money::from_minor(before.base.checked_add(base).ok_or(AmountOutOfRange)?, currency);
        whole.percent(rate)?.minor().checked_sub(before.amount).ok_or(AmountOutOfRange)
    }
}

/// Returns the quantities of a period, each with its first day; empty if the quantity is always 1.
pub(super) fn shown_steps(
    first: Quantity,
    period: &ProductPeriod<'_>,
    steps: &[QuantityStep],
    first_only: bool,
) -> Vec<QuantityStep> {
    let start: NaiveDate = period.start();
    let mut shown = vec![QuantityStep { from: start, quantity: first }];
    if !first_only {
        shown.extend(steps.iter().filter(|step| step.from > start && step.from < period.days().end()));
    }
    if shown.iter().all(|step| step.quantity == Quantity::ONE) { Vec::new() } else { shown }
}
