//! The words of enumerations: one table each, for reading, presenting and describing them.

use billing_application::usage::EventAction;
use billing_domain::access::{Role, Scope};
use billing_domain::audit::{AuditAction, AuditedKind};
use billing_domain::catalog::{Aggregation, Recurrence};
use billing_domain::contract::ContractState;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::lines::BillWith;
use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::imports::ImportState;
use billing_domain::page::Order;
use billing_domain::party::legal::{Language, PaperSize, Strictness};
use billing_domain::ports::{
    ContractSortKey, CustomerSortKey, DocumentOrder, DocumentSortKey, EventSortKey, PaymentSortKey, PurposeKind, SearchHitKind,
};
use billing_domain::receivables::{PaymentKind, StatementKind};
use billing_domain::runs::RunState;
use billing_domain::summary::Interval;
use billing_domain::tax::TaxCategory;
use billing_report::{NumbersAs, ReportFormat};
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::ObjectBuilder;

use super::declare::{ResponseValue, wire};
use super::input::WireEnum;
use super::schemas::{schemas, text};

/// A word on the wire, its meaning in the domain, and its description.
macro_rules! words {
    ($($(#[doc = $doc:literal])+ $name:ident is $meaning:ident {
        $($word:literal = $variant:ident $(($any:tt))?),+ $(,)?
    })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(&'static str);

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

/// As `words!`, of an enumeration that requests contain. A word may be taken under another, too, which users aren't told of.
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
    /// What happened to an event or a charge.
    EventActionWord is EventAction { "CREATED" = Created, "UPDATED" = Updated, "DELETED" = Deleted }

    /// Which way money went: from the customer, or to the customer.
    PaymentKindWord is PaymentKind { "PAYMENT" = Payment, "REFUND" = Refund(_) }

    /// What changed what is owed.
    StatementKindWord is StatementKind {
        "INVOICE" = Invoice, "DEBIT" = Debit, "CREDIT" = Credit, "VOID" = Void, "PAYMENT" = Payment, "REFUND" = Refund,
        "REVERSAL" = Reversal,
        "WRITE_OFF" = WriteOff,
    }

    /// How far a billing run has come: `UNFINISHED` goes on, or was broken off with the server; `CUT_SHORT` ended before everything that
    /// was due was looked at.
    RunStateWord is RunState { "UNFINISHED" = Unfinished, "CUT_SHORT" = CutShort, "FINISHED" = Finished }

    /// How far an import has come: `UNFINISHED` goes on, or was broken off with the server; `CUT_SHORT` ended before the file did;
    /// `UNDOING` is undone in part.
    ImportStateWord is ImportState {
        "UNFINISHED" = Unfinished, "CUT_SHORT" = CutShort, "FINISHED" = Finished, "UNDOING" = Undoing, "UNDONE" = Undone,
    }

    /// What something is that was searched for.
    FoundKindWord is SearchHitKind {
        "DOCUMENT" = Document, "CONTRACT" = Contract, "CUSTOMER" = Customer, "ENTITY" = Entity, "PRICING" = Pricing,
        "USAGE_PRODUCT" = UsageProduct, "FORMAT" = Format, "USAGE_EVENT" = UsageEvent, "PAYMENT" = Payment, "CHARGE" = Charge,
        "BANK_ACCOUNT" = BankAccount, "API_KEY" = ApiKey,
    }
}

readable_words! {
    /// How long the intervals of a summary are, in UTC.
    IntervalWord is Interval { "hour" = Hour, "day" = Day, "month" = Month }

    /// How a report is written.
    ReportFormatWord is ReportFormat { "csv" = Csv, "json" = Json, "xlsx" = Xlsx }

    /// When documents are issued relative to the period they bill.
    // A sample of the interface specification says BEFORE_PERIOD (billing rules 2).
    PaymentTimeWord is PaymentTime {
        "BEFORE_USE" or "BEFORE_PERIOD" = BeforeUse, "DURING_USE" = DuringUse, "AFTER_USE" = AfterUse,
    }

    /// With which of a period's items something is billed: it decides on which document.
    BillWithWord is BillWith { "USAGE" = Usage, "FIXED" = Fixed }

    /// The unit of a billing cycle.
    CycleUnitWord is CycleUnit { "ONE_TIME" = OneTime, "MONTHLY" = Monthly, "YEARLY" = Yearly, "QUARTERLY" = Quarterly }

    /// How the quantities of a period become one.
    AggregationWord is Aggregation { "SUM" = Sum, "COUNT" = Count, "MAX" = Max, "LATEST" = Latest }

    /// A tax category: S standard, Z zero rated, E exempt, AE reverse charge, G export, O not subject to tax.
    TaxCategoryWord is TaxCategory { "S" = S, "Z" = Z, "E" = E, "AE" = Ae, "G" = G, "O" = O }

    /// A language that documents are written in.
    LanguageWord is Language { "en" = En, "de" = De, "fr" = Fr, "es" = Es, "it" = It, "nl" = Nl, "pt" = Pt, "pl" = Pl }

    /// Whether documents are issued that lack what the law asks for.
    StrictnessWord is Strictness { "LENIENT" = Lenient, "STRICT" = Strict }

    /// The size of a document's pages.
    PaperSizeWord is PaperSize { "A4" = A4, "LETTER" = Letter }

    /// When a fixed line item is charged.
    RecurrenceWord is Recurrence { "EACH_PERIOD" = EachPeriod, "ONCE" = Once }

    /// Whether a line item depends on usage.
    ChargeKindWord is ChargeKind { "FIXED" = Fixed, "USAGE" = Usage }

    /// What a document does to what the customer owes.
    DocumentKindWord is DocumentKind { "INVOICE" = Invoice, "CREDIT" = Credit, "DEBIT" = Debit }

    /// How far a document has come.
    DocumentStateWord is DocumentState {
        "DRAFT" = Draft, "ISSUED" = Issued, "PARTIALLY_PAID" = PartiallyPaid, "PAID" = Paid, "VOID" = Void,
        "UNCOLLECTIBLE" = Uncollectible, "SETTLED" = Settled,
    }

    /// A contract's state today.
    ContractStateWord is ContractState {
        "PENDING" = Pending, "ACTIVE" = Active, "CANCELLING" = Cancelling, "CANCELLED" = Cancelled, "COMPLETED" = Completed,
    }

    /// Why a document exists: for a period, for one event that is due upon usage, or to put an issued document right.
    PurposeWord is PurposeKind { "REGULAR" = Regular, "USAGE" = Usage, "ADJUSTMENT" = Adjustment }

    /// How decimals are written: as JSON numbers, or as strings.
    NumbersWord is NumbersAs { "number" = Number, "string" = String }
}

/// Whether a line item depends on usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargeKind {
    /// Priced by the agreed quantity, whatever is used.
    Fixed,
    /// Priced by events.
    Usage,
}

/// The words of an order: what a list is ordered by, with `-` before it for the largest first.
macro_rules! order_words {
    ($($(#[doc = $doc:literal])+ $name:ident is $key:ident { $($word:literal = $variant:ident),+ $(,)? })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

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
    /// In which order documents are listed; with `-` before it the largest come first.
    DocumentOrderWord is DocumentSortKey {
        "created" = Created, "issue_date" = IssueDate, "due_date" = DueDate, "amount" = Amount,
    }

    /// In which order usage events are listed; with `-` before it the largest come first.
    EventOrderWord is EventSortKey { "timestamp" = Timestamp, "created" = Created }

    /// In which order contracts are listed; with `-` before it the largest come first.
    ContractOrderWord is ContractSortKey { "created" = Created, "effective_end_date" = LastDay }

    /// In which order customers are listed; with `-` before it the largest come first.
    CustomerOrderWord is CustomerSortKey { "created" = Created, "name" = Name }

    /// In which order payments are listed; with `-` before it the largest come first.
    PaymentOrderWord is PaymentSortKey { "created" = Created, "paid_date" = PaidDate }
}

impl DocumentOrderWord {
    /// The word of an order.
    pub(crate) fn word(order: DocumentOrder) -> &'static str {
        Self::ALL.iter().find(|(_, known)| *known == order).map_or("created", |(word, _)| word)
    }
}

/// Words that are the domain's, which also stores them.
macro_rules! domain_words {
    ($($(#[doc = $doc:literal])+ $name:ident is $meaning:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(&'static str);

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
    /// One thing an API key may do.
    ScopeWord is Scope;

    /// What an administrator may do, each all that the one before it may: read; finance, issue and settle documents, too; operator, report
    /// usage, and change catalog and contracts, too; owner, manage administrators and API keys, too.
    RoleWord is Role;

    /// What was done to a thing.
    AuditActionWord is AuditAction;

    /// What something is that was changed.
    AuditedKindWord is AuditedKind;
}
