//! Counting usage that is refused, on whichever way it comes: after its answer is known, and never in the way of others.

use std::sync::Arc;

use actix_web::ResponseError as _;
use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use billing_application::usage::RefusedEvent;
use billing_domain::access::RequestId;
use billing_domain::refs::OrganizationId;
use serde_json::Value;

use crate::caller::Caller;
use crate::problem::Problem;
use crate::state::HttpState;

/// What of a problem is counted.
struct RefusalReason<'p> {
    code: &'p str,
    pointer: Option<&'p str>,
    detail: &'p str,
}

/// Fields that name a customer and a usage product, in the order in which they count.
const CUSTOMER: [&str; 2] = ["customer_ref", "customer_name"];
const USAGE_PRODUCT: [&str; 2] = ["usage_product_ref", "usage_product_name"];

/// A word that says no more than that `errors` says more.
const INVALID: &str = "validation_failed";
const BATCH_REFUSED: &str = "batch_refused";
/// Sent again, it is taken.
const IN_PROGRESS: &str = "request_in_progress";

/// Whether a problem is that an event is refused, rather than that nothing can be taken now, or from whom it comes.
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
    /// Counts an event that was refused.
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
        // What isn't JSON stands as it was sent.
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

/// The events of a batch as they were sent, and who sent them: for those that are refused.
#[derive(Clone)]
pub(crate) struct SentEvents {
    state: HttpState,
    organization: OrganizationId,
    request_id: Option<RequestId>,
    sent: SentPayload,
}

/// As bytes: what they say takes many times their room.
#[derive(Clone)]
pub(crate) enum SentPayload {
    /// An object with `events`.
    Whole(Bytes),
    /// An event in each line.
    Lines(Arc<[Bytes]>),
}

impl SentEvents {
    pub(crate) fn of(caller: &Caller, sent: SentPayload) -> Self {
        let Caller { state, principal, .. } = caller;
        Self { state: state.clone(), organization: principal.organization(), request_id: principal.request_id().cloned(), sent }
    }

    /// Counts those events that are refused, each by its place.
    pub(crate) fn count<'p>(&self, refused: impl IntoIterator<Item = (usize, &'p Problem)>) {
        let refused: Vec<_> = refused.into_iter().filter(|(_, problem)| is_refusal(problem)).collect();
        self.count_all(refused.into_iter().map(|(index, problem)| (index, why(problem))));
    }

    /// Counts the events that a batch was refused for as a whole: each by what is said of it first.
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

/// What a line says, or the line.
pub(crate) fn read(line: &[u8]) -> Value {
    billing_json::read(line).unwrap_or_else(|_| String::from_utf8_lossy(line).into_owned().into())
}
