//! The texts of e-invoices in the language of a document.

use crate::document::AppliedAtIssue;
use crate::party::NetTerms;
use crate::party::legal::Language;

/// The texts of a language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wording {
    /// Payment is due at once.
    due_upon_receipt: &'static str,
    /// Payment is due within a number of days, which replaces `{}`.
    due_within: &'static str,
    /// The document is a credit, so the payer owes nothing.
    credit: &'static str,
    /// The credits and surpluses that were applied to the document.
    applied: &'static str,
    /// The documents that a credit was applied to.
    applied_to: &'static str,
    /// A payment without a document, in place of a document's number.
    deposit: &'static str,
}

impl Wording {
    /// Returns the texts of a language.
    #[expect(clippy::too_many_lines, reason = "a table of words")]
    pub(super) const fn of(language: Language) -> Self {
        let [due_upon_receipt, due_within, credit, applied, applied_to, deposit] = match language {
            Language::En => [
                "Payment due upon receipt",
                "Payment due within {} days",
                "Credit note, no payment due",
                "Credits applied",
                "Applied to",
                "Payment",
            ],
            Language::De => [
                "Zahlbar sofort",
                "Zahlbar innerhalb von {} Tagen",
                "Gutschrift, keine Zahlung erforderlich",
                "Verrechnete Gutschriften",
                "Verrechnet mit",
                "Zahlungseingang",
            ],
            Language::Fr => [
                "Paiement à réception",
                "Paiement sous {} jours",
                "Avoir, aucun paiement dû",
                "Avoirs imputés",
                "Imputé sur",
                "Encaissement",
            ],
            Language::Es => {
                ["Pago a la recepción", "Pago a {} días", "Abono, sin importe a pagar", "Abonos aplicados", "Aplicado a", "Cobro"]
            }
            Language::It => [
                "Pagamento a vista",
                "Pagamento entro {} giorni",
                "Nota di credito, nessun pagamento dovuto",
                "Crediti applicati",
                "Applicato a",
                "Incasso",
            ],
            Language::Nl => [
                "Betaling bij ontvangst",
                "Betaling binnen {} dagen",
                "Creditnota, geen betaling verschuldigd",
                "Verrekende tegoeden",
                "Verrekend met",
                "Ontvangst",
            ],
            Language::Pt => [
                "Pagamento a pronto",
                "Pagamento no prazo de {} dias",
                "Nota de crédito, sem pagamento devido",
                "Créditos aplicados",
                "Aplicado a",
                "Recebimento",
            ],
            Language::Pl => [
                "Płatność natychmiast",
                "Płatność w ciągu {} dni",
                "Nota kredytowa, brak płatności",
                "Zaliczone noty kredytowe",
                "Zaliczono na",
                "Wpłata",
            ],
            Language::Ja => [
                "請求書受領時にお支払いください",
                "{} 日以内にお支払いください",
                "クレジットノート、お支払いは不要です",
                "充当されたクレジット",
                "充当先",
                "入金",
            ],
            Language::Sv => [
                "Betalas omgående",
                "Betalas inom {} dagar",
                "Kreditfaktura, ingen betalning krävs",
                "Avräknade krediter",
                "Avräknad mot",
                "Inbetalning",
            ],
            Language::Da => [
                "Betales straks",
                "Betales inden for {} dage",
                "Kreditnota, ingen betaling",
                "Modregnede kreditnotaer",
                "Modregnet i",
                "Indbetaling",
            ],
            Language::Nb => [
                "Betales omgående",
                "Betales innen {} dager",
                "Kreditnota, ingen betaling",
                "Avregnede kreditnotaer",
                "Avregnet mot",
                "Innbetaling",
            ],
            Language::Fi => [
                "Maksetaan heti",
                "Maksuaika {} päivää",
                "Hyvityslasku, ei maksettavaa",
                "Kohdistetut hyvitykset",
                "Kohdistettu",
                "Suoritus",
            ],
            Language::Cs => {
                ["Splatné ihned", "Splatné do {} dnů", "Dobropis, bez platby", "Započtené dobropisy", "Započteno na", "Platba"]
            }
            Language::Hu => [
                "Azonnal fizetendő",
                "Fizetendő {} napon belül",
                "Jóváíró számla, nem fizetendő",
                "Beszámított jóváírások",
                "Beszámítva",
                "Befizetés",
            ],
            Language::Ro => [
                "Plata la primire",
                "Plata în termen de {} zile",
                "Notă de credit, fără plată",
                "Credite aplicate",
                "Aplicat la",
                "Încasare",
            ],
        };
        Self { due_upon_receipt, due_within, credit, applied, applied_to, deposit }
    }

    /// Returns the net terms in words (BT-20).
    pub(super) fn net_terms(self, terms: NetTerms) -> String {
        match terms {
            NetTerms::Days(days) => self.due_within.replace("{}", &days.to_string()),
            NetTerms::DueUponReceipt | NetTerms::DueUponUsage => self.due_upon_receipt.to_owned(),
        }
    }

    /// Returns the terms of a credit.
    pub(super) fn credit(self) -> String {
        self.credit.to_owned()
    }

    /// Returns the note about amounts that were applied at the issue. An amount of a deposit has no document.
    pub(super) fn applied(self, is_credit: bool, amounts: &[AppliedAtIssue]) -> String {
        let named = |AppliedAtIssue { document_number, amount }: &AppliedAtIssue| match document_number {
            Some(document_number) => format!("{document_number} {amount}"),
            None => format!("{} {amount}", self.deposit),
        };
        let amounts: Vec<String> = amounts.iter().map(named).collect();
        format!("{}: {}", if is_credit { self.applied_to } else { self.applied }, amounts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::{Currency, Money};

    #[test]
    fn every_language_names_the_days() {
        let deposit =
            [AppliedAtIssue { document_number: None, amount: Money::zero(Currency::from_code("EUR").expect("a currency")) }];
        for language in Language::ALL {
            let words = Wording::of(language);
            assert!(words.net_terms(NetTerms::Days(30)).contains("30"), "{language:?}");
            let texts = [
                words.net_terms(NetTerms::DueUponReceipt),
                words.credit(),
                words.applied(true, &deposit),
                words.applied(false, &deposit),
            ];
            assert!(texts.iter().all(|text| !text.contains("{}")), "{language:?}: {texts:?}");
        }
        assert_eq!(Wording::of(Language::De).applied(false, &deposit), "Verrechnete Gutschriften: Zahlungseingang 0.00 EUR");
    }
}
