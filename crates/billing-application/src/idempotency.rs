//! Requests that are carried out once, however often they are sent.
//!
//! The caller's key is held, the use case carried out and its answer kept in one transaction, so that a repeat finds
//! all of it or nothing: after a crash, and from another server. What a use case refuses isn't kept: it has changed
//! nothing, and may be mended and sent again under its key.

use std::collections::BTreeSet;
use std::time::Duration;

use billing_domain::access::Principal;
use billing_domain::idempotency::{
    ANSWER_KEPT_SECONDS, BodyHash, IdempotencyRecord, IdempotentResponse, ScopedIdempotencyKey, StoredResponse,
};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::OrganizationId;

use crate::error::{UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// How long a request waits for its twin, here and on another server together.
pub const TWIN_WAIT: Duration = Duration::from_secs(5);

/// Old answers forgotten in one transaction, about: nobody waits long for it.
const PURGED_PER_TRANSACTION: u32 = 1000;

/// A request that names itself, so that its repeats are known.
#[derive(Clone)]
pub struct IdempotentRequest {
    /// What it asks for.
    pub use_case: UseCase,
    /// Where it was sent, and under which key.
    pub key: ScopedIdempotencyKey,
    /// What it says.
    pub body: BodyHash,
    /// How long to wait for a twin on another server.
    pub wait: Duration,
    /// For an answer that holds a secret: what only the one who may read it again has. The answer is kept sealed then.
    pub sealed_for: Option<String>,
}

/// Carries a request out, unless that was done under its key already, and answers what was answered then.
/// `work` is called in the transaction that is open, and may be called again after a conflict with others.
///
/// # Errors
/// The work's own, and then nothing is kept; [`UseCaseError::IdempotencyKeyReuse`] for a key that named another
/// request; [`UseCaseError::RequestInProgress`] when a twin took too long; [`UseCaseError::Conflict`]
/// `secret_shown_once` for a sealed answer that another must not read.
pub fn execute_once<T>(
    services: &Services<'_>,
    principal: &Principal,
    request: &IdempotentRequest,
    render: impl Fn(T) -> UseCaseResult<StoredResponse>,
    mut work: impl FnMut(&Services<'_>, &Principal) -> UseCaseResult<T>,
) -> UseCaseResult<IdempotentResponse> {
    let organization = allow(principal, request.use_case)?;
    transact(&*services.store, Access::Write, |tx| {
        if let Some(answer) = hold(tx, services, organization, request, request.wait)? {
            return Ok(IdempotentResponse { answer, is_repeat: true });
        }
        let answer = render(services.in_transaction(tx, |services| work(services, principal))?)?;
        save_response(tx, services, organization, request, answer.clone())?;
        Ok(IdempotentResponse { answer, is_repeat: false })
    })
}

/// Holds a request's key until the transaction ends; answers what it was answered, where it was carried out before.
fn hold(
    tx: &mut dyn Tx,
    services: &Services<'_>,
    organization: OrganizationId,
    request: &IdempotentRequest,
    wait: Duration,
) -> UseCaseResult<Option<StoredResponse>> {
    if !tx.hold_key(organization, &request.key, wait)? {
        return Err(UseCaseError::RequestInProgress);
    }
    let since = services.now().plus_seconds(-ANSWER_KEPT_SECONDS);
    let kept = tx.idempotency_record(organization, &request.key, since)?;
    kept.map(|kept| repeat(services, organization, request, kept)).transpose()
}

/// Keeps the answer to a request whose key is held.
pub(crate) fn save_response(
    tx: &mut dyn Tx,
    services: &Services<'_>,
    organization: OrganizationId,
    request: &IdempotentRequest,
    answer: StoredResponse,
) -> UseCaseResult<()> {
    let sealed = match &request.sealed_for {
        None => answer,
        Some(secret) => StoredResponse(services.sealer.seal(secret, &request.key.place(organization), &answer.0)?),
    };
    let kept = IdempotencyRecord { body: request.body, answer: sealed, kept_at: services.now() };
    Ok(tx.save_idempotency_record(organization, &request.key, &kept)?)
}

/// The keys of requests that are carried out in one transaction.
#[derive(Default)]
pub(crate) struct IdempotencyKeyLocks(BTreeSet<(OrganizationId, ScopedIdempotencyKey)>);

impl IdempotencyKeyLocks {
    /// Holds a request's key until the transaction ends, without waiting for a twin; answers what the request was answered, where
    /// it was carried out before.
    ///
    /// # Errors
    /// [`UseCaseError::RequestInProgress`] while a twin is carried out, in the same transaction or another.
    pub(crate) fn lock_key(
        &mut self,
        tx: &mut dyn Tx,
        services: &Services<'_>,
        organization: OrganizationId,
        request: &IdempotentRequest,
    ) -> UseCaseResult<Option<StoredResponse>> {
        if !self.0.insert((organization, request.key.clone())) {
            return Err(UseCaseError::RequestInProgress);
        }
        hold(tx, services, organization, request, Duration::ZERO)
    }
}

/// Carries a request out: [`execute_once`] under its key, where it has one. What `work` needs is made ready by `prepare`, outside of
/// a transaction, and only for a request that wasn't carried out before.
///
/// # Errors
/// As [`execute_once`], and what `prepare` answers.
pub fn prepare_and_execute_once<P, T>(
    services: &Services<'_>,
    principal: &Principal,
    request: Option<&IdempotentRequest>,
    prepare: impl FnOnce(&Services<'_>, &Principal) -> UseCaseResult<P>,
    mut work: impl FnMut(&Services<'_>, &Principal, &P) -> UseCaseResult<T>,
    render: impl Fn(T) -> UseCaseResult<StoredResponse>,
) -> UseCaseResult<IdempotentResponse> {
    let Some(request) = request else {
        let prepared = prepare(services, principal)?;
        return Ok(IdempotentResponse { answer: render(work(services, principal, &prepared)?)?, is_repeat: false });
    };
    if let Some(answer) = find_stored_response(services, principal, request)? {
        return Ok(IdempotentResponse { answer, is_repeat: true });
    }
    let prepared = prepare(services, principal)?;
    execute_once(services, principal, request, render, |services, principal| work(services, principal, &prepared))
}

/// The answer to a request that was carried out under its key already, without keeping a writer busy.
///
/// # Errors
/// As [`execute_once`].
pub fn find_stored_response(
    services: &Services<'_>,
    principal: &Principal,
    request: &IdempotentRequest,
) -> UseCaseResult<Option<StoredResponse>> {
    let organization = allow(principal, request.use_case)?;
    let since = services.now().plus_seconds(-ANSWER_KEPT_SECONDS);
    let kept = transact(&*services.store, Access::Read, |tx| {
        Ok::<_, UseCaseError>(tx.idempotency_record(organization, &request.key, since)?)
    })?;
    kept.map(|kept| repeat(services, organization, request, kept)).transpose()
}

fn repeat(
    services: &Services<'_>,
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
    let detail = "this request was carried out, and its secret is shown again only to the session that sent it; \
                  delete what it made and send it again under a new Idempotency-Key";
    UseCaseError::Conflict { code: "secret_shown_once", detail: detail.to_owned() }
}

/// Forgets the answers that are no longer given again, in every organization; answers how many there were.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn forget_old_answers(services: &Services<'_>) -> UseCaseResult<u64> {
    let before = services.now().plus_seconds(-ANSWER_KEPT_SECONDS);
    let mut forgotten = 0;
    loop {
        let went = transact(&*services.store, Access::Write, |tx| {
            Ok::<_, UseCaseError>(tx.purge_kept_requests(before, PURGED_PER_TRANSACTION)?)
        })?;
        forgotten += went;
        if went < u64::from(PURGED_PER_TRANSACTION) {
            return Ok(forgotten);
        }
    }
}
