//! The billing run.

use billing_application::billing_run;

use super::{Caller, OnceAnswer};
use crate::body::OptionalBody;
use crate::dto::billing::{BillingReportJson, BillingRunBody};

/// Issues every document that is due now; with `dry_run` only says which.
#[utoipa::path(post, path = "/api/billing/run", tag = "documents", request_body(content = Option<BillingRunBody>),
    responses((status = 200, description = "What was issued, put out of force, and what failed", body = BillingReportJson)))]
pub(crate) async fn run_billing(caller: Caller, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let dry_run = BillingRunBody::read(body.as_ref())?;
    let report = caller
        .once(body.as_ref())
        .answer::<BillingReportJson, _>(move |services, principal| billing_run::run_billing(services, principal, dry_run));
    report.await
}
