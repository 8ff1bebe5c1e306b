//! Billing run pages: results, and starting a run.

use crate::{Crumb, MonthBefore, href, listings};
use billing_api::console::PageAnswer;
use billing_api::operations::{GetBillingRun, RunBilling, SummarizeDocuments};
use billing_domain::calendar::{first_of_month, minus_days, plus_months};
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
    let body = crate::billing_preview(report.view(), &month_before(user).await);
    user.shows(&RunBilling::SPEC, "", "");
    Ok(PageBuilder { title: "Run billing".to_owned(), part: listings::BILLING_RUNS.part, crumbs: crumbs(), body })
}

/// Runs billing and shows the result.
pub(super) async fn carry_out(user: &SessionUser) -> Result<PageAnswer, Problem> {
    let report = run(user, false).await?;
    let run_ref = report.view().run_ref().to_text();
    Ok(to(&format!("{}?done=run", href(&[listings::BILLING_RUNS.part, &run_ref]))))
}

/// Loads the documents of the month before. Without them, the preview shows the amounts of the run alone.
async fn month_before(user: &SessionUser) -> MonthBefore {
    let this_month = first_of_month(user.zone.service_date(user.now()));
    let (first, last) = (plus_months(this_month, -1), minus_days(this_month, 1));
    let days = crate::query(&[("issued_from", &first.to_string()), ("issued_to", &last.to_string())]);
    let billed = user.get_with::<SummarizeDocuments>("", &days).await.unwrap_or_default();
    MonthBefore { name: first.format("%B %Y").to_string(), billed }
}

async fn run(user: &SessionUser, dry_run: bool) -> AnswerOf<RunBilling> {
    user.post::<RunBilling>(json!({"dry_run": dry_run})).await
}

fn crumbs() -> Vec<Crumb> {
    let listing = &listings::BILLING_RUNS;
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}
