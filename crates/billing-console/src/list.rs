//! Lists: filters, table and pagination.

use maud::{Markup, html};

use crate::input::{Input, InputKind};
use crate::json_view::JsonView;
use crate::listings::ALL;
use crate::parts::{amounts, day, href, instant, link, money, number, query, state, words};
use crate::thing::fields;

/// The format of a column.
#[derive(Clone, Copy, Debug)]
pub enum CellFormat {
    /// Unformatted text.
    Text,
    /// An amount; the parameter is the field with its currency.
    Money(&'static str),
    /// A number.
    Number,
    /// A date.
    Day,
    /// A timestamp.
    Instant,
    /// A status.
    State,
    /// An enum word of the API.
    Word,
    /// The value as the API returns it: text or collapsible fields.
    Told,
}

/// A column of a list.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Heading.
    pub label: &'static str,
    /// Field path with dots between the names.
    pub field: &'static str,
    /// Format of the values.
    pub shown: CellFormat,
    /// Link target: a part of the console, and the field with the reference.
    pub leads: Option<(&'static str, &'static str)>,
    /// The API's name of the sort order by this column, if it exists.
    pub order: Option<&'static str>,
}

impl Column {
    pub(crate) const fn leading(self, part: &'static str, key: &'static str) -> Self {
        Self { leads: Some((part, key)), ..self }
    }

    pub(crate) const fn by(self, order: &'static str) -> Self {
        Self { order: Some(order), ..self }
    }
}

/// An API list and its presentation.
#[derive(Clone, Copy, Debug)]
pub struct Listing {
    /// Path segment of the part of the console.
    pub part: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Id of the operation that returns the list.
    pub operation: &'static str,
    /// Id of the operation that returns one element, if it exists.
    pub read: Option<&'static str>,
    /// Columns in display order.
    pub columns: &'static [Column],
    /// Initial sort order, if it differs from the API's default.
    pub order: Option<&'static str>,
    /// Hint for an empty list.
    pub empty: &'static str,
    /// Whether the console has a form that creates an element.
    pub is_made_here: bool,
}

impl Listing {
    /// Returns the list of a part of the console.
    pub fn of(part: &str) -> Option<&'static Self> {
        ALL.iter().copied().find(|listing| listing.part == part)
    }

    /// Returns the columns with the given fields, in the given order.
    pub(crate) fn some(&self, fields: &[&str]) -> Vec<Column> {
        let of = |field: &&str| self.columns.iter().find(|column| column.field == *field).copied();
        fields.iter().filter_map(of).collect()
    }

    /// Returns the opposite sort order, if no visible column offers the list's initial order.
    fn other_end(&self, view: &View) -> Option<String> {
        let by = self.order?.trim_start_matches('-');
        let is_shown = view.columns.iter().any(|column| column.order == Some(by));
        let newest_first = format!("-{by}");
        let other = if view.order == newest_first { by.to_owned() } else { newest_first };
        (!is_shown).then_some(other)
    }

    /// Returns the label of the button that creates an element.
    fn making(&self) -> &'static str {
        match self.part {
            "billing-runs" => "Run billing",
            "imports" => "Import file",
            _ => "New",
        }
    }

    /// Returns an object's name: the field that links to its page.
    pub fn name_of(&self, thing: JsonView<'_>) -> String {
        let leads_there = |column: &&Column| column.leads.is_some_and(|(part, _)| part == self.part);
        self.columns.iter().find(leads_there).map(|column| thing.at(column.field).text()).unwrap_or_default()
    }
}

/// A filter of a list.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Query parameter.
    pub name: String,
    /// Description.
    pub meaning: String,
    /// Type of the input.
    pub kind: InputKind,
    /// Current value.
    pub value: String,
}

/// Columns, order and filters of a list as requested.
#[derive(Clone, Debug)]
pub struct View {
    /// Selected columns in the list's order.
    pub columns: Vec<Column>,
    /// Sort order; the prefix `-` means descending.
    pub order: String,
    /// The query parameters except the page.
    pub said: Vec<(String, String)>,
}

impl View {
    /// Query parameter for a selected column.
    pub const COLUMNS: &str = "columns";
    /// Query parameter for the sort order.
    pub const ORDER: &str = "order";

    /// Creates the view for the parameters of a query.
    pub fn of(listing: &Listing, said: &[(String, String)]) -> Self {
        // The page is dropped, because page numbers and cursors are valid only for one sort order.
        let is_kept = |(name, value): &&(String, String)| {
            !value.is_empty() && !["done", "cursor", "pageNumber", Self::COLUMNS].contains(&name.as_str())
        };
        let wants = |column: &&Column| said.iter().any(|(name, value)| name == Self::COLUMNS && value == column.field);
        let wanted: Vec<Column> = listing.columns.iter().filter(wants).copied().collect();
        let columns = if wanted.is_empty() { listing.columns.to_vec() } else { wanted };
        let named = if columns.len() == listing.columns.len() { &[] } else { columns.as_slice() };
        let named = named.iter().map(|column| (Self::COLUMNS.to_owned(), column.field.to_owned()));
        let order = said.iter().find(|(name, value)| name == Self::ORDER && !value.is_empty()).map(|(_, order)| order.as_str());
        Self {
            order: order.or(listing.order).unwrap_or_default().to_owned(),
            said: said.iter().filter(is_kept).cloned().chain(named).collect(),
            columns,
        }
    }

    /// Returns the query with additional parameters, which replace existing ones.
    pub fn with(&self, more: &[(&str, &str)]) -> String {
        let said = self.said.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let said = said.filter(|(name, _)| more.iter().all(|(other, _)| name != other));
        query(&said.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    /// Adds the selected columns to a page's query from the API.
    fn beside(&self, page: &str) -> String {
        let named = self.said.iter().filter(|(name, _)| name == Self::COLUMNS);
        let named: Vec<(&str, &str)> = named.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if named.is_empty() { page.to_owned() } else { format!("{page}&{}", query(&named)) }
    }
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// The elements.
    pub elements: serde_json::Value,
    /// Size of the whole list, if known.
    pub total: Option<String>,
    /// Sums over the whole list by currency, if the API returns them.
    pub sums: Vec<(String, String)>,
    /// Queries of the neighboring pages.
    pub neighbours: PageLinks,
    /// URL of the whole list as CSV with all fields.
    pub table: Option<String>,
}

/// Queries of the pages around a page.
#[derive(Clone, Debug, Default)]
pub struct PageLinks {
    /// First page.
    pub first: Option<String>,
    /// Previous page.
    pub previous: Option<String>,
    /// Next page.
    pub next: Option<String>,
}

/// Renders the page of a list.
pub fn list(listing: &Listing, part: &ListPage, filters: &[Filter], view: &View) -> Markup {
    let elements = JsonView(&part.elements);
    let is_narrowed = filters.iter().any(|filter| !filter.value.is_empty());
    html! {
        h1 { (listing.title) }
        @if listing.is_made_here { p { a.button href=(href(&["new", listing.part])) { (listing.making()) } } }
        (narrowing(listing, filters, is_narrowed, view))
        @if elements.items().next().is_none() {
            p { @if is_narrowed { "No results match these filters." } @else { (listing.empty) } }
        } @else {
            (ordered(listing.title, view, elements))
            (pages(listing, part, view))
        }
    }
}

fn narrowing(listing: &Listing, filters: &[Filter], is_narrowed: bool, view: &View) -> Markup {
    // Active filters are visible, the others collapsed.
    let (used, others): (Vec<&Filter>, Vec<&Filter>) = filters.iter().partition(|filter| !filter.value.is_empty());
    let is_shown = |column: &Column| view.columns.iter().any(|shown| shown.field == column.field);
    let show = html! {
        div.pages {
            button { "Apply" }
            @if is_narrowed || view.columns.len() < listing.columns.len() { a href=(href(&[listing.part])) { "Reset" } }
        }
    };
    html! {
        form method="get" action=(href(&[listing.part])) {
            // Preserves parameters that are not inputs of this form.
            @for (name, value) in &view.said {
                @if name != View::COLUMNS && filters.iter().all(|filter| filter.name != *name) {
                    input type="hidden" name=(name) value=(value);
                }
            }
            @if !filters.is_empty() {
                details open[is_narrowed] {
                    summary { "Filters" }
                    div.filters { @for filter in used.into_iter().chain(others) { (field(filter)) } }
                    (show)
                }
            }
            details {
                summary { "Columns" }
                div.columns {
                    @for column in listing.columns {
                        label {
                            input type="checkbox" name=(View::COLUMNS) value=(column.field) checked[is_shown(column)];
                            " " (column.label)
                        }
                    }
                }
                (show)
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

/// Renders a table of elements.
pub(crate) fn table(name: &str, columns: &[Column], elements: JsonView<'_>) -> Markup {
    let headings = html! {
        @for column in columns { th scope="col" class=[class(column)] { (column.label) } }
    };
    rows(name, &headings, columns, elements)
}

/// Renders a list's table with sortable headings.
fn ordered(name: &str, view: &View, elements: JsonView<'_>) -> Markup {
    let (by, descends) = view.order.strip_prefix('-').map_or((view.order.as_str(), false), |by| (by, true));
    let headings = html! {
        @for column in &view.columns {
            @match column.order {
                None => th scope="col" class=[class(column)] { (column.label) },
                Some(order) => {
                    @let is_by = order == by;
                    @let other = if is_by && !descends { format!("-{order}") } else { order.to_owned() };
                    @let sorted = is_by.then_some(if descends { "descending" } else { "ascending" });
                    th scope="col" class=[class(column)] aria-sort=[sorted] {
                        a.order href={ "?" (view.with(&[(View::ORDER, &other)])) } { (column.label) }
                        @if is_by { span aria-hidden="true" { (if descends { " ▾" } else { " ▴" }) } }
                    }
                },
            }
        }
    };
    rows(name, &headings, &view.columns, elements)
}

fn rows(name: &str, headings: &Markup, columns: &[Column], elements: JsonView<'_>) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label=(name) {
            table {
                thead { tr { (headings) } }
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
        CellFormat::Money(_) | CellFormat::Number => Some("amount"),
        CellFormat::Text | CellFormat::Day | CellFormat::Instant | CellFormat::State | CellFormat::Word | CellFormat::Told => {
            None
        }
    }
}

/// Returns the CSV headings: the column labels and the currency of amounts.
pub fn headings(columns: &[Column]) -> Vec<String> {
    let labels = columns.iter().map(|column| column.label.to_owned());
    labels.chain(currency_of(columns).map(|_| "Currency".to_owned())).collect()
}

/// Returns a CSV row below [`headings`], with all digits and UTC timestamps. The flag marks numbers.
pub fn row(columns: &[Column], element: &serde_json::Value) -> Vec<(String, bool)> {
    let element = JsonView(element);
    let said = |field: &str| (element.at(field).text(), element.at(field).0.is_number());
    columns.iter().map(|column| said(column.field)).chain(currency_of(columns).map(said)).collect()
}

/// Returns the field with the currency of amounts, unless a column shows it.
fn currency_of(columns: &[Column]) -> Option<&'static str> {
    let currency = columns.iter().find_map(|column| match column.shown {
        CellFormat::Money(currency) => Some(currency),
        _ => None,
    })?;
    columns.iter().all(|column| column.field != currency).then_some(currency)
}

fn cell(column: &Column, element: JsonView<'_>) -> Markup {
    let at = element.at(column.field);
    let shown = match column.shown {
        CellFormat::Text => html! { (at.text()) },
        CellFormat::Money(currency) => money(at, &element.at(currency).text()),
        CellFormat::Number => number(at),
        CellFormat::Day => day(at),
        CellFormat::Instant => instant(at),
        CellFormat::State => state(at),
        CellFormat::Word => html! { (words(&at.text())) },
        CellFormat::Told if at.0.is_object() => html! { details { summary { "Show" } (fields(at)) } },
        CellFormat::Told => html! { @if at.is_there() { details { summary { "Show" } pre { code { (at.text()) } } } } },
    };
    let page = column.leads.map(|(part, key)| (part, element.at(key).text())).filter(|(_, reference)| !reference.is_empty());
    match page {
        Some((part, reference)) => html! { a href=(href(&[part, &reference])) { (shown) } },
        None => shown,
    }
}

fn pages(listing: &Listing, part: &ListPage, view: &View) -> Markup {
    let PageLinks { first, previous, next } = &part.neighbours;
    let place = |query: &str| format!("?{}", view.beside(query));
    html! {
        div.pages {
            @if let Some(total) = &part.total { span { "Results: " (crate::parts::grouped(total)) } }
            @for (what, amount) in &part.sums { span { (what) ": " (amounts(amount)) } }
            @if let Some(other) = listing.other_end(view) {
                @let name = if other.starts_with('-') { "Newest first" } else { "Oldest first" };
                a href={ "?" (view.with(&[(View::ORDER, &other)])) } { (name) }
            }
            @if let (Some(first), Some(_)) = (first, previous) { a href=(place(first)) { "First" } }
            @if let Some(previous) = previous { a rel="prev" href=(place(previous)) { "Previous" } }
            @if let Some(next) = next { a rel="next" href=(place(next)) { "Next" } }
            a href={ (href(&["csv", listing.part])) "?" (view.with(&[])) } { "CSV" }
            @if let Some(table) = &part.table { a href=(table) { "CSV (all fields)" } }
        }
    }
}

/// Renders the search results.
pub fn found(sought: &str, found: &serde_json::Value) -> Markup {
    html! {
        h1 { "Search: " (sought) }
        @if JsonView(found).items().next().is_none() {
            p { "No object has this number, reference or key, or a name that starts with this text." }
        } @else {
            div.scrolls {
                table {
                    thead { tr { th { "Type" } th { "Number or reference" } th { "Name" } } }
                    tbody { @for one in JsonView(found).items() { tr {
                        td { (words(&one.at("kind").text())) }
                        td { (link(page_of(one), &name_of(one))) }
                        td { (one.at("name").text()) }
                    } } }
                }
            }
        }
    }
}

/// Returns an object's number or, without a number, its reference.
fn name_of(one: JsonView<'_>) -> String {
    let number = one.at("number");
    if number.is_there() { number.text() } else { one.at("ref").text() }
}

/// Kinds of search results and the parts of the console that show them.
const PLACES: &[(&str, &str)] = &[
    ("CUSTOMER", "customers"),
    ("CONTRACT", "contracts"),
    ("DOCUMENT", "documents"),
    ("PAYMENT", "documents"),
    ("USAGE_EVENT", "events"),
    ("USAGE_PRODUCT", "usage-products"),
    ("FORMAT", "formats"),
    ("PRICING", "pricings"),
    ("ENTITY", "entities"),
    ("CHARGE", "charges"),
    ("BANK_ACCOUNT", "bank-accounts"),
];

/// Returns the console page of a search result.
fn page_of(one: JsonView<'_>) -> Option<String> {
    if one.at("kind").is("API_KEY") {
        return Some(href(&["keys"]));
    }
    let (_, part) = PLACES.iter().find(|(kind, _)| one.at("kind").is(kind))?;
    // The URL ends with the reference; that of a payment with the reference of its document.
    one.at("url").text().rsplit('/').next().map(|reference| href(&[part, reference]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listings::{DOCUMENTS, DOCUMENTS_OF, DOCUMENTS_OF_RUN, LATEST_DOCUMENTS, REFUSED, WHY};

    fn shown(elements: &serde_json::Value, filters: &[Filter]) -> String {
        seen(elements, filters, &[])
    }

    fn seen(elements: &serde_json::Value, filters: &[Filter], said: &[(&str, &str)]) -> String {
        let neighbours = PageLinks { next: Some("cursor=7&pageSize=50".to_owned()), ..PageLinks::default() };
        let total = Some("1234".to_owned());
        let part = ListPage { elements: elements.clone(), total, sums: Vec::new(), neighbours, table: None };
        let said: Vec<(String, String)> = said.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        list(&DOCUMENTS, &part, filters, &View::of(&DOCUMENTS, &said)).into_string()
    }

    #[test]
    fn what_is_found_leads_to_its_page() {
        for (kind, url, page) in [
            ("DOCUMENT", "/api/documents/7", Some("/console/documents/7")),
            ("PAYMENT", "/api/documents/7", Some("/console/documents/7")),
            ("USAGE_EVENT", "/api/usage/event/e:1", Some("/console/events/e%3A1")),
            ("API_KEY", "/auth/keys/list", Some("/console/keys")),
            ("ELSE", "/api/else/7", None),
        ] {
            assert_eq!(page_of(JsonView(&json!({"kind": kind, "ref": "r", "url": url}))).as_deref(), page, "{kind}");
        }
        assert!(PLACES.iter().all(|(_, part)| Listing::of(part).is_some_and(|listing| listing.read.is_some())));
    }

    #[test]
    fn a_list_without_elements_says_what_to_do_and_with_filters_that_none_passes() {
        let empty = shown(&json!([]), &[]);
        assert!(empty.contains("creates its invoice"), "{empty}");
        let filter = Filter { name: "state".to_owned(), meaning: String::new(), kind: InputKind::Flag, value: "true".to_owned() };
        let narrowed = shown(&json!([]), &[filter]);
        assert!(narrowed.contains("No results match") && !narrowed.contains("creates its invoice"), "{narrowed}");
    }

    #[test]
    fn cells_are_links_amounts_and_text_and_never_markup() {
        let document =
            json!({"document_number": "<b>1", "document_ref": "r", "total": 1234.5, "currency": "EUR", "state": "PAID"});
        let shown = shown(&json!([document]), &[]);
        assert!(shown.contains(r#"<a href="/console/documents/r">&lt;b&gt;1</a>"#), "{shown}");
        assert!(shown.contains("1,234.5"), "{shown}");
        assert!(shown.contains("Results: 1,234"), "{shown}");
    }

    #[test]
    fn columns_are_chosen_and_stay_chosen_on_the_next_page_and_in_another_order() {
        let document =
            json!({"document_number": "UB-1", "document_ref": "r", "kind": "INVOICE", "total": 1.5, "currency": "EUR"});
        let said = [("columns", "document_number"), ("columns", "total"), ("state", "PAID"), ("cursor", "6"), ("kind", "")];
        let page = seen(&json!([document]), &[], &said);
        assert!(page.contains("UB-1") && page.contains("1.5") && !page.contains("<td>Invoice"), "{page}");
        let columns = "columns=document_number&amp;columns=total";
        assert!(page.contains(&format!(r#"href="?cursor=7&amp;pageSize=50&amp;{columns}""#)), "{page}");
        assert!(page.contains(&format!(r#"href="?state=PAID&amp;{columns}&amp;order=amount""#)), "{page}");
        assert!(page.contains(&format!(r#"href="/console/csv/documents?state=PAID&amp;{columns}""#)), "{page}");
    }

    #[test]
    fn a_heading_orders_by_it_and_then_the_other_way() {
        let document = json!([{"document_number": "UB-1"}]);
        let of = |order| seen(&document, &[], &[("order", order)]);
        let ascending = of("due_date");
        assert!(ascending.contains(r#"aria-sort="ascending""#) && ascending.contains("order=-due_date"), "{ascending}");
        let descending = of("-due_date");
        assert!(descending.contains(r#"aria-sort="descending""#) && descending.contains("order=due_date"), "{descending}");
        let at_first = shown(&document, &[]);
        assert!(at_first.contains(r#"aria-sort="descending""#) && at_first.contains("order=created"), "{at_first}");
    }

    #[test]
    fn a_row_for_programs_has_all_digits_and_its_currency() {
        let columns: Vec<Column> =
            DOCUMENTS.columns.iter().filter(|column| ["kind", "total"].contains(&column.field)).copied().collect();
        assert_eq!(headings(&columns), ["Kind", "Total", "Currency"]);
        let total: serde_json::Value = serde_json::from_str("12345678901234.000001").expect("a number");
        let told = row(&columns, &json!({"kind": "INVOICE", "total": total, "currency": "EUR"}));
        let told: Vec<(&str, bool)> = told.iter().map(|(text, is_number)| (text.as_str(), *is_number)).collect();
        assert_eq!(told, [("INVOICE", false), ("12345678901234.000001", true), ("EUR", false)]);
    }

    #[test]
    fn what_is_shown_of_a_list_elsewhere_is_among_its_columns() {
        let shown = [(&DOCUMENTS, DOCUMENTS_OF), (&DOCUMENTS, LATEST_DOCUMENTS), (&DOCUMENTS, DOCUMENTS_OF_RUN), (&REFUSED, WHY)];
        for (listing, fields) in shown {
            let found: Vec<&str> = listing.some(fields).iter().map(|column| column.field).collect();
            assert_eq!(found, fields, "{}", listing.part);
        }
    }

    #[test]
    fn every_list_has_a_part_and_columns_of_its_own() {
        for listing in ALL {
            assert!(!listing.columns.is_empty(), "{listing:?}");
            assert_eq!(ALL.iter().filter(|other| other.part == listing.part).count(), 1, "{listing:?}");
        }
    }
}
