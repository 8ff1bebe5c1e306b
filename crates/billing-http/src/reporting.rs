//! Requests that bring one event: they wait for the writer of usage, which also looks up whether their token still works.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use billing_application::access::authenticate;
use billing_application::error::UseCaseError;
use billing_application::usage::{EventView, NewUsageEvent, Reporter, TakenUsage, WaitingEvent};
use billing_application::{UseCase, allow};
use billing_domain::access::{Principal, TokenClaims};
use billing_domain::idempotency::RequestKey;
use tokio::sync::oneshot;

use crate::caller::{Caller, blocking};
use crate::middleware::Facts;
use crate::problem::Problem;
use crate::state::{HttpState, state_of};

/// A bearer token whose key isn't looked up yet, and whether that was done since.
#[derive(Clone)]
pub(crate) struct Unchecked {
    claims: TokenClaims,
    use_case: UseCase,
    is_checked: Arc<AtomicBool>,
}

impl Unchecked {
    pub(crate) fn new(claims: TokenClaims, use_case: UseCase) -> Self {
        Self { claims, use_case, is_checked: Arc::default() }
    }

    /// Whether the key was looked up.
    pub(crate) fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::Relaxed)
    }

    /// Looks the key up, and whether it may.
    pub(crate) async fn check(&self, state: &HttpState) -> Result<Principal, Problem> {
        let Self { claims, use_case, .. } = self.clone();
        let checked = blocking(state, move |services| {
            let principal = authenticate(services, &claims)?;
            allow(&principal, use_case)?;
            Ok(principal)
        });
        let principal = checked.await?;
        self.is_checked.store(true, Ordering::Relaxed);
        Ok(principal)
    }
}

/// Who brings an event, as far as it is known.
enum Who {
    Known(Principal),
    Unchecked(Unchecked),
}

/// A request that brings an event.
pub(crate) struct Reporting {
    state: HttpState,
    who: Who,
    use_case: UseCase,
    facts: Facts,
    /// The request's key.
    pub(crate) key: Option<RequestKey>,
}

impl Reporting {
    /// Somebody whose credential was checked.
    pub(crate) fn of(caller: Caller, facts: Facts) -> Self {
        let Caller { state, principal, use_case, key } = caller;
        Self { state, who: Who::Known(principal), use_case, facts, key }
    }

    /// The same as for all other requests: the credential is checked now.
    pub(crate) async fn caller(self) -> Result<Caller, Problem> {
        let Self { state, who, use_case, facts, key } = self;
        let principal = match who {
            Who::Known(principal) => principal,
            Who::Unchecked(unchecked) => unchecked.check(&state).await?,
        };
        facts.is_by(principal.actor());
        Ok(Caller { state, principal, use_case, key })
    }

    /// Hands the event to the writer, and waits until it is durable.
    ///
    /// # Errors
    /// What refuses it, as `told`; overloaded, with nothing done.
    pub(crate) async fn report(
        self,
        event: NewUsageEvent,
        answer: fn(&EventView) -> String,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<TakenUsage, Problem> {
        let Self { state, who, facts, .. } = self;
        let (reporter, unchecked) = match who {
            Who::Known(principal) => (Reporter::Known(principal), None),
            Who::Unchecked(unchecked) => (Reporter::Bearer(unchecked.claims.clone()), Some(unchecked)),
        };
        let (reply, replied) = oneshot::channel();
        // Nobody to tell means nobody is waiting for it.
        let reply = Box::new(move |principal, outcome| drop(reply.send((principal, outcome))));
        let until = facts.deadline.into_std();
        let waiting = WaitingEvent { reporter, event, answer, until, reply };
        state.writer().submit(waiting).map_err(|_| Problem::overloaded())?;
        let Ok((principal, outcome)) = replied.await else {
            // Either it was too late for it, or what took it panicked, which the panic hook has printed.
            let is_late = tokio::time::Instant::now() >= facts.deadline;
            return Err(if is_late { Problem::timed_out() } else { Problem::internal() });
        };
        if let Some(unchecked) = unchecked {
            unchecked.is_checked.store(true, Ordering::Relaxed);
        }
        if let Some(principal) = principal {
            facts.is_by(principal.actor());
        }
        outcome.map_err(|error| Problem::from(told(error)))
    }
}

impl FromRequest for Reporting {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let facts = Facts::of(request);
        let unchecked = request.extensions().get::<Unchecked>().cloned();
        let Some(unchecked) = unchecked else {
            return ready(Caller::from_request(request, payload).into_inner().map(|caller| Self::of(caller, facts)));
        };
        ready(Ok(Self {
            state: state_of(request),
            use_case: unchecked.use_case,
            who: Who::Unchecked(unchecked),
            facts,
            key: request.extensions().get().cloned(),
        }))
    }
}
