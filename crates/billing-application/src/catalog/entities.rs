//! Supplier entities. The first one made is the organization's default.

use billing_domain::access::Principal;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::{Entity, EntityProfile};
use billing_domain::ports::{Access, transact};
use billing_domain::refs::EntityRef;
use billing_domain::violation::Violations;

use super::{inserted, only, updated};
use crate::Services;
use crate::error::{Thing, UseCaseResult};

/// Makes one; without a reference it is assigned.
///
/// # Errors
/// [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists), or [`Invalid`](crate::error::UseCaseError::Invalid) references.
pub fn create_entity(
    services: &Services,
    principal: &Principal,
    reference: Option<EntityRef>,
    profile: EntityProfile,
) -> UseCaseResult<Entity> {
    let made = Entity {
        entity_ref: reference.unwrap_or_else(|| EntityRef::assigned(services.ids.new_id())),
        profile,
        created_at: services.now(),
    };
    transact(&*services.store, Access::Write, |tx| {
        inserted(Thing::Entity, tx.insert_entity(principal.organization, &made)?)?;
        let organization = tx.organization(principal.organization)?;
        if organization.is_some_and(|organization| organization.default_entity.is_none()) {
            tx.set_default_entity(principal.organization, &made.entity_ref)?;
        }
        Ok(made.clone())
    })
}

/// Changes one: `edit` answers the new values from the present ones.
///
/// # Errors
/// [`Unknown`](crate::error::UseCaseError::Unknown), or what `edit` refuses.
pub fn edit_entity(
    services: &Services,
    principal: &Principal,
    reference: &EntityRef,
    edit: &dyn Fn(&EntityProfile) -> Result<EntityProfile, Violations>,
) -> UseCaseResult<Entity> {
    transact(&*services.store, Access::Write, |tx| {
        let found = tx.entities_by_refs(principal.organization, std::slice::from_ref(reference))?;
        let mut made = only(Thing::Entity, found)?;
        made.profile = edit(&made.profile)?;
        updated(Thing::Entity, tx.update_entity(principal.organization, &made)?)?;
        Ok(made)
    })
}

/// Reads one.
///
/// # Errors
/// [`Unknown`](crate::error::UseCaseError::Unknown).
pub fn get_entity(services: &Services, principal: &Principal, reference: &EntityRef) -> UseCaseResult<Entity> {
    transact(&*services.store, Access::Read, |tx| {
        only(Thing::Entity, tx.entities_by_refs(principal.organization, std::slice::from_ref(reference))?)
    })
}

/// Reads a page of them, by creation.
///
/// # Errors
/// [`Store`](crate::error::UseCaseError::Store).
pub fn list_entities(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<Entity>> {
    transact(&*services.store, Access::Read, |tx| Ok(tx.entities(principal.organization, page)?))
}
