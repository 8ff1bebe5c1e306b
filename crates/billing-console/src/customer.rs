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
    /// Whether the visitor may edit the customer.
    pub may_edit: bool,
}

/// Renders the page of a customer.
pub fn customer(answers: &CustomerAnswers) -> Markup {
    let CustomerAnswers { customer, balance, contracts, documents, usage, may_edit } = answers;
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
        (section("Details", &fields(at)))
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
