//! The page of a customer: balance, contracts and documents.

use maud::{Markup, html};
use serde_json::Value;

use crate::json_view::JsonView;
use crate::list::table;
use crate::listings::{CONTRACTS, DOCUMENTS, DOCUMENTS_OF};
use crate::parts::{changes, encoded, href, link, money, section};
use crate::thing::fields;

/// API responses for the page of a customer.
#[derive(Clone, Debug)]
pub struct CustomerAnswers {
    /// The customer.
    pub customer: Value,
    /// Balances by entity and currency.
    pub balance: Value,
    /// Some of the customer's contracts.
    pub contracts: Value,
    /// The latest documents.
    pub documents: Value,
    /// Rendered recent usage.
    pub usage: Markup,
    /// The terms that e-invoices would lack; null if the check is not possible.
    pub e_invoice: Value,
    /// Whether the visitor may edit the customer.
    pub may_edit: bool,
}

/// Renders the page of a customer.
pub fn customer(answers: &CustomerAnswers) -> Markup {
    let CustomerAnswers { customer, balance, contracts, documents, usage, e_invoice, may_edit } = answers;
    let at = JsonView(customer);
    let reference = at.at("customer_ref").text();
    let more = |part: &str| format!("{}?customer_ref={}", href(&[part]), encoded(&reference));
    html! {
        h1 { (at.at("name").text()) }
        @if *may_edit { p { a.button href=(href(&["edit", "customers", &reference])) { "Edit" } } }
        (section("Balance", &balances(JsonView(balance))))
        (section("Contracts", &html! {
            @if JsonView(contracts).items().next().is_some() {
                (table(CONTRACTS.title, CONTRACTS.columns, JsonView(contracts)))
                p { (link(Some(more("contracts")), "All contracts")) }
            } @else { p.muted { "No contracts." } }
        }))
        (section("Documents", &html! {
            @if JsonView(documents).items().next().is_some() {
                (table("Documents", &DOCUMENTS.some(DOCUMENTS_OF), JsonView(documents)))
                p { (link(Some(more("documents")), "All documents")) }
            } @else { p.muted { "No documents." } }
        }))
        (section("Usage in the last 30 days", &html! {
            (usage)
            p { (link(Some(more("usage")), "Explore usage")) }
        }))
        p { (link(Some(more("events")), "Usage events")) " · " (changes("CUSTOMER", &reference)) }
        @if e_invoice.is_array() { (section("E-invoices", &missing_terms(JsonView(e_invoice)))) }
        (section("Details", &fields(at)))
    }
}

/// Renders the terms that e-invoices for the customer would lack.
fn missing_terms(missing: JsonView<'_>) -> Markup {
    html! {
        @if missing.items().next().is_none() {
            p { "Ready: the data of the customer and the entity suffices for e-invoices." }
        } @else {
            p { "Documents would lack these terms, unless their contract states them:" }
            ul { @for term in missing.items() {
                li { code { (term.at("pointer").text()) } " " span.muted { (term.at("detail").text()) } }
            } }
        }
    }
}

fn balances(balance: JsonView<'_>) -> Markup {
    html! {
        @if balance.items().next().is_none() { p.muted { "No issued documents yet." } }
        div.cards {
            @for account in balance.items() {
                @let currency = account.at("currency").text();
                div.card {
                    h2 { "Amount due" }
                    p { (money(account.at("due"), &currency)) }
                    p.muted { "Overdue: " (money(account.at("overdue"), &currency)) }
                    p.muted { "Unapplied: " (money(account.at("unapplied"), &currency)) }
                }
            }
        }
    }
}
