//! Who bills whom for what.

use super::{Insertion, StoreResult, Update};
use crate::catalog::{Pricing, UsageProduct};
use crate::page::{Page, PageRequest};
use crate::party::{Customer, Entity};
use crate::refs::{CustomerId, CustomerRef, EntityRef, OrganizationId, PricingRef, UsageProductRef};
use crate::text::OneLine;

/// Supplier entities.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Entities {
    /// Stores a new one. `Taken("entity_ref")` or `Taken("number_prefix")`, unique in the organization: a prefix is another's
    /// if it has it, or if its documents ever had numbers with it.
    fn insert_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Insertion>;
    /// Holds one that was read until the transaction ends, after contracts: no document is opened under its name meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Contended`](super::StoreError::Contended) when it isn't what was read any more.
    fn hold_entity(&mut self, organization: OrganizationId, read: &Entity) -> StoreResult<()>;
    /// Replaces its profile. `Taken("number_prefix")` as for a new one; a prefix it has already it may keep.
    fn update_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Update>;
    /// Those of these references that exist.
    fn entities_by_refs(&mut self, organization: OrganizationId, refs: &[EntityRef]) -> StoreResult<Vec<Entity>>;
    /// All, by creation.
    fn entities(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Entity>>;
}

/// Customers.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Customers {
    /// Stores a new one. `Taken("customer_ref")`, unique in the organization.
    fn insert_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Insertion>;
    /// Replaces its profile.
    fn update_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Update>;
    /// Those of these references that exist.
    fn customers_by_refs(&mut self, organization: OrganizationId, refs: &[CustomerRef]) -> StoreResult<Vec<Customer>>;
    /// Those of these identities that exist.
    fn customers_by_ids(&mut self, organization: OrganizationId, ids: &[CustomerId]) -> StoreResult<Vec<Customer>>;
    /// At most two with a name: enough to know whether the name says who is meant.
    fn customers_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<Customer>>;
    /// All, by creation.
    fn customers(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Customer>>;
}

/// Usage products.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageProducts {
    /// Stores a new one. `Taken("usage_product_ref")`, unique in the organization.
    fn insert_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Insertion>;
    /// Replaces its profile.
    fn update_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Update>;
    /// Those of these references that exist.
    fn usage_products_by_refs(
        &mut self,
        organization: OrganizationId,
        refs: &[UsageProductRef],
    ) -> StoreResult<Vec<UsageProduct>>;
    /// At most two with a name: enough to know whether the name says what is meant.
    fn usage_products_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<UsageProduct>>;
    /// All, by creation.
    fn usage_products(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<UsageProduct>>;
}

/// Pricings.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Pricings {
    /// Stores a new one. `Taken("product_pricing_ref")`, unique in the organization.
    fn insert_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Insertion>;
    /// Replaces its content.
    fn update_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Update>;
    /// Those of these references that exist.
    fn pricings_by_refs(&mut self, organization: OrganizationId, refs: &[PricingRef]) -> StoreResult<Vec<Pricing>>;
    /// All, by creation.
    fn pricings(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Pricing>>;
}
