//! Tools that read the OpenAPI document: linters, which find no problem, and generators, whose fully typed clients go from a
//! log-in to an invoice. The programs are in `tests/clients`; generated code isn't kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Client, Database, Server, binary, tools};
use serde_json::Value;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");

fn write_document(directory: &Path) -> PathBuf {
    let printed = binary::run(&["openapi"], &[]);
    assert_eq!(printed.code, Some(0), "{}", printed.stderr);
    let path = directory.join("openapi.json");
    fs::write(&path, printed.stdout).expect("a file");
    path
}

/// Runs a client against a server and checks that the event that it reports is stored.
fn bill(mut client: Command, quantity: &str) {
    let database = Database::sqlite();
    let server = Server::start(&database);
    client.env("BASE_URL", server.base_url()).env("ADMIN_EMAIL", ADMIN_EMAIL).env("ADMIN_PASSWORD", ADMIN_PASSWORD);
    // The server is on the loopback interface, so the machine's proxy must not be used.
    client.env("NO_PROXY", "*").env("no_proxy", "*");
    let printed = tools::succeed(&mut client);
    let made: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("expected JSON, not {printed}"));
    let event = Client::admin(&server).get(&format!("/api/usage/event/{}", made["event_ref"].as_str().unwrap_or_default()));
    assert_eq!(event.clone().ok()["related_document_numbers"], made["document_number"]);
    assert!(event.text.contains(&format!("\"quantity\":{quantity},")), "{}", event.text);
}

#[test]
fn an_independent_validator_accepts_the_document() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    tools::succeed(tools::python("openapi-spec-validator").arg(write_document(directory.path())));
}

#[test]
fn linters_find_nothing_to_mend_in_the_document() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let programs = tools::node_directory().join("node_modules/.bin");
    let rules = |file: &str| Path::new(CLIENTS).join("lint").join(file);
    let document = write_document(directory.path());
    let mut redocly = Command::new(programs.join("redocly"));
    redocly.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    redocly.arg("lint").arg(&document).arg("--config").arg(rules("redocly.yaml"));
    tools::succeed(&mut redocly);
    let mut spectral = Command::new(programs.join("spectral"));
    spectral.arg("lint").arg(&document).arg("--ruleset").arg(rules("spectral.yaml"));
    tools::succeed(spectral.args(["--fail-severity", "warn"]));
}

#[test]
fn a_generated_python_client_bills_a_customer() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let files = Path::new(CLIENTS).join("python");
    let mut generate = tools::python("openapi-python-client");
    generate.args(["generate", "--fail-on-warning", "--meta", "none"]);
    generate.arg("--config").arg(files.join("generator.yml"));
    generate.arg("--path").arg(write_document(directory.path()));
    generate.arg("--output-path").arg(directory.path().join("usage_billing_client"));
    tools::succeed(&mut generate);

    let mut client = tools::python("python");
    client.arg(files.join("journey.py")).env("PYTHONPATH", directory.path());
    bill(client, "12345678901234.000001");
}

#[test]
fn a_generated_typescript_client_compiles_strictly_and_bills_a_customer() {
    let tools_directory = tools::node_directory();
    let program = |name: &str| Command::new(tools_directory.join("node_modules/.bin").join(name));
    // The directory is below the packages, where the compiler and Node.js look for them.
    let directory = tempfile::Builder::new().prefix("run-").tempdir_in(&tools_directory).expect("a temporary directory");
    for file in ["journey.ts", "tsconfig.json"] {
        fs::copy(Path::new(CLIENTS).join("typescript").join(file), directory.path().join(file)).expect("a copy");
    }
    let document = write_document(directory.path());
    tools::succeed(program("openapi-typescript").arg(document).arg("-o").arg(directory.path().join("schema.ts")));
    tools::succeed(program("tsc").arg("--project").arg(directory.path()));

    let mut client = Command::new("node");
    client.arg(directory.path().join("journey.js"));
    bill(client, "1234.5");
}
