//! Migrations go up, down and up again, create the declared tables, and do not change databases of development versions.

use std::collections::BTreeSet;

use billing_storage::{Database, DatabaseUrl};

use crate::rows::world;
use crate::support::{OPTIONS, TestDatabase, empty_postgres, empty_sqlite, on_one_server, open, read, write};
use billing_testkit::Singly as _;

on_one_server!(stored_tables_are_the_declared_ones, a_database_of_a_development_version_is_rejected);

fn names(folder: &str) -> Vec<String> {
    let folder = format!("{}/../../migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).expect("the migrations");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("a migration").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

fn up_down_up(test: &TestDatabase) {
    let database = &test.database;
    assert!(read(test, |tx| tx.count_organizations()).is_err(), "no tables yet");
    assert_eq!(database.pending_migrations().expect("pending"), names("sqlite"));
    assert_eq!(database.migrate().expect("up").len(), names("sqlite").len());
    assert_eq!(read(test, |tx| tx.count_organizations()).expect("a count"), 0);
    assert_eq!(database.pending_migrations().expect("pending"), Vec::<String>::new());
    assert_eq!(database.migrate().expect("up once more"), Vec::<String>::new());
    // Existing rows do not prevent a downgrade, even in tables whose rows cannot be deleted.
    let world = world(test);
    let document = world.open(test, 1);
    write(test, |tx| tx.issue_document(document.key(world.organization), &world.frozen(&document, 100)));
    assert_eq!(database.revert_migrations().expect("down").len(), names("sqlite").len());
    assert_eq!(database.pending_migrations().expect("pending"), names("sqlite"));
    assert_eq!(database.migrate().expect("up again").len(), names("sqlite").len());
    assert_eq!(read(test, |tx| tx.count_organizations()).expect("a count"), 0);
}

#[test]
fn both_databases_have_the_same_migrations() {
    assert_eq!(names("sqlite"), names("postgres"));
}

#[test]
fn sqlite_goes_up_down_and_up() {
    up_down_up(&empty_sqlite());
}

#[test]
fn postgres_goes_up_down_and_up() {
    up_down_up(&empty_postgres());
}

fn together(test: &TestDatabase) {
    let servers: Vec<_> = (0..3).map(|_| open(&test.url)).collect();
    let done: usize = std::thread::scope(|threads| {
        let started: Vec<_> = servers.iter().map(|server| threads.spawn(|| server.migrate().expect("up").len())).collect();
        started.into_iter().map(|thread| thread.join().expect("a server")).sum()
    });
    assert_eq!(done, names("sqlite").len());
}

#[test]
fn servers_that_start_together_migrate_sqlite_once() {
    together(&empty_sqlite());
}

#[test]
fn servers_that_start_together_migrate_postgres_once() {
    together(&empty_postgres());
}

/// Columns as `table.column type`, with ` null` where a column may be NULL and ` key` where it is part of the primary key.
type Columns = BTreeSet<String>;

/// Reads the columns that `schema.rs` declares.
fn declared(test: &TestDatabase) -> Columns {
    let mut columns = Columns::new();
    let (mut table, mut key) = ("", Vec::new());
    let mut add = |table: &str, key: &[&str], declared: &str| {
        for (column, kind) in declared.split(',').filter_map(|column| column.split_once(" -> ")) {
            let (column, kind) = (column.trim(), kind.trim());
            let nullable = kind.strip_prefix("Nullable<").map(|kind| kind.trim_end_matches('>'));
            let stored = stored_type(test, nullable.unwrap_or(kind));
            let null = if nullable.is_some() { " null" } else { "" };
            let of_key = if key.contains(&column) { " key" } else { "" };
            columns.insert(format!("{table}.{column} {stored}{null}{of_key}"));
        }
    };
    let declarations =
        include_str!("../../src/schema.rs").lines().map(str::trim).take_while(|line| !line.starts_with("diesel::allow"));
    for line in declarations.filter(|line| !line.starts_with("//") && !line.contains('$')) {
        // Matches `table (key) {`. A table with editable columns declares its key columns on the same line.
        if let Some((head, columns)) = line.split_once(") {") {
            let (name, columns_of_key) = head.split_once(" (").expect(line);
            (table, key) = (name, columns_of_key.split(", ").collect());
            add(table, &key, columns.trim_end_matches('}'));
            if !columns.is_empty() {
                add(table, &key, "created_at -> Ts, updated_at -> Ts");
            }
        } else {
            add(table, &key, line);
        }
    }
    columns
}

fn stored_type(test: &TestDatabase, declared: &str) -> &'static str {
    let (sqlite, postgres) = match declared {
        "Id" => ("BLOB", "uuid"),
        "Binary" => ("BLOB", "bytea"),
        "Ts" => ("INTEGER", "timestamp with time zone"),
        "Day" => ("INTEGER", "date"),
        "Bool" => ("INTEGER", "boolean"),
        "Integer" => ("INTEGER", "integer"),
        "BigInt" => ("INTEGER", "bigint"),
        "Text" => ("TEXT", "text"),
        "Dec" => ("TEXT", "numeric"),
        "Json" => ("TEXT", "json"),
        other => panic!("{other} has no stored type"),
    };
    if test.is_sqlite() { sqlite } else { postgres }
}

/// Reads the columns that the database has.
fn stored(test: &TestDatabase) -> Columns {
    let sql = if test.is_sqlite() {
        "SELECT group_concat(
             t.name || '.' || c.name || ' ' || c.type || iif(c.\"notnull\", '', ' null') || iif(c.pk > 0, ' key', ''), char(10)
         ) AS text
         FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name <> '__diesel_schema_migrations'"
    } else {
        "SELECT string_agg(
             t.relname || '.' || c.attname || ' ' || format_type(c.atttypid, c.atttypmod)
                 || CASE WHEN c.attnotnull THEN '' ELSE ' null' END || CASE WHEN c.attnum = ANY (k.indkey) THEN ' key' ELSE '' END,
             E'\\n'
         ) AS text
         FROM pg_class t
             JOIN pg_attribute c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
             JOIN pg_index k ON k.indrelid = t.oid AND k.indisprimary
         WHERE t.relnamespace = current_schema()::regnamespace AND t.relname <> '__diesel_schema_migrations'"
    };
    test.beside().text(sql).lines().map(str::to_owned).collect()
}

/// Columns that only SQL uses.
const UNDECLARED: [&str; 1] = ["documents.number_copy"];

fn stored_tables_are_the_declared_ones(test: &TestDatabase) {
    let (declared, mut stored) = (declared(test), stored(test));
    stored.retain(|column| !UNDECLARED.iter().any(|undeclared| column.starts_with(&format!("{undeclared} "))));
    assert!(declared.len() > 400, "{} columns are declared", declared.len());
    let missing: Vec<_> = declared.difference(&stored).collect();
    let surplus: Vec<_> = stored.difference(&declared).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "declared and not stored: {missing:?}; stored and not declared: {surplus:?}"
    );
}

fn a_database_of_a_development_version_is_rejected(test: &TestDatabase) {
    let url = DatabaseUrl::parse(&test.url).expect("an address");
    for newest in [1, 29] {
        let versions = (1..=newest).map(|version| format!("('{version:014}')")).collect::<Vec<_>>().join(", ");
        let run = format!("INSERT INTO __diesel_schema_migrations (version) VALUES {versions}");
        test.beside().execute(&format!("DELETE FROM __diesel_schema_migrations; {run}")).expect("versions");
        let error = Database::open(&url, OPTIONS).expect_err("opened").to_string();
        let reason = ": it was created by a development version before 0.1.0, whose schema can't be upgraded: create a \
                      new database and import the data again";
        assert!(error.starts_with("cannot open the database ") && error.ends_with(reason), "{error}");
        let left = test.beside().text("SELECT CAST(count(*) AS TEXT) AS text FROM __diesel_schema_migrations");
        assert_eq!(left, newest.to_string(), "nothing was changed");
    }
}
