//! Billing runs, as they are told afterwards.

use chrono::NaiveDate;

use crate::access::RequestId;
use crate::audit::AuditActor;
use crate::calendar::Timestamp;
use crate::document::numbering::DocumentNumber;
use crate::money::Money;
use crate::refs::{BillingRunRef, ContractRef, DocumentRef};

/// How long runs are kept, in days.
pub const RUNS_KEPT_DAYS: i64 = 400;
/// The most documents that are kept of a run one by one.
pub const MAX_RUN_DOCUMENTS: usize = 500;
/// The most failures that are kept of a run one by one.
pub const MAX_RUN_FAILURES: usize = 200;
/// The most bytes that are kept of a reason.
const MAX_DETAIL_BYTES: usize = 1_000;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It hasn't said that it ended: it goes on, or was broken off with the process.
    Unfinished,
    /// It ended before everything that was due was looked at.
    CutShort,
    /// It ended.
    Finished,
}

/// A run, without what it did one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHead {
    /// Reference.
    pub run_ref: BillingRunRef,
    /// Who started it.
    pub author: AuditActor,
    /// By which request, where it was one.
    pub request_id: Option<RequestId>,
    /// When it began.
    pub begun_at: Timestamp,
    /// When it ended; `None` while it hasn't said so.
    pub ended_at: Option<Timestamp>,
    /// Whether it ended before everything that was due was looked at.
    pub cut_short: bool,
    /// Contracts it looked at, which were due.
    pub contracts: u64,
    /// Documents issued.
    pub issued: u64,
    /// Drafts put out of force.
    pub voided: u64,
    /// Documents that couldn't be issued, and contracts that couldn't be billed at all.
    pub failed: u64,
}

impl RunHead {
    /// A run that begins.
    pub const fn begun(run_ref: BillingRunRef, author: AuditActor, request_id: Option<RequestId>, begun_at: Timestamp) -> Self {
        let (contracts, issued, voided, failed) = (0, 0, 0, 0);
        Self { run_ref, author, request_id, begun_at, ended_at: None, cut_short: false, contracts, issued, voided, failed }
    }

    /// How far it has come.
    pub const fn state(&self) -> RunState {
        match (self.ended_at, self.cut_short) {
            (None, _) => RunState::Unfinished,
            (Some(_), true) => RunState::CutShort,
            (Some(_), false) => RunState::Finished,
        }
    }

    /// Whether it put no document in force or out of it.
    pub const fn is_idle(&self) -> bool {
        self.issued == 0 && self.voided == 0
    }
}

/// A document of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDocument {
    /// Reference.
    pub document_ref: DocumentRef,
    /// Number.
    pub number: DocumentNumber,
    /// Its total.
    pub total: Money,
    /// Whether it was put out of force, and not issued.
    pub voided: bool,
}

/// A due document that a run couldn't issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedDocument {
    /// The first day of the document's own period.
    pub period_start: NaiveDate,
    /// The document, where it was opened.
    pub document_ref: Option<DocumentRef>,
}

/// A document that a run couldn't issue, or a contract that it couldn't bill at all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunFailure {
    /// The contract.
    pub contract_ref: ContractRef,
    /// The document; `None` where the contract failed as a whole.
    pub document: Option<FailedDocument>,
    /// Why: a stable word for machines…
    pub code: String,
    /// …and what went wrong.
    pub detail: String,
}

impl RunFailure {
    /// A failure whose reason is told no longer than is kept.
    pub fn of(contract_ref: ContractRef, document: Option<FailedDocument>, code: &str, detail: &str) -> Self {
        let end = (0..=detail.len().min(MAX_DETAIL_BYTES)).rev().find(|end| detail.is_char_boundary(*end)).unwrap_or(0);
        Self { contract_ref, document, code: code.to_owned(), detail: detail.get(..end).unwrap_or_default().to_owned() }
    }
}

/// A run with what it did, as far as that is kept one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingRunRecord {
    /// The run.
    pub head: RunHead,
    /// Its first documents, at most [`MAX_RUN_DOCUMENTS`].
    pub documents: Vec<RunDocument>,
    /// Its first failures, at most [`MAX_RUN_FAILURES`].
    pub failures: Vec<RunFailure>,
}

impl BillingRunRecord {
    /// A run that begins.
    pub const fn begun(head: RunHead) -> Self {
        Self { head, documents: Vec::new(), failures: Vec::new() }
    }

    /// Adds a document.
    pub fn add_document(&mut self, document: RunDocument) {
        let count = if document.voided { &mut self.head.voided } else { &mut self.head.issued };
        *count = count.saturating_add(1);
        if self.documents.len() < MAX_RUN_DOCUMENTS {
            self.documents.push(document);
        }
    }

    /// Adds what couldn't be billed.
    pub fn add_failure(&mut self, failure: RunFailure) {
        self.head.failed = self.head.failed.saturating_add(1);
        if self.failures.len() < MAX_RUN_FAILURES {
            self.failures.push(failure);
        }
    }

    /// Returns whether it put no document in force or out of it, and failed exactly as an earlier run: on nothing, where there is none.
    pub fn is_repetition_of(&self, earlier: Option<&Self>) -> bool {
        let sorted = |run: &Self| {
            let mut failures = run.failures.clone();
            failures.sort();
            failures
        };
        let fails_alike = match earlier {
            Some(earlier) => self.head.failed == earlier.head.failed && sorted(self) == sorted(earlier),
            None => self.head.failed == 0,
        };
        self.head.is_idle() && fails_alike
    }

    /// Returns its failures that an earlier run didn't have.
    pub fn new_failures<'r>(&'r self, earlier: Option<&'r Self>) -> impl Iterator<Item = &'r RunFailure> {
        self.failures.iter().filter(move |failure| earlier.is_none_or(|earlier| !earlier.failures.contains(failure)))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_run_counts_all_and_keeps_the_first() {
        let at = Timestamp::from_micros(0).expect("an instant");
        let mut run =
            BillingRunRecord::begun(RunHead::begun(BillingRunRef::from_uuid(Uuid::nil()), AuditActor::Scheduler, None, at));
        assert_eq!((run.head.state(), run.head.is_idle()), (RunState::Unfinished, true));
        let failure = RunFailure::of(ContractRef::from_uuid(Uuid::nil()), None, "x", &"é".repeat(MAX_DETAIL_BYTES));
        assert_eq!(failure.detail.len(), MAX_DETAIL_BYTES);
        (0..=MAX_RUN_FAILURES).for_each(|_| run.add_failure(failure.clone()));
        assert_eq!((run.head.failed, run.failures.len()), (MAX_RUN_FAILURES as u64 + 1, MAX_RUN_FAILURES));
        run.head.ended_at = Some(at);
        assert_eq!(run.head.state(), RunState::Finished);
        run.head.cut_short = true;
        assert_eq!(run.head.state(), RunState::CutShort);
    }

    #[test]
    fn a_run_repeats_another_when_it_bills_nothing_and_fails_alike() {
        let at = Timestamp::from_micros(0).expect("an instant");
        let run = |failures: &[(u128, Option<u32>)]| {
            let mut run =
                BillingRunRecord::begun(RunHead::begun(BillingRunRef::from_uuid(Uuid::nil()), AuditActor::Scheduler, None, at));
            for (contract, month) in failures {
                let document = month.map(|month| FailedDocument {
                    period_start: NaiveDate::from_ymd_opt(2027, month, 1).expect("a day"),
                    document_ref: None,
                });
                run.add_failure(RunFailure::of(ContractRef::from_uuid(Uuid::from_u128(*contract)), document, "x", "y"));
            }
            run
        };
        let failed = run(&[(1, Some(1)), (1, Some(2)), (2, None)]);
        assert!(run(&[]).is_repetition_of(None));
        assert!(run(&[]).is_repetition_of(Some(&run(&[]))));
        assert!(!run(&[]).is_repetition_of(Some(&failed)), "what failed is right again");
        assert!(!failed.is_repetition_of(None));
        assert!(run(&[(2, None), (1, Some(2)), (1, Some(1))]).is_repetition_of(Some(&failed)), "in any order");
        let other = run(&[(1, Some(1)), (1, Some(3)), (2, None)]);
        assert!(!other.is_repetition_of(Some(&failed)));
        assert_eq!(other.new_failures(Some(&failed)).collect::<Vec<_>>(), [&other.failures[1]]);
        let mut issued = failed.clone();
        issued.head.issued = 1;
        assert!(!issued.is_repetition_of(Some(&failed)));
    }
}
