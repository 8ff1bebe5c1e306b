//! Use cases that join an open transaction.

use billing_application::Services;
use billing_application::catalog::{create_usage_product, get_usage_product};
use billing_application::error::UseCaseError;
use billing_domain::ports::{Access, StoreError, transact};
use billing_testkit::fixtures;

use crate::support::Bench;

#[test]
fn use_cases_in_one_transaction_are_committed_together_and_refused_alone() {
    let bench = Bench::at("2026-01-01T00:00:00Z");
    let create = |services: &Services<'_>, name: &str| {
        let product = fixtures::usage_product(name);
        create_usage_product(services, &bench.principal, Some(product.usage_product_ref), product.profile)
    };
    let both = transact(&*bench.services.store, Access::Write, |tx| {
        bench.services.in_transaction(tx, |services| {
            create(services, "first")?;
            assert!(matches!(create(services, "first"), Err(UseCaseError::AlreadyExists { .. })));
            create(services, "second")
        })
    });
    both.expect("two usage products");
    let product =
        |name: &str| get_usage_product(&bench.services, &bench.principal, &fixtures::usage_product(name).usage_product_ref);
    assert!(product("first").is_ok() && product("second").is_ok());

    let neither: Result<(), UseCaseError> = transact(&*bench.services.store, Access::Write, |tx| {
        bench.services.in_transaction(tx, |services| create(services, "third"))?;
        Err(StoreError::Contended.into())
    });
    assert!(neither.is_err());
    assert!(product("third").is_err());
}
