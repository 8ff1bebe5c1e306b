//! Prints documents as PDF files. Files of issued documents are created once and stored. Drafts are printed each time.

use billing_domain::access::Principal;
use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::Printout;
use billing_domain::refs::DocumentRef;

use super::e_invoice::{attached_e_invoice, keep};
use super::unissued_content;
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// A document as a file.
#[derive(Clone, Debug)]
pub struct PrintedDocument {
    /// The document's number.
    pub number: DocumentNumber,
    /// The file.
    pub file: RenderedFile,
}

/// The result of a request for a document's file.
#[derive(Clone, Debug)]
pub enum WantedPrint {
    /// The stored file.
    Kept(PrintedDocument),
    /// The content to print with [`keep_attached_e_invoice`], [`print_document`] and [`keep_print`].
    ToPrint(Box<Printout>),
}

/// Returns the stored file of a document, or the content to print.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the document does not exist.
pub fn find_print(cx: &mut Cx<'_>, document_ref: DocumentRef) -> UseCaseResult<WantedPrint> {
    let document = cx.tx.document(cx.organization, document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
    if let Some(printout) = Printout::of_issued(&document) {
        let kept = cx.tx.document_file(document.head.key(cx.organization), FileForm::Pdf)?;
        return Ok(match kept {
            Some(DocumentFile { made, .. }) => WantedPrint::Kept(PrintedDocument { number: document.head.number, file: made }),
            None => {
                let e_invoice = attached_e_invoice(cx, &document)?;
                WantedPrint::ToPrint(Box::new(with_logo(cx, Printout { e_invoice, ..printout })?))
            }
        });
    }
    let said = unissued_content(cx.tx, cx.organization, &mut Vec::new(), &document, cx.now)?;
    Ok(WantedPrint::ToPrint(Box::new(with_logo(cx, Printout::of_draft(document.head, said))?)))
}

/// Returns a printout with the image of its logo. A document has only the hash.
fn with_logo(cx: &mut Cx<'_>, mut printout: Printout) -> UseCaseResult<Printout> {
    if let Some(logo) = printout.said.paper.as_mut().and_then(|paper| paper.logo.as_mut()) {
        let found = cx.tx.logo_with_image(cx.organization, logo)?;
        *logo = found.ok_or(UseCaseError::InvariantViolation("a document with a logo that isn't stored"))?;
    }
    Ok(printout)
}

/// Returns the content to print with the stored e-invoice, so that the printed file contains the stored bytes.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the e-invoice cannot be stored.
pub fn keep_attached_e_invoice(services: &Services, principal: &Principal, printout: &mut Printout) -> UseCaseResult<()> {
    let key = printout.head.key(allow(principal, UseCase::GetDocument)?);
    if let Some(e_invoice) = printout.e_invoice.take() {
        printout.e_invoice = Some(keep(services, key, FileForm::Cii, e_invoice)?);
    }
    Ok(())
}

/// Prints a document without the database.
///
/// # Errors
/// Returns [`UseCaseError::Print`] if printing fails.
pub fn print_document(services: &Services, principal: &Principal, printout: &Printout) -> UseCaseResult<RenderedFile> {
    allow(principal, UseCase::GetDocument)?;
    Ok(services.printer.print(printout)?)
}

/// Stores the first file of an issued document. Concurrent callers all get the stored file. The file of a draft is not stored.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the file cannot be stored.
pub fn keep_print(
    services: &Services,
    principal: &Principal,
    printout: &Printout,
    file: RenderedFile,
) -> UseCaseResult<PrintedDocument> {
    let key = printout.head.key(allow(principal, UseCase::GetDocument)?);
    let file = if printout.issued.is_none() { file } else { keep(services, key, FileForm::Pdf, file)? };
    Ok(PrintedDocument { number: printout.head.number.clone(), file })
}
