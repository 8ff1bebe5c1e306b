//! Usage products. Contracts keep the unit and aggregation as of their creation.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::catalog::{UsageProduct, UsageProductProfile};
use billing_domain::page::{Page, PageRequest};
use billing_domain::patch::Changes;
use billing_domain::ports::{Access, transact};
use billing_domain::refs::UsageProductRef;

use super::{inserted, only, updated};
use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::error::{ResourceKind, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Creates a usage product. Assigns a reference if none is given.
///
/// # Errors
/// Returns one of these errors:
/// - [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference is in use.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid references.
pub fn create_usage_product(
    services: &Services,
    principal: &Principal,
    reference: Option<UsageProductRef>,
    profile: UsageProductProfile,
) -> UseCaseResult<UsageProduct> {
    let organization = allow(principal, UseCase::CreateUsageProduct)?;
    let made = UsageProduct {
        usage_product_ref: reference.unwrap_or_else(|| UsageProductRef::assigned(services.ids.new_id())),
        profile,
        created_at: services.now(),
    };
    transact(&*services.store, Access::Write, |tx| {
        inserted(ResourceKind::UsageProduct, tx.insert_usage_product(organization, &made)?)?;
        record_audit_event(
            tx,
            services,
            AuditContext::of(principal),
            AuditAction::Create,
            AuditChange::Made(AuditSubject::UsageProduct(&made)),
        )?;
        Ok(made.clone())
    })
}

/// Changes a usage product.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the usage product does not exist.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values.
pub fn edit_usage_product(
    services: &Services,
    principal: &Principal,
    reference: &UsageProductRef,
    changes: &Changes<UsageProductProfile>,
) -> UseCaseResult<UsageProduct> {
    let organization = allow(principal, UseCase::EditUsageProduct)?;
    transact(&*services.store, Access::Write, |tx| {
        let found = tx.usage_products_by_refs(organization, std::slice::from_ref(reference))?;
        let present = only(ResourceKind::UsageProduct, found)?;
        let mut made = present.clone();
        changes.apply(&mut made.profile);
        updated(ResourceKind::UsageProduct, tx.update_usage_product(organization, &made)?)?;
        let change = AuditChange::From(AuditSubject::UsageProduct(&present), AuditSubject::UsageProduct(&made));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::Edit, change)?;
        Ok(made)
    })
}

/// Returns a usage product.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the usage product does not exist.
pub fn get_usage_product(services: &Services, principal: &Principal, reference: &UsageProductRef) -> UseCaseResult<UsageProduct> {
    let organization = allow(principal, UseCase::GetUsageProduct)?;
    transact(&*services.store, Access::Read, |tx| {
        only(ResourceKind::UsageProduct, tx.usage_products_by_refs(organization, std::slice::from_ref(reference))?)
    })
}

/// Returns a page of usage products, ordered by creation.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the usage products cannot be read.
pub fn list_usage_products(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<UsageProduct>> {
    let organization = allow(principal, UseCase::ListUsageProducts)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.usage_products(organization, page)?))
}
