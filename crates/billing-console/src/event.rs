//! The page of a usage event: its fields, and every revision with the document that bills it.

use maud::{Markup, html};

use crate::parts::{author_in, facts, href, identifier, instant, isolated, link, number, section, state, words};
use crate::thing::content;
use billing_api::dto::events::{EventJson, EventRevisionJson};
use billing_api::field;
use billing_api::json_view::JsonView;

/// Renders the page of an event. A deleted event has only its revisions.
pub fn event(at: JsonView<'_, EventJson>, history: JsonView<'_, Vec<EventRevisionJson>>, may_change: bool) -> Markup {
    let data = at.additional_report_data();
    html! {
        h1 { "Usage event" }
        @if at.is_there() {
            @let reference = at.event_ref().to_text();
            @if may_change { div.actions {
                a.button href=(href(&["edit", "events", &reference])) { "Edit" }
                a.button.grave href=(href(&["do", "delete-event", &reference])) { "Delete" }
            } }
            (facts(&[
                ("Time", instant(at.timestamp())),
                ("Customer", link(Some(href(&["customers", &at.customer_ref().to_text()])), &at.customer_name().to_text())),
                ("Usage product", link(
                    Some(href(&["usage-products", &at.usage_product_ref().to_text()])),
                    &at.usage_product_name().to_text(),
                )),
                ("Quantity", number(at.quantity())),
                ("Document", link(
                    Some(href(&["documents", &at.related_document_ref().to_text()])),
                    &at.related_document_numbers().to_text(),
                )),
                ("Document state", state(at.document_state())),
                ("Recorded", instant(at.created_at())),
                ("Event ID", identifier("Show", &at.event_ref().to_text())),
            ]))
            @if data.is_there() { (section("Report data", &content(field!(EventJson, additional_report_data), data.any()))) }
        } @else {
            p { "This event was deleted and is not billed." }
        }
        (section("Revisions", &revisions(history)))
    }
}

fn revisions(history: JsonView<'_, Vec<EventRevisionJson>>) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label="History" {
            table {
                thead { tr { th { "Revision" } th { "Changed at" } th { "Action" } th { "Changed by" } th { "Event time" } th.amount { "Quantity" } th { "Document" } } }
                tbody {
                    @for revision in history.items() {
                        tr {
                            td { (revision.revision().to_text()) }
                            td { (instant(revision.changed_at())) }
                            td { (words(&revision.action().to_text())) }
                            td { (isolated(&author_in(revision.any(), field!(EventRevisionJson, changed_by)))) }
                            td { (instant(revision.event().timestamp())) }
                            td.amount { (number(revision.event().quantity())) }
                            td { (link(
                                Some(href(&["documents", &revision.document_ref().to_text()])),
                                &revision.document_number().to_text(),
                            )) }
                        }
                    }
                }
            }
        }
    }
}
