//! Administrator log-ins. Each test mocks the ports under test and uses the shared fixtures for the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use billing_application::Services;
use billing_application::access::{AdministratorLogIn, log_in_administrator};
use billing_application::administrators::disable_administrator;
use billing_application::error::UseCaseError;
use billing_domain::access::{
    Administrator, CodeSecret, CodeSource, MAX_FAILED_CODES, PasswordHash, SealedSecret, SecondFactor, SecretDigest,
};
use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{
    Access, Insertion, MockCodeChecker, MockKeyMaker, MockPasswordHasher, MockSealer, PasswordCheck, SecretError, StoreError,
    transact,
};
use billing_testkit::FreshIds;
use billing_testkit::fixtures::{self, at};

use crate::support::{Bench, failing_store};

fn with_password<'a>(email: &'a str, password: &'a str) -> AdministratorLogIn<'a> {
    AdministratorLogIn { email, password, new_password: None, code: None, address: None, user_agent: None, request_id: None }
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

/// Returns an administrator and a key maker that gives all secrets the same digest. The caller mocks the password check.
fn bench_with_administrator() -> (Bench, Administrator) {
    bench_with(SecondFactor::Off)
}

fn bench_with(second_factor: SecondFactor) -> (Bench, Administrator) {
    let mut bench = Bench::at("2026-01-01T00:00:00Z");
    let administrator = fixtures::administrator(&FreshIds, bench.principal.organization());
    let administrator = Administrator { second_factor, ..administrator };
    transact(&*bench.services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.insert_administrator(&administrator)?))
        .map(|inserted| assert_eq!(inserted, Insertion::Done))
        .expect("an administrator");
    let mut keys = MockKeyMaker::new();
    keys.expect_new_secret().returning(|| Ok("a secret".to_owned()));
    keys.expect_digest().returning(|_| SecretDigest([7; 32]));
    bench.services.keys = Arc::new(keys);
    (bench, administrator)
}

#[test]
fn who_is_disabled_while_the_password_is_checked_is_not_let_in() {
    let (mut bench, administrator) = bench_with_administrator();
    let email = administrator.email.clone();
    let right = |meanwhile: Box<dyn Fn() + Send + Sync>| {
        let mut passwords = MockPasswordHasher::new();
        passwords.expect_is_outdated().returning(|_| false);
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

/// Returns a hasher that accepts any password and reports all hashes as outdated except its own.
fn renewing(meanwhile: impl Fn() + Send + Sync + 'static) -> MockPasswordHasher {
    let mut passwords = MockPasswordHasher::new();
    passwords.expect_check().returning(move |_, _| {
        meanwhile();
        PasswordCheck::Right
    });
    passwords.expect_is_outdated().returning(|hash| hash.0 != "renewed");
    passwords.expect_hash().returning(|_| Ok(PasswordHash("renewed".to_owned())));
    passwords
}

#[test]
fn an_outdated_hash_is_renewed_and_ends_no_session_of_its_owner() {
    let (mut bench, administrator) = bench_with_administrator();
    let email = administrator.email.clone();
    let stored = |services: &Services| {
        let found = transact(&*services.store, Access::Read, |tx| {
            let session = tx.session(SecretDigest([7; 32]))?;
            Ok::<_, UseCaseError>((
                tx.administrator_by_email(email.as_str())?.map(|found| found.password_hash),
                session.is_some(),
            ))
        });
        found.expect("an answer")
    };
    // Another log-in renews the hash while this log-in checks the old one. Both log-ins succeed.
    let (others, named, is_first) = (bench.services.clone(), email.clone(), AtomicBool::new(true));
    bench.services.passwords = Arc::new(renewing(move || {
        if is_first.swap(false, Ordering::Relaxed) {
            let mut services = others.clone();
            services.passwords = Arc::new(renewing(|| ()));
            let mut keys = MockKeyMaker::new();
            keys.expect_new_secret().returning(|| Ok("another secret".to_owned()));
            keys.expect_digest().returning(|_| SecretDigest([8; 32]));
            services.keys = Arc::new(keys);
            log_in_administrator(&services, with_password(named.as_str(), "a password")).expect("another session");
        }
    }));
    log_in_administrator(&bench.services, with_password(email.as_str(), "a password")).expect("a session");
    assert_eq!(stored(&bench.services), (Some(PasswordHash("renewed".to_owned())), true));
    let other = transact(&*bench.services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.session(SecretDigest([8; 32]))?));
    assert!(other.expect("an answer").is_some());
}

#[test]
fn a_password_that_is_not_taken_any_more_keeps_its_outdated_hash() {
    let (mut bench, administrator) = bench_with_administrator();
    let mut passwords = MockPasswordHasher::new();
    passwords.expect_check().returning(|_, _| PasswordCheck::Right);
    passwords.expect_is_outdated().returning(|_| true);
    passwords.expect_hash().returning(|_| Err(SecretError::CommonPassword));
    bench.services.passwords = Arc::new(passwords);
    let opened = log_in_administrator(&bench.services, with_password(administrator.email.as_str(), "a password"));
    assert_eq!(opened.expect("a session").administrator, administrator);
}

/// Returns a hasher with this result of each check.
fn checking(check: PasswordCheck) -> Arc<MockPasswordHasher> {
    let mut passwords = MockPasswordHasher::new();
    passwords.expect_is_outdated().returning(|_| false);
    passwords.expect_check().returning(move |_, _| check);
    Arc::new(passwords)
}

/// Returns a bench whose administrator has a second factor and knows the password.
fn bench_with_second_factor(failed_codes: u32) -> (Bench, Administrator) {
    let secret = SealedSecret(b"sealed".to_vec());
    let source = CodeSource { secret, since: at("2026-01-01T00:00:00Z"), last_step: 6, recovery: Vec::new(), failed_codes };
    let (mut bench, administrator) = bench_with(SecondFactor::On(source));
    let mut sealer = MockSealer::new();
    sealer.expect_open().returning(|_, _, sealed| (sealed == b"sealed").then(|| b"shared".to_vec()));
    bench.services.sealer = Arc::new(sealer);
    bench.services.passwords = checking(PasswordCheck::Right);
    (bench, administrator)
}

fn with_code(administrator: &Administrator) -> AdministratorLogIn<'_> {
    AdministratorLogIn { code: Some("123456"), ..with_password(administrator.email.as_str(), "a password") }
}

/// Returns a checker that is asked once about the code.
fn checking_once(step: Option<i64>) -> Arc<MockCodeChecker> {
    let mut codes = MockCodeChecker::new();
    let asked = |secret: &CodeSecret, code: &str, _: &Timestamp, after: &Option<i64>| {
        (secret.0.as_slice(), code, *after) == (b"shared", "123456", Some(6))
    };
    codes.expect_step_of().withf(asked).times(1).returning(move |_, _, _, _| step);
    Arc::new(codes)
}

#[test]
fn the_last_wrong_code_locks_the_device_whose_codes_are_not_checked_any_more() {
    let (mut bench, administrator) = bench_with_second_factor(MAX_FAILED_CODES - 1);
    bench.services.codes = checking_once(None);
    let log_in = || log_in_administrator(&bench.services, with_code(&administrator));
    assert!(matches!(log_in(), Err(UseCaseError::InvalidCode)));
    assert!(matches!(log_in(), Err(UseCaseError::SecondFactorLocked)));
    let locked = bench.audit_log().into_iter().filter(|entry| entry.action == AuditAction::LockSecondFactor);
    assert_eq!(locked.count(), 1);
}

#[test]
fn a_right_code_uses_its_step_up_and_resets_the_count() {
    let (mut bench, administrator) = bench_with_second_factor(3);
    bench.services.codes = checking_once(Some(7));
    log_in_administrator(&bench.services, with_code(&administrator)).expect("a session");
    let stored = bench.read(|tx| tx.administrator(administrator.admin_ref)).expect("an administrator");
    let SecondFactor::On(source) = stored.second_factor else { panic!("a second factor") };
    assert_eq!((source.last_step, source.failed_codes), (7, 0));
}

#[test]
fn no_code_is_checked_if_the_password_is_wrong() {
    let (mut bench, administrator) = bench_with_second_factor(0);
    bench.services.passwords = checking(PasswordCheck::Wrong);
    let refused = log_in_administrator(&bench.services, with_code(&administrator));
    assert!(matches!(refused, Err(UseCaseError::InvalidCredentials)));
}

#[test]
fn a_wrong_code_that_cannot_be_counted_is_an_error_of_the_store() {
    let (mut bench, administrator) = bench_with_second_factor(0);
    bench.services.codes = checking_once(None);
    // The first write creates the secret that encrypts second factors.
    bench.services.store = failing_store(&bench.store, 1);
    let failed = log_in_administrator(&bench.services, with_code(&administrator));
    assert!(matches!(failed, Err(UseCaseError::Store(StoreError::Unavailable(_)))));
}
