//! The parts of a rejected event that are counted. Their size is limited, because an event can have a megabyte.

use std::io;

use billing_domain::refused::{MAX_EXAMPLE_BYTES, MAX_TOLD_BYTES};
use serde_json::Value;

/// Fields that identify a customer and a usage product, in order of precedence.
const CUSTOMER: [&str; 2] = ["customer_ref", "customer_name"];
const USAGE_PRODUCT: [&str; 2] = ["usage_product_ref", "usage_product_name"];
/// Number of bytes of an event's JSON that are written. A character at the end can be incomplete, so they are more than the bytes
/// that are stored.
const WRITTEN_BYTES: usize = MAX_EXAMPLE_BYTES + 4;

/// The start of an event as sent, and the customer and the usage product that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventExcerpt {
    /// Customer reference or name; empty if missing.
    pub(crate) customer_ref: String,
    /// Usage product reference or name; empty if missing.
    pub(crate) usage_product_ref: String,
    /// Start of the event's text.
    pub(crate) text: String,
}

impl EventExcerpt {
    /// Creates the excerpt of an event. An event that is not JSON is a string.
    pub(crate) fn of(event: &Value) -> Self {
        let named = |names: [&str; 2]| names.into_iter().find_map(|name| event[name].as_str()).unwrap_or_default();
        Self {
            customer_ref: start_of(named(CUSTOMER), MAX_TOLD_BYTES),
            usage_product_ref: start_of(named(USAGE_PRODUCT), MAX_TOLD_BYTES),
            text: event.as_str().map_or_else(|| json_start(event), |text| start_of(text, MAX_EXAMPLE_BYTES)),
        }
    }
}

/// Returns the first characters of a text. A character has at least one byte, so the result has at least as many bytes as it may
/// have characters.
fn start_of(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

/// Returns the first bytes of an event's JSON.
fn json_start(event: &Value) -> String {
    let mut start = LimitedText(Vec::new());
    // The error at the limit ends the serialization early.
    drop(serde_json::to_writer(&mut start, event));
    String::from_utf8_lossy(&start.0).into_owned()
}

/// A text that accepts a limited number of bytes.
struct LimitedText(Vec<u8>);

impl io::Write for LimitedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = WRITTEN_BYTES.saturating_sub(self.0.len());
        let fitting = &bytes[..bytes.len().min(room)];
        self.0.extend_from_slice(fitting);
        Ok(fitting.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_small_event_is_its_own_excerpt() {
        let text = r#"{"customer_name":"Acme","usage_product_ref":"calls","quantity":1.50}"#;
        let event = billing_json::read(text.as_bytes()).expect("JSON");
        let (customer_ref, usage_product_ref) = ("Acme".to_owned(), "calls".to_owned());
        assert_eq!(EventExcerpt::of(&event), EventExcerpt { customer_ref, usage_product_ref, text: text.to_owned() });
        let no_json = EventExcerpt::of(&json!("no JSON"));
        assert_eq!((no_json.customer_ref.as_str(), no_json.text.as_str()), ("", "no JSON"));
    }

    #[test]
    fn a_large_event_has_a_small_excerpt() {
        let long = "ä".repeat(100_000);
        for event in [json!({"customer_ref": long}), json!(long), json!(vec![1; 100_000])] {
            let excerpt = EventExcerpt::of(&event);
            assert!((MAX_EXAMPLE_BYTES..3 * MAX_EXAMPLE_BYTES).contains(&excerpt.text.len()), "{}", excerpt.text.len());
            assert!(excerpt.customer_ref.chars().count() <= MAX_TOLD_BYTES);
        }
        let whole = json!({"a": "ä".repeat(3_000)}).to_string();
        let cut = EventExcerpt::of(&json!({"a": "ä".repeat(3_000)})).text;
        assert!(whole.starts_with(&cut[..MAX_EXAMPLE_BYTES]), "{cut}");
    }
}
