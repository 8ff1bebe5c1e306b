//! The language of expressions.

use crate::common::shown;

const EVENT: &str =
    r#"{"n": 3, "d": 0.1, "t": " Text ", "none": null, "yes": true, "new": 5, "list": [10, "b"], "o": {"k": "v", "404": 1}}"#;

fn table(rows: &[(&str, &str)]) {
    let failed: Vec<_> = rows.iter().filter(|(source, expected)| shown(source, EVENT) != *expected).collect();
    let got: Vec<_> =
        failed.iter().map(|(source, expected)| format!("{source}: {} instead of {expected}", shown(source, EVENT))).collect();
    assert!(got.is_empty(), "{got:#?}");
}

#[test]
fn numbers_are_exact_decimals() {
    table(&[
        ("event.n / 2", "1.5"),
        ("3 / 2", "1.5"),
        ("1 / 1000 * event.n", "0.003"),
        ("event.d + 0.2", "0.3"),
        ("event.d * 3 == 0.3", "true"),
        ("1.10 + 1", "2.10"),
        ("7 % 4 + event.n % 2", "4"),
        ("7.5 % 2", "1.5"),
        ("-event.d - 1", "-1.1"),
        ("9223372036854775807 + 1", "9223372036854775808"),
        ("9223372036854775807 * 9223372036854775807", "error: the result has more digits than exact decimals hold; round before"),
        ("(event.d / 3) * event.d", "error: the result has more digits than exact decimals hold; round before"),
        ("round(event.d / 3, 9) * event.d", "0.0033333333"),
        ("event.n / 0", "error: division by zero"),
        ("event.n % 0", "error: division by zero"),
    ]);
}

#[test]
fn rounding_is_half_away_from_zero() {
    table(&[
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.45, 1)", "2.5"),
        ("round(1.005, 2)", "1.01"),
        ("round(1.004999, 2)", "1.00"),
        ("floor(-1.2)", "-2"),
        ("ceil(61 / 60)", "2"),
        ("ceil(event.n)", "3"),
        ("max(event.n, 3.5) + min(1, 2) + abs(-1)", "5.5"),
        ("round(1, 29)", "error: rounds to 0 to 28 digits"),
        ("round(1, -1)", "error: rounds to 0 to 28 digits"),
        ("round(event.t)", "error: a number is wanted, not a text"),
    ]);
}

#[test]
fn a_float_with_more_digits_than_a_decimal_is_rounded_to_one() {
    let event = r#"{"tiny": 4.440892098500626e-16, "half": -0.50000000000000000000000000000000001, "text": "2.5E-30"}"#;
    for (text, value) in [
        ("round(event.tiny, 9) == 0", "true"),
        ("round(event.tiny, 20)", "0.00000000000000044409"),
        ("round(event.half)", "-1"),
        ("round(event.half, 28) * 2", "-1"),
        ("to_decimal(event.text)", "2.5E-30"),
        ("round(to_decimal(event.text), 28) < 0.001", "true"),
        ("event.tiny == 0", "error: can't compare a number with more digits than exact decimals hold with a number"),
    ] {
        assert_eq!(shown(text, event), value, "{text}");
    }
}

#[test]
fn types_that_do_not_fit_are_errors_not_answers() {
    table(&[
        ("event.t > 3", "error: can't compare a text with a number"),
        (r#"event.n == "3""#, "error: can't compare a number with a text"),
        ("event.list == event.list", "error: can't compare a list with a list"),
        ("event.none == ()", "true"),
        ("event.n != ()", "true"),
        ("event.t + 1", "error: can't add a text and a number"),
        ("event.none * 2", "error: can't multiply nothing and a number"),
        ("if event.n { 1 } else { 2 }", "error: bool is wanted where number is"),
        ("event.yes && event.n > 2", "true"),
        ("!event.yes || event.n < 2", "false"),
    ]);
}

#[test]
fn fields_are_found_or_named_as_missing() {
    table(&[
        ("event.list[0] + 1", "11"),
        ("event.list[1 - 1]", "10"),
        ("event.list[2]", "error: there is no element 2 in a list of 2"),
        ("event.o.k", "v"),
        (r#"event["o"]["k"]"#, "v"),
        (r#"event["new"]"#, "5"),
        ("event.new", "error: `new` is a reserved word; a field of that name is [\"new\"]"),
        ("event.missing", "error: unknown field `missing`"),
        ("event.o.missing", "error: unknown field `missing`"),
        (r#"get(event, "missing")"#, "nothing"),
        (r#"get(get(event, "missing"), "deeper")"#, "nothing"),
        (r#"get(event, "missing") ?? event.n"#, "3"),
        (r#""n" in event && !("x" in event)"#, "true"),
        (r#""ex" in event.t && 10 in [event.n, 10]"#, "true"),
    ]);
}

#[test]
fn tables_look_values_up() {
    table(&[
        (r#"lookup(#{"3": "three"}, event.n)"#, "three"),
        (r#"lookup(#{a: 1, v: 2}, event.o.k)"#, "2"),
        (r#"lookup(#{a: 1}, event.o.k)"#, "error: the table has no `v`"),
        (r#"lookup(#{a: 1}, event.o.k, 0)"#, "0"),
        (r#"lookup(#{a: 1}, event.none, "none")"#, "none"),
        (r#"lookup(#{a: 1}, event.list)"#, "error: a key is a text or a number, not a list"),
    ]);
}

#[test]
fn texts_are_cut_joined_and_read() {
    table(&[
        ("upper(trim(event.t)) + lower(event.t)", "TEXT text "),
        (r#"split("a,b,c", ",")[1]"#, "b"),
        (r#"split("a", "")"#, "error: a separator must not be empty"),
        (r#"slice("Zürich", 1, 2)"#, "ür"),
        (r#"slice("ab", 5, 2)"#, ""),
        (r#"slice("ab", -1, 2)"#, "error: start and length of a slice must not be negative"),
        (r#"to_decimal(replace(replace("1.234,50", ".", ""), ",", "."))"#, "1234.50"),
        (r#"concat(event.n, "-", event.d, "-", event.yes)"#, "3-0.1-true"),
        ("text(event.n) + \"x\"", "3x"),
        ("concat(event.o, 1)", "error: an object has no text"),
        (r#"to_decimal(" 12.50 ") + 1"#, "13.50"),
        (r#"to_decimal("12,5")"#, "error: `12,5` is not a decimal number"),
        (r#"to_decimal("1_000")"#, "error: `1_000` is not a decimal number"),
        ("to_decimal(event.n)", "3"),
    ]);
}

#[test]
fn dates_become_instants_in_utc() {
    table(&[
        (r#"rfc3339("2026-03-01T12:00:00.5+02:00")"#, "2026-03-01T10:00:00.500Z"),
        (
            r#"rfc3339("2026-03-01T12:00:00")"#,
            "error: `2026-03-01T12:00:00` must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z",
        ),
        (r#"date_time("10/Oct/2026:13:55:36 +0200", "%d/%b/%Y:%H:%M:%S %z")"#, "2026-10-10T11:55:36Z"),
        (r#"date_time("10.10.2026 13:55", "%d.%m.%Y %H:%M", "America/New_York")"#, "2026-10-10T17:55:00Z"),
        (r#"date_time("31.03.2026", "%d.%m.%Y", "Europe/Berlin")"#, "2026-03-30T22:00:00Z"),
        (
            r#"date_time("31.02.2026", "%d.%m.%Y", "Europe/Berlin")"#,
            "error: `31.02.2026` doesn't follow the pattern `%d.%m.%Y`: input is out of range",
        ),
        (
            r#"date_time("10.10.2026 13:55", "%d.%m.%Y %H:%M")"#,
            "error: `10.10.2026 13:55` needs an offset in the pattern, or a zone as third argument",
        ),
        (
            r#"date_time("x", "%d", "Europe/Atlantis")"#,
            "error: `Europe/Atlantis` is not an IANA time zone name such as Europe/Berlin",
        ),
        ("unix_seconds(1772366400)", "2026-03-01T12:00:00Z"),
        ("unix_seconds(1772366400.25)", "2026-03-01T12:00:00.250Z"),
        ("unix_milliseconds(1772366400250)", "2026-03-01T12:00:00.250Z"),
        ("unix_seconds(999999999999)", "error: the number lies outside the years 1 to 9999"),
        (r#"seconds_between("2026-01-01T00:00:00Z", "2026-01-01T01:00:00.5+01:00")"#, "0.5"),
    ]);
}

#[test]
fn a_local_time_that_clocks_show_twice_is_the_first_and_one_they_skip_is_an_error() {
    table(&[
        (r#"date_time("25.10.2026 02:30", "%d.%m.%Y %H:%M", "Europe/Berlin")"#, "2026-10-25T00:30:00Z"),
        (
            r#"date_time("29.03.2026 02:30", "%d.%m.%Y %H:%M", "Europe/Berlin")"#,
            "error: `29.03.2026 02:30` doesn't exist in Europe/Berlin: clocks skip it",
        ),
    ]);
}

#[test]
fn an_expression_may_choose_but_not_act() {
    table(&[
        ("if event.n > 2 { \"many\" } else if event.n > 1 { \"two\" } else { \"one\" }", "many"),
        ("[1, 2][0]", "1"),
        ("#{a: event.n}.a", "3"),
    ]);
    let refused = [
        "let x = 1",
        "event = 1",
        "event.n = 1",
        "{ 1; 2 }",
        "while true { }",
        "loop { }",
        "for x in event.list { }",
        "do { } while true",
        "1; 2",
        "eval(\"1\")",
        "print(1)",
        "debug(1)",
        "fn f() { 1 }",
        "|x| x",
        "switch event.n { 3 => 1 }",
        "import \"a\"",
        "throw 1",
        "return 1",
        "if true { let x = 1; x } else { 2 }",
        "if true { event.n = 2 } else { 3 }",
        "2 ** 3",
        "1 << 2",
        "1..2",
        "type_of(event)",
        "other",
        "this",
        "event.n += 1",
        "global::x",
        "sleep(1)",
        "timestamp()",
        "rand()",
        "event.list.push(1)",
        "event.list.clear()",
        "parse_json(\"1\")",
        "call(\"f\")",
        "Fn(\"f\")",
        "event.len()",
        "to_string(1)",
        "'c'",
        "`a`",
        "1 // x",
        "",
    ];
    let taken: Vec<_> =
        refused.iter().filter(|source| !source.is_empty() && !shown(source, EVENT).starts_with("error: ")).collect();
    assert!(taken.is_empty(), "{taken:?}");
}
