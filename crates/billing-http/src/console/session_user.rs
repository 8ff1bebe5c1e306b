//! The visitor of the console: an administrator with a session.

use actix_web::{HttpRequest, HttpResponse};
use billing_application::{UseCase, allow};
use billing_console::{CurrentUser, Frame, listings};
use billing_domain::access::{Administrator, Principal};
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::idempotency::ScopedIdempotencyKey;
use maud::Markup;
use serde_json::Value;

use super::api_client::list;
use crate::auth::credentials::administrator_of_session;
use crate::caller::Caller;
use crate::middleware::RequestContext;
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::{catalog, dry_run};
use crate::state::{HttpState, state_of};

/// The administrator who requested a page.
#[derive(Clone)]
pub(super) struct SessionUser {
    pub(super) request: HttpRequest,
    pub(super) state: HttpState,
    /// Time zone of the default entity, in which pages show times.
    pub(super) zone: TimeZone,
    administrator: Administrator,
}

impl SessionUser {
    /// Authenticates the request.
    ///
    /// # Errors
    /// Returns a problem without a live session.
    pub(super) async fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let administrator = administrator_of_session(request).await?;
        RequestContext::of(request).is_by(&Principal::of_administrator(&administrator));
        let mut visitor = Self { request: request.clone(), state: state_of(request), zone: TimeZone::UTC, administrator };
        visitor.zone = visitor.usual_zone().await.unwrap_or(TimeZone::UTC);
        Ok(visitor)
    }

    async fn usual_zone(&self) -> Option<TimeZone> {
        let query = Query::of(listings::ENTITIES.path, "pageSize=1000").ok()?;
        let entities = list(catalog::list_entities(self.caller(UseCase::ListEntities), query)).await.ok()?.elements;
        let entities = entities.as_array()?;
        let entity = entities.iter().find(|entity| entity["default"] == true).or(entities.first())?;
        TimeZone::parse(entity["timezone"].as_str()?).ok()
    }

    /// Returns the visitor as an API caller.
    pub(super) fn caller(&self, use_case: UseCase) -> Caller {
        self.keyed(use_case, None)
    }

    /// Returns the visitor as an API caller with an idempotency key.
    pub(super) fn keyed(&self, use_case: UseCase, key: Option<ScopedIdempotencyKey>) -> Caller {
        let principal = Principal::of_administrator(&self.administrator).by_request(RequestContext::of(&self.request).id());
        Caller { state: self.state.clone(), principal, use_case, key, rehearses: false }
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
        CurrentUser { email: self.administrator.email.to_string(), is_owner: self.may(UseCase::ListAdministrators) }
    }

    /// Returns whether the visitor has a permission. Pages hide actions without permission.
    pub(super) fn may(&self, use_case: UseCase) -> bool {
        self.allow(use_case).is_ok()
    }

    /// Checks a permission.
    ///
    /// # Errors
    /// Returns a problem if the visitor lacks the permission.
    pub(super) fn allow(&self, use_case: UseCase) -> Result<(), Problem> {
        allow(&Principal::of_administrator(&self.administrator), use_case)?;
        Ok(())
    }

    /// Runs the operation on a path, which determines the use case, with an optional idempotency key.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn carry_out(
        &self,
        path: &str,
        key: Option<ScopedIdempotencyKey>,
        body: Option<Value>,
    ) -> Result<HttpResponse, Problem> {
        dry_run::carry_out(self.keyed(UseCase::RunDry, key), self.facts(), path, body).await
    }

    /// Runs the operation as a dry run.
    ///
    /// # Errors
    /// Returns the operation's refusal.
    pub(super) async fn rehearse(&self, path: &str, body: Option<Value>) -> Result<HttpResponse, Problem> {
        dry_run::carry_out(self.caller(UseCase::RunDry).rehearsing(), self.facts(), path, body).await
    }

    /// Returns a unique text for a form key: the request id.
    pub(super) fn unique(&self) -> String {
        self.facts().request_id
    }

    /// Returns the facts of the request.
    pub(super) fn facts(&self) -> RequestContext {
        RequestContext::of(&self.request)
    }
}

/// Returns the base URL of the service.
pub(super) fn service(request: &HttpRequest) -> String {
    state_of(request).settings().public_url.to_string()
}
