//! The page of a contract: its current prices and quantities with links to the small forms that change them, current and next
//! documents, and latest documents.

use billing_api::operation::encoded;
use maud::{Markup, html};
use serde_json::Value;

use crate::conditions::{condition, counted};
use crate::document::title;
use crate::list::table;
use crate::listings::{DOCUMENTS, DOCUMENTS_OF};
use crate::parts::{changes, day, facts, href, isolated, link, money, name, number, numbered, query, section, state, words};
use crate::thing::fields;
use crate::webhooks::notifications;
use billing_api::dto::contract_lines::ContractLineItemJson;
use billing_api::dto::contract_view::{BillingCycleJson, ContractJson, ContractProductJson};
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::notifications::NotificationJson;
use billing_api::dto::prices::{PriceJson, TierJson};
use billing_api::dto::wire::ExactNumber;
use billing_api::json_view::{JsonAnswer, JsonView};

/// Number of tiers that are visible without opening them.
const TIERS_AT_ONCE: usize = 4;

/// API responses for the page of a contract.
#[derive(Clone, Debug)]
pub struct ContractAnswers {
    /// The contract.
    pub contract: JsonAnswer<ContractJson>,
    /// The current document.
    pub current: JsonAnswer<Vec<DocumentJson>>,
    /// The next document.
    pub next: JsonAnswer<Vec<DocumentJson>>,
    /// The latest documents.
    pub documents: Value,
    /// The notifications about the contract.
    pub notifications: JsonAnswer<Vec<NotificationJson>>,
    /// Today's date.
    pub today: String,
    /// Whether the visitor may change the contract.
    pub may_change: bool,
    /// Whether the visitor may create charges.
    pub may_charge: bool,
}

impl ContractAnswers {
    /// Returns whether the contract can be changed by the small forms.
    fn is_open(&self) -> bool {
        let state = self.contract.view().state();
        self.may_change && ["PENDING", "ACTIVE"].iter().any(|open| state.is(open))
    }
}

/// Renders the page of a contract.
pub fn contract(answers: &ContractAnswers) -> Markup {
    let at = answers.contract.view();
    let (customer_ref, customer_name) = (at.customer_ref().to_text(), at.customer_name().to_text());
    let customer = if customer_name.is_empty() { &customer_ref } else { &customer_name };
    let reference = at.contract_ref().to_text();
    let all = |part: &str| format!("{}?contract_ref={}", href(&[part]), encoded(&reference));
    html! {
        h1 { "Contract " (at.contract_number().to_text()) " " (state(at.state())) }
        (actions(at, &reference, answers))
        (facts(&[
            ("Customer", link(Some(href(&["customers", &customer_ref])), customer)),
            ("Last day", day(at.effective_end_date())),
            ("Purchase order", html! { (name(at.po_number())) }),
            ("Version", html! { (at.version().to_text()) }),
        ]))
        @for one in at.products().items() {
            (section(&isolated(&product_title(one, at)), &product(one, &reference, answers)))
        }
        (section("Current documents", &invoices(answers.current.view(), "No current documents.")))
        (section("Upcoming documents", &invoices(answers.next.view(), "No upcoming documents.")))
        (section("Documents", &html! {
            @if JsonView::<Value>::of(&answers.documents).elements().next().is_some() {
                (table("Documents", &DOCUMENTS.some(DOCUMENTS_OF), JsonView::of(&answers.documents)))
                p { (link(Some(all("documents")), "All documents")) " · " (link(Some(all("usage")), "Usage")) " · " (link(Some(all("events")), "Usage events")) " · "
                    (changes("CONTRACT", &reference)) }
            } @else { p.muted { "No documents yet." } }
        }))
        (notifications(answers.notifications.view()))
        details { summary { "Reference" } code { (reference) } }
    }
}

/// Returns the address of a small form. `target` selects a product (`0`) or a line item of a product (`0/seats`).
fn task(reference: &str, what: &str, target: Option<&str>) -> String {
    let page = href(&["contracts", reference, what]);
    match target {
        Some(target) => format!("{page}?{}", query(&[("target", target)])),
        None => page,
    }
}

/// Renders the actions that the contract's state permits. Each action shows a preview first.
fn actions(at: JsonView<'_, ContractJson>, reference: &str, answers: &ContractAnswers) -> Markup {
    let is_in = |states: &[&str]| states.iter().any(|state| at.state().is(state));
    let is_ended = is_in(&["CANCELLING", "CANCELLED"]);
    html! {
        div.actions {
            @if answers.is_open() {
                @if at.products().items().flat_map(|product| product.line_items().items()).any(has_quantity) {
                    a.button href=(task(reference, "seats", None)) { "Change seats" }
                }
                a.button href=(task(reference, "add", None)) { "Add product" }
                a.button href=(task(reference, "end", None)) { "Move end" }
                a.button href=(task(reference, "invoicing", None)) { "Change invoicing details" }
            }
            @if answers.may_charge { a.button href=(href(&["do", "charge", reference])) { "Add charge or credit" } }
            @if answers.may_change && is_in(&["CANCELLING"]) {
                a.button href=(task(reference, "resume", None)) { "Resume contract" }
            }
            @if answers.is_open() { a.button.grave href=(task(reference, "cancel", None)) { "Cancel contract" } }
            @if answers.may_change && !is_ended { a href=(href(&["edit", "contracts", reference])) { "Advanced" } }
        }
    }
}

fn invoices(invoices: JsonView<'_, Vec<DocumentJson>>, none: &str) -> Markup {
    html! {
        @if invoices.items().next().is_none() { p.muted { (none) } }
        div.cards {
            @for invoice in invoices.items() {
                @let reference = invoice.document_ref().to_text();
                div.card {
                    h2 { (link((!reference.is_empty()).then(|| href(&["documents", &reference])), &title(invoice.kind(), invoice.document_number()))) }
                    p { (money(invoice.total(), &invoice.currency().to_text())) }
                    p.muted { (day(invoice.period_start())) " – " (day(invoice.period_end())) }
                }
            }
        }
    }
}

/// Renders a product with the terms in force today, the planned terms, and links to the forms that change them.
fn product(newest: JsonView<'_, ContractProductJson>, reference: &str, answers: &ContractAnswers) -> Markup {
    let in_force = newest.in_force();
    let current = if in_force.is_there() { in_force.unboxed() } else { newest };
    let (currency, no) = (current.currency().to_text(), newest.product_no().to_text());
    let can_change = answers.is_open() && !is_over(newest, &answers.today);
    let others = answers.contract.view().products().items().filter(|product| !is_over(*product, &answers.today)).count();
    let change = |what: &str, label: &str| html! { a href=(task(reference, what, Some(&no))) { (label) } };
    html! {
        (facts(&[
            ("Term", html! { (day(current.billing_start_date())) " – " (day(newest.billing_end_date())) }),
            ("Billing", html! { (cycle(current.billing_cycle())) ", " (payment_time(&current.payment_time().to_text())) }),
            ("Discount", percent(current.discount())),
            ("Minimum fee per period", money(current.minimum_fee(), &currency)),
            ("Counts only", condition(current.condition())),
            ("Pricing", link(
                Some(href(&["pricings", &current.product_pricing_ref().to_text()])),
                &current.product_name().to_text(),
            )),
        ]))
        @if can_change {
            p.links {
                (change("discount", "Change discount"))
                (change("end", "Move end"))
                @if others > 1 { (change("end-product", "End product")) }
            }
        }
        (line_items(current, &currency, &answers.today, can_change.then_some((reference, no.as_str()))))
        (planned(current, newest, &currency))
        details { summary { "All fields" } (fields(newest.any())) }
    }
}

/// Returns the name of a product on documents. Several products of one pricing have their numbers.
pub fn product_title(product: JsonView<'_, ContractProductJson>, contract: JsonView<'_, ContractJson>) -> String {
    let name = if product.name().is_there() { product.name() } else { product.product_name() };
    let pricing = product.product_pricing_ref().to_text();
    let is_alone = contract.products().items().filter(|other| other.product_pricing_ref().is(&pricing)).nth(1).is_none();
    if is_alone { name.to_text() } else { numbered(&name.to_text(), &product.product_no().to_text()) }
}

/// Returns whether the last day of a product is over.
fn is_over(product: JsonView<'_, ContractProductJson>, today: &str) -> bool {
    product.billing_end_date().to_text().as_str() < today
}

/// Renders the line items with their prices and quantities. `change` has the references of the contract and the product if the
/// line items can change.
fn line_items(product: JsonView<'_, ContractProductJson>, currency: &str, today: &str, change: Option<(&str, &str)>) -> Markup {
    // The quantity of a product that has not begun is the quantity of its first day.
    let first = product.billing_start_date().to_text();
    let date = if first.as_str() > today { first.as_str() } else { today };
    let link_to = |what: &str, label: &str, item: JsonView<'_, ContractLineItemJson>| {
        html! {
            @if let Some((reference, no)) = change {
                a href=(task(reference, what, Some(&format!("{no}/{}", item.line_item_id().to_text())))) { (label) }
            }
        }
    };
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Line items" {
            table {
                thead { tr { th scope="col" { "Line item" } th scope="col" { "Price" } th scope="col" { "Quantity" } } }
                tbody {
                    @for item in product.line_items().items() {
                        tr {
                            th scope="row" { (name(item.name())) (counted(item)) }
                            td { (price(item.price(), currency)) div.links { (link_to("price", "Change price", item)) } }
                            td {
                                @if is_fixed(item) {
                                    (quantities(item, date))
                                    @if has_quantity(item) { div.links { (link_to("seats", "Change seats", item)) } }
                                } @else { (usage_terms(item, currency)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether a line item of a contract has an agreed quantity. Other line items are priced by usage.
pub fn is_fixed(item: JsonView<'_, ContractLineItemJson>) -> bool {
    !item.included_quantity().is_there()
}

/// Returns whether a line item of a contract is billed by a quantity: a fee with one flat amount and no agreed quantity is not.
pub fn has_quantity(item: JsonView<'_, ContractLineItemJson>) -> bool {
    is_fixed(item) && (item.quantities().items().next().is_some() || !item.price().model().is("FLAT"))
}

/// Returns the agreed quantity of a fixed line item on a day. Without an agreed quantity, it is 1.
pub fn quantity_on(item: JsonView<'_, ContractLineItemJson>, date: &str) -> String {
    let begun = item.quantities().items().filter(|step| step.from().to_text().as_str() <= date);
    begun.last().map_or_else(|| "1".to_owned(), |step| step.quantity().to_text())
}

/// Renders the quantity on a day and the later quantities.
fn quantities(item: JsonView<'_, ContractLineItemJson>, date: &str) -> Markup {
    let later = item.quantities().items().filter(|step| step.from().to_text().as_str() > date);
    html! {
        (number(JsonView::<Value>::of(&Value::from(quantity_on(item, date)))))
        @for step in later { div.muted { (number(step.quantity())) " from " (day(step.from())) } }
    }
}

/// Renders the terms of a line item that is priced by usage.
fn usage_terms(item: JsonView<'_, ContractLineItemJson>, currency: &str) -> Markup {
    html! {
        "By usage"
        (limits(item, currency))
    }
}

/// Renders the quantities and amounts that limit the price of usage.
pub(crate) fn limits(item: JsonView<'_, ContractLineItemJson>, currency: &str) -> Markup {
    html! {
        @if item.included_quantity().is_amount() { div.muted { "Included: " (number(item.included_quantity())) } }
        @if item.prepaid_quantity().is_there() { div.muted { "Prepaid: " (number(item.prepaid_quantity())) } }
        @if item.minimum_amount().is_there() { div.muted { "At least " (money(item.minimum_amount(), currency)) } }
        @if item.maximum_amount().is_there() { div.muted { "At most " (money(item.maximum_amount(), currency)) } }
    }
}

/// Renders a price in words.
pub fn price(price: JsonView<'_, PriceJson>, currency: &str) -> Markup {
    let amount = |amount: JsonView<'_, ExactNumber>| money(amount, currency);
    let tiers: Vec<JsonView<'_, TierJson>> = price.tiers().items().collect();
    let is_volume = price.model().is("VOLUME");
    html! {
        @match price.model().to_text().as_str() {
            "FLAT" => { (amount(price.amount())) " each per period" },
            "PER_UNIT" => { (amount(price.unit_price())) " per unit" },
            "PACKAGE" => { (amount(price.package_price())) " per " (number(price.package_size())) " units" },
            "PERCENTAGE" => {
                (percent(price.rate())) " of the amount"
                @if price.fixed_amount().is_amount() { ", and " (amount(price.fixed_amount())) " per event" }
            },
            _ => details.tiers open[tiers.len() <= TIERS_AT_ONCE] {
                summary { @if is_volume { "By total quantity" } @else { "Per unit of each tier" } }
                ul { @for tier in tiers { li { (tier_price(tier, currency)) } } }
            },
        }
    }
}

fn tier_price(tier: JsonView<'_, TierJson>, currency: &str) -> Markup {
    html! {
        @if tier.up_to().is_there() { "Up to " (number(tier.up_to())) } @else { "Above" }
        ": " (money(tier.unit_price(), currency))
        @if tier.flat_amount().is_amount() { " and " (money(tier.flat_amount(), currency)) }
    }
}

fn percent(rate: JsonView<'_, ExactNumber>) -> Markup {
    html! { @if rate.is_there() { (number(rate)) " %" } @else { "none" } }
}

/// Describes a billing interval.
fn cycle(cycle: JsonView<'_, BillingCycleJson>) -> String {
    let (unit, count) = (cycle.unit().to_text(), cycle.cycle().to_text());
    let each = match unit.as_str() {
        "MONTHLY" => "month",
        "QUARTERLY" => "quarter",
        "YEARLY" => "year",
        _ => return "once".to_owned(),
    };
    if count == "1" { format!("every {each}") } else { format!("every {count} {each}s") }
}

/// Describes when a period is invoiced.
fn payment_time(word: &str) -> String {
    match word {
        "AFTER_USE" => "after the period".to_owned(),
        "BEFORE_USE" => "before the period".to_owned(),
        "DURING_USE" => "fees on the first day, usage with the next invoice".to_owned(),
        other => words(other),
    }
}

/// Renders the differences between the terms in force and the planned terms.
fn planned(current: JsonView<'_, ContractProductJson>, newest: JsonView<'_, ContractProductJson>, currency: &str) -> Markup {
    let from = newest.effective_from();
    if !newest.in_force().is_there() || !from.is_there() {
        return html! {};
    }
    let price_of = |product: JsonView<'_, ContractProductJson>, id: &str| {
        let found = product.line_items().items().find(|item| item.line_item_id().is(id));
        found.map_or_else(|| html! { "–" }, |item| price(item.price(), currency))
    };
    let is_new = |id: &str| newest.line_items().items().any(|item| item.line_item_id().is(id));
    let mut differences: Vec<(String, Markup, Markup)> = Vec::new();
    if current.discount().json() != newest.discount().json() {
        differences.push(("Discount".to_owned(), percent(current.discount()), percent(newest.discount())));
    }
    if current.minimum_fee().json() != newest.minimum_fee().json() {
        let fee = |product: JsonView<'_, ContractProductJson>| money(product.minimum_fee(), currency);
        differences.push(("Minimum fee per period".to_owned(), fee(current), fee(newest)));
    }
    let gone = current.line_items().items().filter(|item| !is_new(&item.line_item_id().to_text()));
    for item in newest.line_items().items().chain(gone) {
        let id = item.line_item_id().to_text();
        let (before, after) = (price_of(current, &id), price_of(newest, &id));
        if before.0 != after.0 {
            differences.push((item.name().to_text(), before, after));
        }
    }
    html! {
        h3 { "From " (day(from)) }
        @if differences.is_empty() { p { "Further terms change, see “All fields”." } } @else {
            div.scrolls tabindex="0" role="region" aria-label="Changed terms" { table {
                thead { tr { th scope="col" { "Term" } th scope="col" { "Current" } th scope="col" { "New" } } }
                tbody { @for (name, before, after) in differences { tr { th scope="row" { (name) } td { (before) } td { (after) } } } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answers(state: &str, more: &Value) -> ContractAnswers {
        let mut product = json!({
            "product_no": 0, "product_pricing_ref": "team", "product_name": "Team <plan>", "currency": "EUR",
            "billing_start_date": "2026-01-01", "billing_end_date": "2026-12-31", "discount": 10, "minimum_fee": null,
            "billing_cycle": {"unit": "MONTHLY", "cycle": 1}, "payment_time": "AFTER_USE",
            "line_items": [
                {"line_item_id": "seats", "name": "Seats", "price": {"model": "FLAT", "amount": 9},
                 "quantities": [{"from": "2026-01-01", "quantity": 10}, {"from": "2026-07-01", "quantity": 1200}]},
                {"line_item_id": "calls", "name": "Calls", "price": {"model": "PACKAGE", "package_size": 1000, "package_price": 1.5},
                 "included_quantity": 500, "where": {"region": ["eu", "<b>"]}}],
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            product[name] = value.clone();
        }
        ContractAnswers {
            contract: json!({"contract_ref": "c", "contract_number": "C-7", "state": state, "version": 3, "products": [product],
                "customer_ref": "acme", "customer_name": "Acme & Co"})
            .into(),
            current: json!([]).into(),
            next: json!([]).into(),
            documents: json!([]),
            notifications: json!([]).into(),
            today: "2026-03-15".to_owned(),
            may_change: true,
            may_charge: false,
        }
    }

    fn page(state: &str, more: &Value) -> String {
        contract(&answers(state, more)).into_string()
    }

    #[test]
    fn current_prices_quantities_and_discounts_are_visible_with_links_to_their_forms() {
        let page = page("ACTIVE", &json!({}));
        for part in [
            "Team &lt;plan&gt;",
            "Acme &amp; Co",
            "each per period",
            ">1,000</data> units",
            "Included: ",
            "<div class=\"muted\">region: eu, &lt;b&gt;</div>",
            ">1,200</data> from ",
            "/console/contracts/c/seats?target=0%2Fseats\"",
            "/console/contracts/c/price?target=0%2Fcalls\"",
            "/console/contracts/c/discount?target=0\"",
            "/console/contracts/c/cancel\"",
            "/console/edit/contracts/c\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("seats?target=0%2Fcalls") && !page.contains("end-product"), "{page}");
    }

    #[test]
    fn two_products_of_one_pricing_have_their_names_numbers_and_conditions() {
        let mut answers = answers("ACTIVE", &json!({"name": "Workspace <1>", "where": {"workspace": ["w1"]}}));
        let mut second = answers.contract.view().products().json()[0].clone();
        (second["product_no"], second["name"], second["where"]) = (json!(1), Value::Null, json!({"workspace": ["w2", "w3"]}));
        answers.contract.json_mut()["products"].as_array_mut().expect("products").push(second);
        let page = contract(&answers).into_string();
        for part in ["<h2>Workspace &lt;1&gt; (product 0)</h2>", "<h2>Team &lt;plan&gt; (product 1)</h2>", "workspace: w2, w3"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_contract_that_ends_offers_no_changes() {
        for state in ["CANCELLING", "CANCELLED", "COMPLETED"] {
            let page = page(state, &json!({}));
            assert!(!page.contains("/seats") && !page.contains("/price") && !page.contains("/c/cancel"), "{state}: {page}");
            assert_eq!(page.contains("/c/resume"), state == "CANCELLING", "{state}");
        }
    }

    #[test]
    fn planned_terms_are_compared_with_those_in_force() {
        let items = json!([{"line_item_id": "seats", "name": "Seats", "price": {"model": "FLAT", "amount": 7}}]);
        let in_force = json!({"product_pricing_ref": "team", "product_name": "Team", "currency": "EUR", "discount": 5,
            "billing_start_date": "2026-01-01", "billing_cycle": {"unit": "QUARTERLY", "cycle": 2}, "line_items": items});
        let page = page("ACTIVE", &json!({"effective_from": "2026-04-01", "in_force": in_force}));
        let (_, later) = page.split_once("<h3>From ").expect("planned terms");
        let table = later.split("</table>").next().expect("a table");
        for part in ["Discount", ">5</data> %", ">10</data> %", "Seats", ">7.00 ", ">9.00 ", "Calls"] {
            assert!(table.contains(part), "{part}: {table}");
        }
        assert!(page.contains("every 2 quarters"), "{page}");
    }

    #[test]
    fn the_quantity_of_a_day_is_that_of_the_last_step_before_it() {
        let item = json!({"quantities": [{"from": "2026-01-01", "quantity": 10}, {"from": "2026-07-01", "quantity": 12.5}]});
        for (date, quantity) in [("2025-12-31", "1"), ("2026-01-01", "10"), ("2026-06-30", "10"), ("2026-07-01", "12.5")] {
            assert_eq!(quantity_on(JsonView::of(&item), date), quantity, "{date}");
        }
    }
}
