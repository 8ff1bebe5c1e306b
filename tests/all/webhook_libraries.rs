//! The libraries of Standard Webhooks verify what endpoints receive, also during a rotation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use acceptance::hooks::{Endpoint, Receiver};
use acceptance::{Database, catalog, tools};
use serde_json::{Value, json};
use tempfile::TempDir;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");

/// Receives a request before and one during a rotation. Returns the file with the requests and the secrets that verify them.
fn received(directory: &TempDir) -> PathBuf {
    let database = Database::sqlite();
    let (_server, client) = catalog::stage(&database);
    let receiver = Receiver::start();
    let endpoint = Endpoint::create(&client, &receiver, &json!({}));
    catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    receiver.wait_for(1);
    let newer = client.post(&endpoint.path("rotate/"), &json!({})).text_of("secret");
    catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let hooks = receiver.wait_for(2);
    let secrets = [json!([endpoint.secret]), json!([newer, endpoint.secret])];
    let requests: Vec<Value> = hooks
        .iter()
        .zip(secrets)
        .map(|(hook, secrets)| {
            let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
            json!({"headers": hook.headers, "body": hook.text, "secrets": secrets, "other": other})
        })
        .collect();
    let path = directory.path().join("hooks.json");
    fs::write(&path, Value::Array(requests).to_string()).expect("a file");
    path
}

#[test]
fn the_python_library_verifies_the_requests() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut verify = tools::python("python");
    verify.arg(Path::new(CLIENTS).join("python/webhooks.py")).arg(received(&directory));
    assert_eq!(tools::succeed(&mut verify).trim_end(), "3");
}

#[test]
fn the_javascript_library_verifies_the_requests() {
    let modules = tools::node_directory();
    // The directory is below the packages, where Node.js looks for them.
    let directory = tempfile::Builder::new().prefix("run-").tempdir_in(&modules).expect("a temporary directory");
    let program = directory.path().join("webhooks.mjs");
    fs::copy(Path::new(CLIENTS).join("typescript/webhooks.mjs"), &program).expect("a copy");
    let mut verify = Command::new("node");
    verify.arg(program).arg(received(&directory));
    assert_eq!(tools::succeed(&mut verify).trim_end(), "3");
}
