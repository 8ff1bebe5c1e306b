//! Builders for the schemas of declared types.

use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// Referenced schemas by name.
#[derive(Default)]
pub struct Schemas(Vec<(String, RefOr<Schema>)>);

impl Schemas {
    /// Returns a reference to the schema of a type.
    pub fn refer<T: ToSchema>(&mut self) -> RefOr<Schema> {
        let name = T::name().into_owned();
        if !self.has(&name) {
            self.0.push((name.clone(), T::schema()));
            T::schemas(&mut self.0);
        }
        Ref::from_schema_name(name).into()
    }

    /// Returns a reference to a schema, and builds the schema for the first reference.
    pub fn define(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Schema) -> RefOr<Schema> {
        if !self.has(name) {
            let made = make(self);
            self.0.push((name.to_owned(), made.into()));
        }
        Ref::from_schema_name(name).into()
    }

    /// Returns all referenced schemas.
    pub fn into_all(self) -> Vec<(String, RefOr<Schema>)> {
        self.0
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

/// Whether a field is required or nullable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Required.
    Required,
    /// Can be omitted.
    Optional,
    /// Can be omitted or null.
    Nullable,
}

/// A field in the OpenAPI document.
pub struct FieldSchema {
    pub name: &'static str,
    pub meaning: &'static str,
    pub presence: Presence,
    pub schema: RefOr<Schema>,
}

/// Returns the schema of an object that accepts only these fields.
pub fn object_of(fields: Vec<FieldSchema>, meaning: &str) -> ObjectBuilder {
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

/// Implements the schema of types without a declaration: `Type: schema;`.
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

/// Returns the schema of a string.
pub fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Returns the schema of a whole number within a range.
pub fn integer(low: u32, high: u32) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(low)).maximum(Some(high))
}

/// Replaces the description of a schema. An empty description leaves it unchanged.
pub fn described(schema: RefOr<Schema>, meaning: &str) -> RefOr<Schema> {
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

/// Makes a schema nullable.
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

/// Returns the property names of an object schema.
pub fn names_in<T: PartialSchema>() -> Vec<String> {
    match T::schema() {
        RefOr::T(Schema::Object(object)) => object.properties.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Returns the field that distinguishes a choice.
pub fn tag(name: &'static str, word: &str) -> FieldSchema {
    FieldSchema { name, meaning: "", presence: Presence::Required, schema: text().enum_values(Some([word])).into() }
}
