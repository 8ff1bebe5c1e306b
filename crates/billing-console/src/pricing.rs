//! The page of a pricing: line items, price charts over quantity, a price calculator and contracts.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Point, line};
use crate::figure::{ONE, billionths, digits};
use crate::json_view::JsonView;
use crate::list::table;
use crate::listings::CONTRACTS;
use crate::parts::{changes, facts, grouped, href, link, money, number, query, section, words};

/// Maximum number of line items with a chart.
const MAX_DRAWN: usize = 4;
/// Maximum number of quantities per rating request of the API.
const MAX_QUANTITIES: usize = 200;
/// Approximate number of evenly spaced points in a chart.
const EVEN: i128 = 20;
/// Default end of a chart's quantity axis.
const USUAL_END: i128 = 1000 * ONE;
/// Number of packages in a chart.
const PACKAGES: i128 = 8;

/// API responses for the page of a pricing.
#[derive(Clone, Debug)]
pub struct PricingAnswers {
    /// The pricing.
    pub pricing: Value,
    /// The rated amounts of [`quantities`]; null if rating failed.
    pub rates: Value,
    /// The requested quantity as entered.
    pub quantity: String,
    /// The amount for that quantity, or the error.
    pub asked: Option<Result<Value, String>>,
    /// Some of the contracts with this pricing.
    pub contracts: Value,
    /// Link to the edit form, if editing is possible.
    pub edit: Option<String>,
}

/// Returns the line items with a chart.
fn drawn(pricing: JsonView<'_>) -> impl Iterator<Item = JsonView<'_>> {
    pricing.at("line_items").items().filter(|item| item.at("kind").is("USAGE")).take(MAX_DRAWN)
}

fn exactly(at: JsonView<'_>) -> Option<i128> {
    billionths(&at.text()).filter(|number| *number > 0)
}

/// Returns the quantities where the price bends or jumps, and the end of the chart.
fn shape(item: JsonView<'_>, asked: Option<i128>) -> (Vec<i128>, i128) {
    let included = exactly(item.at("included_quantity")).unwrap_or_default();
    let tiers =
        item.at("price").at_any("tiers").items().filter_map(|tier| exactly(tier.at("up_to"))).map(|bound| bound + included);
    let packages = exactly(item.at("price").at_any("package_size")).into_iter();
    let packages = packages.flat_map(|size| (1..=PACKAGES).map(move |count| size.saturating_mul(count).saturating_add(included)));
    let mut bends: Vec<i128> = tiers.chain(packages).chain(exactly(item.at("prepaid_quantity"))).collect();
    bends.extend((included > 0).then_some(included));
    let last = bends.iter().copied().max();
    let end = last.map_or(USUAL_END, |last| last.saturating_add(last / 2));
    (bends, end.max(asked.map_or(0, |asked| asked.saturating_add(asked / 5))))
}

/// Returns the quantities of a line item's chart. Bends come first, because the number of quantities is limited.
fn along(item: JsonView<'_>, asked: Option<i128>) -> impl Iterator<Item = i128> {
    let (bends, end) = shape(item, asked);
    let just_after = (end / 1000).max(1);
    let bends: Vec<i128> = bends.into_iter().flat_map(|bend| [bend, bend.saturating_add(just_after)]).collect();
    let even = (0..=EVEN).map(move |step| end / EVEN * step);
    [0, end].into_iter().chain(bends).chain(even).filter(move |quantity| *quantity <= end)
}

fn is_asked(quantity: &str) -> Option<i128> {
    billionths(quantity).filter(|number| *number > 0)
}

/// Returns the quantities to rate for the charts of a pricing's page; an empty list without charts.
pub fn quantities(pricing: &Value, asked: &str) -> Vec<String> {
    let items: Vec<JsonView<'_>> = drawn(JsonView(pricing)).collect();
    let each = MAX_QUANTITIES / items.len().max(1);
    let mut all = BTreeSet::new();
    for item in items {
        let mut own = BTreeSet::new();
        for quantity in along(item, is_asked(asked)) {
            if own.len() < each {
                own.insert(quantity);
            }
        }
        all.extend(own);
    }
    all.into_iter().map(digits).collect()
}

/// Renders the page of a pricing.
pub fn pricing(answers: &PricingAnswers) -> Markup {
    let at = JsonView(&answers.pricing);
    let (reference, currency) = (at.at("product_pricing_ref").text(), at.at("currency").text());
    html! {
        h1 { (at.at("name").text()) }
        @if let Some(edit) = &answers.edit { p { a.button href=(edit) { "Edit" } } }
        (facts(&[
            ("Reference", html! { code { (reference) } }),
            ("Currency", html! { (currency) }),
            ("Minimum fee", money(at.at("minimum_fee"), &currency)),
        ]))
        @if drawn(at).next().is_some() { (calculator(answers, &reference)) }
        @for item in at.at("line_items").items() {
            (section(&item.at("name").text(), &line_item(item, &currency, answers)))
        }
        (section("Contracts with this pricing", &html! {
            @if JsonView(&answers.contracts).items().next().is_some() {
                (table(CONTRACTS.title, CONTRACTS.columns, JsonView(&answers.contracts)))
                p { (link(Some(format!("{}?{}", href(&["contracts"]), query(&[("product_pricing_ref", &reference)]))), "All contracts")) }
            } @else { p.muted { "No contracts yet." } }
        }))
        p { (changes("PRICING", &reference)) }
    }
}

fn calculator(answers: &PricingAnswers, reference: &str) -> Markup {
    let refused = match &answers.asked {
        Some(Err(why)) => Some(why),
        Some(Ok(_)) | None => None,
    };
    html! {
        form.filters method="get" action=(href(&["pricings", reference])) {
            div.field {
                label for="quantity" { "Quantity in a full period" }
                input #quantity name="quantity" value=(answers.quantity) inputmode="decimal" maxlength="40" required
                    aria-describedby=[refused.map(|_| "quantity-wrong")] aria-invalid=[refused.map(|_| "true")];
                @if let Some(why) = refused { p.wrong #quantity-wrong { (why) } }
            }
            button { "Calculate price" }
        }
        @if let Some(Ok(rate)) = &answers.asked {
            @for item in JsonView(rate).at("line_items").items() {
                p role="status" {
                    (item.at("name").text()) ": at " (number(JsonView(rate).at("quantity"))) " → "
                    strong { (money(item.at("amount"), &item.at("currency").text())) }
                }
            }
        }
    }
}

fn line_item(item: JsonView<'_>, currency: &str, answers: &PricingAnswers) -> Markup {
    let usage_product = item.at("usage_product_ref");
    let to_product = usage_product.is_there().then(|| href(&["usage-products", &usage_product.text()]));
    html! {
        (facts(&[
            ("Line item", html! { code { (item.at("line_item_id").text()) } }),
            ("Kind", html! { (words(&item.at("kind").text())) }),
            ("Price model", html! { (words(&item.at("price.model").text())) }),
            ("Usage product", link(to_product, &usage_product.text())),
            ("Recurrence", html! { (words(&item.at("recurrence").text())) }),
            ("Amount", money(item.at("price").at_any("amount"), currency)),
            ("Unit price", money(item.at("price").at_any("unit_price"), currency)),
            ("Package size", number(item.at("price").at_any("package_size"))),
            ("Package price", money(item.at("price").at_any("package_price"), currency)),
            ("Percentage", number(item.at("price").at_any("rate"))),
            ("Fee per event", money(item.at("price").at_any("fixed_amount"), currency)),
            ("Included quantity", number(item.at("included_quantity"))),
            ("Prepaid quantity", number(item.at("prepaid_quantity"))),
            ("Minimum amount", money(item.at("minimum_amount"), currency)),
            ("Maximum amount", money(item.at("maximum_amount"), currency)),
        ]))
        @if item.at("price").at_any("tiers").items().next().is_some() { (tiers(item, currency)) }
        @if item.at("kind").is("USAGE") { (over_quantity(item, answers)) }
    }
}

fn tiers(item: JsonView<'_>, currency: &str) -> Markup {
    let mut from = "0".to_owned();
    let rows = item.at("price").at_any("tiers").items().map(|tier| {
        let to = tier.at("up_to").text();
        (std::mem::replace(&mut from, to), tier)
    });
    let rows: Vec<(String, JsonView<'_>)> = rows.collect();
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Tiers" {
            table {
                thead { tr { th scope="col" { "More than" } th scope="col" { "Up to" } th.amount scope="col" { "Unit price" } th.amount scope="col" { "Flat fee" } } }
                tbody { @for (from, tier) in rows { tr {
                    td { (grouped(&from)) }
                    td { @if tier.at("up_to").is_there() { (number(tier.at("up_to"))) } @else { "Unlimited" } }
                    td.amount { (money(tier.at("unit_price"), currency)) }
                    td.amount { (money(tier.at("flat_amount"), currency)) }
                } } }
            }
        }
    }
}

/// Returns the rated amount of a line item.
fn amount_of<'v>(rate: JsonView<'v>, item: JsonView<'_>) -> Option<JsonView<'v>> {
    let id = item.at("line_item_id").text();
    rate.at("line_items").items().find(|rated| rated.at("line_item_id").is(&id))
}

fn over_quantity(item: JsonView<'_>, answers: &PricingAnswers) -> Markup {
    let asked = is_asked(&answers.quantity);
    let (_, end) = shape(item, asked);
    let point = |rate: JsonView<'_>| {
        let rated = amount_of(rate, item)?;
        Some(Point { x: rate.at("quantity").text(), y: rated.at("amount").text() })
    };
    let is_within = |point: &Point| billionths(&point.x).is_some_and(|quantity| quantity <= end);
    let points: Vec<Point> = JsonView(&answers.rates).items().filter_map(point).filter(is_within).collect();
    let marked = answers.asked.as_ref().and_then(|asked| asked.as_ref().ok()).and_then(|rate| point(JsonView(rate)));
    let currency =
        JsonView(&answers.rates).items().next().and_then(|rate| amount_of(rate, item)).map(|rated| rated.at("currency").text());
    let told =
        |point: &Point| format!("at {} → {} {}", grouped(&point.x), grouped(&point.y), currency.as_deref().unwrap_or_default());
    html! {
        @if points.len() > 1 {
            figure {
                figcaption.muted { "Price by quantity in a full period, " (currency.as_deref().unwrap_or_default()) }
                (line(&format!("Chart of {}", item.at("name").text()), &points, marked.as_ref(), "quantity", &marked.as_ref().map(told).unwrap_or_default()))
            }
            details {
                summary { "Show as table" }
                div.scrolls tabindex="0" role="region" aria-label="Price by quantity" {
                    table {
                        thead { tr { th.amount scope="col" { "Quantity" } th.amount scope="col" { "Amount" } } }
                        tbody { @for point in &points { tr { td.amount { (grouped(&point.x)) } td.amount { (grouped(&point.y)) } } } }
                    }
                }
            }
        } @else { p.muted { "The price chart cannot be drawn because values are too large." } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plan() -> Value {
        json!({
            "product_pricing_ref": "plan", "name": "<b>Plan", "currency": "EUR", "minimum_fee": null,
            "line_items": [
                {"line_item_id": "fee", "name": "Fee", "kind": "FIXED", "price": {"model": "FLAT", "amount": 49}},
                {"line_item_id": "calls", "name": "Calls", "kind": "USAGE", "usage_product_ref": "api-calls", "included_quantity": 0,
                 "price": {"model": "GRADUATED", "tiers": [
                    {"up_to": 100, "unit_price": 0.10, "flat_amount": 0},
                    {"up_to": 1000, "unit_price": 0.05, "flat_amount": 0},
                    {"up_to": null, "unit_price": 0.01, "flat_amount": 0}]}},
            ],
        })
    }

    #[test]
    fn every_bend_of_a_price_is_asked_for_and_no_more_than_the_interface_takes() {
        let asked = quantities(&plan(), "");
        for bend in ["0", "100", "101.5", "1000", "1001.5", "1500"] {
            assert!(asked.iter().any(|quantity| quantity == bend), "{bend}: {asked:?}");
        }
        assert!(quantities(&plan(), "5000").contains(&"6000".to_owned()), "what is asked for is within the drawing");
        let bare = json!({"line_items": [{"kind": "USAGE", "price": {"model": "PER_UNIT", "unit_price": 1}}]});
        assert_eq!(quantities(&bare, "").last().map(String::as_str), Some("1000"));
        assert!(quantities(&json!({"line_items": [plan()["line_items"][0]]}), "").is_empty());
        let tiers: Vec<Value> = (1..100).map(|bound| json!({"up_to": bound * 7, "unit_price": 1})).collect();
        let item = json!({"kind": "USAGE", "price": {"model": "VOLUME", "tiers": tiers}});
        for items in [vec![item.clone()], vec![item; 9]] {
            let asked = quantities(&json!({"line_items": items}), "12");
            assert!((50..=MAX_QUANTITIES).contains(&asked.len()), "{}", asked.len());
        }
        let package =
            json!({"line_items": [{"kind": "USAGE", "price": {"model": "PACKAGE", "package_size": 10, "package_price": 5}}]});
        let asked = quantities(&package, "");
        assert!(["10", "10.12", "80"].iter().all(|bend| asked.iter().any(|quantity| quantity == bend)), "{asked:?}");
    }

    #[test]
    fn what_is_drawn_and_marked_is_what_was_rated() {
        let exact = |text: &str| serde_json::from_str::<Value>(text).expect(text);
        let rate = |quantity: &str, amount: &str| json!({"quantity": exact(quantity), "line_items": [{"line_item_id": "calls", "name": "Calls", "currency": "EUR", "amount": exact(amount)}]});
        let answers = PricingAnswers {
            pricing: plan(),
            rates: json!([rate("0", "0.00"), rate("100", "10.00"), rate("1000", "55.00"), rate("1800", "63.00")]),
            quantity: "1500".to_owned(),
            asked: Some(Ok(rate("1500", "60.00"))),
            contracts: json!([]),
            edit: None,
        };
        let page = pricing(&answers).into_string();
        assert!(page.contains("at 1,500 → 60.00 EUR") && page.contains("<circle"), "{page}");
        assert!(page.contains("<td class=\"amount\">1,800</td><td class=\"amount\">63.00</td>"), "{page}");
        assert_eq!(page.matches("<polyline").count(), 1, "a fixed line item isn't drawn");
        assert!(!page.contains("<b>"), "{page}");
        let wrong = PricingAnswers { asked: Some(Err("must be a number".to_owned())), rates: json!([]), ..answers };
        let page = pricing(&wrong).into_string();
        assert!(
            page.contains("aria-invalid=\"true\"") && page.contains("must be a number") && page.contains("cannot be drawn"),
            "{page}"
        );
    }
}
