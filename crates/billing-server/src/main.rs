//! The `usage-billing` binary: configuration, composition, scheduler, command line. Thin: no rule, no SQL, no
//! status code is made here.

mod composition;
mod demo;
mod environment;
mod failure;
mod import;
mod report;
mod sample;
mod scheduler;
mod serve;
mod settings;

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use billing_domain::text::OneLine;
use clap::Parser;
use secrecy::ExposeSecret;

use crate::environment::SystemClock;
use crate::failure::{Failure, Outcome};
use crate::settings::{AdminCommand, Cli, Command, OrganizationCommand};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        None => serve::serve(cli.serve),
        Some(Command::Serve(settings)) => serve::serve(*settings),
        Some(Command::Migrate(store)) => migrate(&store),
        Some(Command::Organization { command: OrganizationCommand::Create { name, store } }) => {
            create_organization(&name, &store)
        }
        Some(Command::Admin { command: AdminCommand::Create { email, organization, password, store } }) => {
            create_admin(&email, &organization, password.as_ref().map(|password| password.expose_secret()), &store)
        }
        Some(Command::Verify(store)) => verify(&store),
        Some(Command::Import(settings)) => import::import(&settings),
        Some(Command::Report(settings)) => report::report(&settings),
        Some(Command::Openapi) => say(&billing_http::openapi_json()),
        Some(Command::Demo(settings)) => demo::demo(settings),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "usage-billing: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints for whoever started the command; a closed pipe is theirs to close.
fn say(text: &str) -> Outcome<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Failed(format!("cannot print: {error}"))),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn migrate(store: &settings::StoreSettings) -> Outcome<()> {
    let applied = composition::open(store)?.migrate().map_err(Failure::store)?;
    match applied.as_slice() {
        [] => say("The schema is up to date."),
        names => say(&format!("Applied {}.", names.join(", "))),
    }
}

fn verify(store: &settings::StoreSettings) -> Outcome<()> {
    let services = composition::offline(composition::open_as_it_is(store)?, Arc::new(SystemClock))?;
    let seen = billing_application::verify::verify(&services)?;
    for finding in &seen.findings {
        say(&format!("{}: {}", finding.subject, finding.detail))?;
    }
    let looked_at = format!("{} contracts, {} documents and {} events", seen.contracts, seen.documents, seen.events);
    match seen.findings.len() {
        0 => say(&format!("Looked at {looked_at}: every invariant holds.")),
        wrong => Err(Failure::Failed(format!("looked at {looked_at}: {wrong} things are wrong"))),
    }
}

fn create_organization(name: &str, store: &settings::StoreSettings) -> Outcome<()> {
    let name = text("NAME", name)?;
    let services = composition::offline(composition::open_migrated(store)?, Arc::new(SystemClock))?;
    let organization = billing_application::organizations::create_organization(&services, &name)?;
    say(&format!("Made organization {} ({}).", organization.name, organization.id))
}

fn create_admin(email: &str, organization: &str, password: Option<&str>, store: &settings::StoreSettings) -> Outcome<()> {
    let (email, organization) = (text("--email", email)?, text("--organization", organization)?);
    let services = &composition::offline(composition::open_migrated(store)?, Arc::new(SystemClock))?;
    let generated = match password {
        Some(_) => None,
        None => Some(services.keys.new_secret().map_err(|error| Failure::Failed(error.to_string()))?),
    };
    let password = password.or(generated.as_deref()).unwrap_or_default();
    let made = billing_application::organizations::create_administrator(services, &organization, &email, password)?;
    say(&format!("Made administrator {} ({}).", made.email, made.admin_ref))?;
    match generated {
        Some(password) => say(&format!("Password, shown this once: {password}")),
        None => Ok(()),
    }
}

fn text(what: &str, value: &str) -> Outcome<OneLine> {
    OneLine::parse(value).map_err(|reason| Failure::Setting(format!("{what} {reason}")))
}
