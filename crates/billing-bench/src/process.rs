//! Processor time and memory of processes, read from `/proc`.

use std::fs;
use std::process::Command;

use crate::{Failure, Outcome};

/// Ticks of processor time per second. Linux reports this unit to programs, regardless of the frequency of its own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuSeconds {
    /// Time of the measured servers.
    pub(crate) servers: f64,
    /// Time of all processes of the PostgreSQL server.
    pub(crate) database: f64,
    /// Time of this program.
    pub(crate) generator: f64,
    /// Time of the whole machine, including this program.
    pub(crate) machine: f64,
}

impl CpuSeconds {
    /// Returns the difference to a later reading.
    pub(crate) fn until(self, later: Self) -> Self {
        Self {
            servers: later.servers - self.servers,
            database: later.database - self.database,
            generator: later.generator - self.generator,
            machine: later.machine - self.machine,
        }
    }

    /// Returns the time that the rest of the machine took.
    pub(crate) fn others(self) -> f64 {
        (self.machine - self.servers - self.database - self.generator).max(0.0)
    }
}

/// The processes to measure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// Process ids of the measured servers.
    pub(crate) servers: Vec<u32>,
    /// The PostgreSQL process that started the other PostgreSQL processes, if it runs on this machine.
    pub(crate) postmaster: Option<u32>,
}

impl Watched {
    /// Returns the processor time up to now. A process that no longer exists counts as zero.
    pub(crate) fn cpu(&self) -> CpuSeconds {
        CpuSeconds {
            servers: self.servers.iter().map(|server| own_seconds(*server)).sum(),
            database: self.postmaster.map_or(0.0, family_seconds),
            generator: own_seconds(std::process::id()),
            machine: machine_seconds(),
        }
    }
}

/// Returns the processor time of a process, including threads that ended.
fn own_seconds(process: u32) -> f64 {
    stat(process).map_or(0.0, |stat| (stat.ticks(11) + stat.ticks(12)) / TICKS_PER_SECOND)
}

/// Returns the processor time of a process and its children, including children that ended.
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
    // The fields are user, nice, system, idle, iowait, irq, softirq and steal. All except idle and iowait count as busy.
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
    // The name is in parentheses and may contain any characters.
    let (_, fields) = text.rsplit_once(')')?;
    Some(Stat(fields.split_whitespace().map(ToOwned::to_owned).collect()))
}

/// Returns the current memory of a process in megabytes (2^20 bytes).
///
/// # Errors
/// Fails if the process no longer exists.
pub(crate) fn resident_mb(process: u32) -> Outcome<f64> {
    status_mb(process, "VmRSS:")
}

/// Returns the maximum memory of a process since [`forget_peak`], in the same unit.
///
/// # Errors
/// Fails if the process no longer exists.
pub(crate) fn peak_mb(process: u32) -> Outcome<f64> {
    status_mb(process, "VmHWM:")
}

/// Resets the maximum memory of a process to its current memory.
///
/// # Errors
/// Fails if the system does not permit the reset.
pub(crate) fn forget_peak(process: u32) -> Outcome<()> {
    Ok(fs::write(format!("/proc/{process}/clear_refs"), "5")?)
}

fn status_mb(process: u32, field: &str) -> Outcome<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()).map(number);
    kilobytes.map(|kilobytes| kilobytes / 1024.0).ok_or_else(|| Failure::new(format!("{field} isn't in /proc/{process}/status")))
}

/// Returns the main process of a PostgreSQL server, or `None` if the process is not on this machine. The server's
/// `postmaster.pid` file contains the id.
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

/// Returns the number of processors and their name.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")).and_then(|rest| rest.split_once(": "));
    format!("{cores} cores ({})", name.map_or("unnamed", |(_, name)| name.trim()))
}
