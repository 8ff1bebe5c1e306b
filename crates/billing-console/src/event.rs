//! The page of a usage event: its fields, and every revision with the document that bills it.

use maud::{Markup, html};
use serde_json::Value;

use crate::parts::{author_in, facts, href, identifier, instant, isolated, link, number, section, state, words};
use crate::thing::content;
use billing_api::json_view::JsonView;

/// Renders the page of an event. A deleted event has only its revisions.
pub fn event(event: &Value, history: &Value, may_change: bool) -> Markup {
    let at = JsonView::of(event);
    let data = at.at_path("additional_report_data");
    html! {
        h1 { "Usage event" }
        @if at.is_there() {
            @let reference = at.at_path("event_ref").to_text();
            @if may_change { div.actions {
                a.button href=(href(&["edit", "events", &reference])) { "Edit" }
                a.button.grave href=(href(&["do", "delete-event", &reference])) { "Delete" }
            } }
            (facts(&[
                ("Time", instant(at.at_path("timestamp"))),
                ("Customer", link(Some(href(&["customers", &at.at_path("customer_ref").to_text()])), &at.at_path("customer_name").to_text())),
                ("Usage product", link(
                    Some(href(&["usage-products", &at.at_path("usage_product_ref").to_text()])),
                    &at.at_path("usage_product_name").to_text(),
                )),
                ("Quantity", number(at.at_path("quantity"))),
                ("Document", link(
                    Some(href(&["documents", &at.at_path("related_document_ref").to_text()])),
                    &at.at_path("related_document_numbers").to_text(),
                )),
                ("Document state", state(at.at_path("document_state"))),
                ("Recorded", instant(at.at_path("created_at"))),
                ("Event ID", identifier("Show", &at.at_path("event_ref").to_text())),
            ]))
            @if data.is_there() { (section("Report data", &content("additional_report_data", data))) }
        } @else {
            p { "This event was deleted and is not billed." }
        }
        (section("Revisions", &revisions(JsonView::of(history))))
    }
}

fn revisions(history: JsonView<'_>) -> Markup {
    html! {
        div.scrolls {
            table {
                thead { tr { th { "Revision" } th { "Changed at" } th { "Action" } th { "Changed by" } th { "Event time" } th.amount { "Quantity" } th { "Document" } } }
                tbody {
                    @for revision in history.elements() {
                        tr {
                            td { (revision.at_path("revision").to_text()) }
                            td { (instant(revision.at_path("changed_at"))) }
                            td { (words(&revision.at_path("action").to_text())) }
                            td { (isolated(&author_in(revision, "changed_by"))) }
                            td { (instant(revision.at_path("event.timestamp"))) }
                            td.amount { (number(revision.at_path("event.quantity"))) }
                            td { (link(
                                Some(href(&["documents", &revision.at_path("document_ref").to_text()])),
                                &revision.at_path("document_number").to_text(),
                            )) }
                        }
                    }
                }
            }
        }
    }
}
