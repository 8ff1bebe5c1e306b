//! Supplier entities.

use billing_application::catalog::{EntityView, TaxBasisPatch, WantedEntity};
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::credit::unit::CreditUnits;
use billing_domain::money::Currency;
use billing_domain::party::legal::{DocumentSettings, LegalProfile};
use billing_domain::party::{Address, DEFAULT_GRACE_HOURS, EntityProfile, NetTerms, NumberPrefix, PaymentDetails};
use billing_domain::refs::EntityRef;
use billing_domain::tax::{DefaultTaxes, TaxBasis};
use billing_domain::text::OneLine;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::declare::{Field, Wire, answer, body, edit, fields, ignore_response_fields};
use super::input::Fields;
use super::schemas::{Presence, Schemas};
use super::values::{GraceHours, LineText, NewEntityRef};
use super::wire::NamedRef;

fields! {
    edit answer EntityProfile {
        /// Name.
        name: OneLine,
        /// Legal name.
        legal_name: Option<OneLine>,
        /// Prefix of document numbers; unique in the organization.
        number_prefix: NumberPrefix,
        /// Time zone of periods and issue dates. Default: UTC.
        time_zone as "timezone": TimeZone = TimeZone::UTC,
        /// Informational currency. Documents use the currency of their pricing.
        currency: Option<Currency>,
        /// Postal address.
        address: Option<Address>,
        /// Tax number.
        tax_id: Option<OneLine>,
        /// Default net terms for products, if their customer has none.
        net_terms: Option<NetTerms>,
        /// Hours between a document's scheduled date and its issue. Default: 2.
        grace_hours: GraceHours = DEFAULT_GRACE_HOURS,
        @flat payment: PaymentDetails,
        @flat legal: LegalProfile,
        @flat taxes: DefaultTaxes,
        @flat paper: DocumentSettings,
        /// Units of prepaid credit. Default: none.
        credit_unit: CreditUnits = CreditUnits::default(),
    }
}

fields! {
    edit WantedEntity {
        @flat profile: EntityProfile,
        /// Whether the entity bills if neither product nor customer names an entity. True makes this entity the default
        /// instead of the present one. False or null is rejected for the default entity: make another entity the default
        /// instead.
        is_default as "default": DefaultFlag,
        @flat tax: TaxBasisPatch,
    }
    with {
        ignore_response_fields!(EntityJson);
    }
}

/// Whether to make an entity the default; `None` if unspecified.
pub struct DefaultFlag;

impl Field for DefaultFlag {
    type Form = bool;
    type Value = Option<bool>;
    const PRESENCE: Presence = Presence::Nullable;
    const PRESENCE_IN_EDIT: Presence = Presence::Nullable;

    fn read(fields: Fields<'_>, name: &str) -> Option<Option<bool>> {
        fields.optional(name, <bool as Wire>::read)
    }

    /// Null has the effect of false.
    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Option<bool>>> {
        <Option<bool> as Field>::read_edit(fields, name).map(|named| named.map(|value| Some(value.unwrap_or(false))))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        <bool as Wire>::schema(schemas)
    }
}

body! {
    /// A supplier entity to create.
    EntityBody {
        /// Reference. Default: assigned by the service.
        entity_ref: Option<NewEntityRef>,
        @flat wanted: WantedEntity,
    }
    with {
        ignore_response_fields!(EntityJson);
    }
}

edit! {
    /// Changes to a supplier entity. Omitted fields stay unchanged; null clears a field or restores its default.
    EntityEditBody of WantedEntity named "entity_ref": EntityRef
}

answer! {
    /// A supplier entity.
    EntityJson of EntityView {
        /// Reference.
        entity.entity_ref as "entity_ref": EntityRef,
        @flat entity.profile: EntityProfile,
        /// Whether the entity bills if neither product nor customer names an entity. An organization has one default
        /// entity.
        is_default as "default": bool,
        @flat tax.basis: TaxBasis,
        /// Time of the last change.
        entity.updated_at as "updated_at": Timestamp,
    }
}

answer! {
    /// The name of a supplier entity.
    EntityNameJson of view: EntityView {
        /// Reference.
        entity_ref: NamedRef = &view.entity.entity_ref,
        /// Name.
        name: LineText = &view.entity.profile.name,
    }
}
