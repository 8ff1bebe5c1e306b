//! The handler of each operation, which the table of the operations names.

use actix_web::{Route, web};
use billing_api::each_operation;
use billing_api::job::open;
use billing_api::operation::{Flag, OperationSpec};
use billing_api::operations::{self, OPERATIONS};
use billing_api::problem::Problem;
use billing_domain::violation::Violations;

use crate::body::ParsedBody;
use crate::call::{BoxedReply, Call, OpenJob, Reply};
use crate::respond::HttpProblem;
use crate::routes::{
    administrators, audit, auth, batches, billing, catalog, documents, dry_run, imports, money, reports, service, usage, webhooks,
};

/// The function that answers requests to an operation.
enum Handler {
    /// Reads requests from HTTP, dry runs and the console to jobs.
    Job(OpenJob),
    /// Answers calls from HTTP, dry runs and the console.
    Call(fn(Call) -> BoxedReply),
    /// Answers HTTP requests only, because it needs more of them or no credential.
    Route(fn() -> Route),
}

macro_rules! handler {
    ($operation:ident) => {
        Handler::Job(open::<operations::$operation>)
    };
    ($operation:ident $module:ident::$handler:ident) => {
        Handler::Call(|call| Box::pin($module::$handler(call)))
    };
    ($operation:ident $module:ident::$handler:ident (route)) => {
        Handler::Route(|| Route::new().to($module::$handler))
    };
}

macro_rules! handlers {
    ($($tag:ident { $(
        $(#[doc = $does:literal])+
        $method:ident $path:literal $needs:ident $(($use_case:ident))? as $operation:ident $id:ident
        $(, at $reference:ty)?
        $(, takes $body:ty $(| $body_or:literal)*)?
        $(, asks $params:ty)?
        $(, runs $kind:ident |$($input:ident),+| $work:expr => $view:ty)?
        $(, answers $answer:ty $(| $answer_or:literal)* : $means:literal)?
        $(, writes $text:literal $(| $text_or:literal)* : $text_means:literal)?
        $(, gone : $gone:literal)?
        $(, conflicts $($conflict:ident)+)?
        $(, refuses $($refusal:ident)+)?
        $(, is $($flag:ident)+)?
        $(, by $module:ident::$handler:ident $(($way:ident))?)?
        ;
    )+ })+) => {
        /// The handlers in the order of [`OPERATIONS`].
        static HANDLERS: &[Handler] = &[$($(handler!($operation $($module::$handler $(($way))?)?)),+),+];
    };
}

each_operation!(handlers);

/// Returns the handler of an operation.
fn handler_of(operation: &OperationSpec) -> Result<&'static Handler, Problem> {
    let mut all = OPERATIONS.iter().zip(HANDLERS);
    all.find(|(known, _)| known.id == operation.id).map(|(_, handler)| handler).ok_or_else(Problem::internal)
}

/// Answers a call of an operation on a reference with a body. The reference is empty if the path has none.
///
/// # Errors
/// Returns the operation's refusal, or a violation if a required body is missing.
pub(crate) async fn answer(operation: &'static OperationSpec, call: Call, reference: String, body: Option<ParsedBody>) -> Reply {
    if body.is_none() && operation.takes.as_ref().is_some_and(|takes| takes.required) {
        return Err(Violations::one(&["body"], "required", "must be the body of the request").into());
    }
    handler_of(operation)?.answer(operation, call.with(operation.use_case()?, reference, body)).await
}

/// Returns the route that answers HTTP requests to an operation.
pub(crate) fn route(operation: &'static OperationSpec) -> Route {
    let takes = operation.takes.as_ref();
    let brings_event = operation.is(Flag::Grouped);
    match handler_of(operation) {
        Ok(Handler::Route(route)) => route(),
        Ok(handler) => web::to(move |call: Call, payload: web::Payload| async move {
            let call = match takes {
                Some(_) if brings_event => call.read_event(payload).await?,
                Some(takes) => call.read_body(payload, takes).await?,
                None => call,
            };
            handler.answer(operation, call).await.map_err(HttpProblem)
        }),
        Err(problem) => web::to(move || std::future::ready(Err::<String, _>(HttpProblem(problem.clone())))),
    }
}

impl Handler {
    /// Answers a call.
    async fn answer(&self, operation: &'static OperationSpec, call: Call) -> Reply {
        match self {
            Self::Job(open) => call.run_job(operation, *open).await,
            Self::Call(handler) => handler(call).await,
            Self::Route(_) => Err(Problem::internal()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_with_a_dry_run_takes_calls() {
        assert_eq!(OPERATIONS.len(), HANDLERS.len());
        for operation in OPERATIONS.iter().filter(|operation| operation.is(Flag::DryRun)) {
            assert!(matches!(handler_of(operation), Ok(Handler::Call(_) | Handler::Job(_))), "{}", operation.id);
        }
    }
}
