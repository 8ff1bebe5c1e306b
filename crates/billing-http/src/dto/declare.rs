//! Declaring what comes in and goes out: each field once, by its type. From that follow its reader, which notes everything that is
//! wrong, the changes that an edit makes of it, how it is answered, and its schema.
//!
//! `fields!` says which fields something of the domain has; `object!` makes an object of them, `body!` and `params!` the struct, too,
//! and `resource!` the two bodies that make and change a thing of the catalog.

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

pub(crate) use macros::{
    answer, body, choice, declared, default_of, edit, fields, ignore_response_fields, name_of, object, params, part,
    response_type, structure, value_of, wire,
};
pub(crate) use parts::{AnsweredPart, Declared, EditedPart, Flat, Part};

/// How a value is read, and what it looks like. Most types of the domain say it of themselves (`values`); where the same type comes in
/// several forms, each form is a type.
pub(crate) trait Wire {
    /// What is read.
    type Value: Clone + Send + Sync + 'static;

    /// Reads it, or notes what is wrong with it.
    fn read(node: Node<'_>) -> Option<Self::Value>;

    /// Its schema in requests.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

/// How a value is answered.
pub(crate) trait ResponseValue: Wire {
    /// Writes it.
    fn answer<S: Serializer>(value: &Self::Value, serializer: S) -> Result<S::Ok, S::Error>;

    /// Its schema in answers.
    fn answered_schema(schemas: &mut Schemas) -> RefOr<Schema> {
        Self::schema(schemas)
    }
}

/// A value of a field, in an object or a query.
pub(crate) trait Field {
    /// What is read.
    type Value: Clone + Send + Sync + 'static;
    /// Whether it has to be there.
    const PRESENCE: Presence;
    /// Whether it has to be there in an edit: what is left out is kept, but not everything can be cleared.
    const PRESENCE_IN_EDIT: Presence;

    /// Reads it; `None` after something was noted.
    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value>;

    /// Reads what an edit makes of it: `Some(None)` where it is kept, `None` after something was noted.
    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>>;

    /// Its schema in requests.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

/// `form: its values, presence, presence in edits, reader, reader of edits;` for each form that a field of a type has.
macro_rules! forms {
    ($($form:ty: $value:ty, $presence:ident, $in_edit:ident, |$fields:ident, $name:ident| $read:expr, $read_edit:expr;)+) => {$(
        impl<W: Wire> Field for $form {
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

/// A field of an edit that can be left out, but not cleared.
pub(crate) struct NotClearable<W>(std::marker::PhantomData<W>);

/// A field that answers leave out where it has no value.
pub(crate) struct SkipIfNone<W>(std::marker::PhantomData<W>);

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

/// What an edit makes of a value that null clears.
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

/// An object that may come as a text with its JSON.
pub(crate) struct JsonString<W>(std::marker::PhantomData<W>);

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

/// A field of an answer.
pub(crate) trait AnsweredField {
    /// What is answered.
    type Value;
    /// Whether it may be null.
    const PRESENCE: Presence;

    /// Writes it under its name.
    fn answer<M: SerializeMap>(value: &Self::Value, name: &'static str, map: &mut M) -> Result<(), M::Error>;

    /// Its schema in answers.
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

/// A value on its way out.
struct Answer<'v, W: ResponseValue>(&'v W::Value);

impl<W: ResponseValue> Serialize for Answer<'_, W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        W::answer(self.0, serializer)
    }
}

/// Values that come in lists.
pub(crate) trait Listed: Wire {
    /// The most of them.
    const MAX: usize;
}

impl<W: Listed> Wire for Vec<W> {
    type Value = Vec<W::Value>;

    fn read(node: Node<'_>) -> Option<Self::Value> {
        node.list(W::MAX, W::read)
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

/// What has fields, each declared once.
pub(crate) trait Fieldset: Sized {
    /// The names of its fields.
    fn names() -> &'static [&'static str];

    /// Reads all of them before it gives up on any; `None` after something was noted.
    fn read_fields(fields: Fields<'_>) -> Option<Self>;

    /// Its fields in requests.
    fn described(schemas: &mut Schemas) -> Vec<FieldSchema>;

    /// What our own answers add to these fields: it is taken back and ignored.
    fn answered() -> &'static [String] {
        &[]
    }

    /// Notes what is wrong with several fields together.
    fn check(_: Fields<'_>) {}

    /// Reads an object that has these fields and no others.
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
/// Everything that is wrong with it.
pub(crate) fn read<T: Fieldset>(body: &Value) -> Result<T, Violations> {
    input::read(body, T::read_whole)
}

/// As [`read`], of a body that may be left out: then it is an empty object. `null` is there, and is none.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_optional<T: Fieldset>(body: Option<&Value>) -> Result<T, Violations> {
    match body {
        Some(body) => read(body),
        None => read(&Value::Object(Map::new())),
    }
}

/// What a request brings in its body.
pub(crate) trait Body {
    /// Whether it has to be there.
    const REQUIRED: bool = true;

    /// Its schema.
    fn schema(schemas: &mut Schemas) -> RefOr<Schema>;
}

impl<B: Body> Body for Option<B> {
    const REQUIRED: bool = false;

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        B::schema(schemas)
    }
}

/// What can be edited field by field.
pub(crate) trait Editable: Fieldset + 'static {
    /// Reads what an edit names; `None` after something was noted.
    fn read_changes(fields: Fields<'_>) -> Option<Changes<Self>>;

    /// Its fields in edits.
    fn described_in_edit(schemas: &mut Schemas) -> Vec<FieldSchema>;
}

/// What is answered field by field.
pub(crate) trait AnsweredFields {
    /// Writes its fields.
    fn answer_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;

    /// Its fields in answers.
    fn described_in_answers(schemas: &mut Schemas) -> Vec<FieldSchema>;
}

/// What the declarations are made with.
pub(crate) mod made_with {
    pub(crate) use std::sync::OnceLock;

    pub(crate) use billing_domain::patch::Changes;
    pub(crate) use billing_domain::violation::Violations;
    pub(crate) use serde::{Serialize, Serializer, ser::SerializeMap};
    pub(crate) use serde_json::Value;
    pub(crate) use utoipa::openapi::RefOr;
    pub(crate) use utoipa::openapi::schema::{OneOfBuilder, Schema};
    pub(crate) use utoipa::{PartialSchema, ToSchema};

    pub(crate) use super::{
        AnsweredFields, AnsweredPart, Body, Editable, EditedPart, Fieldset, Part, ResponseValue, SharedObject, Wire,
        answer_object, default_of, name_of, part, repeated_ref, schema_of_answer, wire,
    };
    pub(crate) use crate::dto::input::{self, Fields, Node};
    pub(crate) use crate::dto::schemas::{self, FieldSchema, Schemas, object_of};
}

/// The schema of an answer; it may come to have more fields.
pub(crate) fn schema_of_answer<T: AnsweredFields>(meaning: &str, schemas: &mut Schemas) -> Schema {
    let mut object = object_of(T::described_in_answers(schemas), meaning).build();
    object.additional_properties = None;
    Schema::Object(object)
}

impl Fields<'_> {
    /// Notes what an edit has that it can't have: another reference than the one in the path, and unknown fields.
    pub(crate) fn begin_edit<T: Fieldset>(self, name: &'static str, reference: &str) {
        self.only_beside(&[T::names(), &[name]].concat(), T::answered());
        self.unchanged(name, reference);
    }
}

/// The reference of what an edit is about, as the edit may repeat it.
pub(crate) fn repeated_ref<W: Wire>(name: &'static str, schemas: &mut Schemas) -> FieldSchema {
    FieldSchema { name, meaning: "May be repeated, but not changed.", presence: Presence::Optional, schema: W::schema(schemas) }
}

/// Writes something as an object of its fields.
pub(crate) fn answer_object<T: AnsweredFields, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    value.answer_fields(&mut map)?;
    map.end()
}

/// Objects that requests and answers have alike.
pub(crate) trait SharedObject: Wire<Value = Self> + AnsweredFields + Clone {
    /// The name of the schema.
    const NAME: &'static str;
}

/// Such an object in an answer.
#[derive(Clone, Debug)]
pub(crate) struct SharedObjectResponse<T>(T);

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
