//! The running totals of usage.

use super::StoreResult;
use crate::contract::Contract;
use crate::labels::LabelDigest;
use crate::ledger::live_labels::LiveLabels;
use crate::ledger::recount::Recount;
use crate::refs::{ContractRef, CustomerId, EventRef, OrganizationId, UsageProductRef};
use crate::usage::{UsageKey, UsageTotal};

/// A running total of a customer, and the digest of a label that `UNIQUE` counts.
pub type LabelOfTotal = (CustomerId, UsageKey, LabelDigest);

/// Storage of the running totals of usage.
pub trait RunningTotals {
    /// Locks running totals of customers' contracts until the transaction ends, in the order of their keys. Returns the
    /// totals in that order. Creates missing totals as zero.
    fn lock_usage(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, UsageKey)],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// Updates existing running totals. They must be locked by [`lock_usage`](Self::lock_usage) or through their
    /// contract.
    fn put_usage(&mut self, organization: OrganizationId, totals: &[(CustomerId, UsageKey, UsageTotal)]) -> StoreResult<()>;
    /// Adds new events to running totals and locks the totals until the transaction ends, in the order of their keys.
    /// Each key occurs once, with the total of its new events alone. Returns the totals with these events, in the order
    /// of their keys. Missing totals count as zero.
    ///
    /// Returns `None` when a sum exceeds its digits. The caller must then roll the transaction back.
    fn add_usage(
        &mut self,
        organization: OrganizationId,
        added: &[(CustomerId, UsageKey, UsageTotal)],
    ) -> StoreResult<Option<Vec<(UsageKey, UsageTotal)>>>;
    /// Returns how many live events of running totals have each text of a label, counted up to a limit. The totals must be locked.
    fn live_labels(&mut self, labels: &[LabelOfTotal], up_to: u32) -> StoreResult<LiveLabels>;
    /// Returns the sum of the event counts of an organization's totals, optionally of one customer, contract or usage
    /// product.
    fn events_in_totals(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
        contract_ref: Option<ContractRef>,
        usage_product_ref: Option<&UsageProductRef>,
    ) -> StoreResult<u64>;
    /// Recounts the totals of all line items of a usage product in a period, by the terms of the contract, from the events
    /// that are not deleted, optionally without one event. Uses bounded memory for any number of events, except for the
    /// distinct texts that `UNIQUE` counts.
    fn recount_usage(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        period_key: &UsageKey,
        except: Option<EventRef>,
    ) -> StoreResult<Recount>;
}
