//! `admin`: manages administrators, for operators with access to the database.

use billing_application::Services;
use billing_application::administrators::{
    create_administrator, disable_administrator, enable_administrator, give_role, list_administrators, reset_password,
};
use billing_domain::access::Administrator;
use secrecy::{ExposeSecret, SecretString};

use crate::composition;
use crate::failure::{CommandError, CommandResult};
use crate::say;
use crate::settings::{AdminCommand, AdminSelector, StoreSettings, chosen_secret};

/// Runs an `admin` command. Only `create` creates a missing database.
pub(crate) fn admin(command: AdminCommand) -> CommandResult<()> {
    match command {
        AdminCommand::Create { email, organization, password, password_file, role, store } => {
            let password = chosen_secret("--password", password.as_ref(), password_file.as_ref())?;
            let services = &composition::offline(composition::open_migrated(&store)?)?;
            with_password(services, password, |password| {
                let made = create_administrator(services, &organization, &email, role, password)?;
                Ok(format!("Created administrator {} ({}) with the role {}.", made.email, made.admin_ref, made.role))
            })
        }
        AdminCommand::List { organization, store } => {
            let administrators = list_administrators(&present(&store)?, &organization)?;
            administrators.iter().try_for_each(|administrator| say(&shown(administrator)))
        }
        AdminCommand::Disable(AdminSelector { email, store }) => {
            let disabled = disable_administrator(&present(&store)?, &email)?;
            say(&format!("Disabled administrator {}; all sessions are ended.", disabled.email))
        }
        AdminCommand::Enable(AdminSelector { email, store }) => {
            let enabled = enable_administrator(&present(&store)?, &email)?;
            say(&format!("Enabled administrator {}.", enabled.email))
        }
        AdminCommand::Role { of: AdminSelector { email, store }, role } => {
            let changed = give_role(&present(&store)?, &email, role)?;
            say(&format!("Administrator {} has the role {}; all sessions are ended.", changed.email, changed.role))
        }
        AdminCommand::ResetPassword { of: AdminSelector { email, store }, password, password_file, remove_second_factor } => {
            let password = chosen_secret("--password", password.as_ref(), password_file.as_ref())?;
            let services = &present(&store)?;
            with_password(services, password, |password| {
                let reset = reset_password(services, &email, password, remove_second_factor)?;
                let still = if reset.disabled_at.is_some() { " The log-in stays disabled." } else { "" };
                Ok(format!("Administrator {} has a new password; all sessions are ended.{still}", reset.email))
            })
        }
    }
}

fn present(store: &StoreSettings) -> CommandResult<Services> {
    composition::offline(composition::open_as_it_is(store)?)
}

/// Runs work with the given password, or with a generated password, which is printed once.
fn with_password(
    services: &Services,
    given: Option<SecretString>,
    work: impl FnOnce(&str) -> CommandResult<String>,
) -> CommandResult<()> {
    match given {
        Some(password) => say(&work(password.expose_secret())?),
        None => {
            let password = services.keys.new_secret().map_err(|error| CommandError::Failed(error.to_string()))?;
            say(&work(&password)?)?;
            say(&format!("Password (shown only once): {password}"))
        }
    }
}

/// Formats an administrator: e-mail, reference, role, creation instant and status.
fn shown(administrator: &Administrator) -> String {
    let Administrator { email, admin_ref, role, created_at, disabled_at, second_factor, .. } = administrator;
    let state = disabled_at.map_or("enabled".to_owned(), |since| format!("disabled since {since}"));
    let codes = if second_factor.since().is_some() { ", with a second factor" } else { "" };
    format!("{email}  {admin_ref}  {role}  created {created_at}  {state}{codes}")
}
