//! Opening a database: created files, rejected databases, and checked settings.

use billing_domain::ports::{Store as _, StoreError};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use tempfile::TempDir;

use crate::support::{OPTIONS, empty_postgres, one_postgres, open, postgres, read, sqlite};

#[test]
fn a_mistyped_address_creates_no_file() {
    let directory = TempDir::new().expect("a directory");
    let path = directory.path().display();
    let mistyped = [
        format!("{path}/usage.sqlite3"),
        format!("sqlite:{path}/usage.sqlite3"),
        format!("sqlite3://{path}/usage.sqlite3"),
        format!("sqlight://{path}/usage.sqlite3"),
        format!("file:{path}/usage.sqlite3"),
        format!("sqlite://{path}/usage.sqlite3?mode=rwc"),
        format!("sqlite://{path}/"),
        format!("postgres:{path}/usage.sqlite3"),
    ];
    for url in mistyped {
        let error = DatabaseUrl::parse(&url).expect_err(&url).to_string();
        assert!(!error.contains('\n') && error.starts_with("a database URL") || error.starts_with("the database URL"), "{error}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("the directory").count(), 0);
}

#[test]
fn a_sqlite_address_makes_the_file_and_its_directory() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("some/where/file:usage ✓.sqlite3");
    open(&format!("sqlite://{}", file.display()));
    assert!(file.is_file());
}

#[test]
fn a_closed_file_holds_everything_although_a_connection_stays_open() {
    let test = sqlite();
    let _beside = test.beside();
    crate::rows::world(&test);
    test.database.close().expect("closed");
    let file = test.url.strip_prefix("sqlite://").expect("a file");
    assert_eq!(std::fs::metadata(format!("{file}-wal")).expect("the log").len(), 0);
    let directory = TempDir::new().expect("a directory");
    let copy = directory.path().join("copy.sqlite3");
    std::fs::copy(file, &copy).expect("a copy");
    let copied = open(&format!("sqlite://{}", copy.display()));
    assert_eq!(read(&copied, |tx| tx.count_organizations()).expect("a count"), 1);
}

#[test]
fn a_file_tells_what_it_takes_of_its_disk_and_a_server_elsewhere_does_not() {
    let test = sqlite();
    crate::rows::world(&test);
    let file = test.url.strip_prefix("sqlite://").expect("a file");
    let reported = test.database.disk_use().expect("a file");
    assert_eq!(reported.database, std::fs::metadata(file).expect("the file").len());
    assert_eq!(reported.log, std::fs::metadata(format!("{file}-wal")).expect("the log").len());
    assert!(reported.database > 0 && reported.log > 0 && reported.free > 0, "{reported:?}");
    assert_eq!(postgres().database.disk_use(), None);
}

#[test]
fn a_file_has_one_server_and_others_beside_it() {
    let test = sqlite();
    let url = DatabaseUrl::parse(&test.url).expect("an address");
    let to_serve = || DatabaseOptions { to_serve: true, ..OPTIONS };
    let server = Database::open(&url, to_serve()).expect("the other connection does not serve");
    let refused = Database::open(&url, to_serve()).expect_err("a server is already running").to_string();
    assert!(refused.ends_with("another server uses this file: stop it first, or use PostgreSQL, which supports several servers"));
    read(&open(&test.url), |tx| tx.count_organizations()).expect("a command reads while the server runs");
    server.close().expect("closed");
    Database::open(&url, to_serve()).expect_err("the closed server still holds the file");
    drop(server);
    Database::open(&url, to_serve()).expect("the next server");
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("notes.txt");
    let notes = "not a database, but somebody's notes\n".repeat(100);
    std::fs::write(&file, &notes).expect("a file");
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("an address");
    let error = Database::open(&url, OPTIONS).expect_err("opened").to_string();
    assert!(error.contains("notes.txt") && error.contains("not a database"), "{error}");
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), notes);
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("theirs.sqlite3");
    let mut theirs = SqliteConnection::establish(file.to_str().expect("UTF-8")).expect("a file");
    theirs.batch_execute("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('theirs')").expect("their table");
    drop(theirs);
    let before = std::fs::read(&file).expect("the file");
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).expect("an address");
    let error = Database::open(&url, OPTIONS).expect_err("opened").to_string();
    assert!(error.contains("theirs.sqlite3") && error.contains("another program"), "{error}");
    assert_eq!(std::fs::read(&file).expect("the file"), before);
    assert_eq!(std::fs::read_dir(directory.path()).expect("the directory").count(), 1, "no other files");
}

#[test]
fn a_schema_of_a_newer_release_is_refused_and_left_alone() {
    for test in [sqlite(), postgres()] {
        test.beside().execute("INSERT INTO __diesel_schema_migrations (version) VALUES ('99990101000000')").expect("a version");
        let before = test.database.pending_migrations().expect("pending");
        let url = DatabaseUrl::parse(&test.url).expect("an address");
        let error = Database::open(&url, OPTIONS).expect_err("opened").to_string();
        assert!(error.contains("newer release") && error.contains("99990101000000"), "{error}");
        assert_eq!(test.database.pending_migrations().expect("pending"), before);
        read(&test, |tx| tx.count_organizations()).expect("the existing data");
    }
}

#[test]
fn a_server_that_is_not_there_is_refused_without_its_password() {
    let url = DatabaseUrl::parse("postgres://me:s3cret@127.0.0.1:1/usage").expect("an address");
    let error = Database::open(&url, OPTIONS).expect_err("opened");
    for shown in [error.to_string(), format!("{error:?}"), format!("{url:?}")] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn every_sqlite_connection_keeps_what_it_is_given() {
    let test = sqlite();
    // Each new reader checks its pragmas. The barrier opens as many readers at once as the pool allows.
    let all_in = std::sync::Barrier::new(OPTIONS.connections as usize);
    std::thread::scope(|threads| {
        for _ in 0..OPTIONS.connections {
            threads.spawn(|| {
                read(&test, |tx| {
                    all_in.wait();
                    tx.count_organizations()
                })
                .expect("a count");
            });
        }
    });
    test.ready().expect("ready");
}

#[test]
fn a_server_that_does_not_keep_what_it_is_given_is_not_ready() {
    let test = one_postgres();
    test.ready().expect("ready");
    let name = test.url.rsplit('/').next().and_then(|name| name.split('?').next()).expect("a database").to_owned();
    test.beside().execute(&format!("ALTER DATABASE {name} SET synchronous_commit = off")).expect("a setting");
    let fresh = open(&test.url);
    let answer = fresh.ready();
    let Err(StoreError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert_eq!(reason.to_string(), "the settings of PostgreSQL are not durable: synchronous_commit is off");
}

#[test]
fn a_server_that_went_away_and_came_back_is_used_again() {
    let test = empty_postgres();
    test.database.migrate().expect("the tables");
    let count = || read(&test, |tx| tx.count_organizations());
    let all_in = std::sync::Barrier::new(3);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                read(&test, |tx| {
                    all_in.wait();
                    tx.count_organizations()
                })
            });
        }
    });
    // Closes all idle connections, like a restart. The next transaction succeeds.
    let closed =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    test.beside().execute(closed).expect("closed");
    assert_eq!(count().expect("a count"), 0);
    // A connection that is closed during a transaction causes one error and is not used again.
    let interrupted = read(&test, |tx| {
        tx.count_organizations()?;
        test.beside().execute(closed).expect("closed");
        tx.count_organizations()
    });
    assert!(matches!(interrupted, Err(StoreError::Unavailable(_))), "{interrupted:?}");
    assert_eq!(count().expect("a count"), 0);
}

#[test]
fn options_have_defaults_that_open() {
    let directory = TempDir::new().expect("a directory");
    let url = DatabaseUrl::parse(&format!("sqlite://{}/usage.sqlite3", directory.path().display())).expect("an address");
    let database = Database::open(&url, DatabaseOptions::default()).expect("an open database");
    database.ready().expect("ready");
}
