//! Metadata of customers, contracts and payments.

use billing_domain::metadata::{
    MAX_METADATA_KEY_CHARS, MAX_METADATA_KEYS, MAX_METADATA_VALUE_CHARS, Metadata, MetadataError, check_entry,
};
use serde::{Serialize, Serializer};
use serde_json::json;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};

use super::declare::{ResponseValue, wire};
use super::input::Node;
use super::schemas::{Schemas, schemas};
use super::wire::{VISIBLE_LINE, limited};

/// Any characters of a key: no invisible characters and no square brackets, which filters put around a key.
const KEY: &str = r"^[^\u0000-\u001F\u007F-\u009F\u200B\u2028-\u202E\u2060\u2066-\u2069\uFDD0-\uFDEF\uFEFF\uFFFE\uFFFF\[\]]*$";

/// Metadata, ordered by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataJson(Metadata);

impl From<&Metadata> for MetadataJson {
    fn from(metadata: &Metadata) -> Self {
        Self(metadata.clone())
    }
}

impl Serialize for MetadataJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.entries())
    }
}

schemas! {
    MetadataJson: described();
}

fn described() -> ObjectBuilder {
    let value = limited(0, MAX_METADATA_VALUE_CHARS, VISIBLE_LINE);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(limited(1, MAX_METADATA_KEY_CHARS, KEY)))
        .additional_properties(Some(AdditionalProperties::from(Schema::from(value))))
        .max_properties(Some(MAX_METADATA_KEYS))
        .description(Some("Keys and values of the caller. The service returns them, finds by them, and never interprets them."))
        .examples([json!({"crm": "0042"})])
}

wire! {
    Metadata: metadata, |schemas| schemas.refer::<MetadataJson>();
}

impl ResponseValue for Metadata {
    fn answer<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        MetadataJson::from(value).serialize(serializer)
    }

    fn answered_schema(schemas: &mut Schemas) -> RefOr<Schema> {
        schemas.refer::<MetadataJson>()
    }
}

fn metadata(node: Node<'_>) -> Option<Metadata> {
    node.object(|fields| {
        let entries = fields.entries();
        if entries.len() > MAX_METADATA_KEYS {
            return node.taken(Err(MetadataError::TooManyKeys));
        }
        let entry = |(key, value): (&str, Node<'_>)| {
            let text = value.text()?;
            value.taken(check_entry(key, text).map(|()| (key.to_owned(), text.to_owned())))
        };
        // Every entry is checked, also after a violation.
        let all: Vec<Option<(String, String)>> = entries.map(entry).collect();
        node.taken(Metadata::new(all.into_iter().collect::<Option<Vec<_>>>()?))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::dto::customers::CustomerBody;
    use crate::dto::declare::read;

    fn refused(metadata: &Value) -> Vec<String> {
        let body = json!({"name": "Acme", "metadata": metadata});
        let violations = read::<CustomerBody>(&body).err().into_iter().flatten();
        violations.map(|violation| format!("{} {}", violation.path.join("/"), violation.code)).collect()
    }

    #[test]
    fn each_key_and_value_is_held_against_its_limits() {
        let many: serde_json::Map<String, Value> = (0..21).map(|n| (n.to_string(), json!(""))).collect();
        for (metadata, expected) in [
            (json!({}), vec![]),
            (json!(null), vec![]),
            (json!({"a b": "", "é": "x".repeat(256)}), vec![]),
            (json!([]), vec!["metadata wrong_type"]),
            (json!(many), vec!["metadata too_many"]),
            (
                json!({"": "x", "a[b": "x", "n": 1, "v": "x".repeat(257)}),
                vec![
                    "metadata/ invalid_format",
                    "metadata/a[b invalid_format",
                    "metadata/n wrong_type",
                    "metadata/v invalid_format",
                ],
            ),
        ] {
            assert_eq!(refused(&metadata), expected, "{metadata}");
        }
    }

    #[test]
    fn metadata_is_returned_as_an_object_of_texts() {
        let metadata = Metadata::new([("b".to_owned(), "{}".to_owned()), ("a".to_owned(), "0042".to_owned())]);
        let shown = serde_json::to_string(&MetadataJson::from(&metadata.expect("metadata"))).expect("JSON");
        assert_eq!(shown, r#"{"a":"0042","b":"{}"}"#);
    }
}
