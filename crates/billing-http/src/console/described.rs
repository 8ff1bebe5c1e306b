//! What lists can be narrowed by and what bodies say, as the OpenAPI document describes it.

use std::collections::HashMap;
use std::sync::LazyLock;

use billing_console::{Field, Filter, Group, InputKind};
use billing_report::NumbersAs;
use serde_json::Value;

use super::said::Said;
use crate::openapi;

/// What says which part of a list is wanted, and how it is written: pages have links for that.
const NOT_ASKED: &[&str] = &["pageSize", "pageNumber", "cursor", "totals", "format"];

/// What pages take of the document, which itself isn't kept.
struct Described {
    /// Of lists, by their paths.
    filters: HashMap<String, Vec<Filter>>,
    /// Of bodies, by their paths.
    groups: HashMap<String, Vec<Group>>,
}

static DESCRIBED: LazyLock<Described> = LazyLock::new(|| {
    let document = openapi::described(NumbersAs::Number);
    let reader = Reader { document: &document };
    let paths = || document["paths"].as_object().into_iter().flatten();
    Described {
        filters: paths().map(|(path, item)| (path.clone(), reader.filters(&item["get"]))).collect(),
        groups: paths().map(|(path, item)| (path.clone(), reader.groups(&item["post"]))).collect(),
    }
});

/// What the list there can be narrowed by, with what is said of it.
pub(super) fn filters(path: &str, said: &Said) -> Vec<Filter> {
    let filters = DESCRIBED.filters.get(path).map_or(&[][..], Vec::as_slice);
    let value = |name: &str| said.iter().find(|(said, _)| said == name).map(|(_, value)| value.clone());
    filters.iter().map(|filter| Filter { value: value(&filter.name).unwrap_or_default(), ..filter.clone() }).collect()
}

/// The fields of the body there, without one that doesn't change; what is a list isn't among them.
pub(super) fn groups(path: &str, kept: Option<&str>) -> Vec<Group> {
    let mut groups = DESCRIBED.groups.get(path).cloned().unwrap_or_default();
    groups.iter_mut().for_each(|group| group.fields.retain(|field| kept != Some(field.name.as_str())));
    groups
}

/// Reads the document.
#[derive(Clone, Copy)]
struct Reader<'d> {
    document: &'d Value,
}

impl<'d> Reader<'d> {
    fn filters(self, operation: &'d Value) -> Vec<Filter> {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let of_query = parameters.map(|parameter| self.resolved(parameter)).filter(|parameter| parameter["in"] == "query");
        let filter = |parameter: &'d Value| {
            let name = parameter["name"].as_str().filter(|name| !NOT_ASKED.contains(name))?.to_owned();
            let meaning = parameter["description"].as_str().unwrap_or_default().to_owned();
            let kind = kind(self.resolved(&parameter["schema"]));
            Some(Filter { name, meaning, kind, value: String::new() })
        };
        of_query.filter_map(filter).collect()
    }

    fn groups(self, operation: &'d Value) -> Vec<Group> {
        let schema = self.resolved(&operation["requestBody"]["content"]["application/json"]["schema"]);
        let mut own = Group { name: String::new(), meaning: String::new(), fields: Vec::new() };
        let mut parts = Vec::new();
        for (name, said) in properties(schema) {
            let meaning = said["description"].as_str().unwrap_or_default();
            let value = self.not_null(said);
            if value["properties"].is_object() {
                // What a part must have it must have where it is there.
                let of_part =
                    |(own, said)| Some(Field { required: false, ..self.field(value, &format!("{name}/{own}"), own, said)? });
                let fields = properties(value).filter_map(of_part);
                parts.push(Group { name: name.to_owned(), meaning: meaning.to_owned(), fields: fields.collect() });
            } else {
                own.fields.extend(self.field(schema, name, name, said));
            }
        }
        // What must be said comes first, then the name.
        own.fields.sort_by_key(|field| (!field.required, field.name != "name"));
        std::iter::once(own).chain(parts).collect()
    }

    fn field(self, schema: &Value, name: &str, own: &str, said: &'d Value) -> Option<Field> {
        let value = self.not_null(said);
        if is(value, "array") || is(value, "object") {
            return None;
        }
        let required = schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == own));
        let meaning = said["description"].as_str().or_else(|| value["description"].as_str()).unwrap_or_default().to_owned();
        Some(Field { name: name.to_owned(), meaning, kind: kind(value), required, value: String::new(), wrong: Vec::new() })
    }

    /// What a value is where it is there.
    fn not_null(self, said: &'d Value) -> &'d Value {
        let said = self.resolved(said);
        let mut choices = said["oneOf"].as_array().into_iter().flatten().filter(|choice| choice["type"] != "null");
        match (choices.next(), choices.next()) {
            (Some(only), None) => self.not_null(only),
            _ => said,
        }
    }

    fn resolved(self, said: &'d Value) -> &'d Value {
        openapi::resolved(self.document, said)
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, said)| (name.as_str(), said))
}

/// Whether a schema is of a type, alone or among others.
fn is(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

fn kind(schema: &Value) -> InputKind {
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let words: Vec<String> = words.collect();
    match (words.is_empty(), is(schema, "boolean"), schema["format"].as_str()) {
        (false, ..) => InputKind::Choice(words),
        (_, true, _) => InputKind::Flag,
        (_, _, Some("date")) => InputKind::Day,
        _ => InputKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use billing_console::{Shown, listings};

    use super::*;

    #[test]
    fn every_list_of_the_console_is_one_of_the_interface() {
        for listing in listings::ALL {
            assert!(DESCRIBED.filters.contains_key(listing.path), "{}", listing.path);
        }
    }

    #[test]
    fn every_column_is_a_field_that_the_list_has() {
        let document = openapi::described(NumbersAs::Number);
        for listing in listings::ALL {
            let answer = openapi::resolved(&document, &document["paths"][listing.path]["get"]["responses"]["200"]);
            let elements = openapi::resolved(&document, &answer["content"]["application/json"]["schema"]);
            for column in listing.columns {
                let key = match column.shown {
                    Shown::Link { key, .. } | Shown::Money(key) => key,
                    _ => column.field,
                };
                for field in [column.field, key] {
                    let mut schema = openapi::resolved(&document, &elements["items"]);
                    for name in field.split('.') {
                        schema = openapi::resolved(&document, &schema["properties"][name]);
                        assert!(!schema.is_null(), "{}: {field}", listing.path);
                    }
                }
            }
        }
    }

    #[test]
    fn documents_are_narrowed_by_words_days_and_answers() {
        let filters = filters(listings::DOCUMENTS.path, &vec![("state".to_owned(), "DRAFT".to_owned())]);
        let filter = |name: &str| filters.iter().find(|filter| filter.name == name).expect(name);
        assert!(matches!(&filter("state").kind, InputKind::Choice(words) if words.contains(&"DRAFT".to_owned())));
        assert_eq!(filter("state").value, "DRAFT");
        assert_eq!(filter("due_from").kind, InputKind::Day);
        assert_eq!(filter("overdue").kind, InputKind::Flag);
        assert_eq!(filter("customer_ref").kind, InputKind::Text);
        assert!(filters.iter().all(|filter| filter.name != "cursor"));
    }
}
