//! pgbench, PostgreSQL's own benchmark program. It runs the statements that one of our events sends, and the smallest
//! transaction that an event can send.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acceptance::{Database, catalog};
use tempfile::TempDir;

use crate::figures::{Figure, cpu_micros};
use crate::process::{CpuSeconds, Watched};
use crate::stage::Template;
use crate::traffic::customer;
use crate::{Failure, Outcome, stop};

/// Numbers of clients to try. The fastest number is used.
const CLIENTS: [usize; 5] = [1, 4, 8, 16, 32];
/// Duration of each trial.
const TRY_SECONDS: f64 = 1.0;
/// Number of contracts with a recorded event. pgbench picks one of the events for each transaction and accepts 128 scripts.
const RECORDED: u64 = 100;
/// Number of leading characters of a UUID that stay the same. The last twelve digits are random.
const STEADY_DIGITS: usize = 24;

/// Scripts for one database, with the fastest number of clients.
#[derive(Debug)]
pub(crate) struct Pgbench {
    database_url: String,
    arguments: Vec<String>,
    scripts: Vec<PathBuf>,
    clients: usize,
    watched: Watched,
    _directory: Option<TempDir>,
}

impl Pgbench {
    /// Prepares the smallest transaction, over `contracts` contracts of `plain.sql`.
    pub(crate) fn minimal(database: &Database, contracts: u64, watched: Watched) -> Outcome<Self> {
        let arguments = ["-M", "prepared", "-D", &format!("contracts={contracts}")].map(ToOwned::to_owned).into();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bench/minimal.sql");
        Self::with_best_clients(database.url(), arguments, vec![script], watched, None)
    }

    /// Prepares the recorded statements of events on `contracts` contracts, in one transaction per event. Each connection
    /// prepares a statement once, as in the service. Each event gets its own reference.
    pub(crate) fn recorded(events: &[Recorded], database: &Database, contracts: usize, watched: Watched) -> Outcome<Self> {
        let directory = tempfile::tempdir()?;
        let mut known: Vec<&str> = Vec::new();
        for statement in events.iter().flat_map(|event| &event.statements) {
            if !known.contains(&statement.text.as_str()) {
                known.push(&statement.text);
            }
        }
        let mut prepare = String::new();
        for (number, text) in known.iter().enumerate() {
            let sample = events.iter().flat_map(|event| &event.statements).find(|statement| statement.text == *text);
            let types = types_for(database, text, sample.map_or(&[], |statement| &statement.values))?;
            let _ = writeln!(prepare, "PREPARE s{number}{types} AS {text};");
        }
        let mut scripts = Vec::new();
        for (number, event) in events.iter().take(contracts).enumerate() {
            let mut script = format!(
                "\\set r random(100000000000, 999999999999)\n\\if :prepared = 0\n{prepare}\\set prepared 1\n\\endif\nBEGIN;\n"
            );
            for statement in &event.statements {
                let place = known.iter().position(|text| *text == statement.text).unwrap_or_default();
                let fresh = format!("{}:r", &event.event_ref[..STEADY_DIGITS]);
                let values = statement.values.join(", ").replace(&event.event_ref, &fresh);
                let values = if values.is_empty() { values } else { format!("({values})") };
                let _ = writeln!(script, "EXECUTE s{place}{values};");
            }
            script += "COMMIT;\n";
            let path = directory.path().join(format!("{number}.sql"));
            std::fs::write(&path, script)?;
            scripts.push(path);
        }
        let arguments = ["-M", "simple", "-D", "prepared=0"].map(ToOwned::to_owned).into();
        Self::with_best_clients(database.url(), arguments, scripts, watched, Some(directory))
    }

    fn with_best_clients(
        database_url: &str,
        arguments: Vec<String>,
        scripts: Vec<PathBuf>,
        watched: Watched,
        directory: Option<TempDir>,
    ) -> Outcome<Self> {
        let database_url = database_url.to_owned();
        let mut pgbench = Self { database_url, arguments, scripts, clients: 1, watched, _directory: directory };
        let mut best = (0.0, 1);
        for clients in CLIENTS {
            pgbench.clients = clients;
            let rate = pgbench.run(TRY_SECONDS)?.value;
            if rate > best.0 {
                best = (rate, clients);
            }
        }
        pgbench.clients = best.1;
        Ok(pgbench)
    }

    /// Returns the fastest number of clients.
    pub(crate) const fn clients(&self) -> usize {
        self.clients
    }

    /// Measures the transactions per second.
    pub(crate) fn run(&self, seconds: f64) -> Outcome<Figure> {
        stop::check()?;
        let before = self.watched.cpu();
        let mut command = Command::new("pgbench");
        command.args(["--no-vacuum", "--jobs", "1", "--time", &format!("{:.0}", seconds.max(1.0).ceil())]);
        command.args(["--client", &self.clients.to_string()]).args(&self.arguments);
        for script in &self.scripts {
            command.arg("--file").arg(script);
        }
        let output = command.arg(&self.database_url).stdin(Stdio::null()).output();
        let output = output.map_err(|error| Failure::new(format!("pgbench doesn't start: {error}")))?;
        stop::check()?;
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let number = |field: &str| {
            let line = stdout.lines().find_map(|line| line.strip_prefix(field));
            line.and_then(|rest| rest.split_whitespace().next()).and_then(|text| text.parse::<f64>().ok())
        };
        let done = number("number of transactions actually processed: ").unwrap_or_default();
        let rate = number("tps = ").filter(|_| output.status.success() && !stderr.contains("aborted"));
        let rate = rate.ok_or_else(|| Failure::new(format!("pgbench: {}", last_lines(&stderr))))?;
        // Only the statements are compared, not the program that sends them.
        let database = before.until(&self.watched.cpu()).database;
        let cpu = cpu_micros(CpuSeconds { database, ..CpuSeconds::default() }, done);
        Ok(Figure { value: rate, cpu, ..Figure::default() })
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join(" · ")
}

/// The statements of one event.
#[derive(Debug)]
pub(crate) struct Recorded {
    event_ref: String,
    statements: Vec<Statement>,
}

#[derive(Debug, PartialEq, Eq)]
struct Statement {
    text: String,
    /// The values as SQL literals.
    values: Vec<String>,
}

/// Reports an event on each of some contracts and reads the statements of each event from the server's log. Also returns the
/// database, which no longer logs statements.
pub(crate) fn record(template: &Template) -> Outcome<(Vec<Recorded>, Database)> {
    let database = template.copy();
    database.log_statements();
    let stage = template.serve_on(database);
    let mut recorded = Vec::new();
    // The first event opens connections and fills caches, so its statements are discarded.
    for number in 0..=RECORDED.min(template.customers - 1) {
        stop::check()?;
        let event = catalog::event(&customer(number), 1);
        let mut event_ref = String::new();
        let logged = stage.database().statements_and_parameters_during(|| {
            event_ref = stage.client.post("/api/usage/event", &event).text_of("event_ref");
        });
        recorded.push(Recorded { event_ref, statements: statements(&logged) });
    }
    if recorded.len() > 1 {
        recorded.remove(0);
    }
    let database = stage.close()?;
    database.log_no_statements();
    Ok((recorded, database))
}

/// Returns the executed statements without those that begin or end a transaction. The script has one transaction around all
/// statements.
fn statements(logged: &[String]) -> Vec<Statement> {
    let mut statements: Vec<Statement> = Vec::new();
    for line in logged {
        if line.starts_with("$1 = ") {
            if let Some(statement) = statements.last_mut() {
                statement.values = values(line);
            }
            continue;
        }
        // The text of a prepared statement follows its name.
        let text = line.split_once(": ").filter(|(name, _)| !name.contains(' ')).map_or(line.as_str(), |(_, text)| text);
        let word = text.split_whitespace().next().unwrap_or_default();
        if ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains(&word) {
            statements.push(Statement { text: text.trim_end_matches(';').to_owned(), values: Vec::new() });
        }
    }
    statements
}

/// Returns the values of `$1 = 'a', $2 = NULL` unchanged.
fn values(line: &str) -> Vec<String> {
    let (mut values, mut value, mut is_quoted) = (Vec::new(), String::new(), false);
    for character in line.chars() {
        is_quoted ^= character == '\'';
        if character == ',' && !is_quoted {
            values.push(std::mem::take(&mut value));
        } else {
            value.push(character);
        }
    }
    values.push(value);
    values.iter().filter_map(|value| value.split_once(" = ")).map(|(_, value)| value.to_owned()).collect()
}

/// Returns the parameter types that PostgreSQL needs to prepare a statement. The log has no types, so the types are derived
/// from the values. PostgreSQL accepts one of these lists:
///
/// - No types.
/// - The apparent types of the arrays only.
/// - The apparent types of all values.
fn types_for(database: &Database, text: &str, values: &[String]) -> Outcome<String> {
    let all: Vec<String> = values.iter().map(|value| type_of(value).to_owned()).collect();
    let array = |of: &String| if of.ends_with("[]") { of.clone() } else { "unknown".to_owned() };
    let mut refusal = String::new();
    for mut types in [Vec::new(), all.iter().map(array).collect(), all] {
        loop {
            let listed = if types.is_empty() { String::new() } else { format!("({})", types.join(", ")) };
            match database.try_execute(&format!("PREPARE s{listed} AS {text}")) {
                Ok(()) => return Ok(listed),
                Err(reason) => refusal = reason,
            }
            // A value that looks like text may belong to a JSON column. The error message names the column.
            let Some((place, wanted)) = column_refused(text, &refusal) else { break };
            match types.get_mut(place) {
                Some(of) if *of != wanted => *of = wanted,
                _ => break,
            }
        }
    }
    Err(Failure::new(format!("pgbench can't be given {text}: {refusal}")))
}

/// Returns the position of the inserted column whose type was rejected, and the array type that matches the column.
fn column_refused(text: &str, refusal: &str) -> Option<(usize, String)> {
    let (column, rest) = refusal.split_once("column \"")?.1.split_once("\" is of type ")?;
    let wanted = rest.split_once(" but expression is of type ")?.0;
    let columns = text.strip_prefix("INSERT INTO ")?.split_once('(')?.1.split_once(')')?.0;
    let place = columns.split(',').position(|name| name.trim().trim_matches('"') == column)?;
    Some((place, format!("{wanted}[]")))
}

/// Returns the apparent type of a value in the log.
fn type_of(value: &str) -> &'static str {
    let Some(value) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) else { return "unknown" };
    let Some(elements) = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return scalar(value).0 };
    let element = elements.split(',').find(|element| *element != "NULL").unwrap_or_default();
    scalar(element.trim_matches('"')).1
}

/// Returns the type of a single value, and the type of an array of such values.
fn scalar(value: &str) -> (&'static str, &'static str) {
    let digits = value.trim_start_matches('-');
    let is_of = |others: &str| !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit() || others.contains(digit));
    match value.as_bytes() {
        [b't' | b'f'] => ("boolean", "boolean[]"),
        bytes if bytes.len() == 36 && bytes[8] == b'-' && bytes[23] == b'-' => ("uuid", "uuid[]"),
        bytes if bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-' => ("date", "date[]"),
        bytes if bytes.len() > 18 && bytes[4] == b'-' && bytes[10] == b' ' => ("timestamptz", "timestamptz[]"),
        _ if is_of("") => ("bigint", "bigint[]"),
        _ if is_of(".") => ("numeric", "numeric[]"),
        _ => ("text", "text[]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_read_with_the_values_they_had() {
        let logged = [
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            "__diesel_stmt_1: SELECT a FROM t WHERE b = $1 AND c = $2",
            "$1 = 'it''s, so', $2 = NULL",
            "SELECT 1",
            "COMMIT",
        ];
        let read = statements(&logged.map(ToOwned::to_owned));
        let statement = |text: &str, values: &[&str]| Statement {
            text: text.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let expected =
            [statement("SELECT a FROM t WHERE b = $1 AND c = $2", &["'it''s, so'", "NULL"]), statement("SELECT 1", &[])];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_column_that_is_refused_is_given_an_array_of_what_it_takes() {
        let text = "INSERT INTO t (a, \"b\", c) SELECT * FROM unnest($1, $2, $3)";
        let refusal = "ERROR:  column \"b\" is of type json but expression is of type text\nLINE 1: …";
        assert_eq!(column_refused(text, refusal), Some((1, "json[]".to_owned())));
        assert_eq!(column_refused(text, "ERROR:  syntax error"), None);
    }

    #[test]
    fn values_have_the_type_they_look_like() {
        for (value, expected) in [
            ("'{01a204ec-cefb-7126-903b-de4ffa97f42d}'", "uuid[]"),
            ("'{2026-11-12}'", "date[]"),
            ("'{\"2026-11-22 20:22:38+00\"}'", "timestamptz[]"),
            ("'{-7321498848607242178,2}'", "bigint[]"),
            ("'{NULL,1.25}'", "numeric[]"),
            ("'{t,f}'", "boolean[]"),
            ("'{api-calls}'", "text[]"),
            ("'api-calls'", "text"),
            ("'0'", "bigint"),
            ("'01a204ec-cefb-7126-903b-de4ffa97f42d'", "uuid"),
            ("NULL", "unknown"),
        ] {
            assert_eq!(type_of(value), expected, "{value}");
        }
    }
}
