//! Lists: what they are narrowed to, a table of their elements, and the pages before and after.

use maud::{Markup, html};

use crate::answer::At;
use crate::input::{Input, InputKind};
use crate::listings::ALL;
use crate::parts::{day, href, instant, link, money, number, state, words};
use crate::thing::fields;

/// How a column shows its field.
#[derive(Clone, Copy, Debug)]
pub enum Shown {
    /// As it is.
    Text,
    /// As it is, leading to the page of what another field names, in this part of the console.
    Link {
        /// The part.
        part: &'static str,
        /// The field with the reference.
        key: &'static str,
    },
    /// An amount, in the currency that another field names.
    Money(&'static str),
    /// A number.
    Number,
    /// A day.
    Day,
    /// An instant.
    Instant,
    /// A state.
    State,
    /// A word of the interface.
    Word,
    /// What it says, as the interface says it: a text, or fields a click away.
    Told,
}

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub label: &'static str,
    /// The field it shows, by the names on the way to it with dots between.
    pub field: &'static str,
    /// How.
    pub shown: Shown,
}

/// A list of the interface, and how it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    /// Its part of the console.
    pub part: &'static str,
    /// What it is called.
    pub title: &'static str,
    /// Where the interface lists it.
    pub path: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// What to do where there is nothing.
    pub empty: &'static str,
    /// Whether the console has a form that makes one.
    pub is_made_here: bool,
}

impl Listing {
    /// The list of a part of the console.
    pub fn of(part: &str) -> Option<&'static Self> {
        ALL.iter().copied().find(|listing| listing.part == part)
    }

    /// Below what the interface reads one of its things.
    pub fn below(&self) -> Option<&'static str> {
        PLACES.iter().find(|(_, part)| *part == self.part).map(|(below, _)| *below)
    }

    /// What makes one.
    fn making(&self) -> &'static str {
        match self.part {
            "billing-runs" => "Run billing now",
            "imports" => "Import a file",
            _ => "New",
        }
    }

    /// What a thing is called: the field that leads to its page.
    pub fn name_of(&self, thing: At<'_>) -> String {
        let leads_there = |column: &&Column| matches!(column.shown, Shown::Link { part, .. } if part == self.part);
        self.columns.iter().find(leads_there).map(|column| thing.at(column.field).text()).unwrap_or_default()
    }
}

/// What a list can be narrowed by.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The parameter.
    pub name: String,
    /// What it means.
    pub meaning: String,
    /// What may be said.
    pub kind: InputKind,
    /// What is said.
    pub value: String,
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its elements.
    pub elements: serde_json::Value,
    /// How many the whole list has, where that is known.
    pub total: Option<String>,
    /// What all of it amounts to, by currency, where the interface tells.
    pub sums: Vec<(String, String)>,
    /// Queries of the pages around it.
    pub neighbours: Neighbours,
    /// Where the whole list is written as a table for other programs.
    pub table: Option<String>,
}

/// Queries of the pages around one.
#[derive(Clone, Debug, Default)]
pub struct Neighbours {
    /// Of the first page.
    pub first: Option<String>,
    /// Of the one before.
    pub previous: Option<String>,
    /// Of the one after.
    pub next: Option<String>,
}

/// The body of a list's page.
pub fn list(listing: &Listing, part: &Part, filters: &[Filter]) -> Markup {
    let elements = At(&part.elements);
    let is_narrowed = filters.iter().any(|filter| !filter.value.is_empty());
    html! {
        h1 { (listing.title) }
        @if listing.is_made_here { p { a.button href=(href(&["new", listing.part])) { (listing.making()) } } }
        @if !filters.is_empty() { (narrowing(listing, filters, is_narrowed)) }
        @if elements.items().next().is_none() {
            p { @if is_narrowed { "Nothing passes these filters." } @else { (listing.empty) } }
        } @else {
            (table(listing.title, listing.columns, elements))
            (pages(part))
        }
    }
}

fn narrowing(listing: &Listing, filters: &[Filter], is_narrowed: bool) -> Markup {
    // Those that are in use stand open; the others are a click away.
    let (used, others): (Vec<&Filter>, Vec<&Filter>) = filters.iter().partition(|filter| !filter.value.is_empty());
    html! {
        form method="get" action=(href(&[listing.part])) {
            details open[is_narrowed] {
                summary { "Filters" }
                div.filters { @for filter in used.into_iter().chain(others) { (field(filter)) } }
                div.pages {
                    button { "Show" }
                    @if is_narrowed { a href=(href(&[listing.part])) { "All" } }
                }
            }
        }
    }
}

pub(crate) fn field(filter: &Filter) -> Markup {
    let Filter { name, meaning, kind, value } = filter;
    let input = Input {
        name,
        kind,
        value,
        nothing: "any",
        max_length: 255,
        required: false,
        id: None,
        told_by: None,
        list: None,
        is_wrong: false,
    };
    html! { label title=(meaning) { (words(name)) (input.markup()) } }
}

/// A table of a list's elements.
pub(crate) fn table(name: &str, columns: &[Column], elements: At<'_>) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label=(name) {
            table {
                thead { tr { @for column in columns { th scope="col" class=[class(column)] { (column.label) } } } }
                tbody {
                    @for element in elements.items() {
                        tr { @for column in columns { td class=[class(column)] { (cell(column, element)) } } }
                    }
                }
            }
        }
    }
}

const fn class(column: &Column) -> Option<&'static str> {
    match column.shown {
        Shown::Money(_) | Shown::Number => Some("amount"),
        Shown::Text | Shown::Link { .. } | Shown::Day | Shown::Instant | Shown::State | Shown::Word | Shown::Told => None,
    }
}

fn cell(column: &Column, element: At<'_>) -> Markup {
    let at = element.at(column.field);
    match column.shown {
        Shown::Text => html! { (at.text()) },
        Shown::Link { part, key } => {
            let key = element.at(key).text();
            link((!key.is_empty()).then(|| href(&[part, &key])), &at.text())
        }
        Shown::Money(currency) => money(at, &element.at(currency).text()),
        Shown::Number => number(at),
        Shown::Day => day(at),
        Shown::Instant => instant(at),
        Shown::State => state(at),
        Shown::Word => html! { (words(&at.text())) },
        Shown::Told if at.0.is_object() => html! { details { summary { "Show" } (fields(at)) } },
        Shown::Told => html! { @if at.is_there() { details { summary { "Show" } pre { code { (at.text()) } } } } },
    }
}

fn pages(part: &Part) -> Markup {
    let Neighbours { first, previous, next } = &part.neighbours;
    let place = |query: &str| format!("?{query}");
    html! {
        div.pages {
            @if let Some(total) = &part.total { span { (crate::parts::grouped(total)) " in all" } }
            @for (what, amount) in &part.sums { span { (what) ": " (amount) } }
            @if let (Some(first), Some(_)) = (first, previous) { a href=(place(first)) { "First" } }
            @if let Some(previous) = previous { a rel="prev" href=(place(previous)) { "Previous" } }
            @if let Some(next) = next { a rel="next" href=(place(next)) { "Next" } }
            @if let Some(table) = &part.table { a href=(table) { "CSV" } }
        }
    }
}

/// The body of the page with what a search found.
pub fn found(sought: &str, found: &serde_json::Value) -> Markup {
    html! {
        h1 { "Search: " (sought) }
        @if At(found).items().next().is_none() {
            p { "Nothing has this as its number, reference or key, nor a name that begins so." }
        } @else {
            div.scrolls {
                table {
                    thead { tr { th { "What" } th { "Number or reference" } th { "Name" } } }
                    tbody { @for one in At(found).items() { tr {
                        td { (words(&one.at("kind").text())) }
                        td { (link(page_of(&one.at("url").text()), &name_of(one))) }
                        td { (one.at("name").text()) }
                    } } }
                }
            }
        }
    }
}

/// The number of something that was found, or else its reference.
fn name_of(one: At<'_>) -> String {
    let number = one.at("number");
    if number.is_there() { number.text() } else { one.at("ref").text() }
}

/// Below what the interface reads things, and the part of the console that shows them.
const PLACES: &[(&str, &str)] = &[
    ("/api/customers/", "customers"),
    ("/api/contracts/", "contracts"),
    ("/api/documents/", "documents"),
    ("/api/usage/event/", "events"),
    ("/api/usage/products/", "usage-products"),
    ("/api/usage/formats/", "formats"),
    ("/api/usage/imports/", "imports"),
    ("/api/billing/runs/", "billing-runs"),
    ("/api/pricings/", "pricings"),
    ("/api/entities/", "entities"),
    ("/api/charges/", "charges"),
    ("/api/bank_accounts/", "bank-accounts"),
];

/// The page of what the interface reads there.
fn page_of(url: &str) -> Option<String> {
    let of_thing = PLACES.iter().find_map(|(below, part)| url.strip_prefix(below).map(|reference| href(&[part, reference])));
    of_thing.or_else(|| (url == "/auth/keys/list").then(|| href(&["keys"])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listings::DOCUMENTS;

    fn part(elements: serde_json::Value) -> Part {
        Part { elements, total: Some("1234".to_owned()), sums: Vec::new(), neighbours: Neighbours::default(), table: None }
    }

    #[test]
    fn what_is_found_leads_to_its_page() {
        assert_eq!(page_of("/api/documents/7").as_deref(), Some("/console/documents/7"));
        assert_eq!(page_of("/auth/keys/list").as_deref(), Some("/console/keys"));
        assert_eq!(page_of("/api/else/7"), None);
    }

    #[test]
    fn a_list_without_elements_says_what_to_do_and_with_filters_that_none_passes() {
        let empty = list(&DOCUMENTS, &part(json!([])), &[]).into_string();
        assert!(empty.contains("opens its invoice"), "{empty}");
        let filter = Filter { name: "state".to_owned(), meaning: String::new(), kind: InputKind::Flag, value: "true".to_owned() };
        let narrowed = list(&DOCUMENTS, &part(json!([])), &[filter]).into_string();
        assert!(narrowed.contains("Nothing passes") && !narrowed.contains("opens its invoice"), "{narrowed}");
    }

    #[test]
    fn cells_are_links_amounts_and_text_and_never_markup() {
        let document =
            json!({"document_number": "<b>1", "document_ref": "r", "total": 1234.5, "currency": "EUR", "state": "PAID"});
        let shown = list(&DOCUMENTS, &part(json!([document])), &[]).into_string();
        assert!(shown.contains(r#"<a href="/console/documents/r">&lt;b&gt;1</a>"#), "{shown}");
        assert!(shown.contains("1,234.5"), "{shown}");
        assert!(shown.contains("1,234 in all"), "{shown}");
    }

    #[test]
    fn every_list_has_a_part_and_columns_of_its_own() {
        for listing in ALL {
            assert!(listing.path.starts_with("/api/") && !listing.columns.is_empty(), "{listing:?}");
            assert_eq!(ALL.iter().filter(|other| other.part == listing.part).count(), 1, "{listing:?}");
        }
    }
}
