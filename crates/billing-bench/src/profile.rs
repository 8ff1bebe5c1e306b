//! Where the processor's time goes while single events come: `perf`, summed up by crate and by function.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::figures::short;
use crate::load::as_f64;
use crate::settings::Settings;
use crate::{Failure, Outcome, rows};

/// Looks in a second. Not a round number, so that nothing that is done a hundred times a second hides.
const FREQUENCY: &str = "199";
/// Bytes of stack that are kept of each look, to unwind it.
const STACK: &str = "dwarf,16384";
/// Functions that are shown.
const SHOWN: usize = 60;

/// Records the first of the databases that are set, and answers the summary.
///
/// # Errors
/// When there is no `perf`, or it may not look.
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

/// In how many samples something was on the stack, and in how many at its top.
#[derive(Debug, Default)]
struct Shares {
    samples: u64,
    crates: BTreeMap<String, [u64; 2]>,
    functions: BTreeMap<String, [u64; 2]>,
}

impl Shares {
    /// From what `perf script` prints: a stack a paragraph, a frame a line, the top first.
    fn read(lines: impl BufRead) -> Outcome<Self> {
        let (mut shares, mut stack) = (Self::default(), Vec::new());
        for line in lines.split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            match function(line.trim()) {
                Some(function) => stack.push(function),
                None => shares.count(&std::mem::take(&mut stack)),
            }
        }
        shares.count(&stack);
        Ok(shares)
    }

    fn count(&mut self, stack: &[String]) {
        let Some(top) = stack.first() else { return };
        self.samples += 1;
        for (shares, name) in [(&mut self.crates, crate_of as fn(&str) -> String), (&mut self.functions, ToOwned::to_owned)] {
            // What calls itself is there once.
            for name in stack.iter().map(|function| name(function)).collect::<BTreeSet<_>>() {
                shares.entry(name).or_default()[0] += 1;
            }
            shares.entry(name(top)).or_default()[1] += 1;
        }
    }

    fn markdown(&self, database: &str) -> String {
        let mut text = format!("Single events, {database}: {} samples of the server's processor time.\n", self.samples);
        for (title, shares, shown) in [("crate", &self.crates, usize::MAX), ("function", &self.functions, SHOWN)] {
            let _ = write!(text, "\n| {title} | % with what it calls | % itself |\n|---|---|---|\n");
            let mut rows: Vec<_> = shares.iter().collect();
            rows.sort_by_key(|(name, [with, _])| (std::cmp::Reverse(*with), *name));
            let percent = |count: u64| as_f64(count) / as_f64(self.samples) * 100.0;
            // What nearly never shows is chance.
            for (name, [with, itself]) in rows.into_iter().filter(|(_, [with, _])| percent(*with) >= 0.5).take(shown) {
                let (with, itself) = (short(percent(*with)), short(percent(*itself)));
                let _ = writeln!(text, "| `{name}` | {with} | {itself} |");
            }
        }
        text
    }
}

/// The function of a frame `ADDRESS NAME (FILE)`, without the hash that ends Rust's names.
fn function(line: &str) -> Option<String> {
    let (_, named) = line.split_once(' ')?;
    let (name, file) = named.rsplit_once(" (")?;
    let name = name.split_once("+0x").map_or(name, |(name, _)| name);
    let hash =
        name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16 && hash.chars().all(|digit| digit.is_ascii_hexdigit()));
    let name = hash.map_or(name, |(name, _)| name);
    let file = file.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
    Some(if name == "[unknown]" { format!("[{file}]") } else { name.to_owned() })
}

/// The crate of a function; of C, the library that its name begins with.
fn crate_of(function: &str) -> String {
    let path = function.trim_start_matches(['<', '&', '(', '*']).trim_start_matches("mut ").trim_start_matches("dyn ");
    if let Some((name, _)) = path.split_once("::") {
        return name.to_owned();
    }
    for (start, library) in [("sqlite3", "SQLite"), ("PQ", "libpq"), ("pq", "libpq"), ("aws_lc", "aws-lc"), ("bcm_", "aws-lc")] {
        if path.starts_with(start) {
            return library.to_owned();
        }
    }
    "[C]".to_owned()
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
            \n";
        let shares = Shares::read(printed.as_bytes()).map_err(|failure| failure.to_string()).expect("text");
        assert_eq!(shares.samples, 2);
        assert_eq!(shares.functions["billing_storage::read"], [1, 1]);
        assert_eq!(shares.functions["[libc.so.6]"], [1, 0]);
        assert_eq!(shares.crates["billing_http"], [1, 0]);
        assert_eq!(shares.crates["SQLite"], [1, 1]);
    }
}
