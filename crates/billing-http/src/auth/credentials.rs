//! The credential of a request and its permissions.

use actix_web::HttpRequest;
use actix_web::http::header::{AUTHORIZATION, HOST, ORIGIN};
use billing_application::access::LiveSession;
use billing_application::{Services, UseCase, access, allow};
use billing_domain::access::{Principal, TokenClaims};

use super::basic::{KeyCredential, claims_of};
use super::session;
use crate::blocking::blocking;
use crate::state::state_of;
use billing_api::operation::{AuthRequirement, Flag, OperationSpec};
use billing_api::problem::Problem;

const BEARER: &str = "bearer";
const BASIC: &str = "basic";

/// The credential that a request sends. The cookie is ignored if an `Authorization` header is present.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PresentedCredential {
    Nothing,
    /// An `Authorization` header that has neither a bearer token nor a key with its password.
    Unreadable,
    Bearer(String),
    /// An API key with its password.
    Key(KeyCredential),
    /// The session id from the cookie.
    Session(String),
}

/// Returns the credential of a request.
pub(crate) fn shown(request: &HttpRequest) -> PresentedCredential {
    let mut headers = request.headers().get_all(AUTHORIZATION);
    match (headers.next(), headers.next()) {
        (None, _) => session::id(request).map_or(PresentedCredential::Nothing, PresentedCredential::Session),
        (Some(only), None) => only.to_str().ok().and_then(authorization).unwrap_or(PresentedCredential::Unreadable),
        (Some(_), Some(_)) => PresentedCredential::Unreadable,
    }
}

fn authorization(header: &str) -> Option<PresentedCredential> {
    let (scheme, value) = header.split_once(' ')?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case(BEARER) && !value.is_empty() {
        return Some(PresentedCredential::Bearer(value.to_owned()));
    }
    if scheme.eq_ignore_ascii_case(BASIC) { KeyCredential::decode(value).map(PresentedCredential::Key) } else { None }
}

/// The caller, as far as it is known before the handler runs.
pub(crate) enum CheckedCredential {
    /// The operation does not depend on a caller.
    Nobody,
    /// An authenticated caller with the required permission.
    Known(Principal),
    /// The claims of a token that this service issued. The usage writer looks up the key later.
    Bearer(TokenClaims, UseCase),
}

/// Authenticates the caller, if the operation requires a credential.
pub(crate) async fn check(operation: &OperationSpec, request: &HttpRequest) -> Result<CheckedCredential, Problem> {
    match operation.needs {
        AuthRequirement::Nothing => Ok(CheckedCredential::Nobody),
        AuthRequirement::Anything => match shown(request) {
            PresentedCredential::Session(_) => check_origin(operation, request).map(|()| CheckedCredential::Nobody),
            PresentedCredential::Nothing
            | PresentedCredential::Unreadable
            | PresentedCredential::Bearer(_)
            | PresentedCredential::Key(_) => Ok(CheckedCredential::Nobody),
        },
        AuthRequirement::Permission(use_case) => {
            let principal = match shown(request) {
                PresentedCredential::Nothing => return Err(Problem::unauthenticated(false)),
                PresentedCredential::Unreadable => return Err(Problem::unauthenticated(true)),
                PresentedCredential::Bearer(token) if operation.is(Flag::Grouped) => {
                    let claims = access::read_token(state_of(request).services(), &token)?;
                    return Ok(CheckedCredential::Bearer(claims, use_case));
                }
                PresentedCredential::Bearer(token) => by_token(request, token).await?,
                PresentedCredential::Key(key) => {
                    // A browser could have stored the key for this site, although the service never asks for it.
                    check_origin(operation, request)?;
                    let claims = claims_of(request, key).await?;
                    if operation.is(Flag::Grouped) {
                        return Ok(CheckedCredential::Bearer(claims, use_case));
                    }
                    let look_up = move |services: &Services| access::authenticate(services, &claims);
                    blocking(state_of(request).services(), look_up).await?
                }
                PresentedCredential::Session(id) => by_session(operation, request, id).await?,
            };
            // This check precedes reading the body; the use case checks again.
            allow(&principal, use_case)?;
            Ok(CheckedCredential::Known(principal))
        }
    }
}

async fn by_token(request: &HttpRequest, token: String) -> Result<Principal, Problem> {
    let by_token = move |services: &Services| access::authenticate(services, &access::read_token(services, &token)?);
    blocking(state_of(request).services(), by_token).await
}

async fn by_session(operation: &OperationSpec, request: &HttpRequest, id: String) -> Result<Principal, Problem> {
    let live = live(request, id).await?;
    check_origin(operation, request)?;
    Ok(live.principal(state_of(request).services().machine_now()))
}

/// Returns the session of the cookie, even if the request has another credential.
pub(crate) async fn live_session(request: &HttpRequest) -> Result<LiveSession, Problem> {
    live(request, session::id(request).ok_or_else(|| Problem::unauthenticated(false))?).await
}

async fn live(request: &HttpRequest, id: String) -> Result<LiveSession, Problem> {
    let session = blocking(state_of(request).services(), move |services| access::find_session(services, &id)).await?;
    session.ok_or_else(|| Problem::unauthenticated(true))
}

fn check_origin(operation: &OperationSpec, request: &HttpRequest) -> Result<(), Problem> {
    if operation.changes_state() && is_foreign(request) { Err(Problem::cross_site()) } else { Ok(()) }
}

/// Returns whether the request comes from a page of another origin. Browsers attach the cookie to requests of every page,
/// and state the page's origin. Other clients send no origin.
pub(crate) fn is_foreign(request: &HttpRequest) -> bool {
    let site = request.headers().get("sec-fetch-site").map(|site| site.as_bytes());
    let foreign_site = site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"));
    let foreign_origin = request.headers().get_all(ORIGIN).any(|origin| !is_own_origin(request, origin.as_bytes()));
    foreign_site || foreign_origin
}

/// Accepts the public origin or the request's own host, because a browser does not let foreign pages choose the `Host`
/// header.
fn is_own_origin(request: &HttpRequest, origin: &[u8]) -> bool {
    let state = state_of(request);
    let host = request.headers().get(HOST).map_or(&b""[..], |host| host.as_bytes());
    let host_of_origin = origin.strip_prefix(b"https://").or_else(|| origin.strip_prefix(b"http://"));
    origin == state.settings().public_url.origin().as_bytes() || host_of_origin.is_some_and(|own| !own.is_empty() && own == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_one_word_after_its_scheme() {
        let bearer = |token: &str| Some(PresentedCredential::Bearer(token.to_owned()));
        let key = |api_key: &str, password: &str| {
            Some(PresentedCredential::Key(KeyCredential { api_key: api_key.to_owned(), password: password.to_owned() }))
        };
        for (header, expected) in [
            ("Bearer abc", bearer("abc")),
            ("bearer  abc ", bearer("abc")),
            ("Bearer", None),
            ("Bearer ", None),
            ("Basic a2V5OnBhc3N3b3Jk", key("key", "password")),
            ("basic  a2V5OmE6Yg== ", key("key", "a:b")),
            ("Basic a2V5Og==", key("key", "")),
            ("Basic a2V5", None),
            ("Basic a2V5OnBhc3N3b3J", None),
            ("Basic /zo6", None),
            ("Basic ", None),
            ("abc", None),
            ("", None),
        ] {
            assert_eq!(authorization(header), expected, "{header:?}");
        }
    }
}
