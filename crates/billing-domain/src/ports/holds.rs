//! Holds of customers.

use super::{Insertion, StoreResult};
use crate::calendar::Timestamp;
use crate::hold::{EntryKey, Hold, OpenEntry};
use crate::page::{Page, PageRequest};
use crate::refs::{CustomerId, EventRef, HoldRef, OrganizationId};

/// Storage of holds.
pub trait Holds {
    /// Stores a new hold. Returns `Taken("hold_ref")` when the customer has a hold with the reference.
    fn insert_hold(&mut self, organization: OrganizationId, hold: &Hold) -> StoreResult<Insertion>;
    /// Returns a hold of a customer.
    fn hold(&mut self, organization: OrganizationId, customer_id: CustomerId, hold_ref: &HoldRef) -> StoreResult<Option<Hold>>;
    /// Returns a page of a customer's holds in the order of creation. With `open_at`, only holds with an entry that is open then.
    fn holds(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        open_at: Option<Timestamp>,
        page: PageRequest,
    ) -> StoreResult<Page<Hold>>;
    /// Returns the entries of these customers that are open at an instant, in the order of their places.
    fn open_entries(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        now: Timestamp,
    ) -> StoreResult<Vec<OpenEntry>>;
    /// Ends entries that events settle. An entry that has ended stays as it is.
    fn settle_entries(
        &mut self,
        organization: OrganizationId,
        settled: &[(EntryKey, EventRef)],
        at: Timestamp,
    ) -> StoreResult<()>;
    /// Releases all entries of a hold that have not ended.
    fn release_hold(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        hold_ref: &HoldRef,
        at: Timestamp,
    ) -> StoreResult<()>;
    /// Deletes up to `limit` entries of holds that expired before an instant, in every organization. Returns their number.
    fn purge_holds(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
