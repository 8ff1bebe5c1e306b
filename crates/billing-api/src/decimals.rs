//! Rewrites decimals of a JSON value as strings, according to its schema.

use serde_json::Value;

/// Converts the decimals of a value to strings. A number is a decimal if any of its possible schemas accepts
/// non-integers.
pub fn rewrite(description: &Value, schemas: &[&Value], value: &mut Value) {
    let mut all = Vec::new();
    for schema in schemas {
        choices(description, schema, &mut all);
    }
    match value {
        Value::Number(number) if all.iter().any(|schema| is_decimal(schema)) => *value = Value::String(number.to_string()),
        Value::Array(elements) => {
            let of_elements: Vec<&Value> = all.iter().map(|schema| &schema["items"]).filter(|schema| !schema.is_null()).collect();
            elements.iter_mut().for_each(|element| rewrite(description, &of_elements, element));
        }
        Value::Object(members) => {
            for (name, member) in members {
                let of_member = all.iter().filter_map(|schema| {
                    schema["properties"].get(name).or_else(|| Some(&schema["additionalProperties"]).filter(|any| any.is_object()))
                });
                let of_member: Vec<&Value> = of_member.collect();
                rewrite(description, &of_member, member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Collects a schema and all alternatives it refers to.
fn choices<'d>(description: &'d Value, schema: &'d Value, all: &mut Vec<&'d Value>) {
    if let Some(reference) = schema["$ref"].as_str() {
        if let Some(schema) = description.pointer(reference.trim_start_matches('#')) {
            choices(description, schema, all);
        }
        return;
    }
    all.push(schema);
    for of in ["oneOf", "anyOf", "allOf"] {
        schema[of].as_array().into_iter().flatten().for_each(|choice| choices(description, choice, all));
    }
}

/// Returns whether a schema accepts non-integer numbers.
fn is_decimal(schema: &Value) -> bool {
    let kind = &schema["type"];
    kind == "number" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "number"))
}
