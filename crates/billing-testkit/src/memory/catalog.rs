//! Entities, customers, usage products and pricings.

use billing_domain::catalog::{Pricing, UsageProduct};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::{Customer, Entity};
use billing_domain::ports::{Customers, Entities, Insertion, Pricings, StoreError, StoreResult, Update, UsageProducts};
use billing_domain::refs::{CustomerId, CustomerRef, EntityRef, OrganizationId, PricingRef, UsageProductRef};
use billing_domain::text::OneLine;

use super::{MemoryTx, page, sorted};

/// Enough to know whether a name says who is meant.
const NAMESAKES: usize = 2;

impl MemoryTx {
    /// Whether another entity has its number prefix, or has documents with numbers that begin with it.
    fn has_prefix_of_another(&self, organization: OrganizationId, entity: &Entity) -> bool {
        let prefix = &entity.profile.number_prefix;
        let others = self.state.entities.of(organization).filter(|row| row.entity_ref != entity.entity_ref);
        let heads = self.state.documents.of(organization).map(|row| &row.head);
        let mut of_others = heads.filter(|head| head.entity_ref != entity.entity_ref);
        others.map(|row| &row.profile.number_prefix).any(|had| had == prefix)
            || of_others.any(|head| head.number.prefix == *prefix)
    }
}

impl Entities for MemoryTx {
    fn insert_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Insertion> {
        if self.state.entities.of(organization).any(|row| row.entity_ref == entity.entity_ref) {
            return Ok(Insertion::Taken("entity_ref"));
        }
        if self.has_prefix_of_another(organization, entity) {
            return Ok(Insertion::Taken("number_prefix"));
        }
        self.state.entities.push(organization, entity.clone());
        Ok(Insertion::Done)
    }

    fn hold_entity(&mut self, organization: OrganizationId, read: &Entity) -> StoreResult<()> {
        if self.state.entities.of(organization).any(|row| row == read) { Ok(()) } else { Err(StoreError::Contended) }
    }

    fn update_entity(&mut self, organization: OrganizationId, entity: &Entity) -> StoreResult<Update> {
        let taken = self.has_prefix_of_another(organization, entity);
        let Some(row) = self.state.entities.of_mut(organization).find(|row| row.entity_ref == entity.entity_ref) else {
            return Ok(Update::Unknown);
        };
        if taken {
            return Ok(Update::Taken("number_prefix"));
        }
        row.profile = entity.profile.clone();
        Ok(Update::Done)
    }

    fn entities_by_refs(&mut self, organization: OrganizationId, refs: &[EntityRef]) -> StoreResult<Vec<Entity>> {
        let found = self.state.entities.of(organization).filter(|row| refs.contains(&row.entity_ref));
        Ok(sorted(found, |row| (row.created_at, row.entity_ref.clone())))
    }

    fn entities(&mut self, organization: OrganizationId, request: PageRequest) -> StoreResult<Page<Entity>> {
        Ok(page(self.state.entities.of(organization), request, |row| (row.created_at, row.entity_ref.clone())))
    }
}

impl Customers for MemoryTx {
    fn insert_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Insertion> {
        if self.state.customers.of(organization).any(|row| row.customer_ref == customer.customer_ref) {
            return Ok(Insertion::Taken("customer_ref"));
        }
        self.state.customers.push(organization, customer.clone());
        Ok(Insertion::Done)
    }

    fn update_customer(&mut self, organization: OrganizationId, customer: &Customer) -> StoreResult<Update> {
        match self.state.customers.of_mut(organization).find(|row| row.customer_ref == customer.customer_ref) {
            Some(row) => row.profile = customer.profile.clone(),
            None => return Ok(Update::Unknown),
        }
        Ok(Update::Done)
    }

    fn customers_by_refs(&mut self, organization: OrganizationId, refs: &[CustomerRef]) -> StoreResult<Vec<Customer>> {
        let found = self.state.customers.of(organization).filter(|row| refs.contains(&row.customer_ref));
        Ok(sorted(found, |row| (row.created_at, row.customer_ref.clone())))
    }

    fn customers_by_ids(&mut self, organization: OrganizationId, ids: &[CustomerId]) -> StoreResult<Vec<Customer>> {
        let found = self.state.customers.of(organization).filter(|row| ids.contains(&row.id));
        Ok(sorted(found, |row| (row.created_at, row.customer_ref.clone())))
    }

    fn customers_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<Customer>> {
        let found = self.state.customers.of(organization).filter(|row| row.profile.name == *name);
        let mut found = sorted(found, |row| (row.created_at, row.customer_ref.clone()));
        found.truncate(NAMESAKES);
        Ok(found)
    }

    fn customers(&mut self, organization: OrganizationId, request: PageRequest) -> StoreResult<Page<Customer>> {
        Ok(page(self.state.customers.of(organization), request, |row| (row.created_at, row.customer_ref.clone())))
    }
}

impl UsageProducts for MemoryTx {
    fn insert_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Insertion> {
        if self.state.usage_products.of(organization).any(|row| row.usage_product_ref == product.usage_product_ref) {
            return Ok(Insertion::Taken("usage_product_ref"));
        }
        self.state.usage_products.push(organization, product.clone());
        Ok(Insertion::Done)
    }

    fn update_usage_product(&mut self, organization: OrganizationId, product: &UsageProduct) -> StoreResult<Update> {
        match self.state.usage_products.of_mut(organization).find(|row| row.usage_product_ref == product.usage_product_ref) {
            Some(row) => row.profile = product.profile.clone(),
            None => return Ok(Update::Unknown),
        }
        Ok(Update::Done)
    }

    fn usage_products_by_refs(
        &mut self,
        organization: OrganizationId,
        refs: &[UsageProductRef],
    ) -> StoreResult<Vec<UsageProduct>> {
        let found = self.state.usage_products.of(organization).filter(|row| refs.contains(&row.usage_product_ref));
        Ok(sorted(found, |row| (row.created_at, row.usage_product_ref.clone())))
    }

    fn usage_products_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Vec<UsageProduct>> {
        let found = self.state.usage_products.of(organization).filter(|row| row.profile.name == *name);
        let mut found = sorted(found, |row| (row.created_at, row.usage_product_ref.clone()));
        found.truncate(NAMESAKES);
        Ok(found)
    }

    fn usage_products(&mut self, organization: OrganizationId, request: PageRequest) -> StoreResult<Page<UsageProduct>> {
        let rows = self.state.usage_products.of(organization);
        Ok(page(rows, request, |row| (row.created_at, row.usage_product_ref.clone())))
    }
}

impl Pricings for MemoryTx {
    fn insert_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Insertion> {
        if self.state.pricings.of(organization).any(|row| row.pricing_ref == pricing.pricing_ref) {
            return Ok(Insertion::Taken("product_pricing_ref"));
        }
        self.state.pricings.push(organization, pricing.clone());
        Ok(Insertion::Done)
    }

    fn update_pricing(&mut self, organization: OrganizationId, pricing: &Pricing) -> StoreResult<Update> {
        match self.state.pricings.of_mut(organization).find(|row| row.pricing_ref == pricing.pricing_ref) {
            Some(row) => row.content = pricing.content.clone(),
            None => return Ok(Update::Unknown),
        }
        Ok(Update::Done)
    }

    fn pricings_by_refs(&mut self, organization: OrganizationId, refs: &[PricingRef]) -> StoreResult<Vec<Pricing>> {
        let found = self.state.pricings.of(organization).filter(|row| refs.contains(&row.pricing_ref));
        Ok(sorted(found, |row| (row.created_at, row.pricing_ref.clone())))
    }

    fn pricings(&mut self, organization: OrganizationId, request: PageRequest) -> StoreResult<Page<Pricing>> {
        Ok(page(self.state.pricings.of(organization), request, |row| (row.created_at, row.pricing_ref.clone())))
    }
}
