//! Lists: table and pagination.

use billing_api::operation::OperationSpec;
use maud::{Markup, html};

use crate::audit::{changes, is_identifier, sentence};
use crate::bulk::{Selection, selection};
use crate::filters::{ListFilters, NamedPeriod, address, narrowing};
use crate::form::one_of;
use crate::input::InputKind;
use crate::listings::ALL;
use crate::parts::{
    actor, amounts, day, href, identifier, instant, isolated, link, money, name, number, query, state, subject, words,
};
use crate::price_table::reason;
use crate::thing::content;
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::money::CustomerDueJson;
use billing_api::dto::search::SearchResultJson;
use billing_api::dto::webhooks::WebhookDeliveryJson;
use billing_api::json_view::JsonView;
use billing_api::{field, operations::ListPaymentsOfCustomer};

/// The format of a column.
#[derive(Clone, Copy, Debug)]
pub enum CellFormat {
    /// Unformatted text.
    Text,
    /// A name, which can be long and wraps.
    Name,
    /// An amount; the parameter is the field with its currency.
    Money(&'static str),
    /// An amount due, like [`Money`](Self::Money). A draft has none.
    Due(&'static str),
    /// Amounts due by entity and currency.
    AmountsDue,
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
    /// A reference, shown by the name in another field. Without a name, the reference has no page.
    Labelled(&'static str),
    /// The author of a change.
    Actor,
    /// An entry of the audit log as a sentence.
    Sentence,
    /// The changed values of an entry of the audit log.
    Changes,
    /// An identifier that only programs need.
    Id,
    /// A sentence, which needs a wide column.
    Prose,
    /// The reason of a rejection, with a link to what resolves it, if the console has it.
    Rejection,
    /// The type of a notification.
    Event,
    /// The subject of a notification.
    Subject,
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
    /// Whether the column is shown only on request.
    pub is_extra: bool,
}

impl Column {
    pub(crate) const fn extra(self) -> Self {
        Self { is_extra: true, ..self }
    }

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
    /// The operation that returns the list.
    pub operation: &'static OperationSpec,
    /// The operation that returns one element, if it exists.
    pub read: Option<&'static OperationSpec>,
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

    /// Returns the columns that are shown by default.
    fn usual_columns(&self) -> Vec<Column> {
        self.columns.iter().filter(|column| !column.is_extra).copied().collect()
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
        (!is_shown).then(|| if view.order == newest_first { by.to_owned() } else { newest_first })
    }

    /// Returns the label of the button that creates an element.
    pub(crate) fn making(&self) -> String {
        match self.part {
            "billing-runs" => "Run billing".to_owned(),
            "imports" => "Import file".to_owned(),
            _ => format!("New {}", one_of(&self.title.to_lowercase())),
        }
    }

    /// Returns an object's name: the field that links to its page.
    pub fn name_of(&self, thing: JsonView<'_>) -> String {
        let leads_there = |column: &&Column| column.leads.is_some_and(|(part, _)| part == self.part);
        self.columns.iter().find(leads_there).map(|column| column.name_of(thing)).unwrap_or_default()
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
    pub submitted: Vec<(String, String)>,
}

impl View {
    /// Query parameter for a selected column.
    pub const COLUMNS: &str = "columns";
    /// Query parameter for the sort order.
    pub const ORDER: &str = "order";
    /// Query parameter that selects all check boxes of the page.
    pub const SELECTED: &str = "selected";
    /// Query parameters that are not filters and that the form of the filters sets itself or drops.
    pub(crate) const OF_PAGE: [&str; 3] = [Self::COLUMNS, Self::SELECTED, NamedPeriod::PARAMETER];

    /// Creates the view for the parameters of a query.
    pub fn of(listing: &Listing, submitted: &[(String, String)]) -> Self {
        // The page is dropped, because page numbers and cursors are valid only for one sort order.
        let is_kept = |(name, value): &&(String, String)| {
            !value.is_empty() && !["done", "cursor", "pageNumber", Self::COLUMNS, Self::SELECTED].contains(&name.as_str())
        };
        let wants = |column: &&Column| submitted.iter().any(|(name, value)| name == Self::COLUMNS && value == column.field);
        let wanted: Vec<Column> = listing.columns.iter().filter(wants).copied().collect();
        let columns = if wanted.is_empty() { listing.usual_columns() } else { wanted };
        let named = if has_fields(&columns, &listing.usual_columns()) { &[] } else { columns.as_slice() };
        let named = named.iter().map(|column| (Self::COLUMNS.to_owned(), column.field.to_owned()));
        let pairs: Vec<(&str, &str)> = submitted.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let order = pairs.iter().find(|(name, value)| *name == Self::ORDER && !value.is_empty()).map(|(_, order)| *order);
        Self {
            order: order.or(listing.order_of(&pairs)).unwrap_or_default().to_owned(),
            submitted: submitted.iter().filter(is_kept).cloned().chain(named).collect(),
            columns,
        }
    }

    /// Returns whether the columns differ from those that are shown by default.
    pub(crate) fn has_own_columns(&self, listing: &Listing) -> bool {
        !has_fields(&self.columns, &listing.usual_columns())
    }

    /// Returns the query with additional parameters, which replace existing ones.
    pub fn with(&self, more: &[(&str, &str)]) -> String {
        let submitted = self.submitted.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let submitted = submitted.filter(|(name, _)| more.iter().all(|(other, _)| name != other));
        query(&submitted.chain(more.iter().copied()).collect::<Vec<_>>())
    }

    /// Adds the selected columns to a page's query from the API.
    fn beside(&self, page: &str) -> String {
        let named = self.submitted.iter().filter(|(name, _)| name == Self::COLUMNS);
        let named: Vec<(&str, &str)> = named.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if named.is_empty() { page.to_owned() } else { format!("{page}&{}", query(&named)) }
    }
}

fn has_fields(columns: &[Column], others: &[Column]) -> bool {
    columns.iter().map(|column| column.field).eq(others.iter().map(|column| column.field))
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
    /// Selection of elements for actions.
    pub selection: Option<Selection>,
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
pub fn list(listing: &Listing, part: &ListPage, filters: &ListFilters, view: &View) -> Markup {
    let elements = JsonView::of(&part.elements);
    let is_narrowed = filters.is_narrowed();
    html! {
        h1 { (listing.title) }
        @if listing.is_made_here { p { a.button href=(href(&["new", listing.part])) { (listing.making()) } } }
        (narrowing(listing, filters, view))
        @if elements.elements().next().is_none() {
            p { @if is_narrowed { "No results match these filters." } @else { (listing.empty) } }
        } @else {
            (ordered(listing.title, view, elements, part.selection.as_ref()))
            @if let Some(selected) = &part.selection { (selection(listing, selected)) }
            (pages(listing, part, view))
        }
        (address(filters))
    }
}

/// Renders a table of elements.
pub(crate) fn table(name: &str, columns: &[Column], elements: JsonView<'_>) -> Markup {
    let headings = html! {
        @for column in columns { th scope="col" class=[class(column)] { (column.label) } }
    };
    rows(name, &headings, columns, elements, None)
}

/// Renders a list's table with sortable headings.
fn ordered(name: &str, view: &View, elements: JsonView<'_>, selection: Option<&Selection>) -> Markup {
    let (by, descends) = view.order.strip_prefix('-').map_or((view.order.as_str(), false), |by| (by, true));
    let headings = html! {
        @if selection.is_some() {
            th scope="col" { span.first { "Selection" } input type="checkbox" data-all=(Selection::FIELD) hidden aria-label="Select all"; }
        }
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
    rows(name, &headings, &view.columns, elements, selection)
}

fn rows(name: &str, headings: &Markup, columns: &[Column], elements: JsonView<'_>, selection: Option<&Selection>) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label=(name) {
            table {
                thead { tr { (headings) } }
                tbody {
                    @for element in elements.elements() {
                        tr {
                            @if let Some(selection) = selection { td { (selection.check_box(element)) } }
                            @for column in columns { td class=[class(column)] { (cell(column, element)) } }
                        }
                    }
                }
            }
        }
    }
}

const fn class(column: &Column) -> Option<&'static str> {
    match column.shown {
        CellFormat::Money(_) | CellFormat::Due(_) | CellFormat::AmountsDue | CellFormat::Number => Some("amount"),
        CellFormat::Name => Some("name"),
        CellFormat::Sentence | CellFormat::Prose | CellFormat::Rejection => Some("prose"),
        _ => None,
    }
}

/// Returns the CSV headings: the column labels and the currency of amounts.
pub fn headings(columns: &[Column]) -> Vec<String> {
    let labels = columns.iter().map(|column| column.label.to_owned());
    labels.chain(currency_of(columns).map(|_| "Currency".to_owned())).collect()
}

/// Returns a CSV row below [`headings`], with all digits and UTC timestamps. The flag marks numbers.
pub fn row(columns: &[Column], element: &serde_json::Value) -> Vec<(String, bool)> {
    let element = JsonView::of(element);
    let submitted = |field: &str| (element.at_path(field).to_text(), element.at_path(field).json().is_number());
    let of_column = |column: &Column| match column.shown {
        CellFormat::AmountsDue => (amounts_due(element.at_path(column.field)), false),
        _ => submitted(column.field),
    };
    columns.iter().map(of_column).chain(currency_of(columns).map(submitted)).collect()
}

/// Returns amounts due as in the headers of document lists: `EUR 5311.62, USD 3.00`.
fn amounts_due(at: JsonView<'_>) -> String {
    let shown = |owed: JsonView<'_, CustomerDueJson>| format!("{} {}", owed.currency().to_text(), owed.due().to_text());
    at.elements().map(JsonView::read_as).map(shown).collect::<Vec<_>>().join(", ")
}

/// Returns the field with the currency of amounts, unless a column shows it.
fn currency_of(columns: &[Column]) -> Option<&'static str> {
    let currency = columns.iter().find_map(|column| match column.shown {
        CellFormat::Money(currency) | CellFormat::Due(currency) => Some(currency),
        _ => None,
    })?;
    columns.iter().all(|column| column.field != currency).then_some(currency)
}

fn cell(column: &Column, element: JsonView<'_>) -> Markup {
    let at = element.at_path(column.field);
    let shown = match column.shown {
        CellFormat::Text | CellFormat::Name | CellFormat::Prose => name(at),
        CellFormat::Due(_) if element.named(field!(DocumentJson, state)).is("DRAFT") => html! {},
        CellFormat::Money(currency) | CellFormat::Due(currency) => money(at, &element.at_path(currency).to_text()),
        CellFormat::AmountsDue => {
            html! { @for owed in at.elements().map(JsonView::read_as::<CustomerDueJson>) { div { (money(owed.due(), &owed.currency().to_text())) } } }
        }
        CellFormat::Number => number(at),
        CellFormat::Day => day(at),
        CellFormat::Instant => instant(at),
        CellFormat::State => state(at),
        CellFormat::Word => html! { (words(&at.to_text())) },
        CellFormat::Told if at.json().is_object() => html! { details { summary { "Show" } (content(column.field, at)) } },
        CellFormat::Told => html! { @if at.is_there() { details { summary { "Show" } pre tabindex="0" { (at.to_text()) } } } },
        CellFormat::Labelled(label) => {
            let label = element.named(label);
            return if label.is_there() { linked(column, element, &name(label)) } else { name(at) };
        }
        CellFormat::Rejection => reason(element.read_as()),
        CellFormat::Actor => isolated(&actor(element)),
        CellFormat::Sentence => sentence(element.read_as()),
        CellFormat::Changes => changes(element.read_as()),
        CellFormat::Id => identifier("Show", &at.to_text()),
        CellFormat::Event => html! { (words(&at.to_text().replace('.', " "))) },
        CellFormat::Subject => subject(&at.to_text(), &element.named(field!(WebhookDeliveryJson, subject_name)).to_text()),
    };
    linked(column, element, &shown)
}

/// Renders the value of a column with the link to its page. The link of a reference that the service assigned is "Open".
fn linked(column: &Column, element: JsonView<'_>, shown: &Markup) -> Markup {
    let Some((part, key)) = column.leads else { return shown.clone() };
    let reference = element.at_path(key).to_text();
    let shown = html! { @if is_identifier(&shown.0) { "Open" } @else { (shown) } };
    html! { @if reference.is_empty() { (shown) } @else { a href=(href(&[part, &reference])) { (shown) } } }
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
pub fn found(sought: &str, found: JsonView<'_, Vec<SearchResultJson>>) -> Markup {
    html! {
        h1 { "Search: " (sought) }
        @if found.is_empty() {
            p { "No results for “" (sought) "”. Search by a number, its end, or the beginning of a word." }
        } @else {
            div.scrolls tabindex="0" role="region" aria-label="Results" {
                table {
                    thead { tr { th { "Type" } th { "Name or number" } th { "Customer" } th { "Reference" } } }
                    tbody { @for one in found.items() { tr {
                        @let reference = one.reference().to_text();
                        td { (words(&one.kind().to_text())) }
                        td.name { (link(page_of(one), &name_of(one))) }
                        td.name { @if !one.kind().is("CUSTOMER") { (customer_of(one)) } }
                        td { @if !is_identifier(&reference) { (reference) } }
                    } } }
                }
            }
        }
    }
}

/// Returns an object's number, its name, or a reference that a caller chose.
fn name_of(one: JsonView<'_, SearchResultJson>) -> String {
    let reference = one.reference().to_text();
    let names = [one.number().to_text(), one.name().to_text()];
    let known = names.into_iter().find(|name| !name.is_empty());
    known.unwrap_or_else(|| if is_identifier(&reference) { words(&one.kind().to_text()) } else { reference })
}

/// Renders the customer of a search result by name.
fn customer_of(one: JsonView<'_, SearchResultJson>) -> Markup {
    let (reference, name) = (one.customer_ref().to_text(), one.customer_name().to_text());
    let page = (!reference.is_empty()).then(|| href(&["customers", &reference]));
    link(page, if name.is_empty() { &reference } else { &name })
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
fn page_of(one: JsonView<'_, SearchResultJson>) -> Option<String> {
    if one.kind().is("API_KEY") {
        return Some(href(&["keys"]));
    }
    let (_, part) = PLACES.iter().find(|(kind, _)| one.kind().is(kind))?;
    let part = if one.url().is(&ListPaymentsOfCustomer::SPEC.url(&one.customer_ref().to_text())) { "customers" } else { part };
    // The URL ends with the reference; that of a payment with the reference of its document, that of a deposit with its customer's.
    one.url().to_text().rsplit('/').next().map(|reference| href(&[part, reference]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listings::{
        CONTRACTS, CONTRACTS_OF, CUSTOMERS, DELIVERIES, DOCUMENTS, DOCUMENTS_OF, LATEST_DOCUMENTS, PAYMENTS, PAYMENTS_OF,
        REFUSED, WHY,
    };

    fn shown(elements: &serde_json::Value, filters: &[Filter]) -> String {
        seen(elements, filters, &[])
    }

    fn seen(elements: &serde_json::Value, filters: &[Filter], submitted: &[(&str, &str)]) -> String {
        let neighbours = PageLinks { next: Some("cursor=7&pageSize=50".to_owned()), ..PageLinks::default() };
        let total = Some("1234".to_owned());
        let part = ListPage { elements: elements.clone(), total, sums: Vec::new(), neighbours, table: None, selection: None };
        let submitted: Vec<(String, String)> =
            submitted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let filters = ListFilters { filters: filters.to_vec(), ..ListFilters::default() };
        list(&DOCUMENTS, &part, &filters, &View::of(&DOCUMENTS, &submitted)).into_string()
    }

    #[test]
    fn what_is_found_leads_to_its_page() {
        for (kind, url, page) in [
            ("DOCUMENT", "/api/documents/7", Some("/console/documents/7")),
            ("PAYMENT", "/api/documents/7", Some("/console/documents/7")),
            ("PAYMENT", "/api/customers/payments/acme", Some("/console/customers/acme")),
            ("USAGE_EVENT", "/api/usage/event/e:1", Some("/console/events/e%3A1")),
            ("API_KEY", "/auth/keys/list", Some("/console/keys")),
            ("ELSE", "/api/else/7", None),
        ] {
            let found = json!({"kind": kind, "ref": "r", "url": url, "customer_ref": "acme"});
            assert_eq!(page_of(JsonView::of(&found)).as_deref(), page, "{kind}");
        }
        assert!(PLACES.iter().all(|(_, part)| Listing::of(part).is_some_and(|listing| listing.read.is_some())));
    }

    #[test]
    fn objects_are_named_and_only_existing_ones_have_a_link() {
        let refused = |name: serde_json::Value| {
            let element = json!([{"day": "2026-11-10", "count": 3, "detail": "no such customer", "customer_ref": "acme",
                "customer_name": name, "usage_product_ref": "", "last_at": "2026-11-10T10:00:00Z"}]);
            table("Rejected usage", &REFUSED.some(WHY), JsonView::of(&element)).into_string()
        };
        assert!(refused(json!("Acme Ltd")).contains("<a href=\"/console/customers/acme\">Acme Ltd</a>"));
        let unknown = refused(serde_json::Value::Null);
        assert!(unknown.contains("acme") && !unknown.contains("<a ") && unknown.contains("class=\"prose\""), "{unknown}");
        let delivery = json!([{"type": "document.issued", "notification_ref": "n", "subject": "document:d", "subject_name": "UB-INV-1",
            "endpoint_ref": "e", "endpoint_url": "https://example.com"}]);
        let page = table("Deliveries", DELIVERIES.columns, JsonView::of(&delivery)).into_string();
        assert!(page.contains("<a href=\"/console/documents/d\">UB-INV-1</a>") && page.contains("Document issued"), "{page}");
    }

    #[test]
    fn a_search_result_has_a_name_and_its_customer() {
        let id = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
        let results = json!([
            {"kind": "CONTRACT", "ref": id, "number": "C-7", "customer_ref": "acme", "customer_name": "Acme Ltd", "url": "/api/contracts/c"},
            {"kind": "USAGE_EVENT", "ref": id, "number": null, "name": null, "url": "/api/usage/event/e"},
            {"kind": "PRICING", "ref": "plan", "name": "Plan", "url": "/api/pricings/plan"},
        ]);
        let page = super::found("x", JsonView::of(&results)).into_string();
        for shown in [">C-7</a>", ">Acme Ltd</a>", ">Usage event</a>", ">Plan</a>", "<td>plan</td>"] {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        assert!(!page.contains(id), "{page}");
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
        let submitted = [("columns", "document_number"), ("columns", "total"), ("state", "PAID"), ("cursor", "6"), ("kind", "")];
        let page = seen(&json!([document]), &[], &submitted);
        assert!(page.contains("UB-1") && page.contains("1.5") && !page.contains("<td>Invoice"), "{page}");
        let columns = "columns=document_number&amp;columns=total";
        assert!(page.contains(&format!(r#"href="?cursor=7&amp;pageSize=50&amp;{columns}""#)), "{page}");
        assert!(page.contains(&format!(r#"href="?state=PAID&amp;{columns}&amp;order=amount""#)), "{page}");
        assert!(page.contains(&format!(r#"href="/console/csv/documents?state=PAID&amp;{columns}""#)), "{page}");
    }

    #[test]
    fn an_amount_due_is_shown_in_each_currency_also_for_programs() {
        let owed = |currency: &str, due: u32| json!({"currency": currency, "due": due, "overdue": 0});
        let customer = json!({"name": "Acme", "amounts_due": [owed("EUR", 1200), owed("USD", 3)]});
        let columns: Vec<Column> =
            CUSTOMERS.columns.iter().filter(|column| ["name", "amounts_due"].contains(&column.field)).copied().collect();
        let shown = table("Customers", &columns, JsonView::of(&json!([customer]))).into_string();
        assert!(shown.contains("1,200") && shown.contains("USD"), "{shown}");
        assert_eq!(row(&columns, &customer)[1], ("EUR 1200, USD 3".to_owned(), false));
    }

    #[test]
    fn extra_columns_are_shown_on_request_and_a_draft_has_no_amount_due() {
        let document = |state: &str| {
            json!([{"document_number": "UB-1", "contract_number": "C-9", "state": state, "total": 1,
            "amount_due": 7, "currency": "EUR"}])
        };
        let usual = shown(&document("DRAFT"), &[]);
        assert!(!usual.contains("C-9") && !usual.contains("value=\"7\""), "{usual}");
        assert!(shown(&document("ISSUED"), &[]).contains("value=\"7\""));
        let submitted: Vec<(&str, &str)> = DOCUMENTS.columns.iter().map(|column| (View::COLUMNS, column.field)).collect();
        assert!(seen(&document("ISSUED"), &[], &submitted).contains("C-9"));
        // The columns that are shown by default are not part of the address.
        let usual: Vec<(String, String)> =
            DOCUMENTS.usual_columns().iter().map(|column| (View::COLUMNS.to_owned(), column.field.to_owned())).collect();
        assert!(View::of(&DOCUMENTS, &usual).submitted.is_empty());
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
            DOCUMENTS.columns.iter().filter(|column| ["document_number", "total"].contains(&column.field)).copied().collect();
        assert_eq!(headings(&columns), ["Number", "Total", "Currency"]);
        let total: serde_json::Value = serde_json::from_str("12345678901234.000001").expect("a number");
        let caption = row(&columns, &json!({"document_number": "UB-1", "total": total, "currency": "EUR"}));
        let caption: Vec<(&str, bool)> = caption.iter().map(|(text, is_number)| (text.as_str(), *is_number)).collect();
        assert_eq!(caption, [("UB-1", false), ("12345678901234.000001", true), ("EUR", false)]);
    }

    #[test]
    fn what_is_shown_of_a_list_elsewhere_is_among_its_columns() {
        let shown = [
            (&CONTRACTS, CONTRACTS_OF),
            (&DOCUMENTS, DOCUMENTS_OF),
            (&DOCUMENTS, LATEST_DOCUMENTS),
            (&PAYMENTS, PAYMENTS_OF),
            (&REFUSED, WHY),
        ];
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
