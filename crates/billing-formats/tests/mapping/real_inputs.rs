//! Events of real systems, each mapped by its own format. docs/formats.md explains such formats.

use std::fmt::Display;

use crate::common::{columns, constants, expression, map};
use billing_domain::format::{BuiltInFormat, FormatMapping, MappedEvent, Naming, RefOrName, ReportMapping};
use billing_domain::usage::ReportValue;

fn report(mapped: &MappedEvent) -> Vec<(&str, &str)> {
    let entries = mapped.report_data.as_ref().map_or(&[][..], |data| data.entries());
    entries.iter().map(|(key, value)| (key.as_str(), as_text(value))).collect()
}

fn as_text(value: &ReportValue) -> &str {
    match value {
        ReportValue::Number(text) | ReportValue::Text(text) => text,
        ReportValue::Bool(true) => "true",
        ReportValue::Bool(false) => "false",
        ReportValue::Null => "null",
    }
}

/// Formats the reference or name of a customer or usage product.
fn named<R: Display>(name: &RefOrName<R>) -> String {
    match name {
        RefOrName::Ref(reference) => format!("ref {reference}"),
        RefOrName::Name(name) => format!("name {name}"),
    }
}

/// Returns timestamp, customer, usage product and quantity.
fn facts(mapped: &MappedEvent) -> [String; 4] {
    [
        mapped.timestamp.expect("a timestamp").to_string(),
        named(&mapped.customer),
        named(&mapped.usage_product),
        mapped.quantity.as_decimal().to_string(),
    ]
}

/// Returns currency and entity, if present.
fn checks(mapped: &MappedEvent) -> (Option<String>, Option<String>) {
    let checks = mapped.validations.clone().unwrap_or_default();
    (checks.currency.map(|currency| currency.code().to_owned()), checks.entity_ref.map(|entity| entity.to_string()))
}

#[test]
fn a_line_of_a_cdn_log() {
    let event = r#"{"line": "203.0.113.7 - acme [10/Oct/2026:13:55:36 +0200] \"GET /v/intro.mp4 HTTP/2\" 200 734003200 \"-\" \"curl/8.5\" HIT fra02"}"#;
    let mapped = map(
        FormatMapping {
            timestamp: expression(r#"date_time(split(split(event.line, "[")[1], "]")[0], "%d/%b/%Y:%H:%M:%S %z")"#),
            customer: Naming::Ref(expression(r#"split(event.line, " ")[2]"#)),
            usage_product: Naming::Ref(expression(r#"if " HIT " in event.line { "cdn-hit-gb" } else { "cdn-miss-gb" }"#)),
            quantity: expression(r#"round(to_decimal(split(event.line, " ")[9]) / 1000000000, 9)"#),
            report_data: columns(&[
                ("path", r#"split(split(event.line, "\"")[1], " ")[1]"#),
                ("status", r#"to_decimal(split(event.line, " ")[8])"#),
                ("pop", r#"split(event.line, "HIT ")[1]"#),
            ]),
            ..constants()
        },
        event,
    )
    .expect("mapped");
    assert_eq!(facts(&mapped), ["2026-10-10T11:55:36Z", "ref acme", "ref cdn-hit-gb", "0.7340032"]);
    assert_eq!(report(&mapped), [("path", "/v/intro.mp4"), ("status", "200"), ("pop", "fra02")]);
}

#[test]
fn a_token_usage_record_of_a_language_model() {
    let event = r#"{
        "id": "chatcmpl-9fK2", "object": "chat.completion", "created": 1772366400, "model": "large-2026-02-11",
        "usage": {"prompt_tokens": 1200, "completion_tokens": 341, "total_tokens": 1541,
                  "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0}},
        "metadata": {"tenant": "Acme GmbH", "project": "support-bot"}
    }"#;
    let mapped = map(
        FormatMapping {
            timestamp: expression("unix_seconds(event.created)"),
            customer: Naming::Name(expression("event.metadata.tenant")),
            usage_product: Naming::Ref(expression(
                r#"lookup(#{"small": "llm-small", "large": "llm-large"}, split(event.model, "-")[0], "llm-other")"#,
            )),
            // Weights: a cached prompt token counts 0.1, a completion token 4.
            quantity: expression(
                "event.usage.prompt_tokens - event.usage.prompt_tokens_details.cached_tokens * 0.9\n + event.usage.completion_tokens * 4",
            ),
            report_data: columns(&[
                ("project", "event.metadata.project"),
                ("request", "event.id"),
                ("finish", r#"get(event, "finish_reason")"#),
            ]),
            ..constants()
        },
        event,
    )
    .expect("mapped");
    assert_eq!(facts(&mapped), ["2026-03-01T12:00:00Z", "name Acme GmbH", "ref llm-large", "1642.4"]);
    assert_eq!(report(&mapped), [("project", "support-bot"), ("request", "chatcmpl-9fK2"), ("finish", "null")]);
}

#[test]
fn a_telephone_call_record_with_local_time_and_a_zone() {
    let event = r#"{
        "record_type": "MOC", "account": 471100, "a_number": "+493012345", "b_number": "+12125550123",
        "answer_time": "25.10.2026 01:58:30", "release_time": "25.10.2026 02:03:31", "zone": "Europe/Berlin", "trunk": "FRA-7"
    }"#;
    let answered = r#"date_time(event.answer_time, "%d.%m.%Y %H:%M:%S", event.zone)"#;
    let released = r#"date_time(event.release_time, "%d.%m.%Y %H:%M:%S", event.zone)"#;
    let mapped = map(
        FormatMapping {
            timestamp: expression(answered),
            customer: Naming::Ref(expression(r#"concat("account-", event.account)"#)),
            usage_product: Naming::Ref(expression(
                r#"lookup(#{"+49": "call-national", "+12": "call-us"}, slice(event.b_number, 0, 3), "call-world")"#,
            )),
            // Counts each started minute.
            quantity: expression(&format!("ceil(seconds_between({answered}, {released}) / 60)")),
            report_data: ReportMapping::Rest,
            currency: Some(expression(r#""EUR""#)),
            ..constants()
        },
        event,
    )
    .expect("mapped");
    assert_eq!(facts(&mapped), ["2026-10-24T23:58:30Z", "ref account-471100", "ref call-us", "6"]);
    assert_eq!(checks(&mapped), (Some("EUR".to_owned()), None));
    assert_eq!(report(&mapped), [("record_type", "MOC"), ("a_number", "+493012345"), ("trunk", "FRA-7")]);
}

#[test]
fn a_reading_of_an_electricity_meter() {
    let event = r#"{
        "meter": "1EMH0012345678", "obis": "1-0:1.8.0", "day": "31.03.2026", "unit": "kWh",
        "previous": "12.345,678", "current": "12.399,0125", "transformer_factor": 40, "status": ["ok", 0]
    }"#;
    let number = |field: &str| format!(r#"to_decimal(replace(replace(event.{field}, ".", ""), ",", "."))"#);
    let mapped = map(
        FormatMapping {
            timestamp: expression(r#"date_time(event.day, "%d.%m.%Y", "Europe/Berlin")"#),
            customer: Naming::Ref(expression("event.meter")),
            usage_product: Naming::Ref(expression(
                r#"lookup(#{"1-0:1.8.0": "energy-in", "1-0:2.8.0": "energy-out"}, event.obis)"#,
            )),
            quantity: expression(&format!("({} - {}) * event.transformer_factor", number("current"), number("previous"))),
            report_data: ReportMapping::Rest,
            entity_ref: Some(expression(r#"if event.unit == "kWh" { "power" } else { () }"#)),
            ..constants()
        },
        event,
    )
    .expect("mapped");
    assert_eq!(facts(&mapped), ["2026-03-30T22:00:00Z", "ref 1EMH0012345678", "ref energy-in", "2133.38"]);
    assert_eq!(checks(&mapped), (None, Some("power".to_owned())));
    assert_eq!(report(&mapped), [("status", r#"["ok",0]"#)]);
}

#[test]
fn the_default_format_takes_the_default_shape_as_it_is() {
    let built_in = BuiltInFormat::Default.format().mapping;
    let whole = r#"{
        "timestamp": "2026-03-01T12:00:00+01:00", "customer_ref": "acme", "customer_name": "Acme", "usage_product_ref": "calls",
        "quantity": 12345678901234.000001, "additional_report_data": {"z": 1.50, "a": "x", "n": null},
        "validations": {"currency": "EUR", "entity_ref": "default"}, "unknown": 1
    }"#;
    let mapped = map(built_in.clone(), whole).expect("mapped");
    assert_eq!(facts(&mapped), ["2026-03-01T11:00:00Z", "ref acme", "ref calls", "12345678901234.000001"]);
    assert_eq!(report(&mapped), [("z", "1.50"), ("a", "x"), ("n", "null")]);
    assert_eq!(checks(&mapped), (Some("EUR".to_owned()), Some("default".to_owned())));

    let least =
        r#"{"timestamp": "2026-03-01T12:00:00Z", "customer_name": "Acme", "usage_product_name": "Calls", "quantity": "2"}"#;
    let mapped = map(built_in, least).expect("mapped");
    assert_eq!(facts(&mapped), ["2026-03-01T12:00:00Z", "name Acme", "name Calls", "2"]);
    assert_eq!((mapped.report_data, mapped.validations), (None, None));
}
