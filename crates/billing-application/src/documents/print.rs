//! Prints documents as PDF files. Files of issued documents are created once and stored. Drafts are printed each time.

use billing_domain::access::Principal;
use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::Printout;
use billing_domain::ports::{Access, transact};
use billing_domain::refs::DocumentRef;

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
    /// The content to print with [`print_document`].
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
            None => WantedPrint::ToPrint(Box::new(printout)),
        });
    }
    let said = unissued_content(cx.tx, cx.organization, &mut Vec::new(), &document, cx.now)?;
    Ok(WantedPrint::ToPrint(Box::new(Printout::of_draft(document.head, said))))
}

/// Prints a document. The first file of an issued document is stored. Concurrent callers all get the stored file.
///
/// # Errors
/// Returns [`UseCaseError::Print`] if printing fails.
pub fn print_document(services: &Services, principal: &Principal, printout: &Printout) -> UseCaseResult<PrintedDocument> {
    let organization = allow(principal, UseCase::GetDocument)?;
    let number = printout.head.number.clone();
    let file = services.printer.print(printout)?;
    if printout.issued.is_none() {
        return Ok(PrintedDocument { number, file });
    }
    let made = DocumentFile { form: FileForm::Pdf, made: file, made_at: services.now() };
    let kept = transact(&*services.store, Access::Write, |tx| {
        let kept = tx.keep_document_file(printout.head.key(organization), &made)?;
        kept.ok_or(UseCaseError::Unknown(ResourceKind::Document))
    })?;
    Ok(PrintedDocument { number, file: kept.made })
}
