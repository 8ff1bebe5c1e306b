//! The usage format editor: trying a format on an event, creating formats and new versions.

use crate::{Crumb, FORMAT_FIELDS, FormatEditor, FormatField, format_fields, href, listings};
use billing_api::console::{FormData, PageAnswer};
use billing_api::json_view::JsonAnswer;
use billing_api::operations::{CreateUsageFormat, EditUsageFormat, GetUsageFormat, TestUsageFormat};
use serde_json::{Map, Value};

use super::form_data::{field as said_of, key};
use super::page_builder::PageBuilder;
use super::reply::belongs_beside;
use super::reply::{caption, html, to};
use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// The initial sample event.
const SAMPLE: &str = "{\n  \"at\": \"2026-01-20T10:15:30Z\",\n  \"customer\": \"acme\",\n  \"calls\": 12\n}";

/// Renders the editor.
pub(super) async fn page(user: &SessionUser, edited: Option<&str>) -> Result<PageBuilder, Problem> {
    let format = match edited {
        Some(reference) => user.quietly().get::<GetUsageFormat>(reference).await?,
        None => JsonAnswer::default(),
    };
    Ok(made(editor(user, edited, format_fields(format.view().json()), SAMPLE.to_owned()), edited))
}

fn editor(user: &SessionUser, edited: Option<&str>, fields: Vec<FormatField>, sample: String) -> FormatEditor {
    let part = listings::FORMATS.part;
    let (title, action) = match edited {
        Some(reference) => (format!("Edit usage format {reference}"), href(&["edit", part, reference])),
        None => ("New usage format".to_owned(), href(&["new", part])),
    };
    user.shows(&TestUsageFormat::SPEC, "", "");
    let (sample_wrong, others) = (Vec::new(), Vec::new());
    FormatEditor { title, action, key: user.unique(), fields, sample, sample_wrong, mapped: None, others }
}

fn made(editor: FormatEditor, edited: Option<&str>) -> PageBuilder {
    let part = listings::FORMATS.part;
    let all = Crumb { name: listings::FORMATS.title.to_owned(), href: href(&[part]) };
    let format = edited.map(|reference| Crumb { name: reference.to_owned(), href: href(&[part, reference]) });
    let crumbs = std::iter::once(all).chain(format).collect();
    let body = crate::format_editor(&editor);
    PageBuilder { title: editor.title, part, crumbs, body }
}

/// Tries or saves the format in the editor.
pub(super) async fn act(user: &SessionUser, edited: Option<&str>, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let problem = match carry_out(user, edited, submitted).await {
        Ok(answer) => return Ok(answer),
        Err(problem) => problem,
    };
    if !belongs_beside(&problem) {
        return Err(problem);
    }
    let mut editor = again(user, edited, submitted);
    for error in problem.errors() {
        let pointer = error.pointer.trim_start_matches('/');
        // An error in one column of the report data belongs to the field with all columns.
        let at = |name: &str| pointer == name || pointer.strip_prefix(name).is_some_and(|below| below.starts_with('/'));
        match FORMAT_FIELDS.iter().position(|(name, ..)| at(name)) {
            Some(index) => editor.fields[index].wrong.push(error.detail.clone()),
            None if pointer == "event" => editor.sample_wrong.push(error.detail.clone()),
            None => editor.others.push(format!("{pointer}: {}", error.detail)),
        }
    }
    if problem.errors().is_empty() {
        editor.others.push(problem.detail().to_owned());
    }
    Ok(caption(problem, made(editor, edited).page(user, None)))
}

/// Returns the editor with the submitted values.
fn again(user: &SessionUser, edited: Option<&str>, submitted: &FormData) -> FormatEditor {
    let field = |name: &str| FormatField { value: said_of(submitted, name).unwrap_or_default().to_owned(), wrong: Vec::new() };
    let fields = FORMAT_FIELDS.iter().map(|(name, ..)| field(name)).collect();
    editor(user, edited, fields, said_of(submitted, "sample").unwrap_or_default().to_owned())
}

async fn carry_out(user: &SessionUser, edited: Option<&str>, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let part = listings::FORMATS.part;
    let body = body(submitted);
    if said_of(submitted, "do") != Some("save") {
        let sample = billing_json::read(said_of(submitted, "sample").unwrap_or_default().as_bytes());
        let event = sample.map_err(|error| {
            let found = billing_domain::violation::Violations::one(&["event"], "malformed_json", error.to_string());
            Problem::from(found)
        })?;
        let asked = Value::from_iter([("mapping", body["mapping"].clone()), ("event", event)]);
        let tried = user.post::<TestUsageFormat>(asked).await?;
        let mut editor = again(user, edited, submitted);
        editor.mapped = Some(tried.view().mapped().json().clone());
        return Ok(html(made(editor, edited).page(user, None)));
    }
    let (key, body) = (key(submitted), Some(body));
    let (saved, done) = match edited {
        None => (user.carry_out::<CreateUsageFormat>("", key, body).await, "make"),
        Some(reference) => (user.carry_out::<EditUsageFormat>(reference, key, body).await, "edit"),
    };
    let answer = saved?;
    Ok(to(&format!("{}?done={done}", href(&[part, &answer.view().format_ref().to_text()]))))
}

/// Returns the API request body for the submitted values.
fn body(submitted: &FormData) -> Value {
    let mut body = Map::new();
    for &(name, ..) in FORMAT_FIELDS {
        let Some(text) = said_of(submitted, name) else { continue };
        // Report data may be an object of expressions.
        let value = match billing_json::read(text.as_bytes()) {
            Ok(object @ Value::Object(_)) if name == "mapping/additional_report_data" => object,
            _ => Value::from(text),
        };
        put(&mut body, name, value);
    }
    body.entry("mapping").or_insert_with(|| Value::Object(Map::new()));
    Value::Object(body)
}

fn put(body: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('/') {
        None => drop(body.insert(path.to_owned(), value)),
        Some((first, below)) => {
            if let Value::Object(inner) = body.entry(first).or_insert_with(|| Value::Object(Map::new())) {
                put(inner, below, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_editor_says_is_the_body_that_the_interface_takes() {
        let submitted =
            |pairs: &[(&str, &str)]| -> FormData { pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect() };
        let pairs = [
            ("format_name", "Log"),
            ("mapping/timestamp", "event.at"),
            ("mapping/customer_ref", " "),
            ("mapping/additional_report_data", "{\"a\": \"event.a\"}"),
            ("mapping/validations/currency", "\"EUR\""),
        ];
        let mapping =
            json!({"timestamp": "event.at", "additional_report_data": {"a": "event.a"}, "validations": {"currency": "\"EUR\""}});
        assert_eq!(body(&submitted(&pairs)), json!({"format_name": "Log", "mapping": mapping}));
        assert_eq!(
            body(&submitted(&[("mapping/additional_report_data", "rest")])),
            json!({"mapping": {"additional_report_data": "rest"}})
        );
        assert_eq!(body(&submitted(&[])), json!({"mapping": {}}));
    }
}
