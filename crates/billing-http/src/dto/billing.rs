//! The billing run.

use billing_application::billing_run::{BilledDocument, BillingReport, FailedContract, RunPlace};
use billing_domain::calendar::Timestamp;
use billing_domain::refs::ContractRef;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use super::declare::{Wire, body};
use super::input::Node;
use super::schemas::Schemas;
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
    example json!({"dry_run": true});
}

impl Wire for RunPlace {
    type Value = Self;

    fn read(node: Node<'_>) -> Option<Self> {
        let parsed = node.text()?.split_once('~').and_then(|(due_at, contract_ref)| {
            let due_at = Timestamp::from_micros(due_at.parse().ok()?).ok()?;
            Some(Self { due_at, contract_ref: ContractRef::parse(contract_ref).ok()? })
        });
        parsed.or_else(|| node.refuse("invalid_value", "must be the `next` of an earlier run, or be left out"))
    }

    fn schema(_: &mut Schemas) -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).max_length(Some(64)).into()
    }
}

/// A place in a run, as a caller gives it back.
fn shown_place(place: &RunPlace) -> String {
    format!("{}~{}", place.due_at.as_micros(), place.contract_ref)
}

/// What a billing run did, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BillingReportJson {
    /// Documents issued.
    issued: Vec<BilledDocumentJson>,
    /// Drafts without event and amount, put out of force.
    voided: Vec<BilledDocumentJson>,
    /// Contracts that couldn't be billed; the others were.
    failed: Vec<FailedContractJson>,
    /// Whether nothing was stored.
    dry_run: bool,
    /// Where to go on, when there wasn't time for everything that is due; null when there was.
    next: Option<String>,
}

/// A document of a billing run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BilledDocumentJson {
    /// Reference; null in a dry run, of a document that would be opened by its issue.
    document_ref: Option<AssignedRef>,
    /// Number; null in a dry run, of a document that would be opened by its issue.
    #[schema(example = "UB-INV-1")]
    document_number: Option<String>,
    /// What it does to what the customer owes.
    kind: DocumentKindWord,
    /// The currency of the total.
    currency: CurrencyCode,
    /// Its total.
    total: ExactNumber,
}

/// A contract that couldn't be billed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailedContractJson {
    /// The contract.
    contract_ref: AssignedRef,
    /// Why.
    problem: BillingProblemJson,
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

impl From<&BillingReport> for BillingReportJson {
    fn from(report: &BillingReport) -> Self {
        Self {
            issued: report.issued.iter().map(BilledDocumentJson::from).collect(),
            voided: report.voided.iter().map(BilledDocumentJson::from).collect(),
            failed: report.failed.iter().map(FailedContractJson::from).collect(),
            dry_run: report.dry_run,
            next: report.next.as_ref().map(shown_place),
        }
    }
}

impl From<&BilledDocument> for BilledDocumentJson {
    fn from(document: &BilledDocument) -> Self {
        let opened = document.opened.as_ref();
        Self {
            document_ref: opened.map(|(document_ref, _)| AssignedRef::from(document_ref)),
            document_number: opened.map(|(_, number)| number.to_string()),
            kind: DocumentKindWord::from(document.kind),
            currency: CurrencyCode::from(document.total.currency()),
            total: ExactNumber::from(document.total),
        }
    }
}

impl From<&FailedContract> for FailedContractJson {
    fn from(failed: &FailedContract) -> Self {
        let problem = Problem::of(&failed.problem);
        Self {
            contract_ref: AssignedRef::from(failed.contract_ref),
            problem: BillingProblemJson { code: problem.code(), detail: problem.detail().to_owned() },
        }
    }
}
