//! Loads the data of each page.

use crate::{DocumentAnswers, JsonAnswer, Notice, PricingAnswers, ThingAction, href, listings};
use billing_api::console::{FormData, PageAnswer};
use billing_api::dto::entities::EntityJson;
use billing_api::dto::formats::FormatJson;
use billing_application::UseCase;

use super::api_client::or_nothing;
use super::contract_tasks;
use super::credit;
use super::form_data::{field, query};
use super::forms;
use super::list_page;
use super::lists::{crumbs, few, listing_of};
use super::logo::LOGO;
use super::page_builder::PageBuilder;
use super::resources;
use super::session_user::SessionUser;
use super::webhooks;
use billing_api::operations::{
    GetContract, GetDocument, GetDocumentPdf, GetDocumentXml, GetEvent, GetEventHistory, GetPricing, ListPaymentsOfDocument,
    RatePricing, ReportDocumentUsage, Search,
};
use billing_api::problem::Problem;

/// Renders a page of a list.
pub(super) async fn listed(user: &SessionUser, part: &str, submitted: &FormData) -> Result<PageBuilder, Problem> {
    list_page::page(user, listing_of(part)?, submitted).await
}

/// Returns the PDF of a document. A problem with it is a page, not the JSON of the API.
pub(super) async fn pdf(user: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    user.answer(&GetDocumentPdf::SPEC, reference, "").await.map(PageAnswer::Api)
}

/// Returns the e-invoice of a document.
pub(super) async fn xml(user: &SessionUser, reference: &str) -> Result<PageAnswer, Problem> {
    user.answer(&GetDocumentXml::SPEC, reference, "").await.map(PageAnswer::Api)
}

/// Returns the notice for the action that led to the page.
pub(super) fn done(user: &SessionUser) -> Option<Notice> {
    let asked = query(&user.request);
    let what = match field(&asked, "done")? {
        "delete-key" => "API key deleted.",
        "run" => "Billing run finished.",
        "import" => "File imported.",
        "password" => "Password changed. Your other sessions have ended.",
        "remove" => "Second factor removed.",
        "send" => "The notification is sent again.",
        "delete-webhook" => "Webhook endpoint deleted.",
        "end-session" => "Session ended.",
        "release-hold" => "Hold released.",
        "disable" => "Administrator disabled.",
        "enable" => "Administrator enabled.",
        "make" => "Usage format created.",
        "edit" => "Changes saved.",
        "price" => "Price added. Existing contracts keep their prices until you reprice them.",
        place => match forms::amount_notice(place, &asked) {
            Some(notice) => return Some(Notice::Done(notice)),
            None => contract_tasks::done(place).or_else(|| forms::done(place))?,
        },
    };
    Some(Notice::Done(what.to_owned()))
}

pub(super) async fn search_page(user: &SessionUser, submitted: &FormData) -> Result<PageBuilder, Problem> {
    let sought = field(submitted, "q").unwrap_or_default();
    let raw = crate::query(&[("q", sought)]);
    let found = user.get_with::<Search>("", &raw).await?;
    Ok(PageBuilder::of("Search", "search", crate::found(sought, found.view())))
}

pub(super) async fn document(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let document = user.get::<GetDocument>(reference).await?;
    let contract = or_nothing(user.quietly().get::<GetContract>(&document.view().contract_ref().to_text()).await)?;
    let payments = user.get::<ListPaymentsOfDocument>(reference).await?;
    let title = document.view().document_number().to_text();
    let may_change = user.may(UseCase::VoidDocument);
    let document_ref = document.view().document_ref().to_text();
    let pdf = href(&["documents", &document_ref, "pdf"]);
    let xml = href(&["documents", &document_ref, "xml"]);
    let usage = ReportDocumentUsage::SPEC.url(&document_ref);
    let notifications = webhooks::of_subject(user, "document", &document_ref).await?;
    let may_charge = forms::may(user, "do", "charge");
    let body = crate::document(&DocumentAnswers {
        document,
        contract,
        payments,
        notifications,
        pdf,
        xml,
        usage,
        may_change,
        may_charge,
    });
    Ok(PageBuilder { title, part: "documents", crumbs: crumbs(&listings::DOCUMENTS), body })
}

pub(super) async fn event(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    // A deleted event has only its history.
    let event = or_nothing(user.get::<GetEvent>(reference).await)?;
    let history = user.get::<GetEventHistory>(reference).await?;
    let body = crate::event(event.view(), history.view(), forms::may(user, "edit", "events"));
    Ok(PageBuilder { title: "Usage event".to_owned(), part: "events", crumbs: crumbs(&listings::EVENTS), body })
}

pub(super) async fn thing(user: &SessionUser, part: &str, reference: &str) -> Result<PageBuilder, Problem> {
    let listing = listing_of(part)?;
    let answer = resources::read(user, part, reference).await?;
    let answer = if part == listings::LIMITS.part { credit::beside_limit(user, answer).await? } else { answer };
    let title = listing.name_of(answer.view());
    let title = if title.is_empty() { reference.to_owned() } else { title };
    // The built-in format has no `changed_at` and cannot be edited.
    let is_format = part == listings::FORMATS.part && answer.view().read_as::<FormatJson>().changed_at().is_there();
    let may_edit = forms::may(user, "edit", part) || (is_format && user.may(UseCase::EditFormat));
    let action = |label, address| ThingAction { label, address, is_grave: false };
    let edit = may_edit.then(|| action("Edit", href(&["edit", part, reference])));
    let has_logo = part == listings::ENTITIES.part && may_edit;
    let logo = has_logo.then(|| action("Logo", href(&[part, reference, LOGO])));
    let deletions = [
        (listings::CHARGES.part, "delete-charge"),
        (listings::ENTITIES.part, "delete-entity"),
        (listings::LIMITS.part, "delete-limit"),
    ];
    let is_default = answer.view().read_as::<EntityJson>().is_default().is_true();
    let deletion = deletions.into_iter().find(|(of, what)| *of == part && !is_default && forms::may(user, "do", what));
    let delete = deletion.map(|(_, what)| ThingAction { is_grave: true, ..action("Delete", href(&["do", what, reference])) });
    let actions: Vec<ThingAction> = edit.into_iter().chain(logo).chain(delete).collect();
    let body = crate::thing(&title, answer.view(), &actions);
    Ok(PageBuilder { title, part: listing.part, crumbs: crumbs(listing), body })
}

pub(super) async fn pricing(user: &SessionUser, reference: &str, submitted: &FormData) -> Result<PageBuilder, Problem> {
    let pricing = user.get::<GetPricing>(reference).await?;
    let listing = &listings::PRICINGS;
    let rated = async |user: &SessionUser, quantities: &str| {
        user.get_with::<RatePricing>(reference, &crate::query(&[("quantity", quantities)])).await
    };
    let quantity = field(submitted, "quantity").unwrap_or_default().to_owned();
    let asked = if quantity.is_empty() {
        None
    } else {
        Some(match rated(user, &quantity).await {
            Ok(rates) => {
                Ok(rates.view().items().next().map_or_else(JsonAnswer::default, |rate| JsonAnswer::from(rate.json().clone())))
            }
            Err(problem) => {
                Err(problem.errors().first().map_or_else(|| problem.detail().to_owned(), |error| error.detail.clone()))
            }
        })
    };
    let drawn = crate::quantities(pricing.view(), &quantity).join(",");
    // The drawing's upper end may exceed the amount limit.
    let rates = if drawn.is_empty() { JsonAnswer::default() } else { rated(&user.quietly(), &drawn).await.unwrap_or_default() };
    let contracts = few(user, &listings::CONTRACTS, &[("product_pricing_ref", reference)]).await?;
    let title = pricing.view().name().to_text();
    let edit = forms::may(user, "edit", listing.part).then(|| href(&["edit", listing.part, reference]));
    let body = crate::pricing(&PricingAnswers { pricing, rates, quantity, asked, contracts, edit });
    Ok(PageBuilder { title, part: listing.part, crumbs: crumbs(listing), body })
}
