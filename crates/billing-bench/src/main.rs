//! The benchmark of `make bench`. It measures the real binary over HTTP on loopback, on both databases, and prints one table.
//! The table compares the service with other work of the same machine in the same run.
//!
//! A run fails if something does not work, never because it is slow. Only a smoke run also fails if a ratio is below half of its
//! target.
//!
//! ```text
//! billing-bench             measures and prints the table
//! billing-bench --write     also inserts the table into docs/performance.md
//! billing-bench smoke       measures some thousand events of the most important rows
//! billing-bench profile     prints the distribution of the server's processor time, measured with perf
//! billing-bench neighbors [CASE…]
//!                           measures an organization while another organization or strangers attack the server
//! billing-bench plain-server PORT
//!                           is the plain server that the service is compared with; a run starts it
//! ```
//!
//! With `BASE=/path/to/another/usage-billing`, a run also measures that binary by turns and prints a table that compares both.
//!
//! [`settings`] defines the settings, [`rows`] the measurements and [`table`] their targets.
#![allow(clippy::float_arithmetic, reason = "rates and times, no money")]

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

mod ceiling;
mod figures;
mod load;
mod metrics;
mod neighbors;
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

/// The reason that a run ends early.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// A signal requested the stop.
    #[error("stopped")]
    Stopped,
    /// A failure that the message describes.
    #[error("{0}")]
    Failed(String),
    /// An error of the operating system.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

impl Failure {
    fn new(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

/// The result of a fallible operation.
type Outcome<T> = Result<T, Failure>;

fn main() -> ExitCode {
    // The harness panics if a request gets no response. After a stop, requests get no response, so these panics are not printed.
    let reported = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !stop::is_asked() {
            reported(panic);
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, port] = &arguments[..]
        && name == ceiling::PLAIN_SERVER
    {
        return ceiling::serve(port.parse::<u16>().map_err(|error| Failure::new(format!("port {port}: {error}")))?);
    }
    stop::listen()?;
    let mut settings = Settings::read()?;
    let text = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["profile"] => profile::profile(&settings)?,
        ["neighbors", ref cases @ ..] => neighbors::measure(&settings, cases)?,
        ["smoke"] => {
            settings = settings.smoke();
            let rows::Measured { figures, .. } = rows::measure(&settings)?;
            let (text, lost) = (table::markdown(&settings, &figures), table::lost(&figures));
            if !lost.is_empty() {
                return Err(Failure::new(format!("{text}\nless than half of what is to be reached: {}", lost.join("; "))));
            }
            text
        }
        ["--write"] if settings.base.is_some() => {
            return Err(Failure::new("--write inserts the figures of one build: leave out --write or BASE"));
        }
        [] | ["--write"] => {
            let measured = rows::measure(&settings)?;
            let mut text = table::markdown(&settings, &measured.figures);
            if let Some(base) = &measured.base {
                text += &table::comparison(base, &measured.figures);
            }
            text
        }
        _ => {
            return Err(Failure::new("usage: billing-bench [--write | smoke | profile | neighbors [CASE…] | plain-server PORT]"));
        }
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    if arguments == ["--write"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
        let page = table::put_in(&std::fs::read_to_string(&path)?, &text)?;
        std::fs::write(&path, page)?;
    }
    Ok(())
}
