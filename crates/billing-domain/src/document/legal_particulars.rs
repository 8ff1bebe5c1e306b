//! Legal particulars of documents (billing rules 10): the legal content frozen in addition to lines and totals, and the check
//! for missing legal information.

use chrono::NaiveDate;

use super::numbering::DocumentNumber;
use super::totals::DocumentContent;
use super::{DocumentKind, Parties};
use crate::money::Percentage;
use crate::party::appearance::{AccentColor, Footer, Logo};
use crate::party::bank::BankAccountProfile;
use crate::party::legal::{
    BuyerReference, Contact, EInvoiceProfile, ElectronicAddress, Language, LegalNote, LegalProfile, PaperSize, Registration,
    VatId, tax_label,
};
use crate::party::{Address, Customer, Entity};
use crate::tax::{TaxInCurrency, mixes_untaxable};
use crate::text::OneLine;

/// The country whose sellers state what a document bills.
const FRANCE: &str = "FR";
/// The missing field of a document issued before legal particulars existed: all of them.
const FORMAT: &str = "/format";

/// The legal content of a document. Documents of format 1 have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalParticulars {
    /// The customer who pays.
    pub customer: PartyDetails,
    /// The entity that bills.
    pub entity: PartyDetails,
    /// The seller's contact for questions about the document.
    pub contact: Option<Contact>,
    /// The reference that the payer requires on the document.
    pub buyer_reference: Option<BuyerReference>,
    /// The bank account to pay to, if the payment details name an existing account.
    pub bank_account: Option<BankAccountProfile>,
    /// The document's language.
    pub language: Language,
    /// The page size.
    pub size: PaperSize,
    /// The name of the tax, such as VAT.
    pub tax_label: OneLine,
    /// The notes that the seller's law requires.
    pub legal_notes: Vec<LegalNote>,
    /// The seller's logo, by its hash.
    pub logo: Option<Logo>,
    /// The color of headings and rules.
    pub accent_color: Option<AccentColor>,
    /// The text at the end of the document.
    pub footer: Option<Footer>,
    /// The issued document that this one corrects. If its parent invoice isn't issued, this is the first corrected child.
    pub corrects: Option<CorrectedDocument>,
    /// The last corrected child, if the parent invoice isn't issued and several children are corrected.
    pub corrects_last: Option<CorrectedDocument>,
    /// The taxes in the seller's tax currency, if that differs from the document's currency.
    pub tax_in_currency: Option<TaxInCurrency>,
    /// The e-invoice profile: the customer's, else the entity's.
    pub e_invoice_profile: EInvoiceProfile,
    /// What the document bills, if the seller is in France.
    pub supply: Option<SupplyCategory>,
}

/// What a document bills: services, goods or both. French documents state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplyCategory {
    /// Only services.
    Services,
    /// Only goods.
    Goods,
    /// Services and goods.
    Mixed,
}

impl SupplyCategory {
    /// Returns the category of a document from whether each of its lines is a good; `None` without lines.
    pub fn of(lines: impl IntoIterator<Item = bool>) -> Option<Self> {
        lines.into_iter().fold(None, |category, is_goods| {
            let of_line = if is_goods { Self::Goods } else { Self::Services };
            Some(category.map_or(of_line, |category| if category == of_line { category } else { Self::Mixed }))
        })
    }
}

/// The data of a party in addition to its names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartyDetails {
    /// The postal address.
    pub address: Option<Address>,
    /// The e-mail address.
    pub email: Option<OneLine>,
    /// A tax number other than the VAT number.
    pub tax_id: Option<OneLine>,
    /// The VAT identification number.
    pub vat_id: Option<VatId>,
    /// The number in a company register.
    pub registration: Option<Registration>,
    /// The electronic address for e-invoices.
    pub electronic_address: Option<ElectronicAddress>,
}

/// An issued document that another document corrects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrectedDocument {
    /// The document's number.
    pub number: DocumentNumber,
    /// The date of issue.
    pub issue_date: NaiveDate,
}

/// The inputs of [`LegalParticulars`] that don't come from the parties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegalParticularsInput {
    /// The buyer reference of the document's products.
    pub buyer_reference: Option<BuyerReference>,
    /// The bank account to pay to.
    pub bank_account: Option<BankAccountProfile>,
    /// The corrected document, or the first of several.
    pub corrects: Option<CorrectedDocument>,
    /// The last of several corrected documents.
    pub corrects_last: Option<CorrectedDocument>,
    /// The taxes in the seller's tax currency.
    pub tax_in_currency: Option<TaxInCurrency>,
    /// What the document bills. Only sellers in France state it.
    pub supply: Option<SupplyCategory>,
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
    /// Creates the legal particulars from the current data of the parties.
    pub fn of(customer: &Customer, entity: &Entity, facts: LegalParticularsInput) -> Self {
        let (payer, seller, paper) = (&customer.profile, &entity.profile, &entity.profile.paper);
        let country = seller.address.as_ref().and_then(|address| address.country_code);
        let email = paper.contact.as_ref().and_then(|contact| contact.email.as_ref());
        let language = payer.legal.language.or(seller.legal.language).unwrap_or_default();
        Self {
            customer: PartyDetails::of(payer.billing_address.as_ref(), payer.email.as_ref(), payer.tax_id.as_ref(), &payer.legal),
            entity: PartyDetails::of(seller.address.as_ref(), email, seller.tax_id.as_ref(), &seller.legal),
            contact: paper.contact.clone(),
            buyer_reference: facts.buyer_reference.or_else(|| payer.buyer_reference.clone()),
            bank_account: facts.bank_account,
            language,
            size: paper.size.unwrap_or_else(|| PaperSize::of(country)),
            tax_label: paper.tax_label.clone().unwrap_or_else(|| tax_label(country, language)),
            legal_notes: paper.legal_notes.clone(),
            logo: paper.logo.clone(),
            accent_color: paper.accent_color,
            footer: paper.footer.clone(),
            corrects: facts.corrects,
            corrects_last: facts.corrects_last,
            tax_in_currency: facts.tax_in_currency,
            e_invoice_profile: payer.e_invoice_profile.unwrap_or(paper.e_invoice.profile),
            supply: facts.supply.filter(|_| country.is_some_and(|country| country.as_str() == FRANCE)),
        }
    }
}

/// Returns the missing legal information of a document as JSON pointers (billing rules 10). The requirements are:
/// - legal name and address of both parties
/// - a tax number of the seller
/// - a tax category for each rate of 0
/// - no other category together with items not subject to tax
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

/// Returns whether a document of a kind and purpose corrects its parent instead of billing in addition.
pub(crate) fn is_correction(kind: DocumentKind, purpose: super::Purpose) -> bool {
    kind != DocumentKind::Invoice || purpose == super::Purpose::Adjustment
}
