//! Tools that read the OpenAPI document: linters, which find no problem, and generators, whose code compiles. The clients of a release
//! go from a log-in to an invoice. The programs are in `tests/clients`; generated code isn't kept.

mod exact_numbers;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use acceptance::documentation::Page;
use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Client, Database, Server, binary, tools};
use serde_json::{Value, json};

use crate::typescript::TypeScript;

const CLIENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
const FIRST_INTEGRATION: &str = "docs/guides/first-integration.md";
/// The maximum number of lines of a first integration.
const MAX_LINES: usize = 25;
/// More digits than a float has.
const QUANTITY: &str = "12345678901234.000001";
/// A Python program that compiles all generated modules.
const IMPORT_ALL: &str = "import importlib, pkgutil, models, usage_billing_client as client
for module in pkgutil.walk_packages(client.__path__, 'usage_billing_client.'): importlib.import_module(module.name)";

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

/// Returns a directory with the clients of a release. `BUILT_CLIENTS` names one whose clients exist, as in the release workflow.
fn clients(directory: &Path) -> PathBuf {
    if let Some(built) = std::env::var_os("BUILT_CLIENTS") {
        return built.into();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/clients");
    tools::succeed(Command::new(script).arg(directory).arg(binary::path()));
    directory.to_owned()
}

/// Returns the only file of a directory with an extension.
fn with_extension(directory: &Path, extension: &str) -> PathBuf {
    let files = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files = files.filter(|file| file.extension().is_some_and(|found| found == extension));
    let file = files.next().unwrap_or_else(|| panic!("no {extension} in {}", directory.display()));
    assert_eq!(files.next(), None, "another {extension} file");
    file
}

#[test]
fn the_clients_of_a_release_bill_a_customer_with_every_digit() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let built = clients(temporary.path());

    let packages = temporary.path().join("packages");
    let mut install = tools::python("pip");
    install.args(["install", "--quiet", "--no-index", "--no-deps", "--target"]).arg(&packages);
    tools::succeed(install.arg(with_extension(&built, "whl")));
    let mut python = tools::python("python");
    python.arg(Path::new(CLIENTS).join("python/journey.py")).env("PYTHONPATH", &packages);
    bill(python, QUANTITY);

    let directory = TypeScript::of(&["journey.ts"]);
    let package = directory.path().join("node_modules/usage-billing-client");
    fs::create_dir_all(&package).expect("a directory");
    let mut unpack = Command::new("tar");
    unpack.args(["--extract", "--strip-components=1", "--directory"]).arg(&package).arg("--file");
    tools::succeed(unpack.arg(with_extension(&built, "tgz")));
    directory.compile(&[]);
    bill(directory.run("journey.js"), QUANTITY);
}

#[test]
fn clients_of_four_generators_compile() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let document = write_document(directory.path());
    let path = |name: &str| directory.path().join(name);
    generate_python_client(&document, &path("usage_billing_client"));
    generate_python_models(&document, &path("models.py"));
    let mut import = tools::python("python");
    import.args(["-W", "error", "-c", IMPORT_ALL]).env("PYTHONPATH", directory.path());
    tools::succeed(&mut import);

    let typescript = TypeScript::of(&["lists.ts"]);
    tools::succeed(typescript.program("openapi-typescript").arg(&document).args(["-o", "schema.ts"]));
    typescript.compile(&[]);
    typescript.generate_functions(&document);
    typescript.compile(&["exactOptionalPropertyTypes"]);
}

fn generate_python_client(document: &Path, to: &Path) {
    let settings = Path::new(CLIENTS).join("../../packaging/clients/python/generator.yml");
    let mut generate = tools::python("openapi-python-client");
    generate.args(["generate", "--fail-on-warning", "--meta", "none"]).arg("--config").arg(settings);
    tools::succeed(generate.arg("--path").arg(document).arg("--output-path").arg(to));
}

fn generate_python_models(document: &Path, to: &Path) {
    let mut generate = tools::python("datamodel-codegen");
    generate.args(["--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel", "--formatters", "builtin"]);
    tools::succeed(generate.arg("--input").arg(document).arg("--output").arg(to));
}

/// Returns the example of an operation's page in a language.
fn example(page: &str, language: &str) -> String {
    let (_, program) = page.split_once(&format!("<pre class=\"{language}\"><code>")).expect("an example");
    let (program, _) = program.split_once("</code>").expect("its end");
    program.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Returns the variables in an example, which are in capitals.
fn variables(program: &str) -> BTreeSet<&str> {
    let parts = program.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_variable = |part: &&str| {
        ["BASE", "PASSWORD", "TOKEN", "SESSION"].contains(part) || ["_KEY", "_REF", "_ID"].iter().any(|end| part.ends_with(end))
    };
    parts.filter(is_variable).collect()
}

#[test]
fn the_examples_of_the_reference_are_programs() {
    let database = Database::sqlite();
    let server = Server::start_with(&database, &["--sample"]);
    let key = Client::admin(&server).generate_key(&json!({}));
    let anonymous = Client::anonymous(&server);
    let page = |operation: &str| anonymous.get(&format!("/docs/operations/{operation}")).text;
    let typescript = TypeScript::of(&[]);
    let mut python = String::new();
    let description = anonymous.get("/openapi.json").ok();
    let operations =
        description["paths"].as_object().expect("paths").values().flat_map(|path| path.as_object().expect("methods"));
    for (_, operation) in operations {
        let id = operation["operationId"].as_str().expect("an id");
        let page = page(id);
        let (command, program) = (example(&page, "curl"), example(&page, "typescript"));
        tools::succeed(Command::new("bash").args(["-n", "-c", &command]));
        let declared: String = variables(&program).iter().map(|name| format!("declare const {name}: string;\n")).collect();
        typescript.write(&format!("{id}.ts"), &format!("{declared}{program}\nexport {{}};\n"));
        python.push_str(&format!("def {id}():\n{}\n", example(&page, "python").replace('\n', "\n ").replacen("", " ", 1)));
    }
    typescript.compile(&[]);

    let settings = format!("BASE, API_KEY, PASSWORD = {:?}, {:?}, {:?}\n", server.base_url(), key.api_key, key.password);
    let mut run = tools::python("python");
    run.arg("-c").arg(format!("{settings}{python}\nlist_customers()\n")).env("NO_PROXY", "*");
    assert!(tools::succeed(&mut run).contains("'customer_ref': 'acme'"));
    let mut run = Command::new("bash");
    run.args(["-c", &example(&page("list_customers"), "curl")]);
    run.env("BASE", server.base_url()).env("API_KEY", key.api_key).env("PASSWORD", key.password).env("NO_PROXY", "*");
    assert!(tools::succeed(&mut run).contains("\"customer_ref\":\"acme\""));
}

#[test]
fn the_first_integration_bills_an_event_in_python_and_in_typescript() {
    let [text, python, typescript] = ["text", "python", "ts"].map(|language| Page::program(FIRST_INTEGRATION, language));
    for program in [&python, &typescript] {
        assert!(program.lines().count() <= MAX_LINES, "{program}");
    }
    let bill = |mut program: Command| {
        let database = Database::sqlite();
        let server = Server::start_with(&database, &["--sample"]);
        let key = Client::admin(&server).generate_key(&json!({}));
        program.env("BASE", server.base_url()).env("API_KEY", key.api_key).env("PASSWORD", key.password);
        assert_eq!(tools::succeed(program.env("NO_PROXY", "*").env("no_proxy", "*")), text);
    };
    let mut run = tools::python("python");
    run.arg("-c").arg(python);
    bill(run);
    let directory = TypeScript::of(&[]);
    directory.write("guide.ts", &typescript);
    directory.compile(&[]);
    bill(directory.run("guide.js"));
}
