//! What processes take, from `/proc`: processor time and memory.

use std::fs;
use std::process::Command;

use crate::{Failure, Outcome};

/// Ticks of processor time in a second: what Linux tells programs, whatever its own clock does.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of processor time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuSeconds {
    /// Of the servers that are measured.
    pub(crate) servers: f64,
    /// Of the PostgreSQL server, all its processes.
    pub(crate) database: f64,
    /// Of this program.
    pub(crate) generator: f64,
    /// Of everything on the machine, ourselves included.
    pub(crate) machine: f64,
}

impl CpuSeconds {
    /// From one look to a later one.
    pub(crate) fn until(self, later: Self) -> Self {
        Self {
            servers: later.servers - self.servers,
            database: later.database - self.database,
            generator: later.generator - self.generator,
            machine: later.machine - self.machine,
        }
    }

    /// What others took.
    pub(crate) fn others(self) -> f64 {
        (self.machine - self.servers - self.database - self.generator).max(0.0)
    }
}

/// Which processes are looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// Servers that are measured.
    pub(crate) servers: Vec<u32>,
    /// The PostgreSQL server that started the others, when it is on this machine.
    pub(crate) postmaster: Option<u32>,
}

impl Watched {
    /// What they have taken up to now. A process that is gone took nothing.
    pub(crate) fn cpu(&self) -> CpuSeconds {
        CpuSeconds {
            servers: self.servers.iter().map(|server| own_seconds(*server)).sum(),
            database: self.postmaster.map_or(0.0, family_seconds),
            generator: own_seconds(std::process::id()),
            machine: machine_seconds(),
        }
    }
}

/// What a process and those of its threads that ended took.
fn own_seconds(process: u32) -> f64 {
    stat(process).map_or(0.0, |stat| (stat.ticks(11) + stat.ticks(12)) / TICKS_PER_SECOND)
}

/// The same with its children, those that ended included.
fn family_seconds(process: u32) -> f64 {
    let ended = stat(process).map_or(0.0, |stat| (stat.ticks(13) + stat.ticks(14)) / TICKS_PER_SECOND);
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let children = others.filter(|other| stat(*other).is_some_and(|stat| stat.parent() == process));
    own_seconds(process) + ended + children.map(own_seconds).sum::<f64>()
}

fn machine_seconds() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let numbers: Vec<f64> = text.lines().next().unwrap_or_default().split_whitespace().skip(1).map(number).collect();
    // user nice system idle iowait irq softirq steal: all that isn't idle.
    let busy = numbers.iter().take(8).enumerate().filter(|(place, _)| !matches!(place, 3 | 4)).map(|(_, ticks)| ticks);
    busy.sum::<f64>() / TICKS_PER_SECOND
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

/// The fields of `/proc/PID/stat` that follow the name.
struct Stat(Vec<String>);

impl Stat {
    fn ticks(&self, place: usize) -> f64 {
        self.0.get(place).map_or(0.0, |text| number(text))
    }

    fn parent(&self) -> u32 {
        self.0.get(1).and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

fn stat(process: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name is in brackets and may have any characters.
    let (_, fields) = text.rsplit_once(')')?;
    Some(Stat(fields.split_whitespace().map(ToOwned::to_owned).collect()))
}

/// Megabytes (2^20 bytes) of memory that a process has now.
///
/// # Errors
/// When it is gone.
pub(crate) fn resident_mb(process: u32) -> Outcome<f64> {
    status_mb(process, "VmRSS:")
}

/// The most it has had since [`forget_peak`].
///
/// # Errors
/// When it is gone.
pub(crate) fn peak_mb(process: u32) -> Outcome<f64> {
    status_mb(process, "VmHWM:")
}

/// Lets the peak begin again from what it has now.
///
/// # Errors
/// When the system doesn't let us.
pub(crate) fn forget_peak(process: u32) -> Outcome<()> {
    Ok(fs::write(format!("/proc/{process}/clear_refs"), "5")?)
}

fn status_mb(process: u32, field: &str) -> Outcome<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).map(number);
    kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| Failure::new(format!("{field} isn't in /proc/{process}/status")))
}

/// The process that runs a PostgreSQL server, by the file it keeps; `None` when it isn't one of this machine.
pub(crate) fn postmaster(database_url: &str) -> Option<u32> {
    let read = "SELECT pg_read_file('postmaster.pid')";
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--dbname", database_url, "--command", read])
        .output()
        .ok()?;
    let process = String::from_utf8_lossy(&output.stdout).lines().next()?.trim().parse().ok()?;
    let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    name.starts_with("postgres").then_some(process)
}

/// What the machine is: processors and their name.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")).and_then(|rest| rest.split_once(": "));
    format!("{cores} cores ({})", name.map_or("unnamed", |(_, name)| name.trim()))
}
