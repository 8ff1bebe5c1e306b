//! Malicious or invalid formats and events produce a clear error quickly, and never a crash.

use std::time::{Duration, Instant};

use billing_domain::format::{
    FieldPath, FormatError, FormatMapping, FormatTarget, MappedRecord, Naming, ReportMapping, SourcePosition,
};
use billing_domain::ports::EventMapper as _;
use billing_formats::{MAX_EVENT_BYTES, MAX_EVENT_VALUES, MAX_TEXT_BYTES, RhaiMapper};

use crate::common::{columns, constants, expression, map, shown, value};

/// The guaranteed time limit applies to release builds. Debug builds take several times as long.
const SOON: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1000 } else { 50 });

/// Returns the result of work that must finish within [`SOON`]. Only the second of two runs counts, because the first may wait
/// for the machine.
fn soon<T>(work: impl Fn() -> T) -> T {
    work();
    let start = Instant::now();
    let result = work();
    let took = start.elapsed();
    assert!(took < SOON, "took {took:?}");
    result
}

fn refused_expression(source: &str) -> FormatError {
    soon(|| value(source, r#"{"a": 1}"#)).expect_err(&source[..source.len().min(60)])
}

fn refused_event(event: &str) -> FormatError {
    soon(|| map(constants(), event)).expect_err(&event[..event.len().min(60)])
}

#[test]
fn deeply_nested_expressions_are_refused() {
    let nested = |open: &str, close: &str| {
        let levels = (2048 - 1) / (open.len() + close.len());
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    };
    let pairs = [
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("!", ""),
        ("abs(", ")"),
        ("#{a:", "}"),
        ("if true {", "}"),
        ("1+(", ")"),
        ("- ", ""),
    ];
    for (open, close) in pairs {
        let error = refused_expression(&nested(open, close));
        assert!(!error.reason.is_empty(), "{open}");
    }
    // Long expressions: chains, and parentheses that are never closed.
    for long in [
        &"(".repeat(2048),
        &format!("event{}", ".a".repeat(1020)),
        &format!("event.a{}", "[0]".repeat(680)),
        &"event.a ?? ".repeat(186),
    ] {
        refused_expression(long);
    }
}

#[test]
fn long_but_flat_expressions_are_evaluated() {
    let sum = format!("1{}", "+1".repeat(1023));
    // The syntax tree is left-deep. The expression may be accepted or rejected, but quickly and without a crash.
    soon(|| value(&sum, "{}").ok());
}

#[test]
fn endless_loops_can_not_be_said() {
    for source in [
        "while true {}",
        "loop {}",
        "do {} while true",
        "for i in 0..9999999999 {}",
        "fn f() { f() } f()",
        "let f = || f.call(); f.call()",
    ] {
        let error = refused_expression(source);
        assert_eq!(error.target, FormatTarget::ReportColumn("x".to_owned()), "{source}");
    }
}

/// Returns a mapping with the maximum number of columns, each with as many calls as fit.
fn many_times(call: &str) -> FormatMapping {
    let source = format!("[{}][0]", vec![call; 2000 / (call.len() + 1)].join(","));
    let keys: Vec<_> = (0..100).map(|i| format!("k{i}")).collect();
    FormatMapping {
        report_data: columns(&keys.iter().map(|key| (key.as_str(), source.as_str())).collect::<Vec<_>>()),
        ..constants()
    }
}

#[test]
fn many_costly_steps_are_cut() {
    let text = "ß".repeat(7_000);
    let texts = format!(r#"{{"s": "{text}", "t": "{text}", "u": "{text}"}}"#);
    let numbers = format!(r#"{{"l": [{}7], "n": 8}}"#, "1,".repeat(1_900));
    let fields: Vec<_> = (0..1_900).map(|i| format!(r#""{i}": {i}"#)).collect();
    let fields = format!("{{{}}}", fields.join(","));
    let rows = [
        (&texts, "event.s == event.t"),
        (&texts, "lower(event.s) != upper(event.t)"),
        (&texts, r#""x" in event.s"#),
        (&texts, r#"slice(event.s, 6999, 1)"#),
        (&texts, r#"split(event.s, "x").x"#),
        (&texts, r#"replace(event.s, "ß", "s") == 1"#),
        (&numbers, "event.n in event.l"),
        (&numbers, "event.l[1]"),
        (&numbers, "get(event, \"n\")"),
        (&fields, "event"),
        (&fields, "lookup(event, 1)"),
        (&fields, "\"x\" in event"),
    ];
    for (event, call) in rows {
        let (mapper, mapping) = (RhaiMapper::new(), many_times(call));
        let error = soon(|| mapper.map(&mapping, event)).expect_err(call);
        assert!(!error.reason.is_empty(), "{call}");
    }
}

#[test]
fn all_expressions_of_an_event_share_one_budget() {
    let event = format!(r#"{{"s": "{}", "t": "{}", "n": 1}}"#, "x".repeat(16_000), "x".repeat(16_000));
    let one = FormatMapping { quantity: expression(&format!("1{}", " + event.n".repeat(20))), ..constants() };
    assert_eq!(map(one, &event).map(|mapped| mapped.quantity.as_decimal().to_string()), Ok("21".to_owned()));
    let error = map(many_times("event.n"), &event).expect_err("too many steps");
    assert_eq!(error.reason, "it takes too many steps");
}

#[test]
fn a_large_event_is_mapped_by_an_expression_of_usual_size() {
    let text = "x".repeat(10_000);
    let event = format!(r#"{{"s": "{text}", "t": "{text}", "o": {{"u": "{text}"}}, "n": 5, "l": [{}1]}}"#, "1,".repeat(1_500));
    let rows = [
        ("event.n + 1", "6"),
        (r#"get(event, "n")"#, "5"),
        (r#"lookup(event, "n") + event.l[3]"#, "6"),
        ("slice(event.o.u, 0, 2)", "xx"),
    ];
    for (source, expected) in rows {
        assert_eq!(shown(source, &event), expected, "{source}");
    }
}

#[test]
fn texts_do_not_grow_without_bound() {
    let event = format!(r#"{{"s": "{}"}}"#, "x".repeat(MAX_TEXT_BYTES));
    for source in ["event.s + event.s", "concat(event.s, 1)", r#"replace(event.s, "x", "yy")"#] {
        let error = soon(|| value(source, &event)).expect_err(source);
        assert_eq!(error.reason, "a text must have at most 16384 bytes", "{source}");
    }
    let error = value(r#"split(event.s, "x")"#, &event).expect_err("too many pieces");
    assert_eq!(error.reason, "a text splits into at most 1000 pieces");
    assert!(value(r#"upper(replace(slice(event.s, 0, 8000), "x", "ŉ"))"#, &event).is_err(), "the uppercase text is longer");
}

#[test]
fn huge_events_are_refused() {
    let rows = [
        (format!(r#"{{"s": "{}"}}"#, "x".repeat(MAX_EVENT_BYTES)), "must have at most 65536 bytes"),
        (format!(r#"{{"s": "{}"}}"#, "x".repeat(MAX_TEXT_BYTES + 1)), "must have at most 16384 bytes in a text"),
        (format!(r#"{{"s": [{}0]}}"#, "0,".repeat(MAX_EVENT_VALUES)), "must have at most 2000 values"),
        (format!(r#"{{"a": {}1{}}}"#, "[".repeat(40), "]".repeat(40)), "must have at most 32 levels"),
        (format!(r#"{{"a": {}1{}}}"#, r#"{"a":"#.repeat(40), "}".repeat(40)), "must have at most 32 levels"),
    ];
    for (event, reason) in rows {
        let error = refused_event(&event);
        assert_eq!((error.target, error.reason.as_str()), (FormatTarget::Event, reason));
    }
    let deep = refused_event(&format!(r#"{{"a": {}"#, "[".repeat(60_000)));
    assert!(deep.reason.starts_with("is not JSON: recursion limit exceeded"), "{}", deep.reason);
}

#[test]
fn what_is_no_object_is_no_event() {
    for event in
        ["", "[]", "1", "null", "\"text\"", "{", "{\"a\":}", "{\"a\":1}x", "{\"a\":01}", "{\"a\":NaN}", "{\"\\ud800\":1}"]
    {
        assert_eq!(refused_event(event).target, FormatTarget::Event, "{event}");
    }
}

#[test]
fn a_number_of_40_digits_is_passed_through_but_not_calculated_with() {
    let digits = "1234567890123456789012345678901234567890";
    let event = format!(r#"{{"n": {digits}, "e": 1e400, "t": "{digits}"}}"#);
    assert_eq!(shown("event.n", &event), digits);
    assert_eq!(shown("text(event.n)", &event), digits);
    assert_eq!(shown("event.e", &event), "1e+400");
    let kind = "a number with more digits than exact decimals hold";
    assert_eq!(shown("event.n + 1", &event), format!("error: can't add {kind} and a number"));
    assert_eq!(shown("event.n > 1", &event), format!("error: can't compare {kind} with a number"));
    assert_eq!(shown("to_decimal(event.t)", &event), digits);
    assert_eq!(shown("to_decimal(event.t) < 0", &event), format!("error: can't compare {kind} with a number"));
    for rounded in ["round(event.n)", "round(to_decimal(event.t), 9)", "round(event.e)"] {
        assert_eq!(shown(rounded, &event), "error: the result has more digits than exact decimals hold");
    }
    assert!(shown(digits, "{}").starts_with("error: a number must have at most 28 digits"));
    for source in ["event.n", "event.t"] {
        let error = map(FormatMapping { quantity: expression(source), ..constants() }, &event).expect_err(source);
        assert_eq!(error.target, FormatTarget::Quantity);
        assert_eq!(error.reason, format!("gives {digits}, which must have at most 15 integer digits, and 64 characters in all"));
    }
}

#[test]
fn errors_name_target_expression_position_and_reason() {
    let event = r#"{"a": 1, "t": "x"}"#;
    let missing = map(FormatMapping { quantity: expression("1 +\n  event.bytes"), ..constants() }, event).expect_err("missing");
    assert_eq!(missing.target, FormatTarget::Quantity);
    assert_eq!(missing.expression, Some(expression("1 +\n  event.bytes")));
    assert_eq!(missing.position, Some(SourcePosition { line: 2, column: 9 }));
    assert_eq!(missing.reason, "unknown field `bytes`");

    let rows = [
        (
            FormatMapping { timestamp: expression("event.a"), ..constants() },
            FormatTarget::Timestamp,
            "gives a number: text expected",
        ),
        (
            FormatMapping { timestamp: expression("event.t"), ..constants() },
            FormatTarget::Timestamp,
            "gives x, which must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z",
        ),
        (
            FormatMapping { quantity: expression("event"), ..constants() },
            FormatTarget::Quantity,
            "gives an object: number expected",
        ),
        (FormatMapping { quantity: expression("()"), ..constants() }, FormatTarget::Quantity, "has no value: number expected"),
        (
            FormatMapping { quantity: expression("0 - event.a"), ..constants() },
            FormatTarget::Quantity,
            "gives -1, which must not be negative",
        ),
        (
            FormatMapping { quantity: expression("event.a * 1000000000000000"), ..constants() },
            FormatTarget::Quantity,
            "gives 1000000000000000, which must have at most 15 integer digits, and 64 characters in all",
        ),
        (
            FormatMapping { customer: Naming::Ref(expression("event.a")), ..constants() },
            FormatTarget::CustomerRef,
            "gives a number: text expected",
        ),
        (
            FormatMapping {
                customer: Naming::Either { reference: expression("()"), name: expression(r#"get(event, "b")"#) },
                ..constants()
            },
            FormatTarget::CustomerName,
            "has no value: text expected",
        ),
        (
            FormatMapping { currency: Some(expression("[]")), ..constants() },
            FormatTarget::Currency,
            "gives a list: text expected",
        ),
        (
            FormatMapping { report_data: ReportMapping::Field(FieldPath::of_event("a")), ..constants() },
            FormatTarget::ReportData,
            "`a` must be an object",
        ),
    ];
    for (mapping, target, reason) in rows {
        let error = map(mapping, event).expect_err(reason);
        assert_eq!((error.target, error.reason.as_str()), (target, reason));
    }
}

#[test]
fn a_check_tells_every_expression_that_can_not_be_read() {
    let mapping = FormatMapping {
        timestamp: expression("event."),
        customer: Naming::Either { reference: expression("evnt.a"), name: expression("event.b") },
        quantity: expression("event.a +"),
        report_data: columns(&[("good", "event.a"), ("bad", "let x = 1")]),
        ..constants()
    };
    let errors = RhaiMapper::new().check(&mapping).expect_err("four invalid expressions");
    let targets: Vec<_> = errors.iter().map(|error| error.target.to_string()).collect();
    assert_eq!(targets, ["timestamp", "customer_ref", "quantity", "additional_report_data.bad"]);
    assert!(errors.iter().all(|error| error.position.is_some()), "{errors:?}");
    assert_eq!(RhaiMapper::new().check(&constants()), Ok(()));
}

#[test]
fn no_expression_changes_the_event_for_the_next() {
    let report_data = columns(&[("a", "event.list[0]"), ("b", "get(event, \"list\")[0] + 1"), ("c", "event.list[0]")]);
    let mapped = map(FormatMapping { report_data, ..constants() }, r#"{"list": [1]}"#).expect("mapped");
    assert_eq!(
        format!("{:?}", mapped.report_data.expect("columns").entries()),
        r#"[("a", Number("1")), ("b", Number("2")), ("c", Number("1"))]"#
    );
}

#[test]
fn any_number_of_formats_is_mapped_with_bounded_memory() {
    let mapper = RhaiMapper::new();
    for n in 0..600 {
        let mapping = FormatMapping { quantity: expression(&n.to_string()), ..constants() };
        let MappedRecord::Event(mapped) = mapper.map(&mapping, "{}").expect("mapped") else { panic!("an event") };
        assert_eq!(mapped.quantity.as_decimal().to_string(), n.to_string());
    }
}
