//! Numbers with more digits than a float has, read by clients from third-party generators: every digit is preserved.

use std::fs;
use std::path::Path;
use std::process::Command;

use acceptance::{Client, Database, Server, books, catalog, tools};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CLIENTS, QUANTITY};
use crate::typescript::TypeScript;

/// The price is 0.71 for each unit.
const TOTAL: &str = "8765432019876.14";
const STRINGS: &str = "/openapi.json?numbers=string";
/// Maps `number` to the JSON text, which keeps its digits. By default the generator uses 32 bits.
const NUMBERS_OF_GO: &str = "--type-mappings=number=json.Number";

/// An event and a document with many digits.
struct Stage {
    event: Value,
    client: Client,
    server: Server,
    directory: TempDir,
    _database: Database,
}

impl Stage {
    fn set() -> Self {
        let database = Database::sqlite();
        let server = Server::start(&database);
        let client = Client::new_key(&server);
        let calls = json!({"usage_product_ref": catalog::API_CALLS, "name": "API calls"});
        client.post("/api/usage/products/", &calls).ok();
        client.post("/api/customers/", &json!({"customer_ref": catalog::ACME, "name": "Acme"})).ok();
        let price = json!({"model": "PER_UNIT", "unit_price": "0.71"});
        catalog::make_pricing(&client, catalog::API_PLAN, &json!([catalog::calls(&price)]));
        catalog::make_contract(&client, &catalog::contract(catalog::ACME));
        let event = books::report(&client, &catalog::event(catalog::ACME, QUANTITY));
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { event, client, server, directory, _database: database }
    }

    /// Writes the server's description to a file.
    fn description(&self, path: &str) -> std::path::PathBuf {
        let file = self.directory.path().join("openapi.json");
        fs::write(&file, self.client.get(path).text).expect("a file");
        file
    }

    /// Runs a client, which prints the values that it read.
    fn hold(&self, client: &mut Command) {
        client.env("BASE_URL", self.server.base_url()).env("NO_PROXY", "*").env("no_proxy", "*");
        client.env("TOKEN", self.client.header("Authorization").trim_start_matches("Bearer "));
        for (name, field) in [("EVENT_REF", "event_ref"), ("DOCUMENT_REF", "related_document_ref")] {
            client.env(name, self.event[field].as_str().expect("a reference"));
        }
        assert_eq!(tools::succeed(client).trim_end(), format!("{QUANTITY} {TOTAL}"));
    }
}

#[test]
fn models_of_decimals_as_strings_read_every_digit() {
    let stage = Stage::set();
    super::generate_python_models(&stage.description(STRINGS), &stage.directory.path().join("models.py"));
    let program = Path::new(CLIENTS).join("python/validated.py");
    stage.hold(tools::python("python").arg(program).env("PYTHONPATH", stage.directory.path()));
}

#[test]
fn typescript_functions_of_decimals_as_strings_read_every_digit() {
    let stage = Stage::set();
    let typescript = TypeScript::of(&["sdk.ts"]);
    typescript.generate_functions(&stage.description(STRINGS));
    typescript.compile(&["exactOptionalPropertyTypes"]);
    stage.hold(&mut typescript.run("sdk.js"));
}

#[test]
fn a_go_client_of_decimals_as_strings_reads_every_digit() {
    read_in_go(STRINGS, &[], "strings.go");
}

#[test]
fn a_go_client_with_numbers_as_their_text_reads_every_digit() {
    read_in_go("/openapi.json", &[NUMBERS_OF_GO], "numbers.go");
}

fn read_in_go(description: &str, options: &[&str], reader: &str) {
    let stage = Stage::set();
    let packages = stage.directory.path().join("go/src");
    let mut generate = tools::python("openapi-generator-cli");
    generate.args(["generate", "-g", "go", "--package-name", "usagebilling"]).args(options);
    // Different enumerations may contain the same words.
    generate.args(["--additional-properties=enumClassPrefix=true", "--global-property"]);
    generate.arg("apis,models,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false");
    generate.arg("-i").arg(stage.description(description)).arg("-o").arg(packages.join("usagebilling"));
    tools::succeed(&mut generate);
    let files = Path::new(CLIENTS).join("go");
    let (main, validator) = (packages.join("read"), packages.join("gopkg.in/validator.v2"));
    for (file, directory) in [("main.go", &main), (reader, &main), ("validator/validator.go", &validator)] {
        let file = files.join(file);
        fs::create_dir_all(directory).expect("a directory");
        fs::copy(&file, directory.join(file.file_name().expect("a file name"))).expect("a copy");
    }
    let mut go = Command::new("go");
    go.current_dir(&main).args(["build", "-o", "read", "."]).env("GO111MODULE", "off").env("GOFLAGS", "");
    go.env("GOPATH", stage.directory.path().join("go"));
    tools::succeed(&mut go);
    stage.hold(&mut Command::new(main.join("read")));
}
