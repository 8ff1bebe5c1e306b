//! Handlers for payments, refunds, applications, write-offs, balances and statements.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use actix_web::web::{Json, Path};
use billing_application::balances;
use billing_application::documents::{self, SourceRef};
use billing_application::error::ResourceKind;
use billing_domain::page::Page;
use billing_domain::refs::{ApplicationRef, CustomerRef, DocumentRef, PaymentRef};
use billing_report::{ReportFormat, statement_csv};

use super::{Answer, OnceAnswer, in_path};
use crate::body::{Body, OptionalBody};
use crate::caller::Caller;
use crate::dto::declare::{read, read_optional};
use crate::dto::documents::DocumentJson;
use crate::dto::money::{
    ApplyBody, BalanceJson, PaymentBody, PaymentJson, RefundBody, ReversalBody, StatementJson, WriteOffBody,
};
use crate::problem::Problem;
use crate::query::Query;
use crate::query::lists::{PaymentParams, StatementParams};

pub(crate) async fn record_payment(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, ResourceKind::Document)?;
    let PaymentBody { facts, overpayment } = read(&body)?;
    let paid = caller.once(Some(&body)).answer::<DocumentJson, _>(move |services, principal| {
        documents::record_payment(services, principal, document_ref, &facts, overpayment)
    });
    paid.await
}

pub(crate) async fn list_payments_of_document(caller: Caller, path: Path<String>) -> Answer<Vec<PaymentJson>> {
    let document_ref = in_path(DocumentRef::parse, &path, ResourceKind::Document)?;
    let found = caller.run(move |services, principal| documents::payments_of_document(services, principal, document_ref)).await?;
    Ok(Json(found.iter().map(PaymentJson::from).collect()))
}

pub(crate) async fn list_payments(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: PaymentParams = query.read()?;
    let (page, wanted) = (params.page.0.in_direction(params.order.direction()), params.query());
    let found = caller.run(move |services, principal| match &wanted {
        Some(wanted) => documents::list_payments(services, principal, wanted, page),
        None => Ok(Page::empty()),
    });
    Ok(query.answer::<_, PaymentJson>(page, &found.await?))
}

pub(crate) async fn reverse_payment(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let payment_ref = in_path(PaymentRef::parse, &path, ResourceKind::Payment)?;
    let ReversalBody { date, reason } = read_optional(body.as_ref())?;
    let reversed = caller.once(body.as_ref()).answer::<DocumentJson, _>(move |services, principal| {
        documents::reverse_payment(services, principal, payment_ref, date, reason.as_ref())
    });
    reversed.await
}

pub(crate) async fn refund(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let source = source_in(&path)?;
    let RefundBody { facts } = read(&body)?;
    let refunded = caller
        .once(Some(&body))
        .answer::<DocumentJson, _>(move |services, principal| documents::refund(services, principal, source, &facts));
    refunded.await
}

pub(crate) async fn apply(caller: Caller, path: Path<String>, Body(body): Body) -> OnceAnswer {
    let source = source_in(&path)?;
    let ApplyBody { document_ref, amount } = read(&body)?;
    let applied = caller.once(Some(&body)).answer::<DocumentJson, _>(move |services, principal| {
        documents::apply(services, principal, source, document_ref, &amount)
    });
    applied.await
}

pub(crate) async fn unapply(caller: Caller, path: Path<String>) -> OnceAnswer {
    let application_ref = in_path(ApplicationRef::parse, &path, ResourceKind::Application)?;
    let unapplied = caller
        .once(None)
        .answer::<DocumentJson, _>(move |services, principal| documents::unapply(services, principal, application_ref));
    unapplied.await
}

pub(crate) async fn write_off(caller: Caller, path: Path<String>, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let document_ref = in_path(DocumentRef::parse, &path, ResourceKind::Document)?;
    let WriteOffBody { reason, undo } = read_optional(body.as_ref())?;
    let given_up = caller.once(body.as_ref()).answer::<DocumentJson, _>(move |services, principal| {
        documents::write_off(services, principal, document_ref, reason.as_ref(), undo)
    });
    given_up.await
}

pub(crate) async fn get_balance(caller: Caller, path: Path<String>) -> Answer<Vec<BalanceJson>> {
    let reference = in_path(CustomerRef::parse, &path, ResourceKind::Customer)?;
    let found = caller.run(move |services, principal| balances::balance(services, principal, &reference)).await?;
    Ok(Json(found.iter().map(BalanceJson::from).collect()))
}

pub(crate) async fn get_statement(caller: Caller, path: Path<String>, query: Query) -> Result<HttpResponse, Problem> {
    let reference = in_path(CustomerRef::parse, &path, ResourceKind::Customer)?;
    let StatementParams { from, to, format } = query.read()?;
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

/// Parses the reference of a credit or a payment, which have the same format.
fn source_in(path: &str) -> Result<SourceRef, Problem> {
    let document_ref = in_path(DocumentRef::parse, path, ResourceKind::Document)?;
    let payment_ref = in_path(PaymentRef::parse, path, ResourceKind::Payment)?;
    Ok(SourceRef { document_ref, payment_ref })
}
