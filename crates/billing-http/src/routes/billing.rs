//! The billing run.

use billing_application::billing_run;

use super::OnceAnswer;
use crate::body::OptionalBody;
use crate::caller::Caller;
use crate::dto::billing::{BillingReportJson, BillingRunBody};
use crate::dto::declare::read_optional;

pub(crate) async fn run_billing(caller: Caller, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let BillingRunBody { dry_run } = read_optional(body.as_ref())?;
    let report = caller
        .once(body.as_ref())
        .answer::<BillingReportJson, _>(move |services, principal| billing_run::run_billing(services, principal, dry_run));
    report.await
}
