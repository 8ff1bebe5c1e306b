//! The billing run, and runs as they are told afterwards.

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
use super::wire::{AssignedRef, CurrencyCode, DateText, ExactNumber, TimestampText};
use crate::problem::Problem;

body! {
    /// A billing run to make. The whole body may be left out.
    BillingRunBody {
        /// Whether to answer what would be done and store nothing; false when left out.
        dry_run: bool = false,
        /// Where to go on: the `next` of an earlier run's answer. What was issued isn't due again; what failed is tried again without it.
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
    parsed.or_else(|| node.refuse("invalid_value", "must be the `next` of an earlier run, or be left out"))
}

/// A place in a run, as a caller gives it back.
fn shown_place(place: &RunCursor) -> String {
    format!("{}~{}", place.due_at.as_micros(), place.contract_ref)
}

answer! {
    /// What a billing run did, or would do.
    BillingReportJson of report: BillingReport {
        /// What the run is known by afterwards; null in a dry run.
        run_ref: Option<AssignedRef> = report.run_ref,
        /// Documents issued.
        issued: Vec<BilledDocumentJson> = &report.issued,
        /// Drafts without event and amount, put out of force.
        voided: Vec<BilledDocumentJson> = &report.voided,
        /// Documents that couldn't be issued, and contracts that couldn't be billed at all; everything else was.
        failed: Vec<FailedContractJson> = &report.failed,
        /// Whether nothing was stored.
        dry_run: bool = report.dry_run,
        /// Where to go on, when there wasn't time for everything that is due; null when there was.
        next: Option<String> = report.next.as_ref().map(shown_place),
    }
}

answer! {
    /// A document of a billing run.
    BilledDocumentJson of document: BilledDocument {
        let opened = document.opened.as_ref();
        /// Reference; null in a dry run, of a document that would be opened by its issue.
        document_ref: Option<AssignedRef> = opened.map(|(document_ref, _)| AssignedRef::from(document_ref)),
        /// Number; null in a dry run, of a document that would be opened by its issue.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = opened.map(|(_, number)| number.to_string()),
        /// What it does to what the customer owes.
        kind: DocumentKindWord = document.kind,
        /// The currency of the total.
        currency: CurrencyCode = document.total.currency(),
        /// Its total.
        total: ExactNumber = document.total,
    }
}

answer! {
    /// A document that couldn't be issued, or a contract that couldn't be billed at all.
    FailedContractJson of failed: FailedContract {
        let problem = Problem::of(&failed.problem);
        /// The contract.
        contract_ref: AssignedRef = failed.contract_ref,
        /// The first day of the document's own period; null where the contract failed as a whole.
        period_start: Option<DateText> = failed.document.map(|document| document.period_start),
        /// The document, where it was opened.
        document_ref: Option<AssignedRef> = failed.document.and_then(|document| document.document_ref),
        /// Why.
        problem: BillingProblemJson = BillingProblemJson { code: problem.code().to_owned(), detail: problem.detail().to_owned() },
    }
}

/// Why something couldn't be billed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BillingProblemJson {
    /// A stable word for machines.
    #[schema(example = "amount_out_of_range")]
    code: String,
    /// What went wrong.
    detail: String,
}

/// A run, and all of it where one is asked for.
pub(crate) type BillingRunResponse = (RunHead, Option<BillingRunRecord>);

answer! {
    /// A billing run.
    BillingRunJson of told: BillingRunResponse {
        let (head, whole) = (&told.0, told.1.as_ref());
        /// Reference.
        run_ref: AssignedRef = head.run_ref,
        /// Who started it: `admin:` or `api_key:` and a reference, `command_line`, or `scheduler` for the server itself.
        #[schema(example = "scheduler")]
        actor: String = head.author.to_string(),
        /// When it began.
        begun_at: TimestampText = head.begun_at,
        /// When it ended; null while it hasn't said so.
        ended_at: Option<TimestampText> = head.ended_at,
        /// How far it has come.
        state: RunStateWord = head.state(),
        /// Contracts that were due and that it looked at.
        contracts: u64 = head.contracts,
        /// Documents it issued.
        issued: u64 = head.issued,
        /// Drafts without event and amount that it put out of force.
        voided: u64 = head.voided,
        /// Documents it couldn't issue, and contracts it couldn't bill at all.
        failed: u64 = head.failed,
        /// By which request; null of what no request did.
        request_id: Option<String> = head.request_id.as_ref().map(ToString::to_string),
        /// The first 500 documents that it issued or put out of force, in its order; only of one run.
        @omitted documents: Option<Vec<RunDocumentJson>> = whole.map(|run| run.documents.iter().map(RunDocumentJson::from).collect::<Vec<_>>()),
        /// The first 200 documents and contracts that it couldn't bill; only of one run.
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
        /// What it does to what the customer owes.
        kind: DocumentKindWord = document.number.kind,
        /// The currency of the total.
        currency: CurrencyCode = document.total.currency(),
        /// Its total then.
        total: ExactNumber = document.total,
        /// Whether it was put out of force, and not issued.
        voided: bool = document.voided,
    }
}

answer! {
    /// A document that a run couldn't issue, or a contract that it couldn't bill at all.
    RunFailureJson of failure: RunFailure {
        /// The contract.
        contract_ref: AssignedRef = failure.contract_ref,
        /// The first day of the document's own period; null where the contract failed as a whole.
        period_start: Option<DateText> = failure.document.map(|document| document.period_start),
        /// The document, where it was opened.
        document_ref: Option<AssignedRef> = failure.document.and_then(|document| document.document_ref),
        /// Why.
        problem: BillingProblemJson = BillingProblemJson { code: failure.code.clone(), detail: failure.detail.clone() },
    }
}
