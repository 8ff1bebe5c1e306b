//! Usage formats and free-form events.

use billing_application::formats::{FormatContent, FormatView, NamedFormat, TestedFormat};
use billing_domain::access::Actor;
use billing_domain::format::{BuiltInFormat, FieldPath, MappedEvent, MappedRecord, RefOrName, ReportMapping, UsageFormat};
use billing_domain::idempotency::IdempotencyKey;
use billing_testkit::fixtures;
use insta::assert_snapshot;
use serde_json::Value;

use super::super::formats::{FormatJson, FormatTestJson};
use super::super::wire::path_in_event;
use super::{check, check_field, json, posted_back, presented, refusals};

const MAPPING: &str =
    r#"{"timestamp": "event.t", "customer_ref": "event.c", "usage_product_ref": "event.u", "quantity": "event.q"}"#;

fn body(mapping: &str) -> String {
    format!(r#"{{"format_name": "Log", "mapping": {mapping}}}"#)
}

fn read_mapping(mapping: &Value) -> Result<(), billing_domain::violation::Violations> {
    super::format(&json(&body(&mapping.to_string()))).map(|_| ())
}

#[test]
fn everything_that_is_wrong_with_a_format_is_said_at_once() {
    check(
        super::format,
        &[
            (&body(MAPPING), &[]),
            ("[]", &["/ wrong_type"]),
            ("{}", &["/format_name required", "/mapping required"]),
            (
                r#"{"format_ref": "a b", "format_name": "", "mapping": "event"}"#,
                &["/format_ref invalid_format", "/format_name too_short", "/mapping wrong_type"],
            ),
            (
                &body("{}"),
                &[
                    "/mapping/timestamp required",
                    "/mapping/customer_ref required",
                    "/mapping/usage_product_ref required",
                    "/mapping/quantity required",
                ],
            ),
            (
                &body(
                    r#"{"timestamp": 1, "customer_ref": "", "customer_name": [], "usage_product_name": "\u0000", "quantity": null, "quantty": "1"}"#,
                ),
                &[
                    "/mapping/timestamp wrong_type",
                    "/mapping/customer_ref invalid_format",
                    "/mapping/customer_name wrong_type",
                    "/mapping/usage_product_name invalid_format",
                    "/mapping/quantity required",
                    "/mapping/quantty unknown_field",
                ],
            ),
        ],
    );
}

#[test]
fn the_fields_of_a_mapping_keep_their_limits() {
    let long = format!(r#""{}""#, "x".repeat(2049));
    let many: Vec<String> = (0..101).map(|i| format!(r#""k{i}": "1""#)).collect();
    let many = format!("{{{}}}", many.join(","));
    let data = "additional_report_data";
    check_field(
        read_mapping,
        MAPPING,
        &[
            ("quantity", &long, &["/mapping/quantity invalid_format"]),
            ("for_each", "[1]", &["/mapping/for_each wrong_type"]),
            ("for_each", r#""event.lines""#, &[]),
            ("skip_if", "true", &["/mapping/skip_if wrong_type"]),
            ("idempotency_key", r#""""#, &["/mapping/idempotency_key invalid_format"]),
            ("quantity", r#""if event.a {\n\t1\n} else { 2 }""#, &[]),
            ("validations", "7", &["/mapping/validations wrong_type"]),
            (
                "validations",
                r#"{"curency": "\"EUR\"", "entity_ref": 5}"#,
                &["/mapping/validations/curency unknown_field", "/mapping/validations/entity_ref wrong_type"],
            ),
            (data, "[]", &["/mapping/additional_report_data wrong_type"]),
            (
                data,
                r#"{"": "1", "a/b": 5, "fine": "1"}"#,
                &["/mapping/additional_report_data/ invalid_format", "/mapping/additional_report_data/a/b wrong_type"],
            ),
            (data, &many, &["/mapping/additional_report_data too_many"]),
            (data, r#""REST""#, &["/mapping/additional_report_data invalid_value"]),
            (data, r#""event""#, &["/mapping/additional_report_data invalid_value"]),
            (data, r#""event.a b""#, &["/mapping/additional_report_data invalid_value"]),
            (data, r#""event.a.b""#, &[]),
            (data, r#""""#, &["/mapping/additional_report_data invalid_value"]),
            (data, r#""rest""#, &[]),
            (data, r#""event.labels""#, &[]),
            (data, r#""event[\"my labels\"]""#, &[]),
            (data, "null", &[]),
        ],
    );
}

#[test]
fn a_field_of_the_event_is_named_as_in_an_expression() {
    let rows: [(&str, Option<&[&str]>); 19] = [
        ("event.labels", Some(&["labels"])),
        ("event._a1", Some(&["_a1"])),
        (r#"event["labels"]"#, Some(&["labels"])),
        (r#"event["with \"quotes\" and ü"]"#, Some(&["with \"quotes\" and ü"])),
        (r#"event[""]"#, Some(&[""])),
        ("event.a.b", Some(&["a", "b"])),
        ("event.a.b.c", Some(&["a", "b", "c"])),
        (r#"event["a"]["b"]"#, Some(&["a", "b"])),
        (r#"event.a["b.c]"].d"#, Some(&["a", "b.c]", "d"])),
        ("event", None),
        ("event.a.", None),
        (r#"event["a"#, None),
        ("event.1a", None),
        ("event.", None),
        ("event.a b", None),
        ("event[a]", None),
        ("event[1]", None),
        ("events.a", None),
        (r#"event["a"]b"#, None),
    ];
    for (text, field) in rows {
        let found = path_in_event(text).map(|path| path.names().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(found, field.map(|names| names.iter().map(|name| (*name).to_owned()).collect()), "{text}");
    }
}

fn view(report_data: ReportMapping) -> FormatView {
    let mut format = fixtures::format("cdn-log").format;
    format.mapping.report_data = report_data;
    FormatView { format, made: Some((fixtures::at("2026-01-01T00:00:00Z"), Actor::Service)) }
}

#[test]
fn a_format_is_presented_as_it_can_be_posted_back() {
    let kinds = [
        ReportMapping::None,
        ReportMapping::Rest,
        ReportMapping::Field(FieldPath::of_event("labels")),
        ReportMapping::PlainRest(FieldPath::of_event("data")),
        ReportMapping::Field(FieldPath::of_event("my \"labels\" \\ \u{1} ü")),
        ReportMapping::Field(FieldPath { parents: vec!["a".to_owned(), "b c".to_owned()], name: "d".to_owned() }),
        fixtures::columns(&[]),
        fixtures::columns(&[("z", "event.z"), ("a", "1")]),
    ];
    let built_in = FormatView { format: BuiltInFormat::Default.format(), made: None };
    let mut of_list = view(ReportMapping::None);
    let mapping = &mut of_list.format.mapping;
    mapping.idempotency_key = Some(fixtures::expression("item.id"));
    (mapping.skip_if, mapping.for_each) = (Some(fixtures::expression("item.n == 0")), Some(fixtures::expression("event.l")));
    for view in kinds.map(view).into_iter().chain([built_in, of_list]) {
        let answer = FormatJson::from(&view);
        presented(&answer);
        let (reference, content) = super::format(&posted_back(&answer)).expect("a valid format");
        let FormatContent { name, mapping } = content;
        let posted = UsageFormat { format_ref: reference.expect("a reference"), name, version: view.format.version, mapping };
        assert_eq!(posted, view.format);
    }
}

#[test]
fn a_presented_format_has_its_version_and_who_made_it() {
    let columns = fixtures::columns(&[("z", "event.z"), ("a", "1")]);
    assert_snapshot!(presented(&FormatJson::from(&view(columns))), @r#"
    {
      "format_ref": "cdn-log",
      "format_name": "cdn-log",
      "version": 1,
      "mapping": {
        "timestamp": "event.at",
        "customer_ref": "event.who",
        "usage_product_ref": "event.what",
        "quantity": "event.much",
        "additional_report_data": {
          "z": "event.z",
          "a": "1"
        }
      },
      "changed_at": "2026-01-01T00:00:00Z",
      "changed_by": "service",
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
}

#[test]
fn an_edit_keeps_what_it_leaves_out_and_replaces_the_mapping_whole() {
    let present = view(ReportMapping::Rest).format;
    let edit = |text: &str| super::format_edit(&json(text), &present.format_ref, &present);
    let kept = FormatContent { name: present.name.clone(), mapping: present.mapping.clone() };
    assert_eq!(edit("{}").expect("an empty edit"), kept);
    let FormatContent { name, mapping } =
        edit(&format!(r#"{{"format_ref": "cdn-log", "mapping": {MAPPING}}}"#)).expect("a changed mapping");
    assert_eq!((name, mapping.report_data), (present.name.clone(), ReportMapping::None));
    assert_eq!(
        refusals(edit(r#"{"format_ref": "other", "format_name": null, "mapping": null}"#)),
        ["/format_ref not_changeable", "/format_name required", "/mapping required",]
    );
}

#[test]
fn a_test_takes_a_format_or_a_mapping() {
    let mapping = format!(r#"{{"mapping": {MAPPING}, "event": {{}}}}"#);
    let both = format!(r#"{{"format_name": "Log", "mapping": {MAPPING}, "event": {{}}}}"#);
    check(
        super::format_test,
        &[
            (&mapping, &[]),
            (&both, &["/mapping not_allowed"]),
            ("{}", &["/format_name required", "/event required"]),
            (r#"{"format_ref": "a b", "event": []}"#, &["/format_ref invalid_format", "/event wrong_type"]),
            (
                r#"{"mapping": {}, "event": {}}"#,
                &[
                    "/mapping/timestamp required",
                    "/mapping/customer_ref required",
                    "/mapping/usage_product_ref required",
                    "/mapping/quantity required",
                ],
            ),
        ],
    );
    let (tested, event) =
        super::format_test(&json(r#"{"format_ref": "log", "format_name": "Other", "event": {"z": 1.50, "a": []}}"#))
            .expect("a valid body");
    assert_eq!(event, r#"{"z":1.50,"a":[]}"#);
    assert!(matches!(tested, TestedFormat::Named(NamedFormat::Ref(_))), "the reference takes precedence: {tested:?}");
}

#[test]
fn a_free_form_event_names_its_format_and_is_an_object() {
    check(
        super::formatted_event,
        &[
            (r#"{"format_name": "Log", "event": {}}"#, &[]),
            (r#"{"format_ref": "log", "format_name": 5, "event": {}}"#, &["/format_name wrong_type"]),
            ("{}", &["/format_name required", "/event required"]),
            (r#"{"format_name": null, "event": null}"#, &["/format_name required", "/event required"]),
            (r#"{"format_name": 5, "event": "line"}"#, &["/format_name wrong_type", "/event wrong_type"]),
        ],
    );
    check(
        super::formatted_update,
        &[
            (r#"{"event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b", "event": {}}"#, &[]),
            ("{}", &["/event_ref required", "/event required"]),
            (
                r#"{"event_ref": 5, "format_ref": "", "event": 5}"#,
                &["/event_ref wrong_type", "/format_ref invalid_format", "/event wrong_type"],
            ),
        ],
    );
    let report =
        super::formatted_event(&json(r#"{"format_name": "Log", "event": {"z": 1e2, "n": 123456789012345678901234567890.10}}"#));
    assert_eq!(report.expect("a valid body").1, r#"{"z":1e+2,"n":123456789012345678901234567890.10}"#);
}

#[test]
fn a_mapped_event_is_presented_in_the_default_shape() {
    let mapped = MappedEvent {
        timestamp: Some(fixtures::at("2026-03-01T13:00:00+01:00")),
        customer: RefOrName::Name(fixtures::line("Acme GmbH")),
        usage_product: RefOrName::Ref(fixtures::usage_product_ref("calls")),
        quantity: fixtures::quantity("1.50"),
        report_data: None,
        validations: Some(billing_domain::usage::Validations { currency: Some(fixtures::eur()), entity_ref: None }),
        idempotency_key: IdempotencyKey::parse("e-1").ok(),
    };
    let presented_as =
        |record: MappedRecord| serde_json::to_value(FormatTestJson::from(&record)).expect("JSON")["mapped"].clone();
    assert_eq!(presented_as(MappedRecord::Skipped), serde_json::Value::Null);
    let elements = presented_as(MappedRecord::Elements(vec![Ok(Some(mapped.clone())), Ok(None)]));
    assert_eq!((&elements[0]["quantity"], &elements[1]), (&json("1.50"), &serde_json::Value::Null));
    assert_snapshot!(presented(&FormatTestJson::from(&MappedRecord::Event(Box::new(mapped)))), @r#"
    {
      "mapped": {
        "timestamp": "2026-03-01T12:00:00Z",
        "customer_name": "Acme GmbH",
        "usage_product_ref": "calls",
        "quantity": 1.50,
        "validations": {
          "currency": "EUR"
        },
        "idempotency_key": "e-1"
      }
    }
    "#);
}
