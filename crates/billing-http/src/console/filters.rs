//! What lists can be narrowed by, as the OpenAPI document says it.

use std::collections::HashMap;
use std::sync::LazyLock;

use billing_console::{Filter, FilterKind};
use billing_report::NumbersAs;
use serde_json::Value;

use super::said::Said;
use crate::openapi;

/// What says which part of a list is wanted, and how it is written: pages have links for that.
const NOT_ASKED: &[&str] = &["pageSize", "pageNumber", "cursor", "totals", "format"];

static BY_PATH: LazyLock<HashMap<String, Vec<Filter>>> = LazyLock::new(|| {
    let document = openapi::described(NumbersAs::Number);
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.map(|(path, item)| (path.clone(), of_operation(&document, &item["get"]))).collect()
});

/// What the list there can be narrowed by, with what is said of it.
pub(super) fn of(path: &str, said: &Said) -> Vec<Filter> {
    let filters = BY_PATH.get(path).map_or(&[][..], Vec::as_slice);
    let value = |name: &str| said.iter().find(|(said, _)| said == name).map(|(_, value)| value.clone());
    filters.iter().map(|filter| Filter { value: value(&filter.name).unwrap_or_default(), ..filter.clone() }).collect()
}

fn of_operation(document: &Value, operation: &Value) -> Vec<Filter> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let of_query =
        parameters.map(|parameter| openapi::resolved(document, parameter)).filter(|parameter| parameter["in"] == "query");
    let filter = |parameter: &Value| {
        let name = parameter["name"].as_str().filter(|name| !NOT_ASKED.contains(name))?.to_owned();
        let meaning = parameter["description"].as_str().unwrap_or_default().to_owned();
        let kind = kind(openapi::resolved(document, &parameter["schema"]));
        Some(Filter { name, meaning, kind, value: String::new() })
    };
    of_query.filter_map(filter).collect()
}

fn kind(schema: &Value) -> FilterKind {
    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    let words: Vec<String> = words.collect();
    match (words.is_empty(), schema["type"].as_str(), schema["format"].as_str()) {
        (false, ..) => FilterKind::Choice(words),
        (_, Some("boolean"), _) => FilterKind::Flag,
        (_, _, Some("date")) => FilterKind::Day,
        _ => FilterKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use billing_console::{Shown, listings};

    use super::*;

    #[test]
    fn every_list_of_the_console_is_one_of_the_interface() {
        for listing in listings::ALL {
            assert!(BY_PATH.contains_key(listing.path), "{}", listing.path);
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
        let filters = of(listings::DOCUMENTS.path, &vec![("state".to_owned(), "DRAFT".to_owned())]);
        let filter = |name: &str| filters.iter().find(|filter| filter.name == name).expect(name);
        assert!(matches!(&filter("state").kind, FilterKind::Choice(words) if words.contains(&"DRAFT".to_owned())));
        assert_eq!(filter("state").value, "DRAFT");
        assert_eq!(filter("due_from").kind, FilterKind::Day);
        assert_eq!(filter("overdue").kind, FilterKind::Flag);
        assert_eq!(filter("customer_ref").kind, FilterKind::Text);
        assert!(filters.iter().all(|filter| filter.name != "cursor"));
    }
}
