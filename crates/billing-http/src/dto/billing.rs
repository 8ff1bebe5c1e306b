//! The billing run.

use billing_application::billing_run::{BilledDocument, BillingReport, FailedContract, RunPlace};
use billing_domain::calendar::Timestamp;
use billing_domain::refs::ContractRef;
use serde::Serialize;
use utoipa::ToSchema;

use super::declare::{answer, body, wire};
use super::input::Node;
use super::schemas::text;
use super::wire::{AssignedRef, CurrencyCode, ExactNumber};
use super::words::DocumentKindWord;
use crate::problem::Problem;

body! {
    /// A billing run to make. The whole body may be left out.
    BillingRunBody {
        /// Whether to answer what would be done and store nothing; false when left out.
        dry_run: bool = false,
        /// Where to go on: the `next` of an earlier run's answer. What was issued isn't due again; what failed is tried again without it.
        after: Option<RunPlace>,
    }
}

wire! {
    RunPlace: run_place, |_| text().max_length(Some(64));
}

fn run_place(node: Node<'_>) -> Option<RunPlace> {
    let parsed = node.text()?.split_once('~').and_then(|(due_at, contract_ref)| {
        let due_at = Timestamp::from_micros(due_at.parse().ok()?).ok()?;
        Some(RunPlace { due_at, contract_ref: ContractRef::parse(contract_ref).ok()? })
    });
    parsed.or_else(|| node.refuse("invalid_value", "must be the `next` of an earlier run, or be left out"))
}

/// A place in a run, as a caller gives it back.
fn shown_place(place: &RunPlace) -> String {
    format!("{}~{}", place.due_at.as_micros(), place.contract_ref)
}

answer! {
    /// What a billing run did, or would do.
    BillingReportJson of report: BillingReport {
        /// Documents issued.
        issued: Vec<BilledDocumentJson> = &report.issued,
        /// Drafts without event and amount, put out of force.
        voided: Vec<BilledDocumentJson> = &report.voided,
        /// Contracts that couldn't be billed; the others were.
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
    /// A contract that couldn't be billed.
    FailedContractJson of failed: FailedContract {
        let problem = Problem::of(&failed.problem);
        /// The contract.
        contract_ref: AssignedRef = failed.contract_ref,
        /// Why.
        problem: BillingProblemJson = BillingProblemJson { code: problem.code(), detail: problem.detail().to_owned() },
    }
}

/// Why a contract couldn't be billed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BillingProblemJson {
    /// A stable word for machines.
    #[schema(example = "amount_out_of_range")]
    code: &'static str,
    /// What went wrong.
    detail: String,
}
