//! The history of billing runs. Each run saves a row in every organization whose contracts it checks.
//!
//! The row is created before the first document is issued, and updated in the transactions that issue documents. A run that
//! was interrupted by a crash therefore shows as not ended.
//!
//! Repeated runs without results do not accumulate:
//!
//! - A scheduled run leaves no row if it issued nothing and failed exactly like the run before.
//! - Any other run without documents replaces the previous one, if that has the same author and also had no documents.
//!
//! Failures are logged only when they are new.

use std::collections::BTreeMap;

use billing_domain::audit::AuditActor;
use billing_domain::calendar::Timestamp;
use billing_domain::page::{ListSortKey, Page, PageRequest};
use billing_domain::ports::{Access, RunFilter, Tx, transact};
use billing_domain::refs::{BillingRunRef, ContractKey, ContractRef, OrganizationId};
use billing_domain::refusal::Refusal;
use billing_domain::runs::{BillingRunRecord, FailedDocument, RUNS_KEPT_DAYS, RunFailure, RunHead};

use crate::Services;
use crate::basics::DAY_SECONDS;
use crate::carry_out::{Cx, Transactions};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// A failure of a billing run, for a whole contract or one document.
#[derive(Debug)]
pub struct FailedContract {
    /// The organization of the contract.
    pub organization: OrganizationId,
    /// The contract.
    pub contract_ref: ContractRef,
    /// The document, if the rest of the contract was billed.
    pub document: Option<FailedDocument>,
    /// The error.
    pub problem: UseCaseError,
}

impl FailedContract {
    /// Returns the failure of a contract that could not be billed at all.
    pub const fn whole(key: ContractKey, problem: UseCaseError) -> Self {
        Self { organization: key.organization, contract_ref: key.contract, document: None, problem }
    }

    /// Returns the failure of a document that a rule forbids to issue.
    pub fn of_document(key: ContractKey, document: FailedDocument, refusal: Refusal) -> Self {
        Self { organization: key.organization, contract_ref: key.contract, document: Some(document), problem: refusal.into() }
    }
}

/// The records of a run, by organization. Empty for a dry run.
pub(crate) struct RunRecorder {
    run_ref: BillingRunRef,
    begun_at: Timestamp,
    is_kept: bool,
    runs: BTreeMap<OrganizationId, BillingRunRecord>,
}

impl RunRecorder {
    /// Returns the recorder of a run that starts.
    pub(crate) const fn new(run_ref: BillingRunRef, begun_at: Timestamp, dry_run: bool) -> Self {
        Self { run_ref, begun_at, is_kept: !dry_run, runs: BTreeMap::new() }
    }

    /// Records that the run is about to check contracts of an organization.
    pub(crate) fn record_start(
        &mut self,
        transactions: &mut Transactions<'_, '_>,
        organization: OrganizationId,
        contracts: usize,
    ) -> UseCaseResult<()> {
        if !self.is_kept {
            return Ok(());
        }
        if !self.runs.contains_key(&organization) {
            let run = transactions.write(organization, |cx| {
                let doer = cx.author();
                let head = RunHead::begun(self.run_ref, doer.author, doer.request_id.cloned(), self.begun_at);
                let run = BillingRunRecord::begun(head);
                cx.tx.put_billing_run(organization, &run)?;
                Ok::<_, UseCaseError>(run)
            })?;
            self.runs.insert(organization, run);
        }
        if let Some(run) = self.runs.get_mut(&organization) {
            run.head.contracts = run.head.contracts.saturating_add(contracts as u64);
        }
        Ok(())
    }

    /// Saves the run with the results of a transaction, in that transaction. The caller must pass the returned record to
    /// [`confirm_progress`](Self::confirm_progress) after the commit.
    pub(crate) fn save_progress(
        &self,
        tx: &mut dyn Tx,
        (organization, now): (OrganizationId, Timestamp),
        add: impl FnOnce(&mut BillingRunRecord),
    ) -> UseCaseResult<Option<BillingRunRecord>> {
        let Some(run) = self.runs.get(&organization) else { return Ok(None) };
        let mut run = run.clone();
        add(&mut run);
        run.head.updated_at = now;
        tx.put_billing_run(organization, &run)?;
        Ok(Some(run))
    }

    /// Adopts a committed record.
    pub(crate) fn confirm_progress(&mut self, organization: OrganizationId, run: Option<BillingRunRecord>) {
        self.runs.extend(run.map(|run| (organization, run)));
    }

    /// Records failures, which no transaction saves.
    pub(crate) fn failed<'f>(
        &mut self,
        services: &Services,
        organization: OrganizationId,
        failed: impl IntoIterator<Item = &'f FailedContract>,
    ) {
        let Some(run) = self.runs.get_mut(&organization) else { return };
        for FailedContract { contract_ref, document, problem, .. } in failed {
            let (code, detail) = services.teller.reason(problem);
            run.add_failure(RunFailure::of(*contract_ref, *document, code, &detail));
        }
    }

    /// Records the end of the run.
    pub(crate) fn end(self, transactions: &mut Transactions<'_, '_>, cut_short: bool) -> UseCaseResult<()> {
        let ended_at = transactions.services().now();
        for (organization, mut run) in self.runs {
            (run.head.ended_at, run.head.updated_at) = (Some(ended_at), ended_at);
            run.head.cut_short = cut_short;
            let before = transactions.write(organization, |cx| end(cx.tx, organization, &run))?;
            for RunFailure { contract_ref, document, code, detail } in run.new_failures(before.as_ref()) {
                let period_start = document.map(|document| document.period.start().to_string());
                let document_ref = document.and_then(|document| document.document_ref).map(|document| document.to_string());
                let run_ref = run.head.run_ref;
                tracing::error!(%organization, %run_ref, %contract_ref, period_start, document_ref, code, detail, "billing failed");
            }
        }
        Ok(())
    }
}

/// Saves the end of a run, or deletes the run if it has no new results. Returns the run that ended before it.
fn end(tx: &mut dyn Tx, organization: OrganizationId, run: &BillingRunRecord) -> UseCaseResult<Option<BillingRunRecord>> {
    let head = &run.head;
    let until = RunFilter { to: Some(head.begun_at), ..RunFilter::default() };
    let one = PageRequest::new(1, 0).map_err(|_| UseCaseError::InvariantViolation("a page of one"))?;
    let before = tx.billing_runs(organization, &until, one)?.items.pop().filter(|before| before.ended_at.is_some());
    let before = match before {
        Some(before) if before.failed > 0 => tx.billing_run(organization, before.run_ref)?,
        before => before.map(BillingRunRecord::begun),
    };
    if head.author == AuditActor::Scheduler && run.is_repetition_of(before.as_ref()) {
        tx.forget_billing_run(organization, head.run_ref)?;
        return Ok(before);
    }
    tx.put_billing_run(organization, run)?;
    if head.is_idle()
        && let Some(before) = before.as_ref().map(|before| &before.head)
        && before.is_idle()
        && before.author == head.author
    {
        tx.forget_billing_run(organization, before.run_ref)?;
    }
    Ok(before)
}

/// Returns a page of the organization's runs that match a filter.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the runs cannot be read.
pub fn list_billing_runs(
    cx: &mut Cx<'_>,
    filter: &RunFilter,
    by: ListSortKey,
    page: PageRequest,
) -> UseCaseResult<Page<RunHead>> {
    Ok(cx.tx.listed_billing_runs(cx.organization, filter, by, page)?)
}

/// Returns a run with its results.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the run does not exist.
pub fn get_billing_run(cx: &mut Cx<'_>, run_ref: BillingRunRef) -> UseCaseResult<BillingRunRecord> {
    cx.tx.billing_run(cx.organization, run_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::BillingRun))
}

/// Deletes the runs that began more than 400 days ago, in every organization. Returns their number.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the runs cannot be deleted.
pub fn forget_old_billing_runs(services: &Services) -> UseCaseResult<u64> {
    let oldest = services.now().plus_seconds(-RUNS_KEPT_DAYS * DAY_SECONDS);
    transact(&*services.store, Access::Write, |tx| Ok(tx.purge_billing_runs(oldest)?))
}
