//! The table of operations, with request and response of each. The router, the OpenAPI document and the tests share it. A
//! new operation needs an entry here and a handler.

use billing_application::balances::{self, CustomerDue};
use billing_application::catalog::{self, CustomerView, EntityView, PricingRate};
use billing_application::charges::{self, ChargeView};
use billing_application::contracts::{self, ContractView};
use billing_application::credit::{self, DrawView, GrantView, SoldCredit};
use billing_application::documents::{self, DocumentView, PaymentOutcome, PaymentView, SourceRef};
use billing_application::formats::{self, FormatView};
use billing_application::keys::{self, GeneratedKey, RotatedKey};
use billing_application::limits::{self, CustomerLeft, LimitView};
use billing_application::names::Named;
use billing_application::own_account::{self, OwnAccount, OwnSession, RecoveryCodes, SecondFactorEnrollment};
use billing_application::sandbox::{self, ClockAdvance, ClockView};
use billing_application::usage::{self, EventRevision, EventView, HoldView, SummaryLine};
use billing_application::webhooks::{self, CreatedEndpoint, EndpointView, ReplayOutcome, RotatedSecret};
use billing_application::{UseCase, administrators, notifications, search, verify};
use billing_domain::access::{Administrator, ApiKey};
use billing_domain::catalog::{Pricing, UsageProduct};
use billing_domain::einvoice::Missing;
use billing_domain::format::MappedRecord;
use billing_domain::notification::Notification;
use billing_domain::page::Page;
use billing_domain::party::bank::BankAccount;
use billing_domain::ports::{BilledMonth, ListedDelivery, SearchHit, StoredExchangeRate};
use billing_domain::receivables::Balance;
use billing_domain::refs::{
    AdminRef, ApiKeyRef, ApplicationRef, BankAccountRef, BillingRunRef, ChargeRef, ContractRef, CreditGrantRef, CustomerRef,
    DocumentRef, EndpointRef, EntityRef, EventRef, FormatRef, HoldRef, ImportRef, LimitRef, NotificationRef, PaymentRef,
    PricingRef, SessionRef, UsageProductRef,
};
use billing_domain::verification::RecordedVerification;

use crate::dto::administrators::{
    AdministratorEditBody, AdministratorJson, AdministratorResetBody, InvitationBody, InvitationJson,
};
use crate::dto::audit::AuditEntryJson;
use crate::dto::bank_accounts::{BankAccountBody, BankAccountEditBody, BankAccountJson};
use crate::dto::batch::{BatchBody, BatchResultJson};
use crate::dto::billing::{BillingReportJson, BillingRunBody, BillingRunJson, BillingRunResponse, IssueBody};
use crate::dto::charges::{ChargeBody, ChargeEditBody, ChargeJson};
use crate::dto::clock::{ClockAdvanceBody, ClockAdvanceJson, ClockJson};
use crate::dto::contract_changes::{
    AmendedContractJson, AmendmentOutcome, ContractCancelBody, ContractQuantityBody, ContractResumeBody,
};
use crate::dto::contract_view::{ContractCreatedJson, ContractJson};
use crate::dto::contracts::{ContractBody, ContractEditBody};
use crate::dto::credit::{CreditSaleBody, DrawJson, GrantBody, GrantEditBody, GrantJson, SoldCreditJson};
use crate::dto::customers::{CustomerBody, CustomerEditBody, CustomerJson, CustomerNameJson};
use crate::dto::document_summary::DocumentSummaryJson;
use crate::dto::documents::DocumentJson;
use crate::dto::e_invoices::MissingTermJson;
use crate::dto::effects::{DryRunBody, EffectsJson};
use crate::dto::entities::{EntityBody, EntityEditBody, EntityJson, EntityNameJson};
use crate::dto::events::{EventBody, EventJson, EventResultJson, EventRevisionJson, EventUpdateBody};
use crate::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use crate::dto::formats::{FormatBody, FormatEditBody, FormatJson, FormatTestBody, FormatTestJson};
use crate::dto::formatted::{FormattedEventBody, FormattedResultJson, FormattedUpdateBody};
use crate::dto::health::HealthJson;
use crate::dto::holds::{HoldBody, HoldJson};
use crate::dto::imports::{FileBody, ImportJson, ImportResponse, ImportResultJson, UndoResultJson};
use crate::dto::keys::{ApiKeyJson, GeneratedKeyJson, KeyBody, KeyRotationBody, RotatedKeyJson};
use crate::dto::limits::{CustomerLeftJson, LimitBody, LimitEditBody, LimitJson};
use crate::dto::log_in::{LogInAnswer, LogInBody};
use crate::dto::money::{
    ApplyBody, BalanceJson, CustomerDueJson, DepositBody, PaymentBody, PaymentJson, RefundBody, ReversalBody, StatementJson,
    WriteOffBody,
};
use crate::dto::notifications::NotificationJson;
use crate::dto::own_account::{
    ConfirmationBody, OwnAccountJson, OwnSessionJson, PasswordChangeBody, RecoveryCodesJson, SecondFactorCodeBody,
    SecondFactorEnrollmentJson, SecondFactorRemovalBody,
};
use crate::dto::payment_outcome::PaymentOutcomeJson;
use crate::dto::pricings::{PricingBody, PricingEditBody, PricingJson, PricingRateBody, PricingRateJson};
use crate::dto::refused::{Refused, RefusedUsageJson};
use crate::dto::search::SearchResultJson;
use crate::dto::summary::SummaryLineJson;
use crate::dto::usage_products::{UsageProductBody, UsageProductEditBody, UsageProductJson};
use crate::dto::verification::VerificationJson;
use crate::dto::webhooks::{
    CreatedWebhookEndpointJson, ReplayBody, ReplayResultJson, RotatedSecretJson, SecretRotationBody, WebhookAttemptJson,
    WebhookDeliveryJson, WebhookEndpointBody, WebhookEndpointEditBody, WebhookEndpointJson,
};
use crate::job::{Each, Empty, Json, Operation, PageOf, UpdatedPageOf, Way};
pub use crate::operation::{AuthRequirement, OperationSpec, VERSION, VERSIONED_BELOW};
use crate::operation::{Described, Flag, Free, HttpMethod, List, QuerySpec, RequestBodySpec, ResponseSpec};
use crate::problem::Problem;
use crate::query::PageParams as _;
use crate::query::audit::AuditParams;
use crate::query::billing::RunParams;
use crate::query::documents::{DocumentListParams, DocumentParams};
use crate::query::imports::{ImportListParams, ImportParams};
use crate::query::lists::{
    AdministratorListParams, AmountsDueParams, ChargeParams, ContractParams, ContractSearchParams, CustomerParams,
    CustomerPaymentParams, DrawParams, EInvoiceCheckParams, EInvoiceParams, FormatParams, GrantParams, HoldListParams,
    HoldParams, KeyListParams, LimitParams, ListParams, OpenApiParams, PaymentParams, PricingRateParams, SearchParams,
    StatementParams,
};
use crate::query::notifications::NotificationParams;
use crate::query::usage::{
    BatchParams, ConflictParams, EventListParams, FormattedParams, RefusedParams, ReportParams, SummaryParams,
};
use crate::query::webhooks::DeliveryParams;
use crate::use_cases::{self, all_found, amend, found};

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

macro_rules! or_unit {
    () => {
        ()
    };
    ($type:ty) => {
        $type
    };
}

macro_rules! or_empty {
    () => {
        Empty
    };
    ($answer:ty) => {
        $answer
    };
}

/// Implements an operation that runs as a job.
macro_rules! operation {
    ($operation:ident [$($reference:ty)?] [$($params:ty)?] [$($body:ty)?] [$($answer:ty)?] []) => {};
    ($operation:ident [$($reference:ty)?] [$($params:ty)?] [$($body:ty)?] [$($answer:ty)?]
     [$kind:ident |$($input:ident),+| $work:expr => $view:ty]) => {
        impl Operation for $operation {
            type Path = or_unit!($($reference)?);
            type Query = or_unit!($($params)?);
            type Body = or_unit!($($body)?);
            type View = $view;
            type Answer = or_empty!($($answer)?);
            const WAY: Way<Self> = Way::$kind(|$($input),+| $work);
        }
    };
}

/// Describes the operations of [`each_operation`].
macro_rules! described {
    ($($tag:ident { $(
        $(#[doc = $does:literal])+
        $method:ident $path:literal $needs:ident $(($use_case:ident))? as $operation:ident $id:ident
        $(, at $reference:ty)?
        $(, takes $body:ty $(| $body_or:literal)*)?
        $(, asks $params:ty)?
        $(, runs $kind:ident |$($input:ident),+| $work:expr => $view:ty)?
        $(, answers $answer:ty $(| $answer_or:literal)* : $means:literal)?
        $(, writes $text:literal $(| $text_or:literal)* : $text_means:literal)?
        $(, gone : $gone:literal)?
        $(, conflicts $($conflict:ident)+)?
        $(, refuses $($refusal:ident)+)?
        $(, is $($flag:ident)+)?
        $(, by $module:ident::$handler:ident $(($way:ident))?)?
        ;
    )+ })+) => {
        /// All operations. If two paths match, the first wins, so fixed names come before parameters.
        pub static OPERATIONS: &[OperationSpec] = &[$($($operation::SPEC),+),+];

        $($(
            #[doc = concat!("The operation `", stringify!($id), "`.")]
            pub struct $operation;

            impl $operation {
                /// The description of the operation.
                pub const SPEC: OperationSpec = OperationSpec {
            id: stringify!($id),
            method: HttpMethod::$method,
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
                };
            }

            impl Described for $operation {
                type Response = or_unit!($($answer)?);
                const SPEC: &'static OperationSpec = &Self::SPEC;
            }

            operation! {
                $operation [$($reference)?] [$($params)?] [$($body)?] [$($answer)?]
                [$($kind |$($input),+| $work => $view)?]
            }
        )+)+
    };
}

/// One entry per operation: `METHOD "path" Needs as Type id`, then:
///
/// - `at`: the type of the reference in the path,
/// - `takes`: the body,
/// - `asks`: the query parameters,
/// - `runs`: the use case of a [`Job`](crate::job::Job) with its result, as a [`Way`],
/// - `answers`, `writes` or `gone`: a JSON response, a text response or an empty response,
/// - `conflicts` and `refuses`: the error codes (409 and 422) that are specific to the operation,
/// - `is`: what sets the operation apart, a [`Flag`] each,
/// - `by`: the handler of the transport, for an operation that doesn't run as a job. With `(route)`, it takes a request instead of
///   a call.
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
                POST "/auth/login" Nothing as LogIn log_in,
                    takes LogInBody,
                    answers LogInAnswer: "A bearer token, or the session of the cookie",
                    refuses password_refused,
                    is LogsIn,
                    by auth::log_in (route);

                /// Ends the session or revokes the bearer token of the request.
                POST "/auth/logout" Anything as LogOut log_out,
                    gone: "The session or token is invalid",
                    by auth::log_out (route);

                /// Creates an API key.
                ///
                /// Only this response contains the password.
                POST "/auth/keys/generate" Permission(GenerateKey) as GenerateKey generate_key,
                    takes Option<KeyBody>,
                    runs Write |cx, it| keys::generate_key(cx, it.body.request.clone()) => GeneratedKey,
                    answers Json<GeneratedKeyJson>: "The key and its password",
                    conflicts secret_shown_once,
                    is Seals;

                /// Lists the organization's API keys in order of creation.
                GET "/auth/keys/list" Permission(ListKeys) as ListKeys list_keys,
                    asks KeyListParams,
                    runs Read |cx, it| keys::list_keys(cx, &it.query.request()) => Page<ApiKey>,
                    answers UpdatedPageOf<ApiKeyJson>: "The keys, without their passwords";

                /// Rotates an API key: creates a successor with the same name and scopes.
                ///
                /// Both keys work until the overlap ends.
                POST "/auth/keys/rotate/{api_key_ref}" Permission(RotateKey) as RotateKey rotate_key,
                    at ApiKeyRef,
                    takes Option<KeyRotationBody>,
                    runs Write |cx, it| keys::rotate_key(cx, it.path, it.body.rotation()) => RotatedKey,
                    answers Json<RotatedKeyJson>: "The successor with its password, and the expiry of the rotated key",
                    conflicts key_expired key_rotated secret_shown_once,
                    is Seals;

                /// Deletes an API key and invalidates its tokens immediately.
                DELETE "/auth/user/{api_key_ref}" Permission(DeleteKey) as DeleteKey delete_key,
                    at ApiKeyRef,
                    runs Write |cx, it| keys::delete_key(cx, it.path) => (),
                    gone: "The key is deleted";
            }

            administrators {
                /// Returns the current administrator and session.
                GET "/auth/session" Permission(GetOwnSession) as GetSession get_session,
                    runs Read |cx, it| own_account::own_account(cx, it.session()?) => OwnAccount,
                    answers Json<OwnAccountJson>: "The current administrator and session";

                /// Confirms the caller's identity by the password.
                ///
                /// For 5 minutes, the session may then manage API keys and administrators and set up a second factor. A log-in confirms,
                /// too.
                POST "/auth/session/confirm" Permission(ConfirmIdentity) as ConfirmIdentity confirm_identity,
                    takes ConfirmationBody,
                    runs Services |services, by, it| own_account::confirm_identity(services, by, it.session()?, &it.body.password) => (),
                    gone: "The identity is confirmed",
                    refuses wrong_password,
                    is ChecksSecret;

                /// Lists the caller's own sessions, newest first.
                GET "/auth/sessions/list" Permission(ListSessions) as ListSessions list_sessions,
                    runs Read |cx, it| own_account::list_sessions(cx, it.session()?) => Vec<OwnSession>,
                    answers Each<OwnSessionJson>: "The active sessions";

                /// Ends all of the caller's sessions except the current one.
                DELETE "/auth/sessions/others" Permission(EndSessions) as EndOtherSessions end_other_sessions,
                    runs Write |cx, it| own_account::end_other_sessions(cx, it.session()?) => (),
                    gone: "The other sessions have ended";

                /// Ends one of the caller's own sessions.
                DELETE "/auth/sessions/{session_ref}" Permission(EndSessions) as EndSession end_session,
                    at SessionRef,
                    runs Write |cx, it| own_account::end_session(cx, it.path) => (),
                    gone: "The session has ended";

                /// Changes the caller's own password and ends the caller's other sessions.
                POST "/auth/password" Permission(ChangePassword) as ChangePassword change_password,
                    takes PasswordChangeBody,
                    runs Services |services, by, it| own_account::change_password(services, by, it.session()?, &it.body.password, &it.body.new_password) => (),
                    gone: "The password is changed",
                    conflicts account_changed,
                    refuses password_refused wrong_password,
                    is ChecksSecret;

                /// Creates the secret of a second factor.
                ///
                /// An authenticator app derives codes from the secret and the time (RFC 6238). The second factor takes effect
                /// once a code is confirmed.
                POST "/auth/second-factor/enroll" Permission(EnrollSecondFactor) as EnrollSecondFactor enroll_second_factor,
                    runs Services |services, by, _it| own_account::enroll_second_factor(services, by) => SecondFactorEnrollment,
                    answers Json<SecondFactorEnrollmentJson>: "The secret for an authenticator app",
                    conflicts second_factor_on;

                /// Activates the second factor and returns recovery codes.
                ///
                /// From now on log-ins require a code. Only this response contains the recovery codes.
                POST "/auth/second-factor/confirm" Permission(ConfirmSecondFactor) as ConfirmSecondFactor confirm_second_factor,
                    takes SecondFactorCodeBody,
                    runs Services |services, by, it| own_account::confirm_second_factor(services, by, it.body.code.as_str()) => RecoveryCodes,
                    answers Json<RecoveryCodesJson>: "Recovery codes for a lost device",
                    conflicts account_changed second_factor_not_enrolled second_factor_on,
                    refuses invalid_code,
                    is ChecksSecret;

                /// Removes the second factor. Log-ins no longer require a code.
                POST "/auth/second-factor/remove" Permission(RemoveSecondFactor) as RemoveSecondFactor remove_second_factor,
                    takes SecondFactorRemovalBody,
                    runs Services |services, by, it| own_account::remove_second_factor(services, by, &it.body.password, it.body.code.as_str()) => (),
                    gone: "The second factor is removed",
                    conflicts account_changed second_factor_locked second_factor_off,
                    refuses invalid_code wrong_password,
                    is ChecksSecret;

                /// Creates an administrator with a one-time password.
                ///
                /// Only this response contains the password. The administrator sets their own password at the first log-in.
                POST "/api/administrators/" Permission(InviteAdministrator) as InviteAdministrator invite_administrator,
                    takes InvitationBody,
                    answers InvitationJson: "The administrator and the one-time password",
                    conflicts already_exists secret_shown_once too_many_administrators,
                    by administrators::invite_administrator;

                /// Changes an administrator's role, or disables or enables their account.
                ///
                /// The change applies from their next request.
                POST "/api/administrators/edit/{admin_ref}" Permission(EditAdministrator) as EditAdministrator edit_administrator,
                    at AdminRef,
                    takes AdministratorEditBody,
                    runs Write |cx, it| administrators::edit_administrator(cx, it.path, it.body.edit.clone()) => Administrator,
                    answers Json<AdministratorJson>: "The changed administrator",
                    conflicts last_owner;

                /// Issues a one-time password for another administrator and ends their sessions.
                POST "/api/administrators/reset/{admin_ref}" Permission(ResetAdministrator) as ResetAdministrator reset_administrator,
                    takes Option<AdministratorResetBody>,
                    answers InvitationJson: "The administrator and the one-time password",
                    conflicts own_account secret_shown_once,
                    by administrators::reset_administrator;

                /// Lists the organization's administrators by e-mail address.
                GET "/api/administrators/filter" Permission(ListAdministrators) as ListAdministrators list_administrators,
                    asks AdministratorListParams,
                    runs Read |cx, it| administrators::administrators_of(cx, &it.query.updates.filter(), it.query.order.by, it.query.page()) => Page<Administrator>,
                    answers UpdatedPageOf<AdministratorJson>: "A page of administrators";
            }

            usage {
                /// Records a usage event and assigns it to its document.
                POST "/api/usage/event" Permission(RecordUsage) as RecordEvent record_event,
                    takes EventBody,
                    asks ConflictParams,
                    answers EventResultJson: "The recorded event with its document",
                    conflicts event_deleted,
                    refuses matching limit_reached,
                    is Grouped DryRun StatesLeft,
                    by usage::record_event;

                /// Makes a hold: limits reserve room for usage that is about to happen. The same request again returns the hold.
                POST "/api/usage/holds/" Permission(CreateHold) as CreateHold create_hold,
                    takes HoldBody,
                    runs Write |cx, it| usage::create_hold(cx, &it.body.request) => HoldView,
                    answers Json<HoldJson>: "The hold with what is left of the limits",
                    conflicts already_exists,
                    refuses matching limit_reached not_holdable too_many_holds amount_out_of_range;

                /// Lists holds of a customer in order of creation.
                GET "/api/usage/holds/filter" Permission(ListHolds) as ListHolds list_holds,
                    asks HoldListParams,
                    runs Read |cx, it| found(it.query.customer_ref.clone(), |customer| usage::list_holds(cx, customer, it.query.open, it.query.page())) => Page<HoldView>,
                    answers PageOf<HoldJson>: "A page of holds";

                /// Returns a hold.
                GET "/api/usage/holds/{hold_ref}" Permission(GetHold) as GetHold get_hold,
                    at HoldRef,
                    asks HoldParams,
                    runs Read |cx, it| usage::get_hold(cx, &it.query.customer_ref, &it.path) => HoldView,
                    answers Json<HoldJson>: "The hold";

                /// Releases the open entries of a hold.
                DELETE "/api/usage/holds/{hold_ref}" Permission(ReleaseHold) as ReleaseHold release_hold,
                    at HoldRef,
                    asks HoldParams,
                    runs Write |cx, it| usage::release_hold(cx, &it.query.customer_ref, &it.path) => (),
                    gone: "The hold reserves nothing";

                /// Records up to 10,000 usage events.
                ///
                /// Transactions hold 1,000 events each. Each event is assigned to its document or rejected individually. NDJSON
                /// events are recorded and answered line by line while they arrive, with `atomic` as a query parameter. An atomic
                /// batch or a batch with an Idempotency-Key is recorded in one transaction. A JSON body can also be the bare array of
                /// events. The body can be compressed: `Content-Encoding: gzip`. With `format_name` or `format_ref`, each event is a
                /// free-form event that the usage format converts. CloudEvents are an array of the type
                /// `application/cloudevents-batch+json`, with the format `CloudEvents` by default.
                POST "/api/usage/event/batch" Permission(RecordUsage) as RecordBatch record_batch,
                    takes BatchBody | "application/x-ndjson" | "application/cloudevents-batch+json",
                    asks BatchParams,
                    answers BatchResultJson | "application/x-ndjson": "One result per event, in request order",
                    refuses batch_refused too_many_events unknown_format unsupported_cloudevent,
                    by batches::record_batch (route);

                /// Converts a free-form usage event with a usage format, records it and assigns it to its document.
                ///
                /// A format with `for_each` gives several events, which are recorded in one transaction. An event that the format
                /// skips is answered with 204. A body of the type `application/cloudevents+json` is the event itself. The query then
                /// names the format, `CloudEvents` by default.
                POST "/api/usage/event/formatted" Permission(RecordUsage) as RecordFormattedEvent record_formatted_event,
                    takes FormattedEventBody | "application/cloudevents+json",
                    asks FormattedParams,
                    answers FormattedResultJson: "The recorded event as converted by the format",
                    conflicts event_deleted,
                    refuses matching limit_reached batch_refused format_error unknown_format unsupported_cloudevent,
                    is DryRun Skips StatesLeft,
                    by usage::record_formatted_event;

                /// Replaces a usage event with another free-form event and updates its documents in the same request.
                POST "/api/usage/event/formatted/update" Permission(UpdateEvent) as UpdateFormattedEvent update_formatted_event,
                    takes FormattedUpdateBody,
                    answers EventJson: "The changed event",
                    refuses matching format_error unknown_format,
                    is NamesEvent DryRun,
                    by usage::update_formatted_event;

                /// Changes a usage event and updates its documents in the same request.
                POST "/api/usage/event/update" Permission(UpdateEvent) as UpdateEvent update_event,
                    takes EventUpdateBody,
                    answers EventJson: "The changed event",
                    refuses matching,
                    is NamesEvent Grouped DryRun,
                    by usage::update_event;

                /// Lists all changes of a usage event, also of a deleted one.
                GET "/api/usage/event/history/{event_ref}" Permission(GetEventHistory) as GetEventHistory get_event_history,
                    at EventRef,
                    runs Read |cx, it| usage::event_history(cx, it.path) => Vec<Named<EventRevision>>,
                    answers Each<EventRevisionJson>: "The changes, oldest first";

                /// Lists usage events by timestamp, then by reference.
                GET "/api/usage/event/filter" Permission(ListEvents) as ListEvents list_events,
                    asks EventListParams,
                    runs Scan |cx, it| found(it.query.clone().query(), |wanted| usage::list_events(cx, wanted, it.query.order.by, it.query.page())) => Page<EventView>,
                    answers UpdatedPageOf<EventJson>: "A page of events, without deleted ones";

                /// Returns a usage event.
                GET "/api/usage/event/{event_ref}" Permission(GetEvent) as GetEvent get_event,
                    at EventRef,
                    runs Read |cx, it| usage::get_event(cx, it.path) => EventView,
                    answers Json<EventJson>: "The event";

                /// Deletes a usage event and updates its documents in the same request. The event's history remains.
                DELETE "/api/usage/event/{event_ref}" Permission(DeleteEvent) as DeleteEvent delete_event,
                    gone: "The event is deleted",
                    refuses amount_out_of_range,
                    is Grouped DryRun,
                    by usage::delete_event;

                /// Lists rejected usage: counts by day, reason, customer and usage product, each with its latest example.
                ///
                /// Counts are saved every few seconds and retained for 90 days. If a server crashes, its unsaved counts are lost.
                GET "/api/usage/refused/filter" Permission(ListRefusedUsage) as ListRefusedUsage list_refused_usage,
                    asks RefusedParams,
                    runs Read |cx, it| use_cases::list_refused_usage(cx, &it.query.filter(), it.query.page()) => Page<Refused>,
                    answers PageOf<RefusedUsageJson>: "A page of counts, the newest day first";

                /// Sums usage by hour, day or month.
                ///
                /// The quantity of a customer in an interval follows the aggregation of the usage product: the sum, the number of
                /// events, the largest quantity or the latest quantity. The quantities of several customers are added.
                GET "/api/usage/summary" Permission(SummarizeUsage) as SummarizeUsage summarize_usage,
                    asks SummaryParams,
                    runs Scan |cx, it| all_found(it.query.events.clone().query(), |wanted| usage::summarize_usage(cx, wanted, it.query.intervals(), it.query.group_by)) => Vec<SummaryLine>,
                    answers Each<SummaryLineJson>: "The intervals with events, oldest first",
                    refuses too_many_rows;

                /// Imports usage events from a file. Repeated imports create no duplicates.
                ///
                /// The file is CSV with a header line, NDJSON, or a JSON array of events as in a usage report. It can be compressed:
                /// `Content-Encoding: gzip`. Invalid lines are
                /// rejected and do not stop the import. Transactions hold 1,000 events each. With an Idempotency-Key the whole
                /// file is one transaction. If the import stops before the end of the file, the response is 503 `import_stopped`,
                /// with the result in `import`. To continue, send the file again: recorded lines are skipped.
                POST "/api/usage/import" Permission(RecordUsage) as ImportUsage import_usage,
                    takes FileBody | "text/csv" | "application/x-ndjson",
                    asks ImportParams,
                    answers ImportResultJson: "The result of the import",
                    refuses unknown_format format_error,
                    is TakesFile,
                    by imports::import_usage (route);

                /// Reverses an import: deletes the events that it recorded and updates their documents.
                ///
                /// The events' idempotency keys are forgotten, so the same file can be imported again. Transactions delete some
                /// hundred events each. If time runs out, `left` counts the remaining events, and the same request continues.
                /// With an Idempotency-Key everything is deleted in one transaction.
                POST "/api/usage/imports/undo/{import_ref}" Permission(UndoImport) as UndoImport undo_import,
                    answers UndoResultJson: "The deleted and the remaining events",
                    by imports::undo_import;

                /// Lists imports by start time, newest first. Imports are retained for 400 days.
                GET "/api/usage/imports/filter" Permission(ListImports) as ListImports list_imports,
                    asks ImportListParams,
                    runs Read |cx, it| use_cases::list_imports(cx, &it.query.filter(), it.query.order.by, it.query.page()) => Page<ImportResponse>,
                    answers UpdatedPageOf<ImportJson>: "A page of imports";

                /// Returns an import with the documents that its events were assigned to.
                GET "/api/usage/imports/{import_ref}" Permission(GetImport) as GetImport get_import,
                    at ImportRef,
                    runs Read |cx, it| use_cases::get_import(cx, it.path) => ImportResponse,
                    answers Json<ImportJson>: "The import";

                /// Returns a report of usage events without a limit on their number.
                GET "/api/usage/report" Permission(ReportUsage) as ReportUsage report_usage,
                    asks ReportParams,
                    answers Free<true> | "text/csv" | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "The report, by timestamp, then by reference",
                    refuses too_many_columns,
                    by reports::report_usage;
            }

            catalog {
                /// Creates a usage product.
                POST "/api/usage/products/" Permission(CreateUsageProduct) as CreateUsageProduct create_usage_product,
                    takes UsageProductBody,
                    runs Write |cx, it| catalog::create_usage_product(cx, it.body.usage_product_ref.clone(), it.body.profile.clone()) => UsageProduct,
                    answers Json<UsageProductJson>: "The created usage product",
                    conflicts already_exists,
                    refuses unknown_unit_code unique_by_required;

                /// Changes a usage product. Omitted fields stay unchanged; null clears a field.
                POST "/api/usage/products/edit/{usage_product_ref}" Permission(EditUsageProduct) as EditUsageProduct edit_usage_product,
                    at UsageProductRef,
                    takes UsageProductEditBody,
                    runs Write |cx, it| catalog::edit_usage_product(cx, &it.path, &it.body) => UsageProduct,
                    answers Json<UsageProductJson>: "The changed usage product",
                    refuses unknown_unit_code unique_by_required;

                /// Lists usage products in order of creation.
                GET "/api/usage/products/filter" Permission(ListUsageProducts) as ListUsageProducts list_usage_products,
                    asks ListParams,
                    runs Read |cx, it| catalog::list_usage_products(cx, &it.query.request()) => Page<UsageProduct>,
                    answers UpdatedPageOf<UsageProductJson>: "A page of usage products";

                /// Returns a usage product.
                GET "/api/usage/products/{usage_product_ref}" Permission(GetUsageProduct) as GetUsageProduct get_usage_product,
                    at UsageProductRef,
                    runs Read |cx, it| catalog::get_usage_product(cx, &it.path) => UsageProduct,
                    answers Json<UsageProductJson>: "The usage product";

                /// Creates a customer.
                POST "/api/customers/" Permission(CreateCustomer) as CreateCustomer create_customer,
                    takes CustomerBody,
                    runs Write |cx, it| catalog::create_customer(cx, it.body.customer_ref.clone(), it.body.wanted.clone()) => CustomerView,
                    answers Json<CustomerJson>: "The created customer",
                    conflicts already_exists,
                    refuses forms;

                /// Changes a customer. Omitted fields stay unchanged; null clears a field.
                POST "/api/customers/edit/{customer_ref}" Permission(EditCustomer) as EditCustomer edit_customer,
                    at CustomerRef,
                    takes CustomerEditBody,
                    runs Write |cx, it| catalog::edit_customer(cx, &it.path, &it.body) => CustomerView,
                    answers Json<CustomerJson>: "The changed customer",
                    refuses forms,
                    is DryRun;

                /// Lists customers in order of creation.
                GET "/api/customers/filter" Permission(ListCustomers) as ListCustomers list_customers,
                    asks CustomerParams,
                    runs Read |cx, it| catalog::list_customers(cx, &it.query.filter(), it.query.order.by, it.query.page()) => Page<CustomerView>,
                    answers UpdatedPageOf<CustomerJson>: "A page of customers";

                /// Lists the names of customers in order of creation.
                GET "/api/customers/names" Permission(ListCustomers) as ListCustomerNames list_customer_names,
                    asks CustomerParams,
                    runs Read |cx, it| catalog::list_customers(cx, &it.query.filter(), it.query.order.by, it.query.page()) => Page<CustomerView>,
                    answers UpdatedPageOf<CustomerNameJson>: "A page of names";

                /// Lists the terms that e-invoices for a customer would lack.
                ///
                /// The list is empty if the data of the customer and the entity suffices. Terms that a contract may state count as
                /// missing.
                GET "/api/customers/e_invoice_check/{customer_ref}" Permission(GetCustomer) as CheckEInvoice check_e_invoice,
                    at CustomerRef,
                    asks EInvoiceCheckParams,
                    runs Read |cx, it| catalog::check_e_invoice(cx, &it.path, it.query.entity_ref.as_ref()) => Vec<Missing>,
                    answers Each<MissingTermJson>: "The missing terms",
                    refuses entity_required;

                /// Lists the amounts due of several customers.
                ///
                /// The list is ordered by the creation of the customers. Customers that owe nothing and unknown references are omitted.
                GET "/api/customers/amounts_due" Permission(GetBalance) as ListAmountsDue list_amounts_due,
                    asks AmountsDueParams,
                    runs Read |cx, it| balances::amounts_due(cx, &it.query.customer_ref) => Vec<CustomerDue>,
                    answers Each<CustomerDueJson>: "The amounts due, by customer, entity and currency",
                    refuses amount_out_of_range;

                /// Returns a customer.
                GET "/api/customers/{customer_ref}" Permission(GetCustomer) as GetCustomer get_customer,
                    at CustomerRef,
                    runs Read |cx, it| catalog::get_customer(cx, &it.path) => CustomerView,
                    answers Json<CustomerJson>: "The customer";

                /// Creates a supplier entity.
                POST "/api/entities/" Permission(CreateEntity) as CreateEntity create_entity,
                    takes EntityBody,
                    answers EntityJson: "The created supplier entity",
                    conflicts already_exists,
                    refuses forms logo_too_complex,
                    by catalog::create_entity;

                /// Changes a supplier entity. Omitted fields stay unchanged; null clears a field.
                POST "/api/entities/edit/{entity_ref}" Permission(EditEntity) as EditEntity edit_entity,
                    takes EntityEditBody,
                    answers EntityJson: "The changed supplier entity",
                    conflicts already_exists numbers_given,
                    refuses forms logo_too_complex,
                    is DryRun,
                    by catalog::edit_entity;

                /// Lists supplier entities in order of creation.
                GET "/api/entities/filter" Permission(ListEntities) as ListEntities list_entities,
                    asks ListParams,
                    runs Read |cx, it| catalog::list_entities(cx, &it.query.request()) => Page<EntityView>,
                    answers UpdatedPageOf<EntityJson>: "A page of supplier entities";

                /// Lists the names of supplier entities in order of creation.
                GET "/api/entities/names" Permission(ListEntities) as ListEntityNames list_entity_names,
                    asks ListParams,
                    runs Read |cx, it| catalog::list_entities(cx, &it.query.request()) => Page<EntityView>,
                    answers UpdatedPageOf<EntityNameJson>: "A page of names";

                /// Returns a supplier entity.
                GET "/api/entities/{entity_ref}" Permission(GetEntity) as GetEntity get_entity,
                    at EntityRef,
                    runs Read |cx, it| catalog::get_entity(cx, &it.path) => EntityView,
                    answers Json<EntityJson>: "The supplier entity";

                /// Deletes a supplier entity to which nothing refers.
                DELETE "/api/entities/{entity_ref}" Permission(DeleteEntity) as DeleteEntity delete_entity,
                    at EntityRef,
                    runs Write |cx, it| catalog::delete_entity(cx, &it.path) => (),
                    gone: "The supplier entity is deleted",
                    conflicts entity_in_use;

                /// Creates a pricing.
                POST "/api/pricings/" Permission(CreatePricing) as CreatePricing create_pricing,
                    takes PricingBody,
                    runs Write |cx, it| catalog::create_pricing(cx, it.body.product_pricing_ref.clone(), it.body.content.clone()) => Pricing,
                    answers Json<PricingJson>: "The created pricing",
                    conflicts already_exists,
                    refuses unknown_usage_product overlapping_where several_rest unique_by_required unique_with_where conflicting_fields;

                /// Changes a pricing. Omitted fields stay unchanged; null clears a field.
                POST "/api/pricings/edit/{product_pricing_ref}" Permission(EditPricing) as EditPricing edit_pricing,
                    at PricingRef,
                    takes PricingEditBody,
                    runs Write |cx, it| catalog::edit_pricing(cx, &it.path, &it.body) => Pricing,
                    answers Json<PricingJson>: "The changed pricing",
                    refuses unknown_usage_product overlapping_where several_rest unique_by_required unique_with_where conflicting_fields;

                /// Lists pricings in order of creation.
                GET "/api/pricings/filter" Permission(ListPricings) as ListPricings list_pricings,
                    asks ListParams,
                    runs Read |cx, it| catalog::list_pricings(cx, &it.query.request()) => Page<Pricing>,
                    answers UpdatedPageOf<PricingJson>: "A page of pricings";

                /// Rates quantities with a pricing that is not stored.
                ///
                /// Checks the pricing like its creation, and returns what each usage-priced line item costs at each quantity.
                POST "/api/pricings/rates" Permission(RatePricing) as RateNewPricing rate_new_pricing,
                    takes PricingRateBody,
                    runs Read |cx, it| catalog::rate_new_pricing(cx, &it.body.content, &it.body.quantities) => Vec<PricingRate>,
                    answers Each<PricingRateJson>: "The price of each quantity, in request order",
                    refuses amount_out_of_range unknown_usage_product,
                    is Question;

                /// Returns a pricing.
                GET "/api/pricings/{product_pricing_ref}" Permission(GetPricing) as GetPricing get_pricing,
                    at PricingRef,
                    runs Read |cx, it| catalog::get_pricing(cx, &it.path) => Pricing,
                    answers Json<PricingJson>: "The pricing";

                /// Rates quantities with a pricing: returns what each usage-priced line item costs at each quantity.
                GET "/api/pricings/rates/{product_pricing_ref}" Permission(RatePricing) as RatePricing rate_pricing,
                    at PricingRef,
                    asks PricingRateParams,
                    runs Read |cx, it| catalog::rate_pricing(cx, &it.path, &it.query.quantity) => Vec<PricingRate>,
                    answers Each<PricingRateJson>: "The price of each quantity, in request order",
                    refuses amount_out_of_range;

                /// Creates a bank account.
                POST "/api/bank_accounts/" Permission(CreateBankAccount) as CreateBankAccount create_bank_account,
                    takes BankAccountBody,
                    runs Write |cx, it| catalog::create_bank_account(cx, it.body.billing_account_id.clone(), it.body.profile.clone()) => BankAccount,
                    answers Json<BankAccountJson>: "The created bank account",
                    conflicts already_exists,
                    refuses conflicting_fields invalid_bic invalid_iban invalid_routing_number;

                /// Changes a bank account. Omitted fields stay unchanged; null clears a field.
                ///
                /// Issued documents do not change.
                POST "/api/bank_accounts/edit/{billing_account_id}" Permission(EditBankAccount) as EditBankAccount edit_bank_account,
                    at BankAccountRef,
                    takes BankAccountEditBody,
                    runs Write |cx, it| catalog::edit_bank_account(cx, &it.path, &it.body) => BankAccount,
                    answers Json<BankAccountJson>: "The changed bank account",
                    refuses conflicting_fields invalid_bic invalid_iban invalid_routing_number;

                /// Lists bank accounts in order of creation.
                GET "/api/bank_accounts/filter" Permission(ListBankAccounts) as ListBankAccounts list_bank_accounts,
                    asks ListParams,
                    runs Read |cx, it| catalog::list_bank_accounts(cx, &it.query.request()) => Page<BankAccount>,
                    answers UpdatedPageOf<BankAccountJson>: "A page of bank accounts";

                /// Returns a bank account.
                GET "/api/bank_accounts/{billing_account_id}" Permission(GetBankAccount) as GetBankAccount get_bank_account,
                    at BankAccountRef,
                    runs Read |cx, it| catalog::get_bank_account(cx, &it.path) => BankAccount,
                    answers Json<BankAccountJson>: "The bank account";

                /// Saves an exchange rate. Replaces an existing rate for the same currencies and date.
                POST "/api/exchange_rates/" Permission(PutExchangeRate) as PutExchangeRate put_exchange_rate,
                    takes ExchangeRateBody,
                    answers ExchangeRateJson: "The saved exchange rate",
                    by catalog::put_exchange_rate;

                /// Lists exchange rates in order of creation.
                GET "/api/exchange_rates/filter" Permission(ListExchangeRates) as ListExchangeRates list_exchange_rates,
                    asks ListParams,
                    runs Read |cx, it| catalog::list_exchange_rates(cx, &it.query.request()) => Page<StoredExchangeRate>,
                    answers UpdatedPageOf<ExchangeRateJson>: "A page of exchange rates";
            }

            formats {
                /// Creates a usage format.
                POST "/api/usage/formats/" Permission(CreateFormat) as CreateUsageFormat create_usage_format,
                    takes FormatBody,
                    runs Write |cx, it| formats::create_format(cx, it.body.format_ref.clone(), it.body.content.clone()) => FormatView,
                    answers Json<FormatJson>: "The created usage format",
                    conflicts already_exists,
                    refuses format_error;

                /// Changes a usage format by creating its next version.
                ///
                /// Recorded events retain the version that converted them.
                POST "/api/usage/formats/edit/{format_ref}" Permission(EditFormat) as EditUsageFormat edit_usage_format,
                    at FormatRef,
                    takes FormatEditBody,
                    runs Write |cx, it| formats::edit_format(cx, &it.path, &it.body) => FormatView,
                    answers Json<FormatJson>: "The changed usage format",
                    conflicts already_exists format_built_in,
                    refuses format_error;

                /// Tests a usage format or a mapping with an event and stores nothing.
                POST "/api/usage/formats/test" Permission(TestFormat) as TestUsageFormat test_usage_format,
                    takes FormatTestBody,
                    runs Services |services, by, it| use_cases::test_format(services, by, &it.body) => MappedRecord,
                    answers Json<FormatTestJson>: "The converted event",
                    refuses format_error unknown_format,
                    is Question Evaluates;

                /// Lists usage formats in order of creation, the built-in format first.
                GET "/api/usage/formats/filter" Permission(ListFormats) as ListUsageFormats list_usage_formats,
                    asks ListParams,
                    runs Read |cx, it| formats::list_formats(cx, &it.query.request()) => Page<FormatView>,
                    answers UpdatedPageOf<FormatJson>: "A page of usage formats";

                /// Returns a usage format.
                GET "/api/usage/formats/{format_ref}" Permission(GetFormat) as GetUsageFormat get_usage_format,
                    at FormatRef,
                    asks FormatParams,
                    runs Read |cx, it| formats::get_format(cx, &it.path, it.query.version) => FormatView,
                    answers Json<FormatJson>: "The usage format";
            }

            contracts {
                /// Creates a contract.
                POST "/api/contracts/" Permission(CreateContract) as CreateContract create_contract,
                    takes ContractBody,
                    runs Write |cx, it| contracts::create_contract(cx, &it.body.request) => ContractView,
                    answers Json<ContractCreatedJson>: "The reference of the created contract",
                    conflicts documents,
                    refuses terms,
                    is DryRun;

                /// Changes a contract from a date, from the current period or from the next period.
                POST "/api/contracts/edit/{contract_ref}" Permission(EditContract) as EditContract edit_contract,
                    at ContractRef,
                    takes ContractEditBody,
                    runs Write |cx, it| use_cases::edit_contract(cx, it.path, &it.body) => AmendmentOutcome,
                    answers Json<AmendedContractJson>: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments already_started version_conflict,
                    refuses terms periods,
                    is DryRun;

                /// Cancels a contract at the end of its current period, today or on a date.
                POST "/api/contracts/cancel/{contract_ref}" Permission(CancelContract) as CancelContract cancel_contract,
                    at ContractRef,
                    takes Option<ContractCancelBody>,
                    runs Write |cx, it| amend(cx, it.body.options, |cx, allow_backdated| contracts::cancel_contract(cx, it.path, it.body.ends(), allow_backdated)) => AmendmentOutcome,
                    answers Json<AmendedContractJson>: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments,
                    refuses periods,
                    is DryRun;

                /// Resumes a canceled contract whose last day has not passed.
                POST "/api/contracts/resume/{contract_ref}" Permission(ResumeContract) as ResumeContract resume_contract,
                    at ContractRef,
                    takes Option<ContractResumeBody>,
                    runs Write |cx, it| amend(cx, it.body.options, |cx, allow_backdated| contracts::resume_contract(cx, it.path, allow_backdated)) => AmendmentOutcome,
                    answers Json<AmendedContractJson>: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments,
                    refuses periods,
                    is DryRun;

                /// Changes the quantity of a fixed line item from a date.
                POST "/api/contracts/quantities/{contract_ref}" Permission(ChangeQuantity) as ChangeQuantity change_quantity,
                    at ContractRef,
                    takes ContractQuantityBody,
                    runs Write |cx, it| amend(cx, it.body.options, |cx, allow_backdated| contracts::change_quantity(cx, it.path, &it.body.change, allow_backdated)) => AmendmentOutcome,
                    answers Json<AmendedContractJson>: "The contract's newest version, or the affected documents of a dry run",
                    conflicts amendments,
                    refuses terms periods,
                    is DryRun;

                /// Lists a customer's contracts in order of creation.
                GET "/api/contracts/filter" Permission(ListContracts) as ListContracts list_contracts,
                    asks ContractParams,
                    runs Read |cx, it| found(it.query.customer_ref.clone(), |customer_ref| contracts::list_contracts(cx, customer_ref, it.query.page())) => Page<ContractView>,
                    answers PageOf<ContractJson>: "A page of the customer's contracts";

                /// Searches the contracts of all customers, in order of creation.
                GET "/api/contracts/search" Permission(ListContracts) as SearchContracts search_contracts,
                    asks ContractSearchParams,
                    runs Read |cx, it| found(it.query.clone().query(), |wanted| contracts::search_contracts(cx, wanted, it.query.page())) => Page<ContractView>,
                    answers UpdatedPageOf<ContractJson>: "A page of contracts";

                /// Previews the documents of a contract's current period.
                GET "/api/contracts/invoices/current/{contract_ref}" Permission(PreviewInvoices) as CurrentInvoices current_invoices,
                    at ContractRef,
                    runs Read |cx, it| contracts::current_invoices(cx, it.path) => Vec<DocumentView>,
                    answers Each<DocumentJson>: "The documents of the current billing period",
                    refuses amount_out_of_range;

                /// Previews the documents of a contract's next period.
                GET "/api/contracts/invoices/next/{contract_ref}" Permission(PreviewInvoices) as NextInvoices next_invoices,
                    at ContractRef,
                    runs Read |cx, it| contracts::next_invoices(cx, it.path) => Vec<DocumentView>,
                    answers Each<DocumentJson>: "The documents of the next billing period",
                    refuses amount_out_of_range;

                /// Returns a contract.
                GET "/api/contracts/{contract_ref}" Permission(GetContract) as GetContract get_contract,
                    at ContractRef,
                    runs Read |cx, it| contracts::get_contract(cx, it.path) => ContractView,
                    answers Json<ContractJson>: "The contract";
            }

            documents {
                /// Returns a customer's balances by entity and currency.
                GET "/api/customers/balance/{customer_ref}" Permission(GetBalance) as GetBalance get_balance,
                    at CustomerRef,
                    runs Read |cx, it| balances::balance(cx, &it.path) => Vec<Balance>,
                    answers Each<BalanceJson>: "A balance for each entity and currency",
                    refuses amount_out_of_range;

                /// Returns a customer's account statements by entity and currency.
                GET "/api/customers/statement/{customer_ref}" Permission(GetStatement) as GetStatement get_statement,
                    asks StatementParams,
                    answers List<StatementJson> | "text/csv" | "application/pdf": "A statement for each entity and currency",
                    conflicts glyph_missing,
                    refuses amount_out_of_range too_many_rows,
                    by money::get_statement;

                /// Records a payment without a document: a deposit.
                ///
                /// The deposit pays open documents of the same entity and currency, earliest due date first. The rest is balance,
                /// which pays the next issued documents. With `apply_balance: false` on the customer, the deposit is applied only by
                /// hand.
                POST "/api/customers/payments/{customer_ref}" Permission(RecordDeposit) as RecordDeposit record_deposit,
                    at CustomerRef,
                    takes DepositBody,
                    runs Write |cx, it| documents::record_deposit(cx, &it.path, &it.body.account, &it.body.facts) => PaymentView,
                    answers Json<PaymentJson>: "The payment with its applications",
                    refuses amount_out_of_range entity_required,
                    is DryRun;

                /// Lists a customer's payments and refunds, deposits among them, in the order in which they were recorded.
                GET "/api/customers/payments/{customer_ref}" Permission(ListPayments) as ListPaymentsOfCustomer list_payments_of_customer,
                    at CustomerRef,
                    asks CustomerPaymentParams,
                    runs Read |cx, it| documents::payments_of_customer(cx, &it.path, it.query.page()) => Page<PaymentView>,
                    answers PageOf<PaymentJson>: "A page of the customer's payments and refunds";

                /// Lists documents with totals by currency, or with `format` exports all of them as a table.
                GET "/api/documents/filter" Permission(ListDocuments) as ListDocuments list_documents,
                    asks DocumentListParams,
                    answers List<DocumentJson> | "text/csv" | "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "A page of documents, or with `format` a table of all documents",
                    is SumsAmounts,
                    by documents::list_documents;

                /// Sums issued documents by month of issue and currency.
                ///
                /// A voided document stays in the month of its issue and is subtracted in the month of its void. `issued_from` and
                /// `issued_to` select both by their own day.
                GET "/api/documents/summary" Permission(ListDocuments) as SummarizeDocuments summarize_documents,
                    asks DocumentParams,
                    runs Read |cx, it| all_found(it.query.clone().query(), |wanted| documents::summarize_documents(cx, wanted)) => Vec<BilledMonth>,
                    answers Each<DocumentSummaryJson>: "The months with documents or voids, oldest first, each with one element per currency";

                /// Returns a document.
                GET "/api/documents/{document_ref}" Permission(GetDocument) as GetDocument get_document,
                    at DocumentRef,
                    runs Read |cx, it| documents::get_document(cx, it.path) => DocumentView,
                    answers Json<DocumentJson>: "The document with its lines";

                /// Returns a document as a PDF file.
                ///
                /// The file of an issued document never changes. The file of a draft shows its current content and is marked as a
                /// draft. `ETag` changes only with the file; if `If-None-Match` contains it, the response is 304 without a body.
                GET "/api/documents/{document_ref}/pdf" Permission(GetDocument) as GetDocumentPdf get_document_pdf,
                    writes "application/pdf": "The PDF file, conforming to PDF/A-3b and PDF/UA-1",
                    conflicts glyph_missing,
                    by documents::get_document_pdf;

                /// Returns an issued document as an e-invoice (EN 16931) in XML.
                ///
                /// The e-invoice profile of the document determines its content and the possible syntaxes. The file never changes. If
                /// `If-None-Match` contains its `ETag`, the response is 304 without a body. If required terms are missing, `errors` of
                /// the 409 lists all of them.
                GET "/api/documents/{document_ref}/xml" Permission(GetDocument) as GetDocumentXml get_document_xml,
                    asks EInvoiceParams,
                    writes "application/xml": "The e-invoice, in UBL 2.1 or as Cross Industry Invoice",
                    conflicts not_issued e_invoice_incomplete e_invoice_unavailable,
                    by documents::get_document_xml;

                /// Returns a report of the usage events that a document bills.
                GET "/api/documents/{document_ref}/usage.csv" Permission(ReportUsage) as ReportDocumentUsage report_document_usage,
                    writes "text/csv": "The report, by timestamp, then by reference",
                    refuses too_many_columns,
                    by reports::report_document_usage;

                /// Issues a draft immediately, regardless of its scheduled date.
                POST "/api/documents/issue/{document_ref}" Permission(IssueDocument) as IssueDocument issue_document,
                    at DocumentRef,
                    takes Option<IssueBody>,
                    runs Write |cx, it| documents::issue_document(cx, it.path, it.body.trust_clock) => DocumentView,
                    answers Json<DocumentJson>: "The issued document",
                    conflicts clock_not_trusted not_a_draft documents,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Voids an unpaid issued document. A replacement document bills its period again.
                POST "/api/documents/void/{document_ref}" Permission(VoidDocument) as VoidDocument void_document,
                    at DocumentRef,
                    runs Write |cx, it| documents::void_document(cx, it.path) => DocumentView,
                    answers Json<DocumentJson>: "The void document",
                    conflicts not_issued document_has_dependents document_paid credits_applied credit_refunded billed_elsewhere not_voidable documents,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Reverses a payment or refund; the settled amounts become due again.
                POST "/api/documents/payments/reverse/{payment_ref}" Permission(ReversePayment) as ReversePayment reverse_payment,
                    at PaymentRef,
                    takes Option<ReversalBody>,
                    runs Write |cx, it| documents::reverse_payment(cx, it.path, it.body.date, it.body.reason.as_ref()) => PaymentOutcome,
                    answers Json<PaymentOutcomeJson>: "The document that the payment is recorded on, or the reversed payment of a deposit",
                    conflicts already_reversed payment_refunded,
                    is DryRun;

                /// Lists payments and refunds in the order in which they were recorded.
                GET "/api/documents/payments/filter" Permission(ListPayments) as ListPayments list_payments,
                    asks PaymentParams,
                    runs Read |cx, it| found(it.query.clone().query(), |wanted| documents::list_payments(cx, wanted, it.query.page())) => Page<PaymentView>,
                    answers UpdatedPageOf<PaymentJson>: "A page of payments and refunds";

                /// Records a payment of an issued invoice or debit.
                POST "/api/documents/payments/{document_ref}" Permission(RecordPayment) as RecordPayment record_payment,
                    at DocumentRef,
                    takes PaymentBody,
                    runs Write |cx, it| documents::record_payment(cx, it.path, &it.body.facts, it.body.overpayment) => DocumentView,
                    answers Json<DocumentJson>: "The document with the payment",
                    conflicts not_owed,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Lists a document's payments and refunds in the order in which they were recorded.
                GET "/api/documents/payments/{document_ref}" Permission(ListPayments) as ListPaymentsOfDocument list_payments_of_document,
                    at DocumentRef,
                    runs Read |cx, it| documents::payments_of_document(cx, it.path) => Vec<PaymentView>,
                    answers Each<PaymentJson>: "The payments and refunds of the document";

                /// Refunds the unapplied amount of a credit or payment, in full or in part.
                POST "/api/documents/refund/{source_ref}" Permission(Refund) as Refund refund,
                    at SourceRef,
                    takes RefundBody,
                    runs Write |cx, it| documents::refund(cx, it.path, &it.body.facts) => PaymentOutcome,
                    answers Json<PaymentOutcomeJson>: "The credit, the document of the payment, or the refund of a deposit",
                    conflicts not_unapplied,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Applies an amount of a credit or payment to a document.
                POST "/api/documents/apply/{source_ref}" Permission(Apply) as Apply apply,
                    at SourceRef,
                    takes ApplyBody,
                    runs Write |cx, it| documents::apply(cx, it.path, it.body.document_ref, &it.body.amount) => DocumentView,
                    answers Json<DocumentJson>: "The settled document",
                    conflicts not_owed not_unapplied,
                    refuses amount_out_of_range,
                    is DryRun;

                /// Reverses an application of a credit or payment.
                POST "/api/documents/unapply/{application_ref}" Permission(Unapply) as Unapply unapply,
                    at ApplicationRef,
                    runs Write |cx, it| documents::unapply(cx, it.path) => DocumentView,
                    answers Json<DocumentJson>: "The document that is no longer settled by the application",
                    conflicts not_unapplied,
                    is DryRun;

                /// Writes off a document's amount due, or reverses its write-off.
                POST "/api/documents/write-off/{document_ref}" Permission(WriteOff) as WriteOff write_off,
                    at DocumentRef,
                    takes Option<WriteOffBody>,
                    runs Write |cx, it| documents::write_off(cx, it.path, it.body.reason.as_ref(), it.body.undo) => DocumentView,
                    answers Json<DocumentJson>: "The document",
                    conflicts already_written_off not_owed not_written_off,
                    is DryRun;

                /// Issues all documents that are due; with `dry_run` only lists them.
                ///
                /// If time runs out, the next run handles the remaining contracts, and `next` is the position to continue from.
                /// With an Idempotency-Key a run is one transaction of at most 500 contracts.
                POST "/api/billing/run" Permission(RunBilling) as RunBilling run_billing,
                    takes Option<BillingRunBody>,
                    answers BillingReportJson: "The issued and voided documents, and the failures",
                    conflicts clock_not_trusted,
                    by billing::run_billing;

                /// Returns the billing clock of a sandbox, and when something is due next.
                GET "/api/clock" Permission(GetClock) as GetClock get_clock,
                    runs Read |cx, _it| sandbox::get_clock(cx) => ClockView,
                    answers Json<ClockJson>: "The clock",
                    conflicts not_a_sandbox;

                /// Moves the billing clock of a sandbox, for all organizations of the server.
                ///
                /// On the way, the clock stops at each instant at which something is due, and the server issues documents and
                /// notifies as it does when it runs all the time. A request that takes longer than 20 seconds stops before `to` and
                /// returns `reached: false`; the same request goes on. Idempotency keys are ignored: `to` makes a repeat harmless.
                POST "/api/clock/advance" Permission(AdvanceClock) as AdvanceClock advance_clock,
                    takes ClockAdvanceBody,
                    runs Services |services, by, it| use_cases::advance_clock(services, by, &it.body) => ClockAdvance,
                    answers Json<ClockAdvanceJson>: "What happened on the way",
                    conflicts clock_is_advancing not_a_sandbox,
                    refuses clock_only_forward;

                /// Lists billing runs by start time, newest first.
                ///
                /// The list contains the runs of all callers and of the server itself, but no dry runs. A run of the server that
                /// did nothing is not recorded. Any other run that issued and voided nothing replaces the previous run, if that has
                /// the same author and issued and voided nothing either. Runs are retained for 400 days.
                GET "/api/billing/runs/filter" Permission(ListBillingRuns) as ListBillingRuns list_billing_runs,
                    asks RunParams,
                    runs Read |cx, it| use_cases::list_billing_runs(cx, &it.query.filter(), it.query.order.by, it.query.page()) => Page<BillingRunResponse>,
                    answers UpdatedPageOf<BillingRunJson>: "A page of runs";

                /// Returns a billing run with the documents that it issued and the contracts that it failed to bill.
                GET "/api/billing/runs/{run_ref}" Permission(GetBillingRun) as GetBillingRun get_billing_run,
                    at BillingRunRef,
                    runs Read |cx, it| use_cases::get_billing_run(cx, it.path) => BillingRunResponse,
                    answers Json<BillingRunJson>: "The run";
            }

            webhooks {
                /// Creates a webhook endpoint, to which notifications are sent.
                ///
                /// The endpoint receives notifications that are numbered from now on. Requests are signed as Standard Webhooks 1.0.0
                /// describes. Only this response contains the secret.
                POST "/api/webhooks/endpoints/" Permission(CreateWebhookEndpoint) as CreateWebhookEndpoint create_webhook_endpoint,
                    takes WebhookEndpointBody,
                    runs Write |cx, it| webhooks::create_endpoint(cx, it.body.profile.clone()) => CreatedEndpoint,
                    answers Json<CreatedWebhookEndpointJson>: "The created endpoint and its secret",
                    conflicts secret_shown_once,
                    refuses address_not_public invalid_url too_many_endpoints unknown_event_type,
                    is Seals;

                /// Changes a webhook endpoint. Omitted fields stay unchanged; null clears a field.
                ///
                /// Disabling an endpoint cancels its pending deliveries. After enabling it again, they can be replayed.
                POST "/api/webhooks/endpoints/edit/{endpoint_ref}" Permission(EditWebhookEndpoint) as EditWebhookEndpoint edit_webhook_endpoint,
                    at EndpointRef,
                    takes WebhookEndpointEditBody,
                    runs Write |cx, it| webhooks::edit_endpoint(cx, it.path, &it.body) => EndpointView,
                    answers Json<WebhookEndpointJson>: "The changed endpoint",
                    refuses address_not_public invalid_url unknown_event_type;

                /// Rotates the secret of a webhook endpoint.
                ///
                /// Until the overlap ends, requests have a signature by each secret, the newest first.
                POST "/api/webhooks/endpoints/rotate/{endpoint_ref}" Permission(RotateWebhookSecret) as RotateWebhookSecret rotate_webhook_secret,
                    at EndpointRef,
                    takes Option<SecretRotationBody>,
                    runs Write |cx, it| webhooks::rotate_secret(cx, it.path, it.body.overlap_hours) => RotatedSecret,
                    answers Json<RotatedSecretJson>: "The new secret, and the end of the overlap",
                    conflicts rotation_in_progress secret_shown_once,
                    is Seals;

                /// Sends a test notification to a webhook endpoint, also to a disabled one, and returns the attempt.
                ///
                /// An organization has one test at a time.
                POST "/api/webhooks/endpoints/test/{endpoint_ref}" Permission(TestWebhookEndpoint) as TestWebhookEndpoint test_webhook_endpoint,
                    answers WebhookAttemptJson: "The attempt",
                    conflicts webhook_test_in_progress,
                    by webhooks::test_webhook_endpoint;

                /// Sends notifications of the feed to a webhook endpoint again.
                ///
                /// Only notifications that the endpoint receives are sent.
                POST "/api/webhooks/endpoints/replay/{endpoint_ref}" Permission(ReplayWebhookDeliveries) as ReplayWebhookDeliveries replay_webhook_deliveries,
                    at EndpointRef,
                    takes ReplayBody,
                    runs Write |cx, it| webhooks::replay_deliveries(cx, it.path, &it.body.clone().request()) => ReplayOutcome,
                    answers Json<ReplayResultJson>: "The number of notifications that are sent again",
                    conflicts endpoint_disabled feed_restarted,
                    refuses conflicting_fields unknown_event_type;

                /// Lists webhook endpoints in order of creation.
                GET "/api/webhooks/endpoints/filter" Permission(ListWebhookEndpoints) as ListWebhookEndpoints list_webhook_endpoints,
                    asks ListParams,
                    runs Read |cx, it| webhooks::list_endpoints(cx, &it.query.request()) => Page<EndpointView>,
                    answers UpdatedPageOf<WebhookEndpointJson>: "A page of endpoints";

                /// Returns a webhook endpoint.
                GET "/api/webhooks/endpoints/{endpoint_ref}" Permission(GetWebhookEndpoint) as GetWebhookEndpoint get_webhook_endpoint,
                    at EndpointRef,
                    runs Read |cx, it| webhooks::get_endpoint(cx, it.path) => EndpointView,
                    answers Json<WebhookEndpointJson>: "The endpoint";

                /// Deletes a webhook endpoint with its deliveries. Notifications remain in the feed.
                DELETE "/api/webhooks/endpoints/{endpoint_ref}" Permission(DeleteWebhookEndpoint) as DeleteWebhookEndpoint delete_webhook_endpoint,
                    at EndpointRef,
                    runs Write |cx, it| webhooks::delete_endpoint(cx, it.path) => (),
                    gone: "The endpoint is deleted";

                /// Lists deliveries of notifications to webhook endpoints with their last attempts, newest notification first.
                GET "/api/webhooks/deliveries/filter" Permission(ListWebhookDeliveries) as ListWebhookDeliveries list_webhook_deliveries,
                    asks DeliveryParams,
                    runs Read |cx, it| use_cases::list_webhook_deliveries(cx, it.query.filter(), it.query.page()) => Page<Named<ListedDelivery>>,
                    answers PageOf<WebhookDeliveryJson>: "A page of deliveries";
            }

            service {
                /// Returns the time and the result of the last recorded verification.
                ///
                /// `usage-billing verify --record` recomputes every invariant from the raw events and records the result.
                GET "/api/verification" Permission(GetVerification) as LastVerification last_verification,
                    runs Read |cx, _it| verify::last_verification(cx) => Option<RecordedVerification>,
                    answers Json<VerificationJson>: "The last recorded verification; its times are null if no verification is recorded";

                /// Previews the effects of a request on documents and changes nothing.
                ///
                /// Supported are requests that create or change contracts, documents, payments, charges or usage events, and
                /// requests that change customers or entities. A request that would be rejected is rejected here with the same
                /// error, whose pointers refer to the inner body. The billing run and imports have their own dry runs.
                POST "/api/dry_run" Permission(RunDry) as DryRun dry_run,
                    takes DryRunBody,
                    answers EffectsJson: "The affected documents, before and after the change",
                    refuses no_dry_run,
                    is PreviewsOthers Question,
                    by dry_run::dry_run;

                /// Searches by number, reference, key, purchase order number, name, e-mail address or tax number.
                GET "/api/search" Permission(Search) as Search search,
                    asks SearchParams,
                    runs Read |cx, it| search::search(cx, &it.query.q) => Vec<SearchHit>,
                    answers Each<SearchResultJson>: "At most 20 results: exact matches first, then documents whose number ends with the text and objects with words that start with its words";

                /// Lists changes in the organization with author, previous and new values, newest first.
                ///
                /// Changes of usage events are not included; their histories contain them. Only administrators see changes of API
                /// keys and administrators.
                GET "/api/audit/filter" Permission(ListAuditEntries) as ListAuditEntries list_audit_entries,
                    asks AuditParams,
                    answers List<AuditEntryJson>: "A page of entries",
                    by audit::list_audit_entries;

                /// Lists notifications about documents, contracts and webhook endpoints, oldest first.
                ///
                /// Each element has a position without gaps, and `after` is the last position that the caller has seen. A
                /// response is complete: a notification that is stored later has a later position. Notifications are retained for
                /// 30 days, or as the server is configured. After the database was restored from a backup, positions continue in
                /// another epoch, and an `after` of an earlier epoch returns 409 `feed_restarted`.
                GET "/api/notifications/filter" Permission(ListNotifications) as ListNotifications list_notifications,
                    asks NotificationParams,
                    runs Read |cx, it| all_found(it.query.clone().asked(), |wanted| notifications::list_notifications(cx, wanted)) => Vec<Notification>,
                    answers Each<NotificationJson>: "The next notifications",
                    conflicts feed_restarted;

                /// Returns a notification.
                GET "/api/notifications/{notification_ref}" Permission(GetNotification) as GetNotification get_notification,
                    at NotificationRef,
                    runs Read |cx, it| notifications::get_notification(cx, it.path) => Notification,
                    answers Json<NotificationJson>: "The notification";

                /// Reports whether the process is running.
                GET "/health/live" Nothing as Live live,
                    answers HealthJson: "The process is running",
                    by service::live (route);

                /// Reports whether the server is ready for requests.
                GET "/health/ready" Nothing as Ready ready,
                    answers HealthJson: "The server is ready",
                    by service::ready (route);

                /// Returns the server's metrics for Prometheus: requests, usage and billing runs, not broken down by organization.
                ///
                /// The header `Accept: application/openmetrics-text; version=1.0.0` requests the OpenMetrics format. If metrics have
                /// their own address, they are available only there.
                GET "/metrics" Nothing as Metrics metrics,
                    writes "text/plain" | "application/openmetrics-text": "The metrics, in Prometheus' text format or in OpenMetrics",
                    by service::metrics (route);

                /// Returns this OpenAPI document.
                GET "/openapi.json" Nothing as Openapi openapi,
                    asks OpenApiParams,
                    answers Free<false>: "An OpenAPI document",
                    by service::openapi (route);
            }

            limits {
                /// Creates a limit: usage is rejected that would raise its number above the maximum, and thresholds notify.
                POST "/api/limits/" Permission(CreateLimit) as CreateLimit create_limit,
                    takes LimitBody,
                    runs Write |cx, it| limits::create_limit(cx, &it.body.request) => LimitView,
                    answers Json<LimitJson>: "The limit with its number",
                    conflicts limit_exists too_many_drafts,
                    refuses entity_required no_max too_many_limits unknown_line_item unknown_product amount_out_of_range;

                /// Changes the maximum or the thresholds of a limit, at once.
                POST "/api/limits/edit/{limit_ref}" Permission(EditLimit) as EditLimit edit_limit,
                    at LimitRef,
                    takes LimitEditBody,
                    runs Write |cx, it| limits::edit_limit(cx, it.path, &it.body.edit) => LimitView,
                    answers Json<LimitJson>: "The limit with its number",
                    refuses no_max amount_out_of_range;

                /// Lists limits with their numbers in order of creation.
                GET "/api/limits/filter" Permission(ListLimits) as ListLimits list_limits,
                    asks LimitParams,
                    runs Read |cx, it| found(it.query.clone().query(), |customer| limits::list_limits(cx, customer.as_ref(), it.query.page())) => Page<LimitView>,
                    answers PageOf<LimitJson>: "A page of limits",
                    refuses amount_out_of_range;

                /// Returns what is left of the limits of customers, in one consistent view.
                GET "/api/limits/left" Permission(GetLimitsLeft) as GetLimitsLeft get_limits_left,
                    asks AmountsDueParams,
                    runs Read |cx, it| limits::limits_left(cx, &it.query.customer_ref) => Vec<CustomerLeft>,
                    answers Each<CustomerLeftJson>: "The customers in the order of the request; unknown customers are omitted",
                    refuses amount_out_of_range;

                /// Returns a limit with its number.
                GET "/api/limits/{limit_ref}" Permission(GetLimit) as GetLimit get_limit,
                    at LimitRef,
                    runs Read |cx, it| limits::get_limit(cx, it.path) => LimitView,
                    answers Json<LimitJson>: "The limit",
                    refuses amount_out_of_range;

                /// Deletes a limit. Usage is no longer rejected by it.
                DELETE "/api/limits/{limit_ref}" Permission(DeleteLimit) as DeleteLimit delete_limit,
                    at LimitRef,
                    runs Write |cx, it| limits::delete_limit(cx, it.path) => (),
                    gone: "The limit is deleted",
                    refuses amount_out_of_range;
            }

            credit_grants {
                /// Grants prepaid credit to a customer: given, or sold by an issued invoice. Documents take it before tax.
                POST "/api/credit_grants/" Permission(CreateGrant) as CreateGrant create_credit_grant,
                    takes GrantBody,
                    runs Write |cx, it| credit::create_credit_grant(cx, &it.body.request) => GrantView,
                    answers Json<GrantJson>: "The grant with its amounts",
                    conflicts too_many_drafts,
                    refuses currency_mismatch entity_required source_not_usable too_many_grants amount_out_of_range,
                    is DryRun;

                /// Sells prepaid credit: a one-time contract, its issued invoice, the payment if one is given, and the grant.
                ///
                /// The request is repeated safely with an `Idempotency-Key`, such as the reference of the notification that caused it.
                POST "/api/credit_grants/sell" Permission(SellCredit) as SellCredit sell_credit,
                    takes CreditSaleBody,
                    runs Write |cx, it| credit::sell_credit(cx, &it.body.request) => SoldCredit,
                    answers Json<SoldCreditJson>: "The grant with its invoice",
                    conflicts too_many_drafts documents,
                    refuses currency_mismatch entity_required needs_fixed_items too_many_grants amount_out_of_range too_many_documents,
                    is DryRun;

                /// Changes a grant. What documents have taken stays.
                POST "/api/credit_grants/edit/{grant_ref}" Permission(EditGrant) as EditGrant edit_credit_grant,
                    at CreditGrantRef,
                    takes GrantEditBody,
                    runs Write |cx, it| credit::edit_credit_grant(cx, it.path, &it.body.edit) => GrantView,
                    answers Json<GrantJson>: "The grant with its amounts",
                    refuses credit_in_use amount_out_of_range,
                    is DryRun;

                /// Lists grants with their amounts in order of creation.
                GET "/api/credit_grants/filter" Permission(ListGrants) as ListGrants list_credit_grants,
                    asks GrantParams,
                    runs Read |cx, it| found(it.query.clone().query(), |query| credit::list_credit_grants(cx, &query, it.query.page())) => Page<GrantView>,
                    answers PageOf<GrantJson>: "A page of grants",
                    refuses amount_out_of_range;

                /// Lists what issued documents took from grants and returned to them, in the order of time: the statement of credit.
                GET "/api/credit_grants/draws/filter" Permission(ListDraws) as ListDraws list_credit_draws,
                    asks DrawParams,
                    runs Read |cx, it| found(it.query.clone().query(), |query| credit::list_credit_draws(cx, &query, it.query.page())) => Page<DrawView>,
                    answers PageOf<DrawJson>: "A page of draws";

                /// Returns a grant with its amounts.
                GET "/api/credit_grants/{grant_ref}" Permission(GetGrant) as GetGrant get_credit_grant,
                    at CreditGrantRef,
                    runs Read |cx, it| credit::get_credit_grant(cx, it.path) => GrantView,
                    answers Json<GrantJson>: "The grant",
                    refuses amount_out_of_range;
            }

            charges {
                /// Records a charge and adds it to its document. A negative charge is a credit note.
                POST "/api/charges/" Permission(RecordCharge) as RecordCharge record_charge,
                    takes ChargeBody,
                    runs Write |cx, it| charges::record_charge(cx, &it.body.request) => ChargeView,
                    answers Json<ChargeJson>: "The recorded charge with its document",
                    conflicts already_exists documents,
                    refuses credit_above_billed no_matching_contract unknown_product amount_out_of_range too_many_documents,
                    is DryRun;

                /// Changes a charge. Omitted fields stay unchanged.
                POST "/api/charges/edit/{charge_ref}" Permission(EditCharge) as EditCharge edit_charge,
                    at ChargeRef,
                    takes ChargeEditBody,
                    runs Write |cx, it| charges::edit_charge(cx, &it.path, &it.body.edit, it.body.issue) => ChargeView,
                    answers Json<ChargeJson>: "The changed charge",
                    conflicts documents,
                    refuses credit_above_billed no_matching_contract amount_out_of_range too_many_documents,
                    is DryRun;

                /// Lists charges in order of creation.
                GET "/api/charges/filter" Permission(ListCharges) as ListCharges list_charges,
                    asks ChargeParams,
                    runs Scan |cx, it| found(it.query.clone().query(), |wanted| charges::list_charges(cx, wanted, it.query.page())) => Page<ChargeView>,
                    answers UpdatedPageOf<ChargeJson>: "A page of charges, without deleted ones";

                /// Returns a charge.
                GET "/api/charges/{charge_ref}" Permission(GetCharge) as GetCharge get_charge,
                    at ChargeRef,
                    runs Read |cx, it| charges::get_charge(cx, &it.path) => ChargeView,
                    answers Json<ChargeJson>: "The charge";

                /// Deletes a charge. Its documents no longer bill it.
                DELETE "/api/charges/{charge_ref}" Permission(DeleteCharge) as DeleteCharge delete_charge,
                    at ChargeRef,
                    runs Write |cx, it| charges::delete_charge(cx, &it.path) => (),
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
pub fn named(id: &str) -> Result<&'static OperationSpec, Problem> {
    OPERATIONS.iter().find(|operation| operation.id == id).ok_or_else(Problem::internal)
}

/// Returns the state-changing operation on a path, and the reference in the path.
pub fn changing(path: &str) -> Option<(&'static OperationSpec, String)> {
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
mod tests;
