//! Organizations: creation by the command line and on the first start.

use billing_domain::access::{Administrator, Role};
use billing_domain::audit::AuditAction;
use billing_domain::party::{Entity, EntityProfile, NumberPrefix, Organization};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{EntityRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use crate::Services;
use crate::administrators::{NewAdministrator, insert_administrator};
use crate::audit::{AuditChange, AuditSubject, record_audit_event};
use crate::carry_out::AuditContext;
use crate::catalog::inserted;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// The name of the organization created on the first start.
const FIRST_ORGANIZATION: &str = "default";
/// The name of the first entity of every organization.
const FIRST_ENTITY: &str = "Default";
/// The number prefix of the first entity.
const FIRST_PREFIX: &str = "UB";

/// Creates an organization with a default entity.
///
/// # Errors
/// Returns [`UseCaseError::AlreadyExists`] if the name is in use.
pub fn create_organization(services: &Services, name: &OneLine) -> UseCaseResult<Organization> {
    transact(&*services.store, Access::Write, |tx| insert_organization(services, tx, name))
}

/// Returns an organization by its name.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the organization does not exist.
pub fn organization_named(services: &Services, name: &OneLine) -> UseCaseResult<Organization> {
    transact(&*services.store, Access::Read, |tx| {
        tx.organization_by_name(name)?.ok_or(UseCaseError::Unknown(ResourceKind::Organization))
    })
}

/// The resources created on the first start.
#[derive(Clone, Debug)]
pub struct FirstStart {
    /// The organization.
    pub organization: Organization,
    /// The administrator.
    pub administrator: Administrator,
}

/// Creates the organization `default`, its entity `Default` and its first administrator in an empty database. Returns `None`
/// if an organization already exists, also if another process created it concurrently.
///
/// # Errors
/// Returns [`UseCaseError::Secret`] if the password is too short, too long or common.
pub fn first_start(services: &Services, email: &OneLine, password: &str) -> UseCaseResult<Option<FirstStart>> {
    let count = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.count_organizations()?))?;
    if count > 0 {
        return Ok(None);
    }
    let password_hash = services.passwords.hash(password)?;
    transact(&*services.store, Access::Write, |tx| {
        if tx.count_organizations()? > 0 {
            return Ok(None);
        }
        let organization = match insert_organization(services, tx, &own_text(FIRST_ORGANIZATION)?) {
            // Another process created it between the count and the insert.
            Err(UseCaseError::AlreadyExists { .. }) => return Ok(None),
            made => made?,
        };
        let new = NewAdministrator { email, role: Role::Owner, password_hash: password_hash.clone(), one_time_until: None };
        let administrator = insert_administrator(services, tx, AuditContext::command_line(organization.id), new)?;
        Ok(Some(FirstStart { organization, administrator }))
    })
}

/// Returns the organization of the first start, unless the database has none of this name.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if it cannot be read.
pub fn first_organization(services: &Services) -> UseCaseResult<Option<Organization>> {
    let name = own_text(FIRST_ORGANIZATION)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.organization_by_name(&name)?))
}

fn insert_organization(services: &Services, tx: &mut dyn Tx, name: &OneLine) -> UseCaseResult<Organization> {
    let mut organization = Organization {
        id: OrganizationId::from_uuid(services.ids.new_id()),
        name: name.clone(),
        default_entity: None,
        created_at: services.now(),
    };
    inserted(ResourceKind::Organization, tx.insert_organization(&organization)?)?;
    let entity = first_entity(services)?;
    inserted(ResourceKind::Entity, tx.insert_entity(organization.id, &entity)?)?;
    tx.set_default_entity(organization.id, &entity.entity_ref, entity.updated_at)?;
    organization.default_entity = Some(entity.entity_ref);
    let change = AuditChange::Made(AuditSubject::Organization(&organization));
    record_audit_event(tx, services, AuditContext::command_line(organization.id), AuditAction::Create, change)?;
    Ok(organization)
}

fn first_entity(services: &Services) -> UseCaseResult<Entity> {
    let number_prefix =
        NumberPrefix::parse(FIRST_PREFIX).map_err(|reason| Violations::one(&["number_prefix"], "invalid", reason.to_string()))?;
    let now = services.now();
    Ok(Entity {
        entity_ref: EntityRef::assigned(services.ids.new_id()),
        profile: EntityProfile::plain(own_text(FIRST_ENTITY)?, number_prefix),
        created_at: now,
        updated_at: now,
    })
}

fn own_text(text: &str) -> UseCaseResult<OneLine> {
    OneLine::parse(text).map_err(|reason| Violations::one(&["name"], "invalid", reason.to_string()).into())
}
