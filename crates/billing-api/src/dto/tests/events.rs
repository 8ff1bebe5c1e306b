//! Usage events.

use billing_application::usage::{EventView, NamedCustomer, NamedUsageProduct};
use billing_domain::document::DocumentState;
use billing_domain::document::numbering::DocumentNumbers;
use billing_domain::usage::{ReportData, ReportValue};
use billing_testkit::{CountingIds, fixtures};
use insta::assert_snapshot;

use super::super::events::{EventBody, EventJson, EventResultJson};
use super::super::wire::{ReportDataJson, written};
use super::{check, check_field, json, presented, refusals, with};

const EVENT: &str = r#"{"timestamp":"2026-01-20T10:15:30+01:00","customer_ref":"acme","usage_product_ref":"calls","quantity":1}"#;

#[test]
fn an_event_is_read_field_by_field() {
    let body = r#"{"timestamp":"2026-01-20T10:15:30+01:00","customer_ref":"acme","usage_product_ref":"calls",
        "quantity":12345678901234.000001,"additional_report_data":{"z":1.50,"a":"x","n":null,"b":true,"e":1E5},
        "validations":{"currency":"EUR","entity_ref":"emea"}}"#;
    let event = EventBody::read_event(&json(body)).expect("an event");
    assert_eq!(event.customer, NamedCustomer::Ref(fixtures::customer_ref("acme")));
    assert_eq!(event.usage_product, NamedUsageProduct::Ref(fixtures::usage_product_ref("calls")));
    assert_eq!(event.occurred_at.to_string(), "2026-01-20T09:15:30Z");
    assert_eq!(event.quantity.as_decimal().to_string(), "12345678901234.000001");
    let validations = event.validations.expect("validations");
    assert_eq!(validations.currency, Some(fixtures::eur()));
    assert_eq!(validations.entity_ref, Some(fixtures::entity_ref("emea")));
    let data = event.report_data.expect("report data");
    let number = |text: &str| ReportValue::Number(text.to_owned());
    let expected = [
        ("z".to_owned(), number("1.50")),
        ("a".to_owned(), ReportValue::Text("x".to_owned())),
        ("n".to_owned(), ReportValue::Null),
        ("b".to_owned(), ReportValue::Bool(true)),
        // The JSON parser normalizes exponents; the number is equal.
        ("e".to_owned(), number("1e+5")),
    ];
    assert_eq!(data.entries(), expected);
}

#[test]
fn quantities_keep_every_digit_whether_number_or_text() {
    let rows = [
        ("0.1", "0.1"),
        (r#""0.1""#, "0.1"),
        ("12345678901234.000001", "12345678901234.000001"),
        (r#""12345678901234.000001""#, "12345678901234.000001"),
        ("30.80", "30.80"),
        ("1e3", "1000"),
        ("0", "0"),
        ("0.0000001453", "0.000000145"),
        ("0.30000000000000004", "0.3"),
        (r#""1e-10""#, "0"),
    ];
    for (given, kept) in rows {
        let event = EventBody::read_event(&with(EVENT, "quantity", given)).expect(given);
        assert_eq!(event.quantity.as_decimal().to_string(), kept, "{given}");
    }
}

#[test]
fn report_data_is_taken_in_any_form() {
    let long = format!(r#"{{"k":"{}"}}"#, "v".repeat(2049));
    let cut = format!(r#"{{"k":"{}…"}}"#, "v".repeat(2045));
    for (sent, kept) in [
        (
            r#"{"note":"a\nb","tags":["x", 1],"o":{"b": 1.50, "a": {}}}"#,
            r#"{"note":"a\nb","tags":"[\"x\",1]","o":"{\"b\":1.50,\"a\":{}}"}"#,
        ),
        (r#"{"":1,"a\u0000":"\u0000","a ":2}"#, "{\"a \":\"\u{fffd}\"}"),
        (r#""{\"k\":[ ]}""#, r#"{"k":"[]"}"#),
        (&long, &cut),
    ] {
        let event = EventBody::read_event(&with(EVENT, "additional_report_data", sent)).expect(sent);
        assert_eq!(written(&ReportDataJson::from(&event.report_data.expect("report data"))), kept, "{sent}");
    }
    let many: Vec<String> = (0..200).map(|i| format!(r#""k{i}":{i}"#)).collect();
    let event = EventBody::read_event(&with(EVENT, "additional_report_data", &format!("{{{}}}", many.join(","))));
    assert_eq!(event.expect("an event").report_data.expect("report data").entries().len(), 100);
}

#[test]
fn each_field_of_an_event_is_held_against_its_limits() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("timestamp", "null", &["/timestamp required"]),
        ("timestamp", r#""2026-01-20T10:15:30""#, &["/timestamp invalid_format"]),
        ("timestamp", r#""2026-01-20""#, &["/timestamp invalid_format"]),
        ("timestamp", "1768900000", &["/timestamp wrong_type"]),
        ("timestamp", r#""9999-12-31T23:59:59-01:00""#, &["/timestamp out_of_range"]),
        ("customer_ref", r#""a b""#, &["/customer_ref invalid_format"]),
        ("customer_ref", "7", &["/customer_ref wrong_type"]),
        ("customer_ref", "null", &["/customer_ref required"]),
        ("usage_product_ref", r#""""#, &["/usage_product_ref invalid_format"]),
        ("quantity", "null", &["/quantity required"]),
        ("quantity", "-1", &["/quantity out_of_range"]),
        ("quantity", r#""ten""#, &["/quantity invalid_format"]),
        ("quantity", r#""1_000""#, &["/quantity invalid_format"]),
        ("quantity", "true", &["/quantity wrong_type"]),
        ("quantity", "1000000000000000", &["/quantity out_of_range"]),
        ("quantity", "1e400", &["/quantity out_of_range"]),
        ("additional_report_data", "null", &[]),
        ("additional_report_data", "{}", &[]),
        ("additional_report_data", r#""{\"k\":1.50}""#, &[]),
        ("additional_report_data", r#""{""#, &["/additional_report_data wrong_type"]),
        ("additional_report_data", r#""1""#, &["/additional_report_data wrong_type"]),
        ("validations", r#""{\"currency\":\"EURO\"}""#, &["/validations/currency invalid_format"]),
        ("whatever", "[1]", &["/whatever unknown_field"]),
        ("additional_report_data", "[]", &["/additional_report_data wrong_type"]),
        ("validations", "null", &[]),
        ("validations", "{}", &[]),
        ("validations", r#""{}""#, &[]),
        (
            "validations",
            r#"{"curency":"EUR","currency":"eur","entity_ref":"ä"}"#,
            &[
                "/validations/curency unknown_field",
                "/validations/currency invalid_format",
                "/validations/entity_ref invalid_format",
            ],
        ),
    ];
    check_field(EventBody::read_event, EVENT, rows);
}

#[test]
fn everything_wrong_with_an_event_is_said_at_once() {
    check(
        EventBody::read_event,
        &[
            ("{}", &["/timestamp required", "/customer_ref required", "/usage_product_ref required", "/quantity required"]),
            (
                r#"{"validations":{"x":1},"quantity":-1,"timestamp":"now","customer_ref":"a b","additional_report_data":[]}"#,
                &[
                    "/validations/x unknown_field",
                    "/quantity out_of_range",
                    "/timestamp invalid_format",
                    "/customer_ref invalid_format",
                    "/additional_report_data wrong_type",
                    "/usage_product_ref required",
                ],
            ),
        ],
    );
}

#[test]
fn a_name_counts_where_the_reference_is_left_out() {
    let by_name = r#"{"timestamp":"2026-01-20T10:15:30Z","customer_ref":null,"customer_name":"Acme","usage_product_name":"API calls","quantity":1}"#;
    let event = EventBody::read_event(&json(by_name)).expect("an event");
    assert_eq!(event.customer, NamedCustomer::Name(fixtures::line("Acme")));
    assert_eq!(event.usage_product, NamedUsageProduct::Name(fixtures::line("API calls")));

    let both = EventBody::read_event(&with(EVENT, "customer_name", r#""Another""#)).expect("an event");
    assert_eq!(both.customer, NamedCustomer::Ref(fixtures::customer_ref("acme")));

    for body in [by_name, EVENT] {
        let bad = with(body, "customer_name", r#""""#);
        assert_eq!(refusals(EventBody::read_event(&bad)), ["/customer_name too_short"]);
    }
}

fn view() -> EventView {
    let ids = CountingIds::new();
    let customer = fixtures::customer(&ids, "acme");
    let entity = fixtures::entity("main");
    let pricing = fixtures::pricing("api", vec![fixtures::per_unit("calls", "0.0025")]);
    let contract = fixtures::contract(&ids, &customer, vec![fixtures::agreed(&pricing, "2026-01-01", "2026-12-31")]);
    let head = fixtures::document_head(&ids, &contract, &entity, fixtures::period("2026-01-01", "2026-01-31"));
    let occurred_at = fixtures::at("2026-01-20T10:15:30.5+01:00");
    let calls = fixtures::usage_product_ref("calls");
    let mut event = fixtures::event(&ids, &head, &calls, occurred_at, fixtures::quantity("12345678901234.000001"));
    let number = |text: &str| ReportValue::Number(text.to_owned());
    let data = ReportData::new([("z".to_owned(), number("1.50")), ("a".to_owned(), ReportValue::Null)]);
    event.report_data = Some(data);
    EventView {
        limits: std::sync::Arc::default(),
        line_items: vec![fixtures::line_item_id("calls")],
        event,
        customer_ref: customer.customer_ref.clone(),
        customer_name: fixtures::line("Acme"),
        usage_product_name: fixtures::line("API calls"),
        document_numbers: DocumentNumbers::in_order_of_change([head.number.clone()]).expect("a number"),
        document_state: DocumentState::Draft,
        currency: head.currency,
        parent: None,
    }
}

#[test]
fn the_default_answer_has_exactly_three_fields() {
    assert_snapshot!(presented(&EventResultJson::from(&view())), @r#"
    {
      "event_ref": "019b76da-a804-7000-8000-000000000004",
      "related_document_ref": "019b76da-a803-7000-8000-000000000003",
      "related_document_numbers": "MAIN-INV-1"
    }
    "#);
}

#[test]
fn an_event_is_shown_with_its_digits_and_the_order_of_its_keys() {
    assert_snapshot!(presented(&EventJson::from(&view())), @r#"
    {
      "event_ref": "019b76da-a804-7000-8000-000000000004",
      "related_document_ref": "019b76da-a803-7000-8000-000000000003",
      "related_document_numbers": "MAIN-INV-1",
      "timestamp": "2026-01-20T09:15:30.500Z",
      "customer_ref": "acme",
      "customer_name": "Acme",
      "usage_product_ref": "calls",
      "usage_product_name": "API calls",
      "quantity": 12345678901234.000001,
      "line_item_ids": [
        "calls"
      ],
      "additional_report_data": {
        "z": 1.50,
        "a": null
      },
      "document_state": "DRAFT",
      "created_at": "2026-01-20T09:15:30.500Z",
      "updated_at": "2026-01-20T09:15:30.500Z",
      "revision": 1
    }
    "#);
}
