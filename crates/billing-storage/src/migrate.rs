//! Migrations: embedded in the binary, run under a lock of their own, all or none.

use billing_domain::ports::{Access, StoreError, StoreResult, transact};
use diesel::connection::{Connection as _, SimpleConnection as _};
use diesel::migration::{Migration, MigrationSource};
use diesel::pg::PgConnection;
use diesel::sqlite::SqliteConnection;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::database::{Database, Pools, take};
use crate::failure::{StatementError, unavailable};
use crate::nodes::distribute::{self, Distribution};
use crate::stamp_generation::StampWatch;

pub(crate) const SQLITE: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");
pub(crate) const POSTGRES: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");

/// The key of the migration lock among the server's advisory locks.
const LOCK_KEY: i64 = 0x7573_6167_6562_696c;

/// The failure of a migration step; diesel_migrations returns only boxed errors.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Statement(#[from] diesel::result::Error),
    #[error("{0}")]
    Migration(Box<dyn std::error::Error + Send + Sync>),
}

impl From<StepError> for StoreError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Statement(error) => StatementError::of("migrations", &error).into(),
            StepError::Migration(error) => unavailable(error),
        }
    }
}

/// Runs a step in one transaction that excludes the steps of other servers.
macro_rules! alone {
    ($database:expr, |$connection:ident, $source:ident| $body:expr) => {
        match &$database.pools {
            Pools::Sqlite { writer, .. } => {
                let mut link = take(writer)?;
                // A migration may change rows with stamps.
                link.stamps = StampWatch::default();
                // The file's write lock excludes other servers.
                link.connection.immediate_transaction(|$connection: &mut SqliteConnection| {
                    let $source = &SQLITE;
                    $body
                })
            }
            Pools::Postgres { pool, .. } => {
                let mut link = take(pool)?;
                alone_on(&mut link.connection, |$connection| {
                    let $source = &POSTGRES;
                    $body
                })
            }
        }
        .map_err(StoreError::from)
    };
}

/// Runs a step in one transaction on a server. It waits without limit for the step of another server.
fn alone_on<T>(
    connection: &mut PgConnection,
    step: impl FnOnce(&mut PgConnection) -> Result<T, StepError>,
) -> Result<T, StepError> {
    connection.transaction(|connection| {
        connection.batch_execute(&format!(
            "SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({LOCK_KEY})"
        ))?;
        step(connection)
    })
}

/// Applies all pending migrations to a file that nobody else uses.
///
/// # Errors
/// Returns [`StoreError::Unavailable`] with the reason.
pub(crate) fn migrate_file(connection: &mut SqliteConnection) -> StoreResult<()> {
    let migrated: Result<(), StepError> = connection.immediate_transaction(|connection| {
        connection.run_pending_migrations(Borrowed(&SQLITE)).map(drop).map_err(StepError::Migration)
    });
    Ok(migrated?)
}

impl Database {
    /// Applies all pending migrations or none. Servers that start at the same time wait for each other. From now on, a server
    /// notices when another program overwrites its SQLite file.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`](billing_domain::ports::StoreError::Unavailable) with the reason.
    pub fn migrate(&self) -> StoreResult<Vec<String>> {
        let applied = self.apply_migrations()?;
        self.begin_watch()?;
        // From now on, no event needs a statement for it.
        transact(self, Access::Glance, |tx| tx.epoch())?;
        Ok(applied)
    }

    fn apply_migrations(&self) -> StoreResult<Vec<String>> {
        alone!(self, |connection, source| {
            let done = connection.run_pending_migrations(Borrowed(source)).map_err(StepError::Migration)?;
            Ok(done.iter().map(ToString::to_string).collect())
        })
    }

    /// Drops all tables with their contents, newest migration first.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`](billing_domain::ports::StoreError::Unavailable) with the reason.
    pub fn revert_migrations(&self) -> StoreResult<Vec<String>> {
        alone!(self, |connection, source| {
            let done = connection.revert_all_migrations(Borrowed(source)).map_err(StepError::Migration)?;
            Ok(done.iter().map(ToString::to_string).collect())
        })
    }

    /// Distributes all tables of a migrated database, or none, over the nodes of its cluster. It does nothing without
    /// the extension. Other work on the tables waits. The number of shards applies to tables that are distributed first.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`] with the reason.
    pub fn distribute(&self, shards: u32) -> StoreResult<Distribution> {
        let Pools::Postgres { pool, .. } = &self.pools else { return Ok(Distribution::File) };
        let mut link = take(pool)?;
        Ok(alone_on(&mut link.connection, |connection| Ok(distribute::distribute(connection, shards)?))?)
    }

    /// Returns the migrations of this binary that the database lacks.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`](billing_domain::ports::StoreError::Unavailable) with the reason.
    pub fn pending_migrations(&self) -> StoreResult<Vec<String>> {
        alone!(self, |connection, source| {
            let pending = connection.pending_migrations(Borrowed(source)).map_err(StepError::Migration)?;
            Ok(pending.iter().map(|migration| migration.name().to_string()).collect())
        })
    }
}

/// A wrapper for diesel_migrations, which takes its source by value.
struct Borrowed(&'static EmbeddedMigrations);

impl<DB: diesel::backend::Backend> MigrationSource<DB> for Borrowed {
    fn migrations(&self) -> diesel::migration::Result<Vec<Box<dyn Migration<DB>>>> {
        self.0.migrations()
    }
}
