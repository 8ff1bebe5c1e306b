//! Documents: invoices, credits and debits.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use billing_application::documents::{self, DocumentList};
use billing_application::error::Thing;
use billing_domain::refs::DocumentRef;

use super::{Answer, OnceAnswer, in_path};
use crate::caller::Caller;
use crate::dto::documents::DocumentJson;
use crate::preference;
use crate::problem::Problem;
use crate::query::Query;
use crate::query::documents::Asked;

pub(crate) async fn get_document(caller: Caller, path: Path<String>) -> Answer<DocumentJson> {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let found = caller.run(move |services, principal| documents::get_document(services, principal, document_ref)).await?;
    Ok(Json(DocumentJson::from(&found)))
}

pub(crate) async fn list_documents(caller: Caller, request: HttpRequest, query: Query) -> Result<HttpResponse, Problem> {
    let (wanted, asked) = query.documents()?;
    let (part, page) = match asked {
        Asked::Table(format, order) => {
            return caller.table_of_documents(wanted, order, format, preference::wanted(&request)).await;
        }
        Asked::Part(part, page) => (part, page),
    };
    let found = caller.run(move |services, principal| match &wanted {
        Some(wanted) => documents::list_documents(services, principal, wanted, part),
        None => Ok(DocumentList::empty(part.with_sums)),
    });
    Ok(query.answer_documents(part, page, &found.await?))
}

pub(crate) async fn issue_document(caller: Caller, path: Path<String>) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let issued = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::issue_document(services, principal, document_ref));
    issued.await
}

pub(crate) async fn void_document(caller: Caller, path: Path<String>) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let voided = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::void_document(services, principal, document_ref));
    voided.await
}
