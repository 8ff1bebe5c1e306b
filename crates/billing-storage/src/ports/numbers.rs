//! Sequences: counter rows, so that a rollback also returns the number.

use std::collections::BTreeMap;

use billing_domain::document::DocumentKind;
use billing_domain::ports::{NumberSeries, StoreError, StoreResult};
use billing_domain::refs::{ContractKey, EntityRef, OrganizationId};
use diesel::prelude::*;
use diesel::sql_types::Integer;
use uuid::Uuid;

use super::{counted, stored};
use crate::arrays::{Returning, UpdateRows, column};
use crate::row::{Cell, Row};
use crate::schema::{contracts, number_series};
use crate::sql_types::{Bound, Id};
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};

/// The kind of the series that counts an organization's contracts, without an entity.
pub(super) const CONTRACT_KIND: &str = "CONTRACT";
/// The previous hash of the first document in a chain.
pub(super) const CHAIN_START: [u8; 32] = [0; 32];

impl Transaction<'_> {
    /// Takes the next `many` numbers and returns the first.
    fn take_of_series(&mut self, organization: OrganizationId, entity_ref: &str, kind: &str, many: u32) -> StoreResult<u64> {
        let last: i64 = with_conn!(self, "number_series", |conn| diesel::insert_into(number_series::table)
            .values((
                number_series::organization_id.eq(Bound(organization.as_uuid())),
                number_series::entity_ref.eq(entity_ref),
                number_series::kind.eq(kind),
                number_series::last.eq(i64::from(many)),
                number_series::chain_length.eq(0),
                number_series::chain_head.eq(CHAIN_START.as_slice()),
            ))
            .on_conflict((number_series::organization_id, number_series::entity_ref, number_series::kind))
            .do_update()
            .set(number_series::last.eq(number_series::last + i64::from(many)))
            .returning(number_series::last)
            .get_result(conn))?;
        counted(last - i64::from(many) + 1)
    }
}

impl NumberSeries for Transaction<'_> {
    fn take_document_numbers(
        &mut self,
        organization: OrganizationId,
        entity_ref: &EntityRef,
        kind: DocumentKind,
        many: u32,
    ) -> StoreResult<u64> {
        self.note_number_series()?;
        self.take_of_series(organization, entity_ref.as_str(), &kind.to_text(), many)
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
        self.note_number_series()?;
        self.take_of_series(organization, "", CONTRACT_KIND, 1)
    }

    fn take_numbers_in_contracts(&mut self, wanted: &BTreeMap<ContractKey, u32>) -> StoreResult<BTreeMap<ContractKey, u32>> {
        let mut counts: Vec<(ContractKey, i32)> = Vec::with_capacity(wanted.len());
        for (key, many) in wanted {
            self.require_contract(key.contract, "take_numbers_in_contracts")?;
            counts.push((*key, stored(*many)?));
        }
        let taken: Vec<(Cell<Uuid>, i32)> = if let Some(connection) = self.with_arrays() {
            let columns = vec![
                ("contract_id", column(&counts, |(key, _)| key.contract.as_uuid())),
                ("customer_id", column(&counts, |(key, _)| key.customer.as_uuid())),
                ("organization_id", column(&counts, |(key, _)| key.organization.as_uuid())),
                ("many", column(&counts, |(_, many)| *many)),
            ];
            let set = "documents_opened = contracts.documents_opened + n.many";
            let update = UpdateRows::new("contracts", set, columns, 3);
            let taken =
                Returning::<_, (Id, Integer)>::new(update, "contracts.contract_id, contracts.documents_opened").load(connection);
            taken.map_err(|error| self.failed("contracts", &error))?
        } else {
            with_conn!(self, "contracts", |conn| {
                let take = |(key, many): &(ContractKey, i32)| {
                    diesel::update(contracts::table.find((Bound(key.contract.as_uuid()), Bound(key.customer.as_uuid()))))
                        .filter(contracts::organization_id.eq(Bound(key.organization.as_uuid())))
                        .set(contracts::documents_opened.eq(contracts::documents_opened + *many))
                        .returning((contracts::contract_id, contracts::documents_opened))
                        .get_results(conn)
                };
                counts.iter().map(take).collect::<QueryResult<Vec<Vec<_>>>>().map(|taken| taken.into_iter().flatten().collect())
            })?
        };
        let row = Row::new("contracts", "");
        let mut last: BTreeMap<Uuid, i32> = BTreeMap::new();
        for (contract_id, opened) in taken {
            last.insert(row.cell("contract_id", contract_id)?, opened);
        }
        let first = |(key, many): (ContractKey, i32)| {
            let last = last.get(&key.contract.as_uuid());
            let last = last
                .ok_or_else(|| StoreError::Corrupt(format!("contracts {}: not there to number its documents", key.contract)))?;
            Ok((key, stored(last - many + 1)?))
        };
        counts.into_iter().map(first).collect()
    }
}
