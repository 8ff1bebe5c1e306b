//! The settings of a run, read from environment variables.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use crate::stage::{Build, Kind};
use crate::{Failure, Outcome};

/// The words that the variable `ROWS` accepts.
const ROWS: [&str; 23] = [
    "fsync", "ceiling", "refused", "single", "labels", "limits", "keys", "batch", "change", "late", "two", "pgbench", "plain",
    "latency", "overload", "memory", "issue", "invoice", "pages", "lists", "start", "report", "growth",
];

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) rounds: u64,
    pub(crate) seconds: f64,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) rows: Vec<String>,
    /// Connections that send single events.
    pub(crate) connections: usize,
    /// Contracts, each with its own customer.
    pub(crate) contracts: u64,
    /// Events of the contract with many events.
    pub(crate) events: u64,
    /// Events that are stored before growth is measured.
    pub(crate) growth: u64,
    /// Webhook endpoints of the current build.
    pub(crate) endpoints: usize,
    /// Another build of the server to compare with.
    pub(crate) base: Option<PathBuf>,
}

impl Settings {
    /// Reads the settings from the environment.
    ///
    /// # Errors
    /// Fails if a variable is invalid. The error names the variable and, for a list, the accepted words.
    pub(crate) fn read() -> Outcome<Self> {
        let kind = |word: &str| match word {
            "sqlite" => Ok(Kind::Sqlite),
            "postgres" => Ok(Kind::Postgres),
            other => Err(Failure::new(format!("DATABASES={other}: take sqlite, postgres, or both with a space between"))),
        };
        let row = |word: &str| {
            if ROWS.contains(&word) {
                Ok(word.to_owned())
            } else {
                Err(Failure::new(format!("ROWS={word}: take some of {}", ROWS.join(" "))))
            }
        };
        let settings = Self {
            rounds: setting("ROUNDS", 5)?,
            seconds: setting("SECONDS_EACH", 3.0)?,
            kinds: words("DATABASES", &["sqlite", "postgres"], kind)?,
            rows: words("ROWS", &ROWS, row)?,
            connections: setting("CONNECTIONS", 64)?,
            contracts: setting("CONTRACTS", 10_000)?,
            events: setting("EVENTS", 1_000_000)?,
            growth: setting("GROWTH", 200_000)?,
            endpoints: setting("ENDPOINTS", 0)?,
            base: base()?,
        };
        let usable = settings.rounds > 0 && settings.seconds > 0.0 && settings.connections > 0 && settings.contracts > 0;
        if usable { Ok(settings) } else { Err(Failure::new("ROUNDS, SECONDS_EACH, CONNECTIONS and CONTRACTS are above zero")) }
    }

    /// Returns the smallest run that shows the cost of a change. It measures only the rows whose ratios involve single events.
    pub(crate) fn smoke(self) -> Self {
        let rows = ["ceiling", "single", "batch", "change", "late"].map(str::to_owned).to_vec();
        Self { rounds: 3, seconds: 0.5, contracts: 500, rows, base: None, ..self }
    }

    /// Returns the builds to measure, the one to compare with first.
    pub(crate) fn builds(&self) -> Vec<Build> {
        self.base.iter().cloned().map(Build::Base).chain([Build::Current { endpoints: self.endpoints }]).collect()
    }

    /// Returns whether the run includes a row.
    pub(crate) fn wants(&self, row: &str) -> bool {
        self.rows.iter().any(|wanted| wanted == row)
    }

    /// Returns whether the run includes any of these rows.
    pub(crate) fn wants_any(&self, rows: &[&str]) -> bool {
        rows.iter().any(|row| self.wants(row))
    }

    /// Returns the command that repeats the run.
    pub(crate) fn command(&self) -> String {
        let Self { rounds, seconds, connections, contracts, events, growth, .. } = self;
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.name().to_lowercase().replace("postgresql", "postgres")).collect();
        let mut command = format!(
            "ROUNDS={rounds} SECONDS_EACH={seconds} CONNECTIONS={connections} \
             CONTRACTS={contracts} EVENTS={events} GROWTH={growth}"
        );
        if kinds.len() == 1 {
            command += &format!(" DATABASES={}", kinds.join(" "));
        }
        if self.rows.len() < ROWS.len() {
            command += &format!(" ROWS=\"{}\"", self.rows.join(" "));
        }
        if self.endpoints > 0 {
            command += &format!(" ENDPOINTS={}", self.endpoints);
        }
        if let Some(base) = &self.base {
            command += &format!(" BASE={}", base.display());
        }
        command + " make bench"
    }
}

/// Returns the absolute path of the binary to compare with. Servers run in other directories.
fn base() -> Outcome<Option<PathBuf>> {
    let Some(base) = std::env::var_os("BASE") else { return Ok(None) };
    let shown = base.display();
    let path = std::fs::canonicalize(&base).map_err(|error| Failure::new(format!("BASE={shown}: {error}")))?;
    if path.is_file() {
        Ok(Some(path))
    } else {
        Err(Failure::new(format!("BASE={shown}: take the path of a usage-billing binary")))
    }
}

fn setting<T: FromStr<Err: Display>>(name: &str, default: T) -> Outcome<T> {
    match std::env::var(name) {
        Ok(text) => text.parse().map_err(|error| Failure::new(format!("{name}={text}: {error}"))),
        Err(_) => Ok(default),
    }
}

fn words<T>(name: &str, default: &[&str], read: impl Fn(&str) -> Outcome<T>) -> Outcome<Vec<T>> {
    match std::env::var(name) {
        Ok(text) => text.split_whitespace().map(read).collect(),
        Err(_) => default.iter().map(|word| read(word)).collect(),
    }
}
