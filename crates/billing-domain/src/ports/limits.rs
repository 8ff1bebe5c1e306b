//! Limits, and the customers that have them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Lock, StoreResult};
use crate::limit::Limit;
use crate::page::{Page, PageRequest};
use crate::party::Customer;
use crate::receivables::AccountKey;
use crate::refs::{ContractKey, CustomerId, LimitRef, OrganizationId};

/// Storage of limits.
pub trait Limits {
    /// Stores a new limit.
    fn insert_limit(&mut self, organization: OrganizationId, limit: &Limit) -> StoreResult<()>;
    /// Updates the levels of a limit, what notifications stated about it, and the time of its last change. Returns `false` when the limit does not exist.
    fn update_limit(&mut self, organization: OrganizationId, limit: &Limit) -> StoreResult<bool>;
    /// Deletes a limit. Returns `false` when the limit does not exist.
    fn delete_limit(&mut self, organization: OrganizationId, limit: &Limit) -> StoreResult<bool>;
    /// Returns a limit, by reference alone.
    fn limit(&mut self, organization: OrganizationId, limit_ref: LimitRef) -> StoreResult<Option<Limit>>;
    /// Returns the limits of these customers, ordered by reference.
    fn limits_of(&mut self, organization: OrganizationId, customers: &[CustomerId]) -> StoreResult<Vec<Limit>>;
    /// Returns a page of the limits of a customer, or of the organization without a customer, ordered by creation. The order
    /// may be ascending or descending.
    fn limits(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
        page: PageRequest,
    ) -> StoreResult<Page<Limit>>;
    /// Returns a customer, and whether it is watched. A lock holds until the transaction ends; customers are locked before contracts.
    fn watched_customer(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        lock: Option<Lock>,
    ) -> StoreResult<(Customer, bool)>;
    /// Sets whether a customer and all of the customer's contracts are watched. Locks the customer, and then exclusively the
    /// contracts that change, until the transaction ends.
    fn set_watched(&mut self, organization: OrganizationId, customer_id: CustomerId, is_watched: bool) -> StoreResult<()>;
    /// Returns the contracts that have drafts in any of these accounts, with the number of these drafts.
    fn contracts_with_drafts(
        &mut self,
        organization: OrganizationId,
        accounts: &BTreeSet<AccountKey>,
    ) -> StoreResult<BTreeMap<ContractKey, usize>>;
}
