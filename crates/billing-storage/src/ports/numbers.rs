//! Sequences: counter rows, so that a rollback also returns the number.

use std::collections::BTreeMap;

use billing_domain::document::{DocumentHead, DocumentKind};
use billing_domain::ports::{NumberSeries, StoreError, StoreResult};
use billing_domain::refs::{ContractKey, EntityRef, OrganizationId};
use diesel::prelude::*;
use diesel::sql_types::Integer;
use uuid::Uuid;

use super::{counted, stored};
use crate::failure::StatementError;
use crate::row::{Cell, Row};
use crate::schema::number_series;
use crate::sql_types::{Bound, Id};
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{UpdateRows, column};

/// The kind of the series that counts an organization's contracts. Its entity is the organization.
pub(super) const CONTRACT_KIND: &str = "CONTRACT";
/// The previous hash of the first document in a chain.
pub(super) const CHAIN_START: [u8; 32] = [0; 32];

impl Transaction<'_> {
    /// Creates the series of a new entity.
    pub(super) fn insert_series(&mut self, organization: OrganizationId, entity_ref: &str, prefix: &str) -> StoreResult<()> {
        for kind in DOCUMENT_KINDS {
            with_conn!(self, "number_series", |conn| diesel::insert_into(number_series::table)
                .values((
                    number_series::organization_id.eq(Bound(organization.as_uuid())),
                    number_series::entity_ref.eq(entity_ref),
                    number_series::kind.eq(kind.to_text()),
                    number_series::prefix.eq(prefix),
                    number_series::last.eq(0),
                    number_series::chain_length.eq(0),
                    number_series::chain_head.eq(CHAIN_START.as_slice()),
                ))
                .execute(conn))?;
        }
        Ok(())
    }

    /// Deletes the series of an entity that has no users, so that they have no numbers.
    pub(super) fn delete_series(&mut self, organization: OrganizationId, entity_ref: &str) -> StoreResult<()> {
        let deleted = with_conn!(self, "number_series", |conn| diesel::delete(number_series::table)
            .filter(number_series::organization_id.eq(Bound(organization.as_uuid())))
            .filter(number_series::entity_ref.eq(entity_ref))
            .filter(number_series::last.eq(0))
            .execute(conn))?;
        if deleted == DOCUMENT_KINDS.len() {
            return Ok(());
        }
        self.refuse(format!("number_series {entity_ref}: has numbers"))
    }

    /// Changes the prefix of an entity's series. If a number has been assigned since the caller looked, the next attempt sees
    /// it.
    pub(super) fn change_prefix(&mut self, organization: OrganizationId, entity_ref: &str, prefix: &str) -> StoreResult<()> {
        let changed = with_conn!(self, "number_series", |conn| diesel::update(number_series::table)
            .filter(number_series::organization_id.eq(Bound(organization.as_uuid())))
            .filter(number_series::entity_ref.eq(entity_ref))
            .filter(number_series::last.eq(0))
            .set(number_series::prefix.eq(prefix))
            .execute(conn))?;
        if changed < DOCUMENT_KINDS.len() {
            return Err(self.remember(StatementError::Contended));
        }
        Ok(())
    }

    /// Checks that numbers begin with the prefix of their series. A transaction has locked the series when it took the numbers. If the prefix changed since it was read, the next attempt sees the change.
    pub(super) fn check_prefixes<'h>(
        &mut self,
        organization: OrganizationId,
        heads: impl IntoIterator<Item = &'h DocumentHead>,
    ) -> StoreResult<()> {
        for head in heads {
            let series = SeriesKey::of(organization, &head.entity_ref, head.kind);
            if !self.prefixes.contains_key(&series) {
                let key = (Bound(series.organization), series.entity_ref.as_str(), series.kind.as_str());
                let prefix: Option<String> = with_conn!(self, "number_series", |conn| number_series::table
                    .find(key)
                    .select(number_series::prefix)
                    .first(conn)
                    .optional())?;
                self.prefixes.extend(prefix.map(|prefix| (series.clone(), prefix)));
            }
            if self.prefixes.get(&series).map(String::as_str) != Some(head.number.prefix.as_str()) {
                return Err(self.remember(StatementError::Contended));
            }
        }
        Ok(())
    }
}

/// The series of an entity.
const DOCUMENT_KINDS: [DocumentKind; 3] = [DocumentKind::Invoice, DocumentKind::Credit, DocumentKind::Debit];

/// The key of a series of document numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeriesKey {
    organization: Uuid,
    entity_ref: String,
    kind: String,
}

impl SeriesKey {
    fn of(organization: OrganizationId, entity_ref: &EntityRef, kind: DocumentKind) -> Self {
        Self { organization: organization.as_uuid(), entity_ref: entity_ref.as_str().to_owned(), kind: kind.to_text() }
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
        let series = SeriesKey::of(organization, entity_ref, kind);
        let key = (Bound(series.organization), series.entity_ref.as_str(), series.kind.as_str());
        let taken: Option<(i64, String)> =
            with_conn!(self, "number_series", |conn| diesel::update(number_series::table.find(key))
                .set(number_series::last.eq(number_series::last + i64::from(many)))
                .returning((number_series::last, number_series::prefix))
                .get_result(conn)
                .optional())?;
        let Some((last, prefix)) = taken else {
            return self.refuse(format!("number_series {}/{}: not there", series.entity_ref, series.kind));
        };
        self.prefixes.insert(series, prefix);
        counted(last - i64::from(many) + 1)
    }

    fn has_given_numbers(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<bool> {
        with_conn!(self, "number_series", |conn| diesel::select(diesel::dsl::exists(
            number_series::table
                .filter(number_series::organization_id.eq(Bound(organization.as_uuid())))
                .filter(number_series::entity_ref.eq(entity_ref.as_str()))
                .filter(number_series::last.gt(0))
        ))
        .get_result(conn))
    }

    fn next_contract_number(&mut self, organization: OrganizationId) -> StoreResult<u64> {
        self.note_number_series()?;
        let last: i64 = with_conn!(self, "number_series", |conn| diesel::insert_into(number_series::table)
            .values((
                number_series::organization_id.eq(Bound(organization.as_uuid())),
                number_series::entity_ref.eq(organization.to_string()),
                number_series::kind.eq(CONTRACT_KIND),
                number_series::prefix.eq(""),
                number_series::last.eq(1),
                number_series::chain_length.eq(0),
                number_series::chain_head.eq(CHAIN_START.as_slice()),
            ))
            .on_conflict((number_series::organization_id, number_series::entity_ref, number_series::kind))
            .do_update()
            .set(number_series::last.eq(number_series::last + 1))
            .returning(number_series::last)
            .get_result(conn))?;
        counted(last)
    }

    fn take_numbers_in_contracts(&mut self, wanted: &BTreeMap<ContractKey, u32>) -> StoreResult<BTreeMap<ContractKey, u32>> {
        let mut counts: Vec<(ContractKey, i32)> = Vec::with_capacity(wanted.len());
        for (key, many) in wanted {
            self.require_contract(key.contract, "take_numbers_in_contracts")?;
            counts.push((*key, stored(*many)?));
        }
        let keys = vec![
            ("contract_id", column(&counts, |(key, _)| key.contract.as_uuid())),
            ("customer_id", column(&counts, |(key, _)| key.customer.as_uuid())),
            ("organization_id", column(&counts, |(key, _)| key.organization.as_uuid())),
        ];
        let update = UpdateRows::new("contracts", keys, Vec::new())
            .reading(vec![("many", column(&counts, |(_, many)| *many))])
            .also("documents_opened = contracts.documents_opened + {many}");
        let columns = "contracts.contract_id, contracts.documents_opened";
        let taken: Vec<(Cell<Uuid>, i32)> = self.write_returning::<_, (Id, Integer), _>(update, columns)?;
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
