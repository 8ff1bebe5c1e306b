//! Secrets as they are made and kept: those that all replicas share, and people's new passwords.

use billing_domain::access::{PasswordHash, SecretPurpose, SigningSecret};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Access, Insertion, KeyMaker, SecretError, Store, transact};
use billing_domain::violation::Violations;

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// The secrets of a purpose that all replicas share, newest first; the first who asks makes one.
///
/// # Errors
/// [`UseCaseError::Store`] or [`UseCaseError::Secret`].
pub fn shared_secrets(
    store: &dyn Store,
    keys: &dyn KeyMaker,
    now: Timestamp,
    purpose: SecretPurpose,
) -> UseCaseResult<Vec<SigningSecret>> {
    let present = transact(store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.signing_secrets(purpose)?))?;
    if !present.is_empty() {
        return Ok(present);
    }
    transact(store, Access::Write, |tx| {
        let kid = match purpose {
            SecretPurpose::BearerToken => "bearer-1",
            SecretPurpose::SessionCookie => "cookie-1",
            SecretPurpose::SecondFactor => "second-factor-1",
        };
        // Two of 32 random bytes each: a cookie key needs 64 bytes.
        let secret = format!("{}{}", keys.new_secret()?, keys.new_secret()?).into_bytes();
        let made = SigningSecret { kid: kid.to_owned(), purpose, secret, created_at: now };
        match tx.insert_signing_secret(&made)? {
            Insertion::Done => Ok(vec![made]),
            // Another replica was faster.
            Insertion::Taken(_) => Ok(tx.signing_secrets(purpose)?),
        }
    })
}

/// Hashes somebody's new password.
///
/// # Errors
/// [`UseCaseError::Invalid`] for one that can't be taken, or is the one before.
pub(crate) fn hash_new(services: &Services, password: &str, new_password: &str) -> UseCaseResult<PasswordHash> {
    let refused = |reason: String| Violations::one(&["new_password"], "password_refused", reason).into();
    if password == new_password {
        return Err(refused("must be another than the present one".to_owned()));
    }
    services.passwords.hash(new_password).map_err(|error| match error {
        SecretError::PasswordLength => refused("must have 12 to 72 bytes and no NUL".to_owned()),
        SecretError::CommonPassword => refused("is among the most common ones; choose another".to_owned()),
        other => other.into(),
    })
}
