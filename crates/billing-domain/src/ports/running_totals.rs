//! The running totals of usage.

use super::StoreResult;
use crate::refs::{ContractRef, CustomerId, EventRef, OrganizationId, UsageProductRef};
use crate::usage::{UsageKey, UsageTotal};

/// The running totals of usage.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait RunningTotals {
    /// Holds running totals of customers' contracts until the transaction ends, in the order of their keys, and answers them
    /// in that order; a total that isn't there is made, as zero.
    fn lock_usage(
        &mut self,
        organization: OrganizationId,
        keys: &[(CustomerId, UsageKey)],
    ) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// Replaces running totals that are there, held by [`lock_usage`](Self::lock_usage) or with their contract.
    fn put_usage(&mut self, organization: OrganizationId, totals: &[(CustomerId, UsageKey, UsageTotal)]) -> StoreResult<()>;
    /// Σ of how many events the totals count of an organization, a customer's, a contract's or a usage product's where they are named.
    #[allow(clippy::needless_lifetimes, reason = "the mock needs the lifetime named")]
    fn events_in_totals<'a>(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
        contract_ref: Option<ContractRef>,
        usage_product_ref: Option<&'a UsageProductRef>,
    ) -> StoreResult<u64>;
    /// A total counted again from the events that aren't deleted, one left out where asked, whatever their number,
    /// in bounded memory.
    fn recount_usage(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        key: &UsageKey,
        except: Option<EventRef>,
    ) -> StoreResult<UsageTotal>;
}
