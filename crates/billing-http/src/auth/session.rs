//! Administrator sessions: an encrypted cookie with a random id, and rows in the store. Requests that cannot have a session pass
//! by the library of session cookies.
//!
//! [`super::credentials`] loads the session from the store, because only that module knows whether the cookie is the
//! credential, and can report errors. In this module, the state of a session from a cookie is only its id.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use actix_session::config::{CookieContentSecurity, PersistentSession};
use actix_session::storage::{LoadError, SaveError, SessionKey, SessionStore, UpdateError};
use actix_session::{Session, SessionExt as _, SessionMiddleware};
use actix_web::body::BoxBody;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Key, SameSite};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use actix_web::http::header::COOKIE;
use actix_web::{Error, HttpRequest};
use billing_application::access::{self, SessionSecret};
use billing_domain::access::SESSION_ABSOLUTE_SECONDS;
use futures_util::future::Either;

use crate::blocking::blocking;
use crate::state::HttpState;
use billing_api::operation::VERSIONED_BELOW;
use billing_api::problem::Problem;

const ID: &str = "id";

/// The middleware that reads and writes session cookies.
pub(crate) struct SessionCookies(SessionMiddleware<Rows>);

impl<S> Transform<S, ServiceRequest> for SessionCookies
where
    S: Service<ServiceRequest, Response = ServiceResponse<BoxBody>, Error = Error> + 'static,
    S::Future: 'static,
{
    type Response = ServiceResponse<BoxBody>;
    type Error = Error;
    type Transform = SessionSwitch<S, <SessionMiddleware<Rows> as Transform<Rc<S>, ServiceRequest>>::Transform>;
    type InitError = ();
    type Future = Pin<Box<dyn Future<Output = Result<Self::Transform, ()>>>>;

    fn new_transform(&self, service: S) -> Self::Future {
        let direct = Rc::new(service);
        let with_session = self.0.new_transform(Rc::clone(&direct));
        Box::pin(async move { Ok(SessionSwitch { direct, with_session: with_session.await? }) })
    }
}

/// Passes a request on, with its session if it can have one.
pub(crate) struct SessionSwitch<D, W> {
    direct: Rc<D>,
    with_session: W,
}

impl<D, W> Service<ServiceRequest> for SessionSwitch<D, W>
where
    D: Service<ServiceRequest, Response = ServiceResponse<BoxBody>, Error = Error>,
    W: Service<ServiceRequest, Response = ServiceResponse<BoxBody>, Error = Error>,
{
    type Response = ServiceResponse<BoxBody>;
    type Error = Error;
    type Future = Either<D::Future, W::Future>;

    forward_ready!(with_session);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        if may_have_session(&request) {
            Either::Right(self.with_session.call(request))
        } else {
            Either::Left(self.direct.call(request))
        }
    }
}

/// Returns whether a request has a session, or may begin one. No operation below the path of the API begins one: a log-in has
/// another path.
fn may_have_session(request: &ServiceRequest) -> bool {
    // The decoded path, because another spelling of the path of a log-in is a log-in, too.
    request.headers().contains_key(COOKIE) || !request.match_info().as_str().starts_with(VERSIONED_BELOW)
}

/// Creates the middleware that reads and writes session cookies.
pub(crate) fn middleware(state: &HttpState) -> SessionCookies {
    let secure = state.settings().public_url.is_https();
    // Browsers enforce the prefix: secure, this host only, and all paths.
    let name = if secure { "__Host-session" } else { "session" };
    let lifetime = PersistentSession::default().session_ttl(Duration::seconds(SESSION_ABSOLUTE_SECONDS));
    let library = SessionMiddleware::builder(Rows(state.clone()), Key::from(state.settings().cookie_key.bytes()))
        .cookie_name(name.to_owned())
        .cookie_secure(secure)
        .cookie_http_only(true)
        .cookie_same_site(SameSite::Lax)
        .cookie_path("/".to_owned())
        .cookie_content_security(CookieContentSecurity::Private)
        .session_lifecycle(lifetime)
        .build();
    SessionCookies(library)
}

/// Returns the id in the session cookie. The session may be expired.
pub(crate) fn id(request: &HttpRequest) -> Option<String> {
    request.get_session().get(ID).ok().flatten()
}

/// Returns the id in the session cookie, for operations that require a session. The store has only a hash of the id.
///
/// # Errors
/// Returns an internal error without a cookie, which a correct operation table rules out.
pub(crate) fn shown(request: &HttpRequest) -> Result<String, Problem> {
    id(request).ok_or_else(Problem::internal)
}

/// Sets the cookie of a new session, and replaces an existing cookie.
pub(crate) fn begin(session: &Session, secret: &SessionSecret) -> Result<(), Problem> {
    session.renew();
    session.insert(ID, &secret.0).map_err(|_| Problem::internal())
}

/// Session storage backed by the store.
pub(crate) struct Rows(HttpState);

type State = HashMap<String, String>;

impl SessionStore for Rows {
    async fn load(&self, key: &SessionKey) -> Result<Option<State>, LoadError> {
        let id = serde_json::to_string(key.as_ref()).map_err(|error| LoadError::Deserialization(error.into()))?;
        Ok(Some(State::from([(ID.to_owned(), id)])))
    }

    /// Saves nothing: the session is in the store already, see [`begin`].
    async fn save(&self, state: State, _: &Duration) -> Result<SessionKey, SaveError> {
        let id = state.get(ID).and_then(|json| serde_json::from_str::<String>(json).ok());
        let id = id.ok_or_else(|| SaveError::Serialization(anyhow::anyhow!("a session without an id")))?;
        SessionKey::try_from(id).map_err(|error| SaveError::Other(error.into()))
    }

    /// Updates nothing: a session's state never changes, see [`begin`].
    async fn update(&self, _: SessionKey, _: State, _: &Duration) -> Result<SessionKey, UpdateError> {
        Err(UpdateError::Other(anyhow::anyhow!("a session was changed without being renewed")))
    }

    /// Does nothing: the lookup records the use.
    async fn update_ttl(&self, _: &SessionKey, _: &Duration) -> Result<(), anyhow::Error> {
        Ok(())
    }

    async fn delete(&self, key: &SessionKey) -> Result<(), anyhow::Error> {
        let id = key.as_ref().to_owned();
        let ended = blocking(self.0.services(), move |services| access::end_session(services, &id)).await;
        ended.map_err(|problem| anyhow::anyhow!("{problem}"))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_requests_to_the_api_without_a_cookie_cannot_have_a_session() {
        for (path, cookie, expected) in [
            ("/api/usage/event", None, false),
            ("/api/usage/event", Some("session=x"), true),
            ("/auth/login", None, true),
            ("/%61uth/login", None, true),
            ("/console/log-in", None, true),
            ("/", None, true),
        ] {
            let request = TestRequest::with_uri(path);
            let request = cookie.into_iter().fold(request, |request, cookie| request.insert_header((COOKIE, cookie)));
            assert_eq!(may_have_session(&request.to_srv_request()), expected, "{path} {cookie:?}");
        }
    }
}
