//! CloudEvents in requests: the attributes that identify an event. A usage format maps the event to its fields.

use billing_application::usage::{MAX_BATCH_EVENTS, SentRecord};
use billing_domain::event_input::OnConflict;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::violation::Violations;
use serde_json::Value;

use super::batch::EventInPlace;
use super::declare::{Listed, body, wire};
use super::wire::FreeFormEvent;

/// The supported version of the specification.
const SPEC_VERSION: &str = "1.0";
/// The code of an event that is no CloudEvent of this version, or not in the structured mode.
const UNSUPPORTED: &str = "unsupported_cloudevent";

/// Reads a CloudEvent. Its `source` and `id` are its key. Its time of receipt is unknown.
///
/// # Errors
/// Returns the violations of the attributes that are needed before a usage format reads the others.
pub fn read_cloud_event(event: &Value) -> Result<SentRecord, Violations> {
    let Value::Object(attributes) = event else { return Err(Violations::one(&[], "wrong_type", "must be an object")) };
    if attributes.get("specversion").and_then(Value::as_str) != Some(SPEC_VERSION) {
        let detail = format!("must be \"{SPEC_VERSION}\": send the event as CloudEvents {SPEC_VERSION}");
        return Err(Violations::one(&["specversion"], UNSUPPORTED, detail));
    }
    let mut violations = Violations::none();
    let mut identifying = |name: &'static str| match attributes.get(name) {
        None | Some(Value::Null) => {
            violations.add(&[name], "required", "must be given, because source and id identify a CloudEvent");
            ""
        }
        Some(Value::String(text)) if text.is_empty() => {
            violations.add(&[name], "empty", "must not be empty, because source and id identify a CloudEvent");
            ""
        }
        Some(Value::String(text)) if text.chars().any(char::is_control) => {
            violations.add(&[name], "invalid_format", "must not contain control characters");
            ""
        }
        Some(Value::String(text)) => text,
        Some(_) => {
            violations.add(&[name], "wrong_type", "must be a string");
            ""
        }
    };
    let (source, id) = (identifying("source"), identifying("id"));
    violations.or(SentRecord {
        event: event.to_string(),
        // Without an error, both are valid.
        key: IdempotencyKey::of_cloud_event(source, id).ok(),
        on_conflict: OnConflict::Reject,
        occurred: false,
        hold_ref: None,
        time_of_receipt: None,
    })
}

/// Returns the refusal of a CloudEvent in the binary mode, whose attributes are headers.
pub fn refused_binary_mode() -> Violations {
    let detail = "must have the attributes, which are in ce- headers: send the event in the structured mode, as \
                  application/cloudevents+json";
    Violations::one(&["body"], UNSUPPORTED, detail)
}

/// Returns the refusal of an idempotency key beside a CloudEvent, which has its own.
pub fn refused_key() -> Violations {
    let detail = "and source are the key of a CloudEvent: omit the header Idempotency-Key";
    Violations::one(&["id"], "conflicting_fields", detail)
}

/// A CloudEvent of a batch, or its violations.
pub struct CloudEventInPlace;

wire! {
    CloudEventInPlace of Result<SentRecord, Violations>: |node| Some(node.read_separately(read_cloud_event)), |schemas| schemas.refer::<FreeFormEvent>();
}

impl Listed for CloudEventInPlace {
    const MAX: usize = MAX_BATCH_EVENTS;
    const REMEDY: &'static str = EventInPlace::REMEDY;
}

body! {
    /// The events of an array of CloudEvents.
    CloudEventBatchBody {
        /// Events.
        events: Vec<CloudEventInPlace>,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn source_and_id_are_the_key() {
        let event = json!({"specversion": "1.0", "source": "/a", "id": "1", "type": "calls", "extension": [1]});
        let read = read_cloud_event(&event).expect("a CloudEvent");
        assert_eq!(read.key, IdempotencyKey::of_cloud_event("/a", "1").ok());
        assert!(read.key.is_some());
        assert_eq!(read.event, event.to_string());
    }

    #[test]
    fn what_is_no_cloud_event_is_refused_with_all_reasons() {
        let rows: [(Value, &[(&str, &str)]); 7] = [
            (json!([1]), &[("", "wrong_type")]),
            (json!({"specversion": "0.3", "source": "/a", "id": "1"}), &[("specversion", UNSUPPORTED)]),
            (json!({"specversion": 1.0, "source": "/a", "id": "1"}), &[("specversion", UNSUPPORTED)]),
            (json!({"source": 7, "id": ""}), &[("specversion", UNSUPPORTED)]),
            (json!({"specversion": "1.0", "source": 7, "id": ""}), &[("source", "wrong_type"), ("id", "empty")]),
            (
                json!({"specversion": "1.0", "source": "/a\0b", "id": "1\n"}),
                &[("source", "invalid_format"), ("id", "invalid_format")],
            ),
            (json!({"specversion": "1.0", "source": null}), &[("source", "required"), ("id", "required")]),
        ];
        for (event, expected) in rows {
            let refused = read_cloud_event(&event).expect_err("no CloudEvent");
            let found: Vec<(String, &str)> = refused.iter().map(|violation| (violation.path.concat(), violation.code)).collect();
            let expected: Vec<(String, &str)> = expected.iter().map(|(field, code)| ((*field).to_owned(), *code)).collect();
            assert_eq!(found, expected, "{event}");
        }
    }
}
