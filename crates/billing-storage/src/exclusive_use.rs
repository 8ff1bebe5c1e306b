//! Using a database alone: the lock of a sandbox's only server, and the connections of other clients.
//!
//! A SQLite file has such a lock for every server. On PostgreSQL, the servers of a live database need none, so a sandbox has a lock of
//! its own, on a connection of its own.

use std::collections::BTreeSet;

use billing_domain::ports::StoreResult;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use r2d2::ManageConnection as _;

use crate::connect::{Backend, ConnectError, Link, PgManager, connections, database_name};
use crate::database::{Database, Pools, take};
use crate::failure::StatementError;
use crate::failure::unavailable;
use crate::url::DatabaseUrl;

/// The number of the advisory lock. Locks with one number do not meet those with two, which other tools prefer.
const LOCK: i64 = 0x7361_6e64_626f_7821;

#[derive(QueryableByName)]
struct LockRow {
    #[diesel(sql_type = Bool)]
    is_taken: bool,
}

/// The lock. It ends with its connection.
pub struct SandboxLock {
    connection: Option<Link<diesel::PgConnection>>,
}

impl SandboxLock {
    /// Takes the lock. Returns `None` if another server has it.
    ///
    /// # Errors
    /// Returns the reason, without passwords, if the database cannot be reached.
    pub fn take(url: &DatabaseUrl) -> Result<Option<Self>, String> {
        if url.file().is_some() {
            return Ok(Some(Self { connection: None }));
        }
        let reason = |error: ConnectError| url.redact(&error.0);
        let mut link = PgManager::new(url.clone()).connect().map_err(reason)?;
        let query = format!("SELECT pg_try_advisory_lock({LOCK}) AS is_taken");
        let row: LockRow =
            diesel::sql_query(query).get_result(&mut link.connection).map_err(|error| url.redact(&error.to_string()))?;
        Ok(row.is_taken.then_some(Self { connection: Some(link) }))
    }

    /// Returns whether the server still has the lock.
    pub fn is_held(&mut self) -> bool {
        self.connection.as_mut().is_none_or(|link| diesel::sql_query("SELECT 1").execute(&mut link.connection).is_ok())
    }
}

impl Database {
    /// Returns the number of connections of other clients to a PostgreSQL database, on all its nodes. Call it on a database that
    /// was opened with one connection.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`](billing_domain::ports::StoreError::Unavailable) when the database is a SQLite file, or when a
    /// node cannot be reached.
    pub fn other_connections(&self) -> StoreResult<usize> {
        let pools = match &self.pools {
            Pools::Sqlite { .. } => return Err(unavailable("a SQLite file has no list of its connections")),
            Pools::Postgres { pool, cluster: None } => vec![pool.clone()],
            Pools::Postgres { cluster: Some(cluster), .. } => cluster.pools(),
        };
        // Each pool has opened one connection, and it is in use here.
        let mut links = pools.iter().map(take).collect::<Result<Vec<_>, _>>()?;
        let mut others = BTreeSet::new();
        let mut own = BTreeSet::new();
        for link in &mut links {
            let found = connections(&mut link.connection).map_err(|error| StatementError::of("pg_stat_activity", &error))?;
            for Backend { pid, is_own } in found {
                if is_own {
                    own.insert(pid)
                } else {
                    others.insert(pid)
                };
            }
        }
        Ok(others.difference(&own).count())
    }

    /// Returns the name of a PostgreSQL database.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`](billing_domain::ports::StoreError::Unavailable) for a SQLite file, and when the database
    /// cannot be reached.
    pub fn name(&self) -> StoreResult<String> {
        let Pools::Postgres { pool, .. } = &self.pools else { return Err(unavailable("a SQLite file has no name")) };
        let mut link = take(pool)?;
        let name = database_name(&mut link.connection);
        Ok(name.map_err(|error| StatementError::of("pg_database", &error))?)
    }
}
