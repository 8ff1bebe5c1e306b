//! The authenticated caller, and functions that run a use case for the caller.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, web};
use billing_application::error::UseCaseResult;
use billing_application::{Services, UseCase};
use billing_domain::access::Principal;
use billing_domain::idempotency::ScopedIdempotencyKey;

use crate::problem::Problem;
use crate::state::{HttpState, state_of};

/// Runs a use case on a blocking thread. Its log lines belong to the request's span.
pub(crate) async fn blocking<T: Send + 'static>(
    state: &HttpState,
    work: impl FnOnce(&Services) -> UseCaseResult<T> + Send + 'static,
) -> Result<T, Problem> {
    on_a_thread(state.clone(), Box::new(work)).await
}

/// Work for a blocking thread. Boxed, because a separate future type per operation makes compilation slow.
type Work<T> = Box<dyn FnOnce(&Services) -> UseCaseResult<T> + Send>;

async fn on_a_thread<T: Send + 'static>(state: HttpState, work: Work<T>) -> Result<T, Problem> {
    let span = tracing::Span::current();
    // The outer error is a panic, which the panic hook has already logged.
    match web::block(move || span.in_scope(|| work(state.services()).map_err(Problem::from))).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Problem::internal()),
    }
}

/// The caller that the guard identified.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) state: HttpState,
    pub(crate) principal: Principal,
    pub(crate) use_case: UseCase,
    pub(crate) key: Option<ScopedIdempotencyKey>,
    /// Whether the request is a dry run: nothing is stored and the response lists the effects on documents.
    pub(crate) rehearses: bool,
}

impl Caller {
    /// Returns the same caller with dry run enabled.
    pub(crate) fn rehearsing(self) -> Self {
        Self { key: None, rehearses: true, ..self }
    }

    /// Returns whether the request has an `Idempotency-Key`.
    pub(crate) const fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// Runs a use case that may scan all events, like [`run`](Self::run). Concurrency is limited, so that scans leave
    /// connections and threads for usage ingestion.
    pub(crate) async fn scan<T: Send + 'static>(
        self,
        work: impl FnOnce(&Services, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.state.permit_scan().await?;
        self.run(move |services, principal| {
            // The reading thread releases the permit, even if the request was abandoned.
            let _permit = permit;
            work(services, principal)
        })
        .await
    }

    /// Runs a use case for the caller.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(&Services, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let Self { state, principal, .. } = self;
        blocking(&state, move |services| work(services, &principal)).await
    }
}

impl FromRequest for Caller {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let extensions = request.extensions();
        let caller = extensions.get::<Principal>().zip(extensions.get::<UseCase>()).map(|(principal, use_case)| Self {
            state: state_of(request),
            principal: principal.clone(),
            use_case: *use_case,
            key: extensions.get().cloned(),
            rehearses: false,
        });
        // Only operations that require a credential extract a caller, so one is always present if the operation table is
        // correct.
        ready(caller.ok_or_else(Problem::internal))
    }
}
