//! Dry runs of operations by their path.

use billing_domain::violation::Violations;

use crate::call::{Call, Reply};
use crate::dto::effects::DryRunBody;
use crate::operation::Operation;
use crate::problem::Problem;

pub(crate) async fn dry_run(call: Call) -> Reply {
    let DryRunBody { path, body } = call.body()?;
    // The body as it was sent, with all digits.
    let body = body.and_then(|_| call.value().get("body").cloned());
    let changing = Operation::changing(path.as_str()).filter(|(operation, _)| operation.has_dry_run);
    let (operation, reference) = changing.ok_or_else(|| {
        let detail = "must be the path of an operation that supports a dry run";
        Problem::from(Violations::one(&["path"], "no_dry_run", detail))
    })?;
    call.with(operation, reference, body)?.as_dry_run().answer().await
}
