//! Secrets shared by all replicas, and hashing of new passwords.

use billing_domain::access::{PasswordHash, SecretPurpose, SigningSecret, secrets_in_use};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Access, Insertion, KeyMaker, SecretError, Store, Tx, transact};
use billing_domain::violation::Violations;

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// Returns the shared secrets for a purpose, newest first. Creates one if none exists.
///
/// # Errors
/// Returns [`UseCaseError::Store`] or [`UseCaseError::Secret`].
pub fn shared_secrets(
    store: &dyn Store,
    keys: &dyn KeyMaker,
    now: Timestamp,
    purpose: SecretPurpose,
) -> UseCaseResult<Vec<SigningSecret>> {
    let present = stored_secrets(store, purpose)?;
    if !present.is_empty() {
        return Ok(present);
    }
    transact(store, Access::Write, |tx| shared_secrets_within(tx, keys, now, purpose))
}

/// Returns the shared secrets for a purpose within a transaction that may write, newest first. Creates one if none exists.
pub(crate) fn shared_secrets_within(
    tx: &mut dyn Tx,
    keys: &dyn KeyMaker,
    now: Timestamp,
    purpose: SecretPurpose,
) -> UseCaseResult<Vec<SigningSecret>> {
    let present = tx.signing_secrets(purpose)?;
    if !present.is_empty() {
        return Ok(present);
    }
    let made = new_secret(keys, now, purpose, 1)?;
    match tx.insert_signing_secret(&made)? {
        Insertion::Done => Ok(vec![made]),
        // Another replica created it first.
        Insertion::Taken(_) => Ok(tx.signing_secrets(purpose)?),
    }
}

fn new_secret(keys: &dyn KeyMaker, now: Timestamp, purpose: SecretPurpose, number: u32) -> UseCaseResult<SigningSecret> {
    let name = match purpose {
        SecretPurpose::BearerToken => "bearer",
        SecretPurpose::SessionCookie => "cookie",
        SecretPurpose::SecondFactor => "second-factor",
    };
    // Two secrets of 32 random bytes each, because a cookie key needs 64 bytes.
    let secret = format!("{}{}", keys.new_secret()?, keys.new_secret()?).into_bytes();
    Ok(SigningSecret { kid: format!("{name}-{number}"), purpose, secret, created_at: now })
}

/// Returns the shared secrets that are currently in use. The first one signs.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the secrets cannot be read.
pub fn shared_secrets_in_use(store: &dyn Store, now: Timestamp, purpose: SecretPurpose) -> UseCaseResult<Vec<SigningSecret>> {
    Ok(secrets_in_use(stored_secrets(store, purpose)?, now))
}

fn stored_secrets(store: &dyn Store, purpose: SecretPurpose) -> UseCaseResult<Vec<SigningSecret>> {
    transact(store, Access::Read, |tx| Ok(tx.signing_secrets(purpose)?))
}

/// Creates a new secret for a purpose and deletes those no longer in use. With `ends_present`, deletes all present ones,
/// which invalidates everything they signed. Only one secret for cookies exists at a time. Reserved for the command line,
/// because all organizations share these secrets.
///
/// # Errors
/// Returns [`UseCaseError::Store`], [`UseCaseError::Secret`], or [`UseCaseError::Conflict`] if the secret is rotated
/// concurrently.
pub fn rotate_secret(services: &Services, purpose: SecretPurpose, ends_present: bool) -> UseCaseResult<SigningSecret> {
    let now = services.machine_now();
    transact(&*services.store, Access::Write, |tx| {
        let present = tx.signing_secrets(purpose)?;
        let number = |secret: &SigningSecret| secret.kid.rsplit('-').next().and_then(|number| number.parse().ok());
        let made = new_secret(&*services.keys, now, purpose, 1 + present.iter().filter_map(number).max().unwrap_or(0))?;
        let kept = if ends_present || purpose == SecretPurpose::SessionCookie {
            Vec::new()
        } else {
            secrets_in_use(present.clone(), now)
        };
        for over in present.iter().filter(|secret| !kept.contains(secret)) {
            tx.delete_signing_secret(&over.kid)?;
        }
        match tx.insert_signing_secret(&made)? {
            Insertion::Done => Ok(made),
            Insertion::Taken(_) => {
                let detail = format!("{} was created at the same time: list the secrets before you retry", made.kid);
                Err(UseCaseError::Conflict { code: "secret_rotated", detail })
            }
        }
    })
}

/// Hashes a new password.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] if the new password is not accepted or equals the present one.
pub(crate) fn hash_new(services: &Services, password: &str, new_password: &str) -> UseCaseResult<PasswordHash> {
    let refused = |reason: String| Violations::one(&["new_password"], "password_refused", reason).into();
    if password == new_password {
        return Err(refused("must differ from the current password".to_owned()));
    }
    services.passwords.hash(new_password).map_err(|error| match error {
        SecretError::PasswordLength => refused("must have 12 to 72 bytes and no NUL".to_owned()),
        SecretError::CommonPassword => refused("must not be a common password".to_owned()),
        other => other.into(),
    })
}
