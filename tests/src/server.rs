//! The real binary, serving on a free port of the loopback interface.
//!
//! The server always stops with the test. However the server stops, its database must then pass `usage-billing verify`.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binary::{self, Output};
use crate::{Client, Clock, Database};

/// The email address of the first administrator of every server that this module starts.
pub const ADMIN_EMAIL: &str = "admin@example.com";
/// The password of the first administrator.
pub const ADMIN_PASSWORD: &str = "a pass phrase for tests only";

/// The time limit of a start. The limit is far longer than necessary, so it stops only a start that hangs.
const START_SECONDS: u64 = 60;
/// The interval between checks whether the server is ready.
const POLL_EVERY: Duration = Duration::from_millis(5);
/// The maximum number of ports to try if another process takes the port first.
const MAX_PORTS: u32 = 8;

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    base_url: String,
    database_url: String,
    /// The environment variables of the server's clock.
    clock: Vec<(&'static str, String)>,
    output: Output,
    /// Whether dropping the server verifies the database.
    verified: bool,
    _directory: TempDir,
}

impl Server {
    /// Starts a server with the first administrator above and without automatic billing runs.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn start(database: &Database) -> Self {
        Self::start_with(database, &[])
    }

    /// Starts a server with additional flags.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn start_with(database: &Database, flags: &[&str]) -> Self {
        let password = [("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD)];
        Self::start_in(database, flags, &password)
    }

    /// Starts a server on a clock that the test can set. `verify` reads the same clock.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn start_on(database: &Database, clock: &Clock) -> Self {
        Self::start_on_with(database, clock, &[])
    }

    /// Starts a server like [`Self::start_on`], with additional flags.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn start_on_with(database: &Database, clock: &Clock, flags: &[&str]) -> Self {
        let clock = clock.environment();
        let password = [("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD)];
        let environment: Vec<_> = password.into_iter().chain(borrowed(&clock)).collect();
        let mut server = Self::start_in(database, flags, &environment);
        server.clock = clock.into();
        server
    }

    /// Starts a server with additional flags. Its environment has no additional variables other than the given ones.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn start_in(database: &Database, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_under(&[], database, flags, environment)
    }

    /// Starts a server through a program that runs another program and stays beside it, such as `strace -D`.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn start_under(program: &[&str], database: &Database, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_binary(&binary::path(), program, database, flags, environment)
    }

    /// Starts a server like [`Self::start_with`] from another build of the binary, which `binary` names by an absolute path.
    ///
    /// # Panics
    /// Panics if the server does not become ready.
    pub fn start_of(binary: &Path, database: &Database, flags: &[&str]) -> Self {
        let password = [("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD)];
        Self::start_binary(binary, &[], database, flags, &password)
    }

    fn start_binary(binary: &Path, program: &[&str], database: &Database, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut last = String::new();
        let mut flags = flags.to_vec();
        for _ in 0..MAX_PORTS {
            let mut server = Self::spawn(binary, program, database, &flags, environment);
            match server.wait_until_ready() {
                Ok(()) => return server,
                // Another process can take the free port before the server listens on it.
                Err(stated) if stated.contains("cannot listen on") => {
                    last = stated;
                    // The first attempt set the clock of a new sandbox.
                    if let Some(now) = flags.iter().position(|flag| *flag == "--now") {
                        flags.drain(now..flags.len().min(now + 2));
                    }
                }
                Err(stated) => panic!("the server does not start; its output:\n{stated}"),
            }
        }
        panic!("no port was free {MAX_PORTS} times; the output of the last server:\n{last}");
    }

    fn spawn(binary: &Path, program: &[&str], database: &Database, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = binary::command_of(binary, program, directory.path());
        command
            .env("USAGE_BILLING_DATABASE_URL", database.url())
            .env("USAGE_BILLING_LISTEN", &address)
            .env("USAGE_BILLING_RUN_EVERY_SECONDS", "0")
            // The minimum cost, because hashing took a quarter of the computing time of all tests.
            .env("USAGE_BILLING_PASSWORD_COST", "10")
            // The receivers of tests are on this machine.
            .env("USAGE_BILLING_WEBHOOK_ALLOW_HTTP", "true")
            .env("USAGE_BILLING_WEBHOOK_ALLOW_NETWORKS", "127.0.0.0/8")
            .envs(environment.iter().copied())
            .arg("serve")
            .args(flags);
        let output = Output::to(&mut command, directory.path());
        let child = command.spawn().expect("the binary starts");
        let (base_url, database_url) = (format!("http://{address}"), database.url().to_owned());
        Self { child, base_url, database_url, clock: Vec::new(), output, verified: true, _directory: directory }
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let client = Client::anonymous(self);
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(START_SECONDS) {
            // A server of another test may have taken the port and may respond.
            if let Ok(answer) = client.try_get("/health/ready")
                && answer.status == 200
                && self.stdout().contains("is ready at")
            {
                return Ok(());
            }
            if binary::wait(&mut self.child, Duration::ZERO).is_some() {
                return Err(self.stderr());
            }
            std::thread::sleep(POLL_EVERY);
        }
        Err(format!("not ready after {START_SECONDS} s\n{}", self.stderr()))
    }

    /// Disables the verification on drop. In a measurement, the verification would take longer than the measured work.
    #[must_use]
    pub fn without_verification(mut self) -> Self {
        self.verified = false;
        self
    }

    /// Returns the process ID of the server.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the URL of the server: `http://127.0.0.1:…`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns host and port of the server.
    pub fn address(&self) -> &str {
        self.base_url.trim_start_matches("http://")
    }

    /// Returns the output that the server has printed so far.
    pub fn stdout(&self) -> String {
        self.output.stdout()
    }

    /// Returns the log that the server has written so far.
    pub fn stderr(&self) -> String {
        self.output.stderr()
    }

    /// Kills the server between two instructions, as a power switch would.
    ///
    /// # Panics
    /// Panics if the server cannot be killed.
    pub fn kill_9(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("our own child");
    }

    /// Sends SIGTERM to the server, as an operating system does. See [`Server::wait_for_exit`].
    ///
    /// # Panics
    /// Panics if the signal cannot be sent.
    pub fn terminate(&self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill starts");
        assert!(status.success(), "SIGTERM");
    }

    /// Waits until the server exits by itself. Returns `None` if the server does not exit within the limit.
    pub fn wait_for_exit(&mut self, limit: Duration) -> Option<ExitStatus> {
        binary::wait(&mut self.child, limit)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.output.stderr();
            let start = log.len().saturating_sub(4000);
            eprintln!("the server logged:\n{}", log.get(start..).unwrap_or(&log));
        } else if self.verified
            && let Err(found) = binary::verify_in(&self.database_url, borrowed(&self.clock))
        {
            panic!("{found}");
        }
    }
}

fn borrowed<'a>(variables: &'a [(&'static str, String)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    variables.iter().map(|(name, value)| (*name, value.as_str()))
}

/// Returns a free port of the loopback interface.
///
/// # Panics
/// Panics if no port is free.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a local address").port()
}
