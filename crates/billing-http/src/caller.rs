//! Who is asking, once the guard has let them in, and how their use case is run.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, web};
use billing_application::error::UseCaseResult;
use billing_application::{Services, UseCase};
use billing_domain::access::Principal;
use billing_domain::idempotency::ScopedIdempotencyKey;

use crate::problem::Problem;
use crate::state::{HttpState, state_of};

/// Runs a use case where blocking is allowed; its log lines belong to the request.
pub(crate) async fn blocking<T: Send + 'static>(
    state: &HttpState,
    work: impl FnOnce(&Services) -> UseCaseResult<T> + Send + 'static,
) -> Result<T, Problem> {
    on_a_thread(state.clone(), Box::new(work)).await
}

/// What is done where blocking is allowed. In a box: else each operation has futures of its own, which a compiler works on for long.
type Work<T> = Box<dyn FnOnce(&Services) -> UseCaseResult<T> + Send>;

async fn on_a_thread<T: Send + 'static>(state: HttpState, work: Work<T>) -> Result<T, Problem> {
    let span = tracing::Span::current();
    // The outer error is a panic, which the panic hook has printed.
    match web::block(move || span.in_scope(|| work(state.services()).map_err(Problem::from))).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Problem::internal()),
    }
}

/// Who is asking, as the guard found out.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) state: HttpState,
    pub(crate) principal: Principal,
    pub(crate) use_case: UseCase,
    pub(crate) key: Option<ScopedIdempotencyKey>,
    /// Whether nothing is to be stored: what a change would do to documents is answered.
    pub(crate) rehearses: bool,
}

impl Caller {
    /// The same caller, who only wants to see what a change would do to documents.
    pub(crate) fn rehearsing(self) -> Self {
        Self { key: None, rehearses: true, ..self }
    }

    /// Whether the request has an Idempotency-Key.
    pub(crate) const fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// As [`run`](Self::run), for what may read every event there is: few of them at a time, so that they leave connections
    /// and threads to the reporting of usage.
    pub(crate) async fn scan<T: Send + 'static>(
        self,
        work: impl FnOnce(&Services, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.state.permit_scan().await?;
        self.run(move |services, principal| {
            // Given back by the thread that read, whether anybody waits for the answer or not.
            let _permit = permit;
            work(services, principal)
        })
        .await
    }

    /// Runs a use case on the caller's behalf.
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
        // Only for operations that need a credential; with the table right it is always there.
        ready(caller.ok_or_else(Problem::internal))
    }
}
