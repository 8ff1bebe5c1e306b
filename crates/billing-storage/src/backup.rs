//! A copy of a SQLite file that is as the file was at one moment, whoever writes meanwhile.

use std::path::Path;

use billing_domain::ports::StoreResult;
use diesel::RunQueryDsl as _;
use diesel::sql_types::Text;

use crate::database::{Database, Pools};
use crate::failure::{StatementError, unavailable};

impl Database {
    /// Copies everything of a SQLite database into a file that is there and empty: what was committed before, and nothing of what
    /// is committed after it began. Nobody waits for it; meanwhile the write-ahead log isn't begun anew. On disk is the
    /// copy once the caller has it written there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`](billing_domain::ports::StoreError::Unavailable) when there is no room, when the file has something
    /// in it, or when the database is PostgreSQL's, which has programs of its own for it.
    pub fn copy_into(&self, file: &Path) -> StoreResult<()> {
        let Pools::Sqlite { manager, .. } = &self.pools else {
            return Err(unavailable("only the file of a SQLite database can be copied"));
        };
        // Absolute, so that SQLite never takes a relative name for one of its own URIs.
        let file = std::path::absolute(file).map_err(unavailable)?;
        let file = file.to_str().ok_or_else(|| unavailable("the path of the copy is not UTF-8"))?;
        // A reader's connection is told to write nothing at all.
        let mut connection = manager.bare().map_err(unavailable)?;
        let copied = diesel::sql_query("VACUUM INTO ?").bind::<Text, _>(file).execute(&mut connection);
        copied.map(drop).map_err(|error| StatementError::of("a copy", &error).into())
    }
}
