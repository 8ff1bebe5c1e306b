//! Lines → totals (billing rules 6): what a service period costs line by line, and what a document of lines adds up to.
//!
//! [`lines_of_period`] is the one way from usage, agreed quantities and charges to amounts, [`total_up`] the one way to totals.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::DocumentKind;
use super::lines::{
    BillWith, DiscountAndTax, DocumentLine, FamilySums, LedgerLine, LineCharge, LineUsage, MINIMUM_FEE_NAME, SumKey, sign,
};
use crate::charge::{Charge, Charges};
use crate::codes::UnitCode;
use crate::contract::terms::{MeteredCharge, ProductTerms, QuantityStep, SelectedCharge, SelectedLineItem};
use crate::contract::{Contract, ProductPeriod};
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
    /// Discount in percent, and tax.
    pub rates: DiscountAndTax,
    /// What keeps the family's discounts at their rate of its lines, rounded (billing rules 5).
    pub discount: Money,
    /// `sub_total − discount`.
    pub net: Money,
}

/// What a document taxes alike: at one rate, in one category, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tax {
    /// Rate, category and reason.
    pub treatment: TaxTreatment,
    /// Σ net of the products that are taxed so.
    pub base: Money,
    /// What keeps the family's tax at the rate of its net amounts, rounded (billing rules 5).
    pub amount: Money,
}

/// The running totals that lines are made of; a service period without usage need not be in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageTotals(BTreeMap<UsageKey, UsageTotal>);

impl UsageTotals {
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
    pub rates: DiscountAndTax,
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
        let key = SumKey::Discount(rated.product_no, rated.rates.clone());
        let discount = Money::from_minor(sign(kind) * before.step(&key, sign(kind) * sub_total.minor(), currency)?, currency);
        Ok(BilledProduct {
            product_no: rated.product_no,
            pricing_ref: rated.terms.pricing.pricing_ref.clone(),
            name: rated.terms.pricing.name.clone(),
            minimum_fee: rated.terms.pricing.minimum_fee,
            lines: rated.lines,
            sub_total,
            rates: rated.rates,
            discount,
            net: sub_total.checked_sub(discount)?,
        })
    });
    let products = products.collect::<Result<Vec<_>, MoneyError>>()?;
    let mut treatments: Vec<&TaxTreatment> = products.iter().map(|product| &product.rates.tax).collect();
    treatments.sort();
    treatments.dedup();
    let tax = |treatment: &TaxTreatment| {
        let alike = products.iter().filter(|product| product.rates.tax == *treatment).map(|product| product.net);
        let base = Money::sum(currency, alike)?;
        let step = before.step(&SumKey::Tax(treatment.clone()), sign(kind) * base.minor(), currency)?;
        Ok(Tax { treatment: treatment.clone(), base, amount: Money::from_minor(sign(kind) * step, currency) })
    };
    let taxes = treatments.into_iter().map(tax).collect::<Result<Vec<_>, MoneyError>>()?;
    let sub_total = Money::sum(currency, products.iter().map(|product| product.sub_total))?;
    let total_discount = Money::sum(currency, products.iter().map(|product| product.discount))?;
    let total_tax = Money::sum(currency, taxes.iter().map(|tax| tax.amount))?;
    let total = sub_total.checked_sub(total_discount)?.checked_add(total_tax)?;
    Ok(DocumentContent { products, taxes, sub_total, total_discount, total_tax, total })
}

impl DocumentContent {
    /// Its lines as they are kept for the sums of billing rules 5.
    pub fn ledger_lines(&self) -> Vec<LedgerLine> {
        self.products
            .iter()
            .flat_map(|product| {
                let rates = product.rates.normalized();
                product.lines.iter().map(move |line| LedgerLine::of(product.product_no, rates.clone(), line))
            })
            .collect()
    }

    /// What it adds to the sums of its family, `times` over: −1 takes it out again.
    ///
    /// # Errors
    /// [`MoneyError`] on overflow.
    pub fn add_to(&self, sums: &mut FamilySums, kind: DocumentKind, times: i64) -> Result<(), MoneyError> {
        let sign = sign(kind) * times;
        for product in &self.products {
            let key = SumKey::Discount(product.product_no, product.rates.normalized());
            sums.add(key, sign * product.sub_total.minor(), sign * product.discount.minor())?;
        }
        for tax in &self.taxes {
            sums.add(SumKey::Tax(tax.treatment.normalized()), sign * tax.base.minor(), sign * tax.amount.minor())?;
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
            let alike = self.products.iter().filter(|product| product.rates.tax == tax.treatment).map(|product| product.net);
            Money::sum(currency, alike) == Ok(tax.base)
        });
        let is_taxed = |product: &BilledProduct| self.taxes.iter().any(|tax| tax.treatment == product.rates.tax);
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
/// the true-up, for which neither `ONCE` items nor charges count, and charges. With `bill_with` they fall to the period's
/// documents.
///
/// # Errors
/// [`MoneyError`] when exact decimals can't hold an amount.
pub fn lines_of_period(
    contract: &Contract,
    period: &ProductPeriod<'_>,
    usage: &UsageTotals,
    charges: &Charges,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let currency = period.terms.pricing.currency;
    let mut lines = Vec::new();
    let mut billed = Money::zero(currency);
    for item in &period.terms.line_items {
        let of_item = match &item.charge {
            SelectedCharge::Fixed { .. } => fixed_line(contract, item, period, currency)?.into_iter().collect(),
            SelectedCharge::Usage(metered) => usage_lines(contract.contract_ref, item, metered, period, currency, usage)?,
        };
        for line in of_item {
            if !item.is_once() {
                billed = billed.checked_add(line.amount)?;
            }
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
                has_default_tax: false,
                amount: missing,
            });
        }
    }
    add_charges(&mut lines, period, charges)?;
    Ok(lines)
}

/// Adds the charges of a period. Those below zero count only up to what the period costs without them after discount, oldest
/// first, so that no period costs less than nothing (billing rules 9).
fn add_charges(lines: &mut Vec<DocumentLine>, period: &ProductPeriod<'_>, charges: &Charges) -> Result<(), MoneyError> {
    let mut below: Vec<(&Charge, DocumentLine)> = Vec::new();
    for charge in charges.in_period(period) {
        let line = charge_line(charge, period)?;
        if line.amount.minor() < 0 { below.push((charge, line)) } else { lines.push(line) }
    }
    if below.is_empty() {
        return Ok(());
    }
    let mut net = NetPrice::of(lines, period, charges)?;
    below.sort_by(|(a, _), (b, _)| (a.date, a.recorded_at, &a.charge_ref).cmp(&(b.date, b.recorded_at, &b.charge_ref)));
    for (charge, mut line) in below {
        line.amount = net.take(line.amount, charge.discountable)?;
        lines.push(line);
    }
    Ok(())
}

/// What lines of a period cost after discount.
#[derive(Clone, Copy, Debug)]
pub struct NetPrice {
    discount: Percentage,
    /// Σ of what the discount applies to.
    discountable: Money,
    /// Σ of the rest.
    fixed: Money,
}

impl NetPrice {
    /// Of lines, charges among them.
    ///
    /// # Errors
    /// [`MoneyError`] when an amount can't be held.
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

    /// With an amount more.
    ///
    /// # Errors
    /// [`MoneyError`] when an amount can't be held.
    pub fn plus(self, amount: Money, is_discountable: bool) -> Result<Self, MoneyError> {
        Ok(if is_discountable {
            Self { discountable: self.discountable.checked_add(amount)?, ..self }
        } else {
            Self { fixed: self.fixed.checked_add(amount)?, ..self }
        })
    }

    /// Its amount.
    ///
    /// # Errors
    /// [`MoneyError`] when it can't be held.
    pub fn amount(&self) -> Result<Money, MoneyError> {
        self.discountable.checked_sub(self.discountable.percent(self.discount)?)?.checked_add(self.fixed)
    }

    /// Takes off as much of an amount below zero as leaves nothing below zero, and returns that.
    fn take(&mut self, amount: Money, is_discountable: bool) -> Result<Money, MoneyError> {
        let holds = |minor: i64| -> Result<Option<Self>, MoneyError> {
            let less = self.plus(Money::from_minor(minor, amount.currency()), is_discountable)?;
            Ok((less.amount()?.minor() >= 0).then_some(less))
        };
        let (mut taken, mut left, mut refused) = (0, *self, amount.minor());
        if let Some(less) = holds(refused)? {
            (taken, left) = (refused, less);
        }
        // The more is taken, the less is left: the most that can be taken is searched for by halves.
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

/// What the children of a period's events due upon usage bill together: the price of its usage without minimum amounts (billing
/// rules 3).
///
/// # Errors
/// [`MoneyError`] when exact decimals can't hold an amount.
pub fn children_price(
    contract: &Contract,
    period: &ProductPeriod<'_>,
    usage: &UsageTotals,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let mut lines = Vec::new();
    for key in usage_keys(contract.contract_ref, period) {
        lines.extend(lines_of_step(period, &key.usage_product_ref, &UsageTotal::ZERO, &usage.get(&key))?);
    }
    Ok(lines)
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
        has_default_tax: false,
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
    usage: &UsageTotals,
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
    contract: &Contract,
    item: &SelectedLineItem,
    period: &ProductPeriod<'_>,
    currency: Currency,
) -> Result<Option<DocumentLine>, MoneyError> {
    let SelectedCharge::Fixed { price, quantities, .. } = &item.charge else { return Ok(None) };
    let amount = if item.is_once() {
        let billed_in = contract.once_billed_in(&period.terms.pricing.pricing_ref, &item.id);
        if billed_in != Some((period.start(), period.product_no)) {
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
        has_default_tax: false,
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
        has_default_tax: false,
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
