//! Prices by attributes: the line items of a usage product that labels select, as a table with a column for each label key.

use maud::{Markup, html};

use crate::conditions::entries;
use crate::contract::{limits, price};
use crate::parts::{grouped, href, isolated, money, name, query, words};
use billing_api::dto::pricings::{LineItemJson, PricingJson, PricingRateJson, RatedItemJson};
use billing_api::dto::refused::RefusedUsageJson;
use billing_api::json_view::JsonView;
use serde_json::Value;

/// Prefix of the label keys in the address of the form that adds a row.
pub const LABEL: &str = "label:";

/// The line items of one usage product that labels select.
pub struct PriceTable<'v> {
    /// The usage product.
    pub usage_product_ref: String,
    /// The label keys of the conditions, in the order of the line items.
    pub keys: Vec<&'v str>,
    /// The line items. The one that counts the rest comes last.
    items: Vec<JsonView<'v, LineItemJson>>,
}

impl<'v> PriceTable<'v> {
    /// Returns the tables of a pricing, and its other line items. A line item with `rest` and without siblings is no table.
    pub fn all(pricing: JsonView<'v, PricingJson>) -> (Vec<Self>, Vec<JsonView<'v, LineItemJson>>) {
        let (mut tables, mut others) = (Vec::<Self>::new(), Vec::new());
        for item in pricing.line_items().items().filter(|item| item.condition().is_there()) {
            let usage_product_ref = item.usage_product_ref().to_text();
            let place = tables.iter().position(|table| table.usage_product_ref == usage_product_ref).unwrap_or(tables.len());
            if place == tables.len() {
                tables.push(Self { usage_product_ref, keys: Vec::new(), items: Vec::new() });
            }
            let table = &mut tables[place];
            for (key, _) in item.condition().any().fields() {
                if !table.keys.contains(&key) {
                    table.keys.push(key);
                }
            }
            table.items.push(item);
        }
        for item in pricing.line_items().items().filter(|item| !item.condition().is_there()) {
            let table = tables.iter_mut().find(|table| item.usage_product_ref().is(&table.usage_product_ref));
            match table.filter(|_| item.rest().is_true()) {
                Some(table) => table.items.push(item),
                None => others.push(item),
            }
        }
        (tables, others)
    }

    /// Renders the table, with the amounts at a rated quantity.
    pub(crate) fn markup(&self, currency: &str, rate: Option<JsonView<'_, PricingRateJson>>) -> Markup {
        html! {
            div.scrolls tabindex="0" role="region" aria-label=(format!("Prices of {}", self.usage_product_ref)) {
                table {
                    thead { tr {
                        @for key in &self.keys { th scope="col" { (isolated(key)) } }
                        th scope="col" { "Price" }
                        @if let Some(rate) = rate { th.amount scope="col" { "Amount at " (grouped(&rate.quantity().to_text())) } }
                        th scope="col" { "Line item" }
                    } }
                    tbody { @for item in &self.items { tr {
                        @if item.rest().is_true() {
                            td.muted colspan=(self.keys.len()) { "All other labels" }
                        } @else { @for key in &self.keys { td { (values(*item, key)) } } }
                        td {
                            (price(item.price(), currency))
                            (limits(item.read_as(), currency))
                            @if item.aggregation().is_there() { div.muted { "Aggregation: " (words(&item.aggregation().to_text())) } }
                        }
                        @if let Some(rate) = rate {
                            td.amount { @if let Some(rated) = amount_of(rate, *item) { (money(rated.amount(), currency)) } }
                        }
                        th scope="row" { (name(item.name())) div.muted { code { (item.line_item_id().to_text()) } } }
                    } } }
                }
            }
        }
    }
}

/// Returns the address of the form that adds a row to the table of a usage product.
pub fn add_price(pricing: &str, usage_product: &str, labels: &[(String, String)]) -> String {
    with_labels(&href(&["pricings", pricing, "add"]), &[("usage_product_ref", usage_product)], labels)
}

/// Renders the reason of a rejection. Usage without a price leads to the form that adds one, and usage that a limit rejected to
/// the limits of its customer.
pub(crate) fn reason(rejected: JsonView<'_, RefusedUsageJson>) -> Markup {
    html! {
        (name(rejected.detail()))
        @if rejected.code().is("no_matching_line") { " " a href=(missing_price(rejected)) { "Add price" } }
        @if rejected.code().is("limit_reached") { " " a href=(limits_of(&rejected.customer_ref().to_text())) { "Show limits" } }
    }
}

/// Returns the address of the limits of a customer.
fn limits_of(customer_ref: &str) -> String {
    format!("{}?{}", href(&["limits"]), query(&[("customer_ref", customer_ref)]))
}

/// Returns the address that leads to the form that adds a price, filled with the labels of the latest event.
fn missing_price(rejected: JsonView<'_, RefusedUsageJson>) -> String {
    let example: Value = serde_json::from_str(&rejected.example().to_text()).unwrap_or_default();
    let labels = JsonView::<Value>::of(&example).named("additional_report_data").fields();
    let labels: Vec<_> =
        labels.map(|(key, value)| (key.to_owned(), value.to_text())).filter(|(_, text)| !text.is_empty()).collect();
    let (customer, usage_product) = (rejected.customer_ref().to_text(), rejected.usage_product_ref().to_text());
    let asked = [("customer_ref", customer.as_str()), ("usage_product_ref", usage_product.as_str())];
    with_labels(&href(&["refused", "price"]), &asked, &labels)
}

fn with_labels(page: &str, asked: &[(&str, &str)], labels: &[(String, String)]) -> String {
    let labels: Vec<(String, &str)> = labels.iter().map(|(key, text)| (format!("{LABEL}{key}"), text.as_str())).collect();
    let labels = labels.iter().map(|(name, text)| (name.as_str(), *text));
    format!("{page}?{}", query(&asked.iter().copied().chain(labels).collect::<Vec<_>>()))
}

/// Renders the values of a label key for which a line item applies.
fn values(item: JsonView<'_, LineItemJson>, key: &str) -> Markup {
    let values = entries(item.condition()).find(|(other, _)| *other == key);
    html! { @match values { Some((_, values)) => (isolated(&values)), None => span.muted { "any" } } }
}

/// Returns the rated amount of a line item.
pub(crate) fn amount_of<'v>(
    rate: JsonView<'v, PricingRateJson>,
    item: JsonView<'_, LineItemJson>,
) -> Option<JsonView<'v, RatedItemJson>> {
    let id = item.line_item_id().to_text();
    rate.line_items().items().find(|rated| rated.line_item_id().is(&id))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_without_a_price_leads_to_the_form_with_the_labels_of_the_latest_event() {
        let event = json!({"additional_report_data": {"model": "gpt-6", "size": 1.5, "note": null}}).to_string();
        let rejected = |code: &str, example: &str| {
            let rejected = json!({"code": code, "detail": "no <price>", "customer_ref": "acme", "usage_product_ref": "tokens",
                "example": example});
            reason(JsonView::of(&rejected)).into_string()
        };
        let form = "/console/refused/price?customer_ref=acme&amp;usage_product_ref=tokens";
        let labels = "&amp;label%3Amodel=gpt-6&amp;label%3Asize=1.5";
        let with_link = |labels: &str| format!("no &lt;price&gt; <a href=\"{form}{labels}\">Add price</a>");
        assert_eq!(rejected("no_matching_line", &event), with_link(labels));
        assert_eq!(rejected("no_matching_line", &event[..20]), with_link(""), "a truncated event has no labels");
        assert_eq!(rejected("no_matching_contract", &event), "no &lt;price&gt;");
        let limits = "no &lt;price&gt; <a href=\"/console/limits?customer_ref=acme\">Show limits</a>";
        assert_eq!(rejected("limit_reached", &event), limits);
    }
}
