//! Printing of documents: the printer is called without a transaction, and only complete files are stored.

use std::sync::Arc;

use billing_application::UseCase;
use billing_application::documents::{PrintedDocument, ToPrint, WantedPrint, find_print, keep_print, print_document};
use billing_application::error::UseCaseError;
use billing_domain::ports::{DocumentPrinter as _, MockDocumentPrinter, PrintError, PrintStop};
use billing_domain::refs::DocumentRef;
use billing_testkit::PlainPrinter;
use billing_testkit::fixtures::{fixed, requested};

use crate::books::Books;
use crate::support::read;

/// Returns books with an issued invoice, and a printer that reports these characters as missing.
fn issued(mut printer: MockDocumentPrinter, missing: &'static str) -> (Books, DocumentRef) {
    let mut books = Books::at("2026-01-15T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "10.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    books.bill("2026-02-01T02:00:00Z");
    printer.expect_missing_glyphs().returning(move |_| missing.to_owned());
    books.bench.services.printer = Arc::new(printer);
    let invoice = books.reference("UB-INV-1");
    (books, invoice)
}

/// Returns the content to print of a document without a stored file.
#[track_caller]
fn to_print(wanted: WantedPrint) -> Box<ToPrint> {
    let WantedPrint::ToPrint(content) = wanted else { panic!("{wanted:?}") };
    content
}

#[test]
fn a_document_that_was_not_printed_to_its_end_is_printed_again_and_then_never_more() {
    let mut printer = MockDocumentPrinter::new();
    printer.expect_print().times(1).returning(|_| Err(PrintStop::TimedOut { seconds: 20 }.into()));
    printer.expect_print().times(1).returning(|printout| PlainPrinter.print(printout));
    let (books, invoice) = issued(printer, "");
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let find = || read(services, principal, UseCase::GetDocument, |cx| find_print(cx, invoice)).expect("an invoice");
    let before = books.bench.store.contents();
    let stopped = print_document(services, principal, &to_print(find()).printout);
    assert!(matches!(stopped, Err(UseCaseError::Print(PrintError::Stopped(_)))), "{stopped:?}");
    assert_eq!(books.bench.store.contents(), before);

    let content = to_print(find());
    let file = print_document(services, principal, &content.printout).expect("a file");
    let kept = keep_print(services, principal, &content, file).expect("a stored file");
    let WantedPrint::Kept(PrintedDocument { file, .. }) = find() else { panic!("a stored file") };
    assert_eq!(file, kept.file);
}

#[test]
fn a_file_with_boxes_instead_of_characters_is_not_stored() {
    let mut printer = MockDocumentPrinter::new();
    printer.expect_print().returning(|printout| PlainPrinter.print(printout));
    let (books, invoice) = issued(printer, "下");
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let before = books.bench.store.contents();
    let wanted = read(services, principal, UseCase::GetDocument, |cx| find_print(cx, invoice)).expect("an invoice");
    let content = to_print(wanted);
    let file = print_document(services, principal, &content.printout).expect("a file");
    keep_print(services, principal, &content, file).expect("a file");
    assert_eq!(books.bench.store.contents(), before);
}
