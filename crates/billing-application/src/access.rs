//! Log-ins, sessions and bearer tokens.

use std::net::IpAddr;

use billing_domain::access::{
    Actor, AdminSession, Administrator, KnownAddresses, Principal, RequestId, SESSION_ABSOLUTE_SECONDS, SecondFactor,
    SecretDigest, SecretPurpose, SigningSecret, TokenClaims,
};
use billing_domain::audit::{AuditAction, AuditActor};
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{Access, KeyUse, PasswordCheck, Tx, transact};
use billing_domain::refs::SessionRef;
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use crate::Services;
use crate::audit::{AuditChange, AuditSubject, record_audit_event, record_audit_event_throttled, was_recorded_recently};
use crate::carry_out::AuditContext;
use crate::error::{UseCaseError, UseCaseResult};
use crate::second_factor::{CodeCheck, CodeKind, count_failed_code, take_code};
use crate::secrets::{hash_new, shared_secrets};

/// The minimum interval between saves of a session's last use, in seconds, so that not every request writes.
const TOUCH_EVERY_SECONDS: i64 = 60;

/// Logs in with an API key and its password, and returns a bearer token.
///
/// # Errors
/// Returns [`UseCaseError::InvalidCredentials`] if the key or password is wrong, or the key is expired.
pub fn log_in_key(services: &Services, api_key: &str, password: &str, request_id: Option<&RequestId>) -> UseCaseResult<String> {
    Ok(services.tokens.sign(&claims_of_key(services, api_key, password, request_id)?)?)
}

/// Logs in like [`log_in_key`], and returns what the token would contain, for a client that sends its key with each request.
///
/// # Errors
/// Returns [`UseCaseError::InvalidCredentials`] if the key or password is wrong, or the key is expired.
pub fn claims_of_key(
    services: &Services,
    api_key: &str,
    password: &str,
    request_id: Option<&RequestId>,
) -> UseCaseResult<TokenClaims> {
    let now = services.machine_now();
    let key = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.api_key_by_name(api_key)?))?;
    let right = services.keys.matches(password, key.as_ref().map(|key| &key.password_digest));
    let key = key.filter(|key| right && key.is_live(now)).ok_or(UseCaseError::InvalidCredentials)?;
    let until_key_expires = key.expires_at.unwrap_or(now.plus_seconds(services.token_lifetime_seconds));
    let claims = TokenClaims {
        api_key_ref: key.api_key_ref,
        organization: key.organization,
        token_id: services.ids.new_id(),
        issued_at: now,
        expires_at: now.plus_seconds(services.token_lifetime_seconds).min(until_key_expires),
    };
    let doer = AuditContext { organization: key.organization, author: AuditActor::ApiKey(key.api_key_ref), request_id };
    transact(&*services.store, Access::Write, |tx| {
        tx.touch_api_keys(&[KeyUse { organization: key.organization, api_key_ref: key.api_key_ref, at: now }], now)?;
        record_audit_event_throttled(tx, services, doer, AuditAction::LogIn, AuditSubject::ApiKey(&key))
    })?;
    Ok(claims)
}

/// A new session of an administrator, with the secret for the cookie. Only the secret's digest is stored.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    /// The administrator.
    pub administrator: Administrator,
    /// The secret that identifies the session.
    pub secret: SessionSecret,
    /// When the session expires at the latest.
    pub expires_at: Timestamp,
}

/// The random ID in a session's cookie.
#[derive(Clone)]
pub struct SessionSecret(pub String);

impl std::fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionSecret(***)")
    }
}

/// The credentials of an administrator.
#[derive(Clone, Copy)]
pub struct AdministratorLogIn<'a> {
    /// The e-mail address.
    pub email: &'a str,
    /// The password.
    pub password: &'a str,
    /// The administrator's own new password, if the current one is a one-time password.
    pub new_password: Option<&'a str>,
    /// A code, if the administrator has a second factor.
    pub code: Option<&'a str>,
    /// The address that the log-in comes from, if it is known.
    pub address: Option<IpAddr>,
    /// The browser's user agent.
    pub user_agent: Option<&'a OneLine>,
    /// The request's ID.
    pub request_id: Option<&'a RequestId>,
}

impl std::fmt::Debug for AdministratorLogIn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdministratorLogIn(***)")
    }
}

/// Logs an administrator in by e-mail and password, and a code if there is a second factor. The slow password hash runs
/// outside any transaction, so that it blocks nobody. If the administrator changes in the meantime, the log-in is tried once
/// more and then rejected.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::InvalidCredentials`] if the e-mail or password is wrong, or the administrator is disabled.
/// - With valid credentials: [`UseCaseError::NewPasswordRequired`], [`UseCaseError::SecondFactorRequired`],
///   [`UseCaseError::InvalidCode`] or [`UseCaseError::SecondFactorLocked`].
pub fn log_in_administrator(services: &Services, log_in: AdministratorLogIn<'_>) -> UseCaseResult<OpenedSession> {
    let email = log_in.email.to_lowercase();
    for _ in 0..LOOKS {
        let found = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.administrator_by_email(&email)?))?;
        let check = services.passwords.check(log_in.password, found.as_ref().map(|admin| &admin.password_hash));
        let Some(admin) = found.filter(|admin| check == PasswordCheck::Right && admin.can_log_in(services.machine_now())) else {
            break;
        };
        let admitted = admit(services, &admin, log_in)?;
        if let Some(opened) = open_session(services, &admin, admitted, log_in)? {
            return Ok(opened);
        }
    }
    Err(UseCaseError::InvalidCredentials)
}

/// The maximum number of attempts of a log-in. Another log-in may change the administrator in between by renewing an outdated
/// hash.
const LOOKS: u32 = 2;

/// An administrator after a log-in, with the kind of code it used.
struct LogInResult {
    administrator: Administrator,
    code: Option<CodeKind>,
    has_new_password: bool,
}

/// Checks what a log-in needs besides the right password.
fn admit(services: &Services, present: &Administrator, log_in: AdministratorLogIn<'_>) -> UseCaseResult<LogInResult> {
    let mut administrator = present.clone();
    let new_password = match (present.one_time_until, log_in.new_password) {
        (Some(_), None) => return Err(UseCaseError::NewPasswordRequired),
        (None, Some(_)) => {
            let reason = "must be omitted, because the password is not a one-time password: change it with POST /auth/password";
            return Err(Violations::one(&["new_password"], "not_allowed", reason).into());
        }
        (_, new_password) => new_password,
    };
    let code = match (&present.second_factor, log_in.code) {
        (SecondFactor::Off | SecondFactor::Enrolled(_), _) => None,
        (SecondFactor::On(_), None) => return Err(UseCaseError::SecondFactorRequired),
        (SecondFactor::On(_), Some(code)) => match take_code(services, &mut administrator, code)? {
            CodeCheck::Accepted(kind) => Some(kind),
            CodeCheck::Refused => {
                let (organization, request_id) = (present.organization, log_in.request_id);
                let doer = AuditContext { organization, author: AuditActor::Nobody, request_id };
                count_failed_code(services, present, code, doer)?;
                return Err(UseCaseError::InvalidCode);
            }
            CodeCheck::Locked => return Err(UseCaseError::SecondFactorLocked),
        },
    };
    if let Some(new_password) = new_password {
        administrator.password_hash = hash_new(services, log_in.password, new_password)?;
        administrator.one_time_until = None;
        administrator.note_update(present, services.now());
    } else if services.passwords.is_outdated(&present.password_hash) {
        // Only a log-in knows the password, so only a log-in can renew an outdated hash. A password that is no longer
        // accepted keeps its hash.
        if let Ok(hash) = services.passwords.hash(log_in.password) {
            administrator.password_hash = hash;
        }
    }
    Ok(LogInResult { administrator, code, has_new_password: new_password.is_some() })
}

/// Returns `None` if the administrator was changed since `present` was loaded.
fn open_session(
    services: &Services,
    present: &Administrator,
    admitted: LogInResult,
    log_in: AdministratorLogIn<'_>,
) -> UseCaseResult<Option<OpenedSession>> {
    let now = services.machine_now();
    let secret = services.keys.new_secret()?;
    let LogInResult { administrator, code, has_new_password } = admitted;
    let address = match log_in.address {
        Some(address) => address_digests(services, &address_keys(services)?, present.email.as_str(), address).into_iter().next(),
        None => None,
    };
    let Administrator { admin_ref, organization, .. } = administrator;
    let session = AdminSession {
        digest: services.keys.digest(&secret),
        session_ref: SessionRef::from_uuid(services.ids.new_id()),
        admin_ref,
        organization,
        created_at: now,
        last_seen_at: now,
        confirmed_at: now,
        user_agent: log_in.user_agent.cloned(),
    };
    let doer = AuditContext { organization, author: AuditActor::Admin(admin_ref), request_id: log_in.request_id };
    let is_open = transact(&*services.store, Access::Write, |tx| {
        let held = tx.hold_administrator(present.email.as_str())?;
        let Some(held) = held.filter(|held| held.equals_except_log_ins(present)) else { return Ok(false) };
        let mut administrator = Administrator { known_addresses: held.known_addresses.clone(), ..administrator.clone() };
        if let Some(address) = address {
            administrator.known_addresses.insert(address);
        }
        // Concurrent log-ins may have tried codes since the code of this one was checked.
        if code == Some(CodeKind::Timed) && matches!(&held.second_factor, SecondFactor::On(source) if source.is_locked()) {
            return Err(UseCaseError::SecondFactorLocked);
        }
        let thing = AuditSubject::Administrator(&administrator);
        if administrator != held {
            tx.update_administrator(&administrator)?;
        }
        if has_new_password {
            tx.delete_sessions(admin_ref, None)?;
            record_audit_event(tx, services, doer, AuditAction::ChangePassword, AuditChange::Unshown(thing))?;
        }
        if code == Some(CodeKind::Recovery) {
            record_audit_event(tx, services, doer, AuditAction::UseRecoveryCode, AuditChange::Unshown(thing))?;
        }
        tx.purge_sessions(now.plus_seconds(-SESSION_ABSOLUTE_SECONDS))?;
        tx.insert_session(&session)?;
        record_audit_event(tx, services, doer, AuditAction::LogIn, AuditChange::Unshown(thing))?;
        Ok::<_, UseCaseError>(true)
    })?;
    let expires_at = session.expires_at();
    Ok(is_open.then_some(OpenedSession { administrator, secret: SessionSecret(secret), expires_at }))
}

/// The addresses from which an administrator logged in, as all servers share them.
pub struct SharedAddresses {
    keys: Vec<SigningSecret>,
    email: String,
    known: KnownAddresses,
}

impl SharedAddresses {
    /// Returns whether the administrator logged in from the address.
    pub fn contains(&self, services: &Services, address: IpAddr) -> bool {
        let digests = address_digests(services, &self.keys, &self.email, address);
        digests.iter().any(|digest| self.known.contains(digest))
    }
}

/// Returns the known addresses of the administrator with an e-mail address. An unknown e-mail address takes the same time.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if they cannot be read.
pub fn known_addresses(services: &Services, email: &str) -> UseCaseResult<SharedAddresses> {
    let email = email.to_lowercase();
    transact(&*services.store, Access::Read, |tx| {
        let keys = tx.signing_secrets(ADDRESS_KEYS)?;
        let known = tx.administrator_by_email(&email)?.map(|administrator| administrator.known_addresses).unwrap_or_default();
        Ok(SharedAddresses { keys, email: email.clone(), known })
    })
}

/// The purpose of the secrets that are the keys of address hashes.
const ADDRESS_KEYS: SecretPurpose = SecretPurpose::SecondFactor;

fn address_keys(services: &Services) -> UseCaseResult<Vec<SigningSecret>> {
    shared_secrets(&*services.store, &*services.keys, services.machine_now(), ADDRESS_KEYS)
}

/// Returns the hash of an address under each key, the newest first. There are few addresses, so without a key, a reader of the
/// database could try them all.
fn address_digests(services: &Services, keys: &[SigningSecret], email: &str, address: IpAddr) -> Vec<SecretDigest> {
    let text = |key: &SigningSecret| format!("{} {email} {address}", String::from_utf8_lossy(&key.secret));
    keys.iter().map(|key| services.keys.digest(&text(key))).collect()
}

/// The name in a failed log-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogInName {
    /// The name of an API key.
    ApiKey(String),
    /// The e-mail address of an administrator.
    Email(String),
}

/// Records an audit event for a failed log-in of an existing key or administrator, at most once a minute. Returns the key or
/// administrator, or `None` if the name does not exist. Callers must not wait for it before they respond, so that response
/// times do not reveal which names exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the event cannot be recorded.
pub fn note_failed_log_in(services: &Services, name: &LogInName, request_id: Option<&RequestId>) -> UseCaseResult<Option<Actor>> {
    // Returns the account and whether its failure is recorded already.
    let noted = |tx: &mut dyn Tx, only_look: bool| -> UseCaseResult<(Option<Actor>, bool)> {
        let (key, administrator);
        let (organization, account, thing) = match name {
            LogInName::ApiKey(name) => {
                key = tx.api_key_by_name(name)?;
                let Some(key) = &key else { return Ok((None, true)) };
                (key.organization, Actor::ApiKey(key.api_key_ref), AuditSubject::ApiKey(key))
            }
            LogInName::Email(email) => {
                administrator = tx.administrator_by_email(&email.to_lowercase())?;
                let Some(administrator) = &administrator else { return Ok((None, true)) };
                let account = Actor::Admin(administrator.admin_ref);
                (administrator.organization, account, AuditSubject::Administrator(administrator))
            }
        };
        if was_recorded_recently(tx, services, organization, AuditAction::FailLogIn, thing)? {
            return Ok((Some(account), true));
        }
        if !only_look {
            let doer = AuditContext { organization, author: AuditActor::Nobody, request_id };
            record_audit_event(tx, services, doer, AuditAction::FailLogIn, AuditChange::Unshown(thing))?;
        }
        Ok((Some(account), false))
    };
    // Check in a read transaction first, so that repeated attempts do not block writers.
    let (account, is_recorded) = transact(&*services.store, Access::Read, |tx| noted(tx, true))?;
    if !is_recorded {
        transact(&*services.store, Access::Write, |tx| noted(tx, false))?;
    }
    Ok(account)
}

/// A valid session with its administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveSession {
    /// The session.
    pub session: AdminSession,
    /// The administrator's current state, so that changed permissions apply from the next request on.
    pub administrator: Administrator,
}

impl LiveSession {
    /// Returns the principal of a request with the session.
    pub fn principal(&self, now: Timestamp) -> Principal {
        Principal::of_administrator(&self.administrator).confirmed(self.session.is_confirmed(now))
    }
}

/// Returns the valid session of a cookie. Saves the session's last use at most once a minute.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the session cannot be read.
pub fn find_session(services: &Services, secret: &str) -> UseCaseResult<Option<LiveSession>> {
    let now = services.machine_now();
    let digest = services.keys.digest(secret);
    let found = transact(&*services.store, Access::Read, |tx| {
        let Some(session) = tx.session(digest)?.filter(|session| session.is_live(now)) else { return Ok(None) };
        let administrator = tx.administrator(session.admin_ref)?.filter(|administrator| administrator.disabled_at.is_none());
        Ok::<_, UseCaseError>(administrator.map(|administrator| LiveSession { session, administrator }))
    })?;
    if found.as_ref().is_some_and(|live| live.session.last_seen_at.plus_seconds(TOUCH_EVERY_SECONDS) <= now) {
        transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.touch_session(digest, now)?))?;
    }
    Ok(found)
}

/// Ends the session of a cookie.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the session cannot be deleted.
pub fn end_session(services: &Services, secret: &str) -> UseCaseResult<()> {
    let digest = services.keys.digest(secret);
    transact(&*services.store, Access::Write, |tx| Ok(tx.delete_session(digest)?))
}

/// Returns the claims of a valid bearer token that is not expired. [`authenticate`] checks whether its API key is still
/// valid.
///
/// # Errors
/// Returns [`UseCaseError::Unauthenticated`] for any other token.
pub fn read_token(services: &Services, token: &str) -> UseCaseResult<TokenClaims> {
    services.tokens.verify(token, services.machine_now()).map_err(|_| UseCaseError::Unauthenticated)
}

/// Returns the principal of a bearer token. Looks the key up every time, so that the tokens of a deleted key end at once on
/// every replica.
///
/// # Errors
/// Returns [`UseCaseError::Unauthenticated`] if the token was revoked, or its key was deleted or is expired.
pub fn authenticate(services: &Services, claims: &TokenClaims) -> UseCaseResult<Principal> {
    let now = services.machine_now();
    let tokens = std::slice::from_ref(claims);
    let mut principals = transact(&*services.store, Access::Glance, |tx| principals_of(tx, tokens, now))?;
    principals.pop().flatten().ok_or(UseCaseError::Unauthenticated)
}

/// Returns the principals of tokens, in the same order. `None` stands for a token that is no longer valid.
pub(crate) fn principals_of(tx: &mut dyn Tx, tokens: &[TokenClaims], now: Timestamp) -> UseCaseResult<Vec<Option<Principal>>> {
    let keys = tx.keys_of_tokens(tokens)?;
    Ok(keys.into_iter().map(|key| key.filter(|key| key.is_live(now)).map(|key| Principal::of_key(&key))).collect())
}

/// Revokes a bearer token. Does nothing if the token is invalid or expired.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the token cannot be revoked.
pub fn end_token(services: &Services, token: &str) -> UseCaseResult<()> {
    let now = services.machine_now();
    let Ok(claims) = services.tokens.verify(token, now) else { return Ok(()) };
    transact(&*services.store, Access::Write, |tx| {
        tx.purge_revoked_tokens(now)?;
        Ok(tx.revoke_token(claims.token_id, claims.expires_at)?)
    })
}
