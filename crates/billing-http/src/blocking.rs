//! Blocking work of async handlers.

use actix_web::web;
use billing_application::Services;
use billing_application::error::UseCaseResult;

use billing_api::problem::Problem;

/// Runs work on a blocking thread. Its log lines belong to the request's span.
pub(crate) async fn blocking<T: Send + 'static>(
    services: &Services,
    work: impl FnOnce(&Services) -> UseCaseResult<T> + Send + 'static,
) -> Result<T, Problem> {
    on_a_thread(services.clone(), Box::new(work)).await
}

/// Work for a blocking thread. Boxed, because a separate future type per operation makes compilation slow.
type Work<T> = Box<dyn FnOnce(&Services) -> UseCaseResult<T> + Send>;

async fn on_a_thread<T: Send + 'static>(services: Services, work: Work<T>) -> Result<T, Problem> {
    let span = tracing::Span::current();
    // The outer error is a panic, which the panic hook has already logged.
    match web::block(move || span.in_scope(|| work(&services).map_err(Problem::from))).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Problem::internal()),
    }
}
