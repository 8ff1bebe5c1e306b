//! Generations of stamps on SQLite. One connection writes for the server, and it knows the stamps that it changes itself.
//! `PRAGMA data_version` shows that another connection has committed, also one of another process. Until either happens, all
//! stamps are as they were read.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use billing_domain::ports::{StampGeneration, StoreResult};
use diesel::query_builder::{AstPass, QueryFragment};
use diesel::query_dsl::RunQueryDsl as _;
use diesel::result::QueryResult;
use diesel::sql_types::BigInt;
use diesel::sqlite::Sqlite;
use uuid::Uuid;

use crate::hand_written::statement;
use crate::tx::{Connection, Transaction};

/// The number of the next generation of any connection.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// What a connection knows of the stamps. The default knows nothing, which is always safe.
#[derive(Debug, Default)]
pub(crate) struct StampWatch {
    /// The generation of the last transaction that asked for it, with the `data_version` of the connection then.
    last: Option<(StampGeneration, i64)>,
    /// Whether the transaction may have changed stamps, or contracts that have stamps.
    has_changed: bool,
}

impl StampWatch {
    /// Returns what the connection knows after a transaction that was committed or rolled back without a failure.
    pub(crate) fn after_transaction(self) -> Self {
        if self.has_changed { Self::default() } else { self }
    }
}

/// Reads a number that differs from the last one if another connection has committed.
struct ReadDataVersion;

statement!([] ReadDataVersion = Self => BigInt);

impl QueryFragment<Sqlite> for ReadDataVersion {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        out.push_sql("PRAGMA data_version");
        Ok(())
    }
}

impl Transaction<'_> {
    /// Ends the generation, because the transaction is about to change a stamp or the contracts that have stamps.
    pub(crate) fn end_stamp_generation(&mut self) {
        self.stamps.has_changed = true;
    }

    /// Returns a new stamp. Each statement that replaces a stamp takes it from here.
    pub(crate) fn new_stamp(&mut self) -> Uuid {
        self.end_stamp_generation();
        Uuid::now_v7()
    }

    /// Returns the [generation](billing_domain::ports::Contracts::stamp_generation) of the transaction. After a change of its
    /// own the transaction has none, because the change can still be rolled back.
    pub(crate) fn current_stamp_generation(&mut self) -> StoreResult<Option<StampGeneration>> {
        let Connection::Sqlite(connection) = &mut self.connection else { return Ok(None) };
        if self.stamps.has_changed {
            return Ok(None);
        }
        // The transaction has the file's only write lock, so the number stays the same until it ends.
        let version: QueryResult<i64> = ReadDataVersion.get_result(*connection);
        let version = version.map_err(|error| self.failed("data_version", &error))?;
        let last = self.stamps.last.filter(|(_, last)| *last == version);
        let new = || NonZeroU64::new(NEXT.fetch_add(1, Ordering::Relaxed)).map(|number| (StampGeneration(number), version));
        self.stamps.last = last.or_else(new);
        Ok(self.stamps.last.map(|(generation, _)| generation))
    }
}
