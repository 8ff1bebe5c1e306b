//! The status and code of each use case error, as one exhaustive match.

use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use std::error::Error;
use std::fmt;

use billing_application::error::{MappingOrigin, ResourceKind, UseCaseError};
use billing_domain::access::Permission;
use billing_domain::einvoice::Missing;
use billing_domain::format::{FormatError, FormatTarget};
use billing_domain::ports::{NodeUnavailable, PrintError, PrintStop, SecretError, StoreError};
use billing_domain::refusal::MatchRefusal;
use billing_domain::violation::{Violation, Violations};
use billing_json::JsonError;

use super::{
    CONFIRMATION_REQUIRED, CONTENDED_RETRY_SECONDS, FieldProblem, INVALID_CODE, KEY_REUSE, Problem, UNAVAILABLE_RETRY_SECONDS,
    VALIDATION_FAILED, grouped, pointer, see_errors,
};

/// Codes of business rule violations, third-party format errors and unknown names. If such an error is the only one, its
/// code becomes the problem's code.
const RULES: [&str; 42] = [
    "address_not_public",
    "ambiguous_name",
    "clock_only_forward",
    "conflicting_fields",
    "credit_above_billed",
    "duplicate_product",
    "ends_before_next_period",
    "entity_required",
    "exemption_reason_required",
    "invalid_bic",
    "invalid_code",
    "invalid_country_code",
    "invalid_iban",
    "invalid_routing_number",
    "invalid_url",
    "invalid_vat_id",
    "logo_too_complex",
    "not_a_period_start",
    "not_holdable",
    "not_retroactive",
    "o_stands_alone",
    "password_refused",
    "prepaid_needs_before_use",
    "pricing_mismatch",
    "tax_category_rate",
    "timestamp_in_future",
    "too_many_documents",
    "too_many_holds",
    "too_many_limits",
    "unknown_event_type",
    "unknown_exemption_code",
    "unknown_field",
    "unknown_format",
    "unknown_line_item",
    "unknown_parameter",
    "unknown_product",
    "unknown_scheme",
    "unknown_subject_code",
    "unknown_unit_code",
    "unknown_usage_product",
    "unsupported_cloudevent",
    "wrong_password",
];

const FORMAT_ERROR: &str = "format_error";
const EVENT: &str = "event";
const MAPPING: &str = "mapping";

impl Problem {
    /// Returns the problem of a use case error. This function is the only place that assigns statuses and codes.
    pub fn of(error: &UseCaseError) -> Self {
        let unprocessable = |code| Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, error.to_string());
        match error {
            UseCaseError::InvalidCredentials => Self::log_in_refused("invalid_credentials", error),
            UseCaseError::InvalidCode => Self::log_in_refused(INVALID_CODE, error),
            UseCaseError::SecondFactorLocked => Self::log_in_refused("second_factor_locked", error),
            UseCaseError::SecondFactorRequired => Self::log_in_refused("second_factor_required", error),
            UseCaseError::NewPasswordRequired => Self::log_in_refused("new_password_required", error),
            UseCaseError::InsufficientRole { .. } => Self::new(StatusCode::FORBIDDEN, "insufficient_role", error.to_string()),
            UseCaseError::ConfirmationRequired => Self::new(StatusCode::FORBIDDEN, CONFIRMATION_REQUIRED, error.to_string()),
            UseCaseError::Unauthenticated | UseCaseError::Secret(SecretError::InvalidToken) => Self::unauthenticated(true),
            UseCaseError::Forbidden(Permission::Administrator | Permission::Owner) => Self::admin_session_required(),
            UseCaseError::Forbidden(need) => Self::insufficient_scope(*need),
            UseCaseError::Unknown(thing) => Self::unknown(*thing),
            UseCaseError::Invalid(violations) => Self::of_violations(violations),
            UseCaseError::AlreadyExists { field, .. } => {
                let problem = Self::new(StatusCode::CONFLICT, "already_exists", error.to_string());
                problem.with_error(&[field], "already_exists", "is already in use")
            }
            UseCaseError::NoMatch(refusal) => Self::of_match(refusal, error),
            UseCaseError::AmountOutOfRange(_) => unprocessable("amount_out_of_range"),
            UseCaseError::LimitReached(reached) => unprocessable("limit_reached").about_limit(reached),
            UseCaseError::IdempotencyKeyReuse => unprocessable(KEY_REUSE),
            UseCaseError::EventChanged(event_ref) => unprocessable(KEY_REUSE).about_recorded_event(*event_ref),
            UseCaseError::LineChanged(event_ref) => unprocessable("line_changed").about_recorded_event(*event_ref),
            UseCaseError::EventDeleted(event_ref) => {
                Self::new(StatusCode::CONFLICT, "event_deleted", error.to_string()).about_recorded_event(Some(*event_ref))
            }
            UseCaseError::EventsRefused(refused) => Self::batch_refused(
                refused.iter().map(|(place, error)| (*place, Self::of(error).below_record(is_of_record(error)))),
            ),
            UseCaseError::FormatFailed { mapping, errors } => Self::of_format_errors(*mapping, errors),
            UseCaseError::Mapped(refusal) => Self::of(refusal).about_mapped_event(),
            UseCaseError::TooMuch { code, .. } => unprocessable(code),
            UseCaseError::Conflict { code, detail } => Self::new(StatusCode::CONFLICT, code, detail.clone()),
            UseCaseError::FeedRestarted(restart) => Self::feed_restarted(error.to_string(), *restart),
            UseCaseError::EInvoiceIncomplete(missing) => {
                let problem = Self::new(StatusCode::CONFLICT, "e_invoice_incomplete", error.to_string());
                missing.iter().fold(problem, |problem, Missing { pointer, detail }| {
                    let path: Vec<&str> = pointer.split('/').skip(1).collect();
                    problem.with_error(&path, "required", detail.clone())
                })
            }
            UseCaseError::RequestInProgress => Self::request_in_progress(),
            UseCaseError::Overloaded => Self::overloaded(),
            UseCaseError::Secret(SecretError::PasswordLength | SecretError::CommonPassword) => unprocessable("password_refused"),
            UseCaseError::InvariantViolation(_) => {
                let detail = "the request would violate a ledger invariant, so nothing was stored";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "invariant_violation", detail)
            }
            UseCaseError::Store(StoreError::Contended) | UseCaseError::UnsettledConflict(_) => {
                let detail = "too many requests change the same resource: retry after the given delay";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "contended", detail).retry_after(CONTENDED_RETRY_SECONDS)
            }
            UseCaseError::Store(StoreError::Unavailable(reason)) if reason.is::<NodeUnavailable>() => Self::node_unavailable(),
            UseCaseError::Store(StoreError::Unavailable(_)) => Self::unavailable(),
            UseCaseError::Print(PrintError::MissingGlyph(missing)) => {
                let detail = format!(
                    "no font of this server has “{missing}”, and the entity's paper is STRICT: its operators can add a font"
                );
                Self::new(StatusCode::CONFLICT, "glyph_missing", detail)
            }
            UseCaseError::Print(PrintError::Stopped(stop)) => Self::print_failed(stop),
            UseCaseError::Store(StoreError::Corrupt(_) | StoreError::Unsupported(_))
            | UseCaseError::Secret(SecretError::Failed(_))
            | UseCaseError::Print(PrintError::Failed(_)) => Self::internal(),
        }
    }

    /// Returns the problem of an event or charge that matches no product.
    fn of_match(refusal: &MatchRefusal, error: &UseCaseError) -> Self {
        let unprocessable = |code| Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, error.to_string());
        match refusal {
            MatchRefusal::NoMatchingContract => unprocessable("no_matching_contract"),
            MatchRefusal::NoMatchingLine(label) => {
                let path = ["additional_report_data", &label.key];
                unprocessable("no_matching_line").with_error(&path, "no_matching_line", error.to_string())
            }
            MatchRefusal::NoChargedProduct => {
                let detail = "is not billed by a product of the contract";
                unprocessable("no_matching_contract").with_error(&["date"], "no_matching_contract", detail)
            }
            MatchRefusal::CurrencyMismatch { expected, actual } => {
                unprocessable("validation_mismatch").with_mismatch("currency", error, expected, actual)
            }
            MatchRefusal::EntityMismatch { expected, actual } => {
                unprocessable("validation_mismatch").with_mismatch("entity_ref", error, expected, actual)
            }
        }
    }

    /// Returns the problem of a document that was not printed completely. The reason has no details of the system.
    fn print_failed(stop: &PrintStop) -> Self {
        let mut code = "print_failed";
        let reason = match stop {
            PrintStop::NotReady(_) => {
                code = "printer_not_ready";
                "the program that prints documents is not there yet, or is of another version".to_owned()
            }
            PrintStop::TimedOut { .. } | PrintStop::OutOfMemory { .. } => stop.to_string(),
            PrintStop::ProcessEnded(_) => "the process that printed the document ended".to_owned(),
            PrintStop::NotStarted(_) => "the process that prints documents could not be started".to_owned(),
        };
        let detail =
            format!("{reason}: retry after the given delay, and if that fails, too, give the request id to the operators");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).retry_after(UNAVAILABLE_RETRY_SECONDS)
    }

    fn log_in_refused(code: &'static str, error: &UseCaseError) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, error.to_string()).with_header(WWW_AUTHENTICATE, "Bearer")
    }

    fn with_mismatch(self, field: &str, error: &UseCaseError, expected: &dyn fmt::Display, actual: &dyn fmt::Display) -> Self {
        let mut problem = self.with_error(&["validations", field], "validation_mismatch", error.to_string());
        for found in &mut problem.errors {
            found.expected = Some(expected.to_string());
            found.actual = Some(actual.to_string());
        }
        problem
    }

    /// Returns the problem of mapping errors. Each error points to its expression in the request's mapping, or to the
    /// event if the mapping is stored.
    fn of_format_errors(mapping: MappingOrigin, errors: &[FormatError]) -> Self {
        let detail = match errors {
            [only] => only.to_string(),
            several => format!("invalid mapping expressions: {}; see `errors`", several.len()),
        };
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, FORMAT_ERROR, detail);
        errors.iter().fold(problem, |problem, error| {
            let path = match (mapping, &error.target) {
                (MappingOrigin::Stored, _) | (_, FormatTarget::Event) => vec![EVENT],
                (MappingOrigin::Submitted, field) => [vec![MAPPING], field.path()].concat(),
            };
            problem.with_error(&path, FORMAT_ERROR, error.to_string())
        })
    }

    /// Rewrites an error about a mapped event: fields that the request does not contain are named in the detail.
    fn about_mapped_event(mut self) -> Self {
        for error in &mut self.errors {
            let field = error.pointer.trim_start_matches('/').replace('/', ".");
            error.detail = format!("{field} from the usage format: {}", error.detail);
            error.pointer = pointer([EVENT]);
        }
        if let [only] = self.errors.as_slice() {
            self.detail.clone_from(&only.detail);
        }
        self
    }

    /// Returns the problem of an event in a list of events, whose errors point below the event. The errors of a mapped event
    /// concern the event as a whole.
    fn below_record(mut self, is_of_record: bool) -> Self {
        if is_of_record {
            self.errors.iter_mut().for_each(|error| error.pointer.clear());
        }
        self
    }

    /// Returns the problem of an event in a list of free-form events.
    pub fn of_listed(error: UseCaseError) -> Self {
        let is_of_record = is_of_record(&error);
        Self::from(error).below_record(is_of_record)
    }

    fn of_violations(violations: &Violations) -> Self {
        let (all, unlisted) = (violations.iter().collect::<Vec<&Violation>>(), violations.unlisted());
        let (code, detail) = match all.as_slice() {
            [only] if unlisted == 0 && RULES.contains(&only.code) => (only.code, only.detail.clone()),
            listed => {
                let number = grouped(listed.len().saturating_add(unlisted));
                (VALIDATION_FAILED, format!("invalid request fields: {number}; {}", see_errors(listed.len(), unlisted)))
            }
        };
        let field = |violation: &&Violation| FieldProblem {
            pointer: pointer(violation.path.iter().map(String::as_str)),
            code: violation.code,
            detail: violation.detail.clone(),
            expected: None,
            actual: None,
        };
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail);
        Self { errors: all.iter().map(field).collect(), unlisted, ..problem }
    }
}

impl From<UseCaseError> for Problem {
    /// Logs the details that only operators may see.
    fn from(error: UseCaseError) -> Self {
        match &error {
            UseCaseError::InvariantViolation(_)
            | UseCaseError::Store(StoreError::Corrupt(_) | StoreError::Unsupported(_))
            | UseCaseError::Secret(SecretError::Failed(_))
            | UseCaseError::Print(PrintError::Failed(_)) => {
                tracing::error!(error = %Chain(&error), "a request failed");
            }
            UseCaseError::Store(StoreError::Contended | StoreError::Unavailable(_))
            | UseCaseError::Print(PrintError::Stopped(_)) => {
                tracing::warn!(error = %Chain(&error), "a request could not be carried out");
            }
            UseCaseError::InvalidCredentials
            | UseCaseError::InvalidCode
            | UseCaseError::SecondFactorLocked
            | UseCaseError::SecondFactorRequired
            | UseCaseError::NewPasswordRequired
            | UseCaseError::InsufficientRole { .. }
            | UseCaseError::ConfirmationRequired
            | UseCaseError::Unauthenticated
            | UseCaseError::Forbidden(_)
            | UseCaseError::Unknown(_)
            | UseCaseError::Invalid(_)
            | UseCaseError::AlreadyExists { .. }
            | UseCaseError::NoMatch(_)
            | UseCaseError::AmountOutOfRange(_)
            | UseCaseError::LimitReached(_)
            | UseCaseError::IdempotencyKeyReuse
            | UseCaseError::EventChanged(_)
            | UseCaseError::LineChanged(_)
            | UseCaseError::UnsettledConflict(_)
            | UseCaseError::EventDeleted(_)
            | UseCaseError::Overloaded
            | UseCaseError::EventsRefused(_)
            | UseCaseError::FormatFailed { .. }
            | UseCaseError::Mapped(_)
            | UseCaseError::TooMuch { .. }
            | UseCaseError::Conflict { .. }
            | UseCaseError::FeedRestarted(_)
            | UseCaseError::EInvoiceIncomplete(_)
            | UseCaseError::RequestInProgress
            | UseCaseError::Print(PrintError::MissingGlyph(_))
            | UseCaseError::Secret(_) => {}
        }
        Self::of(&error)
    }
}

impl From<JsonError> for Problem {
    fn from(error: JsonError) -> Self {
        Self::malformed(error.code, error.detail)
    }
}

impl From<Violations> for Problem {
    fn from(violations: Violations) -> Self {
        Self::of_violations(&violations)
    }
}

/// Returns whether an error concerns a free-form event as a whole.
const fn is_of_record(error: &UseCaseError) -> bool {
    matches!(error, UseCaseError::Mapped(_) | UseCaseError::FormatFailed { .. })
}

/// Formats an error with its causes on one line.
struct Chain<'a>(&'a dyn Error);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Returns the error code of an unknown reference.
pub fn not_found_code(thing: ResourceKind) -> &'static str {
    match thing {
        ResourceKind::Administrator => "administrator_not_found",
        ResourceKind::ApiKey => "api_key_not_found",
        ResourceKind::BankAccount => "bank_account_not_found",
        ResourceKind::Application => "application_not_found",
        ResourceKind::Payment => "payment_not_found",
        ResourceKind::Charge => "charge_not_found",
        ResourceKind::Contract => "contract_not_found",
        ResourceKind::CreditGrant => "credit_grant_not_found",
        ResourceKind::Customer => "customer_not_found",
        ResourceKind::Document => "document_not_found",
        ResourceKind::Entity => "entity_not_found",
        ResourceKind::Event => "event_not_found",
        ResourceKind::Format => "usage_format_not_found",
        ResourceKind::Endpoint => "webhook_endpoint_not_found",
        ResourceKind::BillingRun => "billing_run_not_found",
        ResourceKind::Hold => "hold_not_found",
        ResourceKind::Import => "import_not_found",
        ResourceKind::Limit => "limit_not_found",
        ResourceKind::Notification => "notification_not_found",
        ResourceKind::Organization => "organization_not_found",
        ResourceKind::Pricing => "pricing_not_found",
        ResourceKind::Session => "session_not_found",
        ResourceKind::UsageProduct => "usage_product_not_found",
    }
}

#[cfg(test)]
mod tests {
    use billing_application::error::EventPlace;
    use billing_domain::access::{Role, Scope};
    use billing_domain::format::{Expression, SourcePosition};
    use billing_domain::money::{AmountOutOfRange, Currency, MoneyError};
    use billing_domain::refs::EntityRef;

    use super::*;

    fn shown(error: UseCaseError) -> serde_json::Value {
        serde_json::to_value(Problem::from(error).document("/here", "id")).expect("JSON")
    }

    fn currency(code: &str) -> Currency {
        Currency::from_code(code).expect(code)
    }

    fn format_error(column: &str, expression: &str) -> FormatError {
        FormatError {
            target: FormatTarget::ReportColumn(column.to_owned()),
            expression: Some(Expression::parse(expression).expect(expression)),
            position: Some(SourcePosition { line: 1, column: 4 }),
            reason: "it ends too soon".to_owned(),
        }
    }

    #[test]
    fn every_expression_that_fails_is_an_error_at_its_place_in_the_mapping() {
        let errors = vec![format_error("a/b", "1 +"), format_error("c", "2 -")];
        let error = |mapping| UseCaseError::FormatFailed { mapping, errors: errors.clone() };
        let pointers = |mapping| -> Vec<String> {
            let errors = shown(error(mapping))["errors"].as_array().expect("errors").clone();
            errors.iter().map(|error| error["pointer"].as_str().expect("a pointer").to_owned()).collect()
        };
        assert_eq!(
            pointers(MappingOrigin::Submitted),
            ["/mapping/additional_report_data/a~1b", "/mapping/additional_report_data/c"]
        );
        assert_eq!(pointers(MappingOrigin::Stored), ["/event", "/event"]);
        let problem = shown(error(MappingOrigin::Submitted));
        assert_eq!(problem["detail"], "invalid mapping expressions: 2; see `errors`");
        let detail = "additional_report_data.a/b = 1 +, line 1, column 4: it ends too soon";
        assert_eq!((&problem["errors"][0]["detail"], &problem["errors"][0]["code"]), (&detail.into(), &"format_error".into()));
    }

    #[test]
    fn what_is_refused_of_a_mapped_event_is_told_at_the_event() {
        let unknown = Violations::one(&["customer_ref"], "unknown_reference", "must be the reference of an existing customer");
        let problem = shown(UseCaseError::Mapped(Box::new(UseCaseError::Invalid(unknown))));
        let detail = "customer_ref from the usage format: must be the reference of an existing customer";
        assert_eq!((&problem["code"], &problem["detail"]), (&"validation_failed".into(), &detail.into()));
        assert_eq!(problem["errors"][0]["pointer"], "/event");
        let (expected, actual) = (currency("USD"), currency("EUR"));
        let mismatch = MatchRefusal::CurrencyMismatch { expected, actual };
        let problem = shown(UseCaseError::Mapped(Box::new(UseCaseError::NoMatch(mismatch))));
        assert_eq!(problem["errors"][0]["pointer"], "/event");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.starts_with("validations.currency from")), "{problem}");
    }

    #[test]
    fn every_error_of_a_use_case_has_its_status_and_code() {
        let unavailable = StoreError::Unavailable("disk full".into());
        for (error, status, code) in [
            (UseCaseError::InvalidCredentials, 401, "invalid_credentials"),
            (UseCaseError::Unauthenticated, 401, "unauthenticated"),
            (UseCaseError::InvalidCode, 401, "invalid_code"),
            (UseCaseError::SecondFactorLocked, 401, "second_factor_locked"),
            (UseCaseError::SecondFactorRequired, 401, "second_factor_required"),
            (UseCaseError::NewPasswordRequired, 401, "new_password_required"),
            (UseCaseError::InsufficientRole { needed: Role::Owner, role: Role::Finance }, 403, "insufficient_role"),
            (UseCaseError::ConfirmationRequired, 403, "confirmation_required"),
            (UseCaseError::Forbidden(Permission::Owner), 403, "admin_session_required"),
            (UseCaseError::Forbidden(Permission::Administrator), 403, "admin_session_required"),
            (UseCaseError::Forbidden(Permission::Scope(Scope::Read)), 403, "insufficient_scope"),
            (UseCaseError::Forbidden(Permission::ScopeAndRead(Scope::CatalogWrite)), 403, "insufficient_scope"),
            (UseCaseError::Unknown(ResourceKind::Contract), 404, "contract_not_found"),
            (UseCaseError::Unknown(ResourceKind::UsageProduct), 404, "usage_product_not_found"),
            (UseCaseError::Invalid(Violations::one(&["a"], "required", "must be given")), 422, "validation_failed"),
            (UseCaseError::Invalid(Violations::one(&[], "too_many_documents", "fewer")), 422, "too_many_documents"),
            (UseCaseError::Invalid(Violations::one(&["effective_from"], "not_retroactive", "later")), 422, "not_retroactive"),
            (UseCaseError::AlreadyExists { thing: ResourceKind::Entity, field: "number_prefix" }, 409, "already_exists"),
            (UseCaseError::NoMatch(MatchRefusal::NoMatchingContract), 422, "no_matching_contract"),
            (UseCaseError::AmountOutOfRange(AmountOutOfRange), 422, "amount_out_of_range"),
            (
                UseCaseError::FormatFailed { mapping: MappingOrigin::Stored, errors: vec![format_error("quantity", "1 +")] },
                422,
                "format_error",
            ),
            (
                UseCaseError::Mapped(Box::new(UseCaseError::NoMatch(MatchRefusal::NoMatchingContract))),
                422,
                "no_matching_contract",
            ),
            (UseCaseError::TooMuch { code: "too_many_rows", detail: "fewer".to_owned() }, 422, "too_many_rows"),
            (UseCaseError::Conflict { code: "contract_over", detail: "it is over".to_owned() }, 409, "contract_over"),
            (UseCaseError::EInvoiceIncomplete(Vec::new()), 409, "e_invoice_incomplete"),
            (UseCaseError::IdempotencyKeyReuse, 422, "idempotency_key_reuse"),
            (UseCaseError::RequestInProgress, 409, "request_in_progress"),
            (UseCaseError::InvariantViolation("a secret sum"), 500, "invariant_violation"),
            (UseCaseError::Secret(SecretError::PasswordLength), 422, "password_refused"),
            (UseCaseError::Secret(SecretError::CommonPassword), 422, "password_refused"),
            (UseCaseError::Secret(SecretError::InvalidToken), 401, "unauthenticated"),
            (UseCaseError::Secret(SecretError::Failed("a secret cause".to_owned())), 500, "internal_error"),
            (PrintError::Failed("a secret path".to_owned()).into(), 500, "internal_error"),
            (PrintError::from(PrintStop::TimedOut { seconds: 20 }).into(), 503, "print_failed"),
            (PrintError::from(PrintStop::OutOfMemory { mib: 512 }).into(), 503, "print_failed"),
            (PrintError::from(PrintStop::ProcessEnded("a secret status".to_owned())).into(), 503, "print_failed"),
            (PrintError::from(PrintStop::NotStarted("a secret path".to_owned())).into(), 503, "print_failed"),
            (PrintError::from(PrintStop::NotReady("a secret path".to_owned())).into(), 503, "printer_not_ready"),
            (UseCaseError::Store(StoreError::Contended), 503, "contended"),
            (UseCaseError::Store(unavailable), 503, "unavailable"),
            (UseCaseError::Store(StoreError::Corrupt("a secret row".to_owned())), 500, "internal_error"),
            (MoneyError::OutOfRange(AmountOutOfRange).into(), 422, "amount_out_of_range"),
            (MoneyError::TwoCurrencies(currency("USD"), currency("EUR")).into(), 500, "internal_error"),
        ] {
            let problem = shown(error);
            assert_eq!((problem["status"].as_u64(), problem["code"].as_str()), (Some(status), Some(code)));
            assert!(!problem.to_string().contains("secret") && !problem.to_string().contains("disk"), "{problem}");
        }
    }

    #[test]
    fn a_problem_says_what_kind_it_is_and_where_it_happened() {
        let problem = shown(UseCaseError::AlreadyExists { thing: ResourceKind::Customer, field: "customer_ref" });
        let expected = serde_json::json!({
            "type": "urn:problem-type:usage-billing:already_exists",
            "title": "Already exists",
            "status": 409,
            "detail": "another customer already has this customer_ref",
            "instance": "/here",
            "code": "already_exists",
            "request_id": "id",
            "errors": [{"pointer": "/customer_ref", "code": "already_exists", "detail": "is already in use"}],
        });
        assert_eq!(problem, expected);
    }

    #[test]
    fn all_fields_are_named_and_a_lone_business_rule_gives_its_code() {
        let mut two = Violations::one(&["products", "0", "entity_ref"], "entity_required", "must be given");
        let alone = shown(UseCaseError::Invalid(two.clone()));
        assert_eq!((alone["code"].as_str(), alone["detail"].as_str()), (Some("entity_required"), Some("must be given")));
        assert_eq!(alone["errors"][0]["pointer"], "/products/0/entity_ref");
        two.add(&["a/b~c"], "too_long", "must be shorter");
        let both = shown(UseCaseError::Invalid(two));
        assert_eq!(both["code"], "validation_failed");
        assert_eq!(both["errors"][1]["pointer"], "/a~1b~0c");
    }

    /// Returns violations of unknown fields.
    fn unknown_fields(number: usize) -> Violations {
        let mut all = Violations::none();
        for index in 0..number {
            all.add(&[format!("field {index}").as_str()], "unknown_field", "is an unknown field");
        }
        all
    }

    #[test]
    fn errors_beyond_a_hundred_are_counted_in_the_detail() {
        let problem = shown(UseCaseError::Invalid(unknown_fields(90_000)));
        assert_eq!(problem["errors"].as_array().map(Vec::len), Some(100));
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.starts_with("invalid request fields: 90,000; see the first 100 in `errors`, and 89,900 more"), "{detail}");
        assert!(detail.ends_with("correct the request and send it again"), "{detail}");
        let exact = shown(UseCaseError::Invalid(unknown_fields(100)));
        assert_eq!(exact["detail"], "invalid request fields: 100; see `errors`");
    }

    #[test]
    fn a_refused_batch_lists_a_hundred_errors_of_all_its_events() {
        let of = |events: usize, errors: usize| {
            let refused =
                (0..events).map(|index| (EventPlace::in_batch(index), UseCaseError::Invalid(unknown_fields(errors)))).collect();
            shown(UseCaseError::EventsRefused(refused))
        };
        let few = of(2, 3);
        assert_eq!(few["detail"], "invalid events in the batch: 2; no event is stored, see `errors`");
        assert_eq!(few["errors"].as_array().map(Vec::len), Some(6));
        assert_eq!(few["errors"][5]["pointer"], "/events/1/field 2");
        let many = of(1_000, 150);
        assert_eq!(many["errors"].as_array().map(Vec::len), Some(100));
        let detail = many["detail"].as_str().expect("a detail");
        assert!(detail.starts_with("invalid events in the batch: 1,000; no event is stored, see the first 100"), "{detail}");
        assert!(detail.contains("and 149,900 more problems"), "{detail}");
    }

    #[test]
    fn a_problem_without_listed_errors_retains_its_code_and_its_first_error() {
        let shown = |problem: &Problem| serde_json::to_value(problem.document("/here", "id")).expect("JSON");
        let short = Problem::from(unknown_fields(3)).without_listed_errors();
        let document = shown(&short);
        assert_eq!((&document["code"], &document["errors"]), (&"validation_failed".into(), &serde_json::json!([])));
        assert_eq!(document["detail"], "invalid request fields: 3; to see them, send the event alone");
        assert_eq!(short.errors().first().map(|error| error.pointer.as_str()), Some("/field 0"));
        assert_eq!(shown(&short.without_listed_errors()), document);
        let rule = shown(&Problem::from(unknown_fields(1)).without_listed_errors());
        assert_eq!((&rule["code"], &rule["detail"]), (&"unknown_field".into(), &"is an unknown field".into()));
        let mut cut = unknown_fields(1_300);
        cut.truncate(1);
        let cut = shown(&Problem::from(cut).without_listed_errors());
        assert_eq!((&cut["code"], &cut["errors"]), (&"validation_failed".into(), &serde_json::json!([])));
    }

    #[test]
    fn a_mismatch_says_what_was_expected_and_what_is() {
        let refusal = MatchRefusal::CurrencyMismatch { expected: currency("USD"), actual: currency("EUR") };
        let problem = shown(UseCaseError::NoMatch(refusal));
        assert_eq!(problem["code"], "validation_mismatch");
        let error = &problem["errors"][0];
        assert_eq!(
            [&error["pointer"], &error["expected"], &error["actual"]],
            [&serde_json::json!("/validations/currency"), &serde_json::json!("USD"), &serde_json::json!("EUR")]
        );
        let entity = |text: &str| EntityRef::parse(text).expect(text);
        let refusal = MatchRefusal::EntityMismatch { expected: entity("a"), actual: entity("b") };
        assert_eq!(shown(UseCaseError::NoMatch(refusal))["errors"][0]["pointer"], "/validations/entity_ref");
    }

    #[test]
    fn causes_are_for_the_log() {
        let error = UseCaseError::Store(StoreError::Unavailable("disk full".into()));
        assert_eq!(Chain(&error).to_string(), "the store is unavailable: disk full");
    }
}
