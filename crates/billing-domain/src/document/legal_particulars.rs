//! The document as a legal paper (billing rules 10): what is frozen beside lines and totals, and what the law asks for that isn't
//! there.

use chrono::NaiveDate;

use super::numbering::DocumentNumber;
use super::totals::DocumentContent;
use super::{DocumentKind, Parties};
use crate::money::Percentage;
use crate::party::bank::BankAccountProfile;
use crate::party::legal::{
    BuyerReference, Contact, ElectronicAddress, Language, LegalNote, LegalProfile, PaperSize, Registration, VatId, tax_label,
};
use crate::party::{Address, Customer, Entity};
use crate::tax::{TaxInCurrency, mixes_untaxable};
use crate::text::OneLine;

/// What a document issued before papers were frozen lacks: all of it.
const FORMAT: &str = "/format";

/// What a document says as a paper. Documents of format 1 don't have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalParticulars {
    /// Who pays.
    pub customer: PartyDetails,
    /// Who bills.
    pub entity: PartyDetails,
    /// Whom of the seller a payer asks.
    pub contact: Option<Contact>,
    /// What the payer wants to find on it.
    pub buyer_reference: Option<BuyerReference>,
    /// Where to pay, where the payment details name an account that is known.
    pub bank_account: Option<BankAccountProfile>,
    /// In which language.
    pub language: Language,
    /// The size of its pages.
    pub size: PaperSize,
    /// What taxes are called.
    pub tax_label: OneLine,
    /// What the seller's law wants on it.
    pub legal_notes: Vec<LegalNote>,
    /// The document that it corrects, where that is issued; of children of an invoice that isn't issued, the first.
    pub corrects: Option<CorrectedDocument>,
    /// The last of the children that it corrects, of an invoice that isn't issued, where there are several.
    pub corrects_last: Option<CorrectedDocument>,
    /// Its taxes in the seller's own currency, where that is another.
    pub tax_in_currency: Option<TaxInCurrency>,
}

/// What is known of a party beside its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartyDetails {
    /// Postal address.
    pub address: Option<Address>,
    /// E-mail address.
    pub email: Option<OneLine>,
    /// Any other tax number.
    pub tax_id: Option<OneLine>,
    /// Number for value added tax.
    pub vat_id: Option<VatId>,
    /// Number in a register.
    pub registration: Option<Registration>,
    /// Where e-invoices go to.
    pub electronic_address: Option<ElectronicAddress>,
}

/// An issued document that another one corrects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectedDocument {
    /// Its number.
    pub number: DocumentNumber,
    /// When it was issued.
    pub issue_date: NaiveDate,
}

/// What of a paper isn't its parties'.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegalParticularsInput {
    /// What its products say the payer wants to find on it.
    pub buyer_reference: Option<BuyerReference>,
    /// Where to pay.
    pub bank_account: Option<BankAccountProfile>,
    /// The document that it corrects, or the first of several.
    pub corrects: Option<CorrectedDocument>,
    /// The last of several documents that it corrects.
    pub corrects_last: Option<CorrectedDocument>,
    /// Its taxes in the seller's own currency.
    pub tax_in_currency: Option<TaxInCurrency>,
}

impl PartyDetails {
    fn of(address: Option<&Address>, email: Option<&OneLine>, tax_id: Option<&OneLine>, legal: &LegalProfile) -> Self {
        Self {
            address: address.cloned(),
            email: email.cloned(),
            tax_id: tax_id.cloned(),
            vat_id: legal.vat_id.clone(),
            registration: legal.registration.clone(),
            electronic_address: legal.electronic_address.clone(),
        }
    }
}

impl LegalParticulars {
    /// As the catalog has its parties now.
    pub fn of(customer: &Customer, entity: &Entity, facts: LegalParticularsInput) -> Self {
        let (payer, seller, paper) = (&customer.profile, &entity.profile, &entity.profile.paper);
        let country = seller.address.as_ref().and_then(|address| address.country_code);
        let email = paper.contact.as_ref().and_then(|contact| contact.email.as_ref());
        Self {
            customer: PartyDetails::of(payer.billing_address.as_ref(), payer.email.as_ref(), payer.tax_id.as_ref(), &payer.legal),
            entity: PartyDetails::of(seller.address.as_ref(), email, seller.tax_id.as_ref(), &seller.legal),
            contact: paper.contact.clone(),
            buyer_reference: facts.buyer_reference.or_else(|| payer.buyer_reference.clone()),
            bank_account: facts.bank_account,
            language: payer.legal.language.or(seller.legal.language).unwrap_or_default(),
            size: paper.size.unwrap_or_else(|| PaperSize::of(country)),
            tax_label: paper.tax_label.clone().unwrap_or_else(|| tax_label(country)),
            legal_notes: paper.legal_notes.clone(),
            corrects: facts.corrects,
            corrects_last: facts.corrects_last,
            tax_in_currency: facts.tax_in_currency,
        }
    }
}

/// What the law asks for that a document doesn't say (billing rules 10), as pointers into the document: both parties' legal name and
/// address, a tax number of the seller, a category for what isn't taxed, and nothing beside what isn't subject to tax.
pub fn missing(parties: &Parties, paper: Option<&LegalParticulars>, content: &DocumentContent) -> Vec<String> {
    let Some(paper) = paper else { return vec![FORMAT.to_owned()] };
    let has_address = |party: &PartyDetails| party.address.as_ref().is_some_and(|address| *address != Address::default());
    let asked = [
        ("/customer/legal_name", parties.customer_legal_name.is_some()),
        ("/customer/address", has_address(&paper.customer)),
        ("/entity/legal_name", parties.entity_legal_name.is_some()),
        ("/entity/address", has_address(&paper.entity)),
        ("/entity/vat_id", paper.entity.vat_id.is_some() || paper.entity.tax_id.is_some()),
    ];
    let mut missing: Vec<String> =
        asked.into_iter().filter(|(_, is_there)| !is_there).map(|(pointer, _)| pointer.to_owned()).collect();
    for (i, tax) in content.taxes.iter().enumerate() {
        if tax.treatment.rate == Percentage::ZERO && tax.treatment.basis.category.is_none() {
            missing.push(format!("/taxes/{i}/tax_category"));
        }
    }
    if mixes_untaxable(content.taxes.iter().filter_map(|tax| tax.treatment.basis.category)) {
        missing.push("/taxes".to_owned());
    }
    missing
}

/// Whether a document of a kind and purpose puts its parent right, rather than billing beside it.
pub(crate) fn is_correction(kind: DocumentKind, purpose: super::Purpose) -> bool {
    kind != DocumentKind::Invoice || purpose == super::Purpose::Adjustment
}
