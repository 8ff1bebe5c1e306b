//! Files in all formats, and the errors of invalid ones.

use billing_domain::event_input::{FileEventKey, FileLine, MAX_RECORD_KEY_CHARS};
use serde_json::{Value, json};

use super::*;

const NAMES: &str = "timestamp,customer_ref,usage_product_ref,quantity";

fn named() -> ReadOptions {
    ReadOptions { name: FileName::parse("a.csv").ok(), ..ReadOptions::default() }
}

fn open(kind: FileKind, text: impl AsRef<[u8]>, reading: ReadOptions) -> Result<Vec<FileLine>, FileError> {
    all(UsageFile::open(text.as_ref(), kind, reading)?)
}

fn all(mut file: UsageFile<&[u8]>) -> Result<Vec<FileLine>, FileError> {
    let mut lines = Vec::new();
    while let Some(line) = file.next_line()? {
        lines.push(line);
    }
    Ok(lines)
}

/// Returns the lines of a file, which need not have all facts of an event.
#[track_caller]
fn lines(kind: FileKind, text: impl AsRef<[u8]>) -> Vec<FileLine> {
    partial(kind, text, named()).expect("a file")
}

fn partial(kind: FileKind, text: impl AsRef<[u8]>, reading: ReadOptions) -> Result<Vec<FileLine>, FileError> {
    all(UsageFile::open_columns(text.as_ref(), kind, reading)?)
}

fn event(line: &FileLine) -> Value {
    serde_json::from_str(&line.event.as_ref().expect("an event").event).expect("JSON")
}

fn known_by(line: &FileLine) -> &FileEventKey {
    line.event.as_ref().expect("an event").known_by.as_ref().expect("a key")
}

fn refusal(line: &FileLine) -> String {
    line.event.as_ref().expect_err("a refusal").to_string()
}

#[track_caller]
fn malformed(kind: FileKind, text: impl AsRef<[u8]>) -> String {
    partial(kind, text, named()).expect_err("a rejected file").to_string()
}

#[test]
fn columns_that_the_default_shape_does_not_know_are_report_data() {
    let text = format!("{NAMES},region,additional_report_data.quantity,empty\n2026-01-20T10:15:30Z,acme,calls,12.50,=eu,7,\n");
    let expected = json!({
        "timestamp": "2026-01-20T10:15:30Z", "customer_ref": "acme", "usage_product_ref": "calls",
        "quantity": serde_json::from_str::<Value>("12.50").expect("a number"),
        "additional_report_data": {"region": "=eu", "quantity": "7"},
    });
    assert_eq!(event(&lines(FileKind::Csv, &text)[0]), expected);
    let free = ReadOptions { format_name: Some("Gateway".to_owned()), ..named() };
    let flat = json!({
        "timestamp": "2026-01-20T10:15:30Z", "customer_ref": "acme", "usage_product_ref": "calls", "quantity": "12.50",
        "region": "=eu", "additional_report_data.quantity": "7", "empty": null,
    });
    assert_eq!(event(&open(FileKind::Csv, &text, free).expect("a file")[0]), flat);
    let refused = malformed(FileKind::Csv, "region,additional_report_data.region\na,b\n");
    assert!(refused.contains("columns 1 and 2"), "{refused}");
}

#[test]
fn an_event_has_its_own_key_in_every_kind_of_file() {
    let batch: Value = serde_json::from_str(
        r#"{"quantity":1.0,"timestamp":"2026-01-20T10:15:30Z","usage_product_ref":"calls","customer_ref":"acme",
            "additional_report_data":{"region":"eu"},"idempotency_key":"k-1"}"#,
    )
    .expect("JSON");
    let csv = format!("idempotency_key,{NAMES},region,other\nk-1,2026-01-20T10:15:30Z,acme,calls,1,eu,\n");
    for (kind, text) in
        [(FileKind::Csv, csv), (FileKind::Ndjson, batch.to_string()), (FileKind::Json, format!(" [ {batch} ] \n"))]
    {
        let FileEventKey::Own(key) = known_by(&lines(kind, &text)[0]).clone() else { panic!("{kind:?}: no own key") };
        assert_eq!(key.as_str(), "k-1", "{kind:?}");
    }
    for key in ["1", "\"\"", "{}"] {
        let refused = refusal(&lines(FileKind::Ndjson, format!(r#"{{"idempotency_key":{key}}}"#))[0]);
        assert!(refused.starts_with("idempotency_key must"), "{refused}");
    }
}

#[test]
fn an_event_without_a_key_is_known_by_file_and_line() {
    let text =
        format!("{NAMES},idempotency_key\r\n2026-01-20T10:15:30Z,acme,calls,1,\r\n\r\n2026-01-20T10:15:30Z,acme,calls,1,\r\n");
    let read = lines(FileKind::Csv, &text);
    let keys: Vec<&str> = read.iter().map(|line| known_by(line).key().as_str()).collect();
    assert_eq!(keys, ["import/a.csv/2", "import/a.csv/4"]);
    assert!(matches!(known_by(&read[0]), FileEventKey::Line(_)));
    let nameless = open(FileKind::Csv, &text, ReadOptions::default()).expect("a file");
    assert_eq!(nameless[0].event.as_ref().expect("an event").known_by, None);
}

#[test]
fn a_name_leaves_room_for_every_line_number_in_a_key() {
    for (no_name, reason) in [("", "must not be empty"), ("a\nb", "must not contain control characters")] {
        assert_eq!(FileName::parse(no_name).expect_err(no_name).to_string(), reason);
    }
    let too_long = FileName::parse(&"é".repeat(FileName::MAX_CHARS + 1)).expect_err("one character too many");
    assert_eq!(too_long.to_string(), "must be at most 224 characters");
    let longest = FileName::parse(&"é".repeat(FileName::MAX_CHARS)).expect("a name");
    assert_eq!(longest.key(u64::MAX).expect("a key").as_str().chars().count(), MAX_RECORD_KEY_CHARS);
}

#[test]
fn delimiters_are_recognised_by_the_names_and_quotes_keep_them() {
    let event_of = |text: &str| event(&lines(FileKind::Csv, text)[0]);
    for (delimiter, other) in [(",", ";"), (";", ","), ("\t", ",")] {
        let text = ["customer_ref", "quantity", "\"note, a; b\"\n\"a", "b\"", "1", &format!("\"x{other}y{delimiter}z\"\n")];
        let text = format!(
            "{}{}",
            text[..2].join(delimiter),
            format_args!("{delimiter}\"no{other}te\"\n{}", ["acme", "1", text[5]].join(delimiter))
        );
        let data = event_of(&text)["additional_report_data"].clone();
        assert_eq!(data, json!({format!("no{other}te"): format!("x{other}y{delimiter}z")}), "{text}");
    }
    let one = ReadOptions { delimiter: Delimiter::parse("|").ok(), ..named() };
    let read = partial(FileKind::Csv, "customer_ref|quantity\nacme|1", one).expect("a file");
    assert_eq!(event(&read[0]), json!({"customer_ref": "acme", "quantity": 1}));
    for bad in ["", "ab", "\"", "a", "1", "\n", "é"] {
        assert_eq!(Delimiter::parse(bad), Err(DelimiterError), "{bad:?}");
    }
}

#[test]
fn byte_order_marks_and_line_ends_make_no_difference() {
    for (kind, text) in [
        (FileKind::Csv, "\u{feff}\"customer_ref\",quantity\r\n\r\nacme,1\r\n\r\nacme,2"),
        (
            FileKind::Ndjson,
            "\u{feff}\r\n\r\n{\"customer_ref\":\"acme\",\"quantity\":1}\r\n\r\n{\"customer_ref\":\"acme\",\"quantity\":2}",
        ),
    ] {
        let read = lines(kind, text);
        assert_eq!(read.iter().map(|line| line.number).collect::<Vec<_>>(), [3, 5], "{kind:?}");
        assert_eq!(event(&read[1]), json!({"customer_ref": "acme", "quantity": 2}), "{kind:?}");
    }
    let array = lines(FileKind::Json, "\u{feff}\r\n[\r\n{\"quantity\":1.50},{\"quantity\":2}\r\n]\r\n");
    assert_eq!((array[1].number, array[0].text.as_str()), (2, r#"{"quantity":1.50}"#));
}

#[test]
fn a_line_that_cannot_be_read_is_refused_and_the_next_one_is_read() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(2 * 1024 * 1024));
    let parts: [(&[u8], &str); 6] = [
        (b"{", "not JSON"),
        (b"[1]", "must be a JSON object"),
        (b"{\"a\":\"\xff\"}", "UTF-8"),
        (b"{\"a\":1,\"a\":2}", "appears twice"),
        (b"{\"a\":\"\0\"}", "not JSON"),
        (long.as_bytes(), "1048576 bytes"),
    ];
    let mut file = b"{}\n".to_vec();
    for (line, _) in parts {
        file.extend_from_slice(line);
        file.push(b'\n');
    }
    file.extend_from_slice(b"{}");
    let read = lines(FileKind::Ndjson, &file);
    for (line, (_, part)) in read[1..].iter().zip(parts) {
        assert!(refusal(line).contains(part), "{}", refusal(line));
    }
    assert_eq!((read.len(), read[7].number, read[7].event.is_ok()), (8, 8, true));

    let csv = lines(FileKind::Csv, b"a,b\n1\n\xff,2\n1,2,3\n1,2\n");
    let numbers: Vec<u64> = csv.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
    for (line, part) in csv.iter().zip(["1 fields", "column \"a\" is not UTF-8", "3 fields"]) {
        assert!(refusal(line).contains(part), "{}", refusal(line));
    }
    assert!(csv[3].event.is_ok());
}

#[test]
fn a_file_that_is_none_is_refused_as_a_whole() {
    let columns = (0..2_001).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let wide = format!("{}\n1\n", vec!["x".repeat(70); 1_000].join(","));
    let rows: [(FileKind, &[u8], &str); 17] = [
        (FileKind::Csv, b"", "empty"),
        (FileKind::Csv, b"\n\n", "empty"),
        (FileKind::Csv, NAMES.as_bytes(), "no events"),
        (FileKind::Csv, b"a,b\r\n\r\n", "no events"),
        (FileKind::Csv, b"a,a\n1,2\n", "column 2"),
        (FileKind::Csv, b",,\n1,2,3\n", "must have the column names"),
        (FileKind::Csv, b"Customer Ref,customer-ref\n1,2\n", "columns 1 and 2 are both customer_ref"),
        (FileKind::Csv, b"a,\xff\n1,2\n", "column 2 is not UTF-8"),
        (FileKind::Csv, b"\xff\xfea\0,\0b\0\n\0", "NUL"),
        (FileKind::Csv, columns.as_bytes(), "2001 columns"),
        (FileKind::Csv, wide.as_bytes(), "column names have more than 65536 bytes"),
        (FileKind::Ndjson, b"", "no events"),
        (FileKind::Ndjson, b"PK\x03\x04\0\0\0", "NUL"),
        (FileKind::Json, b"", "no JSON array"),
        (FileKind::Json, b"{}", "NDJSON"),
        (FileKind::Json, b" [ ] ", "no events"),
        (FileKind::Json, b"\x1f\x8b\x08\0", "NUL"),
    ];
    for (kind, text, part) in rows {
        let reported = malformed(kind, text);
        assert!(reported.contains(part), "{:?}: {reported}", String::from_utf8_lossy(&text[..text.len().min(40)]));
    }
}

#[test]
fn what_hides_the_next_line_ends_the_file() {
    let open_quote = format!("{NAMES}\n\"{}", "x,\n".repeat(1024 * 1024));
    assert!(malformed(FileKind::Csv, &open_quote).starts_with("line 2: the line has more than 1048576 bytes"));
    let huge = format!("[{{\"a\":\"{}\"}}]", "x".repeat(2 * 1024 * 1024));
    for (text, part) in [
        ("[{}", "element 1: the array isn't closed"),
        ("[{},1]", "element 2: an event must be a JSON object"),
        ("[{} {}]", "element 1: a comma"),
        ("[{},]", "element 2: an event must be"),
        ("[{\"a\":}]", "element 1: not JSON"),
        ("[{}]{}", "element 1: the array has ended"),
        (huge.as_str(), "element 1: not JSON, or more than 1048576 bytes"),
    ] {
        let reported = malformed(FileKind::Json, text);
        assert!(reported.starts_with(part), "{reported}");
    }
}

#[test]
fn a_copy_says_of_which_event() {
    let read = lines(FileKind::Json, r#"[{"event_ref":"r"},{"event_ref":null}]"#);
    let event_ref = |line: &FileLine| line.event.as_ref().expect("an event").event_ref.clone();
    assert_eq!((event_ref(&read[0]).as_deref(), event_ref(&read[1])), (Some("r"), None));
    assert!(refusal(&lines(FileKind::Ndjson, r#"{"event_ref":7}"#)[0]).starts_with("event_ref must be a string"));
    let free = ReadOptions { format_name: Some("Gateway".to_owned()), ..named() };
    assert!(open(FileKind::Ndjson, r#"{"event_ref":7}"#, free).expect("a file")[0].event.is_ok());
    let read = lines(
        FileKind::Csv,
        format!("event_ref,{NAMES}\nr,2026-01-20T10:15:30Z,acme,calls,1\n,2026-01-20T10:15:30Z,acme,calls,1\n"),
    );
    assert_eq!((event_ref(&read[0]).as_deref(), event_ref(&read[1])), (Some("r"), None));
}

#[test]
fn names_of_fields_differ_in_case_spaces_and_hyphens() {
    let read =
        lines(FileKind::Csv, " Timestamp ,Customer Ref,USAGE-PRODUCT REF,Quantity,Event-Ref,Region \nt,acme,calls,1.5,,eu\n");
    let expected = json!({
        "timestamp": "t", "customer_ref": "acme", "usage_product_ref": "calls",
        "quantity": serde_json::from_str::<Value>("1.5").expect("a number"), "additional_report_data": {"Region": "eu"},
    });
    assert_eq!(event(&read[0]), expected);
    // An exact name comes first. The other column is report data.
    let read = lines(FileKind::Csv, "Quantity,quantity\n1,2\n");
    assert_eq!(event(&read[0]), json!({"quantity": 2, "additional_report_data": {"Quantity": "1"}}));
    let columns = ColumnMap::parse(r#"{"Menge": "quantity"}"#).expect("a map");
    let read = partial(FileKind::Csv, "Quantity, Menge\n1,2\n", ReadOptions { columns, ..named() }).expect("a file");
    assert_eq!(event(&read[0]), json!({"quantity": 2, "additional_report_data": {"Quantity": "1"}}));
    // Names that differ in white space stay as they are.
    let read = lines(FileKind::Csv, "a ,a, a\n1,2,3\n");
    assert_eq!(event(&read[0]), json!({"additional_report_data": {"a ": "1", "a": "2", " a": "3"}}));
    // A usage format gets the names as they are.
    let free = ReadOptions { format_name: Some("Gateway".to_owned()), ..named() };
    let read = open(FileKind::Csv, " Customer Ref ,customer_ref\na,b\n", free).expect("a file");
    assert_eq!(event(&read[0]), json!({"Customer Ref": "a", "customer_ref": "b"}));
}

#[test]
fn a_first_line_states_the_delimiter() {
    for first in ["sep=;", "SEP=;\r", "\"sep=;\""] {
        let read = lines(FileKind::Csv, format!("{first}\nquantity;a,b\n1;x,y\n;;\n2;\n"));
        assert_eq!(read.iter().map(|line| line.number).collect::<Vec<_>>(), [3, 5], "{first}");
        assert_eq!(event(&read[0]), json!({"quantity": 1, "additional_report_data": {"a,b": "x,y"}}));
    }
    let chosen = ReadOptions { delimiter: Delimiter::parse(",").ok(), ..named() };
    let read = partial(FileKind::Csv, "sep=;\nquantity,note\n1,a;b\n", chosen).expect("a file");
    assert_eq!(event(&read[0])["additional_report_data"], json!({"note": "a;b"}));
    let read = lines(FileKind::Csv, "sep=;x\n1;2\n");
    assert_eq!(event(&read[0]), json!({"additional_report_data": {"sep=": "1", "x": "2"}}), "a column name");
}

#[test]
fn empty_rows_and_columns_are_passed_over() {
    let read = lines(FileKind::Csv, "quantity,a,,\n1,x,,\n,,,\n,\n2,y,,z\n3,,\n");
    assert_eq!(read.iter().map(|line| line.number).collect::<Vec<_>>(), [2, 5, 6]);
    assert_eq!(event(&read[0]), json!({"quantity": 1, "additional_report_data": {"a": "x"}}));
    let refused = read[1].event.as_ref().expect_err("a cell without a name").iter().next().cloned().expect("one violation");
    assert_eq!((refused.code, refused.detail.contains("column 4")), ("unnamed_column", true), "{refused:?}");
    assert!(refusal(&read[2]).contains("3 fields"), "{}", refusal(&read[2]));
    let columns = ColumnMap::parse(r#"{"": null}"#).expect("a map");
    let read = partial(FileKind::Csv, "quantity,,\n1,x,y\n", ReadOptions { columns, ..named() }).expect("a file");
    assert_eq!(event(&read[0]), json!({"quantity": 1}), "columns without a name are left out on request");
}

#[test]
fn a_file_without_a_required_column_is_rejected_at_once() {
    for (names, missing) in [
        (
            "timestamp,customer_ref,usage_product_ref,qantity",
            "no column quantity (the nearest is \"qantity\"): its columns are timestamp, ",
        ),
        (
            "timestamp,customer,usage_product_name,quantity",
            "no column customer_ref or customer_name: its columns are timestamp, customer, ",
        ),
        (
            "a,,b",
            "no column timestamp, and no column customer_ref or customer_name, and no column usage_product_ref or usage_product_name, and no column quantity: its columns are a, b.",
        ),
    ] {
        let refused = open(FileKind::Csv, format!("{names}\n"), named()).expect_err(names).to_string();
        assert!(refused.contains(missing), "{refused}");
    }
    let free = ReadOptions { format_name: Some("Gateway".to_owned()), ..named() };
    assert!(open(FileKind::Csv, "a\n1\n", free).is_ok(), "a usage format reads any columns");
    assert!(open(FileKind::Csv, "Timestamp,customer_name,usage_product_name,Quantity\nt,a,b,1\n", named()).is_ok());
}

#[test]
fn a_decimal_comma_is_read_only_on_request() {
    let comma = || ReadOptions { decimal: DecimalSeparator::Comma, ..named() };
    let text = "quantity;price\n1,5;2,5\n7;\n1.5;\n1.234,5;\n1,2,3;\n";
    let read = partial(FileKind::Csv, text, comma()).expect("a file");
    let number = serde_json::from_str::<Value>("1.5").expect("a number");
    assert_eq!(event(&read[0]), json!({"quantity": number, "additional_report_data": {"price": "2,5"}}));
    assert_eq!((event(&read[1]), event(&read[4])), (json!({"quantity": 7}), json!({"quantity": "1.2.3"})));
    for line in &read[2..4] {
        assert!(refusal(line).starts_with("quantity must be a decimal number such as 12,5"), "{}", refusal(line));
    }
    assert_eq!(event(&lines(FileKind::Csv, text)[0])["quantity"], "1,5", "no decimal comma is guessed");
    let free = ReadOptions { format_name: Some("Gateway".to_owned()), ..comma() };
    assert_eq!(event(&partial(FileKind::Csv, text, free).expect("a file")[0]), json!({"quantity": "1.5", "price": "2,5"}));
    assert!(open(FileKind::Ndjson, "{}", comma()).expect_err("no CSV").to_string().contains("decimal comma"));
    for text in ["", ";", "..", "point"] {
        assert_eq!(DecimalSeparator::parse(text), Err(DecimalSeparatorError));
    }
}

#[test]
fn report_data_in_a_cell_joins_the_other_columns() {
    let read = lines(FileKind::Csv, "additional_report_data;region;validations\n\"{\"\"a\"\":1}\";eu;{}\nx;eu;\n");
    assert_eq!(event(&read[0]), json!({"additional_report_data": {"a": 1, "region": "eu"}, "validations": "{}"}));
    assert_eq!(event(&read[1]), json!({"additional_report_data": "x"}), "the reader of events rejects it");
}

#[test]
fn a_field_with_a_constant_value_is_on_every_line() {
    let with = |constants: &str| ReadOptions { constants: ConstantFields::parse(constants).expect("fields"), ..named() };
    let given = r#"{"customer_ref": "acme", "Quantity": 1, "plan": "a"}"#;
    let read = open(FileKind::Csv, "timestamp,usage_product_ref\nt,calls\nu,calls\n", with(given)).expect("a file");
    assert_eq!(
        event(&read[1]),
        json!({"timestamp": "u", "usage_product_ref": "calls", "customer_ref": "acme", "quantity": 1,
            "additional_report_data": {"plan": "a"}})
    );
    assert!(refusal(&partial(FileKind::Csv, "a,b\n1\n", with(given)).expect("a file")[0]).contains("2 column names"));
    let free = ReadOptions { format_name: Some("Gateway".to_owned()), ..with(r#"{"who": "acme"}"#) };
    assert_eq!(event(&open(FileKind::Csv, "n\n7\n", free).expect("a file")[0]), json!({"n": "7", "who": "acme"}));
    for (names, field) in [("Customer Ref", "customer_ref"), ("additional_report_data.plan", "plan")] {
        let twice = partial(FileKind::Csv, format!("{names}\nx\n"), with(given)).expect_err(names).to_string();
        assert!(twice.starts_with(&format!("{field} has a constant value")), "{twice}");
    }
    let columns = ColumnMap::parse(r#"{"customer_ref": null}"#).expect("a map");
    let read = partial(FileKind::Csv, "customer_ref\nx\n", ReadOptions { columns, ..with(given) }).expect("a file");
    assert_eq!(event(&read[0])["customer_ref"], "acme");
    assert!(open(FileKind::Ndjson, "{}", with(given)).expect_err("no CSV").to_string().contains("only CSV"));
}
