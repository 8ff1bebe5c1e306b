//! The table of operations, with request and response of each. The router, the OpenAPI document and the tests share it. A
//! new operation needs an entry here and a handler.

use billing_application::UseCase;
use http::Method;

use crate::dto::administrators::{
    AdministratorEditBody, AdministratorJson, AdministratorResetBody, InvitationBody, InvitationJson,
};
use crate::dto::audit::AuditEntryJson;
use crate::dto::bank_accounts::{BankAccountBody, BankAccountEditBody, BankAccountJson};
use crate::dto::batch::{BatchBody, BatchResultJson};
use crate::dto::billing::{BillingReportJson, BillingRunBody, BillingRunJson, IssueBody};
use crate::dto::charges::{ChargeBody, ChargeEditBody, ChargeJson};
use crate::dto::contract_changes::{AmendedContractJson, ContractCancelBody, ContractQuantityBody, ContractResumeBody};
use crate::dto::contract_view::{ContractCreatedJson, ContractJson};
use crate::dto::contracts::{ContractBody, ContractEditBody};
use crate::dto::customers::{CustomerBody, CustomerEditBody, CustomerJson, CustomerNameJson};
use crate::dto::document_summary::DocumentSummaryJson;
use crate::dto::documents::DocumentJson;
use crate::dto::e_invoices::MissingTermJson;
use crate::dto::effects::{DryRunBody, EffectsJson};
use crate::dto::entities::{EntityBody, EntityEditBody, EntityJson, EntityNameJson};
use crate::dto::events::{EventBody, EventJson, EventResultJson, EventRevisionJson, EventUpdateBody};
use crate::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use crate::dto::formats::{FormatBody, FormatEditBody, FormatJson, FormatTestBody, FormatTestJson};
use crate::dto::formatted::{FormattedEventBody, FormattedUpdateBody};
use crate::dto::health::HealthJson;
use crate::dto::imports::{FileBody, ImportJson, ImportResultJson, UndoResultJson};
use crate::dto::keys::{ApiKeyJson, GeneratedKeyJson, KeyBody, KeyRotationBody, RotatedKeyJson};
use crate::dto::log_in::{LogInAnswer, LogInBody};
use crate::dto::money::{
    ApplyBody, BalanceJson, CustomerDueJson, PaymentBody, PaymentJson, RefundBody, ReversalBody, StatementJson, WriteOffBody,
};
use crate::dto::notifications::NotificationJson;
use crate::dto::own_account::{
    ConfirmationBody, OwnAccountJson, OwnSessionJson, PasswordChangeBody, RecoveryCodesJson, SecondFactorCodeBody,
    SecondFactorEnrollmentJson, SecondFactorRemovalBody,
};
use crate::dto::pricings::{PricingBody, PricingEditBody, PricingJson, PricingRateBody, PricingRateJson};
use crate::dto::refused::RefusedUsageJson;
use crate::dto::search::SearchResultJson;
use crate::dto::summary::SummaryLineJson;
use crate::dto::usage_products::{UsageProductBody, UsageProductEditBody, UsageProductJson};
use crate::dto::verification::VerificationJson;
use crate::dto::webhooks::{
    CreatedWebhookEndpointJson, ReplayBody, ReplayResultJson, RotatedSecretJson, SecretRotationBody, WebhookAttemptJson,
    WebhookDeliveryJson, WebhookEndpointBody, WebhookEndpointEditBody, WebhookEndpointJson,
};
pub use crate::operation::{AuthRequirement, Operation, VERSION, VERSIONED_BELOW};
use crate::operation::{Flag, Free, List, QuerySpec, RequestBodySpec, ResponseSpec};
use crate::problem::Problem;
use crate::query::audit::AuditParams;
use crate::query::billing::RunParams;
use crate::query::documents::{DocumentListParams, DocumentParams};
use crate::query::imports::{ImportListParams, ImportParams};
use crate::query::lists::{
    AdministratorListParams, AmountsDueParams, ChargeParams, ContractParams, ContractSearchParams, CustomerParams,
    EInvoiceCheckParams, EInvoiceParams, FormatParams, KeyListParams, ListParams, OpenApiParams, PaymentParams,
    PricingRateParams, SearchParams, StatementParams,
};
use crate::query::notifications::NotificationParams;
use crate::query::usage::{BatchParams, EventListParams, RefusedParams, ReportParams, SummaryParams};
use crate::query::webhooks::DeliveryParams;

macro_rules! answered {
    (json $answer:ty, [$($or:literal),*], $means:literal) => { ResponseSpec::of::<$answer>(&[$($or),*], $means) };
    (text [$($or:literal),*], $means:literal) => { ResponseSpec::text(&[$($or),*], $means) };
}

macro_rules! first {
    () => {
        None
    };
    ($some:expr) => {
        Some($some)
    };
}

/// Describes the operations of [`each_operation`].
macro_rules! described {
    ($($tag:ident { $(
        $(#[doc = $does:literal])+
        $method:ident $path:literal $needs:ident $(($use_case:ident))? => $module:ident::$handler:ident
        $(, takes $body:ty $(| $body_or:literal)*)?
        $(, asks $params:ty)?
        $(, answers $answer:ty $(| $answer_or:literal)* : $means:literal)?
        $(, writes $text:literal $(| $text_or:literal)* : $text_means:literal)?
        $(, gone : $gone:literal)?
        $(, conflicts $($conflict:ident)+)?
        $(, refuses $($refusal:ident)+)?
        $(, is $($flag:ident)+)?
        $(, by $way:ident)?
        ;
    )+ })+) => {
        /// All operations. If two paths match, the first wins, so fixed names come before parameters.
        pub static OPERATIONS: &[Operation] = &[$($(Operation {
            id: stringify!($handler),
            method: Method::$method,
            path: $path,
            needs: AuthRequirement::$needs $((UseCase::$use_case))?,
            tag: stringify!($tag),
            does: &[$($does),+],
            flags: &[$($(Flag::$flag),+)?],
            takes: first!($(RequestBodySpec::of::<$body>(&[$($body_or),*]))?),
            asks: first!($(QuerySpec::of::<$params>())?),
            answers: {
                $(answered!(json $answer, [$($answer_or),*], $means))?
                $(answered!(text [$text $(, $text_or)*], $text_means))?
                $(answered!(text [], $gone))?
            },
            conflicts: &[$($(stringify!($conflict)),+)?],
            refuses: &[$($(stringify!($refusal)),+)?],
        },)+)+];
    };
}

/// One entry per operation: `METHOD "path" Needs => module::handler`, then:
///
/// - `takes`: the body,
/// - `asks`: the query parameters,
/// - `answers`, `writes` or `gone`: a JSON response, a text response or an empty response,
/// - `conflicts` and `refuses`: the error codes (409 and 422) that are specific to the operation,
/// - `is`: what sets the operation apart, a [`Flag`] each,
/// - `by route`: the handler takes an HTTP request instead of a call.
/// - The name of the handler is also the id of the operation. Other crates look up handlers by it.
///
/// Passes the table to a macro.
#[macro_export]
macro_rules! each_operation {
    ($macro:ident) => {
        $macro! {
            auth {
                /// Logs in an API client or an administrator.
                ///
                /// A log-in with an API key returns a bearer token as a JSON string. A log-in with an e-mail address sets a
                /// session cookie. An administrator with a one-time password must also send `new_password`, one with a second
                /// factor must also send `code`.
                POST "/auth/login" Nothing => auth::log_in,
                    takes LogInBody,
                    answers LogInAnswer: "A bearer token, or the session of the cookie",
                    refuses password_refused,
                    is LogsIn,
                    by route;

                /// Ends the session or revokes the bearer token of the request.
                POST "/auth/logout" Anything => auth::log_out,
                    gone: "The session or token is invalid",
                    by route;

                /// Creates an API key.
                ///
                /// Only this response contains the password.
                POST "/auth/keys/generate" Permission(GenerateKey) => auth::generate_key,
                    takes Option<KeyBody>,
                    answers GeneratedKeyJson: "The key and its password",
                    conflicts secret_shown_once;

                /// Lists the organization's API keys in order of creation.
                GET "/auth/keys/list" Permission(ListKeys) => auth::list_keys,
                    asks KeyListParams,
                    answers List<ApiKeyJson>: "The keys, without their passwords";

                /// Rotates an API key: creates a successor with the same name and scopes.
                ///
                /// Both keys work until the overlap ends.
                POST "/auth/keys/rotate/{api_key_ref}" Permission(RotateKey) => auth::rotate_key,
                    takes Option<KeyRotationBody>,
                    answers RotatedKeyJson: "The successor with its password, and the expiry of the rotated key",
                    conflicts key_expired key_rotated secret_shown_once;

                /// Deletes an API key and invalidates its tokens immediately.
                DELETE "/auth/user/{api_key_ref}" Permission(DeleteKey) => auth::delete_key,
                    gone: "The key is deleted";
            }

            administrators {
                /// Returns the current administrator and session.
                GET "/auth/session" Permission(GetOwnSession) => own_account::get_session,
                    answers OwnAccountJson: "The current administrator and session";

                /// Confirms the caller's identity by the password.
                ///
                /// For 5 minutes, the session may then manage API keys and administrators and set up a second factor. A log-in confirms,
                /// too.
                POST "/auth/session/confirm" Permission(ConfirmIdentity) => own_account::confirm_identity,
                    takes ConfirmationBody,
                    gone: "The identity is confirmed",
                    refuses wrong_password,
                    is ChecksSecret;

                /// Lists the caller's own sessions, newest first.
                GET "/auth/sessions/list" Permission(ListSessions) => own_account::list_sessions,
                    answers List<OwnSessionJson>: "The active sessions";

                /// Ends all of the caller's sessions except the current one.
                DELETE "/auth/sessions/others" Permission(EndSessions) => own_account::end_other_sessions,
                    gone: "The other sessions have ended";

                /// Ends one of the caller's own sessions.
                DELETE "/auth/sessions/{session_ref}" Permission(EndSessions) => own_account::end_session,
                    gone: "The session has ended";

                /// Changes the caller's own password and ends the caller's other sessions.
                POST "/auth/password" Permission(ChangePassword) => own_account::change_password,
                    takes PasswordChangeBody,
                    gone: "The password is changed",
                    conflicts account_changed,
                    refuses password_refused wrong_password,
                    is ChecksSecret;

                /// Creates the secret of a second factor.
                ///
                /// An authenticator app derives codes from the secret and the time (RFC 6238). The second factor takes effect
                /// once a code is confirmed.
                POST "/auth/second-factor/enroll" Permission(EnrollSecondFactor) => own_account::enroll_second_factor,
                    answers SecondFactorEnrollmentJson: "The secret for an authenticator app",
                    conflicts second_factor_on;

                /// Activates the second factor and returns recovery codes.
                ///
                /// From now on log-ins require a code. Only this response contains the recovery codes.
                POST "/auth/second-factor/confirm" Permission(ConfirmSecondFactor) => own_account::confirm_second_factor,
                    takes SecondFactorCodeBody,
                    answers RecoveryCodesJson: "Recovery codes for a lost device",
                    conflicts account_changed second_factor_not_enrolled second_factor_on,
                    refuses invalid_code,
                    is ChecksSecret;

                /// Removes the second factor. Log-ins no longer require a code.
                POST "/auth/second-factor/remove" Permission(RemoveSecondFactor) => own_account::remove_second_factor,
                    takes SecondFactorRemovalBody,
                    gone: "The second factor is removed",
                    conflicts account_changed second_factor_locked second_factor_off,
                    refuses invalid_code wrong_password,
                    is ChecksSecret;

                /// Creates an administrator with a one-time password.
                ///
                /// Only this response contains the password. The administrator sets their own password at the first log-in.
                POST "/api/administrators/" Permission(InviteAdministrator) => administrators::invite_administrator,
                    takes InvitationBody,
                    answers InvitationJson: "The administrator and the one-time password",
                    conflicts already_exists secret_shown_once too_many_administrators;

                /// Changes an administrator's role, or disables or enables their account.
                ///
                /// The change applies from their next request.
                POST "/api/administrators/edit/{admin_ref}" Permission(EditAdministrator) => administrators::edit_administrator,
                    takes AdministratorEditBody,
                    answers AdministratorJson: "The changed administrator",
                    conflicts last_owner;

                /// Issues a one-time password for another administrator and ends their sessions.
                POST "/api/administrators/reset/{admin_ref}" Permission(ResetAdministrator) => administrators::reset_administrator,
                    takes Option<AdministratorResetBody>,
                    answers InvitationJson: "The administrator and the one-time password",
                    conflicts own_account secret_shown_once;

                /// Lists the organization's administrators by e-mail address.
                GET "/api/administrators/filter" Permission(ListAdministrators) => administrators::list_administrators,
                    asks AdministratorListParams,
                    answers List<AdministratorJson>: "A page of administrators";
            }

            usage {
                /// Records a usage event and assigns it to its document.
                POST "/api/usage/event" Permission(RecordUsage) => usage::record_event,
                    takes EventBody,
                    answers EventResultJson: "The recorded event with its document",
                    refuses matching,
                    is Grouped DryRun;

                /// Records up to 10,000 usage events.
                ///
                /// Transactions hold 1,000 events each. Each event is assigned to its document or rejected individually. NDJSON
                /// events are recorded and answered line by line while they arrive, with `atomic` as a query parameter. An atomic
                /// batch or a batch with an Idempotency-Key is recorded in one transaction.
                POST "/api/usage/event/batch" Permission(RecordUsage) => batches::record_batch,
                    takes BatchBody | "application/x-ndjson",
                    asks BatchParams,
                    answers BatchResultJson | "application/x-ndjson": "One result per event, in request order",
                    refuses batch_refused too_many_events,
                    by route;

                /// Converts a free-form usage event with a usage format, records it and assigns it to its document.
                POST "/api/usage/event/formatted" Permission(RecordUsage) => usage::record_formatted_event,
                    takes FormattedEventBody,
                    answers EventJson: "The recorded event as converted by the format",
                    refuses matching format_error unknown_format,
                    is DryRun;

                /// Replaces a usage event with another free-form event and updates its documents in the same request.
                POST "/api/usage/event/formatted/update" Permission(UpdateEvent) => usage::update_formatted_event,
                    takes FormattedUpdateBody,
                    answers EventJson: "The changed event",
                    refuses matching format_error unknown_format,
                    is NamesEvent DryRun;

                /// Changes a usage event and updates its documents in the same request.
                POST "/api/usage/event/update" Permission(UpdateEvent) => usage::update_event,
                    takes EventUpdateBody,
                    answers EventJson: "The changed event",
                    refuses matching,
                    is NamesEvent Grouped DryRun;

                /// Lists all changes of a usage event, also of a deleted one.
                GET "/api/usage/event/history/{event_ref}" Permission(GetEventHistory) => usage::get_event_history,
                    answers List<EventRevisionJson>: "The changes, oldest first";

                /// Lists usage events by timestamp, then by reference.
                GET "/api/usage/event/filter" Permission(ListEvents) => usage::list_events,
                    asks EventListParams,
                    answers List<EventJson>: "A page of events, without deleted ones";

                /// Returns a usage event.
                GET "/api/usage/event/{event_ref}" Permission(GetEvent) => usage::get_event,
                    answers EventJson: "The event";

                /// Deletes a usage event and updates its documents in the same request. The event's history remains.
                DELETE "/api/usage/event/{event_ref}" Permission(DeleteEvent) => usage::delete_event,
                    gone: "The event is deleted",
                    refuses amount_out_of_range,
                    is Grouped DryRun;

                /// Lists rejected usage: counts by day, reason, customer and usage product, each with its latest example.
                ///
                /// Counts are saved every few seconds and retained for 90 days. If a server crashes, its unsaved counts are lost.
                GET "/api/usage/refused/filter" Permission(ListRefusedUsage) => usage::list_refused_usage,
                    asks RefusedParams,
                    answers List<RefusedUsageJson>: "A page of counts, the newest day first";

                /// Sums usage by hour, day or month.
                ///
                /// The quantity of a customer in an interval follows the aggregation of the usage product: the sum, the number of
                /// events, the largest quantity or the latest quantity. The quantities of several customers are added.
                GET "/api/usage/summary" Permission(SummarizeUsage) => reports::summarize_usage,
                    asks SummaryParams,
                    answers List<SummaryLineJson>: "The intervals with events, oldest first",
                    refuses too_many_rows;

                /// Imports usage events from a file. Repeated imports create no duplicates.
                ///
                /// The file is CSV with a header line, NDJSON, or a JSON array of events as in a usage report. Invalid lines are
                /// rejected and do not stop the import. Transactions hold 1,000 events each. With an Idempotency-Key the whole
                /// file is one transaction. If the import stops before the end of the file, the response is 503 `import_stopped`,
                /// with the result in `import`. To continue, send the file again: recorded lines are skipped.
                POST "/api/usage/import" Permission(RecordUsage) => imports::import_usage,
                    takes FileBody | "text/csv" | "application/x-ndjson",
                    asks ImportParams,
                    answers ImportResultJson: "The result of the import",
                    refuses unknown_format format_error,
                    is TakesFile,
                    by route;

                /// Reverses an import: deletes the events that it recorded and updates their documents.
                ///
                /// The events' idempotency keys are forgotten, so the same file can be imported again. Transactions delete some
                /// hundred events each. If time runs out, `left` counts the remaining events, and the same request continues.
                /// With an Idempotency-Key everything is deleted in one transaction.
                POST "/api/usage/imports/undo/{import_ref}" Permission(UndoImport) => imports::undo_import,
                    answers UndoResultJson: "The deleted and the remaining events";

                /// Lists imports by start time, newest first. Imports are retained for 400 days.
                GET "/api/usage/imports/filter" Permission(ListImports) => imports::list_imports,
                    asks ImportListParams,
                    answers List<ImportJson>: "A page of imports";

                /// Returns an import with the documents that its events were assigned to.
                GET "/api/usage/imports/{import_ref}" Permission(GetImport) => imports::get_import,
                    answers ImportJson: "The import";

                /// Returns a report of usage events without a limit on their number.
                GET "/api/usage/report" Permission(ReportUsage) => reports::report_usage,
                    asks ReportParams,
                    answers Free<true> | "text/csv" | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "The report, by timestamp, then by reference",
                    refuses too_many_columns;
            }

            catalog {
                /// Creates a usage product.
                POST "/api/usage/products/" Permission(CreateUsageProduct) => catalog::create_usage_product,
                    takes UsageProductBody,
                    answers UsageProductJson: "The created usage product",
                    conflicts already_exists,
                    refuses unknown_unit_code;

                /// Changes a usage product. Omitted fields stay unchanged; null clears a field.
                POST "/api/usage/products/edit/{usage_product_ref}" Permission(EditUsageProduct) => catalog::edit_usage_product,
                    takes UsageProductEditBody,
                    answers UsageProductJson: "The changed usage product",
                    refuses unknown_unit_code;

                /// Lists usage products in order of creation.
                GET "/api/usage/products/filter" Permission(ListUsageProducts) => catalog::list_usage_products,
                    asks ListParams,
                    answers List<UsageProductJson>: "A page of usage products";

                /// Returns a usage product.
                GET "/api/usage/products/{usage_product_ref}" Permission(GetUsageProduct) => catalog::get_usage_product,
                    answers UsageProductJson: "The usage product";

                /// Creates a customer.
                POST "/api/customers/" Permission(CreateCustomer) => catalog::create_customer,
                    takes CustomerBody,
                    answers CustomerJson: "The created customer",
                    conflicts already_exists,
                    refuses forms;

                /// Changes a customer. Omitted fields stay unchanged; null clears a field.
                POST "/api/customers/edit/{customer_ref}" Permission(EditCustomer) => catalog::edit_customer,
                    takes CustomerEditBody,
                    answers CustomerJson: "The changed customer",
                    refuses forms,
                    is DryRun;

                /// Lists customers in order of creation.
                GET "/api/customers/filter" Permission(ListCustomers) => catalog::list_customers,
                    asks CustomerParams,
                    answers List<CustomerJson>: "A page of customers";

                /// Lists the names of customers in order of creation.
                GET "/api/customers/names" Permission(ListCustomers) => catalog::list_customer_names,
                    asks CustomerParams,
                    answers List<CustomerNameJson>: "A page of names";

                /// Lists the terms that e-invoices for a customer would lack.
                ///
                /// The list is empty if the data of the customer and the entity suffices. Terms that a contract may state count as
                /// missing.
                GET "/api/customers/e_invoice_check/{customer_ref}" Permission(GetCustomer) => catalog::check_e_invoice,
                    asks EInvoiceCheckParams,
                    answers List<MissingTermJson>: "The missing terms",
                    refuses entity_required;

                /// Lists the amounts due of several customers.
                ///
                /// The list is ordered by the creation of the customers. Customers that owe nothing and unknown references are omitted.
                GET "/api/customers/amounts_due" Permission(GetBalance) => money::list_amounts_due,
                    asks AmountsDueParams,
                    answers List<CustomerDueJson>: "The amounts due, by customer, entity and currency",
                    refuses amount_out_of_range;

                /// Returns a customer.
                GET "/api/customers/{customer_ref}" Permission(GetCustomer) => catalog::get_customer,
                    answers CustomerJson: "The customer";

                /// Creates a supplier entity.
                POST "/api/entities/" Permission(CreateEntity) => catalog::create_entity,
                    takes EntityBody,
                    answers EntityJson: "The created supplier entity",
                    conflicts already_exists,
                    refuses forms logo_too_complex;

                /// Changes a supplier entity. Omitted fields stay unchanged; null clears a field.
                POST "/api/entities/edit/{entity_ref}" Permission(EditEntity) => catalog::edit_entity,
                    takes EntityEditBody,
                    answers EntityJson: "The changed supplier entity",
                    conflicts already_exists numbers_given,
                    refuses forms logo_too_complex,
                    is DryRun;

                /// Lists supplier entities in order of creation.
                GET "/api/entities/filter" Permission(ListEntities) => catalog::list_entities,
                    asks ListParams,
                    answers List<EntityJson>: "A page of supplier entities";

                /// Lists the names of supplier entities in order of creation.
                GET "/api/entities/names" Permission(ListEntities) => catalog::list_entity_names,
                    asks ListParams,
                    answers List<EntityNameJson>: "A page of names";

                /// Returns a supplier entity.
                GET "/api/entities/{entity_ref}" Permission(GetEntity) => catalog::get_entity,
                    answers EntityJson: "The supplier entity";

                /// Creates a pricing.
                POST "/api/pricings/" Permission(CreatePricing) => catalog::create_pricing,
                    takes PricingBody,
                    answers PricingJson: "The created pricing",
                    conflicts already_exists,
                    refuses unknown_usage_product;

                /// Changes a pricing. Omitted fields stay unchanged; null clears a field.
                POST "/api/pricings/edit/{product_pricing_ref}" Permission(EditPricing) => catalog::edit_pricing,
                    takes PricingEditBody,
                    answers PricingJson: "The changed pricing",
                    refuses unknown_usage_product;

                /// Lists pricings in order of creation.
                GET "/api/pricings/filter" Permission(ListPricings) => catalog::list_pricings,
                    asks ListParams,
                    answers List<PricingJson>: "A page of pricings";

                /// Rates quantities with a pricing that is not stored.
                ///
                /// Checks the pricing like its creation, and returns what each usage-priced line item costs at each quantity.
                POST "/api/pricings/rates" Permission(RatePricing) => catalog::rate_new_pricing,
                    takes PricingRateBody,
                    answers List<PricingRateJson>: "The price of each quantity, in request order",
                    refuses amount_out_of_range unknown_usage_product,
                    is Question;

                /// Returns a pricing.
                GET "/api/pricings/{product_pricing_ref}" Permission(GetPricing) => catalog::get_pricing,
                    answers PricingJson: "The pricing";

                /// Rates quantities with a pricing: returns what each usage-priced line item costs at each quantity.
                GET "/api/pricings/rates/{product_pricing_ref}" Permission(RatePricing) => catalog::rate_pricing,
                    asks PricingRateParams,
                    answers List<PricingRateJson>: "The price of each quantity, in request order",
                    refuses amount_out_of_range;

                /// Creates a bank account.
                POST "/api/bank_accounts/" Permission(CreateBankAccount) => catalog::create_bank_account,
                    takes BankAccountBody,
                    answers BankAccountJson: "The created bank account",
                    conflicts already_exists,
                    refuses conflicting_fields invalid_bic invalid_iban invalid_routing_number;

                /// Changes a bank account. Omitted fields stay unchanged; null clears a field.
                ///
                /// Issued documents do not change.
                POST "/api/bank_accounts/edit/{billing_account_id}" Permission(EditBankAccount) => catalog::edit_bank_account,
                    takes BankAccountEditBody,
                    answers BankAccountJson: "The changed bank account",
                    refuses conflicting_fields invalid_bic invalid_iban invalid_routing_number;

                /// Lists bank accounts in order of creation.
                GET "/api/bank_accounts/filter" Permission(ListBankAccounts) => catalog::list_bank_accounts,
                    asks ListParams,
                    answers List<BankAccountJson>: "A page of bank accounts";

                /// Returns a bank account.
                GET "/api/bank_accounts/{billing_account_id}" Permission(GetBankAccount) => catalog::get_bank_account,
                    answers BankAccountJson: "The bank account";

                /// Saves an exchange rate. Replaces an existing rate for the same currencies and date.
                POST "/api/exchange_rates/" Permission(PutExchangeRate) => catalog::put_exchange_rate,
                    takes ExchangeRateBody,
                    answers ExchangeRateJson: "The saved exchange rate";

                /// Lists exchange rates in order of creation.
                GET "/api/exchange_rates/filter" Permission(ListExchangeRates) => catalog::list_exchange_rates,
                    asks ListParams,
                    answers List<ExchangeRateJson>: "A page of exchange rates";
            }

            formats {
                /// Creates a usage format.
                POST "/api/usage/formats/" Permission(CreateFormat) => catalog::create_usage_format,
                    takes FormatBody,
                    answers FormatJson: "The created usage format",
                    conflicts already_exists,
                    refuses format_error;

                /// Changes a usage format by creating its next version.
                ///
                /// Recorded events retain the version that converted them.
                POST "/api/usage/formats/edit/{format_ref}" Permission(EditFormat) => catalog::edit_usage_format,
                    takes FormatEditBody,
                    answers FormatJson: "The changed usage format",
                    conflicts already_exists format_built_in,
                    refuses format_error;

                /// Tests a usage format or a mapping with an event and stores nothing.
                POST "/api/usage/formats/test" Permission(TestFormat) => catalog::test_usage_format,
                    takes FormatTestBody,
                    answers FormatTestJson: "The converted event",
                    refuses format_error unknown_format,
                    is Question;

                /// Lists usage formats in order of creation, the built-in format first.
                GET "/api/usage/formats/filter" Permission(ListFormats) => catalog::list_usage_formats,
                    asks ListParams,
                    answers List<FormatJson>: "A page of usage formats";

                /// Returns a usage format.
                GET "/api/usage/formats/{format_ref}" Permission(GetFormat) => catalog::get_usage_format,
                    asks FormatParams,
                    answers FormatJson: "The usage format";
            }

            contracts {
                /// Creates a contract.
                POST "/api/contracts/" Permission(CreateContract) => contracts::create_contract,
                    takes ContractBody,
                    answers ContractCreatedJson: "The reference of the created contract",
                    conflicts documents,
                    refuses terms,
                    is DryRun;

                /// Changes a contract from a date, from the current period or from the next period.
                POST "/api/contracts/edit/{contract_ref}" Permission(EditContract) => contracts::edit_contract,
                    takes ContractEditBody,
                    answers AmendedContractJson: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments already_started version_conflict,
                    refuses terms periods,
                    is DryRun;

                /// Cancels a contract at the end of its current period, today or on a date.
                POST "/api/contracts/cancel/{contract_ref}" Permission(CancelContract) => contracts::cancel_contract,
                    takes Option<ContractCancelBody>,
                    answers AmendedContractJson: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments,
                    refuses periods,
                    is DryRun;

                /// Resumes a canceled contract whose last day has not passed.
                POST "/api/contracts/resume/{contract_ref}" Permission(ResumeContract) => contracts::resume_contract,
                    takes Option<ContractResumeBody>,
                    answers AmendedContractJson: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments,
                    refuses periods,
                    is DryRun;

                /// Changes the quantity of a fixed line item from a date.
                POST "/api/contracts/quantities/{contract_ref}" Permission(ChangeQuantity) => contracts::change_quantity,
                    takes ContractQuantityBody,
                    answers AmendedContractJson: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments,
                    refuses terms periods,
                    is DryRun;

                /// Lists a customer's contracts in order of creation.
                GET "/api/contracts/filter" Permission(ListContracts) => contracts::list_contracts,
                    asks ContractParams,
                    answers List<ContractJson>: "A page of the customer's contracts";

                /// Searches the contracts of all customers, in order of creation.
                GET "/api/contracts/search" Permission(ListContracts) => contracts::search_contracts,
                    asks ContractSearchParams,
                    answers List<ContractJson>: "A page of contracts";

                /// Previews the documents of a contract's current period.
                GET "/api/contracts/invoices/current/{contract_ref}" Permission(PreviewInvoices) => contracts::current_invoices,
                    answers List<DocumentJson>: "The documents of the current billing period",
                    refuses amount_out_of_range;

                /// Previews the documents of a contract's next period.
                GET "/api/contracts/invoices/next/{contract_ref}" Permission(PreviewInvoices) => contracts::next_invoices,
                    answers List<DocumentJson>: "The documents of the next billing period",
                    refuses amount_out_of_range;

                /// Returns a contract.
                GET "/api/contracts/{contract_ref}" Permission(GetContract) => contracts::get_contract,
                    answers ContractJson: "The contract";
            }

            documents {
                /// Returns a customer's balances by entity and currency.
                GET "/api/customers/balance/{customer_ref}" Permission(GetBalance) => money::get_balance,
                    answers List<BalanceJson>: "A balance for each entity and currency",
                    refuses amount_out_of_range;

                /// Returns a customer's account statements by entity and currency.
                GET "/api/customers/statement/{customer_ref}" Permission(GetStatement) => money::get_statement,
                    asks StatementParams,
                    answers List<StatementJson> | "text/csv" | "application/pdf": "A statement for each entity and currency",
                    conflicts glyph_missing,
                    refuses amount_out_of_range too_many_rows;

                /// Lists documents with totals by currency, or with `format` exports all of them as a table.
                GET "/api/documents/filter" Permission(ListDocuments) => documents::list_documents,
                    asks DocumentListParams,
                    answers List<DocumentJson> | "text/csv" | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "A page of documents, or with `format` a table of all documents",
                    is SumsAmounts;

                /// Sums issued documents by month of issue and currency.
                ///
                /// A voided document stays in the month of its issue and is subtracted in the month of its void. `issued_from` and
                /// `issued_to` select both by their own day.
                GET "/api/documents/summary" Permission(ListDocuments) => documents::summarize_documents,
                    asks DocumentParams,
                    answers List<DocumentSummaryJson>: "The months with documents or voids, oldest first, each with one element per currency";

                /// Returns a document.
                GET "/api/documents/{document_ref}" Permission(GetDocument) => documents::get_document,
                    answers DocumentJson: "The document with its lines";

                /// Returns a document as a PDF file.
                ///
                /// The file of an issued document never changes. The file of a draft shows its current content and is marked as a
                /// draft. `ETag` changes only with the file; if `If-None-Match` contains it, the response is 304 without a body.
                GET "/api/documents/{document_ref}/pdf" Permission(GetDocument) => documents::get_document_pdf,
                    writes "application/pdf": "The PDF file, conforming to PDF/A-3b and PDF/UA-1",
                    conflicts glyph_missing;

                /// Returns an issued document as an e-invoice (EN 16931) in XML.
                ///
                /// The e-invoice profile of the document determines its content and the possible syntaxes. The file never changes. If
                /// `If-None-Match` contains its `ETag`, the response is 304 without a body. If required terms are missing, `errors` of
                /// the 409 lists all of them.
                GET "/api/documents/{document_ref}/xml" Permission(GetDocument) => documents::get_document_xml,
                    asks EInvoiceParams,
                    writes "application/xml": "The e-invoice, in UBL 2.1 or as Cross Industry Invoice",
                    conflicts not_issued e_invoice_incomplete e_invoice_unavailable;

                /// Returns a report of the usage events that a document bills.
                GET "/api/documents/{document_ref}/usage.csv" Permission(ReportUsage) => reports::report_document_usage,
                    writes "text/csv": "The report, by timestamp, then by reference",
                    refuses too_many_columns;

                /// Issues a draft immediately, regardless of its scheduled date.
                POST "/api/documents/issue/{document_ref}" Permission(IssueDocument) => documents::issue_document,
                    takes Option<IssueBody>,
                    answers DocumentJson: "The issued document",
                    conflicts clock_not_trusted not_a_draft documents,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Voids an unpaid issued document. A replacement document bills its period again.
                POST "/api/documents/void/{document_ref}" Permission(VoidDocument) => documents::void_document,
                    answers DocumentJson: "The void document",
                    conflicts not_issued document_has_dependents document_paid credits_applied credit_refunded billed_elsewhere not_voidable documents,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Reverses a payment or refund; the settled amounts become due again.
                POST "/api/documents/payments/reverse/{payment_ref}" Permission(ReversePayment) => money::reverse_payment,
                    takes Option<ReversalBody>,
                    answers DocumentJson: "The document that the payment is recorded on",
                    conflicts already_reversed payment_refunded,
                    is DryRun;

                /// Lists payments and refunds in the order in which they were recorded.
                GET "/api/documents/payments/filter" Permission(ListPayments) => money::list_payments,
                    asks PaymentParams,
                    answers List<PaymentJson>: "A page of payments and refunds";

                /// Records a payment of an issued invoice or debit.
                POST "/api/documents/payments/{document_ref}" Permission(RecordPayment) => money::record_payment,
                    takes PaymentBody,
                    answers DocumentJson: "The document with the payment",
                    conflicts not_owed,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Lists a document's payments and refunds in the order in which they were recorded.
                GET "/api/documents/payments/{document_ref}" Permission(ListPayments) => money::list_payments_of_document,
                    answers List<PaymentJson>: "The payments and refunds of the document";

                /// Refunds the unapplied amount of a credit or payment, in full or in part.
                POST "/api/documents/refund/{source_ref}" Permission(Refund) => money::refund,
                    takes RefundBody,
                    answers DocumentJson: "The credit, or the document of the payment",
                    conflicts not_unapplied,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Applies an amount of a credit or payment to a document.
                POST "/api/documents/apply/{source_ref}" Permission(Apply) => money::apply,
                    takes ApplyBody,
                    answers DocumentJson: "The settled document",
                    conflicts not_owed not_unapplied,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Reverses an application of a credit or payment.
                POST "/api/documents/unapply/{application_ref}" Permission(Unapply) => money::unapply,
                    answers DocumentJson: "The document that is no longer settled by the application",
                    conflicts not_unapplied,
                    is DryRun;

                /// Writes off a document's amount due, or reverses its write-off.
                POST "/api/documents/write-off/{document_ref}" Permission(WriteOff) => money::write_off,
                    takes Option<WriteOffBody>,
                    answers DocumentJson: "The document",
                    conflicts already_written_off not_owed not_written_off,
                    is DryRun;

                /// Issues all documents that are due; with `dry_run` only lists them.
                ///
                /// If time runs out, the next run handles the remaining contracts, and `next` is the position to continue from.
                /// With an Idempotency-Key a run is one transaction of at most 500 contracts.
                POST "/api/billing/run" Permission(RunBilling) => billing::run_billing,
                    takes Option<BillingRunBody>,
                    answers BillingReportJson: "The issued and voided documents, and the failures",
                    conflicts clock_not_trusted;

                /// Lists billing runs by start time, newest first.
                ///
                /// The list contains the runs of all callers and of the server itself, but no dry runs. A run of the server that
                /// did nothing is not recorded. Any other run that issued and voided nothing replaces the previous run, if that has
                /// the same author and issued and voided nothing either. Runs are retained for 400 days.
                GET "/api/billing/runs/filter" Permission(ListBillingRuns) => billing::list_billing_runs,
                    asks RunParams,
                    answers List<BillingRunJson>: "A page of runs";

                /// Returns a billing run with the documents that it issued and the contracts that it failed to bill.
                GET "/api/billing/runs/{run_ref}" Permission(GetBillingRun) => billing::get_billing_run,
                    answers BillingRunJson: "The run";
            }

            webhooks {
                /// Creates a webhook endpoint, to which notifications are sent.
                ///
                /// The endpoint receives notifications that are numbered from now on. Requests are signed as Standard Webhooks 1.0.0
                /// describes. Only this response contains the secret.
                POST "/api/webhooks/endpoints/" Permission(CreateWebhookEndpoint) => webhooks::create_webhook_endpoint,
                    takes WebhookEndpointBody,
                    answers CreatedWebhookEndpointJson: "The created endpoint and its secret",
                    conflicts secret_shown_once,
                    refuses address_not_public invalid_url too_many_endpoints unknown_event_type;

                /// Changes a webhook endpoint. Omitted fields stay unchanged; null clears a field.
                ///
                /// Disabling an endpoint cancels its pending deliveries. After enabling it again, they can be replayed.
                POST "/api/webhooks/endpoints/edit/{endpoint_ref}" Permission(EditWebhookEndpoint) => webhooks::edit_webhook_endpoint,
                    takes WebhookEndpointEditBody,
                    answers WebhookEndpointJson: "The changed endpoint",
                    refuses address_not_public invalid_url unknown_event_type;

                /// Rotates the secret of a webhook endpoint.
                ///
                /// Until the overlap ends, requests have a signature by each secret, the newest first.
                POST "/api/webhooks/endpoints/rotate/{endpoint_ref}" Permission(RotateWebhookSecret) => webhooks::rotate_webhook_secret,
                    takes Option<SecretRotationBody>,
                    answers RotatedSecretJson: "The new secret, and the end of the overlap",
                    conflicts rotation_in_progress secret_shown_once;

                /// Sends a test notification to a webhook endpoint, also to a disabled one, and returns the attempt.
                ///
                /// An organization has one test at a time.
                POST "/api/webhooks/endpoints/test/{endpoint_ref}" Permission(TestWebhookEndpoint) => webhooks::test_webhook_endpoint,
                    answers WebhookAttemptJson: "The attempt",
                    conflicts webhook_test_in_progress;

                /// Sends notifications of the feed to a webhook endpoint again.
                ///
                /// Only notifications that the endpoint receives are sent.
                POST "/api/webhooks/endpoints/replay/{endpoint_ref}" Permission(ReplayWebhookDeliveries) => webhooks::replay_webhook_deliveries,
                    takes ReplayBody,
                    answers ReplayResultJson: "The number of notifications that are sent again",
                    conflicts endpoint_disabled feed_restarted,
                    refuses conflicting_fields unknown_event_type;

                /// Lists webhook endpoints in order of creation.
                GET "/api/webhooks/endpoints/filter" Permission(ListWebhookEndpoints) => webhooks::list_webhook_endpoints,
                    asks ListParams,
                    answers List<WebhookEndpointJson>: "A page of endpoints";

                /// Returns a webhook endpoint.
                GET "/api/webhooks/endpoints/{endpoint_ref}" Permission(GetWebhookEndpoint) => webhooks::get_webhook_endpoint,
                    answers WebhookEndpointJson: "The endpoint";

                /// Deletes a webhook endpoint with its deliveries. Notifications remain in the feed.
                DELETE "/api/webhooks/endpoints/{endpoint_ref}" Permission(DeleteWebhookEndpoint) => webhooks::delete_webhook_endpoint,
                    gone: "The endpoint is deleted";

                /// Lists deliveries of notifications to webhook endpoints with their last attempts, newest notification first.
                GET "/api/webhooks/deliveries/filter" Permission(ListWebhookDeliveries) => webhooks::list_webhook_deliveries,
                    asks DeliveryParams,
                    answers List<WebhookDeliveryJson>: "A page of deliveries";
            }

            service {
                /// Returns the time and the result of the last recorded verification.
                ///
                /// `usage-billing verify --record` recomputes every invariant from the raw events and records the result.
                GET "/api/verification" Permission(GetVerification) => service::last_verification,
                    answers VerificationJson: "The last recorded verification; its times are null if no verification is recorded";

                /// Previews the effects of a request on documents and changes nothing.
                ///
                /// Supported are requests that create or change contracts, documents, payments, charges or usage events, and
                /// requests that change customers or entities. A request that would be rejected is rejected here with the same
                /// error, whose pointers refer to the inner body. The billing run and imports have their own dry runs.
                POST "/api/dry_run" Permission(RunDry) => dry_run::dry_run,
                    takes DryRunBody,
                    answers EffectsJson: "The affected documents, before and after the change",
                    refuses no_dry_run,
                    is PreviewsOthers Question;

                /// Searches by number, reference, key, purchase order number, name, e-mail address or tax number.
                GET "/api/search" Permission(Search) => search::search,
                    asks SearchParams,
                    answers List<SearchResultJson>: "At most 20 results: exact matches first, then objects with words that start with those of the text";

                /// Lists changes in the organization with author, previous and new values, newest first.
                ///
                /// Changes of usage events are not included; their histories contain them. Only administrators see changes of API
                /// keys and administrators.
                GET "/api/audit/filter" Permission(ListAuditEntries) => audit::list_audit_entries,
                    asks AuditParams,
                    answers List<AuditEntryJson>: "A page of entries";

                /// Lists notifications about documents, contracts and webhook endpoints, oldest first.
                ///
                /// Each element has a position without gaps, and `after` is the last position that the caller has seen. A
                /// response is complete: a notification that is stored later has a later position. Notifications are retained for
                /// 30 days, or as the server is configured. After the database was restored from a backup, positions continue in
                /// another epoch, and an `after` of an earlier epoch returns 409 `feed_restarted`.
                GET "/api/notifications/filter" Permission(ListNotifications) => notifications::list_notifications,
                    asks NotificationParams,
                    answers List<NotificationJson>: "The next notifications",
                    conflicts feed_restarted;

                /// Returns a notification.
                GET "/api/notifications/{notification_ref}" Permission(GetNotification) => notifications::get_notification,
                    answers NotificationJson: "The notification";

                /// Reports whether the process is running.
                GET "/health/live" Nothing => service::live,
                    answers HealthJson: "The process is running",
                    by route;

                /// Reports whether the server is ready for requests.
                GET "/health/ready" Nothing => service::ready,
                    answers HealthJson: "The server is ready",
                    by route;

                /// Returns the server's metrics for Prometheus: requests, usage and billing runs, not broken down by organization.
                ///
                /// The header `Accept: application/openmetrics-text; version=1.0.0` requests the OpenMetrics format. If metrics have
                /// their own address, they are available only there.
                GET "/metrics" Nothing => service::metrics,
                    writes "text/plain" | "application/openmetrics-text": "The metrics, in Prometheus' text format or in OpenMetrics",
                    by route;

                /// Returns this OpenAPI document.
                GET "/openapi.json" Nothing => service::openapi,
                    asks OpenApiParams,
                    answers Free<false>: "An OpenAPI document",
                    by route;
            }

            charges {
                /// Records a charge and adds it to its document. A negative charge is a credit note.
                POST "/api/charges/" Permission(RecordCharge) => charges::record_charge,
                    takes ChargeBody,
                    answers ChargeJson: "The recorded charge with its document",
                    conflicts already_exists documents,
                    refuses credit_above_billed no_matching_contract unknown_product amount_out_of_range too_many_documents,
                    is DryRun;

                /// Changes a charge. Omitted fields stay unchanged.
                POST "/api/charges/edit/{charge_ref}" Permission(EditCharge) => charges::edit_charge,
                    takes ChargeEditBody,
                    answers ChargeJson: "The changed charge",
                    conflicts documents,
                    refuses credit_above_billed no_matching_contract amount_out_of_range too_many_documents,
                    is DryRun;

                /// Lists charges in order of creation.
                GET "/api/charges/filter" Permission(ListCharges) => charges::list_charges,
                    asks ChargeParams,
                    answers List<ChargeJson>: "A page of charges, without deleted ones";

                /// Returns a charge.
                GET "/api/charges/{charge_ref}" Permission(GetCharge) => charges::get_charge,
                    answers ChargeJson: "The charge";

                /// Deletes a charge. Its documents no longer bill it.
                DELETE "/api/charges/{charge_ref}" Permission(DeleteCharge) => charges::delete_charge,
                    gone: "The charge is deleted",
                    refuses credit_above_billed amount_out_of_range,
                    is DryRun;
            }
        }
    };
}

each_operation!(described);

/// Returns the operation with an id.
///
/// # Errors
/// Returns an internal error if there is none, which tests rule out.
pub fn named(id: &str) -> Result<&'static Operation, Problem> {
    OPERATIONS.iter().find(|operation| operation.id == id).ok_or_else(Problem::internal)
}

/// Returns the state-changing operation on a path, and the reference in the path.
pub fn changing(path: &str) -> Option<(&'static Operation, String)> {
    let asked: Vec<&str> = parts(path).collect();
    let fitting = OPERATIONS.iter().filter(|operation| operation.changes_state()).filter_map(|operation| {
        let template: Vec<&str> = parts(operation.path).collect();
        let is_reference = |wanted: &str| wanted.starts_with('{');
        let mut pairs = template.iter().zip(&asked);
        let fits = template.len() == asked.len() && pairs.clone().all(|(wanted, part)| is_reference(wanted) || wanted == part);
        let reference = pairs.find(|(wanted, _)| is_reference(wanted)).map_or("", |(_, part)| part);
        fits.then(|| (operation, reference.to_owned()))
    });
    // A fixed path segment takes precedence over a reference.
    fitting.min_by_key(|(_, reference)| !reference.is_empty())
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::fs;
    use std::path::PathBuf;

    use billing_domain::access::{Permission, Scope};
    use billing_domain::ports::{SearchHit, SearchHitKind};
    use billing_domain::report::NumbersAs;
    use serde_json::{Map, Value};

    use super::*;
    use crate::dto::values::{
        NewBankAccountRef, NewChargeRef, NewCustomerRef, NewEntityRef, NewFormatRef, NewPricingRef, NewUsageProductRef,
    };
    use crate::openapi;

    #[test]
    fn operations_differ_in_name_and_in_method_and_path() {
        let ids: HashSet<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        let places: HashSet<_> =
            OPERATIONS.iter().map(|operation| (&operation.method, operation.path.trim_end_matches('/'))).collect();
        assert_eq!((ids.len(), places.len()), (OPERATIONS.len(), OPERATIONS.len()));
    }

    /// Files and lines with literals that are no paths of operations: prefixes, and an example for a shell. The urls of search
    /// results can't come from the table, because it contains their type; the test below compares them.
    const OTHER_LITERALS: [(&str, &str); 5] = [
        ("search.rs", ""),
        ("operation.rs", "const VERSIONED_BELOW"),
        ("middleware.rs", "const SECRETS_BELOW"),
        ("frame.rs", "let is_of_people"),
        ("keys.rs", "TOKEN=$(curl"),
    ];

    /// Returns the names and the code before the unit tests of a crate's source files.
    fn sources(of: &str) -> Vec<(String, String)> {
        let (mut ahead, mut all) =
            (vec![PathBuf::from(format!("{}/../billing-{of}/src", env!("CARGO_MANIFEST_DIR")))], Vec::new());
        while let Some(path) = ahead.pop() {
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            if path.is_dir() {
                let entries = fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path());
                ahead.extend(entries.filter(|entry| !entry.ends_with("tests")));
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).expect("a source file");
                all.push((name.to_owned(), text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()));
            }
        }
        all
    }

    #[test]
    fn no_other_file_names_an_operation_by_its_path() {
        let mut named = Vec::new();
        for (name, code) in ["api", "http", "console"].into_iter().flat_map(sources).filter(|(name, _)| name != "operations.rs") {
            let is_exempt = |line: &str| {
                let is_other = OTHER_LITERALS.iter().any(|(file, said)| *file == name && line.contains(said));
                is_other || line.starts_with("//") || line.starts_with("#[")
            };
            let has_path = |line: &str| line.contains("\"/api/") || line.contains("\"/auth/");
            let lines = code.lines().map(str::trim_start).filter(|line| has_path(line) && !is_exempt(line));
            named.extend(lines.map(|line| format!("{name}: {line}")));
        }
        assert!(named.is_empty(), "{named:#?}");
    }

    /// Adds the names of all properties below a schema.
    fn add_properties(schema: &Value, names: &mut HashSet<String>) {
        match schema {
            Value::Object(fields) => {
                names.extend(fields.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned());
                fields.values().for_each(|field| add_properties(field, names));
            }
            Value::Array(elements) => elements.iter().for_each(|element| add_properties(element, names)),
            _ => {}
        }
    }

    #[test]
    fn no_page_of_the_console_reads_a_field_that_no_answer_has() {
        let mut names = HashSet::new();
        add_properties(&openapi::described(NumbersAs::Number), &mut names);
        // `console/calculations.rs` adds the printed calculation to each line.
        names.insert("steps".to_owned());
        let mut unknown = Vec::new();
        for (name, code) in sources("console") {
            let read = [".at(\"", ".at_any(\""]
                .into_iter()
                .flat_map(|call| code.split(call).skip(1))
                .filter_map(|rest| rest.split('"').next());
            let fields = read.flat_map(|path| path.split('.'));
            unknown.extend(fields.filter(|field| !names.contains(*field)).map(|field| format!("{name}: {field}")));
        }
        assert!(unknown.is_empty(), "{unknown:#?}");
    }

    #[test]
    fn a_reference_takes_the_place_of_the_parameter_in_a_path() {
        for (id, reference, url) in [
            ("get_customer", "Acme:eu-1_x.9", "/api/customers/Acme:eu-1_x.9"),
            ("get_document_pdf", "a b/c", "/api/documents/a%20b%2Fc/pdf"),
            ("create_customer", "acme", "/api/customers/"),
        ] {
            assert_eq!(named(id).expect(id).url(reference), url);
        }
    }

    #[test]
    fn the_urls_of_search_results_are_paths_of_operations() {
        use SearchHitKind::*;
        let kinds = [
            ApiKey,
            BankAccount,
            Charge,
            Contract,
            Customer,
            Document,
            Entity,
            Format,
            Payment,
            Pricing,
            UsageEvent,
            UsageProduct,
        ];
        for kind in kinds {
            let hit = SearchHit {
                kind,
                reference: "x".to_owned(),
                number: None,
                name: None,
                customer_ref: None,
                customer_name: None,
                document_ref: None,
            };
            let found = serde_json::to_value(SearchResultJson::from(&hit)).expect("JSON");
            let url = found["url"].as_str().expect("a url");
            let is_read = |operation: &&Operation| operation.method == Method::GET && operation.url("x") == url;
            assert!(OPERATIONS.iter().any(|operation| is_read(&operation)), "{url}");
        }
    }

    #[test]
    fn questions_are_posted_operations_that_take_the_scope_to_read() {
        for question in OPERATIONS.iter().filter(|operation| operation.is(Flag::Question)) {
            let id = question.id;
            assert_eq!((&question.method, question.need()), (&Method::POST, Some(Permission::Scope(Scope::Read))), "{id}");
        }
    }

    #[test]
    fn each_operation_with_a_dry_run_is_found_by_its_path() {
        for operation in OPERATIONS.iter().filter(|operation| operation.is(Flag::DryRun)) {
            let found = changing(operation.path).map(|(found, _)| found.id);
            assert_eq!(found, Some(operation.id));
        }
    }

    #[test]
    fn the_words_below_a_collection_are_reserved_among_its_references() {
        let reserved: [(&str, &[&str]); 7] = [
            ("/api/customers/", NewCustomerRef::RESERVED),
            ("/api/entities/", NewEntityRef::RESERVED),
            ("/api/usage/products/", NewUsageProductRef::RESERVED),
            ("/api/pricings/", NewPricingRef::RESERVED),
            ("/api/usage/formats/", NewFormatRef::RESERVED),
            ("/api/bank_accounts/", NewBankAccountRef::RESERVED),
            ("/api/charges/", NewChargeRef::RESERVED),
        ];
        // References of contracts and webhook endpoints are UUIDs, which no word is.
        let has_uuids = ["/api/contracts/", "/api/webhooks/endpoints/"];
        let is_named = |path: &&str| path.ends_with('/') && !has_uuids.contains(path);
        let has_reference = |path: &&str| {
            let below = |operation: &Operation| operation.path.strip_prefix(*path).is_some_and(|rest| rest.starts_with('{'));
            OPERATIONS.iter().any(below)
        };
        let paths = OPERATIONS.iter().map(|operation| operation.path);
        let collections: HashSet<&str> = paths.filter(is_named).filter(has_reference).collect();
        assert_eq!(collections, reserved.iter().map(|(path, _)| *path).collect::<HashSet<&str>>());
        for (collection, reserved) in reserved {
            let below = OPERATIONS.iter().filter_map(|operation| operation.path.strip_prefix(collection)?.split('/').next());
            let words: HashSet<&str> = below.filter(|word| !word.is_empty() && !word.starts_with('{')).collect();
            assert_eq!(words, reserved.iter().copied().collect::<HashSet<&str>>(), "{collection}");
        }
    }

    #[test]
    fn a_fixed_name_stands_before_the_parameter_that_would_take_it() {
        for (i, operation) in OPERATIONS.iter().enumerate() {
            let (parent, last) = operation.path.trim_end_matches('/').rsplit_once('/').expect("a path");
            let shadowed = OPERATIONS[..i].iter().any(|earlier| {
                let (earlier_parent, earlier_last) = earlier.path.trim_end_matches('/').rsplit_once('/').expect("a path");
                earlier_parent == parent && earlier_last.starts_with('{') && !last.starts_with('{')
            });
            assert!(!shadowed, "{}", operation.path);
        }
    }

    #[test]
    fn everything_below_api_takes_a_credential_and_reads_take_the_scope_to_read() {
        for operation in OPERATIONS.iter().filter(|operation| operation.is_versioned()) {
            match operation.need() {
                Some(Permission::Scope(scope)) => {
                    assert_eq!(scope == Scope::Read, !operation.changes_state(), "{}", operation.id)
                }
                Some(Permission::ScopeAndRead(_)) => assert!(operation.changes_state(), "{}", operation.id),
                Some(Permission::Owner) => {}
                Some(Permission::Administrator) | None => panic!("{} is open", operation.id),
            }
        }
    }
}
