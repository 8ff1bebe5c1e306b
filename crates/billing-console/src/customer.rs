//! The page of a customer: what they owe, what they agreed on, what they were billed.

use maud::{Markup, html};
use serde_json::Value;

use crate::json_view::JsonView;
use crate::list::table;
use crate::listings::{CONTRACTS, DOCUMENTS, DOCUMENTS_OF};
use crate::parts::{changes, encoded, href, link, money, section};
use crate::thing::fields;

/// What the interface answers about a customer.
#[derive(Clone, Debug)]
pub struct CustomerAnswers {
    /// Who it is.
    pub customer: Value,
    /// What they owe, by entity and currency.
    pub balance: Value,
    /// Some of their contracts.
    pub contracts: Value,
    /// Their latest documents.
    pub documents: Value,
    /// What they used lately, as it is shown.
    pub usage: Markup,
    /// Whether who looks at it may edit them.
    pub may_edit: bool,
}

/// The body of a customer's page.
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
            } @else { p.muted { "None." } }
        }))
        (section("Documents", &html! {
            @if JsonView(documents).items().next().is_some() {
                (table("Documents", &DOCUMENTS.some(DOCUMENTS_OF), JsonView(documents)))
                p { (link(Some(more("documents")), "All documents")) }
            } @else { p.muted { "None." } }
        }))
        (section("Usage of the last 30 days", &html! {
            (usage)
            p { (link(Some(more("usage")), "Look closer")) }
        }))
        p { (link(Some(more("events")), "Usage events")) " · " (changes("CUSTOMER", &reference)) }
        (section("Details", &fields(at)))
    }
}

fn balances(balance: JsonView<'_>) -> Markup {
    html! {
        @if balance.items().next().is_none() { p.muted { "Nothing was issued yet." } }
        div.cards {
            @for account in balance.items() {
                @let currency = account.at("currency").text();
                div.card {
                    h2 { "Left to pay" }
                    p { (money(account.at("due"), &currency)) }
                    p.muted { "of it overdue: " (money(account.at("overdue"), &currency)) }
                    p.muted { "balance: " (money(account.at("unapplied"), &currency)) }
                }
            }
        }
    }
}
