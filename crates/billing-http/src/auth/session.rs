//! Administrator sessions: an encrypted cookie with a random id, and rows in the store.
//!
//! [`super::credentials`] loads the session from the store, because only that module knows whether the cookie is the
//! credential, and can report errors. In this module, the state of a session from a cookie is only its id.

use std::collections::HashMap;

use actix_session::config::{CookieContentSecurity, PersistentSession};
use actix_session::storage::{LoadError, SaveError, SessionKey, SessionStore, UpdateError};
use actix_session::{Session, SessionExt as _, SessionMiddleware};
use actix_web::HttpRequest;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Key, SameSite};
use billing_application::access::{self, SessionSecret};
use billing_domain::access::SESSION_ABSOLUTE_SECONDS;

use crate::blocking::blocking;
use crate::problem::Problem;
use crate::state::HttpState;

const ID: &str = "id";

/// Creates the middleware that reads and writes session cookies.
pub(crate) fn middleware(state: &HttpState) -> SessionMiddleware<Rows> {
    let secure = state.settings().public_url.is_https();
    // Browsers enforce the prefix: secure, this host only, and all paths.
    let name = if secure { "__Host-session" } else { "session" };
    let lifetime = PersistentSession::default().session_ttl(Duration::seconds(SESSION_ABSOLUTE_SECONDS));
    SessionMiddleware::builder(Rows(state.clone()), Key::from(state.settings().cookie_key.bytes()))
        .cookie_name(name.to_owned())
        .cookie_secure(secure)
        .cookie_http_only(true)
        .cookie_same_site(SameSite::Lax)
        .cookie_path("/".to_owned())
        .cookie_content_security(CookieContentSecurity::Private)
        .session_lifecycle(lifetime)
        .build()
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
        let ended = blocking(&self.0, move |services| access::end_session(services, &id)).await;
        ended.map_err(|problem| anyhow::anyhow!("{problem}"))
    }
}
