//! Enumerations on the wire, each with one table for reading, serializing and describing its words.

use billing_application::administrators::AdministratorSortKey;
use billing_application::dry_run::EffectKind;
use billing_application::usage::EventAction;
use billing_domain::access::{Role, Scope};
use billing_domain::audit::{AuditAction, AuditedKind};
use billing_domain::catalog::{Aggregation, Recurrence};
use billing_domain::contract::ContractState;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::legal_particulars::SupplyCategory;
use billing_domain::document::lines::BillWith;
use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::einvoice::Syntax;
use billing_domain::event_input::OnConflict;
use billing_domain::hold::HoldState;
use billing_domain::imports::ImportState;
use billing_domain::limit::MetricKind;
use billing_domain::notification::NotificationType;
use billing_domain::page::{ListSortKey, Order};
use billing_domain::party::legal::{EInvoiceProfile, Language, PaperSize, Strictness};
use billing_domain::ports::{
    ContractSortKey, CustomerSortKey, DocumentOrder, DocumentSortKey, EventSortKey, PaymentSortKey, PurposeKind, SearchHitKind,
};
use billing_domain::receivables::{PaymentKind, StatementKind};
use billing_domain::report::{NumbersAs, ReportFormat};
use billing_domain::runs::RunState;
use billing_domain::summary::Interval;
use billing_domain::tax::TaxCategory;
use billing_domain::webhook::{AttemptOutcome, DeliveryState, DisabledReason, EndpointState, ReplayScope};
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::ObjectBuilder;

use super::declare::{ResponseValue, wire};
use super::input::WireEnum;
use super::schemas::{schemas, text};

/// Declares enumerations: word on the wire, meaning in the domain, and description.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident is $meaning:ident {
        $($word:literal = $variant:ident $(($any:tt))?),+ $(,)?
    })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub struct $name(&'static str);

        impl From<$meaning> for $name {
            fn from(meaning: $meaning) -> Self {
                Self(match meaning {
                    $($meaning::$variant $(($any))? => $word),+
                })
            }
        }

        schemas! { $name: described(concat!($($doc),+), &[$($word),+]); }
    )+};
}

/// Like `words!`, for enumerations that occur in requests. A word can have an undocumented alias.
macro_rules! readable_words {
    ($($(#[doc = $doc:literal])+ $name:ident is $meaning:ident {
        $($word:literal $(or $alias:literal)? = $variant:ident),+ $(,)?
    })+) => {$(
        words! { $(#[doc = $doc])+ $name is $meaning { $($word = $variant),+ } }

        impl WireEnum for $name {
            type Meaning = $meaning;

            fn meaning(word: &str) -> Option<$meaning> {
                match word {
                    $($word $(| $alias)? => Some($meaning::$variant),)+
                    _ => None,
                }
            }

            fn all() -> Vec<&'static str> {
                vec![$($word),+]
            }
        }

        wire! { $meaning: |node| node.word::<$name>(), |schemas| schemas.refer::<$name>(); }

        impl ResponseValue for $meaning {
            fn answer<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::from(*value).serialize(serializer)
            }
        }
    )+};
}

fn described(description: &str, words: &[&str]) -> ObjectBuilder {
    text().enum_values(Some(words.iter().copied())).description(Some(description.trim()))
}

words! {
    /// Action on an event or a charge.
    EventActionWord is EventAction { "CREATED" = Created, "UPDATED" = Updated, "DELETED" = Deleted }

    /// Direction of a payment: `PAYMENT` from the customer, `REFUND` to the customer.
    PaymentKindWord is PaymentKind { "PAYMENT" = Payment, "REFUND" = Refund(_) }

    /// Kind of a statement entry.
    StatementKindWord is StatementKind {
        "INVOICE" = Invoice, "DEBIT" = Debit, "CREDIT" = Credit, "VOID" = Void, "PAYMENT" = Payment, "REFUND" = Refund,
        "REVERSAL" = Reversal,
        "WRITE_OFF" = WriteOff,
    }

    /// Effect of a change on a document. `OPENED`: a draft is created. `ISSUED`: the document is issued. `RECOMPUTED`: the
    /// content of a draft changes. `VOIDED`: the document is voided. `SETTLED`: payments, credits or write-offs change.
    /// `PLANNED`: the document is planned and does not exist yet. `REMOVED`: the document is planned now, and no longer after
    /// the change.
    EffectWord is EffectKind {
        "OPENED" = Opened, "ISSUED" = Issued, "RECOMPUTED" = Recomputed, "VOIDED" = Voided, "SETTLED" = Settled,
        "PLANNED" = Planned, "REMOVED" = Removed,
    }

    /// State of a billing run. `UNFINISHED`: still running, or interrupted by the end of the server. `CUT_SHORT`: ended
    /// before all due contracts were processed.
    RunStateWord is RunState { "UNFINISHED" = Unfinished, "CUT_SHORT" = CutShort, "FINISHED" = Finished }

    /// State of an import. `UNFINISHED`: still running, or interrupted by the end of the server. `CUT_SHORT`: ended
    /// before the end of the file. `UNDOING`: partly reversed.
    ImportStateWord is ImportState {
        "UNFINISHED" = Unfinished, "CUT_SHORT" = CutShort, "FINISHED" = Finished, "UNDOING" = Undoing, "UNDONE" = Undone,
    }

    /// Kind of a search result.
    FoundKindWord is SearchHitKind {
        "DOCUMENT" = Document, "CONTRACT" = Contract, "CUSTOMER" = Customer, "ENTITY" = Entity, "PRICING" = Pricing,
        "USAGE_PRODUCT" = UsageProduct, "FORMAT" = Format, "USAGE_EVENT" = UsageEvent, "PAYMENT" = Payment, "CHARGE" = Charge,
        "BANK_ACCOUNT" = BankAccount, "API_KEY" = ApiKey,
    }
}

readable_words! {
    /// What happens to an event whose idempotency key was used for another timestamp, usage product, quantity or label. `REJECT`:
    /// it is rejected. `UPDATE`: the recorded event gets its values, so that the last delivery counts.
    OnConflictWord is OnConflict { "REJECT" = Reject, "UPDATE" = Update }

    /// State of a hold.
    HoldStateWord is HoldState { "OPEN" = Open, "SETTLED" = Settled, "RELEASED" = Released, "EXPIRED" = Expired }

    /// Kind of number that a limit watches.
    LimitMetricWord is MetricKind { "OWED" = Owed, "PREPAID" = Prepaid, "SPEND" = Spend, "QUANTITY" = Quantity }

    /// Length of the intervals.
    IntervalWord is Interval { "hour" = Hour, "day" = Day, "month" = Month }

    /// Report format.
    ReportFormatWord is ReportFormat { "csv" = Csv, "json" = Json, "xlsx" = Xlsx }

    /// Time of issue relative to the billed period.
    // A sample of the interface specification uses BEFORE_PERIOD (billing rules 2).
    PaymentTimeWord is PaymentTime {
        "BEFORE_USE" or "BEFORE_PERIOD" = BeforeUse, "DURING_USE" = DuringUse, "AFTER_USE" = AfterUse,
    }

    /// Items of the period that a charge is billed with, which determines its document.
    BillWithWord is BillWith { "USAGE" = Usage, "FIXED" = Fixed }

    /// Unit of a billing interval.
    CycleUnitWord is CycleUnit { "ONE_TIME" = OneTime, "MONTHLY" = Monthly, "YEARLY" = Yearly, "QUARTERLY" = Quarterly }

    /// How the quantities of a period are aggregated.
    AggregationWord is Aggregation { "SUM" = Sum, "COUNT" = Count, "MAX" = Max, "LATEST" = Latest, "UNIQUE" = Unique }

    /// Tax category: S standard rate, Z zero rate, E exempt, AE reverse charge, G export, O not subject to tax.
    TaxCategoryWord is TaxCategory { "S" = S, "Z" = Z, "E" = E, "AE" = Ae, "G" = G, "O" = O }

    /// Language of documents.
    LanguageWord is Language {
        "en" = En, "de" = De, "fr" = Fr, "es" = Es, "it" = It, "nl" = Nl, "pt" = Pt, "pl" = Pl, "ja" = Ja, "sv" = Sv, "da" = Da,
        "nb" = Nb, "fi" = Fi, "cs" = Cs, "hu" = Hu, "ro" = Ro,
    }

    /// Whether documents with missing legal information are issued.
    StrictnessWord is Strictness { "LENIENT" = Lenient, "STRICT" = Strict }

    /// Kind of e-invoice. `NONE`: no e-invoice. `EN16931`: the European standard, as UBL and as CII. `XRECHNUNG`: the German
    /// specification, as UBL and as CII. `PEPPOL`: Peppol BIS Billing 3.0, as UBL. `FACTUR_X`: Factur-X and ZUGFeRD, as CII,
    /// which the PDF contains.
    EInvoiceProfileWord is EInvoiceProfile {
        "NONE" = None, "EN16931" = En16931, "XRECHNUNG" = Xrechnung, "PEPPOL" = Peppol, "FACTUR_X" = FacturX,
    }

    /// Syntax of an e-invoice: `ubl` for UBL 2.1, `cii` for Cross Industry Invoice.
    SyntaxWord is Syntax { "ubl" = Ubl, "cii" = Cii }

    /// Page size of documents.
    PaperSizeWord is PaperSize { "A4" = A4, "LETTER" = Letter }

    /// When a fixed line item is charged.
    RecurrenceWord is Recurrence { "EACH_PERIOD" = EachPeriod, "ONCE" = Once }

    /// What a document bills.
    SupplyCategoryWord is SupplyCategory { "SERVICES" = Services, "GOODS" = Goods, "MIXED" = Mixed }

    /// Whether a line item is fixed or priced by usage.
    ChargeKindWord is ChargeKind { "FIXED" = Fixed, "USAGE" = Usage }

    /// Kind of a document: its effect on the amount that the customer owes.
    DocumentKindWord is DocumentKind { "INVOICE" = Invoice, "CREDIT" = Credit, "DEBIT" = Debit }

    /// State of a document.
    DocumentStateWord is DocumentState {
        "DRAFT" = Draft, "ISSUED" = Issued, "PARTIALLY_PAID" = PartiallyPaid, "PAID" = Paid, "VOID" = Void,
        "UNCOLLECTIBLE" = Uncollectible, "SETTLED" = Settled,
    }

    /// State of a contract today.
    ContractStateWord is ContractState {
        "PENDING" = Pending, "ACTIVE" = Active, "CANCELLING" = Cancelling, "CANCELLED" = Cancelled, "COMPLETED" = Completed,
    }

    /// Purpose of a document. `REGULAR`: bills a period. `USAGE`: bills one event that is due upon usage. `ADJUSTMENT`:
    /// corrects an issued document.
    PurposeWord is PurposeKind { "REGULAR" = Regular, "USAGE" = Usage, "ADJUSTMENT" = Adjustment }

    /// Representation of decimals: JSON numbers or strings.
    NumbersWord is NumbersAs { "number" = Number, "string" = String }
}

/// Whether a line item is fixed or priced by usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeKind {
    /// Priced by the agreed quantity, independent of usage.
    Fixed,
    /// Priced by usage events.
    Usage,
}

/// Declares sort orders: a word per sort key, with `-` in front for descending order.
macro_rules! order_words {
    ($($(#[doc = $doc:literal])+ $name:ident is $key:ident { $($word:literal = $variant:ident),+ $(,)? })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl $name {
            const ALL: &[(&'static str, Order<$key>)] = &[$(
                ($word, Order { by: $key::$variant, descending: false }),
                (concat!("-", $word), Order { by: $key::$variant, descending: true }),
            )+];
        }

        impl WireEnum for $name {
            type Meaning = Order<$key>;

            fn meaning(word: &str) -> Option<Order<$key>> {
                Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, order)| *order)
            }

            fn all() -> Vec<&'static str> {
                Self::ALL.iter().map(|(word, _)| *word).collect()
            }
        }

        schemas! { $name: described(concat!($($doc),+), &Self::all()); }

        wire! { $name of Order<$key>: |node| node.word::<$name>(), |schemas| schemas.refer::<$name>(); }
    )+};
}

order_words! {
    /// Sort order of documents; `-` in front means descending.
    DocumentOrderWord is DocumentSortKey {
        "created" = Created, "issue_date" = IssueDate, "due_date" = DueDate, "amount" = Amount, "updated_at" = Updated,
    }

    /// Sort order of usage events; `-` in front means descending.
    EventOrderWord is EventSortKey { "timestamp" = Timestamp, "created" = Created, "updated_at" = Updated }

    /// Sort order of contracts; `-` in front means descending.
    ContractOrderWord is ContractSortKey {
        "created" = Created, "effective_end_date" = LastDay, "updated_at" = Updated,
    }

    /// Sort order of customers; `-` in front means descending.
    CustomerOrderWord is CustomerSortKey { "created" = Created, "name" = Name, "updated_at" = Updated }

    /// Sort order of payments; `-` in front means descending.
    PaymentOrderWord is PaymentSortKey { "created" = Created, "paid_date" = PaidDate, "updated_at" = Updated }

    /// Sort order of a list; `-` in front means descending.
    ListOrderWord is ListSortKey { "created" = Created, "updated_at" = Updated }

    /// Sort order of administrators; `-` in front means descending.
    AdministratorOrderWord is AdministratorSortKey { "email" = Email, "updated_at" = Updated }
}

impl DocumentOrderWord {
    /// Returns the word of a sort order.
    pub fn word(order: DocumentOrder) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == order).map_or("created", |(word, _)| word)
    }
}

/// Declares enumerations whose words the domain defines and stores.
macro_rules! domain_words {
    ($($(#[doc = $doc:literal])+ $name:ident is $meaning:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub struct $name(&'static str);

        impl From<$meaning> for $name {
            fn from(meaning: $meaning) -> Self {
                Self(meaning.as_str())
            }
        }

        impl WireEnum for $name {
            type Meaning = $meaning;

            fn meaning(word: &str) -> Option<$meaning> {
                $meaning::parse(word)
            }

            fn all() -> Vec<&'static str> {
                $meaning::ALL.iter().map(|meaning| meaning.as_str()).collect()
            }
        }

        schemas! {
            $name: described(concat!($($doc),+), &$name::all());
        }

        wire! {
            $meaning: |node| node.word::<$name>(), |schemas| schemas.refer::<$name>();
        }
    )+};
}

domain_words! {
    /// Scope of an API key.
    ScopeWord is Scope;

    /// Role of an administrator. Each role includes the previous ones. `read`: read data. `finance`: change customers
    /// and contracts, and issue and settle documents. `operator`: report usage and change the catalog. `owner`: manage
    /// administrators and API keys.
    RoleWord is Role;

    /// Action recorded in the audit log.
    AuditActionWord is AuditAction;

    /// Kind of a changed object.
    AuditedKindWord is AuditedKind;

    /// State of a webhook endpoint. `FAILING`: attempts have failed since the last success. `PAUSED`: the endpoint is
    /// overloaded or did not answer in time, and the service waits.
    EndpointStateWord is EndpointState;

    /// Reason why the service disabled a webhook endpoint. `FAILING`: no success for 5 days and at least 10 failures. `GONE`:
    /// the endpoint answered 410.
    DisabledReasonWord is DisabledReason;

    /// State of a delivery. `FAILED`: all attempts failed. `CANCELLED`: the endpoint was disabled before.
    DeliveryStateWord is DeliveryState;

    /// Outcome of an attempt. `OVERLOADED`: the status was 429, 502, 503 or 504. `REJECTED`: the status was none of these, 2xx
    /// and 410. `ADDRESS_NOT_PUBLIC`: the host has an address to which requests may not go, or none. `NOT_SENT`: the settings of the
    /// server do not permit the URL.
    AttemptOutcomeWord is AttemptOutcome;

    /// Which notifications are sent again. `MISSING`: those without a delivery to the endpoint. `FAILED`: those whose delivery
    /// failed or was cancelled. `ALL`: also delivered ones.
    ReplayScopeWord is ReplayScope;

    /// Type of a notification.
    NotificationTypeWord is NotificationType;
}
