//! Log-ins, sessions, bearer tokens and API keys.

use billing_domain::access::{
    AdminSession, Administrator, ApiKey, Principal, RequestId, SESSION_ABSOLUTE_SECONDS, Scopes, SecretPurpose, SigningSecret,
    TokenClaims,
};
use billing_domain::audit::{AuditAction, Author};
use billing_domain::calendar::Timestamp;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, Insertion, KeyMaker, PasswordCheck, Store, Tx, transact};
use billing_domain::refs::ApiKeyRef;
use billing_domain::text::OneLine;

use crate::audit::{Audited, Change, Doer, note, note_seldom, was_noted};
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// How often a session's last use is written down at most, in seconds: not once per request.
const TOUCH_EVERY_SECONDS: i64 = 60;
/// How often a fresh log-in name may collide before something else must be wrong.
const MAX_KEY_ATTEMPTS: u32 = 5;

/// Logs software in with an API key and its password, and answers a bearer token.
///
/// # Errors
/// [`UseCaseError::InvalidCredentials`], whatever of the pair is wrong, or expired.
pub fn log_in_key(services: &Services, api_key: &str, password: &str, request_id: Option<&RequestId>) -> UseCaseResult<String> {
    let now = services.now();
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
    let token = services.tokens.sign(&claims)?;
    let doer = Doer { organization: key.organization, author: Author::ApiKey(key.api_key_ref), request_id };
    transact(&*services.store, Access::Write, |tx| {
        tx.touch_api_key(key.organization, key.api_key_ref, now)?;
        note_seldom(tx, services, doer, AuditAction::LogIn, Audited::ApiKey(&key))
    })?;
    Ok(token)
}

/// An administrator's new session, and the random id for the cookie. Only its digest is stored.
#[derive(Clone, Debug)]
pub struct OpenedSession {
    /// Who logged in.
    pub administrator: Administrator,
    /// What finds the session.
    pub secret: SessionSecret,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
}

/// The random id in a session's cookie.
#[derive(Clone)]
pub struct SessionSecret(pub String);

impl std::fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionSecret(***)")
    }
}

/// Logs an administrator in by e-mail and password. The slow hash runs outside any transaction, so that a log-in holds
/// nobody up; whoever was changed meanwhile isn't let in.
///
/// # Errors
/// [`UseCaseError::InvalidCredentials`], whatever of the pair is wrong, or disabled.
pub fn log_in_administrator(
    services: &Services,
    email: &str,
    password: &str,
    request_id: Option<&RequestId>,
) -> UseCaseResult<OpenedSession> {
    let email = email.to_lowercase();
    let found = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.administrator_by_email(&email)?))?;
    let check = services.passwords.check(password, found.as_ref().map(|admin| &admin.password_hash));
    match (found, check) {
        (Some(admin), PasswordCheck::Right) if admin.disabled_at.is_none() => open_session(services, admin, request_id),
        (Some(_) | None, _) => Err(UseCaseError::InvalidCredentials),
    }
}

fn open_session(
    services: &Services,
    administrator: Administrator,
    request_id: Option<&RequestId>,
) -> UseCaseResult<OpenedSession> {
    let now = services.now();
    let secret = services.keys.new_secret()?;
    let Administrator { admin_ref, organization, .. } = administrator;
    let digest = services.keys.digest(&secret);
    let session = AdminSession { digest, admin_ref, organization, created_at: now, last_seen_at: now };
    transact(&*services.store, Access::Write, |tx| {
        if tx.hold_administrator(administrator.email.as_str())?.as_ref() != Some(&administrator) {
            return Err(UseCaseError::InvalidCredentials);
        }
        tx.purge_sessions(now.plus_seconds(-SESSION_ABSOLUTE_SECONDS))?;
        tx.insert_session(&session)?;
        let doer = Doer { organization, author: Author::Admin(admin_ref), request_id };
        note(tx, services, doer, AuditAction::LogIn, Change::Unshown(Audited::Administrator(&administrator)))
    })?;
    Ok(OpenedSession { administrator, secret: SessionSecret(secret), expires_at: session.expires_at() })
}

/// Whom somebody tried to log in as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogInName {
    /// An API key, by its log-in name.
    ApiKey(String),
    /// An administrator.
    Email(String),
}

/// Notes in the audit log that somebody wasn't let in as a key or an administrator that is there: once a minute at most, however
/// often it is tried. Not on the way of the answer, which must take as long for a name that isn't there.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn note_failed_log_in(services: &Services, name: &LogInName, request_id: Option<&RequestId>) -> UseCaseResult<()> {
    let noted = |tx: &mut dyn Tx, only_look: bool| -> UseCaseResult<bool> {
        let (key, administrator);
        let (organization, thing) = match name {
            LogInName::ApiKey(name) => {
                key = tx.api_key_by_name(name)?;
                let Some(key) = &key else { return Ok(true) };
                (key.organization, Audited::ApiKey(key))
            }
            LogInName::Email(email) => {
                administrator = tx.administrator_by_email(&email.to_lowercase())?;
                let Some(administrator) = &administrator else { return Ok(true) };
                (administrator.organization, Audited::Administrator(administrator))
            }
        };
        if was_noted(tx, services, organization, AuditAction::FailLogIn, thing)? {
            return Ok(true);
        }
        if !only_look {
            let doer = Doer { organization, author: Author::Nobody, request_id };
            note(tx, services, doer, AuditAction::FailLogIn, Change::Unshown(thing))?;
        }
        Ok(false)
    };
    // Whoever tries again and again keeps no writer busy.
    if transact(&*services.store, Access::Read, |tx| noted(tx, true))? {
        return Ok(());
    }
    transact(&*services.store, Access::Write, |tx| noted(tx, false)).map(drop)
}

/// The live session behind a cookie's id; its use is noted, at most once a minute.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn find_session(services: &Services, secret: &str) -> UseCaseResult<Option<AdminSession>> {
    let now = services.now();
    let digest = services.keys.digest(secret);
    let found = transact(&*services.store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.session(digest)?))?;
    let Some(session) = found.filter(|session| session.is_live(now)) else { return Ok(None) };
    if session.last_seen_at.plus_seconds(TOUCH_EVERY_SECONDS) <= now {
        transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.touch_session(digest, now)?))?;
    }
    Ok(Some(session))
}

/// Ends the session behind a cookie's id.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn end_session(services: &Services, secret: &str) -> UseCaseResult<()> {
    let digest = services.keys.digest(secret);
    transact(&*services.store, Access::Write, |tx| Ok(tx.delete_session(digest)?))
}

/// What a bearer token says, when it is one of ours and not expired. Whether its key still works is [`authenticate`]'s.
///
/// # Errors
/// [`UseCaseError::Unauthenticated`] for anything else.
pub fn read_token(services: &Services, token: &str) -> UseCaseResult<TokenClaims> {
    services.tokens.verify(token, services.now()).map_err(|_| UseCaseError::Unauthenticated)
}

/// Who a bearer token speaks for. The key is looked up every time, so that a deleted key's tokens end at
/// once, on every replica.
///
/// # Errors
/// [`UseCaseError::Unauthenticated`] for a token that was ended, or whose key is gone or expired.
pub fn authenticate(services: &Services, claims: &TokenClaims) -> UseCaseResult<Principal> {
    let now = services.now();
    let tokens = std::slice::from_ref(claims);
    let mut principals = transact(&*services.store, Access::Glance, |tx| principals_of(tx, tokens, now))?;
    principals.pop().flatten().ok_or(UseCaseError::Unauthenticated)
}

/// Who tokens speak for, in their order; `None` for one that works no more.
pub(crate) fn principals_of(tx: &mut dyn Tx, tokens: &[TokenClaims], now: Timestamp) -> UseCaseResult<Vec<Option<Principal>>> {
    let keys = tx.keys_of_tokens(tokens)?;
    Ok(keys.into_iter().map(|key| key.filter(|key| key.is_live(now)).map(|key| Principal::of_key(&key))).collect())
}

/// Ends one bearer token before its time; a token that isn't valid is ended already.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn end_token(services: &Services, token: &str) -> UseCaseResult<()> {
    let now = services.now();
    let Ok(claims) = services.tokens.verify(token, now) else { return Ok(()) };
    transact(&*services.store, Access::Write, |tx| {
        tx.purge_revoked_tokens(now)?;
        Ok(tx.revoke_token(claims.token_id, claims.expires_at)?)
    })
}

/// The secrets of a purpose that all replicas share, newest first; the first who asks makes one.
///
/// # Errors
/// [`UseCaseError::Store`] or [`UseCaseError::Secret`].
pub fn shared_secrets(
    store: &dyn Store,
    keys: &dyn KeyMaker,
    now: Timestamp,
    purpose: SecretPurpose,
) -> UseCaseResult<Vec<SigningSecret>> {
    let present = transact(store, Access::Read, |tx| Ok::<_, UseCaseError>(tx.signing_secrets(purpose)?))?;
    if !present.is_empty() {
        return Ok(present);
    }
    transact(store, Access::Write, |tx| {
        let kid = match purpose {
            SecretPurpose::BearerToken => "bearer-1",
            SecretPurpose::SessionCookie => "cookie-1",
        };
        // Two of 32 random bytes each: a cookie key needs 64 bytes.
        let secret = format!("{}{}", keys.new_secret()?, keys.new_secret()?).into_bytes();
        let made = SigningSecret { kid: kid.to_owned(), purpose, secret, created_at: now };
        match tx.insert_signing_secret(&made)? {
            Insertion::Done => Ok(vec![made]),
            // Another replica was faster.
            Insertion::Taken(_) => Ok(tx.signing_secrets(purpose)?),
        }
    })
}

/// What a new key is asked to be.
#[derive(Clone, Debug)]
pub struct KeyRequest {
    /// What people call it.
    pub name: Option<OneLine>,
    /// What it may do.
    pub scopes: Scopes,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

/// A key and the password that is shown this once.
#[derive(Clone, Debug)]
pub struct GeneratedKey {
    /// The stored record.
    pub key: ApiKey,
    /// The password; only its digest is stored.
    pub password: String,
}

/// Makes an API key.
///
/// # Errors
/// [`UseCaseError::Invalid`] when it would be expired already.
pub fn generate_key(services: &Services, principal: &Principal, request: KeyRequest) -> UseCaseResult<GeneratedKey> {
    let organization = allow(principal, UseCase::GenerateKey)?;
    let now = services.now();
    if request.expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(billing_domain::violation::Violations::one(&["expires_at"], "out_of_range", "must lie in the future").into());
    }
    transact(&*services.store, Access::Write, |tx| {
        for _ in 0..MAX_KEY_ATTEMPTS {
            let made = services.keys.new_key()?;
            let key = ApiKey {
                api_key_ref: ApiKeyRef::from_uuid(services.ids.new_id()),
                organization,
                api_key: made.api_key,
                password_digest: made.digest,
                name: request.name.clone(),
                scopes: request.scopes.clone(),
                created_at: now,
                last_used_at: None,
                expires_at: request.expires_at,
            };
            if tx.insert_api_key(&key)? == Insertion::Done {
                note(tx, services, Doer::of(principal), AuditAction::Create, Change::Made(Audited::ApiKey(&key)))?;
                return Ok(GeneratedKey { key, password: made.password });
            }
        }
        Err(UseCaseError::AlreadyExists { thing: Thing::ApiKey, field: "api_key" })
    })
}

/// The organization's keys.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn list_keys(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<ApiKey>> {
    let organization = allow(principal, UseCase::ListKeys)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.api_keys(organization, page)?))
}

/// Deletes a key; its tokens end at once.
///
/// # Errors
/// [`UseCaseError::Unknown`] when there is no such key.
pub fn delete_key(services: &Services, principal: &Principal, api_key_ref: ApiKeyRef) -> UseCaseResult<()> {
    let organization = allow(principal, UseCase::DeleteKey)?;
    transact(&*services.store, Access::Write, |tx| {
        let deleted = tx.delete_api_key(organization, api_key_ref)?.ok_or(UseCaseError::Unknown(Thing::ApiKey))?;
        note(tx, services, Doer::of(principal), AuditAction::Delete, Change::Gone(Audited::ApiKey(&deleted)))
    })
}
