//! What customers, entities and documents say as legal papers: numbers, addresses, notes and how something is taxed, both ways.

use billing_domain::codes::{AddressScheme, ExemptionCode, IdentifierScheme, NoteSubject};
use billing_domain::contract::amendment::TreatmentPatch;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::paper::Corrected;
use billing_domain::money::Percentage;
use billing_domain::party::legal::{
    BuyerReference, Contact, ElectronicAddress, LegalNote, LegalProfile, MAX_LEGAL_NOTES, PaperProfile, Registration, VatId,
};
use billing_domain::tax::{TaxInCurrency, TaxTreatment};
use serde::Serialize;
use utoipa::ToSchema;

use super::input::{Fields, Node};
use super::wire::{
    AddressSchemeCode, CurrencyCode, DateText, EmailText, ExactNumber, IdentifierSchemeCode, LineText, NoteSubjectCode, ProseText,
};
use super::words::{LanguageWord, PaperSizeWord, StrictnessWord, TaxCategoryWord};

/// A number in a register of legal persons.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RegistrationJson {
    /// Whose register, as ISO/IEC 6523 has it: 0002 is SIREN. None where the number says it.
    scheme: Option<IdentifierSchemeCode>,
    /// The number.
    value: LineText,
}

/// Where e-invoices go to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ElectronicAddressJson {
    /// Which kind of address: 0204 is a Leitweg-ID, EM an e-mail address.
    scheme: AddressSchemeCode,
    /// The address.
    value: LineText,
}

/// Whom of the seller a payer asks.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContactJson {
    /// A person or a department.
    name: Option<LineText>,
    /// Telephone number.
    phone: Option<LineText>,
    /// E-mail address.
    email: Option<EmailText>,
}

/// A text that the seller's law asks for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LegalNoteJson {
    /// What it is about, as UNTDID 4451 has it: PMD, PMT or AAB in France.
    subject_code: Option<NoteSubjectCode>,
    /// The text.
    text: ProseText,
}

/// The issued document that another one corrects.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CorrectedDocumentJson {
    /// Its number.
    #[schema(example = "UB-INV-1")]
    document_number: String,
    /// When it was issued.
    issue_date: DateText,
}

/// A document's taxes in the currency that its entity accounts for them in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TaxInCurrencyJson {
    /// That currency.
    currency: CurrencyCode,
    /// One of the document's currency in it.
    exchange_rate: ExactNumber,
    /// From when that rate holds.
    exchange_rate_date: DateText,
    /// Each of the document's taxes, in their order.
    amounts: Vec<ExactNumber>,
    /// Their sum.
    total_tax: ExactNumber,
}

impl From<&Registration> for RegistrationJson {
    fn from(registration: &Registration) -> Self {
        Self { scheme: registration.scheme.map(IdentifierSchemeCode::from), value: LineText::from(&registration.value) }
    }
}

impl From<&ElectronicAddress> for ElectronicAddressJson {
    fn from(address: &ElectronicAddress) -> Self {
        Self { scheme: AddressSchemeCode::from(address.scheme), value: LineText::from(&address.value) }
    }
}

impl From<&Contact> for ContactJson {
    fn from(contact: &Contact) -> Self {
        Self {
            name: contact.name.as_ref().map(LineText::from),
            phone: contact.phone.as_ref().map(LineText::from),
            email: contact.email.as_ref().map(EmailText::from),
        }
    }
}

impl From<&LegalNote> for LegalNoteJson {
    fn from(note: &LegalNote) -> Self {
        Self { subject_code: note.subject_code.map(NoteSubjectCode::from), text: ProseText::from(&note.text) }
    }
}

impl From<&Corrected> for CorrectedDocumentJson {
    fn from(corrected: &Corrected) -> Self {
        let number: &DocumentNumber = &corrected.number;
        Self { document_number: number.to_string(), issue_date: DateText::from(corrected.issue_date) }
    }
}

impl From<&TaxInCurrency> for TaxInCurrencyJson {
    fn from(tax: &TaxInCurrency) -> Self {
        Self {
            currency: CurrencyCode::from(tax.rate.to),
            exchange_rate: ExactNumber::from(tax.rate.rate),
            exchange_rate_date: DateText::from(tax.rate.date),
            amounts: tax.amounts.iter().map(|amount| ExactNumber::from(*amount)).collect(),
            total_tax: ExactNumber::from(tax.total),
        }
    }
}

/// Reads what customers and entities say of themselves alike; `tax` is what they say in percent.
pub(super) fn profile(fields: Fields<'_>, present: Option<&LegalProfile>, tax: Option<Percentage>) -> LegalProfile {
    let vat_id = present.and_then(|present| present.vat_id.as_ref());
    let registered = present.and_then(|present| present.registration.as_ref());
    let address = present.and_then(|present| present.electronic_address.as_ref());
    let language = present.and_then(|present| present.language.as_ref());
    LegalProfile {
        vat_id: fields.optional_or("vat_id", vat_id, |node| node.parsed(VatId::parse)),
        registration: fields.optional_or("registration", registered, registration),
        electronic_address: fields.optional_or("electronic_address", address, electronic_address),
        language: fields.optional_or("language", language, Node::word::<LanguageWord>),
        treatment: treatment(fields, present.map(|present| &present.treatment), tax),
    }
}

/// Reads how something is taxed at a rate of 0, and holds it against a tax in percent.
pub(super) fn treatment(fields: Fields<'_>, present: Option<&TaxTreatment>, tax: Option<Percentage>) -> TaxTreatment {
    let category = present.and_then(|present| present.category.as_ref());
    let code = present.and_then(|present| present.exemption_code.as_ref());
    let reason = present.and_then(|present| present.exemption_reason.as_ref());
    let treatment = TaxTreatment {
        category: fields.optional_or("tax_category", category, Node::word::<TaxCategoryWord>),
        exemption_code: fields.optional_or("exemption_code", code, |node| node.parsed(ExemptionCode::parse)),
        exemption_reason: fields.optional_or("exemption_reason", reason, Node::line),
    };
    fields.agreed(treatment.check(tax));
    treatment
}

/// The same, of an edit that doesn't know the present values.
pub(super) fn treatment_patch(fields: Fields<'_>) -> TreatmentPatch {
    TreatmentPatch {
        category: fields.patch("tax_category", Node::word::<TaxCategoryWord>),
        exemption_code: fields.patch("exemption_code", |node| node.parsed(ExemptionCode::parse)),
        exemption_reason: fields.patch("exemption_reason", Node::line),
    }
}

/// Reads what the payer wants to find on its documents.
pub(super) fn buyer_reference(node: Node<'_>) -> Option<BuyerReference> {
    node.parsed(BuyerReference::parse)
}

/// Reads what an entity says of its documents as papers.
pub(super) fn paper(fields: Fields<'_>, present: Option<&PaperProfile>) -> PaperProfile {
    let strictness = present.map(|present| &present.strictness);
    let size = present.and_then(|present| present.size.as_ref());
    let label = present.and_then(|present| present.tax_label.as_ref());
    let asked = present.and_then(|present| present.contact.as_ref());
    let notes = present.map(|present| &present.legal_notes);
    let currency = present.and_then(|present| present.tax_currency.as_ref());
    PaperProfile {
        strictness: fields.defaulted("paper", strictness, Default::default(), Node::word::<StrictnessWord>),
        size: fields.optional_or("paper_size", size, Node::word::<PaperSizeWord>),
        tax_label: fields.optional_or("tax_label", label, Node::line),
        contact: fields.optional_or("contact", asked, contact),
        legal_notes: fields.defaulted("legal_notes", notes, Vec::new(), |node| node.list(MAX_LEGAL_NOTES, legal_note)),
        tax_currency: fields.optional_or("tax_currency", currency, Node::currency),
    }
}

fn registration(node: Node<'_>) -> Option<Registration> {
    node.object(|fields| {
        fields.only(&["scheme", "value"]);
        let scheme = fields.optional("scheme", |node| node.parsed(IdentifierScheme::parse));
        let value = fields.required("value", Node::line);
        Some(Registration { scheme, value: value? })
    })
}

fn electronic_address(node: Node<'_>) -> Option<ElectronicAddress> {
    node.object(|fields| {
        fields.only(&["scheme", "value"]);
        let scheme = fields.required("scheme", |node| node.parsed(AddressScheme::parse));
        let value = fields.required("value", Node::line);
        Some(ElectronicAddress { scheme: scheme?, value: value? })
    })
}

fn contact(node: Node<'_>) -> Option<Contact> {
    node.object(|fields| {
        fields.only(&["name", "phone", "email"]);
        Some(Contact {
            name: fields.optional("name", Node::line),
            phone: fields.optional("phone", Node::line),
            email: fields.optional("email", Node::email),
        })
    })
}

fn legal_note(node: Node<'_>) -> Option<LegalNote> {
    node.object(|fields| {
        fields.only(&["subject_code", "text"]);
        let subject_code = fields.optional("subject_code", |node| node.parsed(NoteSubject::parse));
        let text = fields.required("text", Node::prose);
        Some(LegalNote { subject_code, text: text? })
    })
}
