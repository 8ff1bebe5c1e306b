//! What administrators see and change of their own account: their session, their password, their second factor.

use billing_domain::access::{
    Actor, AdminSession, Administrator, CodeSource, Principal, RECOVERY_CODES, SecondFactor, SecretDigest,
};
use billing_domain::audit::AuditAction;
use billing_domain::party::Organization;
use billing_domain::ports::{Access, PasswordCheck, SecretError, Tx, transact};
use billing_domain::refs::{AdminRef, SessionRef};
use billing_domain::violation::Violations;

use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::second_factor::{CodeKind, bare, seal, take_code, unseal};
use crate::secrets::hash_new;
use crate::{Services, UseCase, allow};

/// Who somebody is, and by which session.
#[derive(Clone, Debug)]
pub struct OwnAccount {
    /// The session that was shown.
    pub session: AdminSession,
    /// Whose it is.
    pub administrator: Administrator,
    /// Whose data they manage.
    pub organization: Organization,
}

/// Who asks.
///
/// # Errors
/// [`UseCaseError::Unauthenticated`] where the session has ended meanwhile.
pub fn own_account(services: &Services, principal: &Principal, session: &str) -> UseCaseResult<OwnAccount> {
    let admin_ref = oneself(principal, UseCase::GetOwnSession)?;
    let digest = services.keys.digest(session);
    transact(&*services.store, Access::Read, |tx| {
        let session = tx.session(digest)?.ok_or(UseCaseError::Unauthenticated)?;
        let administrator = tx.administrator(admin_ref)?.ok_or(UseCaseError::Unauthenticated)?;
        let organization = tx.organization(administrator.organization)?.ok_or(UseCaseError::Unauthenticated)?;
        Ok(OwnAccount { session, administrator, organization })
    })
}

/// Gives somebody another password of their own, and ends their other sessions.
///
/// # Errors
/// [`UseCaseError::Invalid`] for a wrong present password, and a new one that can't be taken.
pub fn change_password(
    services: &Services,
    principal: &Principal,
    session: &str,
    password: &str,
    new_password: &str,
) -> UseCaseResult<()> {
    let admin_ref = oneself(principal, UseCase::ChangePassword)?;
    let present = with_password(services, admin_ref, password)?;
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

/// A second factor that waits for its first code.
#[derive(Clone)]
pub struct SecondFactorEnrollment {
    /// Whose it is.
    pub email: String,
    /// The secret, as people type it into a device.
    pub secret: String,
}

impl std::fmt::Debug for SecondFactorEnrollment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Enrolled({} ***)", self.email)
    }
}

/// Makes the secret of a second factor, in the place of one that still waits for its first code.
///
/// # Errors
/// [`UseCaseError::Conflict`] where there is a second factor.
pub fn enroll_second_factor(services: &Services, principal: &Principal) -> UseCaseResult<SecondFactorEnrollment> {
    let admin_ref = oneself(principal, UseCase::EnrollSecondFactor)?;
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

/// Codes for who has lost their device, shown this once.
#[derive(Clone)]
pub struct RecoveryCodes(pub Vec<String>);

impl std::fmt::Debug for RecoveryCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecoveryCodes(***)")
    }
}

/// Has log-ins take a code from now on, after a first one has shown that the device has the secret.
///
/// # Errors
/// [`UseCaseError::Invalid`] for a wrong code, [`UseCaseError::Conflict`] where nothing waits for one.
pub fn confirm_second_factor(services: &Services, principal: &Principal, code: &str) -> UseCaseResult<RecoveryCodes> {
    let admin_ref = oneself(principal, UseCase::ConfirmSecondFactor)?;
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
            let detail = "no second factor waits for a code: begin with POST /auth/second-factor/enroll".to_owned();
            return Err(UseCaseError::Conflict { code: "second_factor_not_enrolled", detail });
        }
    };
    let secret = unseal(services, admin_ref, &sealed)?;
    let last_step = services.codes.step_of(&secret, code, now, None).ok_or_else(wrong_code)?;
    transact(&*services.store, Access::Write, |tx| {
        let present = held(tx, &waiting)?;
        let source = CodeSource { secret: sealed.clone(), since: now, last_step, recovery: recovery.clone() };
        let changed = Administrator { second_factor: SecondFactor::On(source), ..present.clone() };
        tx.update_administrator(&changed)?;
        let change = AuditChange::From(AuditSubject::Administrator(&present), AuditSubject::Administrator(&changed));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::AddSecondFactor, change)
    })?;
    Ok(RecoveryCodes(codes))
}

/// Has log-ins take no code any more.
///
/// # Errors
/// [`UseCaseError::Invalid`] for a wrong password or code, [`UseCaseError::Conflict`] where there is no second factor.
pub fn remove_second_factor(services: &Services, principal: &Principal, password: &str, code: &str) -> UseCaseResult<()> {
    let admin_ref = oneself(principal, UseCase::RemoveSecondFactor)?;
    let present = with_password(services, admin_ref, password)?;
    if !matches!(present.second_factor, SecondFactor::On(_)) {
        let detail = "there is no second factor to remove".to_owned();
        return Err(UseCaseError::Conflict { code: "second_factor_off", detail });
    }
    let kind = take_code(services, &mut present.clone(), code)?.ok_or_else(wrong_code)?;
    transact(&*services.store, Access::Write, |tx| {
        let present = held(tx, &present)?;
        let changed = Administrator { second_factor: SecondFactor::Off, ..present.clone() };
        tx.update_administrator(&changed)?;
        if kind == CodeKind::Recovery {
            let used = AuditChange::Unshown(AuditSubject::Administrator(&present));
            record_audit_event(tx, services, AuditContext::of(principal), AuditAction::UseRecoveryCode, used)?;
        }
        let change = AuditChange::From(AuditSubject::Administrator(&present), AuditSubject::Administrator(&changed));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::RemoveSecondFactor, change)
    })
}

/// A session of somebody's own.
#[derive(Clone, Debug)]
pub struct OwnSession {
    /// The session.
    pub session: AdminSession,
    /// Whether it is the one that asks.
    pub is_current: bool,
}

/// Somebody's sessions that work, the newest first.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn list_sessions(services: &Services, principal: &Principal, session: &str) -> UseCaseResult<Vec<OwnSession>> {
    let admin_ref = oneself(principal, UseCase::ListSessions)?;
    let (now, current) = (services.now(), services.keys.digest(session));
    let all = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.sessions(admin_ref)?))?;
    let live = all.into_iter().filter(|session| session.is_live(now));
    Ok(live.map(|session| OwnSession { is_current: session.digest == current, session }).collect())
}

/// Ends a session of somebody's own, also the one that asks.
///
/// # Errors
/// [`UseCaseError::Unknown`] where they have no such session.
pub fn end_session(services: &Services, principal: &Principal, session_ref: SessionRef) -> UseCaseResult<()> {
    let admin_ref = oneself(principal, UseCase::EndSessions)?;
    transact(&*services.store, Access::Write, |tx| {
        let administrator = held_by_ref(tx, admin_ref)?;
        if !tx.delete_session_of(admin_ref, session_ref)? {
            return Err(UseCaseError::Unknown(ResourceKind::Session));
        }
        note_end(services, tx, principal, &administrator)
    })
}

/// Ends all sessions of somebody's own but the one that asks.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn end_other_sessions(services: &Services, principal: &Principal, session: &str) -> UseCaseResult<()> {
    let admin_ref = oneself(principal, UseCase::EndSessions)?;
    let kept = services.keys.digest(session);
    transact(&*services.store, Access::Write, |tx| {
        let administrator = held_by_ref(tx, admin_ref)?;
        if tx.sessions(admin_ref)?.iter().all(|session| session.digest == kept) {
            return Ok(());
        }
        tx.delete_sessions(admin_ref, Some(kept))?;
        note_end(services, tx, principal, &administrator)
    })
}

fn note_end(services: &Services, tx: &mut dyn Tx, principal: &Principal, administrator: &Administrator) -> UseCaseResult<()> {
    let change = AuditChange::Unshown(AuditSubject::Administrator(administrator));
    record_audit_event(tx, services, AuditContext::of(principal), AuditAction::EndSessions, change)
}

/// Which administrator asks: of one's own account only they do.
fn oneself(principal: &Principal, use_case: UseCase) -> UseCaseResult<AdminRef> {
    allow(principal, use_case)?;
    match principal.actor() {
        Actor::Admin(admin_ref) => Ok(admin_ref),
        Actor::ApiKey(_) | Actor::Service => Err(UseCaseError::Forbidden(use_case.need())),
    }
}

/// Somebody who has said their present password. It is checked outside any transaction.
fn with_password(services: &Services, admin_ref: AdminRef, password: &str) -> UseCaseResult<Administrator> {
    let present = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.administrator(admin_ref)?))?;
    let present = present.ok_or(UseCaseError::Unauthenticated)?;
    match services.passwords.check(password, Some(&present.password_hash)) {
        PasswordCheck::Right => Ok(present),
        PasswordCheck::Wrong => Err(Violations::one(&["password"], "wrong_password", "is not your present password").into()),
    }
}

/// Holds somebody who has to be as they were looked at: who was changed meanwhile has to begin again.
fn held(tx: &mut dyn Tx, looked_at: &Administrator) -> UseCaseResult<Administrator> {
    let present = tx.hold_administrator(looked_at.email.as_str())?;
    present.filter(|present| present == looked_at).ok_or_else(|| {
        let detail = "your account was changed at the same time: try again".to_owned();
        UseCaseError::Conflict { code: "account_changed", detail }
    })
}

fn held_by_ref(tx: &mut dyn Tx, admin_ref: AdminRef) -> UseCaseResult<Administrator> {
    let found = tx.administrator(admin_ref)?.ok_or(UseCaseError::Unauthenticated)?;
    tx.hold_administrator(found.email.as_str())?.ok_or(UseCaseError::Unauthenticated)
}

fn is_on() -> UseCaseError {
    let detail = "there is a second factor already: remove it first".to_owned();
    UseCaseError::Conflict { code: "second_factor_on", detail }
}

fn wrong_code() -> UseCaseError {
    Violations::one(&["code"], "invalid_code", "is not valid, or was used already").into()
}
