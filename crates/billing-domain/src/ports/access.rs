//! Organizations, and who may do what in them.

use uuid::Uuid;

use super::{Insertion, StoreResult};
use crate::access::{AdminSession, Administrator, ApiKey, SecretDigest, SecretPurpose, SigningSecret, TokenClaims};
use crate::calendar::Timestamp;
use crate::page::{Page, PageRequest};
use crate::party::Organization;
use crate::refs::{AdminRef, ApiKeyRef, EntityRef, OrganizationId, SessionRef};
use crate::text::OneLine;

/// Organizations.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Organizations {
    /// Stores a new one. `Taken("name")` when the name is in use.
    fn insert_organization(&mut self, organization: &Organization) -> StoreResult<Insertion>;
    /// By identity.
    fn organization(&mut self, id: OrganizationId) -> StoreResult<Option<Organization>>;
    /// By name.
    fn organization_by_name(&mut self, name: &OneLine) -> StoreResult<Option<Organization>>;
    /// How many there are.
    fn count_organizations(&mut self) -> StoreResult<u64>;
    /// Names the entity that bills where nothing else does.
    fn set_default_entity(&mut self, id: OrganizationId, entity_ref: &EntityRef) -> StoreResult<()>;
}

/// Administrators.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Administrators {
    /// Stores a new one. `Taken("email")` when the e-mail is in use, in any organization.
    fn insert_administrator(&mut self, administrator: &Administrator) -> StoreResult<Insertion>;
    /// By e-mail in lower case.
    fn administrator_by_email(&mut self, email: &str) -> StoreResult<Option<Administrator>>;
    /// By reference.
    fn administrator(&mut self, admin_ref: AdminRef) -> StoreResult<Option<Administrator>>;
    /// By e-mail in lower case, held until the transaction ends: whoever else holds it waits, and then finds it as it is.
    fn hold_administrator(&mut self, email: &str) -> StoreResult<Option<Administrator>>;
    /// An organization's, by e-mail.
    fn administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>>;
    /// The same, all of them held until the transaction ends: whoever else holds one waits, and then finds them as they are.
    fn hold_administrators(&mut self, organization: OrganizationId) -> StoreResult<Vec<Administrator>>;
    /// Stores the role, the password's hash and until when it is one for once, the second factor, and since when one is disabled;
    /// what isn't there stays so.
    fn update_administrator(&mut self, administrator: &Administrator) -> StoreResult<()>;
}

/// When a key was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Whose key.
    pub organization: OrganizationId,
    /// Which.
    pub api_key_ref: ApiKeyRef,
    /// When.
    pub at: Timestamp,
}

/// API keys.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait ApiKeys {
    /// Stores a new one. `Taken("api_key")` when the log-in name is in use.
    fn insert_api_key(&mut self, key: &ApiKey) -> StoreResult<Insertion>;
    /// By log-in name, whatever the organization: who asks hasn't shown who they are.
    fn api_key_by_name(&mut self, api_key: &str) -> StoreResult<Option<ApiKey>>;
    /// The keys that tokens were issued for, in the order of the tokens: each its organization's, and none for a token that was
    /// ended.
    fn keys_of_tokens(&mut self, tokens: &[TokenClaims]) -> StoreResult<Vec<Option<ApiKey>>>;
    /// An organization's keys by creation.
    fn api_keys(&mut self, organization: OrganizationId, page: PageRequest) -> StoreResult<Page<ApiKey>>;
    /// By reference, held until the transaction ends: whoever else holds it waits, and then finds it as it is.
    fn hold_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>>;
    /// Stores when a key ends and what takes its place; what isn't there stays so.
    fn update_api_key(&mut self, key: &ApiKey) -> StoreResult<()>;
    /// Notes when keys were used; a later use that is noted already stays.
    fn touch_api_keys(&mut self, uses: &[KeyUse]) -> StoreResult<()>;
    /// Removes a key, and answers what it was; `None` when there is none.
    fn delete_api_key(&mut self, organization: OrganizationId, api_key_ref: ApiKeyRef) -> StoreResult<Option<ApiKey>>;
}

/// Administrators' sessions.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Sessions {
    /// Stores a new one.
    fn insert_session(&mut self, session: &AdminSession) -> StoreResult<()>;
    /// By digest, live or not.
    fn session(&mut self, digest: SecretDigest) -> StoreResult<Option<AdminSession>>;
    /// Notes that a request used it.
    fn touch_session(&mut self, digest: SecretDigest, at: Timestamp) -> StoreResult<()>;
    /// Ends it; ending what isn't there is fine.
    fn delete_session(&mut self, digest: SecretDigest) -> StoreResult<()>;
    /// An administrator's, the newest first, live or not.
    fn sessions(&mut self, admin_ref: AdminRef) -> StoreResult<Vec<AdminSession>>;
    /// Ends one of an administrator; answers whether there was one.
    fn delete_session_of(&mut self, admin_ref: AdminRef, session_ref: SessionRef) -> StoreResult<bool>;
    /// Ends all of an administrator but the one that is kept.
    fn delete_sessions(&mut self, admin_ref: AdminRef, kept: Option<SecretDigest>) -> StoreResult<()>;
    /// Removes those that began before an instant: none of them can be live any more.
    fn purge_sessions(&mut self, began_before: Timestamp) -> StoreResult<()>;
}

/// Bearer tokens ended before their time.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait Tokens {
    /// Ends a token; ending it twice is fine. The entry may go once the token has expired.
    fn revoke_token(&mut self, token_id: Uuid, expires_at: Timestamp) -> StoreResult<()>;
    /// Removes entries of tokens that expired before an instant.
    fn purge_revoked_tokens(&mut self, expired_before: Timestamp) -> StoreResult<()>;
}

/// Secrets that all replicas share.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait SigningSecrets {
    /// Stores a secret. `Taken("kid")` when its name is in use.
    fn insert_signing_secret(&mut self, secret: &SigningSecret) -> StoreResult<Insertion>;
    /// Deletes a secret; one that isn't there is fine.
    fn delete_signing_secret(&mut self, kid: &str) -> StoreResult<()>;
    /// Those of a purpose, newest first.
    fn signing_secrets(&mut self, purpose: SecretPurpose) -> StoreResult<Vec<SigningSecret>>;
}
