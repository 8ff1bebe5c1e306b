//! Pricings. Contracts keep the content as of their creation.

use billing_domain::audit::AuditAction;
use billing_domain::catalog::{Pricing, PricingContent};
use billing_domain::page::{ListRequest, Page};
use billing_domain::patch::Changes;
use billing_domain::quantity::Quantity;
use billing_domain::rating::{self, RatedItem};
use billing_domain::refs::{PricingRef, UsageProductRef};
use billing_domain::violation::Violations;

use super::{inserted, only, updated};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, unknown_reference};

/// The price of a quantity under a pricing.
#[derive(Clone, Debug)]
pub struct PricingRate {
    /// The quantity.
    pub quantity: Quantity,
    /// The price of the quantity by each metered line item.
    pub line_items: Vec<RatedItem>,
}

/// Creates a pricing. Assigns a reference if none is given.
///
/// # Errors
/// Returns one of these errors:
/// - [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference is in use.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid references.
pub fn create_pricing(cx: &mut Cx<'_>, reference: Option<PricingRef>, content: PricingContent) -> UseCaseResult<Pricing> {
    let made = Pricing {
        pricing_ref: reference.unwrap_or_else(|| PricingRef::assigned(cx.services.ids.new_id())),
        content,
        created_at: cx.now,
        updated_at: cx.now,
    };
    check_content(cx, &made.content)?;
    inserted(ResourceKind::Pricing, cx.tx.insert_pricing(cx.organization, &made)?)?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Pricing(&made)))?;
    Ok(made)
}

/// Changes a pricing.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the pricing does not exist.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values and references.
pub fn edit_pricing(cx: &mut Cx<'_>, reference: &PricingRef, changes: &Changes<PricingContent>) -> UseCaseResult<Pricing> {
    let found = cx.tx.pricings_by_refs(cx.organization, std::slice::from_ref(reference))?;
    let present = only(ResourceKind::Pricing, found)?;
    let mut made = present.clone();
    changes.apply(&mut made.content);
    check_content(cx, &made.content)?;
    if made != present {
        made.updated_at = cx.now;
    }
    updated(ResourceKind::Pricing, cx.tx.update_pricing(cx.organization, &made)?)?;
    let change = AuditChange::From(AuditSubject::Pricing(&present), AuditSubject::Pricing(&made));
    cx.audit(AuditAction::Edit, change)?;
    Ok(made)
}

/// Returns a pricing.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the pricing does not exist.
pub fn get_pricing(cx: &mut Cx<'_>, reference: &PricingRef) -> UseCaseResult<Pricing> {
    only(ResourceKind::Pricing, cx.tx.pricings_by_refs(cx.organization, std::slice::from_ref(reference))?)
}

/// Returns the prices of quantities, each by every metered line item.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the pricing does not exist.
/// - [`AmountOutOfRange`](crate::error::UseCaseError::AmountOutOfRange) if an amount is too large.
pub fn rate_pricing(cx: &mut Cx<'_>, reference: &PricingRef, quantities: &[Quantity]) -> UseCaseResult<Vec<PricingRate>> {
    let found = get_pricing(cx, reference)?;
    rates(&found.content, quantities)
}

/// Returns the prices of quantities by a pricing that is not stored.
///
/// # Errors
/// Returns one of these errors:
/// - [`Invalid`](crate::error::UseCaseError::Invalid) if the pricing could not be created.
/// - [`AmountOutOfRange`](crate::error::UseCaseError::AmountOutOfRange) if an amount is too large.
pub fn rate_new_pricing(cx: &mut Cx<'_>, content: &PricingContent, quantities: &[Quantity]) -> UseCaseResult<Vec<PricingRate>> {
    check_content(cx, content)?;
    rates(content, quantities)
}

fn rates(content: &PricingContent, quantities: &[Quantity]) -> UseCaseResult<Vec<PricingRate>> {
    let rate = |quantity: &Quantity| {
        let line_items = rating::rate_pricing(content, *quantity).map_err(UseCaseError::AmountOutOfRange)?;
        Ok(PricingRate { quantity: *quantity, line_items })
    };
    quantities.iter().map(rate).collect()
}

/// Returns a page of pricings.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the pricings cannot be read.
pub fn list_pricings(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<Pricing>> {
    Ok(cx.tx.listed_pricings(cx.organization, &list.updates, list.by, list.page)?)
}

/// Checks that line items are distinct and that their usage products exist.
fn check_content(cx: &mut Cx<'_>, content: &PricingContent) -> UseCaseResult<()> {
    let refs: Vec<UsageProductRef> = content.metered().map(|(_, usage_product_ref)| usage_product_ref.clone()).collect();
    let known = cx.tx.usage_products_by_refs(cx.organization, &refs)?;
    content.check(&known)?;
    let mut found = Violations::none();
    for (i, wanted) in content.metered() {
        if !known.iter().any(|product| product.usage_product_ref == *wanted) {
            let index = i.to_string();
            let path = ["line_items", &index, "usage_product_ref"];
            found.extend_below(&[], unknown_reference(&path, ResourceKind::UsageProduct));
        }
    }
    Ok(found.or(())?)
}
