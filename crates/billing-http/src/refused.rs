//! Counts rejected usage on all ingestion paths. Counting happens after the response is decided and does not delay other
//! requests.

use std::sync::Arc;

use actix_web::ResponseError as _;
use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use billing_application::usage::RefusedEvent;
use billing_domain::access::RequestId;
use billing_domain::refs::OrganizationId;
use serde_json::Value;

use crate::call::Call;
use crate::problem::Problem;
use crate::state::HttpState;

/// The parts of a problem that are counted.
struct RefusalReason<'p> {
    code: &'p str,
    pointer: Option<&'p str>,
    detail: &'p str,
}

/// Fields that identify a customer and a usage product, in order of precedence.
const CUSTOMER: [&str; 2] = ["customer_ref", "customer_name"];
const USAGE_PRODUCT: [&str; 2] = ["usage_product_ref", "usage_product_name"];

/// Generic code; the first entry of `errors` has the specific one.
const INVALID: &str = "validation_failed";
const BATCH_REFUSED: &str = "batch_refused";
/// Not a refusal: the same request can succeed later.
const IN_PROGRESS: &str = "request_in_progress";

/// Returns whether a problem rejects the event itself. Unavailability and credential problems are not refusals.
pub(crate) fn is_refusal(problem: &Problem) -> bool {
    matches!(problem.status_code(), StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY)
        && problem.code() != IN_PROGRESS
}

fn why(problem: &Problem) -> RefusalReason<'_> {
    let first = problem.errors().first();
    RefusalReason {
        code: first.filter(|_| problem.code() == INVALID).map_or(problem.code(), |first| first.code),
        pointer: first.map(|first| first.pointer.as_str()),
        detail: first.map_or(problem.detail(), |first| first.detail.as_str()),
    }
}

impl HttpState {
    /// Counts a rejected event.
    pub(crate) fn count_refused(
        &self,
        organization: OrganizationId,
        event: &Value,
        problem: &Problem,
        request_id: Option<RequestId>,
    ) {
        if is_refusal(problem) {
            self.count(organization, event, &why(problem), request_id);
        }
    }

    fn count(&self, organization: OrganizationId, event: &Value, why: &RefusalReason<'_>, request_id: Option<RequestId>) {
        let told = |names: [&str; 2]| names.into_iter().find_map(|name| event[name].as_str()).unwrap_or_default();
        // Events that are not JSON are recorded as sent.
        let text = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        let refused = RefusedEvent {
            organization,
            code: why.code,
            customer_ref: told(CUSTOMER),
            usage_product_ref: told(USAGE_PRODUCT),
            event: &text,
            pointer: why.pointer,
            detail: why.detail,
            request_id,
        };
        self.refused_usage().count(self.services(), refused);
    }
}

/// The raw events of a batch and their sender, for counting the rejected ones.
#[derive(Clone)]
pub(crate) struct SentEvents {
    state: HttpState,
    organization: OrganizationId,
    request_id: Option<RequestId>,
    sent: SentPayload,
}

/// The raw bytes of a batch. Parsed values take many times more memory.
#[derive(Clone)]
pub(crate) enum SentPayload {
    /// One object with `events`.
    Whole(Bytes),
    /// One event per line.
    Lines(Arc<[Bytes]>),
}

impl SentEvents {
    /// Creates the events of a call.
    ///
    /// # Errors
    /// Returns an internal error if the principal is unknown.
    pub(crate) fn of(call: &Call, sent: SentPayload) -> Result<Self, Problem> {
        let (state, principal) = (call.state.clone(), call.principal()?);
        Ok(Self { state, organization: principal.organization(), request_id: principal.request_id().cloned(), sent })
    }

    /// Counts the rejected events by index.
    pub(crate) fn count<'p>(&self, refused: impl IntoIterator<Item = (usize, &'p Problem)>) {
        let refused: Vec<_> = refused.into_iter().filter(|(_, problem)| is_refusal(problem)).collect();
        self.count_all(refused.into_iter().map(|(index, problem)| (index, why(problem))));
    }

    /// Counts the events for which a batch was rejected as a whole, each by its first error.
    pub(crate) fn count_whole(&self, problem: &Problem) {
        if problem.code() != BATCH_REFUSED {
            return;
        }
        let mut last = None;
        let of_event = problem.errors().iter().filter_map(|error| {
            let below = error.pointer.strip_prefix("/events/")?;
            let (index, pointer) = below.find('/').map_or((below, ""), |slash| below.split_at(slash));
            let index = index.parse::<usize>().ok().filter(|index| last.replace(*index) != Some(*index))?;
            let pointer = Some(pointer).filter(|pointer| !pointer.is_empty());
            Some((index, RefusalReason { code: error.code, pointer, detail: &error.detail }))
        });
        self.count_all(of_event);
    }

    fn count_all<'p>(&self, refused: impl Iterator<Item = (usize, RefusalReason<'p>)>) {
        let mut refused = refused.peekable();
        if refused.peek().is_none() {
            return;
        }
        let whole = match &self.sent {
            SentPayload::Whole(bytes) => billing_json::read(bytes).unwrap_or_default(),
            SentPayload::Lines(_) => Value::Null,
        };
        for (index, why) in refused {
            let event = match &self.sent {
                SentPayload::Whole(_) => whole["events"][index].clone(),
                SentPayload::Lines(lines) => lines.get(index).map_or(Value::Null, |line| read(line)),
            };
            self.state.count(self.organization, &event, &why, self.request_id.clone());
        }
    }
}

/// Parses a line as JSON, or returns the line as a string.
pub(crate) fn read(line: &[u8]) -> Value {
    billing_json::read(line).unwrap_or_else(|_| String::from_utf8_lossy(line).into_owned().into())
}
