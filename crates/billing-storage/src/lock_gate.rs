//! The lock gate in front of a customer's contracts, on PostgreSQL.
//!
//! PostgreSQL's row locks let new shared locks pass a waiting exclusive lock. An edit would never get an exclusive lock
//! on a contract that constantly receives events. A transaction that does not get its exclusive lock at once therefore
//! closes the customer's gate until it ends. A transaction that needs a shared lock first passes the gate, before it
//! locks any contract.

use std::collections::BTreeMap;

use billing_domain::ports::Lock;
use billing_domain::refs::ContractKey;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::result::QueryResult;
use diesel::sql_types::{Array, BigInt, Bool};
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::hand_written::{expression, statement};
use crate::sql_types::Id;

diesel::define_sql_function! {
    /// Waits for an advisory lock that lasts until the transaction ends.
    fn pg_advisory_xact_lock(key: BigInt);
}

/// A condition that is true once the gates are passed.
#[derive(Debug)]
pub(crate) struct GatePassed {
    keys: Vec<i64>,
}

/// Passes the gates of customers whose contracts are to be locked shared. Any other lock passes no gate.
pub(crate) fn pass_gate(customers: impl IntoIterator<Item = Uuid>, lock: Option<Lock>) -> GatePassed {
    let mut keys: Vec<i64> = match lock {
        Some(Lock::Shared) => customers.into_iter().map(key).collect(),
        Some(Lock::Exclusive) | None => Vec::new(),
    };
    keys.sort_unstable();
    keys.dedup();
    GatePassed { keys }
}

/// Closes a customer's gate until the transaction ends. On a distributed database, the lock is on the node of the customer,
/// where all servers meet.
pub(crate) fn close(connection: &mut PgConnection, customer: Uuid, is_spread: bool) -> QueryResult<()> {
    if !is_spread {
        return diesel::select(pg_advisory_xact_lock(key(customer))).execute(connection).map(drop);
    }
    diesel::sql_query(
        "SELECT pg_advisory_xact_lock($1) FROM (SELECT count(*) FROM customers WHERE customer_id = $2) AS on_its_node",
    )
    .bind::<BigInt, _>(key(customer))
    .bind::<Id, _>(customer)
    .execute(connection)
    .map(drop)
}

/// Returns a number for a customer. Customers with the same number only wait for each other.
fn key(customer: Uuid) -> i64 {
    customer.as_u64_pair().1.cast_signed()
}

expression!(GatePassed = Self => Bool);

impl QueryFragment<Pg> for GatePassed {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        // The query does not depend on rows, so that it runs once, before the first row lock. Each gate lock is
        // released at once, because an ingest batch can have as many customers as events.
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
        // SQLite's only writer already locks every row.
        out.push_sql("1 = 1");
        Ok(())
    }
}

/// The maximum number of gates closed at a time. Advisory locks use memory that all connections share.
const MAX_CLOSED: usize = 256;

/// Locks contracts in the order of their references, each shared or exclusively, with one statement. Contracts that are
/// locked exclusively get a new stamp. The statement closes the gates for exclusive locks before the first contract lock and opens them after the last one. For shared
/// locks it only passes the gates. A lateral subquery per contract is necessary, because a statement has one lock mode
/// for all rows of a table.
#[derive(Debug)]
pub(crate) struct LockContracts {
    organizations: Vec<Uuid>,
    customers: Vec<Uuid>,
    contracts: Vec<Uuid>,
    alone: Vec<bool>,
    /// The gates' keys, sorted, so that transactions that close several gates do not deadlock.
    turnstiles: Vec<i64>,
    /// Whether each gate is closed or only passed.
    closed: Vec<bool>,
    /// The new stamp of contracts that are locked exclusively.
    stamp: Uuid,
    /// Whether the statement names the customers by themselves, from which a distributed database finds their nodes.
    names_customers: bool,
}

impl LockContracts {
    /// Creates the statement. A transaction that already locks a contract uses no gates.
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
        Self {
            organizations,
            customers,
            contracts,
            alone: all_alone,
            turnstiles,
            closed,
            stamp: Uuid::now_v7(),
            names_customers: false,
        }
    }

    /// Names the customers by themselves if the database is distributed.
    pub(crate) fn on_nodes(self, is_spread: bool) -> Self {
        Self { names_customers: is_spread, ..self }
    }
}

statement!([] LockContracts = Self);

impl QueryFragment<Pg> for LockContracts {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql(
            "WITH held AS MATERIALIZED (SELECT w.contract_id, w.customer_id, alone.held AS alone, shared.held AS shared \
             FROM (SELECT * FROM unnest(",
        );
        out.push_bind_param::<Array<Id>, _>(&self.organizations)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Id>, _>(&self.customers)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Id>, _>(&self.contracts)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bool>, _>(&self.alone)?;
        // As when passing gates, the query does not depend on rows.
        out.push_sql(
            ") AS w (organization_id, customer_id, contract_id, alone) WHERE (SELECT count(CASE \
             WHEN t.closed THEN pg_advisory_lock(t.key)::text = '' \
             WHEN pg_advisory_lock_shared(t.key)::text = '' THEN pg_advisory_unlock_shared(t.key) END) FROM unnest(",
        );
        self.push_turnstiles(&mut out)?;
        out.push_sql(
            ") AS t (key, closed)) >= 0) AS w \
             LEFT JOIN LATERAL (SELECT 1 AS held FROM contracts c WHERE c.contract_id = w.contract_id \
             AND c.customer_id = w.customer_id AND c.organization_id = w.organization_id AND w.alone",
        );
        self.push_customers("c.customer_id", &mut out)?;
        out.push_sql(
            " FOR UPDATE) AS alone ON true \
             LEFT JOIN LATERAL (SELECT 1 AS held FROM contracts c WHERE c.contract_id = w.contract_id \
             AND c.customer_id = w.customer_id AND c.organization_id = w.organization_id AND NOT w.alone",
        );
        self.push_customers("c.customer_id", &mut out)?;
        out.push_sql(" FOR SHARE) AS shared ON true), stamped AS (UPDATE contracts SET stamp = ");
        out.push_bind_param::<Id, _>(&self.stamp)?;
        out.push_sql(
            " FROM held WHERE contracts.contract_id = held.contract_id AND contracts.customer_id = held.customer_id \
             AND held.alone IS NOT NULL",
        );
        self.push_customers("contracts.customer_id", &mut out)?;
        out.push_sql(
            ") SELECT (SELECT count(alone) + count(shared) FROM held), \
             (SELECT count(CASE WHEN t.closed THEN pg_advisory_unlock(t.key) END) FROM unnest(",
        );
        self.push_turnstiles(&mut out)?;
        out.push_sql(") AS t (key, closed) WHERE (SELECT count(*) FROM held) >= 0)");
        Ok(())
    }
}

impl LockContracts {
    /// Writes the condition that names the customers of a table.
    fn push_customers<'b>(&'b self, column: &str, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        if self.names_customers {
            for part in [" AND ", column, " = ANY("] {
                out.push_sql(part);
            }
            out.push_bind_param::<Array<Id>, _>(&self.customers)?;
            out.push_sql(")");
        }
        Ok(())
    }

    fn push_turnstiles<'b>(&'b self, out: &mut AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_bind_param::<Array<BigInt>, _>(&self.turnstiles)?;
        out.push_sql(", ");
        out.push_bind_param::<Array<Bool>, _>(&self.closed)
    }
}
