//! Entities, customers, usage products and pricings.

use super::{Insertion, StoreResult, Update};
use crate::catalog::{Pricing, UsageProduct};
use crate::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use crate::party::appearance::Logo;
use crate::party::{Customer, Entity, EntityUse};
use crate::refs::{CustomerId, CustomerRef, EntityRef, OrganizationId, PricingRef, UsageProductRef};
use crate::summary::Aggregations;
use crate::text::OneLine;

/// Storage of supplier entities.
pub trait Entities {
    /// Stores a new entity. Returns `Taken("entity_ref")` or `Taken("number_prefix")` when the value is not unique in the
    /// organization.
    ///
    /// A prefix is taken when another entity has it, or when documents of another entity ever had numbers with it.
    fn insert_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Insertion>;
    /// Locks an entity, as it was read, until the transaction ends. No document is opened for the entity meanwhile.
    /// Entities are locked after contracts.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) when the entity differs from the one read.
    fn hold_entity(&mut self, organization: OrganizationId, read: &Entity) -> StoreResult<()>;
    /// Updates the profile of an entity. Returns `Taken("number_prefix")` under the same rule as for a new entity. The
    /// entity may keep its current prefix.
    fn update_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Update>;
    /// Locks entities shared and returns them. A transaction calls this before a customer, a contract or a deposit names the entities, so
    /// that no other transaction deletes them.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) if one of them does not exist.
    fn lock_entities_shared(&mut self, organization: OrganizationId, refs: &[EntityRef]) -> StoreResult<Vec<Entity>>;
    /// Returns a customer that names an entity, a contract that names it in any version, or a customer with an account.
    fn entity_user(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<Option<EntityUse>>;
    /// Deletes an entity that has no users. The caller has [locked](Self::hold_entity) the entity.
    ///
    /// # Errors
    /// Returns [`StoreError::Corrupt`](super::StoreError::Corrupt) if documents have numbers of the entity.
    fn delete_entity(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<()>;
    /// Returns the existing entities among these references.
    fn entities_by_refs(&mut self, organization: OrganizationId, refs: &[EntityRef]) -> StoreResult<Vec<Entity>>;
    /// Returns a page of the entities that match conditions on the last change. The order may be ascending or descending.
    fn listed_entities(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Entity>>;
    /// Returns a page of all entities, ordered by creation.
    fn entities(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Entity>> {
        self.listed_entities(organization, &UpdateFilter::default(), ListSortKey::Created, page)
    }
    /// Stores the image of a logo, unless the organization has an image with this hash. A logo without its image is not stored.
    fn keep_logo(&mut self, organization: OrganizationId, logo: &Logo) -> StoreResult<()>;
    /// Returns a stored logo with its image; `None` if the organization has no image with this hash and format.
    fn logo_with_image(&mut self, organization: OrganizationId, logo: &Logo) -> StoreResult<Option<Logo>>;
}

/// Storage of customers.
pub trait Customers {
    /// Stores a new customer. Returns `Taken("customer_ref")` when the reference is not unique in the organization.
    fn insert_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Insertion>;
    /// Updates the profile of a customer.
    fn update_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Update>;
    /// Returns the existing customers among these references.
    fn customers_by_refs(&mut self, organization: OrganizationId, refs: &[CustomerRef]) -> StoreResult<Vec<Customer>>;
    /// Returns the existing customers among these IDs.
    fn customers_by_ids(&mut self, organization: OrganizationId, ids: &[CustomerId]) -> StoreResult<Vec<Customer>>;
    /// Returns at most two customers with a name. Two results prove that the name is ambiguous.
    fn customers_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<Customer>>;
    /// Returns a page of all customers, ordered by creation.
    fn customers(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Customer>>;
}

/// Storage of usage products.
pub trait UsageProducts {
    /// Stores a new usage product. Returns `Taken("usage_product_ref")` when the reference is not unique in the
    /// organization.
    fn insert_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Insertion>;
    /// Updates the profile of a usage product.
    fn update_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Update>;
    /// Returns the existing usage products among these references.
    fn usage_products_by_refs(
        &mut self,
        organization: OrganizationId,
        refs: &[UsageProductRef],
    ) -> StoreResult<Vec<UsageProduct>>;
    /// Returns at most two usage products with a name. Two results prove that the name is ambiguous.
    fn usage_products_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<UsageProduct>>;
    /// Returns the aggregations of the usage products that aggregate in another way than by the sum.
    fn aggregations(&mut self, organization: OrganizationId) -> StoreResult<Aggregations>;
    /// Returns a page of the usage products that match conditions on the last change. The order may be ascending or descending.
    fn listed_usage_products(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<UsageProduct>>;
    /// Returns a page of all usage products, ordered by creation.
    fn usage_products(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<UsageProduct>> {
        self.listed_usage_products(organization, &UpdateFilter::default(), ListSortKey::Created, page)
    }
}

/// Storage of pricings.
pub trait Pricings {
    /// Stores a new pricing. Returns `Taken("product_pricing_ref")` when the reference is not unique in the organization.
    fn insert_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Insertion>;
    /// Replaces the content of a pricing.
    fn update_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Update>;
    /// Returns the existing pricings among these references.
    fn pricings_by_refs(&mut self, organization: OrganizationId, refs: &[PricingRef]) -> StoreResult<Vec<Pricing>>;
    /// Returns a page of the pricings that match conditions on the last change. The order may be ascending or descending.
    fn listed_pricings(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Pricing>>;
    /// Returns a page of all pricings, ordered by creation.
    fn pricings(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<Pricing>> {
        self.listed_pricings(organization, &UpdateFilter::default(), ListSortKey::Created, page)
    }
}
