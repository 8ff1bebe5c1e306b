//! The billing run: issues what is due, contract by contract, each in its own transaction (billing rules 2).
//!
//! It is safe to run at any time, on several servers at once, and again: what is issued is held and tested in
//! the transaction that issues it. A contract that fails is reported and doesn't stop the others.
//!
//! In a transaction that is open already, all of it is committed together: what a contract's failure undoes is still
//! that contract's alone.

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::document::DocumentKind;
use billing_domain::document::linking::{Share, shares_of_period};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::money::Money;
use billing_domain::ports::{Access, DueContract, Lock, StoreError, Tx, transact};
use billing_domain::refs::{ContractRef, DocumentRef, OrganizationId};

use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};
use crate::ledger::{Account, Issued, IssuedShare, issue_draft, issue_share, may_be_due};

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
    if services.are_joined() {
        hold_due(services, organization, now)?;
    }
    let mut after = None;
    loop {
        let due = transact(&*services.store, Access::Read, |tx| {
            Ok::<_, UseCaseError>(tx.contracts_due(organization, now, after, CONTRACTS_PER_PAGE)?)
        })?;
        for contract in &due {
            if let Err(problem) = bill_contract(services, *contract, now, &mut report) {
                // In one transaction for all, a statement that failed has undone the others' documents, too.
                if services.are_joined() && matches!(problem, UseCaseError::Store(_)) {
                    return Err(problem);
                }
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

/// Holds every contract that is due, in one order, before anything is issued: in one transaction for all, two runs that
/// held theirs as they came to them would wait for each other's.
fn hold_due(services: &Services, organization: Option<OrganizationId>, now: Timestamp) -> UseCaseResult<()> {
    transact(&*services.store, Access::Write, |tx| {
        let mut due = Vec::new();
        loop {
            let page = tx.contracts_due(organization, now, due.last().copied(), CONTRACTS_PER_PAGE)?;
            if page.is_empty() {
                break;
            }
            due.extend(page);
        }
        due.sort_by_key(|contract| contract.contract_ref);
        for DueContract { organization, customer_id, contract_ref, .. } in due {
            tx.lock_contract(organization, customer_id, contract_ref, Lock::Exclusive)?;
        }
        Ok(())
    })
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

/// Issues a contract's documents that are due between two instants, oldest first: regular documents, then
/// what else is open, adjustments opened on an earlier service date above all.
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
    let mut last = from;
    for (due_at, share) in due_shares(&account, from, now)? {
        // The next transaction goes on by the instant, so those that fall together stay together.
        if billed.issued.len() + billed.voided.len() >= MAX_DOCUMENTS_PER_TRANSACTION && due_at > last {
            billed.more_from = Some(due_at);
            break;
        }
        last = due_at;
        let issued = issue_share(services, tx, &account, &share, now)?;
        billed.add(issued, dry_run);
    }
    if billed.more_from.is_none() {
        for draft in tx.drafts_of_contract(due.organization, due.customer_id, due.contract_ref)? {
            // Regular drafts, too: the debit of a period opens its invoice, which may have been due before it.
            if account.draft_due_at(&draft.head)?.is_some_and(|due_at| due_at <= now) {
                let opened = Some((draft.head.document_ref, draft.head.number.clone()));
                let kind = draft.head.kind;
                let issued = issue_draft(services, tx, &account, draft.head, now)?;
                billed.add(Some((opened, kind, issued)), dry_run);
            }
        }
    }
    let next = match billed.more_from {
        Some(more_from) => Some(more_from),
        None => account.next_due_after(tx, now)?,
    };
    tx.set_next_due(due.organization, due.customer_id, due.contract_ref, next)?;
    Ok(billed)
}

impl Billed {
    /// Notes what became of a document; `was` is what it was before it was issued.
    fn add(&mut self, issued: Option<IssuedShare>, dry_run: bool) {
        let Some((was, kind, issued)) = issued else { return };
        match issued {
            Issued::Voided(total) => self.voided.push(BilledDocument { opened: was, kind, total }),
            Issued::Issued(head, total) => {
                let number = (head.document_ref, head.number.clone());
                // In a dry run only what was open before has a reference and a number.
                let opened = if dry_run { was.filter(|was| *was == number) } else { Some(number) };
                self.issued.push(BilledDocument { opened, kind: head.kind, total });
            }
        }
    }
}

/// The shares that fall due between two instants, oldest first, in contract order where they fall together.
fn due_shares<'c>(account: &'c Account, from: Timestamp, now: Timestamp) -> UseCaseResult<Vec<(Timestamp, Share<'c>)>> {
    let mut due = Vec::new();
    for product in &account.contract.products {
        for period in product.periods().take_while(|period| may_be_due(period, now)) {
            for share in shares_of_period(product, period) {
                let due_at = account.due_at(&share)?;
                if from <= due_at && due_at <= now {
                    due.push((due_at, share));
                }
            }
        }
    }
    due.sort_by_key(|(due_at, _)| *due_at);
    Ok(due)
}
