//! Reading, serialization and schema of domain values, each defined once.

use billing_domain::calendar::{Date, TimeZone, Timestamp, parse_date};
use billing_domain::codes::{AddressScheme, CountryCode, ExemptionCode, IdentifierScheme, NoteSubject, UnitCode};
use billing_domain::contract::schedule::MAX_CYCLE;
use billing_domain::decimal::DecimalError;
use billing_domain::format::{Expression, MAX_EXPRESSION_BYTES};
use billing_domain::hold::EXPIRES_IN;
use billing_domain::idempotency::{IdempotencyKey, MAX_KEY_CHARS};
use billing_domain::labels::LabelKey;
use billing_domain::money::{Currency, Percentage, Price, SignedPrice};
use billing_domain::party::appearance::{AccentColor, Footer, Logo, MAX_FOOTER_CHARS};
use billing_domain::party::bank::{Bic, Iban, RoutingNumber};
use billing_domain::party::legal::{BuyerReference, MAX_BUYER_REFERENCE_CHARS, VatId};
use billing_domain::party::{MAX_GRACE_HOURS, MAX_NET_TERMS_DAYS, MAX_PREFIX_CHARS, NetTerms, NetTermsError, NumberPrefix};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{
    BankAccountRef, ChargeRef, ContractRef, CustomerRef, DocumentRef, EntityRef, FormatRef, HoldRef, LineItemId, PricingRef,
    ProductNo, RefError, UsageProductRef, is_dot_segment,
};
use billing_domain::text::{MAX_TEXT_BYTES, OneLine, Prose};
use billing_domain::usage::{MAX_REPORT_KEY_CHARS, ReportData};
use billing_json::report_value;
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, Type};

use super::declare::{Listed, ResponseValue, wire};
use super::input::Node;
use super::schemas::{Schemas, integer, schemas};
use super::wire::{
    self, AssignedRef, DUE_UPON_RECEIPT, DUE_UPON_USAGE, EmailText, ExactNumber, FreeFormEvent, MAX_VERSION, NamedRef,
    NetTermsInput, NetTermsValue, ONE_LINE, PercentageInput, PriceInput, QuantityInput, ReportDataInput, ReportDataJson,
    ReportedQuantityInput, SEVERAL_LINES, SignedPriceInput, VISIBLE_LINE, VISIBLE_LINES, known, limited, texts,
};
use crate::logo::{self, MAX_LOGO_CHARS};

/// Implements values: `Type as Schema: reader, writer as ItsSchema;`. The writer is omitted for values that do not occur
/// in responses. Forms of another type's values are possible as in [`wire!`].
macro_rules! values {
    ($($wire:ident $(of $value:ty)? as $schema:ty: $read:expr $(, $answered:ty: $answer:expr)?;)+) => {$(
        wire! { $wire $(of $value)?: $read, |schemas| schemas.refer::<$schema>(); }

        $(
            impl ResponseValue for $wire {
                fn answer<S: Serializer>(value: &Self::Value, serializer: S) -> Result<S::Ok, S::Error> {
                    let answer: fn(&Self::Value) -> $answered = $answer;
                    answer(value).serialize(serializer)
                }

                fn answered_schema(schemas: &mut Schemas) -> RefOr<Schema> {
                    schemas.refer::<$answered>()
                }
            }
        )?
    )+};
}

/// Implements values with a string form of their own: `/// Meaning. Type as Text: schema, example "text", reader;`. The string is
/// the type's `Display`, or the result of a method that follows the reader.
macro_rules! text_values {
    ($($(#[doc = $doc:literal])+ $wire:ident as $text:ident: $schema:expr, example $example:literal, $read:expr $(, $stated:ident)?;)+) => {
        texts! { $($(#[doc = $doc])+ $text: $schema, example $example;)+ }

        values! { $($wire as $text: $read, $text: text_values!(@writer $text [$($stated)?]);)+ }
    };
    (@writer $text:ident []) => {
        |it| $text::from(it)
    };
    (@writer $text:ident [$stated:ident]) => {
        |it| $text::from(it.$stated())
    };
}

/// E-mail address.
pub struct Email;
/// An amount whose currency, and therefore number of digits, is not known yet.
pub struct AmountText;
/// A price that is not zero.
pub struct PriceAboveZero;
/// An amount or a quantity, also below zero, whose number of digits is not known yet.
pub struct ThresholdText;
/// A positive quantity.
pub struct AboveZero;
/// The quantity of reported usage, which is rounded.
pub struct ReportedQuantity;
/// Grace period in hours.
pub struct GraceHours;
/// Time for which a hold stays open, in seconds.
pub struct HoldSeconds;
/// Number of time units in a billing interval.
pub struct CycleCount;
/// Version number of a contract.
pub struct VersionNumber;
/// The text of a free-form event.
pub struct FreeForm;
/// A reference as text. A malformed reference matches nothing.
pub struct AnyEventRef;
/// A password.
pub struct Password;

text_values! {
    /// One line of text without invisible characters, at most 4096 bytes.
    OneLine as LineText: limited(1, MAX_TEXT_BYTES, VISIBLE_LINE), example "Acme", |node| node.line();
    /// Text that may have line breaks and tabs, at most 4096 bytes.
    Prose as ProseText: limited(1, MAX_TEXT_BYTES, VISIBLE_LINES), example "Thank you", |node| node.prose();
    /// An ISO 4217 currency code.
    Currency as CurrencyCode: limited(3, 3, "^[A-Z]{3}$"), example "EUR", |node| node.currency();
    /// A calendar date, `yyyy-mm-dd`.
    Date as DateText: known(KnownFormat::Date), example "2026-01-31", |node| node.parsed(parse_date);
    /// A timestamp, RFC 3339 with an offset; UTC in responses.
    Timestamp as TimestampText: known(KnownFormat::DateTime), example "2026-01-31T12:00:00Z", |node| node.timestamp();
    /// A time zone name of the IANA database.
    TimeZone as TimeZoneName: limited(1, 64, "^[A-Za-z0-9_+/-]+$"), example "Europe/Berlin",
        |node| node.parsed(TimeZone::parse), name;
    /// Prefix of an entity's document numbers.
    NumberPrefix as NumberPrefixText: limited(1, MAX_PREFIX_CHARS, "^[A-Z0-9]+$"), example "UB",
        |node| node.parsed(NumberPrefix::parse), as_str;
    /// A country code, ISO 3166-1 alpha-2.
    CountryCode as CountryCodeText: limited(2, 2, "^[A-Z]{2}$"), example "DE", |node| node.parsed(CountryCode::parse);
    /// A VAT identification number with its country prefix (EL for Greece). Spaces, dots and hyphens are removed, and letters become
    /// capital letters.
    VatId as VatIdText: limited(4, 64, "^[A-Za-z0-9+* .-]+$"), example "DE123456789",
        |node| node.parsed(VatId::parse), as_str;
    /// An identifier scheme of ISO/IEC 6523.
    IdentifierScheme as IdentifierSchemeCode: limited(4, 4, "^[0-9]{4}$"), example "0002",
        |node| node.parsed(IdentifierScheme::parse);
    /// A scheme of electronic addresses.
    AddressScheme as AddressSchemeCode: limited(2, 4, "^[A-Z0-9]+$"), example "0204", |node| node.parsed(AddressScheme::parse);
    /// A text subject code of UNTDID 4451.
    NoteSubject as NoteSubjectCode: limited(3, 3, "^[A-Z]{3}$"), example "PMD", |node| node.parsed(NoteSubject::parse);
    /// A VATEX code: the reason for a tax exemption.
    ExemptionCode as ExemptionCodeText: limited(1, 64, "^VATEX-[A-Z0-9-]+$"), example "VATEX-EU-AE",
        |node| node.parsed(ExemptionCode::parse);
    /// A unit code of UN/ECE Recommendation 20 or 21.
    UnitCode as UnitCodeText: limited(2, 3, "^[A-Z0-9]+$"), example "C62", |node| node.parsed(UnitCode::parse);
    /// The key of a label: of an entry of additional_report_data.
    LabelKey as LabelKeyText: limited(1, MAX_REPORT_KEY_CHARS, VISIBLE_LINE), example "user", |node| node.parsed(LabelKey::parse);
    /// Buyer reference printed on documents.
    BuyerReference as BuyerReferenceText: limited(1, MAX_BUYER_REFERENCE_CHARS, VISIBLE_LINE), example "04011000-12345-35",
        |node| node.parsed(BuyerReference::parse), as_str;
    /// A logo. In requests: the content of a PNG or SVG file of at most 256 KiB in base64, or a logo of a response. In responses:
    /// the format and the SHA-256 hash of the stored image.
    Logo as LogoText: limited(1, MAX_LOGO_CHARS, "^[A-Za-z0-9+/=:;,.-]+$"), example
        "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAxIDEiPjxwYXRoIGQ9Ik0wIDBoMXYxeiIvPjwvc3ZnPg==",
        |node| node.parsed(logo::parse);
    /// A color with enough contrast on white paper.
    AccentColor as AccentColorText: limited(7, 7, "^#[0-9A-Fa-f]{6}$"), example "#0b5cad", |node| node.parsed(AccentColor::parse);
    /// Text at the end of documents, at most 500 characters.
    Footer as FooterText: limited(1, MAX_FOOTER_CHARS, VISIBLE_LINES), example "Register court Bremen HRB 12345",
        |node| node.parsed(Footer::parse), as_str;
    /// An international bank account number. Spaces, dots and hyphens are removed, and letters become capital letters.
    Iban as IbanText: limited(15, 64, "^[A-Za-z0-9 .-]+$"), example "DE89370400440532013000",
        |node| node.parsed(Iban::parse), as_str;
    /// A bank identifier code (ISO 9362). Spaces, dots and hyphens are removed, and letters become capital letters.
    Bic as BicText: limited(8, 64, "^[A-Za-z0-9 .-]+$"), example "COBADEFFXXX", |node| node.parsed(Bic::parse), as_str;
    /// A routing number of a United States bank: nine digits including a check digit. Spaces, dots and hyphens are removed.
    RoutingNumber as RoutingNumberText: limited(9, 64, "^[0-9 .-]+$"), example "021000021",
        |node| node.parsed(RoutingNumber::parse), as_str;
    /// An idempotency key of a request or an event.
    IdempotencyKey as KeyText: limited(1, MAX_KEY_CHARS, ONE_LINE), example "host-7/2026-01-20/81",
        |node| node.parsed(IdempotencyKey::parse), as_str;
    /// An expression over `event`, at most 2048 bytes.
    Expression as ExpressionText: limited(1, MAX_EXPRESSION_BYTES, SEVERAL_LINES), example "event.quantity",
        |node| node.parsed(Expression::parse);
}

values! {
    Email of OneLine as EmailText: |node| node.email(), EmailText: |it| EmailText::from(it);
    NetTerms as NetTermsInput: net_terms, NetTermsValue: |it| NetTermsValue::from(*it);
    GraceHours of u16 as GraceHoursInput: |node| node.whole(0..=MAX_GRACE_HOURS), GraceHoursValue: |it| GraceHoursValue(*it);
    HoldSeconds of u32 as HoldSecondsInput: |node| node.whole_or(EXPIRES_IN.0..=EXPIRES_IN.1, "must be a whole number of seconds from 1 to 86400");
    CycleCount of u16 as CycleInput: |node| node.whole(1..=MAX_CYCLE);
    VersionNumber of u32 as VersionInput: |node| {
        node.whole_or(1..=MAX_VERSION, "must be a whole number of at least 1, the version of the edited contract")
    };
    ProductNo as ProductNumberInput: |node| {
        node.whole_or(0..=u16::MAX, "must be a whole number of at least 0, the number of a product of the contract").map(ProductNo)
    };
    Percentage as PercentageInput: |node| node.decimal(Percentage::parse), ExactNumber: |it| ExactNumber::from(*it);
    Price as PriceInput: |node| node.decimal(Price::parse), ExactNumber: |it| ExactNumber::from(*it);
    PriceAboveZero of Price as PriceInput: |node| node.decimal(price_above_zero);
    SignedPrice as SignedPriceInput: |node| node.decimal(SignedPrice::parse), ExactNumber: |it| ExactNumber::from(*it);
    Quantity as QuantityInput: |node| node.decimal(Quantity::parse), ExactNumber: |it| ExactNumber::from(*it);
    AboveZero of Quantity as QuantityInput: |node| node.decimal(above_zero);
    ReportedQuantity of Quantity as ReportedQuantityInput: |node| node.decimal(Quantity::parse_reported);
    AmountText of String as QuantityInput: |node| node.decimal(|text| Quantity::parse(text).map(|_| text.to_owned()));
    ThresholdText of String as SignedPriceInput: |node| node.decimal(|text| SignedPrice::parse(text).map(|_| text.to_owned()));
    CustomerRef as NamedRef: |node| node.parsed(CustomerRef::parse), NamedRef: |it| NamedRef::from(it);
    EntityRef as NamedRef: |node| node.parsed(EntityRef::parse), NamedRef: |it| NamedRef::from(it);
    UsageProductRef as NamedRef: |node| node.parsed(UsageProductRef::parse), NamedRef: |it| NamedRef::from(it);
    PricingRef as NamedRef: |node| node.parsed(PricingRef::parse), NamedRef: |it| NamedRef::from(it);
    FormatRef as NamedRef: |node| node.parsed(FormatRef::parse), NamedRef: |it| NamedRef::from(it);
    BankAccountRef as NamedRef: |node| node.parsed(BankAccountRef::parse), NamedRef: |it| NamedRef::from(it);
    HoldRef as NamedRef: |node| node.parsed(HoldRef::parse), NamedRef: |it| NamedRef::from(it);
    ChargeRef as NamedRef: |node| node.parsed(ChargeRef::parse), NamedRef: |it| NamedRef::from(it);
    LineItemId as NamedRef: |node| node.parsed(LineItemId::parse), NamedRef: |it| NamedRef::from(it);
    ContractRef as AssignedRef: |node| node.parsed(ContractRef::parse), AssignedRef: |it| AssignedRef::from(*it);
    DocumentRef as AssignedRef: |node| node.parsed(DocumentRef::parse), AssignedRef: |it| AssignedRef::from(*it);
    AnyEventRef of String as AssignedRef: |node| node.line().map(|line| line.as_str().to_owned());
    FreeForm of String as FreeFormEvent: |node| node.object(|_| Some(node.json().to_string()));
    ReportData as ReportDataInput: report_data, ReportDataJson: |it| ReportDataJson::from(it);
    Password of String as PasswordInput: |node| node.line().map(|line| line.as_str().to_owned());
}

/// Implements the references of resources that are created: `NewRef of Ref beside [words];`. The words follow the path of the
/// collection in paths of operations, so a resource with such a reference could not be read. Existing references are read without
/// this check.
macro_rules! new_references {
    ($($(#[doc = $doc:literal])+ $wire:ident of $reference:ident beside $words:expr;)+) => {$(
        $(#[doc = $doc])+
        pub struct $wire;

        impl $wire {
            /// Words that are no reference, because paths of operations have them in its place.
            pub const RESERVED: &'static [&'static str] = &$words;
        }

        wire! {
            $wire of $reference:
                |node| new_reference(node, $wire::RESERVED, $reference::parse),
                |schemas| schemas.refer::<NamedRef>();
        }
    )+};
}

new_references! {
    /// Reference of a customer to create.
    NewCustomerRef of CustomerRef beside ["amounts_due", "balance", "e_invoice_check", "edit", "filter", "names", "payments", "statement"];
    /// Reference of a supplier entity to create.
    NewEntityRef of EntityRef beside ["edit", "filter", "names"];
    /// Reference of a usage product to create.
    NewUsageProductRef of UsageProductRef beside ["edit", "filter"];
    /// Reference of a pricing to create.
    NewPricingRef of PricingRef beside ["edit", "filter", "rates"];
    /// Reference of a usage format to create.
    NewFormatRef of FormatRef beside ["edit", "filter", "test"];
    /// Identifier of a bank account to create.
    NewBankAccountRef of BankAccountRef beside ["edit", "filter"];
    /// Reference of a charge to record.
    NewChargeRef of ChargeRef beside ["edit", "filter"];
    /// The reference of a new hold.
    NewHoldRef of HoldRef beside ["filter"];
}

fn new_reference<R>(node: Node<'_>, reserved: &[&str], parse: fn(&str) -> Result<R, RefError>) -> Option<R> {
    let text = node.text()?;
    if is_dot_segment(text) || reserved.contains(&text) {
        let detail = format!("must be none of ., .., {}, which paths cannot have in place of a reference", reserved.join(", "));
        return node.refuse("invalid_value", detail);
    }
    node.taken(parse(text))
}

wire! {
    bool: |node| node.boolean(), |_| ObjectBuilder::new().schema_type(Type::Boolean);
}

impl ResponseValue for bool {
    fn answer<S: Serializer>(value: &Self, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }
}

/// Tokens of a wallet are the only list of lines.
impl Listed for OneLine {
    const MAX: usize = 100;
}

/// Grace period in hours, in responses.
#[derive(Clone, Copy, Serialize)]
pub struct GraceHoursValue(u16);

pub struct GraceHoursInput;
pub struct CycleInput;
/// Seconds for which a hold stays open.
pub struct HoldSecondsInput;
pub struct VersionInput;
pub struct ProductNumberInput;
pub struct PasswordInput;

schemas! {
    GraceHoursValue: integer(0, MAX_GRACE_HOURS.into());
    GraceHoursInput: wire::whole(0, MAX_GRACE_HOURS.into());
    CycleInput: wire::whole(1, MAX_CYCLE.into());
    HoldSecondsInput: wire::whole(EXPIRES_IN.0, EXPIRES_IN.1);
    VersionInput: wire::whole(1, MAX_VERSION);
    ProductNumberInput: wire::whole(0, u16::MAX.into());
    PasswordInput: wire::password();
}

fn above_zero(text: &str) -> Result<Quantity, DecimalError> {
    Quantity::parse(text).and_then(|quantity| if quantity == Quantity::ZERO { Err(DecimalError::Zero) } else { Ok(quantity) })
}

fn price_above_zero(text: &str) -> Result<Price, DecimalError> {
    Price::parse(text).and_then(|price| if price == Price::ZERO { Err(DecimalError::Zero) } else { Ok(price) })
}

/// Reads days as a number or numeric string, or a word.
fn net_terms(node: Node<'_>) -> Option<NetTerms> {
    match node.as_text() {
        Some(DUE_UPON_RECEIPT) => Some(NetTerms::DueUponReceipt),
        Some(DUE_UPON_USAGE) => Some(NetTerms::DueUponUsage),
        Some(_) | None => node.whole_or(1..=MAX_NET_TERMS_DAYS, &NetTermsError.to_string()).map(NetTerms::Days),
    }
}

/// Reads an object, or a string with its JSON.
fn report_data(node: Node<'_>) -> Option<ReportData> {
    let Some(text) = node.as_text() else { return report_object(node) };
    node.unpacked(text, report_object)
}

fn report_object(node: Node<'_>) -> Option<ReportData> {
    node.object(|fields| Some(ReportData::new(fields.entries().map(|(key, node)| (key.to_owned(), report_value(node.json()))))))
}
