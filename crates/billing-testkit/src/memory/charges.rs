//! Charges and their revisions.

use billing_domain::charge::Charge;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{ChargeFilter, Charges, Insertion, StoreError, StoreResult};
use billing_domain::refs::{ChargeRef, ContractKey, CustomerId, OrganizationId};

use super::{MemoryTx, page, sorted};

impl MemoryTx {
    /// A contract's charges, deleted ones too.
    pub(super) fn charges_of(&self, key: ContractKey) -> Vec<Charge> {
        let rows = self.state.charges.of(key.organization);
        let of_contract = rows.filter(|row| row.customer_id == key.customer && row.contract_ref == key.contract);
        sorted(of_contract, |row| row.charge_ref.clone())
    }
}

impl Charges for MemoryTx {
    fn insert_charge(&mut self, organization: OrganizationId, charge: &Charge) -> StoreResult<Insertion> {
        self.held.need_contract(organization, charge.contract_ref, "insert_charge")?;
        if self.charge(organization, &charge.charge_ref)?.is_some() {
            return Ok(Insertion::Taken("charge_ref"));
        }
        self.state.charges.push(organization, charge.clone());
        Ok(Insertion::Done)
    }

    fn revise_charge(&mut self, organization: OrganizationId, superseded: &Charge, revised: &Charge) -> StoreResult<()> {
        self.held.need_contract(organization, superseded.contract_ref, "revise_charge")?;
        let mut rows = self.state.charges.of_mut(organization);
        let is_it = |row: &&mut Charge| {
            row.charge_ref == superseded.charge_ref
                && row.customer_id == superseded.customer_id
                && row.revision == superseded.revision
        };
        let Some(row) = rows.find(is_it) else { return Err(StoreError::Contended) };
        *row = revised.clone();
        self.state.superseded_charges.push(organization, superseded.clone());
        Ok(())
    }

    fn charge(&mut self, organization: OrganizationId, charge_ref: &ChargeRef) -> StoreResult<Option<Charge>> {
        Ok(self.state.charges.of(organization).find(|row| row.charge_ref == *charge_ref).cloned())
    }

    fn superseded_charges(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        charges: &[ChargeRef],
    ) -> StoreResult<Vec<Charge>> {
        let rows = self.state.superseded_charges.of(organization);
        let asked = rows.filter(|row| customers.contains(&row.customer_id) && charges.contains(&row.charge_ref));
        Ok(sorted(asked, |row| (row.charge_ref.clone(), row.revision)))
    }

    fn charges(
        &mut self,
        organization: OrganizationId,
        filter: &ChargeFilter,
        request: PageRequest,
    ) -> StoreResult<Page<Charge>> {
        let passes = |row: &&Charge| {
            !row.deleted
                && filter.customer_id.is_none_or(|wanted| wanted == row.customer_id)
                && filter.contract_ref.is_none_or(|wanted| wanted == row.contract_ref)
                && filter.from.is_none_or(|from| from <= row.date)
                && filter.to.is_none_or(|to| row.date <= to)
        };
        let passed = self.state.charges.of(organization).filter(passes);
        Ok(page(passed, request, |row| (row.recorded_at, row.charge_ref.clone())))
    }
}
