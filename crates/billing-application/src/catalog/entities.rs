//! Supplier entities. One of them is the organization's default: the first one created, until another is made the default.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::{Entity, EntityProfile};
use billing_domain::patch::Changes;
use billing_domain::ports::{Access, DocumentFilter, transact};
use billing_domain::refs::EntityRef;
use billing_domain::tax::StatedTax;
use billing_domain::violation::Violations;

use super::taxes::{TaxBasisPatch, TaxPatch, default_entity, in_force, today_of_entity};
use super::{inserted, only, updated};
use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::error::{ResourceKind, UseCaseResult};
use crate::{Services, UseCase, allow};

/// An entity with its current default tax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityView {
    /// The entity.
    pub entity: Entity,
    /// Whether the entity bills if neither the product nor the customer names an entity.
    pub is_default: bool,
    /// The default tax in force today.
    pub tax: StatedTax,
}

impl EntityView {
    /// Returns the view of an entity as of today.
    fn of(services: &Services, entity: Entity, is_default: bool) -> UseCaseResult<Self> {
        let tax = in_force(&entity.profile.taxes, || Ok(today_of_entity(services, &entity)))?;
        Ok(Self { entity, is_default, tax })
    }
}

/// The requested state of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedEntity {
    /// The requested profile.
    pub profile: EntityProfile,
    /// Whether the entity becomes the organization's default. `None` leaves the default as it is, except that the first
    /// entity becomes the default.
    pub is_default: Option<bool>,
    /// The requested change of the default tax.
    pub tax: TaxBasisPatch,
}

/// Creates an entity. Assigns a reference if none is given. The organization's first entity becomes its default, unless the
/// request says otherwise.
///
/// # Errors
/// Returns [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference or number prefix is in use.
pub fn create_entity(
    services: &Services,
    principal: &Principal,
    reference: Option<EntityRef>,
    wanted: WantedEntity,
) -> UseCaseResult<EntityView> {
    let organization = allow(principal, UseCase::CreateEntity)?;
    let mut profile = wanted.profile;
    let today = profile.time_zone.service_date(services.now());
    profile.taxes = TaxPatch::from(wanted.tax).apply(&profile.taxes, today)?;
    profile.check()?;
    let made = Entity {
        entity_ref: reference.unwrap_or_else(|| EntityRef::assigned(services.ids.new_id())),
        profile,
        created_at: services.now(),
    };
    transact(&*services.store, Access::Write, |tx| {
        inserted(ResourceKind::Entity, tx.insert_entity(organization, &made)?)?;
        let default = default_entity(tx, organization)?;
        let is_default = wanted.is_default.unwrap_or(default.is_none());
        if is_default {
            tx.set_default_entity(organization, &made.entity_ref)?;
        }
        let view = EntityView::of(services, made.clone(), is_default)?;
        record_audit_event(
            tx,
            services,
            AuditContext::of(principal),
            AuditAction::Create,
            AuditChange::Made(AuditSubject::Entity(&view)),
        )?;
        Ok(view)
    })
}

/// Changes an entity. After a change of the time zone or grace period, the next billing run checks every contract that the
/// entity bills. Documents that were not due under the old settings may be due under the new ones.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the entity does not exist.
/// - [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the number prefix is in use.
/// - [`Conflict`](crate::error::UseCaseError::Conflict) `numbers_given` for a new prefix after the first number was assigned.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) if the default entity would no longer be the default.
pub fn edit_entity(
    services: &Services,
    principal: &Principal,
    reference: &EntityRef,
    changes: &Changes<WantedEntity>,
) -> UseCaseResult<EntityView> {
    let organization = allow(principal, UseCase::EditEntity)?;
    transact(&*services.store, Access::Write, |tx| {
        let present = only(ResourceKind::Entity, tx.entities_by_refs(organization, std::slice::from_ref(reference))?)?;
        let mut wanted = WantedEntity { profile: present.profile.clone(), is_default: None, tax: TaxBasisPatch::default() };
        changes.apply(&mut wanted);
        let today = wanted.profile.time_zone.service_date(services.now());
        wanted.profile.taxes = TaxPatch::from(wanted.tax).apply(&wanted.profile.taxes, today)?;
        wanted.profile.check()?;
        let was_default = default_entity(tx, organization)?.as_ref() == Some(reference);
        let is_default = wanted.is_default.unwrap_or(was_default);
        if was_default && !is_default {
            let detail = "must be true for the default entity of the organization: set `default` on another entity instead";
            return Err(Violations::one(&["default"], "not_allowed", detail).into());
        }
        if present.profile.bills_at_other_times_than(&wanted.profile) {
            tx.advance_due_instants(organization, reference, services.now())?;
        }
        tx.hold_entity(organization, &present)?;
        if wanted.profile.number_prefix != present.profile.number_prefix && tx.has_given_numbers(organization, reference)? {
            return Err(present.numbers_given().into());
        }
        if let Some(rehearsal) = services.rehearsal() {
            let filter = DocumentFilter { entity_ref: Some(reference.clone()), ..DocumentFilter::default() };
            rehearsal.capture_drafts(tx, organization, &filter, services.now())?;
        }
        let made = Entity { profile: wanted.profile, ..present.clone() };
        updated(ResourceKind::Entity, tx.update_entity(organization, &made)?)?;
        if is_default && !was_default {
            tx.set_default_entity(organization, reference)?;
        }
        let before = EntityView::of(services, present, was_default)?;
        let view = EntityView::of(services, made, is_default)?;
        let change = AuditChange::From(AuditSubject::Entity(&before), AuditSubject::Entity(&view));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::Edit, change)?;
        Ok(view)
    })
}

/// Returns an entity.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the entity does not exist.
pub fn get_entity(services: &Services, principal: &Principal, reference: &EntityRef) -> UseCaseResult<EntityView> {
    let organization = allow(principal, UseCase::GetEntity)?;
    transact(&*services.store, Access::Read, |tx| {
        let entity = only(ResourceKind::Entity, tx.entities_by_refs(organization, std::slice::from_ref(reference))?)?;
        let is_default = default_entity(tx, organization)?.as_ref() == Some(reference);
        EntityView::of(services, entity, is_default)
    })
}

/// Returns a page of entities, ordered by creation.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the entities cannot be read.
pub fn list_entities(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<EntityView>> {
    let organization = allow(principal, UseCase::ListEntities)?;
    transact(&*services.store, Access::Read, |tx| {
        let default = default_entity(tx, organization)?;
        let found = tx.entities(organization, page)?;
        let shown = |entity: Entity| {
            let is_default = default.as_ref() == Some(&entity.entity_ref);
            EntityView::of(services, entity, is_default)
        };
        Ok(Page { items: found.items.into_iter().map(shown).collect::<UseCaseResult<_>>()?, total: found.total })
    })
}
