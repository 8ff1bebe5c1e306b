//! The calculations of a document's lines as texts, from the factors that the API shows.

use crate::unit_of;
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
use serde_json::{Map, Value};

/// The first format whose lines have factors.
const FIRST_FORMAT: u64 = 3;

/// Adds the steps of each line's calculation to a document, as the field `steps`. Older documents stay as they are.
pub(super) fn with_steps(mut document: Value) -> Value {
    let currency = document["currency"].as_str().and_then(|code| Currency::from_code(code).ok());
    let is_explained = document["format"].as_u64().is_some_and(|format| format >= FIRST_FORMAT);
    let Some(currency) = currency.filter(|_| is_explained) else { return document };
    let products = document.get_mut("products").and_then(Value::as_array_mut);
    for line in products.into_iter().flatten().filter_map(|product| product.get_mut("line_items")?.as_array_mut()).flatten() {
        let quantity = decimal(&line["quantity"]).map(|quantity| quantity.to_string()).unwrap_or_default();
        let unit = unit_of(&quantity, line["unit"].as_str().unwrap_or_default());
        let steps = calculation(line, currency).map(|calculation| calculation.steps(currency)).unwrap_or_default();
        let steps: Vec<Value> = steps.iter().map(|step| Value::from(step.in_english(&unit))).collect();
        if let Some(fields) = line.as_object_mut() {
            fields.insert("steps".to_owned(), Value::from(steps));
        }
    }
    document
}

/// Adds the steps of each line's calculation to all documents of the effects of a dry run.
pub(super) fn effects_with_steps(mut effects: Value) -> Value {
    let lists = effects.as_object_mut().into_iter().flat_map(Map::values_mut).filter_map(Value::as_array_mut);
    for document in lists.flatten() {
        *document = with_steps(document.take());
    }
    effects
}

/// Returns the calculation of a line; `None` if a factor isn't as the API shows it.
fn calculation(line: &Value, currency: Currency) -> Option<LineCalculation> {
    let shares = list(&line["quantities"]).filter(|quantity| !quantity["days"].is_null());
    let minimum_fee = match decimal(&line["minimum_fee"]) {
        Some(_) => Some(MinimumFeeCalculation {
            fee: price(&line["minimum_fee"])?,
            billed: money(&line["billed_for_minimum_fee"], currency)?,
            excluded: list(&line["excluded_from_minimum_fee"]).map(|line| excluded(line, currency)).collect::<Option<_>>()?,
        }),
        None => None,
    };
    Some(LineCalculation {
        usage_quantity: decimal(&line["usage_quantity"]),
        included_quantity: decimal(&line["included_quantity"]),
        prepaid_quantity: decimal(&line["prepaid_quantity"]),
        billable_quantity: decimal(&line["billable_quantity"]),
        unit_price: decimal(&line["unit_price"]).and_then(|price| SignedPrice::parse(&price.to_string()).ok()),
        tiers: list(&line["tiers"]).map(tier).collect::<Option<_>>()?,
        packages: packages(&line["packages"]),
        percentage: percentage(&line["percentage"]),
        quantities: shares.map(|quantity| share(quantity, currency)).collect::<Option<_>>()?,
        proration: proration(&line["proration"]),
        minimum: decimal(&line["minimum"]),
        maximum: decimal(&line["maximum"]),
        minimum_fee,
        previously: previously(&line["previously"], currency),
        unissued: unissued(&line["unissued"], currency),
    })
}

fn list(values: &Value) -> impl Iterator<Item = &Value> {
    values.as_array().into_iter().flatten()
}

/// Returns a number with all its digits.
fn decimal(number: &Value) -> Option<Decimal> {
    Decimal::from_str_exact(&number.as_number()?.to_string()).ok()
}

/// Returns an unrounded result with all its digits.
fn wide(number: &Value) -> Option<WideDecimal> {
    WideDecimal::parse(&number.as_number()?.to_string())
}

fn price(number: &Value) -> Option<Price> {
    Price::parse(&decimal(number)?.to_string()).ok()
}

fn quantity(number: &Value) -> Option<Quantity> {
    Quantity::new(decimal(number)?).ok()
}

fn money(number: &Value, currency: Currency) -> Option<Money> {
    Money::round(decimal(number)?, currency).ok()
}

fn whole(number: &Value) -> Option<u32> {
    u32::try_from(number.as_u64()?).ok()
}

fn tier(tier: &Value) -> Option<CalculatedTier> {
    Some(CalculatedTier {
        from: decimal(&tier["from"])?,
        up_to: decimal(&tier["up_to"]),
        quantity: wide(&tier["quantity"])?,
        unit_price: price(&tier["unit_price"])?,
        flat_amount: price(&tier["flat_amount"])?,
        amount: wide(&tier["amount"])?,
    })
}

fn packages(packages: &Value) -> Option<PackageCalculation> {
    Some(PackageCalculation {
        count: decimal(&packages["count"])?,
        size: quantity(&packages["size"])?,
        price: price(&packages["price"])?,
    })
}

fn percentage(percentage: &Value) -> Option<PercentageCalculation> {
    Some(PercentageCalculation {
        rate: Percentage::parse(&decimal(&percentage["rate"])?.to_string()).ok()?,
        base: decimal(&percentage["base"])?,
        fixed_amount: price(&percentage["fixed_amount"])?,
        count: percentage["count"].as_u64()?,
    })
}

fn proration(proration: &Value) -> Option<Proration> {
    Some(Proration { days: whole(&proration["days"])?, of_days: whole(&proration["of_days"])? })
}

fn share(share: &Value, currency: Currency) -> Option<QuantityShare> {
    Some(QuantityShare {
        from: parse_date(share["from"].as_str()?).ok()?,
        to: parse_date(share["to"].as_str()?).ok()?,
        quantity: quantity(&share["quantity"])?,
        days: whole(&share["days"])?,
        of_days: whole(&share["of_days"])?,
        tiers: list(&share["tiers"]).map(tier).collect::<Option<_>>()?,
        packages: packages(&share["packages"]),
        amount: money(&share["amount"], currency)?,
    })
}

fn previously(previously: &Value, currency: Currency) -> Option<PreviouslyBilled> {
    Some(PreviouslyBilled {
        quantity: decimal(&previously["quantity"]),
        amount: money(&previously["amount"], currency)?,
        documents: numbers(&previously["documents"]),
    })
}

fn unissued(unissued: &Value, currency: Currency) -> Option<UnissuedAmount> {
    Some(UnissuedAmount { amount: money(&unissued["amount"], currency)?, documents: numbers(&unissued["documents"]) })
}

fn numbers(numbers: &Value) -> Vec<DocumentNumber> {
    list(numbers).filter_map(|number| DocumentNumber::parse(number.as_str()?)).collect()
}

fn excluded(line: &Value, currency: Currency) -> Option<ExcludedAmount> {
    Some(ExcludedAmount { name: OneLine::parse(line["name"].as_str()?).ok()?, amount: money(&line["amount"], currency)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps of a line with these fields.
    fn steps(line: &str) -> Vec<String> {
        let document = format!(r#"{{"currency":"EUR","format":3,"products":[{{"line_items":[{line}]}}]}}"#);
        let shown = with_steps(serde_json::from_str(&document).expect("JSON"));
        let steps = shown["products"][0]["line_items"][0]["steps"].as_array().expect("steps").clone();
        steps.iter().map(|step| step.as_str().expect("a text").to_owned()).collect()
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
            (
                r#"{"minimum_fee":100,"billed_for_minimum_fee":89.00}"#.to_owned(),
                vec!["minimum fee 100, 89.00 billed, 11.00 missing"],
            ),
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
                vec!["minimum fee 100, 89.00 counted, not counted: Set-up 250.00, 11.00 missing"],
            ),
        ];
        for (line, expected) in rows {
            assert_eq!(steps(&line), expected, "{line}");
        }
    }

    #[test]
    fn documents_that_a_dry_run_opens_have_steps() {
        let seats = serde_json::json!({"billable_quantity": 5, "unit_price": 12});
        let document = serde_json::json!({"currency": "EUR", "format": 4, "products": [{"line_items": [seats]}]});
        let effects = serde_json::json!({"dry_run": true, "changes": [{"currency": "EUR"}], "opened": [document], "before": []});
        let shown = effects_with_steps(effects);
        assert_eq!(shown["opened"][0]["products"][0]["line_items"][0]["steps"], serde_json::json!(["5 × 12 = 60"]));
        assert_eq!(shown["changes"], serde_json::json!([{"currency": "EUR"}]));
    }

    #[test]
    fn older_documents_have_no_steps() {
        let document = serde_json::json!({"currency": "EUR", "format": 2, "products": [{"line_items": [{"amount": 1}]}]});
        assert_eq!(with_steps(document.clone()), document);
        assert_eq!(with_steps(Value::Null), Value::Null);
    }
}
