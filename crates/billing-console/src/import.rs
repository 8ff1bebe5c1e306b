//! Import pages: upload, preview, result and undo.

use maud::{Markup, html};
use serde_json::Value;

use crate::effects::changed_amounts;
use crate::import_fields::{ON_EVERY_LINE, import_fields, missing_fields, read_fields};
use crate::list::{CellFormat, Column, table};
use crate::listings::{IMPORTS, column};
use crate::parts::{actor, count_text, facts, grouped, href, instant, isolated, name, number, section, state};
use billing_api::dto::formats::FormatJson;
use billing_api::dto::imports::{
    ImportColumnJson, ImportJson, ImportRejectJson, ImportResultJson, ImportedDocumentJson, UndoRejectJson, UndoResultJson,
};
use billing_api::field;
use billing_api::json_view::JsonView;

/// Target of the upload forms.
pub const IMPORT_PATH: &str = "/console/import";

/// Reference of the default format.
const DEFAULT_FORMAT: &str = "default-format";

/// Possible meanings of a file's columns, with descriptions.
const FIELDS: &[(&str, &str)] = &[
    ("idempotency_key", "Event ID: idempotency key of the event"),
    ("timestamp", "Timestamp, with an offset such as Z"),
    ("customer_ref", "Customer, by reference"),
    ("customer_name", "Customer, by name"),
    ("usage_product_ref", "Usage product, by reference"),
    ("usage_product_name", "Usage product, by name"),
    ("quantity", "Quantity"),
    ("event_ref", "Reference of an existing event: the line is skipped"),
];

/// The meanings that a column also has if a usage format reads the file.
const IDENTITIES: [&str; 2] = ["idempotency_key", "event_ref"];

const DOCUMENTS: &[Column] = &[
    column("Document", field!(ImportedDocumentJson, document_number), CellFormat::Text)
        .leading("documents", field!(ImportedDocumentJson, document_ref)),
    column("Customer", field!(ImportedDocumentJson, customer_ref), CellFormat::Text)
        .leading("customers", field!(ImportedDocumentJson, customer_ref)),
    column("Currency", field!(ImportedDocumentJson, currency), CellFormat::Text),
    column("Events", field!(ImportedDocumentJson, events), CellFormat::Number),
];

/// Document columns for dry runs that compute totals.
const TRIED_DOCUMENTS: &[Column] = &[
    DOCUMENTS[0],
    DOCUMENTS[1],
    DOCUMENTS[3],
    column(
        "Current total",
        field!(ImportedDocumentJson, total_before),
        CellFormat::Money(field!(ImportedDocumentJson, currency)),
    ),
    column("New total", field!(ImportedDocumentJson, total), CellFormat::Money(field!(ImportedDocumentJson, currency))),
];

const REJECTS: &[Column] = &[
    column("Line", field!(ImportRejectJson, line), CellFormat::Number),
    column("Element", field!(ImportRejectJson, item), CellFormat::Number),
    column("Error code", field!(ImportRejectJson, code), CellFormat::Text),
    column("Reason", field!(ImportRejectJson, detail), CellFormat::Text),
    column("Fields", field!(ImportRejectJson, errors), CellFormat::Told),
];

const KEPT_BACK: &[Column] = &[
    column("Event", field!(UndoRejectJson, event_ref), CellFormat::Text).leading("events", field!(UndoRejectJson, event_ref)),
    column("Error code", field!(UndoRejectJson, code), CellFormat::Text),
    column("Reason", field!(UndoRejectJson, detail), CellFormat::Text),
];

/// Maximum number of rejected lines shown.
const MAX_REJECTS: usize = 50;

/// Renders the upload page.
pub fn import_form(formats: JsonView<'_>, max_bytes: usize) -> Markup {
    html! {
        h1 { "Import file" }
        p {
            "The file contains usage events as CSV with a header line, JSON Lines, or a JSON array such as a usage report. "
            "A preview is shown before anything is saved."
        }
        form.stack.wide data-live method="post" enctype="multipart/form-data" action=(IMPORT_PATH) {
            div.field {
                label for="file" { "File" }
                input #file type="file" name="file" accept=".csv,.tsv,.txt,.json,.ndjson,.jsonl,text/csv,application/json" aria-describedby="file-caption";
                p.hint #file-caption {
                    "Maximum: " (grouped(&(max_bytes / 1024).to_string())) " KiB. Import larger files with " code { "POST /api/usage/import" } " or "
                    code { "usage-billing import" } ". They appear in the same list."
                }
            }
            div.field {
                label for="pasted" { "Content (instead of a file)" }
                textarea #pasted name="pasted" rows="6" {}
            }
            (format_choice(formats, ""))
            div data-result aria-live="polite" { (import_fields(None, None)) }
            (update_choice(false))
            div { button name="do" value="look" { "Preview" } " " a href=(href(&[IMPORTS.part])) { "Cancel" } }
        }
    }
}

fn format_choice(formats: JsonView<'_>, chosen: &str) -> Markup {
    html! {
        div.field {
            label for="format_name" { "Format" }
            select #format_name name="format_name" aria-describedby="format-caption" {
                option value="" { "Column names" }
                @for format in choices(formats) {
                    @let name = format.format_name().to_text();
                    option value=(name) selected[name == chosen] { "Usage format " (name) }
                }
            }
            p.hint #format-caption { "A usage format converts lines of any structure to usage events." }
        }
    }
}

/// Returns the formats to choose from. The default format reads the columns directly and is no choice.
fn choices(formats: JsonView<'_>) -> impl Iterator<Item = JsonView<'_, FormatJson>> {
    formats.elements().map(JsonView::read_as::<FormatJson>).filter(|format| !format.format_ref().is(DEFAULT_FORMAT))
}

/// Returns the format with a name.
pub fn format_of<'v>(formats: JsonView<'v>, name: &str) -> Option<JsonView<'v, FormatJson>> {
    choices(formats).find(|format| format.format_name().is(name))
}

/// Renders the choice whether events that were recorded with other values are updated.
fn update_choice(updates: bool) -> Markup {
    html! {
        div {
            label.check {
                input type="checkbox" name="on_conflict" value="UPDATE" checked[updates] aria-describedby="updates-caption";
                span { "Update changed events" }
            }
            p.hint #updates-caption {
                "An event with a known event ID and other values updates the recorded event. Otherwise it is rejected."
            }
        }
    }
}

/// A file that the forms carry from page to page.
#[derive(Clone, Debug)]
pub struct PendingFile {
    /// File name.
    pub name: String,
    /// Content in Base64, because browsers change line breaks in text fields.
    pub content: String,
    /// Name of the usage format; empty without a format.
    pub format_name: String,
    /// Chosen meanings of columns: the name of each column and the value of its choice.
    pub columns: Vec<(String, String)>,
    /// Fields with the same value on every line.
    pub constants: Vec<(String, String)>,
    /// Whether events that were recorded with other values are updated.
    pub updates: bool,
}

/// Renders the hidden fields that carry a file and its options.
pub(crate) fn pending_fields(file: &PendingFile) -> Markup {
    html! {
        input type="hidden" name="name" value=(file.name);
        input type="hidden" name="content" value=(file.content);
        input type="hidden" name="format_name" value=(file.format_name);
        @if file.updates { input type="hidden" name="on_conflict" value="UPDATE"; }
        @for (field, value) in &file.constants { input type="hidden" name=(format!("{ON_EVERY_LINE}{field}")) value=(value); }
    }
}

/// Renders the choice of columns again, after a choice that cannot be read.
pub fn import_columns(
    file: &PendingFile,
    formats: JsonView<'_>,
    at: JsonView<'_, Vec<ImportColumnJson>>,
    reason: &str,
) -> Markup {
    html! {
        h1 { "Import " (file.name) }
        p.notice.refused role="alert" { "The columns cannot be read like this: " (reason) ". Choose the meanings again." }
        form.stack method="post" enctype="multipart/form-data" action=(IMPORT_PATH) {
            (pending_fields(&PendingFile { constants: Vec::new(), ..file.clone() }))
            (columns(at, format_of(formats, &file.format_name), &file.constants))
            div.buttons { button name="do" value="look" { "Update preview" } " " a href=(href(&[IMPORTS.part])) { "Cancel" } }
        }
    }
}

/// Renders the preview of an import.
pub fn import_check(file: &PendingFile, formats: JsonView<'_>, at: JsonView<'_, ImportResultJson>) -> Markup {
    let recorded = at.recorded().to_text();
    html! {
        h1 { "Import " (file.name) }
        (counted([at.recorded(), at.updated(), at.already_there(), at.refused(), at.skipped(), at.known_by_line()], true))
        @if at.stopped().is_there() { p { "The import would stop at line " (at.stopped().line().to_text()) ": " (at.stopped().detail().to_text()) } }
        form.stack method="post" enctype="multipart/form-data" action=(IMPORT_PATH) {
            input type="hidden" name="name" value=(file.name);
            input type="hidden" name="content" value=(file.content);
            @if at.columns().items().next().is_some() { (columns(at.columns(), format_of(formats, &file.format_name), &file.constants)) }
            (format_choice(formats, &file.format_name))
            (update_choice(file.updates))
            div.buttons {
                button.plain name="do" value="look" { "Update preview" }
                @if at.recorded().is_amount() || at.updated().is_amount() {
                    " " button name="do" value="import" {
                        "Import " (count_text(&recorded, "event"))
                        @if at.updated().is_amount() { " and update " (grouped(&at.updated().to_text())) }
                    }
                }
                " " a href=(href(&[IMPORTS.part])) { "Cancel" }
            }
        }
        (rejected(at))
        (documents(at))
    }
}

/// Renders the event counts of an import or of its preview.
fn counted([recorded, updated, already_there, refused, skipped, known_by_line]: [JsonView<'_, u64>; 6], would: bool) -> Markup {
    html! {
        (facts(&[
            (if would { "Would be recorded" } else { "Recorded" }, number(recorded)),
            (if would { "Would be updated" } else { "Updated" }, number(updated)),
            ("Duplicates", number(already_there)),
            (if would { "Would be rejected" } else { "Rejected" }, number(refused)),
            (if would { "Would be skipped" } else { "Skipped" }, number(skipped)),
            ("Without event ID", number(known_by_line)),
        ]))
        @if known_by_line.is_amount() {
            p.muted { "Events without an event ID are recorded again if the file has another name. If a column contains IDs, choose it as the event ID." }
        }
    }
}

/// Renders the meanings of the columns, and the values that every line has. A usage format has meanings of its own.
fn columns(
    columns: JsonView<'_, Vec<ImportColumnJson>>,
    format: Option<JsonView<'_, FormatJson>>,
    constants: &[(String, String)],
) -> Markup {
    let fields = meanings(format);
    let missing = format.map(|format| missing_fields(format, columns, constants)).unwrap_or_default();
    html! {
        section {
            h2 { "Columns" }
            @if format.is_some() { p { "The usage format reads the fields by the names chosen here." } }
            @for question in &missing { p { "No column has a field that the format reads. " (question.remedy()) } }
            div.scrolls tabindex="0" role="region" aria-label="Columns" { table {
                thead { tr { th scope="col" { "Column" } th scope="col" { "Meaning" } th scope="col" { "Samples" } } }
                tbody {
                    @for (index, column) in columns.items().enumerate() { (meaning(index, column, &fields)) }
                    @for (field, value) in constants {
                        @let input = format!("{ON_EVERY_LINE}{field}");
                        tr {
                            td { label for=(input) { "Every line" } }
                            td { (fields.iter().find(|(name, _)| name == field).map_or(field, |(_, meaning)| meaning)) }
                            td { input id=(input) name=(input) value=(value) maxlength="255"; }
                        }
                    }
                }
            } }
        }
    }
}

/// Returns the fields that a column can be, with descriptions.
fn meanings(format: Option<JsonView<'_, FormatJson>>) -> Vec<(String, String)> {
    let usual = FIELDS.iter().map(|(field, meaning)| ((*field).to_owned(), (*meaning).to_owned()));
    match format {
        None => usual.collect(),
        Some(format) => {
            let read = read_fields(format).into_iter();
            let mut fields: Vec<(String, String)> =
                read.map(|field| (field.name.clone(), format!("Field {}: {}", field.name, field.meanings.join(", ")))).collect();
            let others = usual.filter(|(field, _)| IDENTITIES.contains(&field.as_str()));
            let others: Vec<_> = others.filter(|(field, _)| !fields.iter().any(|(known, _)| known == field)).collect();
            fields.extend(others);
            fields
        }
    }
}

fn meaning(index: usize, column: JsonView<'_, ImportColumnJson>, fields: &[(String, String)]) -> Markup {
    let (name, called, id) = (column.name().to_text(), column.called(), format!("called-{index}"));
    html! {
        tr {
            td { label for=(id) { (name) } input type="hidden" name="column" value=(name); }
            td { select id=(id) name="called" {
                option value="" selected[called.is(&name)] { (own_name(&name, column, fields)) }
                option value="-" selected[!called.is_there()] { "Ignore this column" }
                @for (field, meaning) in fields.iter().filter(|(field, _)| *field != name) {
                    option value=(field) selected[called.is(field)] { (meaning) }
                }
                @if called.is_there() && !called.is(&name) && !fields.iter().any(|(field, _)| called.is(field)) {
                    option value=(called.to_text()) selected { (called.to_text()) }
                }
            } }
            td { @for sample in column.samples().items() { code { (sample.to_text()) } " " } }
        }
    }
}

/// Returns the meaning of a column that keeps its name.
fn own_name(name: &str, column: JsonView<'_, ImportColumnJson>, fields: &[(String, String)]) -> String {
    match fields.iter().find(|(field, _)| *field == name) {
        Some((_, meaning)) => meaning.clone(),
        None if column.report_data().is_true() || !column.called().is(name) => format!("Report data: {name}"),
        None => name.to_owned(),
    }
}

fn rejected(at: JsonView<'_, ImportResultJson>) -> Markup {
    let first: Vec<Value> = at.rejects().items().take(MAX_REJECTS).map(|reject| reject.json().clone()).collect();
    let shown = first.len();
    html! {
        @if shown > 0 {
            (section("Rejected lines", &html! {
                (table("Rejected lines", REJECTS, JsonView::of(&Value::Array(first))))
                @if at.refused().to_text() != shown.to_string() { p.muted { "The first " (shown) " of " (grouped(&at.refused().to_text())) "." } }
            }))
        }
    }
}

/// Returns whether a dry run computed the document's total.
fn is_summed(document: JsonView<'_, ImportedDocumentJson>) -> bool {
    document.total().is_there()
}

fn documents(at: JsonView<'_, ImportResultJson>) -> Markup {
    let title = "Affected documents";
    html! {
        @if !at.documents().is_empty() {
            (section(title, &html! {
                (table(title, if at.documents().items().any(is_summed) { TRIED_DOCUMENTS } else { DOCUMENTS }, at.documents().any()))
                @if at.dry_run().is_true() && !at.documents().items().all(is_summed) {
                    p.muted { "Totals are shown for the first 100 documents, and only for files of up to 10,000 lines." }
                }
                @if at.documents().items().any(|document| !document.document_number().is_there()) {
                    p.muted { "Documents without a number would be created." }
                }
                @if at.more_documents().is_amount() { p.muted { "And " (number(at.more_documents())) " more." } }
            }))
        }
    }
}

/// Renders the result of an import that was not complete.
pub fn import_result(file: &PendingFile, at: JsonView<'_, ImportResultJson>) -> Markup {
    html! {
        h1 { "Import result: " (file.name) }
        (counted([at.recorded(), at.updated(), at.already_there(), at.refused(), at.skipped(), at.known_by_line()], false))
        @if at.stopped().is_there() {
            p {
                "The import stopped at line " (at.stopped().line().to_text()) ": " (at.stopped().detail().to_text()) ". "
                "Earlier lines are saved. Import the same file again to continue: recorded lines are skipped and counted as duplicates."
            }
            form method="post" enctype="multipart/form-data" action=(IMPORT_PATH) {
                (pending_fields(file))
                @for (column, called) in &file.columns {
                    input type="hidden" name="column" value=(column);
                    input type="hidden" name="called" value=(called);
                }
                button name="do" value="import" { "Continue import" }
            }
        }
        p { a.button href=(href(&[IMPORTS.part, &at.import_ref().to_text()])) { "Show import" } }
        (rejected(at))
        (documents(at))
    }
}

/// Renders the page of an import. `may_undo` states whether the visitor may undo it.
pub fn import(at: JsonView<'_, ImportJson>, may_undo: bool, changed: &Markup) -> Markup {
    let undone = at.undone();
    html! {
        h1 { "Import " (name(at.name())) }
        @if may_undo && at.left().is_amount() {
            p { a.button href=(href(&[IMPORTS.part, &at.import_ref().to_text(), "undo"])) {
                @if undone.is_there() { "Continue undo" } @else { "Undo import" }
            } }
        }
        (facts(&[
            ("State", state(at.state())),
            ("Started", instant(at.begun_at())),
            ("Ended", instant(at.ended_at())),
            ("Actor", isolated(&actor(at))),
            ("Events recorded", number(at.recorded())),
            ("Events updated", number(at.updated())),
            ("Duplicates", number(at.already_there())),
            ("Rejected", number(at.refused())),
            ("Skipped by the format", number(at.skipped())),
            ("Stopped at line", number(at.stopped_at_line())),
            ("Size in bytes", number(at.bytes())),
            ("SHA-256", html! { code { (at.sha256().to_text()) } }),
            ("Request ID", html! { (at.request_id().to_text()) }),
        ]))
        @if at.state().is("UNFINISHED") {
            p { "The import is running, or the server stopped during it. Import the same file again to continue, or undo the recorded events." }
        }
        @if at.state().is("CUT_SHORT") {
            p {
                "The import stopped at line " (at.stopped_at_line().to_text()) ". Earlier lines are saved. "
                "Import the same file again under the same name to continue: recorded lines are skipped and counted as duplicates."
            }
        }
        @if undone.is_there() {
            (section("Undo", &facts(&[
                ("Actor", isolated(&actor(undone))),
                ("Started", instant(undone.begun_at())),
                ("Ended", instant(undone.ended_at())),
                ("Events deleted", number(undone.deleted())),
                ("Already deleted", number(undone.already_deleted())),
                ("Remaining", number(at.left())),
            ])))
        }
        (changed)
        (documents(at.read_as()))
    }
}

/// Renders the documents that a request to undo an import changed.
pub fn undone_documents(at: JsonView<'_, UndoResultJson>) -> Markup {
    let title = "Documents changed by the undo";
    html! {
        @if at.changes().is_empty() {
            @if at.deleted().is_amount() { (section(title, &html! { p { "The amounts of all documents are as before." } })) }
        } @else {
            (section(title, &changed_amounts(at)))
        }
    }
}

/// Renders the confirmation page for undoing an import, with the events that the last attempt could not delete.
pub fn import_undo(at: JsonView<'_, ImportJson>, result: JsonView<'_, UndoResultJson>) -> Markup {
    let rejects = result.rejects();
    let left = at.left().to_text();
    html! {
        h1 { "Undo import " (name(at.name())) }
        @if at.left().is_amount() {
            p {
                strong { (count_text(&left, "event")) } " of this import will be deleted. Events that are already deleted are skipped. Drafts are reduced. "
                "Issued documents are corrected by credits or debits. Afterwards, the same file can be imported again."
            }
            form method="post" action=(href(&[IMPORTS.part, &at.import_ref().to_text(), "undo"])) {
                button.grave { "Delete " (count_text(&left, "event")) } " "
                a href=(href(&[IMPORTS.part, &at.import_ref().to_text()])) { "Cancel" }
            }
        } @else {
            p { "No events remain to delete." }
        }
        (undone_documents(result))
        @if !rejects.is_empty() {
            (section("Events that could not be deleted", &table("Events that could not be deleted", KEPT_BACK, rejects.any())))
        }
        (documents(at.read_as()))
    }
}

/// Returns the usual meaning of a column name.
pub fn usual_field(column: &str) -> Option<&'static str> {
    const USUAL: &[(&str, &[&str])] = &[
        ("idempotency_key", &["id", "uuid", "key", "event_id", "eventid", "record_id", "transaction_id"]),
        (
            "timestamp",
            &["time", "date", "datetime", "at", "when", "occurred_at", "created_at", "ts", "zeit", "zeitpunkt", "datum"],
        ),
        ("customer_ref", &["customer", "customer_id", "account", "account_id", "tenant", "kunde", "kundennummer"]),
        ("customer_name", &["company", "client", "firma", "kundenname"]),
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

    fn pending(name: &str, columns: Vec<(String, String)>) -> PendingFile {
        PendingFile {
            name: name.to_owned(),
            content: "eA==".to_owned(),
            format_name: String::new(),
            columns,
            constants: vec![("quantity".to_owned(), "1".to_owned())],
            updates: true,
        }
    }

    #[test]
    fn a_stopped_import_can_be_continued_with_the_same_file_and_columns() {
        let file = pending("a<.csv", vec![("Menge".to_owned(), "quantity".to_owned())]);
        let mut result = json!({"import_ref": "i", "recorded": 999, "updated": 2, "already_there": 1, "refused": 0, "skipped": 0, "known_by_line": 0,
            "dry_run": false, "rejects": [], "documents": [], "more_documents": 0,
            "stopped": {"line": 1002, "code": "timed_out", "detail": "the request reached its time limit"}});
        let shown = import_result(&file, JsonView::of(&result)).into_string();
        assert!(shown.contains("stopped at line 1002: the request reached its time limit."), "{shown}");
        for field in [
            r#"name="content" value="eA==""#,
            r#"name="column" value="Menge""#,
            r#"name="called" value="quantity""#,
            r#"name="on_conflict" value="UPDATE""#,
            r#"name="every/quantity" value="1""#,
        ] {
            assert!(shown.contains(field), "{field}: {shown}");
        }
        assert!(shown.contains("Continue import") && !shown.contains("a<.csv"), "{shown}");
        result["stopped"] = Value::Null;
        assert!(!import_result(&file, JsonView::of(&result)).into_string().contains("Continue import"));
    }

    #[test]
    fn columns_are_shown_as_what_they_are_and_may_be_anything_else() {
        let file = pending("a<.csv", Vec::new());
        let columns = json!([
            {"name": "Zeit", "called": "timestamp", "report_data": false, "samples": ["2026-01-01T00:00:00Z", "<b>"]},
            {"name": "region", "called": "region", "report_data": true, "samples": []},
            {"name": "note", "called": null, "report_data": false, "samples": []},
        ]);
        let result = json!({"recorded": 1234, "updated": 1, "already_there": 0, "refused": 1, "skipped": 2, "known_by_line": 3, "columns": columns,
            "rejects": [{"line": 7, "code": "x", "detail": "<i>", "errors": []}], "documents": [], "more_documents": 0, "stopped": null});
        let formats = json!([{"format_name": "Log", "changed_at": "2026-01-01T00:00:00Z"}]);
        let shown = import_check(&file, JsonView::of(&formats), JsonView::of(&result)).into_string();
        assert!(shown.contains(r#"<option value="timestamp" selected>"#), "{shown}");
        assert!(shown.contains(r#"<option value="" selected>Report data: region</option>"#), "{shown}");
        assert!(
            shown.contains(r#"<option value="-" selected>"#) && shown.contains("Import 1,234 events and update 1"),
            "{shown}"
        );
        assert!(!shown.contains("<b>") && !shown.contains("<i>") && shown.contains("a&lt;.csv"), "{shown}");
    }

    #[test]
    fn an_undo_tells_how_many_and_nothing_left_has_no_button() {
        let undo = |import| import_undo(JsonView::of(&import), JsonView::of(&json!({}))).into_string();
        let shown = undo(json!({"import_ref": "i", "name": "a", "left": 1000}));
        assert!(shown.contains("Delete 1,000 events") && shown.contains("/console/imports/i/undo"), "{shown}");
        assert!(!undo(json!({"import_ref": "i", "left": 0})).contains("<form"));
    }

    #[test]
    fn usual_names_are_recognised_however_they_are_written() {
        for (column, field) in [
            ("Event ID", Some("idempotency_key")),
            ("Menge", Some("quantity")),
            ("kunde", Some("customer_ref")),
            ("Kundennummer", Some("customer_ref")),
            ("x", None),
        ] {
            assert_eq!(usual_field(column), field, "{column}");
        }
    }
}
