//! API keys: creation, lists, rotation, deletion and last use.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use billing_domain::access::{ApiKey, Scopes};
use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::page::{ListRequest, Page};
use billing_domain::ports::{Access, Insertion, KeyUse, transact};
use billing_domain::refs::{ApiKeyRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use crate::Services;
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// The number of attempts to create a unique log-in name. More collisions indicate another problem.
const MAX_KEY_ATTEMPTS: u32 = 5;
/// The length of an hour in seconds.
const HOUR_SECONDS: i64 = 3600;
/// The minimum interval between saves of a key's last use, in seconds, so that not every request writes.
const USE_WRITTEN_EVERY_SECONDS: i64 = 60;
/// The maximum number of keys whose last use a server holds in memory. Uses of further keys are ignored until entries are
/// removed.
const MAX_USED_KEYS: usize = 10_000;
/// The number of uses saved in one transaction. The limit keeps the usage writer from waiting long.
const USES_PER_TRANSACTION: usize = 200;

/// A request to create a key.
#[derive(Clone, Debug)]
pub struct KeyRequest {
    /// The display name.
    pub name: Option<OneLine>,
    /// The permissions of the key.
    pub scopes: Scopes,
    /// When the key expires.
    pub expires_at: Option<Timestamp>,
}

/// A key with its password, which is shown only once.
#[derive(Clone, Debug)]
pub struct GeneratedKey {
    /// The stored record.
    pub key: ApiKey,
    /// The password. Only its digest is stored.
    pub password: String,
}

/// Creates an API key.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] if the expiration is not in the future.
pub fn generate_key(cx: &mut Cx<'_>, request: KeyRequest) -> UseCaseResult<GeneratedKey> {
    check_in_future(request.expires_at, cx.services.machine_now())?;
    let made = insert_key(cx, &request)?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::ApiKey(&made.key)))?;
    Ok(made)
}

/// Stores a key with a new log-in name and password.
fn insert_key(cx: &mut Cx<'_>, request: &KeyRequest) -> UseCaseResult<GeneratedKey> {
    for _ in 0..MAX_KEY_ATTEMPTS {
        let made = cx.services.keys.new_key()?;
        let key = ApiKey {
            api_key_ref: ApiKeyRef::from_uuid(cx.services.ids.new_id()),
            organization: cx.organization,
            api_key: made.api_key,
            password_digest: made.digest,
            name: request.name.clone(),
            scopes: request.scopes.clone(),
            created_at: cx.now,
            last_used_at: None,
            expires_at: request.expires_at,
            successor: None,
            updated_at: cx.now,
        };
        if cx.tx.insert_api_key(&key)? == Insertion::Done {
            return Ok(GeneratedKey { key, password: made.password });
        }
    }
    Err(UseCaseError::AlreadyExists { thing: ResourceKind::ApiKey, field: "api_key" })
}

/// The options of a key rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// How long the old key stays valid, in hours.
    pub overlap_hours: u16,
    /// When the successor expires. Default: the lifetime of the old key from now.
    pub expires_at: Option<Timestamp>,
}

/// A rotated key with its successor.
#[derive(Clone, Debug)]
pub struct RotatedKey {
    /// The old key after the rotation.
    pub old: ApiKey,
    /// The new key.
    pub successor: GeneratedKey,
}

/// Creates a successor with the same name and permissions, and lets the old key expire after the overlap.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the key does not exist.
/// - [`UseCaseError::Invalid`] if the successor's expiration is not in the future.
/// - [`UseCaseError::Conflict`] if the key is expired or already has a successor.
pub fn rotate_key(cx: &mut Cx<'_>, api_key_ref: ApiKeyRef, rotation: Rotation) -> UseCaseResult<RotatedKey> {
    let now = cx.services.machine_now();
    check_in_future(rotation.expires_at, now)?;
    let present = cx.tx.hold_api_key(cx.organization, api_key_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::ApiKey))?;
    if let Some(successor) = present.successor {
        let detail = format!("the API key was already rotated: rotate its successor, {successor}");
        return Err(UseCaseError::Conflict { code: "key_rotated", detail });
    }
    if !present.is_live(now) {
        let detail = "the API key is expired: create a new one with POST /auth/keys/generate".to_owned();
        return Err(UseCaseError::Conflict { code: "key_expired", detail });
    }
    let expires_at = rotation.expires_at.or_else(|| present.successors_end(now));
    let request = KeyRequest { name: present.name.clone(), scopes: present.scopes.clone(), expires_at };
    let successor = insert_key(cx, &request)?;
    let mut old = present.clone();
    old.rotate_to(successor.key.api_key_ref, now.plus_seconds(i64::from(rotation.overlap_hours) * HOUR_SECONDS));
    old.updated_at = cx.now;
    cx.tx.update_api_key(&old)?;
    let change = AuditChange::From(AuditSubject::ApiKey(&present), AuditSubject::ApiKey(&old));
    cx.audit(AuditAction::Rotate, change)?;
    Ok(RotatedKey { old, successor })
}

/// Returns a page of the organization's keys.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the keys cannot be read.
pub fn list_keys(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<ApiKey>> {
    Ok(cx.tx.listed_api_keys(cx.organization, &list.updates, list.by, list.page)?)
}

/// Deletes a key. Its tokens become invalid at once.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the key does not exist.
pub fn delete_key(cx: &mut Cx<'_>, api_key_ref: ApiKeyRef) -> UseCaseResult<()> {
    let deleted = cx.tx.delete_api_key(cx.organization, api_key_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::ApiKey))?;
    cx.audit(AuditAction::Delete, AuditChange::Gone(AuditSubject::ApiKey(&deleted)))
}

fn check_in_future(expires_at: Option<Timestamp>, now: Timestamp) -> UseCaseResult<()> {
    if expires_at.is_some_and(|expires_at| expires_at <= now) {
        return Err(Violations::one(&["expires_at"], "out_of_range", "must be in the future").into());
    }
    Ok(())
}

/// The last uses of keys, held in memory apart from the requests and saved periodically.
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
    /// Records that a request just used a key or one of its tokens.
    pub fn note(&self, services: &Services, organization: OrganizationId, api_key_ref: ApiKeyRef) {
        let at = services.machine_now();
        let mut kept = self.kept();
        let is_full = kept.len() >= MAX_USED_KEYS;
        match kept.get_mut(&api_key_ref) {
            Some(used) => used.at = at,
            None if is_full => {}
            None => drop(kept.insert(api_key_ref, Used { organization, at, written: None })),
        }
    }

    /// Saves the last uses, at most once a minute for each key, or `all` of them when the process ends. Uses that cannot be
    /// saved remain for the next call.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Store`] if a transaction fails.
    pub fn write(&self, services: &Services, all: bool) -> UseCaseResult<()> {
        let now = services.machine_now();
        // All servers save in the same order, so that saves of the same rows do not deadlock.
        let due: Vec<KeyUse> = {
            let kept = self.kept();
            let due = kept.iter().filter(|(_, used)| used.is_to_be_written(now) || all && used.written != Some(used.at));
            due.map(|(key, used)| KeyUse { organization: used.organization, api_key_ref: *key, at: used.at }).collect()
        };
        for uses in due.chunks(USES_PER_TRANSACTION) {
            transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.touch_api_keys(uses, now)?))?;
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
