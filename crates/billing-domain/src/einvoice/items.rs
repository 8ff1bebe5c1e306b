//! Lines, discounts and periods of an e-invoice (BG-14, BG-20, BG-25, BG-26).

use rust_decimal::Decimal;

use super::business_terms::{Allowance, InvoiceLine, filled};
use super::explanation::explain;
use super::sums::category_of;
use crate::calendar::Period;
use crate::codes::UnitCode;
use crate::decimal::WideDecimal;
use crate::document::calculation::LineCalculation;
use crate::document::lines::DocumentLine;
use crate::document::totals::{BilledProduct, DocumentContent, PrepaidAmount};
use crate::money::{Money, Percentage};
use crate::party::legal::{EInvoiceProfile, Language};

/// The reason code of a discount in UNTDID 5189.
const DISCOUNT: &str = "95";
/// How far an amount may differ from the factors that give it: a line's from quantity and price (PEPPOL-EN16931-R120), and a discount's
/// from its percentage (PEPPOL-EN16931-R040).
const SLACK: Decimal = Decimal::from_parts(2, 0, 0, false, 2);

/// One percent.
const PERCENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// Returns the lines in the order of the document.
pub(super) fn lines(content: &DocumentContent, language: Language) -> Vec<InvoiceLine> {
    let all = content.products.iter().flat_map(|product| product.lines.iter().map(move |line| (product, line)));
    let is_twin =
        |one: &BilledProduct, other: &BilledProduct| other.pricing_ref == one.pricing_ref && other.product_no != one.product_no;
    let numbered =
        |product: &BilledProduct| content.products.iter().any(|other| is_twin(product, other)).then_some(product.product_no);
    let line = |((product, line), number)| InvoiceLine {
        product_no: numbered(product),
        ..invoice_line(number, product, line, language)
    };
    all.zip(1..).map(line).collect()
}

fn invoice_line(number: usize, product: &BilledProduct, line: &DocumentLine, language: Language) -> InvoiceLine {
    let id = line.line_item_id.as_ref().map(|id| id.as_str().to_owned());
    let shown = quantity_and_price(line);
    let is_shown = shown.is_some();
    let (quantity, unit_price) = shown.unwrap_or_else(|| {
        let amount = line.amount.to_decimal();
        (if amount < Decimal::ZERO { Decimal::NEGATIVE_ONE } else { Decimal::ONE }, amount.abs())
    });
    let name = filled(line.name.as_str()).or_else(|| id.clone()).unwrap_or_else(|| "-".to_owned());
    InvoiceLine {
        number,
        quantity,
        unit_code: line.unit_code.filter(|_| is_shown).unwrap_or(UnitCode::ONE),
        amount: line.amount,
        period: line.service_period,
        unit_price,
        category: category_of(&product.rates.tax),
        rate: product.rates.tax.rate,
        name: if product.has_own_name { format!("{}: {name}", product.name.as_str().trim()) } else { name },
        description: if is_shown { None } else { explain(line, language) },
        item_id: id,
        product_no: None,
    }
}

/// Returns the quantity and the price of a line if their product, rounded once, is the line's amount and the product itself is near it:
/// 60.5 × 0.5 is 30 in a currency without decimals, but 30.25 isn't near 30. A negative price becomes a negative quantity, because a
/// price is never below zero (BR-27).
fn quantity_and_price(line: &DocumentLine) -> Option<(Decimal, Decimal)> {
    let of_usage = line.usage.as_ref().and_then(|usage| Some((usage.quantity, usage.unit_price?.as_decimal())));
    let of_charge = line.charge.as_ref().map(|charge| (charge.quantity.as_decimal(), charge.unit_price.as_decimal()));
    let of_calculation = |calculation: &LineCalculation| {
        Some((calculation.billable_quantity?, calculation.unit_price?.as_decimal())).filter(|_| !calculation.is_difference())
    };
    let calculated = line.calculation.as_deref().and_then(of_calculation);
    let gives_amount = |(quantity, price): &(Decimal, Decimal)| {
        let product = WideDecimal::from(*quantity).times(*price);
        product.is_ok_and(|product| {
            Money::round(product, line.amount.currency()) == Ok(line.amount) && is_near(product, line.amount)
        })
    };
    let found = [of_usage, of_charge, calculated].into_iter().flatten().find(gives_amount);
    found.map(|(quantity, price)| if price < Decimal::ZERO { (-quantity, -price) } else { (quantity, price) })
}

/// Returns the discounts, one for each product with a discount, then the prepaid credit of each grant.
pub(super) fn allowances(content: &DocumentContent) -> Vec<Allowance> {
    let discounted = content.products.iter().filter(|product| product.discount.minor() != 0);
    let allowance = |product: &BilledProduct| Allowance {
        amount: product.discount,
        percentage: percentage_of(product),
        category: category_of(&product.rates.tax),
        rate: product.rates.tax.rate,
        reason: None,
        reason_code: Some(DISCOUNT),
    };
    discounted.map(allowance).chain(content.prepaid.iter().map(prepaid_allowance)).collect()
}

/// Returns prepaid credit as an allowance. Its reason names the invoice that sold the credit.
fn prepaid_allowance(prepaid: &PrepaidAmount) -> Allowance {
    Allowance {
        amount: prepaid.amount,
        percentage: None,
        category: category_of(&prepaid.treatment),
        rate: prepaid.treatment.rate,
        reason: filled(&prepaid.label()),
        reason_code: None,
    }
}

/// Returns the base and the percentage of a discount if they give its amount.
fn percentage_of(product: &BilledProduct) -> Option<(Money, Percentage)> {
    let BilledProduct { sub_total, discount, rates, .. } = product;
    let expected =
        WideDecimal::from(*sub_total).times(rates.discount.as_decimal()).and_then(|hundredths| hundredths.times(PERCENT));
    expected.is_ok_and(|expected| is_near(expected, *discount)).then_some((*sub_total, rates.discount))
}

/// Returns whether an exact product is as near an amount as the rules of Peppol require.
fn is_near(product: WideDecimal, amount: Money) -> bool {
    let bound = |slack| WideDecimal::from(amount).plus(slack);
    bound(-SLACK).is_ok_and(|low| low <= product) && bound(SLACK).is_ok_and(|high| product <= high)
}

/// Returns the period of the document. Peppol and XRechnung require that it contains the periods of all lines, which usage billed in
/// the following period doesn't fulfill otherwise (PEPPOL-EN16931-R110, R111).
pub(super) fn invoicing_period(profile: EInvoiceProfile, own: Period, content: &DocumentContent) -> Period {
    if !matches!(profile, EInvoiceProfile::Xrechnung | EInvoiceProfile::Peppol) {
        return own;
    }
    let periods = content.products.iter().flat_map(|product| &product.lines).map(|line| line.service_period);
    periods.fold(own, |all, period| Period::new(all.start().min(period.start()), all.end().max(period.end())).unwrap_or(all))
}
