//! Programs that aren't ours, in the versions that the tests pin: `scripts/python-env` and `scripts/node-env` install
//! them, below the build's own directory. A test that needs one fails without it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::binary::{self, Output};

/// How long a program may take. Far more than it needs, so that only one that hangs is cut.
const RUN_SECONDS: u64 = 120;
/// The same, of an installation, which downloads.
const INSTALL_SECONDS: u64 = 600;

/// A program of the Python environment.
///
/// # Panics
/// When the environment can't be made.
pub fn python(program: &str) -> Command {
    Command::new(environment("python-env", &[]).join("bin").join(program))
}

/// The directory with the `node_modules` that clients are made with.
///
/// # Panics
/// When they can't be installed.
pub fn node_directory() -> PathBuf {
    environment("node-env", &[])
}

/// The directory with the `node_modules` that drive a browser.
///
/// # Panics
/// When they can't be installed.
pub fn browser_directory() -> PathBuf {
    environment("node-env", &["tests/browser"])
}

fn environment(script: &str, arguments: &[&str]) -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(script);
    PathBuf::from(succeed_within(Command::new(script).args(arguments), INSTALL_SECONDS).trim_end())
}

/// Runs a program to its end and answers what it printed.
///
/// # Panics
/// When it fails or doesn't end, with all it said.
pub fn succeed(command: &mut Command) -> String {
    succeed_within(command, RUN_SECONDS)
}

/// The same of a program that needs longer.
///
/// # Panics
/// When it fails or doesn't end, with all it said.
pub fn succeed_within(command: &mut Command, limit_seconds: u64) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = Output::to(command, directory.path());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} doesn't start: {error}"));
    let status = binary::wait(&mut child, Duration::from_secs(limit_seconds));
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let (stdout, stderr) = (output.stdout(), output.stderr());
    assert!(status.is_some_and(|status| status.success()), "{command:?}: {status:?}\n{stdout}{stderr}");
    stdout
}
