//! The page of a contract: terms, current and next document, and latest documents.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::title;
use crate::json_view::JsonView;
use crate::list::table;
use crate::listings::{DOCUMENTS, DOCUMENTS_OF};
use crate::parts::{changes, day, encoded, facts, href, link, money, section, state};
use crate::thing::fields;
use crate::webhooks::notifications;

/// API responses for the page of a contract.
#[derive(Clone, Debug)]
pub struct ContractAnswers {
    /// The contract.
    pub contract: Value,
    /// The current document.
    pub current: Value,
    /// The next document.
    pub next: Value,
    /// The latest documents.
    pub documents: Value,
    /// The notifications about the contract.
    pub notifications: Value,
    /// Whether the visitor may change the contract.
    pub may_change: bool,
    /// Whether the visitor may create charges.
    pub may_charge: bool,
}

/// Renders the page of a contract.
pub fn contract(answers: &ContractAnswers) -> Markup {
    let at = JsonView(&answers.contract);
    let reference = at.at("contract_ref").text();
    let all = |part: &str| format!("{}?contract_ref={}", href(&[part]), encoded(&reference));
    html! {
        h1 { "Contract " (at.at("contract_number").text()) " " (state(at.at("state"))) }
        (actions(at, &reference, answers))
        (facts(&[
            ("Customer", link(Some(href(&["customers", &at.at("customer_ref").text()])), &at.at("customer_ref").text())),
            ("Last day", day(at.at("effective_end_date"))),
            ("Purchase order", html! { (at.at("po_number").text()) }),
            ("Version", html! { (at.at("version").text()) }),
            ("Reference", html! { code { (reference) } }),
        ]))
        (section("Current documents", &invoices(JsonView(&answers.current), "No current documents.")))
        (section("Upcoming documents", &invoices(JsonView(&answers.next), "No upcoming documents.")))
        (section("Documents", &html! {
            @if JsonView(&answers.documents).items().next().is_some() {
                (table("Documents", &DOCUMENTS.some(DOCUMENTS_OF), JsonView(&answers.documents)))
                p { (link(Some(all("documents")), "All documents")) " · " (link(Some(all("usage")), "Usage")) " · " (link(Some(all("events")), "Usage events")) " · "
                    (changes("CONTRACT", &reference)) }
            } @else { p.muted { "No documents yet." } }
        }))
        @for product in at.at("products").items() {
            (section(&format!("Product: {}", product.at("product_pricing_ref").text()), &agreed(product)))
        }
        (notifications(JsonView(&answers.notifications)))
    }
}

/// Renders the actions that the contract's state permits. Each action shows a preview first.
fn actions(at: JsonView<'_>, reference: &str, answers: &ContractAnswers) -> Markup {
    let is_in = |states: &[&str]| states.iter().any(|state| at.at("state").is(state));
    let doing = |what: &str| href(&["do", what, reference]);
    let goes_on = answers.may_change && !is_in(&["CANCELLING", "CANCELLED"]);
    html! {
        div.actions {
            @if goes_on {
                a.button href=(href(&["edit", "contracts", reference])) { "Edit" }
                a.button href=(doing("quantity")) { "Change quantity" }
            }
            @if answers.may_charge { a.button href=(doing("charge")) { "Add charge or credit" } }
            @if answers.may_change && is_in(&["CANCELLING"]) { a.button href=(doing("resume")) { "Resume contract" } }
            @if goes_on { a.button.grave href=(doing("cancel")) { "Cancel contract" } }
        }
    }
}

fn invoices(invoices: JsonView<'_>, none: &str) -> Markup {
    html! {
        @if invoices.items().next().is_none() { p.muted { (none) } }
        div.cards {
            @for invoice in invoices.items() {
                @let reference = invoice.at("document_ref").text();
                div.card {
                    h2 { (link((!reference.is_empty()).then(|| href(&["documents", &reference])), &title(invoice))) }
                    p { (money(invoice.at("total"), &invoice.at("currency").text())) }
                    p.muted { (day(invoice.at("period_start"))) " – " (day(invoice.at("period_end"))) }
                }
            }
        }
    }
}

fn agreed(product: JsonView<'_>) -> Markup {
    html! {
        (facts(&[
            ("Pricing", link(
                Some(href(&["pricings", &product.at("product_pricing_ref").text()])),
                &product.at("product_pricing_ref").text(),
            )),
            ("From", day(product.at("billing_start_date"))),
            ("To", day(product.at("billing_end_date"))),
        ]))
        details { summary { "All fields" } (fields(product)) }
    }
}
