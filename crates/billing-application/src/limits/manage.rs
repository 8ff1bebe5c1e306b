//! Creates, changes and reads limits.

use std::collections::BTreeSet;

use billing_domain::audit::AuditAction;
use billing_domain::decimal::Decimal;
use billing_domain::limit::{Limit, LimitValue, MAX_DRAFTS, MAX_LIMITS, ReachedLevels};
use billing_domain::notification::limit_levels::of_number;
use billing_domain::page::{Page, PageRequest};
use billing_domain::patch::Patch;
use billing_domain::ports::{GrantFilter, Lock};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{CustomerId, CustomerRef, LimitRef};
use billing_domain::refusal::Refusal;

use super::metric::{FoundMetric, find_metric};
use super::tell::{numbers_and_credit, numbers_of, tell};
use super::{CustomerLeft, CustomerLimits, LimitEdit, LimitRequest, LimitView};
use crate::audit::{AuditChange, AuditSubject};
use crate::basics::{corrupt, distinct};
use crate::carry_out::Cx;
use crate::catalog::narrow_to_customer;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// Creates a limit. From then on, usage is rejected that would raise its number above the maximum.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Invalid`] for an unknown reference, a maximum with too many decimals, or more limits than allowed.
/// - [`UseCaseError::Conflict`] `limit_exists` if the customer has a limit of the same number.
/// - [`UseCaseError::Conflict`] `too_many_drafts` if the account has too many drafts.
pub fn create_limit(cx: &mut Cx<'_>, request: &LimitRequest) -> UseCaseResult<LimitView> {
    let organization = cx.organization;
    let FoundMetric { metric, customer, account } = find_metric(cx, request)?;
    let limit = Limit {
        limit_ref: LimitRef::from_uuid(cx.services.ids.new_id()),
        customer_id: customer.id,
        levels: metric.parse_levels(request.max.as_deref(), &request.thresholds)?,
        metric,
        reached: ReachedLevels::default(),
        notifications: 0,
        created_at: cx.now,
        updated_at: cx.now,
    };
    begin_watch(cx, customer.id)?;
    cx.lock_accounts(&[customer.id])?;
    // Later transactions of the customer meet at this row.
    cx.tx.hold_account(organization, &account)?;
    let others = cx.tx.limits_of(organization, &[customer.id])?;
    if others.iter().any(|other| other.metric == limit.metric) {
        let detail = "the customer already has a limit of this number: edit that limit";
        return Err(Refusal::conflict("limit_exists", detail).into());
    }
    if others.len() >= MAX_LIMITS {
        let field = if limit.metric.product().is_some() { "contract_ref" } else { "customer_ref" };
        let detail = format!("must be of a customer with fewer than {MAX_LIMITS} limits: delete a limit, or edit one");
        return Err(Refusal::field(&[field], "too_many_limits", detail).into());
    }
    if let Some(account) = limit.account() {
        require_few_drafts(cx, account, "a limit")?;
    }
    cx.tx.insert_limit(organization, &limit)?;
    let view = view_of(cx, limit, customer.customer_ref)?;
    // What is reached already is notified.
    tell(cx, vec![(view.number.clone(), of_number(&view.number.limit.levels, &view.number))])?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Limit(&view)))?;
    Ok(view)
}

/// Makes a customer watched. The lock comes before all contracts, and a new contract waits for it, so no contract misses the state.
pub(crate) fn begin_watch(cx: &mut Cx<'_>, customer_id: CustomerId) -> UseCaseResult<()> {
    let (_, is_watched) = cx.tx.watched_customer(cx.organization, customer_id, Some(Lock::Exclusive))?;
    if !is_watched {
        cx.tx.set_watched(cx.organization, customer_id, true)?;
    }
    Ok(())
}

/// Checks that the drafts of an account are few enough to be read for each event. `needing` is what makes them read.
pub(crate) fn require_few_drafts(cx: &mut Cx<'_>, account: AccountKey, needing: &str) -> UseCaseResult<()> {
    let drafts: usize = cx.tx.contracts_with_drafts(cx.organization, &BTreeSet::from([account]))?.values().sum();
    if drafts > MAX_DRAFTS {
        let detail = format!(
            "the account has {drafts} drafts, and each of them would be read for each event: {needing} needs at most {MAX_DRAFTS}"
        );
        return Err(Refusal::conflict("too_many_drafts", detail).into());
    }
    Ok(())
}

/// Changes the levels of a limit, at once.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the limit does not exist, or [`UseCaseError::Invalid`] for a number with too many decimals.
pub fn edit_limit(cx: &mut Cx<'_>, limit_ref: LimitRef, edit: &LimitEdit) -> UseCaseResult<LimitView> {
    let (before, customer_ref) = lock_limit(cx, limit_ref, false)?;
    let max = match &edit.max {
        Patch::Keep => before.levels.max.map(|max| max.to_string()),
        Patch::Clear => None,
        Patch::Set(max) => Some(max.clone()),
    };
    let thresholds = edit.thresholds.clone();
    let thresholds = thresholds.unwrap_or_else(|| before.levels.thresholds.iter().map(Decimal::to_string).collect());
    let levels = before.metric.parse_levels(max.as_deref(), &thresholds)?;
    let before = view_of(cx, before, customer_ref.clone())?;
    let limit = Limit { levels, updated_at: cx.now, ..before.number.limit.clone() };
    if !cx.tx.update_limit(cx.organization, &limit)? {
        return Err(UseCaseError::Unknown(ResourceKind::Limit));
    }
    let LimitValue { window, is_present, value, held, credit, .. } = before.number;
    let number = LimitValue::new(limit, (window, is_present), (value, held))?.with_credit(credit)?;
    let view = LimitView { number, customer_ref };
    let steps = of_number(&before.number.limit.levels, &view.number);
    tell(cx, vec![(view.number.clone(), steps)])?;
    cx.audit(AuditAction::Edit, AuditChange::From(AuditSubject::Limit(&before), AuditSubject::Limit(&view)))?;
    Ok(view)
}

/// Deletes a limit. A customer without limits and without credit is no longer watched.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the limit does not exist.
pub fn delete_limit(cx: &mut Cx<'_>, limit_ref: LimitRef) -> UseCaseResult<()> {
    let (limit, customer_ref) = lock_limit(cx, limit_ref, true)?;
    let view = view_of(cx, limit, customer_ref)?;
    if !cx.tx.delete_limit(cx.organization, &view.number.limit)? {
        return Err(UseCaseError::Unknown(ResourceKind::Limit));
    }
    cx.audit(AuditAction::Delete, AuditChange::Gone(AuditSubject::Limit(&view)))
}

/// Returns a limit with its number.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the limit does not exist.
pub fn get_limit(cx: &mut Cx<'_>, limit_ref: LimitRef) -> UseCaseResult<LimitView> {
    let limit = cx.tx.limit(cx.organization, limit_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Limit))?;
    views_of(cx, vec![limit])?.pop().ok_or(UseCaseError::InvariantViolation("a limit without a view"))
}

/// Returns a page of limits, ordered by creation. The page is empty if the customer does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the limits cannot be read.
pub fn list_limits(cx: &mut Cx<'_>, customer_ref: Option<&CustomerRef>, page: PageRequest) -> UseCaseResult<Page<LimitView>> {
    let mut customer_id = None;
    if !narrow_to_customer(cx.tx, cx.organization, customer_ref, &mut customer_id)? {
        return Ok(Page::empty());
    }
    let found = cx.tx.limits(cx.organization, customer_id, page)?;
    Ok(Page { items: views_of(cx, found.items)?, total: found.total })
}

/// Returns what is left of the limits of customers, in one consistent view and in the order of the request. Unknown customers
/// are omitted.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the limits cannot be read.
pub fn limits_left(cx: &mut Cx<'_>, customers: &[CustomerRef]) -> UseCaseResult<Vec<CustomerLeft>> {
    let found = cx.tx.customers_by_refs(cx.organization, customers)?;
    let ids: Vec<CustomerId> = found.iter().map(|customer| customer.id).collect();
    let limits = cx.tx.limits_of(cx.organization, &ids)?;
    let mut numbers = numbers_and_credit(cx, &ids, limits)?;
    let of_customer = |customer_ref: &CustomerRef| {
        let customer = found.iter().find(|customer| customer.customer_ref == *customer_ref)?;
        let (limits, credit) = numbers.remove(&customer.id).unwrap_or_default();
        let of_limits = CustomerLimits { customer_ref: customer_ref.clone(), limits };
        Some(CustomerLeft { of_limits, credit })
    };
    Ok(customers.iter().filter_map(of_customer).collect())
}

/// Locks the accounts of a limit's customer. Also ends the watch of the customer, if `is_last_ended` is set, the limit is the only one,
/// and the customer never had credit. Returns the limit and the customer's reference.
fn lock_limit(cx: &mut Cx<'_>, limit_ref: LimitRef, is_last_ended: bool) -> UseCaseResult<(Limit, CustomerRef)> {
    let unknown = || UseCaseError::Unknown(ResourceKind::Limit);
    let customer_id = cx.tx.limit(cx.organization, limit_ref)?.ok_or_else(unknown)?.customer_id;
    let (customer, _) = cx.tx.watched_customer(cx.organization, customer_id, Some(Lock::Exclusive))?;
    let limits = cx.tx.limits_of(cx.organization, &[customer_id])?;
    let is_last = limits.len() == 1;
    let limit = limits.into_iter().find(|limit| limit.limit_ref == limit_ref).ok_or_else(unknown)?;
    let of_customer = GrantFilter { customer_id: Some(customer_id), ..GrantFilter::default() };
    if is_last_ended && is_last && cx.tx.grants(cx.organization, &of_customer, PageRequest::LARGEST)?.total == 0 {
        cx.tx.set_watched(cx.organization, customer_id, false)?;
    }
    cx.lock_accounts(&[customer_id])?;
    Ok((limit, customer.customer_ref))
}

fn view_of(cx: &mut Cx<'_>, limit: Limit, customer_ref: CustomerRef) -> UseCaseResult<LimitView> {
    let number = numbers_of(cx, vec![limit])?.into_values().flatten().next();
    let number = number.ok_or(UseCaseError::InvariantViolation("a limit without a number"))?;
    Ok(LimitView { number, customer_ref })
}

/// Returns the views of limits, in the same order.
fn views_of(cx: &mut Cx<'_>, limits: Vec<Limit>) -> UseCaseResult<Vec<LimitView>> {
    if limits.is_empty() {
        return Ok(Vec::new());
    }
    let order: Vec<LimitRef> = limits.iter().map(|limit| limit.limit_ref).collect();
    let customers = cx.tx.customers_by_ids(cx.organization, &distinct(limits.iter().map(|limit| limit.customer_id)))?;
    let mut numbers: Vec<LimitValue> = numbers_of(cx, limits)?.into_values().flatten().collect();
    numbers.sort_by_key(|number| order.iter().position(|limit_ref| *limit_ref == number.limit.limit_ref));
    let view = |number: LimitValue| {
        let customer = customers.iter().find(|customer| customer.id == number.limit.customer_id);
        let customer = customer.ok_or_else(|| corrupt("a limit", &number.limit.limit_ref, "has no customer"))?;
        Ok(LimitView { number, customer_ref: customer.customer_ref.clone() })
    };
    numbers.into_iter().map(view).collect()
}
