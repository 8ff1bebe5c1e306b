//! What customers, entities and documents say as legal papers: numbers, addresses, notes and how something is taxed.

use billing_application::catalog::TaxBasisPatch;
use billing_domain::calendar::Date;
use billing_domain::codes::{AddressScheme, ExemptionCode, IdentifierScheme, NoteSubject};
use billing_domain::contract::amendment::TaxTreatmentPatch;
use billing_domain::document::legal_particulars::CorrectedDocument;
use billing_domain::money::{Currency, Percentage};
use billing_domain::party::legal::{
    Contact, DocumentSettings, ElectronicAddress, Language, LegalNote, LegalProfile, MAX_LEGAL_NOTES, PaperSize, Registration,
    Strictness, VatId,
};
use billing_domain::patch::{Changes, Patch};
use billing_domain::tax::{DatedTax, DefaultTaxes, StatedTax, TaxBasis, TaxCategory, TaxInCurrency};
use billing_domain::text::{OneLine, Prose};
use serde::ser::SerializeMap;

use super::declare::{AnsweredFields, AnsweredPart, Editable, Fieldset, Listed, SharedObjectResponse, answer, fields, object};
use super::input::Fields;
use super::schemas::{FieldSchema, Schemas};
use super::values::Email;
use super::wire::{CurrencyCode, DateText, ExactNumber};

object! {
    /// A number in a register of legal persons.
    answer Registration as "Registration" {
        /// Whose register, as ISO/IEC 6523 has it: 0002 is SIREN. None where the number says it.
        scheme: Option<IdentifierScheme>,
        /// The number.
        value: OneLine,
    }
}

object! {
    /// Where e-invoices go to.
    answer ElectronicAddress as "ElectronicAddress" {
        /// Which kind of address: 0204 is a Leitweg-ID, EM an e-mail address.
        scheme: AddressScheme,
        /// The address.
        value: OneLine,
    }
}

object! {
    /// Whom of the seller a payer asks.
    answer Contact as "Contact" {
        /// A person or a department.
        name: Option<OneLine>,
        /// Telephone number.
        phone: Option<OneLine>,
        /// E-mail address.
        email: Option<Email>,
    }
}

object! {
    /// A text that the seller's law asks for.
    answer LegalNote as "LegalNote" {
        /// What it is about, as UNTDID 4451 has it: PMD, PMT or AAB in France.
        subject_code: Option<NoteSubject>,
        /// The text.
        text: Prose,
    }
}

impl Listed for LegalNote {
    const MAX: usize = MAX_LEGAL_NOTES;
}

pub(crate) type RegistrationJson = SharedObjectResponse<Registration>;
pub(crate) type ElectronicAddressJson = SharedObjectResponse<ElectronicAddress>;
pub(crate) type ContactJson = SharedObjectResponse<Contact>;
pub(crate) type LegalNoteJson = SharedObjectResponse<LegalNote>;

fields! {
    edit answer LegalProfile {
        /// Number for value added tax.
        vat_id: Option<VatId>,
        /// Number in a register.
        registration: Option<Registration>,
        /// Where e-invoices go to.
        electronic_address: Option<ElectronicAddress>,
        /// In which language documents are written: of a customer the entity's, of an entity English when left out.
        language: Option<Language>,
    }
}

fields! {
    TaxBasis {
        /// How it is taxed at a rate of 0; when left out, as the product states it, else the customer, else the entity. E, AE, G and O
        /// need a reason.
        category as "tax_category": Option<TaxCategory>,
        /// The reason, as a code.
        exemption_code: Option<ExemptionCode>,
        /// The reason, in words.
        exemption_reason: Option<OneLine>,
    }
}

fields! {
    answer TaxBasis {
        /// How it is taxed at a rate of 0.
        category as "tax_category": Option<TaxCategory>,
        /// The reason, as a code.
        exemption_code: Option<ExemptionCode>,
        /// The reason, in words.
        exemption_reason: Option<OneLine>,
    }
}

fields! {
    StatedTax {
        /// Percent.
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
    /// A default tax, from a day on.
    answer DatedTax as "DefaultTax" {
        /// The first day it holds; null since the beginning.
        from: Option<Date>,
        @flat stated: StatedTax,
    }
}

impl Listed for DatedTax {
    const MAX: usize = 100;
}

/// The name of default taxes in answers. Requests state one of them at a time.
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
        let meaning = "The default taxes of products that state none, oldest first. `tax_category`, `exemption_code`, \
                       `exemption_reason` and, of a customer, `tax` are those of today.";
        <Vec<DatedTax> as AnsweredPart>::describe(TAX_TREATMENTS, meaning, schemas, &mut all);
        all
    }
}

fields! {
    edit TaxBasisPatch {
        @flat treatment: TaxTreatmentPatch,
        /// The first day on which tax, tax_category, exemption_code and exemption_reason hold, past or future; what was set for that day and
        /// later ones goes. Left out: today, or since the beginning where none is in force.
        from as "tax_from": Option<Date>,
    }
}

fields! {
    edit TaxTreatmentPatch {
        /// How it is taxed at a rate of 0; when left out, as the product states it, else the customer, else the entity. E, AE, G and O
        /// need a reason.
        category as "tax_category": Patch<TaxCategory>,
        /// The reason, as a code.
        exemption_code: Patch<ExemptionCode>,
        /// The reason, in words.
        exemption_reason: Patch<OneLine>,
    }
}

fields! {
    edit answer DocumentSettings {
        /// Whether documents are issued that lack what the law asks for; LENIENT when left out: they are, and say what they lack.
        strictness as "paper": Strictness = Strictness::default(),
        /// The size of documents' pages; its country's when left out.
        size as "paper_size": Option<PaperSize>,
        /// What taxes are called on documents; its country's word when left out.
        tax_label: Option<OneLine>,
        /// Whom payers ask.
        contact: Option<Contact>,
        /// What its law wants on documents.
        legal_notes: Vec<LegalNote> = Vec::new(),
        /// The currency that it accounts for tax in, where that is another than a document's.
        tax_currency: Option<Currency>,
    }
}

answer! {
    /// The issued document that another one corrects.
    CorrectedDocumentJson of corrected: CorrectedDocument {
        /// Its number.
        #[schema(example = "UB-INV-1")]
        document_number: String = corrected.number.to_string(),
        /// When it was issued.
        issue_date: DateText = corrected.issue_date,
    }
}

answer! {
    /// A document's taxes in the currency that its entity accounts for them in.
    TaxInCurrencyJson of tax: TaxInCurrency {
        /// That currency.
        currency: CurrencyCode = tax.rate.to,
        /// One of the document's currency in it.
        exchange_rate: ExactNumber = tax.rate.rate,
        /// From when that rate holds.
        exchange_rate_date: DateText = tax.rate.date,
        /// Each of the document's taxes, in their order.
        amounts: Vec<ExactNumber> = tax.amounts.iter().copied(),
        /// Their sum.
        total_tax: ExactNumber = tax.total,
    }
}
