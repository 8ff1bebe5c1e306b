//! Migrations go up, down and up again, and servers that start together don't race.

use crate::support::{TestDatabase, empty_postgres, empty_sqlite, open, read};

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
