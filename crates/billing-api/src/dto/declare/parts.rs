//! The parts of a declaration: fields and inserted field sets.

use billing_domain::patch::Changes;
use serde::ser::SerializeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::{AnsweredField, AnsweredFields, Editable, Field, Fieldset};
use crate::dto::input::Fields;
use crate::dto::schemas::{FieldSchema, Presence, Schemas};

/// A set of fields inserted in place of one field.
pub struct Flat<T>(std::marker::PhantomData<T>);

/// A part of a declaration: a field or an inserted field set. A part with a default can be omitted or null.
pub trait Part {
    /// The value that is read.
    type Value;

    /// Adds the names of its fields.
    fn names(name: &'static str, all: &mut Vec<&'static str>);

    /// Reads the field. Returns `None` after a violation.
    fn read(fields: Fields<'_>, name: &str, default: Option<fn() -> Self::Value>) -> Option<Self::Value>;

    /// Adds the descriptions of its fields.
    fn describe(declared: Declared, schemas: &mut Schemas, all: &mut Vec<FieldSchema>);
}

/// A part that can be edited.
pub trait EditedPart: Part {
    /// Adds the changes of an edit. Returns `None` after a violation.
    fn change<T: 'static>(
        fields: Fields<'_>,
        name: &str,
        default: Option<fn() -> Self::Value>,
        place: fn(&mut T) -> &mut Self::Value,
        changes: &mut Changes<T>,
    ) -> Option<()>;

    /// Adds the descriptions of its fields in edits.
    fn describe_in_edit(declared: Declared, schemas: &mut Schemas, all: &mut Vec<FieldSchema>);
}

/// A part of a response.
pub trait AnsweredPart {
    /// The value that is serialized.
    type Value;

    /// Serializes the value.
    fn answer<M: SerializeMap>(value: &Self::Value, name: &'static str, map: &mut M) -> Result<(), M::Error>;

    /// Adds the descriptions of its fields.
    fn describe(name: &'static str, meaning: &'static str, schemas: &mut Schemas, all: &mut Vec<FieldSchema>);
}

/// A declared part, without its type.
pub struct Declared {
    pub name: &'static str,
    pub meaning: &'static str,
    pub has_default: bool,
}

impl Declared {
    fn described(self, presence: Presence, schema: RefOr<Schema>) -> FieldSchema {
        let presence = if self.has_default { Presence::Nullable } else { presence };
        FieldSchema { name: self.name, meaning: self.meaning, presence, schema }
    }
}

impl<F: Field> Part for F {
    type Value = F::Value;

    fn names(name: &'static str, all: &mut Vec<&'static str>) {
        all.push(name);
    }

    fn read(fields: Fields<'_>, name: &str, default: Option<fn() -> F::Value>) -> Option<F::Value> {
        match default {
            Some(default) if !fields.has(name) => Some(default()),
            Some(_) | None => <F as Field>::read(fields, name),
        }
    }

    fn describe(declared: Declared, schemas: &mut Schemas, all: &mut Vec<FieldSchema>) {
        all.push(declared.described(F::PRESENCE, F::schema(schemas)));
    }
}

impl<F: Field> EditedPart for F {
    fn change<T: 'static>(
        fields: Fields<'_>,
        name: &str,
        default: Option<fn() -> F::Value>,
        place: fn(&mut T) -> &mut F::Value,
        changes: &mut Changes<T>,
    ) -> Option<()> {
        let named = match default {
            Some(default) if fields.is_null(name) => Some(default()),
            Some(_) | None => F::read_edit(fields, name)?,
        };
        if let Some(value) = named {
            changes.add(move |whole| place(whole).clone_from(&value));
        }
        Some(())
    }

    fn describe_in_edit(declared: Declared, schemas: &mut Schemas, all: &mut Vec<FieldSchema>) {
        all.push(declared.described(F::PRESENCE_IN_EDIT, F::schema(schemas)));
    }
}

impl<T: Fieldset> Part for Flat<T> {
    type Value = T;

    fn names(_: &'static str, all: &mut Vec<&'static str>) {
        all.extend(T::names());
    }

    fn read(fields: Fields<'_>, _: &str, _: Option<fn() -> T>) -> Option<T> {
        let read = T::read_fields(fields);
        T::check(fields);
        read
    }

    fn describe(_: Declared, schemas: &mut Schemas, all: &mut Vec<FieldSchema>) {
        all.extend(T::described(schemas));
    }
}

impl<P: Editable> EditedPart for Flat<P> {
    fn change<T: 'static>(
        fields: Fields<'_>,
        _: &str,
        _: Option<fn() -> P>,
        place: fn(&mut T) -> &mut P,
        changes: &mut Changes<T>,
    ) -> Option<()> {
        changes.add_below(P::read_changes(fields)?, place);
        Some(())
    }

    fn describe_in_edit(_: Declared, schemas: &mut Schemas, all: &mut Vec<FieldSchema>) {
        all.extend(P::described_in_edit(schemas));
    }
}

impl<F: AnsweredField> AnsweredPart for F {
    type Value = F::Value;

    fn answer<M: SerializeMap>(value: &F::Value, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        <F as AnsweredField>::answer(value, name, map)
    }

    fn describe(name: &'static str, meaning: &'static str, schemas: &mut Schemas, all: &mut Vec<FieldSchema>) {
        all.push(FieldSchema { name, meaning, presence: F::PRESENCE, schema: F::schema(schemas) });
    }
}

impl<T: AnsweredFields> AnsweredPart for Flat<T> {
    type Value = T;

    fn answer<M: SerializeMap>(value: &T, _: &'static str, map: &mut M) -> Result<(), M::Error> {
        value.answer_fields(map)
    }

    fn describe(_: &'static str, _: &'static str, schemas: &mut Schemas, all: &mut Vec<FieldSchema>) {
        all.extend(T::described_in_answers(schemas));
    }
}
