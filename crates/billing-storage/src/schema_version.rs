//! Checks that a database belongs to this program and that this release supports it, before any change to the database.

use std::collections::BTreeSet;

use diesel::backend::Backend;
use diesel::migration::MigrationSource;
use diesel::pg::{Pg, PgConnection};
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use diesel::sqlite::{Sqlite, SqliteConnection};
use diesel_migrations::EmbeddedMigrations;

use crate::connect::ConnectError;
use crate::migrate::{POSTGRES, SQLITE};

/// The prefix of migration versions before 0.1.0: `00000000000001` and later.
const DEVELOPMENT: &str = "0000000000";

/// The applied migrations; diesel_migrations creates and maintains this table.
const VERSIONS: &str = "SELECT version FROM __diesel_schema_migrations";

#[derive(QueryableByName)]
struct TablesPresent {
    /// Whether any tables exist.
    #[diesel(sql_type = Bool)]
    tables: bool,
    /// Whether the table of migrations exists.
    #[diesel(sql_type = Bool)]
    migrations: bool,
}

#[derive(QueryableByName)]
struct Version {
    #[diesel(sql_type = Text)]
    version: String,
}

/// Rejects a SQLite file with the tables of another program, of a development version or of a newer release. A file
/// belongs to one program.
pub(crate) fn check_sqlite(connection: &mut SqliteConnection) -> Result<(), ConnectError> {
    match tables_present(connection)? {
        TablesPresent { migrations: true, .. } => {
            let versions: Vec<Version> = diesel::sql_query(VERSIONS).load(connection)?;
            check_versions::<Sqlite>(&SQLITE, versions)
        }
        TablesPresent { tables: true, .. } => {
            Err(ConnectError("it contains tables of another program: choose a new file".to_owned()))
        }
        TablesPresent { .. } => Ok(()),
    }
}

/// Returns whether a SQLite file has the tables of this program.
pub(crate) fn has_tables(connection: &mut SqliteConnection) -> Result<bool, ConnectError> {
    Ok(tables_present(connection)?.migrations)
}

fn tables_present(connection: &mut SqliteConnection) -> QueryResult<TablesPresent> {
    diesel::sql_query(
        "SELECT count(*) > 0 AS tables, coalesce(max(name = '__diesel_schema_migrations'), 0) AS migrations FROM sqlite_master",
    )
    .get_result(connection)
}

/// Rejects a PostgreSQL schema of a development version or of a newer release, or with another program's migrations.
/// Other tables are accepted, because extensions create some.
pub(crate) fn check_postgres(connection: &mut PgConnection) -> Result<(), ConnectError> {
    let held: TablesPresent =
        diesel::sql_query("SELECT true AS tables, to_regclass('__diesel_schema_migrations') IS NOT NULL AS migrations")
            .get_result(connection)?;
    if !held.migrations {
        return Ok(());
    }
    let versions: Vec<Version> = diesel::sql_query(VERSIONS).load(connection)?;
    check_versions::<Pg>(&POSTGRES, versions)
}

fn check_versions<DB: Backend>(source: &EmbeddedMigrations, run: Vec<Version>) -> Result<(), ConnectError> {
    let known = MigrationSource::<DB>::migrations(source).map_err(|error| ConnectError(error.to_string()))?;
    let known: BTreeSet<String> = known.iter().map(|migration| migration.name().version().to_string()).collect();
    let unknown: Vec<String> = run.into_iter().map(|row| row.version).filter(|version| !known.contains(version)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    if unknown.iter().any(|version| version.starts_with(DEVELOPMENT)) {
        return Err(ConnectError(
            "it was created by a development version before 0.1.0, whose schema can't be upgraded: create a new database and import \
             the data again"
                .to_owned(),
        ));
    }
    Err(ConnectError(format!(
        "its schema is of a newer release or of another program: this release doesn't know {}; start the release that made it",
        unknown.join(", ")
    )))
}
