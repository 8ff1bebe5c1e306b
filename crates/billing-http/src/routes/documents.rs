//! Handlers for documents: invoices, credits and debits.

use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETag, EntityTag, Header as _, IF_NONE_MATCH, IfNoneMatch,
};
use actix_web::{HttpRequest, HttpResponse};
use billing_application::documents::{self, DocumentList, PrintedDocument, ToPrint, WantedEInvoice, WantedPrint};
use billing_application::error::ResourceKind;
use billing_domain::document::files::RenderedFile;
use billing_domain::refs::DocumentRef;

use crate::call::{Call, Reply};
use crate::preference;
use crate::respond::respond;
use billing_api::media_type::{PDF, XML};
use billing_api::problem::Problem;
use billing_api::query::documents::DocumentListRequest;
use billing_api::query::lists::EInvoiceParams;

pub(crate) async fn get_document_pdf(call: Call) -> Reply {
    let document_ref = call.reference(DocumentRef::parse, ResourceKind::Document)?;
    let printed = match call.look_up(move |cx| documents::find_print(cx, document_ref)).await? {
        WantedPrint::Kept(printed) => printed,
        WantedPrint::ToPrint(wanted) => print(&call, wanted).await?,
    };
    Ok(answer_file(&call.request, printed.file, PDF, &format!("{}.pdf", printed.number)))
}

/// Prints a document. The database is used before and after, but not while the document is printed.
async fn print(call: &Call, mut wanted: Box<ToPrint>) -> Result<PrintedDocument, Problem> {
    if wanted.printout.e_invoice.is_some() {
        let keep = call.run(move |services, principal| {
            documents::keep_attached_e_invoice(services, principal, &mut wanted)?;
            Ok(wanted)
        });
        wanted = keep.await?;
    }
    let print = call.print(move |services, principal| {
        let file = documents::print_document(services, principal, &wanted.printout)?;
        Ok((wanted, file))
    });
    let (wanted, file) = print.await?;
    call.run(move |services, principal| documents::keep_print(services, principal, &wanted, file)).await
}

pub(crate) async fn get_document_xml(call: Call) -> Reply {
    let document_ref = call.reference(DocumentRef::parse, ResourceKind::Document)?;
    let EInvoiceParams { syntax } = call.query.read()?;
    let written = match call.look_up(move |cx| documents::find_e_invoice(cx, document_ref, syntax)).await? {
        WantedEInvoice::Kept(written) => written,
        WantedEInvoice::ToWrite(wanted) => {
            call.run(move |services, principal| documents::write_e_invoice(services, principal, &wanted)).await?
        }
    };
    Ok(answer_file(&call.request, written.file, XML, &format!("{}.xml", written.number)))
}

/// Returns the file, or 304 if the caller has it.
fn answer_file(request: &HttpRequest, file: RenderedFile, media_type: &'static str, name: &str) -> HttpResponse {
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
    response.insert_header((CONTENT_TYPE, media_type));
    response.insert_header((CONTENT_DISPOSITION, format!("inline; filename=\"{name}\"")));
    response.body(file.bytes)
}

pub(crate) async fn list_documents(call: Call) -> Reply {
    let (wanted, asked) = call.query.documents()?;
    let (part, page) = match asked {
        DocumentListRequest::Table(format, order) => {
            let numbers = preference::wanted(&call.request);
            return call.table_of_documents(wanted, order, format, numbers).await;
        }
        DocumentListRequest::Part(part, page) => (part, page),
    };
    let found = call.look_up(move |cx| match &wanted {
        Some(wanted) => documents::list_documents(cx, wanted, part),
        None => Ok(DocumentList::empty(part.with_sums)),
    });
    Ok(respond(call.query.answer_documents(part, page, &found.await?)))
}
