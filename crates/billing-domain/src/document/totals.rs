//! Prices and totals (billing rules 6): the lines of a service period's price, and the totals of a document.
//!
//! Only [`lines_of_period`] converts usage, agreed quantities and charges to amounts, and only [`total_up`] computes totals.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;

pub use super::net_price::NetPrice;
pub use super::prepaid::PrepaidAmount;
pub use super::usage_totals::{UsageTotals, usage_key};

use super::DocumentKind;
use super::calculation::{ExcludedAmount, LineCalculation, MinimumFeeCalculation, Proration, QuantityShare};
use super::lines::{
    BillWith, DiscountAndTax, DocumentLine, FamilySums, LedgerLine, LineCharge, LineUsage, MINIMUM_FEE_NAME, SumKey, shown_steps,
    sign,
};
use crate::calendar::{Period, plus_days};
use crate::charge::{Charge, Charges};
use crate::codes::UnitCode;
use crate::contract::terms::{MeteredCharge, ProductTerms, SelectedCharge, SelectedLineItem};
use crate::contract::{Contract, ProductPeriod};
use crate::decimal::exact_add;
use crate::money::{Currency, DayShare, Money, MoneyError, Price, SignedPrice};
use crate::rating::{Minimum, RatedFixed, RatedShare, RatedUsage, UsageFactors, rate, rate_prepaid, rate_quantities};
use crate::refs::{ContractRef, PricingRef, ProductNo, UsageProductRef};
use crate::tax::TaxTreatment;
use crate::text::OneLine;

/// The lines and totals of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentContent {
    /// The products in contract order. A product billed at several rates has an entry for each.
    pub products: Vec<BilledProduct>,
    /// One entry per tax rate, category and reason, lowest rate first. Zero rates are included.
    pub taxes: Vec<Tax>,
    /// The sum of the products' subtotals.
    pub sub_total: Money,
    /// The sum of the products' discounts.
    pub total_discount: Money,
    /// The credit that the document takes, or returns on a credit note.
    pub prepaid: Vec<PrepaidAmount>,
    /// The sum of the taxes.
    pub total_tax: Money,
    /// The subtotal less discounts and prepaid credit, plus taxes.
    pub total: Money,
}

/// The lines of a product at one combination of discount and tax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BilledProduct {
    /// The product.
    pub product_no: ProductNo,
    /// The product's pricing.
    pub pricing_ref: PricingRef,
    /// The name of the product, or else of the pricing.
    pub name: OneLine,
    /// Whether the name is the product's own.
    pub has_own_name: bool,
    /// The minimum fee of a period.
    pub minimum_fee: Option<Price>,
    /// The lines. Fixed items come first if both are billed for different periods.
    pub lines: Vec<DocumentLine>,
    /// The sum of the lines.
    pub sub_total: Money,
    /// Discount in percent, and tax.
    pub rates: DiscountAndTax,
    /// The amount that keeps the family's total discount equal to the rounded rate of its lines (billing rules 5).
    pub discount: Money,
    /// `sub_total − discount`.
    pub net: Money,
}

/// The tax at one rate, in one category, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tax {
    /// Rate, category and reason.
    pub treatment: TaxTreatment,
    /// The sum of the net amounts of the products with this treatment, less the prepaid amounts.
    pub base: Money,
    /// The amount that keeps the family's total tax equal to the rounded rate of its bases (billing rules 5).
    pub amount: Money,
}

/// Lines billed at one combination of discount and tax, with the terms that name them.
#[derive(Clone, Debug)]
pub struct RatedLines<'c> {
    /// The product.
    pub product_no: ProductNo,
    /// The terms whose names are shown.
    pub terms: &'c ProductTerms,
    /// The discount and tax.
    pub rates: DiscountAndTax,
    /// The lines.
    pub lines: Vec<DocumentLine>,
}

/// Computes the content of a document of a kind from its lines, without prepaid credit. `before` holds the sums of the family's
/// earlier documents (billing rules 5, 6).
///
/// # Errors
/// Returns [`MoneyError`] when an amount is out of range.
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
            name: rated.terms.shown_name().clone(),
            has_own_name: rated.terms.name.is_some(),
            minimum_fee: rated.terms.pricing.minimum_fee,
            lines: rated.lines,
            sub_total,
            rates: rated.rates,
            discount,
            net: sub_total.checked_sub(discount)?,
        })
    });
    let products = products.collect::<Result<Vec<_>, MoneyError>>()?;
    let sub_total = Money::sum(currency, products.iter().map(|product| product.sub_total))?;
    let total_discount = Money::sum(currency, products.iter().map(|product| product.discount))?;
    let zero = Money::zero(currency);
    let (prepaid, taxes) = (Vec::new(), Vec::new());
    let content = DocumentContent { products, taxes, sub_total, total_discount, prepaid, total_tax: zero, total: zero };
    content.with_taxes(kind, before)
}

impl DocumentContent {
    /// Returns the net amounts of the products by tax treatment, lowest rate first.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn nets(&self) -> Result<BTreeMap<&TaxTreatment, Money>, MoneyError> {
        let mut nets = BTreeMap::new();
        for product in &self.products {
            let net = nets.entry(&product.rates.tax).or_insert(Money::zero(product.net.currency()));
            *net = net.checked_add(product.net)?;
        }
        Ok(nets)
    }

    /// Returns the content of a document of a kind with prepaid credit, instead of the credit that it has. Taxes and total follow.
    /// `before` holds the sums of the family's earlier documents.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when an amount is out of range.
    pub fn with_prepaid(self, kind: DocumentKind, prepaid: Vec<PrepaidAmount>, before: &FamilySums) -> Result<Self, MoneyError> {
        Self { prepaid, ..self }.with_taxes(kind, before)
    }

    /// Returns the sum of the prepaid amounts.
    ///
    /// # Errors
    /// Returns [`MoneyError`] when the sum is out of range.
    pub fn total_prepaid(&self) -> Result<Money, MoneyError> {
        Money::sum(self.total.currency(), self.prepaid.iter().map(|prepaid| prepaid.amount))
    }

    /// Returns the sum of the prepaid amounts of a tax treatment.
    fn prepaid_at(&self, treatment: &TaxTreatment) -> Result<Money, MoneyError> {
        let alike = self.prepaid.iter().filter(|prepaid| prepaid.treatment == *treatment);
        Money::sum(self.total.currency(), alike.map(|prepaid| prepaid.amount))
    }

    /// Computes the taxes and the total from the products and the prepaid amounts.
    fn with_taxes(mut self, kind: DocumentKind, before: &FamilySums) -> Result<Self, MoneyError> {
        let currency = self.total.currency();
        let mut taxes = Vec::new();
        for (treatment, net) in self.nets()? {
            let base = net.checked_sub(self.prepaid_at(treatment)?)?;
            let step = before.step(&SumKey::Tax(treatment.clone()), sign(kind) * base.minor(), currency)?;
            taxes.push(Tax { treatment: treatment.clone(), base, amount: Money::from_minor(sign(kind) * step, currency) });
        }
        self.total_tax = Money::sum(currency, taxes.iter().map(|tax| tax.amount))?;
        self.total =
            self.sub_total.checked_sub(self.total_discount)?.checked_sub(self.total_prepaid()?)?.checked_add(self.total_tax)?;
        self.taxes = taxes;
        Ok(self)
    }

    /// Returns the lines as ledger lines, for the sums of billing rules 5.
    pub fn ledger_lines(&self) -> Vec<LedgerLine> {
        self.products
            .iter()
            .flat_map(|product| {
                let rates = product.rates.normalized();
                product.lines.iter().map(move |line| LedgerLine::of(product.product_no, rates.clone(), line))
            })
            .collect()
    }

    /// Adds the content to the sums of its family, multiplied by `times`; −1 removes it again.
    ///
    /// # Errors
    /// Returns [`MoneyError`] on overflow.
    pub fn add_to(&self, sums: &mut FamilySums, kind: DocumentKind, times: i64) -> Result<(), MoneyError> {
        let sign = sign(kind) * times;
        for product in &self.products {
            let key = SumKey::Discount(product.product_no, product.rates.normalized());
            sums.add(key, sign * product.sub_total.minor(), sign * product.discount.minor())?;
        }
        for tax in &self.taxes {
            sums.add(SumKey::Tax(tax.treatment.normalized()), sign * tax.base.minor(), sign * tax.amount.minor())?;
        }
        for prepaid in &self.prepaid {
            let key = SumKey::Prepaid(prepaid.treatment.normalized(), prepaid.grant_ref);
            sums.add(key, 0, sign * prepaid.amount.minor())?;
        }
        Ok(())
    }

    /// Returns the lines of all products.
    pub fn lines(&self) -> impl Iterator<Item = &DocumentLine> {
        self.products.iter().flat_map(|product| &product.lines)
    }

    /// Returns the lines of all products, to change them.
    pub(crate) fn lines_mut(&mut self) -> impl Iterator<Item = &mut DocumentLine> {
        self.products.iter_mut().flat_map(|product| &mut product.lines)
    }

    /// Returns the content without the calculations of its lines. They can change while lines and totals stay the same, because
    /// they name other documents.
    #[must_use]
    pub fn without_calculations(&self) -> Self {
        let mut content = self.clone();
        for line in content.lines_mut() {
            line.calculation = None;
        }
        content
    }

    /// Returns whether any line has an amount.
    pub fn has_amount(&self) -> bool {
        self.lines().any(|line| line.amount.minor() != 0)
    }

    /// Returns whether every total equals the sum of its parts (invariant M1). Doesn't check discount and tax amounts, because
    /// they depend on the family's other documents.
    pub fn adds_up(&self) -> bool {
        let currency = self.total.currency();
        let sum = |amounts: &mut dyn Iterator<Item = Money>| Money::sum(currency, amounts);
        let products_add_up = self.products.iter().all(|product| {
            sum(&mut product.lines.iter().map(|line| line.amount)) == Ok(product.sub_total)
                && product.sub_total.checked_sub(product.discount) == Ok(product.net)
        });
        let taxes_add_up = self.taxes.iter().all(|tax| {
            let alike = self.products.iter().filter(|product| product.rates.tax == tax.treatment).map(|product| product.net);
            let net = Money::sum(currency, alike);
            net.and_then(|net| net.checked_sub(self.prepaid_at(&tax.treatment)?)) == Ok(tax.base)
        });
        let is_taxed = |treatment: &TaxTreatment| self.taxes.iter().any(|tax| tax.treatment == *treatment);
        let net = self.sub_total.checked_sub(self.total_discount).and_then(|net| net.checked_sub(self.total_prepaid()?));
        products_add_up
            && taxes_add_up
            && self.products.iter().all(|product| is_taxed(&product.rates.tax))
            && self.prepaid.iter().all(|prepaid| is_taxed(&prepaid.treatment))
            && sum(&mut self.products.iter().map(|product| product.sub_total)) == Ok(self.sub_total)
            && sum(&mut self.products.iter().map(|product| product.discount)) == Ok(self.total_discount)
            && sum(&mut self.taxes.iter().map(|tax| tax.amount)) == Ok(self.total_tax)
            && net.and_then(|net| net.checked_add(self.total_tax)) == Ok(self.total)
    }
}

/// Returns the lines of a service period's price, on all documents:
/// - fixed items
/// - prepaid usage
/// - usage less the prepaid amount
/// - the true-up, which counts neither `ONCE` items nor charges
/// - charges
///
/// `bill_with` assigns each line to one of the period's documents.
///
/// # Errors
/// Returns [`MoneyError`] when an amount exceeds the exact decimal range.
pub fn lines_of_period<'i>(
    contract: &Contract,
    period: &ProductPeriod<'_>,
    line_items: impl IntoIterator<Item = &'i SelectedLineItem>,
    (usage, charges): (&UsageTotals, &Charges),
) -> Result<Vec<DocumentLine>, MoneyError> {
    let currency = period.terms.pricing.currency;
    let (mut lines, mut billed) = (Vec::new(), Money::zero(currency));
    for item in line_items {
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
    if let Some(agreed) = period.terms.pricing.minimum_fee {
        let fee = Money::round_share(agreed.as_decimal(), period.period.share(), currency)?;
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
                calculation: Some(Box::new(minimum_fee_calculation(agreed, period, billed))),
            });
        }
    }
    add_charges(&mut lines, period, charges)?;
    let excluded: Vec<ExcludedAmount> = lines
        .iter()
        .filter(|line| line.amount.minor() != 0 && is_excluded_from_minimum_fee(period.terms, line))
        .map(|line| ExcludedAmount { name: line.name.clone(), amount: line.amount })
        .collect();
    let minimum_fee = lines.iter_mut().find_map(|line| line.calculation.as_mut()?.minimum_fee.as_mut());
    if let Some(minimum_fee) = minimum_fee {
        minimum_fee.excluded = excluded;
    }
    Ok(lines)
}

/// Returns whether a line of a period's price doesn't count for the minimum fee: a `ONCE` item or a charge (billing rules 6).
fn is_excluded_from_minimum_fee(terms: &ProductTerms, line: &DocumentLine) -> bool {
    let is_once = || terms.line_items.iter().any(|item| Some(&item.id) == line.line_item_id.as_ref() && item.is_once());
    line.charge.is_some() || is_once()
}

/// Adds the charges of a period. Negative charges count, oldest first, only up to the period's price after discount without
/// them, so that no period has a negative price (billing rules 9).
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
        let taken = net.take(line.amount, charge.discountable)?;
        if let Some(calculation) = line.calculation.as_mut().filter(|_| taken != line.amount) {
            calculation.minimum = Some(taken.to_decimal());
        }
        line.amount = taken;
        lines.push(line);
    }
    Ok(())
}

/// Returns the lines that a step of usage adds to a period's price, before minimum amounts (billing rules 3). There is one line
/// for each line item that prices the usage product. `before` and `after` have the totals of the usage product in the period.
///
/// # Errors
/// Returns [`MoneyError`] when an amount exceeds the exact decimal range.
pub fn lines_of_step(
    contract_ref: ContractRef,
    period: &ProductPeriod<'_>,
    usage_product_ref: &UsageProductRef,
    before: &UsageTotals,
    after: &UsageTotals,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let currency = period.terms.pricing.currency;
    let step = |(item, metered): (&SelectedLineItem, &MeteredCharge)| {
        let share = period.period.share();
        let before = before.of_line_item(contract_ref, period, (item, metered))?;
        let after = after.of_line_item(contract_ref, period, (item, metered))?;
        let before = rate(metered, &before, Minimum::Waived, share, currency)?;
        let rated = rate(metered, &after, Minimum::Waived, share, currency)?;
        let quantity = exact_add(rated.quantity, -before.quantity)?;
        let amount = rated.amount.checked_sub(before.amount)?;
        let calculation = usage_calculation(&rated, Some(rated.quantity));
        let rated = RatedUsage { quantity, amount, tiers: Vec::new(), ..rated };
        Ok(usage_line(item, metered, period, BillWith::Usage, rated, calculation))
    };
    period.terms.metering(usage_product_ref).map(step).collect()
}

/// Returns the lines that the children of a period's events due upon usage bill together. It is the price of the usage without
/// minimum amounts (billing rules 3).
///
/// # Errors
/// Returns [`MoneyError`] when an amount exceeds the exact decimal range.
pub fn children_price(
    contract: &Contract,
    period: &ProductPeriod<'_>,
    usage: &UsageTotals,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let products: BTreeSet<&UsageProductRef> = period.terms.metered_products().collect();
    let mut lines = Vec::new();
    for product in products {
        lines.extend(lines_of_step(contract.contract_ref, period, product, &UsageTotals::default(), usage)?);
    }
    Ok(lines)
}

fn usage_line(
    item: &SelectedLineItem,
    metered: &MeteredCharge,
    period: &ProductPeriod<'_>,
    bill_with: BillWith,
    rated: RatedUsage,
    calculation: LineCalculation,
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
        calculation: Some(Box::new(calculation)),
    }
}

/// Returns the calculation of rated usage. `used` is the usage; `None` for the quantity that is billed in advance.
fn usage_calculation(rated: &RatedUsage, used: Option<Decimal>) -> LineCalculation {
    let UsageFactors { included, prepaid, billable, tiers, packages, percentage, minimum, share, maximum } = &rated.factors;
    let positive = |quantity: Decimal| (!quantity.is_zero()).then_some(quantity);
    let prepaid = positive(*prepaid);
    LineCalculation {
        // Without a prepaid quantity, a line billed in advance is a line of no usage.
        usage_quantity: used.or_else(|| prepaid.is_none().then_some(Decimal::ZERO)),
        included_quantity: positive(*included),
        prepaid_quantity: prepaid,
        billable_quantity: Some(*billable),
        unit_price: rated.unit_price.map(SignedPrice::from),
        tiers: tiers.clone(),
        packages: *packages,
        percentage: *percentage,
        proration: minimum.and_then(|_| Proration::of(*share)),
        minimum: minimum.map(Price::as_decimal),
        maximum: maximum.map(Price::as_decimal),
        ..LineCalculation::default()
    }
}

/// Returns the calculation of the line that raises a period to its minimum fee.
fn minimum_fee_calculation(fee: Price, period: &ProductPeriod<'_>, billed: Money) -> LineCalculation {
    LineCalculation {
        proration: Proration::of(period.period.share()),
        minimum_fee: Some(MinimumFeeCalculation { fee, billed, excluded: Vec::new() }),
        ..LineCalculation::default()
    }
}

/// Returns the calculation of a fixed item. `days` are the days that its quantities are agreed for, and `share` is their share
/// of a whole period.
fn fixed_calculation(rated: RatedFixed, days: Period, share: DayShare) -> LineCalculation {
    let RatedFixed { unit_price, shares, amount: _ } = rated;
    let unit_price = unit_price.map(SignedPrice::from);
    let is_constant = shares.windows(2).all(|pair| pair[0].quantity == pair[1].quantity);
    if let Some(first) = shares.first().filter(|_| is_constant) {
        return LineCalculation {
            billable_quantity: Some(first.quantity.as_decimal()),
            unit_price,
            tiers: first.tiers.clone(),
            packages: first.packages,
            proration: Proration::of(share),
            ..LineCalculation::default()
        };
    }
    let mut from = days.start();
    let mut quantities = Vec::with_capacity(shares.len());
    for RatedShare { quantity, days, tiers, packages, amount } in shares {
        let next = plus_days(from, days);
        let to = plus_days(from, days.saturating_sub(1));
        quantities.push(QuantityShare { from, to, quantity, days, of_days: share.of, tiers, packages, amount });
        from = next;
    }
    LineCalculation { unit_price, quantities, ..LineCalculation::default() }
}

/// Returns the prepaid line, if any, and the usage line with `A(max(Q, p))` less the prepaid amount.
fn usage_lines(
    contract_ref: ContractRef,
    item: &SelectedLineItem,
    metered: &MeteredCharge,
    period: &ProductPeriod<'_>,
    currency: Currency,
    usage: &UsageTotals,
) -> Result<Vec<DocumentLine>, MoneyError> {
    let share = period.period.share();
    let total = usage.of_line_item(contract_ref, period, (item, metered))?;
    let mut rated = rate(metered, &total, Minimum::Applies, share, currency)?;
    let mut lines = Vec::new();
    let calculation = usage_calculation(&rated, Some(rated.quantity));
    if let Some(in_advance) = rate_prepaid(metered, share, currency)? {
        rated.amount = rated.amount.checked_sub(in_advance.amount)?;
        let of_advance = usage_calculation(&in_advance, None);
        lines.push(usage_line(item, metered, period, BillWith::Fixed, in_advance, of_advance));
    }
    lines.push(usage_line(item, metered, period, BillWith::Usage, rated, calculation));
    Ok(lines)
}

fn fixed_line(
    contract: &Contract,
    item: &SelectedLineItem,
    period: &ProductPeriod<'_>,
    currency: Currency,
) -> Result<Option<DocumentLine>, MoneyError> {
    let SelectedCharge::Fixed { price, quantities, .. } = &item.charge else { return Ok(None) };
    let (rated, share) = if item.is_once() {
        let billed_in = contract.once_billed_in(&period.terms.pricing.pricing_ref, &item.id);
        if billed_in != Some((period.start(), period.product_no)) {
            return Ok(None);
        }
        let whole = DayShare::WHOLE;
        (rate_quantities(price, &[(quantities.on(period.start()), whole.days)], whole.of, currency)?, whole)
    } else {
        let share = period.period.share();
        (rate_quantities(price, &quantities.within(period.days()), share.of, currency)?, share)
    };
    let amount = rated.amount;
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
        calculation: Some(Box::new(fixed_calculation(rated, period.days(), share))),
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
        calculation: Some(Box::new(LineCalculation {
            billable_quantity: Some(charge.quantity.as_decimal()),
            unit_price: Some(charge.unit_price),
            ..LineCalculation::default()
        })),
    })
}
