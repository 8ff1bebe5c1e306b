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
pub(super) async fn page(user: &SessionUser, reference: &str) -> Result<PageBuilder, Problem> {
    let run = user.get::<GetBillingRun>(reference).await?;
    let body = crate::billing_run(run.view());
    Ok(PageBuilder { title: "Billing run".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), body })
}

/// Renders the preview of a run.
pub(super) async fn preview(user: &SessionUser) -> Result<PageBuilder, Problem> {
    let report = run(user, true).await?;
    let body = crate::billing_preview(report.view());
    user.shows(&RunBilling::SPEC, "", "");
    Ok(PageBuilder { title: "Run billing".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), body })
}

/// Runs billing and shows the result.
pub(super) async fn carry_out(user: &SessionUser) -> Result<PageAnswer, Problem> {
    let report = run(user, false).await?;
    let run_ref = report.view().run_ref().to_text();
    Ok(to(&format!("{}?done=run", href(&[listings::BILLING_RUNS.part, &run_ref]))))
}

async fn run(user: &SessionUser, dry_run: bool) -> AnswerOf<RunBilling> {
    user.post::<RunBilling>(json!({"dry_run": dry_run})).await
}

fn crumbs() -> Vec<Crumb> {
    let listing = &listings::BILLING_RUNS;
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}
