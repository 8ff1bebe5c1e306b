//! Third-party programs in the versions that the tests pin.
//!
//! `scripts/python-env` and `scripts/node-env` install the programs below the build directory. A test fails if a
//! program that it needs is missing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::binary::{self, Output};

/// The time limit of a program. The limit is far longer than necessary, so it stops only a program that hangs.
const RUN_SECONDS: u64 = 120;
/// The time limit of an installation, which downloads packages. This limit is also far longer than necessary.
const INSTALL_SECONDS: u64 = 600;

/// Returns a command for a program of the Python environment.
///
/// # Panics
/// Panics if the environment cannot be created.
pub fn python(program: &str) -> Command {
    Command::new(environment("python-env", &[]).join("bin").join(program))
}

/// Returns the command that checks a folder of e-invoices with the official rules.
///
/// # Panics
/// Panics if its Python environment cannot be created.
pub fn e_invoice_check() -> Command {
    let python = environment("python-env", &["einvoice"]).join("bin/python");
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("einvoice/check.py"));
    command
}

/// Returns the directory with the `node_modules` that generate clients.
///
/// # Panics
/// Panics if the modules cannot be installed.
pub fn node_directory() -> PathBuf {
    environment("node-env", &[])
}

/// Returns the directory with the `node_modules` that drive a browser.
///
/// # Panics
/// Panics if the modules cannot be installed.
pub fn browser_directory() -> PathBuf {
    environment("node-env", &["tests/browser"])
}

fn environment(script: &str, arguments: &[&str]) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(script);
    PathBuf::from(succeed_within(Command::new(script).args(arguments), INSTALL_SECONDS).trim_end())
}

/// Runs a program to completion and returns its standard output.
///
/// # Panics
/// Panics with all output of the program if the program fails or does not exit.
pub fn succeed(command: &mut Command) -> String {
    succeed_within(command, RUN_SECONDS)
}

/// Runs a program like [`succeed`], but with another time limit. Use it for programs that need longer.
///
/// # Panics
/// Panics with all output of the program if the program fails or does not exit.
pub fn succeed_within(command: &mut Command, limit_seconds: u64) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = Output::to(command, directory.path());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let status = binary::wait(&mut child, Duration::from_secs(limit_seconds));
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let (stdout, stderr) = (output.stdout(), output.stderr());
    assert!(status.is_some_and(|status| status.success()), "{command:?}: {status:?}\n{stdout}{stderr}");
    stdout
}
