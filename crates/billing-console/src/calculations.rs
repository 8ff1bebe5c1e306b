//! The calculations of a document's lines as texts, from the factors that the API shows.

use crate::unit_of;
use billing_api::dto::calculations::{
    DocumentQuantityJson, DocumentTierJson, ExcludedAmountJson, PackagesJson, PercentageJson, PreviouslyBilledJson,
    ProrationJson, UnissuedAmountJson,
};
use billing_api::dto::documents::{DocumentJson, DocumentLineJson};
use billing_api::dto::wire::ExactNumber;
use billing_api::json_view::JsonView;
use billing_domain::calendar::parse_date;
use billing_domain::decimal::WideDecimal;
use billing_domain::document::calculation::{
    CalculatedTier, ExcludedAmount, LineCalculation, MinimumFeeCalculation, PackageCalculation, PercentageCalculation,
    PreviouslyBilled, Proration, QuantityShare, UnissuedAmount,
};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::money::{Currency, Money, Percentage, Price, SignedPrice};
use billing_domain::quantity::Quantity;
use billing_domain::text::OneLine;
use rust_decimal::Decimal;

/// The first format whose lines have factors.
const FIRST_FORMAT: u64 = 3;

/// Returns the steps of a line's calculation. Lines of older documents have none.
pub(crate) fn steps(document: JsonView<'_, DocumentJson>, line: JsonView<'_, DocumentLineJson>) -> Vec<String> {
    let is_explained = document.format().json().as_u64().is_some_and(|format| format >= FIRST_FORMAT);
    let currency = document.currency().json().as_str().and_then(|code| Currency::from_code(code).ok());
    let Some(currency) = currency.filter(|_| is_explained) else { return Vec::new() };
    let quantity = decimal(line.quantity()).map(|quantity| quantity.to_string()).unwrap_or_default();
    let unit = unit_of(&quantity, &line.unit().to_text());
    let steps = calculation(line, currency).map(|calculation| calculation.steps(currency)).unwrap_or_default();
    steps.iter().map(|step| step.in_english(&unit)).collect()
}

/// Returns the calculation of a line; `None` if a factor isn't as the API shows it.
fn calculation(line: JsonView<'_, DocumentLineJson>, currency: Currency) -> Option<LineCalculation> {
    let shares = line.quantities().items().filter(|quantity| quantity.days().is_there());
    let minimum_fee = match decimal(line.minimum_fee()) {
        Some(_) => Some(MinimumFeeCalculation {
            fee: price(line.minimum_fee())?,
            billed: money(line.billed_for_minimum_fee(), currency)?,
            excluded: line.excluded_from_minimum_fee().items().map(|line| excluded(line, currency)).collect::<Option<_>>()?,
        }),
        None => None,
    };
    Some(LineCalculation {
        usage_quantity: decimal(line.usage_quantity()),
        included_quantity: decimal(line.included_quantity()),
        prepaid_quantity: decimal(line.prepaid_quantity()),
        billable_quantity: decimal(line.billable_quantity()),
        unit_price: decimal(line.unit_price()).and_then(|price| SignedPrice::parse(&price.to_string()).ok()),
        tiers: line.tiers().items().map(tier).collect::<Option<_>>()?,
        packages: packages(line.packages()),
        percentage: percentage(line.percentage()),
        quantities: shares.map(|quantity| share(quantity, currency)).collect::<Option<_>>()?,
        proration: proration(line.proration()),
        minimum: decimal(line.minimum()),
        maximum: decimal(line.maximum()),
        minimum_fee,
        previously: previously(line.previously(), currency),
        unissued: unissued(line.unissued(), currency),
    })
}

/// Returns a number with all its digits.
fn decimal(number: JsonView<'_, ExactNumber>) -> Option<Decimal> {
    Decimal::from_str_exact(&number.json().as_number()?.to_string()).ok()
}

/// Returns an unrounded result with all its digits.
fn wide(number: JsonView<'_, ExactNumber>) -> Option<WideDecimal> {
    WideDecimal::parse(&number.json().as_number()?.to_string())
}

fn price(number: JsonView<'_, ExactNumber>) -> Option<Price> {
    Price::parse(&decimal(number)?.to_string()).ok()
}

fn quantity(number: JsonView<'_, ExactNumber>) -> Option<Quantity> {
    Quantity::new(decimal(number)?).ok()
}

fn money(number: JsonView<'_, ExactNumber>, currency: Currency) -> Option<Money> {
    Money::round(decimal(number)?, currency).ok()
}

fn whole(number: JsonView<'_, u32>) -> Option<u32> {
    u32::try_from(number.json().as_u64()?).ok()
}

fn tier(tier: JsonView<'_, DocumentTierJson>) -> Option<CalculatedTier> {
    Some(CalculatedTier {
        from: decimal(tier.from())?,
        up_to: decimal(tier.up_to()),
        quantity: wide(tier.quantity())?,
        unit_price: price(tier.unit_price())?,
        flat_amount: price(tier.flat_amount())?,
        amount: wide(tier.amount())?,
    })
}

fn packages(packages: JsonView<'_, PackagesJson>) -> Option<PackageCalculation> {
    Some(PackageCalculation {
        count: decimal(packages.count())?,
        size: quantity(packages.size())?,
        price: price(packages.price())?,
    })
}

fn percentage(percentage: JsonView<'_, PercentageJson>) -> Option<PercentageCalculation> {
    Some(PercentageCalculation {
        rate: Percentage::parse(&decimal(percentage.rate())?.to_string()).ok()?,
        base: decimal(percentage.base())?,
        fixed_amount: price(percentage.fixed_amount())?,
        count: percentage.count().json().as_u64()?,
    })
}

fn proration(proration: JsonView<'_, ProrationJson>) -> Option<Proration> {
    Some(Proration { days: whole(proration.days())?, of_days: whole(proration.of_days())? })
}

fn share(share: JsonView<'_, DocumentQuantityJson>, currency: Currency) -> Option<QuantityShare> {
    Some(QuantityShare {
        from: parse_date(share.from().json().as_str()?).ok()?,
        to: parse_date(share.to().json().as_str()?).ok()?,
        quantity: quantity(share.quantity())?,
        days: whole(share.days())?,
        of_days: whole(share.of_days())?,
        tiers: share.tiers().items().map(tier).collect::<Option<_>>()?,
        packages: packages(share.packages()),
        amount: money(share.amount(), currency)?,
    })
}

fn previously(previously: JsonView<'_, PreviouslyBilledJson>, currency: Currency) -> Option<PreviouslyBilled> {
    Some(PreviouslyBilled {
        quantity: decimal(previously.quantity()),
        amount: money(previously.amount(), currency)?,
        documents: numbers(previously.documents()),
    })
}

fn unissued(unissued: JsonView<'_, UnissuedAmountJson>, currency: Currency) -> Option<UnissuedAmount> {
    Some(UnissuedAmount { amount: money(unissued.amount(), currency)?, documents: numbers(unissued.documents()) })
}

fn numbers(numbers: JsonView<'_, Vec<String>>) -> Vec<DocumentNumber> {
    numbers.items().filter_map(|number| DocumentNumber::parse(number.json().as_str()?)).collect()
}

fn excluded(line: JsonView<'_, ExcludedAmountJson>, currency: Currency) -> Option<ExcludedAmount> {
    Some(ExcludedAmount { name: OneLine::parse(line.name().json().as_str()?).ok()?, amount: money(line.amount(), currency)? })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Returns the steps of a line with these fields, of a document with this format.
    fn steps_of(line: &str, format: u32) -> Vec<String> {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let document = json!({"currency": "EUR", "format": format});
        steps(JsonView::of(&document), JsonView::of(&line))
    }

    #[test]
    fn a_line_reads_as_it_is_calculated() {
        let tier = r#"{"from":100,"up_to":null,"quantity":50.5,"unit_price":0.05,"flat_amount":1,"amount":3.525}"#;
        let rows = [
            (
                r#"{"unit":"calls","usage_quantity":273677,"included_quantity":10000,"billable_quantity":263677,
                    "unit_price":0.0006}"#
                    .to_owned(),
                vec!["273,677 calls, 10,000 included, 263,677 billed", "263,677 calls × 0.0006 = 158.2062"],
            ),
            (
                r#"{"unit":"call","quantity":2500,"usage_quantity":2500,"included_quantity":100,"billable_quantity":2400,
                    "packages":{"count":3,"size":1000,"price":35.00}}"#
                    .to_owned(),
                vec!["2,500 calls, 100 included, 2,400 billed", "3 × 1,000 at 35.00 = 105"],
            ),
            (
                format!(
                    r#"{{"unit":"call","quantity":200.5,"billable_quantity":150.5,"usage_quantity":200.5,"included_quantity":50,
                        "tiers":[{tier}]}}"#
                ),
                vec!["200.5 calls, 50 included, 150.5 billed", "50.5 × 0.05 + 1 = 3.525"],
            ),
            (
                format!(r#"{{"billable_quantity":150.5,"usage_quantity":150.5,"tiers":[{tier}]}}"#),
                vec!["50.5 × 0.05 + 1 = 3.525"],
            ),
            (
                r#"{"billable_quantity":1,"unit_price":30.00,"proration":{"days":24,"of_days":30}}"#.to_owned(),
                vec!["1 × 30.00 = 30", "24 of 30 days"],
            ),
            (
                r#"{"unit_price":12,"quantities":[
                    {"from":"2026-10-01","to":"2026-10-14","quantity":5,"days":14,"of_days":31,"amount":27.10},
                    {"from":"2026-10-15","to":"2026-10-31","quantity":12,"days":17,"of_days":31,"amount":78.96}]}"#
                    .to_owned(),
                vec![
                    "5 × 12, 2026-10-01 to 2026-10-14, 14 of 31 days: 27.10",
                    "12 × 12, 2026-10-15 to 2026-10-31, 17 of 31 days: 78.96",
                ],
            ),
            (r#"{"minimum_fee":100,"billed_for_minimum_fee":89.00}"#.to_owned(), vec!["minimum fee 100 − 89.00 billed = 11.00"]),
            (
                r#"{"billable_quantity":1,"unit_price":60,"previously":{"amount":49.00,"documents":["UB-INV-1"]},
                    "unissued":{"amount":-10,"documents":["UB-CRD-1"]}}"#
                    .to_owned(),
                vec![
                    "1 × 60 = 60",
                    "now 60.00, billed on UB-INV-1 49.00, on documents not issued yet (UB-CRD-1) -10.00, difference 21.00",
                ],
            ),
            (
                r#"{"minimum_fee":100,"billed_for_minimum_fee":89.00,
                    "excluded_from_minimum_fee":[{"name":"Set-up","amount":250}]}"#
                    .to_owned(),
                vec!["minimum fee 100 − 89.00 counted = 11.00, not counted: Set-up 250.00"],
            ),
        ];
        for (line, expected) in rows {
            assert_eq!(steps_of(&line, 3), expected, "{line}");
        }
    }

    #[test]
    fn older_documents_have_no_steps() {
        let seats = r#"{"billable_quantity":5,"unit_price":12}"#;
        assert_eq!([steps_of(seats, 2), steps_of(seats, 4)], [vec![], vec!["5 × 12 = 60".to_owned()]]);
    }
}
