//! Who logs in. A mock stands in for the one port that is asked; the others are those of every test.

use std::sync::Arc;

use billing_application::access::log_in_administrator;
use billing_application::error::UseCaseError;
use billing_domain::ports::{MockPasswordHasher, PasswordCheck};

use crate::support::Bench;

#[test]
fn an_unknown_name_costs_the_check_of_a_password_too() {
    let mut bench = Bench::at("2026-01-01T00:00:00Z");
    let mut passwords = MockPasswordHasher::new();
    let is_without_hash = passwords.expect_check().withf(|password, hash| password == "a password" && hash.is_none());
    is_without_hash.times(1).returning(|_, _| PasswordCheck::Wrong);
    bench.services.passwords = Arc::new(passwords);
    let refused = log_in_administrator(&bench.services, "nobody@example.com", "a password");
    assert!(matches!(refused, Err(UseCaseError::InvalidCredentials)));
}
