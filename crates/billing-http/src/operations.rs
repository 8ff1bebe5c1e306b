//! Which operations there are, and what each takes and answers: the one table that the router, the OpenAPI document and the tests
//! share. A new operation is an entry here and its handler.

use actix_web::Route;
use actix_web::http::Method;
use billing_application::UseCase;
use billing_domain::page::MAX_PAGE_SIZE;

use crate::dto::administrators::{
    AdministratorEditBody, AdministratorJson, AdministratorResetBody, InvitationBody, InvitationJson,
};
use crate::dto::audit::AuditEntryJson;
use crate::dto::bank_accounts::{BankAccountBody, BankAccountEditBody, BankAccountJson};
use crate::dto::batch::{BatchBody, BatchResultJson};
use crate::dto::billing::{BillingReportJson, BillingRunBody, BillingRunJson};
use crate::dto::charges::{ChargeBody, ChargeEditBody, ChargeJson};
use crate::dto::contract_changes::{AmendedContractJson, ContractCancelBody, ContractQuantityBody, ContractResumeBody};
use crate::dto::contract_view::{ContractCreatedJson, ContractJson};
use crate::dto::contracts::{ContractBody, ContractEditBody};
use crate::dto::customers::{CustomerBody, CustomerEditBody, CustomerJson, CustomerNameJson};
use crate::dto::documents::DocumentJson;
use crate::dto::effects::{DryRunBody, EffectsJson};
use crate::dto::entities::{EntityBody, EntityEditBody, EntityJson, EntityNameJson};
use crate::dto::events::{EventBody, EventJson, EventResultJson, EventRevisionJson, EventUpdateBody};
use crate::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use crate::dto::formats::{FormatBody, FormatEditBody, FormatJson, FormatTestBody, FormatTestJson};
use crate::dto::formatted::{FormattedEventBody, FormattedUpdateBody};
use crate::dto::imports::{FileBody, ImportJson, ImportResultJson, UndoResultJson};
use crate::dto::keys::{ApiKeyJson, GeneratedKeyJson, KeyBody, KeyRotationBody, RotatedKeyJson};
use crate::dto::log_in::{LogInAnswer, LogInBody};
use crate::dto::money::{
    ApplyBody, BalanceJson, PaymentBody, PaymentJson, RefundBody, ReversalBody, StatementJson, WriteOffBody,
};
use crate::dto::own_account::{
    OwnAccountJson, OwnSessionJson, PasswordChangeBody, RecoveryCodesJson, SecondFactorCodeBody, SecondFactorEnrollmentJson,
    SecondFactorRemovalBody,
};
use crate::dto::pricings::{PricingBody, PricingEditBody, PricingJson, PricingRateJson};
use crate::dto::refused::RefusedUsageJson;
use crate::dto::search::SearchResultJson;
use crate::dto::summary::SummaryLineJson;
use crate::dto::usage_products::{UsageProductBody, UsageProductEditBody, UsageProductJson};
use crate::dto::verification::VerificationJson;
pub use crate::operation::{AuthRequirement, Operation, VERSION, VERSIONED_BELOW};
use crate::operation::{Free, List, QuerySpec, RequestBodySpec, ResponseSpec};
use crate::query::audit::AuditParams;
use crate::query::billing::RunParams;
use crate::query::documents::DocumentListParams;
use crate::query::imports::{ImportListParams, ImportParams};
use crate::query::lists::{
    ChargeParams, ContractParams, ContractSearchParams, CustomerParams, FormatParams, OpenApiParams, PaymentParams,
    PricingRateParams, SearchParams, StatementParams,
};
use crate::query::usage::{BatchParams, EventListParams, RefusedParams, ReportParams, SummaryParams};
use crate::query::{DEFAULT_PAGE_SIZE, Paged};
use crate::routes::service::HealthJson;
use crate::routes::{
    administrators, audit, auth, batches, billing, catalog, charges, contracts, documents, dry_run, imports, money, own_account,
    reports, search, service, usage,
};

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

macro_rules! is_grouped {
    () => {
        false
    };
    (writer) => {
        true
    };
}

/// `METHOD "path" Needs => module::handler`, then what it `takes`, `asks` in its query, `answers` (or `writes` as text, or is `gone`),
/// which codes of conflicts (409) and refusals (422) are its own, and whether it is answered `by` the writer of usage.
macro_rules! operations {
    ($($tag:ident { $(
        $(#[doc = $does:literal])+
        $method:ident $path:literal $needs:ident $(($use_case:ident))? => $module:ident::$handler:ident
        $(, takes $body:ty $(| $body_or:literal)*)?
        $(, asks $params:ty)?
        $(, answers $answer:ty $(| $answer_or:literal)* : $means:literal)?
        $(, writes $text:literal : $text_means:literal)?
        $(, gone : $gone:literal)?
        $(, conflicts $($conflict:ident)+)?
        $(, refuses $($refusal:ident)+)?
        $(, by $grouped:ident)?
        ;
    )+ })+) => {
        /// Every operation. Where two paths match, the first counts: fixed names stand before parameters.
        pub static OPERATIONS: &[Operation] = &[$($(Operation {
            id: stringify!($handler),
            method: Method::$method,
            path: $path,
            needs: AuthRequirement::$needs $((UseCase::$use_case))?,
            tag: stringify!($tag),
            does: &[$($does),+],
            handler: || Route::new().to($module::$handler),
            takes: first!($(RequestBodySpec::of::<$body>(&[$($body_or),*]))?),
            asks: first!($(QuerySpec::of::<$params>())?),
            answers: {
                $(answered!(json $answer, [$($answer_or),*], $means))?
                $(answered!(text [$text], $text_means))?
                $(answered!(text [], $gone))?
            },
            conflicts: &[$($(stringify!($conflict)),+)?],
            refuses: &[$($(stringify!($refusal)),+)?],
            is_grouped: is_grouped!($($grouped)?),
        },)+)+];
    };
}

operations! {
    auth {
        /// Logs software in with an API key, or an administrator with an e-mail address.
        ///
        /// An API key is answered by a bearer token, as a JSON string; an e-mail address by a session cookie. A password that was given by
        /// another takes `new_password`, too, and an administrator with a second factor `code`.
        POST "/auth/login" Nothing => auth::log_in,
            takes LogInBody,
            answers LogInAnswer: "A bearer token, or the session that the cookie is for",
            refuses password_refused;

        /// Ends the session or the bearer token that is shown.
        POST "/auth/logout" Anything => auth::log_out,
            gone: "Whatever was shown works no more";

        /// Makes an API key. Its password is shown this once.
        POST "/auth/keys/generate" Permission(GenerateKey) => auth::generate_key,
            takes Option<KeyBody>,
            answers GeneratedKeyJson: "The key and its password",
            conflicts secret_shown_once;

        /// Lists the organization's API keys by creation.
        GET "/auth/keys/list" Permission(ListKeys) => auth::list_keys,
            asks Paged<MAX_PAGE_SIZE>,
            answers List<ApiKeyJson>: "The keys, without their passwords";

        /// Makes a key in the place of another, of the same name and scopes. Both work until the overlap is over.
        POST "/auth/keys/rotate/{api_key_ref}" Permission(RotateKey) => auth::rotate_key,
            takes Option<KeyRotationBody>,
            answers RotatedKeyJson: "The successor and its password, and when the key before ends",
            conflicts key_expired key_rotated secret_shown_once;

        /// Deletes an API key; its tokens end at once.
        DELETE "/auth/user/{api_key_ref}" Permission(DeleteKey) => auth::delete_key,
            gone: "The key is gone";
    }

    administrators {
        /// Says who asks, and by which session.
        GET "/auth/session" Permission(GetOwnSession) => own_account::get_session,
            answers OwnAccountJson: "Who asks";

        /// Lists one's own sessions, the newest first.
        GET "/auth/sessions/list" Permission(ListSessions) => own_account::list_sessions,
            answers List<OwnSessionJson>: "The sessions that work";

        /// Ends one's own sessions but the one that asks.
        DELETE "/auth/sessions/others" Permission(EndSessions) => own_account::end_other_sessions,
            gone: "The other sessions have ended";

        /// Ends a session of one's own.
        DELETE "/auth/sessions/{session_ref}" Permission(EndSessions) => own_account::end_session,
            gone: "The session has ended";

        /// Changes one's own password, and ends one's other sessions.
        POST "/auth/password" Permission(ChangePassword) => own_account::change_password,
            takes PasswordChangeBody,
            gone: "The new password is the one from now on",
            conflicts account_changed,
            refuses password_refused wrong_password;

        /// Makes the secret of a second factor: a device makes codes of it and the time (RFC 6238). Not in effect before a code of it is
        /// confirmed.
        POST "/auth/second-factor/enroll" Permission(EnrollSecondFactor) => own_account::enroll_second_factor,
            answers SecondFactorEnrollmentJson: "The secret, to be given to a device",
            conflicts second_factor_on;

        /// Has log-ins take a code from now on. The recovery codes are shown this once.
        POST "/auth/second-factor/confirm" Permission(ConfirmSecondFactor) => own_account::confirm_second_factor,
            takes SecondFactorCodeBody,
            answers RecoveryCodesJson: "Codes for when the device is lost",
            conflicts account_changed second_factor_not_enrolled second_factor_on,
            refuses invalid_code;

        /// Has log-ins take no code any more.
        POST "/auth/second-factor/remove" Permission(RemoveSecondFactor) => own_account::remove_second_factor,
            takes SecondFactorRemovalBody,
            gone: "Log-ins take a password alone",
            conflicts account_changed second_factor_off,
            refuses invalid_code wrong_password;

        /// Makes an administrator, with a password that works once and is shown this once: at the first log-in they set their own.
        POST "/api/administrators/" Permission(InviteAdministrator) => administrators::invite_administrator,
            takes InvitationBody,
            answers InvitationJson: "The administrator, and the password to give them",
            conflicts already_exists secret_shown_once too_many_administrators;

        /// Changes an administrator's role, or whether they may log in. It takes effect with their next request.
        POST "/api/administrators/edit/{admin_ref}" Permission(EditAdministrator) => administrators::edit_administrator,
            takes AdministratorEditBody,
            answers AdministratorJson: "The changed administrator",
            conflicts last_owner;

        /// Gives another administrator a password that works once, and ends their sessions.
        POST "/api/administrators/reset/{admin_ref}" Permission(ResetAdministrator) => administrators::reset_administrator,
            takes Option<AdministratorResetBody>,
            answers InvitationJson: "The administrator, and the password to give them",
            conflicts own_account secret_shown_once;

        /// Lists the organization's administrators by e-mail address.
        GET "/api/administrators/filter" Permission(ListAdministrators) => administrators::list_administrators,
            asks Paged<MAX_PAGE_SIZE>,
            answers List<AdministratorJson>: "A page of administrators";
    }

    usage {
        /// Takes a usage event and puts it on its document.
        POST "/api/usage/event" Permission(RecordUsage) => usage::record_event,
            takes EventBody,
            answers EventResultJson: "The event is stored, and on this document",
            refuses matching,
            by writer;

        /// Takes up to 10,000 usage events, a thousand in a transaction; each is put on its document or refused in its place.
        ///
        /// As NDJSON, events are taken and answered line by line while they arrive; `atomic` is a query parameter there. What is
        /// atomic or comes under an Idempotency-Key is taken in one transaction.
        POST "/api/usage/event/batch" Permission(RecordUsage) => batches::record_batch,
            takes BatchBody | "application/x-ndjson",
            asks BatchParams,
            answers BatchResultJson | "application/x-ndjson": "One result for each event, in the order given",
            refuses batch_refused too_many_events;

        /// Takes a free-form usage event, processed by a usage format, and puts it on its document.
        POST "/api/usage/event/formatted" Permission(RecordUsage) => usage::record_formatted_event,
            takes FormattedEventBody,
            answers EventJson: "The event as the format gave it, stored and on this document",
            refuses matching format_error unknown_format;

        /// Processes another free-form event in a usage event's place; its documents follow in the same request.
        POST "/api/usage/event/formatted/update" Permission(UpdateEvent) => usage::update_formatted_event,
            takes FormattedUpdateBody,
            answers EventJson: "The event as it is now",
            refuses matching format_error unknown_format;

        /// Changes a usage event; its documents follow in the same request.
        POST "/api/usage/event/update" Permission(UpdateEvent) => usage::update_event,
            takes EventUpdateBody,
            answers EventJson: "The event as it is now",
            refuses matching,
            by writer;

        /// Reads every change of a usage event, deleted ones included.
        GET "/api/usage/event/history/{event_ref}" Permission(GetEventHistory) => usage::get_event_history,
            answers List<EventRevisionJson>: "Its changes, oldest first";

        /// Lists usage events by timestamp, then reference.
        GET "/api/usage/event/filter" Permission(ListEvents) => usage::list_events,
            asks EventListParams,
            answers List<EventJson>: "A page of events, without deleted ones";

        /// Reads a usage event.
        GET "/api/usage/event/{event_ref}" Permission(GetEvent) => usage::get_event,
            answers EventJson: "The event";

        /// Deletes a usage event; its documents follow in the same request, its history stays.
        DELETE "/api/usage/event/{event_ref}" Permission(DeleteEvent) => usage::delete_event,
            gone: "The event counts no more",
            refuses amount_out_of_range,
            by writer;

        /// Lists usage that was refused, counted by day, reason, customer and usage product, each with its last example.
        ///
        /// Counts are written every few seconds, and kept for 90 days. What was counted last is lost where a server ends by accident.
        GET "/api/usage/refused/filter" Permission(ListRefusedUsage) => usage::list_refused_usage,
            asks RefusedParams,
            answers List<RefusedUsageJson>: "A page of counts, the newest day first";

        /// Sums up usage by hour, day or month.
        GET "/api/usage/summary" Permission(SummarizeUsage) => reports::summarize_usage,
            asks SummaryParams,
            answers List<SummaryLineJson>: "The intervals with events, oldest first",
            refuses too_many_rows;

        /// Takes a file of usage events, each once however often and whichever way it comes, a thousand in a transaction.
        ///
        /// CSV with a line of column names, NDJSON, or an array of events as in a usage report. A line that can't be taken is refused and
        /// doesn't stop the others. What comes under an Idempotency-Key is taken in one transaction.
        POST "/api/usage/import" Permission(RecordUsage) => imports::import_usage,
            takes FileBody | "text/csv" | "application/x-ndjson",
            asks ImportParams,
            answers ImportResultJson: "What became of the file's events",
            refuses unknown_format format_error;

        /// Undoes an import: deletes the events that it recorded and that still count; their documents follow.
        ///
        /// The keys that they were sent with are forgotten, so that the same file may be imported again and counts again. Some hundred
        /// events are deleted in a transaction. What there isn't time for is `left`: the same request goes on. Under an Idempotency-Key
        /// all of it is one transaction.
        POST "/api/usage/imports/undo/{import_ref}" Permission(UndoImport) => imports::undo_import,
            answers UndoResultJson: "What was deleted, and what is left";

        /// Lists imports by when they began, the newest first. They are kept for 400 days.
        GET "/api/usage/imports/filter" Permission(ListImports) => imports::list_imports,
            asks ImportListParams,
            answers List<ImportJson>: "A page of imports";

        /// Reads an import, with the documents that its events went on.
        GET "/api/usage/imports/{import_ref}" Permission(GetImport) => imports::get_import,
            answers ImportJson: "The import";

        /// Writes events as a table, whatever their number.
        GET "/api/usage/report" Permission(ReportUsage) => reports::report_usage,
            asks ReportParams,
            answers Free<true> | "text/csv" | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "The report, by timestamp, then reference",
            refuses too_many_columns;
    }

    catalog {
        /// Makes a usage product.
        POST "/api/usage/products/" Permission(CreateUsageProduct) => catalog::create_usage_product,
            takes UsageProductBody,
            answers UsageProductJson: "The usage product that was made",
            conflicts already_exists,
            refuses unknown_unit_code;

        /// Changes a usage product: fields left out are kept, null clears.
        POST "/api/usage/products/edit/{usage_product_ref}" Permission(EditUsageProduct) => catalog::edit_usage_product,
            takes UsageProductEditBody,
            answers UsageProductJson: "The changed usage product",
            refuses unknown_unit_code;

        /// Lists usage products by creation.
        GET "/api/usage/products/filter" Permission(ListUsageProducts) => catalog::list_usage_products,
            asks Paged<DEFAULT_PAGE_SIZE>,
            answers List<UsageProductJson>: "A page of usage products";

        /// Reads a usage product.
        GET "/api/usage/products/{usage_product_ref}" Permission(GetUsageProduct) => catalog::get_usage_product,
            answers UsageProductJson: "The usage product";

        /// Makes a customer.
        POST "/api/customers/" Permission(CreateCustomer) => catalog::create_customer,
            takes CustomerBody,
            answers CustomerJson: "The customer that was made",
            conflicts already_exists,
            refuses forms;

        /// Changes a customer: fields left out are kept, null clears.
        POST "/api/customers/edit/{customer_ref}" Permission(EditCustomer) => catalog::edit_customer,
            takes CustomerEditBody,
            answers CustomerJson: "The changed customer",
            refuses forms;

        /// Lists customers by creation.
        GET "/api/customers/filter" Permission(ListCustomers) => catalog::list_customers,
            asks CustomerParams,
            answers List<CustomerJson>: "A page of customers";

        /// Lists the names of customers by creation.
        GET "/api/customers/names" Permission(ListCustomers) => catalog::list_customer_names,
            asks CustomerParams,
            answers List<CustomerNameJson>: "A page of names";

        /// Reads a customer.
        GET "/api/customers/{customer_ref}" Permission(GetCustomer) => catalog::get_customer,
            answers CustomerJson: "The customer";

        /// Makes a supplier entity.
        POST "/api/entities/" Permission(CreateEntity) => catalog::create_entity,
            takes EntityBody,
            answers EntityJson: "The supplier entity that was made",
            conflicts already_exists,
            refuses forms;

        /// Changes a supplier entity: fields left out are kept, null clears.
        POST "/api/entities/edit/{entity_ref}" Permission(EditEntity) => catalog::edit_entity,
            takes EntityEditBody,
            answers EntityJson: "The changed supplier entity",
            conflicts already_exists numbers_given,
            refuses forms;

        /// Lists supplier entities by creation.
        GET "/api/entities/filter" Permission(ListEntities) => catalog::list_entities,
            asks Paged<DEFAULT_PAGE_SIZE>,
            answers List<EntityJson>: "A page of supplier entities";

        /// Lists the names of supplier entities by creation.
        GET "/api/entities/names" Permission(ListEntities) => catalog::list_entity_names,
            asks Paged<DEFAULT_PAGE_SIZE>,
            answers List<EntityNameJson>: "A page of names";

        /// Reads a supplier entity.
        GET "/api/entities/{entity_ref}" Permission(GetEntity) => catalog::get_entity,
            answers EntityJson: "The supplier entity";

        /// Makes a pricing.
        POST "/api/pricings/" Permission(CreatePricing) => catalog::create_pricing,
            takes PricingBody,
            answers PricingJson: "The pricing that was made",
            conflicts already_exists,
            refuses unknown_usage_product;

        /// Changes a pricing: fields left out are kept, null clears.
        POST "/api/pricings/edit/{product_pricing_ref}" Permission(EditPricing) => catalog::edit_pricing,
            takes PricingEditBody,
            answers PricingJson: "The changed pricing",
            refuses unknown_usage_product;

        /// Lists pricings by creation.
        GET "/api/pricings/filter" Permission(ListPricings) => catalog::list_pricings,
            asks Paged<DEFAULT_PAGE_SIZE>,
            answers List<PricingJson>: "A page of pricings";

        /// Reads a pricing.
        GET "/api/pricings/{product_pricing_ref}" Permission(GetPricing) => catalog::get_pricing,
            answers PricingJson: "The pricing";

        /// What quantities cost by a pricing: each by every line item that is priced by usage.
        GET "/api/pricings/rates/{product_pricing_ref}" Permission(RatePricing) => catalog::rate_pricing,
            asks PricingRateParams,
            answers List<PricingRateJson>: "What each quantity costs, in the order given",
            refuses amount_out_of_range;

        /// Makes a bank account.
        POST "/api/bank_accounts/" Permission(CreateBankAccount) => catalog::create_bank_account,
            takes BankAccountBody,
            answers BankAccountJson: "The bank account that was made",
            conflicts already_exists,
            refuses conflicting_fields invalid_bic invalid_iban invalid_routing_number;

        /// Changes a bank account: fields left out are kept, null clears. Issued documents keep what they were issued with.
        POST "/api/bank_accounts/edit/{billing_account_id}" Permission(EditBankAccount) => catalog::edit_bank_account,
            takes BankAccountEditBody,
            answers BankAccountJson: "The changed bank account",
            refuses conflicting_fields invalid_bic invalid_iban invalid_routing_number;

        /// Lists bank accounts by creation.
        GET "/api/bank_accounts/filter" Permission(ListBankAccounts) => catalog::list_bank_accounts,
            asks Paged<DEFAULT_PAGE_SIZE>,
            answers List<BankAccountJson>: "A page of bank accounts";

        /// Reads a bank account.
        GET "/api/bank_accounts/{billing_account_id}" Permission(GetBankAccount) => catalog::get_bank_account,
            answers BankAccountJson: "The bank account";

        /// Keeps an exchange rate, in the place of the one of the same currencies and day.
        POST "/api/exchange_rates/" Permission(PutExchangeRate) => catalog::put_exchange_rate,
            takes ExchangeRateBody,
            answers ExchangeRateJson: "The exchange rate that is kept";

        /// Lists exchange rates by creation.
        GET "/api/exchange_rates/filter" Permission(ListExchangeRates) => catalog::list_exchange_rates,
            asks Paged<DEFAULT_PAGE_SIZE>,
            answers List<ExchangeRateJson>: "A page of exchange rates";
    }

    formats {
        /// Makes a usage format.
        POST "/api/usage/formats/" Permission(CreateFormat) => catalog::create_usage_format,
            takes FormatBody,
            answers FormatJson: "The usage format that was made",
            conflicts already_exists,
            refuses format_error;

        /// Changes a usage format into its next version; events keep the version they were taken with.
        POST "/api/usage/formats/edit/{format_ref}" Permission(EditFormat) => catalog::edit_usage_format,
            takes FormatEditBody,
            answers FormatJson: "The changed usage format",
            conflicts already_exists format_built_in,
            refuses format_error;

        /// Tries a usage format, or a mapping, on an event; stores nothing.
        POST "/api/usage/formats/test" Permission(TestFormat) => catalog::test_usage_format,
            takes FormatTestBody,
            answers FormatTestJson: "What the format makes of the event",
            refuses format_error unknown_format;

        /// Lists usage formats by creation, the built-in one first.
        GET "/api/usage/formats/filter" Permission(ListFormats) => catalog::list_usage_formats,
            asks Paged<DEFAULT_PAGE_SIZE>,
            answers List<FormatJson>: "A page of usage formats";

        /// Reads a usage format.
        GET "/api/usage/formats/{format_ref}" Permission(GetFormat) => catalog::get_usage_format,
            asks FormatParams,
            answers FormatJson: "The usage format";
    }

    contracts {
        /// Makes a contract.
        POST "/api/contracts/" Permission(CreateContract) => contracts::create_contract,
            takes ContractBody,
            answers ContractCreatedJson: "The contract is made",
            conflicts documents,
            refuses terms;

        /// Changes a contract, from a day, the current period or the next.
        POST "/api/contracts/edit/{contract_ref}" Permission(EditContract) => contracts::edit_contract,
            takes ContractEditBody,
            answers AmendedContractJson: "The contract's newest version; of a dry run the documents concerned",
            conflicts amendments already_started version_conflict,
            refuses terms periods;

        /// Cancels a contract, at the end of its current period, today or on a day.
        POST "/api/contracts/cancel/{contract_ref}" Permission(CancelContract) => contracts::cancel_contract,
            takes Option<ContractCancelBody>,
            answers AmendedContractJson: "The contract's newest version; of a dry run the documents concerned",
            conflicts amendments,
            refuses periods;

        /// Takes the cancel of a contract back, as long as its last day isn't over.
        POST "/api/contracts/resume/{contract_ref}" Permission(ResumeContract) => contracts::resume_contract,
            takes Option<ContractResumeBody>,
            answers AmendedContractJson: "The contract's newest version; of a dry run the documents concerned",
            conflicts amendments,
            refuses periods;

        /// Agrees on a quantity of a fixed line item, from a day on.
        POST "/api/contracts/quantities/{contract_ref}" Permission(ChangeQuantity) => contracts::change_quantity,
            takes ContractQuantityBody,
            answers AmendedContractJson: "The contract's newest version; of a dry run the documents concerned",
            conflicts amendments,
            refuses terms periods;

        /// Lists a customer's contracts by creation.
        GET "/api/contracts/filter" Permission(ListContracts) => contracts::list_contracts,
            asks ContractParams,
            answers List<ContractJson>: "A page of the customer's contracts";

        /// Finds contracts of all customers by creation.
        GET "/api/contracts/search" Permission(ListContracts) => contracts::search_contracts,
            asks ContractSearchParams,
            answers List<ContractJson>: "A page of contracts";

        /// What a contract bills in its ongoing period.
        GET "/api/contracts/invoices/current/{contract_ref}" Permission(PreviewInvoices) => contracts::current_invoices,
            answers List<DocumentJson>: "The documents of the ongoing billing period",
            refuses amount_out_of_range;

        /// What a contract will bill in its next period.
        GET "/api/contracts/invoices/next/{contract_ref}" Permission(PreviewInvoices) => contracts::next_invoices,
            answers List<DocumentJson>: "The documents of the next billing period",
            refuses amount_out_of_range;

        /// Reads a contract.
        GET "/api/contracts/{contract_ref}" Permission(GetContract) => contracts::get_contract,
            answers ContractJson: "The contract";
    }

    documents {
        /// What a customer owes, by entity and currency.
        GET "/api/customers/balance/{customer_ref}" Permission(GetBalance) => money::get_balance,
            answers List<BalanceJson>: "A balance for each entity and currency",
            refuses amount_out_of_range;

        /// What changed what a customer owes, by entity and currency.
        GET "/api/customers/statement/{customer_ref}" Permission(GetStatement) => money::get_statement,
            asks StatementParams,
            answers List<StatementJson> | "text/csv": "A statement for each entity and currency",
            refuses amount_out_of_range;

        /// Lists documents, with what all that pass the filters amount to by currency; with `format` as a table of all of them.
        GET "/api/documents/filter" Permission(ListDocuments) => documents::list_documents,
            asks DocumentListParams,
            answers List<DocumentJson> | "text/csv" | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "A page of documents; with `format` a table of all of them";

        /// Reads a document.
        GET "/api/documents/{document_ref}" Permission(GetDocument) => documents::get_document,
            answers DocumentJson: "The document, lines included";

        /// Reads a document as a PDF file: an issued one as it was issued, the same bytes for ever.
        ///
        /// A draft is drawn as it is now, with a word across it that says so. `ETag` is the same as long as the bytes are; with it in
        /// `If-None-Match` the answer is 304, without a body.
        GET "/api/documents/{document_ref}/pdf" Permission(GetDocument) => documents::get_document_pdf,
            writes "application/pdf": "The file, PDF/A-3b and PDF/UA-1",
            conflicts glyph_missing;

        /// Writes the events that a document bills as a table, as it bills them.
        GET "/api/documents/{document_ref}/usage.csv" Permission(ReportUsage) => reports::report_document_usage,
            writes "text/csv": "The report, by timestamp, then reference",
            refuses too_many_columns;

        /// Issues a draft now, whatever its day.
        POST "/api/documents/issue/{document_ref}" Permission(IssueDocument) => documents::issue_document,
            answers DocumentJson: "The issued document",
            conflicts not_a_draft documents,
            refuses amount_out_of_range;

        /// Voids an unpaid issued document; a replacement bills its period again.
        POST "/api/documents/void/{document_ref}" Permission(VoidDocument) => documents::void_document,
            answers DocumentJson: "The void document",
            conflicts not_issued document_has_dependents document_paid credits_applied credit_refunded billed_elsewhere not_voidable documents,
            refuses amount_out_of_range;

        /// Takes a payment or a refund back: what it settled is due again.
        POST "/api/documents/payments/reverse/{payment_ref}" Permission(ReversePayment) => money::reverse_payment,
            takes Option<ReversalBody>,
            answers DocumentJson: "The document it was recorded on",
            conflicts already_reversed payment_refunded;

        /// Lists payments and refunds, as they were recorded.
        GET "/api/documents/payments/filter" Permission(ListPayments) => money::list_payments,
            asks PaymentParams,
            answers List<PaymentJson>: "A page of payments and refunds";

        /// Records a payment of an issued invoice or debit.
        POST "/api/documents/payments/{document_ref}" Permission(RecordPayment) => money::record_payment,
            takes PaymentBody,
            answers DocumentJson: "The document with the payment",
            conflicts not_owed,
            refuses amount_out_of_range;

        /// Lists the payments and refunds of a document, as they were recorded.
        GET "/api/documents/payments/{document_ref}" Permission(ListPayments) => money::list_payments_of_document,
            answers List<PaymentJson>: "Its payments and refunds";

        /// Pays a credit or a payment out, as far as it is unapplied.
        POST "/api/documents/refund/{source_ref}" Permission(Refund) => money::refund,
            takes RefundBody,
            answers DocumentJson: "The credit, or the payment's document",
            conflicts not_unapplied,
            refuses amount_out_of_range;

        /// Applies an amount of a credit or a payment to a document.
        POST "/api/documents/apply/{source_ref}" Permission(Apply) => money::apply,
            takes ApplyBody,
            answers DocumentJson: "The document it settles",
            conflicts not_owed not_unapplied,
            refuses amount_out_of_range;

        /// Takes an application back.
        POST "/api/documents/unapply/{application_ref}" Permission(Unapply) => money::unapply,
            answers DocumentJson: "The document it settled",
            conflicts not_unapplied;

        /// Gives up on what is left to pay of a document, or takes that back.
        POST "/api/documents/write-off/{document_ref}" Permission(WriteOff) => money::write_off,
            takes Option<WriteOffBody>,
            answers DocumentJson: "The document",
            conflicts already_written_off not_owed not_written_off;

        /// Issues every document that is due now; with `dry_run` only says which.
        ///
        /// What there isn't time for is left to the next run, and `next` says where to go on. Under an Idempotency-Key a run is one
        /// transaction of at most 500 contracts.
        POST "/api/billing/run" Permission(RunBilling) => billing::run_billing,
            takes Option<BillingRunBody>,
            answers BillingReportJson: "What was issued, put out of force, and what failed";

        /// Lists billing runs by when they began, the newest first.
        ///
        /// Whoever started them, the server itself included; dry runs aren't kept. A run of the server's that did nothing leaves none, and
        /// one that put nothing in force takes the place of the one before it, if that was by the same and did nothing either. Runs are
        /// kept for 400 days.
        GET "/api/billing/runs/filter" Permission(ListBillingRuns) => billing::list_billing_runs,
            asks RunParams,
            answers List<BillingRunJson>: "A page of runs";

        /// Reads a billing run, with the documents that it issued and the contracts that it couldn't bill.
        GET "/api/billing/runs/{run_ref}" Permission(GetBillingRun) => billing::get_billing_run,
            answers BillingRunJson: "The run";
    }

    service {
        /// Answers when the books were last verified, and what was found.
        ///
        /// `usage-billing verify --record` recomputes every invariant from the raw events, and records what it found.
        GET "/api/verification" Permission(GetVerification) => service::last_verification,
            answers VerificationJson: "The last verification that was recorded; its instants are null where none was";

        /// Answers what a request would do to documents, and carries nothing out.
        ///
        /// Any request that makes or changes contracts, documents, payments, charges or usage events, or changes customers or entities; it is
        /// refused here as it would be there, with pointers into its own body. The billing run and imports have dry runs of their own.
        POST "/api/dry_run" Permission(RunDry) => dry_run::dry_run,
            takes DryRunBody,
            answers EffectsJson: "The documents concerned, as they would be and as they are",
            refuses no_dry_run;

        /// Finds whatever has a text as number, reference, key, purchase order number or name.
        GET "/api/search" Permission(Search) => search::search,
            asks SearchParams,
            answers List<SearchResultJson>: "At most 20 things: what is exactly so, then what has a name that begins so";

        /// Lists what was changed in the organization, by whom and from what to what, the newest first.
        ///
        /// Changes of usage events aren't in it: their histories tell them. What was done to API keys and administrators is shown to
        /// administrators alone.
        GET "/api/audit/filter" Permission(ListAuditEntries) => audit::list_audit_entries,
            asks AuditParams,
            answers List<AuditEntryJson>: "A page of entries";

        /// Whether the process answers at all.
        GET "/health/live" Nothing => service::live,
            answers HealthJson: "It does";

        /// Whether requests should be sent here.
        GET "/health/ready" Nothing => service::ready,
            answers HealthJson: "They should";

        /// What this server counts, for Prometheus: requests, and what is written of usage. No organization is told apart.
        ///
        /// Where metrics have an address of their own, only there.
        GET "/metrics" Nothing => service::metrics,
            writes "application/openmetrics-text": "The metrics, in the text format of OpenMetrics";

        /// This description of the interface.
        GET "/openapi.json" Nothing => service::openapi,
            asks OpenApiParams,
            answers Free<false>: "An OpenAPI document";
    }

    charges {
        /// Records a charge and puts it on its document; below zero it is a credit note.
        POST "/api/charges/" Permission(RecordCharge) => charges::record_charge,
            takes ChargeBody,
            answers ChargeJson: "The charge is stored, and on this document",
            conflicts already_exists documents,
            refuses credit_above_billed no_matching_contract unknown_product amount_out_of_range too_many_documents;

        /// Changes a charge: fields left out are kept.
        POST "/api/charges/edit/{charge_ref}" Permission(EditCharge) => charges::edit_charge,
            takes ChargeEditBody,
            answers ChargeJson: "The changed charge",
            conflicts documents,
            refuses credit_above_billed no_matching_contract amount_out_of_range too_many_documents;

        /// Lists charges by creation.
        GET "/api/charges/filter" Permission(ListCharges) => charges::list_charges,
            asks ChargeParams,
            answers List<ChargeJson>: "A page of charges, without deleted ones";

        /// Reads a charge.
        GET "/api/charges/{charge_ref}" Permission(GetCharge) => charges::get_charge,
            answers ChargeJson: "The charge";

        /// Deletes a charge: it counts no more.
        DELETE "/api/charges/{charge_ref}" Permission(DeleteCharge) => charges::delete_charge,
            gone: "The charge counts no more",
            refuses credit_above_billed amount_out_of_range;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use billing_domain::access::{Permission, Scope};

    use super::*;
    use crate::operation::QUESTIONS;

    #[test]
    fn operations_differ_in_name_and_in_method_and_path() {
        let ids: HashSet<_> = OPERATIONS.iter().map(|operation| operation.id).collect();
        let places: HashSet<_> =
            OPERATIONS.iter().map(|operation| (&operation.method, operation.path.trim_end_matches('/'))).collect();
        assert_eq!((ids.len(), places.len()), (OPERATIONS.len(), OPERATIONS.len()));
    }

    #[test]
    fn questions_are_posted_operations_that_take_the_scope_to_read() {
        for id in QUESTIONS {
            let question = OPERATIONS.iter().find(|operation| operation.id == id).expect(id);
            assert_eq!((&question.method, question.need()), (&Method::POST, Some(Permission::Scope(Scope::Read))), "{id}");
        }
    }

    #[test]
    fn what_is_carried_out_by_its_path_is_as_the_table_says() {
        for dry_run::DryRunOperation { id, path, use_case, .. } in dry_run::CARRIED {
            let is_there = |operation: &&Operation| {
                operation.id == *id && operation.path == *path && operation.needs == AuthRequirement::Permission(*use_case)
            };
            assert!(OPERATIONS.iter().any(|operation| is_there(&operation) && operation.changes_state()), "{id}");
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
                Some(Permission::Owner) => {}
                Some(Permission::Administrator) | None => panic!("{} is open", operation.id),
            }
        }
    }
}
