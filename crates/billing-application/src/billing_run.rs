//! The billing run: issues what is due, contract by contract, each in its own transaction (billing rules 2).
//!
//! It is safe to run at any time, on several servers at once, and again: what is issued is held and tested in
//! the transaction that issues it. A contract that fails is reported and doesn't stop the others.

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::document::linking::{Share, shares_of_period};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::DocumentContent;
use billing_domain::document::{Document, DocumentHead, DocumentKind, IssuedDocument, Lifecycle, Purpose, due_date};
use billing_domain::money::Money;
use billing_domain::ports::{Access, DueContract, Lock, StoreError, Tx, transact};
use billing_domain::refs::{ContractRef, DocumentRef, OrganizationId};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::ledger::Account;

/// Contracts looked up at a time.
const CONTRACTS_PER_PAGE: u32 = 200;
/// About as many documents are issued in one transaction; a contract with more goes on in the next, so that
/// nobody waits long for what it holds.
const MAX_DOCUMENTS_PER_TRANSACTION: usize = 50;

/// What a billing run did, or would do.
#[derive(Debug, Default)]
pub struct BillingReport {
    /// Documents issued.
    pub issued: Vec<BilledDocument>,
    /// Drafts without event and amount, put out of force.
    pub voided: Vec<BilledDocument>,
    /// Contracts that couldn't be billed.
    pub failed: Vec<FailedContract>,
    /// Whether nothing was stored.
    pub dry_run: bool,
}

/// A document of a billing run.
#[derive(Clone, Debug)]
pub struct BilledDocument {
    /// `None` in a dry run, of a document that would be opened by its issue.
    pub opened: Option<(DocumentRef, DocumentNumber)>,
    /// What it does.
    pub kind: DocumentKind,
    /// Its total, with its currency.
    pub total: Money,
}

/// A contract a billing run failed on.
#[derive(Debug)]
pub struct FailedContract {
    /// The contract.
    pub contract_ref: ContractRef,
    /// Why.
    pub problem: UseCaseError,
}

/// Issues everything due in the principal's organization.
///
/// # Errors
/// [`UseCaseError::Store`] when the due contracts can't be read.
pub fn run_billing(services: &Services, principal: &Principal, dry_run: bool) -> UseCaseResult<BillingReport> {
    run(services, Some(principal.organization), dry_run)
}

/// Issues everything due in every organization: what the scheduler does.
///
/// # Errors
/// [`UseCaseError::Store`] when the due contracts can't be read.
pub fn run_billing_everywhere(services: &Services) -> UseCaseResult<BillingReport> {
    run(services, None, false)
}

fn run(services: &Services, organization: Option<OrganizationId>, dry_run: bool) -> UseCaseResult<BillingReport> {
    let now = services.now();
    let mut report = BillingReport { dry_run, ..BillingReport::default() };
    let mut after = None;
    loop {
        let due = transact(&*services.store, Access::Read, |tx| {
            Ok::<_, UseCaseError>(tx.contracts_due(organization, now, after, CONTRACTS_PER_PAGE)?)
        })?;
        for contract in &due {
            if let Err(problem) = bill_contract(services, *contract, now, &mut report) {
                tracing::error!(contract_ref = %contract.contract_ref, error = %problem, "a contract could not be billed");
                report.failed.push(FailedContract { contract_ref: contract.contract_ref, problem });
            }
        }
        match due.last() {
            Some(last) => after = Some(*last),
            None => return Ok(report),
        }
    }
}

/// What one transaction did.
#[derive(Default)]
struct Billed {
    issued: Vec<BilledDocument>,
    voided: Vec<BilledDocument>,
    /// Since when there is more to issue, when one transaction isn't enough.
    more_from: Option<Timestamp>,
}

/// Why a transaction of the run isn't committed.
enum Stop {
    DryRun(Billed),
    Failed(UseCaseError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

fn bill_contract(services: &Services, due: DueContract, now: Timestamp, report: &mut BillingReport) -> UseCaseResult<()> {
    let mut from = due.due_at;
    loop {
        let work = |tx: &mut dyn Tx| {
            let billed = issue_due(services, tx, due, from, now, report.dry_run).map_err(Stop::Failed)?;
            if report.dry_run { Err(Stop::DryRun(billed)) } else { Ok(billed) }
        };
        let billed = match transact(&*services.store, Access::Write, work) {
            Ok(billed) | Err(Stop::DryRun(billed)) => billed,
            Err(Stop::Failed(problem)) => return Err(problem),
        };
        report.issued.extend(billed.issued);
        report.voided.extend(billed.voided);
        match billed.more_from {
            Some(more_from) => from = more_from,
            None => return Ok(()),
        }
    }
}

/// Issues a contract's documents that are due between two instants, oldest first.
fn issue_due(
    services: &Services,
    tx: &mut dyn Tx,
    due: DueContract,
    from: Timestamp,
    now: Timestamp,
    dry_run: bool,
) -> UseCaseResult<Billed> {
    let mut billed = Billed::default();
    if tx.lock_contract(due.organization, due.customer_id, due.contract_ref, Lock::Exclusive)?.is_none() {
        return Ok(billed);
    }
    let Some(contract) = tx.contract(due.organization, due.contract_ref)? else { return Ok(billed) };
    let account = Account::read(tx, due.organization, contract)?;
    let mut covered: Vec<DocumentRef> = Vec::new();
    let mut last = from;
    for (due_at, share) in due_shares(&account, from, now)? {
        // The next transaction goes on by the instant, so those that fall together stay together.
        if billed.issued.len() + billed.voided.len() >= MAX_DOCUMENTS_PER_TRANSACTION && due_at > last {
            billed.more_from = Some(due_at);
            break;
        }
        last = due_at;
        match account.stored(tx, &share)? {
            Some(Document { head, lifecycle: Lifecycle::Draft }) if !covered.contains(&head.document_ref) => {
                covered.push(head.document_ref);
                settle_draft(tx, &account, &head, now, &mut billed)?;
            }
            Some(_) => {}
            None => covered.extend(issue_unopened(services, tx, &account, &share, now, dry_run, &mut billed)?),
        }
    }
    let next = match billed.more_from {
        Some(more_from) => Some(more_from),
        None => account.next_due_after(now)?,
    };
    tx.set_next_due(due.organization, due.customer_id, due.contract_ref, next)?;
    Ok(billed)
}

/// The shares that fall due between two instants, oldest first, in contract order where they fall together.
fn due_shares<'c>(account: &'c Account, from: Timestamp, now: Timestamp) -> UseCaseResult<Vec<(Timestamp, Share<'c>)>> {
    let mut due = Vec::new();
    for product in &account.contract.products {
        'periods: for period in product.periods() {
            for share in shares_of_period(product, period) {
                let due_at = account.due_at(&share)?;
                if due_at > now {
                    break 'periods;
                }
                if due_at >= from {
                    due.push((due_at, share));
                }
            }
        }
    }
    due.sort_by_key(|(due_at, _)| *due_at);
    Ok(due)
}

/// Issues a draft, or puts it out of force when it has neither event nor amount.
fn settle_draft(
    tx: &mut dyn Tx,
    account: &Account,
    head: &DocumentHead,
    now: Timestamp,
    billed: &mut Billed,
) -> UseCaseResult<()> {
    let content = account.draft_content(tx, head)?;
    let document =
        BilledDocument { opened: Some((head.document_ref, head.number.clone())), kind: head.kind, total: content.total };
    let stays = has_amount(&content) || tx.has_events(account.organization, head.customer_id, head.document_ref)?;
    if stays {
        issue(tx, account, head, content, now)?;
        billed.issued.push(document);
    } else {
        if !tx.void_draft(account.organization, head.customer_id, head.document_ref, now)? {
            return Err(UseCaseError::InvariantViolation("a draft that is held changed"));
        }
        billed.voided.push(document);
    }
    Ok(())
}

/// Opens and issues a document that nothing had to stand on yet; one without any amount is never made.
fn issue_unopened(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    share: &Share<'_>,
    now: Timestamp,
    dry_run: bool,
    billed: &mut Billed,
) -> UseCaseResult<Option<DocumentRef>> {
    let planned = account.plan(tx, share)?;
    let content = account.preview(tx, &planned)?;
    if !has_amount(&content) {
        return Ok(None);
    }
    let total = content.total;
    let head = account.open(services, tx, &planned)?;
    issue(tx, account, &head, content, now)?;
    let opened = (!dry_run).then(|| (head.document_ref, head.number.clone()));
    billed.issued.push(BilledDocument { opened, kind: head.kind, total });
    Ok(Some(head.document_ref))
}

fn issue(tx: &mut dyn Tx, account: &Account, head: &DocumentHead, content: DocumentContent, now: Timestamp) -> UseCaseResult<()> {
    let entity = account.entity(&head.entity_ref)?;
    let issue_date = entity.profile.time_zone.service_date(now);
    let note = match head.purpose {
        Purpose::Regular(_) => {
            let shares: Vec<Share<'_>> = account.rated_shares(head)?.iter().map(|rated| rated.share).collect();
            Account::note(&shares)
        }
        Purpose::Usage | Purpose::Adjustment => None,
    };
    let issued = IssuedDocument {
        issued_at: now,
        issue_date,
        due_date: due_date(issue_date, head.net_terms),
        parties: account.parties(&head.entity_ref)?,
        po_number: account.contract.po_number.clone(),
        note,
        content,
    };
    if !tx.issue_document(account.organization, head.customer_id, head.document_ref, &issued)? {
        return Err(UseCaseError::InvariantViolation("a draft that is held changed"));
    }
    Ok(())
}

fn has_amount(content: &DocumentContent) -> bool {
    content.products.iter().flat_map(|product| &product.lines).any(|line| line.amount.minor() != 0)
}
