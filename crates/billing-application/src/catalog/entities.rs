//! Supplier entities. One of them is the organization's default: the first one created, until another is made the default.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::page::{ListRequest, Page, PageRequest};
use billing_domain::party::appearance::Logo;
use billing_domain::party::legal::DocumentSettings;
use billing_domain::party::{Entity, EntityProfile, EntityUse, PaymentDetails};
use billing_domain::patch::Changes;
use billing_domain::ports::DocumentFilter;
use billing_domain::refs::EntityRef;
use billing_domain::tax::StatedTax;
use billing_domain::violation::Violations;

use super::taxes::{TaxBasisPatch, TaxPatch, default_entity, in_force};
use super::{inserted, only, updated};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::permissions::allow_payment_details;
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
    fn of(entity: Entity, is_default: bool, now: Timestamp) -> UseCaseResult<Self> {
        let tax = in_force(&entity.profile.taxes, || Ok(entity.profile.time_zone.service_date(now)))?;
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
pub fn create_entity(cx: &mut Cx<'_>, reference: Option<EntityRef>, wanted: WantedEntity) -> UseCaseResult<EntityView> {
    let mut profile = wanted.profile;
    let today = profile.time_zone.service_date(cx.now);
    profile.taxes = TaxPatch::from(wanted.tax).apply(&profile.taxes, today)?;
    profile.check()?;
    allow_payment_details(cx.principal()?, &PaymentDetails::default(), &profile.payment)?;
    keep_logo(cx, &mut profile.paper)?;
    let made = Entity {
        entity_ref: reference.unwrap_or_else(|| EntityRef::assigned(cx.services.ids.new_id())),
        profile,
        created_at: cx.now,
        updated_at: cx.now,
    };
    inserted(ResourceKind::Entity, cx.tx.insert_entity(cx.organization, &made)?)?;
    let default = default_entity(cx)?;
    let is_default = wanted.is_default.unwrap_or(default.is_none());
    if is_default {
        cx.tx.set_default_entity(cx.organization, &made.entity_ref, cx.now)?;
    }
    let view = EntityView::of(made, is_default, cx.now)?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Entity(&view)))?;
    Ok(view)
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
pub fn edit_entity(cx: &mut Cx<'_>, reference: &EntityRef, changes: &Changes<WantedEntity>) -> UseCaseResult<EntityView> {
    let present = only(ResourceKind::Entity, cx.tx.entities_by_refs(cx.organization, std::slice::from_ref(reference))?)?;
    let mut wanted = WantedEntity { profile: present.profile.clone(), is_default: None, tax: TaxBasisPatch::default() };
    changes.apply(&mut wanted);
    let today = wanted.profile.time_zone.service_date(cx.now);
    wanted.profile.taxes = TaxPatch::from(wanted.tax).apply(&wanted.profile.taxes, today)?;
    wanted.profile.check()?;
    allow_payment_details(cx.principal()?, &present.profile.payment, &wanted.profile.payment)?;
    if wanted.profile.paper.logo != present.profile.paper.logo {
        keep_logo(cx, &mut wanted.profile.paper)?;
    }
    let was_default = default_entity(cx)?.as_ref() == Some(reference);
    let is_default = wanted.is_default.unwrap_or(was_default);
    if was_default && !is_default {
        let detail = "must be true for the default entity of the organization: set `default` on another entity instead";
        return Err(Violations::one(&["default"], "not_allowed", detail).into());
    }
    if present.profile.bills_at_other_times_than(&wanted.profile) {
        cx.tx.advance_due_instants(cx.organization, reference, cx.now)?;
    }
    cx.tx.hold_entity(cx.organization, &present)?;
    if wanted.profile.number_prefix != present.profile.number_prefix && cx.tx.has_given_numbers(cx.organization, reference)? {
        return Err(present.numbers_given().into());
    }
    if let Some(recorder) = cx.recorder() {
        let filter = DocumentFilter { entity_ref: Some(reference.clone()), ..DocumentFilter::default() };
        recorder.capture_drafts(cx.tx, cx.organization, &filter, cx.now)?;
    }
    let is_unchanged = wanted.profile == present.profile && is_default == was_default;
    let updated_at = if is_unchanged { present.updated_at } else { cx.now };
    let made = Entity { profile: wanted.profile, updated_at, ..present.clone() };
    updated(ResourceKind::Entity, cx.tx.update_entity(cx.organization, &made)?)?;
    if is_default && !was_default {
        cx.tx.set_default_entity(cx.organization, reference, cx.now)?;
    }
    let before = EntityView::of(present, was_default, cx.now)?;
    let view = EntityView::of(made, is_default, cx.now)?;
    let change = AuditChange::From(AuditSubject::Entity(&before), AuditSubject::Entity(&view));
    cx.audit(AuditAction::Edit, change)?;
    Ok(view)
}

/// Deletes an entity that nothing uses.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the entity does not exist.
/// - [`Conflict`](crate::error::UseCaseError::Conflict) `entity_in_use` if the entity is the default, or if a customer, a
///   contract or a payment names it. Only contracts that name an entity have documents with its numbers.
pub fn delete_entity(cx: &mut Cx<'_>, reference: &EntityRef) -> UseCaseResult<()> {
    let entity = only(ResourceKind::Entity, cx.tx.entities_by_refs(cx.organization, std::slice::from_ref(reference))?)?;
    cx.tx.hold_entity(cx.organization, &entity)?;
    let is_default = default_entity(cx)?.as_ref() == Some(reference);
    let used = if is_default { Some(EntityUse::Default) } else { cx.tx.entity_user(cx.organization, reference)? };
    if let Some(used) = used {
        return Err(used.refusal().into());
    }
    cx.tx.delete_entity(cx.organization, reference)?;
    let view = EntityView::of(entity, false, cx.now)?;
    cx.audit(AuditAction::Delete, AuditChange::Gone(AuditSubject::Entity(&view)))
}

/// Returns the logo with an image that an edit of an entity names.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the entity does not exist.
pub fn received_logo(cx: &mut Cx<'_>, reference: &EntityRef, changes: &Changes<WantedEntity>) -> UseCaseResult<Option<Logo>> {
    let present = only(ResourceKind::Entity, cx.tx.entities_by_refs(cx.organization, std::slice::from_ref(reference))?)?;
    let mut wanted = WantedEntity { profile: present.profile, is_default: None, tax: TaxBasisPatch::default() };
    changes.apply(&mut wanted);
    Ok(wanted.profile.paper.logo)
}

/// Prints a received logo once, without the database, so that no document has a logo that is expensive to print. A logo that is
/// named by its hash was printed before.
///
/// # Errors
/// Returns one of these errors:
/// - [`Invalid`](crate::error::UseCaseError::Invalid) `logo_too_complex` if printing it is too expensive or fails.
/// - [`Print`](crate::error::UseCaseError::Print) if it could not be printed for another reason.
pub fn check_logo(services: &Services, principal: &Principal, logo: &Logo) -> UseCaseResult<()> {
    allow(principal, UseCase::EditEntity)?;
    if logo.image.is_none() || services.printer.can_print_logo(logo)? {
        return Ok(());
    }
    let detail =
        "must be printable with 300 ms of processor time and 100 MB of memory: use fewer masks, clips and points, or a PNG file";
    Err(Violations::one(&["logo"], "logo_too_complex", detail).into())
}

/// Stores the image of a received logo. The entity has only its hash. A logo that is named by its hash must be stored already.
fn keep_logo(cx: &mut Cx<'_>, paper: &mut DocumentSettings) -> UseCaseResult<()> {
    let Some(logo) = &mut paper.logo else { return Ok(()) };
    if logo.image.is_none() {
        let known = cx.tx.logo_with_image(cx.organization, logo)?;
        let detail = "must be the content of a PNG or SVG file in base64: no logo with this hash is stored";
        return known.map(|_| ()).ok_or_else(|| Violations::one(&["logo"], "invalid_value", detail).into());
    }
    cx.tx.keep_logo(cx.organization, logo)?;
    logo.image = None;
    Ok(())
}

/// Returns an entity.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the entity does not exist.
pub fn get_entity(cx: &mut Cx<'_>, reference: &EntityRef) -> UseCaseResult<EntityView> {
    let entity = only(ResourceKind::Entity, cx.tx.entities_by_refs(cx.organization, std::slice::from_ref(reference))?)?;
    let is_default = default_entity(cx)?.as_ref() == Some(reference);
    EntityView::of(entity, is_default, cx.now)
}

/// Returns the time zone of the default entity. Without a default entity, returns the time zone of the first entity, or UTC
/// if no entity exists.
///
/// # Errors
/// Returns [`Store`](UseCaseError::Store) if the entity cannot be read.
pub fn default_time_zone(cx: &mut Cx<'_>) -> UseCaseResult<TimeZone> {
    let found = match default_entity(cx)? {
        Some(default) => cx.tx.entities_by_refs(cx.organization, &[default])?,
        None => {
            let one = PageRequest::new(1, 0).map_err(|_| UseCaseError::InvariantViolation("a page of one"))?;
            cx.tx.entities(cx.organization, one)?.items
        }
    };
    Ok(found.first().map_or(TimeZone::UTC, |entity| entity.profile.time_zone))
}

/// Returns a page of entities.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the entities cannot be read.
pub fn list_entities(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<EntityView>> {
    let default = default_entity(cx)?;
    let found = cx.tx.listed_entities(cx.organization, &list.updates, list.by, list.page)?;
    let shown = |entity: Entity| {
        let is_default = default.as_ref() == Some(&entity.entity_ref);
        EntityView::of(entity, is_default, cx.now)
    };
    Ok(Page { items: found.items.into_iter().map(shown).collect::<UseCaseResult<_>>()?, total: found.total })
}
