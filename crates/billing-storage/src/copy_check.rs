//! Checks a copy of a SQLite database before it counts as a backup, or replaces a database.

use std::path::Path;
use std::time::Duration;

use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Text};
use diesel::sqlite::SqliteConnection;

use crate::connect::{ConnectError, SqliteManager};
use crate::ports::chained;
use crate::schema_version::{check_sqlite, has_tables};
use crate::sql_types::JsonText;

/// The number of problems that the check of a file's structure lists.
const LISTED_PROBLEMS: u32 = 3;
/// The time that a connection to a copy waits for locks, which no other process should have.
const WAIT: Duration = Duration::from_secs(5);

#[derive(QueryableByName)]
struct Problem {
    #[diesel(sql_type = Text)]
    quick_check: String,
}

/// Checks the structure of a file.
///
/// # Errors
/// Returns the first problems.
pub(crate) fn quick_check(connection: &mut SqliteConnection) -> Result<(), ConnectError> {
    let found: Vec<Problem> = diesel::sql_query(format!("PRAGMA quick_check({LISTED_PROBLEMS})"))
        .load(connection)
        .map_err(|error| ConnectError(format!("quick_check failed: {error}")))?;
    let problems: Vec<&str> = found.iter().map(|problem| problem.quick_check.trim()).filter(|text| *text != "ok").collect();
    if problems.is_empty() { Ok(()) } else { Err(ConnectError(format!("quick_check found: {}", problems.join("; ")))) }
}

/// Opens a copy that nobody else uses, and moves its write-ahead log, if it has one, into the file.
pub(crate) fn open_copy(path: &Path) -> Result<SqliteConnection, ConnectError> {
    let manager = SqliteManager::new(path, WAIT, false).map_err(|error| ConnectError(error.to_string()))?;
    let mut connection = manager.bare()?;
    connection.batch_execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON")?;
    Ok(connection)
}

/// Checks the structure of a copy, that this release supports its schema, and that the documents of each number series end with
/// the hash of the series. Returns whether the copy has tables.
pub(crate) fn check_copy(connection: &mut SqliteConnection) -> Result<bool, ConnectError> {
    quick_check(connection)?;
    check_sqlite(connection)?;
    if !has_tables(connection)? {
        return Ok(false);
    }
    let broken = broken_chain_heads(connection)?;
    if broken.is_empty() { Ok(true) } else { Err(ConnectError(broken.join("; "))) }
}

#[derive(QueryableByName)]
struct ChainHead {
    #[diesel(sql_type = Text)]
    entity_ref: String,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = BigInt)]
    length: i64,
    #[diesel(sql_type = Binary)]
    head: Vec<u8>,
    #[diesel(sql_type = Nullable<Binary>)]
    previous: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Text>)]
    content: Option<String>,
}

/// Returns a sentence for each number series whose last issued document does not have the hash of the series.
fn broken_chain_heads(connection: &mut SqliteConnection) -> QueryResult<Vec<String>> {
    let heads: Vec<ChainHead> = diesel::sql_query(
        "SELECT s.entity_ref, s.kind, s.chain_length AS length, s.chain_head AS head, d.previous_hash AS previous, d.content \
         FROM number_series s LEFT JOIN issued_documents d ON d.organization_id = s.organization_id \
         AND d.entity_ref = s.entity_ref AND d.kind = s.kind AND d.chain_position = s.chain_length WHERE s.chain_length > 0",
    )
    .load(connection)?;
    let broken = |ChainHead { entity_ref, kind, length, head, previous, content }: ChainHead| {
        let hash = previous.zip(content).map(|(previous, content)| chained(&previous, &JsonText(content)).to_vec());
        (hash != Some(head))
            .then(|| format!("document {length} of the chain of {kind} of entity {entity_ref} is missing or differs"))
    };
    Ok(heads.into_iter().filter_map(broken).collect())
}
