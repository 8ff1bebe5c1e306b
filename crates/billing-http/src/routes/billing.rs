//! Handlers for billing runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use billing_application::billing_run::{self, BillingReport, BillingRunRequest};
use billing_application::carry_out_in_parts;

use crate::call::{Call, Reply};
use billing_api::dto::billing::{BillingReportJson, BillingRunBody};
use billing_api::dto::wire::written;
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
