//! Declaring what comes in and goes out: each field once, by its type. From that follow its reader, which notes everything that is
//! wrong, the changes that an edit makes of it, how it is answered, and its schema.
//!
//! `fields!` says which fields something of the domain has; `object!` makes an object of them, `body!` and `params!` the struct, too,
//! and `resource!` the two bodies that make and change a thing of the catalog.

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
use super::schemas::{Described, Presence, Schemas, object_of};

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
pub(crate) trait Answered: Wire {
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

impl<W: Wire> Field for W {
    type Value = W::Value;
    const PRESENCE: Presence = Presence::Required;
    const PRESENCE_IN_EDIT: Presence = Presence::Optional;

    fn read(fields: Fields<'_>, name: &str) -> Option<W::Value> {
        fields.required(name, W::read)
    }

    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<W::Value>> {
        fields.kept(name, W::read)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::schema(schemas)
    }
}

impl<W: Wire> Field for Option<W> {
    type Value = Option<W::Value>;
    const PRESENCE: Presence = Presence::Nullable;
    const PRESENCE_IN_EDIT: Presence = Presence::Nullable;

    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value> {
        fields.optional(name, W::read)
    }

    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>> {
        Some(match fields.patch(name, W::read)? {
            Patch::Keep => None,
            Patch::Clear => Some(None),
            Patch::Set(value) => Some(Some(value)),
        })
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::schema(schemas)
    }
}

impl<W: Wire> Field for Patch<W> {
    type Value = Patch<W::Value>;
    const PRESENCE: Presence = Presence::Nullable;
    const PRESENCE_IN_EDIT: Presence = Presence::Nullable;

    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value> {
        fields.patch(name, W::read)
    }

    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>> {
        fields.patch(name, W::read).map(Some)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::schema(schemas)
    }
}

/// A field of an edit that can be left out, but not cleared.
pub(crate) struct Kept<W>(std::marker::PhantomData<W>);

impl<W: Wire> Field for Kept<W> {
    type Value = Option<W::Value>;
    const PRESENCE: Presence = Presence::Optional;
    const PRESENCE_IN_EDIT: Presence = Presence::Optional;

    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value> {
        fields.kept(name, W::read)
    }

    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>> {
        fields.kept(name, W::read).map(Some)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::schema(schemas)
    }
}

/// A field that answers leave out where it has no value.
pub(crate) struct Omitted<W>(std::marker::PhantomData<W>);

impl<W: Wire> Field for Omitted<W> {
    type Value = Option<W::Value>;
    const PRESENCE: Presence = Presence::Nullable;
    const PRESENCE_IN_EDIT: Presence = Presence::Nullable;

    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value> {
        <Option<W> as Field>::read(fields, name)
    }

    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>> {
        <Option<W> as Field>::read_edit(fields, name)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::schema(schemas)
    }
}

impl<W: Answered> AnsweredField for Omitted<W> {
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
pub(crate) struct Unpacked<W>(std::marker::PhantomData<W>);

impl<W: Wire> Wire for Unpacked<W> {
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

impl<W: Answered> AnsweredField for W {
    type Value = W::Value;
    const PRESENCE: Presence = Presence::Required;

    fn answer<M: SerializeMap>(value: &W::Value, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry(name, &Answer::<W>(value))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        W::answered_schema(schemas)
    }
}

impl<W: Answered> AnsweredField for Option<W> {
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
struct Answer<'v, W: Answered>(&'v W::Value);

impl<W: Answered> Serialize for Answer<'_, W> {
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

impl<W: Listed + Answered> Answered for Vec<W> {
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
    fn described(schemas: &mut Schemas) -> Vec<Described>;

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

/// As [`read`], of a body that may be left out: then it is an empty object.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_optional<T: Fieldset>(body: Option<&Value>) -> Result<T, Violations> {
    match body.filter(|body| !body.is_null()) {
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
    fn described_in_edit(schemas: &mut Schemas) -> Vec<Described>;
}

/// What is answered field by field.
pub(crate) trait AnsweredFields {
    /// Writes its fields.
    fn answer_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;

    /// Its fields in answers.
    fn described_in_answers(schemas: &mut Schemas) -> Vec<Described>;
}

/// The name of a field on the wire.
macro_rules! name_of {
    ($field:ident []) => {
        stringify!($field)
    };
    ($field:ident [$name:literal]) => {
        $name
    };
}
pub(crate) use name_of;

/// What a declared field does in each of the things that follow from it. A flat field is a set of fields of its own, one with a default
/// is that when it is left out or null.
macro_rules! of_field {
    (value: [flat] $of:ty, []) => { $of };
    (value: [] $of:ty, []) => { <$of as $crate::dto::declare::Field>::Value };
    (value: [] $of:ty, [$default:expr]) => { <$of as $crate::dto::declare::Wire>::Value };

    (read: $fields:ident, $name:expr, [flat] $of:ty, []) => {{
        let read = <$of as $crate::dto::declare::Fieldset>::read_fields($fields);
        <$of as $crate::dto::declare::Fieldset>::check($fields);
        read
    }};
    (read: $fields:ident, $name:expr, [] $of:ty, []) => {
        <$of as $crate::dto::declare::Field>::read($fields, $name)
    };
    (read: $fields:ident, $name:expr, [] $of:ty, [$default:expr]) => {
        <Option<$of> as $crate::dto::declare::Field>::read($fields, $name).map(|value| value.unwrap_or($default))
    };

    (names: $names:ident, $name:expr, [flat] $of:ty) => {
        $names.extend(<$of as $crate::dto::declare::Fieldset>::names())
    };
    (names: $names:ident, $name:expr, [] $of:ty) => {
        $names.push($name)
    };

    (describe: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [flat] $of:ty, []) => {
        $all.extend(<$of as $crate::dto::declare::Fieldset>::described($schemas))
    };
    (describe: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [] $of:ty, []) => {
        $all.push($crate::dto::schemas::Described {
            name: $name,
            meaning: $meaning,
            presence: <$of as $crate::dto::declare::Field>::PRESENCE,
            schema: <$of as $crate::dto::declare::Field>::schema($schemas),
        })
    };
    (describe: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [] $of:ty, [$default:expr]) => {
        $crate::dto::declare::of_field!(describe: $all, $schemas, $name, $meaning, [] Option<$of>, [])
    };

    (edit: $changes:ident, $whole:ident, $fields:ident, $field:ident, $name:expr, [flat] $of:ty, []) => {
        match <$of as $crate::dto::declare::Editable>::read_changes($fields) {
            Some(below) => $changes.add_below(below, |whole: &mut $whole| &mut whole.$field),
            None => return None,
        }
    };
    (edit: $changes:ident, $whole:ident, $fields:ident, $field:ident, $name:expr, [] $of:ty, []) => {
        if let Some(Some(value)) = <$of as $crate::dto::declare::Field>::read_edit($fields, $name) {
            $changes.add(move |whole: &mut $whole| whole.$field = value.clone());
        }
    };
    (edit: $changes:ident, $whole:ident, $fields:ident, $field:ident, $name:expr, [] $of:ty, [$default:expr]) => {
        if let Some(Some(value)) = <Option<$of> as $crate::dto::declare::Field>::read_edit($fields, $name) {
            $changes.add(move |whole: &mut $whole| whole.$field = value.clone().unwrap_or($default));
        }
    };

    (describe_edit: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [flat] $of:ty, []) => {
        $all.extend(<$of as $crate::dto::declare::Editable>::described_in_edit($schemas))
    };
    (describe_edit: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [] $of:ty, []) => {
        $all.push($crate::dto::schemas::Described {
            name: $name,
            meaning: $meaning,
            presence: <$of as $crate::dto::declare::Field>::PRESENCE_IN_EDIT,
            schema: <$of as $crate::dto::declare::Field>::schema($schemas),
        })
    };
    (describe_edit: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [] $of:ty, [$default:expr]) => {
        $crate::dto::declare::of_field!(describe_edit: $all, $schemas, $name, $meaning, [] Option<$of>, [])
    };

    (answer: $value:expr, $name:expr, $map:ident, [flat] $of:ty) => {
        <$of as $crate::dto::declare::AnsweredFields>::answer_fields(&$value, $map)?
    };
    (answer: $value:expr, $name:expr, $map:ident, [] $of:ty) => {
        <$of as $crate::dto::declare::AnsweredField>::answer(&$value, $name, $map)?
    };

    (describe_answer: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [flat] $of:ty) => {
        $all.extend(<$of as $crate::dto::declare::AnsweredFields>::described_in_answers($schemas))
    };
    (describe_answer: $all:ident, $schemas:ident, $name:expr, $meaning:expr, [] $of:ty) => {
        $all.push($crate::dto::schemas::Described {
            name: $name,
            meaning: $meaning,
            presence: <$of as $crate::dto::declare::AnsweredField>::PRESENCE,
            schema: <$of as $crate::dto::declare::AnsweredField>::schema($schemas),
        })
    };
}
pub(crate) use of_field;

/// Says which fields a type has: `name as "name on the wire": how it is read = what it is when it is left out`. `edit` before it makes it
/// editable, `answer` answerable. What follows is added to its [`Fieldset`].
macro_rules! fields {
    (edit $type:ident { $(
        $(#[doc = $doc:literal])* $(@$kind:ident)? $field:ident $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::fields! {
            $type { $( $(#[doc = $doc])* $(@$kind)? $field $(as $name)? : $of $(= $default)? ),* } $(with { $($also)* })?
        }

        impl $crate::dto::declare::Editable for $type {
            fn read_changes(fields: $crate::dto::input::Fields<'_>) -> Option<billing_domain::patch::Changes<Self>> {
                let mut changes = billing_domain::patch::Changes::none();
                $( $crate::dto::declare::of_field!(
                    edit: changes, $type, fields, $field, $crate::dto::declare::name_of!($field [$($name)?]), [$($kind)?] $of, [$($default)?]
                ); )*
                Some(changes)
            }

            fn described_in_edit(schemas: &mut $crate::dto::schemas::Schemas) -> Vec<$crate::dto::schemas::Described> {
                let mut all = Vec::new();
                $( $crate::dto::declare::of_field!(
                    describe_edit: all, schemas, $crate::dto::declare::name_of!($field [$($name)?]), concat!($($doc),*),
                    [$($kind)?] $of, [$($default)?]
                ); )*
                all
            }
        }
    };
    (answer $type:ident { $(
        $(#[doc = $doc:literal])* $(@$kind:ident)? $field:ident $(. $below:ident)* $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? }) => {
        impl $crate::dto::declare::AnsweredFields for $type {
            fn answer_fields<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                $( $crate::dto::declare::of_field!(
                    answer: self.$field $(. $below)*, $crate::dto::declare::name_of!($field [$($name)?]), map, [$($kind)?] $of
                ); )*
                Ok(())
            }

            fn described_in_answers(schemas: &mut $crate::dto::schemas::Schemas) -> Vec<$crate::dto::schemas::Described> {
                let mut all = Vec::new();
                $( $crate::dto::declare::of_field!(
                    describe_answer: all, schemas, $crate::dto::declare::name_of!($field [$($name)?]), concat!($($doc),*), [$($kind)?] $of
                ); )*
                all
            }
        }
    };
    (edit answer $type:ident { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::fields! { edit $type { $($fields)* } $(with { $($also)* })? }
        $crate::dto::declare::fields! { answer $type { $($fields)* } }
    };
    ($type:ident { $(
        $(#[doc = $doc:literal])* $(@$kind:ident)? $field:ident $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? } $(with { $($also:tt)* })?) => {
        impl $crate::dto::declare::Fieldset for $type {
            fn names() -> &'static [&'static str] {
                static NAMES: std::sync::OnceLock<Vec<&'static str>> = std::sync::OnceLock::new();
                NAMES.get_or_init(|| {
                    let mut names = Vec::new();
                    $( $crate::dto::declare::of_field!(
                        names: names, $crate::dto::declare::name_of!($field [$($name)?]), [$($kind)?] $of
                    ); )*
                    names
                })
            }

            fn read_fields(fields: $crate::dto::input::Fields<'_>) -> Option<Self> {
                $( let $field = $crate::dto::declare::of_field!(
                    read: fields, $crate::dto::declare::name_of!($field [$($name)?]), [$($kind)?] $of, [$($default)?]
                ); )*
                Some(Self { $( $field: $field? ),* })
            }

            fn described(schemas: &mut $crate::dto::schemas::Schemas) -> Vec<$crate::dto::schemas::Described> {
                let mut all = Vec::new();
                $( $crate::dto::declare::of_field!(
                    describe: all, schemas, $crate::dto::declare::name_of!($field [$($name)?]), concat!($($doc),*),
                    [$($kind)?] $of, [$($default)?]
                ); )*
                all
            }

            $($($also)*)?
        }
    };
}
pub(crate) use fields;

/// Makes an object of fields that are in a type already: `object! { /// Meaning. Type as "SchemaName" { fields } }`. With `answer` before
/// the type it is answered, too.
macro_rules! object {
    ($(#[doc = $doc:literal])+ answer $type:ident as $schema:literal { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::object! { $(#[doc = $doc])+ $type as $schema { $($fields)* } $(with { $($also)* })? }
        $crate::dto::declare::fields! { answer $type { $($fields)* } }

        impl $crate::dto::declare::Answered for $type {
            fn answer<S: serde::Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::dto::declare::answer_object(value, serializer)
            }
        }

        impl $crate::dto::declare::Named for $type {
            const NAME: &'static str = $schema;
        }
    };
    ($(#[doc = $doc:literal])+ $type:ident as $schema:literal { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::fields! { $type { $($fields)* } $(with { $($also)* })? }

        impl $crate::dto::declare::Wire for $type {
            type Value = Self;

            fn read(node: $crate::dto::input::Node<'_>) -> Option<Self> {
                node.object(<Self as $crate::dto::declare::Fieldset>::read_whole)
            }

            fn schema(schemas: &mut $crate::dto::schemas::Schemas) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                schemas.define($schema, |schemas| {
                    let fields = <Self as $crate::dto::declare::Fieldset>::described(schemas);
                    $crate::dto::schemas::object_of(fields, concat!($($doc),+), None).into()
                })
            }
        }
    };
}
pub(crate) use object;

/// Declares a request body: the struct, its reader and its schema. `example` and what is added to its [`Fieldset`] may follow.
macro_rules! body {
    ($(#[doc = $doc:literal])+ $type:ident { $(
        $(#[doc = $field_doc:literal])* $(@$kind:ident)? $field:ident $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? } $(example $example:expr;)? $(with { $($also:tt)* })?) => {
        $(#[doc = $doc])+
        #[derive(Clone)]
        pub(crate) struct $type { $(
            $(#[doc = $field_doc])*
            pub(crate) $field: $crate::dto::declare::of_field!(value: [$($kind)?] $of, [$($default)?])
        ),* }

        $crate::dto::declare::fields! {
            $type { $( $(#[doc = $field_doc])* $(@$kind)? $field $(as $name)? : $of $(= $default)? ),* } $(with { $($also)* })?
        }

        impl $crate::dto::declare::Body for $type {
            fn schema(schemas: &mut $crate::dto::schemas::Schemas) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                schemas.define(stringify!($type), |schemas| {
                    let fields = <Self as $crate::dto::declare::Fieldset>::described(schemas);
                    let example = None $(.or(Some($example)))?;
                    $crate::dto::schemas::object_of(fields, concat!($($doc),+), example).into()
                })
            }
        }
    };
}
pub(crate) use body;

/// Declares the parameters of a query: the struct and its reader.
macro_rules! params {
    ($(#[doc = $doc:literal])+ $type:ident { $(
        $(#[doc = $field_doc:literal])* $(@$kind:ident)? $field:ident : $of:ty $(= $default:expr)?
    ),* $(,)? } $(with { $($also:tt)* })?) => {
        $(#[doc = $doc])+
        #[derive(Clone)]
        pub(crate) struct $type { $(
            $(#[doc = $field_doc])*
            pub(crate) $field: $crate::dto::declare::of_field!(value: [$($kind)?] $of, [$($default)?])
        ),* }

        $crate::dto::declare::fields! {
            $type { $( $(#[doc = $field_doc])* $(@$kind)? $field : $of $(= $default)? ),* } $(with { $($also)* })?
        }
    };
}
pub(crate) use params;

/// Declares the body that edits something: `edit! { /// Meaning. Type of Profile named "its_ref": ItsRef }`.
macro_rules! edit {
    ($(#[doc = $doc:literal])+ $type:ident named $name:literal: $reference:ty { $(
        $(#[doc = $field_doc:literal])* $(@$kind:ident)? $field:ident : $of:ty $(= $default:expr)?
    ),* $(,)? } $(example $example:expr;)? $(with { $($also:tt)* })?) => {
        $(#[doc = $doc])+
        pub(crate) struct $type { $(
            $(#[doc = $field_doc])*
            pub(crate) $field: $crate::dto::declare::of_field!(value: [$($kind)?] $of, [$($default)?])
        ),* }

        $crate::dto::declare::fields! {
            $type { $( $(#[doc = $field_doc])* $(@$kind)? $field : $of $(= $default)? ),* } $(with { $($also)* })?
        }

        impl $type {
            /// Reads what is to change of the thing with this reference, which may be repeated, but not changed.
            ///
            /// # Errors
            /// Everything that is wrong with it.
            pub(crate) fn read(
                body: &serde_json::Value,
                reference: &$reference,
            ) -> Result<Self, billing_domain::violation::Violations> {
                $crate::dto::input::read(body, |fields| {
                    fields.begin_edit::<Self>($name, reference.as_str());
                    <Self as $crate::dto::declare::Fieldset>::read_fields(fields)
                })
            }
        }

        impl $crate::dto::declare::Body for $type {
            fn schema(schemas: &mut $crate::dto::schemas::Schemas) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                schemas.define(stringify!($type), |schemas| {
                    let mut fields = vec![$crate::dto::declare::repeated_ref::<$reference>($name, schemas)];
                    fields.extend(<Self as $crate::dto::declare::Fieldset>::described(schemas));
                    let example = None $(.or(Some($example)))?;
                    $crate::dto::schemas::object_of(fields, concat!($($doc),+), example).into()
                })
            }
        }
    };
    ($(#[doc = $doc:literal])+ $type:ident of $profile:ident named $name:literal: $reference:ty) => {
        $(#[doc = $doc])+
        pub(crate) struct $type;

        impl $type {
            /// Reads what is to change of the thing with this reference, which may be repeated, but not changed.
            ///
            /// # Errors
            /// Everything that is wrong with it.
            pub(crate) fn read(
                body: &serde_json::Value,
                reference: &$reference,
            ) -> Result<billing_domain::patch::Changes<$profile>, billing_domain::violation::Violations> {
                $crate::dto::input::read(body, |fields| {
                    fields.begin_edit::<$profile>($name, reference.as_str());
                    <$profile as $crate::dto::declare::Editable>::read_changes(fields)
                })
            }
        }

        impl $crate::dto::declare::Body for $type {
            fn schema(schemas: &mut $crate::dto::schemas::Schemas) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                schemas.define(stringify!($type), |schemas| {
                    let mut fields = vec![$crate::dto::declare::repeated_ref::<$reference>($name, schemas)];
                    fields.extend(<$profile as $crate::dto::declare::Editable>::described_in_edit(schemas));
                    $crate::dto::schemas::object_of(fields, concat!($($doc),+), None).into()
                })
            }
        }
    };
}
pub(crate) use edit;

/// Declares a choice between objects that one field tells apart:
/// `choice! { /// Meaning. Type as "SchemaName" by "field" { /// Meaning. "WORD" { fields } => value, … } }`.
macro_rules! choice {
    ($(#[doc = $doc:literal])+ $type:ident as $schema:literal by $tag:literal { $(
        $(#[doc = $of_choice:literal])+ $word:literal { $(
            $(#[doc = $field_doc:literal])+ $field:ident: $of:ty $(= $default:expr)?
        ),* $(,)? } => $value:expr
    ),+ $(,)? }) => {
        impl $crate::dto::declare::Wire for $type {
            type Value = Self;

            fn read(node: $crate::dto::input::Node<'_>) -> Option<Self> {
                node.object(|fields| match fields.required($tag, $crate::dto::input::Node::text)? {
                    $($word => {
                        fields.only_beside(&[$tag, $(stringify!($field)),*], &[]);
                        $(let $field = $crate::dto::declare::of_field!(read: fields, stringify!($field), [] $of, [$($default)?]);)*
                        $(let $field = $field?;)*
                        Some($value)
                    })+
                    _ => fields.refuse($tag, "invalid_value", concat!("must be one of " $(, $word, ", ")+).trim_end_matches(", ")),
                })
            }

            fn schema(
                schemas: &mut $crate::dto::schemas::Schemas,
            ) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                schemas.define($schema, |schemas| {
                    let choices = utoipa::openapi::schema::OneOfBuilder::new().description(Some(concat!($($doc),+).trim()));
                    $(let choices = choices.item({
                        let mut all = vec![$crate::dto::schemas::tag($tag, $word)];
                        $($crate::dto::declare::of_field!(
                            describe: all, schemas, stringify!($field), concat!($($field_doc),+), [] $of, [$($default)?]
                        );)*
                        $crate::dto::schemas::object_of(all, concat!($($of_choice),+), None)
                    });)+
                    utoipa::openapi::schema::Schema::OneOf(choices.build())
                })
            }
        }
    };
}
pub(crate) use choice;

/// Declares an answer: `answer! { /// Meaning. Name of Type { fields } }`.
macro_rules! answer {
    ($(#[doc = $doc:literal])+ $name:ident of $type:ident { $($fields:tt)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name($type);

        $crate::dto::declare::fields! { answer $type { $($fields)* } }

        impl From<&$type> for $name {
            fn from(value: &$type) -> Self {
                Self(value.clone())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::dto::declare::answer_object(&self.0, serializer)
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::dto::declare::schema_of_answer::<$type>(concat!($($doc),+), &mut $crate::dto::schemas::Schemas::default()).into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn schemas(all: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
                let mut schemas = $crate::dto::schemas::Schemas::default();
                $crate::dto::declare::schema_of_answer::<$type>("", &mut schemas);
                all.extend(schemas.into_all());
            }
        }
    };
}
pub(crate) use answer;

/// The schema of an answer; it may come to have more fields.
pub(crate) fn schema_of_answer<T: AnsweredFields>(meaning: &str, schemas: &mut Schemas) -> Schema {
    let mut object = object_of(T::described_in_answers(schemas), meaning, None).build();
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
pub(crate) fn repeated_ref<W: Wire>(name: &'static str, schemas: &mut Schemas) -> Described {
    Described { name, meaning: "May be repeated, but not changed.", presence: Presence::Optional, schema: W::schema(schemas) }
}

/// Writes something as an object of its fields.
pub(crate) fn answer_object<T: AnsweredFields, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    value.answer_fields(&mut map)?;
    map.end()
}

/// Objects that requests and answers have alike.
pub(crate) trait Named: Wire<Value = Self> + AnsweredFields + Clone {
    /// The name of the schema.
    const NAME: &'static str;
}

/// Such an object in an answer.
#[derive(Clone, Debug)]
pub(crate) struct Shown<T>(T);

impl<T: Clone> From<&T> for Shown<T> {
    fn from(value: &T) -> Self {
        Self(value.clone())
    }
}

impl<T: AnsweredFields> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        answer_object(&self.0, serializer)
    }
}

impl<T: Named> PartialSchema for Shown<T> {
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

impl<T: Named> ToSchema for Shown<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(T::NAME)
    }

    fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
        let mut schemas = Schemas::default();
        T::schema(&mut schemas);
        all.extend(schemas.into_all());
    }
}
