//! `secret`: manages secrets that all servers and organizations share, for operators with access to the database.

use billing_application::Services;
use billing_application::secrets::{rotate_secret, shared_secrets_in_use};
use billing_domain::access::SecretPurpose;

use crate::composition;
use crate::failure::CommandResult;
use crate::say;
use crate::settings::{SecretCommand, StoreSettings};

/// Runs a `secret` command.
pub(crate) fn secrets(command: SecretCommand) -> CommandResult<()> {
    match command {
        SecretCommand::List(store) => {
            let services = present(&store)?;
            for purpose in [SecretPurpose::BearerToken, SecretPurpose::SessionCookie] {
                for secret in shared_secrets_in_use(&*services.store, services.machine_now(), purpose)? {
                    say(&format!("{}  {}  created {}", secret.kid, what_for(purpose), secret.created_at))?;
                }
            }
            Ok(())
        }
        SecretCommand::Rotate { purpose, end_present, store } => {
            let made = rotate_secret(&present(&store)?, purpose, end_present)?;
            say(&format!("Created {}, which {}.", made.kid, what_for(purpose)))?;
            say(match (purpose, end_present) {
                (SecretPurpose::BearerToken, false) => {
                    "Servers sign with it in two minutes; tokens that were signed before work until they expire. Those with --jwt-secrets \
                     know these alone."
                }
                (SecretPurpose::BearerToken, true) => {
                    "Servers take it up within half a minute; all tokens that were signed before end then. Those with --jwt-secrets know \
                     these alone."
                }
                (SecretPurpose::SessionCookie | SecretPurpose::SecondFactor, _) => {
                    "Restart all servers: all sessions end with it."
                }
            })
        }
    }
}

fn what_for(purpose: SecretPurpose) -> &'static str {
    match purpose {
        SecretPurpose::BearerToken => "signs bearer tokens",
        SecretPurpose::SessionCookie => "encrypts session cookies",
        SecretPurpose::SecondFactor => "encrypts second factors",
    }
}

fn present(store: &StoreSettings) -> CommandResult<Services> {
    composition::offline(composition::open_as_it_is(store)?)
}
