//! Entries of the audit log as sentences, and their changed values.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::{actor, count_text, grouped, href, isolated, link, words};
use billing_api::dto::audit::AuditEntryJson;
use billing_api::dto::billing::BillingReportJson;
use billing_api::dto::contract_view::ContractJson;
use billing_api::field;
use billing_api::json_view::JsonView;
use billing_domain::party::CustomerProfile;

/// A kind of objects: the API's word, its name in a sentence, and the part of the console that shows the object by its
/// reference.
const KINDS: &[(&str, &str, Option<&str>)] = &[
    ("ORGANIZATION", "organization", None),
    ("ADMINISTRATOR", "administrator", None),
    ("API_KEY", "API key", None),
    ("CUSTOMER", "customer", Some("customers")),
    ("ENTITY", "entity", Some("entities")),
    ("USAGE_PRODUCT", "usage product", Some("usage-products")),
    ("PRICING", "pricing", Some("pricings")),
    ("FORMAT", "usage format", Some("formats")),
    ("BANK_ACCOUNT", "bank account", Some("bank-accounts")),
    ("EXCHANGE_RATE", "exchange rate", None),
    ("CONTRACT", "contract", Some("contracts")),
    ("CHARGE", "charge", Some("charges")),
    ("LIMIT", "limit", Some("limits")),
    ("CREDIT_GRANT", "credit grant", Some("credit")),
    ("DOCUMENT", "document", Some("documents")),
    ("PAYMENT", "payment", None),
    ("APPLICATION", "credit", None),
    ("BILLING_RUN", "billing run", Some("billing-runs")),
    ("USAGE_FILE", "file", None),
    ("WEBHOOK_ENDPOINT", "webhook endpoint", Some("webhooks")),
];

/// What an action did: the API's words of the action and of the kind (empty for all kinds), and the words between the author and
/// the object.
const VERBS: &[(&str, &str, &str)] = &[
    ("CREATE", "PAYMENT", "recorded a payment on"),
    ("CREATE", "APPLICATION", "applied an amount to"),
    ("CREATE", "", "created"),
    ("EDIT", "", "changed"),
    ("DELETE", "APPLICATION", "removed an applied amount from"),
    ("DELETE", "", "deleted"),
    ("CHANGE_QUANTITY", "", "changed"),
    ("CANCEL", "", "canceled"),
    ("RESUME", "", "resumed"),
    ("ISSUE", "", "issued"),
    ("VOID", "", "voided"),
    ("WRITE_OFF", "", "wrote off the amount due of"),
    ("UNDO_WRITE_OFF", "", "reversed the write-off of"),
    ("REVERSE", "", "reversed a payment on"),
    ("RUN", "", "ran billing"),
    ("TRUST_CLOCK", "", "trusted the clock for issuing"),
    ("IMPORT", "", "imported"),
    ("UNDO_IMPORT", "", "undid the import of"),
    ("LOG_IN", "", "logged in as"),
    ("FAIL_LOG_IN", "", "failed to log in as"),
    ("FAIL_CONFIRMATION", "", "entered a wrong password in a session of"),
    ("DISABLE", "", "disabled"),
    ("ENABLE", "", "enabled"),
    ("RESET_PASSWORD", "", "reset the password of"),
    ("CHANGE_PASSWORD", "", "changed the password of"),
    ("ADD_SECOND_FACTOR", "", "enabled the second factor of"),
    ("REMOVE_SECOND_FACTOR", "", "removed the second factor of"),
    ("USE_RECOVERY_CODE", "", "used a recovery code of"),
    ("LOCK_SECOND_FACTOR", "", "locked the second factor of"),
    ("END_SESSIONS", "", "ended sessions of"),
    ("ROTATE", "", "replaced the secret of"),
    ("REPLAY", "", "scheduled notifications again for"),
];

/// The maximum number of changed fields in a sentence.
const MAX_FIELDS: usize = 3;
/// Fields that identify or name an element of a list, and those that change with every edit or tell from when a change applies.
const NO_CHANGES: [&str; 9] = [
    "product_no",
    "product_name",
    "product_pricing_ref",
    "line_item_id",
    "name",
    "version",
    "from",
    "effective_from",
    "in_force",
];
/// Fields with a percentage.
const PERCENTAGES: [&str; 2] = ["discount", "tax"];

/// Renders an entry as a sentence, such as "dana@example.com changed the price of API calls on C-28".
pub(crate) fn sentence(entry: JsonView<'_, AuditEntryJson>) -> Markup {
    let (action, kind) = (entry.action().to_text(), entry.object_kind().to_text());
    let verb = VERBS.iter().find(|(of, on, _)| *of == action && (on.is_empty() || *on == kind));
    let verb = verb.map_or_else(|| words(&action).to_lowercase(), |(.., verb)| (*verb).to_owned());
    // The name of a deposit is that of its customer.
    let verb = match verb.strip_suffix(" on") {
        Some(verb) if document_of(entry).is_none() => format!("{verb} of"),
        _ => verb,
    };
    let fields = if matches!(action.as_str(), "EDIT" | "CHANGE_QUANTITY") { changed(entry) } else { Vec::new() };
    html! {
        b { (isolated(&actor(entry))) } " "
        @if action == "RUN" {
            a href=(href(&["billing-runs", &entry.object_ref().to_text()])) { (verb) }
            (count(entry.after().any().named(field!(BillingReportJson, issued)), " and issued "))
            (count(entry.after().any().named(field!(BillingReportJson, voided)), " and voided "))
        } @else {
            (verb)
            @if let Some((last, others)) = fields.split_last() {
                " "
                @for (place, field) in others.iter().enumerate() {
                    @if place > 0 { ", " } (isolated(field))
                }
                @if !others.is_empty() { " and " }
                (isolated(last))
                @if others.is_empty() && let Some(value) = new_value(entry.after().any()) { " to " (value) }
                @if let Some(day) = planned_for(entry.after().any()) { " from " (day) }
                @if kind == "CONTRACT" { " on" } @else { " of" }
            }
            " " (object(entry, &kind))
        }
    }
}

/// Renders the number of documents of a billing run.
fn count(documents: JsonView<'_>, before: &str) -> Markup {
    let number = documents.elements().count();
    html! { @if number > 0 { (before) (count_text(&number.to_string(), "document")) } }
}

/// Returns the document of a payment or an application. A deposit has none.
fn document_of(entry: JsonView<'_, AuditEntryJson>) -> Option<String> {
    let of_change = |field: &str| [entry.after(), entry.before()].map(|side| side.any().named(field).to_text());
    ["document_ref", "to_document_ref"].into_iter().flat_map(of_change).find(|reference| !reference.is_empty())
}

/// Renders the object by its name, with a link to its page if it exists.
fn object(entry: JsonView<'_, AuditEntryJson>, kind: &str) -> Markup {
    let (reference, name) = (entry.object_ref().to_text(), entry.object_name());
    let (_, noun, part) = KINDS.iter().find(|(word, ..)| *word == kind).copied().unwrap_or((kind, "object", None));
    // A payment and an application are named by their document, a contract and a document by their number.
    let is_named_alone = ["CONTRACT", "DOCUMENT", "PAYMENT", "APPLICATION"].contains(&kind);
    // Of a deleted object, the entry has the name.
    let known = entry.before().any().named(field!(CustomerProfile, name));
    let shown = match (name.is_there(), known.is_there()) {
        // A limit is named by its metric.
        (true, _) if kind == "LIMIT" => words(&name.to_text()),
        (true, _) => name.to_text(),
        (false, true) => known.to_text(),
        (false, false) if is_identifier(&reference) => String::new(),
        (false, false) => reference.clone(),
    };
    // Payments and applications are on the page of their document, deposits on the page of their customer.
    let page = match (part, document_of(entry)) {
        (Some(part), _) => name.is_there().then(|| href(&[part, &reference])),
        (None, Some(document)) if is_named_alone => Some(href(&["documents", &document])),
        (None, None) if kind == "PAYMENT" => {
            entry.customer_ref().is_there().then(|| href(&["customers", &entry.customer_ref().to_text()]))
        }
        (None, _) => None,
    };
    html! {
        @if !is_named_alone || shown.is_empty() { (noun) @if !shown.is_empty() { " " } }
        (link(page.filter(|_| !shown.is_empty()), &shown))
    }
}

/// Returns whether a reference is an identifier that the service assigned.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Returns the changed fields in words, such as "the price of API calls".
fn changed(entry: JsonView<'_, AuditEntryJson>) -> Vec<String> {
    let mut found = Vec::new();
    for side in [entry.after(), entry.before()] {
        collect(side.any(), "", &mut found);
    }
    if found.len() > MAX_FIELDS {
        let more = found.len() - (MAX_FIELDS - 1);
        found.truncate(MAX_FIELDS - 1);
        found.push(format!("{more} more fields"));
    }
    found
}

/// Returns the new value of the only changed field of a product or line item, if it is short.
fn new_value(after: JsonView<'_>) -> Option<String> {
    for (name, value) in after.fields() {
        if name == "products" || name == "line_items" {
            return value.elements().find_map(new_value);
        }
    }
    let is_changed =
        |(name, value): &(&str, JsonView<'_>)| is_element(after) && !NO_CHANGES.contains(name) && value.json().is_number();
    let (name, value) = after.fields().find(is_changed)?;
    Some(if PERCENTAGES.contains(&name) { format!("{} %", value.to_text()) } else { grouped(&value.to_text()) })
}

/// Returns the first day of planned terms.
fn planned_for(after: JsonView<'_>) -> Option<String> {
    let planned = after.read_as::<ContractJson>().products().items().map(|product| product.effective_from());
    planned.filter(|day| day.is_there()).map(JsonView::to_text).min()
}

fn collect(at: JsonView<'_>, of: &str, found: &mut Vec<String>) {
    let is_element = is_element(at);
    for (name, value) in at.fields() {
        if name == "products" || name == "line_items" {
            for element in value.elements() {
                collect(element, &label(element), found);
            }
        } else if !(NO_CHANGES.contains(&name) && (is_element || name == "version")) {
            let field = words(name).to_lowercase();
            let field = if of.is_empty() { format!("the {field}") } else { format!("the {field} of {of}") };
            if !found.contains(&field) {
                found.push(field);
            }
        }
    }
}

/// Returns whether a value is a product or line item.
fn is_element(at: JsonView<'_>) -> bool {
    ["product_no", "line_item_id"].iter().any(|first| at.named(first).is_there())
}

/// Returns the name of a product or line item.
fn label(element: JsonView<'_>) -> String {
    let names = ["name", "product_name", "line_item_id", "product_pricing_ref"].map(|field| element.at_path(field).to_text());
    names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}

/// Renders the values before and after a change, side by side.
pub(crate) fn changes(entry: JsonView<'_, AuditEntryJson>) -> Markup {
    let (before, after) = (entry.before().any(), entry.after().any());
    let mut rows: Vec<(String, [String; 2])> = Vec::new();
    add_rows(before, "", 0, &mut rows);
    add_rows(after, "", 1, &mut rows);
    html! {
        @if !rows.is_empty() {
            details {
                summary { "Show" }
                table.values {
                    thead { tr { th { "Field" } @if before.is_there() { th { "Before" } } @if after.is_there() { th { "After" } } } }
                    tbody { @for (field, [was, is]) in &rows { tr {
                        td { (field) }
                        @if before.is_there() { td { (was) } }
                        @if after.is_there() { td { (is) } }
                    } } }
                }
            }
        }
    }
}

/// Adds the values below a value to the rows, each under the path of its field in words.
fn add_rows(at: JsonView<'_>, path: &str, side: usize, rows: &mut Vec<(String, [String; 2])>) {
    let below = |name: &str| if path.is_empty() { words(name) } else { format!("{path} › {}", words(name).to_lowercase()) };
    match at.json() {
        Value::Null => {}
        Value::Object(_) => {
            let is_told = |name: &str| !(is_element(at) && NO_CHANGES.contains(&name));
            at.fields().filter(|(name, _)| is_told(name)).for_each(|(name, value)| add_rows(value, &below(name), side, rows));
        }
        Value::Array(elements) if elements.iter().any(Value::is_object) => {
            for (place, element) in at.elements().enumerate() {
                let label = label(element);
                let label = if label.is_empty() { (place + 1).to_string() } else { label };
                add_rows(element, &format!("{path} {label}"), side, rows);
            }
        }
        Value::Array(_) => set(rows, path, side, &at.elements().map(JsonView::to_text).collect::<Vec<_>>().join(", ")),
        Value::Bool(yes) => set(rows, path, side, if *yes { "yes" } else { "no" }),
        Value::Number(_) | Value::String(_) => set(rows, path, side, &at.to_text()),
    }
}

fn set(rows: &mut Vec<(String, [String; 2])>, path: &str, side: usize, text: &str) {
    match rows.iter_mut().find(|(known, _)| known == path) {
        Some((_, values)) => text.clone_into(&mut values[side]),
        None => {
            let mut values = [String::new(), String::new()];
            text.clone_into(&mut values[side]);
            rows.push((path.to_owned(), values));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";

    fn entry(action: &str, kind: &str, name: &Value, before: &Value, after: &Value) -> Value {
        json!({
            "at": "2026-11-10T12:00:00Z", "actor": format!("admin:{ID}"), "actor_name": "dana@example.com", "action": action,
            "object_kind": kind, "object_ref": ID, "object_name": name, "before": before, "after": after,
        })
    }

    /// Returns the text of a sentence without its markup.
    fn text(entry: &Value) -> String {
        let markup = sentence(JsonView::of(entry)).into_string();
        let mut text = String::new();
        let mut is_tag = false;
        for c in markup.chars() {
            match c {
                '<' => is_tag = true,
                '>' => is_tag = false,
                c if !is_tag => text.push(c),
                _ => {}
            }
        }
        text
    }

    #[test]
    fn an_entry_is_a_sentence_with_names() {
        let price = |amount: u32| {
            json!({"products": [{"product_no": 0, "product_name": "Plan", "line_items": [
                {"line_item_id": "calls", "name": "API calls", "price": {"unit_price": amount}}]}], "version": amount})
        };
        let none = Value::Null;
        for (entry, expected) in [
            (
                entry("EDIT", "CONTRACT", &json!("C-28"), &price(1), &price(2)),
                "dana@example.com changed the price of API calls on C-28",
            ),
            (
                entry(
                    "EDIT",
                    "CONTRACT",
                    &json!("C-28"),
                    &json!({"products": [{"product_no": 0, "product_name": "Scale"}], "version": 1}),
                    &json!({"products": [{"product_no": 0, "product_name": "Scale", "effective_from": "2026-12-01", "discount": 10,
                        "in_force": {"product_no": 0, "product_name": "Scale", "discount": null}}], "version": 2}),
                ),
                "dana@example.com changed the discount of Scale to 10 % from 2026-12-01 on C-28",
            ),
            (
                entry("EDIT", "CUSTOMER", &json!("Acme"), &json!({"name": "A"}), &json!({"name": "Acme", "email": "a@b.c"})),
                "dana@example.com changed the name and the email of customer Acme",
            ),
            (
                entry("CREATE", "PAYMENT", &json!("UB-INV-1"), &none, &json!({"amount": 5, "document_ref": "d1"})),
                "dana@example.com recorded a payment on UB-INV-1",
            ),
            (
                entry("REVERSE", "PAYMENT", &json!("Acme"), &none, &json!({"amount": 5, "document_ref": null})),
                "dana@example.com reversed a payment of Acme",
            ),
            (entry("VOID", "DOCUMENT", &json!("UB-INV-1"), &none, &none), "dana@example.com voided UB-INV-1"),
            (
                entry("EDIT", "LIMIT", &json!("OWED"), &json!({"max": 5}), &json!({"max": 6})),
                "dana@example.com changed the max of limit Amount owed",
            ),
            (entry("DELETE", "LIMIT", &none, &json!({"metric": "OWED"}), &none), "dana@example.com deleted limit"),
            (entry("DELETE", "CHARGE", &none, &json!({"name": "Set-up"}), &none), "dana@example.com deleted charge Set-up"),
            (
                entry("RUN", "BILLING_RUN", &none, &none, &json!({"issued": ["UB-INV-1", "UB-INV-2"]})),
                "dana@example.com ran billing and issued 2 documents",
            ),
        ] {
            assert_eq!(text(&entry), expected);
        }
    }

    #[test]
    fn a_sentence_has_no_identifier_and_links_to_the_object() {
        let shown = |entry: &Value| sentence(JsonView::of(entry)).into_string();
        let page = shown(&entry("CANCEL", "CONTRACT", &json!("C-28"), &Value::Null, &Value::Null));
        assert!(page.contains(&format!("<a href=\"/console/contracts/{ID}\">C-28</a>")), "{page}");
        let page = shown(&entry("CREATE", "LIMIT", &json!("SPEND"), &Value::Null, &Value::Null));
        assert!(page.contains(&format!("<a href=\"/console/limits/{ID}\">Spend</a>")), "{page}");
        let page = shown(&entry("CREATE", "CREDIT_GRANT", &json!("Welcome"), &Value::Null, &Value::Null));
        assert!(page.contains(&format!("credit grant <a href=\"/console/credit/{ID}\">Welcome</a>")), "{page}");
        let gone = entry("DELETE", "WEBHOOK_ENDPOINT", &Value::Null, &Value::Null, &Value::Null);
        assert!(!shown(&gone).contains(ID) && !shown(&gone).contains("<a "), "{}", shown(&gone));
        let mut unnamed = entry("VOID", "DOCUMENT", &json!("<b>"), &Value::Null, &Value::Null);
        unnamed["actor_name"] = Value::Null;
        assert!(shown(&unnamed).contains("administrator") && !shown(&unnamed).contains("<b><"), "{}", shown(&unnamed));
    }

    #[test]
    fn the_names_of_many_fields_are_cut() {
        let fields = json!({"a": 1, "b": 1, "c": 1, "d": 1});
        let many = entry("EDIT", "CUSTOMER", &json!("Acme"), &Value::Null, &fields);
        assert_eq!(text(&many), "dana@example.com changed the a, the b and 2 more fields of customer Acme");
    }

    #[test]
    fn values_are_side_by_side_under_their_field() {
        let before = json!({"products": [{"line_item_id": "calls", "price": 1}], "email": "a"});
        let after = json!({"products": [{"line_item_id": "calls", "price": 2}]});
        let page = changes(JsonView::of(&entry("EDIT", "CONTRACT", &Value::Null, &before, &after))).into_string();
        assert!(page.contains("<td>Products calls › price</td><td>1</td><td>2</td>"), "{page}");
        assert!(page.contains("<td>Email</td><td>a</td><td></td>"), "{page}");
        let nothing = changes(JsonView::of(&entry("LOG_IN", "ADMINISTRATOR", &Value::Null, &Value::Null, &Value::Null)));
        assert_eq!(nothing.into_string(), "");
    }
}
