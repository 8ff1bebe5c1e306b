//! The programs of the guide "Test your billing", run as a reader runs them: with the server's program on the path.

use std::fs;
use std::process::Command;

use acceptance::documentation::Page;
use acceptance::{binary, tools};

const GUIDE: &str = "docs/guides/test-your-billing.md";

/// Returns the guide's only program in a language.
fn program(language: &str) -> String {
    let page = Page::read(GUIDE);
    let mut programs = page.blocks.into_iter().filter(|block| block.language == language);
    let program = programs.next().unwrap_or_else(|| panic!("{GUIDE} has no program in {language}"));
    assert!(programs.next().is_none(), "{GUIDE} has two programs in {language}");
    program.text
}

fn bills_right(mut run: Command) {
    let directory = binary::path().parent().expect("a directory").to_owned();
    let path = std::env::var("PATH").expect("a path");
    // The server is on the loopback interface, so the machine's proxy must not be used.
    run.env("PATH", format!("{}:{path}", directory.display())).env("NO_PROXY", "*").env("no_proxy", "*");
    assert_eq!(tools::succeed(&mut run), "The bill is right.\n");
}

#[test]
fn the_python_program_bills_a_sandbox() {
    let mut python = tools::python("python");
    python.arg("-c").arg(program("python"));
    bills_right(python);
}

#[test]
fn the_typescript_program_compiles_strictly_and_bills_a_sandbox() {
    let tools_directory = tools::node_directory();
    // The directory is below the packages, where the compiler looks for them.
    let directory = tempfile::Builder::new().prefix("run-").tempdir_in(&tools_directory).expect("a temporary directory");
    let source = directory.path().join("guide.mts");
    fs::write(&source, program("ts")).expect("a file");
    let mut compile = Command::new(tools_directory.join("node_modules/.bin/tsc"));
    compile.current_dir(directory.path());
    compile.args(["--target", "ES2022", "--module", "NodeNext", "--strict", "--skipLibCheck", "--types", "node"]).arg(&source);
    tools::succeed(&mut compile);
    let mut node = Command::new("node");
    node.arg(source.with_extension("mjs"));
    bills_right(node);
}
