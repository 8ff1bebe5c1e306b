//! The error responses of each operation: statuses and their codes.

use billing_application::error::ResourceKind;
use billing_domain::access::{Permission, Role};
use utoipa::ToSchema as _;
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, Schema, SchemaType};
use utoipa::openapi::{Content, Ref, Response, ResponseBuilder};

use crate::dto::imports::ImportResultJson;
use crate::dto::schemas::Schemas;
use crate::media_type::PROBLEM_JSON;
use crate::operation::{AuthRequirement, Flag, OperationSpec};
use crate::operations::OPERATIONS;
use crate::problem::{IMPORT_STOPPED, not_found_code};

/// The extension of a response that lists the codes of its problem document.
pub const CODES: &str = "x-codes";
const PROBLEM: &str = "Problem";

/// The refusals with one status.
pub(super) struct Refusal {
    pub(super) status: &'static str,
    /// Description of the response.
    pub(super) means: &'static str,
    codes: Vec<&'static str>,
}

impl Refusal {
    fn new(status: &'static str, means: &'static str, mut codes: Vec<&'static str>) -> Self {
        codes.sort_unstable();
        codes.dedup();
        Self { status, means, codes }
    }

    /// Returns the key that identifies equal responses, which share one component.
    pub(super) fn key(&self) -> String {
        format!("{} {}", self.status, self.codes.join(" "))
    }

    /// Returns the component name of the response. It uses the status if the response is the same for all operations, the
    /// codes if they are few, else the first operation with this response.
    pub(super) fn name(&self, operation: &OperationSpec) -> String {
        let capital = |word: &str| {
            let (first, rest) = word.split_at(word.len().min(1));
            format!("{}{rest}", first.to_ascii_uppercase())
        };
        match self.codes.as_slice() {
            _ if self.status == "500" => "InternalError".to_owned(),
            _ if self.status == "503" && !self.has_import() => "Unavailable".to_owned(),
            [_] | [_, _] => self.codes.iter().flat_map(|code| code.split('_')).map(capital).collect(),
            _ => operation.id.split('_').map(capital).chain([self.status.to_owned()]).collect(),
        }
    }

    /// Returns whether the problem documents can have the result of an import.
    fn has_import(&self) -> bool {
        self.codes.contains(&IMPORT_STOPPED)
    }

    /// Returns the response with a problem document. The codes are listed beside its schema, because each type of its own would be
    /// a type of every generated client.
    pub(super) fn response(&self, schemas: &mut Schemas) -> Response {
        let schema = if self.has_import() {
            schemas.define("ImportProblem", |_| import_problem())
        } else {
            Ref::from_schema_name(PROBLEM).into()
        };
        let mut response = ResponseBuilder::new().description(self.means).build();
        response.content.insert(PROBLEM_JSON.to_owned(), Content::new(Some(schema)).into());
        response.extensions = Some(ExtensionsBuilder::new().add(CODES, self.codes.as_slice()).build());
        response
    }
}

/// Returns the schema of a problem document with the result of an import.
fn import_problem() -> Schema {
    // The operation's success response defines the schema.
    let mut import = Ref::from_schema_name(ImportResultJson::name());
    import.description = "With `import_stopped`: the result of the import.".to_owned();
    let with_import = ObjectBuilder::new().schema_type(SchemaType::AnyValue).property("import", import);
    Schema::AllOf(AllOfBuilder::new().item(Ref::from_schema_name(PROBLEM)).item(with_import).build())
}

/// Codes of a service that is unavailable or overloaded.
const BUSY: [&str; 9] = [
    "contended",
    "node_unavailable",
    "not_ready",
    "overloaded",
    "print_failed",
    "printer_not_ready",
    "timed_out",
    "too_many_reports",
    "unavailable",
];

/// Returns the codes of requests that cannot be read.
fn unreadable(operation: &OperationSpec) -> Vec<&'static str> {
    let (has_body, has_query) = (operation.takes.is_some(), operation.parameters().is_some());
    let takes_a_file = operation.is(Flag::TakesFile);
    chosen(&[
        (operation.is_versioned(), &["unsupported_version"]),
        (operation.takes_idempotency_key(), &["invalid_idempotency_key"]),
        (has_body, &["incomplete_body"]),
        (has_body && !takes_a_file, &["malformed_json", "duplicate_json_key", "json_too_deep", "json_too_many_values"]),
        (takes_a_file, &["malformed_file"]),
        (has_query, &["malformed_query"]),
    ])
}

/// Returns the codes of credentials that do not permit the operation.
fn forbidden(operation: &OperationSpec) -> Vec<&'static str> {
    let need = operation.need();
    chosen(&[
        (matches!(need, Some(Permission::Administrator | Permission::Owner)), &["admin_session_required"]),
        (need.is_some_and(|need| need.role() > Role::Read), &["insufficient_role"]),
        (need.is_some_and(|need| !need.scopes().is_empty()), &["insufficient_scope"]),
        (
            operation.use_case().is_ok_and(|use_case| use_case.needs_confirmation() || use_case.sets_payment_details()),
            &["confirmation_required"],
        ),
        (operation.changes_state() && (need.is_some() || operation.needs == AuthRequirement::Anything), &["cross_site_request"]),
    ])
}

/// Returns the refusals of an operation by status.
pub(super) fn of(operation: &OperationSpec) -> Vec<Refusal> {
    let (has_body, has_query) = (operation.takes.is_some(), operation.parameters().is_some());
    let once = operation.is_carried_out_once();
    let (logs_in, takes_a_file) = (operation.is(Flag::LogsIn), operation.is(Flag::TakesFile));
    // A dry run has the refusals of the operation that it previews.
    let others = OPERATIONS.iter().filter(|other| operation.is(Flag::PreviewsOthers) && other.is(Flag::DryRun));
    let answered_for: Vec<&OperationSpec> = std::iter::once(operation).chain(others).collect();
    let mut all = Vec::new();
    let mut add = |status, means, codes: Vec<&'static str>| {
        if !codes.is_empty() {
            all.push(Refusal::new(status, means, codes));
        }
    };
    add("400", "The request could not be read, or requests an unsupported version", unreadable(operation));
    let unknown = chosen(&[(operation.need().is_some(), &["unauthenticated", "invalid_credentials"]), (logs_in, &LOG_INS)]);
    add("401", "The credential is missing or invalid", unknown);
    let means = "The credential is of the wrong kind, lacks the scope or role, or was sent from another site";
    add("403", means, forbidden(operation));
    let unknown = answered_for.iter().flat_map(|operation| not_found(operation));
    add("404", "The resource does not exist", unknown.collect());
    add("408", "The body did not arrive in time", chosen(&[(has_body, &["request_timeout"])]));
    let mut conflicts = chosen(&[(once, &["request_in_progress"])]);
    conflicts.extend(answered_for.iter().flat_map(|operation| expanded(operation.conflicts)));
    add("409", "The request conflicts with the current state, or a request with the same key is in progress", conflicts);
    add("413", "The body is too large", chosen(&[(has_body, &["body_too_large"])]));
    add("415", "The media type or encoding of the body is not supported", chosen(&[(has_body, &["unsupported_media_type"])]));
    let mut refused = chosen(&[
        (has_body || has_query, &["validation_failed"]),
        (has_query, &["unknown_parameter"]),
        (has_body, &["unknown_field"]),
        // Dry runs accept the idempotency key in the body.
        (answered_for.iter().any(|operation| operation.is_carried_out_once()), &["idempotency_key_reuse"]),
    ]);
    refused.extend(answered_for.iter().flat_map(|operation| expanded(operation.refuses)));
    let means =
        "Fields, references or business rules are violated, as listed in `errors`, or the key was used for another request";
    add("422", means, refused);
    add(
        "429",
        "Too many log-in attempts; `Retry-After` is the time to wait",
        // A request with a key and its password can be a log-in.
        chosen(&[(logs_in || operation.need().is_some(), &["too_many_log_ins"])]),
    );
    add("500", "An internal error occurred", vec!["internal_error", "invariant_violation"]);
    let busy = BUSY.into_iter().chain(takes_a_file.then_some(IMPORT_STOPPED)).collect();
    let means = if takes_a_file {
        "The service is unavailable or overloaded, or the import stopped before the end of the file; `Retry-After` is the time to \
         wait"
    } else {
        "The service is unavailable or overloaded; `Retry-After` is the time to wait"
    };
    add("503", means, busy);
    all
}

fn chosen(rows: &[(bool, &[&'static str])]) -> Vec<&'static str> {
    rows.iter().filter(|(applies, _)| *applies).flat_map(|(_, codes)| codes.iter().copied()).collect()
}

/// Replaces names of shared rule groups by their codes.
fn expanded(codes: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    codes
        .iter()
        .flat_map(|code| match *code {
            "amendments" => AMENDMENTS,
            "documents" => DOCUMENTS,
            "forms" => FORMS,
            "matching" => MATCHING,
            "periods" => PERIODS,
            "terms" => TERMS,
            _ => std::slice::from_ref(code),
        })
        .copied()
}

/// Codes of rejected log-ins.
const LOG_INS: [&str; 5] =
    ["invalid_code", "invalid_credentials", "new_password_required", "second_factor_locked", "second_factor_required"];
/// Codes that can reject a contract change.
const AMENDMENTS: &[&str] = &[
    "charge_already_recorded",
    "contract_over",
    "e_invoice_incomplete",
    "e_invoice_unavailable",
    "exchange_rate_missing",
    "paper_incomplete",
    "product_over",
    "usage_already_reported",
];
/// Codes that can reject the issuing of a document.
const DOCUMENTS: &[&str] =
    &["calculation_mismatch", "e_invoice_incomplete", "e_invoice_unavailable", "exchange_rate_missing", "paper_incomplete"];
/// Codes for customer and entity data in third-party formats.
const FORMS: &[&str] = &[
    "exemption_reason_required",
    "invalid_country_code",
    "invalid_vat_id",
    "tax_category_rate",
    "unknown_exemption_code",
    "unknown_scheme",
    "unknown_subject_code",
];
/// Codes for events that cannot be matched to a contract.
const MATCHING: &[&str] = &[
    "ambiguous_name",
    "amount_out_of_range",
    "conflicting_fields",
    "no_matching_contract",
    "no_matching_line",
    "timestamp_in_future",
    "too_many_documents",
    "unknown_usage_product",
    "validation_mismatch",
];
/// Codes for the effective time of a contract change.
const PERIODS: &[&str] = &[
    "amount_out_of_range",
    "conflicting_fields",
    "ends_before_next_period",
    "not_a_period_start",
    "not_retroactive",
    "pricing_mismatch",
    "too_many_documents",
    "too_many_events",
];
/// Codes for contract terms.
const TERMS: &[&str] = &[
    "amount_out_of_range",
    "conflicting_fields",
    "duplicate_product",
    "entity_required",
    "exemption_reason_required",
    "o_stands_alone",
    "overlapping_where",
    "prepaid_needs_before_use",
    "several_rest",
    "several_unique_by",
    "tax_category_rate",
    "too_many_documents",
    "unique_by_required",
    "unique_with_where",
    "unknown_exemption_code",
    "unknown_line_item",
    "unknown_product",
];

/// Returns the not-found codes for references in the path or in an update's body.
fn not_found(operation: &OperationSpec) -> Vec<&'static str> {
    let named = operation.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let things = named.flat_map(|name| -> &[ResourceKind] {
        match name {
            "admin_ref" => &[ResourceKind::Administrator],
            "api_key_ref" => &[ResourceKind::ApiKey],
            "application_ref" => &[ResourceKind::Application],
            "billing_account_id" => &[ResourceKind::BankAccount],
            "charge_ref" => &[ResourceKind::Charge],
            "grant_ref" => &[ResourceKind::CreditGrant],
            "limit_ref" => &[ResourceKind::Limit],
            "contract_ref" => &[ResourceKind::Contract],
            "customer_ref" => &[ResourceKind::Customer],
            "document_ref" => &[ResourceKind::Document],
            "endpoint_ref" => &[ResourceKind::Endpoint],
            "entity_ref" => &[ResourceKind::Entity],
            "event_ref" => &[ResourceKind::Event],
            "format_ref" => &[ResourceKind::Format],
            "hold_ref" => &[ResourceKind::Hold],
            "import_ref" => &[ResourceKind::Import],
            "notification_ref" => &[ResourceKind::Notification],
            "payment_ref" => &[ResourceKind::Payment],
            "product_pricing_ref" => &[ResourceKind::Pricing],
            "run_ref" => &[ResourceKind::BillingRun],
            "session_ref" => &[ResourceKind::Session],
            "source_ref" => &[ResourceKind::Document, ResourceKind::Payment],
            "usage_product_ref" => &[ResourceKind::UsageProduct],
            _ => &[],
        }
    });
    let of_body: &[ResourceKind] = if operation.is(Flag::NamesEvent) { &[ResourceKind::Event] } else { &[] };
    things.chain(of_body).map(|thing| not_found_code(*thing)).collect()
}
