//! Notifies the levels that numbers reached or left, at the end of the transaction that changed them (billing rules 11).

use std::collections::BTreeMap;

use billing_domain::decimal::{Decimal, exact_add};
use billing_domain::limit::{Limit, LimitCredit, LimitValue};
use billing_domain::notification::limit_levels::{LevelSteps, of_number, of_rejection};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{CustomerId, LimitRef};

use super::AccountCredit;
use super::watch::{AddedNumbers, SettledEntries, Watch, WatchedNumbers};
use crate::basics::{corrupt, distinct};
use crate::carry_out::Cx;
use crate::error::{UseCaseError, UseCaseResult};
use crate::notifications;

/// Returns limits with their numbers of now, by customer.
pub(super) fn numbers_of(cx: &mut Cx<'_>, limits: Vec<Limit>) -> UseCaseResult<BTreeMap<CustomerId, Vec<LimitValue>>> {
    let customers = distinct(limits.iter().map(|limit| limit.customer_id));
    let numbers = numbers_and_credit(cx, &customers, limits)?.into_iter();
    Ok(numbers.map(|(customer_id, (numbers, _))| (customer_id, numbers)).collect())
}

/// The numbers of limits, and the free credit of accounts.
type NumbersAndCredit = (Vec<LimitValue>, Vec<AccountCredit>);

/// Returns the limits of customers with their numbers of now, and the free credit of the customers' accounts.
pub(super) fn numbers_and_credit(
    cx: &mut Cx<'_>,
    customers: &[CustomerId],
    limits: Vec<Limit>,
) -> UseCaseResult<BTreeMap<CustomerId, NumbersAndCredit>> {
    if customers.is_empty() {
        return Ok(BTreeMap::new());
    }
    let open = cx.tx.open_entries(cx.organization, customers, cx.now)?;
    let mut none = BTreeMap::new();
    let watch = Watch::read(cx, customers, (limits, open, None), &mut none, WatchedNumbers::Now)?;
    let numbers = |customer_id: &CustomerId| {
        let mut added = AddedNumbers::default();
        watch.note(cx, &mut added, *customer_id, &none, (None, &SettledEntries::new()))?;
        let account = |(account, credit): (&AccountKey, LimitCredit)| AccountCredit {
            entity_ref: account.entity_ref.clone(),
            currency: account.currency,
            credit,
            unit: watch.credit_unit(account),
        };
        let credit = added.credit_of(*customer_id).map(account).collect();
        Ok((*customer_id, (watch.values(*customer_id, &added)?, credit)))
    };
    customers.iter().map(numbers).collect()
}

/// Notifies the levels of customers whose numbers the transaction may have changed. Reads the numbers that aren't given.
pub(crate) fn tell_levels(cx: &mut Cx<'_>, changed: BTreeMap<CustomerId, Option<Vec<LimitValue>>>) -> UseCaseResult<()> {
    let unread: Vec<CustomerId> =
        changed.iter().filter(|(_, numbers)| numbers.is_none()).map(|(customer_id, _)| *customer_id).collect();
    let mut numbers: Vec<LimitValue> = changed.into_values().flatten().flatten().collect();
    if !unread.is_empty() {
        let limits = cx.tx.limits_of(cx.organization, &unread)?;
        numbers.extend(numbers_of(cx, limits)?.into_values().flatten());
    }
    let steps = |number: LimitValue| {
        let steps = of_number(&number.limit.levels, &number);
        (number, steps)
    };
    tell(cx, numbers.into_iter().map(steps).collect())
}

/// Stores what is notified about limits, and records the notifications. Numbers of other service periods notify nothing.
pub(super) fn tell(cx: &mut Cx<'_>, mut steps: Vec<(LimitValue, LevelSteps)>) -> UseCaseResult<()> {
    steps.retain(|(number, steps)| number.is_present && !steps.are_none(&number.limit));
    if steps.is_empty() {
        return Ok(());
    }
    let customers = distinct(steps.iter().map(|(number, _)| number.limit.customer_id));
    let customers = cx.tx.customers_by_ids(cx.organization, &customers)?;
    let mut facts = Vec::new();
    for (number, steps) in steps {
        let Limit { limit_ref, customer_id, .. } = &number.limit;
        let customer = customers.iter().find(|customer| customer.id == *customer_id);
        let customer = customer.ok_or_else(|| corrupt("a limit", limit_ref, "has no customer"))?;
        let (limit, new) = steps.facts(&number, &customer.customer_ref);
        cx.tx.update_limit(cx.organization, &limit)?;
        facts.extend(new);
    }
    notifications::record(cx, &facts, &[])
}

/// Notifies that usage was rejected by a limit, if the usage would still be rejected. Locks the accounts of the customer.
pub(crate) fn tell_rejection(cx: &mut Cx<'_>, limit_ref: LimitRef, needed: Decimal) -> UseCaseResult<()> {
    let found = cx.tx.limit(cx.organization, limit_ref)?;
    // Most rejections follow another one, and need no lock.
    let Some(limit) = found.filter(|limit| limit.reached.max_at.is_none()) else { return Ok(()) };
    cx.lock_accounts(&[limit.customer_id])?;
    let locked = cx.tx.limit(cx.organization, limit_ref)?.into_iter().collect();
    let number = numbers_of(cx, locked)?.into_values().flatten().next();
    let is_still_rejected = |number: &LimitValue| match number.limit.levels.max {
        Some(max) => Ok::<_, UseCaseError>(exact_add(number.value, needed)? > max),
        None => Ok(false),
    };
    match number {
        Some(number) if is_still_rejected(&number)? => {
            let steps = of_rejection(&number);
            tell(cx, vec![(number, steps)])
        }
        _ => Ok(()),
    }
}
