//! Requests that the writer of usage carries out with others: they wait for their turn, and where they bring an event or change one,
//! whether their token still works is looked up with it.

use std::future::{Ready, ready};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse};
use billing_application::access::authenticate;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::idempotency::{KeyedRequest, TWIN_WAIT};
use billing_application::usage::{
    Carried, Changed, EventChange, EventView, Keyed, NewUsageEvent, Reply, Reporter, TakenBatch, TakenUsage, Waiting,
    WaitingBatch, WaitingChange, WaitingEvent, WaitingWhole, Work,
};
use billing_application::{Services, UseCase, allow};
use billing_domain::access::{Principal, RequestId, TokenClaims};
use billing_domain::idempotency::{self, KeptAnswer, RequestKey};
use billing_domain::refs::{EventRef, OrganizationId};
use billing_json::hash;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::caller::{Caller, blocking};
use crate::dto::events::event_answer;
use crate::kept;
use crate::middleware::Facts;
use crate::once::{Once, REPLAYED};
use crate::problem::Problem;
use crate::refused::is_refusal;
use crate::state::{HttpState, state_of};
use crate::twins::Turn;

/// How long a request waits before it looks again whether its twin on another server is done.
const TWIN_PAUSE: Duration = Duration::from_millis(50);

/// A bearer token whose key isn't looked up yet, and whether that was done since.
#[derive(Clone)]
pub(crate) struct Unchecked {
    claims: TokenClaims,
    use_case: UseCase,
    seen: Arc<Seen>,
}

/// What is found out of a request whose token isn't looked up yet.
#[derive(Default)]
struct Seen {
    is_checked: AtomicBool,
    /// The event it brought, where that was refused before anybody looked who sent it.
    refused: Mutex<Option<Box<(Value, Problem)>>>,
}

impl Unchecked {
    pub(crate) fn new(claims: TokenClaims, use_case: UseCase) -> Self {
        Self { claims, use_case, seen: Arc::default() }
    }

    /// Whether the key was looked up.
    pub(crate) fn is_checked(&self) -> bool {
        self.seen.is_checked.load(Ordering::Relaxed)
    }

    /// Looks the key up, and whether it may. An event that was refused before is counted then.
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

/// Who asks, as far as it is known.
#[derive(Clone)]
enum Who {
    Known(Principal),
    Unchecked(Unchecked),
}

/// What is answered to the repeats of an event with a key, and what to its request.
type Answers = (fn(&EventView) -> String, fn(&TakenUsage) -> KeptAnswer);

/// A request that brings an event or changes one.
pub(crate) struct Reporting {
    state: HttpState,
    who: Who,
    use_case: UseCase,
    facts: Facts,
    /// The request's key.
    pub(crate) key: Option<RequestKey>,
}

/// What becomes of a request, for whoever waits for it.
type Told<T> = UseCaseResult<Carried<T>>;

impl Reporting {
    /// Somebody whose credential was checked.
    pub(crate) fn of(caller: Caller, facts: Facts) -> Self {
        let Caller { state, principal, use_case, key, rehearses: _ } = caller;
        Self { state, who: Who::Known(principal), use_case, facts, key }
    }

    /// Hands an event to the writer, and waits until it is durable.
    ///
    /// # Errors
    /// What refuses it, as `told`; overloaded, with nothing done.
    pub(crate) async fn report(
        &self,
        event: NewUsageEvent,
        answer: fn(&EventView) -> String,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<TakenUsage, Problem> {
        let work = |reply| Work::Event(Box::new(WaitingEvent { event, answer, keyed: None, reply }));
        match self.hand_over(work, None).await?.map_err(told)? {
            Carried::Now(taken) => Ok(taken),
            Carried::Before(_) => Err(Problem::internal()),
        }
    }

    /// The same for an event whose request is to be known again, by what it says.
    pub(crate) async fn report_once(
        &self,
        event: NewUsageEvent,
        (answer, render): Answers,
        said: &Value,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<HttpResponse, Problem> {
        let work = |keyed, reply| Work::Event(Box::new(WaitingEvent { event: event.clone(), answer, keyed, reply }));
        self.once(said, render, &work, told).await
    }

    /// Hands a change of an event to the writer, and waits until it is durable; once under the request's key, where it has one.
    ///
    /// # Errors
    /// What refuses it, as `told`; overloaded, with nothing done.
    pub(crate) async fn change(
        self,
        (event_ref, change): (EventRef, EventChange),
        render: fn(&Changed) -> KeptAnswer,
        said: &Value,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<HttpResponse, Problem> {
        let work = |keyed, reply| Work::Change(WaitingChange { event_ref, change: change.clone(), keyed, reply });
        self.once(said, render, &work, told).await
    }

    /// Counts the event, which is refused; one whose sender isn't known yet once that is looked up.
    pub(crate) fn refused(&self, event: &Value, problem: &Problem) {
        match &self.who {
            Who::Unchecked(unchecked) if !unchecked.is_checked() => {
                if is_refusal(problem) {
                    let refused = Some(Box::new((event.clone(), problem.clone())));
                    *unchecked.seen.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
                }
            }
            Who::Known(_) | Who::Unchecked(_) => {
                self.state.count_refused(self.organization(), event, problem, self.facts.id());
            }
        }
    }

    /// The request as it is known under its key, by what it says.
    pub(crate) fn keyed(&self, said: &Value) -> Option<KeyedRequest> {
        let key = self.key.clone()?;
        // A twin is waited for here, not where others wait.
        Some(KeyedRequest { use_case: self.use_case, key, body: hash(Some(said)), wait: Duration::ZERO, sealed_for: None })
    }

    async fn once<T: Send + 'static>(
        &self,
        said: &Value,
        render: fn(&T) -> KeptAnswer,
        work: &dyn Fn(Option<Keyed<T>>, Reply<Carried<T>>) -> Work,
        told: fn(UseCaseError) -> UseCaseError,
    ) -> Result<HttpResponse, Problem> {
        let carried = match self.keyed(said) {
            None => self.hand_over(|reply| work(None, reply), None).await?,
            Some(request) => {
                let twins = Twins::wait(&self.state, self.organization(), &request.key).await?;
                loop {
                    let keyed = Some(Keyed { request: request.clone(), render });
                    let told = self.hand_over(|reply| work(keyed, reply), Some(twins.turn())).await?;
                    if !twins.is_to_wait(&told).await {
                        break told;
                    }
                }
            }
        };
        match carried.map_err(told)? {
            Carried::Now(done) => kept::respond(render(&done), None),
            Carried::Before(answer) => kept::respond(answer, Some(REPLAYED)),
        }
    }

    const fn organization(&self) -> OrganizationId {
        match &self.who {
            Who::Known(principal) => principal.organization(),
            Who::Unchecked(unchecked) => unchecked.claims.organization,
        }
    }

    /// Hands something to the writer, and waits until it is told what became of it. The turn is kept for as long.
    async fn hand_over<T: Send + 'static>(
        &self,
        work: impl FnOnce(Reply<Carried<T>>) -> Work,
        turn: Option<Arc<Turn>>,
    ) -> Result<Told<T>, Problem> {
        let Self { state, who, facts, .. } = self;
        let reporter = match who {
            Who::Known(principal) => Reporter::Known(principal.clone()),
            Who::Unchecked(unchecked) => Reporter::Bearer(unchecked.claims.clone()),
        };
        let (reply, replied) = oneshot::channel();
        let reply = Box::new(move |principal, outcome| {
            let _turn = turn;
            // Nobody to tell means nobody is waiting for it.
            drop(reply.send((principal, outcome)));
        });
        let (principal, outcome) = wait(state, facts, reporter, work(reply), replied).await?;
        if let Who::Unchecked(unchecked) = who {
            unchecked.seen.is_checked.store(true, Ordering::Relaxed);
        }
        if let Some(principal) = principal {
            facts.is_by(&principal);
        }
        Ok(outcome)
    }
}

/// Hands something to the writer, and waits for what it is told.
async fn wait<T>(
    state: &HttpState,
    facts: &Facts,
    reporter: Reporter,
    work: Work,
    replied: oneshot::Receiver<T>,
) -> Result<T, Problem> {
    let waiting = Waiting { reporter, until: facts.deadline.into_std(), work };
    state.writer().submit(waiting).map_err(|_| Problem::overloaded())?;
    // Either it was too late for it, or what took it panicked, which the panic hook has printed.
    let is_late = || tokio::time::Instant::now() >= facts.deadline;
    replied.await.map_err(|_| if is_late() { Problem::timed_out() } else { Problem::internal() })
}

/// The twins of a request under way, here and on other servers.
struct Twins {
    turn: Arc<Turn>,
    until: Instant,
}

impl Twins {
    /// Waits until no twin is under way here.
    async fn wait(state: &HttpState, organization: OrganizationId, key: &RequestKey) -> Result<Self, Problem> {
        let until = Instant::now() + TWIN_WAIT;
        Ok(Self { turn: Arc::new(state.twins().turn(organization, key, TWIN_WAIT).await?), until })
    }

    fn turn(&self) -> Arc<Turn> {
        Arc::clone(&self.turn)
    }

    /// Whether a twin is under way on another server, and may be done in time; waits a little then.
    async fn is_to_wait<T>(&self, outcome: &UseCaseResult<T>) -> bool {
        let is_under_way = matches!(outcome, Err(UseCaseError::RequestInProgress)) && Instant::now() < self.until;
        if is_under_way {
            tokio::time::sleep(TWIN_PAUSE).await;
        }
        is_under_way
    }
}

impl Once {
    /// Has the writer carry the request out in a transaction of its own, when it is its turn; as how many events it counts, and
    /// about how many bytes it takes.
    pub(crate) async fn in_turn(
        self,
        facts: &Facts,
        (events, bytes): (usize, usize),
        work: impl Fn(&Services<'_>, &Principal, Option<&KeyedRequest>) -> UseCaseResult<idempotency::Reply> + Send + Sync + 'static,
    ) -> Result<HttpResponse, Problem> {
        let Self { state, principal, keyed, .. } = self;
        let keyed = keyed.map(|keyed| KeyedRequest { wait: Duration::ZERO, ..keyed });
        let twins = match &keyed {
            Some(keyed) => Some(Twins::wait(&state, principal.organization(), &keyed.key).await?),
            None => None,
        };
        let work = Arc::new(work);
        loop {
            let (reply, replied) = oneshot::channel();
            let (work, turn, span) = (Arc::clone(&work), twins.as_ref().map(Twins::turn), tracing::Span::current());
            let (by, keyed, reporter) = (principal.clone(), keyed.clone(), Reporter::Known(principal.clone()));
            let work = Box::new(move |services: &Services<'_>| {
                let _turn = turn;
                // Nobody to tell means nobody is waiting for it.
                drop(reply.send(span.in_scope(|| work(services, &by, keyed.as_ref()))));
            });
            let work = Work::Whole(WaitingWhole { events, bytes, work });
            let outcome = wait(&state, facts, reporter, work, replied).await?;
            if let Some(twins) = &twins
                && twins.is_to_wait(&outcome).await
            {
                continue;
            }
            let idempotency::Reply { answer, is_repeat } = outcome?;
            return kept::respond(answer, is_repeat.then_some(REPLAYED));
        }
    }
}

/// Has the writer take somebody's events, in as many transactions as the turns of others make of it; those that go on with others
/// aren't turned away.
pub(crate) async fn take_batch(
    (state, principal): (&HttpState, Principal),
    facts: &Facts,
    events: Vec<NewUsageEvent>,
    goes_on: bool,
) -> Result<TakenBatch, Problem> {
    if events.is_empty() {
        return Ok(TakenBatch::default());
    }
    let (reply, replied) = oneshot::channel();
    // Nobody to tell means nobody is waiting for it.
    let reply = Box::new(move |_, outcome| drop(reply.send(outcome)));
    let work = Work::Batch(WaitingBatch { events, answer: event_answer, goes_on, reply });
    Ok(wait(state, facts, Reporter::Known(principal), work, replied).await??)
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
