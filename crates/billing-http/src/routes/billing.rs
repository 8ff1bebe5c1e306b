//! The billing run.

use std::cell::Cell;
use std::time::{Duration, Instant};

use billing_application::billing_run::{self, BillingRun};

use super::OnceAnswer;
use crate::body::OptionalBody;
use crate::caller::Caller;
use crate::dto::billing::{BillingReportJson, BillingRunBody};
use crate::dto::declare::read_optional;
use crate::middleware::Facts;

/// What one contract and the answer may still need at the end of the time that a request has.
const TIME_TO_ANSWER: Duration = Duration::from_secs(10);

pub(crate) async fn run_billing(caller: Caller, facts: Facts, OptionalBody(body): OptionalBody) -> OnceAnswer {
    let BillingRunBody { dry_run, after } = read_optional(body.as_ref())?;
    let until = facts.deadline.into_std().checked_sub(TIME_TO_ANSWER);
    let report = caller.once(body.as_ref()).answer::<BillingReportJson, _>(move |services, principal| {
        let is_first = Cell::new(true);
        // One contract at least, however little time there is: a run always goes on.
        let may_go_on = || is_first.replace(false) || until.is_some_and(|until| Instant::now() < until);
        billing_run::run_billing(services, principal, BillingRun { dry_run, after, may_go_on: &may_go_on })
    });
    report.await
}
