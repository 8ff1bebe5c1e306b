//! Administrators, as whoever runs the service's commands makes and changes them.

use billing_domain::access::{Administrator, PasswordHash};
use billing_domain::audit::AuditAction;
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{AdminRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use crate::Services;
use crate::audit::{Audited, Change, Doer, note};
use crate::catalog::inserted;
use crate::error::{Thing, UseCaseError, UseCaseResult};

/// Makes an administrator of an organization.
///
/// # Errors
/// [`UseCaseError::Unknown`] organization, [`UseCaseError::AlreadyExists`] for an e-mail in use,
/// [`UseCaseError::Secret`] for a password that is too short, too long or common.
pub fn create_administrator(
    services: &Services,
    organization: &OneLine,
    email: &OneLine,
    password: &str,
) -> UseCaseResult<Administrator> {
    let password_hash = services.passwords.hash(password)?;
    transact(&*services.store, Access::Write, |tx| {
        let organization = tx.organization_by_name(organization)?.ok_or(UseCaseError::Unknown(Thing::Organization))?;
        insert_administrator(services, tx, organization.id, email, password_hash.clone())
    })
}

/// The administrators of an organization, by e-mail.
///
/// # Errors
/// [`UseCaseError::Unknown`] organization.
pub fn list_administrators(services: &Services, organization: &OneLine) -> UseCaseResult<Vec<Administrator>> {
    transact(&*services.store, Access::Read, |tx| {
        let organization = tx.organization_by_name(organization)?.ok_or(UseCaseError::Unknown(Thing::Organization))?;
        Ok(tx.administrators(organization.id)?)
    })
}

/// Keeps an administrator from logging in, and ends all their sessions. Who is disabled already stays so.
///
/// # Errors
/// [`UseCaseError::Unknown`] administrator.
pub fn disable_administrator(services: &Services, email: &OneLine) -> UseCaseResult<Administrator> {
    let now = services.now();
    change(services, email, AuditAction::Disable, |administrator| {
        administrator.disabled_at = administrator.disabled_at.or(Some(now));
    })
}

/// Lets an administrator log in again, with the password they have.
///
/// # Errors
/// [`UseCaseError::Unknown`] administrator.
pub fn enable_administrator(services: &Services, email: &OneLine) -> UseCaseResult<Administrator> {
    change(services, email, AuditAction::Enable, |administrator| administrator.disabled_at = None)
}

/// Gives an administrator another password, and ends all their sessions. Who is disabled stays so.
///
/// # Errors
/// [`UseCaseError::Unknown`] administrator, [`UseCaseError::Secret`] for a password that is too short, too long or
/// common.
pub fn reset_password(services: &Services, email: &OneLine, password: &str) -> UseCaseResult<Administrator> {
    let password_hash = services.passwords.hash(password)?;
    change(services, email, AuditAction::ResetPassword, |administrator| administrator.password_hash = password_hash.clone())
}

/// Changes one, and ends their sessions: each was opened on what was true before.
fn change(
    services: &Services,
    email: &OneLine,
    action: AuditAction,
    how: impl Fn(&mut Administrator),
) -> UseCaseResult<Administrator> {
    let email = email.as_str().to_lowercase();
    transact(&*services.store, Access::Write, |tx| {
        let present = tx.hold_administrator(&email)?.ok_or(UseCaseError::Unknown(Thing::Administrator))?;
        let mut administrator = present.clone();
        how(&mut administrator);
        tx.update_administrator(&administrator)?;
        tx.delete_sessions(administrator.admin_ref)?;
        let changed = Audited::Administrator(&administrator);
        let change = match action {
            // No secret is shown, so neither is that it is another.
            AuditAction::ResetPassword => Change::Unshown(changed),
            _ => Change::From(Audited::Administrator(&present), changed),
        };
        note(tx, services, Doer::command_line(administrator.organization), action, change)?;
        Ok(administrator)
    })
}

/// Stores a new one.
pub(crate) fn insert_administrator(
    services: &Services,
    tx: &mut dyn Tx,
    organization: OrganizationId,
    email: &OneLine,
    password_hash: PasswordHash,
) -> UseCaseResult<Administrator> {
    let email = OneLine::parse(&email.as_str().to_lowercase())
        .map_err(|reason| Violations::one(&["email"], "invalid", reason.to_string()))?;
    let administrator = Administrator {
        admin_ref: AdminRef::from_uuid(services.ids.new_id()),
        organization,
        email,
        password_hash,
        created_at: services.now(),
        disabled_at: None,
    };
    inserted(Thing::Administrator, tx.insert_administrator(&administrator)?)?;
    let change = Change::Made(Audited::Administrator(&administrator));
    note(tx, services, Doer::command_line(organization), AuditAction::Create, change)?;
    Ok(administrator)
}
