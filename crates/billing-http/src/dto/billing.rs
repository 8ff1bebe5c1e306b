//! Billing runs: requests, reports and records.

use billing_application::billing_run::{BilledDocument, BillingReport, FailedContract, RunCursor};
use billing_domain::calendar::Timestamp;
use billing_domain::refs::ContractRef;
use billing_domain::runs::{BillingRunRecord, RunDocument, RunFailure, RunHead};
use serde::Serialize;
use utoipa::ToSchema;

use super::declare::{answer, body, wire};
use super::enums::{DocumentKindWord, RunStateWord};
use super::input::Node;
use super::schemas::text;
use super::values::{CurrencyCode, DateText, TimestampText};
use super::wire::{AssignedRef, ExactNumber};
use crate::problem::Problem;

body! {
    /// Options of a billing run. The body may be omitted.
    BillingRunBody {
        /// Whether to preview the result and store nothing. Default: false.
        dry_run: bool = false,
        /// Position to continue from: `next` of an earlier run. A run without it starts at the beginning and retries
        /// failed contracts.
        after: Option<RunCursor>,
    }
}

wire! {
    RunCursor: run_place, |_| text().max_length(Some(64));
}

fn run_place(node: Node<'_>) -> Option<RunCursor> {
    let parsed = node.text()?.split_once('~').and_then(|(due_at, contract_ref)| {
        let due_at = Timestamp::from_micros(due_at.parse().ok()?).ok()?;
        Some(RunCursor { due_at, contract_ref: ContractRef::parse(contract_ref).ok()? })
    });
    parsed.or_else(|| node.refuse("invalid_value", "must be the `next` of an earlier run, or be omitted"))
}

/// Encodes a position in a run for callers.
fn shown_place(place: &RunCursor) -> String {
    format!("{}~{}", place.due_at.as_micros(), place.contract_ref)
}

answer! {
    /// The result or preview of a billing run.
    BillingReportJson of report: BillingReport {
        /// Reference of the run; null for a dry run.
        run_ref: Option<AssignedRef> = report.run_ref,
        /// Issued documents.
        issued: Vec<BilledDocumentJson> = &report.issued,
        /// Voided drafts, which had neither events nor an amount.
        voided: Vec<BilledDocumentJson> = &report.voided,
        /// Documents that could not be issued, and contracts that could not be billed at all. All others were processed.
        failed: Vec<FailedContractJson> = &report.failed,
        /// Whether nothing was stored.
        dry_run: bool = report.dry_run,
        /// Position to continue from if time ran out; null if the run is complete.
        next: Option<String> = report.next.as_ref().map(shown_place),
    }
}

answer! {
    /// A document of a billing run.
    BilledDocumentJson of document: BilledDocument {
        let opened = document.opened.as_ref();
        /// Reference; null in a dry run for a document that does not exist yet.
        document_ref: Option<AssignedRef> = opened.map(|(document_ref, _)| AssignedRef::from(document_ref)),
        /// Number; null in a dry run for a document that does not exist yet.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = opened.map(|(_, number)| number.to_string()),
        /// Document kind.
        kind: DocumentKindWord = document.kind,
        /// Currency of the total.
        currency: CurrencyCode = document.total.currency(),
        /// Total.
        total: ExactNumber = document.total,
    }
}

answer! {
    /// A document that could not be issued, or a contract that could not be billed at all.
    FailedContractJson of failed: FailedContract {
        let problem = Problem::of(&failed.problem);
        /// Contract reference.
        contract_ref: AssignedRef = failed.contract_ref,
        /// First day of the document's own period; null if the whole contract failed.
        period_start: Option<DateText> = failed.document.map(|document| document.period_start),
        /// Document reference, if the document exists.
        document_ref: Option<AssignedRef> = failed.document.and_then(|document| document.document_ref),
        /// Reason.
        problem: BillingProblemJson = BillingProblemJson { code: problem.code().to_owned(), detail: problem.detail().to_owned() },
    }
}

/// The reason for a billing failure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BillingProblemJson {
    /// Stable error code.
    #[schema(example = "amount_out_of_range")]
    code: String,
    /// Human-readable explanation.
    detail: String,
}

/// A run head, with the whole record if a single run was requested.
pub(crate) type BillingRunResponse = (RunHead, Option<BillingRunRecord>);

answer! {
    /// A billing run.
    BillingRunJson of told: BillingRunResponse {
        let (head, whole) = (&told.0, told.1.as_ref());
        /// Reference.
        run_ref: AssignedRef = head.run_ref,
        /// Author: `admin:` or `api_key:` and a reference, `command_line`, or `scheduler` for the server itself.
        #[schema(example = "scheduler")]
        actor: String = head.author.to_string(),
        /// Start time.
        begun_at: TimestampText = head.begun_at,
        /// End time; null if the run has not reported its end.
        ended_at: Option<TimestampText> = head.ended_at,
        /// Time of the last change.
        updated_at: TimestampText = head.updated_at,
        /// State.
        state: RunStateWord = head.state(),
        /// Number of due contracts that were processed.
        contracts: u64 = head.contracts,
        /// Number of issued documents.
        issued: u64 = head.issued,
        /// Number of voided drafts, which had neither events nor an amount.
        voided: u64 = head.voided,
        /// Number of documents that could not be issued and contracts that could not be billed at all.
        failed: u64 = head.failed,
        /// Id of the request; null if no request caused it.
        request_id: Option<String> = head.request_id.as_ref().map(ToString::to_string),
        /// First 500 issued or voided documents in processing order; only for a single run.
        @omitted documents: Option<Vec<RunDocumentJson>> = whole.map(|run| run.documents.iter().map(RunDocumentJson::from).collect::<Vec<_>>()),
        /// First 200 documents and contracts that could not be billed; only for a single run.
        @omitted failures: Option<Vec<RunFailureJson>> = whole.map(|run| run.failures.iter().map(RunFailureJson::from).collect::<Vec<_>>()),
    }
}

answer! {
    /// A document of a billing run.
    RunDocumentJson of document: RunDocument {
        /// Reference.
        document_ref: AssignedRef = document.document_ref,
        /// Number.
        #[schema(example = "UB-INV-1")]
        document_number: String = document.number.to_string(),
        /// Document kind.
        kind: DocumentKindWord = document.number.kind,
        /// Currency of the total.
        currency: CurrencyCode = document.total.currency(),
        /// Total at the time of the run.
        total: ExactNumber = document.total,
        /// Whether the document was voided rather than issued.
        voided: bool = document.voided,
    }
}

answer! {
    /// A document that a run could not issue, or a contract that it could not bill at all.
    RunFailureJson of failure: RunFailure {
        /// Contract reference.
        contract_ref: AssignedRef = failure.contract_ref,
        /// First day of the document's own period; null if the whole contract failed.
        period_start: Option<DateText> = failure.document.map(|document| document.period_start),
        /// Document reference, if the document exists.
        document_ref: Option<AssignedRef> = failure.document.and_then(|document| document.document_ref),
        /// Reason.
        problem: BillingProblemJson = BillingProblemJson { code: failure.code.clone(), detail: failure.detail.clone() },
    }
}
