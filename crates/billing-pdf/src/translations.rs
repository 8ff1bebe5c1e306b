//! The fixed texts of documents: one table per language. A missing translation does not compile.

mod cs;
mod da;
mod de;
mod en;
mod es;
mod fi;
mod fr;
mod hu;
mod it;
mod ja;
mod nb;
mod nl;
mod pl;
mod pt;
mod ro;
mod sv;

use billing_domain::codes::{CountryCode, UnitCode};
use billing_domain::document::DocumentKind;
use billing_domain::party::legal::Language;

/// The texts of one language. The placeholder `{}` stands for a value, `{0}` and `{1}` for one of several values.
#[derive(Debug)]
pub(crate) struct Translations {
    /// BCP 47.
    pub(crate) code: &'static str,
    pub(crate) invoice: &'static str,
    pub(crate) credit: &'static str,
    pub(crate) debit: &'static str,
    /// The watermark of a draft.
    pub(crate) draft: &'static str,
    pub(crate) number: &'static str,
    pub(crate) issue_date: &'static str,
    pub(crate) due_date: &'static str,
    pub(crate) service_period: &'static str,
    pub(crate) po_number: &'static str,
    pub(crate) buyer_reference: &'static str,
    pub(crate) supply: &'static str,
    /// Services, goods, and both.
    pub(crate) id_generator: [&'static str; 3],
    /// The text before the number of the corrected document.
    pub(crate) corrects: &'static str,
    pub(crate) seller: &'static str,
    pub(crate) customer: &'static str,
    pub(crate) vat_id: &'static str,
    pub(crate) tax_id: &'static str,
    pub(crate) registration: &'static str,
    pub(crate) contact: &'static str,
    pub(crate) description: &'static str,
    pub(crate) quantity: &'static str,
    pub(crate) unit_price: &'static str,
    pub(crate) amount: &'static str,
    /// The text before the day from which a quantity applies.
    pub(crate) from: &'static str,
    pub(crate) minimum_fee: &'static str,
    /// The number of lines, which replaces the lines of a long document.
    pub(crate) lines: &'static str,
    pub(crate) discount: &'static str,
    pub(crate) sub_total: &'static str,
    pub(crate) net: &'static str,
    /// The text between a tax and its base amount.
    pub(crate) tax_on: &'static str,
    /// The text between a tax and the currency of its amount.
    pub(crate) tax_in: &'static str,
    /// The text after a rate.
    pub(crate) percent: &'static str,
    /// The legally required text for reverse charge.
    pub(crate) reverse_charge: &'static str,
    pub(crate) total: &'static str,
    pub(crate) amount_due: &'static str,
    /// The total of a credit.
    pub(crate) credited: &'static str,
    pub(crate) payment: &'static str,
    pub(crate) account_name: &'static str,
    pub(crate) account_number: &'static str,
    pub(crate) routing_number: &'static str,
    pub(crate) bank: &'static str,
    pub(crate) payment_reference: &'static str,
    pub(crate) notes: &'static str,
    /// The texts around the page number and the number of pages.
    pub(crate) page: [&'static str; 2],
    /// A row for a credit or a surplus that was applied at the issue.
    pub(crate) applied: &'static str,
    /// A row for a document that a credit was applied to at its issue.
    pub(crate) applied_to: &'static str,
    /// What is left of a credit at its issue.
    pub(crate) credit_left: &'static str,
    /// The included quantity of a calculation.
    pub(crate) included: &'static str,
    /// The prepaid quantity of a calculation.
    pub(crate) prepaid: &'static str,
    /// The priced quantity, or the amount that counts for a minimum fee if all lines count.
    pub(crate) billed: &'static str,
    /// A rate of an amount: `{0}` of `{1}`.
    pub(crate) percent_of: &'static str,
    /// Packages: their number, their size and the price of one.
    pub(crate) packages: &'static str,
    /// Days of a period: `{0}` of `{1}`.
    pub(crate) of_days: &'static str,
    /// The minimum that raised an amount.
    pub(crate) minimum: &'static str,
    /// The maximum that lowered an amount.
    pub(crate) maximum: &'static str,
    /// The minimum fee of a whole period.
    pub(crate) minimum_fee_of: &'static str,
    /// The amount that counts for a minimum fee, if some lines don't count.
    pub(crate) counted: &'static str,
    /// The lines that don't count for a minimum fee, with their amounts.
    pub(crate) not_counted: &'static str,
    /// The price that the factors give now.
    pub(crate) now: &'static str,
    /// What documents bill of the same price: their numbers `{0}` and the amount `{1}`.
    pub(crate) billed_on: &'static str,
    /// What documents without a number bill of the same price.
    pub(crate) billed_before: &'static str,
    /// What drafts bill of the same price: their numbers in parentheses `{0}`, if any, and the amount `{1}`.
    pub(crate) unissued: &'static str,
    /// The price now less what other documents bill.
    pub(crate) difference: &'static str,
    /// The caption of the QR code for a transfer.
    pub(crate) scan: &'static str,
    /// The description of the QR code for screen readers.
    pub(crate) qr_code: &'static str,
    /// The title of a statement.
    pub(crate) statement: &'static str,
    /// The first day of a statement.
    pub(crate) from_day: &'static str,
    /// The last day of a statement.
    pub(crate) to_day: &'static str,
    pub(crate) opening_balance: &'static str,
    pub(crate) closing_balance: &'static str,
    pub(crate) date: &'static str,
    pub(crate) document: &'static str,
    pub(crate) balance: &'static str,
    /// The entry of a statement for a voided document.
    pub(crate) voided: &'static str,
    /// The entry of a statement for a payment.
    pub(crate) payment_received: &'static str,
    pub(crate) refund: &'static str,
    pub(crate) reversal: &'static str,
    pub(crate) write_off: &'static str,
    pub(crate) no_entries: &'static str,
    /// The names of units of time, which unit codes stand for.
    pub(crate) units: Units,
}

/// The names of units of time.
#[derive(Debug)]
pub(crate) struct Units {
    pub(crate) hours: &'static str,
    pub(crate) minutes: &'static str,
    pub(crate) seconds: &'static str,
    pub(crate) days: &'static str,
    pub(crate) weeks: &'static str,
    pub(crate) months: &'static str,
    pub(crate) years: &'static str,
}

impl Units {
    /// Returns the name of the unit that a code of UN/ECE Recommendation 20 stands for: a word of the language, or a symbol that
    /// all languages share. Returns `None` for any other unit.
    pub(crate) fn named(&self, code: UnitCode) -> Option<&'static str> {
        Some(match code.as_str() {
            "HUR" => self.hours,
            "MIN" => self.minutes,
            "SEC" => self.seconds,
            "DAY" => self.days,
            "WEE" => self.weeks,
            "MON" => self.months,
            "ANN" => self.years,
            "2P" => "kB",
            "4L" => "MB",
            "E34" => "GB",
            "E35" => "TB",
            "KGM" => "kg",
            "KMT" => "km",
            "KWH" => "kWh",
            "LTR" => "l",
            "MTR" => "m",
            "MWH" => "MWh",
            _ => return None,
        })
    }
}

/// Replaces the placeholder `{}` of a text.
pub(crate) fn with(text: &str, value: &str) -> String {
    text.replacen("{}", value, 1)
}

/// Replaces the placeholders `{0}`, `{1}` and so on of a text.
pub(crate) fn with_all(text: &str, values: &[&str]) -> String {
    let mut parts = text.split('{');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A part begins with the number of its value.
        let (number, rest) = part.split_once('}').unwrap_or_default();
        filled.push_str(number.parse().ok().and_then(|number: usize| values.get(number).copied()).unwrap_or_default());
        filled.push_str(rest);
    }
    filled
}

impl Translations {
    /// Returns the texts of a language.
    pub(crate) const fn of(language: Language) -> &'static Self {
        match language {
            Language::En => &en::WORDS,
            Language::De => &de::WORDS,
            Language::Fr => &fr::WORDS,
            Language::Es => &es::WORDS,
            Language::It => &it::WORDS,
            Language::Nl => &nl::WORDS,
            Language::Pt => &pt::WORDS,
            Language::Pl => &pl::WORDS,
            Language::Ja => &ja::WORDS,
            Language::Sv => &sv::WORDS,
            Language::Da => &da::WORDS,
            Language::Nb => &nb::WORDS,
            Language::Fi => &fi::WORDS,
            Language::Cs => &cs::WORDS,
            Language::Hu => &hu::WORDS,
            Language::Ro => &ro::WORDS,
        }
    }

    /// Returns the title of a document of a kind.
    pub(crate) const fn title(&self, kind: DocumentKind) -> &'static str {
        match kind {
            DocumentKind::Invoice => self.invoice,
            DocumentKind::Credit => self.credit,
            DocumentKind::Debit => self.debit,
        }
    }
}

/// Returns the name of a country in a language.
pub(crate) fn country_name(code: CountryCode, language: Language) -> Option<&'static str> {
    let names = match language {
        Language::En => include_str!("countries/en.txt"),
        Language::De => include_str!("countries/de.txt"),
        Language::Fr => include_str!("countries/fr.txt"),
        Language::Es => include_str!("countries/es.txt"),
        Language::It => include_str!("countries/it.txt"),
        Language::Nl => include_str!("countries/nl.txt"),
        Language::Pt => include_str!("countries/pt.txt"),
        Language::Pl => include_str!("countries/pl.txt"),
        Language::Ja => include_str!("countries/ja.txt"),
        Language::Sv => include_str!("countries/sv.txt"),
        Language::Da => include_str!("countries/da.txt"),
        Language::Nb => include_str!("countries/nb.txt"),
        Language::Fi => include_str!("countries/fi.txt"),
        Language::Cs => include_str!("countries/cs.txt"),
        Language::Hu => include_str!("countries/hu.txt"),
        Language::Ro => include_str!("countries/ro.txt"),
    };
    names.lines().find_map(|line| line.strip_prefix(code.as_str())?.strip_prefix(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts of a table with their field names.
    fn words(table: &Translations) -> Vec<String> {
        let shown = format!("{table:#?}");
        shown.lines().map(|line| line.trim().trim_end_matches(',').to_owned()).filter(|line| line.contains('"')).collect()
    }

    /// Returns the placeholders of a text in the order of their numbers.
    fn places(text: &str) -> Vec<&str> {
        let numbers = text.split('{').skip(1).filter_map(|part| Some(part.split_once('}')?.0));
        // The escape of a character, such as \u{a0}, is no placeholder.
        let mut places: Vec<&str> = numbers.filter(|number| number.bytes().all(|b| b.is_ascii_digit())).collect();
        places.retain(|number| number.len() < 2);
        places.sort_unstable();
        places
    }

    #[test]
    fn every_language_has_every_word() {
        let english = words(Translations::of(Language::En));
        for language in Language::ALL {
            let table = Translations::of(language);
            assert_eq!(table.code, format!("{language:?}").to_lowercase());
            let words = words(table);
            assert_eq!(words.len(), english.len(), "{}", table.code);
            for (word, english) in words.iter().zip(&english) {
                assert!(!word.contains("\"\""), "{}: {word}", table.code);
                assert_eq!(places(word), places(english), "{}: {word}", table.code);
            }
        }
    }

    #[test]
    fn a_language_is_none_of_the_others() {
        for (i, language) in Language::ALL.into_iter().enumerate() {
            for other in Language::ALL.into_iter().skip(i + 1) {
                let (words, others) = (words(Translations::of(language)), words(Translations::of(other)));
                let same = words.iter().zip(&others).filter(|(word, other)| word == other).count();
                assert!(same < words.len() / 2, "{language:?} and {other:?} share {same} words");
            }
        }
    }

    #[test]
    fn every_country_has_a_name_in_every_language() {
        for language in Language::ALL {
            for code in CountryCode::all() {
                let code = CountryCode::parse(code).expect(code);
                assert!(country_name(code, language).is_some_and(|name| !name.is_empty()), "{code} in {language:?}");
            }
        }
        let name = |code: &str, language| country_name(CountryCode::parse(code).expect(code), language);
        assert_eq!(name("DE", Language::Fr), Some("Allemagne"));
        assert_eq!(name("FR", Language::Ja), Some("フランス"));
        assert_eq!(name("HK", Language::De), Some("Hongkong"));
    }

    #[test]
    fn placeholders_are_replaced_in_the_order_of_the_language() {
        assert_eq!(with("from {}", "{}"), "from {}");
        assert_eq!(with_all("{1} of {0}%", &["a", "{1}"]), "{1} of a%");
        assert_eq!(with_all("{1}, {1}{2}", &["a", "b"]), "b, b");
        assert_eq!(with_all("plain", &[]), "plain");
    }

    #[test]
    fn a_unit_code_is_a_word_or_a_symbol() {
        let named = |code: &str, language| Translations::of(language).units.named(UnitCode::parse(code).expect(code));
        assert_eq!(named("HUR", Language::Fr), Some("heures"));
        assert_eq!(named("E34", Language::Fr), Some("GB"));
        assert_eq!(named("C62", Language::Fr), None);
        for code in ["MIN", "SEC", "DAY", "WEE", "MON", "ANN", "2P", "4L", "E35", "KGM", "KMT", "KWH", "LTR", "MTR", "MWH"] {
            assert!(named(code, Language::En).is_some(), "{code}");
        }
    }
}
