//! Access control: administrators, API keys, sessions, scopes and roles. Passwords and tokens appear as digests only.

mod permission;

use std::fmt;

use thiserror::Error;
use uuid::Uuid;

use crate::calendar::Timestamp;
use crate::refs::{AdminRef, ApiKeyRef, OrganizationId, SessionRef};
use crate::text::OneLine;
pub use permission::Permission;

/// The minimum length of an administrator's password in bytes. Shorter passwords are easy to guess.
pub const MIN_PASSWORD_BYTES: usize = 12;
/// The maximum length of an administrator's password in bytes. Bcrypt ignores further bytes.
pub const MAX_PASSWORD_BYTES: usize = 72;
/// The maximum lifetime of a session, in seconds.
pub const SESSION_ABSOLUTE_SECONDS: i64 = 8 * 3600;
/// The time in seconds after which a session without requests ends.
pub const SESSION_IDLE_SECONDS: i64 = 30 * 60;
/// The time in seconds for which a checked password is enough for operations that could take over an organization.
pub const CONFIRMED_SECONDS: i64 = 5 * 60;

/// An authenticated actor and its organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    organization: OrganizationId,
    actor: Actor,
    role: Option<Role>,
    scopes: Scopes,
    request_id: Option<RequestId>,
    is_confirmed: bool,
}

impl Principal {
    /// Creates the principal of a client that presented a token of this key.
    pub fn of_key(key: &ApiKey) -> Self {
        Self {
            organization: key.organization,
            actor: Actor::ApiKey(key.api_key_ref),
            role: None,
            scopes: key.scopes.clone(),
            request_id: None,
            is_confirmed: true,
        }
    }

    /// Creates the principal of an administrator who is logged in.
    pub fn of_administrator(administrator: &Administrator) -> Self {
        Self {
            organization: administrator.organization,
            actor: Actor::Admin(administrator.admin_ref),
            role: Some(administrator.role),
            scopes: administrator.role.scopes(),
            request_id: None,
            is_confirmed: true,
        }
    }

    /// Creates the principal of the command line. It may do everything in any organization, because its user has database access.
    pub fn of_command_line(organization: OrganizationId) -> Self {
        Self { organization, actor: Actor::Service, role: None, scopes: Scopes::all(), request_id: None, is_confirmed: true }
    }

    /// Returns this principal, of a session whose administrator entered the password recently or not.
    #[must_use]
    pub fn confirmed(self, is_confirmed: bool) -> Self {
        Self { is_confirmed, ..self }
    }

    /// Returns whether the administrator of a session entered the password recently. Other principals need no confirmation.
    pub const fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Returns this principal with the id of its request.
    pub fn by_request(self, request_id: Option<RequestId>) -> Self {
        Self { request_id, ..self }
    }

    /// Returns the id of the principal's request, or `None` outside a request.
    pub const fn request_id(&self) -> Option<&RequestId> {
        self.request_id.as_ref()
    }

    /// Returns the organization whose data the principal may access.
    pub const fn organization(&self) -> OrganizationId {
        self.organization
    }

    /// Returns the actor.
    pub const fn actor(&self) -> Actor {
        self.actor
    }

    /// Returns the role of an administrator, or `None` for other actors.
    pub const fn role(&self) -> Option<Role> {
        self.role
    }

    /// Returns whether the principal has a permission.
    pub fn has(&self, need: Permission) -> bool {
        match (need, self.actor, self.role) {
            (Permission::Scope(_) | Permission::ScopeAndRead(_), _, _) => self.scopes.allow_all(&need.scopes()),
            (Permission::ScopeOrRole(scope, lowest), _, role) => {
                self.scopes.allow(scope) || role.is_some_and(|role| role >= lowest)
            }
            (Permission::Administrator, Actor::Admin(_), _) | (Permission::Owner, Actor::Service, _) => true,
            (Permission::Owner, Actor::Admin(_), Some(role)) => role == Role::Owner,
            (Permission::Administrator, Actor::ApiKey(_) | Actor::Service, _)
            | (Permission::Owner, Actor::ApiKey(_) | Actor::Admin(_), _) => false,
        }
    }
}

/// The maximum length of a [`RequestId`] in characters.
pub const MAX_REQUEST_ID_CHARS: usize = 128;

/// The id of a request in logs and headers: ASCII letters and digits, and `. _ : - / + =`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Box<str>);

impl RequestId {
    /// Parses a request id. Returns `None` if the text isn't safe in logs and headers.
    pub fn parse(text: &str) -> Option<Self> {
        let is_taken = (1..=MAX_REQUEST_ID_CHARS).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-' | b'/' | b'+' | b'='));
        is_taken.then(|| Self(text.into()))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The actor of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A client with an API key.
    ApiKey(ApiKeyRef),
    /// An administrator.
    Admin(AdminRef),
    /// The service itself: its billing runs and commands.
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

/// The error for text that isn't an [`Actor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not an actor")]
pub struct ActorError;

impl Actor {
    /// Parses the output of [`Display`](fmt::Display).
    ///
    /// # Errors
    /// Returns [`ActorError`] for any other text.
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

/// A scope of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Records, changes and deletes usage.
    UsageWrite,
    /// Creates and changes contracts.
    ContractsWrite,
    /// Creates and changes customers, entities, usage products, pricings and formats.
    CatalogWrite,
    /// Issues, voids and settles documents, and starts billing runs.
    DocumentsWrite,
    /// Reads all data.
    Read,
}

impl Scope {
    /// All scopes in display order.
    pub const ALL: [Self; 5] = [Self::UsageWrite, Self::ContractsWrite, Self::CatalogWrite, Self::DocumentsWrite, Self::Read];

    /// Returns the word of the scope in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UsageWrite => "usage:write",
            Self::ContractsWrite => "contracts:write",
            Self::CatalogWrite => "catalog:write",
            Self::DocumentsWrite => "documents:write",
            Self::Read => "read",
        }
    }

    /// Parses the word of a scope. Returns `None` for any other word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }
}

/// A set of scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// Returns a set of all scopes.
    pub fn all() -> Self {
        Self(Scope::ALL.to_vec())
    }

    /// Returns a set of the given scopes, without duplicates.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(Scope::ALL.into_iter().filter(|scope| scopes.contains(scope)).collect())
    }

    /// Returns whether the set contains a scope.
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Returns whether the set contains all of these scopes.
    pub fn allow_all(&self, scopes: &[Scope]) -> bool {
        scopes.iter().all(|scope| self.allow(*scope))
    }

    /// Iterates over the scopes in display order.
    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
    }
}

/// A role of an administrator. Each role includes the permissions of the previous role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads all data except administrators and API keys.
    Read,
    /// Also creates and changes customers and contracts, issues, voids and settles documents, and starts billing runs.
    Finance,
    /// Also records usage, and creates and changes the catalog.
    Operator,
    /// Also manages administrators and API keys.
    Owner,
}

impl Role {
    /// All roles, from the lowest to the highest.
    pub const ALL: [Self; 4] = [Self::Read, Self::Finance, Self::Operator, Self::Owner];

    /// Returns the word of the role in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Finance => "finance",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    /// Parses the word of a role. Returns `None` for any other word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// Returns the scopes of the role.
    pub fn scopes(self) -> Scopes {
        match self {
            Self::Read => Scopes::of(&[Scope::Read]),
            Self::Finance => Scopes::of(&[Scope::Read, Scope::ContractsWrite, Scope::DocumentsWrite]),
            Self::Operator | Self::Owner => Scopes::all(),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The SHA-256 digest of a secret. The store contains only the digest.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretDigest(pub [u8; 32]);

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretDigest(***)")
    }
}

/// An API key of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// The reference of the key.
    pub api_key_ref: ApiKeyRef,
    /// The organization of the key.
    pub organization: OrganizationId,
    /// The user name of the key: 20 characters `A–Z 0–9`.
    pub api_key: String,
    /// The digest of the key's password.
    pub password_digest: SecretDigest,
    /// The display name.
    pub name: Option<OneLine>,
    /// The scopes of the key.
    pub scopes: Scopes,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last request with the key or one of its tokens, accurate to about a minute.
    pub last_used_at: Option<Timestamp>,
    /// The time from which the key is invalid, or `None` if it doesn't expire.
    pub expires_at: Option<Timestamp>,
    /// The key that replaces this key.
    pub successor: Option<ApiKeyRef>,
    /// The time of the last change, also of `last_used_at`.
    pub updated_at: Timestamp,
}

/// The maximum time in hours that a replaced key stays valid beside its successor.
pub const MAX_OVERLAP_HOURS: u16 = 720;
/// The default time in hours that a replaced key stays valid beside its successor.
pub const DEFAULT_OVERLAP_HOURS: u16 = 24;

impl ApiKey {
    /// Returns whether the key is valid at an instant.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// Returns the default expiry of a successor that is created now. The successor gets the lifetime of this key. `None` means no
    /// expiry.
    pub fn successors_end(&self, now: Timestamp) -> Option<Timestamp> {
        let micros = self.expires_at?.as_micros() - self.created_at.as_micros();
        Some(now.plus_seconds(micros / 1_000_000))
    }

    /// Sets the successor and ends this key at `at`, unless it expires earlier.
    pub fn rotate_to(&mut self, successor: ApiKeyRef, at: Timestamp) {
        self.successor = Some(successor);
        self.expires_at = Some(self.expires_at.map_or(at, |ends| ends.min(at)));
    }
}

/// The bcrypt hash of a password. It isn't a secret, but debug output hides it.
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
    /// The reference of the administrator.
    pub admin_ref: AdminRef,
    /// The organization that the administrator manages.
    pub organization: OrganizationId,
    /// The log-in name in lower case, unique in the installation.
    pub email: OneLine,
    /// The role.
    pub role: Role,
    /// The hash of the password.
    pub password_hash: PasswordHash,
    /// The expiry of a one-time password that another administrator set. `None` if the administrator chose the password.
    pub one_time_until: Option<Timestamp>,
    /// The second factor of the log-in.
    pub second_factor: SecondFactor,
    /// The addresses of the last log-ins. Wrong log-ins from elsewhere do not slow down log-ins from these.
    pub known_addresses: KnownAddresses,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time since which the administrator is disabled, or `None`.
    pub disabled_at: Option<Timestamp>,
    /// The time of the last change of what the API shows of the administrator.
    pub updated_at: Timestamp,
}

impl Administrator {
    /// Records the time of the change that led from an earlier state to this one, if the API shows a difference.
    pub fn note_update(&mut self, before: &Self, now: Timestamp) {
        let shown = |state: &Self| {
            (state.email.clone(), state.role, state.second_factor.since(), state.one_time_until, state.disabled_at)
        };
        if shown(self) != shown(before) {
            self.updated_at = now;
        }
    }

    /// Returns whether the administrator is enabled and the password hasn't expired.
    pub fn can_log_in(&self, now: Timestamp) -> bool {
        self.disabled_at.is_none() && self.one_time_until.is_none_or(|until| now < until)
    }

    /// Returns whether two states of an administrator differ at most in what log-ins change: the number of failed codes and the
    /// known addresses. Somebody else who logs in or tries codes must not make the administrator's own request fail.
    pub fn equals_except_log_ins(&self, other: &Self) -> bool {
        let without_log_ins = |state: &Self| {
            let mut state = Self { known_addresses: KnownAddresses::default(), ..state.clone() };
            state.second_factor.forget_failed_codes();
            state
        };
        without_log_ins(self) == without_log_ins(other)
    }

    /// Returns whether the administrator is an enabled owner. An organization must have at least one enabled owner.
    pub fn is_enabled_owner(&self) -> bool {
        self.role == Role::Owner && self.disabled_at.is_none()
    }
}

/// The reason why an e-mail address can't be the log-in name of a new administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "must have only ASCII characters, because letters of other alphabets can look the same: write an international domain in its \
     punycode form, such as xn--bcher-kva.example"
)]
pub struct NonAsciiLogInName;

/// Checks the e-mail address of a new administrator. Otherwise somebody could create an account whose name looks like another
/// one's. Existing administrators with other names can still log in.
///
/// # Errors
/// Returns [`NonAsciiLogInName`] if a character isn't in ASCII.
pub fn check_log_in_name(email: &OneLine) -> Result<(), NonAsciiLogInName> {
    if email.as_str().is_ascii() { Ok(()) } else { Err(NonAsciiLogInName) }
}

/// The validity of a one-time password in seconds.
pub const ONE_TIME_SECONDS: i64 = 72 * 3600;
/// The maximum number of administrators of an organization.
pub const MAX_ADMINISTRATORS: usize = 1000;

/// The second factor of a log-in: time-based one-time codes (RFC 6238).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecondFactor {
    /// Log-in requires no code.
    Off,
    /// Enrollment has started. Log-in requires no code until the first code confirms the secret.
    Enrolled(SealedSecret),
    /// Log-in requires a code.
    On(CodeSource),
}

impl SecondFactor {
    /// Returns the time since which log-in requires a code, or `None` if it doesn't.
    pub const fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Off | Self::Enrolled(_) => None,
            Self::On(source) => Some(source.since),
        }
    }

    /// Resets the number of failed codes, so that codes of the device are accepted again.
    pub fn forget_failed_codes(&mut self) {
        if let Self::On(source) = self {
            source.failed_codes = 0;
        }
    }
}

/// The data that verifies codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSource {
    /// The encrypted secret of the codes.
    pub secret: SealedSecret,
    /// The time since which log-in requires a code.
    pub since: Timestamp,
    /// The 30-second time step of the last accepted code, counted since 1970. Codes of this step or earlier are rejected.
    pub last_step: i64,
    /// The digests of the unused recovery codes.
    pub recovery: Vec<SecretDigest>,
    /// The number of rejected codes of the device since the last accepted code of any kind.
    pub failed_codes: u32,
}

impl CodeSource {
    /// Returns whether codes of the device are rejected because too many failed. Recovery codes are still accepted.
    pub const fn is_locked(&self) -> bool {
        self.failed_codes >= MAX_FAILED_CODES
    }
}

/// The number of rejected codes of a device after which only a recovery code is accepted. Three codes of a million are valid
/// at any time, so a caller who knows the password finds one with a probability of 0.03 %.
pub const MAX_FAILED_CODES: u32 = 100;

/// The number of recovery codes that replace a lost device.
pub const RECOVERY_CODES: usize = 10;

/// An encrypted secret.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Vec<u8>);

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedSecret(***)")
    }
}

/// A secret from which a device generates codes.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeSecret(pub Vec<u8>);

impl fmt::Debug for CodeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeSecret(***)")
    }
}

/// A session of an administrator. The store finds it by the digest of the random id in the cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSession {
    /// The digest of the session id in the cookie.
    pub digest: SecretDigest,
    /// The reference of the session. It doesn't authenticate anyone.
    pub session_ref: SessionRef,
    /// The administrator.
    pub admin_ref: AdminRef,
    /// The organization that the administrator manages.
    pub organization: OrganizationId,
    /// The time of the log-in.
    pub created_at: Timestamp,
    /// The time of the last request.
    pub last_seen_at: Timestamp,
    /// The time at which the administrator last entered the password in this session, at the log-in or later.
    pub confirmed_at: Timestamp,
    /// The user agent of the browser.
    pub user_agent: Option<OneLine>,
}

impl AdminSession {
    /// Returns whether the session is valid at an instant. It lasts at most 8 hours, or 30 minutes without a request.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at() && now < self.last_seen_at.plus_seconds(SESSION_IDLE_SECONDS)
    }

    /// Returns whether the administrator entered the password within the last 5 minutes. A stolen session is therefore not
    /// enough to take over an organization.
    pub fn is_confirmed(&self, now: Timestamp) -> bool {
        now < self.confirmed_at.plus_seconds(CONFIRMED_SECONDS)
    }

    /// Returns the latest time at which the session ends.
    pub fn expires_at(&self) -> Timestamp {
        self.created_at.plus_seconds(SESSION_ABSOLUTE_SECONDS)
    }
}

/// The claims of a bearer token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// The key that the token was issued for.
    pub api_key_ref: ApiKeyRef,
    /// The organization of the key.
    pub organization: OrganizationId,
    /// The id of the token. It allows a single token to be revoked.
    pub token_id: Uuid,
    /// The time from which the token is valid.
    pub issued_at: Timestamp,
    /// The time at which the token expires.
    pub expires_at: Timestamp,
}

/// Keyed hashes of the addresses from which an administrator logged in, from the longest ago log-in to the latest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownAddresses(Vec<SecretDigest>);

impl KnownAddresses {
    /// The maximum number of addresses. Beyond this number, the one whose last log-in was the longest ago is forgotten.
    pub const MAX: usize = 16;

    /// Returns the addresses that a store has kept.
    pub fn new(digests: impl IntoIterator<Item = SecretDigest>) -> Self {
        let mut known = Self::default();
        digests.into_iter().for_each(|digest| known.insert(digest));
        known
    }

    /// Adds the address of a log-in.
    pub fn insert(&mut self, address: SecretDigest) {
        self.0.retain(|known| *known != address);
        if self.0.len() >= Self::MAX {
            self.0.remove(0);
        }
        self.0.push(address);
    }

    /// Returns whether a log-in came from this address.
    pub fn contains(&self, address: &SecretDigest) -> bool {
        self.0.contains(address)
    }

    /// Returns the hashes, from the longest ago log-in to the latest.
    pub fn as_slice(&self) -> &[SecretDigest] {
        &self.0
    }
}

/// The purpose of a signing secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecretPurpose {
    /// Signs bearer tokens.
    BearerToken,
    /// Signs session cookies.
    SessionCookie,
    /// Encrypts the secrets of second factors, and is the key of the hashes of known addresses.
    SecondFactor,
}

/// A secret that all replicas share.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret {
    /// The key id in signed values.
    pub kid: String,
    /// The purpose of the secret.
    pub purpose: SecretPurpose,
    /// At least 32 random bytes.
    pub secret: Vec<u8>,
    /// The time of creation.
    pub created_at: Timestamp,
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningSecret({} ***)", self.kid)
    }
}

/// The time in seconds after which every replica has loaded a new secret. The secret signs only from then on, so that no replica
/// receives a value it can't verify.
pub const SECRET_TAKEN_UP_SECONDS: i64 = 120;
/// The maximum lifetime of a signed value, in seconds.
pub const MAX_TOKEN_LIFETIME_SECONDS: i64 = 86_400;

/// Returns the secrets of one purpose that are in use at an instant. The first secret signs, and all of them are
/// accepted. `stored` is sorted newest first.
///
/// The newest secret that every replica has loaded signs. If no secret is old enough, the oldest signs. A replaced secret is
/// accepted as long as a value that it signed may be valid.
pub fn secrets_in_use(stored: Vec<SigningSecret>, now: Timestamp) -> Vec<SigningSecret> {
    let taken_up = |secret: &SigningSecret| secret.created_at.plus_seconds(SECRET_TAKEN_UP_SECONDS);
    let signing = stored.iter().position(|secret| taken_up(secret) <= now).unwrap_or(stored.len().saturating_sub(1));
    let over = |newer: &SigningSecret| taken_up(newer).plus_seconds(MAX_TOKEN_LIFETIME_SECONDS) <= now;
    let accepted = 1 + stored.windows(2).take_while(|pair| !over(&pair[0])).count();
    let mut used: Vec<_> = stored.into_iter().take(accepted).collect();
    if let Some(newer) = used.get_mut(..=signing) {
        newer.rotate_right(1);
    }
    used
}

from_str!(Actor: ActorError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_name_has_no_letters_that_look_like_others() {
        let checked = |text: &str| check_log_in_name(&OneLine::parse(text).expect("a line"));
        assert_eq!(checked("a+b@xn--bcher-kva.example"), Ok(()));
        // A Cyrillic letter, an umlaut, and the sign of Kelvin, whose lower case is a letter of ASCII.
        for address in ["a@\u{430}cme.example", "a@b\u{fc}cher.example", "\u{212a}@acme.example"] {
            assert_eq!(checked(address), Err(NonAsciiLogInName), "{address}");
        }
    }

    #[test]
    fn a_secret_signs_once_all_know_it_and_is_accepted_as_long_as_it_may_be_shown() {
        let made = at("2026-01-20T12:00:00Z");
        let secret = |kid: &str, seconds| SigningSecret {
            kid: kid.to_owned(),
            purpose: SecretPurpose::BearerToken,
            secret: Vec::new(),
            created_at: made.plus_seconds(seconds),
        };
        let used = |stored: &[(&str, i64)], seconds| {
            let stored = stored.iter().map(|(kid, made)| secret(kid, *made)).collect();
            secrets_in_use(stored, made.plus_seconds(seconds)).into_iter().map(|secret| secret.kid).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(used(&[], 0), "");
        assert_eq!((used(&[("a", 0)], 0), used(&[("a", 0)], 900_000)), ("a".to_owned(), "a".to_owned()));
        let two = [("b", 1000), ("a", 0)];
        assert_eq!(
            (used(&two, 1000), used(&two, 1119), used(&two, 1120)),
            ("a b".to_owned(), "a b".to_owned(), "b a".to_owned())
        );
        assert_eq!((used(&two, 87_519), used(&two, 87_520)), ("b a".to_owned(), "b".to_owned()));
        let three = [("c", 1060), ("b", 1000), ("a", 0)];
        assert_eq!(
            (used(&three, 1100), used(&three, 1130), used(&three, 1180)),
            ("a c b".to_owned(), "b c a".to_owned(), "c b a".to_owned())
        );
        assert_eq!((used(&three, 87_520), used(&three, 87_580)), ("c b".to_owned(), "c".to_owned()));
        // A server whose clock is ahead created the secret.
        assert_eq!(used(&two, -1000), "a b");
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("an instant")
    }

    fn key(scopes: Scopes) -> ApiKey {
        ApiKey {
            api_key_ref: ApiKeyRef::from_uuid(Uuid::from_u128(2)),
            organization: OrganizationId::from_uuid(Uuid::from_u128(1)),
            api_key: "KEY".to_owned(),
            password_digest: SecretDigest([0; 32]),
            name: None,
            scopes,
            created_at: at("2026-01-01T00:00:00Z"),
            last_used_at: None,
            expires_at: None,
            successor: None,
            updated_at: at("2026-01-01T00:00:00Z"),
        }
    }

    fn administrator(role: Role) -> Administrator {
        Administrator {
            admin_ref: AdminRef::from_uuid(Uuid::from_u128(3)),
            organization: OrganizationId::from_uuid(Uuid::from_u128(1)),
            email: OneLine::parse("a@example.com").expect("a line"),
            role,
            password_hash: PasswordHash(String::new()),
            one_time_until: None,
            second_factor: SecondFactor::Off,
            known_addresses: KnownAddresses::default(),
            created_at: at("2026-01-01T00:00:00Z"),
            disabled_at: None,
            updated_at: at("2026-01-01T00:00:00Z"),
        }
    }

    #[test]
    fn keys_have_their_scopes_and_administrators_those_of_their_role() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let mut needs = vec![Permission::Administrator, Permission::Owner];
        needs.extend(Scope::ALL.map(Permission::Scope));
        needs.push(Permission::ScopeAndRead(Scope::CatalogWrite));
        needs.push(Permission::ScopeOrRole(Scope::CatalogWrite, Role::Finance));
        // Administrator, owner, usage:write, contracts:write, catalog:write, documents:write, read, catalog:write with read, and
        // catalog:write or the role finance.
        for (principal, expected) in [
            (Principal::of_key(&key(Scopes::of(&[Scope::Read]))), "......r.."),
            (Principal::of_key(&key(Role::Finance.scopes())), "...c.dr.."),
            (Principal::of_key(&key(Scopes::of(&[Scope::CatalogWrite]))), "....t...f"),
            (Principal::of_key(&key(Scopes::of(&[Scope::CatalogWrite, Scope::Read]))), "....t.rbf"),
            (Principal::of_key(&key(Scopes::all())), "..uctdrbf"),
            (Principal::of_administrator(&administrator(Role::Read)), "a.....r.."),
            (Principal::of_administrator(&administrator(Role::Finance)), "a..c.dr.f"),
            (Principal::of_administrator(&administrator(Role::Operator)), "a.uctdrbf"),
            (Principal::of_administrator(&administrator(Role::Owner)), "aouctdrbf"),
            (Principal::of_command_line(organization), ".ouctdrbf"),
        ] {
            let has = needs.iter().zip("aouctdrbf".chars()).map(|(need, mark)| if principal.has(*need) { mark } else { '.' });
            assert_eq!(has.collect::<String>(), expected, "{} {:?}", principal.actor(), principal.role());
            assert_eq!(principal.organization(), organization);
        }
    }

    #[test]
    fn a_role_may_do_all_that_the_one_before_may_and_a_need_names_the_least_that_has_it() {
        for (less, more) in Role::ALL.iter().zip(&Role::ALL[1..]) {
            assert!(less < more && less.scopes().iter().all(|scope| more.scopes().allow(scope)), "{less} {more}");
        }
        for (need, role) in [
            (Permission::Administrator, Role::Read),
            (Permission::Scope(Scope::Read), Role::Read),
            (Permission::Scope(Scope::DocumentsWrite), Role::Finance),
            (Permission::Scope(Scope::ContractsWrite), Role::Finance),
            (Permission::ScopeOrRole(Scope::CatalogWrite, Role::Finance), Role::Finance),
            (Permission::Scope(Scope::CatalogWrite), Role::Operator),
            (Permission::ScopeAndRead(Scope::DocumentsWrite), Role::Finance),
            (Permission::Owner, Role::Owner),
        ] {
            assert_eq!(need.role(), role, "{need}");
        }
        assert!(Role::ALL.iter().all(|role| Role::parse(role.as_str()) == Some(*role)) && Role::parse("root").is_none());
    }

    #[test]
    fn a_password_that_another_gave_works_for_a_while_and_none_of_who_is_disabled() {
        let own = administrator(Role::Read);
        let given = Administrator { one_time_until: Some(at("2026-01-04T00:00:00Z")), ..own.clone() };
        let disabled = Administrator { disabled_at: Some(at("2026-01-02T00:00:00Z")), ..own.clone() };
        for (administrator, now, expected) in [
            (&own, "2030-01-01T00:00:00Z", true),
            (&given, "2026-01-03T23:59:59Z", true),
            (&given, "2026-01-04T00:00:00Z", false),
            (&disabled, "2026-01-03T00:00:00Z", false),
        ] {
            assert_eq!(administrator.can_log_in(at(now)), expected, "{now}");
        }
    }

    #[test]
    fn a_key_that_gives_way_ends_no_later_than_it_would_have() {
        let successor = ApiKeyRef::from_uuid(Uuid::from_u128(9));
        let overlap_ends = at("2026-02-01T00:00:00Z");
        for (ends, expected) in [
            (None, "2026-02-01T00:00:00Z"),
            (Some("2026-03-01T00:00:00Z"), "2026-02-01T00:00:00Z"),
            (Some("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00Z"),
        ] {
            let mut old = ApiKey { expires_at: ends.map(at), ..key(Scopes::all()) };
            old.rotate_to(successor, overlap_ends);
            assert_eq!((old.expires_at, old.successor), (Some(at(expected)), Some(successor)), "{ends:?}");
        }
        let ninety_days = ApiKey { expires_at: Some(at("2026-04-01T00:00:00Z")), ..key(Scopes::all()) };
        assert_eq!(ninety_days.successors_end(at("2026-02-01T00:00:00Z")), Some(at("2026-05-02T00:00:00Z")));
        assert_eq!(key(Scopes::all()).successors_end(at("2026-02-01T00:00:00Z")), None);
    }

    #[test]
    fn the_latest_sixteen_addresses_are_known_each_once() {
        let digest = |n: u8| SecretDigest([n; 32]);
        let mut known = KnownAddresses::default();
        (0..20).for_each(|n| known.insert(digest(n)));
        known.insert(digest(4));
        assert_eq!(known.as_slice().len(), KnownAddresses::MAX);
        assert_eq!(known.as_slice().last(), Some(&digest(4)), "the latest log-in is last");
        assert!(!known.contains(&digest(3)) && known.contains(&digest(5)) && known.contains(&digest(19)));
    }
}
