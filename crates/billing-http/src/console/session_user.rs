//! The visitor of the console: an administrator with a session, who calls operations.

use billing_api::operation::OperationSpec;
use std::cell::RefCell;

use actix_web::HttpRequest;
use billing_application::access::LiveSession;
use billing_application::catalog::default_time_zone;
use billing_application::{UseCase, allow, read};
use billing_console::{ACCEPTED, CurrentUser, Frame};
use billing_domain::access::Principal;
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::idempotency::{IdempotencyKey, ScopedIdempotencyKey};
use billing_domain::refs::OrganizationId;
use maud::Markup;
use serde_json::{Map, Value};

use super::api_client::{Listed, written};
use super::calculations::effects_with_steps;
use super::form_data::{FormData, field, key as form_key};
use crate::auth::credentials::live_session;
use crate::blocking::blocking;
use crate::body::ParsedBody;
use crate::call::{Call, Reply};
use crate::context::RequestContext;
use crate::endpoints;
use crate::state::{HttpState, state_of};
use billing_api::operations::DryRun;
use billing_api::problem::Problem;
use billing_api::query::Query;

/// The administrator who requested a page.
#[derive(Clone)]
pub(super) struct SessionUser {
    pub(super) request: HttpRequest,
    pub(super) state: HttpState,
    /// Time zone of the default entity, in which pages show times.
    pub(super) zone: TimeZone,
    live: LiveSession,
    /// The API calls that the page shows: those that read its data, and those that [`shows`](Self::shows) adds.
    calls: RefCell<Vec<billing_console::Call>>,
}

impl SessionUser {
    /// Authenticates the request.
    ///
    /// # Errors
    /// Returns a problem without a live session.
    pub(super) async fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let live = live_session(request).await?;
        RequestContext::of(request).is_by(&Principal::of_administrator(&live.administrator));
        let (request, state, calls) = (request.clone(), state_of(request), RefCell::default());
        let mut visitor = Self { request, state, zone: TimeZone::UTC, live, calls };
        visitor.zone = visitor.usual_zone().await.unwrap_or(TimeZone::UTC);
        Ok(visitor)
    }

    async fn usual_zone(&self) -> Result<TimeZone, Problem> {
        let principal = self.principal();
        blocking(self.state.services(), move |services| read(services, &principal, UseCase::ListEntities, default_time_zone))
            .await
    }

    /// Returns the visitor as the principal of a call.
    fn principal(&self) -> Principal {
        self.live.principal(self.state.services().now()).by_request(RequestContext::of(&self.request).id())
    }

    /// Returns the visitor's organization.
    pub(super) fn organization(&self) -> OrganizationId {
        self.principal().organization()
    }

    /// Returns the visitor's call of an operation, without a reference and a body.
    ///
    /// # Errors
    /// Returns a problem for a malformed query string.
    pub(super) fn call(&self, operation: &'static OperationSpec, query: &str) -> Result<Call, Problem> {
        let path = operation.path.split('{').next().unwrap_or_default();
        Ok(Call::new(&self.request, self.principal(), operation.use_case()?, Query::of(path, query)?))
    }

    /// Answers a call of an operation. `reference` and `query` are empty if the operation has none.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn answer(&self, operation: &'static OperationSpec, reference: &str, query: &str) -> Reply {
        endpoints::answer(operation, self.call(operation, query)?, reference.to_owned(), None).await
    }

    /// Returns the visitor for calls that the page does not show.
    pub(super) fn quietly(&self) -> Self {
        Self { calls: RefCell::default(), ..self.clone() }
    }

    /// Shows an API call on the page. `reference` and `query` are empty if the call has none.
    pub(super) fn shows(&self, operation: &'static OperationSpec, reference: &str, query: &str) {
        let path = [operation.url(reference).as_str(), if query.is_empty() { "" } else { "?" }, query].concat();
        let call = billing_console::Call { method: operation.method.as_str(), path, operation: operation.id };
        let mut calls = self.calls.borrow_mut();
        if !calls.contains(&call) {
            calls.push(call);
        }
    }

    /// Returns the API calls that the page shows, in order.
    pub(super) fn calls(&self) -> Vec<billing_console::Call> {
        self.calls.borrow().clone()
    }

    /// Returns the JSON that an operation returns for a reference.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn get(&self, operation: &'static OperationSpec, reference: &str) -> Result<Value, Problem> {
        self.get_with(operation, reference, "").await
    }

    /// Returns the JSON that an operation returns for a reference and a query string.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn get_with(
        &self,
        operation: &'static OperationSpec,
        reference: &str,
        query: &str,
    ) -> Result<Value, Problem> {
        self.shows(operation, reference, query);
        written(self.answer(operation, reference, query).await?)
    }

    /// Returns a page of the list that an operation returns.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn list(&self, operation: &'static OperationSpec, query: &str) -> Result<Listed, Problem> {
        self.shows(operation, "", query);
        Listed::of(self.answer(operation, "", query).await?)
    }

    /// Runs an operation with a body and without a reference.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn post(&self, operation: &'static OperationSpec, body: Value) -> Reply {
        self.change(operation, "", None, Some(body)).await
    }

    /// Runs an operation with an optional idempotency key. `reference` has no effect if the path has none.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn change(
        &self,
        operation: &'static OperationSpec,
        reference: &str,
        key: Option<IdempotencyKey>,
        body: Option<Value>,
    ) -> Reply {
        self.send(self.call(operation, "")?, operation, reference, key, body).await
    }

    /// Runs the operation of a confirmed preview, with the idempotency key of its form. Warnings that the visitor did not accept
    /// stop it.
    ///
    /// # Errors
    /// Returns the operation's refusal, or 409 [`WARNINGS_NOT_ACCEPTED`](crate::call::WARNINGS_NOT_ACCEPTED).
    pub(super) async fn change_as_previewed(
        &self,
        operation: &'static OperationSpec,
        reference: &str,
        said: &FormData,
        body: Option<Value>,
    ) -> Reply {
        let call = self.call(operation, "")?;
        let call = if field(said, ACCEPTED).is_some() { call } else { call.without_warnings() };
        self.send(call, operation, reference, form_key(said), body).await
    }

    async fn send(
        &self,
        mut call: Call,
        operation: &'static OperationSpec,
        reference: &str,
        key: Option<IdempotencyKey>,
        body: Option<Value>,
    ) -> Reply {
        let path = operation.url(reference);
        call.key = key.map(|key| ScopedIdempotencyKey { path: path.trim_end_matches('/').to_owned(), key });
        endpoints::answer(operation, call, reference.to_owned(), body.map(ParsedBody::from)).await
    }

    /// Runs an operation as a dry run. Returns its effects, whose documents explain their lines.
    ///
    /// # Errors
    /// Returns the operation's refusal, or 422 `no_dry_run` if the operation does not support dry runs.
    pub(super) async fn rehearse(
        &self,
        operation: &'static OperationSpec,
        reference: &str,
        body: Option<Value>,
    ) -> Result<Value, Problem> {
        let path = operation.url(reference);
        let mut said = Map::from_iter([("path".to_owned(), Value::from(path))]);
        said.extend(body.map(|body| ("body".to_owned(), body)));
        Ok(effects_with_steps(written(self.post(&DryRun::SPEC, Value::Object(said)).await?)?))
    }

    /// Returns the frame of a page.
    pub(super) fn frame(&self, title: String) -> Frame {
        Frame { who: Some(self.who()), ..Frame::bare(title, service(&self.request)) }
    }

    /// Renders a page with instants in the visitor's time zone.
    pub(super) fn page(&self, frame: &Frame, body: &Markup) -> String {
        self.on_their_clocks(&billing_console::page(frame, body))
    }

    /// Renders an embedded frame with instants in the visitor's time zone.
    pub(super) fn framed(&self, title: &str, part: &Markup) -> String {
        self.on_their_clocks(&billing_console::framed(title, part))
    }

    fn on_their_clocks(&self, page: &str) -> String {
        billing_console::with_instants(page, |exact| Timestamp::parse(exact).ok().map(|at| self.zone.written(at)))
    }

    /// Returns the visitor's identity for the page frame.
    pub(super) fn who(&self) -> CurrentUser {
        CurrentUser { email: self.live.administrator.email.to_string(), is_owner: self.may(UseCase::ListAdministrators) }
    }

    /// Returns whether the visitor has a permission. Pages hide actions without permission.
    pub(super) fn may(&self, use_case: UseCase) -> bool {
        Principal::of_administrator(&self.live.administrator).has(use_case.need())
    }

    /// Checks a permission.
    ///
    /// # Errors
    /// Returns a problem if the visitor lacks the permission.
    pub(super) fn allow(&self, use_case: UseCase) -> Result<(), Problem> {
        allow(&Principal::of_administrator(&self.live.administrator), use_case)?;
        Ok(())
    }

    /// Returns a unique text for a form key: the request id.
    pub(super) fn unique(&self) -> String {
        RequestContext::of(&self.request).request_id.clone()
    }
}

/// Returns the base URL of the service.
pub(super) fn service(request: &HttpRequest) -> String {
    state_of(request).settings().public_url.to_string()
}
