//! The console in a real browser, with and without scripts, on both databases: `tests/browser/journeys.mjs`, and
//! `tasks.mjs` with the most clicks and fields of each task. `PICTURES` names a
//! directory for a picture of every page, and `ONLY` a part of the names of the journeys to run.

use std::path::Path;
use std::process::Command;

use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Client, Database, Server, catalog, on_both_databases, tools};

/// The time limit of all journeys, which is far more than they need.
const SECONDS: u64 = 1800;
/// Number of servers without data: the first steps run on a desktop and on a phone, with and without scripts.
const EMPTY_SERVERS: usize = 4;

fn journeys(database: &Database) {
    let server = Server::start(database);
    let software = Client::new_key(&server);
    catalog::make_plan(&software);
    let token = software.header("Authorization").trim_start_matches("Bearer ");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser/journeys.mjs");
    let mut node = Command::new("node");
    node.arg(script).args([server.base_url(), "/usr/bin/chromium"]);
    // The look of a page doesn't depend on the database.
    if database.is_sqlite() {
        node.args(std::env::var_os("PICTURES")).env("PAGES", "all");
    }
    // A server stops before its database is dropped.
    let start_empty = |_: usize| {
        let nothing = if database.is_sqlite() { Database::sqlite() } else { Database::postgres() };
        (Server::start(&nothing), nothing)
    };
    let empty: Vec<(Server, Database)> = (0..EMPTY_SERVERS).map(start_empty).collect();
    let addresses: Vec<String> = empty.iter().map(|(server, _)| server.base_url().to_owned()).collect();
    node.env("EMPTY", addresses.join(","));
    let past = if database.is_sqlite() { Database::sqlite() } else { Database::postgres() };
    let sandbox = Server::start_with(&past, &["--sandbox", "--sample"]);
    node.env("SANDBOX", sandbox.base_url());
    node.env("NODE_TOOLS", tools::browser_directory()).env("EMAIL", ADMIN_EMAIL).env("PASSWORD", ADMIN_PASSWORD);
    let stated = tools::succeed_within(node.env("TOKEN", token), SECONDS);
    for journey in stated.lines().filter(|line| line.starts_with("journey ")) {
        eprintln!("{journey}");
    }
    let is_selection = std::env::var_os("ONLY").is_some_and(|only| !only.is_empty());
    let end = if is_selection { "ok: the selected journeys" } else { "ok: all of it" };
    assert!(stated.contains(end), "{stated}");
}

on_both_databases!(journeys);
