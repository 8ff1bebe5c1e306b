//! The declaration macros. The implementations that they generate use [`super`].

/// Implements `Wire` for types: `Type: reader, |schemas| schema;`. A form for the values of another type names that type:
/// `Form of Type`.
macro_rules! wire {
    ($($wire:ident $(of $value:ty)?: $read:expr, |$schemas:pat_param| $schema:expr;)+) => {$(
        impl $crate::dto::declare::Wire for $wire {
            type Value = $crate::dto::declare::value_of!($wire [$($value)?]);

            fn read(node: $crate::dto::input::Node<'_>) -> Option<Self::Value> {
                let read: fn($crate::dto::input::Node<'_>) -> Option<Self::Value> = $read;
                read(node)
            }

            fn schema($schemas: &mut $crate::dto::schemas::Schemas) -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $schema.into()
            }
        }
    )+};
}
pub(crate) use wire;

/// Selects the value type of a form.
macro_rules! value_of {
    ($wire:ident []) => {
        $wire
    };
    ($wire:ident [$value:ty]) => {
        $value
    };
}
pub(crate) use value_of;

/// Selects the wire name of a field.
macro_rules! name_of {
    ($field:ident []) => {
        stringify!($field)
    };
    ($field:ident [$name:literal]) => {
        $name
    };
}
pub(crate) use name_of;

/// Selects the part type of a field.
macro_rules! part {
    ([flat] $of:ty) => { $crate::dto::declare::Flat<$of> };
    ([] $of:ty) => { $of };
}
pub(crate) use part;

/// Wraps the default of a field.
macro_rules! default_of {
    ([]) => {
        None
    };
    ([$default:expr]) => {
        Some(|| $default)
    };
}
pub(crate) use default_of;

/// Declares the fields of a type: `name as "wire name": Form = default`. `@flat` before a name inserts the fields of
/// another type. `edit` before the type makes it editable, `answer` makes it serializable. A field of a response can be
/// nested: `part.name`. Items in `with` are added to the `Fieldset` implementation.
macro_rules! fields {
    (edit answer $type:ident { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::fields! { edit $type { $($fields)* } $(with { $($also)* })? }
        $crate::dto::declare::fields! { answer $type { $($fields)* } }
    };
    (edit $type:ident { $(
        $(#[doc = $doc:literal])* $(@$kind:ident)? $field:ident $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::fields! {
            $type { $( $(#[doc = $doc])* $(@$kind)? $field $(as $name)? : $of $(= $default)? ),* } $(with { $($also)* })?
        }

        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl Editable for $type {
                fn read_changes(fields: Fields<'_>) -> Option<Changes<Self>> {
                    let mut changes = Changes::none();
                    // All fields are read, also after a violation.
                    let read = [$(<part!([$($kind)?] $of) as EditedPart>::change(
                        fields, name_of!($field [$($name)?]), default_of!([$($default)?]), |whole: &mut Self| &mut whole.$field, &mut changes,
                    )),*];
                    read.into_iter().all(|read| read.is_some()).then_some(changes)
                }

                fn described_in_edit(schemas: &mut Schemas) -> Vec<FieldSchema> {
                    let mut all = Vec::new();
                    $(<part!([$($kind)?] $of) as EditedPart>::describe_in_edit(
                        $crate::dto::declare::declared!($field [$($name)?] [$($doc)*] [$($default)?]), schemas, &mut all,
                    );)*
                    all
                }
            }
        };
    };
    (answer $type:ident { $(
        $(#[doc = $doc:literal])* $(@$kind:ident)? $field:ident $(. $below:ident)* $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? }) => {
        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl AnsweredFields for $type {
                fn answer_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                    $(<part!([$($kind)?] $of) as AnsweredPart>::answer(&self.$field $(. $below)*, name_of!($field [$($name)?]), map)?;)*
                    Ok(())
                }

                fn described_in_answers(schemas: &mut Schemas) -> Vec<FieldSchema> {
                    let mut all = Vec::new();
                    $(<part!([$($kind)?] $of) as AnsweredPart>::describe(
                        name_of!($field [$($name)?]), concat!($($doc),*), schemas, &mut all,
                    );)*
                    all
                }
            }
        };
    };
    ($type:ident { $(
        $(#[doc = $doc:literal])* $(@$kind:ident)? $field:ident $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::accessors! { @declared $type { $($(@$kind)? [$field] $(as $name)? : $of),* } }

        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl Fieldset for $type {
                fn names() -> &'static [&'static str] {
                    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
                    NAMES.get_or_init(|| {
                        let mut names = Vec::new();
                        $(<part!([$($kind)?] $of) as Part>::names(name_of!($field [$($name)?]), &mut names);)*
                        names
                    })
                }

                fn read_fields(fields: Fields<'_>) -> Option<Self> {
                    $(let $field = <part!([$($kind)?] $of) as Part>::read(
                        fields, name_of!($field [$($name)?]), default_of!([$($default)?]),
                    );)*
                    Some(Self { $($field: $field?),* })
                }

                fn described(schemas: &mut Schemas) -> Vec<FieldSchema> {
                    let mut all = Vec::new();
                    $(<part!([$($kind)?] $of) as Part>::describe(
                        $crate::dto::declare::declared!($field [$($name)?] [$($doc)*] [$($default)?]), schemas, &mut all,
                    );)*
                    all
                }

                $($($also)*)?
            }
        };
    };
}
pub(crate) use fields;

/// Builds the declaration of a field: name, description and default.
macro_rules! declared {
    ($field:ident [$($name:literal)?] [$($doc:literal)*] [$($default:expr)?]) => {
        $crate::dto::declare::Declared {
            name: $crate::dto::declare::name_of!($field [$($name)?]),
            meaning: concat!($($doc),*),
            has_default: !concat!($(stringify!($default))?).is_empty(),
        }
    };
}
pub(crate) use declared;

/// Declares an object with the fields of an existing type: `object! { /// Meaning. Type as "SchemaName" { fields } }`.
/// `struct` before the type also declares the struct. `answer` in front also makes it serializable.
macro_rules! object {
    ($(#[doc = $doc:literal])+ answer struct $type:ident as $schema:literal { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::object! { $(#[doc = $doc])+ struct $type as $schema { $($fields)* } $(with { $($also)* })? }
        $crate::dto::declare::object! { @answered $type as $schema { $($fields)* } }
    };
    ($(#[doc = $doc:literal])+ answer $type:ident as $schema:literal { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::object! { $(#[doc = $doc])+ $type as $schema { $($fields)* } $(with { $($also)* })? }
        $crate::dto::declare::object! { @answered $type as $schema { $($fields)* } }
    };
    (@answered $type:ident as $schema:literal { $($fields:tt)* }) => {
        $crate::dto::declare::fields! { answer $type { $($fields)* } }

        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl ResponseValue for $type {
                fn answer<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
                    answer_object(value, serializer)
                }
            }

            impl SharedObject for $type {
                const NAME: &'static str = $schema;
            }
        };
    };
    ($(#[doc = $doc:literal])+ struct $type:ident as $schema:literal { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::structure! { $(#[doc = $doc])+ $type { $($fields)* } $(with { $($also)* })? }
        $crate::dto::declare::object! { @read $(#[doc = $doc])+ $type as $schema }
    };
    ($(#[doc = $doc:literal])+ $type:ident as $schema:literal { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::fields! { $type { $($fields)* } $(with { $($also)* })? }
        $crate::dto::declare::object! { @read $(#[doc = $doc])+ $type as $schema }
    };
    (@read $(#[doc = $doc:literal])+ $type:ident as $schema:literal) => {
        const _: () = {
            use $crate::dto::declare::made_with::*;

            wire! {
                $type: |node| node.object(<$type as Fieldset>::read_whole),
                    |schemas| schemas.define($schema, |schemas| object_of(<$type as Fieldset>::described(schemas), concat!($($doc),+)).into());
            }
        };
    };
}
pub(crate) use object;

/// Declares a struct and its fields.
macro_rules! structure {
    ($(#[doc = $doc:literal])+ $type:ident { $(
        $(#[doc = $field_doc:literal])* $(@$kind:ident)? $field:ident $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? } $(with { $($also:tt)* })?) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub struct $type { $(
            $(#[doc = $field_doc])*
            pub $field: <$crate::dto::declare::part!([$($kind)?] $of) as $crate::dto::declare::Part>::Value
        ),* }

        $crate::dto::declare::fields! {
            $type { $( $(#[doc = $field_doc])* $(@$kind)? $field $(as $name)? : $of $(= $default)? ),* } $(with { $($also)* })?
        }
    };
}
pub(crate) use structure;

/// Used in `with`: fields of this response type are ignored in requests.
macro_rules! ignore_response_fields {
    ($answer:ty) => {
        fn answered() -> &'static [String] {
            static NAMES: std::sync::OnceLock<Vec<String>> = std::sync::OnceLock::new();
            NAMES.get_or_init($crate::dto::schemas::names_in::<$answer>)
        }
    };
}
pub(crate) use ignore_response_fields;

/// Declares the parameters of a query: struct and reader.
macro_rules! params {
    ($($declared:tt)*) => {
        $crate::dto::declare::structure! { $($declared)* }
    };
}
pub(crate) use params;

/// Declares a request body: struct, reader and schema. Items in `with` are added to its `Fieldset`.
macro_rules! body {
    ($(#[doc = $doc:literal])+ $type:ident { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::structure! { $(#[doc = $doc])+ $type { $($fields)* } $(with { $($also)* })? }

        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl Body for $type {
                fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
                    schemas.define(stringify!($type), |schemas| object_of(Self::described(schemas), concat!($($doc),+)).into())
                }
            }

            impl<P> RequestBody<P> for $type {
                type Read = Self;

                fn read_body(body: Option<&Value>, _: &P) -> Result<Self, Violations> {
                    read_optional(body)
                }
            }
        };
    };
}
pub(crate) use body;

/// Declares the body of an edit: `edit! { /// Meaning. Type of Profile named "its_ref": ItsRef }`, or with its own
/// fields.
macro_rules! edit {
    ($(#[doc = $doc:literal])+ $type:ident of $profile:ident named $name:literal: $reference:ty) => {
        $(#[doc = $doc])+
        pub struct $type;

        $crate::dto::declare::edit! {
            @reads $profile as Changes<$profile> = <$profile as Editable>::read_changes, <$profile as Editable>::described_in_edit;
            $(#[doc = $doc])+ $type named $name: $reference
        }
    };
    ($(#[doc = $doc:literal])+ $type:ident named $name:literal: $reference:ty { $($fields:tt)* } $(with { $($also:tt)* })?) => {
        $crate::dto::declare::structure! { $(#[doc = $doc])+ $type { $($fields)* } $(with { $($also)* })? }

        $crate::dto::declare::edit! {
            @reads $type as $type = <$type as Fieldset>::read_fields, <$type as Fieldset>::described;
            $(#[doc = $doc])+ $type named $name: $reference
        }
    };
    (@reads $of:ty as $read:ty = $reads:expr, $describes:expr;
     $(#[doc = $doc:literal])+ $type:ident named $name:literal: $reference:ty) => {
        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl $type {
                /// Reads the changes of the object with this reference, which the body can repeat but not change.
                ///
                /// # Errors
                /// Returns all violations of the body.
                pub fn read(body: &Value, reference: &$reference) -> Result<$read, Violations> {
                    input::read(body, |fields| {
                        fields.begin_edit::<$of>($name, reference.as_str());
                        $reads(fields)
                    })
                }
            }

            impl RequestBody<$reference> for $type {
                type Read = $read;

                fn read_body(body: Option<&Value>, reference: &$reference) -> Result<$read, Violations> {
                    Self::read(body.unwrap_or(&Value::Null), reference)
                }
            }

            impl Body for $type {
                fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
                    schemas.define(stringify!($type), |schemas| {
                        let mut fields = vec![repeated_ref::<$reference>($name, schemas)];
                        fields.extend($describes(schemas));
                        object_of(fields, concat!($($doc),+)).into()
                    })
                }
            }
        };
    };
}
pub(crate) use edit;

/// Declares a choice of objects, distinguished by one field: `choice! { /// Meaning. Type as "SchemaName" by "field" {
/// /// Meaning. "WORD" { fields } => value, … } }`.
macro_rules! choice {
    ($(#[doc = $doc:literal])+ $type:ident as $schema:literal by $tag:literal { $(
        $(#[doc = $of_choice:literal])+ $word:literal { $(
            $(#[doc = $field_doc:literal])+ $field:ident: $of:ty $(= $default:expr)?
        ),* $(,)? } => $value:expr
    ),+ $(,)? }) => {
        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl Wire for $type {
                type Value = Self;

                fn read(node: Node<'_>) -> Option<Self> {
                    node.object(|fields| match fields.required($tag, Node::text)? {
                        $($word => {
                            fields.only_beside(&[$tag, $(stringify!($field)),*], &[]);
                            $(let $field = <$of as Part>::read(fields, stringify!($field), default_of!([$($default)?]));)*
                            $(let $field = $field?;)*
                            Some($value)
                        })+
                        _ => fields.refuse($tag, "invalid_value", concat!("must be one of " $(, $word, ", ")+).trim_end_matches(", ")),
                    })
                }

                fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
                    schemas.define($schema, |schemas| {
                        let choices = OneOfBuilder::new().description(Some(concat!($($doc),+).trim()));
                        $(let choices = choices.item({
                            let mut all = vec![schemas::tag($tag, $word)];
                            $(<$of as Part>::describe(
                                $crate::dto::declare::declared!($field [] [$($field_doc)+] [$($default)?]), schemas, &mut all,
                            );)*
                            object_of(all, concat!($($of_choice),+))
                        });)+
                        Schema::OneOf(choices.build())
                    })
                }
            }
        };
    };
}
pub(crate) use choice;

/// Selects the response type of a field.
macro_rules! response_type {
    (Option [$of:ty] $value:expr) => {
        Option::map($value, <$of>::from)
    };
    (Vec [$of:ty] $value:expr) => {
        IntoIterator::into_iter($value).map(<$of>::from).collect()
    };
    ($of:ident [] $value:expr) => {
        <$of>::from($value)
    };
}
pub(crate) use response_type;

/// Declares the fields of an answer as methods of its views: `Type { name: Form }`. `Option` has the view of its content.
macro_rules! accessors {
    ($type:ty { $($field:ident $(as $name:literal)? : $form:ident $(<$of:ty>)?),* $(,)? }) => {
        $crate::dto::declare::accessors! { @each $type { $([$field] [$($name)?] [$crate::dto::declare::view_of!($form [$($of)?])])* } }
    };
    (@each $type:ty { $([$field:ident] [$($name:literal)?] [$view:ty])* }) => {
        #[allow(dead_code, reason = "not every field is read")]
        impl<'v> $crate::json_view::JsonView<'v, $type> {
            $(pub fn $field(self) -> $crate::json_view::JsonView<'v, $view> {
                self.field($crate::dto::declare::name_of!($field [$($name)?]))
            })*
        }

        #[allow(dead_code, reason = "not every field is named")]
        impl $crate::json_view::FieldNames<$type> {
            $(pub const fn $field() -> &'static str {
                $crate::dto::declare::name_of!($field [$($name)?])
            })*
        }
    };
    (@fields $type:ty { $(
        $(#[doc = $doc:literal])* $(@$kind:ident)? $field:ident $(. $below:ident)* $(as $name:literal)? : $of:ty $(= $default:expr)?
    ),* $(,)? }) => {
        $crate::dto::declare::accessors! { @declared $type { $($(@$kind)? [$field $(. $below)*] $(as $name)? : $of),* } }
    };
    // The fields of a `fields!` declaration. An inserted set of fields has the same JSON.
    (@declared $type:ty { $(
        $(@$kind:ident)? [$($path:tt)+] $(as $name:literal)? : $of:ty
    ),* $(,)? }) => {$(
        $crate::dto::declare::accessors! { @one $type [$($kind)?] [$($path)+] [$($name)?] [$of] }
    )*};
    (@one $type:ty [$($kind:ident)?] [$above:ident . $($below:tt)+] [$($name:literal)?] [$of:ty]) => {
        $crate::dto::declare::accessors! { @one $type [$($kind)?] [$($below)+] [$($name)?] [$of] }
    };
    (@one $type:ty [flat] [$field:ident] [] [$of:ty]) => {
        #[allow(dead_code, reason = "not every field is read")]
        impl<'v> $crate::json_view::JsonView<'v, $type> {
            pub fn $field(self) -> $crate::json_view::JsonView<'v, $of> {
                self.read_as()
            }
        }
    };
    (@one $type:ty [] [$field:ident] [$($name:literal)?] [$of:ty]) => {
        $crate::dto::declare::accessors! {
            @each $type { [$field] [$($name)?] [<$of as $crate::dto::declare::Field>::Form] }
        }
    };
}
pub(crate) use accessors;

/// Selects the content of a field.
macro_rules! view_of {
    (Option [$of:ty]) => { $of };
    (Box [$of:ty]) => { $of };
    ($form:ident [$of:ty]) => { $form<$of> };
    ($form:ident []) => { $form };
}
pub(crate) use view_of;

/// Declares a response that is built by hand, and its fields.
macro_rules! response {
    ($(#[$($about:tt)*])+ pub struct $name:ident { $(
        $(#[$($of_field:tt)*])+ $vis:vis $field:ident: $form:ident $(<$of:ty>)?
    ),* $(,)? }) => {
        $(#[$($about)*])+
        pub struct $name { $($(#[$($of_field)*])+ $vis $field: $form $(<$of>)?),* }

        $crate::dto::declare::accessors! { $name { $($field: $form $(<$of>)?),* } }
    };
}
pub(crate) use response;

/// Declares a response. `answer! { /// Meaning. Name of Type { fields } }` uses the declared fields of the type. `answer!
/// { /// Meaning. Name of value: Type { let … = …; fields } }` computes each field of a value: `name: Form = expression`.
/// A field with `@omitted` is omitted if it has no value.
macro_rules! answer {
    ($(#[doc = $doc:literal])+ $name:ident of $type:ident { $($fields:tt)* }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub struct $name($type);

        $crate::dto::declare::fields! { answer $type { $($fields)* } }
        $crate::dto::declare::accessors! { @fields $name { $($fields)* } }

        const _: () = {
            use $crate::dto::declare::made_with::*;

            impl From<&$type> for $name {
                fn from(value: &$type) -> Self {
                    Self(value.clone())
                }
            }

            impl Serialize for $name {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    answer_object(&self.0, serializer)
                }
            }

            impl PartialSchema for $name {
                fn schema() -> RefOr<Schema> {
                    schema_of_answer::<$type>(concat!($($doc),+), &mut Schemas::default()).into()
                }
            }

            impl ToSchema for $name {
                fn schemas(all: &mut Vec<(String, RefOr<Schema>)>) {
                    let mut schemas = Schemas::default();
                    schema_of_answer::<$type>("", &mut schemas);
                    all.extend(schemas.into_all());
                }
            }
        };
    };
    ($(#[$($about:tt)*])+ $name:ident of $value:ident: $type:ty {
        $(let $given:pat = $from:expr;)*
        $($(#[$($of_field:tt)*])+ $(@$omitted:ident)? $field:ident $(as $wire:tt)? : $form:ident $(<$of:ty>)? = $stated:expr),* $(,)?
    }) => {
        #[derive(Debug, serde::Serialize, utoipa::ToSchema)]
        $(#[$($about)*])+
        pub struct $name { $(
            $(#[$($of_field)*])+
            // Never true: the condition only repeats the two attributes below for each marked field.
            $(#[cfg_attr(any(), $omitted)] #[serde(skip_serializing_if = "Option::is_none")] #[schema(nullable = false)])?
            $(#[serde(rename = $wire)])?
            $field: $form $(<$of>)?
        ),* }

        $crate::dto::declare::accessors! { $name { $($field $(as $wire)? : $form $(<$of>)?),* } }

        impl From<&$type> for $name {
            fn from($value: &$type) -> Self {
                $(let $given = $from;)*
                Self { $($field: $crate::dto::declare::response_type!($form [$($of)?] $stated)),* }
            }
        }
    };
}
pub(crate) use answer;
