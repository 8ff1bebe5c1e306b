//! Index of list filters and body fields, extracted from the OpenAPI document.

use billing_api::console::FormData;
use billing_api::operation::OperationSpec;
use std::collections::HashMap;
use std::sync::LazyLock;

use crate::{Filter, InputKind};
use billing_domain::report::NumbersAs;
use serde_json::Value;

use billing_api::openapi;

/// Pagination and format parameters, which pages control by links and do not offer as filters.
const NOT_ASKED: &[&str] = &["pageSize", "pageNumber", "cursor", "totals", "format", "order"];

/// Fields that forms show first, in this order.
const FIRST: &[&str] = &[
    "name",
    "line_item_id",
    "customer_ref",
    "product_pricing_ref",
    "usage_product_ref",
    "kind",
    "model",
    "effective_from",
    "include_current_invoice",
    "billing_start_date",
    "billing_end_date",
    "date",
    "up_to",
    "amount",
    "quantity",
    "unit_price",
    "currency",
    "discount",
    "tax",
    "tax_from",
    "payment_time",
];

/// The extracted data. The document itself is dropped, to save memory.
struct OpenApiIndex {
    /// Filters of lists by operation.
    filters: HashMap<String, Vec<Filter>>,
    /// Body fields by operation.
    shapes: HashMap<String, Vec<BodyField>>,
}

/// A field of a request body.
#[derive(Clone, Debug)]
pub(super) struct BodyField {
    pub(super) name: String,
    pub(super) meaning: String,
    /// Whether the field is required within its parent.
    pub(super) required: bool,
    /// Variants to which the field applies, named by the value of the discriminating field; empty if it always applies.
    pub(super) of_words: Vec<String>,
    pub(super) says: BodyFieldKind,
}

/// The type of a body field.
#[derive(Clone, Debug)]
pub(super) enum BodyFieldKind {
    /// A single value, or a list of decimals as lines; `is_whole` marks integers.
    One { kind: InputKind, is_whole: bool },
    /// An object with fields.
    Parts(Vec<BodyField>),
    /// A list of objects with these fields.
    Several(Vec<BodyField>),
}

static DESCRIBED: LazyLock<OpenApiIndex> = LazyLock::new(|| {
    let document = openapi::described(NumbersAs::Number);
    let reader = Reader { document: &document };
    let operations = |method: &'static str| {
        let items = document["paths"].as_object().into_iter().flatten();
        items.filter_map(move |(_, item)| Some((item[method]["operationId"].as_str()?.to_owned(), &item[method])))
    };
    OpenApiIndex {
        filters: operations("get").map(|(id, operation)| (id, reader.filters(operation))).collect(),
        shapes: operations("post").map(|(id, operation)| (id, reader.shapes_of_body(operation))).collect(),
    }
});

/// Returns the filters of an operation's list with the submitted values.
pub(super) fn filters(operation: &'static OperationSpec, submitted: &FormData) -> Vec<Filter> {
    let filters = DESCRIBED.filters.get(operation.id).map_or(&[][..], Vec::as_slice);
    let value = |name: &str| submitted.iter().find(|(submitted, _)| submitted == name).map(|(_, value)| value.clone());
    filters.iter().map(|filter| Filter { value: value(&filter.name).unwrap_or_default(), ..filter.clone() }).collect()
}

/// Returns the fields of an operation's request body.
pub(super) fn shapes(operation: &'static OperationSpec) -> &'static [BodyField] {
    DESCRIBED.shapes.get(operation.id).map_or(&[], Vec::as_slice)
}

/// Reads the OpenAPI document.
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

    fn shapes_of_body(self, operation: &'d Value) -> Vec<BodyField> {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        self.shapes(&[self.not_null(schema)])
    }

    /// Merges the fields of several schemas. A discriminating field distinguishes the variants.
    fn shapes(self, schemas: &[&'d Value]) -> Vec<BodyField> {
        let mut shapes: Vec<BodyField> = Vec::new();
        for (name, submitted) in schemas.iter().flat_map(|schema| properties(schema)) {
            let has_it = |schema: &&&Value| schema["properties"][name].is_object();
            let must = |schema: &Value| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
            let Some(shape) = self.shape(name, submitted, schemas.iter().all(|schema| must(schema))) else { continue };
            match shapes.iter_mut().find(|known| known.name == name) {
                // Collects the discriminating words of all variants.
                Some(BodyField { says: BodyFieldKind::One { kind: InputKind::Choice(words), .. }, .. }) => {
                    if let BodyFieldKind::One { kind: InputKind::Choice(more), .. } = shape.says {
                        words.extend(more.into_iter().filter(|word| !words.contains(word)).collect::<Vec<_>>());
                    }
                }
                Some(_) => {}
                None => {
                    let having: Vec<&str> = schemas.iter().filter(has_it).filter_map(|schema| self.told_by(schema)).collect();
                    let is_of_some = having.len() < schemas.len() && !having.is_empty();
                    let of_words = if is_of_some { having.into_iter().map(str::to_owned).collect() } else { Vec::new() };
                    shapes.push(BodyField { of_words, ..shape });
                }
            }
        }
        // Required fields come first.
        let rank = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
        shapes.sort_by_key(|shape| (!shape.required, rank(&shape.name)));
        shapes
    }

    /// Returns the discriminating word of a variant.
    fn told_by(self, schema: &'d Value) -> Option<&'d str> {
        properties(schema).find_map(|(_, submitted)| self.resolved(submitted)["const"].as_str())
    }

    /// Reads a field. Returns `None` for types without a form field: lists of texts and free-form objects.
    fn shape(self, name: &str, submitted: &'d Value, required: bool) -> Option<BodyField> {
        let value = self.not_null(submitted);
        let meaning = submitted["description"].as_str().or_else(|| value["description"].as_str()).unwrap_or_default().to_owned();
        let variants: Vec<&Value> =
            value["oneOf"].as_array().into_iter().flatten().map(|variant| self.resolved(variant)).collect();
        let element = self.not_null(&value["items"]);
        let says = if is(value, "array") && self.is_decimal(element) {
            BodyFieldKind::One { kind: InputKind::Lines, is_whole: false }
        } else if is(value, "array") {
            BodyFieldKind::Several(Some(self.shapes(&[element])).filter(|shapes| !shapes.is_empty())?)
        } else if value["properties"].is_object() {
            BodyFieldKind::Parts(self.shapes(&[value]))
        } else if !variants.is_empty() && variants.iter().all(|variant| variant["properties"].is_object()) {
            BodyFieldKind::Parts(self.shapes(&variants))
        } else if is(value, "object") {
            return None;
        } else {
            let is_whole = is(value, "integer") || variants.iter().any(|variant| is(variant, "integer"));
            BodyFieldKind::One { kind: kind(value), is_whole }
        };
        Some(BodyField { name: name.to_owned(), meaning, required, of_words: Vec::new(), says })
    }

    /// Returns whether a value is a decimal.
    fn is_decimal(self, value: &'d Value) -> bool {
        let variants = value["oneOf"].as_array().into_iter().flatten().map(|variant| self.resolved(variant));
        variants.chain([value]).any(|schema| is(schema, "number"))
    }

    /// Returns the non-null schema of a value.
    fn not_null(self, submitted: &'d Value) -> &'d Value {
        let submitted = self.resolved(submitted);
        let mut choices = submitted["oneOf"].as_array().into_iter().flatten().filter(|choice| choice["type"] != "null");
        match (choices.next(), choices.next()) {
            (Some(only), None) => self.not_null(only),
            _ => submitted,
        }
    }

    fn resolved(self, submitted: &'d Value) -> &'d Value {
        openapi::resolved(self.document, submitted)
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, submitted)| (name.as_str(), submitted))
}

/// Returns whether a schema permits a type.
fn is(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

fn kind(schema: &Value) -> InputKind {
    let words = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
    let words = words.filter_map(Value::as_str).map(str::to_owned);
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
    use crate::{CellFormat, TextKind, listings};

    use super::*;

    #[test]
    fn every_list_of_the_console_is_one_of_the_interface() {
        for listing in listings::ALL {
            assert!(DESCRIBED.filters.contains_key(listing.operation.id), "{:?}", listing.operation);
        }
    }

    #[test]
    fn every_column_is_a_field_that_the_list_has() {
        let document = openapi::described(NumbersAs::Number);
        for listing in listings::ALL {
            let path = listing.operation.path;
            let answer = openapi::resolved(&document, &document["paths"][path]["get"]["responses"]["200"]);
            let elements = openapi::resolved(&document, &answer["content"]["application/json"]["schema"]);
            for column in listing.columns {
                let currency = match column.shown {
                    CellFormat::Money(currency) => currency,
                    _ => column.field,
                };
                let key = column.leads.map_or(column.field, |(_, key)| key);
                // The console adds the state and the amounts due to customers.
                let is_added = listing.part == "customers" && ["state", "amounts_due"].contains(&column.field);
                for field in [column.field, currency, key].into_iter().filter(|_| !is_added) {
                    let mut schema = openapi::resolved(&document, &elements["items"]);
                    for name in field.split('.') {
                        schema = openapi::resolved(&document, &schema["properties"][name]);
                        assert!(!schema.is_null(), "{:?}: {field}", listing.operation);
                    }
                }
            }
        }
    }

    /// Adds the text fields of a schema, with their formats.
    fn add_texts<'d>(document: &'d Value, schema: &'d Value, found: &mut Vec<(&'d str, Option<&'d str>)>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let alternatives = field["oneOf"].as_array().into_iter().flatten().chain([field]);
            for field in alternatives.map(|field| openapi::resolved(document, field)) {
                let is_text =
                    field["type"] == "string" || field["type"].as_array().is_some_and(|all| all.contains(&"string".into()));
                found.extend(is_text.then(|| (name.as_str(), field["format"].as_str())));
            }
        }
    }

    #[test]
    fn days_and_instants_are_known_by_the_names_of_their_fields() {
        let document = openapi::described(NumbersAs::Number);
        let mut found = Vec::new();
        // Sums of usage and the clock of a sandbox have pages of their own, currencies are not read as days, and expressions of a mapping stay as they are.
        let never = ["UsageSummaryLine", "SummaryLine", "Clock", "ExchangeRate", "Mapping"];
        for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
            if !never.iter().any(|part| name.contains(part)) {
                add_texts(&document, schema, &mut found);
            }
        }
        assert!(found.iter().filter(|(_, format)| *format == Some("date-time")).count() > 20, "{found:?}");
        let wrong = found.into_iter().filter(|(name, format)| {
            let expected = match format {
                Some("date") => TextKind::Day,
                Some("date-time") => TextKind::Instant,
                _ => return [TextKind::Day, TextKind::Instant].contains(&TextKind::of_field(name)),
            };
            TextKind::of_field(name) != expected
        });
        assert_eq!(wrong.collect::<Vec<_>>(), []);
    }

    #[test]
    fn documents_are_narrowed_by_words_days_and_answers() {
        let filters = filters(listings::DOCUMENTS.operation, &vec![("state".to_owned(), "DRAFT".to_owned())]);
        let filter = |name: &str| filters.iter().find(|filter| filter.name == name).expect(name);
        assert!(matches!(&filter("state").kind, InputKind::Choice(words) if words.contains(&"DRAFT".to_owned())));
        assert_eq!(filter("state").value, "DRAFT");
        assert_eq!(filter("due_from").kind, InputKind::Day);
        assert_eq!(filter("overdue").kind, InputKind::Flag);
        assert_eq!(filter("customer_ref").kind, InputKind::Text);
        assert!(filters.iter().all(|filter| filter.name != "cursor"));
    }
}
