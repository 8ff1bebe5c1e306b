//! The catalog: customers, supplier entities, usage products, pricings, bank accounts and exchange rates.
//!
//! Edits load the present values, apply the changes and save the result in one transaction. Fields missing in the request
//! keep their values, even with concurrent edits.

mod bank_accounts;
mod customers;
mod e_invoices;
mod entities;
mod exchange_rates;
mod pricings;
mod taxes;
mod usage_products;

pub use bank_accounts::{create_bank_account, edit_bank_account, get_bank_account, list_bank_accounts};
pub use customers::{CustomerView, WantedCustomer, create_customer, edit_customer, get_customer, list_customers};
pub use e_invoices::check_e_invoice;
pub use entities::{
    EntityView, WantedEntity, check_logo, create_entity, default_time_zone, delete_entity, edit_entity, get_entity,
    list_entities, received_logo,
};
pub use exchange_rates::{list_exchange_rates, put_exchange_rate};
pub use pricings::{PricingRate, create_pricing, edit_pricing, get_pricing, list_pricings, rate_new_pricing, rate_pricing};
pub(crate) use taxes::entity_of_customer;
pub use taxes::{TaxBasisPatch, TaxPatch};
pub use usage_products::{create_usage_product, edit_usage_product, get_usage_product, list_usage_products};

use std::collections::BTreeMap;

use billing_domain::calendar::{Date, TimeZone, Timestamp};
use billing_domain::credit::unit::CreditUnit;
use billing_domain::money::Currency;
use billing_domain::page::PageRequest;
use billing_domain::party::{Entity, EntityProfile};
use billing_domain::ports::{Insertion, Tx, Update};
use billing_domain::refs::{CustomerId, CustomerRef, EntityRef, OrganizationId};

use crate::basics::distinct;
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, unknown_reference};

pub(crate) fn inserted(thing: ResourceKind, insertion: Insertion) -> UseCaseResult<()> {
    match insertion {
        Insertion::Done => Ok(()),
        Insertion::Taken(field) => Err(UseCaseError::AlreadyExists { thing, field }),
    }
}

pub(crate) fn updated(thing: ResourceKind, update: Update) -> UseCaseResult<()> {
    match update {
        Update::Done => Ok(()),
        Update::Unknown => Err(UseCaseError::Unknown(thing)),
        Update::Taken(field) => Err(UseCaseError::AlreadyExists { thing, field }),
    }
}

/// Returns all entities of an organization. Organizations have few entities.
pub(crate) fn all_entities(tx: &mut dyn Tx, organization: OrganizationId) -> UseCaseResult<Vec<Entity>> {
    let (mut entities, mut page) = (Vec::new(), PageRequest::LARGEST);
    loop {
        let read = tx.entities(organization, page)?;
        let is_last = read.items.is_empty();
        entities.extend(read.items);
        if is_last || entities.len() as u64 >= read.total {
            return Ok(entities);
        }
        page = page.next();
    }
}

/// Returns the only row of a lookup.
pub(crate) fn only<T>(thing: ResourceKind, found: Vec<T>) -> UseCaseResult<T> {
    found.into_iter().next().ok_or(UseCaseError::Unknown(thing))
}

/// Restricts a filter to the customer with the given reference. Returns `false` if the customer does not exist, so that
/// nothing matches.
pub(crate) fn narrow_to_customer(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_ref: Option<&CustomerRef>,
    customer_id: &mut Option<CustomerId>,
) -> UseCaseResult<bool> {
    let Some(customer_ref) = customer_ref else { return Ok(true) };
    *customer_id = tx.customers_by_refs(organization, std::slice::from_ref(customer_ref))?.first().map(|customer| customer.id);
    Ok(customer_id.is_some())
}

fn check_entity(tx: &mut dyn Tx, organization: OrganizationId, entity_ref: Option<&EntityRef>) -> UseCaseResult<()> {
    let Some(entity_ref) = entity_ref else { return Ok(()) };
    let refs = std::slice::from_ref(entity_ref);
    if tx.entities_by_refs(organization, refs)?.is_empty() {
        return Err(unknown_reference(&["entity_ref"], ResourceKind::Entity).into());
    }
    tx.lock_entities_shared(organization, refs)?;
    Ok(())
}

/// Entities of an organization, to read from.
pub(crate) struct KnownEntities(BTreeMap<EntityRef, EntityProfile>);

impl KnownEntities {
    pub(crate) fn read<'e>(cx: &mut Cx<'_>, entities: impl IntoIterator<Item = &'e EntityRef>) -> UseCaseResult<Self> {
        let entities = cx.tx.entities_by_refs(cx.organization, &distinct(entities.into_iter().cloned()))?;
        Ok(Self(entities.into_iter().map(|entity| (entity.entity_ref, entity.profile)).collect()))
    }

    /// Returns today in the time zone of an entity.
    pub(crate) fn today(&self, entity_ref: &EntityRef, now: Timestamp) -> Date {
        self.0.get(entity_ref).map_or(TimeZone::UTC, |profile| profile.time_zone).service_date(now)
    }

    /// Returns the unit of credit of an entity in a currency, if it has one.
    pub(crate) fn credit_unit(&self, entity_ref: &EntityRef, currency: Currency) -> Option<CreditUnit> {
        self.0.get(entity_ref)?.credit_unit.of(currency).cloned()
    }
}
