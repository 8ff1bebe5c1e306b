//! Counts rejected usage on all ingestion paths. Counting happens after the response is decided and does not delay other
//! requests.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{self, Bytes};
use billing_application::usage::RefusedEvent;
use billing_domain::access::RequestId;
use billing_domain::limit::LimitReached;
use billing_domain::refs::OrganizationId;
use serde_json::Value;

use crate::call::Call;
use crate::event_excerpt::EventExcerpt;
use crate::state::HttpState;
use billing_api::problem::Problem;

/// The parts of a problem that are counted.
struct RefusalReason<'p> {
    code: &'static str,
    pointer: Option<&'p str>,
    detail: &'p str,
    limit: Option<&'p LimitReached>,
}

/// Generic codes; the first entry of `errors` has the specific one.
const GENERIC: [&str; 2] = ["validation_failed", "batch_refused"];
/// Not a refusal: the same request can succeed later.
const IN_PROGRESS: &str = "request_in_progress";

/// Returns whether a problem rejects the event itself. Unavailability and credential problems are not refusals.
pub(crate) fn is_refusal(problem: &Problem) -> bool {
    matches!(problem.status(), StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY)
        && problem.code() != IN_PROGRESS
}

fn why(problem: &Problem) -> RefusalReason<'_> {
    let first = problem.errors().first();
    RefusalReason {
        code: first.filter(|_| GENERIC.contains(&problem.code())).map_or(problem.code(), |first| first.code),
        pointer: first.map(|first| first.pointer.as_str()),
        detail: first.map_or(problem.detail(), |first| first.detail.as_str()),
        limit: problem.limit_reached(),
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
            self.count(organization, &EventExcerpt::of(event), &why(problem), request_id);
        }
    }

    /// Counts a rejected event of which an excerpt was made.
    pub(crate) fn count_refused_excerpt(
        &self,
        organization: OrganizationId,
        event: &EventExcerpt,
        problem: &Problem,
        request_id: Option<RequestId>,
    ) {
        if is_refusal(problem) {
            self.count(organization, event, &why(problem), request_id);
        }
    }

    fn count(&self, organization: OrganizationId, event: &EventExcerpt, why: &RefusalReason<'_>, request_id: Option<RequestId>) {
        let refused = RefusedEvent {
            organization,
            code: why.code,
            customer_ref: &event.customer_ref,
            usage_product_ref: &event.usage_product_ref,
            event: &event.text,
            pointer: why.pointer,
            detail: why.detail,
            request_id,
            limit: why.limit,
        };
        self.metrics().event_refused(why.code);
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
    /// One object with `events`, or the array of events.
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

    /// Counts rejected events. Parses the batch again, so a large batch is counted on a blocking thread.
    pub(crate) fn count(&self, rejected: &[RejectedEvent]) {
        if rejected.is_empty() {
            return;
        }
        match &self.sent {
            SentPayload::Whole(bytes) => {
                let whole = billing_json::read(bytes).unwrap_or_default();
                let events = if whole.is_array() { &whole } else { &whole["events"] };
                rejected.iter().for_each(|event| self.count_event(event, &events[event.index]));
            }
            SentPayload::Lines(lines) => {
                let sent = |index: usize| lines.get(index).map_or(Value::Null, |line| read(line));
                rejected.iter().for_each(|event| self.count_event(event, &sent(event.index)));
            }
        }
    }

    /// Counts rejected events on a blocking thread.
    pub(crate) async fn count_on_a_thread(self, rejected: Vec<RejectedEvent>) {
        if !rejected.is_empty() {
            // An error is a panic, which the panic hook has already logged.
            web::block(move || self.count(&rejected)).await.ok();
        }
    }

    fn count_event(&self, rejected: &RejectedEvent, sent: &Value) {
        let RejectedEvent { code, pointer, detail, limit, .. } = rejected;
        let why = RefusalReason { code, pointer: pointer.as_deref(), detail, limit: limit.as_deref() };
        self.state.count(self.organization, &EventExcerpt::of(sent), &why, self.request_id.clone());
    }
}

/// An event of a batch that was rejected, with the parts of its problem that are counted. Its problem itself may have a hundred
/// errors.
pub(crate) struct RejectedEvent {
    /// Position in the batch.
    index: usize,
    code: &'static str,
    pointer: Option<String>,
    detail: String,
    limit: Option<Box<LimitReached>>,
}

impl RejectedEvent {
    pub(crate) fn of(index: usize, problem: &Problem) -> Self {
        let RefusalReason { code, pointer, detail, limit } = why(problem);
        let limit = limit.map(|limit| Box::new(limit.clone()));
        Self { index, code, pointer: pointer.map(str::to_owned), detail: detail.to_owned(), limit }
    }
}

/// Parses a line as JSON, or returns the line as a string.
pub(crate) fn read(line: &[u8]) -> Value {
    billing_json::read(line).unwrap_or_else(|_| String::from_utf8_lossy(line).into_owned().into())
}
