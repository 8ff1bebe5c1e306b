//! Online backup of a SQLite file: a consistent snapshot, also while others write.

use std::path::Path;

use billing_domain::ports::StoreResult;
use diesel::RunQueryDsl as _;
use diesel::sql_types::Text;

use crate::copy_check::{check_copy, open_copy};
use crate::database::{Database, Pools};
use crate::failure::{StatementError, unavailable};

impl Database {
    /// Copies a SQLite database into an existing, empty file. The copy contains every transaction committed before the
    /// call and nothing committed after it began. The copy blocks no reader or writer, but the write-ahead log cannot
    /// restart while it is written. Afterwards the copy is checked. The caller must flush the file to disk.
    ///
    /// # Errors
    /// Returns [`StoreError::Unavailable`](billing_domain::ports::StoreError::Unavailable) when the disk is full, when
    /// the file is not empty, when the copy is malformed, or when the database is PostgreSQL, which has backup tools of its
    /// own.
    pub fn copy_into(&self, file: &Path) -> StoreResult<()> {
        let Pools::Sqlite { manager, .. } = &self.pools else {
            return Err(unavailable("only SQLite databases can be backed up"));
        };
        // An absolute path, so that SQLite never interprets a relative name as a URI.
        let file = std::path::absolute(file).map_err(unavailable)?;
        let file = file.to_str().ok_or_else(|| unavailable("the path of the backup is not UTF-8"))?;
        // Connections for reading are set to reject every write, including `VACUUM INTO`.
        let mut connection = manager.bare().map_err(unavailable)?;
        let copied = diesel::sql_query("VACUUM INTO ?").bind::<Text, _>(file).execute(&mut connection);
        copied.map_err(|error| StatementError::of("a copy", &error))?;
        let checked = open_copy(Path::new(file)).and_then(|mut copy| check_copy(&mut copy));
        checked.map(drop).map_err(|error| unavailable(format!("the copy is not sound: {error}")))
    }
}
