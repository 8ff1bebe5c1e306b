//! The second factor of log-ins: the encryption of its secret and the check of codes.

use billing_domain::access::{Administrator, CodeSecret, CodeSource, SealedSecret, SecondFactor, SecretPurpose, SigningSecret};
use billing_domain::audit::AuditAction;
use billing_domain::ports::{Access, StoreError, transact};
use billing_domain::refs::AdminRef;

use crate::Services;
use crate::audit::{AuditChange, AuditSubject, record_audit_event};
use crate::carry_out::AuditContext;
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

/// The result of the check of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeCheck {
    /// The code is valid.
    Accepted(CodeKind),
    /// The code is wrong or was used before. [`count_failed_code`] counts it.
    Refused,
    /// Too many codes of the device failed, so it was not checked.
    Locked,
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

/// Uses up a code if the administrator's second factor accepts it. An accepted code resets the number of failed codes.
pub(crate) fn take_code(services: &Services, administrator: &mut Administrator, code: &str) -> UseCaseResult<CodeCheck> {
    let admin_ref = administrator.admin_ref;
    let SecondFactor::On(source) = &mut administrator.second_factor else { return Ok(CodeCheck::Refused) };
    let kind = if is_of_device(code) {
        if source.is_locked() {
            return Ok(CodeCheck::Locked);
        }
        let secret = unseal(services, admin_ref, &source.secret)?;
        services.codes.step_of(&secret, code, services.machine_now(), Some(source.last_step)).map(|step| {
            source.last_step = step;
            CodeKind::Timed
        })
    } else {
        take_recovery_code(services, source, code)
    };
    Ok(kind.map_or(CodeCheck::Refused, |kind| {
        source.failed_codes = 0;
        CodeCheck::Accepted(kind)
    }))
}

/// Counts a refused code of the device that was sent with the right password. The last code of the limit locks the device's
/// codes, and the audit log records this once. A recovery code is not counted, because nobody can guess its 80 bits.
pub(crate) fn count_failed_code(
    services: &Services,
    administrator: &Administrator,
    code: &str,
    doer: AuditContext<'_>,
) -> UseCaseResult<()> {
    if !is_of_device(code) {
        return Ok(());
    }
    transact(&*services.store, Access::Write, |tx| {
        // Other servers count at the same time, so the number is that of the locked row.
        let Some(mut present) = tx.hold_administrator(administrator.email.as_str())? else { return Ok(()) };
        let SecondFactor::On(source) = &mut present.second_factor else { return Ok(()) };
        if source.is_locked() {
            return Ok(());
        }
        source.failed_codes += 1;
        let is_locked = source.is_locked();
        tx.update_administrator(&present)?;
        if is_locked {
            let locked = AuditChange::Unshown(AuditSubject::Administrator(&present));
            record_audit_event(tx, services, doer, AuditAction::LockSecondFactor, locked)?;
        }
        Ok::<_, UseCaseError>(())
    })
}

/// Returns whether a code has the form of a device's code, which is digits only.
fn is_of_device(code: &str) -> bool {
    code.bytes().all(|byte| byte.is_ascii_digit() || byte == b' ')
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
    shared_secrets(&*services.store, &*services.keys, services.machine_now(), SecretPurpose::SecondFactor)
}

fn text(secret: &SigningSecret) -> Result<&str, UseCaseError> {
    std::str::from_utf8(&secret.secret).map_err(|_| corrupt("the secret of second factors is no text").into())
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(what.to_owned())
}
