//! The `usage-billing` binary: configuration, composition, scheduler and command line. It contains no billing rules, no
//! SQL and no status codes.

mod admin;
mod backup;
mod composition;
mod connections;
mod demo;
mod drift_checked_clock;
mod environment;
mod failure;
mod import;
mod keys;
mod listen;
mod report;
mod restore;
mod sample;
mod sandbox;
mod scheduler;
mod secrets;
mod serve;
mod settings;
mod story;
mod telemetry;

use std::io::Write;
use std::process::ExitCode;

use billing_domain::report::NumbersAs;
use billing_domain::text::OneLine;
use billing_domain::verification::Verification;
use billing_storage::Distribution;
use clap::Parser as _;
use clap::error::{ContextKind, ErrorKind};
use mimalloc::MiMalloc;

use crate::failure::{CommandError, CommandResult};
use crate::settings::{Cli, Command, OrganizationCommand};

/// Memory of a request is allocated by a thread that serves connections, and often freed by the usage writer. This allocator
/// frees memory of other threads without a lock. It also replaces `malloc` of C libraries: SQLite allocates and frees so much
/// memory in each statement that glibc returns it to the system and requests it again.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => match refused_value(&error) {
            Some(failure) => Err(failure),
            None => error.exit(),
        },
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "usage-billing: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Returns the error for an invalid value without the value, which may be a secret or have several lines.
fn refused_value(error: &clap::Error) -> Option<CommandError> {
    let reason = std::error::Error::source(error).filter(|_| error.kind() == ErrorKind::ValueValidation)?;
    let argument = error.get(ContextKind::InvalidArg)?;
    Some(CommandError::Setting(format!("{argument}: {reason}")))
}

fn run(cli: Cli) -> CommandResult<()> {
    match cli.command {
        None => serve::serve(cli.serve),
        Some(Command::Serve(settings)) => serve::serve(*settings),
        Some(Command::Migrate(settings)) => migrate(&settings),
        Some(Command::Organization { command: OrganizationCommand::Create { name, store } }) => {
            create_organization(&name, &store)
        }
        Some(Command::Admin { command }) => admin::admin(command),
        Some(Command::Key { command }) => keys::keys(command),
        Some(Command::Secret { command }) => secrets::secrets(command),
        Some(Command::Verify(settings)) => verify(&settings),
        Some(Command::Backup(settings)) => backup::back_up(&settings),
        Some(Command::Restore(settings)) => restore::restore(&settings),
        Some(Command::Restored(settings)) => restore::restored(&settings),
        Some(Command::Sandbox(settings)) => sandbox::sandbox(&settings),
        Some(Command::Import(settings)) => import::import(&settings),
        Some(Command::Report(settings)) => report::report(&settings),
        Some(Command::Openapi { numbers_as_strings }) => {
            let numbers = if numbers_as_strings { NumbersAs::String } else { NumbersAs::Number };
            say(&format!("{:#}", billing_api::openapi::described(numbers)))
        }
        Some(Command::Demo(settings)) => demo::demo(settings),
    }
}

/// Prints to standard output. A closed pipe is not an error.
fn say(text: &str) -> CommandResult<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CommandError::Failed(format!("cannot print: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn migrate(settings: &settings::MigrateSettings) -> CommandResult<()> {
    let database = composition::open(&settings.store)?;
    let applied = database.migrate().map_err(CommandError::store)?;
    match applied.as_slice() {
        [] => say("The schema is up to date.")?,
        names => say(&format!("Applied {}.", names.join(", ")))?,
    }
    if !settings.distribute {
        return Ok(());
    }
    match database.distribute(settings.shards).map_err(CommandError::store)? {
        Distribution::File => say("A SQLite file is on one machine: nothing to distribute."),
        Distribution::WithoutExtension => say("The database does not have the extension Citus: nothing to distribute."),
        Distribution::Refused(reason) => Err(CommandError::Failed(reason)),
        Distribution::Done(tables) if tables.is_empty() => say("All tables are distributed."),
        Distribution::Done(tables) => say(&format!("Distributed {}.", tables.join(", "))),
    }
}

fn verify(settings: &settings::VerifySettings) -> CommandResult<()> {
    let services = composition::offline(composition::open_as_it_is(&settings.store)?)?;
    let mut seen = Verification::default();
    for (organization, verified) in billing_application::verify::verify(&services, settings.record)? {
        for finding in &verified.findings {
            say(&format!("{}: {}", finding.subject, finding.detail))?;
        }
        say(&format!("Organization {organization}: checked {}, {} violations.", looked_at(&verified), verified.findings.len()))?;
        seen.add(verified);
    }
    let looked_at = looked_at(&seen);
    match seen.findings.len() {
        0 => say(&format!("Checked {looked_at}: every invariant holds.")),
        wrong => Err(CommandError::Failed(format!("checked {looked_at}: {wrong} violations"))),
    }
}

fn looked_at(seen: &Verification) -> String {
    let Verification { contracts, documents, events, accounts, .. } = seen;
    format!("{contracts} contracts, {documents} documents, {events} events and {accounts} accounts")
}

fn create_organization(name: &OneLine, store: &settings::StoreSettings) -> CommandResult<()> {
    let services = composition::offline(composition::open_migrated(store)?)?;
    let organization = billing_application::organizations::create_organization(&services, name)?;
    say(&format!("Created organization {} ({}).", organization.name, organization.id))
}

fn text(what: &str, value: &str) -> CommandResult<OneLine> {
    OneLine::parse(value).map_err(|reason| CommandError::Setting(format!("{what} {reason}")))
}
