//! The programs of the guide "Test your billing", run as a reader runs them: with the server's program on the path.

use std::process::Command;

use acceptance::documentation::Page;
use acceptance::{binary, tools};

use crate::typescript::TypeScript;

const GUIDE: &str = "docs/guides/test-your-billing.md";

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
    python.arg("-c").arg(Page::program(GUIDE, "python"));
    bills_right(python);
}

#[test]
fn the_typescript_program_compiles_strictly_and_bills_a_sandbox() {
    let directory = TypeScript::of(&[]);
    directory.write("guide.ts", &Page::program(GUIDE, "ts"));
    directory.compile(&["noUncheckedIndexedAccess"]);
    bills_right(directory.run("guide.js"));
}
