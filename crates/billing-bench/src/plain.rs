//! The comparison server `tests/bench/plain.py`: a plain web framework on PostgreSQL with one worker.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use acceptance::{Database, server};

use crate::load::{Outgoing, Plan, Requests, Sample, Target, closed};
use crate::process::{self, Watched};
use crate::{Failure, Outcome};

/// Maximum duration of a start.
const START_SECONDS: u64 = 30;

/// Creates a separate database with the tables of `plain.sql`.
pub(crate) fn database(customers: u64) -> Outcome<Database> {
    let database = Database::postgres();
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--set", &format!("customers={customers}")])
        .args(["--dbname", database.url(), "--file"])
        .arg(here("plain.sql"))
        .output()?;
    if output.status.success() { Ok(database) } else { Err(Failure::new(String::from_utf8_lossy(&output.stderr).into_owned())) }
}

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bench").join(name)
}

/// A running comparison server. Dropping the value ends the process.
#[derive(Debug)]
pub(crate) struct Plain {
    child: Child,
    target: Target,
    watched: Watched,
}

impl Plain {
    /// Starts the server and waits until it is ready.
    ///
    /// # Errors
    /// Fails if the packages cannot be installed or the server does not respond.
    pub(crate) fn start(database: &Database) -> Outcome<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python-env");
        let made = Command::new(script).arg("bench").stderr(Stdio::inherit()).output()?;
        if !made.status.success() {
            return Err(Failure::new("its packages can't be installed; scripts/python-env bench says why"));
        }
        let environment = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        let port = server::free_port();
        let child = Command::new(environment.join("bin/uvicorn"))
            .args(["plain:app", "--host", "127.0.0.1", "--port", &port.to_string(), "--workers", "1"])
            .args(["--log-level", "warning", "--no-access-log", "--app-dir"])
            .arg(here(""))
            .env("PLAIN_DATABASE_URL", database.url())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .spawn()?;
        let target = Target { address: ([127, 0, 0, 1], port).into(), headers: Vec::new() };
        let watched = Watched { servers: vec![child.id()], postmaster: process::postmaster(database.url()) };
        let plain = Self { child, target, watched };
        let began = Instant::now();
        let is_ready = || {
            let mut once = Some(Outgoing::get("/health/ready"));
            closed(&plain.plan(1, None), &mut || once.take()).is_ok_and(|sample| sample.worth == 1)
        };
        while !is_ready() {
            if began.elapsed() > Duration::from_secs(START_SECONDS) {
                return Err(Failure::new(format!("it doesn't answer after {START_SECONDS} s")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(plain)
    }

    fn plan(&self, connections: usize, seconds: Option<f64>) -> Plan {
        let watched = self.watched.clone();
        Plan { targets: vec![self.target.clone()], connections, seconds, status: None, keep: false, watched }
    }

    /// Keeps the server busy for some seconds.
    pub(crate) fn busy(&self, connections: usize, seconds: f64, requests: &mut Requests<'_>) -> Outcome<Sample> {
        closed(&self.plan(connections, Some(seconds)), requests)
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
