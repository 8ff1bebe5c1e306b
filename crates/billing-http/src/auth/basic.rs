//! HTTP Basic: an API key and its password with each request, instead of a bearer token.
//!
//! The first request logs in. The server remembers what a token would contain for as long as a token lasts, under the digest of the
//! key and its password. So each request is authorized like one with a token, and the key is still looked up every time.

use std::fmt;

use actix_web::HttpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_api::problem::Problem;
use billing_application::access::{self, LogInName};
use billing_domain::access::TokenClaims;

use super::attempts::limited;
use crate::blocking::blocking;
use crate::context::RequestContext;
use crate::state::state_of;

/// An API key with its password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyCredential {
    pub(crate) api_key: String,
    pub(crate) password: String,
}

impl fmt::Debug for KeyCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyCredential({}:***)", self.api_key)
    }
}

impl KeyCredential {
    /// Decodes the value after the scheme.
    pub(crate) fn decode(value: &str) -> Option<Self> {
        let text = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
        let (api_key, password) = text.split_once(':')?;
        Some(Self { api_key: api_key.to_owned(), password: password.to_owned() })
    }
}

/// Returns what a token of the key would contain. Logs in, within the limits of log-ins, unless the server remembers the log-in.
pub(crate) async fn claims_of(request: &HttpRequest, key: KeyCredential) -> Result<TokenClaims, Problem> {
    let state = state_of(request);
    let services = state.services();
    let now = services.machine_now();
    // A key has no line break, so no other key and password are the same text.
    let digest = services.keys.digest(&format!("{}\n{}", key.api_key, key.password)).0;
    if let Some(claims) = state.remembered_log_ins().find(&digest, now) {
        return Ok(claims);
    }
    let KeyCredential { api_key, password } = key;
    let by = RequestContext::of(request).id();
    let claims = limited(request, LogInName::ApiKey(api_key.clone()), async |state, attempt| {
        state.log_ins().check(attempt)?;
        blocking(state.services(), move |services| access::claims_of_key(services, &api_key, &password, by.as_ref())).await
    })
    .await?;
    state.remembered_log_ins().remember(digest, claims.clone(), now);
    Ok(claims)
}
