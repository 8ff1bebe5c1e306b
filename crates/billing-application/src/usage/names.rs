//! Looks up the customers and usage products that events name, once for all events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::catalog::UsageProduct;
use billing_domain::event_input::{NamedCustomer, NamedUsageProduct, NewUsageEvent};
use billing_domain::party::Customer;
use billing_domain::ports::Tx;
use billing_domain::refs::{CustomerRef, OrganizationId, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use super::event_cache::CacheKey;
use crate::error::{ResourceKind, UseCaseResult, unknown_reference};

/// Customers and usage products by the references and names in events.
#[derive(Default)]
pub(super) struct NameLookup {
    customers: BTreeMap<CustomerRef, Arc<Customer>>,
    customers_by_name: BTreeMap<OneLine, Vec<Arc<Customer>>>,
    products: BTreeMap<UsageProductRef, Arc<UsageProduct>>,
    products_by_name: BTreeMap<OneLine, Vec<Arc<UsageProduct>>>,
}

impl NameLookup {
    /// Loads all customers and usage products that the events name. They replace those that are known.
    pub(super) fn read<'e>(
        &mut self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        events: impl Iterator<Item = &'e NewUsageEvent>,
    ) -> UseCaseResult<()> {
        let (mut customer_refs, mut customer_names) = (BTreeSet::new(), BTreeSet::new());
        let (mut product_refs, mut product_names) = (BTreeSet::new(), BTreeSet::new());
        for event in events {
            match &event.customer {
                NamedCustomer::Ref(customer_ref) => customer_refs.insert(customer_ref.clone()),
                NamedCustomer::Name(name) => customer_names.insert(name.clone()),
            };
            match &event.usage_product {
                NamedUsageProduct::Ref(product_ref) => product_refs.insert(product_ref.clone()),
                NamedUsageProduct::Name(name) => product_names.insert(name.clone()),
            };
        }
        let (customer_refs, product_refs) = (Vec::from_iter(customer_refs), Vec::from_iter(product_refs));
        let (customers, products) = tx.named_by_events(organization, &customer_refs, &product_refs)?;
        for customer in customers {
            self.customers.insert(customer.customer_ref.clone(), Arc::new(customer));
        }
        for product in products {
            self.products.insert(product.usage_product_ref.clone(), Arc::new(product));
        }
        for name in customer_names {
            let found = tx.customers_by_name(organization, &name)?;
            self.customers_by_name.insert(name, found.into_iter().map(Arc::new).collect());
        }
        for name in product_names {
            let found = tx.usage_products_by_name(organization, &name)?;
            self.products_by_name.insert(name, found.into_iter().map(Arc::new).collect());
        }
        Ok(())
    }

    /// Adds a customer and a usage product that were read before.
    pub(super) fn add(&mut self, customer: Arc<Customer>, product: Arc<UsageProduct>) {
        self.customers.insert(customer.customer_ref.clone(), customer);
        self.products.insert(product.usage_product_ref.clone(), product);
    }

    /// Returns the customer and usage product with the references of a key.
    pub(super) fn shared(&self, key: &CacheKey) -> Option<(Arc<Customer>, Arc<UsageProduct>)> {
        Some((Arc::clone(self.customers.get(&key.customer)?), Arc::clone(self.products.get(&key.usage_product)?)))
    }

    /// Returns the customer that an event names.
    ///
    /// # Errors
    /// Returns a violation if the reference does not exist, or if no customer or more than one has the name.
    pub(super) fn customer_of(&self, event: &NewUsageEvent) -> Result<&Arc<Customer>, Violations> {
        match &event.customer {
            NamedCustomer::Ref(customer_ref) => one_of("customer_ref", ResourceKind::Customer, self.customers.get(customer_ref)),
            NamedCustomer::Name(name) => {
                one_of("customer_name", ResourceKind::Customer, self.customers_by_name.get(name).into_iter().flatten())
            }
        }
    }

    /// Returns the usage product that an event names.
    ///
    /// # Errors
    /// Returns a violation if the reference does not exist, or if no usage product or more than one has the name.
    pub(super) fn product_of(&self, event: &NewUsageEvent) -> Result<&Arc<UsageProduct>, Violations> {
        match &event.usage_product {
            NamedUsageProduct::Ref(product_ref) => {
                one_of("usage_product_ref", ResourceKind::UsageProduct, self.products.get(product_ref))
            }
            NamedUsageProduct::Name(name) => {
                one_of("usage_product_name", ResourceKind::UsageProduct, self.products_by_name.get(name).into_iter().flatten())
            }
        }
    }
}

fn one_of<'n, T: 'n>(path: &str, thing: ResourceKind, found: impl IntoIterator<Item = &'n T>) -> Result<&'n T, Violations> {
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => {
            let detail = format!("is the name of several {}s: use the reference instead", thing.word());
            Err(Violations::one(&[path], "ambiguous_name", detail))
        }
        (None, _) => Err(unknown_reference(&[path], thing)),
    }
}
