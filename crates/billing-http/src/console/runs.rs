//! Billing runs: what they did, and running billing by hand.

use actix_web::HttpResponse;
use actix_web::web::Path;
use billing_application::UseCase;
use billing_console::{Crumb, href, listings};
use serde_json::{Value, json};

use super::answers::{one, written};
use super::made::Made;
use super::reply::to;
use super::visitor::Visitor;
use crate::body::OptionalBody;
use crate::middleware::Facts;
use crate::problem::Problem;
use crate::routes::billing;

/// The page of a run.
pub(super) async fn page(visitor: &Visitor, reference: &str) -> Result<Made, Problem> {
    let path = Path::from(reference.to_owned());
    let run = one(billing::get_billing_run(visitor.caller(UseCase::GetBillingRun), path)).await?;
    let body = billing_console::billing_run(&run);
    let calls = vec![format!("/api/billing/runs/{reference}")];
    Ok(Made { title: "Billing run".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), calls, body })
}

/// What a run would do now.
pub(super) async fn preview(visitor: &Visitor) -> Result<Made, Problem> {
    visitor.allow(UseCase::RunBilling)?;
    let report = run(visitor, true).await?;
    let body = billing_console::billing_preview(&report);
    let calls = vec!["POST /api/billing/run".to_owned()];
    Ok(Made { title: "Run billing now".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), calls, body })
}

/// Runs billing, and shows what that did.
pub(super) async fn carry_out(visitor: &Visitor) -> Result<HttpResponse, Problem> {
    let report = run(visitor, false).await?;
    let run_ref = report["run_ref"].as_str().ok_or_else(Problem::internal)?;
    Ok(to(&format!("{}?done=run", href(&[listings::BILLING_RUNS.part, run_ref]))))
}

async fn run(visitor: &Visitor, dry_run: bool) -> Result<Value, Problem> {
    let body = OptionalBody(Some(json!({"dry_run": dry_run})));
    let facts = Facts::of(&visitor.request);
    written(billing::run_billing(visitor.caller(UseCase::RunBilling), facts, body).await?).await
}

fn crumbs() -> Vec<Crumb> {
    let listing = &listings::BILLING_RUNS;
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}
