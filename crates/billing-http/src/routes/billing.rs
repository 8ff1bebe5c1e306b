//! Handlers for billing runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::web::{Json, Path};
use billing_application::billing_run::{self, BillingRunRequest};
use billing_application::error::ResourceKind;
use billing_application::run_history;
use billing_domain::page::Page;
use billing_domain::refs::BillingRunRef;

use super::{Answer, OnceAnswer, in_path};
use crate::body::OptionalBody;
use crate::caller::Caller;
use crate::dto::billing::{BillingReportJson, BillingRunBody, BillingRunJson};
use crate::dto::declare::read_optional;
use crate::middleware::RequestContext;
use crate::problem::Problem;
use crate::query::Query;
use crate::query::billing::RunParams;

/// Time reserved at the end of a request for one more contract and the response.
const TIME_TO_ANSWER: Duration = Duration::from_secs(10);

pub(crate) async fn run_billing(caller: Caller, facts: RequestContext, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let BillingRunBody { dry_run, after } = read_optional(body.as_ref())?;
    let until = facts.deadline.into_std().checked_sub(TIME_TO_ANSWER);
    let report = caller.once(body.as_ref()).answer::<BillingReportJson, _>(move |services, principal| {
        let is_first = Cell::new(true);
        // Bills at least one contract even without time left, so that repeated runs make progress.
        let may_go_on = || is_first.replace(false) || until.is_some_and(|until| Instant::now() < until);
        billing_run::run_billing(services, principal, BillingRunRequest { dry_run, after, may_go_on: &may_go_on })
    });
    report.await
}

pub(crate) async fn list_billing_runs(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let params: RunParams = query.read()?;
    let (filter, page) = (params.filter(), params.page.0);
    let found = caller.run(move |services, principal| run_history::list_billing_runs(services, principal, &filter, page)).await?;
    let told = Page { total: found.total, items: found.items.into_iter().map(|head| (head, None)).collect() };
    Ok(query.answer::<_, BillingRunJson>(page, &told))
}

pub(crate) async fn get_billing_run(caller: Caller, path: Path<String>) -> Answer<BillingRunJson> {
    let run_ref = in_path(BillingRunRef::parse, &path, ResourceKind::BillingRun)?;
    let run = caller.run(move |services, principal| run_history::get_billing_run(services, principal, run_ref)).await?;
    Ok(Json(BillingRunJson::from(&(run.head.clone(), Some(run)))))
}
