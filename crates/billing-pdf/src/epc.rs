//! The QR code of a SEPA credit transfer: EPC069-12, version 002.

use billing_domain::document::DocumentKind;
use billing_domain::money::Money;
use billing_domain::party::bank::BankAccountProfile;
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};

/// The maximum length of the payee's name in characters.
const MAX_NAME_CHARS: usize = 70;
/// The maximum length of the remittance information in characters.
const MAX_REFERENCE_CHARS: usize = 140;
/// The maximum size of the data in bytes.
const MAX_BYTES: usize = 331;
/// The maximum amount, 999,999,999.99 EUR, in cents.
const MAX_CENTS: i64 = 99_999_999_999;

/// Returns the QR code as SVG for an amount that is due. Returns `None` if the transfer can't be a SEPA credit transfer: the
/// document is a credit, nothing is due, the currency is not the euro, or the account has no IBAN.
pub(crate) fn qr_code(
    kind: DocumentKind,
    due: Money,
    account: &BankAccountProfile,
    payee: &str,
    reference: &str,
) -> Option<String> {
    let data = data(kind, due, account, payee, reference)?;
    // The standard asks for the level M and at most version 13.
    let code = QrCode::with_error_correction_level(data, EcLevel::M).ok()?;
    Some(code.render::<svg::Color<'_>>().quiet_zone(true).module_dimensions(1, 1).build())
}

/// Returns the lines of the QR code: service tag, version, character set (UTF-8), identification, BIC, name, IBAN, amount, purpose,
/// structured reference, remittance information.
fn data(kind: DocumentKind, due: Money, account: &BankAccountProfile, payee: &str, reference: &str) -> Option<String> {
    let is_owed = kind != DocumentKind::Credit && (1..=MAX_CENTS).contains(&due.minor()) && due.currency().code() == "EUR";
    let iban = account.iban.as_ref().filter(|_| is_owed)?;
    let name = account.account_name.as_ref().map_or(payee, |name| name.as_str());
    let name: String = name.trim().chars().take(MAX_NAME_CHARS).collect();
    let bic = account.bic.as_ref().map_or("", |bic| bic.as_str());
    let amount = format!("EUR{}", due.to_decimal());
    let reference: String = reference.chars().take(MAX_REFERENCE_CHARS).collect();
    let lines = ["BCD", "002", "1", "SCT", bic, name.as_str(), iban.as_str(), &amount, "", "", &reference];
    let data = lines.join("\n");
    (!name.is_empty() && data.len() <= MAX_BYTES).then_some(data)
}

#[cfg(test)]
mod tests {
    use billing_domain::party::bank::{Bic, Iban};
    use billing_testkit::fixtures;

    use super::*;

    fn account() -> BankAccountProfile {
        BankAccountProfile {
            account_name: Some(fixtures::line("Northwind Cloud GmbH")),
            iban: Iban::parse("DE89370400440532013000").ok(),
            bic: Bic::parse("COBADEFFXXX").ok(),
            ..BankAccountProfile::default()
        }
    }

    fn eur(cents: i64) -> Money {
        Money::from_minor(cents, fixtures::eur())
    }

    fn of(due: Money, account: &BankAccountProfile) -> Option<String> {
        data(DocumentKind::Invoice, due, account, "Payee", "UB-INV-1")
    }

    #[test]
    fn a_transfer_has_the_lines_of_the_standard() {
        let wanted = "BCD\n002\n1\nSCT\nCOBADEFFXXX\nNorthwind Cloud GmbH\nDE89370400440532013000\nEUR116.74\n\n\nUB-INV-1";
        assert_eq!(of(eur(11_674), &account()).as_deref(), Some(wanted));
        let bare = BankAccountProfile { account_name: None, bic: None, ..account() };
        let wanted = "BCD\n002\n1\nSCT\n\nPayee\nDE89370400440532013000\nEUR0.01\n\n\nUB-INV-1";
        assert_eq!(of(eur(1), &bare).as_deref(), Some(wanted));
        assert!(data(DocumentKind::Debit, eur(1), &bare, "Payee", "UB-DBT-1").is_some());
    }

    #[test]
    fn only_what_is_due_in_euro_on_an_iban_has_a_code() {
        for cents in [0, -1, MAX_CENTS + 1] {
            assert_eq!(of(eur(cents), &account()), None, "{cents}");
        }
        assert!(of(eur(MAX_CENTS), &account()).is_some_and(|data| data.contains("\nEUR999999999.99\n")));
        assert_eq!(of(Money::from_minor(100, fixtures::currency("USD")), &account()), None);
        assert_eq!(of(eur(100), &BankAccountProfile { iban: None, ..account() }), None);
        assert_eq!(data(DocumentKind::Credit, eur(100), &account(), "Payee", "UB-CRD-1"), None);
        assert_eq!(
            data(DocumentKind::Invoice, eur(100), &BankAccountProfile { account_name: None, ..account() }, " ", "1"),
            None
        );
    }

    #[test]
    fn long_texts_are_cut_to_their_fields() {
        let named = |name: &str| BankAccountProfile { account_name: Some(fixtures::line(name)), ..account() };
        let long = data(DocumentKind::Invoice, eur(100), &named(&"n".repeat(100)), "", &"r".repeat(200)).expect("data");
        let lines: Vec<&str> = long.split('\n').collect();
        assert_eq!((lines[5].len(), lines[10].len(), long.len() <= MAX_BYTES), (70, 140, true));
        // Of letters with four bytes, fewer fit into the code.
        assert_eq!(data(DocumentKind::Invoice, eur(100), &named(&"𝒏".repeat(70)), "", &"r".repeat(140)), None);
        assert!(data(DocumentKind::Invoice, eur(100), &named("Müller"), "", "1").is_some_and(|data| data.contains("\nMüller\n")));
    }

    #[test]
    fn a_code_is_a_picture_of_dark_modules() {
        let svg = qr_code(DocumentKind::Invoice, eur(11_674), &account(), "Payee", "UB-INV-1").expect("a code");
        assert!(svg.contains("<svg") && svg.contains("<path fill=\"#000\""), "{svg}");
    }
}
