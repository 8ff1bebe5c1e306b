//! Who sent a request. The usage writer looks up the key of a bearer token itself, so some requests are handled before their
//! token is looked up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use billing_application::access::authenticate;
use billing_application::{UseCase, allow};
use billing_domain::access::{Principal, RequestId, TokenClaims};

use crate::blocking::blocking;
use crate::event_excerpt::EventExcerpt;
use crate::state::HttpState;
use billing_api::problem::Problem;

/// Who sent a request.
#[derive(Clone)]
pub(crate) enum Identity {
    /// An authenticated principal.
    Known(Principal),
    /// The sender of a usage event. The usage writer looks up the token's key.
    Unchecked(DeferredTokenCheck),
}

/// A bearer token whose key is not looked up yet, and whether the lookup has happened since.
#[derive(Clone)]
pub(crate) struct DeferredTokenCheck {
    pub(crate) claims: TokenClaims,
    pub(crate) use_case: UseCase,
    pub(crate) seen: Arc<TokenCheckState>,
}

/// State of a request whose token is not looked up yet.
#[derive(Default)]
pub(crate) struct TokenCheckState {
    pub(crate) is_checked: AtomicBool,
    /// The request's event, if it was rejected before the lookup.
    pub(crate) refused: Mutex<Option<Box<(EventExcerpt, Problem)>>>,
}

impl DeferredTokenCheck {
    pub(crate) fn new(claims: TokenClaims, use_case: UseCase) -> Self {
        Self { claims, use_case, seen: Arc::default() }
    }

    /// Returns whether the key was looked up.
    pub(crate) fn is_checked(&self) -> bool {
        self.seen.is_checked.load(Ordering::Relaxed)
    }

    /// Looks up the key and checks its permission. Counts an event that was rejected before the lookup.
    pub(crate) async fn check(&self, state: &HttpState, request_id: Option<RequestId>) -> Result<Principal, Problem> {
        let Self { claims, use_case, .. } = self.clone();
        let checked = blocking(state.services(), move |services| {
            let principal = authenticate(services, &claims)?;
            allow(&principal, use_case)?;
            Ok(principal)
        });
        let principal = checked.await?;
        self.seen.is_checked.store(true, Ordering::Relaxed);
        let refused = self.seen.refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((event, problem)) = refused.map(|refused| *refused) {
            state.count_refused_excerpt(principal.organization(), &event, &problem, request_id);
        }
        Ok(principal)
    }
}
