//! Charges and their revisions.

use chrono::NaiveDate;

use super::{Insertion, StoreResult};
use crate::charge::Charge;
use crate::page::{Page, PageRequest};
use crate::refs::{ChargeRef, ContractRef, CustomerId, OrganizationId};

/// What a list of charges is narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargeFilter {
    /// This customer's.
    pub customer_id: Option<CustomerId>,
    /// This contract's.
    pub contract_ref: Option<ContractRef>,
    /// Of this day or later.
    pub from: Option<NaiveDate>,
    /// Of this day or earlier.
    pub to: Option<NaiveDate>,
}

/// Charges. Their contract must be held [`Lock::Exclusive`](super::Lock::Exclusive) to write them.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Charges {
    /// Stores a new one.
    fn insert_charge(&mut self, organization: OrganizationId, charge: &Charge) -> StoreResult<Insertion>;
    /// Replaces a charge by its next revision and keeps the superseded one.
    ///
    /// # Errors
    /// [`StoreError::Contended`](super::StoreError::Contended) when the stored revision isn't the superseded one.
    fn revise_charge(&mut self, organization: OrganizationId, superseded: &Charge, revised: &Charge) -> StoreResult<()>;
    /// By reference alone, a deleted one too.
    fn charge(&mut self, organization: OrganizationId, charge_ref: &ChargeRef) -> StoreResult<Option<Charge>>;
    /// The superseded revisions of customers' charges, by charge, oldest first.
    fn superseded_charges(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        charges: &[ChargeRef],
    ) -> StoreResult<Vec<Charge>>;
    /// Those that aren't deleted and pass a filter, by creation.
    fn charges(&mut self, organization: OrganizationId, filter: &ChargeFilter, page: PageRequest) -> StoreResult<Page<Charge>>;
}
