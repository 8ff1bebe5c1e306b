//! Resolution of requests to agreed terms (billing rules 7). This module performs no lookups: referenced objects are
//! passed in as values.

use super::terms::{ProductTerms, RequestedProduct};
use crate::catalog::{Pricing, UsageProduct};
use crate::refs::{EntityRef, PricingRef};
use crate::violation::Violations;

/// The catalog objects that a request refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The current pricings of the request.
    pub pricings: Vec<Pricing>,
    /// The usage products of the line items of these pricings.
    pub usage_products: Vec<UsageProduct>,
    /// The existing entities among those of the request.
    pub entities: Vec<EntityRef>,
    /// The billing entity of products that state no entity: the default of the customer, or else of the organization.
    pub default_entity: Option<EntityRef>,
}

impl Catalog {
    /// Returns a pricing.
    ///
    /// # Errors
    /// Returns `unknown_reference`, with a path below the product.
    pub fn pricing(&self, pricing_ref: &PricingRef) -> Result<&Pricing, Violations> {
        let found = self.pricings.iter().find(|pricing| pricing.pricing_ref == *pricing_ref);
        let detail = "must be the reference of an existing pricing";
        found.ok_or_else(|| Violations::one(&["product_pricing_ref"], "unknown_reference", detail))
    }

    /// Returns the billing entity of a product: the stated entity, or else the default.
    ///
    /// # Errors
    /// Returns `unknown_reference` or `entity_required`, with a path below the product.
    pub fn entity(&self, stated: Option<&EntityRef>) -> Result<EntityRef, Violations> {
        match (stated, &self.default_entity) {
            (Some(stated), _) if self.entities.contains(stated) => Ok(stated.clone()),
            (Some(_), _) => {
                Err(Violations::one(&["entity_ref"], "unknown_reference", "must be the reference of an existing entity"))
            }
            (None, Some(default)) => Ok(default.clone()),
            (None, None) => {
                let detail = "must be given, because neither the customer nor the organization has a default entity";
                Err(Violations::one(&["entity_ref"], "entity_required", detail))
            }
        }
    }

    /// Resolves the terms of one product.
    ///
    /// # Errors
    /// Returns every violation, with paths below the product.
    pub fn resolve_terms(&self, request: RequestedProduct) -> Result<ProductTerms, Violations> {
        match (self.pricing(&request.pricing_ref), self.entity(request.entity_ref.as_ref())) {
            (Ok(pricing), Ok(entity_ref)) => ProductTerms::agree(request, pricing, &self.usage_products, entity_ref),
            (pricing, entity) => {
                let mut found = Violations::none();
                for violations in [pricing.err(), entity.err()].into_iter().flatten() {
                    found.extend_below(&[], violations);
                }
                Err(found)
            }
        }
    }

    /// Resolves the terms of every product.
    ///
    /// # Errors
    /// Returns every violation of every product, with paths below the contract.
    pub fn agree_all(&self, requests: &[RequestedProduct]) -> Result<Vec<ProductTerms>, Violations> {
        let mut found = Violations::none();
        let mut agreed = Vec::new();
        for (i, request) in requests.iter().enumerate() {
            match self.resolve_terms(request.clone()) {
                Ok(terms) => agreed.push(terms),
                Err(violations) => found.extend_below(&["products", &i.to_string()], violations),
            }
        }
        found.or(agreed)
    }
}
