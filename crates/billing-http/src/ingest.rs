//! Requests that the usage writer executes in groups. For a request with a single event, the writer also looks up the
//! bearer token's key.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use actix_web::http::header::HeaderName;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::idempotency::{IdempotentRequest, TWIN_WAIT};
use billing_application::usage::{
    self, BatchOutcome, ChangeOutcome, EventAnswer, EventChange, Execution, IdempotentWork, IngestOutcome, NewUsageEvent,
    QueuedBatch, QueuedChange, QueuedEvent, ReplyCallback, Requester, Work,
};
use billing_application::{Request, Services};
use billing_domain::access::Principal;
use billing_domain::event_input::OnConflict;
use billing_domain::idempotency::{IdempotentResponse, ScopedIdempotencyKey, StoredResponse};
use billing_domain::limit::LimitValue;
use billing_domain::refs::{EventRef, OrganizationId};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::call::{Call, REPLAYED, Reply};
use crate::event_excerpt::EventExcerpt;
use crate::identity::Identity;
use crate::in_flight::InFlightGuard;
use crate::refused::is_refusal;
use crate::respond::respond_stored;
use crate::state::HttpState;
use crate::writer_turn::{TransactionSize, run_in_turn, submit};
use billing_api::dto::events::EVENT_ANSWER;
use billing_api::problem::Problem;
use billing_api::stored_response::Success;

/// Time between two checks whether a duplicate on another server is done.
const TWIN_PAUSE: Duration = Duration::from_millis(50);

/// The result of a request, for the waiting handler.
type IngestResult<T> = UseCaseResult<Execution<T>>;

impl Call {
    /// Submits an event to the writer and waits until it is durable.
    ///
    /// # Errors
    /// Returns the refusal, mapped by `told`. Returns `overloaded` if the queue is full; nothing is done then.
    pub(crate) async fn submit_event(
        &self,
        event: NewUsageEvent,
        answer: EventAnswer,
        reported: fn(UseCaseError) -> UseCaseError,
    ) -> Reply {
        let updated = (event.on_conflict == OnConflict::Update).then(|| event.clone());
        let work = |reply| Work::Event(Box::new(QueuedEvent { event, answer, keyed: None, reply }));
        let (principal, outcome) = self.hand_over(work, None).await?;
        let outcome = match (outcome, updated) {
            (Err(UseCaseError::UnsettledConflict(_)), Some(event)) => {
                let principal = principal.map_or_else(|| self.principal().cloned(), Ok)?;
                let delivered = self.deliver(principal, vec![event], answer).await?.map_err(reported)?.pop();
                delivered.ok_or_else(Problem::internal)?.map(Execution::Executed)
            }
            (outcome, _) => outcome,
        };
        match outcome.map_err(reported)? {
            Execution::Executed(taken) => respond_stored(answer_of(&taken, answer), None),
            Execution::Replayed(_) => Err(Problem::internal()),
        }
    }

    /// Submits an event like [`submit_event`](Self::submit_event), with the request's idempotency key: an exact repeat gets the
    /// stored response. If another body was sent under the key, or if the event may be updated, the key of the event decides.
    pub(crate) async fn submit_event_once(
        &self,
        event: NewUsageEvent,
        (answer, render): (EventAnswer, fn(&IngestOutcome) -> StoredResponse),
        reported: fn(UseCaseError) -> UseCaseError,
    ) -> Reply {
        let work = |keyed, reply| Work::Event(Box::new(QueuedEvent { event: event.clone(), answer, keyed, reply }));
        if event.on_conflict == OnConflict::Reject {
            match self.carried(render, &work).await? {
                Err(UseCaseError::IdempotencyKeyReuse) => {}
                carried => return self.answered(render, carried.map_err(reported)?),
            }
        }
        self.submit_event(event, answer, reported).await
    }

    /// Gives recorded events the values of these events, in a transaction that waits for its turn.
    async fn deliver(
        &self,
        principal: Principal,
        events: Vec<NewUsageEvent>,
        answer: EventAnswer,
    ) -> Result<UseCaseResult<Vec<UseCaseResult<IngestOutcome>>>, Problem> {
        let size = (events.len(), events.iter().map(NewUsageEvent::bytes).sum());
        let by = principal.clone();
        let work = Box::new(move |services: &Services| usage::deliver(services, &by, &events, answer));
        run_in_turn(&self.state, &self.context, &principal, size, work).await
    }

    /// Submits a change of an event to the writer and waits until it is durable. The change runs once if the request has
    /// a key.
    ///
    /// # Errors
    /// Returns the refusal, mapped by `told`. Returns `overloaded` if the queue is full; nothing is done then.
    pub(crate) async fn submit_change(
        self,
        (event_ref, change): (EventRef, EventChange),
        render: fn(&ChangeOutcome) -> StoredResponse,
        reported: fn(UseCaseError) -> UseCaseError,
    ) -> Reply {
        let work = |keyed, reply| Work::Change(QueuedChange { event_ref, change: change.clone(), keyed, reply });
        self.written(render, &work, reported).await
    }

    /// Counts a rejected event. If the sender is not looked up yet, defers the count until the lookup.
    pub(crate) fn refused(&self, event: &Value, problem: &Problem) {
        match &self.identity {
            Identity::Unchecked(unchecked) if !unchecked.is_checked() => {
                if is_refusal(problem) {
                    let refused = Some(Box::new((EventExcerpt::of(event), problem.clone())));
                    *unchecked.seen.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
                }
            }
            Identity::Known(_) | Identity::Unchecked(_) => {
                self.state.count_refused(self.organization(), event, problem, self.context.id());
            }
        }
    }

    async fn written<T: Send + 'static>(
        &self,
        render: fn(&T) -> StoredResponse,
        work: &dyn Fn(Option<IdempotentWork<T>>, ReplyCallback<Execution<T>>) -> Work,
        reported: fn(UseCaseError) -> UseCaseError,
    ) -> Reply {
        let carried = self.carried(render, work).await?;
        self.answered(render, carried.map_err(reported)?)
    }

    /// Submits work with the request's idempotency key, and waits for the outcome.
    async fn carried<T: Send + 'static>(
        &self,
        render: fn(&T) -> StoredResponse,
        work: &dyn Fn(Option<IdempotentWork<T>>, ReplyCallback<Execution<T>>) -> Work,
    ) -> Result<IngestResult<T>, Problem> {
        // Waiting for duplicates happens in this module, because the writer must not block.
        let Some(request) = self.keyed_by_body() else {
            return Ok(self.hand_over(|reply| work(None, reply), None).await?.1);
        };
        let request = IdempotentRequest { wait: Duration::ZERO, ..request };
        let twins = DuplicateWait::wait(&self.state, self.organization(), &request.key).await?;
        loop {
            let keyed = Some(IdempotentWork { request: request.clone(), render });
            let (_, outcome) = self.hand_over(|reply| work(keyed, reply), Some(twins.turn())).await?;
            if !twins.is_to_wait(&outcome).await {
                return Ok(outcome);
            }
        }
    }

    fn answered<T>(&self, render: fn(&T) -> StoredResponse, executed: Execution<T>) -> Reply {
        match executed {
            Execution::Executed(done) => respond_stored(render(&done), None),
            Execution::Replayed(answer) => respond_stored(answer, Some(REPLAYED)),
        }
    }

    /// Submits work to the writer and waits for the outcome, and the principal if the writer looked it up. The writer holds the
    /// in-flight guard until then.
    async fn hand_over<T: Send + 'static>(
        &self,
        work: impl FnOnce(ReplyCallback<Execution<T>>) -> Work,
        turn: Option<Arc<InFlightGuard>>,
    ) -> Result<(Option<Principal>, IngestResult<T>), Problem> {
        let Self { state, identity, context, .. } = self;
        let requester = match identity {
            Identity::Known(principal) => Requester::Known(principal.clone()),
            Identity::Unchecked(unchecked) => Requester::Bearer(unchecked.claims.clone()),
        };
        let (reply, replied) = oneshot::channel();
        let reply = Box::new(move |principal, outcome| {
            let _turn = turn;
            // The receiver is dropped when the request was abandoned.
            drop(reply.send((principal, outcome)));
        });
        let (principal, outcome) = submit(state, context, requester, work(reply), replied).await?;
        if let Identity::Unchecked(unchecked) = identity {
            unchecked.seen.is_checked.store(true, Ordering::Relaxed);
        }
        if let Some(principal) = &principal {
            context.is_by(principal);
        }
        Ok((principal, outcome))
    }
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

impl Call {
    /// Submits work that needs a transaction of its own. The caller states its size as a number of events and an approximate
    /// number of bytes.
    pub(crate) async fn in_turn(
        self,
        keyed: Option<IdempotentRequest>,
        size: TransactionSize,
        work: impl Fn(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send + Sync + 'static,
    ) -> Reply {
        let keyed = keyed.map(|keyed| IdempotentRequest { wait: Duration::ZERO, ..keyed });
        let (principal, use_case, state) = (self.principal()?.clone(), self.use_case, &self.state);
        let twins = match &keyed {
            Some(keyed) => Some(DuplicateWait::wait(state, principal.organization(), &keyed.key).await?),
            None => None,
        };
        let work = Arc::new(work);
        loop {
            let (work, turn) = (Arc::clone(&work), twins.as_ref().map(DuplicateWait::turn));
            let (by, keyed) = (principal.clone(), keyed.clone());
            let work = Box::new(move |services: &Services| {
                let _turn = turn;
                work(services, Request { principal: &by, use_case, key: keyed.as_ref() })
            });
            let outcome = run_in_turn(state, &self.context, &principal, size, work).await?;
            if let Some(twins) = &twins
                && twins.is_to_wait(&outcome).await
            {
                continue;
            }
            let IdempotentResponse { answer, is_repeat } = outcome?;
            return respond_stored(answer, is_repeat.then_some(REPLAYED));
        }
    }

    /// Submits events, each of which can be rejected separately. The writer splits them into several transactions to
    /// interleave other requests. If `goes_on` is set, the batch continues an earlier one and is not rejected as overload.
    pub(crate) async fn submit_batch(&self, events: Vec<NewUsageEvent>, goes_on: bool) -> Result<BatchOutcome, Problem> {
        if events.is_empty() {
            return Ok(BatchOutcome::default());
        }
        let updates = events.iter().any(|event| event.on_conflict == OnConflict::Update);
        let sent = if updates { events.clone() } else { Vec::new() };
        let (reply, replied) = oneshot::channel();
        // The receiver is dropped when the request was abandoned.
        let reply = Box::new(move |_, outcome| drop(reply.send(outcome)));
        let work = Work::Batch(QueuedBatch { events, answer: EVENT_ANSWER, goes_on, reply });
        let principal = self.principal()?.clone();
        let requester = Requester::Known(principal.clone());
        let mut outcome: BatchOutcome = submit(&self.state, &self.context, requester, work, replied).await??;
        for conflicts in outcome.conflicts() {
            let events = conflicts.iter().filter_map(|index| sent.get(*index).cloned()).collect();
            outcome.settle(&conflicts, self.deliver(principal.clone(), events, EVENT_ANSWER).await?);
            if outcome.stopped_by.is_some() {
                break;
            }
        }
        Ok(outcome)
    }
}

/// What is left of the customer's limits after an event.
const USAGE_LEFT: HeaderName = HeaderName::from_static("usage-left");

/// Returns what is left of limits as a structured header (RFC 9651): a list of references, each with `left`.
fn usage_left(limits: &[LimitValue]) -> String {
    let member = |number: &LimitValue| Some(format!("\"{}\";left=\"{}\"", number.limit.limit_ref, number.left?));
    limits.iter().filter_map(member).collect::<Vec<_>>().join(", ")
}

/// Returns the response to a recorded event, whether it is new, a duplicate or updated.
pub(crate) fn answer_of(taken: &IngestOutcome, EventAnswer { render, .. }: EventAnswer) -> StoredResponse {
    let (replayed, is_true) = REPLAYED;
    match taken {
        IngestOutcome::Recorded(view) | IngestOutcome::Updated(view) => {
            let answer = Success::json(render(view));
            let left = usage_left(&view.limits);
            if left.is_empty() { answer } else { answer.with(USAGE_LEFT, &left) }.kept()
        }
        IngestOutcome::Replayed(answer) => Success::json(answer.clone()).with(replayed, is_true).kept(),
    }
}
