//! E-invoices of issued documents. Each file is written once and stored.

use billing_domain::access::Principal;
use billing_domain::document::Document;
use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::einvoice::business_terms::BusinessTerms;
use billing_domain::einvoice::{self, EInvoiceError, Syntax};
use billing_domain::party::legal::EInvoiceProfile;
use billing_domain::ports::{Access, transact};
use billing_domain::refs::{DocumentKey, DocumentRef};

use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// A document as an e-invoice.
#[derive(Clone, Debug)]
pub struct WrittenEInvoice {
    /// The document's number.
    pub number: DocumentNumber,
    /// The syntax.
    pub syntax: Syntax,
    /// The file.
    pub file: RenderedFile,
}

/// The result of a request for a document's e-invoice.
#[derive(Clone, Debug)]
pub enum WantedEInvoice {
    /// The stored file.
    Kept(WrittenEInvoice),
    /// The terms to write with [`write_e_invoice`].
    ToWrite(Box<EInvoiceToWrite>),
}

/// An e-invoice that isn't written yet.
#[derive(Clone, Debug)]
pub struct EInvoiceToWrite {
    key: DocumentKey,
    number: DocumentNumber,
    syntax: Syntax,
    terms: BusinessTerms,
}

/// Returns the form of the stored file of a syntax.
const fn form_of(syntax: Syntax) -> FileForm {
    match syntax {
        Syntax::Ubl => FileForm::Ubl,
        Syntax::Cii => FileForm::Cii,
    }
}

/// Returns the stored e-invoice of a document, or the terms to write. Without a syntax, the profile of the document decides.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the document does not exist.
/// - [`UseCaseError::Conflict`] `not_issued` for a document that was never issued.
/// - [`UseCaseError::EInvoiceIncomplete`] with all missing terms.
/// - [`UseCaseError::Conflict`] `e_invoice_unavailable` if the document can't be an e-invoice in this syntax.
pub fn find_e_invoice(cx: &mut Cx<'_>, document_ref: DocumentRef, asked: Option<Syntax>) -> UseCaseResult<WantedEInvoice> {
    let document = cx.tx.document(cx.organization, document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
    let Document { head, lifecycle, .. } = &document;
    let Some(issued) = lifecycle.issued() else {
        let detail = "a document has an e-invoice once it is issued: issue the draft first".to_owned();
        return Err(UseCaseError::Conflict { code: "not_issued", detail });
    };
    let profile = issued.paper.as_ref().map_or(EInvoiceProfile::default(), |paper| paper.e_invoice_profile);
    let syntax = asked.unwrap_or_else(|| profile.default_syntax());
    let key = head.key(cx.organization);
    if let Some(DocumentFile { made, .. }) = kept_file(cx, key, form_of(syntax))? {
        return Ok(WantedEInvoice::Kept(WrittenEInvoice { number: head.number.clone(), syntax, file: made }));
    }
    let terms = einvoice::terms(head, issued)?;
    if !profile.allows(syntax) {
        let (word, other) = match syntax {
            Syntax::Ubl => ("UBL", "cii"),
            Syntax::Cii => ("CII", "ubl"),
        };
        let profile = profile.as_str();
        let detail =
            format!("the document was issued with the e-invoice profile {profile}, which has no {word}: set syntax={other}");
        return Err(EInvoiceError::Unavailable(detail).into());
    }
    Ok(WantedEInvoice::ToWrite(Box::new(EInvoiceToWrite { key, number: head.number.clone(), syntax, terms })))
}

/// Writes an e-invoice and stores it. Concurrent callers all get the stored file.
///
/// # Errors
/// Returns [`UseCaseError::Print`] if writing fails.
pub fn write_e_invoice(services: &Services, principal: &Principal, wanted: &EInvoiceToWrite) -> UseCaseResult<WrittenEInvoice> {
    allow(principal, UseCase::GetDocument)?;
    let file = services.e_invoices.write(&wanted.terms, wanted.syntax)?;
    let file = keep(services, wanted.key, form_of(wanted.syntax), file)?;
    Ok(WrittenEInvoice { number: wanted.number.clone(), syntax: wanted.syntax, file })
}

/// Returns the e-invoice that the PDF file of a document contains: the stored one, or a new one. A document that can't be an
/// e-invoice has none, and stays so, because its content never changes.
pub(super) fn attached_e_invoice(cx: &mut Cx<'_>, document: &Document) -> UseCaseResult<Option<RenderedFile>> {
    let Some(issued) = document.lifecycle.issued() else { return Ok(None) };
    if issued.paper.as_ref().is_none_or(|paper| paper.e_invoice_profile != EInvoiceProfile::FacturX) {
        return Ok(None);
    }
    if let Some(kept) = kept_file(cx, document.head.key(cx.organization), FileForm::Cii)? {
        return Ok(Some(kept.made));
    }
    match einvoice::terms(&document.head, issued) {
        Ok(terms) => Ok(Some(cx.services.e_invoices.write(&terms, Syntax::Cii)?)),
        Err(EInvoiceError::Incomplete(_) | EInvoiceError::Unavailable(_)) => Ok(None),
    }
}

/// Returns the stored file of an issued document. A sandbox has none: each of its files says that it is a test, also those of
/// documents that were copied from a live server.
pub(super) fn kept_file(cx: &mut Cx<'_>, key: DocumentKey, form: FileForm) -> UseCaseResult<Option<DocumentFile>> {
    if cx.services.sandbox.is_some() { Ok(None) } else { Ok(cx.tx.document_file(key, form)?) }
}

/// Stores a file of an issued document, and returns the stored one: the first file of a form stays.
pub(super) fn keep(services: &Services, key: DocumentKey, form: FileForm, made: RenderedFile) -> UseCaseResult<RenderedFile> {
    if services.sandbox.is_some() {
        return Ok(made);
    }
    let file = DocumentFile { form, made, made_at: services.now() };
    let kept = transact(&*services.store, Access::Write, |tx| {
        let kept = tx.keep_document_file(key, &file)?;
        kept.ok_or(UseCaseError::Unknown(ResourceKind::Document))
    })?;
    Ok(kept.made)
}
