//! The distribution of the server's processor time under single events: samples of `perf`, summed by crate and by function.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::figures::short;
use crate::load::as_f64;
use crate::settings::Settings;
use crate::{Failure, Outcome, rows};

/// Samples per second. The number is not round, so that work at a rate of 100 per second cannot fall between the samples.
const FREQUENCY: &str = "199";
/// Bytes of stack that each sample stores for unwinding.
const STACK: &str = "dwarf,16384";
/// The file name of the server binary.
const BINARY: &str = "usage-billing";
/// Number of functions in the table.
const SHOWN: usize = 60;

/// Profiles the first database of the settings and returns the summary.
///
/// # Errors
/// Fails if `perf` is missing or lacks the permission to record.
pub(crate) fn profile(settings: &Settings) -> Outcome<String> {
    let kind = *settings.kinds.first().ok_or_else(|| Failure::new("DATABASES names none"))?;
    let directory = tempfile::tempdir()?;
    let data = directory.path().join("perf.data");
    rows::with_load(kind, settings, |server| {
        let mut perf = Command::new("perf");
        perf.args(["record", "--quiet", "--event", "cpu-clock:u", "--freq", FREQUENCY, "--call-graph", STACK]);
        perf.args(["--pid", &server.to_string(), "--output"]).arg(&data);
        perf.args(["--", "sleep", &settings.seconds.to_string()]).stdin(Stdio::null());
        perf.spawn().map_err(|error| Failure::new(format!("perf doesn't start, install it (linux-perf): {error}")))
    })?;
    summary(kind.name(), &data)
}

fn summary(database: &str, data: &Path) -> Outcome<String> {
    let mut script = Command::new("perf")
        .args(["script", "--no-inline", "--fields", "ip,sym,dso", "--input"])
        .arg(data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout = script.stdout.take().ok_or_else(|| Failure::new("perf script says nothing"))?;
    let shares = Shares::read(BufReader::new(stdout))?;
    script.wait()?;
    if shares.samples == 0 {
        return Err(Failure::new("perf saw nothing"));
    }
    Ok(shares.markdown(database))
}

/// The number of samples that had a name anywhere on the stack, and the number that had it at the top.
#[derive(Debug, Default)]
struct Shares {
    samples: u64,
    crates: BTreeMap<String, [u64; 2]>,
    functions: BTreeMap<String, [u64; 2]>,
}

impl Shares {
    /// Reads the output of `perf script`: one stack per paragraph and one frame per line, the top first.
    fn read(lines: impl BufRead) -> Outcome<Self> {
        let (mut shares, mut stack) = (Self::default(), Vec::new());
        for line in lines.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            match Frame::read(line.trim()) {
                Some(frame) => stack.push(frame),
                None => shares.count(&std::mem::take(&mut stack)),
            }
        }
        shares.count(&stack);
        Ok(shares)
    }

    fn count(&mut self, stack: &[Frame]) {
        let Some(top) = stack.first() else { return };
        self.samples += 1;
        let of: fn(&Frame) -> &String = |frame| &frame.of;
        let function: fn(&Frame) -> &String = |frame| &frame.function;
        for (shares, name) in [(&mut self.crates, of), (&mut self.functions, function)] {
            // A name that calls itself counts once per stack.
            for name in stack.iter().map(name).collect::<BTreeSet<_>>() {
                shares.entry(name.clone()).or_default()[0] += 1;
            }
            shares.entry(name(top).clone()).or_default()[1] += 1;
        }
    }

    fn markdown(&self, database: &str) -> String {
        let mut text =
            format!("Single events, {database}: {} samples of the server's processor time outside the kernel.\n", self.samples);
        for (title, shares, shown) in [("crate", &self.crates, usize::MAX), ("function", &self.functions, SHOWN)] {
            let _ = write!(text, "\n| {title} | % with what it calls | % itself |\n|---|---|---|\n");
            let mut rows: Vec<_> = shares.iter().collect();
            rows.sort_by_key(|(name, [with, _])| (std::cmp::Reverse(*with), *name));
            let percent = |count: u64| as_f64(count) / as_f64(self.samples) * 100.0;
            // Very small shares are chance.
            for (name, [with, itself]) in rows.into_iter().filter(|(_, [with, _])| percent(*with) >= 0.5).take(shown) {
                let (with, itself) = (short(percent(*with)), short(percent(*itself)));
                let _ = writeln!(text, "| `{name}` | {with} | {itself} |");
            }
        }
        text
    }
}

/// A frame of a stack.
#[derive(Debug)]
struct Frame {
    function: String,
    /// The crate or library of the function.
    of: String,
}

impl Frame {
    /// Parses `ADDRESS NAME (FILE)`.
    fn read(line: &str) -> Option<Self> {
        let (_, named) = line.split_once(' ')?;
        let (name, file) = named.rsplit_once(" (")?;
        let file = file.trim_end_matches(')').rsplit('/').next().unwrap_or_default().trim_matches(['[', ']']);
        let name = name.split_once("+0x").map_or(name, |(name, _)| name);
        // Names of Rust functions end with a hash.
        let hash = name.rsplit_once("::h");
        let hash = hash.filter(|(_, hash)| hash.len() == 16 && hash.chars().all(|digit| digit.is_ascii_hexdigit()));
        let name = hash.map_or(name, |(name, _)| name);
        let function = if name == "[unknown]" { format!("[{file}]") } else { name.to_owned() };
        Some(Self { of: owner(name, file), function })
    }
}

/// Returns the crate of a function, or the library of a C function.
fn owner(function: &str, file: &str) -> String {
    // A trait implementation belongs to the crate of its type if the type has a path, otherwise to the crate of the trait.
    let parts = function.trim_start_matches('<').split(" as ");
    let path = parts.map(|part| part.trim_start_matches(['<', '&', '(', '*', '['])).find(|part| part.contains("::"));
    let name =
        path.and_then(|path| path.split("::").next()).unwrap_or_default().trim_start_matches("mut ").trim_start_matches("dyn ");
    if !name.is_empty() {
        return name.to_owned();
    }
    match function {
        _ if file != BINARY => format!("[{file}]"),
        c if c.starts_with("sqlite3") => "SQLite".to_owned(),
        c if c.contains("aws_lc") => "aws-lc".to_owned(),
        _ => "[C]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_counted_by_function_and_crate() {
        let printed = "\
            \t55 billing_storage::read::h0123456789abcdef (/x/usage-billing)\n\
            \t56 billing_storage::read::hfedcba9876543210 (/x/usage-billing)\n\
            \t57 <billing_http::App as Trait>::call (/x/usage-billing)\n\
            \n\
            \t58 sqlite3VdbeExec (/x/usage-billing)\n\
            \t59 [unknown] (/lib/libc.so.6)\n\
            \t60 <T as diesel::Query>::run (/x/usage-billing)\n\
            \n";
        let shares = Shares::read(printed.as_bytes()).map_err(|failure| failure.to_string()).expect("valid samples");
        assert_eq!(shares.samples, 2);
        assert_eq!(shares.functions["billing_storage::read"], [1, 1]);
        assert_eq!(shares.functions["[libc.so.6]"], [1, 0]);
        assert_eq!(shares.crates["billing_http"], [1, 0]);
        assert_eq!(shares.crates["SQLite"], [1, 1]);
        assert_eq!(shares.crates["[libc.so.6]"], [1, 0]);
        assert_eq!(shares.crates["diesel"], [1, 0]);
    }
}
