//! Dry runs of operations by their path.

use actix_web::web::Data;
use billing_domain::violation::Violations;

use crate::body::ParsedBody;
use crate::call::{BoxedReply, Call, Reply};
use billing_api::dto::declare;
use billing_api::dto::effects::DryRunBody;
use billing_api::operation::{Flag, OperationSpec};
use billing_api::operations;
use billing_api::problem::Problem;

/// Answers calls of all operations, and so of this handler, too.
pub(crate) struct CallAnswerer {
    /// Answers a call of an operation on a reference with a body.
    pub(crate) answer: fn(&'static OperationSpec, Call, String, Option<ParsedBody>) -> BoxedReply,
}

pub(crate) async fn dry_run(call: Call) -> Reply {
    let read = call.read_value(|sent| {
        let DryRunBody { path, body } = declare::read(sent)?;
        // The body as it was sent, with all digits.
        let body = body.zip(sent.get("body")).map(|(text, body)| ParsedBody::new(body.clone(), text.len()));
        Ok((path, body))
    });
    let (path, body) = read.await?;
    let answerer = call.request.app_data::<Data<CallAnswerer>>().ok_or_else(Problem::internal)?.clone();
    let changing = operations::changing(path.as_str()).filter(|(operation, _)| operation.is(Flag::DryRun));
    let (operation, reference) = changing.ok_or_else(|| {
        let detail = "must be the path of an operation that supports a dry run";
        Problem::from(Violations::one(&["path"], "no_dry_run", detail))
    })?;
    (answerer.answer)(operation, call.into_dry_run(), reference, body).await
}
