//! Who may do what: administrators, API keys, sessions, scopes. Secrets appear here as digests only.

use std::fmt;

use thiserror::Error;
use uuid::Uuid;

use crate::calendar::Timestamp;
use crate::refs::{AdminRef, ApiKeyRef, OrganizationId};
use crate::text::Line;

/// The fewest bytes of an administrator's password; shorter ones are guessed.
pub const MIN_PASSWORD_BYTES: usize = 12;
/// The most bytes of an administrator's password; bcrypt reads no further.
pub const MAX_PASSWORD_BYTES: usize = 72;
/// How long a session lasts at most, in seconds.
pub const SESSION_ABSOLUTE_SECONDS: i64 = 8 * 3600;
/// How long a session lasts without a request, in seconds.
pub const SESSION_IDLE_SECONDS: i64 = 30 * 60;

/// Somebody who has shown who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Whose data they may see.
    pub organization: OrganizationId,
    /// Who they are.
    pub actor: Actor,
    /// What they may do.
    pub scopes: Scopes,
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// Software, by its key.
    ApiKey(ApiKeyRef),
    /// A person.
    Admin(AdminRef),
    /// The service itself: the billing run.
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
    pub name: Option<Line>,
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
    pub email: Line,
    /// Of the password.
    pub password_hash: PasswordHash,
    /// When it was made.
    pub created_at: Timestamp,
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
