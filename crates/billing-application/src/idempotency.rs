//! Idempotent requests, which are executed once however often they are sent.
//!
//! One transaction locks the key, executes the use case and stores the response. A duplicate therefore finds a complete
//! result or nothing, also after a crash or on another server. Rejected requests are not stored, because they change nothing.
//! They can be corrected and sent again with the same key.

use std::collections::BTreeSet;
use std::time::Duration;

use billing_domain::access::Principal;
use billing_domain::idempotency::{ANSWER_KEPT_SECONDS, BodyHash, IdempotencyRecord, ScopedIdempotencyKey, StoredResponse};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::OrganizationId;

use crate::basics::purge_in_parts;
use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// The maximum time that a request waits for an in-flight duplicate, on this server and other servers together.
pub const TWIN_WAIT: Duration = Duration::from_secs(5);

/// The approximate number of stored responses deleted in one transaction. The limit keeps locks short.
const PURGED_PER_TRANSACTION: u32 = 1000;

/// A request with an idempotency key.
#[derive(Clone)]
pub struct IdempotentRequest {
    /// The requested use case.
    pub use_case: UseCase,
    /// The key with its scope.
    pub key: ScopedIdempotencyKey,
    /// The hash of the request body.
    pub body: BodyHash,
    /// The maximum time to wait for an in-flight duplicate on another server.
    pub wait: Duration,
    /// For a response with a secret: a secret that only its permitted readers have. The stored response is encrypted with it.
    pub sealed_for: Option<String>,
}

/// Locks a key until the transaction ends. Returns the stored response if the request was executed before.
pub(crate) fn lock_key(
    tx: &mut dyn Tx,
    services: &Services,
    organization: OrganizationId,
    request: &IdempotentRequest,
) -> UseCaseResult<Option<StoredResponse>> {
    if !tx.hold_key(organization, &request.key, request.wait)? {
        return Err(UseCaseError::RequestInProgress);
    }
    let since = services.machine_now().plus_seconds(-ANSWER_KEPT_SECONDS);
    let kept = tx.idempotency_record(organization, &request.key, since)?;
    kept.map(|kept| repeat(services, organization, request, kept)).transpose()
}

/// Stores the response to a request whose key is locked.
pub(crate) fn save_response(
    tx: &mut dyn Tx,
    services: &Services,
    organization: OrganizationId,
    request: &IdempotentRequest,
    answer: StoredResponse,
) -> UseCaseResult<()> {
    let sealed = match &request.sealed_for {
        None => answer,
        Some(secret) => StoredResponse(services.sealer.seal(secret, &request.key.place(organization), &answer.0)?),
    };
    let kept = IdempotencyRecord { body: request.body, answer: sealed, kept_at: services.machine_now() };
    Ok(tx.save_idempotency_record(organization, &request.key, &kept)?)
}

/// The keys of requests that are executed in one transaction.
#[derive(Default)]
pub(crate) struct IdempotencyKeyLocks(BTreeSet<(OrganizationId, ScopedIdempotencyKey)>);

impl IdempotencyKeyLocks {
    /// Locks a key until the transaction ends, without waiting for an in-flight duplicate. Returns the stored response if the
    /// request was executed before.
    ///
    /// # Errors
    /// Returns [`UseCaseError::RequestInProgress`] if a duplicate is in flight, in this transaction or another.
    pub(crate) fn lock_key(
        &mut self,
        tx: &mut dyn Tx,
        services: &Services,
        organization: OrganizationId,
        request: &IdempotentRequest,
    ) -> UseCaseResult<Option<StoredResponse>> {
        if !self.0.insert((organization, request.key.clone())) {
            return Err(UseCaseError::RequestInProgress);
        }
        lock_key(tx, services, organization, &IdempotentRequest { wait: Duration::ZERO, ..request.clone() })
    }
}

/// Returns the stored response of a request that was executed before. Only opens a read transaction.
///
/// # Errors
/// Returns the errors of [`carry_out`](crate::carry_out::carry_out) for stored responses.
pub fn find_stored_response(
    services: &Services,
    principal: &Principal,
    request: &IdempotentRequest,
) -> UseCaseResult<Option<StoredResponse>> {
    let organization = allow(principal, request.use_case)?;
    let since = services.machine_now().plus_seconds(-ANSWER_KEPT_SECONDS);
    let kept = transact(&*services.store, Access::Read, |tx| {
        Ok::<_, UseCaseError>(tx.idempotency_record(organization, &request.key, since)?)
    })?;
    kept.map(|kept| repeat(services, organization, request, kept)).transpose()
}

fn repeat(
    services: &Services,
    organization: OrganizationId,
    request: &IdempotentRequest,
    kept: IdempotencyRecord,
) -> UseCaseResult<StoredResponse> {
    if kept.body != request.body {
        return Err(UseCaseError::IdempotencyKeyReuse);
    }
    match &request.sealed_for {
        None => Ok(kept.answer),
        Some(secret) => {
            let opened = services.sealer.open(secret, &request.key.place(organization), &kept.answer.0);
            Ok(StoredResponse(opened.ok_or_else(shown_once)?))
        }
    }
}

fn shown_once() -> UseCaseError {
    let detail = "this request was carried out, and its secret is shown again only to the session or API key that sent it; \
                  delete what it made and send it again under a new Idempotency-Key";
    UseCaseError::Conflict { code: "secret_shown_once", detail: detail.to_owned() }
}

/// Deletes expired responses of every organization. Returns the number of deleted responses.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the responses cannot be deleted.
pub fn forget_old_answers(services: &Services) -> UseCaseResult<u64> {
    let before = services.machine_now().plus_seconds(-ANSWER_KEPT_SECONDS);
    purge_in_parts(services, PURGED_PER_TRANSACTION, |tx, limit| tx.purge_kept_requests(before, limit))
}
