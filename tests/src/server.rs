//! The real binary, serving on a free port of the loopback. It ends with the test, whatever happens, and however it
//! ends, what it leaves in the database has to pass `usage-billing verify`.

use std::net::TcpListener;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::binary::{self, Output};
use crate::{Client, Clock, Database};

/// The first administrator of every server that is started here.
pub const ADMIN_EMAIL: &str = "admin@example.com";
/// Their password.
pub const ADMIN_PASSWORD: &str = "a pass phrase for tests only";

/// How long a start may take. Far more than it needs, so that only one that hangs is cut.
const START_SECONDS: u64 = 60;
/// How often it is asked whether it is ready.
const POLL_EVERY: Duration = Duration::from_millis(5);
/// How often another port is tried when somebody was faster.
const MAX_PORTS: u32 = 8;

/// A running server.
#[derive(Debug)]
pub struct Server {
    child: Child,
    base_url: String,
    database_url: String,
    /// What its clock needs in the environment.
    clock: Vec<(&'static str, String)>,
    output: Output,
    /// Whether what it leaves is looked at.
    verified: bool,
    _directory: TempDir,
}

impl Server {
    /// Starts one with the first administrator above and without billing runs of its own.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn start(database: &Database) -> Self {
        Self::start_with(database, &[])
    }

    /// Starts one with more flags.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn start_with(database: &Database, flags: &[&str]) -> Self {
        let password = [("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD)];
        Self::start_in(database, flags, &password)
    }

    /// Starts one on a clock that can be turned. `verify` reads the same clock.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn start_on(database: &Database, clock: &Clock) -> Self {
        Self::start_on_with(database, clock, &[])
    }

    /// The same with more flags.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn start_on_with(database: &Database, clock: &Clock, flags: &[&str]) -> Self {
        let clock = clock.environment();
        let password = [("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD)];
        let environment: Vec<_> = password.into_iter().chain(borrowed(&clock)).collect();
        let mut server = Self::start_in(database, flags, &environment);
        server.clock = clock.into();
        server
    }

    /// Starts one with more flags, and nothing in its environment but this.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn start_in(database: &Database, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_under(&[], database, flags, environment)
    }

    /// Starts one by a program that runs another and stays beside it, such as `strace -D`.
    ///
    /// # Panics
    /// When it doesn't get ready.
    pub fn start_under(program: &[&str], database: &Database, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut last = String::new();
        for _ in 0..MAX_PORTS {
            let mut server = Self::spawn(program, database, flags, environment);
            match server.wait_until_ready() {
                Ok(()) => return server,
                // Between finding a free port and listening on it, somebody else may have taken it.
                Err(said) if said.contains("cannot listen on") => last = said,
                Err(said) => panic!("the server doesn't start; it said:\n{said}"),
            }
        }
        panic!("no port was free {MAX_PORTS} times; the last server said:\n{last}");
    }

    fn spawn(program: &[&str], database: &Database, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = binary::command_under(program, directory.path());
        command
            .env("USAGE_BILLING_DATABASE_URL", database.url())
            .env("USAGE_BILLING_LISTEN", &address)
            .env("USAGE_BILLING_RUN_EVERY_SECONDS", "0")
            // The least: a quarter of all that the tests compute was hashing.
            .env("USAGE_BILLING_PASSWORD_COST", "10")
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
            // Another's server may have taken the port, and answer.
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

    /// The same, and what it leaves isn't looked at: of a measurement, that would take longer than what is measured.
    #[must_use]
    pub fn without_verification(mut self) -> Self {
        self.verified = false;
        self
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens: `http://127.0.0.1:…`.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.base_url.trim_start_matches("http://")
    }

    /// What it has printed.
    pub fn stdout(&self) -> String {
        self.output.stdout()
    }

    /// What it has logged.
    pub fn stderr(&self) -> String {
        self.output.stderr()
    }

    /// Ends it between two instructions, as a power switch would.
    ///
    /// # Panics
    /// When that isn't possible.
    pub fn kill_9(mut self) {
        self.child.kill().expect("SIGKILL");
        self.child.wait().expect("our own child");
    }

    /// Asks it to end, as an operating system does; see [`Server::wait_for_exit`].
    ///
    /// # Panics
    /// When that isn't possible.
    pub fn terminate(&self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().expect("kill starts");
        assert!(status.success(), "SIGTERM");
    }

    /// Waits until it has ended by itself; `None` when it hasn't in time.
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

/// A port of the loopback that nobody listens on.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port()
}
