//! Adapts the document's schemas for client generators. The derive macros describe Rust types, but generators name types
//! after schemas and interpret optional, nullable and choice literally.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

const DECIMAL: &str = "decimal";
const SCHEMAS: &str = "#/components/schemas/";
/// Suffixes of Rust type names that are removed from schema names.
const SUFFIXES: [&str; 2] = ["Json", "Word"];

/// Rewrites the schemas of a document for client generators. The set of valid values does not change.
pub(super) fn for_generators(document: &mut Value) {
    let answers = only_in_answers(document);
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        for (_, schema) in schemas.iter_mut().filter(|(name, _)| answers.contains(*name)) {
            each_object(schema, &mut require_nullable);
        }
        name_choices(schemas);
        let renamed = std::mem::take(schemas).into_iter().map(|(name, schema)| (plain(&name).to_owned(), schema));
        *schemas = renamed.collect::<BTreeMap<_, _>>().into_iter().collect();
    }
    each_object(document, &mut |object| {
        object.get_mut("requestBody").into_iter().for_each(|body| each_object(body, &mut leave_out));
        describe_outside(object);
        // `false` is the default for parameters and bodies.
        object.retain(|key, value| key != "required" || *value != false);
        for reference in object.values_mut().filter(|value| value.as_str().is_some_and(|text| text.starts_with(SCHEMAS))) {
            *reference = reference.as_str().map(plain).into();
        }
    });
}

/// Declares decimals as strings in responses, and as permitted strings in requests. Removes the format, for which
/// generators would use floats.
pub(super) fn with_numbers_as_strings(document: &mut Value) {
    each_object(document, &mut |schema| {
        if let Some(kinds) = schema.get_mut("type").and_then(Value::as_array_mut) {
            kinds.retain(|kind| kind != "number");
        }
        if let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut)
            && choices.iter().any(is_decimal)
        {
            choices.retain(|choice| !is_decimal(choice));
        }
        if schema.get("format").is_some_and(|format| format == DECIMAL) && schema.get("type").is_some_and(|kind| kind == "number")
        {
            schema.insert("type".to_owned(), json!("string"));
            schema.shift_remove("format");
        }
    });
}

fn is_decimal(schema: &Value) -> bool {
    schema["type"] == "number" && schema["format"] == DECIMAL
}

/// Removes the type suffix: `CustomerJson` → `Customer`.
fn plain(name: &str) -> &str {
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Returns the schemas that occur only in responses and in requests of the service itself.
fn only_in_answers(document: &Value) -> BTreeSet<String> {
    let (mut asked, mut answered) = (BTreeSet::new(), BTreeSet::new());
    let items = document["paths"].as_object().into_iter().flat_map(Map::values);
    for operation in items.filter_map(Value::as_object).flat_map(Map::values) {
        reach(document, &operation["requestBody"], &mut asked);
        reach(document, &operation["responses"], &mut answered);
    }
    // The service sends the bodies of webhooks, so that they have all fields like responses.
    let webhooks = document["webhooks"].as_object().into_iter().flat_map(Map::values);
    for operation in webhooks.filter_map(Value::as_object).flat_map(Map::values) {
        reach(document, &operation["requestBody"], &mut answered);
    }
    answered.difference(&asked).map(|name| (*name).to_owned()).collect()
}

/// Collects the schemas that a part of a document references, directly or indirectly.
fn reach<'d>(document: &'d Value, part: &'d Value, found: &mut BTreeSet<&'d str>) {
    match part {
        Value::Object(object) => {
            let name = object.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix(SCHEMAS));
            if let Some(name) = name
                && found.insert(name)
            {
                reach(document, &document["components"]["schemas"][name], found);
            }
            object.values().for_each(|value| reach(document, value, found));
        }
        Value::Array(array) => array.iter().for_each(|value| reach(document, value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn each_object(value: &mut Value, change: &mut impl FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            change(object);
            object.values_mut().for_each(|value| each_object(value, change));
        }
        Value::Array(array) => array.iter_mut().for_each(|value| each_object(value, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_null(schema: &Value) -> bool {
    schema["type"] == "null"
}

/// Marks nullable fields as required in responses, which always contain them. Only fields that are never null may be
/// missing.
fn require_nullable(schema: &mut Map<String, Value>) {
    let nullable = |schema: &Value| {
        let types = schema["type"].as_array().is_some_and(|types| types.iter().any(|name| name == "null"));
        types || schema["oneOf"].as_array().is_some_and(|choices| choices.iter().any(is_null))
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let names: Vec<Value> = properties.iter().filter(|(_, property)| nullable(property)).map(|(name, _)| json!(name)).collect();
    if names.is_empty() {
        return;
    }
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        required.extend(names);
    }
}

/// Moves each object of a tagged choice to a schema of its own: `FLAT` of `PriceBody` becomes `FlatPriceBody`.
fn name_choices(schemas: &mut Map<String, Value>) {
    let mut named = Vec::new();
    for (name, schema) in schemas.iter_mut() {
        let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else { continue };
        let Some(tag) = tag_of(choices) else { continue };
        let mut mapping = Map::new();
        for choice in choices {
            let Some(word) = word_of(choice, &tag).map(str::to_owned) else { continue };
            let own_name = format!("{}{name}", capitalized(&word));
            let reference = format!("{SCHEMAS}{own_name}");
            choice["properties"][&tag] = json!({"type": "string", "const": word});
            named.push((own_name, std::mem::replace(choice, json!({"$ref": reference}))));
            mapping.insert(word, json!(reference));
        }
        schema["discriminator"] = json!({"propertyName": tag, "mapping": mapping});
    }
    schemas.extend(named);
}

/// Returns the property whose value distinguishes the choices.
fn tag_of(choices: &[Value]) -> Option<String> {
    let mut names = choices.first()?["properties"].as_object()?.keys();
    names.find(|name| choices.iter().all(|choice| word_of(choice, name).is_some())).cloned()
}

fn word_of<'v>(choice: &'v Value, property: &str) -> Option<&'v str> {
    match choice["properties"][property]["enum"].as_array().map(Vec::as_slice) {
        Some([word]) => word.as_str(),
        _ => None,
    }
}

/// Converts a word to camel case: `PER_UNIT` → `PerUnit`.
fn capitalized(word: &str) -> String {
    let capital = |part: &str| {
        let (first, rest) = part.split_at(part.len().min(1));
        format!("{}{}", first.to_ascii_uppercase(), rest.to_ascii_lowercase())
    };
    word.split('_').map(capital).collect()
}

/// Removes null from optional bodies, because generators would send it.
fn leave_out(media_type: &mut Map<String, Value>) {
    let Some(schema) = media_type.get_mut("schema") else { return };
    let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else { return };
    choices.retain(|choice| !is_null(choice));
    if choices.len() == 1 {
        *schema = choices.remove(0);
    }
}

/// Moves the description of a nullable reference to the field, so that it does not describe the referenced schema.
fn describe_outside(schema: &mut Map<String, Value>) {
    let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut).filter(|choices| choices.len() == 2) else {
        return;
    };
    if !choices.iter().any(is_null) {
        return;
    }
    let inner = choices.iter_mut().filter_map(Value::as_object_mut).find_map(|choice| choice.shift_remove("description"));
    schema.extend(inner.map(|description| ("description".to_owned(), description)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a document with one operation, which accepts an order and returns an order.
    fn shaped() -> Value {
        let nullable =
            |name: &str| json!({"oneOf": [{"type": "null"}, {"$ref": format!("{SCHEMAS}{name}"), "description": "Whose"}]});
        let price = |model: &str| json!({"type": "object", "properties": {"model": {"type": "string", "enum": [model]}}});
        let mut document = json!({
            "paths": {"/orders": {"post": {
                "requestBody": {"content": {"application/json": {"schema": nullable("OrderBody")}}},
                "responses": {"200": {"content": {"application/json": {"schema": {"$ref": format!("{SCHEMAS}OrderJson")}}}}},
            }}},
            "components": {"schemas": {
                "OrderBody": {"type": "object", "properties": {"address": nullable("AddressJson")}},
                "OrderJson": {"type": "object", "required": ["state"], "properties": {
                    "state": {"$ref": format!("{SCHEMAS}StateWord")},
                    "address": nullable("AddressJson"),
                    "note": {"type": ["string", "null"]},
                    "parent": {"type": "string"},
                    "price": {"$ref": format!("{SCHEMAS}PriceJson")},
                }},
                "AddressJson": {"type": "object", "properties": {"city": {"type": ["string", "null"]}}},
                "StateWord": {"type": "string", "enum": ["OPEN"]},
                "PriceJson": {"oneOf": [price("FLAT"), price("PER_UNIT")]},
            }},
        });
        for_generators(&mut document);
        document
    }

    #[test]
    fn schemas_and_references_to_them_lose_the_endings_of_rust_types() {
        let document = shaped();
        let names: Vec<&String> = document["components"]["schemas"].as_object().expect("schemas").keys().collect();
        assert_eq!(names, ["Address", "FlatPrice", "Order", "OrderBody", "PerUnitPrice", "Price", "State"]);
        let order = &document["components"]["schemas"]["Order"];
        assert_eq!(order["properties"]["state"]["$ref"], "#/components/schemas/State");
    }

    #[test]
    fn an_answer_has_what_may_be_null_and_a_request_may_leave_it_out() {
        let schemas = &shaped()["components"]["schemas"];
        assert_eq!(schemas["Order"]["required"], json!(["state", "address", "note"]));
        assert_eq!(schemas["OrderBody"]["required"], Value::Null);
        assert_eq!(schemas["Address"]["required"], Value::Null, "requests have it too");
    }

    #[test]
    fn a_field_that_may_be_null_is_described_itself() {
        let address = &shaped()["components"]["schemas"]["OrderBody"]["properties"]["address"];
        assert_eq!(address["description"], "Whose");
        assert_eq!(address["oneOf"], json!([{"type": "null"}, {"$ref": "#/components/schemas/Address"}]));
    }

    #[test]
    fn a_body_that_may_be_left_out_is_not_null() {
        let body = &shaped()["paths"]["/orders"]["post"]["requestBody"];
        assert_eq!(body["content"]["application/json"]["schema"]["$ref"], "#/components/schemas/OrderBody");
        assert_eq!(body["required"], Value::Null);
    }

    #[test]
    fn the_choices_of_a_tagged_schema_have_names_and_are_told_apart_by_their_tag() {
        let schemas = &shaped()["components"]["schemas"];
        let (flat, per_unit) = ("#/components/schemas/FlatPrice", "#/components/schemas/PerUnitPrice");
        assert_eq!(schemas["Price"]["oneOf"], json!([{"$ref": flat}, {"$ref": per_unit}]));
        let discriminator = json!({"propertyName": "model", "mapping": {"FLAT": flat, "PER_UNIT": per_unit}});
        assert_eq!(schemas["Price"]["discriminator"], discriminator);
        assert_eq!(schemas["PerUnitPrice"]["properties"]["model"], json!({"type": "string", "const": "PER_UNIT"}));
    }
}
