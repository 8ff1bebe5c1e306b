//! Filters of lists: named views, periods and labeled inputs.

use maud::{Markup, html};

use crate::input::{Input, InputKind};
use crate::list::{Filter, Listing, View};
use crate::parts::{href, query, words};

/// The filters around a list.
#[derive(Clone, Debug, Default)]
pub struct ListFilters {
    /// Filters with their values.
    pub filters: Vec<Filter>,
    /// Names of the objects that filters select, by query parameter.
    pub names: Vec<(String, String)>,
    /// Named periods.
    pub periods: Vec<NamedPeriod>,
    /// Address of the list with its filters, columns and order.
    pub address: String,
}

/// A period relative to today, such as the last month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedPeriod {
    /// Value of the query parameter [`NamedPeriod::PARAMETER`].
    pub word: &'static str,
    /// Label.
    pub label: &'static str,
    /// Whether the list shows this period.
    pub is_shown: bool,
}

impl NamedPeriod {
    /// Query parameter for a named period. The period of such an address moves with the calendar.
    pub const PARAMETER: &str = "period";
}

/// The filters for the period of a list.
#[derive(Clone, Copy, Debug)]
pub struct PeriodFilters {
    /// Name of the period.
    pub label: &'static str,
    /// Query parameter of the first day.
    pub from: &'static str,
    /// Query parameter of the last day.
    pub to: &'static str,
    /// Whether the API compares instants instead of dates. Then the end is exclusive.
    pub of_instants: bool,
}

/// Label and filters of a named view.
type NamedView = (&'static str, &'static [(&'static str, &'static str)]);

/// The presentation of a list's filters.
struct Layout {
    part: &'static str,
    /// Named views.
    views: &'static [NamedView],
    /// Filters for the period.
    period: Option<PeriodFilters>,
    /// Filters that are always visible. Others are visible if they have a value.
    first: &'static [&'static str],
    /// Labels that differ from [`LABELS`].
    labels: &'static [(&'static str, &'static str)],
}

const fn dates(label: &'static str, from: &'static str, to: &'static str) -> Option<PeriodFilters> {
    Some(PeriodFilters { label, from, to, of_instants: false })
}

const fn instants(label: &'static str) -> Option<PeriodFilters> {
    Some(PeriodFilters { label, from: "from", to: "to", of_instants: true })
}

const PLAIN: Layout = Layout { part: "", views: &[], period: None, first: &[], labels: &[] };

const LAYOUTS: &[Layout] = &[
    Layout { part: "customers", first: &["name", "email"], labels: &[("name", "Name starts with")], ..PLAIN },
    Layout {
        part: "contracts",
        views: &[
            ("Active", &[("state", "ACTIVE")]),
            ("Not started", &[("state", "PENDING")]),
            ("Ending", &[("state", "CANCELLING")]),
            ("Ended", &[("state", "COMPLETED")]),
            ("Canceled", &[("state", "CANCELLED")]),
        ],
        first: &["customer_ref", "contract_number", "state"],
        ..PLAIN
    },
    Layout {
        part: "documents",
        views: &[
            ("Drafts", &[("state", "DRAFT")]),
            ("Amount due", &[("has_amount_due", "true")]),
            ("Overdue", &[("overdue", "true")]),
            ("Unapplied credits", &[("kind", "CREDIT"), ("state", "ISSUED")]),
        ],
        period: dates("Issued", "issued_from", "issued_to"),
        first: &["customer_ref", "document_number", "state", "kind"],
        labels: &[("from", "Period starts from"), ("to", "Period starts until")],
    },
    Layout { part: "events", period: instants("Time of usage"), first: &["customer_ref", "usage_product_ref"], ..PLAIN },
    Layout {
        part: "payments",
        period: dates("Payment date", "from", "to"),
        first: &["customer_ref", "reference"],
        labels: &[("reference", "Payment reference")],
        ..PLAIN
    },
    Layout { part: "charges", period: dates("Service date", "from", "to"), first: &["customer_ref", "contract_ref"], ..PLAIN },
    Layout { part: "limits", first: &["customer_ref"], ..PLAIN },
    Layout { part: "credit", first: &["customer_ref"], labels: &[("source_document_ref", "Invoice of the sale")], ..PLAIN },
    Layout { part: "draws", first: &["customer_ref", "document_ref"], ..PLAIN },
    Layout { part: "imports", period: instants("Started"), first: &["name"], labels: &[("name", "File name")], ..PLAIN },
    Layout { part: "billing-runs", period: instants("Started"), ..PLAIN },
    Layout {
        part: "refused",
        period: dates("Date (UTC)", "from", "to"),
        first: &["customer_ref", "usage_product_ref", "code"],
        labels: &[("customer_ref", "Submitted customer"), ("usage_product_ref", "Submitted usage product"), ("code", "Reason")],
        ..PLAIN
    },
    Layout {
        part: "deliveries",
        views: &[("Pending", &[("state", "PENDING")]), ("Failed", &[("state", "FAILED")])],
        period: instants("Created"),
        first: &["state", "type"],
        ..PLAIN
    },
    Layout {
        part: "audit",
        period: instants("Time"),
        first: &["object_kind", "action"],
        labels: &[("object_kind", "Object type"), ("object_ref", "Reference of the object")],
        ..PLAIN
    },
    Layout {
        part: "usage",
        period: dates("Time of usage", "from", "to"),
        first: &["interval", "customer_ref", "usage_product_ref"],
        ..PLAIN
    },
];

/// Labels of query parameters.
const LABELS: &[(&str, &str)] = &[
    ("customer_ref", "Customer"),
    ("contract_ref", "Contract"),
    ("entity_ref", "Entity"),
    ("usage_product_ref", "Usage product"),
    ("product_pricing_ref", "Pricing"),
    ("document_ref", "Document"),
    ("grant_ref", "Credit grant"),
    ("endpoint_ref", "Webhook endpoint"),
    ("po_number", "Purchase order"),
    ("email", "E-mail"),
    ("tax_id", "Tax number"),
    ("due_from", "Due from"),
    ("due_to", "Due until"),
    ("updated_since", "Changed since"),
    ("issues_before", "Next document before"),
    ("request_id", "Request ID"),
    ("timezone", "Time zone"),
];

/// Query parameters that take a reference, with the part of the console that has the objects.
const REFERENCES: &[(&str, &str)] = &[
    ("customer_ref", "customers"),
    ("contract_ref", "contracts"),
    ("document_ref", "documents"),
    ("source_document_ref", "documents"),
    ("entity_ref", "entities"),
    ("product_pricing_ref", "pricings"),
    ("usage_product_ref", "usage-products"),
];

fn layout(part: &str) -> &'static Layout {
    LAYOUTS.iter().find(|layout| layout.part == part).unwrap_or(&PLAIN)
}

/// Returns the filters for the period of a list.
pub fn period_filters(part: &str) -> Option<PeriodFilters> {
    layout(part).period
}

/// Returns the part of the console whose objects a filter selects. Rejected usage has references as submitted, which need not
/// exist.
pub fn selected_part(part: &str, name: &str) -> Option<&'static str> {
    REFERENCES.iter().find(|(known, _)| *known == name && part != "refused").map(|(_, of)| *of)
}

/// Renders the filters of a list and the choice of its columns.
pub(crate) fn narrowing(listing: &Listing, shown: &ListFilters, view: &View) -> Markup {
    let layout = layout(listing.part);
    let is_narrowed = shown.is_narrowed();
    let (first, others): (Vec<&Filter>, Vec<&Filter>) = shown.filters.iter().partition(|filter| is_first(layout, filter));
    let is_shown = |field: &str| view.columns.iter().any(|shown| shown.field == field);
    html! {
        (views(layout, shown))
        (periods(layout, &shown.periods, view))
        form method="get" action=(href(&[listing.part])) {
            // Preserves parameters that are not inputs of this form.
            @for (name, value) in &view.submitted {
                @if !View::OF_PAGE.contains(&name.as_str()) && shown.filters.iter().all(|filter| filter.name != *name) {
                    input type="hidden" name=(name) value=(value);
                }
            }
            @if !shown.filters.is_empty() {
                div.filters {
                    @for filter in &first { (field(listing.part, filter, &shown.names)) }
                    @if !first.is_empty() { button { "Apply" } }
                    @if is_narrowed || view.has_own_columns(listing) { a href=(href(&[listing.part])) { "Reset" } }
                }
                @if !others.is_empty() {
                    details {
                        summary { "More filters" }
                        div.filters { @for filter in &others { (field(listing.part, filter, &shown.names)) } button { "Apply" } }
                    }
                }
            }
            details {
                summary { "Columns" }
                div.columns {
                    @for column in listing.columns {
                        label {
                            input type="checkbox" name=(View::COLUMNS) value=(column.field) checked[is_shown(column.field)];
                            " " (column.label)
                        }
                    }
                }
                div.pages {
                    button { "Apply" }
                    @if view.has_own_columns(listing) { a href=(href(&[listing.part])) { "Reset" } }
                }
            }
        }
    }
}

/// Renders the address of a view, with which it can be opened again.
pub(crate) fn address(shown: &ListFilters) -> Markup {
    html! {
        @if !shown.address.is_empty() {
            details.address {
                summary { "Save this view" }
                p { "Bookmark this address or send it to a colleague. A period such as “Last month” moves with the calendar." }
                div.buttons {
                    input readonly value=(shown.address) aria-label="Address of this view";
                    button.plain type="button" hidden data-copy=(shown.address) { "Copy address" }
                }
            }
        }
    }
}

impl ListFilters {
    /// Returns whether a filter has a value.
    pub(crate) fn is_narrowed(&self) -> bool {
        self.filters.iter().any(|filter| !filter.value.is_empty())
    }
}

fn is_first(layout: &Layout, filter: &Filter) -> bool {
    let name = filter.name.as_str();
    let is_of_period = layout.period.is_some_and(|period| [period.from, period.to].contains(&name));
    is_of_period || layout.first.contains(&name) || !filter.value.is_empty()
}

/// Renders the links to the named views. The current view has exactly the filters of its name.
fn views(layout: &Layout, shown: &ListFilters) -> Markup {
    let of_period = layout.period.map_or(["", ""], |period| [period.from, period.to]);
    let used = shown.filters.iter().filter(|filter| !filter.value.is_empty() && !of_period.contains(&filter.name.as_str()));
    let mut used: Vec<(&str, &str)> = used.map(|filter| (filter.name.as_str(), filter.value.as_str())).collect();
    used.sort_unstable();
    let is_current = |pairs: &[(&str, &str)]| {
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        (pairs == used).then_some("page")
    };
    html! {
        @if !layout.views.is_empty() {
            nav.choices-row aria-label="Views" {
                a href=(href(&[layout.part])) aria-current=[is_current(&[])] { "All" }
                @for (label, pairs) in layout.views {
                    a href={ (href(&[layout.part])) "?" (query(pairs)) } aria-current=[is_current(pairs)] { (label) }
                }
            }
        }
    }
}

/// Renders the links to the named periods.
fn periods(layout: &Layout, periods: &[NamedPeriod], view: &View) -> Markup {
    let Some(of) = layout.period.filter(|_| !periods.is_empty()) else { return html! {} };
    let without = |more: &[(&str, &str)]| {
        let is_other = |name: &str| ![of.from, of.to, NamedPeriod::PARAMETER].contains(&name);
        let others =
            view.submitted.iter().map(|(name, value)| (name.as_str(), value.as_str())).filter(|(name, _)| is_other(name));
        format!("?{}", query(&others.chain(more.iter().copied()).collect::<Vec<_>>()))
    };
    html! {
        nav.choices-row aria-label=(of.label) {
            span.muted { (of.label) }
            a href=(without(&[])) { "Any time" }
            @for period in periods {
                a href=(without(&[(NamedPeriod::PARAMETER, period.word)])) aria-current=[period.is_shown.then_some("page")] { (period.label) }
            }
        }
    }
}

/// Renders the input of a filter.
pub(crate) fn field(part: &str, filter: &Filter, names: &[(String, String)]) -> Markup {
    let Filter { name, meaning, kind, value } = filter;
    let selected = names.iter().find(|(of, _)| of == name).map(|(_, selected)| selected);
    let id = format!("filter-{name}");
    let input = Input {
        name,
        kind,
        value,
        nothing: "any",
        max_length: 255,
        required: false,
        id: Some(id.as_str()),
        told_by: None,
        list: None,
        is_wrong: false,
    };
    html! {
        label title=(meaning) {
            (label(part, name))
            @match selected_part(part, name).filter(|_| *kind == InputKind::Text) {
                Some(of) => { input id=(id) name=(name) value=(value) maxlength="255" placeholder="name or number" data-pick=(of); }
                None => { (input.markup()) }
            }
            @if let Some(selected) = selected { span.selected { (selected) } }
        }
    }
}

/// Returns the label of a filter.
fn label(part: &str, name: &str) -> String {
    let layout = layout(part);
    if let Some(period) = layout.period {
        if name == period.from {
            return format!("{} from", period.label);
        }
        if name == period.to {
            return format!("{} until", period.label);
        }
    }
    let known = layout.labels.iter().chain(LABELS).find(|(known, _)| *known == name);
    known.map_or_else(|| words(name), |(_, label)| (*label).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listings::{ALL, DOCUMENTS};

    fn filter(name: &str, kind: InputKind, value: &str) -> Filter {
        Filter { name: name.to_owned(), meaning: String::new(), kind, value: value.to_owned() }
    }

    fn shown(filters: Vec<Filter>, submitted: &[(&str, &str)]) -> String {
        let submitted: Vec<(String, String)> =
            submitted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let period = NamedPeriod { word: "last_month", label: "Last month", is_shown: true };
        let names = vec![("customer_ref".to_owned(), "Acme <Ltd>".to_owned())];
        let shown = ListFilters { filters, names, periods: vec![period], address: "/console/documents".to_owned() };
        narrowing(&DOCUMENTS, &shown, &View::of(&DOCUMENTS, &submitted)).into_string()
    }

    #[test]
    fn every_layout_is_one_of_a_list_and_no_list_has_two() {
        for layout in LAYOUTS {
            assert!(layout.part == "usage" || ALL.iter().any(|listing| listing.part == layout.part), "{}", layout.part);
            assert_eq!(LAYOUTS.iter().filter(|other| other.part == layout.part).count(), 1, "{}", layout.part);
        }
    }

    #[test]
    fn a_filter_has_a_label_in_words_and_a_reference_shows_the_name_of_its_object() {
        let page = shown(vec![filter("customer_ref", InputKind::Text, "acme"), filter("issued_from", InputKind::Day, "")], &[]);
        assert!(page.contains("Customer<input") && page.contains("data-pick=\"customers\""), "{page}");
        assert!(page.contains("Acme &lt;Ltd&gt;") && page.contains("Issued from"), "{page}");
        assert!(!page.contains("More filters"), "{page}");
        assert!(shown(vec![filter("updated_since", InputKind::Day, "")], &[]).contains("More filters"));
    }

    #[test]
    fn a_named_view_and_a_named_period_are_links_and_the_current_ones_are_marked() {
        let page = shown(vec![filter("state", InputKind::Text, "DRAFT")], &[("state", "DRAFT"), ("issued_from", "2026-01-01")]);
        assert!(page.contains("<a href=\"/console/documents?state=DRAFT\" aria-current=\"page\">Drafts</a>"), "{page}");
        assert!(page.contains("<a href=\"?state=DRAFT&amp;period=last_month\" aria-current=\"page\">Last month</a>"), "{page}");
        assert!(page.contains("<a href=\"?state=DRAFT\">Any time</a>"), "{page}");
        assert!(page.contains("<a href=\"/console/documents\">All</a>"), "{page}");
    }

    #[test]
    fn a_period_in_the_address_becomes_dates_when_the_form_is_sent() {
        let page =
            shown(vec![filter("issued_from", InputKind::Day, "2026-01-01")], &[("period", "last_month"), ("order", "amount")]);
        assert!(!page.contains("name=\"period\"") && page.contains("name=\"order\" value=\"amount\""), "{page}");
    }
}
