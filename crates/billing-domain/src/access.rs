//! Who may do what: administrators, API keys, sessions, scopes. Secrets appear here as digests only.

use std::fmt;

use thiserror::Error;
use uuid::Uuid;

use crate::calendar::Timestamp;
use crate::refs::{AdminRef, ApiKeyRef, OrganizationId};
use crate::text::OneLine;

/// The fewest bytes of an administrator's password; shorter ones are guessed.
pub const MIN_PASSWORD_BYTES: usize = 12;
/// The most bytes of an administrator's password; bcrypt reads no further.
pub const MAX_PASSWORD_BYTES: usize = 72;
/// How long a session lasts at most, in seconds.
pub const SESSION_ABSOLUTE_SECONDS: i64 = 8 * 3600;
/// How long a session lasts without a request, in seconds.
pub const SESSION_IDLE_SECONDS: i64 = 30 * 60;

/// Somebody who has shown who they are, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    organization: OrganizationId,
    actor: Actor,
    scopes: Scopes,
    request_id: Option<RequestId>,
}

impl Principal {
    /// Software that has shown a token of its key.
    pub fn of_key(key: &ApiKey) -> Self {
        Self {
            organization: key.organization,
            actor: Actor::ApiKey(key.api_key_ref),
            scopes: key.scopes.clone(),
            request_id: None,
        }
    }

    /// An administrator who is logged in.
    pub fn of_session(session: &AdminSession) -> Self {
        Self {
            organization: session.organization,
            actor: Actor::Admin(session.admin_ref),
            scopes: Scopes::all(),
            request_id: None,
        }
    }

    /// Whoever runs the service's commands: the database is theirs, so they may do everything in any organization.
    pub fn of_command_line(organization: OrganizationId) -> Self {
        Self { organization, actor: Actor::Service, scopes: Scopes::all(), request_id: None }
    }

    /// The same, with the request that they make.
    pub fn by_request(self, request_id: Option<RequestId>) -> Self {
        Self { request_id, ..self }
    }

    /// The request that they make, where it is one.
    pub const fn request_id(&self) -> Option<&RequestId> {
        self.request_id.as_ref()
    }

    /// Whose data they may see.
    pub const fn organization(&self) -> OrganizationId {
        self.organization
    }

    /// Who they are.
    pub const fn actor(&self) -> Actor {
        self.actor
    }

    /// Whether they have what something needs.
    pub fn has(&self, need: Need) -> bool {
        match need {
            Need::Administrator => !matches!(self.actor, Actor::ApiKey(_)),
            Need::Scope(scope) => self.scopes.allow(scope),
        }
    }
}

/// The most characters of a [`RequestId`].
pub const MAX_REQUEST_ID_CHARS: usize = 128;

/// Names a request, in logs and headers: letters and digits of ASCII, and `. _ : - / + =`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// Reads one; `None` where it can't stand in a log and a header as it is.
    pub fn parse(text: &str) -> Option<Self> {
        let is_taken = (1..=MAX_REQUEST_ID_CHARS).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-' | b'/' | b'+' | b'='));
        is_taken.then(|| Self(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What somebody must have to be let do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// They are a person, or the service itself: no key does, whatever its scopes.
    Administrator,
    /// This scope; an administrator has every one.
    Scope(Scope),
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Administrator => f.write_str("an administrator"),
            Self::Scope(scope) => write!(f, "the scope {}", scope.as_str()),
        }
    }
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Software, by its key.
    ApiKey(ApiKeyRef),
    /// A person.
    Admin(AdminRef),
    /// The service itself: the billing run, and its commands.
    Service,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKey(key) => write!(f, "api_key:{key}"),
            Self::Admin(admin) => write!(f, "admin:{admin}"),
            Self::Service => f.write_str("service"),
        }
    }
}

/// Not the text of an [`Actor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an actor")]
pub struct ActorError;

impl Actor {
    /// Reads what [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// [`ActorError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, ActorError> {
        match text.split_once(':') {
            Some(("api_key", key)) => ApiKeyRef::parse(key).map(Self::ApiKey).map_err(|_| ActorError),
            Some(("admin", admin)) => AdminRef::parse(admin).map(Self::Admin).map_err(|_| ActorError),
            Some(_) => Err(ActorError),
            None if text == "service" => Ok(Self::Service),
            None => Err(ActorError),
        }
    }
}

/// One thing a key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Report usage.
    UsageWrite,
    /// Make and change contracts.
    ContractsWrite,
    /// Make and change customers, entities, usage products, pricings and formats.
    CatalogWrite,
    /// Issue, void and settle documents; run the billing.
    DocumentsWrite,
    /// Read everything.
    Read,
}

impl Scope {
    /// Every scope, in the order they are shown.
    pub const ALL: [Self; 5] = [Self::UsageWrite, Self::ContractsWrite, Self::CatalogWrite, Self::DocumentsWrite, Self::Read];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UsageWrite => "usage:write",
            Self::ContractsWrite => "contracts:write",
            Self::CatalogWrite => "catalog:write",
            Self::DocumentsWrite => "documents:write",
            Self::Read => "read",
        }
    }

    /// By its word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A set of scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// Everything.
    pub fn all() -> Self {
        Self(Scope::ALL.to_vec())
    }

    /// These, each once.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(Scope::ALL.into_iter().filter(|scope| scopes.contains(scope)).collect())
    }

    /// Whether a scope is in it.
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// The scopes, in the order they are shown.
    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
    }
}

/// SHA-256 of a secret: what a store keeps of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretDigest(pub [u8; 32]);

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretDigest(***)")
    }
}

/// A key that software reports with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Reference of the record.
    pub api_key_ref: ApiKeyRef,
    /// Whose it is.
    pub organization: OrganizationId,
    /// The log-in name: 20 characters `A–Z 0–9`.
    pub api_key: String,
    /// Of its password.
    pub password_digest: SecretDigest,
    /// What people call it.
    pub name: Option<OneLine>,
    /// What it may do.
    pub scopes: Scopes,
    /// When it was made.
    pub created_at: Timestamp,
    /// When a token was last issued for it.
    pub last_used_at: Option<Timestamp>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

impl ApiKey {
    /// Whether it still works.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

/// A password's bcrypt hash. Not a secret by itself, but nobody's business.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(***)")
    }
}

/// A person who manages an organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Administrator {
    /// Reference.
    pub admin_ref: AdminRef,
    /// Whose data they manage.
    pub organization: OrganizationId,
    /// Log-in name, in lower case; unique in the installation.
    pub email: OneLine,
    /// Of the password.
    pub password_hash: PasswordHash,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when they can't log in.
    pub disabled_at: Option<Timestamp>,
}

/// An administrator's log-in, found by the digest of the cookie's random id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSession {
    /// Of the id in the cookie.
    pub digest: SecretDigest,
    /// Who logged in.
    pub admin_ref: AdminRef,
    /// Whose data they manage.
    pub organization: OrganizationId,
    /// When.
    pub created_at: Timestamp,
    /// When a request last used it.
    pub last_seen_at: Timestamp,
}

impl AdminSession {
    /// Whether it still works: 8 hours at most, 30 minutes without a request.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at() && now < self.last_seen_at.plus_seconds(SESSION_IDLE_SECONDS)
    }

    /// When it ends at the latest.
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.plus_seconds(SESSION_ABSOLUTE_SECONDS)
    }
}

/// What a bearer token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// The key it was issued for.
    pub api_key_ref: ApiKeyRef,
    /// Whose key that is.
    pub organization: OrganizationId,
    /// Names this token, so that it can be ended alone.
    pub token_id: Uuid,
    /// From when it works.
    pub issued_at: Timestamp,
    /// Until when it works.
    pub expires_at: Timestamp,
}

/// What a signing secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecretPurpose {
    /// Signs bearer tokens.
    BearerToken,
    /// Signs session cookies.
    SessionCookie,
}

/// A secret all replicas share.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret {
    /// Names it in what it signed.
    pub kid: String,
    /// What it is for.
    pub purpose: SecretPurpose,
    /// At least 32 random bytes.
    pub secret: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningSecret({} ***)", self.kid)
    }
}

from_str!(Actor: ActorError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_scopes_and_is_never_an_administrator() {
        let at = Timestamp::parse("2026-01-01T00:00:00Z").expect("an instant");
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let key = |scopes| ApiKey {
            api_key_ref: ApiKeyRef::from_uuid(Uuid::from_u128(2)),
            organization,
            api_key: "KEY".to_owned(),
            password_digest: SecretDigest([0; 32]),
            name: None,
            scopes,
            created_at: at,
            last_used_at: None,
            expires_at: None,
        };
        let session = AdminSession {
            digest: SecretDigest([0; 32]),
            admin_ref: AdminRef::from_uuid(Uuid::from_u128(3)),
            organization,
            created_at: at,
            last_seen_at: at,
        };
        let needs = [Need::Administrator, Need::Scope(Scope::Read), Need::Scope(Scope::UsageWrite)];
        for (principal, expected) in [
            (Principal::of_key(&key(Scopes::of(&[Scope::Read]))), [false, true, false]),
            (Principal::of_key(&key(Scopes::all())), [false, true, true]),
            (Principal::of_session(&session), [true; 3]),
            (Principal::of_command_line(organization), [true; 3]),
        ] {
            assert_eq!(needs.map(|need| principal.has(need)), expected, "{}", principal.actor());
            assert_eq!(principal.organization(), organization);
        }
    }
}
