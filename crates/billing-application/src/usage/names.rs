//! Whom and what events name, each looked up once for all of them.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::catalog::UsageProduct;
use billing_domain::party::Customer;
use billing_domain::ports::Tx;
use billing_domain::refs::{CustomerRef, OrganizationId, UsageProductRef};
use billing_domain::text::Line;
use billing_domain::violation::Violations;

use super::record::{NamedCustomer, NamedUsageProduct, NewUsageEvent};
use crate::error::{Thing, UseCaseResult, unknown_reference};

/// Customers and usage products by what events call them.
pub(super) struct Names {
    customers: BTreeMap<CustomerRef, Customer>,
    customers_by_name: BTreeMap<Line, Vec<Customer>>,
    products: BTreeMap<UsageProductRef, UsageProduct>,
    products_by_name: BTreeMap<Line, Vec<UsageProduct>>,
}

/// The customer and the usage product of an event.
#[derive(Clone, Copy)]
pub(super) struct Named<'n> {
    pub(super) customer: &'n Customer,
    pub(super) product: &'n UsageProduct,
}

impl Names {
    /// Reads everything that events name.
    pub(super) fn read(tx: &mut dyn Tx, organization: OrganizationId, events: &[NewUsageEvent]) -> UseCaseResult<Self> {
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
        let customers = if customer_refs.is_empty() { Vec::new() } else { tx.customers_by_refs(organization, &customer_refs)? };
        let products = if product_refs.is_empty() { Vec::new() } else { tx.usage_products_by_refs(organization, &product_refs)? };
        let mut names = Self {
            customers: customers.into_iter().map(|customer| (customer.customer_ref.clone(), customer)).collect(),
            customers_by_name: BTreeMap::new(),
            products: products.into_iter().map(|product| (product.usage_product_ref.clone(), product)).collect(),
            products_by_name: BTreeMap::new(),
        };
        for name in customer_names {
            let found = tx.customers_by_name(organization, &name)?;
            names.customers_by_name.insert(name, found);
        }
        for name in product_names {
            let found = tx.usage_products_by_name(organization, &name)?;
            names.products_by_name.insert(name, found);
        }
        Ok(names)
    }

    /// What an event names.
    ///
    /// # Errors
    /// What names nothing, or more than one.
    pub(super) fn of(&self, event: &NewUsageEvent) -> Result<Named<'_>, Violations> {
        let mut violations = Violations::none();
        let (path, found) = match &event.customer {
            NamedCustomer::Ref(customer_ref) => ("customer_ref", Vec::from_iter(self.customers.get(customer_ref))),
            NamedCustomer::Name(name) => ("customer_name", self.customers_by_name.get(name).into_iter().flatten().collect()),
        };
        let customer = one_of(&mut violations, path, Thing::Customer, &found);
        let (path, found) = match &event.usage_product {
            NamedUsageProduct::Ref(product_ref) => ("usage_product_ref", Vec::from_iter(self.products.get(product_ref))),
            NamedUsageProduct::Name(name) => {
                ("usage_product_name", self.products_by_name.get(name).into_iter().flatten().collect())
            }
        };
        let product = one_of(&mut violations, path, Thing::UsageProduct, &found);
        match (customer, product) {
            (Some(customer), Some(product)) => Ok(Named { customer, product }),
            (_, _) => Err(violations),
        }
    }
}

fn one_of<'n, T>(violations: &mut Violations, path: &str, thing: Thing, found: &[&'n T]) -> Option<&'n T> {
    if found.len() > 1 {
        let detail = format!("is the name of several {}s: give the reference instead", thing.word());
        violations.add(&[path], "ambiguous_name", detail);
        return None;
    }
    if found.is_empty() {
        violations.extend_below(&[], unknown_reference(&[path], thing));
    }
    found.first().copied()
}
