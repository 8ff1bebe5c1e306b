//! Reads a usage event directly from the text of a request, without a tree of JSON values.
//!
//! It accepts only events that [`EventBody::read_event`] accepts too, with the same result. For everything else, it returns
//! nothing: the caller then reads the tree, which finds all errors with their places. It leaves rare forms to the tree as well:
//! nulls, `validations` and report data in a string.

use std::borrow::Cow;

use billing_application::usage::{FileLine, NewUsageEvent};
use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{CustomerRef, HoldRef, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::usage::{ReportData, ReportValue};
use billing_domain::violation::Violations;
use billing_json::{FlatObject, Scalar, Text, read_object};
use serde::{Deserialize, Deserializer};

use super::events::EventBody;

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
    #[serde(default)]
    occurred: bool,
    #[serde(borrow, default, deserialize_with = "not_null")]
    hold_ref: Option<Text<'a>>,
}

/// Reads a member that is present. A null is left to the tree.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads an event, with the idempotency key that it contains.
pub fn read(text: &[u8]) -> Option<NewUsageEvent> {
    let sent: SentEvent<'_> = read_object(text)?;
    sent.into_body()?.event()
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
    if let Some(direct) = read(text.as_bytes()) {
        return Ok(direct);
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
            idempotency_key: parsed(self.idempotency_key.as_ref(), IdempotencyKey::parse)?,
            occurred: self.occurred,
            hold_ref: parsed(self.hold_ref.as_ref(), HoldRef::parse)?,
        })
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
    use super::*;
    use crate::dto::declare::Fieldset as _;

    /// Returns the event that the tree holds, as text.
    fn from_tree(text: &str) -> Option<String> {
        let tree = billing_json::read(text.as_bytes()).ok()?;
        EventBody::read_event(&tree).ok().map(|event| format!("{event:?}"))
    }

    fn direct(text: &str) -> Option<String> {
        read(text.as_bytes()).map(|event| format!("{event:?}"))
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
            ("occurred", "true"),
            ("hold_ref", "\"h\""),
        ];
        let known: Vec<&str> = EventBody::names().iter().copied().filter(|name| *name != "validations").collect();
        assert_eq!(values.map(|(name, _)| name).as_slice(), known);
        let members: Vec<String> = values.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let text = format!("{{{}}}", members.join(","));
        assert_eq!(direct(&text), from_tree(&text));
        assert!(direct(&text).is_some());
    }
}
