//! Usage products. Contracts keep the unit and aggregation as of their creation.

use billing_domain::audit::AuditAction;
use billing_domain::catalog::{UsageProduct, UsageProductProfile};
use billing_domain::page::{ListRequest, Page};
use billing_domain::patch::Changes;
use billing_domain::refs::UsageProductRef;

use super::{inserted, only, updated};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseResult};

/// Creates a usage product. Assigns a reference if none is given.
///
/// # Errors
/// Returns one of these errors:
/// - [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference is in use.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values and references.
pub fn create_usage_product(
    cx: &mut Cx<'_>,
    reference: Option<UsageProductRef>,
    profile: UsageProductProfile,
) -> UseCaseResult<UsageProduct> {
    let made = UsageProduct {
        usage_product_ref: reference.unwrap_or_else(|| UsageProductRef::assigned(cx.services.ids.new_id())),
        profile,
        created_at: cx.now,
        updated_at: cx.now,
    };
    made.profile.check()?;
    inserted(ResourceKind::UsageProduct, cx.tx.insert_usage_product(cx.organization, &made)?)?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::UsageProduct(&made)))?;
    Ok(made)
}

/// Changes a usage product.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the usage product does not exist.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values.
pub fn edit_usage_product(
    cx: &mut Cx<'_>,
    reference: &UsageProductRef,
    changes: &Changes<UsageProductProfile>,
) -> UseCaseResult<UsageProduct> {
    let found = cx.tx.usage_products_by_refs(cx.organization, std::slice::from_ref(reference))?;
    let present = only(ResourceKind::UsageProduct, found)?;
    let mut made = present.clone();
    changes.apply(&mut made.profile);
    if made != present {
        made.updated_at = cx.now;
    }
    made.profile.check()?;
    updated(ResourceKind::UsageProduct, cx.tx.update_usage_product(cx.organization, &made)?)?;
    let change = AuditChange::From(AuditSubject::UsageProduct(&present), AuditSubject::UsageProduct(&made));
    cx.audit(AuditAction::Edit, change)?;
    Ok(made)
}

/// Returns a usage product.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the usage product does not exist.
pub fn get_usage_product(cx: &mut Cx<'_>, reference: &UsageProductRef) -> UseCaseResult<UsageProduct> {
    only(ResourceKind::UsageProduct, cx.tx.usage_products_by_refs(cx.organization, std::slice::from_ref(reference))?)
}

/// Returns a page of usage products.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the usage products cannot be read.
pub fn list_usage_products(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<UsageProduct>> {
    Ok(cx.tx.listed_usage_products(cx.organization, &list.updates, list.by, list.page)?)
}
