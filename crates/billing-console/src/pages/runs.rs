//! Billing run pages: results, and starting a run.

use crate::{Crumb, href, listings};
use billing_api::console::PageAnswer;
use billing_api::operations::{GetBillingRun, RunBilling};
use serde_json::json;

use super::page_builder::PageBuilder;
use super::reply::to;
use super::session_user::{AnswerOf, SessionUser};
use billing_api::problem::Problem;

/// Renders the page of a run.
pub(super) async fn page(visitor: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let run = visitor.get::<GetBillingRun>(reference).await?;
    let body = crate::billing_run(run.view());
    Ok(PageBuilder { title: "Billing run".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), body })
}

/// Renders the preview of a run.
pub(super) async fn preview(visitor: &SessionUser) -> Result<PageBuilder, Problem> {
    let report = run(visitor, true).await?;
    let body = crate::billing_preview(report.view());
    visitor.shows(&RunBilling::SPEC, "", "");
    Ok(PageBuilder { title: "Run billing".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), body })
}

/// Runs billing and shows the result.
pub(super) async fn carry_out(visitor: &SessionUser) -> Result<PageAnswer, Problem> {
    let report = run(visitor, false).await?;
    let run_ref = report.view().run_ref().to_text();
    Ok(to(&format!("{}?done=run", href(&[listings::BILLING_RUNS.part, &run_ref]))))
}

async fn run(visitor: &SessionUser, dry_run: bool) -> AnswerOf<RunBilling> {
    visitor.post::<RunBilling>(json!({"dry_run": dry_run})).await
}

fn crumbs() -> Vec<Crumb> {
    let listing = &listings::BILLING_RUNS;
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}
