//! Who logs in. A mock stands in for the one port that is asked; the others are those of every test.

use std::sync::Arc;

use billing_application::access::{AdministratorLogIn, log_in_administrator};
use billing_application::administrators::disable_administrator;
use billing_application::error::UseCaseError;
use billing_domain::access::SecretDigest;
use billing_domain::ports::{Access, Insertion, MockKeyMaker, MockPasswordHasher, PasswordCheck, transact};
use billing_domain::refs::OrganizationId;
use billing_testkit::{FreshIds, fixtures};
use uuid::Uuid;

use crate::support::Bench;

fn with_password<'a>(email: &'a str, password: &'a str) -> AdministratorLogIn<'a> {
    AdministratorLogIn { email, password, new_password: None, code: None, user_agent: None, request_id: None }
}

#[test]
fn an_unknown_name_costs_the_check_of_a_password_too() {
    let mut bench = Bench::at("2026-01-01T00:00:00Z");
    let mut passwords = MockPasswordHasher::new();
    let is_without_hash = passwords.expect_check().withf(|password, hash| password == "a password" && hash.is_none());
    is_without_hash.times(1).returning(|_, _| PasswordCheck::Wrong);
    bench.services.passwords = Arc::new(passwords);
    let refused = log_in_administrator(&bench.services, with_password("nobody@example.com", "a password"));
    assert!(matches!(refused, Err(UseCaseError::InvalidCredentials)));
}

#[test]
fn who_is_disabled_while_the_password_is_checked_is_not_let_in() {
    let mut bench = Bench::at("2026-01-01T00:00:00Z");
    let administrator = fixtures::administrator(&FreshIds, OrganizationId::from_uuid(Uuid::nil()));
    let email = administrator.email.clone();
    transact(&*bench.services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.insert_administrator(&administrator)?))
        .map(|inserted| assert_eq!(inserted, Insertion::Done))
        .expect("an administrator");
    let mut keys = MockKeyMaker::new();
    keys.expect_new_secret().returning(|| Ok("a secret".to_owned()));
    keys.expect_digest().returning(|_| SecretDigest([7; 32]));
    bench.services.keys = Arc::new(keys);
    let right = |meanwhile: Box<dyn Fn() + Send + Sync>| {
        let mut passwords = MockPasswordHasher::new();
        passwords.expect_check().returning(move |_, _| {
            meanwhile();
            PasswordCheck::Right
        });
        Arc::new(passwords)
    };
    bench.services.passwords = right(Box::new(|| ()));
    let opened = log_in_administrator(&bench.services, with_password(email.as_str(), "a password")).expect("a session");
    assert_eq!(opened.administrator, administrator);

    let (others, named) = (bench.services.clone(), email.clone());
    bench.services.passwords = right(Box::new(move || drop(disable_administrator(&others, &named).expect("disabled"))));
    let refused = log_in_administrator(&bench.services, with_password(email.as_str(), "a password"));
    assert!(matches!(refused, Err(UseCaseError::InvalidCredentials)), "{refused:?}");
    let session = transact(&*bench.services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.session(SecretDigest([7; 32]))?));
    assert_eq!(session.expect("an answer"), None);
}
