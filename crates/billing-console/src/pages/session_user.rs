//! The visitor of the console: an administrator with a session, who calls operations.

use std::cell::RefCell;
use std::rc::Rc;

use billing_api::console::{ApiAnswer, ApiCall, ConsoleUser, FormData, Gateway, PageFile, PageRequest, Streamed, UsageUpload};
use billing_api::operation::{Described, OperationSpec};
use billing_api::operations::DryRun;
use billing_api::problem::Problem;
use billing_application::{UseCase, allow};
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::idempotency::IdempotencyKey;
use maud::Markup;
use serde_json::{Map, Value};

use super::api_client::Listed;
use super::credit;
use super::form_data::{field, key as form_key};
use crate::{ACCEPTED, CurrentUser, Frame, SandboxBar};

/// The answer of an operation.
pub(super) type Answered = Result<ApiAnswer, Problem>;

/// The JSON that an operation answers with, or its refusal.
pub(super) type AnswerOf<O> = Result<billing_api::operation::AnswerOf<O>, Problem>;

/// The administrator who requested a page.
#[derive(Clone)]
pub(super) struct SessionUser {
    pub(super) request: Rc<PageRequest>,
    /// Time zone of the default entity, in which pages show times.
    pub(super) zone: TimeZone,
    gateway: Rc<dyn Gateway>,
    user: ConsoleUser,
    /// The API calls that the page shows: those that read its data, and those that [`shows`](Self::shows) adds.
    calls: RefCell<Vec<crate::Call>>,
}

impl SessionUser {
    /// Authenticates the request.
    ///
    /// # Errors
    /// Returns a problem without a live session.
    pub(super) async fn of(request: &Rc<PageRequest>, gateway: &Rc<dyn Gateway>) -> Result<Self, Problem> {
        let user = gateway.user().await?;
        let (request, gateway, calls) = (Rc::clone(request), Rc::clone(gateway), RefCell::default());
        Ok(Self { request, zone: user.zone, gateway, user, calls })
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> Timestamp {
        self.gateway.now()
    }

    /// Returns the base URL of the service.
    pub(super) fn service(&self) -> String {
        self.gateway.service()
    }

    /// Answers a call of an operation. `reference` and `query` are empty if the operation has none.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn answer(&self, operation: &'static OperationSpec, reference: &str, query: &str) -> Answered {
        self.gateway.answer(ApiCall { operation, reference, query, body: None, key: None, accepts_warnings: true }).await
    }

    /// Imports a file of usage.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn import(&self, query: &str, file: UsageUpload) -> Answered {
        self.gateway.import(query, file).await
    }

    /// Writes a file while it is sent.
    ///
    /// # Errors
    /// Returns the problem that occurred before the first bytes.
    pub(super) async fn stream(&self, file: PageFile) -> Result<Streamed, Problem> {
        self.gateway.stream(file).await
    }

    /// Returns the visitor for calls that the page does not show.
    pub(super) fn quietly(&self) -> Self {
        Self { calls: RefCell::default(), ..self.clone() }
    }

    /// Shows an API call on the page. `reference` and `query` are empty if the call has none.
    pub(super) fn shows(&self, operation: &'static OperationSpec, reference: &str, query: &str) {
        let path = [operation.url(reference).as_str(), if query.is_empty() { "" } else { "?" }, query].concat();
        let call = crate::Call { method: operation.method.as_str(), path, operation: operation.id };
        let mut calls = self.calls.borrow_mut();
        if !calls.contains(&call) {
            calls.push(call);
        }
    }

    /// Returns the API calls that the page shows, in order.
    pub(super) fn calls(&self) -> Vec<crate::Call> {
        self.calls.borrow().clone()
    }

    /// Returns the JSON that an operation returns for a reference.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn get<O: Described>(&self, reference: &str) -> AnswerOf<O> {
        self.get_with::<O>(reference, "").await
    }

    /// Returns the JSON that an operation returns for a reference and a query string.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn get_with<O: Described>(&self, reference: &str, query: &str) -> AnswerOf<O> {
        self.shows(O::SPEC, reference, query);
        Ok(O::answer(self.answer(O::SPEC, reference, query).await?.json()?))
    }

    /// Returns a page of the list that an operation returns.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn list(&self, operation: &'static OperationSpec, query: &str) -> Result<Listed, Problem> {
        self.shows(operation, "", query);
        Listed::of(&self.answer(operation, "", query).await?)
    }

    /// Runs an operation with a body and without a reference.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn post<O: Described>(&self, body: Value) -> AnswerOf<O> {
        self.carry_out::<O>("", None, Some(body)).await
    }

    /// Runs an operation with an optional idempotency key. `reference` has no effect if the path has none.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn carry_out<O: Described>(
        &self,
        reference: &str,
        key: Option<IdempotencyKey>,
        body: Option<Value>,
    ) -> AnswerOf<O> {
        Ok(O::answer(self.change(O::SPEC, reference, key, body).await?.json()?))
    }

    /// Runs an operation that is known at run time, like [`carry_out`](Self::carry_out).
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn change(
        &self,
        operation: &'static OperationSpec,
        reference: &str,
        key: Option<IdempotencyKey>,
        body: Option<Value>,
    ) -> Answered {
        self.gateway.answer(ApiCall { operation, reference, query: "", body, key, accepts_warnings: true }).await
    }

    /// Runs the operation of a confirmed preview, with the idempotency key of its form. Warnings that the visitor did not accept
    /// stop it.
    ///
    /// # Errors
    /// Returns the operation's refusal, or 409 [`WARNINGS_NOT_ACCEPTED`](billing_api::console::WARNINGS_NOT_ACCEPTED).
    pub(super) async fn change_as_previewed(
        &self,
        operation: &'static OperationSpec,
        reference: &str,
        submitted: &FormData,
        body: Option<Value>,
    ) -> Answered {
        let (key, accepts_warnings) = (form_key(submitted), field(submitted, ACCEPTED).is_some());
        self.gateway.answer(ApiCall { operation, reference, query: "", body, key, accepts_warnings }).await
    }

    /// Runs an operation as a dry run. Returns its effects.
    ///
    /// # Errors
    /// Returns the operation's refusal, or 422 `no_dry_run` if the operation does not support dry runs.
    pub(super) async fn rehearse(
        &self,
        operation: &'static OperationSpec,
        reference: &str,
        body: Option<Value>,
    ) -> AnswerOf<DryRun> {
        let path = operation.url(reference);
        let mut submitted = Map::from_iter([("path".to_owned(), Value::from(path))]);
        submitted.extend(body.map(|body| ("body".to_owned(), body)));
        credit::with_names(self, self.post::<DryRun>(Value::Object(submitted)).await?).await
    }

    /// Returns the frame of a page.
    pub(super) fn frame(&self, title: String) -> Frame {
        let may_advance = self.may(UseCase::AdvanceClock);
        let sandbox = self.gateway.sandbox_now().map(|now| SandboxBar { now, may_advance });
        Frame { who: Some(self.who()), sandbox, ..Frame::bare(title, self.service()) }
    }

    /// Renders a page with instants in the visitor's time zone.
    pub(super) fn page(&self, frame: &Frame, body: &Markup) -> String {
        self.on_their_clocks(&crate::page(frame, body))
    }

    /// Renders an embedded frame with instants in the visitor's time zone.
    pub(super) fn framed(&self, title: &str, part: &Markup) -> String {
        self.on_their_clocks(&crate::framed(title, part))
    }

    fn on_their_clocks(&self, page: &str) -> String {
        crate::with_instants(page, |exact| Timestamp::parse(exact).ok().map(|at| self.zone.written(at)))
    }

    /// Returns the visitor's identity for the page frame.
    pub(super) fn who(&self) -> CurrentUser {
        CurrentUser { email: self.user.email.clone(), is_owner: self.may(UseCase::ListAdministrators) }
    }

    /// Returns whether the visitor has a permission. Pages hide actions without permission.
    pub(super) fn may(&self, use_case: UseCase) -> bool {
        self.user.principal.has(use_case.need())
    }

    /// Checks a permission.
    ///
    /// # Errors
    /// Returns a problem if the visitor lacks the permission.
    pub(super) fn allow(&self, use_case: UseCase) -> Result<(), Problem> {
        allow(&self.user.principal, use_case)?;
        Ok(())
    }

    /// Returns a unique text for a form key: the request id.
    pub(super) fn unique(&self) -> String {
        self.gateway.request_id()
    }
}
