//! Warnings in responses.

use billing_domain::warning::Warning;
use serde::ser::SerializeMap;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, Schema};

use super::declare::{AnsweredField, Field, answer};
use super::input::Fields;
use super::schemas::{Presence, Schemas};
use super::wire::AssignedRef;

answer! {
    /// A possible mistake in an accepted request.
    WarningJson of warning: Warning {
        /// Stable code: `same_as`, `no_tax_category` or `period_not_over`.
        #[schema(example = "same_as")]
        code: String = warning.code(),
        /// Reason and remedy.
        detail: String = warning.to_string(),
        /// Pointer to the field of the request (RFC 6901), if one field caused the warning.
        @omitted pointer: Option<String> = warning.pointer(),
        /// With `same_as`: the earlier contract.
        @omitted contract_ref: Option<AssignedRef> = warning.contract_ref(),
    }
}

impl WarningJson {
    /// Returns the warnings of a response, or `None` without a warning.
    pub fn any_of(warnings: &[Warning]) -> Option<Vec<Self>> {
        (!warnings.is_empty()).then(|| warnings.iter().map(Self::from).collect())
    }
}

/// The warnings in the response to a change of an object. They are omitted if there are none, and no request has any.
pub struct ChangeWarnings;

impl Field for ChangeWarnings {
    type Form = Vec<WarningJson>;
    type Value = Vec<Warning>;
    const PRESENCE: Presence = Presence::Optional;
    const PRESENCE_IN_EDIT: Presence = Presence::Optional;

    fn read(_: Fields<'_>, _: &str) -> Option<Vec<Warning>> {
        Some(Vec::new())
    }

    fn read_edit(_: Fields<'_>, _: &str) -> Option<Option<Vec<Warning>>> {
        Some(None)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        ArrayBuilder::new().items(schemas.refer::<WarningJson>()).into()
    }
}

impl AnsweredField for ChangeWarnings {
    type Value = Vec<Warning>;
    const PRESENCE: Presence = Presence::Optional;

    fn answer<M: SerializeMap>(warnings: &Self::Value, name: &'static str, map: &mut M) -> Result<(), M::Error> {
        WarningJson::any_of(warnings).map_or(Ok(()), |warnings| map.serialize_entry(name, &warnings))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        <Self as Field>::schema(schemas)
    }
}
