//! The instants when contracts next have something to issue.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Timestamp;
use billing_domain::ports::{DueContract, DueContracts, Lock, StoreError, StoreResult};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, EntityRef, OrganizationId};
use diesel::dsl::{exists, sql};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Nullable, Text};
use uuid::Uuid;

use super::counted;
use crate::in_list::{also_one_of_ids, one_of_ids};
use crate::row::{Cell, Row};
use crate::schema::{contract_products, contracts};
use crate::sql_types::{Bound, Ts};
use crate::tx::{Transaction, load_held, with_conn};
use crate::written_rows::{UpdateRows, column};

/// The escape character of patterns; no reference contains it.
const ESCAPE: char = '!';

/// Escapes a reference for a pattern. The underscore is the only wildcard that references contain.
fn escaped(reference: &str) -> String {
    reference.replace('_', &format!("{ESCAPE}_"))
}

/// The contracts of an organization that name an entity in any version.
macro_rules! naming {
    ($organization:expr, $entity_ref:expr) => {
        contracts::table.filter(contracts::organization_id.eq(Bound($organization.as_uuid()))).filter(exists(
            contract_products::table
                .filter(contract_products::contract_id.eq(contracts::contract_id))
                .filter(contract_products::customer_id.eq(contracts::customer_id))
                .filter(
                    sql::<Bool>("CAST(contract_products.terms AS TEXT) LIKE ")
                        .bind::<Text, _>(format!("%\"entity_ref\":\"{}\"%", escaped($entity_ref.as_str())))
                        .sql(&format!(" ESCAPE '{ESCAPE}'")),
                ),
        ))
    };
}

impl Transaction<'_> {
    /// Returns the number of a contract that names an entity in any version.
    pub(super) fn contract_naming(&mut self, organization: OrganizationId, entity_ref: &EntityRef) -> StoreResult<Option<u64>> {
        let number: Option<i64> = with_conn!(self, "contracts", |conn| naming!(organization, entity_ref)
            .select(contracts::number)
            .first(conn)
            .optional())?;
        number.map(counted).transpose()
    }
}

impl DueContracts for Transaction<'_> {
    fn contracts_due(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        after: Option<DueContract>,
        limit: u32,
    ) -> StoreResult<Vec<DueContract>> {
        type Due = (Cell<Uuid>, Cell<Uuid>, Cell<Uuid>, Option<Cell<Timestamp>>);
        let rows: Vec<Due> = with_conn!(self, "contracts", |conn| {
            let mut query = contracts::table
                .filter(contracts::next_due_at.is_not_null().and(contracts::next_due_at.le(Bound(now))))
                .order((contracts::next_due_at, contracts::contract_id))
                .limit(i64::from(limit))
                .select((contracts::organization_id, contracts::customer_id, contracts::contract_id, contracts::next_due_at))
                .into_boxed::<Db>();
            if let Some(organization) = organization {
                query = query.filter(contracts::organization_id.eq(Bound(organization.as_uuid())));
            }
            if let Some(after) = after {
                let same_instant = contracts::next_due_at
                    .eq(Bound(after.due_at))
                    .and(contracts::contract_id.gt(Bound(after.key.contract.as_uuid())));
                query = query.filter(contracts::next_due_at.gt(Bound(after.due_at)).or(same_instant));
            }
            query.load(conn)
        })?;
        let read = |(organization, customer_id, contract_id, due_at): Due| {
            let row = Row::new("contracts", contract_id.clone());
            let due_at = row.optional("next_due_at", due_at)?;
            let key = ContractKey {
                organization: OrganizationId::from_uuid(row.cell("organization_id", organization)?),
                customer: CustomerId::from_uuid(row.cell("customer_id", customer_id)?),
                contract: ContractRef::from_uuid(row.cell("contract_id", contract_id)?),
            };
            let due_at = due_at.ok_or_else(|| StoreError::Corrupt("contracts: due without an instant".to_owned()))?;
            Ok(DueContract { key, due_at })
        };
        rows.into_iter().map(read).collect()
    }

    fn count_contracts_due(&mut self, now: Timestamp) -> StoreResult<u64> {
        counted(with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::next_due_at.is_not_null().and(contracts::next_due_at.le(Bound(now))))
            .count()
            .get_result(conn))?)
    }

    fn advance_due_instants(&mut self, organization: OrganizationId, entity_ref: &EntityRef, at: Timestamp) -> StoreResult<()> {
        // Every contract is locked, also a contract that is already due: a billing run that is not committed yet may postpone
        // it. On a distributed database, writing the rows locks them.
        let lock = (!self.is_spread).then_some(Lock::Exclusive);
        let held: Vec<(Cell<Uuid>, Cell<Uuid>)> = load_held!(
            self,
            "contracts",
            lock,
            naming!(organization, entity_ref)
                .order(contracts::contract_id)
                .select((contracts::contract_id, contracts::customer_id))
        )?;
        // The locked contracts belong to the organization, so their identifiers suffice.
        let row = Row::new("contracts", "");
        let read = |(id, customer)| Ok((row.cell("contract_id", id)?, row.cell("customer_id", customer)?));
        let keys: Vec<(Uuid, Uuid)> = held.into_iter().map(read).collect::<StoreResult<_>>()?;
        keys.iter().try_for_each(|(id, _)| self.note_contract(ContractRef::from_uuid(*id), Lock::Exclusive))?;
        let (ids, customers): (Vec<Uuid>, BTreeSet<Uuid>) = keys.into_iter().unzip();
        let are_spread = self.is_spread;
        with_conn!(self, "contracts", |conn| {
            let these = contracts::table
                .filter(one_of_ids(contracts::contract_id, ids))
                .filter(also_one_of_ids(contracts::customer_id, customers));
            if are_spread {
                let earlier = sql::<Nullable<Ts>>("least(next_due_at, ").bind::<Ts, _>(Bound(at)).sql(")");
                return diesel::update(these).set(contracts::next_due_at.eq(earlier)).execute(conn);
            }
            diesel::update(these.filter(contracts::next_due_at.is_null().or(contracts::next_due_at.gt(Bound(at)))))
                .set(contracts::next_due_at.eq(Bound(at)))
                .execute(conn)
        })?;
        Ok(())
    }

    fn set_next_dues(&mut self, due: &BTreeMap<ContractKey, Option<Timestamp>>) -> StoreResult<()> {
        let keys = vec![
            ("contract_id", column(due.keys(), |key| key.contract.as_uuid())),
            ("customer_id", column(due.keys(), |key| key.customer.as_uuid())),
            ("organization_id", column(due.keys(), |key| key.organization.as_uuid())),
        ];
        let changes = vec![("next_due_at", column(due.values(), |at| *at))];
        self.update_rows(UpdateRows::new("contracts", keys, changes)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::calendar::Timestamp;
    use billing_domain::ports::DueContracts as _;

    use crate::query_plans::plans_of;

    #[test]
    fn due_contracts_are_counted_in_their_index() {
        let now = Timestamp::from_micros(0).expect("an instant");
        let plans = plans_of(|tx| assert_eq!(tx.count_contracts_due(now).expect("a count"), 0));
        let [plan] = plans.as_slice() else { panic!("one statement: {plans:?}") };
        assert!(plan.steps.iter().all(|step| step.contains("USING COVERING INDEX contracts_due")), "{plan:?}");
    }
}
