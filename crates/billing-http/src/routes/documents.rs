//! Handlers for documents: invoices, credits and debits.

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETag, EntityTag, Header as _, IF_NONE_MATCH, IfNoneMatch,
};
use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use billing_application::documents::{self, DocumentList, PrintedDocument, WantedPrint};
use billing_application::error::ResourceKind;
use billing_domain::refs::DocumentRef;

use super::{Answer, OnceAnswer, in_path};
use crate::caller::Caller;
use crate::dto::documents::DocumentJson;
use crate::operation::PDF;
use crate::preference;
use crate::problem::Problem;
use crate::query::Query;
use crate::query::documents::DocumentListRequest;

pub(crate) async fn get_document(caller: Caller, path: Path<String>) -> Answer<DocumentJson> {
    let document_ref = in_path(DocumentRef::parse, &path, ResourceKind::Document)?;
    let found = caller.run(move |services, principal| documents::get_document(services, principal, document_ref)).await?;
    Ok(Json(DocumentJson::from(&found)))
}

pub(crate) async fn get_document_pdf(caller: Caller, request: HttpRequest, path: Path<String>) -> Result<HttpResponse, Problem> {
    let document_ref = in_path(DocumentRef::parse, &path, ResourceKind::Document)?;
    let found = caller.clone().run(move |services, principal| documents::find_print(services, principal, document_ref)).await?;
    let printed = match found {
        WantedPrint::Kept(printed) => printed,
        WantedPrint::ToPrint(printout) => {
            let permit = caller.state.permit_print().await?;
            let printed = caller.run(move |services, principal| {
                // The rendering thread releases the permit, even if the request was abandoned.
                let _permit = permit;
                documents::print_document(services, principal, &printout)
            });
            printed.await?
        }
    };
    Ok(answer_file(&request, printed))
}

/// Returns the file, or 304 if the caller has it.
fn answer_file(request: &HttpRequest, PrintedDocument { number, file }: PrintedDocument) -> HttpResponse {
    let tag = EntityTag::new_strong(file.sha256.iter().map(|byte| format!("{byte:02x}")).collect());
    let is_known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => request.headers().contains_key(IF_NONE_MATCH),
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(&tag)),
        Err(_) => false,
    };
    let mut response = if is_known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response.insert_header(ETag(tag));
    // Only the client may cache the file, and must revalidate it, because drafts change and access requires a
    // permission.
    response.insert_header((CACHE_CONTROL, "private, no-cache"));
    if is_known {
        return response.finish();
    }
    response.insert_header((CONTENT_TYPE, PDF));
    response.insert_header((CONTENT_DISPOSITION, format!("inline; filename=\"{number}.pdf\"")));
    response.body(file.bytes)
}

pub(crate) async fn list_documents(caller: Caller, request: HttpRequest, query: Query) -> Result<HttpResponse, Problem> {
    let (wanted, asked) = query.documents()?;
    let (part, page) = match asked {
        DocumentListRequest::Table(format, order) => {
            return caller.table_of_documents(wanted, order, format, preference::wanted(&request)).await;
        }
        DocumentListRequest::Part(part, page) => (part, page),
    };
    let found = caller.run(move |services, principal| match &wanted {
        Some(wanted) => documents::list_documents(services, principal, wanted, part),
        None => Ok(DocumentList::empty(part.with_sums)),
    });
    Ok(query.answer_documents(part, page, &found.await?))
}

pub(crate) async fn issue_document(caller: Caller, path: Path<String>) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, ResourceKind::Document)?;
    let issued = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::issue_document(services, principal, document_ref));
    issued.await
}

pub(crate) async fn void_document(caller: Caller, path: Path<String>) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, ResourceKind::Document)?;
    let voided = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::void_document(services, principal, document_ref));
    voided.await
}
