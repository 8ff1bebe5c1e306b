//! The stored legal data of parties and the legal particulars of documents. Empty values are omitted.

use billing_domain::codes::{AddressScheme, ExemptionCode, IdentifierScheme, NoteSubject};
use billing_domain::document::legal_particulars::{CorrectedDocument, LegalParticulars, PartyDetails, SupplyCategory};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::money::{Currency, Money, Percentage, Price};
use billing_domain::party::Address;
use billing_domain::party::appearance::{AccentColor, Footer, Logo};
use billing_domain::party::bank::{BankAccountProfile, Bic, Iban, RoutingNumber};
use billing_domain::party::legal::{
    BuyerReference, Contact, DocumentSettings, EInvoiceProfile, EInvoiceSettings, ElectronicAddress, Language, LegalNote,
    LegalProfile, PaperSize, Registration, Strictness, VatId,
};
use billing_domain::tax::{ConvertedTax, DatedTax, DefaultTaxes, ExchangeRate, StatedTax, TaxBasis, TaxCategory, TaxInCurrency};
use billing_domain::text::{OneLine, Prose};
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::issued::NumberMirror;
use super::party::AddressMirror;
use super::{column, list_of, option_of};
use crate::text_value;

#[derive(Serialize, Deserialize)]
#[serde(remote = "LegalProfile")]
struct LegalMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    vat_id: Option<VatId>,
    #[serde(with = "registration", default, skip_serializing_if = "Option::is_none")]
    registration: Option<Registration>,
    #[serde(with = "electronic_address", default, skip_serializing_if = "Option::is_none")]
    electronic_address: Option<ElectronicAddress>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    language: Option<Language>,
}
column!(
    /// The legal data of a party.
    StoredLegalRef, StoredLegal: LegalProfile = "LegalMirror"
);

/// Returns whether neither a category nor a reason is stated.
pub(super) fn is_unstated(basis: &TaxBasis) -> bool {
    *basis == TaxBasis::default()
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TaxBasis")]
pub(super) struct TaxBasisMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    category: Option<TaxCategory>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    exemption_code: Option<ExemptionCode>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    exemption_reason: Option<OneLine>,
}

column!(
    /// A tax category, and the reason when no tax applies.
    StoredTaxBasisRef, StoredTaxBasis: TaxBasis = "TaxBasisMirror"
);

/// A default tax. Omitted fields are not stated here; another level may state them.
#[derive(Serialize, Deserialize)]
struct StoredDatedTax {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    from: Option<NaiveDate>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    rate: Option<Percentage>,
    #[serde(with = "TaxBasisMirror", default, skip_serializing_if = "is_unstated")]
    basis: TaxBasis,
}

mod default_taxes {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::{DatedTax, DefaultTaxes, StatedTax, StoredDatedTax};

    pub(super) fn serialize<S: Serializer>(taxes: &DefaultTaxes, serializer: S) -> Result<S::Ok, S::Error> {
        // The pattern names every field, so that a new field fails to compile.
        serializer.collect_seq(taxes.as_slice().iter().cloned().map(|tax| {
            let DatedTax { from, stated: StatedTax { rate, basis } } = tax;
            StoredDatedTax { from, rate, basis }
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DefaultTaxes, D::Error> {
        let stored = Vec::<StoredDatedTax>::deserialize(deserializer)?.into_iter();
        let dated = |tax: StoredDatedTax| DatedTax { from: tax.from, stated: StatedTax { rate: tax.rate, basis: tax.basis } };
        Ok(DefaultTaxes::new(stored.map(dated).collect()))
    }
}
column!(
    /// The default taxes of a customer or an entity.
    StoredDefaultTaxesRef, StoredDefaultTaxes: DefaultTaxes = "default_taxes"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Registration")]
struct RegistrationMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    scheme: Option<IdentifierScheme>,
    #[serde(with = "text_value")]
    value: OneLine,
}
option_of!(registration: Registration = "RegistrationMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "ElectronicAddress")]
struct ElectronicAddressMirror {
    #[serde(with = "text_value")]
    scheme: AddressScheme,
    #[serde(with = "text_value")]
    value: OneLine,
}
option_of!(electronic_address: ElectronicAddress = "ElectronicAddressMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentSettings")]
struct PaperProfileMirror {
    #[serde(with = "text_value")]
    strictness: Strictness,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    size: Option<PaperSize>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    tax_label: Option<OneLine>,
    #[serde(with = "contact", default, skip_serializing_if = "Option::is_none")]
    contact: Option<Contact>,
    #[serde(with = "legal_notes", default, skip_serializing_if = "Vec::is_empty")]
    legal_notes: Vec<LegalNote>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    tax_currency: Option<Currency>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    logo: Option<Logo>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    accent_color: Option<AccentColor>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    footer: Option<Footer>,
    #[serde(with = "EInvoiceSettingsMirror", default, skip_serializing_if = "EInvoiceSettings::is_default")]
    e_invoice: EInvoiceSettings,
}
column!(
    /// The document settings of an entity.
    StoredPaperProfileRef, StoredPaperProfile: DocumentSettings = "PaperProfileMirror"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "EInvoiceSettings")]
struct EInvoiceSettingsMirror {
    #[serde(with = "text_value")]
    profile: EInvoiceProfile,
    required: bool,
}

/// Returns whether a profile is the one of documents that were issued before profiles existed. It is omitted.
fn is_default_profile(profile: &EInvoiceProfile) -> bool {
    *profile == EInvoiceProfile::default()
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Contact")]
struct ContactMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    name: Option<OneLine>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    phone: Option<OneLine>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    email: Option<OneLine>,
}
option_of!(contact: Contact = "ContactMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "LegalNote")]
struct LegalNoteMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    subject_code: Option<NoteSubject>,
    #[serde(with = "text_value")]
    text: Prose,
}
list_of!(legal_notes: LegalNote = "LegalNoteMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "LegalParticulars")]
pub(super) struct PaperMirror {
    #[serde(with = "PartyDetailsMirror")]
    customer: PartyDetails,
    #[serde(with = "PartyDetailsMirror")]
    entity: PartyDetails,
    #[serde(with = "contact", default, skip_serializing_if = "Option::is_none")]
    contact: Option<Contact>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    buyer_reference: Option<BuyerReference>,
    #[serde(with = "bank_account", default, skip_serializing_if = "Option::is_none")]
    bank_account: Option<BankAccountProfile>,
    #[serde(with = "text_value")]
    language: Language,
    #[serde(with = "text_value")]
    size: PaperSize,
    #[serde(with = "text_value")]
    tax_label: OneLine,
    #[serde(with = "legal_notes", default, skip_serializing_if = "Vec::is_empty")]
    legal_notes: Vec<LegalNote>,
    #[serde(with = "corrected", default, skip_serializing_if = "Option::is_none")]
    corrects: Option<CorrectedDocument>,
    #[serde(with = "corrected", default, skip_serializing_if = "Option::is_none")]
    corrects_last: Option<CorrectedDocument>,
    #[serde(with = "tax_in_currency", default, skip_serializing_if = "Option::is_none")]
    tax_in_currency: Option<TaxInCurrency>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    logo: Option<Logo>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    accent_color: Option<AccentColor>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    footer: Option<Footer>,
    #[serde(with = "text_value", default, skip_serializing_if = "is_default_profile")]
    e_invoice_profile: EInvoiceProfile,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    supply: Option<SupplyCategory>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PartyDetails")]
struct PartyDetailsMirror {
    #[serde(with = "address", default, skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    email: Option<OneLine>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    tax_id: Option<OneLine>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    vat_id: Option<VatId>,
    #[serde(with = "registration", default, skip_serializing_if = "Option::is_none")]
    registration: Option<Registration>,
    #[serde(with = "electronic_address", default, skip_serializing_if = "Option::is_none")]
    electronic_address: Option<ElectronicAddress>,
}
option_of!(address: Address = "AddressMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "BankAccountProfile")]
struct BankAccountMirror {
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    account_name: Option<OneLine>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    iban: Option<Iban>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    account_number: Option<OneLine>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    routing_number: Option<RoutingNumber>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    bic: Option<Bic>,
    #[serde(with = "text_value::option", default, skip_serializing_if = "Option::is_none")]
    bank_name: Option<OneLine>,
}
option_of!(bank_account: BankAccountProfile = "BankAccountMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "CorrectedDocument")]
struct CorrectedMirror {
    #[serde(with = "NumberMirror")]
    number: DocumentNumber,
    #[serde(with = "text_value")]
    issue_date: NaiveDate,
}
option_of!(corrected: CorrectedDocument = "CorrectedMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "TaxInCurrency")]
struct TaxInCurrencyMirror {
    #[serde(with = "ExchangeRateMirror")]
    rate: ExchangeRate,
    #[serde(with = "text_value::list")]
    amounts: Vec<Money>,
    #[serde(with = "text_value")]
    total: Money,
}
option_of!(tax_in_currency: TaxInCurrency = "TaxInCurrencyMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "ConvertedTax")]
struct ConvertedTaxMirror {
    #[serde(with = "ExchangeRateMirror")]
    rate: ExchangeRate,
    #[serde(with = "text_value")]
    tax: Money,
    #[serde(with = "text_value")]
    converted: Money,
}
column!(
    /// The tax of an issued document before and after its conversion.
    StoredConvertedTaxRef, StoredConvertedTax: ConvertedTax = "ConvertedTaxMirror"
);

#[derive(Serialize, Deserialize)]
#[serde(remote = "ExchangeRate")]
struct ExchangeRateMirror {
    #[serde(with = "text_value")]
    from: Currency,
    #[serde(with = "text_value")]
    to: Currency,
    #[serde(with = "text_value")]
    date: NaiveDate,
    #[serde(with = "text_value")]
    rate: Price,
}

/// Optional legal particulars behind a pointer.
pub(super) mod boxed {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{LegalParticulars, PaperMirror};

    pub(in super::super) fn serialize<S: Serializer>(
        paper: &Option<Box<LegalParticulars>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Item<'a>(#[serde(with = "PaperMirror")] &'a LegalParticulars);
        paper.as_deref().map(Item).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Box<LegalParticulars>>, D::Error> {
        #[derive(Deserialize)]
        struct Item(#[serde(with = "PaperMirror")] LegalParticulars);
        Ok(Option::<Item>::deserialize(deserializer)?.map(|item| Box::new(item.0)))
    }
}
