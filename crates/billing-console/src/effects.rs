//! What a change would do to documents, before it is made.

use maud::{Markup, html};
use serde_json::Value;

use crate::document::{lines, title, totals};
use crate::json_view::JsonView;
use crate::parts::{day, href, link, money, state};

/// A change that waits for a yes.
#[derive(Clone, Debug)]
pub struct Preview {
    /// What it does.
    pub title: String,
    /// What will happen, where documents don't tell.
    pub tells: &'static str,
    /// What the interface says it would do.
    pub effects: Value,
    /// Where it is sent to.
    pub action: String,
    /// What its button says.
    pub button: &'static str,
    /// All that was said.
    pub said: Vec<(String, String)>,
    /// Whether there is a form to go back to.
    pub has_form: bool,
    /// Where to go instead.
    pub back: String,
}

/// The field of a form that says yes.
pub const CONFIRMED: &str = "confirmed";
/// The field of a form that goes back to it.
pub const AGAIN: &str = "again";

/// What documents are changed by, and how that is told.
const PARTS: &[(&str, &str)] = &[
    ("issued", "Would be issued"),
    ("voided", "Would be put out of force"),
    ("opened", "Would be opened as drafts"),
    ("recomputed", "Drafts that would say something else"),
    ("settled", "Of these something else would be paid, credited or given up on"),
    ("planned", "Would be billed then"),
];

/// Whether it does anything to documents.
pub fn is_seen(effects: &Value) -> bool {
    PARTS.iter().any(|(part, _)| JsonView(effects).at(part).items().next().is_some())
}

/// The body of a page with what a change would do.
pub fn preview(preview: &Preview) -> Markup {
    let effects = JsonView(&preview.effects);
    let before: Vec<JsonView<'_>> = effects.at("before").items().collect();
    html! {
        h1 { (preview.title) }
        @if !preview.tells.is_empty() { p { (preview.tells) } }
        p.muted { "Nothing is stored yet. This is what it would do." }
        @if !is_seen(&preview.effects) { p { "No document would say anything else." } }
        @for (part, told) in PARTS {
            @if effects.at(part).items().next().is_some() {
                section { h2 { (told) } @for document in effects.at(part).items() { (changed(document, &before)) } }
            }
        }
        form.actions method="post" action=(preview.action) {
            @for (name, value) in &preview.said { input type="hidden" name=(name) value=(value); }
            button name=(CONFIRMED) value="yes" { (preview.button) }
            @if preview.has_form { button.plain name=(AGAIN) value="yes" { "Change what was said" } }
            a href=(preview.back) { "Leave it" }
        }
    }
}

/// A document as it would be, beside what it is.
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
                thead { tr { th {} th.amount { "Now" } th.amount { "Then" } } }
                tbody { @for (name, field) in [("Total", "total"), ("Left to pay", "amount_due")] {
                    @if document.at(field).is_there() || before.is_some_and(|before| before.at(field).is_there()) { tr {
                        th scope="row" { (name) }
                        td.amount { @match before { Some(before) => (money(before.at(field), &currency)), None => "–" } }
                        td.amount { @if document.at(field).is_there() { (money(document.at(field), &currency)) } @else { "–" } }
                    } }
                } }
            } }
            details { summary { "All that it would say" } (lines(document)) (totals(document)) }
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
        assert!(now < then && page.contains("Drafts that would say something else"), "{page}");
        assert!(page.contains("value=\"&quot;&gt;&lt;b&gt;\""), "{page}");
    }

    #[test]
    fn what_touches_no_document_says_so() {
        let nothing = json!({"opened": [], "issued": []});
        assert!(!is_seen(&nothing) && shown(nothing).contains("No document would say anything else."));
    }
}
