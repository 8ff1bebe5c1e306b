//! The console in a real browser, with and without scripts, on both databases: `tests/browser/journeys.mjs`. `PICTURES` names a
//! directory for a picture of every page.

use std::path::Path;
use std::process::Command;

use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Client, Database, Server, catalog, on_both_databases, tools};

/// The time limit of all journeys, which is far more than they need.
const SECONDS: u64 = 900;

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
    let nothing = if database.is_sqlite() { Database::sqlite() } else { Database::postgres() };
    let empty = Server::start(&nothing);
    node.env("EMPTY", empty.base_url());
    node.env("NODE_TOOLS", tools::browser_directory()).env("EMAIL", ADMIN_EMAIL).env("PASSWORD", ADMIN_PASSWORD);
    let said = tools::succeed_within(node.env("TOKEN", token), SECONDS);
    assert!(said.contains("ok: all of it"), "{said}");
}

on_both_databases!(journeys);
