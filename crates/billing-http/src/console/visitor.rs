//! Who looks at the console: an administrator with a session.

use actix_session::SessionExt as _;
use actix_web::{HttpRequest, HttpResponse};
use billing_application::UseCase;
use billing_console::{LogIn, ROOT};
use billing_domain::access::Principal;
use billing_domain::idempotency::RequestKey;

use super::reply::{to, told};
use super::said::{self, Said};
use crate::auth::credentials::principal_of_session;
use crate::caller::Caller;
use crate::middleware::Facts;
use crate::problem::Problem;
use crate::routes::auth::log_in_by;
use crate::state::{HttpState, state_of};

/// An administrator who asked for a page.
pub(super) struct Visitor {
    pub(super) request: HttpRequest,
    pub(super) state: HttpState,
    principal: Principal,
}

impl Visitor {
    /// Whoever asks.
    ///
    /// # Errors
    /// Without a live session.
    pub(super) async fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let principal = principal_of_session(request).await?;
        Facts::of(request).is_by(&principal);
        Ok(Self { request: request.clone(), state: state_of(request), principal })
    }

    /// As who asks the interface.
    pub(super) fn caller(&self, use_case: UseCase) -> Caller {
        self.keyed(use_case, None)
    }

    /// The same under a key, by which a repeat is known.
    pub(super) fn keyed(&self, use_case: UseCase, key: Option<RequestKey>) -> Caller {
        Caller { state: self.state.clone(), principal: self.principal.clone(), use_case, key }
    }

    /// A text that no other request has.
    pub(super) fn unique(&self) -> String {
        Facts::of(&self.request).request_id
    }
}

/// Where the service is reached.
pub(super) fn service(request: &HttpRequest) -> String {
    state_of(request).settings().public_url.to_string()
}

/// Logs an administrator in, and shows where they wanted to go.
pub(super) async fn log_in(request: &HttpRequest, said: &Said) -> HttpResponse {
    let field = |name| said::field(said, name).unwrap_or_default().to_owned();
    let (email, next) = (field("email"), field("next"));
    match log_in_by(request, &request.get_session(), email.clone(), field("password")).await {
        Ok(_) => to(if is_own(&next) { &next } else { ROOT }),
        Err(problem) => {
            let page = billing_console::log_in(&LogIn { email, next, refused: Some(problem.detail().to_owned()) });
            told(problem, page)
        }
    }
}

/// Whether it is a page of the console: nobody is sent elsewhere.
fn is_own(next: &str) -> bool {
    let below = next.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    below && !next.contains(['\\', '\r', '\n']) && !next.contains("//")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_leads_to_pages_of_the_console_alone() {
        for (next, expected) in [
            ("/console", true),
            ("/console/documents?state=DRAFT", true),
            ("/console?x", true),
            ("", false),
            ("//evil.example", false),
            ("https://evil.example/console", false),
            ("/consoles", false),
            ("/console//evil.example", false),
            ("/console/\\evil.example", false),
            ("/console/\r\nSet-Cookie: x", false),
        ] {
            assert_eq!(is_own(next), expected, "{next:?}");
        }
    }
}
