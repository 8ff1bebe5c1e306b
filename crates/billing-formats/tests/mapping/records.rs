//! Records that a format skips, gives a key, or splits into several events.

use billing_domain::format::{
    Expression, FieldPath, FormatError, FormatMapping, FormatTarget, MappedEvent, MappedRecord, Naming, ReportMapping,
};
use billing_domain::ports::EventMapper as _;
use billing_domain::usage::ReportValue;
use billing_formats::{MAX_EVENTS_BYTES, RhaiMapper};

use crate::common::{columns, constants, expression, map};

fn record(mapping: &FormatMapping, event: &str) -> Result<MappedRecord, FormatError> {
    RhaiMapper::new().map(mapping, event)
}

fn some(text: &str) -> Option<Expression> {
    Some(expression(text))
}

/// Formats an event as its quantity, its key and its labels.
fn shown(event: &MappedEvent) -> String {
    let key = event.idempotency_key.as_ref().map_or("-", |key| key.as_str());
    let labels = event.report_data.iter().flat_map(|data| data.entries());
    let labels: String = labels.map(|(key, value)| format!(" {key}={}", value.label().unwrap_or_default())).collect();
    format!("{} {key}{labels}", event.quantity.as_decimal())
}

/// Formats the elements of a record: its events, `-` for a skipped one, and the reasons of errors.
fn elements(mapping: &FormatMapping, event: &str) -> Vec<String> {
    let MappedRecord::Elements(elements) = record(mapping, event).expect("mapped") else { panic!("a list of elements") };
    let shown = |element: Result<Option<MappedEvent>, FormatError>| match element {
        Ok(Some(event)) => shown(&event),
        Ok(None) => "-".to_owned(),
        Err(error) => error.to_string(),
    };
    elements.into_iter().map(shown).collect()
}

/// A completion with the used tokens of each kind.
fn completion() -> FormatMapping {
    FormatMapping {
        customer: Naming::Ref(expression("event.project")),
        quantity: expression("event.usage[item]"),
        report_data: columns(&[("model", "event.model"), ("kind", "item")]),
        idempotency_key: some(r#"concat(event.id, "/", item)"#),
        for_each: some(r#"["input", "output"]"#),
        ..constants()
    }
}

const COMPLETION: &str = r#"{"id": "c-1", "project": "acme", "model": "m", "usage": {"input": 120, "output": 30}}"#;

#[test]
fn a_record_has_an_event_for_each_element_of_a_list() {
    assert_eq!(elements(&completion(), COMPLETION), ["120 c-1/input model=m kind=input", "30 c-1/output model=m kind=output"]);
    let of_objects = FormatMapping {
        quantity: expression("item.n * event.factor"),
        idempotency_key: some("item.id"),
        for_each: some("event.lines"),
        ..constants()
    };
    let event = r#"{"factor": 2, "lines": [{"n": 1, "id": 7}, {"n": 2, "id": null}, {"id": "x"}, {"n": 4, "id": null}]}"#;
    let expected = ["2 7", "4 -", "quantity = item.n * event.factor, line 1, column 6: unknown field `n`", "8 -"];
    assert_eq!(elements(&of_objects, event), expected);
}

#[test]
fn two_elements_with_one_key_reject_the_record() {
    let error = record(&FormatMapping { idempotency_key: some("event.id"), ..completion() }, COMPLETION).expect_err("one key");
    assert_eq!(error.to_string(), "idempotency_key = event.id: gives c-1 for items 0 and 1: name item in the key");
    // A skipped element has no key.
    let one = FormatMapping { idempotency_key: some("event.id"), skip_if: some(r#"item == "output""#), ..completion() };
    assert_eq!(elements(&one, COMPLETION), ["120 c-1 model=m kind=input", "-"]);
}

#[test]
fn a_condition_skips_records_and_elements() {
    let rows = r#"event.q == "NULL" || to_decimal(event.q) < 0"#;
    let cost = FormatMapping { quantity: expression("to_decimal(event.q)"), skip_if: some(rows), ..constants() };
    for (event, expected) in [(r#"{"q": "NULL"}"#, None), (r#"{"q": "-1"}"#, None), (r#"{"q": "0"}"#, Some("0 -"))] {
        let shown = match record(&cost, event).expect(event) {
            MappedRecord::Skipped => None,
            MappedRecord::Event(event) => Some(shown(&event)),
            MappedRecord::Elements(_) => panic!("no list"),
        };
        assert_eq!(shown.as_deref(), expected, "{event}");
    }
    // The condition precedes the list and the other fields, which a skipped record need not have.
    let skip = FormatMapping { skip_if: some("event.test"), ..completion() };
    assert_eq!(record(&skip, r#"{"test": true}"#), Ok(MappedRecord::Skipped));
    // A condition on the element is evaluated for each.
    let zero = FormatMapping { skip_if: some("event.usage[item] == 0"), ..completion() };
    let event = r#"{"id": 1, "project": "acme", "model": "m", "usage": {"input": 0, "output": 3}}"#;
    assert_eq!(elements(&zero, event), ["-", "3 1/output model=m kind=output"]);
    assert_eq!(record(&FormatMapping { for_each: some("event.l"), ..constants() }, r#"{"l": []}"#), Ok(MappedRecord::Skipped));
}

#[test]
fn a_key_is_a_text_or_a_number_in_plain_digits() {
    let key = |source: &str, event: &str| {
        let mapped = map(FormatMapping { idempotency_key: some(source), ..constants() }, event);
        mapped.map(|event| event.idempotency_key.map(|key| key.as_str().to_owned())).map_err(|error| error.reason)
    };
    let long = "x".repeat(256);
    let rows = [
        (r#"{"id": "e-1"}"#, Ok(Some("e-1"))),
        (r#"{"id": 7}"#, Ok(Some("7"))),
        (r#"{"id": 1.50}"#, Ok(Some("1.5"))),
        (r#"{"id": 1e2}"#, Ok(Some("100"))),
        (r#"{"id": 123456789012345678901234567890123}"#, Ok(Some("123456789012345678901234567890123"))),
        (r#"{"id": null}"#, Ok(None)),
        (r#"{"id": ""}"#, Ok(None)),
        (r#"{"id": true}"#, Err("gives true or false: text or number expected")),
        (r#"{"id": ["a"]}"#, Err("gives a list: text or number expected")),
        (r#"{"id": "a\nb"}"#, Err("gives a\nb, which must not contain control characters")),
    ];
    for (event, expected) in rows {
        let expected = expected.map(|key| key.map(str::to_owned)).map_err(str::to_owned);
        assert_eq!(key("event.id", event), expected, "{event}");
    }
    let error = key("event.id", &format!(r#"{{"id": "{long}"}}"#)).expect_err("too long");
    assert!(error.ends_with("which must be at most 255 characters of UTF-8"), "{error}");
}

#[test]
fn what_is_no_condition_and_no_list_is_an_error() {
    let numbers = |count: usize| format!(r#"{{"l": [{}]}}"#, (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let each = |source: &str| FormatMapping { for_each: some(source), quantity: expression("item"), ..constants() };
    assert_eq!(elements(&each("event.l"), &numbers(100)).len(), 100);
    let rows = [
        (FormatMapping { skip_if: some("event.a"), ..constants() }, "{\"a\": 1}", "gives a number: true or false expected"),
        (FormatMapping { skip_if: some("event.a"), ..constants() }, "{\"a\": null}", "gives nothing: true or false expected"),
        (each("event.l"), "{\"l\": {}}", "gives an object: list expected"),
        (each("event.l"), "{\"l\": null}", "gives nothing: list expected"),
        (each("event.l"), &numbers(101), "gives a list of 101: at most 100 elements"),
    ];
    for (mapping, event, reason) in rows {
        assert_eq!(record(&mapping, event).expect_err(reason).reason, reason);
    }
}

#[test]
fn an_expression_has_an_element_in_a_format_with_a_list_only() {
    let errors = |mapping: &FormatMapping| RhaiMapper::new().check(mapping).err().unwrap_or_default();
    let without = FormatMapping { quantity: expression("item"), skip_if: some("item"), ..constants() };
    let targets: Vec<FormatTarget> = errors(&without).into_iter().map(|error| error.target).collect();
    assert_eq!(targets, [FormatTarget::Quantity, FormatTarget::SkipIf]);
    let of_itself = FormatMapping { for_each: some("item"), ..constants() };
    assert_eq!(errors(&of_itself).len(), 1);
    assert_eq!(errors(&completion()), []);
}

#[test]
fn the_events_of_a_record_have_a_size_together() {
    let each = FormatMapping { for_each: some("event.l"), quantity: expression("item"), ..constants() };
    let event = |elements: usize| {
        let list = vec!["1"; elements].join(",");
        format!(r#"{{"l": [{list}], "pad": "{}", "more": "{}"}}"#, "x".repeat(16_000), "x".repeat(16_000))
    };
    let most = MAX_EVENTS_BYTES / event(32).len();
    assert_eq!(elements(&each, &event(most)).len(), most);
    let error = record(&each, &event(most + 1)).expect_err("too much");
    assert!(error.reason.starts_with(&format!("gives {} events of a record of ", most + 1)), "{error}");
    let skipped = FormatMapping { skip_if: some("item == 1"), ..each };
    assert!(elements(&skipped, &event(most + 1)).iter().all(|element| element == "-"));
}

#[test]
fn the_elements_of_a_record_share_its_budget() {
    let many = format!("[{}]", vec!["event.n"; 200].join(","));
    let each = FormatMapping { for_each: some("event.l"), quantity: expression(&format!("item + {many}[0]")), ..constants() };
    let event = format!(r#"{{"n": 1, "l": [{}]}}"#, vec!["1"; 100].join(","));
    let found = elements(&each, &event);
    assert!(found[0] == "2 -" && found[99].ends_with("it takes too many steps"), "{found:?}");
}

#[test]
fn report_data_is_the_entries_of_a_field_at_any_depth() {
    let path = |names: &[&str]| FieldPath::new(names.iter().map(|name| (*name).to_owned()).collect()).expect("a path");
    let data = |names: &[&str], event: &str| {
        let mapped = map(FormatMapping { report_data: ReportMapping::Field(path(names)), ..constants() }, event);
        mapped.map(|mapped| mapped.report_data.map(|data| data.entries().to_vec())).map_err(|error| error.reason)
    };
    let event = r#"{"a": {"b": {"c": {"k": 1}}, "n": null, "t": "x"}}"#;
    let found = vec![("k".to_owned(), ReportValue::Number("1".to_owned()))];
    assert_eq!(data(&["a", "b", "c"], event), Ok(Some(found)));
    assert_eq!(data(&["a", "x", "c"], event), Ok(None));
    assert_eq!(data(&["a", "n", "c"], event), Ok(None));
    assert_eq!(data(&["a", "t", "c"], event), Err("`a.t` must be an object".to_owned()));
}
