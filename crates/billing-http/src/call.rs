//! A request to an operation, from HTTP or from the console, and the ways to run its use case.

use std::future::{Ready, ready};
use std::time::Instant;

use actix_web::dev::Payload;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, web};
use billing_application::error::{ResourceKind, UseCaseResult};
use billing_application::idempotency::{IdempotentRequest, TWIN_WAIT};
use billing_application::{Cx, Request, Services, UseCase, carry_out, read, run};
use billing_domain::access::Principal;
use billing_domain::idempotency::{IdempotentResponse, ScopedIdempotencyKey};
use billing_domain::page::{Page, PageRequest};
use billing_json::hash;
use serde::Serialize;
use serde_json::Value;

use crate::blocking::blocking;
use crate::body::{self, OptionalBody};
use crate::context::RequestContext;
use crate::dto::declare::{self, Fieldset};
use crate::dto::effects::EffectsJson;
use crate::dto::wire::written;
use crate::identity::{DeferredTokenCheck, Identity};
use crate::problem::Problem;
use crate::query::Query;
use crate::state::{HttpState, state_of};
use crate::stored_response::{self, Success};

/// Marks a replayed response.
pub(crate) const REPLAYED: (HeaderName, &str) = (HeaderName::from_static("idempotency-replayed"), "true");

/// The response of an operation.
pub(crate) type Reply = Result<HttpResponse, Problem>;

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
    pub(crate) use_case: UseCase,
    /// The reference in the path; empty if the path has none.
    reference: String,
    body: Option<Value>,
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
            use_case,
            reference: String::new(),
            body: None,
            sealed_for: None,
        }
    }

    /// Returns the call of another use case on a reference, with a body.
    pub(crate) fn with(self, use_case: UseCase, reference: String, body: Option<Value>) -> Self {
        Self { use_case, reference, body, ..self }
    }

    /// Returns the same call as a dry run.
    pub(crate) fn into_dry_run(self) -> Self {
        Self { key: None, is_dry_run: true, ..self }
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

    /// Parses the reference in the path. A malformed reference is reported as not found.
    pub(crate) fn reference<R, E>(&self, parse: impl FnOnce(&str) -> Result<R, E>, thing: ResourceKind) -> Result<R, Problem> {
        parse(&self.reference).map_err(|_| Problem::unknown(thing))
    }

    /// Returns the JSON body. An operation that requires a body always has one.
    pub(crate) fn value(&self) -> &Value {
        self.body.as_ref().unwrap_or(&Value::Null)
    }

    /// Reads the body. An omitted optional body is an empty object.
    ///
    /// # Errors
    /// Returns all violations.
    pub(crate) fn body<B: Fieldset>(&self) -> Result<B, Problem> {
        Ok(declare::read_optional(self.body.as_ref())?)
    }

    /// Encrypts the stored response with a secret, so that only a caller with the same secret can replay it.
    pub(crate) fn sealed_for(self, secret: String) -> Self {
        Self { sealed_for: Some(secret), ..self }
    }

    /// Runs a use case that changes data, at most once per idempotency key, and returns its result as JSON. In a dry run,
    /// returns the effects. The use case may run again after a conflict with other transactions.
    pub(crate) async fn write<J, T>(self, mut work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T> + Send + 'static) -> Reply
    where
        T: 'static,
        J: for<'t> From<&'t T> + Serialize + 'static,
    {
        if self.is_dry_run {
            return self.effects(Box::new(move |cx| work(cx).map(drop))).await;
        }
        self.once(move |services, request| {
            carry_out(services, request, |done| Success::json(written(&J::from(done))).kept(), work)
        })
        .await
    }

    /// Runs a use case that changes data and returns nothing. In a dry run, returns the effects.
    pub(crate) async fn delete(self, mut work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<()> + Send + 'static) -> Reply {
        if self.is_dry_run {
            return self.effects(Box::new(work)).await;
        }
        let (principal, use_case) = (self.principal()?.clone(), self.use_case);
        blocking(&self.state, move |services| run(services, &principal, use_case, &mut work)).await?;
        Ok(HttpResponse::NoContent().finish())
    }

    /// Runs a use case that only reads, and returns its result as JSON.
    pub(crate) async fn read<J, T>(self, work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T> + Send + 'static) -> Reply
    where
        T: Send + 'static,
        J: for<'t> From<&'t T> + Serialize,
    {
        Ok(HttpResponse::Ok().json(J::from(&self.look_up(work).await?)))
    }

    /// Runs a use case that only reads, and returns a JSON array.
    pub(crate) async fn read_all<J, T>(self, work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<Vec<T>> + Send + 'static) -> Reply
    where
        T: Send + 'static,
        J: for<'t> From<&'t T> + Serialize,
    {
        Ok(HttpResponse::Ok().json(self.look_up(work).await?.iter().map(J::from).collect::<Vec<_>>()))
    }

    /// Runs a use case that returns a page of a list.
    pub(crate) async fn list<J, T>(
        self,
        page: PageRequest,
        work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<Page<T>> + Send + 'static,
    ) -> Reply
    where
        T: Send + 'static,
        J: for<'t> From<&'t T> + Serialize,
    {
        Ok(self.query.answer::<_, J>(page, &self.look_up(work).await?))
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
        let (permit, use_case) = (self.state.permit_scan().await?, self.use_case);
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
        blocking(&self.state, move |services| work(services, &principal)).await
    }

    /// Runs a use case as a dry run and returns its effects on documents.
    pub(crate) async fn effects(&self, mut work: DryRunWork) -> Reply {
        let use_case = self.use_case;
        let effects = self.run(move |services, principal| {
            let rehearse = |cx: &mut Cx<'_>| cx.dry_run(&mut work);
            run(services, principal, use_case, rehearse)
        });
        stored_response::respond(Success::json(written(&EffectsJson::from(&effects.await?))).kept(), None)
    }

    /// Runs work at most once per idempotency key and body, when no duplicate is in flight.
    pub(crate) async fn once(
        self,
        work: impl FnOnce(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send + 'static,
    ) -> Reply {
        let body = self.body.clone();
        self.once_for(body.as_ref(), work).await
    }

    /// Does the same as [`once`](Self::once) for a body that is not JSON, of which `said` is the content.
    pub(crate) async fn once_for(
        self,
        said: Option<&Value>,
        work: impl FnOnce(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send + 'static,
    ) -> Reply {
        let (principal, use_case, keyed) = (self.principal()?.clone(), self.use_case, self.keyed(said)?);
        respond_once(self.state, (principal, use_case, keyed), Box::new(work)).await
    }

    /// Returns the idempotent request with its body's hash, or `None` without a key.
    pub(crate) fn keyed(&self, said: Option<&Value>) -> Result<Option<IdempotentRequest>, Problem> {
        let Some(key) = self.key.clone() else { return Ok(None) };
        let (use_case, sealed_for) = (self.use_case, self.sealed_for.clone());
        Ok(Some(IdempotentRequest { use_case, key, body: hash(said), wait: TWIN_WAIT, sealed_for }))
    }
}

/// The work of a dry run. Boxed, because a separate future type per operation makes compilation slow.
pub(crate) type DryRunWork = Box<dyn FnMut(&mut Cx<'_>) -> UseCaseResult<()> + Send>;

/// A function that runs a request. Boxed for the same reason.
type OnceWork = Box<dyn FnOnce(&Services, Request<'_>) -> UseCaseResult<IdempotentResponse> + Send>;

async fn respond_once(
    state: HttpState,
    (principal, use_case, mut keyed): (Principal, UseCase, Option<IdempotentRequest>),
    work: OnceWork,
) -> Reply {
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
        work(services, Request { principal: &principal, use_case, key: keyed.as_ref() })
    });
    let IdempotentResponse { answer, is_repeat } = carried_out.await?;
    stored_response::respond(answer, is_repeat.then_some(REPLAYED))
}

impl Call {
    /// Reads a JSON body that the operation takes.
    ///
    /// # Errors
    /// Returns the problem of the body, also if it is required and was not sent.
    pub(crate) async fn read_body(self, payload: web::Payload, is_required: bool) -> Result<Self, Problem> {
        let OptionalBody(body) = OptionalBody::from_request(&self.request, &mut payload.into_inner()).await?;
        if is_required && body.is_none() {
            return Err(body::empty());
        }
        Ok(Self { body, ..self })
    }
}

/// Reads everything but the body.
impl FromRequest for Call {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let read = || {
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
                use_case,
                reference,
                body: None,
                sealed_for: None,
            })
        };
        ready(read())
    }
}
