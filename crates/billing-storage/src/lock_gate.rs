//! The turnstile in front of a customer's contracts, on PostgreSQL.
//!
//! Its row locks let those who share a row pass whoever waits for it alone, as long as there is always one who shares it: an
//! edit would never reach a contract that events pour in on. So whoever wants a contract alone and doesn't get it at once
//! closes the turnstile until its transaction ends, and whoever wants to share one walks through the turnstile first, without
//! holding any contract yet.

use std::collections::BTreeMap;

use billing_domain::ports::Lock;
use billing_domain::refs::ContractKey;
use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Bool};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::sql_types::Id;

diesel::define_sql_function! {
    /// Waits for an advisory lock that is held until the transaction ends.
    fn pg_advisory_xact_lock(key: BigInt);
}

/// True once the turnstiles have been walked through.
#[derive(Debug)]
pub(crate) struct GatePassed {
    keys: Vec<i64>,
}

/// Walks through the turnstiles of customers whose contracts are to be shared; for any other lock through none.
pub(crate) fn pass_gate(customers: impl IntoIterator<Item = Uuid>, lock: Option<Lock>) -> GatePassed {
    let mut keys: Vec<i64> = match lock {
        Some(Lock::Shared) => customers.into_iter().map(key).collect(),
        Some(Lock::Exclusive) | None => Vec::new(),
    };
    keys.sort_unstable();
    keys.dedup();
    GatePassed { keys }
}

/// Closes a customer's turnstile until the transaction ends.
pub(crate) fn close(connection: &mut PgConnection, customer: Uuid) -> QueryResult<()> {
    diesel::select(pg_advisory_xact_lock(key(customer))).execute(connection).map(drop)
}

/// A number for a customer. Two with one number only wait for each other.
fn key(customer: Uuid) -> i64 {
    customer.as_u64_pair().1.cast_signed()
}

impl QueryId for GatePassed {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl Expression for GatePassed {
    type SqlType = Bool;
}

impl<G> ValidGrouping<G> for GatePassed {
    type IsAggregate = is_aggregate::Never;
}

impl<QS> AppearsOnTable<QS> for GatePassed {}
impl<QS> SelectableExpression<QS> for GatePassed {}

impl QueryFragment<Pg> for GatePassed {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // Nothing of it depends on a row, so it is done once, before the first is held; and each is left as soon as it was
        // entered, because a slice may have as many customers as events.
        out.push_sql(
            "(SELECT count(CASE WHEN pg_advisory_lock_shared(walked.key)::text = '' \
             THEN pg_advisory_unlock_shared(walked.key) END) FROM unnest(",
        );
        out.push_bind_param::<Array<BigInt>, _>(&self.keys)?;
        out.push_sql(") AS walked (key)) >= 0");
        Ok(())
    }
}

impl QueryFragment<Sqlite> for GatePassed {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        // Its only writer holds every row already.
        out.push_sql("1 = 1");
        Ok(())
    }
}

/// The most turnstiles that are closed at a time. Their locks are in memory that all connections share.
const MAX_CLOSED: usize = 256;

/// Holds contracts, each as it says, in the order of their references, with one statement: the turnstiles of those who are to be
/// had alone are closed before the first contract is held and open again once the last one is; through those of the others it
/// walks. A lateral subquery a contract, because a statement has one kind of lock for all rows of a table.
#[derive(Debug)]
pub(crate) struct LockContracts {
    organizations: Vec<Uuid>,
    customers: Vec<Uuid>,
    contracts: Vec<Uuid>,
    alone: Vec<bool>,
    /// In one order, so that who closes some waits for whoever closed others.
    turnstiles: Vec<i64>,
    /// Whether a turnstile is closed, or only walked through.
    closed: Vec<bool>,
}

impl LockContracts {
    /// Of contracts; who holds one already leaves turnstiles alone.
    pub(crate) fn new(contracts: &[(ContractKey, Lock)], is_first: bool) -> Self {
        let mut locks: BTreeMap<Uuid, (ContractKey, bool)> = BTreeMap::new();
        let mut turnstiles: BTreeMap<i64, bool> = BTreeMap::new();
        let mut closed = 0;
        for (contract, lock) in contracts {
            let alone = *lock == Lock::Exclusive;
            locks.entry(contract.contract.as_uuid()).or_insert((*contract, alone)).1 |= alone;
            let is_closed = turnstiles.entry(key(contract.customer.as_uuid())).or_default();
            if alone && !*is_closed && closed < MAX_CLOSED {
                *is_closed = true;
                closed += 1;
            }
        }
        if !is_first {
            turnstiles.clear();
        }
        let (mut organizations, mut customers) = (Vec::with_capacity(locks.len()), Vec::with_capacity(locks.len()));
        let (mut contracts, mut all_alone) = (Vec::with_capacity(locks.len()), Vec::with_capacity(locks.len()));
        for (contract, (key, alone)) in locks {
            organizations.push(key.organization.as_uuid());
            customers.push(key.customer.as_uuid());
            contracts.push(contract);
            all_alone.push(alone);
        }
        let (turnstiles, closed) = turnstiles.into_iter().unzip();
        Self { organizations, customers, contracts, alone: all_alone, turnstiles, closed }
    }

    /// Whether there is nothing to hold.
    pub(crate) const fn is_empty(&self) -> bool {
        self.contracts.is_empty()
    }
}

impl QueryId for LockContracts {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<C> RunQueryDsl<C> for LockContracts {}

impl QueryFragment<Pg> for LockContracts {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH held AS MATERIALIZED (SELECT alone.held AS alone, shared.held AS shared FROM (SELECT * FROM unnest(");
        out.push_bind_param::<Array<Id>, _>(&self.organizations)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Id>, _>(&self.customers)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Id>, _>(&self.contracts)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bool>, _>(&self.alone)?;
        // As for who walks through, nothing of it depends on a row.
        out.push_sql(
            ") AS w (organization_id, customer_id, contract_id, alone) WHERE (SELECT count(CASE \
             WHEN t.closed THEN pg_advisory_lock(t.key)::text = '' \
             WHEN pg_advisory_lock_shared(t.key)::text = '' THEN pg_advisory_unlock_shared(t.key) END) FROM unnest(",
        );
        self.push_turnstiles(&mut out)?;
        out.push_sql(
            ") AS t (key, closed)) >= 0) AS w \
             LEFT JOIN LATERAL (SELECT 1 AS held FROM contracts c WHERE c.contract_id = w.contract_id \
             AND c.customer_id = w.customer_id AND c.organization_id = w.organization_id AND w.alone FOR UPDATE) AS alone ON true \
             LEFT JOIN LATERAL (SELECT 1 AS held FROM contracts c WHERE c.contract_id = w.contract_id \
             AND c.customer_id = w.customer_id AND c.organization_id = w.organization_id AND NOT w.alone FOR SHARE) AS shared \
             ON true) \
             SELECT (SELECT count(alone) + count(shared) FROM held), \
             (SELECT count(CASE WHEN t.closed THEN pg_advisory_unlock(t.key) END) FROM unnest(",
        );
        self.push_turnstiles(&mut out)?;
        out.push_sql(") AS t (key, closed) WHERE (SELECT count(*) FROM held) >= 0)");
        Ok(())
    }
}

impl LockContracts {
    fn push_turnstiles<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_bind_param::<Array<BigInt>, _>(&self.turnstiles)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bool>, _>(&self.closed)
    }
}
