//! Handlers for payments, refunds, applications, write-offs, balances and statements.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use billing_application::balances;
use billing_application::documents::{self, SourceRef};
use billing_application::error::ResourceKind;
use billing_domain::page::Page;
use billing_domain::refs::{ApplicationRef, CustomerRef, DocumentRef, PaymentRef};
use billing_report::statement_csv;

use crate::call::{Call, Reply};
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::money::{
    ApplyBody, BalanceJson, CustomerDueJson, PaymentBody, PaymentJson, RefundBody, ReversalBody, StatementJson, WriteOffBody,
};
use billing_api::media_type::PDF;
use billing_api::problem::Problem;
use billing_api::query::lists::{AmountsDueParams, PaymentParams, StatementForm, StatementParams};

pub(crate) async fn record_payment(call: Call) -> Reply {
    let document_ref = call.reference(DocumentRef::parse, ResourceKind::Document)?;
    let PaymentBody { facts, overpayment } = call.body().await?;
    call.write::<DocumentJson, _>(move |cx| documents::record_payment(cx, document_ref, &facts, overpayment)).await
}

pub(crate) async fn list_payments_of_document(call: Call) -> Reply {
    let document_ref = call.reference(DocumentRef::parse, ResourceKind::Document)?;
    call.read_all::<PaymentJson, _>(move |cx| documents::payments_of_document(cx, document_ref)).await
}

pub(crate) async fn list_payments(call: Call) -> Reply {
    let params: PaymentParams = call.query.read()?;
    let (page, wanted) = (params.page.0.in_direction(params.order.direction()), params.query());
    call.list_updated::<PaymentJson, _>(page, move |cx| match &wanted {
        Some(wanted) => documents::list_payments(cx, wanted, page),
        None => Ok(Page::empty()),
    })
    .await
}

pub(crate) async fn reverse_payment(call: Call) -> Reply {
    let payment_ref = call.reference(PaymentRef::parse, ResourceKind::Payment)?;
    let ReversalBody { date, reason } = call.body().await?;
    call.write::<DocumentJson, _>(move |cx| documents::reverse_payment(cx, payment_ref, date, reason.as_ref())).await
}

pub(crate) async fn refund(call: Call) -> Reply {
    let source = source_in(&call)?;
    let RefundBody { facts } = call.body().await?;
    call.write::<DocumentJson, _>(move |cx| documents::refund(cx, source, &facts)).await
}

pub(crate) async fn apply(call: Call) -> Reply {
    let source = source_in(&call)?;
    let ApplyBody { document_ref, amount } = call.body().await?;
    call.write::<DocumentJson, _>(move |cx| documents::apply(cx, source, document_ref, &amount)).await
}

pub(crate) async fn unapply(call: Call) -> Reply {
    let application_ref = call.reference(ApplicationRef::parse, ResourceKind::Application)?;
    call.write::<DocumentJson, _>(move |cx| documents::unapply(cx, application_ref)).await
}

pub(crate) async fn write_off(call: Call) -> Reply {
    let document_ref = call.reference(DocumentRef::parse, ResourceKind::Document)?;
    let WriteOffBody { reason, undo } = call.body().await?;
    call.write::<DocumentJson, _>(move |cx| documents::write_off(cx, document_ref, reason.as_ref(), undo)).await
}

pub(crate) async fn get_balance(call: Call) -> Reply {
    let reference = call.reference(CustomerRef::parse, ResourceKind::Customer)?;
    call.read_all::<BalanceJson, _>(move |cx| balances::balance(cx, &reference)).await
}

pub(crate) async fn list_amounts_due(call: Call) -> Reply {
    let AmountsDueParams { customer_ref } = call.query.read()?;
    call.read_all::<CustomerDueJson, _>(move |cx| balances::amounts_due(cx, &customer_ref)).await
}

pub(crate) async fn get_statement(call: Call) -> Reply {
    let reference = call.reference(CustomerRef::parse, ResourceKind::Customer)?;
    let StatementParams { from, to, format } = call.query.read()?;
    let named = |extension: &str| format!("filename=\"statement-{}.{extension}\"", reference.as_str());
    let (table, file) = (format!("attachment; {}", named("csv")), format!("inline; {}", named("pdf")));
    if format == StatementForm::Pdf {
        let statement = call.look_up(move |cx| balances::statement_printout(cx, &reference, from, to)).await?;
        let printed = call.print(move |services, principal| balances::print_statement(services, principal, &statement)).await?;
        let mut response = HttpResponse::Ok();
        response.insert_header((CONTENT_TYPE, PDF));
        response.insert_header((CONTENT_DISPOSITION, file));
        return Ok(response.body(printed.bytes));
    }
    let found = call.look_up(move |cx| balances::customer_statement(cx, &reference, from, to)).await?;
    if format == StatementForm::Csv {
        let mut response = HttpResponse::Ok();
        response.insert_header((CONTENT_TYPE, "text/csv; charset=utf-8"));
        response.insert_header((CONTENT_DISPOSITION, table));
        return Ok(response.body(statement_csv(&found).map_err(|_| Problem::internal())?));
    }
    Ok(HttpResponse::Ok().json(found.iter().map(StatementJson::from).collect::<Vec<_>>()))
}

/// Parses the reference of a credit or a payment, which have the same format.
fn source_in(call: &Call) -> Result<SourceRef, Problem> {
    let document_ref = call.reference(DocumentRef::parse, ResourceKind::Document)?;
    let payment_ref = call.reference(PaymentRef::parse, ResourceKind::Payment)?;
    Ok(SourceRef { document_ref, payment_ref })
}
