//! A request to an operation, from HTTP or from the console, and the ways to run its use case.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::time::{Duration, Instant};

use actix_web::dev::Payload;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, web};
use billing_application::error::{ResourceKind, UseCaseError, UseCaseResult};
use billing_application::idempotency::{IdempotentRequest, TWIN_WAIT};
use billing_application::usage::NewUsageEvent;
use billing_application::webhooks;
use billing_application::{Cx, Request, Services, UseCase, carry_out, read, run};
use billing_domain::access::{Actor, Principal};
use billing_domain::idempotency::{BodyHash, IdempotentResponse, ScopedIdempotencyKey};
use billing_domain::refs::OrganizationId;
use billing_domain::violation::Violations;
use billing_domain::warning::Warning;
use billing_json::hash;
use serde::Serialize;
use serde_json::Value;

use crate::auth::{address, session};
use crate::blocking::blocking;
use crate::body::{self, ParsedBody};
use crate::context::RequestContext;
use crate::identity::{DeferredTokenCheck, Identity};
use crate::respond::{HttpProblem, respond, respond_stored};
use crate::state::{HttpState, state_of};
use crate::writer_turn::{TransactionSize, run_in_turn};
use billing_api::console::WARNINGS_NOT_ACCEPTED;
use billing_api::dto::declare::{self, Fieldset};
use billing_api::dto::effects::EffectsJson;
use billing_api::dto::event_reader;
use billing_api::dto::wire::written;
use billing_api::job::{AnyView, Job, JobRender, JobWork, Received, ServicesWork, TransactionWork};
use billing_api::media_type::CLOUD_EVENT;
use billing_api::operation::{Flag, OperationSpec, RequestBodySpec};
use billing_api::problem::Problem;
use billing_api::query::Query;
use billing_api::stored_response::Success;

/// Marks a replayed response.
pub(crate) const REPLAYED: (HeaderName, &str) = (HeaderName::from_static("idempotency-replayed"), "true");

/// Reads a request to a job.
pub(crate) type OpenJob = fn(Received<'_>) -> Result<Job, Problem>;

/// The response of an operation.
pub(crate) type Reply = Result<HttpResponse, Problem>;

/// A boxed future, because a separate future type per operation makes compilation slow.
pub(crate) type BoxedReply = Pin<Box<dyn Future<Output = Reply>>>;

/// A request to an operation.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) state: HttpState,
    pub(crate) request: HttpRequest,
    pub(crate) context: RequestContext,
    pub(crate) identity: Identity,
    pub(crate) query: Query,
    pub(crate) key: Option<ScopedIdempotencyKey>,
    /// Whether nothing is stored and the response lists the effects on documents.
    pub(crate) is_dry_run: bool,
    /// Whether a change with warnings is carried out. The console first asks its visitor, the API always accepts.
    accepts_warnings: bool,
    pub(crate) use_case: UseCase,
    /// The reference in the path; empty if the path has none.
    reference: String,
    body: Option<ParsedBody>,
    /// Whether the body was sent as a CloudEvent.
    pub(crate) is_cloud_event: bool,
    /// The event in the body, if it was read directly from the text.
    event: Option<Box<NewUsageEvent>>,
    sealed_for: Option<String>,
}

impl Call {
    /// Creates a principal's call without a key and a body.
    pub(crate) fn new(request: &HttpRequest, principal: Principal, use_case: UseCase, query: Query) -> Self {
        Self {
            state: state_of(request),
            request: request.clone(),
            context: RequestContext::of(request),
            identity: Identity::Known(principal),
            query,
            key: None,
            is_dry_run: false,
            accepts_warnings: true,
            use_case,
            reference: String::new(),
            body: None,
            is_cloud_event: false,
            event: None,
            sealed_for: None,
        }
    }

    /// Returns the call of another use case on a reference, with a body.
    pub(crate) fn with(self, use_case: UseCase, reference: String, body: Option<ParsedBody>) -> Self {
        Self { use_case, reference, body, is_cloud_event: false, event: None, ..self }
    }

    /// Returns the same call as a dry run.
    pub(crate) fn into_dry_run(self) -> Self {
        Self { key: None, is_dry_run: true, ..self }
    }

    /// Returns the same call, which is refused where it has warnings: 409 [`WARNINGS_NOT_ACCEPTED`].
    pub(crate) fn without_warnings(self) -> Self {
        Self { accepts_warnings: false, ..self }
    }

    /// Returns the principal.
    ///
    /// # Errors
    /// Returns an internal error for an operation whose sender the usage writer looks up.
    pub(crate) fn principal(&self) -> Result<&Principal, Problem> {
        match &self.identity {
            Identity::Known(principal) => Ok(principal),
            Identity::Unchecked(_) => Err(Problem::internal()),
        }
    }

    /// Returns the organization of the sender.
    pub(crate) const fn organization(&self) -> OrganizationId {
        match &self.identity {
            Identity::Known(principal) => principal.organization(),
            Identity::Unchecked(unchecked) => unchecked.claims.organization,
        }
    }

    /// Parses the reference in the path. A malformed reference is reported as not found.
    pub(crate) fn reference<R, E>(&self, parse: impl FnOnce(&str) -> Result<R, E>, thing: ResourceKind) -> Result<R, Problem> {
        parse(&self.reference).map_err(|_| Problem::unknown(thing))
    }

    /// Takes the event that was read directly from the text of the body.
    pub(crate) fn take_event(&mut self) -> Option<NewUsageEvent> {
        self.event.take().map(|event| *event)
    }

    /// Returns the JSON body. An operation that requires a body always has one.
    pub(crate) fn value(&self) -> &Value {
        self.body.as_ref().map_or(&Value::Null, ParsedBody::value)
    }

    /// Reads the body. An omitted optional body is an empty object.
    ///
    /// # Errors
    /// Returns the violations.
    pub(crate) async fn body<B: Fieldset + Send + 'static>(&self) -> Result<B, Problem> {
        match &self.body {
            Some(_) => self.read_value(declare::read::<B>).await,
            None => Ok(declare::read_optional(None)?),
        }
    }

    /// Reads the JSON body with a reader of its fields. A large body is read on a blocking thread.
    ///
    /// # Errors
    /// Returns the violations.
    pub(crate) async fn read_value<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Value) -> Result<T, Violations> + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(body) = self.body.clone() else { return Ok(read(&Value::Null)?) };
        self.parse(body.bytes(), move || Ok(read(body.value())?)).await
    }

    /// Runs work that parses or reads a body of this size. A large body waits for the organization's turn and is parsed on a
    /// blocking thread.
    ///
    /// # Errors
    /// Returns the problem of the work, or `overloaded` if the turn did not come in time.
    pub(crate) async fn parse<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        body::parse(&self.state, self.organization(), bytes, work).await
    }

    /// Encrypts the stored response with a secret, so that only a caller with the same secret can replay it.
    pub(crate) fn sealed_for(self, secret: String) -> Self {
        Self { sealed_for: Some(secret), ..self }
    }

    /// Reads the request to a job, runs its use case and renders the result.
    pub(crate) async fn run_job(self, operation: &'static OperationSpec, open: OpenJob) -> Reply {
        let (reference, query, body) = (self.reference.clone(), self.query.clone(), self.body.clone());
        let session = session::id(&self.request);
        let read = move || {
            let body = body.as_ref().map(ParsedBody::value);
            open(Received { reference: &reference, query: &query, body, session: session.as_deref() })
        };
        let Job { work, render } = self.parse(self.body.as_ref().map_or(0, ParsedBody::bytes), read).await?;
        match work {
            JobWork::Read(work) => Ok(respond(render(&self.look_up(work).await?))),
            JobWork::Scan(work) => Ok(respond(render(&self.scan(work).await?))),
            JobWork::Write(work) if operation.is(Flag::Seals) => self.sealed().await?.write_job(work, render).await,
            JobWork::Write(work) => self.write_job(work, render).await,
            JobWork::Services(work) => {
                let done = if operation.is(Flag::ChecksSecret) {
                    self.run_within_limits(work).await?
                } else if operation.is(Flag::Evaluates) {
                    self.evaluate(work).await?
                } else {
                    self.run(work).await?
                };
                Ok(respond(render(&done)))
            }
        }
    }

    /// Checks a password or code within the log-in rate limits, so that a person at an unattended browser cannot guess it.
    async fn run_within_limits(&self, work: ServicesWork) -> Result<AnyView, Problem> {
        let (state, name) = (&self.state, format!("own {}", self.principal()?.actor()));
        let attempt = state.log_ins().in_session(address::client(&self.request, &state.settings().trusted_proxies), &name);
        let turn = state.log_ins().permit_hash(attempt).await?;
        let done = self.run(move |services, principal| {
            let done = work(services, principal);
            // The hashing thread releases the permit, because the request may have been abandoned.
            drop(turn);
            done
        });
        done.await.inspect_err(|problem| state.log_ins().failed(attempt, problem))
    }

    /// Evaluates expressions of the caller. Concurrency is limited.
    async fn evaluate(&self, work: ServicesWork) -> Result<AnyView, Problem> {
        let permit = self.state.permit_trial(self.principal()?.organization()).await?;
        self.run(move |services, principal| {
            // The evaluating thread releases the permit, even if the request was abandoned.
            let _permit = permit;
            work(services, principal)
        })
        .await
    }

    /// Encrypts the stored response of a request with an idempotency key, because it has a secret. Only the session or the API key
    /// that sent the request gets the response again.
    async fn sealed(self) -> Result<Self, Problem> {
        if self.key.is_none() {
            return Ok(self);
        }
        let secret = match self.principal()?.actor() {
            Actor::ApiKey(key) => self.run(move |services, _| webhooks::response_secret(services, key)).await?,
            Actor::Admin(_) | Actor::Service => session::shown(&self.request)?,
        };
        Ok(self.sealed_for(secret))
    }

    /// Runs a use case that changes data, at most once per idempotency key. In a dry run, returns the effects. The use case may
    /// run again after a conflict with other transactions.
    async fn write_job(self, mut work: TransactionWork, render: JobRender) -> Reply {
        if self.is_dry_run {
            return self.effects(Box::new(move |cx| work(cx).map(drop))).await;
        }
        let accepts_warnings = self.accepts_warnings;
        self.once_in_turn(move |services, request| {
            carry_out(
                services,
                request,
                |done: &AnyView| render(done).kept(),
                |cx| {
                    let done = work(cx)?;
                    if accepts_warnings || cx.warnings().is_empty() { Ok(done) } else { Err(not_accepted(cx.warnings())) }
                },
            )
        })
        .await
    }

    /// Does the same as [`write_job`](Self::write_job) for a use case whose result is returned as JSON.
    pub(crate) async fn write<J, T>(self, mut work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T> + Send + 'static) -> Reply
    where
        T: Send + 'static,
        J: for<'t> From<&'t T> + Serialize + 'static,
    {
        let work = Box::new(move |cx: &mut Cx<'_>| work(cx).map(|done| Box::new(done) as AnyView));
        let render = |done: &AnyView| {
            let done: &T = done.downcast_ref().expect("the result of this use case");
            Success::json(written(&J::from(done)))
        };
        self.write_job(work, Box::new(render)).await
    }

    /// Runs a use case that only reads.
    pub(crate) async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let use_case = self.use_case;
        self.run(move |services, principal| read(services, principal, use_case, work)).await
    }

    /// Runs a use case that may scan all events, like [`look_up`](Self::look_up). Concurrency is limited, so that scans leave
    /// connections and threads for usage ingestion.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let (organization, use_case) = (self.principal()?.organization(), self.use_case);
        let permit = self.state.permit_scan(organization).await?;
        self.run(move |services, principal| {
            // The reading thread releases the permit, even if the request was abandoned.
            let _permit = permit;
            read(services, principal, use_case, work)
        })
        .await
    }

    /// Runs work for the principal on a blocking thread.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Services, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let principal = self.principal()?.clone();
        self.state.with_connection(principal.organization(), move |services| work(services, &principal)).await
    }

    /// Prints for the principal on a blocking thread. The work must not use the database: it can take as long as printing may.
    pub(crate) async fn print<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Services, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        let principal = self.principal()?.clone();
        let permit = self.state.permit_print(principal.organization()).await?;
        let counting = self.state.clone();
        blocking(self.state.services(), move |services| {
            // The printing thread releases the permit, even if the request was abandoned.
            let _permit = permit;
            counting.metrics().count_print(work(services, &principal))
        })
        .await
    }

    /// Runs work that is one transaction and may change data. On a database with one writer, the work waits for its turn in the
    /// queue of the usage writer, so that organizations share the database's writer.
    pub(crate) async fn run_in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Services, &Principal) -> UseCaseResult<T> + Send + 'static,
    ) -> Result<T, Problem> {
        if !self.state.has_one_writer() {
            return self.run(work).await;
        }
        let principal = self.principal()?.clone();
        let by = principal.clone();
        let work = Box::new(move |services: &Services| work(services, &by));
        Ok(run_in_turn(&self.state, &self.context, &principal, self.transaction_size(), work).await??)
    }

    /// Returns the size of the call's transaction for the queue of the usage writer.
    fn transaction_size(&self) -> TransactionSize {
        (1, self.body.as_ref().map_or(0, ParsedBody::bytes))
    }

    /// Runs a use case as a dry run and returns its effects on documents. A dry run needs a transaction that may write.
    pub(crate) async fn effects(&self, mut work: DryRunWork) -> Reply {
        let use_case = self.use_case;
        let effects = self.run_in_turn(move |services, principal| {
            let rehearse = |cx: &mut Cx<'_>| cx.dry_run(&mut work);
            run(services, principal, use_case, rehearse)
        });
        respond_stored(Success::json(written(&EffectsJson::from(&effects.await?))).kept(), None)
    }

    /// Runs work at most once per idempotency key and body, when no duplicate is in flight.
    pub(crate) async fn once(
        self,
        work: impl FnOnce(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send + 'static,
    ) -> Reply {
        let keyed = self.keyed_by_body();
        respond_once(self, keyed, false, Box::new(work)).await
    }

    /// Does the same as [`once`](Self::once) for a body that is not JSON. `content` is the hash of its content; a request without
    /// a key needs none.
    pub(crate) async fn once_for(
        self,
        content: Option<BodyHash>,
        work: impl FnOnce(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send + 'static,
    ) -> Reply {
        let keyed = content.and_then(|content| self.keyed(content));
        respond_once(self, keyed, false, Box::new(work)).await
    }

    /// Does the same as [`once`](Self::once) for work that is one transaction. On a database with one writer, the work waits for
    /// its turn in the queue of the usage writer.
    pub(crate) async fn once_in_turn(
        self,
        work: impl FnOnce(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send + 'static,
    ) -> Reply {
        let (keyed, takes_turn) = (self.keyed_by_body(), self.state.has_one_writer());
        respond_once(self, keyed, takes_turn, Box::new(work)).await
    }

    /// Returns the idempotent request with the hash of its body, or `None` without a key.
    pub(crate) fn keyed(&self, body: BodyHash) -> Option<IdempotentRequest> {
        let (key, use_case, sealed_for) = (self.key.clone()?, self.use_case, self.sealed_for.clone());
        Some(IdempotentRequest { use_case, key, body, wait: TWIN_WAIT, sealed_for })
    }

    /// Returns the idempotent request with the hash of the JSON body, or `None` without a key.
    pub(crate) fn keyed_by_body(&self) -> Option<IdempotentRequest> {
        self.key.as_ref()?;
        self.keyed(self.body.as_ref().map_or_else(|| hash(None), ParsedBody::hash))
    }
}

fn not_accepted(warnings: &[Warning]) -> UseCaseError {
    let details: Vec<String> = warnings.iter().map(Warning::to_string).collect();
    UseCaseError::Conflict { code: WARNINGS_NOT_ACCEPTED, detail: details.join("; ") }
}

/// The work of a dry run. Boxed, because a separate future type per operation makes compilation slow.
pub(crate) type DryRunWork = Box<dyn FnMut(&mut Cx<'_>) -> UseCaseResult<()> + Send>;

/// A function that runs a request. Boxed for the same reason.
type OnceWork = Box<dyn FnOnce(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send>;

async fn respond_once(call: Call, mut keyed: Option<IdempotentRequest>, takes_turn: bool, work: OnceWork) -> Reply {
    let began = Instant::now();
    let (state, principal, use_case) = (&call.state, call.principal()?.clone(), call.use_case);
    let turn = match &keyed {
        Some(keyed) => Some(state.twins().turn(principal.organization(), &keyed.key, TWIN_WAIT).await?),
        None => None,
    };
    if let Some(keyed) = &mut keyed {
        // The writer must not wait. A database with one writer has no duplicates in flight on other servers.
        keyed.wait = if takes_turn { Duration::ZERO } else { TWIN_WAIT.saturating_sub(began.elapsed()) };
    }
    let by = principal.clone();
    let work = Box::new(move |services: &Services| {
        // The working thread releases the turn, because the request may have been abandoned.
        let _turn = turn;
        work(services, Request { principal: &by, use_case, key: keyed.as_ref() })
    });
    // The usage writer has a connection of its own.
    let IdempotentResponse { answer, is_repeat } = if takes_turn {
        run_in_turn(state, &call.context, &principal, call.transaction_size(), work).await??
    } else {
        state.with_connection(principal.organization(), work).await?
    };
    respond_stored(answer, is_repeat.then_some(REPLAYED))
}

impl Call {
    /// Reads a JSON body that the operation takes.
    ///
    /// # Errors
    /// Returns the problem of the body, also if it is required and was not sent.
    pub(crate) async fn read_body(self, payload: web::Payload, takes: &'static RequestBodySpec) -> Result<Self, Problem> {
        match body::optional(&self.request, payload, takes.or).await? {
            Some(sent) => {
                let body = Some(self.parse_body(sent.bytes).await?);
                Ok(Self { body, is_cloud_event: sent.media_type == CLOUD_EVENT, ..self })
            }
            None if takes.required => Err(body::empty()),
            None => Ok(Self { body: None, ..self }),
        }
    }

    /// Reads a JSON body that is an event. A small event in a common form is read directly from the text. Any other body is
    /// parsed as by [`read_body`](Self::read_body), which finds its errors.
    ///
    /// # Errors
    /// Returns the problem of the body, also if it was not sent.
    pub(crate) async fn read_event(self, payload: web::Payload) -> Result<Self, Problem> {
        let text = body::optional(&self.request, payload, &[]).await?.ok_or_else(body::empty)?.bytes;
        let is_small = !body::is_large(text.len());
        match is_small.then(|| event_reader::read(&text)).flatten() {
            Some(event) => Ok(Self { body: Some(ParsedBody::of_valid(text)), event: Some(Box::new(event)), ..self }),
            None => Ok(Self { body: Some(self.parse_body(text).await?), ..self }),
        }
    }

    /// Parses the body. With a key, also computes the hash that identifies repeats.
    async fn parse_body(&self, bytes: web::Bytes) -> Result<ParsedBody, Problem> {
        let is_keyed = self.key.is_some();
        let parsed = self.parse(bytes.len(), move || {
            let body = ParsedBody::read(&bytes)?;
            if is_keyed {
                body.hash();
            }
            Ok(body)
        });
        parsed.await
    }
}

/// Reads everything but the body.
impl FromRequest for Call {
    type Error = HttpProblem;
    type Future = Ready<Result<Self, HttpProblem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let read = || -> Result<Self, Problem> {
            let extensions = request.extensions();
            let known = extensions.get::<Principal>().cloned().zip(extensions.get::<UseCase>().copied());
            let known = known.map(|(principal, use_case)| (Identity::Known(principal), use_case));
            let unchecked = || {
                let unchecked = extensions.get::<DeferredTokenCheck>().cloned()?;
                let use_case = unchecked.use_case;
                Some((Identity::Unchecked(unchecked), use_case))
            };
            // Only operations that require a credential extract a call, so one of them is always present.
            let (identity, use_case) = known.or_else(unchecked).ok_or_else(Problem::internal)?;
            let reference = request.match_info().iter().next().map_or_else(String::new, |(_, reference)| reference.to_owned());
            Ok(Self {
                state: state_of(request),
                request: request.clone(),
                context: RequestContext::of(request),
                identity,
                query: Query::of(request.path(), request.query_string())?,
                key: extensions.get::<ScopedIdempotencyKey>().cloned(),
                is_dry_run: false,
                accepts_warnings: true,
                use_case,
                reference,
                body: None,
                is_cloud_event: false,
                event: None,
                sealed_for: None,
            })
        };
        ready(read().map_err(HttpProblem))
    }
}
