//! Records of billing runs.

use crate::access::RequestId;
use crate::audit::AuditActor;
use crate::calendar::{Period, Timestamp};
use crate::document::numbering::DocumentNumber;
use crate::money::Money;
use crate::refs::{BillingRunRef, ContractRef, DocumentRef};

/// The retention of billing runs in days.
pub const RUNS_KEPT_DAYS: i64 = 400;
/// The maximum number of documents in the record of a run.
pub const MAX_RUN_DOCUMENTS: usize = 500;
/// The maximum number of failures in the record of a run.
pub const MAX_RUN_FAILURES: usize = 200;
/// The maximum length of a failure detail in bytes.
const MAX_DETAIL_BYTES: usize = 1_000;

/// The state of a billing run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// No end is recorded. The run is still active, or its process ended before the run did.
    Unfinished,
    /// The run ended before it had processed everything due.
    CutShort,
    /// The run ended after it had processed everything due.
    Finished,
}

/// A billing run without its documents and failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHead {
    /// The reference of the run.
    pub run_ref: BillingRunRef,
    /// The actor that started the run.
    pub author: AuditActor,
    /// The id of the request, or `None` outside a request.
    pub request_id: Option<RequestId>,
    /// The start time.
    pub begun_at: Timestamp,
    /// The end time, or `None` if no end is recorded.
    pub ended_at: Option<Timestamp>,
    /// Whether the run ended before it had processed everything due.
    pub cut_short: bool,
    /// The number of due contracts that the run processed.
    pub contracts: u64,
    /// The number of issued documents.
    pub issued: u64,
    /// The number of voided drafts.
    pub voided: u64,
    /// The number of documents that couldn't be issued, plus the number of contracts that couldn't be billed.
    pub failed: u64,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl RunHead {
    /// Creates the head of a run that begins.
    pub const fn begun(run_ref: BillingRunRef, author: AuditActor, request_id: Option<RequestId>, begun_at: Timestamp) -> Self {
        let (contracts, issued, voided, failed) = (0, 0, 0, 0);
        Self {
            run_ref,
            author,
            request_id,
            begun_at,
            ended_at: None,
            cut_short: false,
            contracts,
            issued,
            voided,
            failed,
            updated_at: begun_at,
        }
    }

    /// Returns the state of the run.
    pub const fn state(&self) -> RunState {
        match (self.ended_at, self.cut_short) {
            (None, _) => RunState::Unfinished,
            (Some(_), true) => RunState::CutShort,
            (Some(_), false) => RunState::Finished,
        }
    }

    /// Returns whether the run issued and voided no document.
    pub const fn is_idle(&self) -> bool {
        self.issued == 0 && self.voided == 0
    }
}

/// A document that a run issued or voided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDocument {
    /// The reference of the document.
    pub document_ref: DocumentRef,
    /// The number of the document.
    pub number: DocumentNumber,
    /// The total of the document.
    pub total: Money,
    /// Whether the run voided the document instead of issuing it.
    pub voided: bool,
}

/// A due document that a run couldn't issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedDocument {
    /// The document's own period.
    pub period: Period,
    /// The reference of the document, or `None` if it wasn't opened yet.
    pub document_ref: Option<DocumentRef>,
}

/// A document that couldn't be issued, or a contract that couldn't be billed, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFailure {
    /// The document, or `None` if the whole contract failed.
    pub document: Option<FailedDocument>,
    /// A stable error code for programs.
    pub code: String,
}

/// A document that a run couldn't issue, or a contract that it couldn't bill.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunFailure {
    /// The contract.
    pub contract_ref: ContractRef,
    /// The document, or `None` if the whole contract failed.
    pub document: Option<FailedDocument>,
    /// A stable error code for programs.
    pub code: String,
    /// The explanation of the error.
    pub detail: String,
}

impl RunFailure {
    /// Creates a failure. The detail is truncated to the maximum length.
    pub fn of(contract_ref: ContractRef, document: Option<FailedDocument>, code: &str, detail: &str) -> Self {
        let end = (0..=detail.len().min(MAX_DETAIL_BYTES)).rev().find(|end| detail.is_char_boundary(*end)).unwrap_or(0);
        Self { contract_ref, document, code: code.to_owned(), detail: detail.get(..end).unwrap_or_default().to_owned() }
    }
}

/// The record of a billing run. The number of its documents and failures is limited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingRunRecord {
    /// The head of the run.
    pub head: RunHead,
    /// The first documents of the run, at most [`MAX_RUN_DOCUMENTS`].
    pub documents: Vec<RunDocument>,
    /// The first failures of the run, at most [`MAX_RUN_FAILURES`].
    pub failures: Vec<RunFailure>,
}

impl BillingRunRecord {
    /// Creates the record of a run that begins.
    pub const fn begun(head: RunHead) -> Self {
        Self { head, documents: Vec::new(), failures: Vec::new() }
    }

    /// Counts a document, and adds it to the record unless the limit is reached.
    pub fn add_document(&mut self, document: RunDocument) {
        let count = if document.voided { &mut self.head.voided } else { &mut self.head.issued };
        *count = count.saturating_add(1);
        if self.documents.len() < MAX_RUN_DOCUMENTS {
            self.documents.push(document);
        }
    }

    /// Counts a failure, and adds it to the record unless the limit is reached.
    pub fn add_failure(&mut self, failure: RunFailure) {
        self.head.failed = self.head.failed.saturating_add(1);
        if self.failures.len() < MAX_RUN_FAILURES {
            self.failures.push(failure);
        }
    }

    /// Returns whether the run issued and voided no document and had the same failures as an earlier run. Without an earlier run, it
    /// must have no failures.
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

    /// Iterates over the failures that an earlier run didn't have.
    pub fn new_failures<'r>(&'r self, earlier: Option<&'r Self>) -> impl Iterator<Item = &'r RunFailure> {
        self.failures.iter().filter(move |failure| earlier.is_none_or(|earlier| !earlier.failures.contains(failure)))
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;
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
                let day = |month| NaiveDate::from_ymd_opt(2027, month, 1).expect("a day");
                let document = month.map(|month| FailedDocument {
                    period: Period::new(day(month), day(month + 1)).expect("a month"),
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
