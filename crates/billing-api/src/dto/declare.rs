//! Declarations of requests and responses. Each field is declared once, by its type. The declaration yields the reader,
//! which reports all violations, the changes of an edit, the serialization and the schema.
//!
//! `fields!` declares the fields of a domain type, and `object!` makes an object of them. `body!` and `params!` also
//! declare the struct. `edit!` declares the body of an edit.

mod macros;
mod parts;

use std::borrow::Cow;

use billing_domain::patch::{Changes, Patch};
use billing_domain::violation::Violations;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::input::{self, Fields, Node};
use super::schemas::{FieldSchema, Presence, Schemas, object_of};
use crate::json_view::JsonView;

pub(crate) use macros::{
    accessors, answer, body, choice, declared, default_of, edit, fields, ignore_response_fields, name_of, object, params, part,
    response, response_type, structure, value_of, view_of, wire,
};
pub use parts::{AnsweredPart, Declared, EditedPart, Flat, Part};

/// Reading a value and describing its schema. Most domain types implement it (`values`); a type with several wire forms
/// has a type for each form.
pub trait Wire {
    /// The value that is read.
    type Value: Clone + Send + Sync + 'static;

    /// Reads the value, or records a violation.
    fn read(node: Node<'_>) -> Option<Self::Value>;

    /// Returns the schema in requests.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

/// Serialization of a value in responses.
pub trait ResponseValue: Wire {
    /// Serializes the value.
    fn answer<S: Serializer>(value: &Self::Value, serializer: S) -> Result<S::Ok, S::Error>;

    /// Returns the schema in responses.
    fn answered_schema(schemas: &mut Schemas) -> RefOr<Schema> {
        Self::schema(schemas)
    }
}

/// A field of an object or a query.
pub trait Field {
    /// The form of its content.
    type Form;
    /// The value that is read.
    type Value: Clone + Send + Sync + 'static;
    /// Whether the field is required.
    const PRESENCE: Presence;
    /// Whether the field is required in an edit. Omitted fields stay unchanged, but not every field can be cleared.
    const PRESENCE_IN_EDIT: Presence;

    /// Reads the field. Returns `None` after a violation.
    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value>;

    /// Reads the field in an edit. Returns `Some(None)` if the field stays unchanged, `None` after a violation.
    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>>;

    /// Returns the schema in requests.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

/// Implements the field forms of a type: `form: value, presence, presence in edits, reader, reader of edits;`.
macro_rules! forms {
    ($($form:ty: $value:ty, $presence:ident, $in_edit:ident, |$fields:ident, $name:ident| $read:expr, $read_edit:expr;)+) => {$(
        impl<W: Wire> Field for $form {
            type Form = W;
            type Value = $value;
            const PRESENCE: Presence = Presence::$presence;
            const PRESENCE_IN_EDIT: Presence = Presence::$in_edit;

            fn read($fields: Fields<'_>, $name: &str) -> Option<$value> {
                $read
            }

            fn read_edit($fields: Fields<'_>, $name: &str) -> Option<Option<$value>> {
                $read_edit
            }

            fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
                W::schema(schemas)
            }
        }
    )+};
}

/// A field of an edit that can be omitted but not cleared.
pub struct NotClearable<W>(std::marker::PhantomData<W>);

/// A field that responses omit if it has no value.
pub struct SkipIfNone<W>(std::marker::PhantomData<W>);

forms! {
    W: W::Value, Required, Optional, |fields, name| fields.required(name, W::read), fields.kept(name, W::read);
    Option<W>: Option<W::Value>, Nullable, Nullable,
        |fields, name| fields.optional(name, W::read), read_cleared::<W>(fields, name);
    Patch<W>: Patch<W::Value>, Nullable, Nullable,
        |fields, name| fields.patch(name, W::read), fields.patch(name, W::read).map(Some);
    NotClearable<W>: Option<W::Value>, Optional, Optional,
        |fields, name| fields.kept(name, W::read), fields.kept(name, W::read).map(Some);
    SkipIfNone<W>: Option<W::Value>, Nullable, Nullable,
        |fields, name| fields.optional(name, W::read), read_cleared::<W>(fields, name);
}

/// Reads a clearable field of an edit.
fn read_cleared<W: Wire>(fields: Fields<'_>, name: &str) -> Option<Option<Option<W::Value>>> {
    Some(match fields.patch(name, W::read)? {
        Patch::Keep => None,
        Patch::Clear => Some(None),
        Patch::Set(value) => Some(Some(value)),
    })
}

impl<W: ResponseValue> AnsweredField for SkipIfNone<W> {
    type Value = Option<W::Value>;
    const PRESENCE: Presence = Presence::Optional;

    fn answer<M: SerializeMap>(value: &Self::Value, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        value.as_ref().map_or(Ok(()), |value| map.serialize_entry(name, &Answer::<W>(value)))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::answered_schema(schemas)
    }
}

/// An object, or a string that contains its JSON.
pub struct JsonString<W>(std::marker::PhantomData<W>);

impl<W: Wire> Wire for JsonString<W> {
    type Value = W::Value;

    fn read(node: Node<'_>) -> Option<W::Value> {
        match node.as_text() {
            Some(text) => node.unpacked(text, W::read),
            None => W::read(node),
        }
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::schema(schemas)
    }
}

/// A field of a response.
pub trait AnsweredField {
    /// The value that is serialized.
    type Value;
    /// Whether the field is nullable.
    const PRESENCE: Presence;

    /// Serializes the value under its name.
    fn answer<M: SerializeMap>(value: &Self::Value, name: &'static str, map: &mut M) -> Result<(), M::Error>;

    /// Returns the schema in responses.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

impl<W: ResponseValue> AnsweredField for W {
    type Value = W::Value;
    const PRESENCE: Presence = Presence::Required;

    fn answer<M: SerializeMap>(value: &W::Value, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, &Answer::<W>(value))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::answered_schema(schemas)
    }
}

impl<W: ResponseValue> AnsweredField for Option<W> {
    type Value = Option<W::Value>;
    const PRESENCE: Presence = Presence::Nullable;

    fn answer<M: SerializeMap>(value: &Self::Value, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, &value.as_ref().map(Answer::<W>))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::answered_schema(schemas)
    }
}

/// Adapts a value to `Serialize`.
struct Answer<'v, W: ResponseValue>(&'v W::Value);

impl<W: ResponseValue> Serialize for Answer<'_, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        W::answer(self.0, serializer)
    }
}

/// A type that occurs in arrays.
pub trait Listed: Wire {
    /// Maximum number of elements.
    const MAX: usize;
    /// What the sender of too many elements can do, as the end of the sentence that names the maximum.
    const REMEDY: &'static str = "";
}

impl<W: Listed> Wire for Vec<W> {
    type Value = Vec<W::Value>;

    fn read(node: Node<'_>) -> Option<Self::Value> {
        node.list_or(W::MAX, W::REMEDY, W::read)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(W::schema(schemas)).max_items(Some(W::MAX)).into()
    }
}

impl<W: Listed + ResponseValue> ResponseValue for Vec<W> {
    fn answer<S: Serializer>(value: &Self::Value, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(value.iter().map(Answer::<W>))
    }

    fn answered_schema(schemas: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(W::answered_schema(schemas)).into()
    }
}

/// A set of fields, each declared once.
pub trait Fieldset: Sized {
    /// Returns the names of the fields.
    fn names() -> &'static [&'static str];

    /// Reads all fields, also after a violation. Returns `None` if there was one.
    fn read_fields(fields: Fields<'_>) -> Option<Self>;

    /// Returns the fields in requests.
    fn described(schemas: &mut Schemas) -> Vec<FieldSchema>;

    /// Returns the fields that only responses contain; requests can repeat them and they are ignored.
    fn answered() -> &'static [String] {
        &[]
    }

    /// Records violations that concern several fields together.
    fn check(_: Fields<'_>) {}

    /// Reads an object that has only these fields.
    fn read_whole(fields: Fields<'_>) -> Option<Self> {
        let fields = fields.declared_as(Self::names());
        fields.only_beside(Self::names(), Self::answered());
        let read = Self::read_fields(fields);
        Self::check(fields);
        read
    }
}

/// Reads a request body.
///
/// # Errors
/// Returns all violations of the body.
pub fn read<T: Fieldset>(body: &Value) -> Result<T, Violations> {
    input::read(body, T::read_whole)
}

/// Reads an optional body. An omitted body is an empty object; `null` is invalid.
///
/// # Errors
/// Returns all violations of the body.
pub fn read_optional<T: Fieldset>(body: Option<&Value>) -> Result<T, Violations> {
    match body {
        Some(body) => read(body),
        None => read(&Value::Object(Map::new())),
    }
}

/// A request body.
pub trait Body {
    /// Whether the body is required.
    const REQUIRED: bool = true;

    /// Returns the schema.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

impl<B: Body> Body for Option<B> {
    const REQUIRED: bool = false;

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        B::schema(schemas)
    }
}

/// The body of an operation with a reference of this type in its path.
pub trait RequestBody<P> {
    /// What is read from the body.
    type Read: Send + Sync + 'static;

    /// Reads the body. An edit compares the reference that it repeats with that of the path.
    ///
    /// # Errors
    /// Returns all violations.
    fn read_body(body: Option<&Value>, path: &P) -> Result<Self::Read, Violations>;
}

impl<P> RequestBody<P> for () {
    type Read = ();

    fn read_body(_: Option<&Value>, _: &P) -> Result<(), Violations> {
        Ok(())
    }
}

impl<P, B: RequestBody<P>> RequestBody<P> for Option<B> {
    type Read = B::Read;

    fn read_body(body: Option<&Value>, path: &P) -> Result<B::Read, Violations> {
        B::read_body(body, path)
    }
}

/// A type that can be edited field by field.
pub trait Editable: Fieldset + 'static {
    /// Reads the changes of an edit. Returns `None` after a violation.
    fn read_changes(fields: Fields<'_>) -> Option<Changes<Self>>;

    /// Returns the fields in edits.
    fn described_in_edit(schemas: &mut Schemas) -> Vec<FieldSchema>;
}

/// A type that is serialized field by field.
pub trait AnsweredFields {
    /// Serializes the fields.
    fn answer_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;

    /// Returns the fields in responses.
    fn described_in_answers(schemas: &mut Schemas) -> Vec<FieldSchema>;
}

/// Items that the macros use.
pub mod made_with {
    pub use std::sync::OnceLock;

    pub use billing_domain::patch::Changes;
    pub use billing_domain::violation::Violations;
    pub use serde::{Serialize, Serializer, ser::SerializeMap};
    pub use serde_json::Value;
    pub use utoipa::openapi::RefOr;
    pub use utoipa::openapi::schema::{OneOfBuilder, Schema};
    pub use utoipa::{PartialSchema, ToSchema};

    pub use super::{
        AnsweredFields, AnsweredPart, Body, Editable, EditedPart, Fieldset, Part, RequestBody, ResponseValue, SharedObject, Wire,
        answer_object, read_optional, repeated_ref, schema_of_answer,
    };
    pub(crate) use super::{default_of, name_of, part, wire};
    pub use crate::dto::input::{self, Fields, Node};
    pub use crate::dto::schemas::{self, FieldSchema, Schemas, object_of};
}

/// Returns the schema of a response. It permits further fields, which can be added later.
pub fn schema_of_answer<T: AnsweredFields>(meaning: &str, schemas: &mut Schemas) -> Schema {
    let mut object = object_of(T::described_in_answers(schemas), meaning).build();
    object.additional_properties = None;
    Schema::Object(object)
}

impl Fields<'_> {
    /// Records violations of an edit: a reference that differs from the path's, and unknown fields.
    pub fn begin_edit<T: Fieldset>(self, name: &'static str, reference: &str) {
        self.only_beside(&[T::names(), &[name]].concat(), T::answered());
        self.unchanged(name, reference);
    }
}

/// Describes the reference of the edited object, which the edit can repeat.
pub fn repeated_ref<W: Wire>(name: &'static str, schemas: &mut Schemas) -> FieldSchema {
    FieldSchema { name, meaning: "Can be repeated but not changed.", presence: Presence::Optional, schema: W::schema(schemas) }
}

/// Serializes a value as an object of its fields.
pub fn answer_object<T: AnsweredFields, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    value.answer_fields(&mut map)?;
    map.end()
}

/// An object with the same schema in requests and responses.
pub trait SharedObject: Wire<Value = Self> + AnsweredFields + Clone {
    /// Name of the schema.
    const NAME: &'static str;
}

/// A shared object in a response.
#[derive(Clone, Debug)]
pub struct SharedObjectResponse<T>(T);

impl<'v, T> JsonView<'v, SharedObjectResponse<T>> {
    /// Returns the object.
    pub const fn object(self) -> JsonView<'v, T> {
        self.read_as()
    }
}

impl<T: Clone> From<&T> for SharedObjectResponse<T> {
    fn from(value: &T) -> Self {
        Self(value.clone())
    }
}

impl<T: AnsweredFields> Serialize for SharedObjectResponse<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        answer_object(&self.0, serializer)
    }
}

impl<T: SharedObject> PartialSchema for SharedObjectResponse<T> {
    fn schema() -> RefOr<Schema> {
        let mut schemas = Schemas::default();
        T::schema(&mut schemas);
        schemas
            .into_all()
            .into_iter()
            .find(|(name, _)| name == T::NAME)
            .map_or_else(|| RefOr::T(Schema::default()), |(_, schema)| schema)
    }
}

impl<T: SharedObject> ToSchema for SharedObjectResponse<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(T::NAME)
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        let mut schemas = Schemas::default();
        T::schema(&mut schemas);
        all.extend(schemas.into_all());
    }
}
