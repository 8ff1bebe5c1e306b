//! Generic page of an object: all fields of its API response, with names instead of references.

use maud::{Markup, html};
use serde_json::Value;

use crate::audit::is_identifier;
use crate::parts::{author, author_in, day, href, identifier, instant, isolated, link, money, number, words};
use billing_api::json_view::JsonView;

/// Field that the console adds to a limit on an amount owed: the prepaid credit that is free today. The API has it in an answer of
/// its own.
pub const FREE_CREDIT: &str = "free_credit";

/// Fields that refer to an object, the part of the console that shows the object, and the field beside it with the object's name.
const REFERENCES: &[(&str, &str, &str)] = &[
    ("customer_ref", "customers", "customer_name"),
    ("contract_ref", "contracts", "contract_number"),
    ("document_ref", "documents", "document_number"),
    ("source_document_ref", "documents", "source_document_number"),
    ("grant_ref", "credit", "grant_name"),
    ("related_document_ref", "documents", "related_document_numbers"),
    ("parent_document_ref", "documents", "parent_document_number"),
    ("product_pricing_ref", "pricings", "product_name"),
    ("usage_product_ref", "usage-products", "usage_product_name"),
    ("entity_ref", "entities", "entity_name"),
    ("endpoint_ref", "webhooks", "endpoint_url"),
    ("format_ref", "formats", "format_name"),
];

/// Fields whose name in words differs from the API's name.
const LABELS: &[(&str, &str)] = &[
    ("line1", "Address line 1"),
    ("line2", "Address line 2"),
    ("zip_code", "Postal code"),
    ("email", "E-mail"),
    ("vat_id", "VAT ID"),
    ("tax_id", "Tax number"),
    ("po_number", "Purchase order"),
    ("iban", "IBAN"),
    ("bic", "BIC"),
    ("url", "URL"),
    ("apply_balance", "Unapplied amounts settle new documents"),
    ("grace_hours", "Grace period in hours"),
    ("billing_account_id", "Bank account"),
    ("source_document_ref", "Invoice of the sale"),
    (FREE_CREDIT, "Prepaid credit"),
];

/// Fields whose content belongs to the organization. Its names and texts mean nothing here, even if they look like those above.
const VERBATIM: [&str; 6] = ["mapping", "metadata", "credit_unit", "additional_report_data", "example", "where"];

/// Fields with a day whose names don't tell it.
const DAYS: [&str; 21] = [
    "billing_anchor",
    "date",
    "day",
    "due_from",
    "due_to",
    "effective_from",
    "ends_before",
    "first",
    "from",
    "issued_from",
    "issued_to",
    "last",
    "period_end",
    "period_start",
    "service_period_end",
    "service_period_start",
    "since",
    "tax_from",
    "to",
    "window_end",
    "window_start",
];

/// Amounts in the currency of their object whose names don't tell it: those of a limit and of prepaid credit.
const AMOUNTS: [&str; 11] =
    ["above", "amount", "covered", "drawn", "free", FREE_CREDIT, "held", "left", "max", "usable", "value"];

/// What the text of a field is. It follows from the field's name alone: what people wrote may look like anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// A date.
    Day,
    /// A timestamp.
    Instant,
    /// The author of a change.
    Author,
    /// A reference, which the service may have assigned.
    Reference,
    /// Any other text.
    Other,
}

impl TextKind {
    /// Returns the kind of a field of the API.
    pub fn of_field(name: &str) -> Self {
        match name {
            "timestamp" | "at" | "restored_to" => Self::Instant,
            "actor" => Self::Author,
            _ if DAYS.contains(&name) || name.ends_with("_date") || name.ends_with("_day") => Self::Day,
            _ if ["_at", "_since", "_until"].iter().any(|end| name.ends_with(end)) => Self::Instant,
            _ if name.ends_with("_by") => Self::Author,
            "request_id" | "billing_account_id" => Self::Reference,
            _ if name.ends_with("_ref") => Self::Reference,
            _ => Self::Other,
        }
    }
}

/// A link to a form on the page of an object.
#[derive(Clone, Debug)]
pub struct ThingAction {
    /// Label.
    pub label: &'static str,
    /// Address of the form.
    pub address: String,
    /// Whether the form deletes the object.
    pub is_grave: bool,
}

/// Renders a page with all fields of a response.
pub fn thing(title: &str, answer: JsonView<'_>, actions: &[ThingAction]) -> Markup {
    html! {
        h1 { (title) }
        @if !actions.is_empty() { div.actions {
            @for action in actions { a.button.grave[action.is_grave] href=(action.address) { (action.label) } }
        } }
        (fields(answer))
    }
}

/// Renders fields, with nested fields indented below. The name of a referenced object replaces its reference.
pub(crate) fn fields(answer: JsonView<'_>) -> Markup {
    let is_shown_elsewhere = |name: &str| {
        let names_reference = |(reference, _, of): &(&str, &str, &str)| *of == name && answer.named(reference).is_there();
        let author = name.strip_suffix("_name").filter(|author| TextKind::of_field(author) == TextKind::Author);
        REFERENCES.iter().any(names_reference) || author.is_some_and(|author| answer.named(author).is_there())
    };
    html! {
        dl.facts {
            @for (name, value) in answer.fields().filter(|(name, value)| value.is_there() && !is_shown_elsewhere(name)) {
                div { dt { (label(name)) } dd { (named_field(answer, name, value)) } }
            }
        }
    }
}

/// Returns the name of a field in words.
pub(crate) fn label(name: &str) -> String {
    let known = LABELS.iter().find(|(known, _)| *known == name).map(|(_, label)| (*label).to_owned());
    known.unwrap_or_else(|| words(name.strip_suffix("_ref").unwrap_or(name)))
}

/// Renders the content of a field: the fields of the API, or content of the organization as it is.
pub(crate) fn content(name: &str, value: JsonView<'_>) -> Markup {
    if VERBATIM.contains(&name) { verbatim(value) } else { fields(value) }
}

/// Returns whether a field is an amount in the currency of its object.
fn is_amount_name(name: &str) -> bool {
    AMOUNTS.contains(&name) || name.ends_with("_amount") || name.ends_with("_price")
}

fn named_field(answer: JsonView<'_>, name: &str, value: JsonView<'_>) -> Markup {
    if VERBATIM.contains(&name) {
        return verbatim(value);
    }
    let reference = value.to_text();
    if let Some((_, part, of)) = REFERENCES.iter().find(|(field, ..)| *field == name) {
        let known = answer.at_path(of).to_text();
        let shown = match (known.is_empty(), is_identifier(&reference)) {
            (false, _) => known,
            (true, true) => "Open".to_owned(),
            (true, false) => reference.clone(),
        };
        return link(Some(href(&[part, &reference])), &shown);
    }
    let currency = answer.named("currency");
    if is_amount_name(name) && value.json().is_number() && currency.is_there() {
        return money(value, &currency.to_text());
    }
    match TextKind::of_field(name) {
        TextKind::Author => isolated(&author_in(answer, name)),
        kind => field(value, kind),
    }
}

fn field(value: JsonView<'_>, kind: TextKind) -> Markup {
    match value.json() {
        Value::Object(_) => fields(value),
        Value::Array(_) => {
            let separated = |place: usize, element: JsonView<'_>| place > 0 && !element.json().is_object();
            html! {
                @for (place, element) in value.elements().enumerate() {
                    @if separated(place, element) { ", " }
                    (field(element, kind))
                }
                @if value.elements().next().is_none() { "none" }
            }
        }
        Value::Number(_) => number(value),
        Value::Bool(yes) => html! { @if *yes { "yes" } @else { "no" } },
        Value::String(text) => match kind {
            TextKind::Day => day(value),
            TextKind::Instant => instant(value),
            TextKind::Author => html! { (author(text)) },
            TextKind::Reference if is_identifier(text) => identifier("Show", text),
            TextKind::Reference | TextKind::Other => isolated(text),
        },
        Value::Null => html! {},
    }
}

/// Renders content with its own names and without links.
fn verbatim(value: JsonView<'_>) -> Markup {
    match value.json() {
        Value::Object(_) => html! {
            dl.facts {
                @for (name, value) in value.fields().filter(|(_, value)| value.is_there()) {
                    div { dt { (name) } dd { (verbatim(value)) } }
                }
            }
        },
        Value::Array(_) => html! { @for element in value.elements() { (verbatim(element)) } },
        _ => field(value, TextKind::Other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";

    #[test]
    fn names_replace_references_and_identifiers_are_hidden() {
        let answer = json!({
            "charge_ref": "setup", "contract_ref": ID, "contract_number": "C-28", "document_ref": ID, "customer_ref": "acme",
            "customer_name": "Acme <b>", "recorded_by": format!("admin:{ID}"), "request_id": ID, "email": null,
        });
        let page = fields(JsonView::of(&answer)).into_string();
        assert!(page.contains(&format!("<dt>Contract</dt><dd><a href=\"/console/contracts/{ID}\">C-28</a>")), "{page}");
        assert!(page.contains("<a href=\"/console/customers/acme\">Acme &lt;b&gt;</a>"), "{page}");
        assert!(page.contains(&format!("<a href=\"/console/documents/{ID}\">Open</a>")), "{page}");
        assert!(page.contains("<dd>An administrator</dd>") && page.contains("<dd>setup</dd>"), "{page}");
        assert!(page.contains(&format!("data-copy=\"{ID}\"")), "{page}");
        for hidden in ["Customer name", "Contract number", &format!(">{ID}</dd>"), "E-mail"] {
            assert!(!page.contains(hidden), "{hidden}: {page}");
        }
    }

    #[test]
    fn content_of_the_organization_has_no_links_and_its_own_names() {
        let answer = json!({"mapping": {"customer_ref": "event.who", "line1": ["a", 2]}});
        let page = fields(JsonView::of(&answer)).into_string();
        assert!(page.contains("<dt>customer_ref</dt><dd>event.who</dd>") && page.contains("<dt>line1</dt>"), "{page}");
        assert!(!page.contains("href"), "{page}");
    }

    #[test]
    fn what_people_wrote_is_shown_as_they_wrote_it() {
        for text in [
            "EnterpriseTeam minutes NZ",
            "2026-Plan-A",
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            ID,
            "admin:x",
            &format!("admin:{ID}"),
        ] {
            for name in ["name", "note", "po_number", "reference", "line1", "tax_id", "detail", "unit"] {
                let page = fields(JsonView::of(&json!({name: text}))).into_string();
                assert!(page.contains(&format!("<dd>{text}</dd>")), "{name}: {page}");
            }
            let page = fields(JsonView::of(&json!({"metadata": {"created_at": text, "customer_ref": text}}))).into_string();
            assert_eq!(page.matches(&format!("<dd>{text}</dd>")).count(), 2, "{page}");
        }
        let known =
            json!({"created_at": "2026-01-01T00:00:00Z", "due_date": "2026-01-02", "request_id": ID, "recorded_by": "scheduler"});
        let page = fields(JsonView::of(&known)).into_string();
        for part in ["2026-01-01 00:00:00 UTC", "<time datetime=\"2026-01-02\">", "data-copy=", "The scheduler"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn amounts_of_an_object_with_a_currency_show_it() {
        let charge = json!({"currency": "EUR", "unit_price": 13.5, "billed_amount": 1200, "quantity": 3});
        let page = fields(JsonView::of(&charge)).into_string();
        for part in [">13.50 <span", ">1,200.00 <span", ">3<"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(fields(JsonView::of(&json!({"unit_price": 13.5}))).into_string().contains(">13.5<"));
        let limit =
            json!({"currency": "EUR", "value": 450, "max": 1200, "window_start": "2026-11-01", "thresholds": [800, 1000]});
        let page = fields(JsonView::of(&limit)).into_string();
        for part in [">450.00 <span", ">1,200.00 <span", "<time datetime=\"2026-11-01\">", ">800</data>, <data"] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn fields_have_names_for_readers() {
        for (name, expected) in
            [("line1", "Address line 1"), ("customer_ref", "Customer"), ("unit_price", "Unit price"), ("vat_id", "VAT ID")]
        {
            assert_eq!(label(name), expected);
        }
    }
}
