//! Handlers for billing runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use billing_application::billing_run::{self, BillingReport, BillingRunRequest};
use billing_application::error::ResourceKind;
use billing_application::{carry_out_in_parts, names, run_history};
use billing_domain::audit::AuditedKind;
use billing_domain::page::Page;
use billing_domain::refs::BillingRunRef;

use crate::call::{Call, Reply};
use billing_api::dto::billing::{BillingReportJson, BillingRunBody, BillingRunJson, BillingRunResponse};
use billing_api::dto::wire::written;
use billing_api::query::billing::RunParams;
use billing_api::stored_response::Success;

/// Time reserved at the end of a request for one more contract and the response.
const TIME_TO_ANSWER: Duration = Duration::from_secs(10);

pub(crate) async fn run_billing(call: Call) -> Reply {
    let BillingRunBody { dry_run, trust_clock, after } = call.body().await?;
    let until = call.context.deadline.into_std().checked_sub(TIME_TO_ANSWER);
    call.once(move |services, request| {
        let render = |report: &BillingReport| Success::json(written(&BillingReportJson::from(report))).kept();
        carry_out_in_parts(services, request, render, |transactions| {
            let is_first = Cell::new(true);
            // Bills at least one contract even without time left, so that repeated runs make progress.
            let may_go_on = || is_first.replace(false) || until.is_some_and(|until| Instant::now() < until);
            billing_run::run_billing(transactions, BillingRunRequest { dry_run, trust_clock, after, may_go_on: &may_go_on })
        })
    })
    .await
}

pub(crate) async fn list_billing_runs(call: Call) -> Reply {
    let params: RunParams = call.query.read()?;
    let (filter, by, page) = (params.filter(), params.order.by, params.page.0.in_direction(params.order.direction()));
    call.list_updated::<BillingRunJson, BillingRunResponse>(page, move |cx| {
        let found = run_history::list_billing_runs(cx, &filter, by, page)?;
        let found = Page { total: found.total, items: found.items.into_iter().map(|head| (head, None)).collect() };
        names::name_page(cx, found, |(head, _), names| names.add_actor(head.author))
    })
    .await
}

pub(crate) async fn get_billing_run(call: Call) -> Reply {
    let run_ref = call.reference(BillingRunRef::parse, ResourceKind::BillingRun)?;
    call.read::<BillingRunJson, BillingRunResponse>(move |cx| {
        let run = run_history::get_billing_run(cx, run_ref)?;
        names::name_one(cx, (run.head.clone(), Some(run)), |(head, run), names| {
            names.add_actor(head.author);
            for document in run.iter().flat_map(|run| &run.documents) {
                names.add(AuditedKind::Document, document.document_ref);
            }
            for failure in run.iter().flat_map(|run| &run.failures) {
                names.add(AuditedKind::Contract, failure.contract_ref);
                if let Some(document_ref) = failure.document.and_then(|document| document.document_ref) {
                    names.add(AuditedKind::Document, document_ref);
                }
            }
        })
    })
    .await
}
