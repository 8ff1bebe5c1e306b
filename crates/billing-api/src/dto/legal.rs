//! Legal content of customers, entities and documents: identification numbers, addresses, notes and tax categories.

use billing_application::catalog::TaxBasisPatch;
use billing_domain::calendar::Date;
use billing_domain::codes::{AddressScheme, ExemptionCode, IdentifierScheme, NoteSubject};
use billing_domain::contract::amendment::TaxTreatmentPatch;
use billing_domain::document::legal_particulars::CorrectedDocument;
use billing_domain::money::{Currency, Percentage};
use billing_domain::party::appearance::{AccentColor, Footer, Logo};
use billing_domain::party::legal::{
    Contact, DocumentSettings, EInvoiceProfile, EInvoiceSettings, ElectronicAddress, Language, LegalNote, LegalProfile,
    MAX_LEGAL_NOTES, PaperSize, Registration, Strictness, VatId,
};
use billing_domain::patch::{Changes, Patch};
use billing_domain::tax::{DatedTax, DefaultTaxes, StatedTax, TaxBasis, TaxCategory, TaxInCurrency};
use billing_domain::text::{OneLine, Prose};
use serde::ser::SerializeMap;

use super::declare::{AnsweredFields, AnsweredPart, Editable, Fieldset, Listed, SharedObjectResponse, answer, fields, object};
use super::input::Fields;
use super::schemas::{FieldSchema, Schemas};
use super::values::{CurrencyCode, DateText, Email};
use super::wire::ExactNumber;

object! {
    /// A company registration number.
    answer Registration as "Registration" {
        /// Identifier scheme of ISO/IEC 6523, such as 0002 for SIREN; omitted if the number implies it.
        scheme: Option<IdentifierScheme>,
        /// Registration number.
        value: OneLine,
    }
}

object! {
    /// Electronic address for e-invoices.
    answer ElectronicAddress as "ElectronicAddress" {
        /// Address scheme, such as 0204 for a Leitweg-ID or EM for an e-mail address.
        scheme: AddressScheme,
        /// Address.
        value: OneLine,
    }
}

object! {
    /// The seller's contact for questions from payers.
    answer Contact as "Contact" {
        /// Person or department.
        name: Option<OneLine>,
        /// Telephone number.
        phone: Option<OneLine>,
        /// E-mail address.
        email: Option<Email>,
    }
}

object! {
    /// E-invoices of an entity.
    answer EInvoiceSettings as "EInvoiceSettings" {
        /// Profile for customers without a profile of their own. Default: EN16931. XRECHNUNG requires a whole contact.
        profile: EInvoiceProfile = EInvoiceProfile::default(),
        /// Whether a document that cannot be an e-invoice stays a draft. Default: false.
        required: bool = false,
    }
}

object! {
    /// A legal note required by the seller's jurisdiction.
    answer LegalNote as "LegalNote" {
        /// Subject code of UNTDID 4451, such as PMD, PMT or AAB in France.
        subject_code: Option<NoteSubject>,
        /// Text of the note.
        text: Prose,
    }
}

impl Listed for LegalNote {
    const MAX: usize = MAX_LEGAL_NOTES;
}

pub type RegistrationJson = SharedObjectResponse<Registration>;
pub type ElectronicAddressJson = SharedObjectResponse<ElectronicAddress>;
pub type ContactJson = SharedObjectResponse<Contact>;
pub type LegalNoteJson = SharedObjectResponse<LegalNote>;

fields! {
    edit answer LegalProfile {
        /// VAT identification number.
        vat_id: Option<VatId>,
        /// Company registration number.
        registration: Option<Registration>,
        /// Electronic address for e-invoices.
        electronic_address: Option<ElectronicAddress>,
        /// Language of documents. Default for a customer: the entity's; for an entity: English.
        language: Option<Language>,
    }
}

fields! {
    TaxBasis {
        /// Tax category for a rate of 0; E, AE, G and O require a reason. Default: the product's, else the customer's,
        /// else the entity's.
        category as "tax_category": Option<TaxCategory>,
        /// Code of the exemption reason.
        exemption_code: Option<ExemptionCode>,
        /// Text of the exemption reason.
        exemption_reason: Option<OneLine>,
    }
}

fields! {
    answer TaxBasis {
        /// Tax category for a rate of 0.
        category as "tax_category": Option<TaxCategory>,
        /// Code of the exemption reason.
        exemption_code: Option<ExemptionCode>,
        /// Text of the exemption reason.
        exemption_reason: Option<OneLine>,
    }
}

fields! {
    StatedTax {
        /// Tax in percent.
        rate as "tax": Option<Percentage>,
        @flat basis: TaxBasis,
    }
}

fields! {
    answer StatedTax {
        /// Tax in percent.
        rate as "tax": Option<Percentage>,
        @flat basis: TaxBasis,
    }
}

object! {
    /// A default tax from a date.
    answer DatedTax as "DefaultTax" {
        /// First day of the default tax; null if it has no start date.
        from: Option<Date>,
        @flat stated: StatedTax,
    }
}

impl Listed for DatedTax {
    const MAX: usize = 100;
}

/// Name of the default taxes in responses. A request states one default tax.
const TAX_TREATMENTS: &str = "tax_treatments";

impl Fieldset for DefaultTaxes {
    fn names() -> &'static [&'static str] {
        &[]
    }

    fn read_fields(_: Fields<'_>) -> Option<Self> {
        Some(Self::default())
    }

    fn described(_: &mut Schemas) -> Vec<FieldSchema> {
        Vec::new()
    }
}

impl Editable for DefaultTaxes {
    fn read_changes(_: Fields<'_>) -> Option<Changes<Self>> {
        Some(Changes::none())
    }

    fn described_in_edit(_: &mut Schemas) -> Vec<FieldSchema> {
        Vec::new()
    }
}

impl AnsweredFields for DefaultTaxes {
    fn answer_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        <Vec<DatedTax> as AnsweredPart>::answer(&self.as_slice().to_vec(), TAX_TREATMENTS, map)
    }

    fn described_in_answers(schemas: &mut Schemas) -> Vec<FieldSchema> {
        let mut all = Vec::new();
        let meaning = "Default taxes of products, oldest first. `tax_category`, `exemption_code`, `exemption_reason` and, for a \
                       customer, `tax` are today's defaults.";
        <Vec<DatedTax> as AnsweredPart>::describe(TAX_TREATMENTS, meaning, schemas, &mut all);
        all
    }
}

fields! {
    edit TaxBasisPatch {
        @flat treatment: TaxTreatmentPatch,
        /// First day of the stated tax, tax_category, exemption_code and exemption_reason, past or future. Default taxes
        /// from that day on are replaced. Default: today, or no start date if no default tax is in force.
        from as "tax_from": Option<Date>,
    }
}

fields! {
    edit TaxTreatmentPatch {
        /// Tax category for a rate of 0; E, AE, G and O require a reason. Default: the product's, else the customer's,
        /// else the entity's.
        category as "tax_category": Patch<TaxCategory>,
        /// Code of the exemption reason.
        exemption_code: Patch<ExemptionCode>,
        /// Text of the exemption reason.
        exemption_reason: Patch<OneLine>,
    }
}

fields! {
    edit answer DocumentSettings {
        /// Whether documents with missing legal information are issued. Default: LENIENT, which issues them and reports
        /// the missing fields.
        strictness as "paper": Strictness = Strictness::default(),
        /// Page size of documents. Default: by country.
        size as "paper_size": Option<PaperSize>,
        /// Name of the tax on documents. Default: by country and language of the document.
        tax_label: Option<OneLine>,
        /// Contact for questions from payers.
        contact: Option<Contact>,
        /// Legal notes required on documents by the entity's jurisdiction.
        legal_notes: Vec<LegalNote> = Vec::new(),
        /// Currency in which the entity accounts for tax, if it can differ from a document's currency.
        tax_currency: Option<Currency>,
        /// E-invoices of the entity's documents. Default: the profile EN16931, not required.
        e_invoice: EInvoiceSettings = EInvoiceSettings::default(),
        /// Logo on documents. A PNG file is encoded again. An SVG file can have only shapes, gradients and styles.
        logo: Option<Logo>,
        /// Color of the title and the rules of documents. Its contrast to white must be at least 3:1.
        accent_color: Option<AccentColor>,
        /// Text at the end of documents.
        footer: Option<Footer>,
    }
}

answer! {
    /// An issued document that another document corrects.
    CorrectedDocumentJson of corrected: CorrectedDocument {
        /// Number.
        #[schema(example = "UB-INV-1")]
        document_number: String = corrected.number.to_string(),
        /// Date of issue.
        issue_date: DateText = corrected.issue_date,
    }
}

answer! {
    /// The taxes of a document in the entity's tax currency.
    TaxInCurrencyJson of tax: TaxInCurrency {
        /// Tax currency.
        currency: CurrencyCode = tax.rate.to,
        /// Value of one unit of the document's currency in the tax currency.
        exchange_rate: ExactNumber = tax.rate.rate,
        /// First day of the exchange rate.
        exchange_rate_date: DateText = tax.rate.date,
        /// Taxes of the document in the tax currency, in the same order.
        amounts: Vec<ExactNumber> = tax.amounts.iter().copied(),
        /// Sum of the amounts.
        total_tax: ExactNumber = tax.total,
    }
}
