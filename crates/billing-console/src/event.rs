//! The page of a usage event: its fields, and every revision with the document that bills it.

use maud::{Markup, html};
use serde_json::Value;

use crate::json_view::JsonView;
use crate::parts::{author_in, facts, href, identifier, instant, isolated, link, number, section, state, words};
use crate::thing::content;

/// Renders the page of an event. A deleted event has only its revisions.
pub fn event(event: &Value, history: &Value, may_change: bool) -> Markup {
    let at = JsonView(event);
    let data = at.at("additional_report_data");
    html! {
        h1 { "Usage event" }
        @if at.is_there() {
            @let reference = at.at("event_ref").text();
            @if may_change { div.actions {
                a.button href=(href(&["edit", "events", &reference])) { "Edit" }
                a.button.grave href=(href(&["do", "delete-event", &reference])) { "Delete" }
            } }
            (facts(&[
                ("Time", instant(at.at("timestamp"))),
                ("Customer", link(Some(href(&["customers", &at.at("customer_ref").text()])), &at.at("customer_name").text())),
                ("Usage product", link(
                    Some(href(&["usage-products", &at.at("usage_product_ref").text()])),
                    &at.at("usage_product_name").text(),
                )),
                ("Quantity", number(at.at("quantity"))),
                ("Document", link(
                    Some(href(&["documents", &at.at("related_document_ref").text()])),
                    &at.at("related_document_numbers").text(),
                )),
                ("Document state", state(at.at("document_state"))),
                ("Recorded", instant(at.at("created_at"))),
                ("Event ID", identifier("Show", &at.at("event_ref").text())),
            ]))
            @if data.is_there() { (section("Report data", &content("additional_report_data", data))) }
        } @else {
            p { "This event was deleted and is not billed." }
        }
        (section("Revisions", &revisions(JsonView(history))))
    }
}

fn revisions(history: JsonView<'_>) -> Markup {
    html! {
        div.scrolls {
            table {
                thead { tr { th { "Revision" } th { "Changed at" } th { "Action" } th { "Changed by" } th { "Event time" } th.amount { "Quantity" } th { "Document" } } }
                tbody {
                    @for revision in history.items() {
                        tr {
                            td { (revision.at("revision").text()) }
                            td { (instant(revision.at("changed_at"))) }
                            td { (words(&revision.at("action").text())) }
                            td { (isolated(&author_in(revision, "changed_by"))) }
                            td { (instant(revision.at("event.timestamp"))) }
                            td.amount { (number(revision.at("event.quantity"))) }
                            td { (link(
                                Some(href(&["documents", &revision.at("document_ref").text()])),
                                &revision.at("document_number").text(),
                            )) }
                        }
                    }
                }
            }
        }
    }
}
