//! Runs use cases: checks the permission, replays a stored response, opens the transaction, and stores the response or rolls
//! everything back. This is the same for every operation, so use cases only get a [`Cx`].

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::{Actor, Principal, RequestId};
use billing_domain::audit::AuditActor;
use billing_domain::calendar::Timestamp;
use billing_domain::idempotency::{IdempotentResponse, StoredResponse};
use billing_domain::ledger::receivables::{AccountEntry, ReceivablesAccount};
use billing_domain::ledger::{ContractBook, Entry, IdGenerator};
use billing_domain::limit::LimitValue;
use billing_domain::money::MoneySum;
use billing_domain::ports::{Access, DocumentFilter, StoreError, Tx, attempt, transact};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, CustomerId, OrganizationId};
use billing_domain::warning::Warning;

use crate::error::{UseCaseError, UseCaseResult};
use crate::idempotency::{self, IdempotentRequest};
use crate::limits::tell_levels;
use crate::{Services, UseCase, allow};

/// A request to run a use case.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// The principal who requests it.
    pub principal: &'r Principal,
    /// The use case, which determines the required permission.
    pub use_case: UseCase,
    /// The idempotency key with the hash of the request's body.
    pub key: Option<&'r IdempotentRequest>,
}

/// The organization, actor and request of an action, for the audit log and for records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AuditContext<'a> {
    pub(crate) organization: OrganizationId,
    pub(crate) author: AuditActor,
    pub(crate) request_id: Option<&'a RequestId>,
}

impl<'a> AuditContext<'a> {
    pub(crate) fn of(principal: &'a Principal) -> Self {
        Self {
            organization: principal.organization(),
            author: AuditActor::of(principal.actor()),
            request_id: principal.request_id(),
        }
    }

    /// Returns the context of the service's own scheduled work.
    pub(crate) const fn scheduler(organization: OrganizationId) -> Self {
        Self { organization, author: AuditActor::Scheduler, request_id: None }
    }

    /// Returns the context of command-line commands, which require no login.
    pub(crate) const fn command_line(organization: OrganizationId) -> Self {
        Self { organization, author: AuditActor::CommandLine, request_id: None }
    }
}

/// Records what a use case is about to change, before the change is saved. Dry runs and the undo of an import have a recorder.
pub(crate) trait ChangeRecorder {
    /// Returns whether the changes are rolled back.
    fn is_dry_run(&self) -> bool;

    /// Captures the documents that entries of books affect.
    fn capture_books(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        decided: &[(&ContractBook, &[Entry])],
        now: Timestamp,
    ) -> UseCaseResult<()>;

    /// Captures the documents that entries of an account affect.
    fn capture_account(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        account: &ReceivablesAccount,
        entries: &[AccountEntry],
        now: Timestamp,
    ) -> UseCaseResult<()>;

    /// Captures the first drafts that match a filter and may change.
    fn capture_drafts(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        filter: &DocumentFilter,
        now: Timestamp,
    ) -> UseCaseResult<()>;

    /// Captures the free credit of a customer who has grants, and the drafts that can take of it. `is_new` also captures them for a
    /// customer without grants.
    fn capture_credit(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        customer: CustomerId,
        is_new: bool,
        now: Timestamp,
    ) -> UseCaseResult<()>;

    /// Captures that a contract is created.
    fn capture_contract(&self, contract: ContractKey);
}

/// The context of a use case: its open transaction, the services, and who requested it when.
pub struct Cx<'c> {
    pub(crate) tx: &'c mut dyn Tx,
    pub(crate) services: &'c Services,
    pub(crate) organization: OrganizationId,
    pub(crate) by: Actor,
    pub(crate) now: Timestamp,
    principal: Option<&'c Principal>,
    author: AuditContext<'c>,
    recorder: Option<&'c dyn ChangeRecorder>,
    warnings: Vec<Warning>,
    locks: AccountLocks,
}

/// The unapplied sums of accounts.
pub(crate) type UnappliedSums = BTreeMap<AccountKey, MoneySum>;

/// The customers whose accounts a transaction has locked.
#[derive(Clone, Default)]
struct AccountLocks {
    locked: BTreeSet<CustomerId>,
    /// The watched ones, whose numbers the transaction may have changed. Has the numbers after the last change, if they are known.
    changed: BTreeMap<CustomerId, Option<Vec<LimitValue>>>,
}

impl<'c> Cx<'c> {
    /// Creates the context of a principal's request.
    pub(crate) fn new(tx: &'c mut dyn Tx, services: &'c Services, principal: &'c Principal, now: Timestamp) -> Self {
        let author = AuditContext::of(principal);
        Self { principal: Some(principal), ..Self::of_author(tx, services, author, principal.actor(), now) }
    }

    /// Creates the context of the service's own scheduled work.
    pub(crate) fn of_scheduler(tx: &'c mut dyn Tx, services: &'c Services, organization: OrganizationId, now: Timestamp) -> Self {
        Self::of_author(tx, services, AuditContext::scheduler(organization), Actor::Service, now)
    }

    /// Creates the context of an actor whose permission was checked before. Usage events record no audit events.
    pub(crate) fn of_actor(
        tx: &'c mut dyn Tx,
        services: &'c Services,
        organization: OrganizationId,
        by: Actor,
        now: Timestamp,
    ) -> Self {
        let author = AuditContext { organization, author: AuditActor::of(by), request_id: None };
        Self::of_author(tx, services, author, by, now)
    }

    fn of_author(tx: &'c mut dyn Tx, services: &'c Services, author: AuditContext<'c>, by: Actor, now: Timestamp) -> Self {
        Self {
            tx,
            services,
            organization: author.organization,
            by,
            now,
            principal: None,
            author,
            recorder: None,
            warnings: Vec::new(),
            locks: AccountLocks::default(),
        }
    }

    /// Returns the principal who requested the use case.
    ///
    /// # Errors
    /// Returns [`UseCaseError::InvariantViolation`] for the service's own work.
    pub(crate) fn principal(&self) -> UseCaseResult<&'c Principal> {
        self.principal.ok_or(UseCaseError::InvariantViolation("a use case without a principal"))
    }

    /// Returns organization, actor and request for the audit log and for records.
    pub(crate) const fn author(&self) -> AuditContext<'c> {
        self.author
    }

    /// Returns whether all changes are rolled back at the end.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.recorder.is_some_and(ChangeRecorder::is_dry_run)
    }

    /// Returns the recorder of affected resources.
    pub(crate) const fn recorder(&self) -> Option<&'c dyn ChangeRecorder> {
        self.recorder
    }

    /// Locks all accounts of customers until the transaction ends. Each transaction that writes for a watched customer takes this
    /// lock, so that the decisions about its limits follow one another. Returns the unapplied sums, or `None` if the transaction
    /// locked some of them before and may have changed them.
    pub(crate) fn lock_accounts(&mut self, customers: &[CustomerId]) -> UseCaseResult<Option<UnappliedSums>> {
        let new: Vec<CustomerId> = customers.iter().filter(|customer| !self.locks.locked.contains(customer)).copied().collect();
        if new.is_empty() {
            return Ok(None);
        }
        let sums = self.tx.lock_accounts_of(self.organization, &new)?;
        self.locks.locked.extend(&new);
        Ok((new.len() == customers.len()).then_some(sums))
    }

    /// Does the same for watched customers. Their numbers may change, so [`finish`](Self::finish) notifies the levels that they reach.
    pub(crate) fn watch(&mut self, customers: &[CustomerId]) -> UseCaseResult<()> {
        self.locks.changed.extend(customers.iter().map(|customer| (*customer, None)));
        self.lock_accounts(customers)?;
        Ok(())
    }

    /// Notes the numbers of a watched customer after the last change, so that they need not be read again.
    pub(crate) fn note_numbers(&mut self, customer: CustomerId, numbers: Vec<LimitValue>) {
        self.locks.changed.insert(customer, Some(numbers));
    }

    /// Ends the use case: notifies the levels that numbers of limits reached or left. Call it before the transaction is committed.
    pub(crate) fn finish(&mut self) -> UseCaseResult<()> {
        let changed = std::mem::take(&mut self.locks.changed);
        if changed.is_empty() { Ok(()) } else { tell_levels(self, changed) }
    }

    /// Adds a warning to the response.
    pub(crate) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns the source of identifiers for domain decisions.
    pub(crate) fn ids(&self) -> impl IdGenerator + use<'c> {
        let services = self.services;
        move || services.ids.new_id()
    }

    /// Runs a part of the use case. An error rolls back the writes of this part only.
    pub(crate) fn attempt<T, E: From<StoreError>>(&mut self, mut part: impl FnMut(&mut Cx<'_>) -> Result<T, E>) -> Result<T, E> {
        let recorder = self.recorder;
        self.attempt_with(recorder, &mut part)
    }

    /// Runs a part like [`attempt`](Self::attempt), and tells `recorder` what the part affects.
    pub(crate) fn attempt_with<T, E: From<StoreError>>(
        &mut self,
        recorder: Option<&dyn ChangeRecorder>,
        part: &mut dyn FnMut(&mut Cx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let Self { services, organization, by, now, principal, author, .. } = *self;
        // The locks of a part that is rolled back may be released.
        let locks = &self.locks;
        let (done, warnings, locks) = attempt(self.tx, |tx| {
            let (warnings, locks) = (Vec::new(), locks.clone());
            let mut cx = Cx { tx, services, organization, by, now, principal, author, recorder, warnings, locks };
            let done = part(&mut cx)?;
            Ok::<_, E>((done, cx.warnings, cx.locks))
        })?;
        self.warnings.extend(warnings);
        self.locks = locks;
        Ok(done)
    }
}

/// Runs a use case that changes data, and stores its response under the request's key. A repeated request gets the stored
/// response. `work` is called again after a conflict with other transactions.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Forbidden`] or [`UseCaseError::InsufficientRole`] if the principal lacks the permission.
/// - Any error of the work. No response is stored then.
/// - [`UseCaseError::IdempotencyKeyReuse`] if the key belongs to another request.
/// - [`UseCaseError::RequestInProgress`] if a duplicate is in flight for too long.
/// - [`UseCaseError::Conflict`] `secret_shown_once` if the caller cannot decrypt the stored response.
pub fn carry_out<T>(
    services: &Services,
    request: Request<'_>,
    render: impl Fn(&T) -> StoredResponse,
    mut work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T>,
) -> UseCaseResult<IdempotentResponse> {
    let Request { principal, use_case, key } = request;
    let Some(key) = key else {
        let done = run(services, principal, use_case, work)?;
        return Ok(IdempotentResponse { answer: render(&done), is_repeat: false });
    };
    let organization = allow(principal, use_case)?;
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        if let Some(answer) = idempotency::lock_key(tx, services, organization, key)? {
            return Ok(IdempotentResponse { answer, is_repeat: true });
        }
        let answer = render(&finished(Cx::new(tx, services, principal, now), &mut work)?);
        idempotency::save_response(tx, services, organization, key, answer.clone())?;
        Ok(IdempotentResponse { answer, is_repeat: false })
    })
}

/// Runs a use case that changes data, for a request without a key.
///
/// # Errors
/// Returns the errors of [`carry_out`].
pub fn run<T>(
    services: &Services,
    principal: &Principal,
    use_case: UseCase,
    work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T>,
) -> UseCaseResult<T> {
    in_transaction(services, principal, use_case, Access::Write, work)
}

/// Runs a use case that only reads.
///
/// # Errors
/// Returns an error of the permission, of the store or of the work.
pub fn read<T>(
    services: &Services,
    principal: &Principal,
    use_case: UseCase,
    work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T>,
) -> UseCaseResult<T> {
    in_transaction(services, principal, use_case, Access::Read, work)
}

fn in_transaction<T>(
    services: &Services,
    principal: &Principal,
    use_case: UseCase,
    access: Access,
    mut work: impl FnMut(&mut Cx<'_>) -> UseCaseResult<T>,
) -> UseCaseResult<T> {
    allow(principal, use_case)?;
    let now = services.now();
    transact(&*services.store, access, |tx| finished(Cx::new(tx, services, principal, now), &mut work))
}

/// Runs the work of a transaction in its context, and [ends](Cx::finish) it.
pub(crate) fn finished<T, E: From<UseCaseError>>(
    mut cx: Cx<'_>,
    work: &mut dyn FnMut(&mut Cx<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let done = work(&mut cx)?;
    cx.finish()?;
    Ok(done)
}

/// The transactions of a use case that needs several.
pub enum Transactions<'t, 'c> {
    /// Each part is committed on its own. Without a principal, the scheduler does the work.
    Separate(&'t Services, Option<&'t Principal>),
    /// All parts belong to one open transaction, for a request with an idempotency key.
    Joined(&'t mut Cx<'c>),
}

impl Transactions<'_, '_> {
    /// Runs a part that changes data of an organization.
    pub(crate) fn write<T, E: From<StoreError> + From<UseCaseError>>(
        &mut self,
        organization: OrganizationId,
        mut part: impl FnMut(&mut Cx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        match self {
            Self::Joined(cx) => cx.attempt(part),
            Self::Separate(services, principal) => {
                let now = services.now();
                transact(&*services.store, Access::Write, |tx| match principal {
                    Some(principal) => finished(Cx::new(tx, services, principal, now), &mut part),
                    None => finished(Cx::of_scheduler(tx, services, organization, now), &mut part),
                })
            }
        }
    }

    /// Runs a part that only reads.
    pub(crate) fn read<T>(&mut self, mut part: impl FnMut(&mut dyn Tx) -> UseCaseResult<T>) -> UseCaseResult<T> {
        match self {
            Self::Joined(cx) => part(cx.tx),
            Self::Separate(services, _) => transact(&*services.store, Access::Read, part),
        }
    }

    /// Runs a part that is one statement that reads.
    pub(crate) fn glance<T>(&mut self, mut part: impl FnMut(&mut dyn Tx) -> UseCaseResult<T>) -> UseCaseResult<T> {
        match self {
            Self::Joined(cx) => part(cx.tx),
            Self::Separate(services, _) => transact(&*services.store, Access::Glance, part),
        }
    }

    /// Returns organization, actor and request of the principal.
    ///
    /// # Errors
    /// Returns [`UseCaseError::InvariantViolation`] for the service's own work.
    pub(crate) fn author(&self) -> UseCaseResult<AuditContext<'_>> {
        match self {
            Self::Separate(_, principal) => {
                principal.map(AuditContext::of).ok_or(UseCaseError::InvariantViolation("a use case without a principal"))
            }
            Self::Joined(cx) => Ok(cx.author()),
        }
    }

    /// Returns whether all parts belong to one transaction.
    pub(crate) const fn is_joined(&self) -> bool {
        matches!(self, Self::Joined(_))
    }

    /// Returns the services.
    pub(crate) const fn services(&self) -> &Services {
        match self {
            Self::Separate(services, _) => services,
            Self::Joined(cx) => cx.services,
        }
    }
}

/// Runs a use case with several transactions. A request with a key is carried out in one transaction, so that its stored
/// response describes exactly what was done.
///
/// # Errors
/// Returns the errors of [`carry_out`].
pub fn carry_out_in_parts<T>(
    services: &Services,
    request: Request<'_>,
    render: impl Fn(&T) -> StoredResponse,
    mut work: impl FnMut(&mut Transactions<'_, '_>) -> UseCaseResult<T>,
) -> UseCaseResult<IdempotentResponse> {
    if request.key.is_some() {
        return carry_out(services, request, render, |cx| work(&mut Transactions::Joined(cx)));
    }
    allow(request.principal, request.use_case)?;
    let done = work(&mut Transactions::Separate(services, Some(request.principal)))?;
    Ok(IdempotentResponse { answer: render(&done), is_repeat: false })
}
