//! Renders documents and reads the files back with pdftotext.

mod factur_x;
mod printouts;
mod sums;

use std::path::PathBuf;
use std::process::Command;

use billing_domain::document::DocumentKind;
use billing_domain::document::calculation::{LineCalculation, Proration};
use billing_domain::document::legal_particulars::CorrectedDocument;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::Printout;
use billing_domain::party::appearance::{Logo, LogoFormat};
use billing_domain::party::legal::{Language, PaperSize};
use billing_domain::ports::{DocumentPrinter as _, PrintError};
use billing_domain::receivables::{StatementEntry, StatementKind, StatementPrintout, statement};
use billing_domain::tax::{ExchangeRate, TaxBasis, TaxCategory, TaxInCurrency};
use billing_testkit::fixtures;
use billing_typesetter::Printer;
use fixtures::{currency, date, line, price, prose};

use printouts::{
    calculated, charged, dec, eur, fixed, invoice, money, parties, per_unit, printout, printout_between, step, tiered, used,
};

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

/// Returns the path of a font of the distribution, which names of other scripts need.
fn system_font(name: &str) -> PathBuf {
    let mut folders = vec![PathBuf::from("/usr/share/fonts")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.file_name().is_some_and(|file| file == name) {
                return path;
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    panic!("the font {name} isn't installed: run `scripts/set-up tools`, which installs fonts-noto-core and fonts-noto-cjk");
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
        "Scan to pay",
        "Notes",
        "Thank you for your business.",
        "Northwind Cloud GmbH · Invoice MAIN-INV-1042 Page 1 of 1",
    ];
    assert_says(&text, &wanted);
    let periods = text.iter().filter(|line| line.contains("1 Jan 2026 – 31 Jan 2026")).count();
    assert_eq!(periods, 1, "the lines don't repeat the document's period: {text:#?}");
}

#[test]
fn the_same_document_is_the_same_file() {
    let (printer, invoice) = (Printer::default(), invoice());
    let file = printer.print(&invoice).expect("a file").bytes;
    let other = printout(DocumentKind::Credit, vec![("API", "0", "7", NONE, vec![fixed("Fee", eur(100))])]);
    assert_ne!(printer.print(&other).expect("a file").bytes, file);
    assert_eq!(printer.print(&invoice).expect("a file").bytes, file);
    assert_eq!(print(&invoice), file, "from another printer");

    let content = String::from_utf8_lossy(&file);
    for mark in ["<pdfaid:part>3", "<pdfaid:conformance>B", "<pdfuaid:part>1", "<xmp:CreateDate>2026-02-01T00:00:00+00:00"] {
        assert!(content.contains(mark), "{mark}");
    }
    assert!(!content.contains("Typst"), "the file does not name its tool");
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
        (Language::Ja, PaperSize::A4, "請求書", "2026/02/01", "API calls 1,500 calls 60.00", "ご請求額 1,116.74 EUR"),
        (Language::Sv, PaperSize::A4, "Faktura", "1 feb. 2026", "API calls 1 500 calls 60,00", "Att betala 1 116,74 EUR"),
        (
            Language::Da,
            PaperSize::A4,
            "Faktura",
            "1. feb. 2026",
            "API calls 1.500 calls 60,00",
            "Beløb til betaling 1.116,74 EUR",
        ),
        (Language::Nb, PaperSize::A4, "Faktura", "1. feb. 2026", "API calls 1 500 calls 60,00", "Å betale 1 116,74 EUR"),
        (Language::Fi, PaperSize::A4, "Lasku", "1.2.2026", "API calls 1 500 calls 60,00", "Maksettavaa 1 116,74 EUR"),
        (Language::Cs, PaperSize::A4, "Faktura", "1. 2. 2026", "API calls 1 500 calls 60,00", "K úhradě 1 116,74 EUR"),
        (Language::Hu, PaperSize::A4, "Számla", "2026. febr. 1.", "API calls 1500 calls 60,00", "Fizetendő 1116,74 EUR"),
        (Language::Ro, PaperSize::A4, "Factură", "1 feb. 2026", "API calls 1.500 calls 60,00", "Total de plată 1.116,74 EUR"),
    ];
    assert_eq!(rows.len(), Language::ALL.len());
    system_font("NotoSansCJK-Regular.ttc");
    for (language, size, title, issued, usage, due) in rows {
        let mut printout = invoice();
        let paper = printout.draft_content.paper.as_mut().expect("legal particulars");
        (paper.language, paper.size) = (language, size);
        // An amount above 1,000. Some languages group digits only from 10,000 on.
        let content = &mut printout.draft_content.content;
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
    french.draft_content.paper.as_mut().expect("legal particulars").language = Language::Fr;
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
    let paper = credit.draft_content.paper.as_mut().expect("legal particulars");
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
    let taxes: Vec<_> = printout.draft_content.content.taxes.iter().map(|tax| tax.amount).collect();
    let paper = printout.draft_content.paper.as_mut().expect("legal particulars");
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
    draft.draft_content.paper.as_mut().expect("legal particulars").language = Language::De;
    let file = print(&draft);
    let text = read("draft", &file);
    assert!(!text.concat().contains("Ausstellungsdatum") && !text.concat().contains("Fällig"), "{text:#?}");
    // The letters of a diagonal text would be on lines of their own.
    assert!(text.iter().all(|line| line.chars().count() > 2), "the watermark isn't part of the text: {text:#?}");
    assert!(String::from_utf8_lossy(&file).contains("<xmp:CreateDate>2026-01-01T"), "the creation date is the opening date");
    draft.issued = invoice().issued;
    assert_ne!(print(&draft), file);
}

#[test]
fn documents_from_before_papers_are_drawn() {
    let mut old = invoice();
    old.draft_content.paper = None;
    let text = text("format-1", &old);
    assert_says(&text, &["Acme SAS Northwind Cloud GmbH", "MAIN-INV-1042 1 Feb 2026 3 Mar 2026", "VAT 19% on 98.10 18.64 EUR"]);
    assert!(!text.iter().any(|line| line.contains("IBAN") || line.contains("Bremen")), "{text:#?}");
}

#[test]
fn more_than_five_hundred_lines_are_one_per_product() {
    let lines = |count: usize| (0..count).map(|i| used(&format!("Region {i}"), "10", "GB", "0.5", eur(500))).collect::<Vec<_>>();
    let billed = |count| vec![("API", "0", "0", NONE, lines(count)), ("Storage", "0", "0", NONE, lines(1))];
    let long = text("501-lines", &printout(DocumentKind::Invoice, billed(500)));
    let wanted = ["API", "Lines, not shown one by one: 500 2,500.00", "Amount due 2,505.00 EUR"];
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
fn what_no_font_has_is_a_box_and_is_named() {
    let named = |name: &str| {
        let mut printout = invoice();
        printout.draft_content.parties.customer_legal_name = Some(line(name));
        printout
    };
    let hebrew = named("Acme שלום בע״מ");
    let fonts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/printing/fonts");
    let (without, with_hebrew) = (Printer::without_system_fonts(None), Printer::without_system_fonts(Some(fonts)));
    let missing = |printer: &Printer, name: &str| {
        let text = read("boxes", &printer.print(&named(name)).expect("a file with boxes").bytes);
        let mut letters: Vec<char> = printer.missing_glyphs(&named(name)).chars().collect();
        assert!(!letters.is_empty() && !text.concat().contains(&letters[..]), "a box is no text: {text:#?}");
        letters.sort_unstable();
        letters.into_iter().collect::<String>()
    };
    for (name, letters) in [("Acme שלום", "ולםש"), ("株式会社 会社", "会式株社"), ("Acme 🙂", "🙂"), ("a\u{e000}b", "\u{e000}")]
    {
        assert_eq!(missing(&without, name), letters, "each missing character once: {name}");
    }
    assert_eq!(missing(&with_hebrew, "株式会社 שלום"), "会式株社");
    let text = read("hebrew", &with_hebrew.print(&hebrew).expect("a font with all characters").bytes);
    assert!(text.iter().any(|line| line.contains("Acme") && line.contains("שלום")), "{text:#?}");

    let nowhere = Printer::without_system_fonts(Some(PathBuf::from("/nonexistent")));
    assert_eq!(nowhere.missing_glyphs(&hebrew), "");
    let Err(PrintError::Failed(why)) = nowhere.print(&hebrew) else { panic!("expected an error for a missing folder") };
    assert!(why.starts_with("/nonexistent can't be read"), "{why}");
}

#[test]
fn every_character_of_the_built_in_fonts_is_drawn() {
    let mut printout = invoice();
    // Latin, Greek and Cyrillic letters, combining marks, and the invisible characters that names may have.
    let written = "Łódź Ærøskøbing Ελλάδα Україна Đặng a\u{301}\u{327} ½ № € ₴ ₿ “x” ‑ fi x\u{ad}y x\u{200d}y x\u{200e}y\u{3000}z y\u{61c}y y\u{e0100}y";
    printout.draft_content.parties.customer_legal_name = Some(line(written));
    printout.draft_content.note = Some(prose("one\n\n\ttwo \n  three"));
    let text = text("characters", &printout);
    let words = text.concat();
    for word in ["Łódź", "Ærøskøbing", "Ελλάδα", "Україна", "Đặng", "№", "₿"] {
        assert!(words.contains(word), "{word}: {text:#?}");
    }
    assert_says(&text, &["one", "two", "three"]);
}

#[test]
fn texts_are_data_and_never_source() {
    let mut printout = invoice();
    let source = "#panic(1) *b* _e_ $x^2$ = h @ref <label> `raw` \\ // c [y] #include \"invoice-2.typ\" -- ~ '\"";
    printout.draft_content.parties.entity_name = line(source);
    printout.draft_content.parties.customer_legal_name = Some(line(source));
    printout.draft_content.note = Some(prose(source));
    let text = text("source", &printout);
    assert!(text.iter().any(|line| line == source), "a line of the note fits the text: {text:#?}");
    assert_eq!(text.concat().matches("#panic(1) *b* _e_ $x^2$ = h @ref").count(), 3, "{text:#?}");
}

#[test]
fn long_names_stay_within_their_places() {
    let mut printout = invoice();
    let long = "x".repeat(4096);
    printout.draft_content.parties.entity_name = line(&long);
    printout.draft_content.parties.entity_legal_name = Some(line(&long));
    printout.draft_content.parties.customer_legal_name = Some(line(&long));
    printout.draft_content.po_number = Some(line(&long));
    printout.draft_content.note = Some(prose(&long));
    let product = &mut printout.draft_content.content.products[0];
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

fn number(kind: DocumentKind, sequence: u64) -> DocumentNumber {
    DocumentNumber { kind, sequence, ..invoice().head.number }
}

#[test]
fn a_line_shows_the_factors_of_its_amount() {
    let included = LineCalculation {
        included_quantity: Some(dec("10000")),
        billable_quantity: Some(dec("263677")),
        ..per_unit("273677", "0.0006")
    };
    let partial = LineCalculation {
        usage_quantity: None,
        billable_quantity: Some(dec("5")),
        proration: Some(Proration { days: 24, of_days: 30 }),
        ..per_unit("5", "12")
    };
    let mut late = calculated(fixed("Late", eur(500)), LineCalculation { usage_quantity: None, ..per_unit("1", "5") });
    late.service_period = fixtures::period("2025-12-01", "2025-12-31");
    let mut hours = used("Support", "3", "calls", "80", eur(24_000));
    hours.unit_code = "HUR".parse().ok();
    let lines = vec![
        calculated(used("Calls", "273677", "calls", "0.0006", eur(15_821)), included),
        calculated(fixed("Seats", eur(4_800)), partial),
        late,
        calculated(hours, per_unit("3", "80")),
    ];
    let wanted = [
        "Description Quantity Unit price Amount (EUR)",
        "Calls 273,677 calls 158.21",
        "273,677 calls, 10,000 included, 263,677 billed",
        "263,677 × 0.0006 = 158.2062",
        "Seats 5 48.00",
        "5 × 12.00 = 60.00",
        "24 of 30 days",
        "Late 1 5.00 5.00",
        "1 Dec 2025 – 31 Dec 2025",
        "Support 3 hours 80.00 240.00",
    ];
    assert_says(&text("calculations", &printout(DocumentKind::Invoice, vec![("API", "0", "0", NONE, lines)])), &wanted);
}

#[test]
fn the_tax_the_countries_and_reverse_charge_are_in_the_documents_language() {
    let (mut customer, mut entity) = parties();
    entity.profile.paper.tax_label = None;
    customer.profile.legal.language = Some(Language::Fr);
    for (address, code) in [(&mut customer.profile.billing_address, "FR"), (&mut entity.profile.address, "DE")] {
        address.as_mut().expect("an address").country_code = code.parse().ok();
    }
    let billed = |tax, basis| vec![("Services", "0", tax, basis, vec![fixed("Fee", eur(4_000))])];
    let between = (customer, entity);
    let taxed = printout_between(&between, DocumentKind::Invoice, fixtures::eur(), billed("20", NONE));
    let text_of_taxed = text("tva", &taxed);
    assert_says(&text_of_taxed, &["France Allemagne", "TVA 20 % sur 40,00 8,00 EUR"]);
    assert!(!text_of_taxed.concat().contains("USt"), "{text_of_taxed:#?}");

    let reverse = printout_between(&between, DocumentKind::Invoice, fixtures::eur(), billed("0", fixtures::reverse_charge()));
    let lines = text("autoliquidation", &reverse);
    assert_eq!(lines.iter().filter(|line| *line == "Autoliquidation").count(), 1, "{lines:#?}");
    assert!(!lines.concat().contains("Reverse charge"), "only once: {lines:#?}");
    let own = TaxBasis { exemption_reason: Some(line("Art. 196 Directive 2006/112/CE")), ..fixtures::reverse_charge() };
    let own = printout_between(&between, DocumentKind::Invoice, fixtures::eur(), billed("0", own));
    assert_says(&text("autoliquidation-196", &own), &["Autoliquidation (Art. 196 Directive 2006/112/CE)"]);
}

#[test]
fn names_of_other_scripts_are_found_in_the_text() {
    for (name, script, font) in [
        ("شركة النور", "arabic", "NotoSansArabic-Regular.ttf"),
        ("חברת האור", "hebrew-names", "NotoSansHebrew-Regular.ttf"),
        ("นคร ธนกร", "thai", "NotoSansThai-Regular.ttf"),
        ("株式会社 東京", "japanese", "NotoSansCJK-Regular.ttc"),
        ("주식회사 서울", "korean", "NotoSansCJK-Regular.ttc"),
    ] {
        system_font(font);
        let mut printout = invoice();
        printout.draft_content.parties.customer_legal_name = Some(line(name));
        let marks = |c: &char| !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let lines: String = text(script, &printout).join("\n").chars().filter(marks).collect();
        for word in name.split(' ') {
            assert!(lines.contains(word), "{word} of {script}: {lines}");
        }
    }
}

#[test]
fn the_systems_fonts_do_not_change_a_document_that_does_not_need_them() {
    system_font("NotoSansArabic-Regular.ttf");
    let printer = Printer::without_system_fonts(None);
    assert_eq!(printer.print(&invoice()).expect("a file").bytes, print(&invoice()));
}

#[test]
fn the_seller_has_a_logo_a_color_and_a_footer() {
    /// A picture of two pixels.
    const PNG: [u8; 72] = [
        137, 80, 78, 71, 13, 10, 26, 10, 0, 0, 0, 13, 73, 72, 68, 82, 0, 0, 0, 2, 0, 0, 0, 1, 8, 2, 0, 0, 0, 123, 64, 232, 221,
        0, 0, 0, 15, 73, 68, 65, 84, 120, 156, 99, 224, 142, 89, 123, 200, 145, 7, 0, 7, 157, 2, 36, 74, 19, 190, 176, 0, 0, 0,
        0, 73, 69, 78, 68, 174, 66, 96, 130,
    ];
    let plain = print(&invoice());
    let png = Logo { format: LogoFormat::Png, sha256: [0; 32], image: Some(PNG.as_slice().into()) };
    for (name, logo) in [("svg", fixtures::logo()), ("png", png)] {
        let mut printout = invoice();
        let paper = printout.draft_content.paper.as_mut().expect("legal particulars");
        paper.logo = Some(logo);
        paper.accent_color = "#0b5cad".parse().ok();
        paper.footer = "Northwind Cloud GmbH, Bremen\nRegister court Bremen, HRB 12345".parse().ok();
        let file = print(&printout);
        assert_ne!(file, plain);
        assert_eq!(print(&printout), file, "the same file each time");
        let lines = read(name, &file);
        assert_eq!(lines[0], "Invoice", "the logo takes the place of the name: {lines:#?}");
        let end: Vec<&str> = lines[lines.len() - 3..].iter().map(String::as_str).collect();
        let foot = "Northwind Cloud GmbH · Invoice MAIN-INV-1042 Page 1 of 1";
        assert_eq!(end, [foot, "Northwind Cloud GmbH, Bremen", "Register court Bremen, HRB 12345"]);
    }
    let mut without_image = invoice();
    let paper = without_image.draft_content.paper.as_mut().expect("legal particulars");
    paper.logo = Some(Logo { image: None, ..fixtures::logo() });
    assert_eq!(print(&without_image), plain, "a logo without its image isn't printed");
}

#[test]
fn notes_do_not_stand_alone_on_a_page() {
    // From one page to two.
    for count in (6..=30).step_by(2) {
        let lines: Vec<_> = (0..count).map(|i| fixed(&format!("Item {i}"), eur(100))).collect();
        let printout = printout(DocumentKind::Invoice, vec![("API", "0", "19", NONE, lines)]);
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("notes.pdf");
        std::fs::write(&path, print(&printout)).expect("a file");
        let read = Command::new("pdftotext").args(["-layout", "-enc", "UTF-8"]).arg(path).arg("-").output().expect("pdftotext");
        let text = String::from_utf8(read.stdout).expect("UTF-8");
        let page = text.split('\u{c}').find(|page| page.contains("Thank you")).expect("a note");
        assert!(page.contains("IBAN"), "{count} lines: {text}");
    }
}

#[test]
fn a_statement_is_printed_in_the_customers_language() {
    let (mut customer, entity) = parties();
    customer.profile.legal.language = Some(Language::De);
    let entry = |day: &str, kind, cents| StatementEntry {
        entity_ref: entity.entity_ref.clone(),
        date: date(day),
        kind,
        document: Some((invoice().head.document_ref, number(DocumentKind::Invoice, 1042))),
        payment_ref: None,
        reference: None,
        amount: eur(cents),
    };
    let entries =
        vec![entry("2026-02-01", StatementKind::Invoice, 116_740), entry("2026-03-02", StatementKind::Payment, -16_740)];
    let statement = StatementPrintout {
        customer,
        entities: vec![entity.clone()],
        accounts: statement(entries, None, None).expect("small amounts"),
        from: None,
        to: Some(date("2026-03-31")),
        day: date("2026-04-01"),
    };
    let printer = Printer::default();
    let file = printer.print_statement(&statement).expect("a file");
    assert_eq!(file, printer.print_statement(&statement).expect("a file"), "the same file each time");
    assert!(file.maker.ends_with("statement-1"), "{file:?}");
    let wanted = [
        "Kontoauszug",
        "bis 31.03.2026",
        "Acme SAS",
        "Northwind Cloud GmbH · EUR",
        "Datum Beleg Betrag Saldo",
        "Anfangssaldo 0,00",
        "01.02.2026 Rechnung MAIN-INV-1042 1.167,40 1.167,40",
        "02.03.2026 Zahlungseingang MAIN-INV-1042 -167,40 1.000,00",
        "Endsaldo 1.000,00",
        "Kontoauszug · 01.04.2026 Seite 1 von 1",
    ];
    assert_says(&read("statement", &file.bytes), &wanted);
    let nothing = StatementPrintout { accounts: Vec::new(), ..statement };
    assert_says(&read("no-statement", &printer.print_statement(&nothing).expect("a file").bytes), &["Keine Buchungen"]);
}
