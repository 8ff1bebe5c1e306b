//! Copies of live databases that become sandboxes.

use std::path::Path;

use billing_application::latest_instant::latest_recorded_instant;
use billing_application::sandbox::{SandboxAdministrator, make_sandbox};
use billing_storage::{Database, DatabaseOptions, DatabaseUrl};
use secrecy::ExposeSecret as _;

use crate::composition;
use crate::failure::{CommandError, CommandResult};
use crate::restore::require_alone;
use crate::say;
use crate::settings::SandboxSettings;

/// Makes a SQLite file a sandbox, and copies it into another file.
pub(crate) fn convert(file: &Path, into: &Path) -> CommandResult<Vec<SandboxAdministrator>> {
    let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display()))?;
    let open = || Database::open(&url, DatabaseOptions::default());
    let made = convert_database(open()?)?;
    open()?.copy_into(into).map_err(CommandError::store)?;
    Ok(made)
}

/// Makes a PostgreSQL database a sandbox.
pub(crate) fn sandbox(settings: &SandboxSettings) -> CommandResult<()> {
    let mut store = settings.store.clone();
    let url = DatabaseUrl::parse(store.database_url()?.expose_secret())?;
    if url.file().is_some() {
        let reason = "the database is a SQLite file: copy it with `usage-billing backup FILE --sandbox`";
        return Err(CommandError::Setting(reason.to_owned()));
    }
    store.database_connections = 1;
    let database = composition::open_as_it_is(&store)?;
    let name = database.name().map_err(CommandError::store)?;
    if name != settings.confirm {
        let reason =
            format!("--confirm must be the name of the database, which is {name}: it loses its administrators and secrets");
        return Err(CommandError::Setting(reason));
    }
    require_alone(&database, "a live database must not become a sandbox: copy it, and stop all clients of the copy")?;
    say_administrators(&convert_database(database)?)
}

fn convert_database(database: Database) -> CommandResult<Vec<SandboxAdministrator>> {
    let services = composition::offline(database)?;
    let latest = latest_recorded_instant(&services)?;
    Ok(make_sandbox(&composition::at(&services, latest))?)
}

/// Prints the administrators of a new sandbox.
pub(crate) fn say_administrators(administrators: &[SandboxAdministrator]) -> CommandResult<()> {
    for SandboxAdministrator { organization, email, password } in administrators {
        say(&format!("Organization {organization}: log in as {email} with the password {password}"))?;
    }
    Ok(())
}
