//! Reading, serialization and schema of domain values, each defined once.

use billing_domain::calendar::{Date, TimeZone, Timestamp, parse_date};
use billing_domain::codes::{AddressScheme, CountryCode, ExemptionCode, IdentifierScheme, NoteSubject, UnitCode};
use billing_domain::contract::schedule::MAX_CYCLE;
use billing_domain::decimal::DecimalError;
use billing_domain::format::Expression;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::money::{Currency, Percentage, Price, SignedPrice};
use billing_domain::party::bank::{Bic, Iban, RoutingNumber};
use billing_domain::party::legal::{BuyerReference, VatId};
use billing_domain::party::{MAX_GRACE_HOURS, MAX_NET_TERMS_DAYS, NetTerms, NetTermsError, NumberPrefix};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{
    BankAccountRef, ChargeRef, ContractRef, CustomerRef, DocumentRef, EntityRef, FormatRef, LineItemId, PricingRef, ProductNo,
    UsageProductRef,
};
use billing_domain::text::{OneLine, Prose};
use billing_domain::usage::{MAX_REPORT_KEYS, ReportData, ReportDataError, ReportValue};
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

use super::declare::{Listed, ResponseValue, wire};
use super::input::Node;
use super::schemas::{Schemas, integer, schemas};
use super::wire::{
    self, AddressSchemeCode, AssignedRef, BicText, BuyerReferenceText, CountryCodeText, CurrencyCode, DUE_UPON_RECEIPT,
    DUE_UPON_USAGE, DateText, EmailText, ExactNumber, ExemptionCodeText, ExpressionText, FreeFormEvent, IbanText,
    IdentifierSchemeCode, KeyText, LineText, MAX_VERSION, NamedRef, NetTermsInput, NetTermsValue, NoteSubjectCode,
    NumberPrefixText, PercentageInput, PriceInput, ProseText, QuantityInput, ReportDataJson, RoutingNumberText, SignedPriceInput,
    TimeZoneName, TimestampText, UnitCodeText, VatIdText,
};

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

/// E-mail address.
pub(crate) struct Email;
/// An amount whose currency, and therefore number of digits, is not known yet.
pub(crate) struct AmountText;
/// A positive quantity.
pub(crate) struct AboveZero;
/// Grace period in hours.
pub(crate) struct GraceHours;
/// Number of time units in a billing interval.
pub(crate) struct CycleCount;
/// Version number of a contract.
pub(crate) struct VersionNumber;
/// The text of a free-form event.
pub(crate) struct FreeForm;
/// A reference as text. A malformed reference matches nothing.
pub(crate) struct AnyEventRef;
/// A password.
pub(crate) struct Password;

values! {
    OneLine as LineText: |node| node.line(), LineText: |it| LineText::from(it);
    Prose as ProseText: |node| node.prose(), ProseText: |it| ProseText::from(it);
    Email of OneLine as EmailText: |node| node.email(), EmailText: |it| EmailText::from(it);
    Currency as CurrencyCode: |node| node.currency(), CurrencyCode: |it| CurrencyCode::from(*it);
    Date as DateText: |node| node.parsed(parse_date), DateText: |it| DateText::from(*it);
    Timestamp as TimestampText: |node| node.timestamp(), TimestampText: |it| TimestampText::from(*it);
    TimeZone as TimeZoneName: |node| node.parsed(TimeZone::parse), TimeZoneName: |it| TimeZoneName::from(it.name());
    NumberPrefix as NumberPrefixText: |node| node.parsed(NumberPrefix::parse), NumberPrefixText: |it| NumberPrefixText::from(it.as_str());
    CountryCode as CountryCodeText: |node| node.parsed(CountryCode::parse), CountryCodeText: |it| CountryCodeText::from(*it);
    VatId as VatIdText: |node| node.parsed(VatId::parse), VatIdText: |it| VatIdText::from(it.as_str());
    IdentifierScheme as IdentifierSchemeCode: |node| node.parsed(IdentifierScheme::parse),
        IdentifierSchemeCode: |it| IdentifierSchemeCode::from(*it);
    AddressScheme as AddressSchemeCode: |node| node.parsed(AddressScheme::parse), AddressSchemeCode: |it| AddressSchemeCode::from(*it);
    NoteSubject as NoteSubjectCode: |node| node.parsed(NoteSubject::parse), NoteSubjectCode: |it| NoteSubjectCode::from(*it);
    ExemptionCode as ExemptionCodeText: |node| node.parsed(ExemptionCode::parse), ExemptionCodeText: |it| ExemptionCodeText::from(*it);
    UnitCode as UnitCodeText: |node| node.parsed(UnitCode::parse), UnitCodeText: |it| UnitCodeText::from(*it);
    BuyerReference as BuyerReferenceText: |node| node.parsed(BuyerReference::parse),
        BuyerReferenceText: |it| BuyerReferenceText::from(it.as_str());
    Iban as IbanText: |node| node.parsed(Iban::parse), IbanText: |it| IbanText::from(it.as_str());
    Bic as BicText: |node| node.parsed(Bic::parse), BicText: |it| BicText::from(it.as_str());
    RoutingNumber as RoutingNumberText: |node| node.parsed(RoutingNumber::parse),
        RoutingNumberText: |it| RoutingNumberText::from(it.as_str());
    NetTerms as NetTermsInput: net_terms, NetTermsValue: |it| NetTermsValue::from(*it);
    GraceHours of u16 as GraceHoursInput: |node| node.whole(0..=MAX_GRACE_HOURS), GraceHoursValue: |it| GraceHoursValue(*it);
    CycleCount of u16 as CycleInput: |node| node.whole(1..=MAX_CYCLE);
    VersionNumber of u32 as VersionInput: |node| {
        node.whole_or(1..=MAX_VERSION, "must be a whole number of at least 1, the version of the edited contract")
    };
    ProductNo as ProductNumberInput: |node| {
        node.whole_or(0..=u16::MAX, "must be a whole number of at least 0, the number of a product of the contract").map(ProductNo)
    };
    Percentage as PercentageInput: |node| node.decimal(Percentage::parse), ExactNumber: |it| ExactNumber::from(*it);
    Price as PriceInput: |node| node.decimal(Price::parse), ExactNumber: |it| ExactNumber::from(*it);
    SignedPrice as SignedPriceInput: |node| node.decimal(SignedPrice::parse), ExactNumber: |it| ExactNumber::from(*it);
    Quantity as QuantityInput: |node| node.decimal(Quantity::parse), ExactNumber: |it| ExactNumber::from(*it);
    AboveZero of Quantity as QuantityInput: |node| node.decimal(above_zero);
    AmountText of String as QuantityInput: |node| node.decimal(|text| Quantity::parse(text).map(|_| text.to_owned()));
    CustomerRef as NamedRef: |node| node.parsed(CustomerRef::parse), NamedRef: |it| NamedRef::from(it);
    EntityRef as NamedRef: |node| node.parsed(EntityRef::parse), NamedRef: |it| NamedRef::from(it);
    UsageProductRef as NamedRef: |node| node.parsed(UsageProductRef::parse), NamedRef: |it| NamedRef::from(it);
    PricingRef as NamedRef: |node| node.parsed(PricingRef::parse), NamedRef: |it| NamedRef::from(it);
    FormatRef as NamedRef: |node| node.parsed(FormatRef::parse), NamedRef: |it| NamedRef::from(it);
    BankAccountRef as NamedRef: |node| node.parsed(BankAccountRef::parse), NamedRef: |it| NamedRef::from(it);
    ChargeRef as NamedRef: |node| node.parsed(ChargeRef::parse), NamedRef: |it| NamedRef::from(it);
    LineItemId as NamedRef: |node| node.parsed(LineItemId::parse), NamedRef: |it| NamedRef::from(it);
    ContractRef as AssignedRef: |node| node.parsed(ContractRef::parse), AssignedRef: |it| AssignedRef::from(*it);
    DocumentRef as AssignedRef: |node| node.parsed(DocumentRef::parse), AssignedRef: |it| AssignedRef::from(*it);
    AnyEventRef of String as AssignedRef: |node| node.line().map(|line| line.as_str().to_owned());
    IdempotencyKey as KeyText: |node| node.parsed(IdempotencyKey::parse);
    Expression as ExpressionText: |node| node.parsed(Expression::parse), ExpressionText: |it| ExpressionText::from(it);
    FreeForm of String as FreeFormEvent: |node| node.object(|_| Some(node.json().to_string()));
    ReportData as ReportDataJson: report_data, ReportDataJson: |it| ReportDataJson::from(it);
    Password of String as PasswordInput: |node| node.line().map(|line| line.as_str().to_owned());
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
pub(crate) struct GraceHoursValue(u16);

pub(crate) struct GraceHoursInput;
pub(crate) struct CycleInput;
pub(crate) struct VersionInput;
pub(crate) struct ProductNumberInput;
pub(crate) struct PasswordInput;

schemas! {
    GraceHoursValue: integer(0, MAX_GRACE_HOURS.into());
    GraceHoursInput: wire::whole(0, MAX_GRACE_HOURS.into());
    CycleInput: wire::whole(1, MAX_CYCLE.into());
    VersionInput: wire::whole(1, MAX_VERSION);
    ProductNumberInput: wire::whole(0, u16::MAX.into());
    PasswordInput: wire::password();
}

fn above_zero(text: &str) -> Result<Quantity, DecimalError> {
    Quantity::parse(text).and_then(|quantity| if quantity == Quantity::ZERO { Err(DecimalError::Zero) } else { Ok(quantity) })
}

/// Reads days as a number or numeric string, or a word.
fn net_terms(node: Node<'_>) -> Option<NetTerms> {
    match node.as_text() {
        Some(DUE_UPON_RECEIPT) => Some(NetTerms::DueUponReceipt),
        Some(DUE_UPON_USAGE) => Some(NetTerms::DueUponUsage),
        Some(_) | None => node.whole_or(1..=MAX_NET_TERMS_DAYS, &NetTermsError.to_string()).map(NetTerms::Days),
    }
}

/// Reads an object of scalars, or a string with its JSON.
fn report_data(node: Node<'_>) -> Option<ReportData> {
    let Some(text) = node.as_text() else { return report_object(node) };
    node.unpacked(text, report_object)
}

fn report_object(node: Node<'_>) -> Option<ReportData> {
    node.taken(ReportData::new(report_entries(node, report_entry)?))
}

/// Reads the entries of an object with at most as many entries as report data can have.
pub(super) fn report_entries<T>(node: Node<'_>, read: fn(&str, Node<'_>) -> Option<(String, T)>) -> Option<Vec<(String, T)>> {
    node.object(|fields| {
        let entries = fields.entries();
        if entries.len() > MAX_REPORT_KEYS {
            return node.taken(Err(ReportDataError::TooManyKeys));
        }
        let all: Vec<Option<(String, T)>> = entries.map(|(key, node)| read(key, node)).collect();
        all.into_iter().collect()
    })
}

/// Reads one entry and checks it against the domain's limits, so that every invalid entry is reported.
fn report_entry(key: &str, node: Node<'_>) -> Option<(String, ReportValue)> {
    let value = match node.json() {
        Value::Null => ReportValue::Null,
        Value::Bool(value) => ReportValue::Bool(*value),
        Value::Number(number) => ReportValue::Number(number.as_str().to_owned()),
        Value::String(text) => ReportValue::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => return node.refuse("wrong_type", "must be a string, number, true, false or null"),
    };
    let entry = (key.to_owned(), value);
    node.taken(ReportData::new(vec![entry.clone()])).map(|_| entry)
}
