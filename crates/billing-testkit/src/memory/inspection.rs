//! What `verify` looks at. Nothing here can be tampered with, so no hash is ever wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use billing_domain::calendar::Timestamp;
use billing_domain::contract::Contract;
use billing_domain::document::DocumentKind;
use billing_domain::ports::{Inspection, StoreResult};
use billing_domain::refs::{ContractKey, ContractRef, EntityRef, OrganizationId};
use billing_domain::usage::{UsageKey, UsageTotal};
use billing_domain::verification::RecordedVerification;

use super::{MemoryTx, corrupt, sorted};

impl Inspection for MemoryTx {
    fn all_organizations(&mut self) -> StoreResult<Vec<OrganizationId>> {
        Ok(self.state.organizations.iter().map(|row| row.id).collect())
    }

    fn contracts_after(
        &mut self,
        organization: OrganizationId,
        after: Option<ContractRef>,
        limit: u32,
    ) -> StoreResult<Vec<(ContractKey, Timestamp)>> {
        let rows = self.state.contracts.of(organization).map(|row| &row.contract);
        let mut found = sorted(rows.filter(|row| Some(row.contract_ref) > after), |row| row.contract_ref);
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let made_at = |contract: &Contract| {
            let made = self.state.versions_made.get(&contract.contract_ref);
            made.copied().unwrap_or(contract.created_at)
        };
        Ok(found.iter().map(|contract| (contract.key(organization), made_at(contract))).collect())
    }

    fn recount_contract(&mut self, key: ContractKey) -> StoreResult<Vec<(UsageKey, UsageTotal)>> {
        let mut totals: BTreeMap<UsageKey, UsageTotal> = BTreeMap::new();
        for row in self.state.events.of(key.organization).filter(|row| row.customer_id == key.customer && !row.deleted) {
            if row.placement.contract_ref == key.contract {
                let total = totals.entry(row.usage_key()).or_insert(UsageTotal::ZERO);
                *total = total.plus(row.counted()).map_err(|reason| corrupt(reason.to_string()))?;
            }
        }
        Ok(totals.into_iter().collect())
    }

    fn broken_series(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        let mut series: BTreeMap<(EntityRef, DocumentKind), Vec<u64>> = BTreeMap::new();
        for row in self.state.documents.of(organization) {
            series.entry((row.head.entity_ref.clone(), row.head.kind)).or_default().push(row.head.number.sequence);
        }
        let mut broken = Vec::new();
        for ((entity_ref, kind), mut numbers) in series {
            numbers.sort_unstable();
            if !numbers.iter().copied().eq(1..=numbers.len() as u64) {
                broken.push(format!("the series {kind:?} of {entity_ref} is not 1 to n: {numbers:?}"));
            }
        }
        Ok(broken)
    }

    fn broken_seals(&mut self, _organization: OrganizationId) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn broken_files(&mut self, _organization: OrganizationId) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn put_verification(&mut self, organization: OrganizationId, verification: &RecordedVerification) -> StoreResult<()> {
        Arc::make_mut(&mut self.state.verifications).insert(organization, verification.clone());
        Ok(())
    }

    fn last_verification(&mut self, organization: OrganizationId) -> StoreResult<Option<RecordedVerification>> {
        Ok(self.state.verifications.get(&organization).cloned())
    }
}
