//! Who looks at the console: an administrator with a session.

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

/// An administrator who asked for a page.
#[derive(Clone)]
pub(super) struct SessionUser {
    pub(super) request: HttpRequest,
    pub(super) state: HttpState,
    /// The zone of the entity that bills unless another is named: whose days and clocks pages show.
    pub(super) zone: TimeZone,
    administrator: Administrator,
}

impl SessionUser {
    /// Whoever asks.
    ///
    /// # Errors
    /// Without a live session.
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

    /// As who asks the interface.
    pub(super) fn caller(&self, use_case: UseCase) -> Caller {
        self.keyed(use_case, None)
    }

    /// The same under a key, by which a repeat is known.
    pub(super) fn keyed(&self, use_case: UseCase, key: Option<ScopedIdempotencyKey>) -> Caller {
        let principal = Principal::of_administrator(&self.administrator).by_request(RequestContext::of(&self.request).id());
        Caller { state: self.state.clone(), principal, use_case, key, rehearses: false }
    }

    /// What is around a page for them.
    pub(super) fn frame(&self, title: String) -> Frame {
        Frame { who: Some(self.who()), ..Frame::bare(title, service(&self.request)) }
    }

    /// A page for them, with instants as clocks in their zone show them.
    pub(super) fn page(&self, frame: &Frame, body: &Markup) -> String {
        self.on_their_clocks(&billing_console::page(frame, body))
    }

    /// A part of a page for them, asked for by itself, likewise.
    pub(super) fn framed(&self, title: &str, part: &Markup) -> String {
        self.on_their_clocks(&billing_console::framed(title, part))
    }

    fn on_their_clocks(&self, page: &str) -> String {
        billing_console::with_instants(page, |exact| Timestamp::parse(exact).ok().map(|at| self.zone.written(at)))
    }

    /// Who it is, for what is around a page.
    pub(super) fn who(&self) -> CurrentUser {
        CurrentUser { email: self.administrator.email.to_string(), is_owner: self.may(UseCase::ListAdministrators) }
    }

    /// Whether they may do something: what they may not isn't offered.
    pub(super) fn may(&self, use_case: UseCase) -> bool {
        self.allow(use_case).is_ok()
    }

    /// Lets them see what only who may do something has a use for.
    ///
    /// # Errors
    /// When they may not.
    pub(super) fn allow(&self, use_case: UseCase) -> Result<(), Problem> {
        allow(&Principal::of_administrator(&self.administrator), use_case)?;
        Ok(())
    }

    /// Carries out the operation on a path, which says what it is for; under a key, by which a repeat is known.
    ///
    /// # Errors
    /// What refuses it.
    pub(super) async fn carry_out(
        &self,
        path: &str,
        key: Option<ScopedIdempotencyKey>,
        body: Option<Value>,
    ) -> Result<HttpResponse, Problem> {
        dry_run::carry_out(self.keyed(UseCase::RunDry, key), self.facts(), path, body).await
    }

    /// The same as a dry run.
    ///
    /// # Errors
    /// What refuses it.
    pub(super) async fn rehearse(&self, path: &str, body: Option<Value>) -> Result<HttpResponse, Problem> {
        dry_run::carry_out(self.caller(UseCase::RunDry).rehearsing(), self.facts(), path, body).await
    }

    /// A text that no other request has.
    pub(super) fn unique(&self) -> String {
        self.facts().request_id
    }

    /// What is known of the request.
    pub(super) fn facts(&self) -> RequestContext {
        RequestContext::of(&self.request)
    }
}

/// Where the service is reached.
pub(super) fn service(request: &HttpRequest) -> String {
    state_of(request).settings().public_url.to_string()
}
