//! API keys: how they are made, listed, rotated and deleted, and when they were used.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing_domain::access::{ApiKey, Principal, Scopes};
use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, Insertion, KeyUse, Tx, transact};
use billing_domain::refs::{ApiKeyRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// How often a fresh log-in name may collide before something else must be wrong.
const MAX_KEY_ATTEMPTS: u32 = 5;
/// An hour, in seconds.
const HOUR_SECONDS: i64 = 3600;
/// How often a key's last use is written at most, in seconds: not once per request.
const USE_WRITTEN_EVERY_SECONDS: i64 = 60;
/// Of as many keys a server knows the last use at a time. Of more it isn't noted before others were forgotten.
const MAX_USED_KEYS: usize = 10_000;
/// Uses written in one transaction: the writer of usage doesn't wait long.
const USES_PER_TRANSACTION: usize = 200;

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
    check_in_future(request.expires_at, services.now())?;
    transact(&*services.store, Access::Write, |tx| {
        let made = insert_key(services, tx, organization, &request)?;
        record_audit_event(
            tx,
            services,
            AuditContext::of(principal),
            AuditAction::Create,
            AuditChange::Made(AuditSubject::ApiKey(&made.key)),
        )?;
        Ok(made)
    })
}

/// Stores a key with a name and a password of its own.
fn insert_key(
    services: &Services,
    tx: &mut dyn Tx,
    organization: OrganizationId,
    request: &KeyRequest,
) -> UseCaseResult<GeneratedKey> {
    for _ in 0..MAX_KEY_ATTEMPTS {
        let made = services.keys.new_key()?;
        let key = ApiKey {
            api_key_ref: ApiKeyRef::from_uuid(services.ids.new_id()),
            organization,
            api_key: made.api_key,
            password_digest: made.digest,
            name: request.name.clone(),
            scopes: request.scopes.clone(),
            created_at: services.now(),
            last_used_at: None,
            expires_at: request.expires_at,
            successor: None,
        };
        if tx.insert_api_key(&key)? == Insertion::Done {
            return Ok(GeneratedKey { key, password: made.password });
        }
    }
    Err(UseCaseError::AlreadyExists { thing: ResourceKind::ApiKey, field: "api_key" })
}

/// How a key is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// How long the key goes on working beside its successor, in hours.
    pub overlap_hours: u16,
    /// When the successor stops working; where nobody says so, after as long as the key was made for.
    pub expires_at: Option<Timestamp>,
}

/// A key that gave its place to another.
#[derive(Clone, Debug)]
pub struct RotatedKey {
    /// As it is now.
    pub old: ApiKey,
    /// What takes its place.
    pub successor: GeneratedKey,
}

/// Makes a key of the same name that may do the same, and ends the one before after a while.
///
/// # Errors
/// [`UseCaseError::Unknown`] when there is no such key, [`UseCaseError::Invalid`] when the successor would be expired already, and
/// [`UseCaseError::Conflict`] for a key that is expired or has a successor.
pub fn rotate_key(
    services: &Services,
    principal: &Principal,
    api_key_ref: ApiKeyRef,
    rotation: Rotation,
) -> UseCaseResult<RotatedKey> {
    let organization = allow(principal, UseCase::RotateKey)?;
    let now = services.now();
    check_in_future(rotation.expires_at, now)?;
    transact(&*services.store, Access::Write, |tx| {
        let present = tx.hold_api_key(organization, api_key_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::ApiKey))?;
        if let Some(successor) = present.successor {
            let detail = format!("the API key has a successor already, {successor}: rotate that one");
            return Err(UseCaseError::Conflict { code: "key_rotated", detail });
        }
        if !present.is_live(now) {
            let detail = "the API key is expired: make a new one with POST /auth/keys/generate".to_owned();
            return Err(UseCaseError::Conflict { code: "key_expired", detail });
        }
        let expires_at = rotation.expires_at.or_else(|| present.successors_end(now));
        let request = KeyRequest { name: present.name.clone(), scopes: present.scopes.clone(), expires_at };
        let successor = insert_key(services, tx, organization, &request)?;
        let mut old = present.clone();
        old.rotate_to(successor.key.api_key_ref, now.plus_seconds(i64::from(rotation.overlap_hours) * HOUR_SECONDS));
        tx.update_api_key(&old)?;
        let change = AuditChange::From(AuditSubject::ApiKey(&present), AuditSubject::ApiKey(&old));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::Rotate, change)?;
        Ok(RotatedKey { old, successor })
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
        let deleted = tx.delete_api_key(organization, api_key_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::ApiKey))?;
        record_audit_event(
            tx,
            services,
            AuditContext::of(principal),
            AuditAction::Delete,
            AuditChange::Gone(AuditSubject::ApiKey(&deleted)),
        )
    })
}

fn check_in_future(expires_at: Option<Timestamp>, now: Timestamp) -> UseCaseResult<()> {
    if expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Violations::one(&["expires_at"], "out_of_range", "must lie in the future").into());
    }
    Ok(())
}

/// When keys were used last: kept in memory, off the way of the requests, and written once in a while.
#[derive(Debug, Default)]
pub struct KeyUses(Mutex<BTreeMap<ApiKeyRef, Used>>);

#[derive(Clone, Copy, Debug)]
struct Used {
    organization: OrganizationId,
    at: Timestamp,
    written: Option<Timestamp>,
}

impl Used {
    fn is_to_be_written(&self, now: Timestamp) -> bool {
        self.written.is_none_or(|written| written < self.at && written.plus_seconds(USE_WRITTEN_EVERY_SECONDS) <= now)
    }
}

impl KeyUses {
    /// Notes that a request came with a key, or a token of it, just now.
    pub fn note(&self, services: &Services<'_>, organization: OrganizationId, api_key_ref: ApiKeyRef) {
        let at = services.now();
        let mut kept = self.kept();
        let is_full = kept.len() >= MAX_USED_KEYS;
        match kept.get_mut(&api_key_ref) {
            Some(used) => used.at = at,
            None if is_full => {}
            None => drop(kept.insert(api_key_ref, Used { organization, at, written: None })),
        }
    }

    /// Writes the last uses, each key's once a minute at most; what can't be written now is written the next time. At the end of a
    /// process, `all` of them.
    ///
    /// # Errors
    /// [`UseCaseError::Store`].
    pub fn write(&self, services: &Services<'_>, all: bool) -> UseCaseResult<()> {
        let now = services.now();
        // In one order, so that servers that write the same rows don't wait for each other.
        let due: Vec<KeyUse> = {
            let kept = self.kept();
            let due = kept.iter().filter(|(_, used)| used.is_to_be_written(now) || all && used.written != Some(used.at));
            due.map(|(key, used)| KeyUse { organization: used.organization, api_key_ref: *key, at: used.at }).collect()
        };
        for uses in due.chunks(USES_PER_TRANSACTION) {
            transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.touch_api_keys(uses)?))?;
            let mut kept = self.kept();
            for KeyUse { api_key_ref, at, .. } in uses {
                if let Some(used) = kept.get_mut(api_key_ref) {
                    used.written = Some(*at);
                }
            }
        }
        let is_needed = |used: &Used| {
            used.written.is_none_or(|written| written < used.at || written.plus_seconds(USE_WRITTEN_EVERY_SECONDS) > now)
        };
        self.kept().retain(|_, used| is_needed(used));
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<ApiKeyRef, Used>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
