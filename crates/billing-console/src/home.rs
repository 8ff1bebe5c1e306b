//! The first page: what is owed, what is open, and what to do where there is nothing yet.

use maud::{Markup, html};
use serde_json::Value;

use crate::answer::At;
use crate::list::table;
use crate::listings::LATEST_DOCUMENTS;
use crate::parts::{encoded, href, link, section};

/// What the interface answers for the first page.
#[derive(Clone, Debug)]
pub struct HomeAnswers {
    /// How many customers there are, how many drafts, and how many documents have something left to pay, or are overdue.
    pub customers: String,
    /// Likewise.
    pub drafts: String,
    /// Likewise.
    pub owed: String,
    /// What is left to pay, by currency.
    pub owed_amounts: Option<String>,
    /// Likewise.
    pub overdue: String,
    /// What of it is overdue, by currency.
    pub overdue_amounts: Option<String>,
    /// How many events were refused since yesterday.
    pub refused: String,
    /// The last billing run; nothing where there was none.
    pub last_run: Value,
    /// The latest documents.
    pub documents: Value,
    /// Which of the first steps were taken: an entity, a usage product, a pricing, a customer, a contract.
    pub steps: [bool; 5],
}

/// The first steps, where each is made over the interface, and what it is for.
const STEPS: [(&str, &str, &str); 5] = [
    ("A supplier entity with its address", "/api/entities/", "who bills"),
    ("A usage product", "/api/usage/products/", "what is counted"),
    ("A pricing", "/api/pricings/", "what it costs"),
    ("A customer", "/api/customers/", "who pays"),
    ("A contract", "/api/contracts/", "which of it they agreed on, and for how long"),
];

/// The body of the first page.
pub fn home(answers: &HomeAnswers) -> Markup {
    let narrowed = |query: &str| Some(format!("{}?{query}", href(&["documents"])));
    html! {
        h1 { "Home" }
        @if !answers.steps.iter().all(|taken| *taken) { (first_steps(answers)) }
        div.cards {
            (card("Left to pay", answers.owed_amounts.as_deref(), &answers.owed, narrowed("has_amount_due=true&order=due_date")))
            (card("Overdue", answers.overdue_amounts.as_deref(), &answers.overdue, narrowed("overdue=true&order=due_date")))
            (card("Drafts", None, &answers.drafts, narrowed("state=DRAFT")))
            (card("Refused usage since yesterday", None, &answers.refused, Some(href(&["refused"]))))
            (last_run(At(&answers.last_run)))
            (card("Customers", None, &answers.customers, Some(href(&["customers"]))))
        }
        @if At(&answers.documents).items().next().is_some() {
            (section("Latest documents", &table("Latest documents", LATEST_DOCUMENTS, At(&answers.documents))))
        }
    }
}

fn card(name: &str, amounts: Option<&str>, count: &str, to: Option<String>) -> Markup {
    html! {
        div.card {
            h2 { (link(to, name)) }
            @match amounts {
                Some(amounts) if !amounts.is_empty() => { p { (amounts) } p.muted { (count) " documents" } }
                _ => p { (count) },
            }
        }
    }
}

/// What failed in the last billing run, where one was.
fn last_run(run: At<'_>) -> Markup {
    let page = Some(href(&["billing-runs", &run.at("run_ref").text()]));
    html! {
        @if run.is_there() { (card("Contracts that failed in the last billing run", None, &run.at("failed").text(), page)) }
    }
}

fn first_steps(answers: &HomeAnswers) -> Markup {
    section(
        "From nothing to the first invoice",
        &html! {
            ol {
                @for ((what, path, why), taken) in STEPS.iter().zip(answers.steps) {
                    li {
                        (what) ": " (why) ". "
                        @if taken { strong { "Done." } } @else { "Made by " code { "POST " (path) } ", see "
                            a href=(format!("/docs#{}", encoded(path))) { "the reference" } "." }
                    }
                }
                li { "Then software reports usage with " a href=(href(&["keys"])) { "an API key" } "; the answer names the invoice." }
            }
        },
    )
}
