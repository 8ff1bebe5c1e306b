//! One shell for all calls of a page. Later calls see the variables that earlier calls set.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::{Database, binary};

/// The options that make the shell exit on any failure and on any unset variable.
const STRICT: &str = "set -euo pipefail";

/// A running shell, in an empty directory.
#[derive(Debug)]
pub(crate) struct Shell {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    directory: TempDir,
    /// The directory of the scripts that the shell reads and of the output that it writes.
    outside: TempDir,
    /// The database, which must exist as long as commands use it.
    _database: Database,
}

/// The output of calls.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) ended_well: bool,
}

impl Shell {
    /// Starts a shell that finds `usage-billing` and has only the given settings of the binary.
    pub(crate) fn start(environment: &[(&str, String)], database: Database) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let outside = tempfile::tempdir().expect("a temporary directory");
        let binary = binary::path();
        let path = std::env::var("PATH").expect("a PATH");
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars_os().filter(|(name, _)| binary::is_setting(name)) {
            command.env_remove(name);
        }
        command
            .current_dir(directory.path())
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env("PATH", format!("{}:{path}", binary.parent().expect("a directory").display()))
            // Servers are on the loopback interface, so calls must not use a proxy of the machine.
            .env("NO_PROXY", "*")
            .env("LC_ALL", "C.UTF-8")
            .env("RUST_LOG", "error")
            // Programs that calls start in the background end with the shell.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("bash starts");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        writeln!(stdin, "{STRICT}").expect("the shell reads");
        Self { child, stdin, stdout, directory, outside, _database: database }
    }

    /// Returns whether calls have created a file.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.directory.path().join(file).exists()
    }

    /// Runs calls to completion.
    pub(crate) fn run(&mut self, calls: &str) -> Ran {
        let file = |name: &str| self.outside.path().join(name);
        let [script, stdout, stderr] = ["calls", "stdout", "stderr"].map(file);
        fs::write(&script, calls).expect("a file");
        for output in [&stdout, &stderr] {
            File::create(output).expect("a file");
        }
        let [script, out, err] = [&script, &stdout, &stderr].map(|path| path.display().to_string());
        let mut stated = String::new();
        // A shell that has exited reads nothing more.
        let sent = writeln!(self.stdin, ". {script} >{out} 2>{err} </dev/null; echo done");
        let heard = sent.and_then(|()| self.stdout.read_line(&mut stated));
        let read = |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
        Ran { stdout: read(&stdout), stderr: read(&stderr), ended_well: heard.is_ok() && stated.trim_end() == "done" }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
