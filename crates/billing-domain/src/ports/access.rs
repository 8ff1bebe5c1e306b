//! Organizations, administrators, API keys, sessions, tokens and signing secrets.

use uuid::Uuid;

use super::{Insertion, StoreResult};
use crate::access::{AdminSession, Administrator, ApiKey, SecretDigest, SecretPurpose, SigningSecret, TokenClaims};
use crate::calendar::Timestamp;
use crate::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use crate::party::Organization;
use crate::refs::{AdminRef, ApiKeyRef, EntityRef, OrganizationId, SessionRef};
use crate::text::OneLine;

/// Storage of organizations.
pub trait Organizations {
    /// Stores a new organization. Returns `Taken("name")` when the name is in use.
    fn insert_organization(&mut self, organization: &Organization) -> StoreResult<Insertion>;
    /// Returns an organization by ID.
    fn organization(&mut self, id: OrganizationId) -> StoreResult<Option<Organization>>;
    /// Returns an organization by name.
    fn organization_by_name(&mut self, name: &OneLine) -> StoreResult<Option<Organization>>;
    /// Returns the number of organizations.
    fn count_organizations(&mut self) -> StoreResult<u64>;
    /// Sets the entity that bills when nothing else names an entity. The entity that was the default before last changed at
    /// `at`.
    fn set_default_entity(&mut self, id: OrganizationId, entity_ref: &EntityRef, at: Timestamp) -> StoreResult<()>;
}

/// Storage of administrators.
pub trait Administrators {
    /// Stores a new administrator. Returns `Taken("email")` when the e-mail is in use in any organization.
    fn insert_administrator(&mut self, administrator: &Administrator) -> StoreResult<Insertion>;
    /// Returns an administrator by lowercase e-mail.
    fn administrator_by_email(&mut self, email: &str) -> StoreResult<Option<Administrator>>;
    /// Returns an administrator by reference.
    fn administrator(&mut self, admin_ref: AdminRef) -> StoreResult<Option<Administrator>>;
    /// Locks an administrator, by lowercase e-mail, until the transaction ends. Other lockers wait, then read the current
    /// state.
    fn hold_administrator(&mut self, email: &str) -> StoreResult<Option<Administrator>>;
    /// Returns the administrators of an organization, ordered by e-mail.
    fn administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>>;
    /// Locks all administrators of an organization until the transaction ends. Returns them ordered by e-mail. Other
    /// lockers wait, then read the current state.
    fn hold_administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>>;
    /// Updates these fields of an administrator:
    /// - role
    /// - password hash and the expiry of a one-time password
    /// - second factor
    /// - time of disabling
    ///
    /// Does nothing when the administrator does not exist.
    fn update_administrator(&mut self, administrator: &Administrator) -> StoreResult<()>;
}

/// The time at which an API key was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The organization of the key.
    pub organization: OrganizationId,
    /// The reference of the key.
    pub api_key_ref: ApiKeyRef,
    /// The time of use.
    pub at: Timestamp,
}

/// Storage of API keys.
pub trait ApiKeys {
    /// Stores a new API key. Returns `Taken("api_key")` when the login name is in use.
    fn insert_api_key(&mut self, key: &ApiKey) -> StoreResult<Insertion>;
    /// Returns an API key by login name, in any organization: the caller is not authenticated yet.
    fn api_key_by_name(&mut self, api_key: &str) -> StoreResult<Option<ApiKey>>;
    /// Returns the API keys that the tokens were issued for, in the order of the tokens. Each key is looked up in the
    /// organization of its token. The result is `None` for a revoked token.
    fn keys_of_tokens(&mut self, tokens: &[TokenClaims]) -> StoreResult<Vec<Option<ApiKey>>>;
    /// Returns a page of the API keys that match conditions on the last change. The order may be ascending or descending.
    fn listed_api_keys(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<ApiKey>>;
    /// Returns the API keys of an organization, ordered by creation.
    fn api_keys(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<ApiKey>> {
        self.listed_api_keys(organization, &UpdateFilter::default(), ListSortKey::Created, page)
    }
    /// Locks an API key, by reference, until the transaction ends. Other lockers wait, then read the current state.
    fn hold_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>>;
    /// Updates the expiry and the replacement of an API key. Does nothing when the key does not exist.
    fn update_api_key(&mut self, key: &ApiKey) -> StoreResult<()>;
    /// Records now when API keys were used. An already recorded later use stays.
    fn touch_api_keys(&mut self, uses: &[KeyUse], now: Timestamp) -> StoreResult<()>;
    /// Deletes an API key and returns it, or `None` when the key does not exist.
    fn delete_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>>;
}

/// Storage of administrator sessions.
pub trait Sessions {
    /// Stores a new session.
    fn insert_session(&mut self, session: &AdminSession) -> StoreResult<()>;
    /// Returns a session by digest, also when it has expired.
    fn session(&mut self, digest: SecretDigest) -> StoreResult<Option<AdminSession>>;
    /// Records that the administrator entered the password again.
    fn confirm_session(&mut self, digest: SecretDigest, at: Timestamp) -> StoreResult<()>;
    /// Records that a request used the session.
    fn touch_session(&mut self, digest: SecretDigest, at: Timestamp) -> StoreResult<()>;
    /// Deletes a session. Does nothing when the session does not exist.
    fn delete_session(&mut self, digest: SecretDigest) -> StoreResult<()>;
    /// Returns the sessions of an administrator, newest first, including expired sessions.
    fn sessions(&mut self, admin_ref: AdminRef) -> StoreResult<Vec<AdminSession>>;
    /// Deletes one session of an administrator. Returns whether the session existed.
    fn delete_session_of(&mut self, admin_ref: AdminRef, session_ref: SessionRef) -> StoreResult<bool>;
    /// Deletes all sessions of an administrator except the kept session.
    fn delete_sessions(&mut self, admin_ref: AdminRef, kept: Option<SecretDigest>) -> StoreResult<()>;
    /// Deletes the sessions that began before an instant. All of them have expired.
    fn purge_sessions(&mut self, began_before: Timestamp) -> StoreResult<()>;
}

/// Storage of bearer tokens that were revoked before they expired.
pub trait Tokens {
    /// Revokes a token. Revoking a token twice has no further effect. The entry may be deleted after the token expires.
    fn revoke_token(&mut self, token_id: Uuid, expires_at: Timestamp) -> StoreResult<()>;
    /// Deletes the entries of tokens that expired before an instant.
    fn purge_revoked_tokens(&mut self, expired_before: Timestamp) -> StoreResult<()>;
}

/// Storage of the secrets that all replicas share.
pub trait SigningSecrets {
    /// Stores a secret. Returns `Taken("kid")` when its key ID is in use.
    fn insert_signing_secret(&mut self, secret: &SigningSecret) -> StoreResult<Insertion>;
    /// Deletes a secret. Does nothing when the secret does not exist.
    fn delete_signing_secret(&mut self, kid: &str) -> StoreResult<()>;
    /// Returns the secrets of a purpose, newest first.
    fn signing_secrets(&mut self, purpose: SecretPurpose) -> StoreResult<Vec<SigningSecret>>;
}
