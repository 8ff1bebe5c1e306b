//! What runs in a typesetting process: it reads sheets from its standard input and writes the files to its standard output.
//!
//! The process limits itself before it reads anything, because code that another process runs before its start would be unsafe.
//! It ends when its standard input ends, also in the middle of a file: then its server has ended.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use billing_pdf::sheet::{Reply, Sheet};
use billing_pdf::{ProcessLimits, TOO_SLOW};

use crate::Printer;

/// The time between two checks of the processor time.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Typesets the sheets of the standard input until it ends.
///
/// # Errors
/// Returns an error if the limits cannot be set, or if the standard output ends before the standard input.
pub fn run(fonts_dir: Option<PathBuf>, limits: &ProcessLimits) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    linux::limit_this_process(limits)?;
    let printer = Printer::new(fonts_dir);
    if let Some(millis) = limits.processor_millis {
        // Loading the fonts and the library does not count.
        let _ = printer.typeset(&Sheet::of_logo(None));
        let end = processor_time() + Duration::from_millis(millis);
        thread::Builder::new().name("limit".to_owned()).spawn(move || end_after(end))?;
    }
    let (sheets, received) = sync_channel(1);
    thread::Builder::new().name("pipe".to_owned()).spawn(move || read_sheets(&mut io::stdin().lock(), &sheets))?;
    typeset_all(&printer, &received)
}

/// Passes sheets on and ends the process at the end of the pipe.
fn read_sheets(pipe: &mut impl Read, sheets: &SyncSender<Sheet>) {
    while let Ok(sheet) = Sheet::read_from(pipe) {
        if sheets.send(sheet).is_err() {
            break;
        }
    }
    process::exit(0);
}

fn typeset_all(printer: &Printer, sheets: &Receiver<Sheet>) -> io::Result<()> {
    while let Ok(sheet) = sheets.recv() {
        Reply::of(printer.typeset(&sheet)).write_to(&mut io::stdout().lock())?;
    }
    Ok(())
}

/// Ends the process when it has used this processor time. A limit of the system has a resolution of a second.
fn end_after(end: Duration) {
    while processor_time() < end {
        thread::sleep(CHECK_EVERY);
    }
    process::exit(TOO_SLOW);
}

/// Returns the processor time that the process has used since its start. Time in which other processes run does not count.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.try_into().unwrap_or_default(), used.tv_nsec.try_into().unwrap_or_default())
}

#[cfg(target_os = "linux")]
mod linux {
    //! The limits that only Linux has. On other systems, the deadline of the server is the only limit.

    use std::fs;
    use std::io;

    use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};
    use rustix::thread::set_no_new_privs;

    use billing_pdf::ProcessLimits;

    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    /// The system ends this process first when memory runs out.
    const FIRST_TO_END: &str = "1000";
    /// How much lower the priority is than that of the server. Its requests take precedence over printing.
    const NICE: i32 = 10;

    /// Limits the memory of this process, takes away its chance to get more rights, and makes it the first to wait for a
    /// processor and the first to end when memory runs out.
    pub(super) fn limit_this_process(limits: &ProcessLimits) -> io::Result<()> {
        let size = address_space()?.saturating_add(u64::from(limits.memory_mib) * MIB);
        let most = getrlimit(Resource::As).maximum.map_or(size, |maximum| maximum.min(size));
        setrlimit(Resource::As, Rlimit { current: Some(most), maximum: Some(most) })?;
        // A process that exceeds its memory aborts, and the image of its memory would have data of customers.
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        set_no_new_privs(true)?;
        // With a limit of processor time, waiting for a processor would only delay the end.
        if limits.processor_millis.is_none() {
            nice(NICE)?;
        }
        // A sandbox may have no such file. Then the process isn't the first to end.
        let _ = fs::write("/proc/self/oom_score_adj", FIRST_TO_END);
        Ok(())
    }

    /// Returns the size of the address space, which includes the program and its libraries.
    fn address_space() -> io::Result<u64> {
        let status = fs::read_to_string("/proc/self/status")?;
        let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.strip_suffix("kB")?.trim().parse::<u64>().ok());
        Ok(size.ok_or_else(|| io::Error::other("/proc/self/status has no VmSize"))?.saturating_mul(KIB))
    }
}
