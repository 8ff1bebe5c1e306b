//! State-changing requests, which run at most once per idempotency key.

use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::http::header::HeaderName;
use billing_application::Services;
use billing_application::dry_run::dry_run;
use billing_application::error::UseCaseResult;
use billing_application::idempotency::{IdempotentRequest, TWIN_WAIT, prepare_and_execute_once};
use billing_application::usage::{EventView, IngestOutcome};
use billing_domain::access::Principal;
use billing_domain::idempotency::{IdempotentResponse, StoredResponse};
use billing_json::hash;
use serde::Serialize;
use serde_json::Value;

use crate::caller::{Caller, blocking};
use crate::dto::effects::EffectsJson;
use crate::dto::wire::written;
use crate::problem::Problem;
use crate::state::HttpState;
use crate::stored_response::{self, Success};

/// Marks a replayed response.
pub(crate) const REPLAYED: (HeaderName, &str) = (HeaderName::from_static("idempotency-replayed"), "true");

/// A request that runs at most once.
pub(crate) struct IdempotentCall {
    pub(crate) state: HttpState,
    pub(crate) principal: Principal,
    pub(crate) keyed: Option<IdempotentRequest>,
    pub(crate) rehearses: bool,
}

/// A function that runs a request. Boxed, because a separate future type per operation makes compilation slow.
type Replying =
    Box<dyn FnOnce(&Services<'_>, &Principal, Option<&IdempotentRequest>) -> UseCaseResult<IdempotentResponse> + Send>;

impl Caller {
    /// Creates a call that runs once per key and body.
    pub(crate) fn once(self, body: Option<&Value>) -> IdempotentCall {
        let Self { state, principal, use_case, key, rehearses } = self;
        let keyed = key.map(|key| IdempotentRequest { use_case, key, body: hash(body), wait: TWIN_WAIT, sealed_for: None });
        IdempotentCall { state, principal, keyed, rehearses }
    }

    /// Runs a use case as a dry run and returns its effects on documents.
    pub(crate) async fn rehearse(self, work: DryRunWork) -> Result<HttpResponse, Problem> {
        rehearsed(self.state, self.principal, work).await
    }
}

impl IdempotentCall {
    /// Seals the stored response with a secret, so that only a caller with the same secret can replay it.
    pub(crate) fn sealed_for(self, secret: String) -> Self {
        Self { keyed: self.keyed.map(|keyed| IdempotentRequest { sealed_for: Some(secret), ..keyed }), ..self }
    }

    /// Runs a use case for the caller and renders its result. If the request has a key, a repeat returns the stored
    /// response.
    /// The use case may run again after a conflict with other transactions.
    pub(crate) async fn answer<J, T>(
        self,
        mut work: impl FnMut(&Services<'_>, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<HttpResponse, Problem>
    where
        T: 'static,
        J: for<'t> From<&'t T> + Serialize + 'static,
    {
        if self.rehearses {
            let work = move |services: &Services<'_>, principal: &Principal| work(services, principal).map(drop);
            return rehearsed(self.state, self.principal, Box::new(work)).await;
        }
        self.carried_out(move |services, principal, request| {
            let work = |services: &Services<'_>, principal: &Principal, (): &()| work(services, principal);
            let render = |done: T| Ok(Success::json(written(&J::from(&done))).kept());
            prepare_and_execute_once(services, principal, request, |_, _| Ok(()), work, render)
        })
        .await
    }

    /// Runs the request when no duplicate is in flight.
    pub(crate) async fn carried_out(
        self,
        work: impl FnOnce(&Services<'_>, &Principal, Option<&IdempotentRequest>) -> UseCaseResult<IdempotentResponse> + Send + 'static,
    ) -> Result<HttpResponse, Problem> {
        self.replied(Box::new(work)).await
    }

    async fn replied(self, work: Replying) -> Result<HttpResponse, Problem> {
        let Self { state, principal, mut keyed, rehearses: _ } = self;
        let began = Instant::now();
        let turn = match &keyed {
            Some(keyed) => Some(state.twins().turn(principal.organization(), &keyed.key, TWIN_WAIT).await?),
            None => None,
        };
        if let Some(keyed) = &mut keyed {
            keyed.wait = TWIN_WAIT.saturating_sub(began.elapsed());
        }
        let carried_out = blocking(&state, move |services| {
            // The working thread releases the guard, because the request may have been abandoned.
            let _turn = turn;
            work(services, &principal, keyed.as_ref())
        });
        let IdempotentResponse { answer, is_repeat } = carried_out.await?;
        stored_response::respond(answer, is_repeat.then_some(REPLAYED))
    }
}

/// The work of a dry run. Boxed for the same reason.
pub(crate) type DryRunWork = Box<dyn FnMut(&Services<'_>, &Principal) -> UseCaseResult<()> + Send>;

async fn rehearsed(state: HttpState, principal: Principal, mut work: DryRunWork) -> Result<HttpResponse, Problem> {
    let effects = blocking(&state, move |services| dry_run(services, &principal, &mut |services| work(services, &principal)));
    stored_response::respond(Success::json(written(&EffectsJson::from(&effects.await?))).kept(), None)
}

/// Returns the response to a recorded event, whether it is new or a duplicate.
pub(crate) fn answer_of(taken: &IngestOutcome, answer: fn(&EventView) -> String) -> StoredResponse {
    let (replayed, is_true) = REPLAYED;
    match taken {
        IngestOutcome::Recorded(view) => Success::json(answer(view)).kept(),
        IngestOutcome::Replayed(answer) => Success::json(answer.clone()).with(replayed, is_true).kept(),
    }
}
