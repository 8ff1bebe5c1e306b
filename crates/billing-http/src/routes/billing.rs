//! The billing run.

use actix_web::web::Json;
use billing_application::billing_run;

use super::{Answer, Caller};
use crate::body::OptionalBody;
use crate::dto::billing::{BillingReportJson, BillingRunBody};

/// Issues every document that is due now; with `dry_run` only says which.
#[utoipa::path(post, path = "/api/billing/run", tag = "documents", request_body(content = Option<BillingRunBody>),
    responses((status = 200, description = "What was issued, put out of force, and what failed", body = BillingReportJson)))]
pub(crate) async fn run_billing(caller: Caller, OptionalBody(body): OptionalBody) -> Answer<BillingReportJson> {
    let dry_run = BillingRunBody::read(body.as_ref())?;
    let report = caller.run(move |services, principal| billing_run::run_billing(services, principal, dry_run)).await?;
    Ok(Json(BillingReportJson::from(&report)))
}
