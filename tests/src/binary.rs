//! The binary: its path, and commands that exit by themselves.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Database;

/// The time limit of a command. The limit is far longer than necessary, so it stops only a command that hangs.
const COMMAND_SECONDS: u64 = 60;
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Returns the path of the binary under test, which was built with this test or with another program that tests it.
///
/// # Panics
/// Panics if the binary is not built.
pub fn path() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    // Tests are in <profile>/deps, programs in <profile>.
    let mut near = test.ancestors().skip(1).take(2).map(|directory| directory.join("usage-billing"));
    let missing = || panic!("there is no usage-billing near {}: run `cargo build -p billing-server` first", test.display());
    near.find(|binary| binary.exists()).unwrap_or_else(missing)
}

/// Returns a command that runs the binary in a directory. The command inherits no settings from the environment.
pub fn command(directory: &Path) -> Command {
    command_of(&path(), &[], directory)
}

/// Returns a command like [`command`] for any build of the binary. If `program` is not empty, it is a program with its
/// arguments that runs the binary.
pub(crate) fn command_of(binary: &Path, program: &[&str], directory: &Path) -> Command {
    let mut command = match program {
        [] => Command::new(binary),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(binary);
            command
        }
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(name)) {
        command.env_remove(name);
    }
    command.current_dir(directory).stdin(Stdio::null());
    command
}

/// Returns whether an environment variable is a setting of the binary.
pub(crate) fn is_setting(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("USAGE_BILLING_") || name == "RUST_LOG"
}

/// The result of a command.
#[derive(Debug)]
pub struct Finished {
    /// The exit code, or `None` if a signal ended the command.
    pub code: Option<i32>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
    /// The working directory of the command.
    pub directory: TempDir,
}

impl Finished {
    /// Returns the names of the files and directories that the command created in its working directory.
    pub fn made(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.directory.path()).expect("the directory exists");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

/// Runs a command to completion in an empty directory.
///
/// # Panics
/// Panics if the command does not exit.
pub fn run<S: AsRef<OsStr>>(arguments: &[S], environment: &[(&str, &str)]) -> Finished {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let outside = tempfile::tempdir().expect("a temporary directory");
    let mut command = command(directory.path());
    command.args(arguments).envs(environment.iter().copied());
    let mut child = Output::to(&mut command, outside.path()).spawn(&mut command);
    let status = wait(&mut child, Duration::from_secs(COMMAND_SECONDS));
    let output = Output::of(outside.path());
    let Some(status) = status else {
        let _ = child.kill();
        let _ = child.wait();
        panic!("the command does not exit; its output:\n{}{}", output.stdout(), output.stderr());
    };
    Finished { code: status.code(), stdout: output.stdout(), stderr: output.stderr(), directory }
}

/// Runs a command on a database and returns its standard output.
///
/// # Panics
/// Panics if the command fails.
pub fn succeed(database: &Database, arguments: &[&str]) -> String {
    let finished = run(arguments, &[("USAGE_BILLING_DATABASE_URL", database.url())]);
    assert_eq!(finished.code, Some(0), "{arguments:?}: {}{}", finished.stdout, finished.stderr);
    finished.stdout
}

/// Recomputes every invariant of a database.
///
/// # Errors
/// Returns the output of `verify` if an invariant does not hold.
pub fn verify(database_url: &str) -> Result<(), String> {
    verify_in(database_url, [])
}

/// Recomputes every invariant like [`verify`], with additional environment variables.
///
/// # Errors
/// Returns the output of `verify` if an invariant does not hold.
pub fn verify_in<'a>(database_url: &'a str, environment: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<(), String> {
    let environment: Vec<_> = [("USAGE_BILLING_DATABASE_URL", database_url)].into_iter().chain(environment).collect();
    let finished = run(&["verify"], &environment);
    if finished.code == Some(0) { Ok(()) } else { Err(format!("verify found:\n{}{}", finished.stdout, finished.stderr)) }
}

/// Waits until a process exits. Returns `None` if the process does not exit within the limit.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child process") {
            return Some(status);
        }
        if started.elapsed() > limit {
            return None;
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// The output files of a process. Unlike pipes, files need no reader while the process runs.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Output {
    pub(crate) fn of(directory: &Path) -> Self {
        Self { stdout: directory.join("stdout"), stderr: directory.join("stderr") }
    }

    pub(crate) fn to(command: &mut Command, directory: &Path) -> Self {
        let output = Self::of(directory);
        command.stdout(File::create(&output.stdout).expect("a file for stdout"));
        command.stderr(File::create(&output.stderr).expect("a file for stderr"));
        output
    }

    fn spawn(&self, command: &mut Command) -> Child {
        command.spawn().expect("the binary starts")
    }

    pub(crate) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }
}

fn read(file: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(file).expect("the file exists")).into_owned()
}
