//! TypeScript programs of tests, compiled with the packages of `tests/clients/typescript`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use acceptance::tools;
use tempfile::TempDir;

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients/typescript");

/// A directory of TypeScript programs, below the packages, where the compiler and Node.js look for them.
pub(crate) struct TypeScript {
    tools: PathBuf,
    directory: TempDir,
}

impl TypeScript {
    pub(crate) fn of(programs: &[&str]) -> Self {
        let tools = tools::node_directory();
        let directory = tempfile::Builder::new().prefix("run-").tempdir_in(&tools).expect("a temporary directory");
        for file in programs.iter().chain(&["tsconfig.json", "openapi-ts.config.js"]) {
            fs::copy(Path::new(PROGRAMS).join(file), directory.path().join(file)).expect("a copy");
        }
        Self { tools, directory }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.path().join(file), text).expect("a file");
    }

    /// Returns a command for a program of the packages.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.tools.join("node_modules/.bin").join(name));
        command.current_dir(self.path());
        command
    }

    /// Generates functions in `sdk` with @hey-api/openapi-ts.
    pub(crate) fn generate_functions(&self, document: &Path) {
        fs::copy(document, self.path().join("openapi.json")).expect("a copy");
        tools::succeed(&mut self.program("openapi-ts"));
    }

    /// Compiles everything, without these options of `tsconfig.json`.
    pub(crate) fn compile(&self, without: &[&str]) {
        let mut compile = self.program("tsc");
        for option in without {
            compile.args([&format!("--{option}"), "false"]);
        }
        tools::succeed(compile.args(["--project", "."]));
    }

    pub(crate) fn run(&self, program: &str) -> Command {
        let mut node = Command::new("node");
        node.arg(self.path().join(program));
        node
    }
}
