//! Who looks at the console: an administrator with a session.

use actix_web::HttpRequest;
use billing_application::UseCase;
use billing_console::Who;
use billing_domain::access::{Administrator, Need, Principal};
use billing_domain::idempotency::RequestKey;

use crate::auth::credentials::administrator_of_session;
use crate::caller::Caller;
use crate::middleware::Facts;
use crate::problem::Problem;
use crate::state::{HttpState, state_of};

/// An administrator who asked for a page.
pub(super) struct Visitor {
    pub(super) request: HttpRequest,
    pub(super) state: HttpState,
    administrator: Administrator,
}

impl Visitor {
    /// Whoever asks.
    ///
    /// # Errors
    /// Without a live session.
    pub(super) async fn of(request: &HttpRequest) -> Result<Self, Problem> {
        let administrator = administrator_of_session(request).await?;
        Facts::of(request).is_by(&Principal::of_administrator(&administrator));
        Ok(Self { request: request.clone(), state: state_of(request), administrator })
    }

    /// As who asks the interface.
    pub(super) fn caller(&self, use_case: UseCase) -> Caller {
        self.keyed(use_case, None)
    }

    /// The same under a key, by which a repeat is known.
    pub(super) fn keyed(&self, use_case: UseCase, key: Option<RequestKey>) -> Caller {
        let principal = Principal::of_administrator(&self.administrator).by_request(Facts::of(&self.request).id());
        Caller { state: self.state.clone(), principal, use_case, key, rehearses: false }
    }

    /// Who it is, for what is around a page.
    pub(super) fn who(&self) -> Who {
        Who { email: self.administrator.email.to_string(), is_owner: self.may(Need::Owner) }
    }

    /// Whether they have what something needs: what they may not isn't offered.
    pub(super) fn may(&self, need: Need) -> bool {
        Principal::of_administrator(&self.administrator).has(need)
    }

    /// A text that no other request has.
    pub(super) fn unique(&self) -> String {
        self.facts().request_id
    }

    /// What is known of the request.
    pub(super) fn facts(&self) -> Facts {
        Facts::of(&self.request)
    }
}

/// Where the service is reached.
pub(super) fn service(request: &HttpRequest) -> String {
    state_of(request).settings().public_url.to_string()
}
