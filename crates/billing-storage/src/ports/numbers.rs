//! Sequences: counter rows, so that a number goes back with its transaction.

use billing_domain::document::DocumentKind;
use billing_domain::ports::{NumberSeries, StoreError, StoreResult};
use billing_domain::refs::{ContractKey, EntityRef, OrganizationId};
use diesel::prelude::*;

use super::{counted, stored};
use crate::leaf::Leaf as _;
use crate::schema::{contracts, number_series};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// The kind of the series that counts an organization's contracts, for no entity.
pub(super) const CONTRACT_KIND: &str = "CONTRACT";
/// What the first hash of a chain is taken over.
pub(super) const CHAIN_START: [u8; 32] = [0; 32];

impl Transaction<'_> {
    fn next_in_series(&mut self, organization: OrganizationId, entity_ref: &str, kind: &str) -> StoreResult<u64> {
        counted(with_conn!(self, "number_series", |conn| diesel::insert_into(number_series::table)
            .values((
                number_series::organization_id.eq(Bound(organization.as_uuid())),
                number_series::entity_ref.eq(entity_ref),
                number_series::kind.eq(kind),
                number_series::last.eq(1),
                number_series::chain_length.eq(0),
                number_series::chain_head.eq(CHAIN_START.as_slice()),
            ))
            .on_conflict((number_series::organization_id, number_series::entity_ref, number_series::kind))
            .do_update()
            .set(number_series::last.eq(number_series::last + 1))
            .returning(number_series::last)
            .get_result(conn))?)
    }
}

impl NumberSeries for Transaction<'_> {
    fn next_document_number(
        &mut self,
        organization: OrganizationId,
        entity_ref: &EntityRef,
        kind: DocumentKind,
    ) -> StoreResult<u64> {
        self.next_in_series(organization, entity_ref.as_str(), &kind.show())
    }

    fn has_given_numbers(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<bool> {
        with_conn!(self, "number_series", |conn| diesel::select(diesel::dsl::exists(
            number_series::table
                .filter(number_series::organization_id.eq(Bound(organization.as_uuid())))
                .filter(number_series::entity_ref.eq(entity_ref.as_str()))
        ))
        .get_result(conn))
    }

    fn next_contract_number(&mut self, organization: OrganizationId) -> StoreResult<u64> {
        self.next_in_series(organization, "", CONTRACT_KIND)
    }

    fn next_number_in_contract(&mut self, key: ContractKey) -> StoreResult<u32> {
        let number: Option<i32> = with_conn!(self, "contracts", |conn| {
            diesel::update(contracts::table.find((Bound(key.contract.as_uuid()), Bound(key.customer.as_uuid()))))
                .filter(contracts::organization_id.eq(Bound(key.organization.as_uuid())))
                .set(contracts::documents_opened.eq(contracts::documents_opened + 1))
                .returning(contracts::documents_opened)
                .get_result(conn)
                .optional()
        })?;
        let number = number
            .ok_or_else(|| StoreError::Corrupt(format!("contracts {}: not there to number its documents", key.contract)))?;
        stored(number)
    }
}
