//! The business terms of an e-invoice, independent of its syntax.

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::calendar::Period;
use crate::codes::{CountryCode, ExemptionCode, IdentifierScheme, NoteSubject, UnitCode};
use crate::document::legal_particulars::{PartyDetails, SupplyCategory};
use crate::money::{Currency, Money, Percentage};
use crate::party::Address;
use crate::party::bank::BankAccountProfile;
use crate::party::legal::{Contact, EInvoiceProfile, ElectronicAddress};
use crate::refs::ProductNo;
use crate::tax::TaxCategory;
use crate::text::{OneLine, Prose};

/// The identifier of the standard, with which the identifiers of its specifications begin.
const EN16931: &str = "urn:cen.eu:en16931:2017";
/// The business process of Peppol for billing, which XRechnung uses as well.
const BILLING: &str = "urn:fdc:peppol.eu:2017:poacc:billing:01:1.0";

/// The business terms of an e-invoice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusinessTerms {
    /// The profile that the document was issued with.
    pub profile: EInvoiceProfile,
    /// BT-1.
    pub number: String,
    /// BT-2.
    pub issue_date: NaiveDate,
    /// BT-3.
    pub type_code: TypeCode,
    /// BT-23.
    pub process: Option<&'static str>,
    /// BT-5.
    pub currency: Currency,
    /// BT-6 and BT-111: the tax in the seller's tax currency.
    pub tax_total_in_currency: Option<Money>,
    /// BT-9.
    pub due_date: Option<NaiveDate>,
    /// BT-10.
    pub buyer_reference: Option<String>,
    /// BT-13.
    pub order_reference: Option<String>,
    /// BG-3: the documents that a correction corrects.
    pub preceding: Vec<PrecedingInvoice>,
    /// BG-1.
    pub notes: Vec<Note>,
    /// BT-20.
    pub payment_terms: Option<String>,
    /// BG-4.
    pub seller: Seller,
    /// BG-7.
    pub buyer: Party,
    /// BG-14.
    pub period: Period,
    /// BT-72.
    pub delivery_date: NaiveDate,
    /// BG-16.
    pub payment: PaymentInstructions,
    /// BG-20.
    pub allowances: Vec<Allowance>,
    /// BG-22.
    pub totals: Totals,
    /// BG-23.
    pub taxes: Vec<TaxSubtotal>,
    /// BG-25.
    pub lines: Vec<InvoiceLine>,
}

/// Returns the business process (BT-23). XRechnung and Peppol have their own, and France requires what the document bills, and whether
/// it is already paid.
pub(super) const fn process(profile: EInvoiceProfile, supply: Option<SupplyCategory>, is_paid: bool) -> Option<&'static str> {
    let [unpaid, paid] = match (profile, supply) {
        (EInvoiceProfile::Xrechnung | EInvoiceProfile::Peppol, _) => return Some(BILLING),
        (_, None) => return None,
        (_, Some(SupplyCategory::Services)) => ["S1", "S2"],
        (_, Some(SupplyCategory::Goods)) => ["B1", "B2"],
        (_, Some(SupplyCategory::Mixed)) => ["M1", "M2"],
    };
    Some(if is_paid { paid } else { unpaid })
}

/// The type of an invoice in UNTDID 1001 (BT-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeCode {
    /// 380, a commercial invoice. Debits are invoices, too.
    Invoice,
    /// 381, a credit note.
    CreditNote,
}

impl TypeCode {
    /// Returns the code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invoice => "380",
            Self::CreditNote => "381",
        }
    }
}

/// An invoice that this one corrects (BG-3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrecedingInvoice {
    /// BT-25.
    pub number: String,
    /// BT-26.
    pub issue_date: NaiveDate,
}

/// A note (BG-1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// BT-21.
    pub subject: Option<NoteSubject>,
    /// BT-22.
    pub text: String,
}

/// A party (BG-4, BG-7). The comments name the terms of the seller, then those of the buyer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// BT-27, BT-44: the registered name.
    pub name: String,
    /// BT-28, BT-45: the name that it trades under, if it differs.
    pub trading_name: Option<String>,
    /// BT-30, BT-47.
    pub registration: Option<PartyIdentifier>,
    /// BT-31, BT-48.
    pub vat_id: Option<String>,
    /// BT-34, BT-49.
    pub electronic_address: Option<ElectronicAddress>,
    /// BG-5, BG-8.
    pub address: PostalAddress,
}

/// An identifier in a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartyIdentifier {
    /// The register, if it is known.
    pub scheme: Option<IdentifierScheme>,
    /// The identifier.
    pub value: String,
}

/// A postal address (BG-5, BG-8).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostalAddress {
    /// BT-35, BT-50.
    pub line1: Option<String>,
    /// BT-36, BT-51.
    pub line2: Option<String>,
    /// BT-37, BT-52.
    pub city: Option<String>,
    /// BT-38, BT-53.
    pub post_code: Option<String>,
    /// BT-39, BT-54.
    pub subdivision: Option<String>,
    /// BT-40, BT-55.
    pub country: Option<CountryCode>,
}

/// The seller (BG-4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seller {
    /// The terms that the buyer has as well.
    pub party: Party,
    /// BT-32: a tax number other than the VAT number.
    pub tax_registration: Option<String>,
    /// BG-6.
    pub contact: Option<Contact>,
}

/// How to pay (BG-16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentInstructions {
    /// BT-81, a code of UNTDID 4461.
    pub code: &'static str,
    /// BT-83.
    pub reference: String,
    /// BG-17.
    pub account: Option<Account>,
}

impl PaymentInstructions {
    /// The means of payment is not defined.
    pub const UNDEFINED: &'static str = "1";
    /// A transfer to an account that isn't an IBAN in euros.
    pub const TRANSFER: &'static str = "30";
    /// A bank card.
    pub const CARD: &'static str = "48";
    /// A SEPA credit transfer.
    pub const SEPA_TRANSFER: &'static str = "58";
    /// An online payment service.
    pub const ONLINE: &'static str = "68";
}

/// An account to pay to (BG-17).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// BT-84.
    pub number: String,
    /// Whether the number is an IBAN.
    pub is_iban: bool,
    /// BT-85.
    pub name: Option<String>,
    /// BT-86.
    pub bic: Option<String>,
}

/// A discount on the document, or prepaid credit (BG-20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// BT-92.
    pub amount: Money,
    /// BT-93 and BT-94: the amount that the percentage applies to, and the percentage. Absent if the percentage doesn't give the
    /// amount, because discounts are rounded over a family of documents.
    pub percentage: Option<(Money, Percentage)>,
    /// BT-95.
    pub category: TaxCategory,
    /// BT-96.
    pub rate: Percentage,
    /// BT-97.
    pub reason: Option<String>,
    /// BT-98, a code of UNTDID 5189.
    pub reason_code: Option<&'static str>,
}

/// The sums of the document (BG-22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// BT-106: the sum of the lines.
    pub lines: Money,
    /// BT-107: the sum of the allowances.
    pub allowances: Money,
    /// BT-109: the total without tax.
    pub net: Money,
    /// BT-110: the tax.
    pub tax: Money,
    /// BT-112: the total with tax.
    pub total: Money,
    /// BT-113: the amount applied at the issue.
    pub paid: Money,
    /// BT-115: the amount due.
    pub due: Money,
}

/// The tax of one category at one rate (BG-23).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaxSubtotal {
    /// BT-116.
    pub base: Money,
    /// BT-117.
    pub tax: Money,
    /// BT-118.
    pub category: TaxCategory,
    /// BT-119. Absent for what is not subject to tax, except in XRechnung.
    pub rate: Option<Percentage>,
    /// BT-120.
    pub exemption_reason: Option<String>,
    /// BT-121.
    pub exemption_code: Option<ExemptionCode>,
}

/// A line (BG-25).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvoiceLine {
    /// BT-126: the number of the line, from 1.
    pub number: usize,
    /// BT-129. Below zero where the price would be below zero.
    pub quantity: Decimal,
    /// BT-130.
    pub unit_code: UnitCode,
    /// BT-131.
    pub amount: Money,
    /// BG-26.
    pub period: Period,
    /// BT-146: the price of one unit, at least zero.
    pub unit_price: Decimal,
    /// BT-151.
    pub category: TaxCategory,
    /// BT-152.
    pub rate: Percentage,
    /// BT-153: the name of the line, after the product's own name if it has one.
    pub name: String,
    /// BT-154: how the amount follows from quantities and prices, if the line's own quantity and price don't show it.
    pub description: Option<String>,
    /// BT-155.
    pub item_id: Option<String>,
    /// BG-32: the number of the product in the contract, if the document has several products of one pricing.
    pub product_no: Option<ProductNo>,
}

/// The name of the attribute with the number of a product (BT-160).
pub const PRODUCT_NO: &str = "product_no";

impl BusinessTerms {
    /// Returns the specification identifier (BT-24).
    pub fn specification(&self) -> String {
        match self.profile {
            EInvoiceProfile::Xrechnung => format!("{EN16931}#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0"),
            EInvoiceProfile::Peppol => format!("{EN16931}#compliant#urn:fdc:peppol.eu:2017:poacc:billing:3.0"),
            EInvoiceProfile::None | EInvoiceProfile::En16931 | EInvoiceProfile::FacturX => EN16931.to_owned(),
        }
    }
}

/// Returns a text without surrounding spaces, or `None` if nothing remains. A blank element counts as missing.
pub(super) fn filled(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

impl Party {
    /// Creates a party from its registered name, its name and its reference. Documents that aren't subject to tax must not have a
    /// VAT number (BR-O-02).
    pub(super) fn of(names: (Option<&OneLine>, &OneLine, &str), details: &PartyDetails, with_vat_id: bool) -> Self {
        let (legal_name, name, reference) = names;
        let (legal_name, name) = (legal_name.and_then(|name| filled(name.as_str())), filled(name.as_str()));
        let registered = legal_name.or_else(|| name.clone()).unwrap_or_else(|| reference.to_owned());
        let registration = details.registration.as_ref().and_then(|registration| {
            Some(PartyIdentifier { scheme: registration.scheme, value: filled(registration.value.as_str())? })
        });
        Self {
            trading_name: name.filter(|name| *name != registered),
            name: registered,
            registration,
            vat_id: details.vat_id.as_ref().filter(|_| with_vat_id).map(|id| id.as_str().to_owned()),
            electronic_address: details.electronic_address.clone().filter(|address| filled(address.value.as_str()).is_some()),
            address: details.address.as_ref().map(PostalAddress::of).unwrap_or_default(),
        }
    }
}

impl PostalAddress {
    fn of(address: &Address) -> Self {
        let part = |part: &Option<Prose>| part.as_ref().and_then(|part| filled(part.as_str()));
        Self {
            line1: part(&address.line1),
            line2: part(&address.line2),
            city: part(&address.city),
            post_code: part(&address.zip_code),
            subdivision: part(&address.state),
            country: address.country_code,
        }
    }
}

impl Account {
    /// Returns the account of a profile; `None` without a number.
    pub(super) fn of(profile: &BankAccountProfile) -> Option<Self> {
        let iban = profile.iban.as_ref().map(|iban| iban.as_str().to_owned());
        let is_iban = iban.is_some();
        let number = iban.or_else(|| filled(profile.account_number.as_ref()?.as_str()))?;
        Some(Self {
            number,
            is_iban,
            name: profile.account_name.as_ref().and_then(|name| filled(name.as_str())),
            bic: profile.bic.as_ref().map(|bic| bic.as_str().to_owned()),
        })
    }
}
