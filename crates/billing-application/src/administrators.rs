//! Management of administrators, by owners and by the command line.

use billing_domain::access::{
    Actor, Administrator, KnownAddresses, MAX_ADMINISTRATORS, ONE_TIME_SECONDS, PasswordHash, Role, SecondFactor,
    check_log_in_name,
};
use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::page::{Page, PageRequest, UpdateFilter};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{AdminRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use crate::Services;
use crate::audit::{AuditChange, AuditSubject, record_audit_event};
use crate::carry_out::{AuditContext, Cx};
use crate::catalog::inserted;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// Creates an administrator with a password of their own.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the organization does not exist.
/// - [`UseCaseError::AlreadyExists`] if the e-mail is in use.
/// - [`UseCaseError::Secret`] if the password is too short, too long or common.
pub fn create_administrator(
    services: &Services,
    organization: &OneLine,
    email: &OneLine,
    role: Role,
    password: &str,
) -> UseCaseResult<Administrator> {
    let password_hash = services.passwords.hash(password)?;
    transact(&*services.store, Access::Write, |tx| {
        let organization = tx.organization_by_name(organization)?.ok_or(UseCaseError::Unknown(ResourceKind::Organization))?.id;
        let new = NewAdministrator { email, role, password_hash: password_hash.clone(), one_time_until: None };
        insert_administrator(services, tx, AuditContext::command_line(organization), new)
    })
}

/// Returns the administrators of an organization, by e-mail.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the organization does not exist.
pub fn list_administrators(services: &Services, organization: &OneLine) -> UseCaseResult<Vec<Administrator>> {
    transact(&*services.store, Access::Read, |tx| {
        let organization = tx.organization_by_name(organization)?.ok_or(UseCaseError::Unknown(ResourceKind::Organization))?;
        Ok(tx.administrators(organization.id)?)
    })
}

/// A sort key for administrators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AdministratorSortKey {
    /// The e-mail address.
    #[default]
    Email,
    /// The time of the last change. Equal times are ordered by reference.
    Updated,
}

/// Returns a page of the organization's administrators. An organization has few of them, so all are read.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the administrators cannot be read.
pub fn administrators_of(
    cx: &mut Cx<'_>,
    updates: &UpdateFilter,
    by: AdministratorSortKey,
    page: PageRequest,
) -> UseCaseResult<Page<Administrator>> {
    let mut all = cx.tx.administrators(cx.organization)?;
    all.retain(|one| updates.matches(one.updated_at, &one.admin_ref.to_string(), page.direction()));
    if by == AdministratorSortKey::Updated {
        all.sort_by_key(|one| (one.updated_at, one.admin_ref));
    }
    if page.is_backward() {
        all.reverse();
    }
    let total = all.len() as u64;
    let skip = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let items = all.into_iter().skip(skip).take(usize::try_from(page.size()).unwrap_or(usize::MAX)).collect();
    Ok(Page { items, total })
}

/// A one-time password. It only lets its owner set a new password, which its issuer does not know.
#[derive(Clone)]
pub struct OneTimePassword {
    password: String,
    hash: PasswordHash,
}

impl std::fmt::Debug for OneTimePassword {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneTimePassword(***)")
    }
}

/// Creates a one-time password. Hashing is slow, so call this before the transaction starts.
///
/// # Errors
/// Returns [`UseCaseError::Secret`] if the password cannot be created.
pub fn one_time_password(services: &Services) -> UseCaseResult<OneTimePassword> {
    let password = services.keys.new_secret()?;
    let hash = services.passwords.hash(&password)?;
    Ok(OneTimePassword { password, hash })
}

/// An administrator with a new one-time password, which is shown only once.
#[derive(Clone)]
pub struct IssuedInvitation {
    /// The administrator.
    pub administrator: Administrator,
    /// The password. Only its hash is stored.
    pub password: String,
}

impl std::fmt::Debug for IssuedInvitation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Invited({} ***)", self.administrator.email)
    }
}

/// Creates an administrator in the organization.
///
/// # Errors
/// Returns [`UseCaseError::AlreadyExists`] if the e-mail is in use.
pub fn invite_administrator(
    cx: &mut Cx<'_>,
    email: &OneLine,
    role: Role,
    one_time: &OneTimePassword,
) -> UseCaseResult<IssuedInvitation> {
    let (doer, one_time_until) = (cx.author(), Some(cx.services.machine_now().plus_seconds(ONE_TIME_SECONDS)));
    let new = NewAdministrator { email, role, password_hash: one_time.hash.clone(), one_time_until };
    let administrator = insert_administrator(cx.services, cx.tx, doer, new)?;
    Ok(IssuedInvitation { administrator, password: one_time.password.clone() })
}

/// Changes of an administrator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdministratorEdit {
    /// The new role.
    pub role: Option<Role>,
    /// Whether the administrator is disabled.
    pub disabled: Option<bool>,
}

/// Changes the role of an administrator, or disables or enables them. Disabling ends all sessions at once.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the administrator does not exist.
/// - [`UseCaseError::Conflict`] if no enabled owner would remain.
pub fn edit_administrator(cx: &mut Cx<'_>, admin_ref: AdminRef, edit: AdministratorEdit) -> UseCaseResult<Administrator> {
    let (present, others) = held_among(cx.tx, cx.organization, admin_ref)?;
    let mut changed = present.clone();
    changed.role = edit.role.unwrap_or(present.role);
    match edit.disabled {
        Some(true) => changed.disabled_at = present.disabled_at.or(Some(cx.now)),
        Some(false) => changed.disabled_at = None,
        None => {}
    }
    let is_last = present.is_enabled_owner() && !others.iter().any(Administrator::is_enabled_owner);
    if is_last && !changed.is_enabled_owner() {
        let detail = "the last owner who can log in cannot change: create another owner first".to_owned();
        return Err(UseCaseError::Conflict { code: "last_owner", detail });
    }
    changed.note_update(&present, cx.now);
    cx.tx.update_administrator(&changed)?;
    if changed.disabled_at.is_some() {
        cx.tx.delete_sessions(admin_ref, None)?;
    }
    let action = match (changed.role == present.role, present.disabled_at, changed.disabled_at) {
        (true, None, Some(_)) => AuditAction::Disable,
        (true, Some(_), None) => AuditAction::Enable,
        (true | false, _, _) => AuditAction::Edit,
    };
    let change = AuditChange::From(AuditSubject::Administrator(&present), AuditSubject::Administrator(&changed));
    cx.audit(action, change)?;
    Ok(changed)
}

/// Gives another administrator a one-time password and ends their sessions. Codes of a device that were locked after too many
/// failures are accepted again. A disabled administrator stays disabled.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the administrator does not exist.
/// - [`UseCaseError::Conflict`] for the requester's own account.
pub fn reset_administrator(
    cx: &mut Cx<'_>,
    admin_ref: AdminRef,
    removes_second_factor: bool,
    one_time: &OneTimePassword,
) -> UseCaseResult<IssuedInvitation> {
    if cx.by == Actor::Admin(admin_ref) {
        let detail = "this is your own account: change your password with POST /auth/password".to_owned();
        return Err(UseCaseError::Conflict { code: "own_account", detail });
    }
    let (doer, one_time_until) = (cx.author(), Some(cx.services.machine_now().plus_seconds(ONE_TIME_SECONDS)));
    let (present, _) = held_among(cx.tx, cx.organization, admin_ref)?;
    let reset = PasswordReset { password_hash: one_time.hash.clone(), one_time_until, removes_second_factor };
    let administrator = reset.store(cx.services, cx.tx, doer, &present)?;
    Ok(IssuedInvitation { administrator, password: one_time.password.clone() })
}

/// Locks all administrators of an organization. Returns one of them, and all others.
fn held_among(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    admin_ref: AdminRef,
) -> UseCaseResult<(Administrator, Vec<Administrator>)> {
    let mut all = tx.hold_administrators(organization)?;
    let place =
        all.iter().position(|one| one.admin_ref == admin_ref).ok_or(UseCaseError::Unknown(ResourceKind::Administrator))?;
    let found = all.remove(place);
    Ok((found, all))
}

/// Disables an administrator and ends all their sessions. A disabled administrator stays disabled.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the administrator does not exist.
pub fn disable_administrator(services: &Services, email: &OneLine) -> UseCaseResult<Administrator> {
    let now = services.now();
    change(services, email, AuditAction::Disable, |administrator| {
        administrator.disabled_at = administrator.disabled_at.or(Some(now));
    })
}

/// Enables an administrator with their present password.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the administrator does not exist.
pub fn enable_administrator(services: &Services, email: &OneLine) -> UseCaseResult<Administrator> {
    change(services, email, AuditAction::Enable, |administrator| administrator.disabled_at = None)
}

/// Changes the role of an administrator.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the administrator does not exist.
pub fn give_role(services: &Services, email: &OneLine, role: Role) -> UseCaseResult<Administrator> {
    change(services, email, AuditAction::Edit, |administrator| administrator.role = role)
}

/// Sets the password of an administrator and ends all their sessions. A disabled administrator stays disabled.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the administrator does not exist.
/// - [`UseCaseError::Secret`] if the password is too short, too long or common.
pub fn reset_password(
    services: &Services,
    email: &OneLine,
    password: &str,
    removes_second_factor: bool,
) -> UseCaseResult<Administrator> {
    let password_hash = services.passwords.hash(password)?;
    transact(&*services.store, Access::Write, |tx| {
        let present = held(tx, email)?;
        let reset = PasswordReset { password_hash: password_hash.clone(), one_time_until: None, removes_second_factor };
        reset.store(services, tx, AuditContext::command_line(present.organization), &present)
    })
}

/// Changes an administrator and ends their sessions, because these rely on the previous state.
fn change(
    services: &Services,
    email: &OneLine,
    action: AuditAction,
    how: impl Fn(&mut Administrator),
) -> UseCaseResult<Administrator> {
    transact(&*services.store, Access::Write, |tx| {
        let present = held(tx, email)?;
        let mut administrator = present.clone();
        how(&mut administrator);
        administrator.note_update(&present, services.now());
        tx.update_administrator(&administrator)?;
        tx.delete_sessions(administrator.admin_ref, None)?;
        let change = AuditChange::From(AuditSubject::Administrator(&present), AuditSubject::Administrator(&administrator));
        record_audit_event(tx, services, AuditContext::command_line(administrator.organization), action, change)?;
        Ok(administrator)
    })
}

fn held(tx: &mut dyn Tx, email: &OneLine) -> UseCaseResult<Administrator> {
    tx.hold_administrator(&email.as_str().to_lowercase())?.ok_or(UseCaseError::Unknown(ResourceKind::Administrator))
}

/// A new password set by somebody else.
struct PasswordReset {
    password_hash: PasswordHash,
    one_time_until: Option<Timestamp>,
    removes_second_factor: bool,
}

impl PasswordReset {
    fn store(
        self,
        services: &Services,
        tx: &mut dyn Tx,
        doer: AuditContext<'_>,
        present: &Administrator,
    ) -> UseCaseResult<Administrator> {
        let mut changed = present.clone();
        changed.password_hash = self.password_hash;
        changed.one_time_until = self.one_time_until;
        if self.removes_second_factor {
            changed.second_factor = SecondFactor::Off;
        }
        changed.second_factor.forget_failed_codes();
        changed.note_update(present, services.now());
        tx.update_administrator(&changed)?;
        tx.delete_sessions(changed.admin_ref, None)?;
        let thing = AuditSubject::Administrator(&changed);
        // Passwords are never shown, so a changed password has no visible difference.
        let is_shown = changed.second_factor.since() != present.second_factor.since();
        let change =
            if is_shown { AuditChange::From(AuditSubject::Administrator(present), thing) } else { AuditChange::Unshown(thing) };
        record_audit_event(tx, services, doer, AuditAction::ResetPassword, change)?;
        Ok(changed)
    }
}

/// A new administrator without identity.
pub(crate) struct NewAdministrator<'a> {
    pub(crate) email: &'a OneLine,
    pub(crate) role: Role,
    pub(crate) password_hash: PasswordHash,
    pub(crate) one_time_until: Option<Timestamp>,
}

/// Stores a new administrator.
pub(crate) fn insert_administrator(
    services: &Services,
    tx: &mut dyn Tx,
    doer: AuditContext<'_>,
    new: NewAdministrator<'_>,
) -> UseCaseResult<Administrator> {
    // This precedes the conversion to lower case, which turns some other characters to ASCII, such as the sign of Kelvin.
    check_log_in_name(new.email).map_err(|reason| Violations::one(&["email"], "invalid_format", reason.to_string()))?;
    let email = OneLine::parse(&new.email.as_str().to_lowercase())
        .map_err(|reason| Violations::one(&["email"], "invalid", reason.to_string()))?;
    if tx.administrators(doer.organization)?.len() >= MAX_ADMINISTRATORS {
        let detail = format!("an organization can have at most {MAX_ADMINISTRATORS} administrators");
        return Err(UseCaseError::Conflict { code: "too_many_administrators", detail });
    }
    let now = services.now();
    let administrator = Administrator {
        admin_ref: AdminRef::from_uuid(services.ids.new_id()),
        organization: doer.organization,
        email,
        role: new.role,
        password_hash: new.password_hash,
        one_time_until: new.one_time_until,
        second_factor: SecondFactor::Off,
        known_addresses: KnownAddresses::default(),
        created_at: now,
        disabled_at: None,
        updated_at: now,
    };
    inserted(ResourceKind::Administrator, tx.insert_administrator(&administrator)?)?;
    record_audit_event(tx, services, doer, AuditAction::Create, AuditChange::Made(AuditSubject::Administrator(&administrator)))?;
    Ok(administrator)
}
