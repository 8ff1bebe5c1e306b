//! The preview of a change's effects on documents.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{lines, title, totals};
use crate::json_view::JsonView;
use crate::parts::{day, href, link, money, state};

/// A change that awaits confirmation.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Page title.
    pub title: String,
    /// Additional description, for effects beyond documents.
    pub tells: &'static str,
    /// Effects according to the API.
    pub effects: Value,
    /// Target of the form.
    pub action: String,
    /// Button label.
    pub button: &'static str,
    /// All submitted fields.
    pub said: Vec<(String, String)>,
    /// Whether a form exists to return to.
    pub has_form: bool,
    /// Target of the cancel link.
    pub back: String,
}

/// Form field that confirms the change.
pub const CONFIRMED: &str = "confirmed";
/// Form field that returns to the form.
pub const AGAIN: &str = "again";

/// Kinds of effects and their headings.
const PARTS: &[(&str, &str)] = &[
    ("issued", "Would be issued"),
    ("voided", "Would be voided"),
    ("opened", "Would be created as drafts"),
    ("recomputed", "Drafts that would change"),
    ("settled", "Documents with changed settlement"),
    ("planned", "Upcoming documents"),
];

/// Returns whether the change affects any document.
pub fn is_seen(effects: &Value) -> bool {
    PARTS.iter().any(|(part, _)| JsonView(effects).at(part).items().next().is_some())
}

/// Renders the preview page.
pub fn preview(preview: &Preview) -> Markup {
    let effects = JsonView(&preview.effects);
    let before: Vec<JsonView<'_>> = effects.at("before").items().collect();
    html! {
        h1 { (preview.title) }
        @if !preview.tells.is_empty() { p { (preview.tells) } }
        p.muted { "Preview. Nothing is saved yet." }
        @if !is_seen(&preview.effects) { p { "No documents would change." } }
        @for (part, told) in PARTS {
            @if effects.at(part).items().next().is_some() {
                section { h2 { (told) } @for document in effects.at(part).items() { (changed(document, &before)) } }
            }
        }
        form.actions method="post" action=(preview.action) {
            @for (name, value) in &preview.said { input type="hidden" name=(name) value=(value); }
            button name=(CONFIRMED) value="yes" { (preview.button) }
            @if preview.has_form { button.plain name=(AGAIN) value="yes" { "Edit" } }
            a href=(preview.back) { "Cancel" }
        }
    }
}

/// Renders a document's amounts before and after the change.
fn changed(document: JsonView<'_>, before: &[JsonView<'_>]) -> Markup {
    let reference = document.at("document_ref");
    let before = before.iter().find(|before| reference.is_there() && before.at("document_ref").0 == reference.0);
    let currency = document.at("currency").text();
    let to = before.map(|_| href(&["documents", &reference.text()]));
    html! {
        div.sheet.change {
            h3 { (link(to, &title(document))) " " (state(document.at("state"))) }
            p.muted { (day(document.at("period_start"))) " – " (day(document.at("period_end"))) }
            div.scrolls { table {
                thead { tr { th {} th.amount { "Current" } th.amount { "New" } } }
                tbody { @for (name, field) in [("Total", "total"), ("Amount due", "amount_due")] {
                    @if document.at(field).is_there() || before.is_some_and(|before| before.at(field).is_there()) { tr {
                        th scope="row" { (name) }
                        td.amount { @match before { Some(before) => (money(before.at(field), &currency)), None => "–" } }
                        td.amount { @if document.at(field).is_there() { (money(document.at(field), &currency)) } @else { "–" } }
                    } }
                } }
            } }
            details { summary { "Full document" } (lines(document)) (totals(document)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(effects: Value) -> String {
        preview(&Preview {
            title: "Void".to_owned(),
            tells: "",
            effects,
            action: "/console/do/void/d".to_owned(),
            button: "Void",
            said: vec![("reason".to_owned(), "\"><b>".to_owned())],
            has_form: true,
            back: "/console/documents/d".to_owned(),
        })
        .into_string()
    }

    #[test]
    fn a_document_is_shown_as_it_is_and_as_it_would_be() {
        let document = |total: u32, state: &str| {
            json!({"document_ref": "d", "kind": "INVOICE", "document_number": "UB-INV-1", "state": state, "currency": "EUR",
                "total": total, "amount_due": total})
        };
        let page = shown(json!({"recomputed": [document(80, "DRAFT")], "before": [document(100, "DRAFT")]}));
        let (now, then) = (page.find(">100 ").expect("before"), page.find(">80 ").expect("after"));
        assert!(now < then && page.contains("Drafts that would change"), "{page}");
        assert!(page.contains("value=\"&quot;&gt;&lt;b&gt;\""), "{page}");
    }

    #[test]
    fn what_touches_no_document_says_so() {
        let nothing = json!({"opened": [], "issued": []});
        assert!(!is_seen(&nothing) && shown(nothing).contains("No documents would change."));
    }
}
