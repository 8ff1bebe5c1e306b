//! Writes each format and reads it back.

use std::io::{Cursor, Read as _};

use billing_domain::document::DocumentKind;
use billing_domain::document::numbering::{DocumentNumber, DocumentNumbers};
use billing_domain::party::NumberPrefix;
use billing_domain::refs::EventRef;
use billing_domain::report::{ReportColumns, ReportKeys, ReportedEvent};
use billing_domain::usage::{ReportData, ReportValue};
use billing_testkit::fixtures;
use uuid::Uuid;

use super::*;

fn event(n: u128, quantity: &str, entries: &[(&str, ReportValue)]) -> ReportedEvent {
    let prefix = NumberPrefix::parse("UB").expect("a prefix");
    let number = |kind, sequence| DocumentNumber { prefix: prefix.clone(), kind, sequence };
    let numbers = [number(DocumentKind::Invoice, 1), number(DocumentKind::Debit, 2)];
    let entries: Vec<_> = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    ReportedEvent {
        event_ref: EventRef::from_uuid(Uuid::from_u128(n)),
        occurred_at: fixtures::at("2026-01-02T03:04:05.000006Z"),
        customer_ref: fixtures::customer_ref("-acme"),
        customer_name: fixtures::line("Acme, \"Europe\""),
        usage_product_ref: fixtures::usage_product_ref("calls"),
        usage_product_name: fixtures::line("=SUM(A1)"),
        quantity: fixtures::quantity(quantity),
        document_numbers: DocumentNumbers::in_order_of_change(numbers).expect("two numbers"),
        report_data: (!entries.is_empty()).then(|| ReportData::new(entries)),
    }
}

fn text(text: &str) -> ReportValue {
    ReportValue::Text(text.to_owned())
}

fn number(text: &str) -> ReportValue {
    ReportValue::Number(text.to_owned())
}

fn columns(events: &[ReportedEvent]) -> ReportColumns {
    let mut keys = ReportKeys::default();
    events.iter().filter_map(|event| event.report_data.as_ref()).for_each(|data| keys.add(data).expect("few keys"));
    ReportColumns::new(keys)
}

fn written(format: ReportFormat, events: &[ReportedEvent]) -> Vec<u8> {
    let mut writer = ReportWriter::new(format, Vec::new());
    writer.start(columns(events)).expect("a start");
    events.iter().for_each(|event| writer.row(event).expect("a row"));
    writer.finish().expect("an end")
}

fn some_events() -> Vec<ReportedEvent> {
    vec![
        event(1, "1.50", &[("z", number("-1.50")), ("quantity", text("+1")), ("=cmd", ReportValue::Bool(true))]),
        event(2, "12345678901234.000001", &[]),
        event(3, "0", &[("z", text("'=1")), ("=cmd", ReportValue::Null), ("é", text("naïve ✓, \"x\""))]),
    ]
}

#[test]
fn csv_is_quoted_and_guards_texts_that_look_like_formulas() {
    let csv = String::from_utf8(written(ReportFormat::Csv, &some_events())).expect("UTF-8");
    let fixed = "2026-01-02T03:04:05.000006Z,'-acme,\"Acme, \"\"Europe\"\"\",calls,'=SUM(A1)";
    let expected = [
        "event_ref,timestamp,customer_ref,customer_name,usage_product_ref,usage_product_name,quantity,document_numbers,\
         '=cmd,additional_report_data.quantity,z,é"
            .to_owned(),
        format!("00000000-0000-0000-0000-000000000001,{fixed},1.50,\"UB-INV-1, UB-DBT-2\",true,'+1,-1.50,"),
        format!("00000000-0000-0000-0000-000000000002,{fixed},12345678901234.000001,\"UB-INV-1, UB-DBT-2\",,,,"),
        format!("00000000-0000-0000-0000-000000000003,{fixed},0,\"UB-INV-1, UB-DBT-2\",,,''=1,\"naïve ✓, \"\"x\"\"\""),
        String::new(),
    ];
    assert_eq!(csv, expected.join("\r\n"));
}

#[test]
fn json_keeps_digits_and_leaves_out_what_is_not_there() {
    let json = String::from_utf8(written(ReportFormat::Json, &some_events())).expect("UTF-8");
    let fixed = |quantity: &str| {
        format!(
            r#""timestamp":"2026-01-02T03:04:05.000006Z","customer_ref":"-acme","customer_name":"Acme, \"Europe\"","usage_product_ref":"calls","usage_product_name":"=SUM(A1)","quantity":{quantity},"document_numbers":"UB-INV-1, UB-DBT-2""#
        )
    };
    let expected = [
        "[".to_owned(),
        format!(
            r#"{{"event_ref":"00000000-0000-0000-0000-000000000001",{},"=cmd":true,"additional_report_data.quantity":"+1","z":-1.50}},"#,
            fixed("1.50")
        ),
        format!(r#"{{"event_ref":"00000000-0000-0000-0000-000000000002",{}}},"#, fixed("12345678901234.000001")),
        format!(
            r#"{{"event_ref":"00000000-0000-0000-0000-000000000003",{},"=cmd":null,"z":"'=1","é":"naïve ✓, \"x\""}}"#,
            fixed("0")
        ),
        "]\n".to_owned(),
    ];
    assert_eq!(json, expected.join("\n"));
    assert_eq!(written(ReportFormat::Json, &[]), b"[]\n");
}

fn part(workbook: &[u8], name: &str) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(workbook)).expect("a workbook is an archive");
    let mut content = String::new();
    archive.by_name(name).expect(name).read_to_string(&mut content).expect("XML");
    content
}

#[test]
fn a_workbook_has_numbers_where_doubles_hold_them_and_texts_elsewhere() {
    let workbook = written(ReportFormat::Xlsx, &some_events());
    let sheet = part(&workbook, "xl/worksheets/sheet1.xml");
    for cell in [
        r#"<c r="G2"><v>1.5</v></c>"#,
        r#"<c r="G3" t="inlineStr"><is><t>12345678901234.000001</t></is></c>"#,
        r#"<c r="I1" s="1" t="inlineStr"><is><t>=cmd</t></is></c>"#,
        r#"<c r="I2" t="b"><v>1</v></c>"#,
        r#"<c r="K2"><v>-1.5</v></c>"#,
        r#"<c r="F2" t="inlineStr"><is><t>=SUM(A1)</t></is></c>"#,
    ] {
        assert!(sheet.contains(cell), "{cell}\n{sheet}");
    }
    assert!(!sheet.contains("<f>"), "no formula");

    // 2 January 2026 is day 46024 of spreadsheet programs.
    let instant = sheet.split("<c r=\"B2\" s=\"2\"><v>46024.1278").count();
    assert_eq!(instant, 2, "an instant is a number with a format: {sheet}");
    let styles = part(&workbook, "xl/styles.xml");
    assert!(styles.contains("formatCode=\"yyyy-mm-dd hh:mm:ss\""), "{styles}");
    for feature in ["state=\"frozen\"", "<autoFilter ref=\"A1:L4\"/>", "<col min=\"1\" max=\"1\""] {
        assert!(sheet.contains(feature), "{feature}\n{sheet}");
    }
}

#[test]
fn dates_are_cells_of_their_own_in_the_years_that_spreadsheets_have() {
    let mut table = TableWriter::new(ReportFormat::Xlsx, "Dates", Vec::new());
    table.start(vec!["day".to_owned()]).expect("a start");
    for day in ["2026-01-31", "1899-12-31", "9999-12-31"] {
        table.row(&[Cell::Date(fixtures::date(day))]).expect("a row");
    }
    let sheet = part(&table.finish().expect("an end"), "xl/worksheets/sheet1.xml");
    for cell in [
        r#"<c r="A2" s="2"><v>46053</v></c>"#,
        r#"<c r="A3" t="inlineStr"><is><t>1899-12-31</t></is></c>"#,
        r#"<c r="A4" s="2"><v>2958465</v></c>"#,
    ] {
        assert!(sheet.contains(cell), "{cell}\n{sheet}");
    }
    for (format, wanted) in
        [(ReportFormat::Csv, "day\r\n2026-01-31\r\n"), (ReportFormat::Json, "[\n{\"day\":\"2026-01-31\"}\n]\n")]
    {
        let mut table = TableWriter::new(format, "Dates", Vec::new());
        table.start(vec!["day".to_owned()]).expect("a start");
        table.row(&[Cell::Date(fixtures::date("2026-01-31"))]).expect("a row");
        assert_eq!(String::from_utf8(table.finish().expect("an end")).expect("UTF-8"), wanted);
    }
}

#[test]
fn rows_that_a_sheet_has_no_room_for_go_on_the_next() {
    let events: Vec<_> = (1..=5).map(|n| event(n, "1", &[])).collect();
    let mut table = XlsxTable::with_sheets_of(3, TITLE, headings(&columns(&events)), Vec::new()).expect("a start");
    events.iter().for_each(|event| table.row(&cells(&columns(&events), event).expect("cells")).expect("a row"));
    let workbook = table.finish().expect("an end");
    let names = part(&workbook, "xl/workbook.xml");
    assert!(["\"Usage\"", "\"Usage 2\"", "\"Usage 3\""].iter().all(|name| names.contains(name)), "{names}");
    for (sheet, rows) in [(1, 3), (2, 3), (3, 2)] {
        let sheet = part(&workbook, &format!("xl/worksheets/sheet{sheet}.xml"));
        assert_eq!(sheet.matches("<row ").count(), rows, "{sheet}");
        assert!(sheet.contains("<t>event_ref</t>"));
    }
}

#[test]
fn a_row_with_a_key_that_has_no_column_is_refused() {
    for format in ReportFormat::ALL {
        let mut writer = ReportWriter::new(format, Vec::new());
        assert!(writer.row(&event(1, "1", &[])).is_err(), "a row before the start");
        writer.start(columns(&[])).expect("a start");
        assert!(writer.start(columns(&[])).is_err(), "a second start");
        let mut writer = ReportWriter::new(format, Vec::new());
        writer.start(columns(&[])).expect("a start");
        assert!(writer.row(&event(1, "1", &[("z", ReportValue::Null)])).is_err());
    }
}
