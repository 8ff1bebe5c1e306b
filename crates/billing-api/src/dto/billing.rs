//! Billing runs: requests, reports and records.

use billing_application::billing_run::{BilledDocument, BillingReport, FailedContract, RunCursor};
use billing_application::names::{Named, ObjectNames};
use billing_domain::audit::AuditedKind;
use billing_domain::calendar::Timestamp;
use billing_domain::ports::ObjectName;
use billing_domain::refs::ContractRef;
use billing_domain::runs::{BillingRunRecord, FailedDocument, RunDocument, RunFailure, RunHead};
use serde::Serialize;
use utoipa::ToSchema;

use super::declare::{answer, body, response, wire};
use super::enums::{DocumentKindWord, RunStateWord};
use super::input::Node;
use super::schemas::text;
use super::values::{CurrencyCode, DateText, LineText, TimestampText};
use super::warnings::WarningJson;
use super::wire::{AssignedRef, ExactNumber, NamedRef};
use crate::problem::Problem;

body! {
    /// Options of a billing run. The body may be omitted.
    BillingRunBody {
        /// Whether to preview the result and store nothing. Default: false.
        dry_run: bool = false,
        /// Whether to issue documents even if the server does not trust its clock. Default: false.
        trust_clock: bool = false,
        /// Position to continue from: `next` of an earlier run. A run without it starts at the beginning and retries
        /// failed contracts.
        after: Option<RunCursor>,
    }
}

body! {
    /// Options of issuing a document. The body may be omitted.
    IssueBody {
        /// Whether to issue the document even if the server does not trust its clock. Default: false.
        trust_clock: bool = false,
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
        issued: Vec<BilledDocumentJson> = report.issued.iter().map(|document| billed(document, &report.names)),
        /// Voided drafts, which had neither events nor an amount.
        voided: Vec<BilledDocumentJson> = report.voided.iter().map(|document| billed(document, &report.names)),
        /// Documents that could not be issued, and contracts that could not be billed at all. All others were processed.
        failed: Vec<FailedContractJson> = report.failed.iter().map(|failed| FailedContractJson::of(failed, &report.names)),
        /// Whether nothing was stored.
        dry_run: bool = report.dry_run,
        /// Position to continue from if time ran out; null if the run is complete.
        next: Option<String> = report.next.as_ref().map(shown_place),
        /// Possible mistakes; omitted if there are none.
        @omitted warnings: Option<Vec<WarningJson>> = WarningJson::any_of(report.warning().as_slice()),
    }
}

/// A document of a billing run and the name of its contract.
type NamedDocument = (BilledDocument, Option<ObjectName>);

fn billed(document: &BilledDocument, names: &ObjectNames) -> BilledDocumentJson {
    BilledDocumentJson::from(&(document.clone(), names.of(AuditedKind::Contract, document.contract_ref).cloned()))
}

answer! {
    /// A document of a billing run. Names are those of the first 1,000 documents; beyond it they are null.
    BilledDocumentJson of named: NamedDocument {
        let (document, contract) = (&named.0, named.1.as_ref());
        let opened = document.opened.as_ref();
        /// Reference; null in a dry run for a document that does not exist yet.
        document_ref: Option<AssignedRef> = opened.map(|(document_ref, _)| AssignedRef::from(document_ref)),
        /// Number; null in a dry run for a document that does not exist yet.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = opened.map(|(_, number)| number.to_string()),
        /// Document kind.
        kind: DocumentKindWord = document.kind,
        /// First day of the document's own period.
        period_start: DateText = document.period.start(),
        /// Last day of the document's own period.
        period_end: DateText = document.period.last_day(),
        /// Contract that the document bills.
        contract_ref: AssignedRef = document.contract_ref,
        /// Number of the contract.
        #[schema(example = "C-1")]
        contract_number: Option<String> = contract.map(|contract| contract.name.clone()),
        /// Customer.
        customer_ref: Option<NamedRef> = contract.and_then(|contract| contract.customer_ref.as_ref()),
        /// Name of the customer.
        customer_name: Option<LineText> = contract.and_then(|contract| contract.customer_name.as_ref()),
        /// Currency of the total.
        currency: CurrencyCode = document.total.currency(),
        /// Total.
        total: ExactNumber = document.total,
    }
}

response! {
    /// A document that could not be issued, or a contract that could not be billed at all.
    #[derive(Debug, Serialize, ToSchema)]
    pub struct FailedContractJson {
        /// Contract reference.
        contract_ref: AssignedRef,
        /// Number of the contract.
        #[schema(example = "C-1")]
        contract_number: Option<String>,
        /// Customer.
        customer_ref: Option<NamedRef>,
        /// Name of the customer.
        customer_name: Option<LineText>,
        /// First day of the document's own period; null if the whole contract failed.
        period_start: Option<DateText>,
        /// Last day of the document's own period; null if the whole contract failed.
        period_end: Option<DateText>,
        /// Document reference, if the document exists.
        document_ref: Option<AssignedRef>,
        /// Number of the document.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String>,
        /// Reason.
        problem: BillingProblemJson,
    }
}

impl FailedContractJson {
    pub(super) fn of(failed: &FailedContract, names: &ObjectNames) -> Self {
        let problem = Problem::of(&failed.problem);
        let problem = BillingProblemJson { code: problem.code().to_owned(), detail: problem.detail().to_owned() };
        Self::named((failed.contract_ref, failed.document), problem, names)
    }

    fn named(
        (contract_ref, document): (ContractRef, Option<FailedDocument>),
        problem: BillingProblemJson,
        names: &ObjectNames,
    ) -> Self {
        let contract = names.of(AuditedKind::Contract, contract_ref);
        let document_ref = document.and_then(|document| document.document_ref);
        let number = document_ref.and_then(|document_ref| names.of(AuditedKind::Document, document_ref));
        Self {
            contract_ref: contract_ref.into(),
            contract_number: contract.map(|contract| contract.name.clone()),
            customer_ref: contract.and_then(|contract| contract.customer_ref.as_ref()).map(NamedRef::from),
            customer_name: contract.and_then(|contract| contract.customer_name.as_ref()).map(LineText::from),
            period_start: document.map(|document| document.period.start().into()),
            period_end: document.map(|document| document.period.last_day().into()),
            document_ref: document_ref.map(AssignedRef::from),
            document_number: number.map(|document| document.name.clone()),
            problem,
        }
    }
}

response! {
    /// The reason for a billing failure.
    #[derive(Debug, Serialize, ToSchema)]
    pub struct BillingProblemJson {
        /// Stable error code.
        #[schema(example = "amount_out_of_range")]
        code: String,
        /// Human-readable explanation.
        detail: String,
    }
}

/// A run head, with the whole record if a single run was requested, and the names of its author, contracts and documents.
pub type BillingRunResponse = Named<(RunHead, Option<BillingRunRecord>)>;

answer! {
    /// A billing run.
    BillingRunJson of reported: BillingRunResponse {
        let (head, whole) = (&reported.item.0, reported.item.1.as_ref());
        /// Reference.
        run_ref: AssignedRef = head.run_ref,
        /// Author: `admin:` or `api_key:` and a reference, `command_line`, or `scheduler` for the server itself.
        #[schema(example = "scheduler")]
        actor: String = head.author.to_string(),
        /// E-mail address of the administrator or name of the API key. Null for other authors, and for callers who are neither
        /// administrators nor owners.
        #[schema(example = "dana@example.com")]
        actor_name: Option<String> = reported.names.of_actor(head.author),
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
        @omitted documents: Option<Vec<RunDocumentJson>> = whole.map(|run| run.documents.iter().map(|document| run_document(document, &reported.names)).collect::<Vec<_>>()),
        /// First 200 documents and contracts that could not be billed; only for a single run.
        @omitted failures: Option<Vec<FailedContractJson>> = whole.map(|run| run.failures.iter().map(|failure| run_failure(failure, &reported.names)).collect::<Vec<_>>()),
    }
}

/// A document of a finished run and its name.
type NamedRunDocument = (RunDocument, Option<ObjectName>);

fn run_document(document: &RunDocument, names: &ObjectNames) -> RunDocumentJson {
    RunDocumentJson::from(&(document.clone(), names.of(AuditedKind::Document, document.document_ref).cloned()))
}

fn run_failure(failure: &RunFailure, names: &ObjectNames) -> FailedContractJson {
    let problem = BillingProblemJson { code: failure.code.clone(), detail: failure.detail.clone() };
    FailedContractJson::named((failure.contract_ref, failure.document), problem, names)
}

answer! {
    /// A document of a billing run.
    RunDocumentJson of named: NamedRunDocument {
        let (document, found) = (&named.0, named.1.as_ref());
        /// Reference.
        document_ref: AssignedRef = document.document_ref,
        /// Number.
        #[schema(example = "UB-INV-1")]
        document_number: String = document.number.to_string(),
        /// Document kind.
        kind: DocumentKindWord = document.number.kind,
        /// Customer.
        customer_ref: Option<NamedRef> = found.and_then(|found| found.customer_ref.as_ref()),
        /// Name of the customer.
        customer_name: Option<LineText> = found.and_then(|found| found.customer_name.as_ref()),
        /// Currency of the total.
        currency: CurrencyCode = document.total.currency(),
        /// Total at the time of the run.
        total: ExactNumber = document.total,
        /// Whether the document was voided rather than issued.
        voided: bool = document.voided,
    }
}
