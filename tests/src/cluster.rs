//! A PostgreSQL server for a single test. The test can stop, crash and restart the server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Database;
use crate::server::free_port;

/// The time limit of a start or a stop. The limit is far longer than necessary.
const SECONDS: &str = "60";

/// A durable server on the loopback interface.
#[derive(Debug)]
pub struct Cluster {
    directory: TempDir,
    programs: String,
    /// The system user of the server if the tests run as root, because PostgreSQL refuses to run as root.
    owner: Option<&'static str>,
    port: u16,
}

impl Cluster {
    /// Creates and starts a server.
    ///
    /// # Panics
    /// Panics if the server cannot be created or started.
    pub fn start() -> Self {
        let mut cluster = Self::initialized();
        cluster.up();
        cluster
    }

    /// Creates a server without starting it.
    ///
    /// # Panics
    /// Panics if the server cannot be created.
    pub fn initialized() -> Self {
        let programs = programs();
        let is_root = succeed(Command::new("id").arg("-u")).trim_end() == "0";
        let owner = is_root.then_some("postgres");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let cluster = Self { directory, programs, owner, port: free_port() };
        cluster.give(cluster.directory.path());
        let data = cluster.data();
        succeed(
            cluster
                .command("initdb")
                .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"])
                .arg(data),
        );
        cluster
    }

    /// Starts a standby server that follows this server. From then on, this server commits nothing without the standby.
    ///
    /// # Panics
    /// Panics if the standby cannot be started.
    pub fn standby(&self) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut standby = Self { directory, programs: self.programs.clone(), owner: self.owner, port: free_port() };
        standby.give(standby.directory.path());
        let (from, data) = (self.url("127.0.0.1"), standby.data());
        succeed(standby.command("pg_basebackup").args(["-R", "-c", "fast", "-d", &from, "-D"]).arg(data));
        standby.up();
        let primary = Database::there(&from);
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'");
        primary.execute("SELECT pg_reload_conf()");
        let follows = "DO $$ BEGIN ASSERT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync'); END $$";
        wait_until("the standby follows", || primary.try_execute(follows).is_ok());
        standby
    }

    /// Promotes a standby, which then accepts writes.
    ///
    /// # Panics
    /// Panics if the promotion fails.
    pub fn promote(&self) {
        succeed(self.control("promote").args(["-w", "-t", SECONDS]));
    }

    /// Starts the server. After a crash, the server first recovers its data.
    ///
    /// # Panics
    /// Panics if the server does not start.
    pub fn up(&mut self) {
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c max_connections=200 \
             -c fsync=on -c synchronous_commit=on -c full_page_writes=on",
            self.port
        );
        let log = self.directory.path().join("server.log");
        let output = self
            .control("start")
            .args(["-w", "-t", SECONDS, "-l"])
            .arg(&log)
            .args(["-o", &options])
            // A pipe would stay open for as long as the server runs.
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status();
        assert!(output.is_ok_and(|status| status.success()), "{}", fs::read_to_string(log).unwrap_or_default());
    }

    /// Stops the server in an orderly way, but does not wait for clients.
    ///
    /// # Panics
    /// Panics if the server does not stop.
    pub fn stop(&self) {
        succeed(self.control("stop").args(["-m", "fast", "-w", "-t", SECONDS]));
    }

    /// Stops all processes of the server at once, as a crash does.
    ///
    /// # Panics
    /// Panics if the server does not stop.
    pub fn crash(&self) {
        succeed(self.control("stop").args(["-m", "immediate", "-w", "-t", SECONDS]));
    }

    /// Returns the URL of the `postgres` database, which always exists, on the given host.
    pub fn url(&self, host: &str) -> String {
        format!("postgres://postgres@{host}:{}/postgres", self.port)
    }

    /// Returns host and port, for URLs that list several servers.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Creates a database on the server.
    pub fn database(&self) -> Database {
        Database::of(&self.url("127.0.0.1"), "")
    }

    /// Returns the data directory, which also contains the configuration.
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Makes the system user of the server the owner of a file that no other user reads.
    ///
    /// # Panics
    /// Panics if the owner cannot be changed.
    pub fn give(&self, path: &Path) {
        if let Some(owner) = self.owner {
            succeed(Command::new("chown").arg(owner).arg(path));
        }
    }

    fn control(&self, what: &str) -> Command {
        let mut command = self.command("pg_ctl");
        command.args([what, "-s", "-D"]).arg(self.data());
        command
    }

    fn command(&self, program: &str) -> Command {
        let program = Path::new(&self.programs).join(program);
        let mut command = match self.owner {
            Some(owner) => {
                let mut command = Command::new("runuser");
                command.args(["-u", owner, "--"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir(self.directory.path());
        command
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            let _ = self.control("stop").args(["-m", "immediate", "-w", "-t", SECONDS]).output();
        }
    }
}

/// Returns the directory of the PostgreSQL programs.
fn programs() -> String {
    let find = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/find-postgres");
    succeed(&mut Command::new(find)).trim_end().to_owned()
}

/// Returns a command for a PostgreSQL program of the newest installed version.
pub(crate) fn program(name: &str) -> Command {
    Command::new(Path::new(&programs()).join(name))
}

/// Waits until a condition holds.
///
/// # Panics
/// Panics if the condition does not hold within a minute.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(5));
    }
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
