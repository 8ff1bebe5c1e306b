//! Charges and their revisions.

use chrono::NaiveDate;

use super::{Insertion, StoreResult};
use crate::charge::Charge;
use crate::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use crate::refs::{ChargeRef, ContractRef, CustomerId, OrganizationId};

/// A filter for lists of charges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargeFilter {
    /// Matches charges of this customer.
    pub customer_id: Option<CustomerId>,
    /// Matches charges of this contract.
    pub contract_ref: Option<ContractRef>,
    /// Matches charges on or after this date.
    pub from: Option<NaiveDate>,
    /// Matches charges on or before this date.
    pub to: Option<NaiveDate>,
    /// Conditions on the newest revision's time.
    pub updates: UpdateFilter,
}

/// Storage of charges. To write a charge, its contract must be locked [`Lock::Exclusive`](super::Lock::Exclusive).
pub trait Charges {
    /// Stores a new charge.
    fn insert_charge(&mut self, organization: OrganizationId, charge: &Charge) -> StoreResult<Insertion>;
    /// Replaces a charge with its next revision and keeps the superseded revision.
    ///
    /// # Errors
    /// Returns [`StoreError::Contended`](super::StoreError::Contended) when the stored revision is not the superseded
    /// one.
    fn revise_charge(&mut self, organization: OrganizationId, superseded: &Charge, revised: &Charge) -> StoreResult<()>;
    /// Returns a charge by reference alone, also when it is deleted.
    fn charge(&mut self, organization: OrganizationId, charge_ref: &ChargeRef) -> StoreResult<Option<Charge>>;
    /// Returns the superseded revisions of customers' charges, grouped by charge, oldest first.
    fn superseded_charges(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        charges: &[ChargeRef],
    ) -> StoreResult<Vec<Charge>>;
    /// Returns a page of the charges that are not deleted and match a filter. The order may be ascending or descending.
    fn listed_charges(
        &mut self,
        organization: OrganizationId,
        filter: &ChargeFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Charge>>;
    /// Returns a page of the charges that are not deleted and match a filter, ordered by creation.
    fn charges(&mut self, organization: OrganizationId, filter: &ChargeFilter, page: PageRequest) -> StoreResult<Page<Charge>> {
        self.listed_charges(organization, filter, ListSortKey::Created, page)
    }
}
