//! How a line's amount follows from quantities and prices, in figures instead of words (BT-154).

use rust_decimal::Decimal;

use crate::decimal::WideDecimal;
use crate::document::calculation::{CalculationStep, PackageCalculation, Proration, QuantityShare};
use crate::document::lines::{DocumentLine, LineUsage};
use crate::document::numbering::DocumentNumber;
use crate::money::Money;
use crate::party::legal::Language;
use crate::text::OneLine;
use crate::units;

/// Returns the calculation of a line, such as `1500 calls: 100 × 0.10, 900 × 0.05, 500 × 0.01`; `None` if there is nothing to
/// explain.
pub(super) fn explain(line: &DocumentLine, language: Language) -> Option<String> {
    let unit = Unit { name: unit_name(line), language };
    // A line that corrects an amount without a change of the usage has no quantity of its own.
    let is_difference = line.calculation.as_ref().is_some_and(|calculation| calculation.is_difference());
    let usage = line.usage.as_ref().filter(|usage| !is_difference || !usage.quantity.is_zero());
    let mut head = usage.map(|usage| unit.counted(usage.quantity));
    let mut rows = Vec::new();
    match line.calculation.as_deref() {
        Some(calculation) => {
            for step in calculation.steps(line.amount.currency()) {
                match row(&step, unit) {
                    Row::Head(text) => head = Some(text),
                    Row::Part(text) => rows.push(text),
                }
            }
        }
        None => rows.extend(line.usage.iter().flat_map(tiers)),
    }
    match (head, rows.is_empty()) {
        (Some(head), true) => Some(head),
        (Some(head), false) => Some(format!("{head}: {}", rows.join(", "))),
        (None, true) => None,
        (None, false) => Some(rows.join(", ")),
    }
}

/// The unit of a line in a document's language.
#[derive(Clone, Copy)]
struct Unit<'l> {
    name: Option<&'l str>,
    language: Language,
}

impl Unit<'_> {
    /// Returns a quantity with its unit.
    fn counted(self, quantity: Decimal) -> String {
        match self.name {
            Some(name) => format!("{} {}", figure(quantity), units::unit_of(self.language, quantity, name)),
            None => figure(quantity),
        }
    }
}

/// A row of an explanation.
enum Row {
    /// What is priced.
    Head(String),
    /// A part of the calculation.
    Part(String),
}

fn row(step: &CalculationStep, unit: Unit<'_>) -> Row {
    match step {
        CalculationStep::Usage { used, included, prepaid, billed } => {
            let mut text = match (used, prepaid) {
                (Some(used), Some(prepaid)) => format!("max({}, {})", figure(*used), figure(*prepaid)),
                (Some(quantity), None) | (None, Some(quantity)) => figure(*quantity),
                (None, None) => figure(*billed),
            };
            if let Some(included) = included {
                text = format!("{text} − {}", figure(*included));
            }
            Row::Head(format!("{text} = {}", unit.counted(*billed)))
        }
        CalculationStep::UnitPrice { quantity, unit_price, .. } => Row::Part(product(*quantity, *unit_price)),
        CalculationStep::Tier(tier) => {
            Row::Part(with_flat(product(tier.quantity, tier.unit_price.as_decimal()), tier.flat_amount.as_decimal()))
        }
        CalculationStep::Packages { packages, .. } => Row::Part(packages_of(packages, unit)),
        CalculationStep::Percentage { percentage, .. } => {
            let share = format!("{} % × {}", figure(percentage.rate.as_decimal()), figure(percentage.base));
            let fixed = percentage.fixed_amount.as_decimal();
            Row::Part(if fixed.is_zero() || percentage.count == 0 {
                share
            } else {
                format!("{share} + {} × {fixed}", percentage.count)
            })
        }
        CalculationStep::Quantity { share, unit_price } => Row::Part(quantity_of(share, *unit_price, unit)),
        CalculationStep::Proration(proration) => Row::Part(days(*proration)),
        CalculationStep::Minimum { minimum, proration, .. } => Row::Part(prorated(format!("≥ {minimum}"), *proration)),
        CalculationStep::Maximum { maximum, .. } => Row::Part(format!("≤ {maximum}")),
        CalculationStep::MinimumFee { minimum_fee, proration, .. } => {
            let fee = prorated(minimum_fee.fee.as_decimal().to_string(), *proration);
            Row::Part(format!("{fee}{}", less(minimum_fee.billed, &[])))
        }
        CalculationStep::Difference { now, previously, unissued, .. } => {
            let issued = previously.as_ref().map(|previously| less(previously.amount, &previously.documents));
            let drafts = unissued.as_ref().map(|unissued| less(unissued.amount, &unissued.documents));
            Row::Part([Some(now.to_decimal().to_string()), issued, drafts].into_iter().flatten().collect())
        }
    }
}

/// Returns a subtraction of an amount, with the numbers of the documents that bill it.
fn less(amount: Money, documents: &[DocumentNumber]) -> String {
    let sign = if amount.minor() < 0 { '+' } else { '−' };
    let less = format!(" {sign} {}", amount.to_decimal().abs());
    let numbers: Vec<String> = documents.iter().map(ToString::to_string).collect();
    if numbers.is_empty() { less } else { format!("{less} ({})", numbers.join(", ")) }
}

/// Returns the tiers of a document that was issued before calculations were frozen.
fn tiers(usage: &LineUsage) -> impl Iterator<Item = String> + '_ {
    usage
        .tiers
        .iter()
        .map(|rated| with_flat(product(rated.quantity, rated.tier.unit_price.as_decimal()), rated.tier.flat_amount.as_decimal()))
}

fn unit_name(line: &DocumentLine) -> Option<&str> {
    let of_charge = || line.charge.as_ref().and_then(|charge| charge.unit.as_ref());
    line.usage.as_ref().and_then(|usage| usage.unit.as_ref()).or_else(of_charge).map(OneLine::as_str)
}

fn quantity_of(share: &QuantityShare, unit_price: Option<Decimal>, unit: Unit<'_>) -> String {
    let priced = share
        .tiers
        .iter()
        .map(|tier| with_flat(product(tier.quantity, tier.unit_price.as_decimal()), tier.flat_amount.as_decimal()));
    let packages = share.packages.as_ref().map(|packages| packages_of(packages, unit));
    let single = unit_price.map(|price| product(share.quantity.as_decimal(), price));
    let price: Vec<String> = single.into_iter().chain(priced).chain(packages).collect();
    let price = if price.is_empty() { figure(share.quantity.as_decimal()) } else { price.join(" + ") };
    format!("{}/{}: ({price}) × {}/{}", share.from, share.to, share.days, share.of_days)
}

fn packages_of(packages: &PackageCalculation, unit: Unit<'_>) -> String {
    let size = unit.counted(packages.size.as_decimal());
    format!("{} ({size})", product(packages.count, packages.price.as_decimal()))
}

/// Returns a quantity without trailing zeros.
fn figure(number: impl Into<WideDecimal>) -> String {
    let number = number.into().to_string();
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number }
}

/// Returns a quantity and a price, which keeps the digits it was given.
fn product(quantity: impl Into<WideDecimal>, price: Decimal) -> String {
    format!("{} × {price}", figure(quantity))
}

fn with_flat(text: String, flat: Decimal) -> String {
    if flat.is_zero() { text } else { format!("{text} + {flat}") }
}

fn days(Proration { days, of_days }: Proration) -> String {
    format!("× {days}/{of_days}")
}

fn prorated(text: String, proration: Option<Proration>) -> String {
    match proration {
        Some(proration) => format!("{text} {}", days(proration)),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_in_the_plural_in_english_alone() {
        let counted = |language, quantity: i64| Unit { name: Some("call"), language }.counted(quantity.into());
        assert_eq!([1, 1500].map(|quantity| counted(Language::En, quantity)), ["1 call", "1500 calls"]);
        assert_eq!(counted(Language::Fr, 1500), "1500 call");
    }
}
