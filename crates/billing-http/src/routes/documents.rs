//! Documents: invoices, credits and debits.

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::documents;
use billing_application::error::Thing;
use billing_domain::page::Page;
use billing_domain::refs::DocumentRef;

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::dto::documents::DocumentJson;
use crate::problem::Problem;
use crate::query::Query;

/// Reads a document.
#[utoipa::path(get, path = "/api/documents/{document_ref}", tag = "documents",
    params(("document_ref" = String, Path, description = "Its reference")),
    responses((status = 200, description = "The document, lines included", body = DocumentJson)))]
pub(crate) async fn get_document(caller: Caller, path: Path<String>) -> Answer<DocumentJson> {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let found = caller.run(move |services, principal| documents::get_document(services, principal, document_ref)).await?;
    Ok(Json(DocumentJson::from(&found)))
}

/// Lists documents by creation.
#[utoipa::path(get, path = "/api/documents/filter", tag = "documents",
    params(crate::openapi::DocumentParams, crate::openapi::PageParams),
    responses((status = 200, description = "A page of documents", body = Vec<DocumentJson>)))]
pub(crate) async fn list_documents(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (wanted, page) = query.documents()?;
    let found = caller.run(move |services, principal| match &wanted {
        Some(wanted) => documents::list_documents(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, DocumentJson>(page, &found.await?))
}

/// Issues a draft now, whatever its day.
#[utoipa::path(post, path = "/api/documents/issue/{document_ref}", tag = "documents",
    params(("document_ref" = String, Path, description = "The draft's reference")),
    responses((status = 200, description = "The issued document", body = DocumentJson)))]
pub(crate) async fn issue_document(caller: Caller, path: Path<String>) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let issued = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::issue_document(services, principal, document_ref));
    issued.await
}

/// Voids an unpaid issued document; a replacement bills its period again.
#[utoipa::path(post, path = "/api/documents/void/{document_ref}", tag = "documents",
    params(("document_ref" = String, Path, description = "The document's reference")),
    responses((status = 200, description = "The void document", body = DocumentJson)))]
pub(crate) async fn void_document(caller: Caller, path: Path<String>) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let voided = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::void_document(services, principal, document_ref));
    voided.await
}
