//! Conditions on labels: `{"model": ["gpt-5"], "kind": ["input"]}`.

use billing_domain::labels::{MAX_WHERE_KEYS, MAX_WHERE_VALUE_CHARS, MAX_WHERE_VALUES, Where};
use billing_domain::usage::MAX_REPORT_KEY_CHARS;
use serde::{Serialize, Serializer};
use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, Type};

use super::declare::wire;
use super::input::Node;
use super::schemas::schemas;
use super::wire::{VISIBLE_LINE, limited};

/// A condition on labels, ordered by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhereJson(Where);

impl From<&Where> for WhereJson {
    fn from(condition: &Where) -> Self {
        Self(condition.clone())
    }
}

impl Serialize for WhereJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.entries())
    }
}

schemas! {
    WhereJson: described();
}

fn described() -> ObjectBuilder {
    let value = limited(1, MAX_WHERE_VALUE_CHARS, VISIBLE_LINE);
    let values = ArrayBuilder::new().items(value).min_items(Some(1)).max_items(Some(MAX_WHERE_VALUES)).unique_items(true);
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(limited(1, MAX_REPORT_KEY_CHARS, VISIBLE_LINE)))
        .additional_properties(Some(AdditionalProperties::from(Schema::from(values.build()))))
        .min_properties(Some(1))
        .max_properties(Some(MAX_WHERE_KEYS))
        .description(Some(
            "A condition on the labels of events, which are the entries of `additional_report_data`. It is met if, for every \
             key, the label is one of the values.",
        ))
        .examples([json!({"model": ["gpt-5"], "kind": ["input"]})])
}

wire! {
    Where: condition, |schemas| schemas.refer::<WhereJson>();
}

fn condition(node: Node<'_>) -> Option<Where> {
    let entries = node.object(|fields| {
        let values = |(key, values): (&str, Node<'_>)| {
            let values = values.list(MAX_WHERE_VALUES, |value| value.text().map(str::to_owned))?;
            Some((key.to_owned(), values))
        };
        // Every entry is checked, also after a violation.
        let all: Vec<Option<(String, Vec<String>)>> = fields.entries().map(values).collect();
        all.into_iter().collect::<Option<Vec<_>>>()
    })?;
    node.agreed(Where::new(entries))
}
