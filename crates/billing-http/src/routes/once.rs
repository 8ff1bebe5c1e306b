//! Requests that change something: carried out once under their key, where they have one.

use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use billing_application::Services;
use billing_application::error::UseCaseResult;
use billing_application::idempotency::{KeyedRequest, Reply, TWIN_WAIT, once, repeated};
use billing_application::usage::{EventView, NamedCustomer, NewUsageEvent, TakenUsage, record_event};
use billing_domain::access::Principal;
use billing_domain::idempotency::KeptAnswer;
use billing_domain::usage::EventKey;
use serde::Serialize;
use serde_json::Value;

use super::{Caller, blocking};
use crate::body::{JSON, hash, hash_of_event};
use crate::dto::events::event_answer;
use crate::dto::wire::written;
use crate::problem::Problem;
use crate::state::HttpState;

/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
const TRUE: &str = "true";

/// A request that is carried out once.
pub(crate) struct Once {
    state: HttpState,
    principal: Principal,
    keyed: Option<KeyedRequest>,
}

impl Once {
    pub(super) fn new(caller: Caller, body: Option<&Value>) -> Self {
        let Caller { state, principal, use_case, key } = caller;
        let keyed = key.map(|key| KeyedRequest { use_case, key, body: hash(body), wait: TWIN_WAIT, sealed_for: None });
        Self { state, principal, keyed }
    }

    /// The request's key as the key of the one event it brings.
    pub(super) fn sent(&self) -> Option<EventKey> {
        self.keyed.as_ref().map(|keyed| EventKey { key: keyed.key.key.clone(), body: keyed.body })
    }

    /// The answer holds a secret, which only who has this one may read again.
    pub(super) fn sealed_for(self, secret: String) -> Self {
        Self { keyed: self.keyed.map(|keyed| KeyedRequest { sealed_for: Some(secret), ..keyed }), ..self }
    }

    /// Runs a use case on the caller's behalf and presents what it did; under a key, unless that was done before.
    /// The use case may run again after a conflict with others.
    pub(super) async fn answer<J, T>(
        self,
        work: impl FnMut(&Services<'_>, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<HttpResponse, Problem>
    where
        T: 'static,
        J: for<'t> From<&'t T> + Serialize + 'static,
    {
        self.reply(work, rendered::<J, T>).await
    }

    /// As [`answer`](Self::answer), with an answer that is put together in some other way.
    pub(super) async fn reply<T>(
        self,
        mut work: impl FnMut(&Services<'_>, &Principal) -> UseCaseResult<T> + Send + 'static,
        render: impl Fn(&T) -> UseCaseResult<KeptAnswer> + Send + 'static,
    ) -> Result<HttpResponse, Problem> {
        self.prepared(|_, _| Ok(()), move |services, principal, ()| work(services, principal), render).await
    }

    /// As [`reply`](Self::reply), with work that needs something made ready first, outside of its transaction.
    pub(super) async fn prepared<P, T>(
        self,
        prepare: impl FnOnce(&Services<'_>, &Principal) -> UseCaseResult<P> + Send + 'static,
        mut work: impl FnMut(&Services<'_>, &Principal, &P) -> UseCaseResult<T> + Send + 'static,
        render: impl Fn(&T) -> UseCaseResult<KeptAnswer> + Send + 'static,
    ) -> Result<HttpResponse, Problem> {
        let Self { state, principal, keyed } = self;
        let Some(mut keyed) = keyed else {
            let done = blocking(&state, move |services| {
                let prepared = prepare(services, &principal)?;
                render(&work(services, &principal, &prepared)?)
            });
            return respond(Reply { answer: done.await?, is_repeat: false });
        };
        let began = Instant::now();
        let turn = state.twins().turn(principal.organization(), &keyed.key, TWIN_WAIT).await?;
        keyed.wait = TWIN_WAIT.saturating_sub(began.elapsed());
        let carried_out = blocking(&state, move |services| {
            // Given back by the thread that worked: nobody may be waiting for the answer any more.
            let _turn = turn;
            if let Some(reply) = repeated(services, &principal, &keyed)? {
                return Ok(reply);
            }
            let prepared = prepare(services, &principal)?;
            once(services, &principal, &keyed, render, |services, principal| work(services, principal, &prepared))
        });
        respond(carried_out.await?)
    }
}

impl Caller {
    /// Takes a usage event. It keeps its key itself: for ever, and wherever it may come in again. One that names its
    /// customer is a request to be known again, too: the name may be another customer's by then.
    pub(super) async fn take_event(self, event: NewUsageEvent, body: &Value) -> Result<HttpResponse, Problem> {
        let sent = self.key.as_ref().map(|key| EventKey { key: key.key.clone(), body: hash_of_event(body) });
        let event = NewUsageEvent { sent, ..event };
        if self.is_keyed() && matches!(event.customer, NamedCustomer::Name(_)) {
            let take = move |services: &Services<'_>, principal: &Principal| {
                record_event(services, principal, event.clone(), &event_answer)
            };
            return self.once(Some(body)).reply(take, |taken| Ok(answer_of(taken, event_answer))).await;
        }
        let turn = match &self.key {
            Some(key) => Some(self.state.twins().turn(self.principal.organization(), key, TWIN_WAIT).await?),
            None => None,
        };
        let taken = self.run(move |services, principal| {
            let _turn = turn;
            record_event(services, principal, event, &event_answer)
        });
        respond(Reply { answer: answer_of(&taken.await?, event_answer), is_repeat: false })
    }
}

/// The answer to an event that was taken, now or before.
pub(super) fn answer_of(taken: &TakenUsage, answer: fn(&EventView) -> String) -> KeptAnswer {
    match taken {
        TakenUsage::Now(view) => json(answer(view)),
        TakenUsage::Before(answer) => {
            let mut repeated = json(answer.clone());
            repeated.headers.push((REPLAYED.to_string(), TRUE.to_owned()));
            repeated
        }
    }
}

fn json(body: String) -> KeptAnswer {
    content(JSON, body)
}

/// A success with a body of some type.
pub(super) fn content(content_type: &str, body: String) -> KeptAnswer {
    KeptAnswer {
        status: StatusCode::OK.as_u16(),
        headers: vec![(CONTENT_TYPE.to_string(), content_type.to_owned())],
        body: body.into_bytes(),
    }
}

fn rendered<J: for<'t> From<&'t T> + Serialize, T>(done: &T) -> UseCaseResult<KeptAnswer> {
    Ok(json(written(&J::from(done))))
}

fn respond(Reply { answer, is_repeat }: Reply) -> Result<HttpResponse, Problem> {
    let status = StatusCode::from_u16(answer.status).map_err(|_| Problem::internal())?;
    let mut response = HttpResponse::build(status);
    for (name, value) in answer.headers {
        response.insert_header((name, value));
    }
    if is_repeat {
        response.insert_header((REPLAYED, HeaderValue::from_static(TRUE)));
    }
    Ok(response.body(answer.body))
}
