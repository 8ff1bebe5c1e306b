//! Facts about a request, which all of its handlers share.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest};
use billing_domain::access::{Actor, Principal, RequestId};
use billing_domain::refs::OrganizationId;

use crate::auth::address;
use crate::state::{HttpState, state_of};

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Time before the deadline at which a request without a complete body is rejected.
const TOLD_BEFORE: Duration = Duration::from_millis(20);

/// Facts about a request: those known on arrival, and those that the guard adds. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext(Arc<RequestFacts>);

#[derive(Debug)]
pub(crate) struct RequestFacts {
    pub(crate) method: Method,
    pub(crate) path: String,
    /// Identifies the request in the log.
    pub(crate) request_id: String,
    pub(crate) address: IpAddr,
    admitted: AuthOutcome,
    pub(crate) started: Instant,
    /// Time by which the response must be ready.
    pub(crate) deadline: tokio::time::Instant,
}

/// The operation and caller that the guard found, for the log line of the request.
#[derive(Debug, Default)]
struct AuthOutcome {
    /// Its id and path.
    operation: OnceLock<(&'static str, &'static str)>,
    who: OnceLock<(OrganizationId, Actor)>,
}

impl Deref for RequestContext {
    type Target = RequestFacts;

    fn deref(&self) -> &RequestFacts {
        &self.0
    }
}

impl RequestContext {
    /// Returns the time by which the body must arrive. It precedes the deadline, so that the sender still receives a
    /// response.
    pub(crate) fn body_deadline(&self) -> tokio::time::Instant {
        self.deadline.checked_sub(TOLD_BEFORE).unwrap_or(self.deadline)
    }

    /// Returns the request id for the audit log.
    pub(crate) fn id(&self) -> Option<RequestId> {
        RequestId::parse(&self.request_id)
    }

    /// Records the operation of the request by its id and path.
    pub(crate) fn is_for(&self, id: &'static str, path: &'static str) {
        self.admitted.operation.get_or_init(|| (id, path));
    }

    /// Returns id and path of the operation, if the request's path has one.
    pub(crate) fn operation(&self) -> Option<(&'static str, &'static str)> {
        self.admitted.operation.get().copied()
    }

    /// Returns the organization and actor of the request, if they are known.
    pub(crate) fn who(&self) -> Option<(OrganizationId, Actor)> {
        self.admitted.who.get().copied()
    }

    /// Records the caller of the request.
    pub(crate) fn is_by(&self, principal: &Principal) {
        self.admitted.who.get_or_init(|| (principal.organization(), principal.actor()));
    }

    /// Returns the facts that the outermost middleware recorded for the request.
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let noted = request.extensions().get::<Self>().cloned();
        noted.unwrap_or_else(|| Self::note(request))
    }

    /// Collects the facts of a request that arrives.
    pub(crate) fn note(request: &HttpRequest) -> Self {
        let state = state_of(request);
        Self(Arc::new(RequestFacts {
            method: request.method().clone(),
            path: request.path().to_owned(),
            request_id: request_id(request, &state),
            address: address::of(request, &state.settings().trusted_proxies),
            admitted: AuthOutcome::default(),
            started: Instant::now(),
            deadline: tokio::time::Instant::now() + state.settings().request_timeout,
        }))
    }
}

impl FromRequest for RequestContext {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::of(request)))
    }
}

/// Returns the caller's request id if it is safe in logs and headers, else a generated one.
fn request_id(request: &HttpRequest, state: &HttpState) -> String {
    let theirs = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).filter(|id| RequestId::parse(id).is_some());
    theirs.map_or_else(|| state.services().ids.new_id().to_string(), str::to_owned)
}
