//! Renders documents and reads the files back with pdftotext.

mod printouts;

use std::path::PathBuf;
use std::process::Command;

use billing_domain::document::DocumentKind;
use billing_domain::document::legal_particulars::CorrectedDocument;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::Printout;
use billing_domain::party::legal::{Language, PaperSize};
use billing_domain::ports::{DocumentPrinter as _, PrintError};
use billing_domain::tax::{ExchangeRate, TaxBasis, TaxCategory, TaxInCurrency};
use billing_pdf::Printer;
use billing_testkit::fixtures;
use fixtures::{currency, date, line, price, prose};

use printouts::{charged, eur, fixed, invoice, money, parties, printout, printout_between, step, tiered, used};

const NONE: TaxBasis = TaxBasis { category: None, exemption_code: None, exemption_reason: None };

fn print(printout: &Printout) -> Vec<u8> {
    Printer::default().print(printout).expect("a printable document").bytes
}

/// Returns the text lines of a file, with repeated spaces collapsed.
fn read(name: &str, file: &[u8]) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pdf"));
    std::fs::write(&path, file).expect("a file");
    let read = Command::new("pdftotext").args(["-layout", "-enc", "UTF-8"]).arg(path).arg("-").output().expect("pdftotext");
    assert!(read.status.success(), "{read:?}");
    let text = String::from_utf8(read.stdout).expect("UTF-8");
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns the text lines of a document.
fn text(name: &str, printout: &Printout) -> Vec<String> {
    read(name, &print(printout))
}

/// Asserts that the text contains these lines in this order.
#[track_caller]
fn assert_says(text: &[String], wanted: &[&str]) {
    let mut rest = text.iter();
    for wanted in wanted {
        assert!(rest.any(|line| line == wanted), "{wanted:?} is missing or out of order: {text:#?}");
    }
}

#[test]
fn an_invoice_says_what_the_law_and_its_reader_want() {
    let text = text("invoice", &invoice());
    let wanted = [
        "Northwind Cloud Invoice",
        "Billed to From",
        "Acme SAS Northwind Cloud GmbH",
        "1 rue de la Paix Am Markt 1",
        "75002 Paris 28195 Bremen",
        "France Germany",
        "VAT ID FR40303265045 VAT ID DE123456789",
        "Tax number 60/123/45678",
        "Contact Billing",
        "+49 421 1234",
        "billing@northwind.example",
        "Number Issue date Due date",
        "MAIN-INV-1042 1 Feb 2026 3 Mar 2026",
        "Service period PO number Your reference",
        "1 Jan 2026 – 31 Jan 2026 PO-2026-0815 04011000-12345-35",
        "Description Quantity Amount (EUR)",
        "Northwind API",
        "Platform fee 1 49.00",
        "API calls 1,500 calls 60.00",
        "1 Jan 2026 – 31 Jan 2026",
        "100 × 0.10 = 10.00",
        "900 × 0.05 = 45.00",
        "500 × 0.01 = 5.00",
        "Subtotal 109.00 EUR",
        "Discount 10% -10.90 EUR",
        "Net amount 98.10 EUR",
        "VAT 19% on 98.10 18.64 EUR",
        "Total 116.74 EUR",
        "Amount due 116.74 EUR",
        "Payment",
        "Account holder Northwind Cloud GmbH",
        "IBAN DE89 3704 0044 0532 0130 00",
        "BIC COBADEFFXXX",
        "Bank Commerzbank",
        "Reference MAIN-INV-1042",
        "Notes",
        "Thank you for your business.",
        "Northwind Cloud GmbH · Invoice MAIN-INV-1042 Page 1 of 1",
    ];
    assert_says(&text, &wanted);
}

#[test]
fn the_same_document_is_the_same_file() {
    let (printer, invoice) = (Printer::default(), invoice());
    let file = printer.print(&invoice).expect("a file").bytes;
    let other = printout(DocumentKind::Credit, vec![("API", "0", "7", NONE, vec![fixed("Fee", eur(100))])]);
    assert_ne!(printer.print(&other).expect("a file").bytes, file);
    assert_eq!(printer.print(&invoice).expect("a file").bytes, file);
    assert_eq!(print(&invoice), file, "from another printer");

    let said = String::from_utf8_lossy(&file);
    for mark in ["<pdfaid:part>3", "<pdfaid:conformance>B", "<pdfuaid:part>1", "<xmp:CreateDate>2026-02-01T00:00:00+00:00"] {
        assert!(said.contains(mark), "{mark}");
    }
    assert!(!said.contains("Typst"), "the file does not name its tool");
}

#[test]
fn every_language_and_both_papers_are_drawn() {
    let rows = [
        (Language::En, PaperSize::Letter, "Invoice", "Feb 1, 2026", "API calls 1,500 calls 60.00", "Amount due 1,116.74 EUR"),
        (Language::De, PaperSize::A4, "Rechnung", "01.02.2026", "API calls 1.500 calls 60,00", "Zahlbetrag 1.116,74 EUR"),
        (Language::Fr, PaperSize::A4, "Facture", "1 févr. 2026", "API calls 1 500 calls 60,00", "Net à payer 1 116,74 EUR"),
        (Language::Es, PaperSize::A4, "Factura", "1 feb 2026", "API calls 1500 calls 60,00", "Importe a pagar 1116,74 EUR"),
        (Language::It, PaperSize::A4, "Fattura", "1 feb 2026", "API calls 1500 calls 60,00", "Importo da pagare 1116,74 EUR"),
        (Language::Nl, PaperSize::A4, "Factuur", "1 feb 2026", "API calls 1.500 calls 60,00", "Te betalen 1.116,74 EUR"),
        (Language::Pt, PaperSize::A4, "Fatura", "1 de fev. de 2026", "API calls 1.500 calls 60,00", "Valor a pagar 1.116,74 EUR"),
        (Language::Pl, PaperSize::Letter, "Faktura", "1 lut 2026", "API calls 1500 calls 60,00", "Do zapłaty 1116,74 EUR"),
    ];
    for (language, size, title, issued, usage, due) in rows {
        let mut printout = invoice();
        let paper = printout.said.paper.as_mut().expect("legal particulars");
        (paper.language, paper.size) = (language, size);
        // An amount above 1,000. Some languages group digits only from 10,000 on.
        let content = &mut printout.said.content;
        content.total = content.total.checked_add(eur(100_000)).expect("a small amount");
        let text = text(&format!("language-{language:?}"), &printout);
        assert_eq!(text[0], format!("Northwind Cloud {title}"));
        assert!(text.iter().any(|line| line.contains(issued)), "{issued}: {text:#?}");
        assert_says(&text, &[usage, due]);
    }
}

#[test]
fn every_way_to_tax_is_stated() {
    let stated = |category, reason: &str| TaxBasis { category: Some(category), exemption_reason: Some(line(reason)), ..NONE };
    let lines = |minor| vec![fixed("Fee", eur(minor))];
    let reverse = fixtures::reverse_charge();
    let several = printout(
        DocumentKind::Invoice,
        vec![
            ("Hosting", "50", "19", NONE, lines(10_000)),
            ("Books", "0", "7", NONE, lines(10_000)),
            ("Services", "0", "0", reverse.clone(), lines(4_000)),
            ("Health", "0", "0", stated(TaxCategory::E, "Medical"), lines(500)),
        ],
    );
    let wanted = [
        "Hosting VAT 19%",
        "Discount 50% -50.00",
        "Net amount 50.00",
        "Books VAT 7%",
        "Subtotal 245.00 EUR",
        "Discount -50.00 EUR",
        "Net amount 195.00 EUR",
        "VAT 0% on 5.00 0.00 EUR",
        "VAT 0% on 40.00 0.00 EUR",
        "VAT 7% on 100.00 7.00 EUR",
        "VAT 19% on 50.00 9.50 EUR",
        "Total 211.50 EUR",
        "Medical",
        "Reverse charge",
    ];
    assert_says(&text("taxes", &several), &wanted);

    let mut french = printout(DocumentKind::Invoice, vec![("Services", "0", "0", reverse, lines(4_000))]);
    french.said.paper.as_mut().expect("legal particulars").language = Language::Fr;
    assert_says(&text("reverse-charge", &french), &["VAT 0 % sur 40,00 0,00 EUR", "Net à payer 40,00 EUR", "Autoliquidation"]);

    // Items outside the scope of tax and items without a stated tax show no tax.
    let code = fixtures::reverse_charge().exemption_code;
    let coded = TaxBasis { category: Some(TaxCategory::O), exemption_code: code, exemption_reason: None };
    for (name, treatment, reason) in [
        ("untaxable", stated(TaxCategory::O, "Outside the scope"), Some("Outside the scope")),
        ("coded", coded, Some("VATEX-EU-AE")),
        ("unstated", NONE, None),
    ] {
        let text = text(name, &printout(DocumentKind::Invoice, vec![("Fees", "0", "0", treatment, lines(100))]));
        assert!(!text.iter().any(|line| line.contains("VAT 0%")), "{text:#?}");
        assert_says(&text, &["Total 1.00 EUR", "Amount due 1.00 EUR"]);
        assert!(reason.is_none_or(|reason| text.iter().any(|line| line == reason)), "{text:#?}");
    }
}

#[test]
fn what_corrects_several_children_names_the_first_and_the_last() {
    let mut credit = printout(DocumentKind::Credit, vec![("API", "0", "19", NONE, vec![fixed("Fee", eur(100))])]);
    let paper = credit.said.paper.as_mut().expect("legal particulars");
    let first = paper.corrects.clone().expect("a corrected document");
    let number = DocumentNumber { sequence: 1050, ..first.number };
    paper.corrects_last = Some(CorrectedDocument { number, issue_date: date("2026-02-03") });
    let text = text("children", &credit).join(" ");
    for wanted in ["MAIN-INV-1042, 1 Feb 2026 –", "MAIN-INV-1050, 3 Feb 2026"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn tax_is_stated_in_the_sellers_own_currency_too() {
    let mut printout = invoice();
    let rate = ExchangeRate { from: currency("EUR"), to: currency("PLN"), date: date("2026-01-29"), rate: price("4.2575") };
    let taxes: Vec<_> = printout.said.content.taxes.iter().map(|tax| tax.amount).collect();
    let paper = printout.said.paper.as_mut().expect("legal particulars");
    paper.tax_in_currency = TaxInCurrency::of(taxes, rate).ok();
    let wanted = ["VAT 19% on 98.10 18.64 EUR", "VAT in PLN (1 EUR = 4.2575 PLN, 29 Jan 2026) 79.36 PLN", "Total 116.74 EUR"];
    assert_says(&text("currency", &printout), &wanted);
}

#[test]
fn amounts_have_the_digits_of_their_currency() {
    for (code, amounts) in [
        ("JPY", ["Calls 1,200 calls 0.5 600", "Fee 1 123,456", "Amount due 124,056 JPY"]),
        ("KWD", ["Calls 1,200 calls 0.500 0.600", "Fee 1 123.456", "Amount due 124.056 KWD"]),
    ] {
        let lines = vec![used("Calls", "1200", "calls", "0.5", money(code, 600)), fixed("Fee", money(code, 123_456))];
        let billed = vec![("API", "0", "0", NONE, lines)];
        let printout = printout_between(&parties(), DocumentKind::Invoice, currency(code), billed);
        assert_says(&text(code, &printout), &amounts);
    }
}

#[test]
fn every_kind_of_line_says_how_its_amount_came_about() {
    let mut seats = fixed("Seats", eur(12_000));
    seats.quantities = vec![step("2026-01-01", "10")];
    let mut growing = fixed("Growing seats", eur(15_000));
    growing.quantities = vec![step("2026-01-01", "10"), step("2026-01-16", "20")];
    let mut minimum = fixed("Minimum fee", eur(100));
    minimum.line_item_id = None;
    let lines = vec![
        seats,
        growing,
        used("Storage", "123456.789", "GB", "0.000000000003", eur(0)),
        tiered("Messages", "messages", &[("100", "0.1", "5"), ("1", "0.0025", "0")], eur(1_500)),
        charged("Onboarding", "2.5", "-120", eur(-30_000)),
        minimum,
    ];
    let wanted = [
        "Description Quantity Unit price Amount (EUR)",
        "Seats 10 120.00",
        "Growing seats 150.00",
        "10 from 1 Jan 2026",
        "20 from 16 Jan 2026",
        "Storage 123,456.789 GB 0.000000000003 0.00",
        "Messages 101 messages 15.00",
        "100 × 0.10 + 5.00 = 15.00",
        "1 × 0.0025 = 0.0025",
        "Onboarding 2.5 h -120.00 -300.00",
        "20 Jan 2026",
        "Minimum fee 1.00",
        "Amount due -14.00 EUR",
    ];
    assert_says(&text("lines", &printout(DocumentKind::Invoice, vec![("API", "0", "0", NONE, lines)])), &wanted);
}

#[test]
fn credits_and_debits_name_what_they_put_right() {
    let billed = |kind| printout(kind, vec![("API", "0", "19", NONE, vec![fixed("Fee", eur(100))])]);
    let credit = text("credit", &billed(DocumentKind::Credit));
    let wanted = [
        "Northwind Cloud Credit note",
        "Number Issue date Service period",
        "Refers to PO number Your reference",
        "MAIN-INV-1042, 1 Feb 2026 PO-2026-0815 04011000-12345-35",
        "Description Amount (EUR)",
        "Fee 1.00",
        "Amount credited 1.19 EUR",
        "Notes",
    ];
    assert_says(&credit, &wanted);
    assert!(!credit.iter().any(|line| line.contains("IBAN")), "a credit shows no bank account");
    let debit = text("debit", &billed(DocumentKind::Debit));
    assert_says(&debit, &["Northwind Cloud Debit note", "Amount due 1.19 EUR", "IBAN DE89 3704 0044 0532 0130 00"]);
}

#[test]
fn a_draft_says_that_it_is_one() {
    let mut draft = invoice();
    draft.issued = None;
    draft.said.paper.as_mut().expect("legal particulars").language = Language::De;
    let file = print(&draft);
    let text = read("draft", &file);
    let letters: String = text.concat().chars().filter(char::is_ascii_uppercase).collect();
    assert!(!text.concat().contains("Ausstellungsdatum") && !text.concat().contains("Fällig"), "{text:#?}");
    // The watermark is diagonal, so its letters are on several lines.
    assert!("ENTWURF".chars().all(|letter| letters.contains(letter)), "{text:#?}");
    assert!(String::from_utf8_lossy(&file).contains("<xmp:CreateDate>2026-01-01T"), "the creation date is the opening date");
    draft.issued = invoice().issued;
    assert_ne!(print(&draft), file);
}

#[test]
fn documents_from_before_papers_are_drawn() {
    let mut old = invoice();
    old.said.paper = None;
    let text = text("format-1", &old);
    assert_says(&text, &["Acme SAS Northwind Cloud GmbH", "MAIN-INV-1042 1 Feb 2026 3 Mar 2026", "VAT 19% on 98.10 18.64 EUR"]);
    assert!(!text.iter().any(|line| line.contains("IBAN") || line.contains("Bremen")), "{text:#?}");
}

#[test]
fn more_than_five_hundred_lines_are_one_per_product() {
    let lines = |count: usize| (0..count).map(|i| used(&format!("Region {i}"), "10", "GB", "0.5", eur(500))).collect::<Vec<_>>();
    let billed = |count| vec![("API", "0", "0", NONE, lines(count)), ("Storage", "0", "0", NONE, lines(1))];
    let long = text("501-lines", &printout(DocumentKind::Invoice, billed(500)));
    let wanted = ["API", "Lines, not shown one by one: 500 2,500.00", "1 Jan 2026 – 31 Jan 2026", "Amount due 2,505.00 EUR"];
    assert_says(&long, &wanted);
    assert!(!long.iter().any(|line| line.starts_with("Region")), "{long:#?}");

    let shown = text("500-lines", &printout(DocumentKind::Invoice, billed(499)));
    assert_eq!(shown.iter().filter(|line| line.starts_with("Region")).count(), 500);
    let pages = shown.iter().filter(|line| line.contains("Page")).count();
    assert!(pages > 10 && shown.iter().any(|line| line.ends_with(&format!("Page {pages} of {pages}"))), "{pages}");
    assert_eq!(
        shown.iter().filter(|line| *line == "Description Quantity Unit price Amount (EUR)").count(),
        pages,
        "on each page"
    );
}

#[test]
fn what_no_font_has_is_refused_by_its_name() {
    let named = |name: &str| {
        let mut printout = invoice();
        printout.said.parties.customer_legal_name = Some(line(name));
        printout
    };
    let hebrew = named("Acme שלום בע״מ");
    let fonts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/printing/fonts");
    let with_hebrew = Printer::new(Some(fonts));
    for (name, missing) in [("Acme שלום", "ש"), ("株式会社", "株"), ("Acme 🙂", "🙂"), ("a\u{e000}b", "\u{e000}")] {
        assert_eq!(Printer::default().print(&named(name)), Err(PrintError::MissingGlyph(missing.to_owned())), "{name}");
    }
    assert_eq!(with_hebrew.print(&named("株式会社 שלום")), Err(PrintError::MissingGlyph("株".to_owned())));
    let text = read("hebrew", &with_hebrew.print(&hebrew).expect("a font with all characters").bytes);
    assert!(text.iter().any(|line| line.contains("Acme") && line.contains("שלום")), "{text:#?}");

    let nowhere = Printer::new(Some(PathBuf::from("/nonexistent")));
    let Err(PrintError::Failed(why)) = nowhere.print(&hebrew) else { panic!("expected an error for a missing folder") };
    assert!(why.starts_with("/nonexistent can't be read"), "{why}");
}

#[test]
fn every_character_of_the_built_in_fonts_is_drawn() {
    let mut printout = invoice();
    // Latin, Greek and Cyrillic letters, combining marks, and invisible characters.
    let written = "Łódź Ærøskøbing Ελλάδα Україна Đặng a\u{301}\u{327} ½ № € ₴ ₿ “x” ‑ fi x\u{ad}y x\u{feff}y x\u{200d}y x\u{200e}y x\u{2060}y\u{3000}z";
    printout.said.parties.customer_legal_name = Some(line(written));
    printout.said.note = Some(prose("one\n\n\ttwo \n  three"));
    let text = text("characters", &printout);
    let said = text.concat();
    for word in ["Łódź", "Ærøskøbing", "Ελλάδα", "Україна", "Đặng", "№", "₿"] {
        assert!(said.contains(word), "{word}: {text:#?}");
    }
    assert_says(&text, &["one", "two", "three"]);
}

#[test]
fn texts_are_data_and_never_source() {
    let mut printout = invoice();
    let source = "#panic(1) *b* _e_ $x^2$ = h @ref <label> `raw` \\ // c [y] #include \"invoice-1.typ\" -- ~ '\"";
    printout.said.parties.entity_name = line(source);
    printout.said.parties.customer_legal_name = Some(line(source));
    printout.said.note = Some(prose(source));
    let text = text("source", &printout);
    assert!(text.iter().any(|line| line == source), "a line of the note fits the text: {text:#?}");
    assert_eq!(text.concat().matches("#panic(1) *b* _e_ $x^2$ = h @ref").count(), 3, "{text:#?}");
}

#[test]
fn long_names_stay_within_their_places() {
    let mut printout = invoice();
    let long = "x".repeat(4096);
    printout.said.parties.entity_name = line(&long);
    printout.said.parties.entity_legal_name = Some(line(&long));
    printout.said.parties.customer_legal_name = Some(line(&long));
    printout.said.po_number = Some(line(&long));
    printout.said.note = Some(prose(&long));
    let product = &mut printout.said.content.products[0];
    product.name = line(&long);
    for line in &mut product.lines {
        line.name = fixtures::line(&long);
    }
    let text = text("long-names", &printout);
    let letters = text.concat().matches('x').count();
    // Counts the shown text and the excerpt in each page footer. Text outside a page is not read.
    let pages = text.iter().filter(|line| line.contains("Page ")).count();
    assert!(pages > 1 && letters >= 8 * 4096, "{letters} on {pages} pages");
    assert!(text.iter().all(|line| line.chars().count() < 200), "{text:#?}");
}
