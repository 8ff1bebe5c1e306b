//! Requests that [Schemathesis](https://schemathesis.io) generates from the OpenAPI document, valid and invalid. Each response
//! matches the document, invalid requests are rejected, and no response is a server error. `DESCRIBED_REQUESTS` sets the number
//! of requests of each operation, and `SEED` selects them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use acceptance::random::setting;
use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Database, on_both_databases, tools, tour};
use serde_json::{Value, json};

on_both_databases!(random_requests_are_answered_as_they_are_described);

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/schemathesis");
/// The default number of requests of each operation.
const REQUESTS: u64 = 5;
/// The basic time limit, which is far more than a request of each operation takes.
const SECONDS_BEFORE_CUT: u64 = 600;
const SECONDS_PER_REQUEST_OF_EACH: u64 = 30;
/// The longest possible lifetime of a token.
const TOKEN_LIFETIME: &str = "--token-lifetime-seconds=86400";

/// The fields and parameters that name an object.
const NAMES: [&str; 20] = [
    "admin_ref",
    "api_key_ref",
    "application_ref",
    "billing_account_id",
    "charge_ref",
    "contract_ref",
    "customer_ref",
    "document_ref",
    "endpoint_ref",
    "entity_ref",
    "event_ref",
    "format_name",
    "format_ref",
    "line_item_id",
    "notification_ref",
    "payment_ref",
    "product_pricing_ref",
    "session_ref",
    "source_ref",
    "usage_product_ref",
];

fn random_requests_are_answered_as_they_are_described(database: &Database) {
    let (requests, seed) = (setting("DESCRIBED_REQUESTS", REQUESTS), setting("SEED", 1));
    let arguments = ["--phases=examples,fuzzing", &format!("--max-examples={requests}"), &format!("--seed={seed}")];
    hold(database, "/openapi.json", &arguments, SECONDS_BEFORE_CUT + requests * SECONDS_PER_REQUEST_OF_EACH);
}

/// Tests each bound of each schema on both sides. The server checks bounds before it queries a database.
#[test]
fn requests_at_every_bound_are_answered_as_they_are_described() {
    hold(&Database::sqlite(), "/openapi.json", &["--phases=coverage", "--seed=1"], SECONDS_BEFORE_CUT);
}

/// Sends only valid requests: an absent or unknown preference is ignored.
#[test]
fn requests_for_decimals_as_strings_are_answered_as_they_are_described() {
    let arguments = ["--mode=positive", "--phases=examples,fuzzing", &format!("--max-examples={REQUESTS}"), "--seed=1"];
    hold(&Database::sqlite(), "/openapi.json?numbers=string", &arguments, SECONDS_BEFORE_CUT);
}

/// Sends generated requests for a description, in a database with one object of every kind.
fn hold(database: &Database, description: &str, arguments: &[&str], limit_seconds: u64) {
    // Schemathesis also tries log-ins.
    let flags = [TOKEN_LIFETIME, "--logins-per-minute=1000000", "--login-failures=10000"];
    let (server, _clock) = tour::begin(database, &flags);
    let taken = tour::take(&server);
    let directory = tempfile::tempdir().expect("a temporary directory");
    configure(directory.path(), &taken);
    let token = taken.client.header("Authorization").trim_start_matches("Bearer ");
    let mut schemathesis = tools::python("schemathesis");
    schemathesis.current_dir(directory.path()).env("NO_PROXY", "*").env("no_proxy", "*");
    schemathesis.env("BEARER_TOKEN", token).env("ADMIN_EMAIL", ADMIN_EMAIL).env("ADMIN_PASSWORD", ADMIN_PASSWORD);
    schemathesis.arg("run").arg(format!("{}{description}", server.base_url())).args(arguments);
    tools::succeed_within(&mut schemathesis, limit_seconds);
}

/// Writes the configuration with the known values of each name.
fn configure(directory: &Path, taken: &tour::TourResult) {
    fs::copy(Path::new(FILES).join("hooks.py"), directory.join("hooks.py")).expect("a copy");
    let mut known = BTreeMap::new();
    for exchange in taken.exchanges.iter().filter(|exchange| exchange.operation != "openapi") {
        collect(&exchange.answer.body, &mut known);
    }
    // The key that authenticates the requests may be used but not deleted.
    known.insert("api_key_ref".to_owned(), taken.spare_keys.iter().cloned().collect());
    known.insert("source_ref".to_owned(), known["payment_ref"].clone());
    // The administrator who sends the requests stays unchanged.
    let invited = taken.exchanges.iter().find(|exchange| exchange.operation == "invite_administrator").expect("an administrator");
    let invited = invited.answer.text_of("admin_ref");
    known.insert("admin_ref".to_owned(), BTreeSet::from([invited]));
    let mut text = fs::read_to_string(Path::new(FILES).join("schemathesis.toml")).expect("the configuration");
    for name in NAMES {
        // The fuzzer's own choice of values would find the key that it uses.
        let probability = if name == "api_key_ref" { 1.0 } else { 0.8 };
        for place in [name.to_owned(), format!("\"body.{name}\"")] {
            writeln!(text, "[parameters.{place}]\ndictionary = \"{name}\"\nprobability = {probability:?}").expect("a string");
        }
        writeln!(text, "[dictionaries.{name}]\nvalues = {}", json!(known[name])).expect("a string");
    }
    fs::write(directory.join("schemathesis.toml"), text).expect("a file");
}

/// Collects the strings in a value by the names of their fields.
fn collect(value: &Value, found: &mut BTreeMap<String, BTreeSet<String>>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if let Some(text) = member.as_str() {
                    found.entry(name.clone()).or_default().insert(text.to_owned());
                }
                collect(member, found);
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
