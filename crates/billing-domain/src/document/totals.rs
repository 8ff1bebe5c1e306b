//! Lines → totals (billing rules 6): what a service period costs line by line, and what a document of lines adds up to.
//!
//! [`lines_of_period`] is the one way from usage, agreed quantities and charges to amounts, [`total_up`] the one way to totals.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::DocumentKind;
use super::lines::{
    BillWith, DocumentLine, FamilySums, LedgerLine, LineCharge, LineUsage, MINIMUM_FEE_NAME, Rates, SumKey, sign,
};
use crate::charge::{Charge, Charges};
use crate::codes::UnitCode;
use crate::contract::ProductPeriod;
use crate::contract::terms::{MeteredCharge, ProductTerms, QuantityStep, SelectedCharge, SelectedLineItem};
use crate::decimal::exact_add;
use crate::money::{Currency, DayShare, Money, MoneyError, Percentage, Price};
use crate::quantity::Quantity;
use crate::rating::{Minimum, RatedUsage, rate, rate_fixed, rate_prepaid};
use crate::refs::{ContractRef, PricingRef, ProductNo, UsageProductRef};
use crate::tax::TaxTreatment;
use crate::text::OneLine;
use crate::usage::{UsageKey, UsageTotal};

/// What a document says: lines and totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentContent {
    /// The products, in contract order; one that is billed at several rates has an entry for each.
    pub products: Vec<BilledProduct>,
    /// One entry per tax rate, category and reason, lowest rate first; rates of 0 included.
    pub taxes: Vec<Tax>,
    /// Σ of the products' sub totals.
    pub sub_total: Money,
    /// Σ of the products' discounts.
    pub total_discount: Money,
    /// Σ of the taxes.
    pub total_tax: Money,
    /// `sub_total − total_discount + total_tax`.
    pub total: Money,
}

/// One product's lines at one pair of rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledProduct {
    /// The product.
    pub product_no: ProductNo,
    /// Its pricing.
    pub pricing_ref: PricingRef,
    /// The pricing's name.
    pub name: OneLine,
    /// The least a period costs.
    pub minimum_fee: Option<Price>,
    /// Lines, fixed items first where both are billed for different periods.
    pub lines: Vec<DocumentLine>,
    /// Σ of the lines.
    pub sub_total: Money,
    /// Percent.
    pub discount_rate: Percentage,
    /// What keeps the family's discounts at `discount_rate` of its lines, rounded (billing rules 5).
    pub discount: Money,
    /// `sub_total − discount`.
    pub net: Money,
    /// Percent.
    pub tax_rate: Percentage,
    /// The category of its tax, and why it isn't taxed.
    pub treatment: TaxTreatment,
}

/// What a document taxes alike: at one rate, in one category, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tax {
    /// Percent.
    pub rate: Percentage,
    /// The category, and why it isn't taxed.
    pub treatment: TaxTreatment,
    /// Σ net of the products that are taxed so.
    pub base: Money,
    /// What keeps the family's tax at the rate of its net amounts, rounded (billing rules 5).
    pub amount: Money,
}

/// The running totals that lines are made of; a service period without usage need not be in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageFacts(BTreeMap<UsageKey, UsageTotal>);

impl UsageFacts {
    /// From stored totals.
    pub fn new(totals: impl IntoIterator<Item = (UsageKey, UsageTotal)>) -> Self {
        Self(totals.into_iter().collect())
    }

    /// The total of a service period; zero when there was none.
    pub fn get(&self, key: &UsageKey) -> UsageTotal {
        self.0.get(key).copied().unwrap_or(UsageTotal::ZERO)
    }

    /// Puts a total in the place of another.
    pub fn put(&mut self, key: UsageKey, total: UsageTotal) {
        self.0.insert(key, total);
    }

    /// All totals.
    pub fn iter(&self) -> impl Iterator<Item = (&UsageKey, &UsageTotal)> {
        self.0.iter()
    }
}

/// Names the running total of a usage product in a period.
pub fn usage_key(contract_ref: ContractRef, period: &ProductPeriod<'_>, usage_product_ref: &UsageProductRef) -> UsageKey {
    UsageKey {
        contract_ref,
        product_no: period.product_no,
        period_start: period.start(),
        usage_product_ref: usage_product_ref.clone(),
    }
}

/// The running totals of a period's usage products.
pub fn usage_keys(contract_ref: ContractRef, period: &ProductPeriod<'_>) -> Vec<UsageKey> {
    let mut keys: Vec<UsageKey> =
        period.terms.metered_products().map(|product| usage_key(contract_ref, period, product)).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Lines that are billed at one pair of rates, with the terms that name them.
#[derive(Clone, Debug)]
pub struct RatedLines<'c> {
    /// The product.
    pub product_no: ProductNo,
    /// The terms whose names are shown.
    pub terms: &'c ProductTerms,
    /// What they are billed at.
    pub rates: Rates,
    /// The category of their tax, and why they aren't taxed.
    pub treatment: TaxTreatment,
    /// The lines.
    pub lines: Vec<DocumentLine>,
}

/// Adds lines up to a document of a kind; `before` are the sums of its family's documents before it (billing rules 5, 6).
///
/// # Errors
/// [`MoneyError`] when an amount can't be held.
pub fn total_up(
    currency: Currency,
    kind: DocumentKind,
    lines: Vec<RatedLines<'_>>,
    before: &FamilySums,
) -> Result<DocumentContent, MoneyError> {
    let products = lines.into_iter().map(|rated| {
        let sub_total = Money::sum(currency, rated.lines.iter().map(|line| line.amount))?;
        let key = SumKey::Discount(rated.product_no, rated.rates);
        let discount = Money::from_minor(sign(kind) * before.step(key, sign(kind) * sub_total.minor(), currency)?, currency);
        Ok(BilledProduct {
            product_no: rated.product_no,
            pricing_ref: rated.terms.pricing.pricing_ref.clone(),
            name: rated.terms.pricing.name.clone(),
            minimum_fee: rated.terms.pricing.minimum_fee,
            lines: rated.lines,
            sub_total,
            discount_rate: rated.rates.discount,
            discount,
            net: sub_total.checked_sub(discount)?,
            tax_rate: rated.rates.tax,
            treatment: rated.treatment,
        })
    });
    let products = products.collect::<Result<Vec<_>, MoneyError>>()?;
    // Only at a rate of 0 are there several, whose tax is 0: a family's sums of a rate tell the tax of each.
    let mut taxed: Vec<(Percentage, &TaxTreatment)> = products.iter().map(BilledProduct::taxed).collect();
    taxed.sort();
    taxed.dedup();
    let tax = |(rate, treatment): (Percentage, &TaxTreatment)| {
        let alike = products.iter().filter(|product| product.taxed() == (rate, treatment)).map(|product| product.net);
        let base = Money::sum(currency, alike)?;
        let step = before.step(SumKey::Tax(rate), sign(kind) * base.minor(), currency)?;
        Ok(Tax { rate, treatment: treatment.clone(), base, amount: Money::from_minor(sign(kind) * step, currency) })
    };
    let taxes = taxed.into_iter().map(tax).collect::<Result<Vec<_>, MoneyError>>()?;
    let sub_total = Money::sum(currency, products.iter().map(|product| product.sub_total))?;
    let total_discount = Money::sum(currency, products.iter().map(|product| product.discount))?;
    let total_tax = Money::sum(currency, taxes.iter().map(|tax| tax.amount))?;
    let total = sub_total.checked_sub(total_discount)?.checked_add(total_tax)?;
    Ok(DocumentContent { products, taxes, sub_total, total_discount, total_tax, total })
}

impl BilledProduct {
    /// What it is billed at.
    pub const fn rates(&self) -> Rates {
        Rates { discount: self.discount_rate, tax: self.tax_rate }
    }

    /// How it is taxed: products with the same are one entry of the taxes.
    pub const fn taxed(&self) -> (Percentage, &TaxTreatment) {
        (self.tax_rate, &self.treatment)
    }
}

impl Tax {
    /// How it taxes.
    pub const fn taxed(&self) -> (Percentage, &TaxTreatment) {
        (self.rate, &self.treatment)
    }
}

impl DocumentContent {
    /// Its lines as they are kept for the sums of billing rules 5.
    pub fn ledger_lines(&self) -> Vec<LedgerLine> {
        self.products
            .iter()
            .flat_map(|product| product.lines.iter().map(|line| LedgerLine::of(product.product_no, product.rates(), line)))
            .collect()
    }

    /// What it adds to the sums of its family, `times` over: −1 takes it out again.
    ///
    /// # Errors
    /// [`MoneyError`] on overflow.
    pub fn add_to(&self, sums: &mut FamilySums, kind: DocumentKind, times: i64) -> Result<(), MoneyError> {
        let sign = sign(kind) * times;
        for product in &self.products {
            let key = SumKey::Discount(product.product_no, product.rates());
            sums.add(key, sign * product.sub_total.minor(), sign * product.discount.minor())?;
        }
        for tax in &self.taxes {
            sums.add(SumKey::Tax(tax.rate), sign * tax.base.minor(), sign * tax.amount.minor())?;
        }
        Ok(())
    }

    /// Whether any line has an amount.
    pub fn has_amount(&self) -> bool {
        self.products.iter().flat_map(|product| &product.lines).any(|line| line.amount.minor() != 0)
    }

    /// Whether every total is the sum of what it totals (invariant M1). What discount and tax have to be follows from
    /// the family's other documents, and isn't asked here.
    pub fn adds_up(&self) -> bool {
        let currency = self.total.currency();
        let sum = |amounts: &mut dyn Iterator<Item = Money>| Money::sum(currency, amounts);
        let products_add_up = self.products.iter().all(|product| {
            sum(&mut product.lines.iter().map(|line| line.amount)) == Ok(product.sub_total)
                && product.sub_total.checked_sub(product.discount) == Ok(product.net)
        });
        let taxes_add_up = self.taxes.iter().all(|tax| {
            let alike = self.products.iter().filter(|product| product.taxed() == tax.taxed()).map(|product| product.net);
            Money::sum(currency, alike) == Ok(tax.base)
        });
        let is_taxed = |product: &BilledProduct| self.taxes.iter().any(|tax| tax.taxed() == product.taxed());
        let net = self.sub_total.checked_sub(self.total_discount);
        products_add_up
            && taxes_add_up
            && self.products.iter().all(is_taxed)
            && sum(&mut self.products.iter().map(|product| product.sub_total)) == Ok(self.sub_total)
            && sum(&mut self.products.iter().map(|product| product.discount)) == Ok(self.total_discount)
            && sum(&mut self.taxes.iter().map(|tax| tax.amount)) == Ok(self.total_tax)
            && net.and_then(|net| net.checked_add(self.total_tax)) == Ok(self.total)
    }
}

/// The lines of a service period's price, whatever document they are on: fixed items, what is prepaid, usage less that,
/// the true-up, and charges, which the minimum fee doesn't count. With `bill_with` they fall to the period's documents.
///
/// # Errors
/// [`MoneyError`] when exact decimals can't hold an amount.
pub fn lines_of_period(
    contract_ref: ContractRef,
    period: &ProductPeriod<'_>,
    usage: &UsageFacts,
    charges: &Charges,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let currency = period.terms.pricing.currency;
    let mut lines = Vec::new();
    let mut billed = Money::zero(currency);
    for item in &period.terms.line_items {
        let of_item = match &item.charge {
            SelectedCharge::Fixed { .. } => fixed_line(item, period, currency)?.into_iter().collect(),
            SelectedCharge::Usage(metered) => usage_lines(contract_ref, item, metered, period, currency, usage)?,
        };
        for line in of_item {
            billed = billed.checked_add(line.amount)?;
            lines.push(line);
        }
    }
    if let Some(fee) = period.terms.pricing.minimum_fee {
        let fee = Money::round_share(fee.as_decimal(), period.period.share(), currency)?;
        let missing = fee.checked_sub(billed)?;
        if missing.minor() > 0 {
            lines.push(DocumentLine {
                line_item_id: None,
                name: OneLine::constant(MINIMUM_FEE_NAME),
                period_start: period.start(),
                service_period: period.days(),
                bill_with: BillWith::Usage,
                usage: None,
                quantities: Vec::new(),
                unit_code: Some(UnitCode::ONE),
                charge: None,
                amount: missing,
            });
        }
    }
    for charge in charges.in_period(period) {
        lines.push(charge_line(charge, period)?);
    }
    Ok(lines)
}

/// What a step of usage adds to a period's price, before minimum amounts (billing rules 3): the lines of the
/// line items that a usage product prices.
///
/// # Errors
/// [`MoneyError`] when exact decimals can't hold an amount.
pub fn lines_of_step(
    period: &ProductPeriod<'_>,
    usage_product_ref: &UsageProductRef,
    before: &UsageTotal,
    after: &UsageTotal,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let currency = period.terms.pricing.currency;
    let step = |(item, metered): (&SelectedLineItem, &MeteredCharge)| {
        let share = period.period.share();
        let before = rate(metered, before, Minimum::Waived, share, currency)?;
        let rated = rate(metered, after, Minimum::Waived, share, currency)?;
        let quantity = exact_add(rated.quantity, -before.quantity)?;
        let amount = rated.amount.checked_sub(before.amount)?;
        let rated = RatedUsage { quantity, amount, tiers: Vec::new(), ..rated };
        Ok(usage_line(item, metered, period, BillWith::Usage, rated))
    };
    period.terms.metering(usage_product_ref).map(step).collect()
}

fn usage_line(
    item: &SelectedLineItem,
    metered: &MeteredCharge,
    period: &ProductPeriod<'_>,
    bill_with: BillWith,
    rated: RatedUsage,
) -> DocumentLine {
    DocumentLine {
        line_item_id: Some(item.id.clone()),
        name: item.name.clone(),
        period_start: period.start(),
        service_period: period.days(),
        bill_with,
        usage: Some(LineUsage {
            usage_product_ref: metered.charge.usage_product_ref.clone(),
            quantity: rated.quantity,
            unit: metered.unit.clone(),
            unit_price: rated.unit_price,
            tiers: rated.tiers,
        }),
        quantities: Vec::new(),
        unit_code: Some(metered.unit_code),
        charge: None,
        amount: rated.amount,
    }
}

/// What is prepaid, where anything is, and A(max(Q, p)) less that.
fn usage_lines(
    contract_ref: ContractRef,
    item: &SelectedLineItem,
    metered: &MeteredCharge,
    period: &ProductPeriod<'_>,
    currency: Currency,
    usage: &UsageFacts,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let share = period.period.share();
    let total = usage.get(&usage_key(contract_ref, period, &metered.charge.usage_product_ref));
    let mut rated = rate(metered, &total, Minimum::Applies, share, currency)?;
    let mut lines = Vec::new();
    if let Some(in_advance) = rate_prepaid(metered, share, currency)? {
        rated.amount = rated.amount.checked_sub(in_advance.amount)?;
        lines.push(usage_line(item, metered, period, BillWith::Fixed, in_advance));
    }
    lines.push(usage_line(item, metered, period, BillWith::Usage, rated));
    Ok(lines)
}

fn fixed_line(
    item: &SelectedLineItem,
    period: &ProductPeriod<'_>,
    currency: Currency,
) -> Result<Option<DocumentLine>, MoneyError> {
    let SelectedCharge::Fixed { price, quantities, .. } = &item.charge else { return Ok(None) };
    let amount = if item.is_once() {
        if !period.is_first_with(&item.id) {
            return Ok(None);
        }
        rate_fixed(price, &[(quantities.on(period.start()), DayShare::WHOLE.days)], DayShare::WHOLE.of, currency)?
    } else {
        rate_fixed(price, &quantities.within(period.days()), period.period.share().of, currency)?
    };
    Ok(Some(DocumentLine {
        line_item_id: Some(item.id.clone()),
        name: item.name.clone(),
        period_start: period.start(),
        service_period: period.days(),
        bill_with: BillWith::Fixed,
        usage: None,
        quantities: shown_steps(quantities.on(period.start()), period, quantities.as_slice(), item.is_once()),
        unit_code: Some(UnitCode::ONE),
        charge: None,
        amount,
    }))
}

fn charge_line(charge: &Charge, period: &ProductPeriod<'_>) -> Result<DocumentLine, MoneyError> {
    Ok(DocumentLine {
        line_item_id: Some(charge.line_item_id()),
        name: charge.name.clone(),
        period_start: period.start(),
        service_period: period.days(),
        bill_with: charge.bill_with,
        usage: None,
        quantities: Vec::new(),
        unit_code: Some(UnitCode::ONE),
        charge: Some(LineCharge {
            date: charge.date,
            quantity: charge.quantity,
            unit: charge.unit.clone(),
            unit_price: charge.unit_price,
        }),
        amount: charge.amount()?,
    })
}

/// The quantities of a period, each from its day; none where it is 1 throughout.
fn shown_steps(first: Quantity, period: &ProductPeriod<'_>, steps: &[QuantityStep], first_only: bool) -> Vec<QuantityStep> {
    let start: NaiveDate = period.start();
    let mut shown = vec![QuantityStep { from: start, quantity: first }];
    if !first_only {
        shown.extend(steps.iter().filter(|step| step.from > start && step.from < period.days().end()));
    }
    if shown.iter().all(|step| step.quantity == Quantity::ONE) { Vec::new() } else { shown }
}
