//! The page of a pricing: line items, price charts over quantity, a price calculator and contracts. Also the preview of a
//! pricing.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;

use crate::chart::{Point, line, stepped};
use crate::contract::price;
use crate::effects::{AGAIN, CONFIRMED};
use crate::figure::{ONE, billionths, digits};
use crate::list::table;
use crate::listings::CONTRACTS;
use crate::parts::{amount_text, changes, facts, grouped, href, isolated, link, money, name, number, query, section, words};
use crate::price_table::{PriceTable, add_price, amount_of};
use billing_api::dto::prices::TierJson;
use billing_api::dto::pricings::{LineItemJson, PricingJson, PricingRateJson};
use billing_api::dto::wire::ExactNumber;
use billing_api::json_view::{JsonAnswer, JsonView};

/// Maximum number of line items whose prices determine the quantities of the charts.
const MAX_DRAWN: usize = 4;
/// Maximum number of charts.
const MAX_CHARTS: usize = 20;
/// Maximum number of quantities per rating request of the API.
const MAX_QUANTITIES: usize = 200;
/// Approximate maximum number of rated amounts on a page: the API rates all line items at each quantity.
const MAX_RATED: usize = 10_000;
/// Minimum number of quantities for each line item that determines them.
const FEWEST: usize = 10;
/// Approximate number of evenly spaced points in a chart.
const EVEN: i128 = 20;
/// Default end of a chart's quantity axis.
const USUAL_END: i128 = 1000 * ONE;
/// Number of packages in a chart.
const PACKAGES: i128 = 8;
/// Maximum number of packages that a chart draws as steps. Smaller steps would look like a slope.
const MAX_STEPS: i128 = 40;
/// Number of example quantities in a preview.
const EXAMPLES: usize = 6;

/// API responses for the page of a pricing.
#[derive(Clone, Debug)]
pub struct PricingAnswers {
    /// The pricing.
    pub pricing: JsonAnswer<PricingJson>,
    /// The rated amounts of [`quantities`]; null if rating failed.
    pub rates: JsonAnswer<Vec<PricingRateJson>>,
    /// The requested quantity as entered.
    pub quantity: String,
    /// The amount for that quantity, or the error.
    pub asked: Option<Result<JsonAnswer<PricingRateJson>, String>>,
    /// Some of the contracts with this pricing.
    pub contracts: Value,
    /// Link to the edit form, if editing is possible.
    pub edit: Option<String>,
}

impl PricingAnswers {
    /// Returns the amounts for the requested quantity.
    fn rate(&self) -> Option<JsonView<'_, PricingRateJson>> {
        self.asked.as_ref().and_then(|asked| asked.as_ref().ok()).map(JsonAnswer::view)
    }
}

/// A pricing that awaits confirmation.
#[derive(Clone, Debug)]
pub struct PricePreview {
    /// Page title.
    pub title: String,
    /// One sentence about the effect.
    pub tells: &'static str,
    /// The pricing as a request.
    pub pricing: JsonAnswer<PricingJson>,
    /// The rated amounts of [`quantities`].
    pub rates: JsonAnswer<Vec<PricingRateJson>>,
    /// Target of the form.
    pub action: String,
    /// Button label.
    pub button: &'static str,
    /// All submitted fields.
    pub submitted: Vec<(String, String)>,
    /// Target of the cancel link.
    pub back: String,
}

/// Returns the line items that determine the quantities of the charts. The pricing can be a request, in which fields can be
/// missing. A table of prices by attributes has no charts.
fn drawn(pricing: JsonView<'_, PricingJson>) -> impl Iterator<Item = JsonView<'_, LineItemJson>> {
    PriceTable::all(pricing).1.into_iter().filter(|item| item.kind().is("USAGE")).take(MAX_DRAWN)
}

fn exactly<T>(at: JsonView<'_, T>) -> Option<i128> {
    billionths(&at.to_text()).filter(|number| *number > 0)
}

/// The chart of a line item.
struct Shape {
    /// Quantities where the price bends or jumps.
    bends: Vec<i128>,
    /// Bounds of the packages, if the price has steps that are wide enough to be drawn.
    steps: Vec<i128>,
    /// End of the quantity axis.
    end: i128,
}

fn shape(item: JsonView<'_, LineItemJson>, asked: Option<i128>) -> Shape {
    let (price, included) = (item.price(), exactly(item.included_quantity()).unwrap_or_default());
    let tiers = price.tiers().items().filter_map(|tier| exactly(tier.up_to()));
    let mut bends: Vec<i128> = tiers.map(|bound| bound.saturating_add(included)).collect();
    bends.extend(exactly(item.prepaid_quantity()).into_iter().chain((included > 0).then_some(included)));
    let size = exactly(price.package_size());
    let bound = |size: i128, count: i128| size.saturating_mul(count).saturating_add(included);
    let last = bends.iter().copied().max();
    let usual = match (size, last) {
        (Some(size), last) => bound(size, PACKAGES).max(last.unwrap_or_default()),
        (None, Some(last)) => last.saturating_add(last / 2),
        (None, None) => USUAL_END,
    };
    let end = usual.max(asked.map_or(0, |asked| asked.saturating_add(asked / 5)));
    let packages = size.map_or(0, |size| (end - included) / size);
    let steps = size.filter(|_| packages <= MAX_STEPS).into_iter();
    let steps = steps.flat_map(|size| (1..=packages).map(move |count| bound(size, count))).collect();
    Shape { bends, steps, end }
}

/// Returns the quantities of a line item's chart. Bends come first, because the number of quantities is limited.
fn along(item: JsonView<'_, LineItemJson>, asked: Option<i128>) -> impl Iterator<Item = i128> {
    let Shape { bends, steps, end } = shape(item, asked);
    let just_after = (end / 1000).max(1);
    // Between the bounds of packages, the price is constant.
    let even = if steps.is_empty() { EVEN } else { 0 };
    let even = (1..even).map(move |step| end / EVEN * step);
    let bends: Vec<i128> = bends.into_iter().flat_map(|bend| [bend, bend.saturating_add(just_after)]).collect();
    [0, end].into_iter().chain(steps).chain(bends).chain(even).filter(move |quantity| *quantity <= end)
}

fn is_asked(quantity: &str) -> Option<i128> {
    billionths(quantity).filter(|number| *number > 0)
}

/// Returns the quantities to rate for the charts of a pricing's page; an empty list without charts.
pub fn quantities(pricing: JsonView<'_, PricingJson>, asked: &str) -> Vec<String> {
    let rated = pricing.line_items().items().filter(|item| item.kind().is("USAGE")).count();
    let most = MAX_QUANTITIES.min(MAX_RATED / rated.max(1));
    let items: Vec<JsonView<'_, LineItemJson>> = drawn(pricing).take(most / FEWEST).collect();
    let each = most / items.len().max(1);
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
    let at = answers.pricing.view();
    let (reference, currency) = (at.product_pricing_ref().to_text(), at.currency().to_text());
    let (tables, others) = PriceTable::all(at);
    html! {
        h1 { (name(at.name())) }
        @if let Some(edit) = &answers.edit { p { a.button href=(edit) { "Edit" } } }
        (facts(&[
            ("Reference", html! { code { (reference) } }),
            ("Currency", html! { (currency) }),
            ("Minimum fee", money(at.minimum_fee(), &currency)),
        ]))
        @if at.line_items().items().any(|item| item.kind().is("USAGE")) { (calculator(answers, &reference, &others)) }
        @for table in &tables {
            (section(&html! { "Prices of " (isolated(&table.usage_product_ref)) }, &html! {
                @if answers.edit.is_some() { p { a.button href=(add_price(&reference, &table.usage_product_ref, &[])) { "Add price" } } }
                (table.markup(&currency, answers.rate()))
            }))
        }
        @for item in charted(others) {
            (section(&name(item.0.name()), &html! {
                @if let (Some(product), true) = (metered(item.0), answers.edit.is_some()) {
                    p { a href=(add_price(&reference, &product, &[])) { "Add price by attribute" } }
                }
                (line_item(item, &currency, answers))
            }))
        }
        (section("Contracts with this pricing", &html! {
            @if JsonView::<Value>::of(&answers.contracts).elements().next().is_some() {
                (table(CONTRACTS.title, CONTRACTS.columns, JsonView::of(&answers.contracts)))
                p { (link(Some(format!("{}?{}", href(&["contracts"]), query(&[("product_pricing_ref", &reference)]))), "All contracts")) }
            } @else { p.muted { "No contracts yet." } }
        }))
        p { (changes("PRICING", &reference)) }
    }
}

/// Renders the form that calculates prices, with the amounts of the line items outside tables.
fn calculator(answers: &PricingAnswers, reference: &str, items: &[JsonView<'_, LineItemJson>]) -> Markup {
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
        @if let Some(rate) = answers.rate() {
            @for item in items.iter().filter_map(|item| amount_of(rate, *item)) {
                p role="status" {
                    (name(item.name())) ": at " (number(rate.quantity())) " → "
                    strong { (money(item.amount(), &item.currency().to_text())) }
                }
            }
        }
    }
}

/// Returns each line item, and whether it has a chart.
fn charted(items: Vec<JsonView<'_, LineItemJson>>) -> impl Iterator<Item = (JsonView<'_, LineItemJson>, bool)> {
    let mut usage = 0;
    items.into_iter().map(move |item| {
        let is_usage = item.kind().is("USAGE");
        usage += usize::from(is_usage);
        (item, is_usage && usage <= MAX_CHARTS)
    })
}

/// Returns the usage product of a line item that can be priced by attributes.
fn metered(item: JsonView<'_, LineItemJson>) -> Option<String> {
    counts_all_events(item).then(|| item.usage_product_ref().to_text())
}

/// Returns whether a line item counts all events of its usage product, with the aggregation of the usage product.
pub fn counts_all_events(item: JsonView<'_, LineItemJson>) -> bool {
    let is_selective = item.condition().is_there() || item.rest().is_true() || item.aggregation().is_there();
    item.kind().is("USAGE") && !is_selective
}

fn line_item((item, has_chart): (JsonView<'_, LineItemJson>, bool), currency: &str, answers: &PricingAnswers) -> Markup {
    let usage_product = item.usage_product_ref();
    let to_product = usage_product.is_there().then(|| href(&["usage-products", &usage_product.to_text()]));
    html! {
        (facts(&[
            ("Line item", html! { code { (item.line_item_id().to_text()) } }),
            ("Kind", html! { (words(&item.kind().to_text())) }),
            ("Price model", html! { (words(&item.price().model().to_text())) }),
            ("Usage product", link(to_product, &usage_product.to_text())),
            ("Aggregation", html! { (words(&item.aggregation().to_text())) }),
            ("Recurrence", html! { (words(&item.recurrence().to_text())) }),
            ("Amount", money(item.price().amount(), currency)),
            ("Unit price", money(item.price().unit_price(), currency)),
            ("Package size", number(item.price().package_size())),
            ("Package price", money(item.price().package_price(), currency)),
            ("Percentage", number(item.price().rate())),
            ("Fee per event", money(item.price().fixed_amount(), currency)),
            ("Included quantity", number(item.included_quantity())),
            ("Prepaid quantity", number(item.prepaid_quantity())),
            ("Minimum amount", money(item.minimum_amount(), currency)),
            ("Maximum amount", money(item.maximum_amount(), currency)),
        ]))
        @if item.price().tiers().items().next().is_some() { (tiers(item, currency)) }
        @if has_chart {
            (over_quantity(item, answers.rates.view(), is_asked(&answers.quantity), answers.rate()))
        }
    }
}

/// Renders the preview of a pricing: its amounts by quantity, or of its fixed line items.
pub fn price_preview(preview: &PricePreview) -> Markup {
    let (pricing, rates) = (preview.pricing.view(), preview.rates.view());
    let currency = pricing.currency().to_text();
    let (tables, others) = PriceTable::all(pricing);
    html! {
        h1 { (preview.title) }
        p { (preview.tells) }
        p.muted { "Preview. Nothing is saved yet." }
        div data-result {
            @for table in &tables { (table.markup(&currency, None)) }
            @for (item, has_chart) in charted(others) {
                @if has_chart {
                    (section(&isolated(&name_of(item)), &html! {
                        (examples(item, rates, &currency))
                        (over_quantity(item, rates, None, None))
                    }))
                } @else {
                    (facts(&[(name_of(item).as_str(), price(item.price(), &currency))]))
                }
            }
        }
        form.actions method="post" action=(preview.action) {
            @for (name, value) in &preview.submitted { input type="hidden" name=(name) value=(value); }
            button name=(CONFIRMED) value="yes" { (preview.button) }
            button.plain name=(AGAIN) value="yes" { "Edit" }
            a href=(preview.back) { "Cancel" }
        }
    }
}

/// Returns the name of a line item of a request, by default its identifier.
fn name_of(item: JsonView<'_, LineItemJson>) -> String {
    let name = item.name();
    if name.is_there() { name.to_text() } else { item.line_item_id().to_text() }
}

/// Renders the amounts of a few quantities.
fn examples(item: JsonView<'_, LineItemJson>, rates: JsonView<'_, Vec<PricingRateJson>>, currency: &str) -> Markup {
    let rated: Vec<(JsonView<'_, ExactNumber>, JsonView<'_, ExactNumber>)> =
        rates.items().filter_map(|rate| Some((rate.quantity(), amount_of(rate, item)?.amount()))).collect();
    let every = rated.len().div_ceil(EXAMPLES).max(1);
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Examples" {
            table.narrow {
                thead { tr { th.amount scope="col" { "Quantity in a full period" } th.amount scope="col" { "Amount" } } }
                tbody { @for (quantity, amount) in rated.iter().step_by(every) {
                    tr { td.amount { (number(*quantity)) } td.amount { (money(*amount, currency)) } }
                } }
            }
        }
    }
}

fn tiers(item: JsonView<'_, LineItemJson>, currency: &str) -> Markup {
    let mut from = "0".to_owned();
    let rows = item.price().tiers().items().map(|tier| {
        let to = tier.up_to().to_text();
        (std::mem::replace(&mut from, to), tier)
    });
    let rows: Vec<(String, JsonView<'_, TierJson>)> = rows.collect();
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Tiers" {
            table {
                thead { tr { th scope="col" { "More than" } th scope="col" { "Up to" } th.amount scope="col" { "Unit price" } th.amount scope="col" { "Flat fee" } } }
                tbody { @for (from, tier) in rows { tr {
                    td { (grouped(&from)) }
                    td { @if tier.up_to().is_there() { (number(tier.up_to())) } @else { "Unlimited" } }
                    td.amount { (money(tier.unit_price(), currency)) }
                    td.amount { (money(tier.flat_amount(), currency)) }
                } } }
            }
        }
    }
}

/// Renders the chart of a line item. `asked` is a quantity within the chart, and `marked` its rated amount.
fn over_quantity(
    item: JsonView<'_, LineItemJson>,
    rates: JsonView<'_, Vec<PricingRateJson>>,
    asked: Option<i128>,
    marked: Option<JsonView<'_, PricingRateJson>>,
) -> Markup {
    let Shape { steps, end, .. } = shape(item, asked);
    let point = |rate: JsonView<'_, PricingRateJson>| {
        let rated = amount_of(rate, item)?;
        Some(Point { x: rate.quantity().to_text(), y: rated.amount().to_text() })
    };
    let is_within = |point: &Point| billionths(&point.x).is_some_and(|quantity| quantity <= end);
    let points: Vec<Point> = rates.items().filter_map(point).filter(is_within).collect();
    let marked = marked.and_then(point);
    let currency = rates.items().next().and_then(|rate| amount_of(rate, item)).map(|rated| rated.currency().to_text());
    let drawn = if steps.is_empty() { points.clone() } else { stepped(&points) };
    let caption =
        |point: &Point| format!("at {} → {}", grouped(&point.x), amount_text(&point.y, currency.as_deref().unwrap_or_default()));
    html! {
        @if points.len() > 1 {
            figure {
                figcaption.muted { "Price by quantity in a full period, " (currency.as_deref().unwrap_or_default()) }
                (line(&format!("Chart of {}", name_of(item)), &drawn, marked.as_ref(), "quantity", &marked.as_ref().map(caption).unwrap_or_default()))
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
        let asked = quantities(JsonView::of(&plan()), "");
        for bend in ["0", "100", "101.5", "1000", "1001.5", "1500"] {
            assert!(asked.iter().any(|quantity| quantity == bend), "{bend}: {asked:?}");
        }
        assert!(
            quantities(JsonView::of(&plan()), "5000").contains(&"6000".to_owned()),
            "what is asked for is within the drawing"
        );
        let bare = json!({"line_items": [{"kind": "USAGE", "price": {"model": "PER_UNIT", "unit_price": 1}}]});
        assert_eq!(quantities(JsonView::of(&bare), "").last().map(String::as_str), Some("1000"));
        assert!(quantities(JsonView::of(&json!({"line_items": [plan()["line_items"][0]]})), "").is_empty());
        let tiers: Vec<Value> = (1..100).map(|bound| json!({"up_to": bound * 7, "unit_price": 1})).collect();
        let item = json!({"kind": "USAGE", "price": {"model": "VOLUME", "tiers": tiers}});
        for (items, least) in [(vec![item.clone()], 50), (vec![item.clone(); 9], 50), (vec![item; 500], FEWEST)] {
            let most = MAX_QUANTITIES.min(MAX_RATED / items.len());
            let asked = quantities(JsonView::of(&json!({"line_items": items})), "12");
            assert!((least..=most).contains(&asked.len()), "{}", asked.len());
        }
        let package =
            json!({"line_items": [{"kind": "USAGE", "price": {"model": "PACKAGE", "package_size": 10, "package_price": 5}}]});
        assert_eq!(quantities(JsonView::of(&package), ""), ["0", "10", "20", "30", "40", "50", "60", "70", "80"]);
        assert!(quantities(JsonView::of(&package), "300").contains(&"360".to_owned()), "more packages are still steps");
        let many = quantities(JsonView::of(&package), "4000");
        assert!(many.contains(&"4800".to_owned()) && many.len() < 50, "{many:?}");
        assert!(
            quantities(JsonView::of(&json!({"line_items": [{}, {"kind": "USAGE"}]})), "").contains(&"1000".to_owned()),
            "a request"
        );
    }

    #[test]
    fn prices_by_attributes_are_a_table_whose_last_row_is_the_rest() {
        let item = |id: &str, condition: Value, unit_price: f64| {
            json!({"line_item_id": id, "name": id, "kind": "USAGE", "usage_product_ref": "tokens", "included_quantity": 0,
                "where": condition, "price": {"model": "PER_UNIT", "unit_price": unit_price}})
        };
        let mut rest = item("other", Value::Null, 7.0);
        rest["rest"] = json!(true);
        let mut requests = item("requests", Value::Null, 0.01);
        requests["aggregation"] = json!("COUNT");
        let items = json!([
            rest,
            requests,
            item("in", json!({"kind": ["input"], "model": ["gpt-5", "<b>"]}), 2.0),
            item("mini", json!({"model": ["gpt-5-mini"]}), 3.0)
        ]);
        let rated = |id: &str, amount: u32| json!({"line_item_id": id, "name": id, "currency": "EUR", "amount": amount});
        let answers = PricingAnswers {
            pricing: json!({"product_pricing_ref": "models", "name": "Models", "currency": "EUR", "line_items": items}).into(),
            rates: json!([]).into(),
            quantity: "4".to_owned(),
            asked: Some(Ok(
                json!({"quantity": 4, "line_items": [rated("in", 8), rated("other", 28), rated("requests", 5)]}).into()
            )),
            contracts: json!([]),
            edit: Some("/console/edit/pricings/models".to_owned()),
        };
        let page = pricing(&answers).into_string();
        let (_, table) = page.split_once("aria-label=\"Prices of tokens\"").expect("a table");
        let (table, below) = table.split_once("</table>").expect("a table");
        assert!(table.contains("<th scope=\"col\">kind</th><th scope=\"col\">model</th>"), "{table}");
        let rows: Vec<&str> = table.split("<tr>").skip(2).collect();
        assert_eq!(rows.len(), 3, "{table}");
        for (row, parts) in rows.iter().zip([
            ["<td>input</td><td>gpt-5, &lt;b&gt;</td>", ">2.00 ", ">8.00 "],
            [">any</span></td><td>gpt-5-mini</td>", ">3.00 ", "mini"],
            ["colspan=\"2\">All other labels", ">7.00 ", ">28.00 "],
        ]) {
            assert!(parts.iter().all(|part| row.contains(part)), "{row}");
        }
        assert!(page.contains("/console/pricings/models/add?usage_product_ref=tokens"), "{page}");
        assert!(below.contains("<h2>requests</h2>") && below.contains("Count") && !page.contains("in: at"), "{below}");
        assert_eq!(quantities(answers.pricing.view(), "").last().map(String::as_str), Some("1000"), "the fee has a chart");
    }

    #[test]
    fn packages_are_drawn_as_steps() {
        let rate = |quantity: u32, amount: &str| json!({"quantity": quantity, "line_items": [{"line_item_id": "calls", "name": "Calls", "currency": "EUR", "amount": amount}]});
        let item = json!({"line_item_id": "calls", "name": "Calls", "kind": "USAGE", "price": {"model": "PACKAGE", "package_size": "10", "package_price": "5"}});
        let preview = PricePreview {
            title: "New pricing".to_owned(),
            tells: "Bills packages.",
            pricing: json!({"currency": "EUR", "line_items": [item]}).into(),
            rates: json!([rate(0, "0.00"), rate(10, "5.00"), rate(20, "10.00")]).into(),
            action: "/console/new/pricings?model=PACKAGE".to_owned(),
            button: "Create",
            submitted: vec![("name".to_owned(), "<b>".to_owned())],
            back: "/console/pricings".to_owned(),
        };
        let page = price_preview(&preview).into_string();
        let (_, line) = page.split_once("<polyline class=\"line\" points=\"").expect("a line");
        let points: Vec<&str> = line.split('"').next().unwrap_or_default().split(' ').collect();
        let places: Vec<(&str, &str)> = points.iter().filter_map(|point| point.split_once(',')).collect();
        assert_eq!(places.len(), 5, "{points:?}");
        for pair in places.windows(2) {
            assert!(pair[0].0 == pair[1].0 || pair[0].1 == pair[1].1, "neither vertical nor horizontal: {points:?}");
        }
        assert!(page.contains("Nothing is saved yet.") && page.contains("data-result") && page.contains(">Create<"), "{page}");
        assert!(page.contains("value=\"&lt;b&gt;\"") && page.contains("value=\"10.00\""), "{page}");
    }

    #[test]
    fn what_is_drawn_and_marked_is_what_was_rated() {
        let exact = |text: &str| serde_json::from_str::<Value>(text).expect(text);
        let rate = |quantity: &str, amount: &str| json!({"quantity": exact(quantity), "line_items": [{"line_item_id": "calls", "name": "Calls", "currency": "EUR", "amount": exact(amount)}]});
        let answers = PricingAnswers {
            pricing: plan().into(),
            rates: json!([rate("0", "0.00"), rate("100", "10.00"), rate("1000", "55.00"), rate("1800", "63.00")]).into(),
            quantity: "1500".to_owned(),
            asked: Some(Ok(rate("1500", "60.00").into())),
            contracts: json!([]),
            edit: None,
        };
        let page = pricing(&answers).into_string();
        assert!(page.contains("at 1,500 → 60.00 EUR") && page.contains("<circle"), "{page}");
        assert!(page.contains("<td class=\"amount\">1,800</td><td class=\"amount\">63.00</td>"), "{page}");
        assert_eq!(page.matches("<polyline").count(), 1, "a fixed line item isn't drawn");
        assert!(!page.contains("<b>"), "{page}");
        let wrong = PricingAnswers { asked: Some(Err("must be a number".to_owned())), rates: json!([]).into(), ..answers };
        let page = pricing(&wrong).into_string();
        assert!(
            page.contains("aria-invalid=\"true\"") && page.contains("must be a number") && page.contains("cannot be drawn"),
            "{page}"
        );
    }
}
