//! Values that are stored as one text, in a column or in JSON: names, references, enum words and exact numbers.

use std::fmt;

use billing_domain::access::{Actor, RequestId, Role, Scope, Scopes, SecretPurpose};
use billing_domain::audit::{AuditAction, AuditActor, AuditedKind};
use billing_domain::calendar::{TimeZone, Timestamp};
use billing_domain::catalog::{Aggregation, Recurrence};
use billing_domain::codes::{AddressScheme, CountryCode, ExemptionCode, IdentifierScheme, NoteSubject, UnitCode};
use billing_domain::contract::EndReason;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::decimal::WideDecimal;
use billing_domain::document::DocumentKind;
use billing_domain::document::files::FileForm;
use billing_domain::document::legal_particulars::SupplyCategory;
use billing_domain::document::lines::BillWith;
use billing_domain::document::linking::SlotKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::format::Expression;
use billing_domain::labels::LabelKey;
use billing_domain::money::{Currency, Money, Percentage, Price, SignedPrice};
use billing_domain::notification::{NotificationType, Subject};
use billing_domain::party::appearance::{AccentColor, Footer, Logo};
use billing_domain::party::bank::{Bic, Iban, RoutingNumber};
use billing_domain::party::legal::{BuyerReference, EInvoiceProfile, Language, PaperSize, Strictness, VatId};
use billing_domain::party::{NetTerms, NumberPrefix};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{
    BankAccountRef, ChargeRef, ContractRef, CreditGrantRef, CustomerId, CustomerRef, DocumentRef, EntityRef, FormatRef, HoldRef,
    LineItemId, OrganizationId, PricingRef, UsageProductRef,
};
use billing_domain::tax::TaxCategory;
use billing_domain::text::{OneLine, Prose};
use billing_domain::webhook::{AttemptOutcome, DeliveryState, DisabledReason, EventType, WebhookUrl};
use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// A value that converts to a text and back.
pub(crate) trait TextValue: Sized {
    /// The name of the type in messages.
    const WHAT: &'static str;

    /// Returns the stored text.
    fn to_text(&self) -> String;

    /// Parses the output of [`to_text`](Self::to_text); returns `None` for any other text.
    fn parse_text(text: &str) -> Option<Self>;
}

pub(crate) fn serialize<T: TextValue, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_text())
}

pub(crate) fn deserialize<'de, T: TextValue, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::parse_text(&text).ok_or_else(|| D::Error::custom(format_args!("{text:?} is not {}", T::WHAT)))
}

/// The serde functions for optional values.
pub(crate) mod option {
    use super::{Deserializer, Serializer, TextValue};
    use serde::Deserialize;

    pub(crate) fn serialize<T: TextValue, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: TextValue, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        struct Present<T>(T);
        impl<'de, T: TextValue> Deserialize<'de> for Present<T> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                super::deserialize(deserializer).map(Self)
            }
        }
        Ok(Option::<Present<T>>::deserialize(deserializer)?.map(|present| present.0))
    }
}

/// The serde functions for lists.
pub(crate) mod list {
    use super::{Deserializer, Serializer, TextValue};
    use serde::Deserialize as _;
    use serde::de::Error as _;

    pub(crate) fn serialize<T: TextValue, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(TextValue::to_text))
    }

    pub(crate) fn deserialize<'de, T: TextValue, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let read =
            |text: &String| T::parse_text(text).ok_or_else(|| D::Error::custom(format_args!("{text:?} is not {}", T::WHAT)));
        texts.iter().map(read).collect()
    }
}

macro_rules! leaves {
    ($($type:ty, $what:literal, $show:expr, $read:expr;)+) => {$(
        impl TextValue for $type {
            const WHAT: &'static str = $what;

            fn to_text(&self) -> String {
                let show: fn(&Self) -> String = $show;
                show(self)
            }

            fn parse_text(text: &str) -> Option<Self> {
                let read: fn(&str) -> Option<Self> = $read;
                read(text)
            }
        }
    )+};
}

macro_rules! words {
    ($($type:ty, $what:literal { $($variant:path = $word:literal),+ $(,)? })+) => {$(
        impl TextValue for $type {
            const WHAT: &'static str = $what;

            fn to_text(&self) -> String {
                match self { $($variant => $word),+ }.to_owned()
            }

            fn parse_text(text: &str) -> Option<Self> {
                match text { $($word => Some($variant),)+ _ => None }
            }
        }
    )+};
}

/// Converts a value with its [`Display`](fmt::Display) implementation.
fn shown<T: fmt::Display>(value: &T) -> String {
    value.to_string()
}

leaves! {
    OneLine, "one line of text", shown, |text| Self::parse(text).ok();
    // Joined notes can be longer than the limit for a single one.
    Prose, "text", shown, |text| if text.is_empty() { None } else { Self::joined(&[text]) };
    CustomerRef, "a reference", shown, |text| Self::parse(text).ok();
    EntityRef, "a reference", shown, |text| Self::parse(text).ok();
    LabelKey, "a label", shown, |text| Self::parse(text).ok();
    UsageProductRef, "a reference", shown, |text| Self::parse(text).ok();
    PricingRef, "a reference", shown, |text| Self::parse(text).ok();
    FormatRef, "a reference", shown, |text| Self::parse(text).ok();
    Expression, "an expression", shown, |text| Self::parse(text).ok();
    ChargeRef, "a reference", shown, |text| Self::parse(text).ok();
    HoldRef, "a reference", shown, |text| Self::parse(text).ok();
    LineItemId, "a reference", shown, |text| Self::parse(text).ok();
    OrganizationId, "a UUID", shown, |text| Self::parse(text).ok();
    CustomerId, "a UUID", shown, |text| Self::parse(text).ok();
    ContractRef, "a UUID", shown, |text| Self::parse(text).ok();
    DocumentRef, "a UUID", shown, |text| Self::parse(text).ok();
    CreditGrantRef, "a UUID", shown, |text| Self::parse(text).ok();
    Timestamp, "an instant", shown, |text| Self::parse(text).ok();
    NaiveDate, "a date", shown, |text| text.parse().ok();
    TimeZone, "a time zone", |zone| zone.name().to_owned(), |text| Self::parse(text).ok();
    Actor, "an actor", shown, |text| Self::parse(text).ok();
    AuditActor, "an author", shown, Self::parse;
    AuditAction, "an action", |action| action.as_str().to_owned(), Self::parse;
    AuditedKind, "a kind of object", |kind| kind.as_str().to_owned(), Self::parse;
    NotificationType, "a notification type", shown, Self::parse;
    Subject, "a subject", shown, Self::parse;
    RequestId, "a request's id", shown, Self::parse;
    Currency, "a currency", shown, |text| Self::from_code(text).ok();
    Decimal, "a decimal", shown, |text| Self::from_str_exact(text).ok();
    WideDecimal, "an exact number", shown, Self::parse;
    Price, "a price", |price| price.as_decimal().to_string(), |text| Self::parse(text).ok();
    SignedPrice, "a price", |price| price.as_decimal().to_string(), |text| Self::parse(text).ok();
    Percentage, "a percentage", |rate| rate.as_decimal().to_string(), |text| Self::parse(text).ok();
    Quantity, "a quantity", |quantity| quantity.as_decimal().to_string(), |text| Self::parse(text).ok();
    Money, "an amount of money", shown, read_money;
    DocumentNumber, "a document number", shown, Self::parse;
    NumberPrefix, "a number prefix", |prefix| prefix.as_str().to_owned(), |text| Self::parse(text).ok();
    CountryCode, "a country", shown, |text| Self::parse(text).ok();
    UnitCode, "a unit code", shown, |text| Self::parse(text).ok();
    IdentifierScheme, "an identifier scheme", shown, |text| Self::parse(text).ok();
    AddressScheme, "an electronic address scheme", shown, |text| Self::parse(text).ok();
    NoteSubject, "a text subject", shown, |text| Self::parse(text).ok();
    ExemptionCode, "a VATEX code", shown, |text| Self::parse(text).ok();
    VatId, "a VAT id", |id| id.as_str().to_owned(), |text| Self::parse(text).ok();
    Iban, "an IBAN", |iban| iban.as_str().to_owned(), |text| Self::parse(text).ok();
    Bic, "a BIC", |bic| bic.as_str().to_owned(), |text| Self::parse(text).ok();
    RoutingNumber, "a routing number", |number| number.as_str().to_owned(), |text| Self::parse(text).ok();
    BuyerReference, "a buyer reference", |reference| reference.as_str().to_owned(), |text| Self::parse(text).ok();
    AccentColor, "a color", shown, |text| Self::parse(text).ok();
    Footer, "a footer", |footer| footer.as_str().to_owned(), |text| Self::parse(text).ok();
    Logo, "a logo", shown, Self::parse;
    BankAccountRef, "a reference", shown, |text| Self::parse(text).ok();
    WebhookUrl, "a URL", |url| url.as_str().to_owned(), |text| Self::parse(text).ok();
    EventType, "an event type", |kind| kind.as_str().to_owned(), |text| Self::parse(text).ok();
    DisabledReason, "a reason to disable", |reason| reason.as_str().to_owned(), Self::parse;
    DeliveryState, "a state of a delivery", |state| state.as_str().to_owned(), Self::parse;
    AttemptOutcome, "an outcome of an attempt", |outcome| outcome.as_str().to_owned(), Self::parse;
    NetTerms, "net terms", show_net_terms, read_net_terms;
    Scopes, "scopes", show_scopes, read_scopes;
}

words! {
    DocumentKind, "a kind of document" {
        DocumentKind::Invoice = "INVOICE", DocumentKind::Credit = "CREDIT", DocumentKind::Debit = "DEBIT",
    }
    FileForm, "a form of a file" { FileForm::Pdf = "PDF", FileForm::Ubl = "UBL", FileForm::Cii = "CII" }
    SlotKind, "a slot" { SlotKind::Period = "PERIOD", SlotKind::UsageDebit = "USAGE_DEBIT", SlotKind::Closing = "CLOSING" }
    BillWith, "what a line is billed with" { BillWith::Fixed = "FIXED", BillWith::Usage = "USAGE" }
    Aggregation, "an aggregation" {
        Aggregation::Sum = "SUM", Aggregation::Count = "COUNT", Aggregation::Max = "MAX", Aggregation::Latest = "LATEST",
        Aggregation::Unique = "UNIQUE",
    }
    Recurrence, "a recurrence" { Recurrence::EachPeriod = "EACH_PERIOD", Recurrence::Once = "ONCE" }
    PaymentTime, "a payment time" {
        PaymentTime::BeforeUse = "BEFORE_USE", PaymentTime::DuringUse = "DURING_USE", PaymentTime::AfterUse = "AFTER_USE",
    }
    CycleUnit, "a unit of billing cycles" {
        CycleUnit::OneTime = "ONE_TIME", CycleUnit::Monthly = "MONTHLY", CycleUnit::Quarterly = "QUARTERLY", CycleUnit::Yearly = "YEARLY",
    }
    TaxCategory, "a tax category" {
        TaxCategory::S = "S", TaxCategory::Z = "Z", TaxCategory::E = "E", TaxCategory::Ae = "AE", TaxCategory::G = "G", TaxCategory::O = "O",
    }
    Language, "a language" {
        Language::En = "en", Language::De = "de", Language::Fr = "fr", Language::Es = "es", Language::It = "it", Language::Nl = "nl",
        Language::Pt = "pt", Language::Pl = "pl", Language::Ja = "ja", Language::Sv = "sv", Language::Da = "da", Language::Nb = "nb",
        Language::Fi = "fi", Language::Cs = "cs", Language::Hu = "hu", Language::Ro = "ro",
    }
    Strictness, "how strict papers are" { Strictness::Lenient = "LENIENT", Strictness::Strict = "STRICT" }
    EInvoiceProfile, "an e-invoice profile" {
        EInvoiceProfile::None = "NONE", EInvoiceProfile::En16931 = "EN16931", EInvoiceProfile::Xrechnung = "XRECHNUNG",
        EInvoiceProfile::Peppol = "PEPPOL", EInvoiceProfile::FacturX = "FACTUR_X",
    }
    SupplyCategory, "a category of supply" {
        SupplyCategory::Services = "SERVICES", SupplyCategory::Goods = "GOODS", SupplyCategory::Mixed = "MIXED",
    }
    PaperSize, "a size of paper" { PaperSize::A4 = "A4", PaperSize::Letter = "LETTER" }
    EndReason, "a reason to end" { EndReason::Cancelled = "CANCELLED", EndReason::Removed = "REMOVED" }
    SecretPurpose, "a purpose" {
        SecretPurpose::BearerToken = "BEARER_TOKEN", SecretPurpose::SessionCookie = "SESSION_COOKIE",
        SecretPurpose::SecondFactor = "SECOND_FACTOR",
    }
    Role, "a role" { Role::Read = "read", Role::Finance = "finance", Role::Operator = "operator", Role::Owner = "owner" }
}

/// Parses `30.86 EUR`, with exactly the digits of the currency.
fn read_money(text: &str) -> Option<Money> {
    let (amount, currency) = text.split_once(' ')?;
    let money = Money::round(Decimal::from_str_exact(amount).ok()?, Currency::from_code(currency).ok()?).ok()?;
    (shown(&money) == text).then_some(money)
}

fn show_net_terms(terms: &NetTerms) -> String {
    match terms {
        NetTerms::Days(days) => days.to_string(),
        NetTerms::DueUponReceipt => "DUE_UPON_RECEIPT".to_owned(),
        NetTerms::DueUponUsage => "DUE_UPON_USAGE".to_owned(),
    }
}

fn read_net_terms(text: &str) -> Option<NetTerms> {
    match text {
        "DUE_UPON_RECEIPT" => Some(NetTerms::DueUponReceipt),
        "DUE_UPON_USAGE" => Some(NetTerms::DueUponUsage),
        days => NetTerms::days(days.parse().ok()?).ok(),
    }
}

fn show_scopes(scopes: &Scopes) -> String {
    scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(" ")
}

fn read_scopes(text: &str) -> Option<Scopes> {
    let scopes: Option<Vec<Scope>> = text.split_whitespace().map(Scope::parse).collect();
    scopes.map(|scopes| Scopes::of(&scopes))
}
