//! Prints documents as PDF files. Files of issued documents are created once and stored. Drafts are printed each time.

use billing_domain::access::Principal;
use billing_domain::document::Document;
use billing_domain::document::files::{DocumentFile, FileForm, RenderedFile};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::Printout;
use billing_domain::ledger::ContractBook;
use billing_domain::party::legal::Strictness;
use billing_domain::ports::PrintError;
use billing_domain::refs::DocumentRef;

use super::e_invoice::{attached_e_invoice, keep, kept_file};
use super::{book_of, unissued_content};
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
    ToPrint(Box<ToPrint>),
}

/// The content of a document to print.
#[derive(Clone, Debug)]
pub struct ToPrint {
    /// The content.
    pub printout: Printout,
    /// Whether the file is stored: the document is issued, and fonts have all its characters.
    is_final: bool,
}

/// Returns the stored file of a document, or the content to print.
///
/// # Errors
/// - [`UseCaseError::Unknown`] if the document does not exist.
/// - [`UseCaseError::Print`] if no font has one of its characters and the entity is strict.
pub fn find_print(cx: &mut Cx<'_>, document_ref: DocumentRef) -> UseCaseResult<WantedPrint> {
    let document = cx.tx.document(cx.organization, document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
    let mut books = Vec::new();
    if let Some(printout) = Printout::of_issued(&document) {
        let kept = kept_file(cx, document.head.key(cx.organization), FileForm::Pdf)?;
        return Ok(match kept {
            Some(DocumentFile { made, .. }) => WantedPrint::Kept(PrintedDocument { number: document.head.number, file: made }),
            None => {
                let e_invoice = attached_e_invoice(cx, &document)?;
                to_print(cx, &mut books, &document, Printout { e_invoice, ..printout })?
            }
        });
    }
    let draft_content = unissued_content(cx.tx, cx.organization, &mut books, &document, cx.now)?;
    let printout = Printout::of_draft(document.head.clone(), draft_content);
    to_print(cx, &mut books, &document, printout)
}

/// Returns the content to print. A file with boxes instead of characters is not stored, so that it is complete once fonts have the
/// characters.
fn to_print(
    cx: &mut Cx<'_>,
    books: &mut Vec<(bool, ContractBook)>,
    document: &Document,
    printout: Printout,
) -> UseCaseResult<WantedPrint> {
    let missing = cx.services.printer.missing_glyphs(&printout);
    if !missing.is_empty() {
        let book = book_of(cx.tx, cx.organization, books, document, cx.now)?;
        if book.entity(&document.head.entity_ref)?.profile.paper.strictness == Strictness::Strict {
            return Err(PrintError::MissingGlyph(missing).into());
        }
    }
    let is_final = printout.issued.is_some() && missing.is_empty();
    Ok(WantedPrint::ToPrint(Box::new(ToPrint { printout: with_logo(cx, printout)?, is_final })))
}

/// Returns a printout with the image of its logo. A document has only the hash.
fn with_logo(cx: &mut Cx<'_>, mut printout: Printout) -> UseCaseResult<Printout> {
    if let Some(logo) = printout.draft_content.paper.as_mut().and_then(|paper| paper.logo.as_mut()) {
        let found = cx.tx.logo_with_image(cx.organization, logo)?;
        *logo = found.ok_or(UseCaseError::InvariantViolation("a document with a logo that isn't stored"))?;
    }
    Ok(printout)
}

/// Returns the content to print with the stored e-invoice, so that the printed file contains the stored bytes.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the e-invoice cannot be stored.
pub fn keep_attached_e_invoice(services: &Services, principal: &Principal, wanted: &mut ToPrint) -> UseCaseResult<()> {
    let printout = &mut wanted.printout;
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

/// Stores the first complete file of an issued document. Concurrent callers all get the stored file. Other files are not stored.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the file cannot be stored.
pub fn keep_print(
    services: &Services,
    principal: &Principal,
    wanted: &ToPrint,
    file: RenderedFile,
) -> UseCaseResult<PrintedDocument> {
    let printout = &wanted.printout;
    let key = printout.head.key(allow(principal, UseCase::GetDocument)?);
    let file = if wanted.is_final { keep(services, key, FileForm::Pdf, file)? } else { file };
    Ok(PrintedDocument { number: printout.head.number.clone(), file })
}
