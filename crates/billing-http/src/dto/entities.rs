//! Supplier entities.

use billing_application::catalog::{EntityView, TaxBasisPatch, WantedEntity};
use billing_domain::calendar::TimeZone;
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
use super::values::GraceHours;
use super::wire::{LineText, NamedRef};

fields! {
    edit answer EntityProfile {
        /// Name.
        name: OneLine,
        /// Registered name.
        legal_name: Option<OneLine>,
        /// Start of every document number; unique in the organization.
        number_prefix: NumberPrefix,
        /// The zone whose calendar dates periods and issue dates are; UTC when left out.
        time_zone as "timezone": TimeZone = TimeZone::UTC,
        /// Information only: a document's currency is its pricing's.
        currency: Option<Currency>,
        /// Postal address.
        address: Option<Address>,
        /// Tax number.
        tax_id: Option<OneLine>,
        /// Net terms of products that state none, nor their customer.
        net_terms: Option<NetTerms>,
        /// Hours between a document's natural day and its issue; 2 when left out.
        grace_hours: GraceHours = DEFAULT_GRACE_HOURS,
        @flat payment: PaymentDetails,
        @flat legal: LegalProfile,
        @flat taxes: DefaultTaxes,
        @flat paper: DocumentSettings,
    }
}

fields! {
    edit WantedEntity {
        @flat profile: EntityProfile,
        /// Whether it bills where neither product nor customer names an entity. True moves that from another one to this; false or null is
        /// refused on the one that is the default: name another one instead.
        is_default as "default": DefaultFlag,
        @flat tax: TaxBasisPatch,
    }
    with {
        ignore_response_fields!(EntityJson);
    }
}

/// Whether an entity is to be the default; `None` where nothing is said.
struct DefaultFlag;

impl Field for DefaultFlag {
    type Value = Option<bool>;
    const PRESENCE: Presence = Presence::Nullable;
    const PRESENCE_IN_EDIT: Presence = Presence::Nullable;

    fn read(fields: Fields<'_>, name: &str) -> Option<Option<bool>> {
        fields.optional(name, <bool as Wire>::read)
    }

    /// Null takes away what false takes away.
    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Option<bool>>> {
        <Option<bool> as Field>::read_edit(fields, name).map(|named| named.map(|value| Some(value.unwrap_or(false))))
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        <bool as Wire>::schema(schemas)
    }
}

body! {
    /// A supplier entity to make.
    EntityBody {
        /// Reference; assigned when left out.
        entity_ref: Option<EntityRef>,
        @flat wanted: WantedEntity,
    }
    with {
        ignore_response_fields!(EntityJson);
    }
}

edit! {
    /// Changes to a supplier entity: fields left out are kept, null clears or brings the default back.
    EntityEditBody of WantedEntity named "entity_ref": EntityRef
}

answer! {
    /// A supplier entity.
    EntityJson of EntityView {
        /// Reference.
        entity.entity_ref as "entity_ref": EntityRef,
        @flat entity.profile: EntityProfile,
        /// Whether it bills where neither product nor customer names an entity: one of the organization's does.
        is_default as "default": bool,
        @flat tax.basis: TaxBasis,
    }
}

answer! {
    /// A supplier entity's name.
    EntityNameJson of view: EntityView {
        /// Reference.
        entity_ref: NamedRef = &view.entity.entity_ref,
        /// Name.
        name: LineText = &view.entity.profile.name,
    }
}
