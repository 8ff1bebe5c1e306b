//! The billing run, which issues all due documents, several contracts per transaction (billing rules 2).
//!
//! Runs are safe at any time, concurrently on several servers, and repeatedly. Documents are locked and checked in the
//! transaction that issues them. A contract that fails is reported and does not stop the others. If it shared a transaction
//! with other contracts, those are retried without it.
//!
//! Within an outer transaction, all changes are committed together. A failure still rolls back only the contract that failed.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Actor;
use billing_domain::audit::{AuditAction, AuditedKind};
use billing_domain::calendar::{Period, Timestamp};
use billing_domain::document::DocumentKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::ledger::{ContractBook, issue};
use billing_domain::money::Money;
use billing_domain::ports::{Access, DueContract, Lock, StoreError, transact};
use billing_domain::refs::{BillingRunRef, ContractKey, ContractRef, DocumentRef, OrganizationId};
use billing_domain::runs::{BillingRunRecord, FailedDocument, RunDocument};
use billing_domain::violation::Violations;
use billing_domain::warning::Warning;

use crate::Services;
use crate::audit::{AuditChange, AuditSubject, RunSummary};
use crate::book_repository;
use crate::carry_out::{Cx, Transactions};
use crate::credit_books::pass_credit_on;
use crate::error::{UseCaseError, UseCaseResult};
use crate::names::{NameRequest, ObjectNames, read_names};
use crate::notices;
pub use crate::run_history::FailedContract;
use crate::run_history::RunRecorder;

/// The number of contracts looked up at a time.
const CONTRACTS_PER_PAGE: u32 = 200;
/// The maximum number of contracts billed in one transaction.
const CONTRACTS_PER_TRANSACTION: usize = 50;
/// The approximate maximum number of documents issued in one transaction. Further documents are issued in the next
/// transaction, to keep locks short.
const MAX_DOCUMENTS_PER_TRANSACTION: usize = 50;

/// The maximum number of documents and of failures of a report that have names.
pub const MAX_NAMED: usize = 1000;

/// The maximum number of contracts billed by a run within an outer transaction, because other requests wait for its locks.
const MAX_CONTRACTS_TOGETHER: usize = 500;

/// The time after which a document that is due and not issued counts as late, in seconds. By default, runs are a minute apart.
const LATE_SECONDS: i64 = 3600;

/// The parameters of a billing run.
#[derive(Clone, Copy)]
pub struct BillingRunRequest<'r> {
    /// Whether to store nothing.
    pub dry_run: bool,
    /// Whether to issue documents even if the service does not trust its clock.
    pub trust_clock: bool,
    /// Where an earlier run stopped. `None` starts from the beginning.
    pub after: Option<RunCursor>,
    /// Returns whether there is time for another transaction of about fifty contracts.
    pub may_go_on: &'r dyn Fn() -> bool,
}

/// A position in a run. Contracts are ordered by due time and reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCursor {
    /// The due time of the contract at this position.
    pub due_at: Timestamp,
    /// The contract.
    pub contract_ref: ContractRef,
}

impl BillingRunRequest<'static> {
    /// Returns the parameters of a run that continues to the end.
    pub const fn whole(dry_run: bool) -> Self {
        Self { dry_run, trust_clock: false, after: None, may_go_on: &|| true }
    }
}

/// The results of a billing run or its dry run.
#[derive(Debug, Default)]
pub struct BillingReport {
    /// The run's reference. `None` for a dry run.
    pub run_ref: Option<BillingRunRef>,
    /// The issued documents.
    pub issued: Vec<BilledDocument>,
    /// The voided drafts, which had neither events nor an amount.
    pub voided: Vec<BilledDocument>,
    /// Documents that could not be issued, and contracts that could not be billed.
    pub failed: Vec<FailedContract>,
    /// Whether nothing was stored.
    pub dry_run: bool,
    /// Where the run stopped, if due contracts remain.
    pub next: Option<RunCursor>,
    /// The names of the contracts and documents, of each list for the first [`MAX_NAMED`] elements.
    pub names: ObjectNames,
}

impl BillingReport {
    /// Returns the number of contracts that could not be billed, or not completely.
    pub fn failed_contracts(&self) -> usize {
        self.failed.iter().map(|failed| failed.contract_ref).collect::<BTreeSet<_>>().len()
    }

    /// Returns the warning about documents whose period is not over.
    pub fn warning(&self) -> Option<Warning> {
        Warning::of_open_periods(self.issued.iter().filter(|document| document.is_period_open).count())
    }
}

/// A document of a billing run.
#[derive(Clone, Debug)]
pub struct BilledDocument {
    /// The organization of the contract.
    pub organization: OrganizationId,
    /// The contract that the document bills.
    pub contract_ref: ContractRef,
    /// Reference and number. `None` in a dry run for a document that its issue would open.
    pub opened: Option<(DocumentRef, DocumentNumber)>,
    /// Invoice, credit or debit.
    pub kind: DocumentKind,
    /// The document's own period.
    pub period: Period,
    /// Whether the document corrects a period that is not over, so that more corrections can follow.
    pub is_period_open: bool,
    /// The total with its currency.
    pub total: Money,
}

/// Issues all due documents of the principal's organization, as far as time permits.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the due contracts cannot be read, or [`UseCaseError::Conflict`] if the service does not
/// trust its clock.
pub fn run_billing(transactions: &mut Transactions<'_, '_>, wanted: BillingRunRequest<'_>) -> UseCaseResult<BillingReport> {
    let organization = transactions.author()?.organization;
    let mut report = run_of(transactions, Some(organization), wanted)?;
    match names_in(transactions, organization, &report) {
        // The documents are already issued, so the caller needs the report.
        Err(error) if !transactions.is_joined() => tracing::error!(%error, "cannot load the names for a billing report"),
        names => report.names = names?,
    }
    Ok(report)
}

/// Checks that documents may be issued now. Returns whether this is only because the caller trusts the clock, which belongs into
/// the audit log.
///
/// # Errors
/// Returns [`UseCaseError::Conflict`] if neither the service nor the caller trusts the clock.
pub(crate) fn require_trusted_clock(services: &Services, trust_clock: bool) -> UseCaseResult<bool> {
    match services.clock.is_trusted() {
        true => Ok(false),
        false if trust_clock => Ok(true),
        false => {
            let now = services.now();
            let detail = format!(
                "the server does not trust its clock, which shows {now}, and issued documents cannot be taken back: correct the \
                 clock, or send `trust_clock: true` if the time is right"
            );
            Err(UseCaseError::Conflict { code: "clock_not_trusted", detail })
        }
    }
}

/// Returns the names for a report.
pub(crate) fn names_in(
    transactions: &mut Transactions<'_, '_>,
    organization: OrganizationId,
    report: &BillingReport,
) -> UseCaseResult<ObjectNames> {
    let mut request = NameRequest::default();
    for documents in [&report.issued, &report.voided] {
        documents.iter().take(MAX_NAMED).for_each(|document| request.add(AuditedKind::Contract, document.contract_ref));
    }
    for failed in report.failed.iter().take(MAX_NAMED) {
        request.add(AuditedKind::Contract, failed.contract_ref);
        if let Some(document_ref) = failed.document.and_then(|document| document.document_ref) {
            request.add(AuditedKind::Document, document_ref);
        }
    }
    transactions.read(|tx| read_names(tx, organization, &request))
}

/// Issues all due documents of every organization, on behalf of the scheduler.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the due contracts cannot be read.
pub fn run_billing_everywhere(services: &Services) -> UseCaseResult<BillingReport> {
    run_billing_while(services, &|| true)
}

/// Does the same as [`run_billing_everywhere`] as far as time permits.
pub(crate) fn run_billing_while(services: &Services, may_go_on: &dyn Fn() -> bool) -> UseCaseResult<BillingReport> {
    let wanted = BillingRunRequest { dry_run: false, trust_clock: false, after: None, may_go_on };
    run_of(&mut Transactions::Separate(services, None), None, wanted)
}

/// Returns the number of contracts of all organizations with a document that is due for an hour or longer and not issued.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the contracts cannot be counted.
pub fn count_late_contracts(services: &Services) -> UseCaseResult<u64> {
    let late = services.now().plus_seconds(-LATE_SECONDS);
    transact(&*services.store, Access::Glance, |tx| Ok(tx.count_contracts_due(late)?))
}

fn run_of(
    transactions: &mut Transactions<'_, '_>,
    organization: Option<OrganizationId>,
    wanted: BillingRunRequest<'_>,
) -> UseCaseResult<BillingReport> {
    let now = transactions.services().now();
    let run_ref = BillingRunRef::from_uuid(transactions.services().ids.new_id());
    let mut report =
        BillingReport { run_ref: (!wanted.dry_run).then_some(run_ref), dry_run: wanted.dry_run, ..BillingReport::default() };
    let mut history = RunRecorder::new(run_ref, now, wanted.dry_run);
    let mut after = match (organization, wanted.after) {
        (Some(organization), Some(place)) => Some(stopped_at(transactions, organization, place)?),
        _ => None,
    };
    // A requested run is recorded even if nothing is due.
    if let Some(organization) = organization {
        if !wanted.dry_run && require_trusted_clock(transactions.services(), wanted.trust_clock)? {
            let summary = RunSummary { run_ref, issued: Vec::new(), voided: Vec::new() };
            let change = AuditChange::Unshown(AuditSubject::BillingRun(&summary));
            transactions.write(organization, |cx| cx.audit(AuditAction::TrustClock, change))?;
        }
        history.record_start(transactions, organization, 0)?;
    }
    let mut left = usize::MAX;
    if let Transactions::Joined(cx) = transactions {
        left = MAX_CONTRACTS_TOGETHER;
        hold_due(cx, after)?;
    }
    // A contract with a document that cannot be issued stays due. It comes again if the run issued an earlier document.
    let mut failed: BTreeSet<ContractRef> = BTreeSet::new();
    'run: loop {
        let page = transactions.read(|tx| Ok(tx.contracts_due(organization, now, after, CONTRACTS_PER_PAGE)?))?;
        let Some(last) = page.last().copied() else { break };
        let due: Vec<DueContract> = page.into_iter().filter(|due| !failed.contains(&due.key.contract)).collect();
        let mut rest = due.as_slice();
        while let Some(first) = rest.first() {
            if left == 0 || !(wanted.may_go_on)() {
                report.next = after.map(|last| RunCursor { due_at: last.due_at, contract_ref: last.key.contract });
                break 'run;
            }
            let organization = first.key.organization;
            let is_of_one = |contract: &&DueContract| contract.key.organization == organization;
            let many = rest.iter().take(CONTRACTS_PER_TRANSACTION.min(left)).take_while(is_of_one).count();
            let (together, others) = rest.split_at(many);
            history.record_start(transactions, organization, many)?;
            let known = report.failed.len();
            bill_together(transactions, (run_ref, now), together, (&mut report, &mut history))?;
            let new = report.failed.get(known..).unwrap_or_default();
            failed.extend(new.iter().map(|failed| failed.contract_ref));
            history.failed(transactions.services(), organization, new);
            if !report.dry_run {
                notices::record_failures(transactions, organization, new)?;
            }
            (rest, left, after) = (others, left - many, together.last().copied());
        }
        after = Some(last);
    }
    review_notices(transactions, organization, wanted);
    match history.end(transactions, report.next.is_some()) {
        // The documents are already issued, so the caller needs the report.
        Err(error) if !transactions.is_joined() => {
            tracing::error!(%error, %run_ref, "cannot record the end of a billing run")
        }
        ended => ended?,
    }
    Ok(report)
}

/// Reviews the notices whose instants have come. A run in one transaction leaves them to the next run, because it has locked
/// accounts already.
fn review_notices(transactions: &mut Transactions<'_, '_>, organization: Option<OrganizationId>, wanted: BillingRunRequest<'_>) {
    if wanted.dry_run || transactions.is_joined() {
        return;
    }
    if let Err(error) = notices::review_due(transactions, organization, wanted.may_go_on) {
        tracing::error!(%error, "cannot load the notices of overdue documents and ending contracts");
    }
}

/// Records an audit event for a transaction of a run, unless it changed nothing.
fn audit_chunk(cx: &mut Cx<'_>, run_ref: BillingRunRef, billed: &BilledChunk) -> UseCaseResult<()> {
    let numbers = |documents: &[BilledDocument]| {
        documents.iter().filter_map(|document| document.opened.as_ref().map(|(_, number)| number.clone())).collect()
    };
    let summary = RunSummary { run_ref, issued: numbers(&billed.issued), voided: numbers(&billed.voided) };
    if summary.issued.is_empty() && summary.voided.is_empty() {
        return Ok(());
    }
    cx.audit(AuditAction::Run, AuditChange::Made(AuditSubject::BillingRun(&summary)))
}

/// Returns the last contract of an earlier run.
fn stopped_at(
    transactions: &mut Transactions<'_, '_>,
    organization: OrganizationId,
    place: RunCursor,
) -> UseCaseResult<DueContract> {
    transactions.read(|tx| {
        let contract = tx.contract(organization, place.contract_ref)?;
        let detail = "must be the `next` of an earlier run, or be omitted";
        let contract = contract.ok_or_else(|| Violations::one(&["after"], "invalid_value", detail))?;
        Ok(DueContract { key: contract.key(organization), due_at: place.due_at })
    })
}

/// Locks every contract of the run in one fixed order before any document is issued. In one transaction for all contracts,
/// locking them one by one could deadlock with another run.
fn hold_due(cx: &mut Cx<'_>, after: Option<DueContract>) -> UseCaseResult<()> {
    let mut due = Vec::new();
    loop {
        let after = due.last().copied().or(after);
        let page = cx.tx.contracts_due(Some(cx.organization), cx.now, after, CONTRACTS_PER_PAGE)?;
        let is_last = page.is_empty();
        due.extend(page);
        if is_last || due.len() >= MAX_CONTRACTS_TOGETHER {
            break;
        }
    }
    due.truncate(MAX_CONTRACTS_TOGETHER);
    Ok(cx.tx.hold_contracts(&due.iter().map(|contract| (contract.key, Lock::Exclusive)).collect::<Vec<_>>())?)
}

/// The results of one transaction.
#[derive(Default)]
struct BilledChunk {
    issued: Vec<BilledDocument>,
    voided: Vec<BilledDocument>,
    failed: Vec<FailedContract>,
    /// Contracts with more documents to issue in the next transaction.
    cut_short: Vec<DueContract>,
}

impl BilledChunk {
    /// Returns the documents for the run history.
    fn documents(&self) -> impl Iterator<Item = RunDocument> {
        let all = self.issued.iter().map(|document| (document, false)).chain(self.voided.iter().map(|document| (document, true)));
        all.filter_map(|(document, voided)| {
            let (document_ref, number) = document.opened.clone()?;
            Some(RunDocument { document_ref, number, total: document.total, voided })
        })
    }
}

/// The reason why a transaction of the run is rolled back.
enum RunAbort {
    DryRun(BilledChunk),
    Failed(UseCaseError),
}

impl From<StoreError> for RunAbort {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

impl From<UseCaseError> for RunAbort {
    fn from(error: UseCaseError) -> Self {
        Self::Failed(error)
    }
}

/// Bills contracts of one organization in one transaction, or in several if there are too many documents. On failure, bisects
/// the contracts until the failing one is alone.
fn bill_together(
    transactions: &mut Transactions<'_, '_>,
    (run_ref, now): (BillingRunRef, Timestamp),
    contracts: &[DueContract],
    (report, history): (&mut BillingReport, &mut RunRecorder),
) -> UseCaseResult<()> {
    let mut due = contracts.to_vec();
    while let Some(first) = due.first() {
        let organization = first.key.organization;
        let committed = transactions.write(organization, |cx| {
            // The whole run decides as of its start, and on behalf of the service; its record names the initiator.
            (cx.now, cx.by) = (now, Actor::Service);
            let billed = issue_due(cx, &due, report.dry_run).map_err(RunAbort::Failed)?;
            if report.dry_run {
                return Err(RunAbort::DryRun(billed));
            }
            audit_chunk(cx, run_ref, &billed).map_err(RunAbort::Failed)?;
            let add = |run: &mut BillingRunRecord| billed.documents().for_each(|document| run.add_document(document));
            let saved_at = cx.services.now();
            let run = history.save_progress(cx.tx, (organization, saved_at), add).map_err(RunAbort::Failed)?;
            Ok((billed, run))
        });
        let committed = committed.or_else(|stop| match stop {
            RunAbort::DryRun(billed) => Ok((billed, None)),
            RunAbort::Failed(problem) => Err(problem),
        });
        match committed {
            Ok((billed, run)) => {
                history.confirm_progress(organization, run);
                report.issued.extend(billed.issued);
                report.voided.extend(billed.voided);
                report.failed.extend(billed.failed);
                due = billed.cut_short;
            }
            // Within an outer transaction, a failed statement has rolled back the documents of other contracts too.
            Err(problem @ UseCaseError::Store(_)) if transactions.is_joined() => return Err(problem),
            // The database is unavailable, so retrying the contracts one by one would only wait again.
            Err(problem @ UseCaseError::Store(StoreError::Unavailable(_))) => {
                for contract in due {
                    report.failed.push(FailedContract::whole(contract.key, problem.for_another()));
                }
                return Ok(());
            }
            Err(problem) => {
                if let [contract] = due.as_slice() {
                    report.failed.push(FailedContract::whole(contract.key, problem));
                } else {
                    let (some, others) = due.split_at(due.len() / 2);
                    bill_together(transactions, (run_ref, now), some, (report, history))?;
                    bill_together(transactions, (run_ref, now), others, (report, history))?;
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Issues the due documents of contracts in order. A dry run has no limit of documents, because its next transaction would
/// start from the same state.
fn issue_due(cx: &mut Cx<'_>, due: &[DueContract], dry_run: bool) -> UseCaseResult<BilledChunk> {
    let keys: Vec<ContractKey> = due.iter().map(|contract| contract.key).collect();
    let mut books: BTreeMap<ContractRef, ContractBook> = BTreeMap::new();
    for book in book_repository::lock_books(cx, &keys)? {
        books.insert(book.contract.contract_ref, book);
    }
    let mut billed = BilledChunk::default();
    let mut left = if dry_run { usize::MAX } else { MAX_DOCUMENTS_PER_TRANSACTION };
    let mut runs: Vec<(ContractRef, issue::IssueReport, BTreeSet<DocumentRef>)> = Vec::with_capacity(due.len());
    for contract in due {
        let contract_ref = contract.key.contract;
        let Some(book) = books.get_mut(&contract_ref) else { continue };
        if left == 0 {
            billed.cut_short.push(*contract);
            books.remove(&contract_ref);
            continue;
        }
        let open = book.documents().map(|document| document.head.document_ref).collect();
        match issue::issue_due(book, cx.now, left, &mut cx.ids()) {
            Ok(run) => {
                left = left.saturating_sub(run.outcomes.len());
                if run.is_cut_short {
                    billed.cut_short.push(*contract);
                }
                runs.push((contract_ref, run, open));
                pass_credit_on(&mut books, contract_ref)?;
            }
            // The book's entries are not saved.
            Err(refusal) => {
                billed.failed.push(FailedContract::whole(contract.key, refusal.into()));
                books.remove(&contract_ref);
            }
        }
    }
    let mut facts = Vec::new();
    for (contract_ref, run, _) in &runs {
        let is_billed = run.failed.is_empty() && !run.is_cut_short;
        if let Some(book) = books.get_mut(contract_ref).filter(|_| is_billed) {
            facts.extend(notices::end_failure(cx, book)?);
        }
    }
    book_repository::write_all_with(cx, books.values_mut(), facts)?;
    for (contract_ref, run, open) in runs {
        let book = books.get(&contract_ref).ok_or(UseCaseError::InvariantViolation("a contract without a book"))?;
        show_run((cx.organization, cx.now, book), run, &open, dry_run, &mut billed)?;
    }
    Ok(billed)
}

/// Adds the results of one contract.
fn show_run(
    (organization, now, book): (OrganizationId, Timestamp, &ContractBook),
    run: issue::IssueReport,
    open: &BTreeSet<DocumentRef>,
    dry_run: bool,
    billed: &mut BilledChunk,
) -> UseCaseResult<()> {
    let show = |document_ref: DocumentRef, total: Money| -> UseCaseResult<BilledDocument> {
        let number = book_repository::number_of(book, document_ref)?;
        let unknown = UseCaseError::InvariantViolation("a document of a run that its book lacks");
        let head = &book.document(document_ref).ok_or(unknown)?.head;
        let is_period_open = issue::corrects_open_period(book, head, now)?;
        // In a dry run, only documents that were already open have a reference and a number.
        let opened = (!dry_run || open.contains(&document_ref)).then_some((document_ref, number.clone()));
        let (contract_ref, kind, period) = (book.contract.contract_ref, number.kind, head.period);
        Ok(BilledDocument { organization, contract_ref, opened, kind, period, is_period_open, total })
    };
    let key = book.contract.key(organization);
    // The next transaction tries the documents of a contract that was cut short again, and reports what fails there.
    let failed = run.failed.into_iter().filter(|_| !run.is_cut_short);
    for issue::Failure { document_ref, period, refusal } in failed {
        let document = FailedDocument { period, document_ref };
        billed.failed.push(FailedContract::of_document(key, document, refusal));
    }
    for outcome in run.outcomes {
        if outcome.issued.is_empty() {
            billed.voided.push(show(outcome.document_ref, outcome.total)?);
        }
        for (document_ref, total) in outcome.issued {
            billed.issued.push(show(document_ref, total)?);
        }
    }
    Ok(())
}
