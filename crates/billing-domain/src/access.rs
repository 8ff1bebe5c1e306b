//! Who may do what: administrators, API keys, sessions, scopes. Secrets appear here as digests only.

use std::fmt;

use thiserror::Error;
use uuid::Uuid;

use crate::calendar::Timestamp;
use crate::refs::{AdminRef, ApiKeyRef, OrganizationId, SessionRef};
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
    role: Option<Role>,
    scopes: Scopes,
    request_id: Option<RequestId>,
}

impl Principal {
    /// Software that has shown a token of its key.
    pub fn of_key(key: &ApiKey) -> Self {
        Self {
            organization: key.organization,
            actor: Actor::ApiKey(key.api_key_ref),
            role: None,
            scopes: key.scopes.clone(),
            request_id: None,
        }
    }

    /// An administrator who is logged in.
    pub fn of_administrator(administrator: &Administrator) -> Self {
        Self {
            organization: administrator.organization,
            actor: Actor::Admin(administrator.admin_ref),
            role: Some(administrator.role),
            scopes: administrator.role.scopes(),
            request_id: None,
        }
    }

    /// Whoever runs the service's commands: the database is theirs, so they may do everything in any organization.
    pub fn of_command_line(organization: OrganizationId) -> Self {
        Self { organization, actor: Actor::Service, role: None, scopes: Scopes::all(), request_id: None }
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

    /// An administrator's role.
    pub const fn role(&self) -> Option<Role> {
        self.role
    }

    /// Whether they have what something needs.
    pub fn has(&self, need: Permission) -> bool {
        match (need, self.actor, self.role) {
            (Permission::Scope(scope), _, _) => self.scopes.allow(scope),
            (Permission::Administrator, Actor::Admin(_), _) | (Permission::Owner, Actor::Service, _) => true,
            (Permission::Owner, Actor::Admin(_), Some(role)) => role == Role::Owner,
            (Permission::Administrator, Actor::ApiKey(_) | Actor::Service, _)
            | (Permission::Owner, Actor::ApiKey(_) | Actor::Admin(_), _) => false,
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
pub enum Permission {
    /// They are a person, whatever their role: it is about their own account.
    Administrator,
    /// They are an owner, or the service itself: no key does, whatever its scopes.
    Owner,
    /// This scope; an administrator has those of their role.
    Scope(Scope),
}

impl Permission {
    /// The least role of an administrator who has it.
    pub fn role(self) -> Role {
        let has = |role: &Role| match self {
            Self::Administrator => true,
            Self::Owner => *role == Role::Owner,
            Self::Scope(scope) => role.scopes().allow(scope),
        };
        Role::ALL.into_iter().find(has).unwrap_or(Role::Owner)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Administrator => f.write_str("an administrator"),
            Self::Owner => f.write_str("an owner"),
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

/// What an administrator may do. Each may do all that the one before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Read everything but who may do what.
    Read,
    /// Issue, void and settle documents, too; run the billing.
    Finance,
    /// Report usage, and make and change catalog and contracts, too.
    Operator,
    /// Manage administrators and API keys, too.
    Owner,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 4] = [Self::Read, Self::Finance, Self::Operator, Self::Owner];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Finance => "finance",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    /// By its word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// What it may do of what keys may.
    pub fn scopes(self) -> Scopes {
        match self {
            Self::Read => Scopes::of(&[Scope::Read]),
            Self::Finance => Scopes::of(&[Scope::Read, Scope::DocumentsWrite]),
            Self::Operator | Self::Owner => Scopes::all(),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
    /// When a request last came with it or a token of it, within about a minute.
    pub last_used_at: Option<Timestamp>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// The key that takes its place.
    pub successor: Option<ApiKeyRef>,
}

/// The longest that a key may go on working beside its successor, in hours.
pub const MAX_OVERLAP_HOURS: u16 = 720;
/// How long it does where nobody says how long, in hours.
pub const DEFAULT_OVERLAP_HOURS: u16 = 24;

impl ApiKey {
    /// Whether it still works.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }

    /// When a successor made now ends, where nobody says when: after as long as this one was made for.
    pub fn successors_end(&self, now: Timestamp) -> Option<Timestamp> {
        let micros = self.expires_at?.as_micros() - self.created_at.as_micros();
        Some(now.plus_seconds(micros / 1_000_000))
    }

    /// Gives its place to another from an instant on; what ends earlier still does.
    pub fn rotate_to(&mut self, successor: ApiKeyRef, at: Timestamp) {
        self.successor = Some(successor);
        self.expires_at = Some(self.expires_at.map_or(at, |ends| ends.min(at)));
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
    /// What they may do.
    pub role: Role,
    /// Of the password.
    pub password_hash: PasswordHash,
    /// Until when the password, which another gave them, lets them set their own; none of a password of their own.
    pub one_time_until: Option<Timestamp>,
    /// What a log-in takes beside the password.
    pub second_factor: SecondFactor,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when they can't log in.
    pub disabled_at: Option<Timestamp>,
}

impl Administrator {
    /// Whether the password works, as far as time goes.
    pub fn can_log_in(&self, now: Timestamp) -> bool {
        self.disabled_at.is_none() && self.one_time_until.is_none_or(|until| now < until)
    }

    /// Whether it is one of those of whom one has to be left.
    pub fn is_enabled_owner(&self) -> bool {
        self.role == Role::Owner && self.disabled_at.is_none()
    }
}

/// How long a password that another was given lets them set their own, in seconds.
pub const ONE_TIME_SECONDS: i64 = 72 * 3600;
/// The most administrators of an organization.
pub const MAX_ADMINISTRATORS: usize = 1000;

/// What a log-in takes beside a password: codes that a device makes of a secret and the time (RFC 6238).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecondFactor {
    /// Nothing.
    Off,
    /// Nothing yet: the secret was shown, and waits for a first code.
    Enrolled(SealedSecret),
    /// A code.
    On(CodeSource),
}

impl SecondFactor {
    /// Since when a log-in takes a code.
    pub const fn since(&self) -> Option<Timestamp> {
        match self {
            Self::Off | Self::Enrolled(_) => None,
            Self::On(source) => Some(source.since),
        }
    }
}

/// What codes are compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSource {
    /// What they are made of.
    pub secret: SealedSecret,
    /// Since when a log-in takes one.
    pub since: Timestamp,
    /// Of which 30 seconds the last code was that was taken, counted since 1970: no earlier one is taken again.
    pub last_step: i64,
    /// Of the codes that help who has lost the device, and weren't used yet.
    pub recovery: Vec<SecretDigest>,
}

/// How many codes help who has lost the device.
pub const RECOVERY_CODES: usize = 10;

/// A secret as it is kept: encrypted.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret(pub Vec<u8>);

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealedSecret(***)")
    }
}

/// What a device makes codes of.
#[derive(Clone, PartialEq, Eq)]
pub struct CodeSecret(pub Vec<u8>);

impl fmt::Debug for CodeSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CodeSecret(***)")
    }
}

/// An administrator's log-in, found by the digest of the cookie's random id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminSession {
    /// Of the id in the cookie.
    pub digest: SecretDigest,
    /// Reference, which lets nobody in.
    pub session_ref: SessionRef,
    /// Who logged in.
    pub admin_ref: AdminRef,
    /// Whose data they manage.
    pub organization: OrganizationId,
    /// When.
    pub created_at: Timestamp,
    /// When a request last used it.
    pub last_seen_at: Timestamp,
    /// What the browser calls itself.
    pub user_agent: Option<OneLine>,
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
    /// Encrypts what second factors are made of.
    SecondFactor,
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

/// After how many seconds every server has taken a new secret up: it signs from then on, so that none is shown what it doesn't know.
pub const SECRET_TAKEN_UP_SECONDS: i64 = 120;
/// How long what a secret signed works at most, in seconds.
pub const MAX_TOKEN_LIFETIME_SECONDS: i64 = 86_400;

/// The secrets of a purpose that are in use at an instant, of those that are stored, newest first: the one that signs, then those
/// that are accepted. That is the newest that all have taken up; where there is none, the oldest. One that was replaced is accepted as long
/// as something may work that it signed.
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
        // Made by a server whose clock is ahead.
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
            created_at: at("2026-01-01T00:00:00Z"),
            disabled_at: None,
        }
    }

    #[test]
    fn keys_have_their_scopes_and_administrators_those_of_their_role() {
        let organization = OrganizationId::from_uuid(Uuid::from_u128(1));
        let mut needs = vec![Permission::Administrator, Permission::Owner];
        needs.extend(Scope::ALL.map(Permission::Scope));
        // Administrator, owner, usage:write, contracts:write, catalog:write, documents:write, read.
        for (principal, expected) in [
            (Principal::of_key(&key(Scopes::of(&[Scope::Read]))), "......r"),
            (Principal::of_key(&key(Scopes::all())), "..uctdr"),
            (Principal::of_administrator(&administrator(Role::Read)), "a.....r"),
            (Principal::of_administrator(&administrator(Role::Finance)), "a....dr"),
            (Principal::of_administrator(&administrator(Role::Operator)), "a.uctdr"),
            (Principal::of_administrator(&administrator(Role::Owner)), "aouctdr"),
            (Principal::of_command_line(organization), ".ouctdr"),
        ] {
            let has = needs.iter().zip("aouctdr".chars()).map(|(need, mark)| if principal.has(*need) { mark } else { '.' });
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
            (Permission::Scope(Scope::CatalogWrite), Role::Operator),
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
}
