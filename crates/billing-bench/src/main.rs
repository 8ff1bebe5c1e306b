//! `make bench`: measures the real binary over HTTP on loopback, on both databases, against what the same machine does
//! otherwise in the same run, and prints one table. It fails when something doesn't work, and never because it is slow; a smoke does
//! where a ratio isn't half of what is to be reached.
//!
//! ```text
//! billing-bench             measures, and prints the table
//! billing-bench --write     puts it into docs/performance.md, too
//! billing-bench smoke       measures some thousand events of the most important rows
//! billing-bench profile     prints where the server's time goes, by perf
//! ```
//!
//! [`settings`] has what may be set. [`rows`] has what is measured, [`table`] what is to be reached.
#![allow(clippy::float_arithmetic, reason = "rates and times, no money")]

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

mod figures;
mod load;
mod pgbench;
mod plain;
mod process;
mod profile;
mod rows;
mod settings;
mod stage;
mod stop;
mod table;
mod traffic;

use settings::Settings;

/// Why a run ends before its time.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Somebody asked for it.
    #[error("stopped")]
    Stopped,
    /// What it says.
    #[error("{0}")]
    Failed(String),
    /// The operating system.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl Failure {
    fn new(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

/// What comes of something that may fail.
type Outcome<T> = Result<T, Failure>;

fn main() -> ExitCode {
    // The harness panics when what it asks isn't answered, as it isn't any more once everything is told to stop.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !stop::is_asked() {
            told(panic);
        }
    }));
    match std::panic::catch_unwind(run) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(Failure::Stopped)) => ExitCode::from(130),
        Err(_) if stop::is_asked() => ExitCode::from(130),
        Ok(Err(failure)) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> Outcome<()> {
    stop::listen()?;
    let mut settings = Settings::read()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let text = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["profile"] => profile::profile(&settings)?,
        ["smoke"] => {
            settings = settings.smoke();
            let figures = rows::measure(&settings)?;
            let (text, lost) = (table::markdown(&settings, &figures), table::lost(&figures));
            if !lost.is_empty() {
                return Err(Failure::new(format!("{text}\nless than half of what is to be reached: {}", lost.join("; "))));
            }
            text
        }
        [] | ["--write"] => table::markdown(&settings, &rows::measure(&settings)?),
        _ => return Err(Failure::new("usage: billing-bench [--write | smoke | profile]")),
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    if arguments == ["--write"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
        let page = table::put_in(&std::fs::read_to_string(&path)?, &text)?;
        std::fs::write(&path, page)?;
    }
    Ok(())
}
