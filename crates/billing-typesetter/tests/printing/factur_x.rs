//! PDF files that contain an e-invoice.

use std::path::PathBuf;
use std::process::Command;

use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::ports::DocumentPrinter as _;
use billing_typesetter::Printer;

use crate::printouts::invoice;
use crate::read;

const XML: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rsm:CrossIndustryInvoice/>\n";

fn with_e_invoice() -> Printout {
    let file = RenderedFile { bytes: XML.to_vec(), sha256: [0; 32], maker: "test".to_owned() };
    Printout { e_invoice: Some(file), ..invoice() }
}

#[test]
fn an_e_invoice_is_attached_and_described() {
    let printed = Printer::default().print(&with_e_invoice()).expect("a file");
    assert!(printed.maker.ends_with(" factur-x-1"), "{}", printed.maker);
    let content = String::from_utf8_lossy(&printed.bytes);
    for mark in [
        "/AFRelationship/Alternative",
        "<fx:DocumentFileName>factur-x.xml</fx:DocumentFileName>",
        "<fx:ConformanceLevel>EN 16931</fx:ConformanceLevel>",
        "<pdfaid:part>3",
    ] {
        assert!(content.contains(mark), "{mark}");
    }
    assert_eq!(content.matches("startxref").count(), 2, "one incremental update");

    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("attached.pdf");
    let saved = path.with_extension("xml");
    std::fs::write(&path, &printed.bytes).expect("a file");
    let detached = Command::new("pdfdetach").args(["-save", "1", "-o"]).arg(&saved).arg(&path).output().expect("pdfdetach");
    assert!(detached.status.success(), "{detached:?}");
    assert_eq!(std::fs::read(saved).expect("the attached file"), XML);
    let listed = Command::new("pdfdetach").arg("-list").arg(&path).output().expect("pdfdetach");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("factur-x.xml"), "{listed:?}");

    let plain = Printer::default().print(&invoice()).expect("a file");
    assert_eq!(read("with-e-invoice", &printed.bytes), read("without-e-invoice", &plain.bytes), "the pages are the same");
    assert!(!String::from_utf8_lossy(&plain.bytes).contains("factur-x"));
}

#[test]
fn the_same_e_invoice_gives_the_same_file() {
    let print = || Printer::default().print(&with_e_invoice()).expect("a file").bytes;
    assert_eq!(print(), print());
}
