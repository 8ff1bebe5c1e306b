//! Where an event lands: the contract, the period and the document that bills it (billing rules 4).

use billing_domain::calendar::Timestamp;
use billing_domain::contract::ProductPeriod;
use billing_domain::document::linking::{Share, share_for_usage};
use billing_domain::matching::{EventFacts, match_event};
use billing_domain::party::Customer;
use billing_domain::ports::Tx;
use billing_domain::refs::OrganizationId;
use billing_domain::usage::MAX_AHEAD_SECONDS;
use billing_domain::violation::Violations;

use crate::error::UseCaseResult;
use crate::ledger::{Account, entities_of};

/// How often a contract or document may change between finding and holding it before the store is called
/// contended.
pub(super) const MAX_HOLD_ATTEMPTS: u32 = 4;

/// Refuses a timestamp too far ahead of the clock.
pub(super) fn refuse_future(occurred_at: Timestamp, now: Timestamp) -> UseCaseResult<()> {
    if occurred_at > now.plus_seconds(MAX_AHEAD_SECONDS) {
        let detail = "must not be more than 5 minutes ahead of the server's clock";
        return Err(Violations::one(&["timestamp"], "timestamp_in_future", detail).into());
    }
    Ok(())
}

/// The account of the contract an event lands on.
pub(super) fn matching_account(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer: &Customer,
    facts: EventFacts<'_>,
) -> UseCaseResult<Account> {
    let contracts = tx.contracts_metering(organization, customer.id, facts.usage_product_ref)?;
    let entities = entities_of(tx, organization, &contracts)?;
    let contract = match_event(facts, &contracts, &entities)?.contract.clone();
    Ok(Account { organization, contract, customer: customer.clone(), entities })
}

/// Whether an event only adds to the usage of a draft that is there.
pub(super) fn goes_on_a_draft(tx: &mut dyn Tx, account: &Account, facts: EventFacts<'_>) -> UseCaseResult<bool> {
    let (period, share) = place(account, facts)?;
    match account.stored(tx, &share)? {
        Some(carrier) => Ok(carrier.is_draft() && !account.is_due_upon_usage(Some(&carrier), period)?),
        None => Ok(false),
    }
}

/// The period of the event's contract it counts in, and the share of a document that bills it.
pub(super) fn place<'c>(account: &'c Account, facts: EventFacts<'_>) -> UseCaseResult<(ProductPeriod<'c>, Share<'c>)> {
    let period = match_event(facts, std::slice::from_ref(&account.contract), &account.entities)?.period;
    Ok((period, share_for_usage(account.product(period.product_no)?, period)))
}
