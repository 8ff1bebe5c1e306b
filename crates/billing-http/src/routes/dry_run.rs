//! Dry runs of operations by their path.

use actix_web::web::Data;
use billing_domain::violation::Violations;

use crate::body::ParsedBody;
use crate::call::{Call, Reply};
use crate::dto::declare;
use crate::dto::effects::DryRunBody;
use crate::operation::{Flag, Operation};
use crate::problem::Problem;

/// The table of operations, which contains this handler too.
pub(crate) struct OperationTable {
    /// Returns the state-changing operation on a path, and the reference in the path.
    pub(crate) changing: fn(&str) -> Option<(&'static Operation, String)>,
}

pub(crate) async fn dry_run(call: Call) -> Reply {
    let read = call.read_value(|sent| {
        let DryRunBody { path, body } = declare::read(sent)?;
        // The body as it was sent, with all digits.
        let body = body.zip(sent.get("body")).map(|(text, body)| ParsedBody::new(body.clone(), text.len()));
        Ok((path, body))
    });
    let (path, body) = read.await?;
    let table = call.request.app_data::<Data<OperationTable>>().ok_or_else(Problem::internal)?;
    let changing = (table.changing)(path.as_str()).filter(|(operation, _)| operation.is(Flag::DryRun));
    let (operation, reference) = changing.ok_or_else(|| {
        let detail = "must be the path of an operation that supports a dry run";
        Problem::from(Violations::one(&["path"], "no_dry_run", detail))
    })?;
    operation.answer(call.into_dry_run(), reference, body).await
}
