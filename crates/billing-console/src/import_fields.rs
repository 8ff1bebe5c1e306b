//! The fields that an import reads, the columns of the file that have them, and the questions about those that no column has.

use std::collections::BTreeSet;

use maud::{Markup, html};
use serde_json::Value;

use crate::format::FORMAT_FIELDS;
use crate::import::{IMPORT_PATH, PendingFile, pending_fields};
use crate::listings::IMPORTS;
use crate::parts::href;
use billing_api::dto::formats::FormatJson;
use billing_api::dto::imports::ImportColumnJson;
use billing_api::json_view::JsonView;

/// Prefix of the form fields with the column of a field that a usage format reads.
pub const COLUMN_OF: &str = "is/";
/// Prefix of the form fields with a value for every line.
pub const ON_EVERY_LINE: &str = "every/";

/// A fact of every event, and the fields that can state it, the first one by default.
#[derive(Clone, Copy, Debug)]
pub struct ColumnQuestion {
    /// Fields of events.
    pub fields: &'static [&'static str],
    /// The fact.
    label: &'static str,
    /// Question for the column with the fact.
    question: &'static str,
    /// What to do if no column has the fact.
    remedy: &'static str,
    /// Label of the value that every line has instead.
    on_every_line: &'static str,
    /// Part of the console with the objects to choose from.
    part: Option<&'static str>,
}

/// The facts that a file must have.
pub const COLUMN_QUESTIONS: [ColumnQuestion; 4] = [
    ColumnQuestion {
        fields: &["customer_ref", "customer_name"],
        label: "Customer",
        question: "Which column is the customer?",
        remedy: "Choose the customer's column, or enter one customer for every line.",
        on_every_line: "Or one customer for every line, by reference",
        part: Some("customers"),
    },
    ColumnQuestion {
        fields: &["usage_product_ref", "usage_product_name"],
        label: "Usage product",
        question: "Which column is the usage product?",
        remedy: "Choose the usage product's column, or enter one usage product for every line.",
        on_every_line: "Or one usage product for every line, by reference",
        part: Some("usage-products"),
    },
    ColumnQuestion {
        fields: &["timestamp"],
        label: "Time of the usage",
        question: "Which column is the time of the usage?",
        remedy: "Choose the column with the time, or enter one time for every line.",
        on_every_line: "Or one time for every line, such as 2026-01-20T10:15:30Z",
        part: None,
    },
    ColumnQuestion {
        fields: &["quantity"],
        label: "Quantity",
        question: "Which column is the quantity?",
        remedy: "Choose the column with the quantity, or enter one quantity for every line.",
        on_every_line: "Or one quantity for every line, such as 1",
        part: None,
    },
];

/// A field that no column of a file has.
#[derive(Clone, Debug)]
pub enum OpenQuestion {
    /// A fact of the default shape.
    Fact(ColumnQuestion),
    /// A field that a usage format reads.
    Field(ReadField),
}

/// A field of a line that a usage format reads, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadField {
    /// Name of the field.
    pub name: String,
    /// Labels of the expressions that name the field.
    pub meanings: Vec<&'static str>,
}

impl OpenQuestion {
    fn label(&self) -> String {
        match self {
            Self::Fact(fact) => fact.question.to_owned(),
            Self::Field(field) => format!("Which column is the field {}? ({})", field.name, field.meanings.join(", ")),
        }
    }

    /// Returns what to do, as a sentence.
    pub fn remedy(&self) -> String {
        match self {
            Self::Fact(fact) => fact.remedy.to_owned(),
            Self::Field(field) => format!("Choose the column of the field {}.", field.name),
        }
    }

    fn input(&self) -> String {
        match self {
            Self::Fact(fact) => fact.fields.first().copied().unwrap_or_default().to_owned(),
            Self::Field(field) => format!("{COLUMN_OF}{}", field.name),
        }
    }
}

/// Returns the questions about facts that neither a column nor a value for every line states. A file without columns has none.
pub fn open_questions(columns: JsonView<'_, Vec<ImportColumnJson>>, constants: &[(String, String)]) -> Vec<OpenQuestion> {
    let is_stated = |field: &&str| columns.items().any(|column| column.called().is(field)) || is_constant(constants, field);
    let is_open = |question: &ColumnQuestion| !columns.is_empty() && !question.fields.iter().any(is_stated);
    COLUMN_QUESTIONS.into_iter().filter(is_open).map(OpenQuestion::Fact).collect()
}

/// Returns the questions about fields that a usage format reads and that no column has. A file without columns has none.
pub fn missing_fields(
    format: JsonView<'_, FormatJson>,
    columns: JsonView<'_, Vec<ImportColumnJson>>,
    constants: &[(String, String)],
) -> Vec<OpenQuestion> {
    let has =
        |field: &ReadField| columns.items().any(|column| column.called().is(&field.name)) || is_constant(constants, &field.name);
    let fields = if columns.is_empty() { Vec::new() } else { read_fields(format) };
    fields.into_iter().filter(|field| !has(field)).map(OpenQuestion::Field).collect()
}

fn is_constant(constants: &[(String, String)], field: &str) -> bool {
    constants.iter().any(|(constant, _)| constant == field)
}

/// Returns the fields that the expressions of a usage format name, in the order of the expressions.
pub fn read_fields(format: JsonView<'_, FormatJson>) -> Vec<ReadField> {
    let mut fields = Vec::<ReadField>::new();
    for (pointer, label, ..) in FORMAT_FIELDS.iter().filter(|(pointer, ..)| pointer.starts_with("mapping/")) {
        let expressions: Vec<&str> = match format.json().pointer(&format!("/{pointer}")) {
            Some(Value::Object(columns)) => columns.values().filter_map(Value::as_str).collect(),
            other => other.and_then(Value::as_str).into_iter().collect(),
        };
        for name in expressions.into_iter().flat_map(event_fields) {
            match fields.iter_mut().find(|field| field.name == name) {
                Some(field) if field.meanings.contains(label) => {}
                Some(field) => field.meanings.push(label),
                None => fields.push(ReadField { name, meanings: vec![label] }),
            }
        }
    }
    fields
}

/// Returns the fields that an expression names as `event.field`, `event["field"]` or `get(event, "field")`.
fn event_fields(expression: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = expression;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let end = match first {
            '"' => text_end(rest).unwrap_or(rest.len()),
            _ if is_name(first) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(end);
        if token == "event" && before != '.' {
            let after = after.trim_start().trim_start_matches('?');
            if let Some(name) = after.strip_prefix('.').map(str::trim_start) {
                names.push(name[..name.find(|c| !is_name(c)).unwrap_or(name.len())].to_owned());
            } else if let Some(text) = after.strip_prefix(['[', ',']).map(str::trim_start)
                && let Some(end) = text.starts_with('"').then(|| text_end(text)).flatten()
            {
                names.push(text[1..end - 1].to_owned());
            }
        }
        if !first.is_whitespace() {
            before = first;
        }
        rest = after;
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Returns the end of a text in double quotes.
fn text_end(source: &str) -> Option<usize> {
    let mut is_escaped = false;
    let end = source[1..].find(|c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    })?;
    Some(end + 2)
}

/// Renders the questions about a file's columns. `read` are the fields that a usage format reads. `is_repeated` states that an answer was sent and the questions are still open.
pub fn import_questions(
    file: &PendingFile,
    columns: JsonView<'_, Vec<ImportColumnJson>>,
    questions: &[OpenQuestion],
    read: &[ReadField],
    is_repeated: bool,
) -> Markup {
    let is_of_format = !read.is_empty();
    let is_free = |column: &JsonView<'_, ImportColumnJson>| {
        if is_of_format { !read.iter().any(|field| column.called().is(&field.name)) } else { column.report_data().is_true() }
    };
    let free: Vec<JsonView<'_, ImportColumnJson>> = columns.items().filter(is_free).collect();
    html! {
        h1 { "Import " (file.name) }
        @if is_of_format {
            p { "The usage format " (file.format_name) " reads fields that no column of the file has. Nothing is saved yet." }
        } @else {
            p { "Each line needs a customer, a usage product, a time and a quantity. Nothing is saved yet." }
        }
        form.stack.narrow method="post" enctype="multipart/form-data" action=(IMPORT_PATH) {
            (pending_fields(file))
            @for column in columns.items() {
                input type="hidden" name="column" value=(column.name().to_text());
                input type="hidden" name="called" value=(column.called().to_text());
            }
            @for question in questions {
                @let (input, label) = (question.input(), question.label());
                @let (id, wrong) = (format!("is-{input}"), format!("wrong-{input}"));
                div.field {
                    label for=(id) { (label) }
                    select id=(id) name=(input) aria-invalid=[is_repeated.then_some("true")] aria-describedby=[is_repeated.then_some(&wrong)] {
                        @for column in &free { option value=(column.name().to_text()) { (column.name().to_text()) (samples(*column)) } }
                        option value="" selected[is_repeated] { "None of these columns" }
                    }
                    @if is_repeated { p.wrong id=(wrong) { (question.remedy()) } }
                }
                @if let OpenQuestion::Fact(fact) = question {
                    @let every = format!("{ON_EVERY_LINE}{input}");
                    div.field {
                        label for=(every) { (fact.on_every_line) }
                        input id=(every) name=(every) maxlength="255" data-pick=[fact.part];
                    }
                }
            }
            div.buttons { button name="do" value="look" { "Continue" } a href=(href(&[IMPORTS.part])) { "Cancel" } }
        }
    }
}

/// Returns the first values of a column, such as `: acme, globex`.
fn samples(column: JsonView<'_, ImportColumnJson>) -> String {
    let mut values: Vec<String> = column.samples().items().map(JsonView::to_text).collect();
    values.dedup();
    if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) }
}

/// Renders the fields that an import reads, each with its column of the file. Without a file, `columns` is `None`.
pub fn import_fields(format: Option<JsonView<'_, FormatJson>>, columns: Option<JsonView<'_, Vec<ImportColumnJson>>>) -> Markup {
    let rows: Vec<(String, String, Vec<String>)> = match format {
        Some(format) => read_fields(format)
            .into_iter()
            .map(|field| (field.name.clone(), field.meanings.join(", "), vec![field.name]))
            .collect(),
        None => COLUMN_QUESTIONS
            .iter()
            .map(|fact| {
                let fields = fact.fields.iter().map(|field| (*field).to_owned()).collect();
                (fact.fields.join(" or "), fact.label.to_owned(), fields)
            })
            .collect(),
    };
    let of_row = |fields: &[String]| columns?.items().find(|column| fields.iter().any(|field| column.called().is(field)));
    let read: BTreeSet<&String> = rows.iter().flat_map(|(.., fields)| fields).collect();
    let others = columns.into_iter().flat_map(JsonView::items).filter(|column| !read.contains(&column.called().to_text()));
    let others: Vec<String> = others.map(|column| column.name().to_text()).collect();
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Fields of a line" { table {
            thead { tr { th scope="col" { "Field" } th scope="col" { "Meaning" } @if columns.is_some() { th scope="col" { "Column of the file" } } } }
            tbody { @for (field, meaning, fields) in &rows { tr {
                th scope="row" { code { (field) } }
                td { (meaning) }
                @if columns.is_some() { td {
                    @match of_row(fields) {
                        Some(column) => { (column.name().to_text()) span.muted { (samples(column)) } }
                        None => "Not found",
                    }
                } }
            } } }
        } }
        @if !others.is_empty() { p.hint { "Other columns of the file: " (others.join(", ")) } }
        @if columns.is_some_and(|_| rows.iter().any(|(.., fields)| of_row(fields).is_none())) {
            p.hint { "Fields that are not found can be chosen in the next step." }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file() -> PendingFile {
        PendingFile {
            name: "a<.csv".to_owned(),
            content: "eA==".to_owned(),
            format_name: "Log".to_owned(),
            columns: Vec::new(),
            constants: Vec::new(),
            updates: true,
        }
    }

    fn column(name: &str, called: &str) -> Value {
        json!({"name": name, "called": called, "report_data": name == called, "samples": ["a", "a", "<b>"]})
    }

    #[test]
    fn a_file_without_the_column_of_a_fact_leads_to_a_question() {
        let columns = json!([column("firm", "firm"), column("Menge", "quantity"), column("at", "timestamp"), column("x", "x")]);
        let columns = JsonView::of(&columns);
        let open = open_questions(columns, &[]);
        assert_eq!(open.iter().map(OpenQuestion::input).collect::<Vec<_>>(), ["customer_ref", "usage_product_ref"]);
        let page = import_questions(&file(), columns, &open, &[], false).into_string();
        assert!(page.contains("Which column is the customer?") && page.contains(">firm: a, &lt;b&gt;</option>"), "{page}");
        assert!(!page.contains(">Menge:") && page.contains("name=\"called\" value=\"quantity\""), "{page}");
        assert!(page.contains(r#"name="every/customer_ref" maxlength="255" data-pick="customers""#), "{page}");
        assert!(!page.contains("class=\"wrong\""), "{page}");
        let repeated = import_questions(&file(), columns, &open, &[], true).into_string();
        assert!(repeated.contains("class=\"wrong\"") && repeated.contains("or enter one customer for every line."), "{repeated}");
        assert!(open_questions(JsonView::of(&json!([])), &[]).is_empty(), "a file of JSON has no columns");
        let constant = [("usage_product_ref".to_owned(), "calls".to_owned())];
        assert_eq!(open_questions(columns, &constant).len(), 1, "a value for every line answers a question");
    }

    #[test]
    fn the_fields_of_a_format_are_those_that_its_expressions_name() {
        let mapping = json!({"timestamp": "event.at", "customer_ref": r#"get(event, "who") ?? event?.at"#, "quantity": "1 + my_event.no",
            "usage_product_ref": r#""event.no""#, "additional_report_data": {"a": r#"event["the route"]"#, "b": "event.a.event.b"}});
        let format = json!({"format_name": "Log", "mapping": mapping});
        let fields = read_fields(JsonView::of(&format));
        let named: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(named, ["at", "who", "the route", "a"]);
        assert_eq!(fields[0].meanings, ["Timestamp", "Customer, by reference"]);
        let columns = json!([column("zeit", "at"), column("who", "who"), column("x", "x")]);
        let missing = missing_fields(JsonView::of(&format), JsonView::of(&columns), &[("a".to_owned(), "1".to_owned())]);
        assert_eq!(missing.iter().map(OpenQuestion::input).collect::<Vec<_>>(), ["is/the route"]);
        let shown = import_fields(Some(JsonView::of(&format)), Some(JsonView::of(&columns))).into_string();
        assert!(shown.contains("<td>zeit<span class=\"muted\">: a, &lt;b&gt;</span></td>"), "{shown}");
        assert!(shown.matches("Not found").count() == 2 && shown.contains("Other columns of the file: x<"), "{shown}");
        assert!(!import_fields(Some(JsonView::of(&format)), None).into_string().contains("Not found"), "no file is chosen");
    }
}
