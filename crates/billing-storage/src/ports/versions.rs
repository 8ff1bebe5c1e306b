//! A contract's next version, and a walk through all contracts.

use billing_domain::access::Actor;
use billing_domain::calendar::Timestamp;
use billing_domain::contract::Contract;
use billing_domain::ports::StoreResult;
use billing_domain::refs::{ContractRef, OrganizationId};
use billing_domain::text::Line;
use diesel::prelude::*;
use uuid::Uuid;

use super::contracts::{Found, read_contracts};
use super::stored;
use crate::schema::{contract_versions, contracts};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

impl Transaction<'_> {
    pub(super) fn append_version(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        at: Timestamp,
        by: Actor,
    ) -> StoreResult<()> {
        let (contract_id, customer_id) = (Bound(contract.contract_ref.as_uuid()), Bound(contract.customer_id.as_uuid()));
        let version: i32 = stored(contract.version)?;
        let po_number = contract.po_number.as_ref().map(Line::as_str);
        // The version before is tested in the statement that replaces it.
        let changed = with_conn!(self, "contracts", |conn| {
            diesel::update(contracts::table.find((contract_id, customer_id)))
                .filter(contracts::organization_id.eq(Bound(organization.as_uuid())))
                .filter(contracts::version.eq(version - 1))
                .set((
                    contracts::version.eq(version),
                    contracts::po_number.eq(po_number),
                    contracts::cancelled_at.eq(contract.cancelled_at.map(Bound)),
                ))
                .execute(conn)
        })?;
        if changed == 0 {
            return self.refuse(format!("contracts {}: has no version before {version}", contract.contract_ref));
        }
        with_conn!(self, "contract_versions", |conn| diesel::insert_into(contract_versions::table)
            .values((
                contract_versions::contract_id.eq(contract_id),
                contract_versions::customer_id.eq(customer_id),
                contract_versions::version.eq(version),
                contract_versions::created_at.eq(Bound(at)),
                contract_versions::created_by.eq(by.to_string()),
                contract_versions::po_number.eq(po_number),
            ))
            .execute(conn))?;
        self.insert_segments(contract, Some(contract.version))
    }

    pub(super) fn contracts_by_ref(
        &mut self,
        organization: OrganizationId,
        after: Option<ContractRef>,
        limit: u32,
    ) -> StoreResult<Vec<Contract>> {
        // No contract has the nil UUID.
        let after = after.map_or(Uuid::nil(), |after| after.as_uuid());
        read_contracts(with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::organization_id.eq(Bound(organization.as_uuid())))
            .filter(contracts::contract_id.gt(Bound(after)))
            .order(contracts::contract_id)
            .limit(i64::from(limit))
            .select(Found::as_select())
            .load(conn))?)
    }
}
