//! Building the schemas of what is declared.

use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// The schemas that are referred to, by name.
#[derive(Default)]
pub(crate) struct Schemas(Vec<(String, RefOr<Schema>)>);

impl Schemas {
    /// Refers to the schema of a type.
    pub(crate) fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let name = T::name().into_owned();
        if !self.has(&name) {
            self.0.push((name.clone(), T::schema()));
            T::schemas(&mut self.0);
        }
        Ref::from_schema_name(name).into()
    }

    /// Refers to a schema that is made when it is referred to first.
    pub(crate) fn define(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Schema) -> RefOr<Schema> {
        if !self.has(name) {
            let made = make(self);
            self.0.push((name.to_owned(), made.into()));
        }
        Ref::from_schema_name(name).into()
    }

    /// Every schema that was referred to.
    pub(crate) fn into_all(self) -> Vec<(String, RefOr<Schema>)> {
        self.0
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

/// Whether a field has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It does.
    Required,
    /// It may be left out.
    Optional,
    /// It may be left out, or null.
    Nullable,
}

/// A field as the OpenAPI document has it.
pub(crate) struct FieldSchema {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) presence: Presence,
    pub(crate) schema: RefOr<Schema>,
}

/// The schema of an object that takes these fields and no others.
pub(crate) fn object_of(fields: Vec<FieldSchema>, meaning: &str) -> ObjectBuilder {
    let mut object = ObjectBuilder::new().schema_type(Type::Object).description(Some(meaning.trim()));
    for FieldSchema { name, meaning, presence, schema } in fields {
        let schema = if presence == Presence::Nullable { or_null(schema) } else { schema };
        object = object.property(name, described(schema, meaning));
        if presence == Presence::Required {
            object = object.required(name);
        }
    }
    object.additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
}

/// What types look like that aren't declared: `Type: its schema;`.
macro_rules! schemas {
    ($($type:ident: $schema:expr;)+) => {$(
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $schema.into()
            }
        }

        impl utoipa::ToSchema for $type {}
    )+};
}
pub(crate) use schemas;

/// A text.
pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// A whole number within a range.
pub(crate) fn integer(low: u32, high: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(low)).maximum(Some(high))
}

/// A schema with another description; without one it keeps its own.
pub(crate) fn described(schema: RefOr<Schema>, meaning: &str) -> RefOr<Schema> {
    let meaning = meaning.trim();
    if meaning.is_empty() {
        return schema;
    }
    let text = Some(meaning.to_owned());
    match schema {
        RefOr::Ref(mut reference) => {
            reference.description = meaning.to_owned();
            reference.into()
        }
        RefOr::T(Schema::Object(mut object)) => {
            object.description = text;
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.description = text;
            RefOr::T(Schema::Array(array))
        }
        RefOr::T(Schema::OneOf(mut choices)) => {
            choices.description = text;
            RefOr::T(Schema::OneOf(choices))
        }
        other => other,
    }
}

/// A schema that null has, too.
fn or_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::Object(mut object)) if matches!(object.schema_type, SchemaType::Type(_)) => {
            if let SchemaType::Type(only) = object.schema_type {
                object.schema_type = SchemaType::from_iter([only, Type::Null]);
            }
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = SchemaType::from_iter([Type::Array, Type::Null]);
            RefOr::T(Schema::Array(array))
        }
        RefOr::T(Schema::OneOf(mut choices)) => {
            choices.items.push(null());
            RefOr::T(Schema::OneOf(choices))
        }
        other => OneOfBuilder::new().item(null()).item(other).into(),
    }
}

fn null() -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::Null).into()
}

/// The names of the fields that a schema of an object has.
pub(crate) fn names_in<T: PartialSchema>() -> Vec<String> {
    match T::schema() {
        RefOr::T(Schema::Object(object)) => object.properties.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// The field that tells a choice from the others.
pub(crate) fn tag(name: &'static str, word: &str) -> FieldSchema {
    FieldSchema { name, meaning: "", presence: Presence::Required, schema: text().enum_values(Some([word])).into() }
}
