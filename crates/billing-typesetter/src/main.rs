//! The program `usage-billing-print`, which a server starts to typeset documents. People do not start it.

use std::path::PathBuf;
use std::process::ExitCode;

use billing_pdf::{ANOTHER_VERSION, ProcessLimits, VERSION};
use billing_typesetter::process;
use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Typesets documents for a server until the server closes the pipe.
#[derive(Debug, Parser)]
#[command(name = "usage-billing-print", version)]
struct Settings {
    /// Version of the server. A server of another version gets no document.
    #[arg(long)]
    server_version: String,

    /// Memory in MiB besides what the process has at its start.
    #[arg(long, value_name = "MIB")]
    memory_mib: u32,

    /// Processor time in milliseconds after which the process ends.
    #[arg(long, value_name = "MILLISECONDS")]
    processor_millis: Option<u64>,

    /// Folder with additional fonts.
    #[arg(long, value_name = "FOLDER")]
    fonts_dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    let Settings { server_version, memory_mib, processor_millis, fonts_dir } = Settings::parse();
    if server_version != VERSION {
        return ExitCode::from(ANOTHER_VERSION);
    }
    match process::run(fonts_dir, &ProcessLimits { memory_mib, processor_millis }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot print: {error}");
            ExitCode::FAILURE
        }
    }
}
