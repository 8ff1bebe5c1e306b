//! Billing run pages: results, and starting a run.

use crate::{Crumb, href, listings};
use billing_api::console::PageAnswer;
use billing_api::operations::{GetBillingRun, RunBilling};
use serde_json::{Value, json};

use super::page_builder::PageBuilder;
use super::reply::to;
use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// Renders the page of a run.
pub(super) async fn page(visitor: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let run = visitor.get(&GetBillingRun::SPEC, reference).await?;
    let body = crate::billing_run(&run);
    Ok(PageBuilder { title: "Billing run".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), body })
}

/// Renders the preview of a run.
pub(super) async fn preview(visitor: &SessionUser) -> Result<PageBuilder, Problem> {
    let report = run(visitor, true).await?;
    let body = crate::billing_preview(&report);
    visitor.shows(&RunBilling::SPEC, "", "");
    Ok(PageBuilder { title: "Run billing".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), body })
}

/// Runs billing and shows the result.
pub(super) async fn carry_out(visitor: &SessionUser) -> Result<PageAnswer, Problem> {
    let report = run(visitor, false).await?;
    let run_ref = report["run_ref"].as_str().ok_or_else(Problem::internal)?;
    Ok(to(&format!("{}?done=run", href(&[listings::BILLING_RUNS.part, run_ref]))))
}

async fn run(visitor: &SessionUser, dry_run: bool) -> Result<Value, Problem> {
    visitor.post(&RunBilling::SPEC, json!({"dry_run": dry_run})).await?.json()
}

fn crumbs() -> Vec<Crumb> {
    let listing = &listings::BILLING_RUNS;
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}
