//! E-invoices (EN 16931): the business terms of a frozen document, or the reason why it has none.
//!
//! [`terms`] decides what an e-invoice contains. The writers of the two syntaxes only spell the terms. The comments name the terms
//! by their identifiers: BT is a term, BG a group of terms, BR a rule of the standard.

pub mod business_terms;
mod explanation;
mod items;
mod requirements;
mod sums;
mod wording;

use thiserror::Error;

use crate::document::{AtIssue, DocumentHead, DocumentKind, IssuedDocument};
use crate::money::{Money, MoneyError};
use crate::party::PaymentDetails;
use crate::party::bank::BankAccountProfile;
use crate::party::legal::EInvoiceProfile;
use crate::refusal::{Refusal, WaitReason};
use crate::tax::TaxCategory;
use business_terms::{
    Account, BusinessTerms, Note, Party, PaymentInstructions, PrecedingInvoice, Seller, Totals, TypeCode, filled,
};
pub use requirements::{Given, missing, missing_of_parties};
use wording::Wording;

/// The XML syntax of an e-invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// UBL 2.1 of OASIS.
    Ubl,
    /// Cross Industry Invoice of UN/CEFACT.
    Cii,
}

impl EInvoiceProfile {
    /// Returns whether a document with this profile can be written in a syntax.
    pub const fn allows(self, syntax: Syntax) -> bool {
        match self {
            Self::None => false,
            Self::En16931 | Self::Xrechnung => true,
            Self::Peppol => matches!(syntax, Syntax::Ubl),
            Self::FacturX => matches!(syntax, Syntax::Cii),
        }
    }

    /// Returns the syntax if a request names none.
    pub const fn default_syntax(self) -> Syntax {
        match self {
            Self::FacturX => Syntax::Cii,
            Self::None | Self::En16931 | Self::Xrechnung | Self::Peppol => Syntax::Ubl,
        }
    }

    /// Returns the profile's word in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::En16931 => "EN16931",
            Self::Xrechnung => "XRECHNUNG",
            Self::Peppol => "PEPPOL",
            Self::FacturX => "FACTUR_X",
        }
    }
}

/// A term that an e-invoice requires and that a document lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The JSON pointer of the field in the document.
    pub pointer: String,
    /// The term and the rule that requires it, such as `BT-48, BR-AE-02`.
    pub detail: String,
}

impl Missing {
    fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), detail: detail.into() }
    }
}

/// The reason why a document has no e-invoice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EInvoiceError {
    /// The document lacks terms.
    #[error("the e-invoice lacks {}", listed(.0))]
    Incomplete(Vec<Missing>),
    /// The standard can't express the document, or the document has no e-invoice profile.
    #[error("{0}")]
    Unavailable(String),
}

impl EInvoiceError {
    /// Returns the reason why a document that must be an e-invoice waits.
    pub const fn reason(&self) -> WaitReason {
        match self {
            Self::Incomplete(_) => WaitReason::IncompleteEInvoice,
            Self::Unavailable(_) => WaitReason::NoEInvoice,
        }
    }

    fn unavailable(reason: impl Into<String>) -> Self {
        Self::Unavailable(reason.into())
    }
}

impl From<MoneyError> for EInvoiceError {
    fn from(error: MoneyError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

fn listed(missing: &[Missing]) -> String {
    missing.iter().map(|missing| format!("{} ({})", missing.pointer, missing.detail)).collect::<Vec<_>>().join(", ")
}

/// Checks that a document that is about to be issued can be an e-invoice.
///
/// # Errors
/// Returns [`Refusal::Waits`]. A document with the profile NONE is accepted, and
/// a document without lines, which bills nothing.
pub fn require(head: &DocumentHead, issued: &IssuedDocument) -> Result<(), Refusal> {
    let has_none = issued.paper.as_ref().is_some_and(|paper| paper.e_invoice_profile == EInvoiceProfile::None);
    if has_none || issued.content.products.iter().all(|product| product.lines.is_empty()) {
        return Ok(());
    }
    let Err(error) = terms(head, issued) else { return Ok(()) };
    let detail = format!(
        "entity {} issues only documents that can be e-invoices, and for the document of the period from {} {error}",
        head.entity_ref,
        head.period.start()
    );
    Err(Refusal::waits(error.reason(), detail))
}

/// Returns the business terms of an issued document. They depend on its frozen content only.
///
/// # Errors
/// Returns [`EInvoiceError`] with all missing terms, or if the standard can't express the document.
#[expect(clippy::too_many_lines, reason = "one field of the invoice after the other")]
pub fn terms(head: &DocumentHead, issued: &IssuedDocument) -> Result<BusinessTerms, EInvoiceError> {
    let (parties, content) = (&issued.parties, &issued.content);
    let Some(paper) = issued.paper.as_deref() else {
        return Err(EInvoiceError::Incomplete(vec![Missing::new("/format", "BG-5, BR-08")]));
    };
    let profile = paper.e_invoice_profile;
    if profile == EInvoiceProfile::None {
        let reason = "the document was issued with the e-invoice profile NONE: set a profile for the documents that follow";
        return Err(EInvoiceError::unavailable(reason));
    }
    let categories = sums::categories(content);
    let given = Given {
        has_buyer_reference: paper.buyer_reference.is_some(),
        has_order_reference: issued.po_number.as_ref().is_some_and(|number| filled(number.as_str()).is_some()),
        has_payment_means: paper.bank_account.is_some() || is_stated(&head.payment),
    };
    let mut lacks = missing(profile, paper, &categories, given);
    lacks.extend(requirements::missing_of_taxes(profile, content));
    if !lacks.is_empty() {
        return Err(EInvoiceError::Incomplete(lacks));
    }
    sums::require_expressible(head.currency, paper.tax_in_currency.as_ref().map(|tax| tax.rate.to))?;
    let taxes = sums::tax_breakdown(profile, content)?;
    let lines = items::lines(content, paper.language);
    if lines.is_empty() {
        return Err(EInvoiceError::unavailable("the document has no lines, and an e-invoice requires one (BR-16)"));
    }
    let totals = totals(issued)?;
    let is_untaxable = categories.contains(&TaxCategory::O);
    let (words, currency) = (Wording::of(paper.language), head.currency);
    let is_credit = head.kind == DocumentKind::Credit;
    let is_owed = totals.due.minor() > 0;
    let is_paid = !is_credit && totals.total.minor() > 0 && !is_owed;
    let supply = paper.supply.filter(|_| matches!(profile, EInvoiceProfile::En16931 | EInvoiceProfile::FacturX));
    // France requires the day of payment of a document that is paid when it is issued.
    let paid_on = supply.filter(|_| is_paid).map(|_| issued.issue_date);
    Ok(BusinessTerms {
        profile,
        number: head.number.to_string(),
        issue_date: issued.issue_date,
        type_code: if is_credit { TypeCode::CreditNote } else { TypeCode::Invoice },
        currency,
        tax_total_in_currency: paper.tax_in_currency.as_ref().map(|tax| tax.total),
        process: business_terms::process(profile, supply, is_paid),
        due_date: (is_owed && !is_credit).then_some(issued.due_date).or(paid_on),
        buyer_reference: paper.buyer_reference.as_ref().and_then(|reference| filled(reference.as_str())),
        order_reference: issued.po_number.as_ref().and_then(|number| filled(number.as_str())),
        preceding: [&paper.corrects, &paper.corrects_last]
            .into_iter()
            .flatten()
            .map(|corrected| PrecedingInvoice { number: corrected.number.to_string(), issue_date: corrected.issue_date })
            .collect(),
        notes: notes(issued, is_credit, words),
        payment_terms: is_owed.then(|| if is_credit { words.credit() } else { words.net_terms(head.net_terms) }),
        seller: Seller {
            party: Party::of(
                (parties.entity_legal_name.as_ref(), &parties.entity_name, parties.entity_ref.as_str()),
                &paper.entity,
                !is_untaxable,
            ),
            tax_registration: paper.entity.tax_id.as_ref().and_then(|id| filled(id.as_str())),
            contact: paper.contact.clone(),
        },
        buyer: Party::of(
            (parties.customer_legal_name.as_ref(), &parties.customer_name, parties.customer_ref.as_str()),
            &paper.customer,
            !is_untaxable,
        ),
        period: items::invoicing_period(profile, head.period, content),
        delivery_date: head.period.last_day(),
        payment: payment(head, paper.bank_account.as_ref(), profile),
        allowances: items::allowances(content),
        totals,
        taxes,
        lines,
    })
}

/// Returns whether any way to pay is stated.
pub fn is_stated(payment: &PaymentDetails) -> bool {
    payment.bank_transfer.is_some() || payment.online.is_some() || payment.crypto.is_some()
}

fn totals(issued: &IssuedDocument) -> Result<Totals, EInvoiceError> {
    let content = &issued.content;
    let (paid, due) = match &issued.at_issue {
        Some(AtIssue { applied, due }) => {
            (Money::sum(content.total.currency(), applied.iter().map(|applied| applied.amount))?, *due)
        }
        None => (Money::zero(content.total.currency()), content.total),
    };
    let allowances = content.total_discount.checked_add(content.total_prepaid()?)?;
    Ok(Totals {
        lines: content.sub_total,
        allowances,
        net: content.sub_total.checked_sub(allowances)?,
        tax: content.total_tax,
        total: content.total,
        paid,
        due,
    })
}

/// Returns the products' notes, the legal notes, and the amounts applied at the issue.
fn notes(issued: &IssuedDocument, is_credit: bool, words: Wording) -> Vec<Note> {
    let of_products = issued.note.as_ref().and_then(|note| filled(note.as_str()));
    let mut notes: Vec<Note> = of_products.map(|text| Note { subject: None, text }).into_iter().collect();
    let legal = issued.paper.iter().flat_map(|paper| &paper.legal_notes);
    notes.extend(legal.filter_map(|note| Some(Note { subject: note.subject_code, text: filled(note.text.as_str())? })));
    if let Some(AtIssue { applied, .. }) = issued.at_issue.as_ref().filter(|at_issue| !at_issue.applied.is_empty()) {
        notes.push(Note { subject: None, text: words.applied(is_credit, applied) });
    }
    notes
}

/// Returns how to pay. A credit is paid by the seller, so it names no account.
fn payment(head: &DocumentHead, account: Option<&BankAccountProfile>, profile: EInvoiceProfile) -> PaymentInstructions {
    let is_credit = head.kind == DocumentKind::Credit;
    let account = account.filter(|_| !is_credit).and_then(Account::of);
    let code = match &account {
        Some(account) if account.is_iban && head.currency.code() == "EUR" => PaymentInstructions::SEPA_TRANSFER,
        Some(_) => PaymentInstructions::TRANSFER,
        // XRechnung asks for the number of the card with code 48 (BR-DE-24-a), and it is not known here.
        None if head.payment.online.is_some() && !is_credit && profile == EInvoiceProfile::Xrechnung => {
            PaymentInstructions::ONLINE
        }
        None if head.payment.online.is_some() && !is_credit => PaymentInstructions::CARD,
        None => PaymentInstructions::UNDEFINED,
    };
    PaymentInstructions { code, reference: head.number.to_string(), account }
}
