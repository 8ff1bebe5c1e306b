//! Money in and out: payments, refunds, applications, write-offs, balances, statements.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::web::{Json, Path};
use billing_application::balances;
use billing_application::documents::{self, SourceRef};
use billing_application::error::Thing;
use billing_domain::page::Page;
use billing_domain::refs::{ApplicationRef, CustomerRef, DocumentRef, PaymentRef};
use billing_report::{ReportFormat, statement_csv};

use super::{Answer, Caller, OnceAnswer, in_path};
use crate::body::{Body, OptionalBody};
use crate::dto::documents::DocumentJson;
use crate::dto::money::{
    ApplyBody, BalanceJson, PaymentBody, PaymentJson, RefundBody, ReversalBody, StatementJson, WriteOffBody,
};
use crate::problem::Problem;
use crate::query::Query;

/// Records a payment of an issued invoice or debit.
#[utoipa::path(post, path = "/api/documents/payments/{document_ref}", tag = "documents", request_body = PaymentBody,
    params(("document_ref" = String, Path, description = "The document's reference")),
    responses((status = 200, description = "The document with the payment", body = DocumentJson)))]
pub(crate) async fn record_payment(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let (facts, overpayment) = PaymentBody::read(&body)?;
    let paid = caller.once(Some(&body)).answer::<DocumentJson, _>(move |services, principal| {
        documents::record_payment(services, principal, document_ref, &facts, overpayment)
    });
    paid.await
}

/// Lists the payments and refunds of a document, as they were recorded.
#[utoipa::path(get, path = "/api/documents/payments/{document_ref}", tag = "documents",
    params(("document_ref" = String, Path, description = "The document's reference")),
    responses((status = 200, description = "Its payments and refunds", body = Vec<PaymentJson>)))]
pub(crate) async fn list_payments_of_document(caller: Caller, path: Path<String>) -> Answer<Vec<PaymentJson>> {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let found = caller.run(move |services, principal| documents::payments_of_document(services, principal, document_ref)).await?;
    Ok(Json(found.iter().map(PaymentJson::from).collect()))
}

/// Lists payments and refunds, as they were recorded.
#[utoipa::path(get, path = "/api/documents/payments/filter", tag = "documents",
    params(crate::openapi::PaymentParams, crate::openapi::PageParams),
    responses((status = 200, description = "A page of payments and refunds", body = Vec<PaymentJson>)))]
pub(crate) async fn list_payments(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let (wanted, page) = query.payments()?;
    let found = caller.run(move |services, principal| match &wanted {
        Some(wanted) => documents::list_payments(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, PaymentJson>(page, &found.await?))
}

/// Takes a payment or a refund back: what it settled is due again.
#[utoipa::path(post, path = "/api/documents/payments/reverse/{payment_ref}", tag = "documents", request_body = Option<ReversalBody>,
    params(("payment_ref" = String, Path, description = "The payment's or refund's reference")),
    responses((status = 200, description = "The document it was recorded on", body = DocumentJson)))]
pub(crate) async fn reverse_payment(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let payment_ref = in_path(PaymentRef::parse, &path, Thing::Payment)?;
    let (date, reason) = ReversalBody::read(body.as_ref())?;
    let reversed = caller.once(body.as_ref()).answer::<DocumentJson, _>(move |services, principal| {
        documents::reverse_payment(services, principal, payment_ref, date, reason.as_ref())
    });
    reversed.await
}

/// Pays a credit or a payment out, as far as it is unapplied.
#[utoipa::path(post, path = "/api/documents/refund/{source_ref}", tag = "documents", request_body = RefundBody,
    params(("source_ref" = String, Path, description = "The reference of a credit or of a payment")),
    responses((status = 200, description = "The credit, or the payment's document", body = DocumentJson)))]
pub(crate) async fn refund(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let source = source_in(&path)?;
    let facts = RefundBody::read(&body)?;
    let refunded = caller
        .once(Some(&body))
        .answer::<DocumentJson, _>(move |services, principal| documents::refund(services, principal, source, &facts));
    refunded.await
}

/// Applies an amount of a credit or a payment to a document.
#[utoipa::path(post, path = "/api/documents/apply/{source_ref}", tag = "documents", request_body = ApplyBody,
    params(("source_ref" = String, Path, description = "The reference of a credit or of a payment")),
    responses((status = 200, description = "The document it settles", body = DocumentJson)))]
pub(crate) async fn apply(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let source = source_in(&path)?;
    let (document_ref, amount) = ApplyBody::read(&body)?;
    let applied = caller.once(Some(&body)).answer::<DocumentJson, _>(move |services, principal| {
        documents::apply(services, principal, source, document_ref, &amount)
    });
    applied.await
}

/// Takes an application back.
#[utoipa::path(post, path = "/api/documents/unapply/{application_ref}", tag = "documents",
    params(("application_ref" = String, Path, description = "The application's reference")),
    responses((status = 200, description = "The document it settled", body = DocumentJson)))]
pub(crate) async fn unapply(caller: Caller, path: Path<String>) -> OnceAnswer {
    let application_ref = in_path(ApplicationRef::parse, &path, Thing::Application)?;
    let unapplied = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::unapply(services, principal, application_ref));
    unapplied.await
}

/// Gives up on what is left to pay of a document, or takes that back.
#[utoipa::path(post, path = "/api/documents/write-off/{document_ref}", tag = "documents", request_body = Option<WriteOffBody>,
    params(("document_ref" = String, Path, description = "The document's reference")),
    responses((status = 200, description = "The document", body = DocumentJson)))]
pub(crate) async fn write_off(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, Thing::Document)?;
    let (reason, undo) = WriteOffBody::read(body.as_ref())?;
    let given_up = caller.once(body.as_ref()).answer::<DocumentJson, _>(move |services, principal| {
        documents::write_off(services, principal, document_ref, reason.as_ref(), undo)
    });
    given_up.await
}

/// What a customer owes, by entity and currency.
#[utoipa::path(get, path = "/api/customers/balance/{customer_ref}", tag = "documents",
    params(("customer_ref" = String, Path, description = "The customer's reference")),
    responses((status = 200, description = "A balance for each entity and currency", body = Vec<BalanceJson>)))]
pub(crate) async fn get_balance(caller: Caller, path: Path<String>) -> Answer<Vec<BalanceJson>> {
    let reference = in_path(CustomerRef::parse, &path, Thing::Customer)?;
    let found = caller.run(move |services, principal| balances::balance(services, principal, &reference)).await?;
    Ok(Json(found.iter().map(BalanceJson::from).collect()))
}

/// What changed what a customer owes, by entity and currency.
#[utoipa::path(get, path = "/api/customers/statement/{customer_ref}", tag = "documents",
    params(("customer_ref" = String, Path, description = "The customer's reference"), crate::openapi::StatementParams),
    responses((status = 200, description = "A statement for each entity and currency", content(
        (Vec<StatementJson> = "application/json"), (String = "text/csv")))))]
pub(crate) async fn get_statement(caller: Caller, path: Path<String>, query: Query) -> Result<HttpResponse, Problem> {
    let reference = in_path(CustomerRef::parse, &path, Thing::Customer)?;
    let (from, to, format) = query.statement()?;
    let name = format!("attachment; filename=\"statement-{}.csv\"", reference.as_str());
    let found =
        caller.run(move |services, principal| balances::customer_statement(services, principal, &reference, from, to)).await?;
    match format {
        ReportFormat::Csv => {
            let mut response = HttpResponse::Ok();
            response.insert_header((CONTENT_TYPE, "text/csv; charset=utf-8"));
            response.insert_header((CONTENT_DISPOSITION, name));
            Ok(response.body(statement_csv(&found).map_err(|_| Problem::internal())?))
        }
        ReportFormat::Json | ReportFormat::Xlsx => {
            Ok(HttpResponse::Ok().json(found.iter().map(StatementJson::from).collect::<Vec<_>>()))
        }
    }
}

/// A credit's or a payment's reference: both look alike.
fn source_in(path: &str) -> Result<SourceRef, Problem> {
    let document_ref = in_path(DocumentRef::parse, path, Thing::Document)?;
    let payment_ref = in_path(PaymentRef::parse, path, Thing::Payment)?;
    Ok(SourceRef { document_ref, payment_ref })
}
