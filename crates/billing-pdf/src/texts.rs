//! Texts of a template's data: users' texts that may be broken, labeled values, and addresses.

use billing_domain::party::Address;
use billing_domain::party::legal::Language;
use billing_domain::text::Prose;
use serde::Serialize;

use crate::translations::country_name;

/// The number of unbreakable characters that fit into half a page.
const WIDE: usize = 40;
/// The number of unbreakable characters that fit into a third of a page.
const NARROW: usize = 20;
/// The maximum length of a name in the footer, which has space for one line only.
const FOOT_CHARS: usize = 60;
/// The maximum number of lines of the seller's footer. A footer with more lines is written without line breaks.
const FOOTER_LINES: usize = 6;
/// The number of characters on a line of the seller's footer. Wide characters count twice.
const FOOTER_CHARS: usize = 110;
/// The first wide character: from here on are the scripts of Eastern Asia.
const FIRST_WIDE: char = '\u{1100}';

/// A user's text, which may be broken if it is wider than its space.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct Text(pub(crate) String);

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        Self::within(WIDE, text)
    }

    fn within(room: usize, text: &str) -> Self {
        let mut broken = String::with_capacity(text.len());
        let mut unbroken = 0;
        // The byte order mark is invisible and not allowed in archival PDF.
        for c in text.chars().filter(|c| *c != '\u{feff}') {
            unbroken = if c.is_whitespace() || c == '-' { 0 } else { unbroken + 1 };
            if unbroken > room && c.is_alphanumeric() {
                broken.push('\u{200b}');
                unbroken = 1;
            }
            broken.push(c);
        }
        Self(isolated(broken))
    }

    /// Returns the lines of a text that are not empty.
    pub(crate) fn lines(text: &str) -> impl Iterator<Item = Self> {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Self::new)
    }
}

/// Encloses a text that begins in a script from right to left and also has other letters or digits with marks of direction, so
/// that its parts are in the order of its own script.
fn isolated(text: String) -> String {
    let is_right_to_left = |c: char| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}');
    let begins = text.chars().find(|c| c.is_alphabetic()).is_some_and(is_right_to_left);
    let is_mixed = text.chars().any(|c| c.is_alphanumeric() && !is_right_to_left(c));
    if begins && is_mixed { format!("\u{2068}{text}\u{2069}") } else { text }
}

/// A labeled value.
#[derive(Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) label: String,
    pub(crate) value: Text,
}

impl Entry {
    pub(crate) fn new(label: impl Into<String>, value: &str) -> Self {
        Self { label: label.into(), value: Text::new(value) }
    }

    /// Creates an entry for a formatted number or date, which is never broken.
    pub(crate) fn figure(label: impl Into<String>, value: String) -> Self {
        Self { label: label.into(), value: Text(value) }
    }

    /// Creates an entry for a narrow space.
    pub(crate) fn narrow(label: &str, value: &str) -> Self {
        Self { label: label.to_owned(), value: Text::within(NARROW, value) }
    }

    pub(crate) fn maybe(label: &str, value: Option<&str>) -> Option<Self> {
        value.map(|value| Self::new(label, value))
    }
}

/// The seller's text at the end of each page.
#[derive(Debug, Serialize)]
pub(crate) struct Footer {
    lines: Vec<Text>,
    /// The number of printed lines at most, for which the margin has room.
    rows: usize,
}

impl Footer {
    pub(crate) fn of(text: &str) -> Self {
        let mut lines: Vec<String> = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
        if lines.len() > FOOTER_LINES {
            lines = vec![lines.join(" · ")];
        }
        let width = |line: &String| line.chars().map(|c| if c < FIRST_WIDE { 1 } else { 2 }).sum::<usize>();
        let rows = lines.iter().map(|line| width(line).div_ceil(FOOTER_CHARS).max(1)).sum();
        Self { lines: lines.iter().map(|line| Text::new(line)).collect(), rows }
    }
}

/// Returns an address from its first line to its country in postal order. The postal code precedes the city, but
/// follows it if a state is given. A country with a code has its name in the language.
pub(crate) fn address_lines(address: &Address, language: Language) -> Vec<Text> {
    let Address { line1, line2, city, state, zip_code, country, country_code } = address;
    let text = |part: &Option<Prose>| part.as_ref().map(|part| part.as_str().trim().to_owned());
    let place = match (text(zip_code), text(city), text(state)) {
        (zip_code, city, None) => [zip_code, city].into_iter().flatten().collect::<Vec<_>>().join(" "),
        (zip_code, city, Some(state)) => {
            let state = [Some(state), zip_code].into_iter().flatten().collect::<Vec<_>>().join(" ");
            [city, Some(state)].into_iter().flatten().collect::<Vec<_>>().join(", ")
        }
    };
    let named = country_code.and_then(|code| country_name(code, language)).map(str::to_owned);
    let country = named.or_else(|| text(country)).or_else(|| country_code.map(|code| code.to_string()));
    let lines = [text(line1), text(line2), Some(place), country];
    lines.into_iter().flatten().flat_map(|line| Text::lines(&line).collect::<Vec<_>>()).collect()
}

/// Shortens a name to the length of a line.
pub(crate) fn shortened(name: &str) -> String {
    if name.chars().count() <= FOOT_CHARS {
        return name.to_owned();
    }
    name.chars().take(FOOT_CHARS).chain(std::iter::once('…')).collect()
}

/// Returns the font families of a document: the built-in one, and the one for the Han characters of a country, which each country
/// writes in its own form.
pub(crate) fn font_families(language: Language, country: Option<&str>) -> [&'static str; 2] {
    let han = match (language, country) {
        (Language::Ja, _) => "Noto Sans CJK JP",
        (_, Some("CN" | "SG")) => "Noto Sans CJK SC",
        (_, Some("TW")) => "Noto Sans CJK TC",
        (_, Some("HK" | "MO")) => "Noto Sans CJK HK",
        (_, Some("KR" | "KP")) => "Noto Sans CJK KR",
        _ => "Noto Sans CJK JP",
    };
    ["Noto Sans", han]
}

#[cfg(test)]
mod tests {
    use billing_testkit::fixtures;

    use super::*;

    #[test]
    fn a_country_is_named_in_the_language_of_the_document() {
        let last = |address: &Address, language| address_lines(address, language).pop().map(|line| line.0);
        let mut address = Address { country: Some(fixtures::prose("Germany")), ..Address::default() };
        assert_eq!(last(&address, Language::Fr).as_deref(), Some("Germany"), "without a code, as it was written");
        address.country_code = "DE".parse().ok();
        assert_eq!(last(&address, Language::Fr).as_deref(), Some("Allemagne"));
        assert_eq!(last(&address, Language::Ja).as_deref(), Some("ドイツ"));
    }

    #[test]
    fn a_text_from_right_to_left_has_its_own_order() {
        assert_eq!(Text::new("مكالمات API").0, "\u{2068}مكالمات API\u{2069}");
        for text in ["API مكالمات", "مكالمات", "API 12", ""] {
            assert_eq!(Text::new(text).0, text);
        }
    }

    #[test]
    fn a_footer_has_as_many_rows_as_it_needs() {
        let rows = |text: &str| (Footer::of(text).lines.len(), Footer::of(text).rows);
        assert_eq!(rows("one\n\n two \n"), (2, 2));
        assert_eq!(rows(&"a ".repeat(250)), (1, 5));
        assert_eq!(rows(&"ア".repeat(110)), (1, 2));
        assert_eq!(rows(&"a\n".repeat(250)), (1, 10));
    }
}
