//! `key`: manages API keys, for operators with access to the database.

use billing_application::keys::{Rotation, list_keys, rotate_key};
use billing_application::organizations::organization_named;
use billing_application::{Services, UseCase, read, run};
use billing_domain::access::{ApiKey, Principal, Scope};
use billing_domain::calendar::Timestamp;
use billing_domain::page::PageRequest;
use billing_domain::text::OneLine;

use crate::composition;
use crate::failure::{CommandError, CommandResult};
use crate::say;
use crate::settings::{KeyCommand, StoreSettings};

/// Runs a `key` command.
pub(crate) fn keys(command: KeyCommand) -> CommandResult<()> {
    match command {
        KeyCommand::List { organization, store } => {
            let (services, principal) = present(&store, &organization)?;
            all(&services, &principal)?.iter().try_for_each(|key| say(&shown(key)))
        }
        KeyCommand::Rotate { key, overlap_hours, organization, store } => {
            let (services, principal) = present(&store, &organization)?;
            let found = all(&services, &principal)?.into_iter().find(|known| known.api_key == key);
            let found = found.ok_or_else(|| CommandError::Setting("no API key has this log-in name".to_owned()))?;
            let rotation = Rotation { overlap_hours, expires_at: None };
            let rotated = run(&services, &principal, UseCase::RotateKey, |cx| rotate_key(cx, found.api_key_ref, rotation))?;
            let successor = &rotated.successor;
            say(&format!("API key {} ends {}.", rotated.old.api_key, ends(&rotated.old)))?;
            say(&format!(
                "Its successor is {} ({}), which ends {}.",
                successor.key.api_key,
                successor.key.api_key_ref,
                ends(&successor.key)
            ))?;
            say(&format!("Password (shown only once): {}", successor.password))
        }
    }
}

fn present(store: &StoreSettings, organization: &OneLine) -> CommandResult<(Services, Principal)> {
    let services = composition::offline(composition::open_as_it_is(store)?)?;
    let organization = organization_named(&services, organization)?;
    Ok((services, Principal::of_command_line(organization.id)))
}

fn all(services: &Services, principal: &Principal) -> CommandResult<Vec<ApiKey>> {
    let (mut all, mut page) = (Vec::new(), PageRequest::LARGEST);
    loop {
        let part = read(services, principal, UseCase::ListKeys, |cx| list_keys(cx, &page.into()))?;
        if part.items.is_empty() {
            return Ok(all);
        }
        all.extend(part.items);
        page = page.next();
    }
}

/// Formats a key: log-in name, reference, name, scopes, last use and end.
fn shown(key: &ApiKey) -> String {
    let name = key.name.as_ref().map_or("-", OneLine::as_str);
    let scopes = key.scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(",");
    let used = key.last_used_at.map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
    format!("{}  {}  {name}  {scopes}  {used}  ends {}", key.api_key, key.api_key_ref, ends(key))
}

fn ends(key: &ApiKey) -> String {
    key.expires_at.map_or_else(|| "never".to_owned(), |at: Timestamp| format!("at {at}"))
}
