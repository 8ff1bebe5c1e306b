//! Lines: what documents say line by line, and the sums that lines of one thing are added up to (billing rules 5).

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::DocumentKind;
use crate::calendar::Period;
use crate::codes::UnitCode;
use crate::contract::ProductPeriod;
use crate::contract::terms::QuantityStep;
use crate::decimal::exact_add;
use crate::money::{AmountOutOfRange, Currency, Money, MoneyError, Percentage, Price, SignedPrice};
use crate::quantity::Quantity;
use crate::rating::RatedTier;
use crate::refs::{DocumentRef, LineItemId, ProductNo, UsageProductRef};
use crate::tax::TaxTreatment;
use crate::text::OneLine;

/// The name of the true-up's line.
pub const MINIMUM_FEE_NAME: &str = "Minimum fee";

/// With which of a period's items a line is billed: it decides on which document (billing rules 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BillWith {
    /// With its fixed items: on the period's invoice. What is prepaid of usage, too.
    Fixed,
    /// With its usage, the true-up included.
    Usage,
}

/// Discount and tax that an amount is billed at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DiscountAndTax {
    /// Discount in percent.
    pub discount: Percentage,
    /// Tax.
    pub tax: TaxTreatment,
}

impl DiscountAndTax {
    /// As the ledger compares them ([`TaxTreatment::normalized`]).
    #[must_use]
    pub fn normalized(&self) -> Self {
        Self { discount: self.discount, tax: self.tax.normalized() }
    }
}

/// Names what an amount is for: a line item of a product's service period, or its true-up (no line item).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineKey {
    /// The product.
    pub product_no: ProductNo,
    /// The service period's first day, which names it.
    pub period_start: NaiveDate,
    /// The line item; `None` for the true-up to the minimum fee.
    pub line_item_id: Option<LineItemId>,
    /// With what it is billed.
    pub bill_with: BillWith,
}

/// One line of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLine {
    /// The line item; `None` for the true-up to the minimum fee.
    pub line_item_id: Option<LineItemId>,
    /// Shown.
    pub name: OneLine,
    /// The first day of the service period whose price it is part of.
    pub period_start: NaiveDate,
    /// The days it bills or gives back, all of that period.
    pub service_period: Period,
    /// With what it is billed.
    pub bill_with: BillWith,
    /// How the amount came about, of a usage line.
    pub usage: Option<LineUsage>,
    /// The agreed quantities, of a fixed line that has other ones than 1: each from its day, the first from the period's.
    pub quantities: Vec<QuantityStep>,
    /// What one of it is, for machines; `None` of documents issued before it was known.
    pub unit_code: Option<UnitCode>,
    /// What was charged by hand, of a charge's line that isn't a difference.
    pub charge: Option<LineCharge>,
    /// Whether its tax follows a default of the customer or the entity rather than the contract alone.
    pub has_default_tax: bool,
    /// Rounded once.
    pub amount: Money,
}

/// How a usage line's amount came about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUsage {
    /// What was used.
    pub usage_product_ref: UsageProductRef,
    /// Q.
    pub quantity: Decimal,
    /// What one is called.
    pub unit: Option<OneLine>,
    /// The price of one, where the model has a single one.
    pub unit_price: Option<Price>,
    /// The tiers reached.
    pub tiers: Vec<RatedTier>,
}

/// What a charge's line is for (billing rules 5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCharge {
    /// Its date.
    pub date: NaiveDate,
    /// How many.
    pub quantity: Quantity,
    /// What one is called.
    pub unit: Option<OneLine>,
    /// The price of one.
    pub unit_price: SignedPrice,
}

impl DocumentLine {
    /// What its amount is for.
    pub fn key(&self, product_no: ProductNo) -> LineKey {
        LineKey {
            product_no,
            period_start: self.period_start,
            line_item_id: self.line_item_id.clone(),
            bill_with: self.bill_with,
        }
    }
}

/// A line as it is kept for the sums of billing rules 5: of issued documents and of open adjustments.
/// Its amount has the sign of its document's kind: what a credit takes back is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// What its amount is for.
    pub key: LineKey,
    /// The days it bills or gives back.
    pub service_period: Period,
    /// What it is billed at.
    pub rates: DiscountAndTax,
    /// Whether its tax follows a default of the customer or the entity rather than the contract alone.
    pub has_default_tax: bool,
    /// What was used, of a usage line.
    pub usage: Option<LedgerUsage>,
    /// The amount.
    pub amount: Money,
}

/// The usage of a ledger line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerUsage {
    /// What was used.
    pub usage_product_ref: UsageProductRef,
    /// How much; of an adjustment, by how much it changed.
    pub quantity: Decimal,
}

/// A ledger line and the document it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLedgerLine {
    /// The document.
    pub document_ref: DocumentRef,
    /// Its family.
    pub family: DocumentRef,
    /// What it does: the sign its amounts count with.
    pub kind: DocumentKind,
    /// The line.
    pub line: LedgerLine,
}

impl LedgerLine {
    /// From a document's line.
    pub fn of(product_no: ProductNo, rates: DiscountAndTax, line: &DocumentLine) -> Self {
        let usage = line.usage.as_ref();
        Self {
            key: line.key(product_no),
            service_period: line.service_period,
            rates,
            has_default_tax: line.has_default_tax,
            usage: usage
                .map(|usage| LedgerUsage { usage_product_ref: usage.usage_product_ref.clone(), quantity: usage.quantity }),
            amount: line.amount,
        }
    }

    /// What names its amount among everything that a family bills.
    pub fn billed_by(&self, family: DocumentRef) -> BilledKey {
        BilledKey { line: self.key.clone(), rates: self.rates.clone(), has_default_tax: self.has_default_tax, family }
    }

    /// As a document shows it, with the names of the terms in force in its period, or that of the charge it is of.
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
        let usage = self.usage.as_ref().map(|usage| LineUsage {
            usage_product_ref: usage.usage_product_ref.clone(),
            quantity: usage.quantity,
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
        }
    }

    /// Whether it says nothing: no amount, and no quantity that changed.
    pub fn is_nothing(&self) -> bool {
        self.amount.minor() == 0 && self.usage.as_ref().is_none_or(|usage| usage.quantity.is_zero())
    }
}

/// The kind of an adjustment for a difference: a debit from zero up, a credit below.
pub const fn kind_of(difference: Money) -> DocumentKind {
    if difference.minor() < 0 { DocumentKind::Credit } else { DocumentKind::Debit }
}

/// The sign that an amount of a kind counts with.
pub const fn sign(kind: DocumentKind) -> i64 {
    match kind {
        DocumentKind::Invoice | DocumentKind::Debit => 1,
        DocumentKind::Credit => -1,
    }
}

/// Adds lines to lines: one per thing, rates and days.
///
/// # Errors
/// [`MoneyError`] when an amount can't be held.
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
                    (Some(a), Some(b)) => Some(LedgerUsage { quantity: exact_add(a.quantity, b.quantity)?, ..a }),
                    (a, b) => a.or(b),
                };
            }
        }
    }
    Ok(into)
}

/// The same lines for the other kind.
///
/// # Errors
/// [`MoneyError`] when an amount can't be held.
pub fn negated(lines: Vec<LedgerLine>) -> Result<Vec<LedgerLine>, MoneyError> {
    let negate = |line: LedgerLine| {
        let amount = Money::zero(line.amount.currency()).checked_sub(line.amount)?;
        let usage = line.usage.map(|usage| LedgerUsage { quantity: -usage.quantity, ..usage });
        Ok(LedgerLine { amount, usage, ..line })
    };
    lines.into_iter().map(negate).collect()
}

/// Names an amount that is billed: for what, at which rates, by which family of documents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BilledKey {
    /// For what.
    pub line: LineKey,
    /// At which rates.
    pub rates: DiscountAndTax,
    /// Whether their tax follows a default of the customer or the entity.
    pub has_default_tax: bool,
    /// By which family: the invoice without a parent that its documents lead to.
    pub family: DocumentRef,
}

/// What documents in force bill: invoices and debits count, credits count against (billing rules 5). Issued documents and
/// open adjustments are in it; a period's own draft bills whatever is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BilledAmounts(BTreeMap<(ProductNo, NaiveDate), BTreeMap<BilledKey, i64>>);

impl BilledAmounts {
    /// Nothing.
    pub const fn nothing() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a line of a document of a kind and family, `times` over: −1 takes it out again.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] on overflow.
    pub fn add(
        &mut self,
        family: DocumentRef,
        kind: DocumentKind,
        line: &LedgerLine,
        times: i64,
    ) -> Result<(), AmountOutOfRange> {
        let minor = line.amount.minor().checked_mul(sign(kind) * times).ok_or(AmountOutOfRange)?;
        if minor == 0 {
            return Ok(());
        }
        let period = (line.key.product_no, line.key.period_start);
        let key = line.billed_by(family);
        let of_period = self.0.entry(period).or_default();
        let sum = of_period.get(&key).copied().unwrap_or(0).checked_add(minor).ok_or(AmountOutOfRange)?;
        if sum == 0 {
            of_period.remove(&key);
        } else {
            of_period.insert(key, sum);
        }
        if of_period.is_empty() {
            self.0.remove(&period);
        }
        Ok(())
    }

    /// Everything that is billed of a service period, with what it is billed with.
    pub fn of_period(&self, product_no: ProductNo, start: NaiveDate) -> impl Iterator<Item = (&BilledKey, i64)> {
        self.0.get(&(product_no, start)).into_iter().flatten().map(|(key, minor)| (key, *minor))
    }

    /// Everything that is billed.
    pub fn iter(&self) -> impl Iterator<Item = (&BilledKey, i64)> {
        self.0.values().flatten().map(|(key, minor)| (key, *minor))
    }

    /// The service periods of which anything is billed.
    pub fn periods(&self) -> impl Iterator<Item = (ProductNo, NaiveDate)> {
        self.0.keys().copied()
    }
}

/// A base and what was taken of it, in minor units, with their signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaseAndAmount {
    /// Σ of what the rate applies to.
    pub base: i64,
    /// Σ of discount or tax.
    pub amount: i64,
}

/// What a sum of a family is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SumKey {
    /// The discounts of a product at one discount and tax, over its lines.
    Discount(ProductNo, DiscountAndTax),
    /// The tax of one treatment, over what is left of lines after discount.
    Tax(TaxTreatment),
}

impl SumKey {
    /// The percentage that the sum takes of its base.
    pub const fn rate(&self) -> Percentage {
        match self {
            Self::Discount(_, rates) => rates.discount,
            Self::Tax(treatment) => treatment.rate,
        }
    }
}

/// Discount and tax that the issued documents of a family bill, with their bases (billing rules 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FamilySums(BTreeMap<SumKey, BaseAndAmount>);

impl FamilySums {
    /// From stored sums.
    pub fn new(sums: impl IntoIterator<Item = (SumKey, BaseAndAmount)>) -> Self {
        Self(sums.into_iter().collect())
    }

    /// One of them; nothing where there is none.
    pub fn get(&self, key: &SumKey) -> BaseAndAmount {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&SumKey, BaseAndAmount)> + '_ {
        self.0.iter().map(|(key, sum)| (key, *sum))
    }

    /// Whether no issued document has any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds to one of them.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] on overflow.
    pub fn add(&mut self, key: SumKey, base: i64, amount: i64) -> Result<(), AmountOutOfRange> {
        let sum = self.0.entry(key).or_default();
        sum.base = sum.base.checked_add(base).ok_or(AmountOutOfRange)?;
        sum.amount = sum.amount.checked_add(amount).ok_or(AmountOutOfRange)?;
        Ok(())
    }

    /// The discount or tax of a document with a base, in minor units with its sign: the difference that keeps
    /// `Σ amount = round(rate × Σ base)` (billing rules 5).
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when an amount can't be held.
    pub fn step(&self, key: &SumKey, base: i64, currency: Currency) -> Result<i64, AmountOutOfRange> {
        let rate = key.rate();
        let before = self.get(key);
        let whole = Money::from_minor(before.base.checked_add(base).ok_or(AmountOutOfRange)?, currency);
        whole.percent(rate)?.minor().checked_sub(before.amount).ok_or(AmountOutOfRange)
    }
}
