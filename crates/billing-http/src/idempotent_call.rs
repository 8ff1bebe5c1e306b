//! Requests that change something: carried out once under their key, where they have one.

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

/// Says that an answer was given before.
pub(crate) const REPLAYED: (HeaderName, &str) = (HeaderName::from_static("idempotency-replayed"), "true");

/// A request that is carried out once.
pub(crate) struct IdempotentCall {
    pub(crate) state: HttpState,
    pub(crate) principal: Principal,
    pub(crate) keyed: Option<IdempotentRequest>,
    pub(crate) rehearses: bool,
}

/// What carries a request out. In a box: else each operation has futures of its own, which a compiler works on for long.
type Replying =
    Box<dyn FnOnce(&Services<'_>, &Principal, Option<&IdempotentRequest>) -> UseCaseResult<IdempotentResponse> + Send>;

impl Caller {
    /// A request that changes something, and what it says: the same under the same key is carried out once.
    pub(crate) fn once(self, body: Option<&Value>) -> IdempotentCall {
        let Self { state, principal, use_case, key, rehearses } = self;
        let keyed = key.map(|key| IdempotentRequest { use_case, key, body: hash(body), wait: TWIN_WAIT, sealed_for: None });
        IdempotentCall { state, principal, keyed, rehearses }
    }

    /// Answers what a use case would do to documents, and stores nothing.
    pub(crate) async fn rehearse(self, work: DryRunWork) -> Result<HttpResponse, Problem> {
        rehearsed(self.state, self.principal, work).await
    }
}

impl IdempotentCall {
    /// The answer holds a secret, which only who has this one may read again.
    pub(crate) fn sealed_for(self, secret: String) -> Self {
        Self { keyed: self.keyed.map(|keyed| IdempotentRequest { sealed_for: Some(secret), ..keyed }), ..self }
    }

    /// Runs a use case on the caller's behalf and presents what it did; under a key, unless that was done before.
    /// The use case may run again after a conflict with others.
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

    /// Carries the request out when no twin of it is on its way here.
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
            // Given back by the thread that worked: nobody may be waiting for the answer any more.
            let _turn = turn;
            work(services, &principal, keyed.as_ref())
        });
        let IdempotentResponse { answer, is_repeat } = carried_out.await?;
        stored_response::respond(answer, is_repeat.then_some(REPLAYED))
    }
}

/// What is rehearsed. In a box, likewise.
pub(crate) type DryRunWork = Box<dyn FnMut(&Services<'_>, &Principal) -> UseCaseResult<()> + Send>;

async fn rehearsed(state: HttpState, principal: Principal, mut work: DryRunWork) -> Result<HttpResponse, Problem> {
    let effects = blocking(&state, move |services| dry_run(services, &principal, &mut |services| work(services, &principal)));
    stored_response::respond(Success::json(written(&EffectsJson::from(&effects.await?))).kept(), None)
}

/// The answer to an event that was taken, now or before.
pub(crate) fn answer_of(taken: &IngestOutcome, answer: fn(&EventView) -> String) -> StoredResponse {
    let (replayed, is_true) = REPLAYED;
    match taken {
        IngestOutcome::Recorded(view) => Success::json(answer(view)).kept(),
        IngestOutcome::Replayed(answer) => Success::json(answer.clone()).with(replayed, is_true).kept(),
    }
}
