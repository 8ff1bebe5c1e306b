//! Handlers for payments, refunds, applications, write-offs, balances and statements.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use billing_application::balances;
use billing_application::error::ResourceKind;
use billing_domain::refs::CustomerRef;
use billing_report::statement_csv;

use crate::call::{Call, Reply};
use billing_api::dto::money::StatementJson;
use billing_api::media_type::PDF;
use billing_api::problem::Problem;
use billing_api::query::lists::{StatementForm, StatementParams};

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
