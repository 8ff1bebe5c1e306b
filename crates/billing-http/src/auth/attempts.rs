//! Attempts to log in: their limits, and what is noted of failed ones.

use std::net::IpAddr;

use actix_web::HttpRequest;
use billing_api::problem::Problem;
use billing_application::access::{self, LogInName};
use billing_domain::access::RequestId;
use tracing::Instrument as _;

use super::address;
use super::gate::Attempt;
use crate::blocking::blocking;
use crate::context::RequestContext;
use crate::metrics::LogInKind;
use crate::state::{HttpState, state_of};

/// Counts an attempt to log in, and notes its failure.
pub(crate) async fn limited<T>(
    request: &HttpRequest,
    name: LogInName,
    attempted: impl AsyncFnOnce(&HttpState, Attempt) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let (state, principal) = (state_of(request), counted_as(&name));
    let client = address::client(request, &state.settings().trusted_proxies);
    let mut attempt = state.log_ins().log_in(client, &principal);
    if let LogInName::Email(email) = &name {
        attempt = recognized(&state, attempt, email).await?;
    }
    let answered = attempted(&state, attempt).await;
    match &answered {
        Ok(_) => state.log_ins().succeeded(attempt),
        Err(problem) => {
            state.log_ins().failed(attempt, problem);
            if problem.is_refused_credential() {
                let request_id = RequestContext::of(request).id();
                note_failed(state, FailedLogIn { name, request_id, address: attempt.address(), code: problem.code() });
            }
        }
    }
    answered
}

/// Returns an administrator's attempt as one from a known address, if the database knows the address: of log-ins before the
/// start of this server, or at other servers.
async fn recognized(state: &HttpState, attempt: Attempt, email: &str) -> Result<Attempt, Problem> {
    if !state.log_ins().needs_look_up(attempt) {
        return Ok(attempt);
    }
    let (email, address) = (email.to_owned(), attempt.address());
    let known =
        blocking(state.services(), move |services| Ok(access::known_addresses(services, &email)?.contains(services, address)));
    Ok(if known.await? { state.log_ins().recognize(attempt) } else { attempt })
}

/// A log-in with a rejected credential.
struct FailedLogIn {
    name: LogInName,
    request_id: Option<RequestId>,
    /// The address that the limits count.
    address: IpAddr,
    /// The code of the problem.
    code: &'static str,
}

/// Counts a failed log-in, and records it in the log and the audit log in the background. The response time must not depend
/// on whether the name exists.
fn note_failed(state: HttpState, failed: FailedLogIn) {
    let FailedLogIn { name, request_id, address, code } = failed;
    state.metrics().log_in_failed(match &name {
        LogInName::ApiKey(_) => LogInKind::Key,
        LogInName::Email(_) => LogInKind::Administrator,
    });
    let noting = async move {
        let noted = blocking(state.services(), move |services| access::note_failed_log_in(services, &name, request_id.as_ref()));
        match noted.await {
            Ok(account) => {
                // An unknown name stays out of the log, because people also type their passwords into this field.
                let account = account.map_or_else(|| "unknown".to_owned(), |account| account.to_string());
                tracing::info!(account, %address, code, "a log-in failed");
            }
            Err(problem) => {
                tracing::warn!(%address, code, reason = problem.code(), "a log-in failed, and the audit log cannot record it");
            }
        }
    };
    drop(actix_web::rt::spawn(noting.in_current_span()));
}

/// Returns the key for counting attempts. Nonexistent names are counted in the same way.
fn counted_as(name: &LogInName) -> String {
    match name {
        LogInName::ApiKey(api_key) => format!("key {api_key}"),
        LogInName::Email(email) => format!("admin {}", email.to_lowercase()),
    }
}
