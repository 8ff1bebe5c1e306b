//! The administrator's own account: sessions, password and second factor.

use billing_domain::access::{
    Actor, AdminSession, Administrator, CodeSource, Permission, Principal, RECOVERY_CODES, SecondFactor, SecretDigest,
};
use billing_domain::audit::AuditAction;
use billing_domain::party::Organization;
use billing_domain::ports::{Access, PasswordCheck, SecretError, Tx, transact};
use billing_domain::refs::{AdminRef, SessionRef};
use billing_domain::violation::Violations;

use crate::audit::{AuditChange, AuditSubject, record_audit_event, record_audit_event_throttled, was_recorded_recently};
use crate::carry_out::{AuditContext, Cx};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, second_factor_locked};
use crate::second_factor::{CodeCheck, CodeKind, bare, count_failed_code, seal, take_code, unseal};
use crate::secrets::hash_new;
use crate::{Services, UseCase, allow};

/// The current administrator and session.
#[derive(Clone, Debug)]
pub struct OwnAccount {
    /// The session of the request.
    pub session: AdminSession,
    /// The administrator.
    pub administrator: Administrator,
    /// The administrator's organization.
    pub organization: Organization,
}

/// Returns the current administrator and session.
///
/// # Errors
/// Returns [`UseCaseError::Unauthenticated`] if the session has ended in the meantime.
pub fn own_account(cx: &mut Cx<'_>, session: &str) -> UseCaseResult<OwnAccount> {
    let (admin_ref, digest) = (oneself(cx.by)?, cx.services.keys.digest(session));
    let session = cx.tx.session(digest)?.ok_or(UseCaseError::Unauthenticated)?;
    let administrator = cx.tx.administrator(admin_ref)?.ok_or(UseCaseError::Unauthenticated)?;
    let organization = cx.tx.organization(administrator.organization)?.ok_or(UseCaseError::Unauthenticated)?;
    Ok(OwnAccount { session, administrator, organization })
}

/// Changes the administrator's own password and ends their other sessions.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] if the present password is wrong or the new password is not accepted.
pub fn change_password(
    services: &Services,
    principal: &Principal,
    session: &str,
    password: &str,
    new_password: &str,
) -> UseCaseResult<()> {
    allow(principal, UseCase::ChangePassword)?;
    let admin_ref = oneself(principal.actor())?;
    let present = with_password(services, principal, password)?;
    let password_hash = hash_new(services, password, new_password)?;
    let kept = services.keys.digest(session);
    transact(&*services.store, Access::Write, |tx| {
        let mut changed = held(tx, &present)?;
        changed.password_hash = password_hash.clone();
        tx.update_administrator(&changed)?;
        tx.delete_sessions(admin_ref, Some(kept))?;
        let change = AuditChange::Unshown(AuditSubject::Administrator(&changed));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::ChangePassword, change)
    })
}

/// Checks the administrator's own password again. For 5 minutes, the session may then do what could take over an
/// organization.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] if the password is wrong.
pub fn confirm_identity(services: &Services, principal: &Principal, session: &str, password: &str) -> UseCaseResult<()> {
    allow(principal, UseCase::ConfirmIdentity)?;
    with_password(services, principal, password)?;
    let (digest, now) = (services.keys.digest(session), services.machine_now());
    transact(&*services.store, Access::Write, |tx| Ok(tx.confirm_session(digest, now)?))
}

/// A second factor that is not confirmed by a code yet.
#[derive(Clone)]
pub struct SecondFactorEnrollment {
    /// The administrator's e-mail.
    pub email: String,
    /// The secret in the form that people enter into a device.
    pub secret: String,
}

impl std::fmt::Debug for SecondFactorEnrollment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Enrolled({} ***)", self.email)
    }
}

/// Creates the secret of a second factor. Replaces a secret that is not confirmed yet.
///
/// # Errors
/// Returns [`UseCaseError::Conflict`] if a second factor is active.
pub fn enroll_second_factor(services: &Services, principal: &Principal) -> UseCaseResult<SecondFactorEnrollment> {
    allow(principal, UseCase::EnrollSecondFactor)?;
    let admin_ref = oneself(principal.actor())?;
    let secret = services.codes.new_code_secret()?;
    let sealed = seal(services, admin_ref, &secret)?;
    let email = transact(&*services.store, Access::Write, |tx| {
        let mut administrator = held_by_ref(tx, admin_ref)?;
        if let SecondFactor::On(_) = administrator.second_factor {
            return Err(is_on());
        }
        administrator.second_factor = SecondFactor::Enrolled(sealed.clone());
        tx.update_administrator(&administrator)?;
        Ok(administrator.email)
    })?;
    Ok(SecondFactorEnrollment { email: email.to_string(), secret: services.codes.spelled(&secret) })
}

/// Recovery codes for a lost device, shown only once.
#[derive(Clone)]
pub struct RecoveryCodes(pub Vec<String>);

impl std::fmt::Debug for RecoveryCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecoveryCodes(***)")
    }
}

/// Activates the second factor after a first code proves that the device has the secret. From then on, log-ins require a
/// code.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Invalid`] if the code is wrong.
/// - [`UseCaseError::Conflict`] if no second factor waits for confirmation.
pub fn confirm_second_factor(services: &Services, principal: &Principal, code: &str) -> UseCaseResult<RecoveryCodes> {
    allow(principal, UseCase::ConfirmSecondFactor)?;
    let admin_ref = oneself(principal.actor())?;
    let codes: Vec<String> =
        (0..RECOVERY_CODES).map(|_| services.codes.new_recovery_code()).collect::<Result<_, SecretError>>()?;
    let recovery: Vec<SecretDigest> = codes.iter().map(|code| services.keys.digest(&bare(code))).collect();
    let now = services.now();
    let waiting = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.administrator(admin_ref)?))?;
    let waiting = waiting.ok_or(UseCaseError::Unauthenticated)?;
    let sealed = match &waiting.second_factor {
        SecondFactor::Enrolled(sealed) => sealed.clone(),
        SecondFactor::On(_) => return Err(is_on()),
        SecondFactor::Off => {
            let detail = "no enrollment of a second factor is in progress: start with POST /auth/second-factor/enroll".to_owned();
            return Err(UseCaseError::Conflict { code: "second_factor_not_enrolled", detail });
        }
    };
    let secret = unseal(services, admin_ref, &sealed)?;
    let last_step = services.codes.step_of(&secret, code, services.machine_now(), None).ok_or_else(wrong_code)?;
    transact(&*services.store, Access::Write, |tx| {
        let present = held(tx, &waiting)?;
        let source = CodeSource { secret: sealed.clone(), since: now, last_step, recovery: recovery.clone(), failed_codes: 0 };
        let changed = Administrator { second_factor: SecondFactor::On(source), updated_at: now, ..present.clone() };
        tx.update_administrator(&changed)?;
        let change = AuditChange::From(AuditSubject::Administrator(&present), AuditSubject::Administrator(&changed));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::AddSecondFactor, change)
    })?;
    Ok(RecoveryCodes(codes))
}

/// Removes the second factor, so that log-ins no longer require a code.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Invalid`] if the password or code is wrong.
/// - [`UseCaseError::Conflict`] if no second factor is active, or if it accepts only recovery codes.
pub fn remove_second_factor(services: &Services, principal: &Principal, password: &str, code: &str) -> UseCaseResult<()> {
    allow(principal, UseCase::RemoveSecondFactor)?;
    let present = with_password(services, principal, password)?;
    if !matches!(present.second_factor, SecondFactor::On(_)) {
        let detail = "the account has no second factor".to_owned();
        return Err(UseCaseError::Conflict { code: "second_factor_off", detail });
    }
    let kind = match take_code(services, &mut present.clone(), code)? {
        CodeCheck::Accepted(kind) => kind,
        CodeCheck::Refused => {
            count_failed_code(services, &present, code, AuditContext::of(principal))?;
            return Err(wrong_code());
        }
        CodeCheck::Locked => {
            return Err(UseCaseError::Conflict { code: "second_factor_locked", detail: second_factor_locked() });
        }
    };
    transact(&*services.store, Access::Write, |tx| {
        let present = held(tx, &present)?;
        let changed = Administrator { second_factor: SecondFactor::Off, updated_at: services.now(), ..present.clone() };
        tx.update_administrator(&changed)?;
        if kind == CodeKind::Recovery {
            let used = AuditChange::Unshown(AuditSubject::Administrator(&present));
            record_audit_event(tx, services, AuditContext::of(principal), AuditAction::UseRecoveryCode, used)?;
        }
        let change = AuditChange::From(AuditSubject::Administrator(&present), AuditSubject::Administrator(&changed));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::RemoveSecondFactor, change)
    })
}

/// A session of the current administrator.
#[derive(Clone, Debug)]
pub struct OwnSession {
    /// The session.
    pub session: AdminSession,
    /// Whether it is the session of the request.
    pub is_current: bool,
}

/// Returns the administrator's own valid sessions, newest first.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the sessions cannot be read.
pub fn list_sessions(cx: &mut Cx<'_>, session: &str) -> UseCaseResult<Vec<OwnSession>> {
    let (now, current) = (cx.services.machine_now(), cx.services.keys.digest(session));
    let live = cx.tx.sessions(oneself(cx.by)?)?.into_iter().filter(|session| session.is_live(now));
    Ok(live.map(|session| OwnSession { is_current: session.digest == current, session }).collect())
}

/// Ends one of the administrator's own sessions, which may be the current one.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the administrator has no such session.
pub fn end_session(cx: &mut Cx<'_>, session_ref: SessionRef) -> UseCaseResult<()> {
    let admin_ref = oneself(cx.by)?;
    let administrator = held_by_ref(cx.tx, admin_ref)?;
    if !cx.tx.delete_session_of(admin_ref, session_ref)? {
        return Err(UseCaseError::Unknown(ResourceKind::Session));
    }
    note_end(cx, &administrator)
}

/// Ends all of the administrator's own sessions except the current one.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the sessions cannot be deleted.
pub fn end_other_sessions(cx: &mut Cx<'_>, session: &str) -> UseCaseResult<()> {
    let (admin_ref, kept) = (oneself(cx.by)?, cx.services.keys.digest(session));
    let administrator = held_by_ref(cx.tx, admin_ref)?;
    if cx.tx.sessions(admin_ref)?.iter().all(|session| session.digest == kept) {
        return Ok(());
    }
    cx.tx.delete_sessions(admin_ref, Some(kept))?;
    note_end(cx, &administrator)
}

fn note_end(cx: &mut Cx<'_>, administrator: &Administrator) -> UseCaseResult<()> {
    cx.audit(AuditAction::EndSessions, AuditChange::Unshown(AuditSubject::Administrator(administrator)))
}

/// Returns the current administrator, because only administrators have an account.
fn oneself(by: Actor) -> UseCaseResult<AdminRef> {
    match by {
        Actor::Admin(admin_ref) => Ok(admin_ref),
        Actor::ApiKey(_) | Actor::Service => Err(UseCaseError::Forbidden(Permission::Administrator)),
    }
}

/// Checks the present password outside any transaction and returns the administrator. A wrong password is in the audit log, at
/// most once a minute: somebody may have taken over the session.
fn with_password(services: &Services, principal: &Principal, password: &str) -> UseCaseResult<Administrator> {
    let admin_ref = oneself(principal.actor())?;
    let present = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.administrator(admin_ref)?))?;
    let present = present.ok_or(UseCaseError::Unauthenticated)?;
    match services.passwords.check(password, Some(&present.password_hash)) {
        PasswordCheck::Right => Ok(present),
        PasswordCheck::Wrong => {
            let (doer, thing) = (AuditContext::of(principal), AuditSubject::Administrator(&present));
            let action = AuditAction::FailConfirmation;
            // Check in a read transaction first, so that repeated attempts do not block writers.
            let is_recorded = |tx: &mut dyn Tx| was_recorded_recently(tx, services, present.organization, action, thing);
            if !transact(&*services.store, Access::Read, is_recorded)? {
                transact(&*services.store, Access::Write, |tx| record_audit_event_throttled(tx, services, doer, action, thing))?;
            }
            Err(Violations::one(&["password"], "wrong_password", "must be your current password").into())
        }
    }
}

/// Locks an administrator, who must not have changed since they were loaded.
fn held(tx: &mut dyn Tx, looked_at: &Administrator) -> UseCaseResult<Administrator> {
    let present = tx.hold_administrator(looked_at.email.as_str())?;
    present.filter(|present| present.equals_except_log_ins(looked_at)).ok_or_else(|| {
        let detail = "your account was changed at the same time: retry".to_owned();
        UseCaseError::Conflict { code: "account_changed", detail }
    })
}

fn held_by_ref(tx: &mut dyn Tx, admin_ref: AdminRef) -> UseCaseResult<Administrator> {
    let found = tx.administrator(admin_ref)?.ok_or(UseCaseError::Unauthenticated)?;
    tx.hold_administrator(found.email.as_str())?.ok_or(UseCaseError::Unauthenticated)
}

fn is_on() -> UseCaseError {
    let detail = "the account already has a second factor: remove it first".to_owned();
    UseCaseError::Conflict { code: "second_factor_on", detail }
}

fn wrong_code() -> UseCaseError {
    Violations::one(&["code"], "invalid_code", "must be a valid code that was not used before").into()
}
