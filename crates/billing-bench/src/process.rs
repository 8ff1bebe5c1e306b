//! Processor time and memory of processes, read from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::{Failure, Outcome};

/// Ticks of processor time per second. Linux reports this unit to programs, regardless of the frequency of its own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// The threads of a server that do the same kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadGroup {
    /// The threads that serve connections, and those that run their blocking work.
    Http,
    UsageWriter,
    Checkpoint,
    Other,
}

impl ThreadGroup {
    /// Returns the group of a thread. The kernel keeps the first 15 bytes of a name.
    fn of(name: &str) -> Self {
        match name {
            "usage-writer" => Self::UsageWriter,
            "checkpoints" => Self::Checkpoint,
            _ if ["actix-server", "actix-rt", "tokio-rt-worker"].iter().any(|start| name.starts_with(start)) => Self::Http,
            _ => Self::Other,
        }
    }
}

/// The processor time that a process used in total, in seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuReading {
    servers: f64,
    /// The time of each thread of the servers, by the id of the thread.
    threads: BTreeMap<u32, (ThreadGroup, f64)>,
    database: f64,
    generator: f64,
    machine: f64,
}

impl CpuReading {
    /// Returns the processor time between this reading and a later one.
    pub(crate) fn until(&self, later: &Self) -> CpuSeconds {
        let of_group = |wanted: ThreadGroup| {
            let threads = later.threads.iter().filter(|(_, (group, _))| *group == wanted);
            // A thread that is missing here began after this reading.
            threads.map(|(id, (_, seconds))| seconds - self.threads.get(id).map_or(0.0, |(_, before)| *before)).sum::<f64>()
        };
        CpuSeconds {
            servers: later.servers - self.servers,
            http: of_group(ThreadGroup::Http),
            writer: of_group(ThreadGroup::UsageWriter),
            checkpoint: of_group(ThreadGroup::Checkpoint),
            database: later.database - self.database,
            generator: later.generator - self.generator,
            machine: later.machine - self.machine,
        }
    }
}

/// Processor time in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuSeconds {
    /// Time of the measured servers.
    pub(crate) servers: f64,
    /// The part of it that the threads for HTTP took.
    pub(crate) http: f64,
    /// The part of it that the thread took that writes usage.
    pub(crate) writer: f64,
    /// The part of it that the thread took that moves SQLite's write-ahead log.
    pub(crate) checkpoint: f64,
    /// Time of all processes of the PostgreSQL server.
    pub(crate) database: f64,
    /// Time of this program.
    pub(crate) generator: f64,
    /// Time of the whole machine, including this program.
    pub(crate) machine: f64,
}

impl CpuSeconds {
    /// Returns the time of all other threads of the servers, including threads that ended.
    pub(crate) fn other_threads(self) -> f64 {
        (self.servers - self.http - self.writer - self.checkpoint).max(0.0)
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
    pub(crate) fn cpu(&self) -> CpuReading {
        CpuReading {
            servers: self.servers.iter().map(|server| own_seconds(*server)).sum(),
            threads: self.servers.iter().flat_map(|server| threads(*server)).collect(),
            database: self.postmaster.map_or(0.0, family_seconds),
            generator: own_seconds(std::process::id()),
            machine: machine_seconds(),
        }
    }
}

/// Returns the processor time of a process, including threads that ended.
fn own_seconds(process: u32) -> f64 {
    stat(process).map_or(0.0, |stat| stat.own_seconds())
}

/// Returns the running threads of a process by their ids, with their processor time.
fn threads(process: u32) -> BTreeMap<u32, (ThreadGroup, f64)> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let of_thread = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let stat = Stat::parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?;
        Some((id, (ThreadGroup::of(&stat.name), stat.own_seconds())))
    };
    entries.filter_map(of_thread).collect()
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

/// The content of `/proc/PID/stat`, or of the same file of a thread.
#[derive(Debug)]
struct Stat {
    name: String,
    /// The fields that follow the name.
    fields: Vec<String>,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name is in parentheses and may contain any characters.
        let (before, fields) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        Some(Self { name: name.to_owned(), fields: fields.split_whitespace().map(ToOwned::to_owned).collect() })
    }

    fn ticks(&self, place: usize) -> f64 {
        self.fields.get(place).map_or(0.0, |text| number(text))
    }

    /// Returns the processor time in user mode and in the kernel.
    fn own_seconds(&self) -> f64 {
        (self.ticks(11) + self.ticks(12)) / TICKS_PER_SECOND
    }

    fn parent(&self) -> u32 {
        self.fields.get(1).and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

fn stat(process: u32) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of `/proc/PID/task/TID/stat` with 1.5 s in user mode and 0.25 s in the kernel.
    const LINE: &str =
        "4711 (usage (odd) w) S 42 4711 4711 0 -1 4194368 1071 0 0 0 150 25 7 9 20 0 6 0 5143 1 1 18446744073709551615";

    #[test]
    fn the_fields_of_a_stat_file_follow_a_name_of_any_characters() {
        let stat = Stat::parse(LINE).expect("a line");
        assert_eq!((stat.name.as_str(), stat.parent()), ("usage (odd) w", 42));
        assert!((stat.own_seconds() - 1.75).abs() < 1e-9, "{stat:?}");
        assert!(Stat::parse("4711 usage-billing S 42").is_none());
    }

    #[test]
    fn threads_are_grouped_by_the_names_that_the_kernel_keeps() {
        for (name, expected) in [
            ("actix-server wo", ThreadGroup::Http),
            ("actix-rt|system", ThreadGroup::Http),
            ("tokio-rt-worker", ThreadGroup::Http),
            ("usage-writer", ThreadGroup::UsageWriter),
            ("checkpoints", ThreadGroup::Checkpoint),
            ("readiness", ThreadGroup::Other),
            ("usage-billing", ThreadGroup::Other),
        ] {
            assert_eq!(ThreadGroup::of(name), expected, "{name}");
        }
    }

    #[test]
    fn the_time_between_two_readings_is_divided_by_threads() {
        let reading = |servers, threads: &[(u32, ThreadGroup, f64)]| CpuReading {
            servers,
            threads: threads.iter().map(|(id, group, seconds)| (*id, (*group, *seconds))).collect(),
            ..CpuReading::default()
        };
        // Thread 3 ends after the first reading, and thread 4 begins.
        let first =
            reading(10.0, &[(1, ThreadGroup::Http, 4.0), (2, ThreadGroup::UsageWriter, 5.0), (3, ThreadGroup::Http, 1.0)]);
        let last =
            reading(16.0, &[(1, ThreadGroup::Http, 5.0), (2, ThreadGroup::UsageWriter, 7.0), (4, ThreadGroup::Checkpoint, 0.5)]);
        let cpu = first.until(&last);
        let expected =
            [(cpu.servers, 6.0), (cpu.http, 1.0), (cpu.writer, 2.0), (cpu.checkpoint, 0.5), (cpu.other_threads(), 2.5)];
        assert!(expected.iter().all(|(found, expected)| (found - expected).abs() < 1e-9), "{cpu:?}");
    }

    #[test]
    fn this_process_has_threads() {
        assert!(!threads(std::process::id()).is_empty());
    }
}
