//! The small forms that change one term of a contract: seats, a price, a discount, an end, invoicing details or a
//! cancellation.

use maud::{Markup, html};

/// A small form.
#[derive(Clone, Debug)]
pub struct TaskForm {
    /// Page title.
    pub title: String,
    /// One sentence about the effect.
    pub explanation: &'static str,
    /// The terms that the form changes, as they are now.
    pub present: Vec<(&'static str, Markup)>,
    /// Target of the form.
    pub action: String,
    /// Fields without an input.
    pub hidden: Vec<(String, String)>,
    /// Visible fields.
    pub fields: Vec<TaskField>,
    /// Fields of a table, row by row.
    pub rows: Vec<Vec<TaskField>>,
    /// Fields that are visible on request.
    pub more: Vec<TaskField>,
    /// Errors that belong to no field.
    pub others: Vec<String>,
    /// Target of the cancel link.
    pub back: String,
    /// Address of the form with all fields.
    pub advanced: Option<String>,
}

/// A field of a small form.
#[derive(Clone, Debug)]
pub struct TaskField {
    /// Label.
    pub label: String,
    /// Name.
    pub name: String,
    /// Type of the input.
    pub kind: TaskFieldKind,
    /// Current value.
    pub value: String,
    /// Format or unit of the value; empty if the label suffices.
    pub hint: String,
    /// Whether a value is required.
    pub required: bool,
    /// Whether the field has an effect only if the choice [`ON_DATE`] is selected.
    pub is_of_date: bool,
    /// Errors of the value.
    pub wrong: Vec<String>,
}

/// The input of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskFieldKind {
    /// A line of text.
    Text,
    /// A number.
    Number,
    /// A date.
    Day,
    /// Text of several lines.
    Prose,
    /// A check box with the value `true`.
    Flag,
    /// One of several values with labels, all visible.
    Radios(Vec<(String, String)>),
    /// One of many values with labels.
    Select(Vec<(String, String)>),
}

/// The value of a choice that takes a date from another field.
pub const ON_DATE: &str = "day";

impl TaskField {
    /// Creates an optional field.
    pub fn new(label: &str, name: &str, kind: TaskFieldKind, value: String) -> Self {
        let (label, name) = (label.to_owned(), name.to_owned());
        Self { label, name, kind, value, hint: String::new(), required: false, is_of_date: false, wrong: Vec::new() }
    }

    /// Creates a choice whose options are all visible.
    pub fn radios(label: &str, name: &str, choices: &[(&str, &str)], value: String) -> Self {
        let choices = choices.iter().map(|(value, label)| ((*value).to_owned(), (*label).to_owned())).collect();
        Self::new(label, name, TaskFieldKind::Radios(choices), value)
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    /// Makes the field required.
    #[must_use]
    pub fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Restricts the field to the choice [`ON_DATE`].
    #[must_use]
    pub fn of_date(self) -> Self {
        Self { is_of_date: true, ..self }
    }
}

/// Renders a page with a small form, which leads to a preview.
pub fn task_form(form: &TaskForm) -> Markup {
    html! {
        h1 { (form.title) }
        p { (form.explanation) }
        (refused(&form.others, form.fields.iter().chain(form.rows.iter().flatten()).chain(&form.more)))
        @if !form.present.is_empty() {
            dl.facts { @for (name, value) in &form.present { div { dt { (name) } dd { (value) } } } }
        }
        form.stack.narrow.task method="post" action=(form.action) {
            (hidden(&form.hidden))
            (inputs(&form.fields))
            (table(&form.rows))
            (more(&form.more))
            div.buttons {
                button { "Preview" }
                a href=(form.back) { "Cancel" }
                @if let Some(advanced) = &form.advanced { a.muted href=(advanced) { "Advanced" } }
            }
        }
    }
}

/// Renders a page that asks to which part of the contract a form applies. `choices` has labels and addresses.
pub fn task_choice(title: &str, explanation: &str, choices: &[(String, String)], back: &str) -> Markup {
    html! {
        h1 { (title) }
        p { (explanation) }
        @if choices.is_empty() { p.muted { "The contract has nothing to which this applies." } }
        ul.choice { @for (label, address) in choices { li { a href=(address) { (label) } } } }
        p { a href=(back) { "Cancel" } }
    }
}

/// Renders the message of a rejected form.
pub(crate) fn refused<'f>(others: &[String], mut fields: impl Iterator<Item = &'f TaskField>) -> Markup {
    html! {
        @if !others.is_empty() || fields.any(|field| !field.wrong.is_empty()) {
            p.notice.refused role="alert" { "Nothing was saved." @for other in others { " " (other) } }
        }
    }
}

pub(crate) fn hidden(pairs: &[(String, String)]) -> Markup {
    html! { @for (name, value) in pairs { input type="hidden" name=(name) value=(value); } }
}

/// Renders fields below each other.
pub(crate) fn inputs(fields: &[TaskField]) -> Markup {
    html! { @for field in fields { (labeled(field)) } }
}

/// Renders fields that are visible on request. They are visible at once if they have a value or an error.
pub(crate) fn more(fields: &[TaskField]) -> Markup {
    let is_used = fields.iter().any(|field| !field.value.is_empty() || !field.wrong.is_empty());
    html! {
        @if !fields.is_empty() { details.more open[is_used] { summary { "More" } div.stack { (inputs(fields)) } } }
    }
}

fn labeled(field: &TaskField) -> Markup {
    let (id, hint) = (id(field), hint(field));
    html! {
        @match &field.kind {
            TaskFieldKind::Radios(choices) => fieldset.choices {
                legend { (field.label) }
                @for (value, label) in choices {
                    label.check {
                        input type="radio" name=(field.name) value=(value) checked[*value == field.value];
                        span { (label) }
                    }
                }
                (below(field, &hint))
            },
            TaskFieldKind::Flag => div.field {
                label.check for=(id) { (input(field, &id)) span { (field.label) } }
                (below(field, &hint))
            },
            _ => div.field.of-date[field.is_of_date] {
                label for=(id) { (field.label) @if field.required { span aria-hidden="true" { " *" } } }
                (input(field, &id))
                (below(field, &hint))
            },
        }
    }
}

fn id(field: &TaskField) -> String {
    format!("field-{}", field.name)
}

fn hint(field: &TaskField) -> String {
    format!("hint-{}", field.name)
}

fn below(field: &TaskField, hint: &str) -> Markup {
    html! {
        @if !field.hint.is_empty() { p.hint id=(hint) { (field.hint) } }
        (reasons(field))
    }
}

fn reasons(field: &TaskField) -> Markup {
    html! { @for reason in &field.wrong { p.wrong id=(format!("wrong-{}", field.name)) { (reason) } } }
}

/// Renders the input alone. The API validates the values, so that errors have the same form everywhere.
fn input(field: &TaskField, id: &str) -> Markup {
    let TaskField { name, kind, value, required, .. } = field;
    let described = match (field.hint.is_empty(), field.wrong.is_empty()) {
        (true, true) => None,
        (false, true) => Some(hint(field)),
        (true, false) => Some(format!("wrong-{name}")),
        (false, false) => Some(format!("{} wrong-{name}", hint(field))),
    };
    let invalid = (!field.wrong.is_empty()).then_some("true");
    html! {
        @match kind {
            TaskFieldKind::Flag => {
                input id=(id) name=(name) type="checkbox" value="true" checked[value == "true"] aria-describedby=[described];
            },
            TaskFieldKind::Prose => {
                textarea id=(id) name=(name) rows="3" maxlength="4096" aria-describedby=[described] aria-invalid=[invalid] { (value) }
            },
            TaskFieldKind::Select(choices) => {
                select id=(id) name=(name) aria-describedby=[described] aria-invalid=[invalid] {
                    @for (choice, label) in choices { option value=(choice) selected[choice == value] { (label) } }
                }
            },
            _ => {
                @let of_type = if *kind == TaskFieldKind::Day { "date" } else { "text" };
                @let mode = (*kind == TaskFieldKind::Number).then_some("decimal");
                input id=(id) name=(name) type=(of_type) value=(value) maxlength="255" required[*required] inputmode=[mode]
                    aria-describedby=[described] aria-invalid=[invalid];
            },
        }
    }
}

/// Renders rows of fields as a table. The labels of the first row are the headings.
fn table(rows: &[Vec<TaskField>]) -> Markup {
    html! {
        @if let Some(first) = rows.first() {
            div.scrolls tabindex="0" role="region" aria-label="Tiers" {
                table {
                    thead { tr { @for field in first { th scope="col" { (field.label) } } } }
                    tbody {
                        @for (place, row) in rows.iter().enumerate() {
                            tr { @for field in row {
                                td {
                                    @let id = id(field);
                                    label.hidden for=(id) { (field.label) ", row " (place + 1) }
                                    (input(field, &id))
                                    (reasons(field))
                                }
                            } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: Vec<TaskField>) -> TaskForm {
        TaskForm {
            title: "Change seats".to_owned(),
            explanation: "Changes the seats.",
            present: vec![("Seats", html! { "10 <b>" })],
            action: "/console/contracts/c/seats".to_owned(),
            hidden: vec![("target".to_owned(), "0/\"seats\"".to_owned())],
            fields,
            rows: Vec::new(),
            more: Vec::new(),
            others: Vec::new(),
            back: "/console/contracts/c".to_owned(),
            advanced: None,
        }
    }

    #[test]
    fn a_form_has_its_values_and_the_errors_beside_their_fields() {
        let quantity = TaskField::new("New quantity", "quantity", TaskFieldKind::Number, "ten".to_owned()).required();
        let wrong = TaskField { wrong: vec!["must be a number".to_owned()], ..quantity };
        let start = TaskField::radios("Start", "start", &[("next", "Next period"), (ON_DATE, "On a date")], "day".to_owned());
        let date = TaskField::new("Date", "effective_from", TaskFieldKind::Day, String::new()).of_date();
        let page = task_form(&form(vec![wrong, start, date])).into_string();
        for part in [
            "Nothing was saved.",
            "value=\"ten\"",
            "aria-invalid=\"true\"",
            "aria-describedby=\"wrong-quantity\"",
            "must be a number",
            "value=\"day\" checked",
            "class=\"field of-date\"",
            "value=\"0/&quot;seats&quot;\"",
            "10 &lt;b&gt;",
            ">Preview</button>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("value=\"next\" checked"), "{page}");
    }

    #[test]
    fn a_form_without_errors_has_no_message_and_folds_unused_fields() {
        let flag = TaskField::new("Allow more", "allow_backdated", TaskFieldKind::Flag, String::new());
        let folded = TaskForm { more: vec![flag.clone()], ..form(Vec::new()) };
        let page = task_form(&folded).into_string();
        assert!(!page.contains("Nothing was saved.") && page.contains("<details class=\"more\"><summary>More"), "{page}");
        let used = TaskForm { more: vec![TaskField { value: "true".to_owned(), ..flag }], ..form(Vec::new()) };
        assert!(task_form(&used).into_string().contains("<details class=\"more\" open>"));
    }

    #[test]
    fn tiers_are_rows_of_a_table() {
        let row = |place: usize| {
            let name = |field: &str| format!("tiers/{place}/{field}");
            vec![
                TaskField::new("Up to", &name("up_to"), TaskFieldKind::Number, "100".to_owned()),
                TaskField::new("Unit price", &name("unit_price"), TaskFieldKind::Number, "0.05".to_owned()),
            ]
        };
        let page = task_form(&TaskForm { rows: vec![row(0), row(1)], ..form(Vec::new()) }).into_string();
        assert!(page.matches("<th scope=\"col\">Unit price").count() == 1 && page.contains("Unit price, row 2"), "{page}");
    }
}
