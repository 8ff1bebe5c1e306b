//! The words of enumerations: one table each, for reading, presenting and describing them.

use billing_application::usage::EventAction;
use billing_domain::access::Scope;
use billing_domain::account::{PaymentKind, StatementKind};
use billing_domain::catalog::{Aggregation, Recurrence};
use billing_domain::contract::ContractState;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::lines::BillWith;
use billing_domain::document::{DocumentKind, DocumentState, Purpose};
use billing_domain::party::legal::{Language, PaperSize, Strictness};
use billing_domain::ports::{DocumentOrder, DocumentSortKey, FoundKind, PurposeKind};
use billing_domain::summary::Interval;
use billing_domain::tax::TaxCategory;
use billing_report::{NumbersAs, ReportFormat};
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::declare::{Answered, Wire};
use super::input::{Node, Words};
use super::schemas::Schemas;

/// A word on the wire, its meaning in the domain, and its description.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident is $meaning:ty { $($word:literal = $pattern:pat),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(&'static str);

        impl From<$meaning> for $name {
            fn from(meaning: $meaning) -> Self {
                Self(match meaning {
                    $($pattern => $word),+
                })
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                described(concat!($($doc),+), &[$($word),+])
            }
        }

        impl ToSchema for $name {}
    };
}

/// As `words!`, of an enumeration that requests contain. A word may be taken under another, too, which users aren't told of.
macro_rules! readable_words {
    ($(#[doc = $doc:literal])+ $name:ident is $meaning:ty { $($word:literal $(or $alias:literal)? = $variant:path),+ $(,)? }) => {
        words! { $(#[doc = $doc])+ $name is $meaning { $($word = $variant),+ } }

        impl Words for $name {
            type Meaning = $meaning;

            fn meaning(word: &str) -> Option<$meaning> {
                match word {
                    $($word $(| $alias)? => Some($variant),)+
                    _ => None,
                }
            }

            fn all() -> Vec<&'static str> {
                vec![$($word),+]
            }
        }

        impl Wire for $meaning {
            type Value = Self;

            fn read(node: Node<'_>) -> Option<Self> {
                node.word::<$name>()
            }

            fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
                schemas.refer::<$name>()
            }
        }

        impl Answered for $meaning {
            fn answer<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
                $name::from(*value).serialize(serializer)
            }
        }
    };
}

fn described(description: &str, words: &[&str]) -> RefOr<Schema> {
    let object = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied()));
    object.description(Some(description.trim())).into()
}

words! {
    /// What happened to an event or a charge.
    EventActionWord is EventAction {
        "CREATED" = EventAction::Created,
        "UPDATED" = EventAction::Updated,
        "DELETED" = EventAction::Deleted,
    }
}

readable_words! {
    /// How long the intervals of a summary are, in UTC.
    IntervalWord is Interval { "hour" = Interval::Hour, "day" = Interval::Day, "month" = Interval::Month }
}

readable_words! {
    /// How a report is written.
    ReportFormatWord is ReportFormat {
        "csv" = ReportFormat::Csv,
        "json" = ReportFormat::Json,
        "xlsx" = ReportFormat::Xlsx,
    }
}

readable_words! {
    /// When documents are issued relative to the period they bill.
    PaymentTimeWord is PaymentTime {
        // A sample of the interface specification has this word (billing rules 2).
        "BEFORE_USE" or "BEFORE_PERIOD" = PaymentTime::BeforeUse,
        "DURING_USE" = PaymentTime::DuringUse,
        "AFTER_USE" = PaymentTime::AfterUse,
    }
}

readable_words! {
    /// With which of a period's items something is billed: it decides on which document.
    BillWithWord is BillWith { "USAGE" = BillWith::Usage, "FIXED" = BillWith::Fixed }
}

readable_words! {
    /// The unit of a billing cycle.
    CycleUnitWord is CycleUnit {
        "ONE_TIME" = CycleUnit::OneTime,
        "MONTHLY" = CycleUnit::Monthly,
        "YEARLY" = CycleUnit::Yearly,
        "QUARTERLY" = CycleUnit::Quarterly,
    }
}

readable_words! {
    /// How the quantities of a period become one.
    AggregationWord is Aggregation {
        "SUM" = Aggregation::Sum,
        "COUNT" = Aggregation::Count,
        "MAX" = Aggregation::Max,
        "LATEST" = Aggregation::Latest,
    }
}

readable_words! {
    /// A tax category: S standard, Z zero rated, E exempt, AE reverse charge, G export, O not subject to tax.
    TaxCategoryWord is TaxCategory {
        "S" = TaxCategory::S,
        "Z" = TaxCategory::Z,
        "E" = TaxCategory::E,
        "AE" = TaxCategory::Ae,
        "G" = TaxCategory::G,
        "O" = TaxCategory::O,
    }
}

readable_words! {
    /// A language that documents are written in.
    LanguageWord is Language {
        "en" = Language::En,
        "de" = Language::De,
        "fr" = Language::Fr,
        "es" = Language::Es,
        "it" = Language::It,
        "nl" = Language::Nl,
        "pt" = Language::Pt,
        "pl" = Language::Pl,
    }
}

readable_words! {
    /// Whether documents are issued that lack what the law asks for.
    StrictnessWord is Strictness {
        "LENIENT" = Strictness::Lenient,
        "STRICT" = Strictness::Strict,
    }
}

readable_words! {
    /// The size of a document's pages.
    PaperSizeWord is PaperSize {
        "A4" = PaperSize::A4,
        "LETTER" = PaperSize::Letter,
    }
}

readable_words! {
    /// When a fixed line item is charged.
    RecurrenceWord is Recurrence {
        "EACH_PERIOD" = Recurrence::EachPeriod,
        "ONCE" = Recurrence::Once,
    }
}

/// Whether a line item depends on usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargeKind {
    /// Priced by the agreed quantity, whatever is used.
    Fixed,
    /// Priced by events.
    Usage,
}

readable_words! {
    /// Whether a line item depends on usage.
    ChargeKindWord is ChargeKind {
        "FIXED" = ChargeKind::Fixed,
        "USAGE" = ChargeKind::Usage,
    }
}

readable_words! {
    /// What a document does to what the customer owes.
    DocumentKindWord is DocumentKind {
        "INVOICE" = DocumentKind::Invoice,
        "CREDIT" = DocumentKind::Credit,
        "DEBIT" = DocumentKind::Debit,
    }
}

readable_words! {
    /// How far a document has come.
    DocumentStateWord is DocumentState {
        "DRAFT" = DocumentState::Draft,
        "ISSUED" = DocumentState::Issued,
        "PARTIALLY_PAID" = DocumentState::PartiallyPaid,
        "PAID" = DocumentState::Paid,
        "VOID" = DocumentState::Void,
        "UNCOLLECTIBLE" = DocumentState::Uncollectible,
        "SETTLED" = DocumentState::Settled,
    }
}

words! {
    /// Which way money went: from the customer, or to the customer.
    PaymentKindWord is PaymentKind {
        "PAYMENT" = PaymentKind::Payment,
        "REFUND" = PaymentKind::Refund(_),
    }
}

words! {
    /// What changed what is owed.
    StatementKindWord is StatementKind {
        "INVOICE" = StatementKind::Invoice,
        "DEBIT" = StatementKind::Debit,
        "CREDIT" = StatementKind::Credit,
        "PAYMENT" = StatementKind::Payment,
        "REFUND" = StatementKind::Refund,
        "REVERSAL" = StatementKind::Reversal,
        "WRITE_OFF" = StatementKind::WriteOff,
    }
}

words! {
    /// Why a document exists: for a period, for one event that is due upon usage, or to put an issued document right.
    PurposeWord is Purpose {
        "REGULAR" = Purpose::Regular(_),
        "USAGE" = Purpose::Usage,
        "ADJUSTMENT" = Purpose::Adjustment,
    }
}

readable_words! {
    /// A contract's state today.
    ContractStateWord is ContractState {
        "PENDING" = ContractState::Pending,
        "ACTIVE" = ContractState::Active,
        "CANCELLING" = ContractState::Cancelling,
        "CANCELLED" = ContractState::Cancelled,
        "COMPLETED" = ContractState::Completed,
    }
}

readable_words! {
    /// Why a document exists: for a period, for one event that is due upon usage, or to put an issued document right.
    PurposeKindWord is PurposeKind {
        "REGULAR" = PurposeKind::Regular,
        "USAGE" = PurposeKind::Usage,
        "ADJUSTMENT" = PurposeKind::Adjustment,
    }
}

words! {
    /// What something is that was searched for.
    FoundKindWord is FoundKind {
        "DOCUMENT" = FoundKind::Document,
        "CONTRACT" = FoundKind::Contract,
        "CUSTOMER" = FoundKind::Customer,
        "ENTITY" = FoundKind::Entity,
        "PRICING" = FoundKind::Pricing,
        "USAGE_PRODUCT" = FoundKind::UsageProduct,
        "FORMAT" = FoundKind::Format,
        "USAGE_EVENT" = FoundKind::UsageEvent,
        "PAYMENT" = FoundKind::Payment,
        "CHARGE" = FoundKind::Charge,
        "BANK_ACCOUNT" = FoundKind::BankAccount,
        "API_KEY" = FoundKind::ApiKey,
    }
}

readable_words! {
    /// How decimals are written: as JSON numbers, or as strings.
    NumbersWord is NumbersAs { "number" = NumbersAs::Number, "string" = NumbersAs::String }
}

/// In which order documents are listed; with `-` before it the largest come first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentOrderWord;

impl DocumentOrderWord {
    const ALL: [(&'static str, DocumentOrder); 8] = {
        const fn order(by: DocumentSortKey, descending: bool) -> DocumentOrder {
            DocumentOrder { by, descending }
        }
        [
            ("created", order(DocumentSortKey::Created, false)),
            ("-created", order(DocumentSortKey::Created, true)),
            ("issue_date", order(DocumentSortKey::IssueDate, false)),
            ("-issue_date", order(DocumentSortKey::IssueDate, true)),
            ("due_date", order(DocumentSortKey::DueDate, false)),
            ("-due_date", order(DocumentSortKey::DueDate, true)),
            ("amount", order(DocumentSortKey::Amount, false)),
            ("-amount", order(DocumentSortKey::Amount, true)),
        ]
    };

    /// The word of an order.
    pub(crate) fn word(order: DocumentOrder) -> &'static str {
        Self::ALL.into_iter().find(|(_, known)| *known == order).map_or("created", |(word, _)| word)
    }
}

impl Words for DocumentOrderWord {
    type Meaning = DocumentOrder;

    fn meaning(word: &str) -> Option<DocumentOrder> {
        Self::ALL.into_iter().find(|(known, _)| *known == word).map(|(_, order)| order)
    }

    fn all() -> Vec<&'static str> {
        Self::ALL.map(|(word, _)| word).to_vec()
    }
}

impl PartialSchema for DocumentOrderWord {
    fn schema() -> RefOr<Schema> {
        described("In which order documents are listed; with `-` before it the largest come first.", &Self::all())
    }
}

impl ToSchema for DocumentOrderWord {}

impl Wire for DocumentOrder {
    type Value = Self;

    fn read(node: Node<'_>) -> Option<Self> {
        node.word::<DocumentOrderWord>()
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        schemas.refer::<DocumentOrderWord>()
    }
}

/// One thing an API key may do. The words are the domain's, which also stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct ScopeWord(&'static str);

impl From<Scope> for ScopeWord {
    fn from(scope: Scope) -> Self {
        Self(scope.as_str())
    }
}

impl Words for ScopeWord {
    type Meaning = Scope;

    fn meaning(word: &str) -> Option<Scope> {
        Scope::parse(word)
    }

    fn all() -> Vec<&'static str> {
        Scope::ALL.map(Scope::as_str).to_vec()
    }
}

impl PartialSchema for ScopeWord {
    fn schema() -> RefOr<Schema> {
        described("One thing an API key may do.", &Self::all())
    }
}

impl ToSchema for ScopeWord {}
