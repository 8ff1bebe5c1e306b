//! Imports: a file that is looked at, what importing it would do and did, and undoing that.

use maud::{Markup, html};
use serde_json::Value;

use crate::json_view::JsonView;
use crate::list::{CellFormat, Column, table};
use crate::listings::{IMPORTS, column};
use crate::parts::{facts, grouped, href, instant, number, section, state};

/// Where the forms with a file are sent to.
pub const IMPORT_PATH: &str = "/console/import";

/// What a column of a file may be, with what that means.
const FIELDS: &[(&str, &str)] = &[
    ("idempotency_key", "Id of the event: known by it, it counts once"),
    ("timestamp", "Timestamp, with an offset such as Z"),
    ("customer_ref", "Customer, by reference"),
    ("customer_name", "Customer, by name"),
    ("usage_product_ref", "Usage product, by reference"),
    ("usage_product_name", "Usage product, by name"),
    ("quantity", "Quantity"),
    ("event_ref", "Reference of an event that is there: not imported again"),
];

const DOCUMENTS: &[Column] = &[
    column("Document", "document_number", CellFormat::Text).leading("documents", "document_ref"),
    column("Customer", "customer_ref", CellFormat::Text).leading("customers", "customer_ref"),
    column("Currency", "currency", CellFormat::Text),
    column("Events", "events", CellFormat::Number),
];

/// Those of a dry run that says what they come to.
const TRIED_DOCUMENTS: &[Column] = &[
    DOCUMENTS[0],
    DOCUMENTS[1],
    DOCUMENTS[3],
    column("Total now", "total_before", CellFormat::Money("currency")),
    column("Total then", "total", CellFormat::Money("currency")),
];

const REJECTS: &[Column] = &[
    column("Line", "line", CellFormat::Number),
    column("Why", "code", CellFormat::Text),
    column("Reason", "detail", CellFormat::Text),
    column("Fields", "errors", CellFormat::Told),
];

const KEPT_BACK: &[Column] = &[
    column("Event", "event_ref", CellFormat::Text).leading("events", "event_ref"),
    column("Why", "code", CellFormat::Text),
    column("Reason", "detail", CellFormat::Text),
];

/// The most lines that were refused that a page shows.
const MAX_REJECTS: usize = 50;

/// The body of the page that takes a file.
pub fn import_form(formats: &Value, max_bytes: usize) -> Markup {
    html! {
        h1 { "Import a file" }
        p {
            "A file of usage events: CSV with a line of column names, JSON lines, or a JSON array such as a usage report. "
            "Nothing is stored before you have seen what would become of it."
        }
        form.stack.wide method="post" enctype="multipart/form-data" action=(IMPORT_PATH) {
            div.field {
                label for="file" { "File" }
                input #file type="file" name="file" accept=".csv,.tsv,.txt,.json,.ndjson,.jsonl,text/csv,application/json" aria-describedby="file-told";
                p.told #file-told {
                    "At most " (grouped(&(max_bytes / 1024).to_string())) " KiB. A larger one goes by " code { "POST /api/usage/import" } " or "
                    code { "usage-billing import" } ", and shows in the same list."
                }
            }
            div.field {
                label for="pasted" { "Or its text" }
                textarea #pasted name="pasted" rows="6" {}
            }
            (format_choice(formats, ""))
            div { button name="do" value="look" { "Look at it" } " " a href=(href(&[IMPORTS.part])) { "Cancel" } }
        }
    }
}

fn format_choice(formats: &Value, chosen: &str) -> Markup {
    html! {
        div.field {
            label for="format_name" { "Read by" }
            select #format_name name="format_name" aria-describedby="format-told" {
                option value="" { "its columns" }
                // The built-in format is the columns themselves.
                @for format in JsonView(formats).items().filter(|format| format.at("changed_at").is_there()) {
                    @let name = format.at("format_name").text();
                    option value=(name) selected[name == chosen] { "the usage format " (name) }
                }
            }
            p.told #format-told { "A usage format makes events of lines in any shape." }
        }
    }
}

/// A file that is carried from page to page.
#[derive(Clone, Debug)]
pub struct PendingFile {
    /// What it is called.
    pub name: String,
    /// What it says, in Base64: a browser changes line breaks in texts.
    pub content: String,
    /// The usage format that it is read by; empty of none.
    pub format_name: String,
}

/// The body of the page that says what importing a file would do.
pub fn import_check(file: &PendingFile, formats: &Value, result: &Value) -> Markup {
    let at = JsonView(result);
    let recorded = at.at("recorded").text();
    html! {
        h1 { "Import " (file.name) }
        (counted(at, true))
        @if at.at("stopped").is_there() { p { "It would stop at line " (at.at("stopped.line").text()) ": " (at.at("stopped.detail").text()) } }
        form.stack method="post" enctype="multipart/form-data" action=(IMPORT_PATH) {
            input type="hidden" name="name" value=(file.name);
            input type="hidden" name="content" value=(file.content);
            @if at.at("columns").items().next().is_some() { (columns(at.at("columns"), !file.format_name.is_empty())) }
            (format_choice(formats, &file.format_name))
            div.buttons {
                button.plain name="do" value="look" { "Look again" }
                @if at.at("recorded").is_amount() {
                    " " button name="do" value="import" { "Import " (grouped(&recorded)) " events" }
                }
                " " a href=(href(&[IMPORTS.part])) { "Cancel" }
            }
        }
        (rejected(at))
        (documents(at, "Documents that it would go on"))
    }
}

/// What became of a file's events, or would.
fn counted(at: JsonView<'_>, would: bool) -> Markup {
    html! {
        (facts(&[
            (if would { "Would be recorded" } else { "Recorded" }, number(at.at("recorded"))),
            ("There already", number(at.at("already_there"))),
            (if would { "Would be refused" } else { "Refused" }, number(at.at("refused"))),
            ("Known by file name and line alone", number(at.at("known_by_line"))),
        ]))
        @if at.at("known_by_line").is_amount() {
            p.muted { "Events without an id of their own count again in a file of another name: choose a column as their id where there is one." }
        }
    }
}

fn columns(columns: JsonView<'_>, by_format: bool) -> Markup {
    html! {
        section {
            h2 { "Columns" }
            @if by_format { p { "The usage format finds columns in " code { "event" } " by what they are called here." } }
            div.scrolls tabindex="0" role="region" aria-label="Columns" { table {
                thead { tr { th scope="col" { "Column" } th scope="col" { "Is" } th scope="col" { "First lines" } } }
                tbody { @for (index, column) in columns.items().enumerate() {
                    @let (name, called) = (column.at("name").text(), column.at("called"));
                    tr {
                        td { label for=(format!("called-{index}")) { (name) } input type="hidden" name="column" value=(name); }
                        td { select id=(format!("called-{index}")) name="called" {
                            option value="" selected[called.is(&name)] { (own_name(&name, column)) }
                            option value="-" selected[!called.is_there()] { "nothing: leave it out" }
                            @for (field, meaning) in FIELDS.iter().filter(|(field, _)| *field != name) {
                                option value=(field) selected[called.is(field)] { (meaning) }
                            }
                            @if called.is_there() && !called.is(&name) && !FIELDS.iter().any(|(field, _)| called.is(field)) {
                                option value=(called.text()) selected { (called.text()) }
                            }
                        } }
                        td { @for sample in column.at("samples").items() { code { (sample.text()) } " " } }
                    }
                } }
            } }
        }
    }
}

/// What a column is that keeps its name.
fn own_name(name: &str, column: JsonView<'_>) -> String {
    match FIELDS.iter().find(|(field, _)| *field == name) {
        Some((_, meaning)) => (*meaning).to_owned(),
        None if column.at("report_data").is_true() || !column.at("called").is(name) => format!("report data {name}"),
        None => name.to_owned(),
    }
}

fn rejected(at: JsonView<'_>) -> Markup {
    let first: Vec<Value> = at.at("rejects").items().take(MAX_REJECTS).map(|reject| reject.0.clone()).collect();
    let shown = first.len();
    html! {
        @if shown > 0 {
            (section("Lines that are refused", &html! {
                (table("Lines that are refused", REJECTS, JsonView(&Value::Array(first))))
                @if at.at("refused").text() != shown.to_string() { p.muted { "The first " (shown) " of " (grouped(&at.at("refused").text())) "." } }
            }))
        }
    }
}

/// Whether a dry run says what a document comes to.
fn is_summed(document: JsonView<'_>) -> bool {
    document.at("total").is_there()
}

fn documents(at: JsonView<'_>, title: &str) -> Markup {
    html! {
        @if at.at("documents").items().next().is_some() {
            (section(title, &html! {
                (table(title, if at.at("documents").items().any(is_summed) { TRIED_DOCUMENTS } else { DOCUMENTS }, at.at("documents")))
                @if at.at("dry_run").is_true() && !at.at("documents").items().all(is_summed) {
                    p.muted { "What documents come to is said of the first 100, and for files of up to 10,000 lines." }
                }
                @if at.at("documents").items().any(|document| !document.at("document_number").is_there()) {
                    p.muted { "A document without a number would be opened." }
                }
                @if at.at("more_documents").is_amount() { p.muted { "And " (number(at.at("more_documents"))) " more." } }
            }))
        }
    }
}

/// The body of the page that says what became of a file of which not all was taken.
pub fn import_result(file: &str, result: &Value) -> Markup {
    let at = JsonView(result);
    html! {
        h1 { "Imported " (file) }
        (counted(at, false))
        @if at.at("stopped").is_there() {
            p { "It stopped at line " (at.at("stopped.line").text()) ": " (at.at("stopped.detail").text()) " Import the same file again to go on." }
        }
        p { a.button href=(href(&[IMPORTS.part, &at.at("import_ref").text()])) { "The import" } }
        (rejected(at))
        (documents(at, "Documents that it went on"))
    }
}

/// The body of an import's page; `may_undo` for who may undo it.
pub fn import(import: &Value, may_undo: bool) -> Markup {
    let at = JsonView(import);
    let undone = at.at("undone");
    html! {
        h1 { "Import " (at.at("name").text()) }
        @if may_undo && at.at("left").is_amount() {
            p { a.button href=(href(&[IMPORTS.part, &at.at("import_ref").text(), "undo"])) {
                @if undone.is_there() { "Go on undoing it" } @else { "Undo this import" }
            } }
        }
        (facts(&[
            ("State", state(at.at("state"))),
            ("Began", instant(at.at("begun_at"))),
            ("Ended", instant(at.at("ended_at"))),
            ("Who", html! { (at.at("actor").text()) }),
            ("Events recorded", number(at.at("recorded"))),
            ("There already", number(at.at("already_there"))),
            ("Lines refused", number(at.at("refused"))),
            ("Stopped at line", number(at.at("stopped_at_line"))),
            ("Size in bytes", number(at.at("bytes"))),
            ("SHA-256", html! { code { (at.at("sha256").text()) } }),
            ("Request", html! { (at.at("request_id").text()) }),
        ]))
        @if at.at("state").is("UNFINISHED") {
            p { "It goes on, or was broken off with the server: the same file goes on where it was, and what it recorded can be undone." }
        }
        @if undone.is_there() {
            (section("Undone", &facts(&[
                ("By", html! { (undone.at("actor").text()) }),
                ("Began", instant(undone.at("begun_at"))),
                ("Ended", instant(undone.at("ended_at"))),
                ("Events deleted", number(undone.at("deleted"))),
                ("Deleted before", number(undone.at("already_deleted"))),
                ("Left", number(at.at("left"))),
            ])))
        }
        (documents(at, "Documents that its events went on"))
    }
}

/// The body of the page that asks whether an import is to be undone, and says what couldn't be deleted the last time.
pub fn import_undo(import: &Value, rejects: &Value) -> Markup {
    let at = JsonView(import);
    let left = at.at("left").text();
    html! {
        h1 { "Undo the import " (at.at("name").text()) }
        @if at.at("left").is_amount() {
            p {
                strong { (grouped(&left)) " events" } " that it recorded are deleted, but for those that were deleted before. Drafts get smaller; "
                "what is issued already is put right by credits or debits. The same file can be imported again afterwards, and counts again."
            }
            form method="post" action=(href(&[IMPORTS.part, &at.at("import_ref").text(), "undo"])) {
                button.grave { "Delete " (grouped(&left)) " events" } " "
                a href=(href(&[IMPORTS.part, &at.at("import_ref").text()])) { "Cancel" }
            }
        } @else {
            p { "Nothing is left of it to be deleted." }
        }
        @if JsonView(rejects).items().next().is_some() {
            (section("Events that couldn't be deleted", &table("Events that couldn't be deleted", KEPT_BACK, JsonView(rejects))))
        }
        (documents(at, "Documents that its events went on"))
    }
}

/// What a column of such a name often is.
pub fn usual_field(column: &str) -> Option<&'static str> {
    const USUAL: &[(&str, &[&str])] = &[
        ("idempotency_key", &["id", "uuid", "key", "event_id", "eventid", "record_id", "transaction_id"]),
        (
            "timestamp",
            &["time", "date", "datetime", "at", "when", "occurred_at", "created_at", "ts", "zeit", "zeitpunkt", "datum"],
        ),
        ("customer_ref", &["customer", "customer_id", "account", "account_id", "tenant", "kunde", "kundennummer"]),
        ("usage_product_ref", &["product", "product_id", "usage_product", "meter", "metric", "sku", "produkt"]),
        ("quantity", &["amount", "count", "qty", "units", "usage", "value", "volume", "menge", "anzahl"]),
    ];
    let column = column.trim().to_lowercase().replace([' ', '-'], "_");
    USUAL.iter().find(|(_, names)| names.contains(&column.as_str())).map(|(field, _)| *field)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_are_shown_as_what_they_are_and_may_be_anything_else() {
        let file = PendingFile { name: "a<.csv".to_owned(), content: "eA==".to_owned(), format_name: String::new() };
        let columns = json!([
            {"name": "Zeit", "called": "timestamp", "report_data": false, "samples": ["2026-01-01T00:00:00Z", "<b>"]},
            {"name": "region", "called": "region", "report_data": true, "samples": []},
            {"name": "note", "called": null, "report_data": false, "samples": []},
        ]);
        let result = json!({"recorded": 1234, "already_there": 0, "refused": 1, "known_by_line": 3, "columns": columns,
            "rejects": [{"line": 7, "code": "x", "detail": "<i>", "errors": []}], "documents": [], "more_documents": 0, "stopped": null});
        let shown =
            import_check(&file, &json!([{"format_name": "Log", "changed_at": "2026-01-01T00:00:00Z"}]), &result).into_string();
        assert!(shown.contains(r#"<option value="timestamp" selected>"#), "{shown}");
        assert!(shown.contains(r#"<option value="" selected>report data region</option>"#), "{shown}");
        assert!(shown.contains(r#"<option value="-" selected>"#) && shown.contains("Import 1,234 events"), "{shown}");
        assert!(!shown.contains("<b>") && !shown.contains("<i>") && shown.contains("a&lt;.csv"), "{shown}");
    }

    #[test]
    fn an_undo_tells_how_many_and_nothing_left_has_no_button() {
        let shown = import_undo(&json!({"import_ref": "i", "name": "a", "left": 1000}), &json!([])).into_string();
        assert!(shown.contains("Delete 1,000 events") && shown.contains("/console/imports/i/undo"), "{shown}");
        assert!(!import_undo(&json!({"import_ref": "i", "left": 0}), &json!([])).into_string().contains("<form"));
    }

    #[test]
    fn usual_names_are_recognised_however_they_are_written() {
        for (column, field) in
            [("Event ID", Some("idempotency_key")), ("Menge", Some("quantity")), ("kunde", Some("customer_ref")), ("x", None)]
        {
            assert_eq!(usual_field(column), field, "{column}");
        }
    }
}
