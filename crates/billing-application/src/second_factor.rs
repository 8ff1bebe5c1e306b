//! The second factor of log-ins: the encryption of its secret and the check of codes.

use billing_domain::access::{Administrator, CodeSecret, CodeSource, SealedSecret, SecondFactor, SecretPurpose, SigningSecret};
use billing_domain::ports::StoreError;
use billing_domain::refs::AdminRef;

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::secrets::shared_secrets;

/// The kind of an accepted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// A time-based code of a device.
    Timed,
    /// A recovery code for a lost device.
    Recovery,
}

/// Encrypts the secret of an administrator's second factor.
pub(crate) fn seal(services: &Services, admin_ref: AdminRef, secret: &CodeSecret) -> UseCaseResult<SealedSecret> {
    let keys = encryption(services)?;
    let newest = keys.first().ok_or_else(|| corrupt("there is no secret to encrypt second factors with"))?;
    Ok(SealedSecret(services.sealer.seal(text(newest)?, &place(admin_ref), &secret.0)?))
}

/// Decrypts the secret of an administrator's second factor.
pub(crate) fn unseal(services: &Services, admin_ref: AdminRef, sealed: &SealedSecret) -> UseCaseResult<CodeSecret> {
    for key in &encryption(services)? {
        if let Some(secret) = services.sealer.open(text(key)?, &place(admin_ref), &sealed.0) {
            return Ok(CodeSecret(secret));
        }
    }
    Err(corrupt("a second factor was encrypted with a secret that isn't there").into())
}

/// Uses up a code if the administrator's second factor accepts it. Returns `None` if the code is not accepted.
pub(crate) fn take_code(services: &Services, administrator: &mut Administrator, code: &str) -> UseCaseResult<Option<CodeKind>> {
    let admin_ref = administrator.admin_ref;
    let SecondFactor::On(source) = &mut administrator.second_factor else { return Ok(None) };
    if code.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ') {
        let secret = unseal(services, admin_ref, &source.secret)?;
        let step = services.codes.step_of(&secret, code, services.now(), Some(source.last_step));
        return Ok(step.map(|step| {
            source.last_step = step;
            CodeKind::Timed
        }));
    }
    Ok(take_recovery_code(services, source, code))
}

fn take_recovery_code(services: &Services, source: &mut CodeSource, code: &str) -> Option<CodeKind> {
    let code = bare(code);
    let place = source.recovery.iter().position(|digest| services.keys.matches(&code, Some(digest)))?;
    source.recovery.remove(place);
    Some(CodeKind::Recovery)
}

/// Returns a recovery code without separators and in upper case.
pub(crate) fn bare(code: &str) -> String {
    code.chars().filter(|letter| !matches!(letter, '-' | ' ')).map(|letter| letter.to_ascii_uppercase()).collect()
}

fn place(admin_ref: AdminRef) -> String {
    format!("second factor of {admin_ref}")
}

fn encryption(services: &Services) -> UseCaseResult<Vec<SigningSecret>> {
    shared_secrets(&*services.store, &*services.keys, services.now(), SecretPurpose::SecondFactor)
}

fn text(secret: &SigningSecret) -> Result<&str, UseCaseError> {
    std::str::from_utf8(&secret.secret).map_err(|_| corrupt("the secret of second factors is no text").into())
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}
