//! `kill -9` in the middle of `restore`: either the former database is served, or no server starts until the restore is repeated.

use std::path::{Path, PathBuf};
use std::process::Command;

use acceptance::{Client, Database, Server, binary, books, catalog};
use serde_json::json;

/// The system calls that change the files beside a database, or write them to the disk.
const CALLS: [&str; 7] = ["rename", "renameat", "renameat2", "unlink", "unlinkat", "fsync", "fdatasync"];

/// Restores a backup, and kills the command at the beginning of a system call, of which `step` counts the invocations. Returns whether
/// it was killed.
fn is_killed_at(call: &str, step: usize, database: &Database, backup: &Path) -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")]);
    strace.args(["-e", &format!("inject={call}:signal=SIGKILL:when={step}")]).arg(binary::path()).arg("restore").arg(backup);
    strace.env("USAGE_BILLING_DATABASE_URL", database.url()).current_dir(directory.path());
    let output = strace.output().expect("strace starts");
    let is_killed = !output.status.success();
    assert!(is_killed || output.stdout.starts_with(b"Restored "), "{call} {step}: {}", String::from_utf8_lossy(&output.stderr));
    is_killed
}

fn with(file: &Path, suffix: &str) -> PathBuf {
    PathBuf::from(format!("{}{suffix}", file.display()))
}

#[test]
fn a_restore_that_is_killed_at_any_step_leaves_the_former_database_or_is_repeated() {
    let database = Database::sqlite();
    let directory = tempfile::tempdir().expect("a directory");
    let backup = directory.path().join("backup.sqlite3");
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let count = |client: &Client| {
        let found = client.get("/api/usage/event/filter").ok();
        found.as_array().expect("a list").len()
    };
    books::report(&client, &catalog::event(catalog::ACME, 1));
    binary::succeed(&database, &["backup", backup.to_str().expect("UTF-8")]);
    books::report(&client, &catalog::event(catalog::ACME, 1));
    // The killed server leaves a log. A verification would move the log into the database.
    server.without_verification().kill_9();
    let file = PathBuf::from(database.url().strip_prefix("sqlite://").expect("a file"));
    assert!(std::fs::metadata(with(&file, "-wal")).is_ok_and(|log| log.len() > 0));

    let (mut formers, mut interrupted) = (0, 0);
    let (mut calls, mut step) = (CALLS.iter().peekable(), 0);
    while let Some(call) = calls.peek() {
        step += 1;
        // Each round has its own copy of the killed database.
        let of_round = Database::sqlite();
        let copy = PathBuf::from(of_round.url().strip_prefix("sqlite://").expect("a file"));
        for suffix in ["", "-wal"] {
            std::fs::copy(with(&file, suffix), with(&copy, suffix)).expect("a copy");
        }
        if !is_killed_at(call, step, &of_round, &backup) {
            calls.next();
            step = 0;
            continue;
        }
        if with(&copy, ".restoring").exists() {
            interrupted += 1;
            let refused = binary::run(&["verify"], &[("USAGE_BILLING_DATABASE_URL", of_round.url())]);
            assert!(refused.code == Some(2) && refused.stderr.contains("was interrupted"), "{call} {step}: {}", refused.stderr);
            let stated = binary::succeed(&of_round, &["restore", backup.to_str().expect("UTF-8")]);
            assert!(stated.contains("The former database is "), "{call} {step}: {stated}");
        } else if !std::fs::read_dir(copy.parent().expect("a directory"))
            .expect("the directory")
            .any(|entry| entry.is_ok_and(|entry| entry.file_name().to_string_lossy().contains(".before-restore-")))
        {
            formers += 1;
            let server = Server::start(&of_round);
            assert_eq!(count(&client.at(&server)), 2, "{call} {step}: the former database");
            drop(server);
            binary::succeed(&of_round, &["restore", backup.to_str().expect("UTF-8")]);
        }
        let server = Server::start(&of_round);
        let client = client.at(&server);
        assert_eq!(count(&client), 1, "{call} {step}: the backup");
        books::report(&client, &catalog::event(catalog::ACME, 1));
        assert_eq!(client.get("/api/notifications/filter?after=1").body["code"], json!("feed_restarted"), "{call} {step}");
    }
    eprintln!("killed before the marker {formers} times, after it {interrupted} times");
    assert!(formers >= 3 && interrupted >= 8, "{formers} {interrupted}");
}
