//! Loads the data of each page.

use crate::{DocumentAnswers, JsonView, Notice, PricingAnswers, href, listings};
use billing_api::console::{FormData, PageAnswer};
use billing_application::UseCase;
use serde_json::Value;

use super::api_client::or_nothing;
use super::calculations::with_steps;
use super::contract_tasks;
use super::form_data::{field, query};
use super::forms;
use super::list_page;
use super::lists::{crumbs, few, listing_of};
use super::page_builder::PageBuilder;
use super::resources;
use super::session_user::SessionUser;
use super::webhooks;
use billing_api::operations::{
    GetDocument, GetDocumentPdf, GetDocumentXml, GetEvent, GetEventHistory, GetPricing, ListPaymentsOfDocument, RatePricing,
    ReportDocumentUsage, Search,
};
use billing_api::problem::Problem;

/// Renders a page of a list.
pub(super) async fn listed(visitor: &SessionUser, part: &str, said: &FormData) -> Result<PageBuilder, Problem> {
    list_page::page(visitor, listing_of(part)?, said).await
}

/// Returns the PDF of a document. A problem with it is a page, not the JSON of the API.
pub(super) async fn pdf(visitor: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    visitor.answer(&GetDocumentPdf::SPEC, reference, "").await.map(PageAnswer::Api)
}

/// Returns the e-invoice of a document.
pub(super) async fn xml(visitor: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    visitor.answer(&GetDocumentXml::SPEC, reference, "").await.map(PageAnswer::Api)
}

/// Returns the notice for the action that led to the page.
pub(super) fn done(visitor: &SessionUser) -> Option<Notice> {
    let asked = query(&visitor.request);
    let what = match field(&asked, "done")? {
        "delete-key" => "API key deleted.",
        "run" => "Billing run finished.",
        "import" => "File imported.",
        "undo" => "Undo finished. This page shows events that remain.",
        "password" => "Password changed. Your other sessions have ended.",
        "remove" => "Second factor removed.",
        "send" => "The notification is sent again.",
        "delete-webhook" => "Webhook endpoint deleted.",
        "end-session" => "Session ended.",
        "disable" => "Administrator disabled.",
        "enable" => "Administrator enabled.",
        "make" => "Usage format created.",
        "edit" => "Changes saved.",
        place => match forms::amount_notice(place, &asked) {
            Some(notice) => return Some(Notice::Done(notice)),
            None => contract_tasks::done(place).or_else(|| forms::done(place))?,
        },
    };
    Some(Notice::Done(what.to_owned()))
}

pub(super) async fn search_page(visitor: &SessionUser, said: &FormData) -> Result<PageBuilder, Problem> {
    let sought = field(said, "q").unwrap_or_default();
    let raw = crate::query(&[("q", sought)]);
    let found = visitor.get_any_with(&Search::SPEC, "", &raw).await?;
    Ok(PageBuilder::of("Search", "search", crate::found(sought, JsonView::of(&found))))
}

pub(super) async fn document(visitor: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let document = with_steps(visitor.get_any(&GetDocument::SPEC, reference).await?);
    let payments = visitor.get_any(&ListPaymentsOfDocument::SPEC, reference).await?;
    let title = JsonView::of(&document).at_path("document_number").to_text();
    let may_change = visitor.may(UseCase::VoidDocument);
    let document_ref = JsonView::of(&document).at_path("document_ref").to_text();
    let pdf = href(&["documents", &document_ref, "pdf"]);
    let xml = href(&["documents", &document_ref, "xml"]);
    let usage = ReportDocumentUsage::SPEC.url(&document_ref);
    let notifications = webhooks::of_subject(visitor, "document", &document_ref).await?.into_json();
    let body = crate::document(&DocumentAnswers { document, payments, notifications, pdf, xml, usage, may_change });
    Ok(PageBuilder { title, part: "documents", crumbs: crumbs(&listings::DOCUMENTS), body })
}

pub(super) async fn event(visitor: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    // A deleted event has only its history.
    let event = or_nothing(visitor.get_any(&GetEvent::SPEC, reference).await)?;
    let history = visitor.get_any(&GetEventHistory::SPEC, reference).await?;
    let body = crate::event(JsonView::of(&event), JsonView::of(&history), forms::may(visitor, "edit", "events"));
    Ok(PageBuilder { title: "Usage event".to_owned(), part: "events", crumbs: crumbs(&listings::EVENTS), body })
}

pub(super) async fn thing(visitor: &SessionUser, part: &str, reference: &str) -> Result<PageBuilder, Problem> {
    let listing = listing_of(part)?;
    let answer = resources::read(visitor, part, reference).await?;
    let title = listing.name_of(JsonView::of(&answer));
    let title = if title.is_empty() { reference.to_owned() } else { title };
    // The built-in format has no `changed_at` and cannot be edited.
    let is_format = part == listings::FORMATS.part && JsonView::of(&answer).at_path("changed_at").is_there();
    let may_edit = forms::may(visitor, "edit", part) || (is_format && visitor.may(UseCase::EditFormat));
    let edit = may_edit.then(|| href(&["edit", part, reference]));
    let may_delete = part == listings::CHARGES.part && forms::may(visitor, "do", "delete-charge");
    let delete = may_delete.then(|| href(&["do", "delete-charge", reference]));
    let body = crate::thing(&title, &answer, edit.as_deref(), delete.as_deref());
    Ok(PageBuilder { title, part: listing.part, crumbs: crumbs(listing), body })
}

pub(super) async fn pricing(visitor: &SessionUser, reference: &str, said: &FormData) -> Result<PageBuilder, Problem> {
    let pricing = visitor.get_any(&GetPricing::SPEC, reference).await?;
    let listing = &listings::PRICINGS;
    let rated = async |visitor: &SessionUser, quantities: &str| {
        visitor.get_any_with(&RatePricing::SPEC, reference, &crate::query(&[("quantity", quantities)])).await
    };
    let quantity = field(said, "quantity").unwrap_or_default().to_owned();
    let asked = if quantity.is_empty() {
        None
    } else {
        Some(match rated(visitor, &quantity).await {
            Ok(rates) => Ok(rates[0].clone()),
            Err(problem) => {
                Err(problem.errors().first().map_or_else(|| problem.detail().to_owned(), |error| error.detail.clone()))
            }
        })
    };
    let drawn = crate::quantities(&pricing, &quantity).join(",");
    // The drawing's upper end may exceed the amount limit.
    let rates = if drawn.is_empty() { Value::Null } else { rated(&visitor.quietly(), &drawn).await.unwrap_or_default() };
    let contracts = few(visitor, &listings::CONTRACTS, &[("product_pricing_ref", reference)]).await?;
    let title = JsonView::of(&pricing).at_path("name").to_text();
    let edit = forms::may(visitor, "edit", listing.part).then(|| href(&["edit", listing.part, reference]));
    let body = crate::pricing(&PricingAnswers { pricing, rates, quantity, asked, contracts, edit });
    Ok(PageBuilder { title, part: listing.part, crumbs: crumbs(listing), body })
}
