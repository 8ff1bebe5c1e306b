//! Handlers: each extracts, calls one use case on a blocking thread, and presents.

pub(crate) mod auth;
pub(crate) mod bank_accounts;
pub(crate) mod batches;
pub(crate) mod billing;
pub(crate) mod charges;
pub(crate) mod contracts;
pub(crate) mod customers;
pub(crate) mod documents;
pub(crate) mod entities;
pub(crate) mod exchange_rates;
pub(crate) mod imports;
pub(crate) mod money;
mod once;
pub(crate) mod pricings;
pub(crate) mod reports;
pub(crate) mod search;
pub(crate) mod service;
pub(crate) mod usage;
pub(crate) mod usage_formats;
pub(crate) mod usage_products;

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::web::Json;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, web};
use billing_application::Services;
use billing_application::UseCase;
use billing_application::error::{Thing, UseCaseResult};
use billing_domain::access::Principal;
use billing_domain::idempotency::RequestKey;
use serde_json::Value;

use crate::problem::Problem;
use crate::state::HttpState;

use once::Once;

/// What most handlers answer.
type Answer<T> = Result<Json<T>, Problem>;

/// What handlers answer that are carried out once.
type OnceAnswer = Result<HttpResponse, Problem>;

/// Everything that no route takes.
pub(crate) async fn unknown_route() -> Result<String, Problem> {
    Err(Problem::unknown_route())
}

/// The state of the server that a request has come to.
pub(crate) fn state_of(request: &HttpRequest) -> HttpState {
    let state = request.app_data::<web::Data<HttpState>>().expect("the application registers its state");
    HttpState::clone(state)
}

/// Runs a use case where blocking is allowed; its log lines belong to the request.
pub(crate) async fn blocking<T: Send + 'static>(
    state: &HttpState,
    work: impl FnOnce(&Services) -> UseCaseResult<T> + Send + 'static,
) -> Result<T, Problem> {
    let (state, span) = (state.clone(), tracing::Span::current());
    // The outer error is a panic, which the panic hook has printed.
    match web::block(move || span.in_scope(|| work(state.services()).map_err(Problem::from))).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Problem::internal()),
    }
}

/// Who is asking, as the guard found out.
#[derive(Clone)]
pub(crate) struct Caller {
    state: HttpState,
    principal: Principal,
    use_case: UseCase,
    key: Option<RequestKey>,
}

impl Caller {
    /// A request that changes something, and what it says: the same under the same key is carried out once.
    fn once(self, body: Option<&Value>) -> Once {
        Once::new(self, body)
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
        let Self { state, principal, use_case: _, key: _ } = self;
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
        });
        // Only for operations that need a credential; with the table right it is always there.
        ready(caller.ok_or_else(Problem::internal))
    }
}

/// A reference in a path; one that can't exist is one that doesn't.
fn in_path<R, E>(parse: impl FnOnce(&str) -> Result<R, E>, text: &str, thing: Thing) -> Result<R, Problem> {
    parse(text).map_err(|_| Problem::unknown(thing))
}
