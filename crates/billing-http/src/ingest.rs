//! Requests that the usage writer executes in groups. For a request with a single event, the writer also looks up the
//! bearer token's key.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse};
use billing_application::access::authenticate;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::idempotency::{IdempotentRequest, TWIN_WAIT};
use billing_application::usage::{
    BatchOutcome, ChangeOutcome, EventChange, EventView, Execution, IdempotentWork, IngestOutcome, NewUsageEvent, QueuedBatch,
    QueuedChange, QueuedEvent, QueuedRequest, QueuedTransaction, ReplyCallback, Requester, Work,
};
use billing_application::{Services, UseCase, allow};
use billing_domain::access::{Principal, RequestId, TokenClaims};
use billing_domain::idempotency::{self, ScopedIdempotencyKey, StoredResponse};
use billing_domain::refs::{EventRef, OrganizationId};
use billing_json::hash;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::caller::{Caller, blocking};
use crate::dto::events::event_answer;
use crate::idempotent_call::{IdempotentCall, REPLAYED};
use crate::in_flight::InFlightGuard;
use crate::middleware::RequestContext;
use crate::problem::Problem;
use crate::refused::is_refusal;
use crate::state::{HttpState, state_of};
use crate::stored_response;

/// Time between two checks whether a duplicate on another server is done.
const TWIN_PAUSE: Duration = Duration::from_millis(50);

/// A bearer token whose key is not looked up yet, and whether the lookup has happened since.
#[derive(Clone)]
pub(crate) struct DeferredTokenCheck {
    claims: TokenClaims,
    use_case: UseCase,
    seen: Arc<TokenCheckState>,
}

/// State of a request whose token is not looked up yet.
#[derive(Default)]
struct TokenCheckState {
    is_checked: AtomicBool,
    /// The request's event, if it was rejected before the lookup.
    refused: Mutex<Option<Box<(Value, Problem)>>>,
}

impl DeferredTokenCheck {
    pub(crate) fn new(claims: TokenClaims, use_case: UseCase) -> Self {
        Self { claims, use_case, seen: Arc::default() }
    }

    /// Returns whether the key was looked up.
    pub(crate) fn is_checked(&self) -> bool {
        self.seen.is_checked.load(Ordering::Relaxed)
    }

    /// Looks up the key and checks its permission. Counts an event that was rejected before the lookup.
    pub(crate) async fn check(&self, state: &HttpState, request_id: Option<RequestId>) -> Result<Principal, Problem> {
        let Self { claims, use_case, .. } = self.clone();
        let checked = blocking(state, move |services| {
            let principal = authenticate(services, &claims)?;
            allow(&principal, use_case)?;
            Ok(principal)
        });
        let principal = checked.await?;
        self.seen.is_checked.store(true, Ordering::Relaxed);
        let refused = self.seen.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((event, problem)) = refused.map(|refused| *refused) {
            state.count_refused(principal.organization(), &event, &problem, request_id);
        }
        Ok(principal)
    }
}

/// The caller, or a token that is not looked up yet.
#[derive(Clone)]
enum RequestIdentity {
    Known(Principal),
    Unchecked(DeferredTokenCheck),
}

/// Two renderers: the stored response of an event with a key, and the response to its request.
type Answers = (fn(&EventView) -> String, fn(&IngestOutcome) -> StoredResponse);

/// A request that records or changes an event.
pub(crate) struct IngestRequest {
    state: HttpState,
    who: RequestIdentity,
    use_case: UseCase,
    facts: RequestContext,
    pub(crate) key: Option<ScopedIdempotencyKey>,
}

/// The result of a request, for the waiting handler.
type IngestResult<T> = UseCaseResult<Execution<T>>;

impl IngestRequest {
    /// Creates the request of an authenticated caller.
    pub(crate) fn of(caller: Caller, facts: RequestContext) -> Self {
        let Caller { state, principal, use_case, key, rehearses: _ } = caller;
        Self { state, who: RequestIdentity::Known(principal), use_case, facts, key }
    }

    /// Submits an event to the writer and waits until it is durable.
    ///
    /// # Errors
    /// Returns the refusal, mapped by `told`. Returns `overloaded` if the queue is full; nothing is done then.
    pub(crate) async fn report(
        &self,
        event: NewUsageEvent,
        answer: fn(&EventView) -> String,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<IngestOutcome, Problem> {
        let work = |reply| Work::Event(Box::new(QueuedEvent { event, answer, keyed: None, reply }));
        match self.hand_over(work, None).await?.map_err(told)? {
            Execution::Executed(taken) => Ok(taken),
            Execution::Replayed(_) => Err(Problem::internal()),
        }
    }

    /// Submits an event like [`report`](Self::report), with the request's idempotency key. The fingerprint is the request
    /// body.
    pub(crate) async fn report_once(
        &self,
        event: NewUsageEvent,
        (answer, render): Answers,
        said: &Value,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<HttpResponse, Problem> {
        let work = |keyed, reply| Work::Event(Box::new(QueuedEvent { event: event.clone(), answer, keyed, reply }));
        self.once(said, render, &work, told).await
    }

    /// Submits a change of an event to the writer and waits until it is durable. The change runs once if the request has
    /// a key.
    ///
    /// # Errors
    /// Returns the refusal, mapped by `told`. Returns `overloaded` if the queue is full; nothing is done then.
    pub(crate) async fn change(
        self,
        (event_ref, change): (EventRef, EventChange),
        render: fn(&ChangeOutcome) -> StoredResponse,
        said: &Value,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<HttpResponse, Problem> {
        let work = |keyed, reply| Work::Change(QueuedChange { event_ref, change: change.clone(), keyed, reply });
        self.once(said, render, &work, told).await
    }

    /// Counts a rejected event. If the sender is not looked up yet, defers the count until the lookup.
    pub(crate) fn refused(&self, event: &Value, problem: &Problem) {
        match &self.who {
            RequestIdentity::Unchecked(unchecked) if !unchecked.is_checked() => {
                if is_refusal(problem) {
                    let refused = Some(Box::new((event.clone(), problem.clone())));
                    *unchecked.seen.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
                }
            }
            RequestIdentity::Known(_) | RequestIdentity::Unchecked(_) => {
                self.state.count_refused(self.organization(), event, problem, self.facts.id());
            }
        }
    }

    /// Returns the idempotent request with its body's hash, or `None` without a key.
    pub(crate) fn keyed(&self, said: &Value) -> Option<IdempotentRequest> {
        let key = self.key.clone()?;
        // Waiting for duplicates happens in this module, because the writer must not block.
        Some(IdempotentRequest { use_case: self.use_case, key, body: hash(Some(said)), wait: Duration::ZERO, sealed_for: None })
    }

    async fn once<T: Send + 'static>(
        &self,
        said: &Value,
        render: fn(&T) -> StoredResponse,
        work: &dyn Fn(Option<IdempotentWork<T>>, ReplyCallback<Execution<T>>) -> Work,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<HttpResponse, Problem> {
        let carried = match self.keyed(said) {
            None => self.hand_over(|reply| work(None, reply), None).await?,
            Some(request) => {
                let twins = DuplicateWait::wait(&self.state, self.organization(), &request.key).await?;
                loop {
                    let keyed = Some(IdempotentWork { request: request.clone(), render });
                    let told = self.hand_over(|reply| work(keyed, reply), Some(twins.turn())).await?;
                    if !twins.is_to_wait(&told).await {
                        break told;
                    }
                }
            }
        };
        match carried.map_err(told)? {
            Execution::Executed(done) => stored_response::respond(render(&done), None),
            Execution::Replayed(answer) => stored_response::respond(answer, Some(REPLAYED)),
        }
    }

    const fn organization(&self) -> OrganizationId {
        match &self.who {
            RequestIdentity::Known(principal) => principal.organization(),
            RequestIdentity::Unchecked(unchecked) => unchecked.claims.organization,
        }
    }

    /// Submits work to the writer and waits for the outcome. The writer holds the in-flight guard until then.
    async fn hand_over<T: Send + 'static>(
        &self,
        work: impl FnOnce(ReplyCallback<Execution<T>>) -> Work,
        turn: Option<Arc<InFlightGuard>>,
    ) -> Result<IngestResult<T>, Problem> {
        let Self { state, who, facts, .. } = self;
        let reporter = match who {
            RequestIdentity::Known(principal) => Requester::Known(principal.clone()),
            RequestIdentity::Unchecked(unchecked) => Requester::Bearer(unchecked.claims.clone()),
        };
        let (reply, replied) = oneshot::channel();
        let reply = Box::new(move |principal, outcome| {
            let _turn = turn;
            // The receiver is dropped when the request was abandoned.
            drop(reply.send((principal, outcome)));
        });
        let (principal, outcome) = wait(state, facts, reporter, work(reply), replied).await?;
        if let RequestIdentity::Unchecked(unchecked) = who {
            unchecked.seen.is_checked.store(true, Ordering::Relaxed);
        }
        if let Some(principal) = principal {
            facts.is_by(&principal);
        }
        Ok(outcome)
    }
}

/// Submits work to the writer and waits for its reply.
async fn wait<T>(
    state: &HttpState,
    facts: &RequestContext,
    reporter: Requester,
    work: Work,
    replied: oneshot::Receiver<T>,
) -> Result<T, Problem> {
    let waiting = QueuedRequest { reporter, until: facts.deadline.into_std(), work };
    state.writer().submit(waiting).map_err(|_| Problem::overloaded())?;
    // The writer dropped the work: either its deadline passed, or the work panicked and the panic hook logged the cause.
    let is_late = || tokio::time::Instant::now() >= facts.deadline;
    replied.await.map_err(|_| if is_late() { Problem::timed_out() } else { Problem::internal() })
}

/// Waits for duplicates of a request, on this and on other servers.
struct DuplicateWait {
    turn: Arc<InFlightGuard>,
    until: Instant,
}

impl DuplicateWait {
    /// Waits until no duplicate is in flight on this server.
    async fn wait(state: &HttpState, organization: OrganizationId, key: &ScopedIdempotencyKey) -> Result<Self, Problem> {
        let until = Instant::now() + TWIN_WAIT;
        Ok(Self { turn: Arc::new(state.twins().turn(organization, key, TWIN_WAIT).await?), until })
    }

    fn turn(&self) -> Arc<InFlightGuard> {
        Arc::clone(&self.turn)
    }

    /// Returns whether a duplicate runs on another server and the wait limit is not reached. Pauses before it returns
    /// true.
    async fn is_to_wait<T>(&self, outcome: &UseCaseResult<T>) -> bool {
        let is_under_way = matches!(outcome, Err(UseCaseError::RequestInProgress)) && Instant::now() < self.until;
        if is_under_way {
            tokio::time::sleep(TWIN_PAUSE).await;
        }
        is_under_way
    }
}

impl IdempotentCall {
    /// Submits work that needs a transaction of its own. The caller states its size as a number of events and an
    /// approximate number of bytes.
    pub(crate) async fn in_turn(
        self,
        facts: &RequestContext,
        (events, bytes): (usize, usize),
        work: impl Fn(&Services<'_>, &Principal, Option<&IdempotentRequest>) -> UseCaseResult<idempotency::IdempotentResponse>
        + Send
        + Sync
        + 'static,
    ) -> Result<HttpResponse, Problem> {
        let Self { state, principal, keyed, .. } = self;
        let keyed = keyed.map(|keyed| IdempotentRequest { wait: Duration::ZERO, ..keyed });
        let twins = match &keyed {
            Some(keyed) => Some(DuplicateWait::wait(&state, principal.organization(), &keyed.key).await?),
            None => None,
        };
        let work = Arc::new(work);
        loop {
            let (reply, replied) = oneshot::channel();
            let (work, turn, span) = (Arc::clone(&work), twins.as_ref().map(DuplicateWait::turn), tracing::Span::current());
            let (by, keyed, reporter) = (principal.clone(), keyed.clone(), Requester::Known(principal.clone()));
            let work = Box::new(move |services: &Services<'_>| {
                let _turn = turn;
                // The receiver is dropped when the request was abandoned.
                drop(reply.send(span.in_scope(|| work(services, &by, keyed.as_ref()))));
            });
            let work = Work::Whole(QueuedTransaction { events, bytes, work });
            let outcome = wait(&state, facts, reporter, work, replied).await?;
            if let Some(twins) = &twins
                && twins.is_to_wait(&outcome).await
            {
                continue;
            }
            let idempotency::IdempotentResponse { answer, is_repeat } = outcome?;
            return stored_response::respond(answer, is_repeat.then_some(REPLAYED));
        }
    }
}

/// Submits a caller's events. The writer splits them into several transactions to interleave other requests. If `goes_on`
/// is set, the batch continues an earlier one and is not rejected as overload.
pub(crate) async fn take_batch(
    (state, principal): (&HttpState, Principal),
    facts: &RequestContext,
    events: Vec<NewUsageEvent>,
    goes_on: bool,
) -> Result<BatchOutcome, Problem> {
    if events.is_empty() {
        return Ok(BatchOutcome::default());
    }
    let (reply, replied) = oneshot::channel();
    // The receiver is dropped when the request was abandoned.
    let reply = Box::new(move |_, outcome| drop(reply.send(outcome)));
    let work = Work::Batch(QueuedBatch { events, answer: event_answer, goes_on, reply });
    Ok(wait(state, facts, Requester::Known(principal), work, replied).await??)
}

impl FromRequest for IngestRequest {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let facts = RequestContext::of(request);
        let unchecked = request.extensions().get::<DeferredTokenCheck>().cloned();
        let Some(unchecked) = unchecked else {
            return ready(Caller::from_request(request, payload).into_inner().map(|caller| Self::of(caller, facts)));
        };
        ready(Ok(Self {
            state: state_of(request),
            use_case: unchecked.use_case,
            who: RequestIdentity::Unchecked(unchecked),
            facts,
            key: request.extensions().get().cloned(),
        }))
    }
}
