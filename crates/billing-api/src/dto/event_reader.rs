//! Reads a usage event directly from the text of a request, without a tree of JSON values.
//!
//! It accepts only events that [`EventBody::read_event`] accepts too, with the same result. For everything else, it returns
//! nothing: the caller then reads the tree, which finds all errors with their places. It leaves rare forms to the tree as well:
//! nulls, `validations` and report data in a string.

use std::borrow::Cow;

use billing_application::usage::{FileLine, NewUsageEvent};
use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::{BodyHash, IdempotencyKey};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{EventKey, ReportData, ReportValue};
use billing_domain::violation::Violations;
use billing_json::{FlatObject, Member, Scalar, Text, hash_of_members, read_object};
use serde::{Deserialize, Deserializer};

use super::events::EventBody;

/// An event that was read from the text of a request.
#[derive(Clone, Debug)]
pub struct DirectEvent {
    /// The event, with the idempotency key that its body contains.
    pub event: NewUsageEvent,
    /// The hash of the event, if the request has an idempotency key.
    pub hash: Option<BodyHash>,
}

/// The members of [`EventBody`] as they are sent. serde rejects members that are unknown or occur twice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentEvent<'a> {
    #[serde(borrow)]
    timestamp: Text<'a>,
    #[serde(borrow, default, deserialize_with = "not_null")]
    customer_ref: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "not_null")]
    customer_name: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "not_null")]
    usage_product_ref: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "not_null")]
    usage_product_name: Option<Text<'a>>,
    #[serde(borrow)]
    quantity: Scalar<'a>,
    #[serde(borrow, default, deserialize_with = "not_null")]
    additional_report_data: Option<FlatObject<'a>>,
    #[serde(borrow, default, deserialize_with = "not_null")]
    idempotency_key: Option<Text<'a>>,
}

/// Reads a member that is present. A null is left to the tree, because it is part of the hash of a body.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads an event. `is_keyed` states whether the request has the header `Idempotency-Key`.
pub fn read(text: &[u8], is_keyed: bool) -> Option<DirectEvent> {
    let sent: SentEvent<'_> = read_object(text)?;
    let key = parsed(sent.idempotency_key.as_ref(), IdempotencyKey::parse)?;
    let hash = (is_keyed || key.is_some()).then(|| sent.hash());
    let event = sent.into_body()?.event()?;
    let sent = key.zip(hash).map(|(key, body)| EventKey { key, body });
    Some(DirectEvent { event: NewUsageEvent { sent, ..event }, hash: hash.filter(|_| is_keyed) })
}

/// Reads the event of a line of a file in the default shape, as the API reads events.
#[must_use]
pub fn in_default_shape(mut line: FileLine) -> FileLine {
    // A copy of a recorded event is not recorded again.
    if let Ok(event) = &mut line.event
        && event.event_ref.is_none()
    {
        event.shaped = Some(read_line(&event.event));
    }
    line
}

/// Reads an event of a file, which can have a null reference of an event.
fn read_line(text: &str) -> Result<NewUsageEvent, Violations> {
    if let Some(direct) = read(text.as_bytes(), false) {
        return Ok(direct.event);
    }
    let mut body = billing_json::read(text.as_bytes()).unwrap_or_default();
    body.as_object_mut().map(|members| members.shift_remove("event_ref"));
    EventBody::read_event(&body)
}

/// Parses an optional text. Returns `None` for an invalid text.
fn parsed<T, E>(text: Option<&Text<'_>>, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<Option<T>> {
    text.map(|text| parse(&text.0)).transpose().ok()
}

impl SentEvent<'_> {
    fn into_body(self) -> Option<EventBody> {
        let quantity = match &self.quantity {
            Scalar::Number(text) | Scalar::Text(text) => Quantity::parse_reported(text).ok()?,
            Scalar::Null | Scalar::Bool(_) => return None,
        };
        Some(EventBody {
            timestamp: Timestamp::parse(&self.timestamp.0).ok()?,
            customer_ref: parsed(self.customer_ref.as_ref(), CustomerRef::parse)?,
            customer_name: parsed(self.customer_name.as_ref(), OneLine::parse)?,
            usage_product_ref: parsed(self.usage_product_ref.as_ref(), UsageProductRef::parse)?,
            usage_product_name: parsed(self.usage_product_name.as_ref(), OneLine::parse)?,
            quantity,
            additional_report_data: self.additional_report_data.map(report_data),
            validations: None,
            // The caller sets the key together with the hash.
            idempotency_key: None,
        })
    }

    /// Returns the same hash as [`hash_of_event`](billing_json::hash_of_event) for the tree.
    fn hash(&self) -> BodyHash {
        let texts = [
            ("customer_ref", &self.customer_ref),
            ("customer_name", &self.customer_name),
            ("usage_product_ref", &self.usage_product_ref),
            ("usage_product_name", &self.usage_product_name),
        ];
        let mut members = Vec::with_capacity(texts.len() + 3);
        members.push(("timestamp", Member::Text(&self.timestamp.0)));
        members.push(("quantity", Member::Scalar(&self.quantity)));
        members.extend(self.additional_report_data.iter().map(|object| ("additional_report_data", Member::Object(object))));
        members.extend(texts.into_iter().filter_map(|(name, text)| Some((name, Member::Text(&text.as_ref()?.0)))));
        hash_of_members(&mut members)
    }
}

fn report_data(FlatObject(members): FlatObject<'_>) -> ReportData {
    let value = |value: Scalar<'_>| match value {
        Scalar::Null => ReportValue::Null,
        Scalar::Bool(value) => ReportValue::Bool(value),
        Scalar::Number(text) => ReportValue::Number(text.into_owned()),
        Scalar::Text(text) => ReportValue::Text(text.into_owned()),
    };
    ReportData::new(members.into_iter().map(|(key, sent)| (Cow::into_owned(key), value(sent))))
}

#[cfg(test)]
mod tests {
    use billing_json::hash_of_event;

    use super::*;
    use crate::dto::declare::Fieldset as _;

    /// Returns what the tree holds, as text: the event and its hash.
    fn from_tree(text: &str) -> Option<(String, BodyHash)> {
        let tree = billing_json::read(text.as_bytes()).ok()?;
        let event = EventBody::read_event(&tree).ok()?;
        Some((format!("{event:?}"), hash_of_event(&tree)))
    }

    fn direct(text: &str) -> Option<(String, BodyHash)> {
        let DirectEvent { event, hash } = read(text.as_bytes(), true)?;
        Some((format!("{event:?}"), hash.expect("the hash of a request with a key")))
    }

    /// Replaces one part of a common event.
    fn with(part: &str, replacement: &str) -> String {
        let event = r#"{"timestamp":"2026-01-20T12:00:00Z","customer_ref":"acme","usage_product_ref":"calls","quantity":1.50}"#;
        assert!(event.contains(part), "{part}");
        event.replace(part, replacement)
    }

    #[test]
    fn common_events_are_read_directly_and_equal_those_of_the_tree() {
        let quantities = [
            "1",
            "0",
            "-0",
            "0.10",
            "1e3",
            "1.25E-2",
            "999999999999999.999999999",
            "\"12.5\"",
            "1.0000000000000",
            "0.30000000000000004",
            "1e-10",
            "\"0.0000001453\"",
        ];
        let mut texts: Vec<String> = quantities.iter().map(|quantity| with("1.50", quantity)).collect();
        for (part, replacement) in [
            ("}", "}"),
            ("}", "} \n\t"),
            ("{", " {\r\n "),
            ("\"quantity\"", "\"\\u0071uantity\""),
            ("2026-01-20T12:00:00Z", "2026-01-20T13:00:00+01:00"),
            ("2026-01-20T12:00:00Z", "2026-01-20T12:00:00.123456Z"),
            ("\"customer_ref\":\"acme\"", "\"customer_name\":\"Ac\\u006de \\\"&\\\" S\\u00f6hne\""),
            ("\"customer_ref\":\"acme\"", "\"customer_name\":\"Acme\",\"customer_ref\":\"acme\""),
            ("\"usage_product_ref\":\"calls\"", "\"usage_product_name\":\"Calls\""),
            ("}", ",\"additional_report_data\":{}}"),
            ("}", ",\"additional_report_data\":{\"z\":1.50,\"a\":null,\"m\":\"\\\"x\\\"\",\"b\":true}}"),
            ("}", ",\"additional_report_data\":{\"n\":18446744073709551616,\"o\":-0,\"p\":7}}"),
            ("}", ",\"additional_report_data\":{\"\":1,\"k\\u0000\":\"a\\u0000\\n\",\"k \":2}}"),
            ("{", "{\"idempotency_key\":\"host-7/81\","),
        ] {
            texts.push(with(part, replacement));
        }
        for text in texts {
            let direct = direct(&text);
            assert!(direct.is_some(), "not read directly: {text}");
            assert_eq!(direct, from_tree(&text), "{text}");
        }
    }

    #[test]
    fn other_bodies_are_left_to_the_tree() {
        let mut texts = vec![
            String::new(),
            "null".to_owned(),
            "[]".to_owned(),
            r#"["2026-01-20T12:00:00Z","acme",null,"calls",null,1,null,null]"#.to_owned(),
            "{}".to_owned(),
        ];
        for (part, replacement) in [
            ("}", ""),
            ("}", "}}"),
            ("}", ",}"),
            ("}", ",\"unknown\":1}"),
            ("}", ",\"quantity\":2}"),
            ("}", ",\"\\u0071uantity\":2}"),
            ("}", ",\"customer_name\":null}"),
            ("}", ",\"idempotency_key\":null}"),
            ("}", ",\"idempotency_key\":\"\"}"),
            ("}", ",\"idempotency_key\":7}"),
            ("}", ",\"validations\":{\"currency\":\"EUR\"}}"),
            ("}", ",\"validations\":null}"),
            ("}", ",\"customer_name\":\"line\\nbreak\"}"),
            ("}", ",\"additional_report_data\":null}"),
            ("}", ",\"additional_report_data\":1.5}"),
            ("}", ",\"additional_report_data\":[]}"),
            ("}", ",\"additional_report_data\":\"{\\\"a\\\":1}\"}"),
            ("}", ",\"additional_report_data\":{\"a\":1,\"a\":2}}"),
            ("}", ",\"additional_report_data\":{\"a\":{}}}"),
            ("}", ",\"additional_report_data\":{\"$serde_json::private::Number\":\"1\"}}"),
            ("\"acme\"", "7"),
            ("\"acme\"", "\"not a reference\""),
            ("\"acme\"", "\"\\ud800\""),
            ("\"customer_ref\":\"acme\",", ""),
            ("\"usage_product_ref\":\"calls\",", ""),
            ("2026-01-20T12:00:00Z", "2026-01-20"),
            ("\"timestamp\":\"2026-01-20T12:00:00Z\",", ""),
            ("1.50", "-1"),
            ("1.50", "01"),
            ("1.50", "true"),
            ("1.50", "null"),
            ("1.50", "\"+1\""),
            ("1.50", "1000000000000000"),
            ("1.50", "{\"$serde_json::private::Number\":\"x\"}"),
            (",\"quantity\":1.50", ""),
        ] {
            texts.push(with(part, replacement));
        }
        for text in texts {
            assert_eq!(direct(&text), None, "{text}");
        }
    }

    #[test]
    fn every_field_of_an_event_is_read_except_one() {
        let values = [
            ("timestamp", "\"2026-01-20T12:00:00Z\""),
            ("customer_ref", "\"acme\""),
            ("customer_name", "\"Acme\""),
            ("usage_product_ref", "\"calls\""),
            ("usage_product_name", "\"Calls\""),
            ("quantity", "1"),
            ("additional_report_data", "{\"a\":1}"),
            ("idempotency_key", "\"k\""),
        ];
        let known: Vec<&str> = EventBody::names().iter().copied().filter(|name| *name != "validations").collect();
        assert_eq!(values.map(|(name, _)| name).as_slice(), known);
        let members: Vec<String> = values.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let text = format!("{{{}}}", members.join(","));
        assert_eq!(direct(&text), from_tree(&text));
        assert!(direct(&text).is_some());
    }

    #[test]
    fn the_hash_is_computed_only_for_a_key() {
        let text = with("}", "}");
        assert_eq!(read(text.as_bytes(), false).expect("an event").hash, None);
        let keyed = read(with("}", ",\"idempotency_key\":\"k\"}").as_bytes(), false).expect("an event");
        assert_eq!(keyed.event.sent.map(|sent| sent.body), read(text.as_bytes(), true).expect("an event").hash);
    }
}
