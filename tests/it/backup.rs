//! Backups of a database while a server writes: each can be restored and contains every event that was acknowledged before the
//! backup began. `BACKUPS=n` sets the number of backups.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use acceptance::load::Load;
use acceptance::random::setting;
use acceptance::{Client, Database, Server, binary, books, catalog};

const THREADS: usize = 4;

#[test]
fn a_file_is_copied_while_events_come() {
    under_load(&Database::sqlite(), |database, file| {
        let stated = binary::succeed(database, &["backup", path(file)]);
        assert_eq!(stated, format!("Wrote {}.\n", file.display()));
        let mode = fs::metadata(file).expect("the backup file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "only the owner can read it");
        Database::at(file)
    });
}

#[test]
fn a_database_of_postgres_is_dumped_and_restored_while_events_come() {
    under_load(&Database::one_postgres(), |database, file| {
        database.dump(file);
        let restored = Database::one_postgres();
        restored.restore(file);
        restored
    });
}

fn path(file: &Path) -> &str {
    file.to_str().expect("UTF-8")
}

fn under_load(database: &Database, copy: impl Fn(&Database, &Path) -> Database) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make_plan(&client);
    for thread in 0..THREADS {
        catalog::make_customer(&client, &format!("c-{thread}"));
        catalog::make_contract(&client, &catalog::contract(&format!("c-{thread}")));
    }
    let load = Load::start(&client, THREADS, |thread, _| catalog::event(&format!("c-{thread}"), 1));
    let mut restored = Vec::new();
    for round in 0..usize::try_from(setting("BACKUPS", 5)).expect("a small count") {
        load.wait_for(load.acknowledged() + 20);
        let before = load.acknowledged_of_each();
        let copied = copy(database, &directory.path().join(format!("copy-{round}")));
        binary::verify(copied.url()).unwrap_or_else(|found| panic!("{found}"));
        let report = binary::succeed(&copied, &["report"]);
        restored.push((before, report.lines().skip(1).filter_map(|line| line.split(',').next()).map(str::to_owned).collect()));
        if round == 0 {
            let server = Server::start(&copied);
            books::report(&client.at(&server), &catalog::event("c-0", 1));
        }
    }
    let reported = load.end();
    let all: Vec<Vec<&str>> = reported
        .iter()
        .map(|reported| {
            assert!(reported.refused.is_empty(), "{:?}", reported.refused);
            reported.acknowledged.iter().map(|(_, answer)| answer["event_ref"].as_str().expect("a reference")).collect()
        })
        .collect();
    for (before, copied) in &restored {
        let copied: &HashSet<String> = copied;
        let answered = all.iter().zip(before).flat_map(|(of_thread, before)| &of_thread[..*before]);
        let missing: Vec<_> = answered.filter(|event_ref| !copied.contains(**event_ref)).collect();
        assert!(missing.is_empty(), "{missing:?} are missing, of {before:?} acknowledged before");
    }
}

#[test]
fn a_copy_is_a_new_file_of_a_database_that_is_there() {
    let database = Database::sqlite();
    binary::succeed(&database, &["migrate"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("copy.sqlite3");
    binary::succeed(&database, &["backup", path(&file)]);
    let copied = fs::read(&file).expect("the backup file");

    let again = refused(&["backup", path(&file)], database.url());
    assert!(again.contains("copy.sqlite3 exists"), "{again}");
    assert_eq!(fs::read(&file).expect("the backup file"), copied, "the file is unchanged");

    let nowhere = format!("sqlite://{}", directory.path().join("nothing.sqlite3").display());
    let missing = refused(&["backup", path(&directory.path().join("other"))], &nowhere);
    assert!(missing.contains("no database exists"), "{missing}");
    let of_server = refused(&["backup", path(&directory.path().join("other"))], "postgres://127.0.0.1:1/none");
    assert!(of_server.contains("pg_dump"), "{of_server}");
    let left = fs::read_dir(directory.path()).expect("the directory").count();
    assert_eq!(left, 1, "only the backup file is left");
}

fn refused(arguments: &[&str], database_url: &str) -> String {
    let finished = binary::run(arguments, &[("USAGE_BILLING_DATABASE_URL", database_url)]);
    assert_eq!((finished.code, finished.stderr.lines().count()), (Some(2), 1), "{}", finished.stderr);
    finished.stderr
}
