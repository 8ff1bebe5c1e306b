//! Prints documents in other processes. What a document costs to print, it costs there: a process has limits of memory and of
//! time, and ends without consequences for the server.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::party::appearance::Logo;
use billing_domain::ports::{DocumentPrinter, PrintError, PrintStop};
use billing_domain::receivables::StatementPrintout;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::fonts::{self, GlyphCoverage, SYSTEM_FOLDERS};
use crate::sheet::{Reply, Sheet, may_lack_glyphs};

/// The name of the program that typesets documents. It is beside that of the server.
pub const PROGRAM: &str = "usage-billing-print";
/// The version that a server and its printing program share.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The exit code of a process whose server has another version.
pub const ANOTHER_VERSION: u8 = 4;
/// The exit code of a process that used more processor time than its limit.
pub const TOO_SLOW: i32 = 3;

/// The limits of a typesetting process.
#[derive(Clone, Debug)]
pub struct ProcessLimits {
    /// The memory in MiB that the process may use besides what it has at its start. Only Linux enforces it.
    pub memory_mib: u32,
    /// The processor time in milliseconds for all sheets. The process ends when it has used more.
    pub processor_millis: Option<u64>,
}

/// The default of [`memory_mib`](PrintProcessSettings::memory_mib).
pub const DEFAULT_MEMORY_MIB: u32 = 512;
/// The default of [`deadline`](PrintProcessSettings::deadline).
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(20);

/// The word across each page in a sandbox.
const SANDBOX_WATERMARK: &str = "TEST";

/// The time after which a process that has nothing to print is closed.
const MAX_IDLE: Duration = Duration::from_secs(5 * 60);
/// The limits of the process that prints a logo when it is uploaded. What costs more must not be on each document.
const LOGO_LIMITS: ProcessLimits = ProcessLimits { memory_mib: 100, processor_millis: Some(LOGO_MILLIS) };
/// The code of typst is several times slower without optimization.
const LOGO_MILLIS: u64 = if cfg!(debug_assertions) { 3 * 300 } else { 300 };
/// The largest part of what a process wrote to its standard error that is read.
const MAX_ERROR_BYTES: u64 = 4096;
/// What a program writes to its standard error when an allocation fails.
const ALLOCATION_FAILED: &str = "memory allocation of";

/// How typesetting processes are started, and their limits.
#[derive(Clone, Debug)]
pub struct PrintProcessSettings {
    /// The program. It may appear after the server has started.
    pub program: PathBuf,
    /// Its first arguments. The version and the limits follow as further arguments.
    pub arguments: Vec<OsString>,
    /// The folder with additional fonts.
    pub fonts_dir: Option<PathBuf>,
    /// The memory in MiB that a process may use besides what it has at its start.
    pub memory_mib: u32,
    /// The time for one file.
    pub deadline: Duration,
    /// Whether each page says that it is a test, as in a sandbox.
    pub is_sandbox: bool,
}

/// A printer that uses typesetting processes. A process is started when it is first needed, prints one file after the other, and is
/// closed when it had nothing to print for five minutes.
///
/// There are as many processes as concurrent callers.
#[derive(Clone, Debug)]
pub struct PrintProcesses(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: PrintProcessSettings,
    /// The program, once it was found. It stays open, so that processes can be started after another release has replaced it.
    program: Mutex<Option<File>>,
    /// Which characters the fonts have; `None` if the fonts can't be read. Then each print fails with the reason.
    glyphs: OnceLock<Option<GlyphCoverage>>,
    idle: Mutex<IdleProcesses>,
}

#[derive(Debug, Default)]
struct IdleProcesses {
    /// The processes with nothing to print, and since when. The last one is used first.
    processes: Vec<(PrintProcess, Instant)>,
    /// Whether a thread closes processes that are idle for too long.
    has_closer: bool,
}

impl PrintProcesses {
    /// Creates a printer. No process is started yet.
    pub fn new(settings: PrintProcessSettings) -> Self {
        Self(Arc::new(Shared { settings, program: Mutex::default(), glyphs: OnceLock::new(), idle: Mutex::default() }))
    }

    fn print_sheet(&self, mut sheet: Sheet) -> Result<RenderedFile, PrintError> {
        let Shared { settings, .. } = &*self.0;
        if settings.is_sandbox {
            sheet.watermark = Some(SANDBOX_WATERMARK.to_owned());
        }
        let sheet = &sheet;
        let limits = ProcessLimits { memory_mib: settings.memory_mib, processor_millis: None };
        let mut process = match self.0.take_idle() {
            Some(process) => process,
            None => self.0.start(settings.fonts_dir.as_deref(), &limits)?,
        };
        match process.print(sheet, settings.deadline) {
            Ok(reply) => {
                self.0.put_back(process);
                let missing = self.0.missing_glyphs(sheet);
                if !missing.is_empty() {
                    tracing::warn!(file = sheet.identifier, %missing, "no font has some characters of a file, which are boxes there");
                }
                Ok(sheet.rendered(reply.into_outcome()?))
            }
            Err(end) => Err(self.0.stop(end).into()),
        }
    }
}

impl DocumentPrinter for PrintProcesses {
    fn print(&self, printout: &Printout) -> Result<RenderedFile, PrintError> {
        self.print_sheet(Sheet::of_document(printout)?)
    }

    fn missing_glyphs(&self, printout: &Printout) -> String {
        let sheet = may_lack_glyphs(printout).then(|| Sheet::of_document(printout).ok()).flatten();
        sheet.map(|sheet| self.0.missing_glyphs(&sheet)).unwrap_or_default()
    }

    fn print_statement(&self, statement: &StatementPrintout) -> Result<RenderedFile, PrintError> {
        self.print_sheet(Sheet::of_statement(statement)?)
    }

    /// Prints a logo once, in a process of its own with smaller limits.
    fn can_print_logo(&self, logo: &Logo) -> Result<bool, PrintError> {
        let Shared { settings, .. } = &*self.0;
        let mut process = self.0.start(None, &LOGO_LIMITS)?;
        match process.print(&Sheet::of_logo(Some(logo)), settings.deadline) {
            Ok(reply) => Ok(matches!(reply, Reply::Printed(_))),
            Err(end) if end.is_of_sheet() => Ok(false),
            Err(end) => Err(self.0.stop(end).into()),
        }
    }
}

impl Shared {
    /// Locks the idle processes. Nothing panics while the lock is held, so a poisoned lock has consistent content.
    fn idle(&self) -> MutexGuard<'_, IdleProcesses> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process.
    fn start(&self, fonts_dir: Option<&Path>, limits: &ProcessLimits) -> Result<PrintProcess, PrintStop> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match program.take() {
            Some(file) => file,
            None => File::open(&self.settings.program).map_err(|error| match error.kind() {
                ErrorKind::NotFound => PrintStop::NotReady(format!("{} does not exist", self.settings.program.display())),
                _ => PrintStop::NotStarted(error.to_string()),
            })?,
        };
        let path = if cfg!(target_os = "linux") {
            PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
        } else {
            self.settings.program.clone()
        };
        let started = PrintProcess::start(command(&path, &self.settings, fonts_dir, limits));
        *program = Some(file);
        started
    }

    /// Returns why a file was not printed. A program of another version is looked for again.
    fn stop(&self, end: ProcessEnd) -> PrintStop {
        let stop = end.stop(&self.settings);
        if matches!(stop, PrintStop::NotReady(_)) {
            *self.program.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        stop
    }

    /// Returns characters of a sheet that no font has.
    fn missing_glyphs(&self, sheet: &Sheet) -> String {
        let load = || GlyphCoverage::load(self.settings.fonts_dir.as_deref(), SYSTEM_FOLDERS.map(PathBuf::from).to_vec()).ok();
        self.glyphs.get_or_init(load).as_ref().map(|glyphs| fonts::named(glyphs.missing(&sheet.data))).unwrap_or_default()
    }

    /// Returns an idle process that is still running.
    fn take_idle(&self) -> Option<PrintProcess> {
        loop {
            let (mut process, _) = self.idle().processes.pop()?;
            if process.is_running() {
                return Some(process);
            }
        }
    }

    /// Keeps a process for the next file.
    fn put_back(self: &Arc<Self>, process: PrintProcess) {
        let mut idle = self.idle();
        if !idle.has_closer {
            let shared = Arc::clone(self);
            let closer = thread::Builder::new().name("print-closer".to_owned()).spawn(move || shared.close_idle());
            if let Err(error) = closer {
                tracing::warn!(%error, "a typesetting process is closed, because no thread can close it later");
                return;
            }
            idle.has_closer = true;
        }
        idle.processes.push((process, Instant::now()));
    }

    /// Closes processes that are idle for too long, until no process is idle.
    fn close_idle(&self) {
        while let Some(wait) = self.close_idle_longer_than(MAX_IDLE) {
            thread::sleep(wait);
        }
    }

    /// Closes processes that are idle for longer than a limit. Returns the time until the next one reaches it; `None` if no process is
    /// idle, and then the next idle process needs another thread that closes it.
    fn close_idle_longer_than(&self, limit: Duration) -> Option<Duration> {
        let mut idle = self.idle();
        let (kept, closed): (Vec<_>, Vec<_>) = idle.processes.drain(..).partition(|(_, since)| since.elapsed() < limit);
        idle.processes = kept;
        let wait = idle.processes.iter().map(|(_, since)| limit.saturating_sub(since.elapsed())).min();
        idle.has_closer = wait.is_some();
        drop(idle);
        // Each waits for the end of its process, which must not hold the lock.
        drop(closed);
        wait
    }
}

/// A running typesetting process. Dropping it ends the process.
#[derive(Debug)]
struct PrintProcess {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    errors: ChildStderr,
}

/// Why a process ended in the middle of a file.
#[derive(Debug)]
enum ProcessEnd {
    /// The server ended it at the deadline.
    Deadline,
    /// It ended by itself, or something else ended it.
    Itself { status: Option<ExitStatus>, errors: String },
    /// A thread of the server could not be started.
    NoThread(io::Error),
}

impl PrintProcess {
    fn start(mut command: Command) -> Result<Self, PrintStop> {
        let started = command.spawn().and_then(|mut child| {
            let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
            let ((input, output), errors) = pipes.ok_or_else(|| io::Error::other("it has no pipes"))?;
            Ok(Self { child, input, output, errors })
        });
        started.map_err(|error| PrintStop::NotStarted(error.to_string()))
    }

    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Prints a sheet. After an error, the process is of no use any more.
    fn print(&mut self, sheet: &Sheet, deadline: Duration) -> Result<Reply, ProcessEnd> {
        let group = Pid::from_child(&self.child);
        let (input, output) = (&mut self.input, &mut self.output);
        let (done, waiting) = channel::<()>();
        let (exchanged, is_late) = thread::scope(|scope| {
            let watch = thread::Builder::new().name("print-deadline".to_owned()).spawn_scoped(scope, move || {
                let is_late = waiting.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout);
                if is_late {
                    // The process has not been waited for, so no other process can have its number.
                    let _ = kill_process_group(group, Signal::KILL);
                }
                is_late
            })?;
            let exchanged = sheet.write_to(input).and_then(|()| Reply::read_from(output));
            drop(done);
            Ok((exchanged, watch.join().unwrap_or(true)))
        })
        .map_err(ProcessEnd::NoThread)?;
        match exchanged {
            Ok(reply) if !is_late => Ok(reply),
            _ if is_late => Err(ProcessEnd::Deadline),
            _ => Err(self.end()),
        }
    }

    /// Ends the process if it still runs, and returns how it ended.
    fn end(&mut self) -> ProcessEnd {
        // A process that closed its pipes is about to exit by itself, and its status says why.
        let ended = (0..100).find_map(|_| {
            let status = self.child.try_wait().ok().flatten();
            if status.is_none() {
                thread::sleep(Duration::from_millis(10));
            }
            status
        });
        let status = ended.or_else(|| {
            self.kill();
            self.child.wait().ok()
        });
        let mut errors = Vec::new();
        // What cannot be read is missing in the log.
        let _ = (&mut self.errors).take(MAX_ERROR_BYTES).read_to_end(&mut errors);
        ProcessEnd::Itself { status, errors: String::from_utf8_lossy(&errors).trim().to_owned() }
    }

    fn kill(&self) {
        // An error means that it has ended already.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for PrintProcess {
    fn drop(&mut self) {
        if self.is_running() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

impl ProcessEnd {
    fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Itself { errors, .. } if errors.contains(ALLOCATION_FAILED))
    }

    /// Returns whether the sheet was the cause. A process that something else killed says nothing about its sheet.
    fn is_of_sheet(&self) -> bool {
        match self {
            Self::Itself { status: Some(status), .. } => {
                status.code() == Some(TOO_SLOW) || status.signal().is_some_and(|signal| signal != Signal::KILL.as_raw())
            }
            Self::Itself { status: None, .. } | Self::Deadline | Self::NoThread(_) => false,
        }
    }

    /// Returns why the file was not printed, and logs what the process said.
    fn stop(self, settings: &PrintProcessSettings) -> PrintStop {
        let is_out_of_memory = self.is_out_of_memory();
        match self {
            Self::Deadline => PrintStop::TimedOut { seconds: settings.deadline.as_secs() },
            Self::Itself { status: Some(status), .. } if status.code() == Some(ANOTHER_VERSION.into()) => {
                PrintStop::NotReady(format!("{} is not of version {VERSION}", settings.program.display()))
            }
            Self::Itself { .. } if is_out_of_memory => PrintStop::OutOfMemory { mib: settings.memory_mib },
            Self::Itself { status, errors } => {
                let status = status.map_or_else(|| "unknown status".to_owned(), |status| status.to_string());
                tracing::warn!(status, errors, "a typesetting process ended in the middle of a file");
                PrintStop::ProcessEnded(status)
            }
            Self::NoThread(error) => PrintStop::NotStarted(error.to_string()),
        }
    }
}

/// Returns the command that starts a process, in a process group of its own: signals of a terminal to the server must not end it
/// in the middle of a file. It has no environment, because that of the server has secrets.
fn command(program: &Path, settings: &PrintProcessSettings, fonts_dir: Option<&Path>, limits: &ProcessLimits) -> Command {
    let mut command = Command::new(program);
    command.args(&settings.arguments).arg("--server-version").arg(VERSION);
    command.arg("--memory-mib").arg(limits.memory_mib.to_string());
    if let Some(millis) = limits.processor_millis {
        command.arg("--processor-millis").arg(millis.to_string());
    }
    if let Some(dir) = fonts_dir {
        command.arg("--fonts-dir").arg(dir);
    }
    command.env_clear().envs(ENVIRONMENT).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Settings of libraries in the process.
const ENVIRONMENT: [(&str, &str); 2] = [
    // The allocator reserves 1 GiB at once, in KiB here, which the limit of memory would not allow, or not count.
    ("MIMALLOC_ARENA_RESERVE", "32768"),
    // typst lays out pages on all processors, but the server needs them, too.
    ("RAYON_NUM_THREADS", "2"),
];

#[cfg(test)]
mod tests {
    use billing_domain::party::appearance::LogoFormat;

    use super::*;

    /// Returns a printer whose processes are a shell script instead of typst.
    fn printer(script: &str, deadline: Duration) -> PrintProcesses {
        let arguments = ["-c", script, "print"].map(OsString::from).to_vec();
        let program = PathBuf::from("/bin/sh");
        PrintProcesses::new(PrintProcessSettings {
            program,
            arguments,
            fonts_dir: None,
            memory_mib: 64,
            deadline,
            is_sandbox: false,
        })
    }

    /// Longer than any script.
    const LONG: Duration = Duration::from_secs(60);
    /// A script that answers one sheet with a file, and then waits for the end of its pipe.
    const ANSWER: &str = "printf '\\000\\003\\000\\000\\000pdf'; cat > /dev/null";

    fn logo() -> Logo {
        Logo { format: LogoFormat::Svg, sha256: [0; 32], image: Some(b"<svg/>".as_slice().into()) }
    }

    fn stop(printer: &PrintProcesses) -> PrintStop {
        match printer.print_sheet(Sheet::of_logo(None)) {
            Err(PrintError::Stopped(stop)) => stop,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_process_that_ends_is_the_reason() {
        assert_eq!(stop(&printer("exit 7", LONG)), PrintStop::ProcessEnded("exit status: 7".to_owned()));
        let killed = stop(&printer("kill -KILL $$", LONG));
        assert!(matches!(&killed, PrintStop::ProcessEnded(status) if status.contains("signal: 9")), "{killed:?}");
        let exhausted = "echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$";
        assert_eq!(stop(&printer(exhausted, LONG)), PrintStop::OutOfMemory { mib: 64 });
        let with = |program: &str| {
            let settings = printer("", LONG).0.settings.clone();
            stop(&PrintProcesses::new(PrintProcessSettings { program: program.into(), ..settings }))
        };
        assert!(matches!(with("/etc/passwd"), PrintStop::NotStarted(_)));
        // A process that closes its output or answers nonsense, and goes on.
        for script in ["exec >&-; sleep 60", "printf '\\011\\000\\000\\000\\000'; sleep 60"] {
            assert!(matches!(stop(&printer(script, LONG)), PrintStop::ProcessEnded(_)), "{script}");
        }
    }

    #[test]
    fn a_program_may_appear_or_be_replaced_after_the_server_has_started() {
        let folder = std::env::temp_dir().join(format!("billing-pdf-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("print");
        let settings = PrintProcessSettings { program: path.clone(), ..printer(ANSWER, LONG).0.settings.clone() };
        let printer = PrintProcesses::new(settings);
        assert!(matches!(stop(&printer), PrintStop::NotReady(reason) if reason.ends_with("does not exist")));
        std::fs::copy("/bin/sh", &path).expect("a program");
        printer.print_sheet(Sheet::of_logo(None)).expect("a file");
        if cfg!(target_os = "linux") {
            std::fs::remove_file(&path).expect("a program");
            printer.0.close_idle_longer_than(Duration::ZERO);
            printer.print_sheet(Sheet::of_logo(None)).expect("a file of the program that was replaced");
        }
        std::fs::remove_dir_all(&folder).expect("a folder");
    }

    #[test]
    fn a_program_of_another_version_is_not_used_and_looked_for_again() {
        let printer = printer(&format!("exit {ANOTHER_VERSION}"), LONG);
        assert!(matches!(stop(&printer), PrintStop::NotReady(reason) if reason.contains("version")));
        assert!(printer.0.program.lock().expect("a lock").is_none());
    }

    #[test]
    fn a_process_that_is_late_is_ended() {
        let printer = printer("sleep 60", Duration::from_secs(1));
        assert_eq!(stop(&printer), PrintStop::TimedOut { seconds: 1 });
        assert!(printer.0.idle().processes.is_empty());
    }

    #[test]
    fn a_process_is_kept_for_the_next_file_and_closed_when_it_is_idle() {
        let printer = printer(ANSWER, LONG);
        let file = printer.print_sheet(Sheet::of_logo(None)).expect("a file");
        assert_eq!((file.bytes.as_slice(), file.maker.ends_with(" logo-1")), (b"pdf".as_slice(), true));
        let id = |printer: &PrintProcesses| {
            printer.0.idle().processes.iter().map(|(process, _)| process.child.id()).collect::<Vec<_>>()
        };
        let first = id(&printer);
        assert_eq!(first.len(), 1);
        assert!(printer.0.idle().has_closer);

        // A process that ended while it was idle is replaced.
        printer.0.idle().processes[0].0.kill();
        while printer.0.idle().processes[0].0.is_running() {
            thread::sleep(Duration::from_millis(1));
        }
        printer.print_sheet(Sheet::of_logo(None)).expect("a file");
        assert_eq!(printer.0.idle().processes.len(), 1);
        assert_ne!(id(&printer), first);

        let wait = printer.0.close_idle_longer_than(LONG).expect("the process is not idle for long");
        assert!(wait <= LONG && printer.0.idle().has_closer);
        assert_eq!(printer.0.close_idle_longer_than(Duration::ZERO), None);
        assert!(printer.0.idle().processes.is_empty() && !printer.0.idle().has_closer);
    }

    #[test]
    fn only_a_logo_itself_is_a_reason_to_reject_it() {
        let can_print = |script: &str| printer(script, LONG).can_print_logo(&logo());
        assert_eq!(can_print(ANSWER), Ok(true));
        // The library rejects the image.
        assert_eq!(can_print("printf '\\002\\002\\000\\000\\000no'; cat > /dev/null"), Ok(false));
        assert_eq!(can_print(&format!("exit {TOO_SLOW}")), Ok(false));
        assert_eq!(can_print("kill -ABRT $$"), Ok(false), "no memory, or a stack that is too deep");
        // The system or an operator ended the process.
        assert!(matches!(can_print("kill -KILL $$"), Err(PrintError::Stopped(PrintStop::ProcessEnded(_)))));
        assert!(matches!(can_print("exit 2"), Err(PrintError::Stopped(PrintStop::ProcessEnded(_)))));
        let late = printer("sleep 60", Duration::from_secs(1)).can_print_logo(&logo());
        assert_eq!(late, Err(PrintStop::TimedOut { seconds: 1 }.into()), "a busy machine");
    }
}
