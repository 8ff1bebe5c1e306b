//! Lines → totals (billing rules 6): what a document says, from its shares and the usage they bill.
//!
//! Preview, draft and issue all call [`bill`]; there is no second way to a total.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::correction::{LedgerLine, MINIMUM_FEE_NAME};
use super::linking::Share;
use crate::calendar::Period;
use crate::catalog::Recurrence;
use crate::contract::ProductPeriod;
use crate::contract::terms::{MeteredCharge, ProductTerms, SelectedCharge, SelectedLineItem};
use crate::decimal::exact_add;
use crate::money::{AmountOutOfRange, Currency, DayShare, Money, Percentage, Price};
use crate::rating::{Minimum, RatedTier, RatedUsage, rate, rate_prepaid};
use crate::refs::{ContractRef, LineItemId, PricingRef, ProductNo, UsageProductRef};
use crate::text::Line;
use crate::usage::{UsageKey, UsageTotal};

/// What a document says: lines and totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentContent {
    /// The products, in contract order.
    pub products: Vec<BilledProduct>,
    /// One entry per tax rate, lowest first; rates of 0 included.
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

/// One product's lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledProduct {
    /// The product.
    pub product_no: ProductNo,
    /// Its pricing.
    pub pricing_ref: PricingRef,
    /// The pricing's name.
    pub name: Line,
    /// The least a period costs.
    pub minimum_fee: Option<Price>,
    /// Lines, fixed items first where both are billed for different periods.
    pub lines: Vec<DocumentLine>,
    /// Σ of the lines.
    pub sub_total: Money,
    /// Percent.
    pub discount_rate: Percentage,
    /// `discount_rate` of `sub_total`, rounded.
    pub discount: Money,
    /// `sub_total − discount`.
    pub net: Money,
    /// Percent.
    pub tax_rate: Percentage,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentLine {
    /// The line item; `None` for the true-up to the minimum fee.
    pub line_item_id: Option<LineItemId>,
    /// Shown.
    pub name: Line,
    /// The days it bills.
    pub service_period: Period,
    /// How the amount came about, of a usage line.
    pub usage: Option<LineUsage>,
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
    pub unit: Option<Line>,
    /// The price of one, where the model has a single one.
    pub unit_price: Option<Price>,
    /// The tiers reached.
    pub tiers: Vec<RatedTier>,
}

/// One tax rate's part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tax {
    /// Percent.
    pub rate: Percentage,
    /// Σ net of the products with that rate.
    pub base: Money,
    /// Rounded once.
    pub amount: Money,
}

/// The running totals a bill is made of; a service period without usage need not be in it.
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
}

/// A share with the rates it is billed at.
#[derive(Clone, Copy, Debug)]
pub struct RatedShare<'c> {
    /// What is billed.
    pub share: Share<'c>,
    /// Discount in percent.
    pub discount_rate: Percentage,
    /// Tax in percent.
    pub tax_rate: Percentage,
}

/// The running totals that the shares of a document need.
pub fn usage_keys(contract_ref: ContractRef, shares: &[Share<'_>]) -> Vec<UsageKey> {
    let mut keys: Vec<UsageKey> = shares
        .iter()
        .filter_map(|share| share.usage)
        .flat_map(|period| period.terms.metered_products().map(move |product| usage_key(contract_ref, &period, product)))
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Names the running total of a usage product in a period.
pub fn usage_key(contract_ref: ContractRef, period: &ProductPeriod<'_>, usage_product_ref: &UsageProductRef) -> UsageKey {
    UsageKey {
        contract_ref,
        product_no: period.product_no,
        period_start: period.period.span().start(),
        usage_product_ref: usage_product_ref.clone(),
    }
}

/// Names what an amount is for: a line item of a product's service period, or its true-up (no line item).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineKey {
    /// The product.
    pub product_no: ProductNo,
    /// The service period's first day.
    pub period_start: NaiveDate,
    /// The line item; `None` for the true-up to the minimum fee.
    pub line_item_id: Option<LineItemId>,
}

/// What documents bill already: invoices and debits count, credits count against (billing rules 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documented(BTreeMap<LineKey, i64>);

impl Documented {
    /// Nothing.
    pub const fn nothing() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds an amount in minor units, with its sign.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] on overflow.
    pub fn add(&mut self, key: LineKey, minor: i64) -> Result<(), AmountOutOfRange> {
        let sum = self.0.entry(key).or_insert(0);
        *sum = sum.checked_add(minor).ok_or(AmountOutOfRange)?;
        Ok(())
    }

    /// Whether no document bills anything, not even amounts that make up for each other.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is billed for one thing.
    pub fn minor(&self, key: &LineKey) -> i64 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Everything that is billed for a product.
    pub fn of_product(&self, product_no: ProductNo) -> impl Iterator<Item = (&LineKey, i64)> {
        self.0.iter().filter(move |(key, minor)| key.product_no == product_no && **minor != 0).map(|(key, minor)| (key, *minor))
    }
}

/// Bills shares: the one way from usage to a document's content. `elsewhere` is what other documents bill of the
/// same: the document carries the rest, also of what its usage costs nothing of any more.
///
/// # Errors
/// [`AmountOutOfRange`] when exact decimals can't hold an amount.
pub fn bill(
    contract_ref: ContractRef,
    currency: Currency,
    shares: &[RatedShare<'_>],
    usage: &UsageFacts,
    elsewhere: &Documented,
) -> Result<DocumentContent, AmountOutOfRange> {
    let products = shares.iter().map(|rated| {
        let lines = lines_of_share(contract_ref, currency, &rated.share, usage)?;
        let lines = rest(&rated.share, currency, lines, elsewhere)?;
        billed_product(rated.share.own.terms, rated.share.own.product_no, rated.discount_rate, rated.tax_rate, currency, lines)
    });
    total_up(currency, products.collect::<Result<Vec<_>, _>>()?)
}

/// Takes what is billed elsewhere off a document's lines.
fn rest(
    share: &Share<'_>,
    currency: Currency,
    mut lines: Vec<DocumentLine>,
    elsewhere: &Documented,
) -> Result<Vec<DocumentLine>, AmountOutOfRange> {
    let product_no = share.own.product_no;
    if let Some(period) = share.usage {
        let listed: Vec<LineKey> = lines.iter().map(|line| line.key(product_no)).collect();
        for (key, _) in elsewhere.of_product(product_no) {
            if key.period_start == period.period.span().start() && !listed.contains(key) {
                let nothing = LedgerLine {
                    product_no,
                    line_item_id: key.line_item_id.clone(),
                    service_period: period.period.span(),
                    usage: None,
                    amount: Money::zero(currency),
                };
                lines.push(nothing.shown(Some(&period)));
            }
        }
    }
    let take = |line: DocumentLine| {
        let key = line.key(product_no);
        let amount = line.amount.checked_sub(Money::from_minor(elsewhere.minor(&key), currency))?;
        Ok(DocumentLine { amount, ..line })
    };
    lines.into_iter().map(take).collect()
}

/// A product's lines with their totals, before tax.
///
/// # Errors
/// [`AmountOutOfRange`] when an amount can't be held.
pub fn billed_product(
    terms: &ProductTerms,
    product_no: ProductNo,
    discount_rate: Percentage,
    tax_rate: Percentage,
    currency: Currency,
    lines: Vec<DocumentLine>,
) -> Result<BilledProduct, AmountOutOfRange> {
    let sub_total = Money::sum(currency, lines.iter().map(|line| line.amount))?;
    let discount = sub_total.percent(discount_rate)?;
    Ok(BilledProduct {
        product_no,
        pricing_ref: terms.pricing.pricing_ref.clone(),
        name: terms.pricing.name.clone(),
        minimum_fee: terms.pricing.minimum_fee,
        lines,
        sub_total,
        discount_rate,
        discount,
        net: sub_total.checked_sub(discount)?,
        tax_rate,
    })
}

/// Adds products up to a document (billing rules 6).
///
/// # Errors
/// [`AmountOutOfRange`] when an amount can't be held.
pub fn total_up(currency: Currency, products: Vec<BilledProduct>) -> Result<DocumentContent, AmountOutOfRange> {
    let sub_total = Money::sum(currency, products.iter().map(|product| product.sub_total))?;
    let total_discount = Money::sum(currency, products.iter().map(|product| product.discount))?;
    let mut rates: Vec<Percentage> = products.iter().map(|product| product.tax_rate).collect();
    rates.sort();
    rates.dedup();
    let tax = |rate: Percentage| {
        let of_rate = products.iter().filter(|product| product.tax_rate == rate).map(|product| product.net);
        let base = Money::sum(currency, of_rate)?;
        Ok(Tax { rate, base, amount: base.percent(rate)? })
    };
    let taxes = rates.into_iter().map(tax).collect::<Result<Vec<_>, _>>()?;
    let total_tax = Money::sum(currency, taxes.iter().map(|tax| tax.amount))?;
    let total = sub_total.checked_sub(total_discount)?.checked_add(total_tax)?;
    Ok(DocumentContent { products, taxes, sub_total, total_discount, total_tax, total })
}

impl DocumentContent {
    /// Its lines as they are kept for the sums of billing rules 5.
    pub fn ledger_lines(&self) -> Vec<LedgerLine> {
        self.products
            .iter()
            .flat_map(|product| product.lines.iter().map(|line| LedgerLine::of(product.product_no, line)))
            .collect()
    }

    /// Whether every total is the sum of what it totals (invariant M1).
    pub fn adds_up(&self) -> bool {
        let currency = self.total.currency();
        let products_add_up = self.products.iter().all(|product| {
            Money::sum(currency, product.lines.iter().map(|line| line.amount)) == Ok(product.sub_total)
                && product.sub_total.checked_sub(product.discount) == Ok(product.net)
        });
        products_add_up && total_up(currency, self.products.clone()).as_ref() == Ok(self)
    }
}

/// The lines a share's document carries when nothing is billed elsewhere.
///
/// # Errors
/// [`AmountOutOfRange`] when exact decimals can't hold an amount.
pub fn lines_of_share(
    contract_ref: ContractRef,
    currency: Currency,
    share: &Share<'_>,
    usage: &UsageFacts,
) -> Result<Vec<DocumentLine>, AmountOutOfRange> {
    let mut lines = Vec::new();
    // Usage of a period under earlier terms has that version's own line items, after the fixed ones.
    let one_version = share.usage.is_none_or(|period| std::ptr::eq(period.terms, share.own.terms));
    for item in &share.own.terms.line_items {
        if let Some(period) = share.fixed {
            lines.extend(fixed_line(item, &period, currency)?);
        }
        if let Some(period) = share.fixed.filter(|_| share.bills_prepaid()) {
            lines.extend(prepaid_line(item, &period, currency)?);
        }
        if let Some(period) = share.usage.filter(|_| one_version) {
            lines.extend(usage_line(contract_ref, item, &period, currency, usage, Prepaid::Off)?);
        }
    }
    if let Some(period) = share.usage.filter(|_| !one_version) {
        for item in &period.terms.line_items {
            lines.extend(usage_line(contract_ref, item, &period, currency, usage, Prepaid::Off)?);
        }
    }
    if let Some(period) = share.usage {
        lines.extend(minimum_fee_line(contract_ref, &period, currency, usage)?);
    }
    Ok(lines)
}

/// What a step of usage adds to a period's price, before minimum amounts (billing rules 3): the lines of the
/// line items that a usage product prices.
///
/// # Errors
/// [`AmountOutOfRange`] when exact decimals can't hold an amount.
pub fn lines_of_step(
    period: &ProductPeriod<'_>,
    usage_product_ref: &UsageProductRef,
    currency: Currency,
    before: &UsageTotal,
    after: &UsageTotal,
) -> Result<Vec<DocumentLine>, AmountOutOfRange> {
    let items = period.terms.line_items.iter().filter_map(|item| Some((item, item.metered()?)));
    let step = |(item, metered): (&SelectedLineItem, &MeteredCharge)| {
        let share = period.period.share();
        let before = rate(metered, before, Minimum::Waived, share, currency)?;
        let rated = rate(metered, after, Minimum::Waived, share, currency)?;
        let quantity = exact_add(rated.quantity, -before.quantity)?;
        let amount = rated.amount.checked_sub(before.amount)?;
        Ok(usage_document_line(item, metered, period, RatedUsage { quantity, amount, tiers: Vec::new(), ..rated }))
    };
    items.filter(|(_, metered)| metered.charge.usage_product_ref == *usage_product_ref).map(step).collect()
}

impl DocumentLine {
    /// What its amount is for.
    pub fn key(&self, product_no: ProductNo) -> LineKey {
        LineKey { product_no, period_start: self.service_period.start(), line_item_id: self.line_item_id.clone() }
    }
}

/// Whether what is prepaid comes off a usage line, because the invoice in advance carries it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prepaid {
    Off,
    Counts,
}

fn usage_document_line(
    item: &SelectedLineItem,
    metered: &MeteredCharge,
    period: &ProductPeriod<'_>,
    rated: RatedUsage,
) -> DocumentLine {
    DocumentLine {
        line_item_id: Some(item.id.clone()),
        name: item.name.clone(),
        service_period: period.period.span(),
        usage: Some(LineUsage {
            usage_product_ref: metered.charge.usage_product_ref.clone(),
            quantity: rated.quantity,
            unit: metered.unit.clone(),
            unit_price: rated.unit_price,
            tiers: rated.tiers,
        }),
        amount: rated.amount,
    }
}

fn prepaid_line(
    item: &SelectedLineItem,
    period: &ProductPeriod<'_>,
    currency: Currency,
) -> Result<Option<DocumentLine>, AmountOutOfRange> {
    let Some(metered) = item.metered() else { return Ok(None) };
    let rated = rate_prepaid(metered, period.period.share(), currency)?;
    Ok(rated.map(|rated| usage_document_line(item, metered, period, rated)))
}

fn fixed_line(
    item: &SelectedLineItem,
    period: &ProductPeriod<'_>,
    currency: Currency,
) -> Result<Option<DocumentLine>, AmountOutOfRange> {
    let SelectedCharge::Fixed { amount, recurrence } = &item.charge else { return Ok(None) };
    let share = match recurrence {
        Recurrence::EachPeriod => period.period.share(),
        Recurrence::Once if period.is_first => DayShare::WHOLE,
        Recurrence::Once => return Ok(None),
    };
    Ok(Some(DocumentLine {
        line_item_id: Some(item.id.clone()),
        name: item.name.clone(),
        service_period: period.period.span(),
        usage: None,
        amount: Money::round_share(amount.as_decimal(), share, currency)?,
    }))
}

fn usage_line(
    contract_ref: ContractRef,
    item: &SelectedLineItem,
    period: &ProductPeriod<'_>,
    currency: Currency,
    usage: &UsageFacts,
    prepaid: Prepaid,
) -> Result<Option<DocumentLine>, AmountOutOfRange> {
    let Some(metered) = item.metered() else { return Ok(None) };
    let total = usage.get(&usage_key(contract_ref, period, &metered.charge.usage_product_ref));
    let share = period.period.share();
    let mut rated = rate(metered, &total, Minimum::Applies, share, currency)?;
    if let Some(in_advance) = rate_prepaid(metered, share, currency)?.filter(|_| prepaid == Prepaid::Off) {
        rated.amount = rated.amount.checked_sub(in_advance.amount)?;
    }
    Ok(Some(usage_document_line(item, metered, period, rated)))
}

/// `max(0, fee − Σ lines of that service period)`, wherever those lines stand; `None` when nothing is missing.
fn minimum_fee_line(
    contract_ref: ContractRef,
    period: &ProductPeriod<'_>,
    currency: Currency,
    usage: &UsageFacts,
) -> Result<Option<DocumentLine>, AmountOutOfRange> {
    let Some(fee) = period.terms.pricing.minimum_fee else { return Ok(None) };
    let fee = Money::round_share(fee.as_decimal(), period.period.share(), currency)?;
    let mut billed = Money::zero(currency);
    for item in &period.terms.line_items {
        let lines =
            [fixed_line(item, period, currency)?, usage_line(contract_ref, item, period, currency, usage, Prepaid::Counts)?];
        for line in lines.into_iter().flatten() {
            billed = billed.checked_add(line.amount)?;
        }
    }
    let missing = fee.checked_sub(billed)?;
    if missing.minor() <= 0 {
        return Ok(None);
    }
    Ok(Some(DocumentLine {
        line_item_id: None,
        name: Line::constant(MINIMUM_FEE_NAME),
        service_period: period.period.span(),
        usage: None,
        amount: missing,
    }))
}
