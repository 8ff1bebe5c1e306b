//! The queries of `verify`, except for [`seals`](super::seals).

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Timestamp;
use billing_domain::contract::Contract;
use billing_domain::document::DocumentKind;
use billing_domain::ledger::overdue::VersionTimes;
use billing_domain::ledger::recount::Recount;
use billing_domain::ports::{IntegrityQueries, StoreResult};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, OrganizationId};
use billing_domain::verification::RecordedVerification;
use diesel::dsl::{count, count_star, exists, max, min, not};
use diesel::prelude::*;
use uuid::Uuid;

use super::counted;
use super::numbers::CONTRACT_KIND;
use crate::row::{Cell, Row};
use crate::schema::{
    audit_log, billing_runs, contract_versions, contracts, documents, number_series, organizations, usage_events,
};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// An entity and a kind.
type SeriesKey = (String, String);
/// The count of numbers, the count of distinct numbers, the first and the last.
type Numbers = (i64, i64, Option<i64>, Option<i64>);

impl IntegrityQueries for Transaction<'_> {
    fn all_organizations(&mut self) -> StoreResult<Vec<OrganizationId>> {
        let ids: Vec<Cell<Uuid>> = with_conn!(self, "organizations", |conn| organizations::table
            .order((organizations::created_at, organizations::organization_id))
            .select(organizations::organization_id)
            .load(conn))?;
        let row = Row::new("organizations", "");
        ids.into_iter().map(|id| Ok(OrganizationId::from_uuid(row.cell("organization_id", id)?))).collect()
    }

    fn latest_recorded_instant(&mut self) -> StoreResult<Option<Timestamp>> {
        // Identifiers grow with the time of their creation. There is no index by time over all organizations, because it
        // would slow down every event.
        let event: Option<(Cell<Timestamp>, Cell<Timestamp>)> = with_conn!(self, "usage_events", |conn| usage_events::table
            .order((usage_events::event_id.desc(), usage_events::customer_id.desc()))
            .select((usage_events::recorded_at, usage_events::revised_at))
            .first(conn)
            .optional())?;
        let entry: Option<Cell<Timestamp>> = with_conn!(self, "audit_log", |conn| audit_log::table
            .order(audit_log::audit_id.desc())
            .select(audit_log::at)
            .first(conn)
            .optional())?;
        let run: Option<Cell<Timestamp>> = with_conn!(self, "billing_runs", |conn| billing_runs::table
            .order(billing_runs::begun_at.desc())
            .select(billing_runs::begun_at)
            .first(conn)
            .optional())?;
        let (recorded, revised) = event.unzip();
        let events = Row::new("usage_events", "the newest");
        let found = [
            events.optional("recorded_at", recorded)?,
            events.optional("revised_at", revised)?,
            Row::new("audit_log", "the newest").optional("at", entry)?,
            Row::new("billing_runs", "the newest").optional("begun_at", run)?,
        ];
        Ok(found.into_iter().flatten().max())
    }

    fn contracts_after(
        &mut self,
        organization: OrganizationId,
        after: Option<ContractRef>,
        limit: u32,
    ) -> StoreResult<Vec<ContractKey>> {
        type Found = (Cell<Uuid>, Cell<Uuid>);
        // No contract has the nil UUID.
        let after = after.map_or(Uuid::nil(), |after| after.as_uuid());
        let rows: Vec<Found> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::organization_id.eq(Bound(organization.as_uuid())))
            .filter(contracts::contract_id.gt(Bound(after)))
            .order(contracts::contract_id)
            .limit(i64::from(limit))
            .select((contracts::contract_id, contracts::customer_id))
            .load(conn))?;
        let read = |(id, customer): Found| {
            let id = Row::new("contracts", "").cell("contract_id", id)?;
            let row = Row::new("contracts", id);
            Ok(ContractKey {
                organization,
                customer: CustomerId::from_uuid(row.cell("customer_id", customer)?),
                contract: ContractRef::from_uuid(id),
            })
        };
        rows.into_iter().map(read).collect()
    }

    fn version_times(&mut self, key: ContractKey) -> StoreResult<VersionTimes> {
        let rows: Vec<(i32, Cell<Timestamp>)> = with_conn!(self, "contract_versions", |conn| contract_versions::table
            .filter(contract_versions::customer_id.eq(Bound(key.customer.as_uuid())))
            .filter(contract_versions::contract_id.eq(Bound(key.contract.as_uuid())))
            .select((contract_versions::version, contract_versions::created_at))
            .load(conn))?;
        let row = Row::new("contract_versions", key.contract);
        let read =
            |(version, created_at)| Ok((row.checked("version", u32::try_from(version))?, row.cell("created_at", created_at)?));
        rows.into_iter().map(read).collect()
    }

    fn events_without_document(&mut self, key: ContractKey) -> StoreResult<u64> {
        let customer = Bound(key.customer.as_uuid());
        counted(with_conn!(self, "usage_events", |conn| usage_events::table
            .filter(usage_events::customer_id.eq(customer))
            .filter(usage_events::contract_id.eq(Bound(key.contract.as_uuid())))
            .filter(not(exists(
                documents::table
                    .filter(documents::document_id.eq(usage_events::document_id))
                    .filter(documents::customer_id.eq(customer))
            )))
            .count()
            .get_result(conn))?)
    }

    fn recount_contract(&mut self, organization: OrganizationId, contract: &Contract) -> StoreResult<Recount> {
        self.count_again(organization, contract, None, None)
    }

    fn broken_series(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        let mut broken = self.broken_document_numbers(organization)?;
        broken.extend(self.doubled_numbers(organization)?);
        broken.extend(self.broken_numbers_in_contracts(organization)?);
        Ok(broken)
    }

    fn broken_seals(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        let mut broken = self.broken_chains(organization)?;
        broken.extend(self.unsealed_documents(organization)?);
        Ok(broken)
    }

    fn broken_files(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        self.files_without_their_hash(organization)
    }

    fn put_verification(&mut self, organization: OrganizationId, verification: &RecordedVerification) -> StoreResult<()> {
        self.write_verification(organization, verification)
    }

    fn last_verification(&mut self, organization: OrganizationId) -> StoreResult<Option<RecordedVerification>> {
        self.read_verification(organization)
    }
}

impl Transaction<'_> {
    fn broken_document_numbers(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        type Counted = (String, String, i64, i64, Option<i64>, Option<i64>);
        let rows: Vec<Counted> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .group_by((documents::entity_ref, documents::kind))
            .select((
                documents::entity_ref,
                documents::kind,
                count_star(),
                count(documents::sequence).aggregate_distinct(),
                min(documents::sequence),
                max(documents::sequence),
            ))
            .load(conn))?;
        let numbers: BTreeMap<SeriesKey, Numbers> =
            rows.into_iter().map(|row| ((row.0, row.1), (row.2, row.3, row.4, row.5))).collect();
        let counters: Vec<(String, String, i64)> = with_conn!(self, "number_series", |conn| number_series::table
            .filter(number_series::organization_id.eq(Bound(organization.as_uuid())))
            .filter(number_series::kind.ne(CONTRACT_KIND))
            .select((number_series::entity_ref, number_series::kind, number_series::last))
            .load(conn))?;
        let counters: BTreeMap<SeriesKey, i64> = counters.into_iter().map(|row| ((row.0, row.1), row.2)).collect();
        let mut broken = Vec::new();
        for key in numbers.keys().chain(counters.keys()).collect::<BTreeSet<_>>() {
            let (documents, different, first, last) = numbers.get(key).copied().unwrap_or((0, 0, None, None));
            let counter = counters.get(key).copied().unwrap_or(0);
            if !is_one_to_n(documents, different, first, last) || counter != documents {
                let (entity_ref, kind) = key;
                broken.push(format!(
                    "the series {kind} of entity {entity_ref} isn't 1 to n: {documents} documents with {different} different \
                     numbers from {} to {}, and its counter stands at {counter}",
                    first.unwrap_or(0),
                    last.unwrap_or(0)
                ));
            }
        }
        Ok(broken)
    }

    /// Returns the numbers that several documents have. A unique index prevents duplicates, but a distributed database
    /// has no such index.
    fn doubled_numbers(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        let rows: Vec<(String, String, i64, i64)> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .group_by((documents::number_prefix, documents::kind, documents::sequence))
            .having(count_star().gt(1))
            .order((documents::number_prefix, documents::kind, documents::sequence))
            .select((documents::number_prefix, documents::kind, documents::sequence, count_star()))
            .load(conn))?;
        let row = Row::new("documents", "");
        let named = |(prefix, kind, sequence, documents): (String, String, i64, i64)| {
            let kind: DocumentKind = row.leaf("kind", &kind)?;
            Ok(format!("the number {prefix}-{}-{sequence} is on {documents} documents", kind.abbreviation()))
        };
        rows.into_iter().map(named).collect()
    }

    fn broken_numbers_in_contracts(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>> {
        type Counted = (i64, i32, i64, i64, Option<i32>, Option<i32>);
        with_conn!(self, "contracts", |conn| {
            let counted =
                contracts::table
                    .left_join(documents::table.on(
                        documents::contract_id.eq(contracts::contract_id).and(documents::customer_id.eq(contracts::customer_id)),
                    ))
                    .filter(contracts::organization_id.eq(Bound(organization.as_uuid())))
                    .group_by((contracts::contract_id, contracts::number, contracts::documents_opened))
                    .select((
                        contracts::number,
                        contracts::documents_opened,
                        count(documents::document_id.nullable()),
                        count(documents::number_in_contract.nullable()).aggregate_distinct(),
                        min(documents::number_in_contract.nullable()),
                        max(documents::number_in_contract.nullable()),
                    ));
            let mut broken = Vec::new();
            for row in counted.load_iter::<Counted, RowByRow>(conn)? {
                let (number, opened, documents, different, first, last) = row?;
                if !is_one_to_n(documents, different, first.map(i64::from), last.map(i64::from)) || i64::from(opened) != documents
                {
                    broken.push(format!(
                        "the documents of contract C-{number} aren't numbered 1 to n: {documents} with {different} different \
                         numbers from {} to {}, and its counter stands at {opened}",
                        first.unwrap_or(0),
                        last.unwrap_or(0)
                    ));
                }
            }
            Ok(broken)
        })
    }
}

/// Returns whether numbers with this count, distinct count, first and last are 1…n.
fn is_one_to_n(numbers: i64, different: i64, first: Option<i64>, last: Option<i64>) -> bool {
    numbers == different && first.unwrap_or(1) == 1 && last.unwrap_or(0) == numbers
}

#[cfg(test)]
mod tests {
    use billing_domain::ports::IntegrityQueries as _;

    use crate::query_plans::plans_of;

    #[test]
    fn the_latest_instant_costs_one_step_in_an_index_of_each_table() {
        let plans = plans_of(|tx| assert_eq!(tx.latest_recorded_instant().expect("an empty database"), None));
        assert_eq!(plans.len(), 3, "{plans:?}");
        for plan in &plans {
            let [step] = plan.steps.as_slice() else { panic!("{plan:?}") };
            assert!(!step.contains("TEMP B-TREE"), "{plan:?}");
        }
    }
}
