//! Limits and open holds on the page of their customer.

use maud::{Markup, html};

use crate::contract::product_title;
use crate::figure::billionths;
use crate::parts::{amount_text, day, grouped, href, instant, link, money, name, number, section, words};
use billing_api::dto::contract_view::ContractJson;
use billing_api::dto::holds::{HoldEntryJson, HoldJson};
use billing_api::dto::limits::{AccountCreditJson, CustomerLeftJson, LimitJson};
use billing_api::dto::wire::ExactNumber;
use billing_api::json_view::{JsonAnswer, JsonView};

/// Width and height of a bar, in units of its drawing. The page scales it to the width of its cell.
const WIDTH: i128 = 1_000;
const HEIGHT: i128 = 20;
/// Width of the mark of a threshold.
const MARK: i128 = 6;

/// API responses for the limits and the open holds of a customer.
#[derive(Clone, Debug, Default)]
pub struct LimitAnswers {
    /// The limits with their numbers.
    pub limits: JsonAnswer<Vec<LimitJson>>,
    /// What is left of the limits, with the prepaid credit that is free today; null if no limit counts what the customer owes.
    pub left: JsonAnswer<Vec<CustomerLeftJson>>,
    /// The open holds.
    pub holds: JsonAnswer<Vec<HoldJson>>,
    /// Whether the visitor may create, edit and delete limits.
    pub may_limit: bool,
    /// Whether the visitor may release holds.
    pub may_release: bool,
}

/// Renders the limits and the open holds of a customer; nothing if there are none and none can be created. `contracts` has the
/// numbers of the contracts and the names of their products, as far as the page has them.
pub(crate) fn limits_and_holds(reference: &str, answers: &LimitAnswers, contracts: JsonView<'_, Vec<ContractJson>>) -> Markup {
    let LimitAnswers { limits, holds, may_limit, may_release, .. } = answers;
    html! {
        @if *may_limit || !limits.view().is_empty() {
            (section("Limits", &html! {
                @if limits.view().is_empty() { p.muted { "No limits." } } @else { (limit_table(answers, contracts)) }
                @if *may_limit { p { a.button.plain href=(href(&["do", "limit", reference])) { "New limit" } } }
            }))
        }
        @if !holds.view().is_empty() { (section("Open holds", &hold_table(reference, holds.view(), *may_release))) }
    }
}

/// Returns whether a limit counts what its customer owes.
pub(crate) fn is_owed(limit: JsonView<'_, LimitJson>) -> bool {
    limit.metric().is("OWED")
}

/// Returns whether a limit counts the prepaid credit of its customer. Its number falls to the thresholds, and it has no maximum.
pub(crate) fn is_prepaid(limit: JsonView<'_, LimitJson>) -> bool {
    limit.metric().is("PREPAID")
}

/// Returns the prepaid credit that is free today beside an amount owed to the same entity in the same currency, if there is any.
pub(crate) fn free_credit<'v>(
    limit: JsonView<'_, LimitJson>,
    left: JsonView<'v, Vec<CustomerLeftJson>>,
) -> Option<JsonView<'v, ExactNumber>> {
    let (entity_ref, currency) = (limit.entity_ref().to_text(), limit.currency().to_text());
    let of_account =
        |credit: JsonView<'_, AccountCreditJson>| credit.entity_ref().is(&entity_ref) && credit.currency().is(&currency);
    let mut credit = left.items().flat_map(|customer| customer.credit().items());
    let free = credit.find(|credit| of_account(*credit)).map(|credit| credit.free());
    free.filter(|free| is_owed(limit) && free.is_amount())
}

fn limit_table(answers: &LimitAnswers, contracts: JsonView<'_, Vec<ContractJson>>) -> Markup {
    let LimitAnswers { limits, left, may_limit, .. } = answers;
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Limits" {
            table {
                thead { tr {
                    th scope="col" { "Limit" }
                    th scope="col" { "Level" }
                    th.amount scope="col" { "Value" }
                    th.amount scope="col" { "Held" }
                    th.amount scope="col" { "Max" }
                    th.amount scope="col" { "Thresholds" }
                    @if *may_limit { th scope="col" { span.first { "Actions" } } }
                } }
                tbody { @for limit in limits.view().items() {
                    @let (limit_ref, currency) = (limit.limit_ref().to_text(), limit.currency().to_text());
                    tr {
                        th scope="row" {
                            a href=(href(&["limits", &limit_ref])) { (words(&limit.metric().to_text())) }
                            (watched(limit, contracts))
                        }
                        td { (level(limit)) }
                        td.amount {
                            (money(limit.value(), &currency))
                            @if let Some(free) = free_credit(limit, left.view()) {
                                div.muted { "Prepaid credit: " (money(free, &currency)) }
                            }
                        }
                        td.amount { @if limit.held().is_amount() { (money(limit.held(), &currency)) } }
                        td.amount { (max(limit)) }
                        td.amount { @for threshold in limit.thresholds().items() { div { (money(threshold, &currency)) } } }
                        @if *may_limit {
                            td { div.links {
                                a href=(href(&["edit", "limits", &limit_ref])) { (if is_prepaid(limit) { "Edit" } else { "Raise" }) }
                                a href=(href(&["do", "delete-limit", &limit_ref])) { "Delete" }
                            } }
                        }
                    }
                } }
            }
        }
    }
}

/// Renders the objects and the period whose number a limit watches.
fn watched(limit: JsonView<'_, LimitJson>, contracts: JsonView<'_, Vec<ContractJson>>) -> Markup {
    let page = |part: &str, reference: String| Some(href(&[part, &reference]));
    html! {
        @if limit.entity_ref().is_there() {
            div.muted { "to " (link(page("entities", limit.entity_ref().to_text()), &limit.entity_ref().to_text())) }
        }
        @if limit.contract_ref().is_there() {
            @let (contract, product) = product_of(limit, contracts);
            div.muted { (link(page("contracts", limit.contract_ref().to_text()), &contract)) ", " (product) }
        }
        @if limit.usage_product_ref().is_there() {
            div.muted {
                (link(page("usage-products", limit.usage_product_ref().to_text()), &limit.usage_product_ref().to_text()))
                @if limit.line_item_id().is_there() { ", line item " code { (limit.line_item_id().to_text()) } }
            }
        }
        @if limit.window_start().is_there() { div.muted { (day(limit.window_start())) " – " (day(limit.window_end())) } }
    }
}

/// Returns the number of a limit's contract and the name of its product, or what is known without the contract.
fn product_of(limit: JsonView<'_, LimitJson>, contracts: JsonView<'_, Vec<ContractJson>>) -> (String, String) {
    let (contract_ref, product_no) = (limit.contract_ref().to_text(), limit.product_no().to_text());
    let contract = contracts.items().find(|contract| contract.contract_ref().is(&contract_ref));
    let product = contract.and_then(|contract| {
        let product = contract.products().items().find(|product| product.product_no().to_text() == product_no)?;
        Some(product_title(product, contract))
    });
    let number = contract.map_or_else(|| "Contract".to_owned(), |contract| contract.contract_number().to_text());
    (number, product.unwrap_or_else(|| format!("product {product_no}")))
}

/// Renders the maximum of a limit. Prepaid credit has none.
fn max(limit: JsonView<'_, LimitJson>) -> Markup {
    html! {
        @if limit.max().is_there() { (money(limit.max(), &limit.currency().to_text())) }
        @else if !is_prepaid(limit) { span.muted { "any" } }
    }
}

/// Renders how far the number of a limit is below or above its maximum, with a bar. A limit without a maximum has none. Prepaid
/// credit shows the lowest threshold that its number has fallen to.
fn level(limit: JsonView<'_, LimitJson>) -> Markup {
    let currency = limit.currency().to_text();
    let amount = |number: JsonView<'_, ExactNumber>| billionths(&number.to_text()).unwrap_or_default();
    // Thresholds ascend.
    let reached = limit.thresholds().items().find(|threshold| is_prepaid(limit) && amount(limit.value()) <= amount(*threshold));
    html! {
        @if let Some(reached) = reached { div.above { "at most " (money(reached, &currency)) } }
        @if limit.max().is_there() {
            (bar(limit))
            @if limit.above().is_amount() { div.above { (money(limit.above(), &currency)) " above max" } }
            @else { div.muted { (money(limit.left(), &currency)) " left" } }
        }
    }
}

/// Renders a bar with the value and what is held, from zero to the maximum, with marks at the thresholds.
fn bar(limit: JsonView<'_, LimitJson>) -> Markup {
    let amount = |number: JsonView<'_, ExactNumber>| billionths(&number.to_text()).unwrap_or_default();
    let max = amount(limit.max());
    let value = amount(limit.value());
    let (used, reserved) = (along(value, max), along(value.saturating_add(amount(limit.held())), max));
    let is_above = limit.above().is_amount();
    html! {
        svg.level role="img" aria-label=(described(limit)) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" {
            rect.room width=(WIDTH) height=(HEIGHT) {}
            @if reserved > used { rect.held x=(used) width=(reserved - used) height=(HEIGHT) {} }
            @if used > 0 { rect class=(if is_above { "above" } else { "used" }) width=(used) height=(HEIGHT) {} }
            @for threshold in limit.thresholds().items().map(amount).filter(|threshold| *threshold > 0 && *threshold < max) {
                rect.mark x=(along(threshold, max).min(WIDTH - MARK)) width=(MARK) height=(HEIGHT) {}
            }
        }
    }
}

/// Returns how far a number is along a bar that ends with the maximum. With a maximum of zero, any number above it fills the bar.
fn along(number: i128, max: i128) -> i128 {
    match number {
        ..=0 => 0,
        // A small number remains visible.
        _ if number < max => (number * WIDTH / max).clamp(1, WIDTH),
        _ => WIDTH,
    }
}

/// Returns a bar in words, such as `450.00 EUR of 500.00 EUR, 20.00 EUR held`.
fn described(limit: JsonView<'_, LimitJson>) -> String {
    let currency = limit.currency().to_text();
    let amount = |number: JsonView<'_, ExactNumber>| match currency.as_str() {
        "" => grouped(&number.to_text()),
        currency => amount_text(&number.to_text(), currency),
    };
    let held = if limit.held().is_amount() { format!(", {} held", amount(limit.held())) } else { String::new() };
    format!("{} of {}{held}", amount(limit.value()), amount(limit.max()))
}

fn hold_table(reference: &str, holds: JsonView<'_, Vec<HoldJson>>, may_release: bool) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Open holds" {
            table {
                thead { tr {
                    th scope="col" { "Reference" }
                    th scope="col" { "Usage product" }
                    th.amount scope="col" { "Quantity" }
                    th scope="col" { "Expires" }
                    @if may_release { th scope="col" { span.first { "Actions" } } }
                } }
                tbody { @for hold in holds.items() { (hold_row(reference, hold, may_release)) } }
            }
        }
    }
}

/// Renders a hold with the entries that still reserve room.
fn hold_row(reference: &str, hold: JsonView<'_, HoldJson>, may_release: bool) -> Markup {
    let open: Vec<JsonView<'_, HoldEntryJson>> = hold.usage().items().filter(|entry| !entry.ended_at().is_there()).collect();
    let hold_ref = hold.hold_ref().to_text();
    html! {
        tr {
            th scope="row" { (name(hold.hold_ref())) }
            td { @for entry in &open {
                @let usage_product = entry.usage_product_ref().to_text();
                div { (link(Some(href(&["usage-products", &usage_product])), &usage_product)) }
            } }
            td.amount { @for entry in &open { div { (number(entry.quantity())) } } }
            td { (instant(hold.expires_at())) }
            @if may_release {
                td { form method="post" action=(href(&["do", "release-hold", &hold_ref])) {
                    input type="hidden" name="customer_ref" value=(reference);
                    button.plain aria-label=(format!("Release {hold_ref}")) { "Release" }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limit(more: &[(&str, Value)]) -> Value {
        let mut limit = json!({
            "limit_ref": "l1", "metric": "OWED", "entity_ref": "seller", "currency": "EUR", "value": 450, "held": 20, "max": 500,
            "left": 30, "above": 0, "thresholds": [400, 490],
        });
        for (field, value) in more {
            limit[*field] = value.clone();
        }
        limit
    }

    fn shown(answers: &LimitAnswers, contracts: &Value) -> String {
        limits_and_holds("a/b", answers, JsonView::of(contracts)).into_string()
    }

    #[test]
    fn a_limit_shows_its_number_against_its_maximum() {
        let limits = json!([limit(&[])]);
        let answers = LimitAnswers { limits: limits.into(), may_limit: true, ..LimitAnswers::default() };
        let page = shown(&answers, &json!([]));
        for part in [
            "<a href=\"/console/limits/l1\">Amount owed</a>",
            "to <a href=\"/console/entities/seller\">seller</a>",
            "aria-label=\"450.00 EUR of 500.00 EUR, 20.00 EUR held\"",
            "<rect class=\"held\" x=\"900\" width=\"40\"",
            "<rect class=\"used\" width=\"900\"",
            "<rect class=\"mark\" x=\"800\"",
            ">490.00 <span class=\"currency\">EUR</span>",
            "EUR</span></data> left",
            "href=\"/console/edit/limits/l1\">Raise</a>",
            "href=\"/console/do/delete-limit/l1\">Delete</a>",
            "href=\"/console/do/limit/a%2Fb\">New limit</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("style="), "the policy lets no style in: {page}");
        let reader = shown(&LimitAnswers { may_limit: false, ..answers }, &json!([]));
        assert!(reader.contains("Amount owed") && !reader.contains("/do/") && !reader.contains("/edit/"), "{reader}");
    }

    #[test]
    fn a_limit_of_a_period_names_its_contract_and_product() {
        let of_period = [
            ("metric", json!("QUANTITY")),
            ("entity_ref", Value::Null),
            ("currency", Value::Null),
            ("contract_ref", json!("c1")),
            ("product_no", json!(1)),
            ("usage_product_ref", json!("api-calls")),
            ("line_item_id", json!("<calls>")),
            ("window_start", json!("2026-11-01")),
            ("window_end", json!("2026-11-30")),
            ("value", json!(1200)),
        ];
        let answers = LimitAnswers { limits: json!([limit(&of_period)]).into(), ..LimitAnswers::default() };
        let product = |no: u8, name: &str| json!({"product_no": no, "product_pricing_ref": name, "product_name": name});
        let contract =
            json!([{"contract_ref": "c1", "contract_number": "C-7", "products": [product(0, "Fee"), product(1, "Calls")]}]);
        let page = shown(&answers, &contract);
        for part in [
            "<a href=\"/console/contracts/c1\">C-7</a>, Calls",
            "<a href=\"/console/usage-products/api-calls\">api-calls</a>, line item <code>&lt;calls&gt;</code>",
            "2026-11-30",
            "aria-label=\"1,200 of 500, 20 held\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("EUR"), "a quantity has no currency: {page}");
        assert!(shown(&answers, &json!([])).contains("<a href=\"/console/contracts/c1\">Contract</a>, product 1"));
    }

    #[test]
    fn a_number_above_the_maximum_fills_the_bar_and_a_limit_without_a_maximum_has_none() {
        let shown_of = |more: &[(&str, Value)]| {
            shown(&LimitAnswers { limits: json!([limit(more)]).into(), ..LimitAnswers::default() }, &json!([]))
        };
        let above = shown_of(&[("value", json!(600)), ("above", json!(100)), ("left", json!(0))]);
        assert!(above.contains("<rect class=\"above\" width=\"1000\"") && above.contains(" above max"), "{above}");
        let prepaid = shown_of(&[("max", json!(0)), ("value", json!(-30)), ("held", json!(0))]);
        assert!(prepaid.contains("class=\"room\"") && !prepaid.contains("class=\"used\""), "{prepaid}");
        let any = shown_of(&[("max", Value::Null), ("left", Value::Null)]);
        assert!(!any.contains("<svg") && any.contains(">any<") && any.contains("490.00"), "{any}");
    }

    #[test]
    fn an_amount_owed_has_the_free_credit_of_its_account_beside_it() {
        let credit = |entity: &str, currency: &str, free: u8| json!({"entity_ref": entity, "currency": currency, "free": free});
        let left = json!([{"credit": [credit("seller", "USD", 7), credit("branch", "EUR", 8), credit("seller", "EUR", 98)]}]);
        let limits = json!([limit(&[]), limit(&[("limit_ref", json!("l2")), ("metric", json!("SPEND"))])]);
        let shown_with = |left: Value| {
            shown(&LimitAnswers { limits: limits.clone().into(), left: left.into(), ..LimitAnswers::default() }, &json!([]))
        };
        let page = shown_with(left);
        assert!(page.matches("Prepaid credit: ").count() == 1 && page.contains(">98.00 <span"), "{page}");
        let none = shown_with(json!([{"credit": [credit("seller", "EUR", 0)]}]));
        assert!(!none.contains("Prepaid credit"), "{none}");
    }

    #[test]
    fn prepaid_credit_has_no_maximum_and_shows_the_threshold_that_it_has_fallen_to() {
        let shown_at = |value: u8| {
            let prepaid = limit(&[
                ("metric", json!("PREPAID")),
                ("max", Value::Null),
                ("left", Value::Null),
                ("value", json!(value)),
                ("thresholds", json!([5, 20])),
            ]);
            let answers = LimitAnswers { limits: json!([prepaid]).into(), may_limit: true, ..LimitAnswers::default() };
            shown(&answers, &json!([]))
        };
        for (value, reached) in [(21, None), (20, Some("20")), (6, Some("20")), (5, Some("5"))] {
            let page = shown_at(value);
            assert_eq!(page.contains("at most "), reached.is_some(), "{value}: {page}");
            let at_most = |reached: &str| {
                format!("at most <data class=\"number\" value=\"{reached}\" title=\"{reached} EUR\">{reached}.00 <span")
            };
            assert!(reached.is_none_or(|reached| page.contains(&at_most(reached))), "{page}");
            assert!(page.contains(">Prepaid credit</a>") && page.contains(">Edit</a>"), "{page}");
            assert!(!page.contains("<svg") && !page.contains(">any<") && !page.contains("Raise"), "{page}");
        }
    }

    #[test]
    fn a_number_is_as_far_along_the_bar_as_it_is_large() {
        for (number, max, expected) in [
            ("-1", "500", 0),
            ("0", "500", 0),
            ("0.01", "500", 1),
            ("250", "500", 500),
            ("499.99", "500", 999),
            ("500", "500", 1000),
            ("7", "0", 1000),
            ("500000000000000", "999999999999999", 500),
            ("0.000000001", "0.000000002", 500),
        ] {
            let [number, max] = [number, max].map(|text| billionths(text).expect(text));
            assert_eq!(along(number, max), expected, "{number} of {max}");
        }
    }

    #[test]
    fn an_open_hold_shows_what_it_reserves_and_can_be_released() {
        let entry = |product: &str, quantity: u8, ended_at: Value| json!({"usage_product_ref": product, "quantity": quantity, "ended_at": ended_at});
        let usage = [entry("api-calls", 5, Value::Null), entry("storage", 7, json!("2026-11-10T12:00:00Z"))];
        let holds = json!([{"hold_ref": "job/1", "usage": usage, "expires_at": "2026-11-10T12:05:00Z"}]);
        let answers = LimitAnswers { holds: holds.into(), may_release: true, ..LimitAnswers::default() };
        let page = shown(&answers, &json!([]));
        for part in [
            "<a href=\"/console/usage-products/api-calls\">api-calls</a>",
            "2026-11-10 12:05:00 UTC",
            "action=\"/console/do/release-hold/job%2F1\"",
            "name=\"customer_ref\" value=\"a/b\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("storage") && !page.contains("Limits"), "{page}");
        assert!(!shown(&LimitAnswers { may_release: false, ..answers }, &json!([])).contains("<form"));
        assert_eq!(shown(&LimitAnswers::default(), &json!([])), "");
    }
}
