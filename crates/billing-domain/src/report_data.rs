//! Report data of events: columns of the usage report, which are also the labels of the event.

use std::borrow::Cow;

use thiserror::Error;

/// The maximum number of report data keys of an event.
pub const MAX_REPORT_KEYS: usize = 100;
/// The maximum length of a report data key in characters.
pub const MAX_REPORT_KEY_CHARS: usize = 128;
/// The maximum length of a report data value in bytes.
pub const MAX_REPORT_VALUE_BYTES: usize = 2048;
/// The maximum length of a number in plain digits. A longer number is compared as it was sent.
const MAX_PLAIN_DIGITS: usize = 128;

/// A value of additional report data. Numbers keep their original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportValue {
    /// JSON `null`.
    Null,
    /// JSON `true` or `false`.
    Bool(bool),
    /// A JSON number in its original text.
    Number(String),
    /// A string.
    Text(String),
}

impl ReportValue {
    /// Returns the length of the value's text in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(text) | Self::Text(text) => text.len(),
        }
    }

    /// Returns the text of the value as a label, or `None` if it has none. See [`ReportData::label`].
    pub fn label(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Self::Number(number) => Some(plain_number(number)),
            Self::Text(text) => Some(Cow::Borrowed(text.as_str())).filter(|text| !text.is_empty()),
        }
    }
}

/// Additional report data of an event: ordered keys and values that become columns of the usage report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportData(Vec<(String, ReportValue)>);

/// An error of the keys that a usage format or a condition names. Keys of events are never rejected: see [`ReportData::new`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReportKeyError {
    /// There are more than [`MAX_REPORT_KEYS`] keys.
    #[error("must have at most {MAX_REPORT_KEYS} keys")]
    TooMany,
    /// The key is empty, too long or contains control characters.
    #[error("keys must be 1 to {MAX_REPORT_KEY_CHARS} characters without control characters")]
    Invalid(String),
}

/// Checks a key that a usage format or a condition names: 1 to [`MAX_REPORT_KEY_CHARS`] characters without control characters.
///
/// # Errors
/// Returns [`ReportKeyError::Invalid`] for any other text.
pub fn check_report_key(key: &str) -> Result<(), ReportKeyError> {
    let is_short = key.chars().nth(MAX_REPORT_KEY_CHARS).is_none();
    let is_valid = !key.is_empty() && is_short && !key.chars().any(char::is_control);
    if is_valid { Ok(()) } else { Err(ReportKeyError::Invalid(key.to_owned())) }
}

/// Returns a key as report data keeps it: with spaces instead of control characters, and at most [`MAX_REPORT_KEY_CHARS`] long.
/// Returns `None` for an empty key.
fn kept_key(key: String) -> Option<String> {
    if check_report_key(&key).is_ok() {
        return Some(key);
    }
    let visible = key.chars().map(|c| if c.is_control() { ' ' } else { c });
    Some(visible.take(MAX_REPORT_KEY_CHARS).collect()).filter(|key: &String| !key.is_empty())
}

/// Returns a value as report data keeps it. A number that is cut is a text.
fn kept_value(value: ReportValue) -> ReportValue {
    match value {
        ReportValue::Text(text) => ReportValue::Text(kept_text(text)),
        ReportValue::Number(text) if text.len() > MAX_REPORT_VALUE_BYTES => ReportValue::Text(kept_text(text)),
        other => other,
    }
}

/// Returns a text with U+FFFD instead of control characters other than line breaks and tabs, cut to [`MAX_REPORT_VALUE_BYTES`].
fn kept_text(text: String) -> String {
    const CUT: char = '…';
    let is_replaced = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if text.len() <= MAX_REPORT_VALUE_BYTES && !text.chars().any(is_replaced) {
        return text;
    }
    let mut kept = String::new();
    for c in text.chars().map(|c| if is_replaced(c) { char::REPLACEMENT_CHARACTER } else { c }) {
        kept.push(c);
        if kept.len() > MAX_REPORT_VALUE_BYTES {
            kept.truncate(kept.floor_char_boundary(MAX_REPORT_VALUE_BYTES - CUT.len_utf8()));
            kept.push(CUT);
            break;
        }
    }
    kept
}

impl ReportData {
    /// Creates report data. Usage is never rejected for the form of its report data, so this function fits it to the limits:
    ///
    /// - A key has spaces instead of control characters and is cut to [`MAX_REPORT_KEY_CHARS`]. An empty key is dropped.
    /// - A text keeps line breaks and tabs. U+FFFD replaces other control characters. A longer text is cut to
    ///   [`MAX_REPORT_VALUE_BYTES`] with `…` at its end.
    /// - Of equal keys, the first one is kept, and of all keys the first [`MAX_REPORT_KEYS`].
    pub fn new(entries: impl IntoIterator<Item = (String, ReportValue)>) -> Self {
        let mut kept: Vec<(String, ReportValue)> = Vec::new();
        for (key, value) in entries {
            if kept.len() == MAX_REPORT_KEYS {
                break;
            }
            if let Some(key) = kept_key(key)
                && kept.iter().all(|(earlier, _)| *earlier != key)
            {
                kept.push((key, kept_value(value)));
            }
        }
        Self(kept)
    }

    /// Returns the keys and values in their original order.
    pub fn entries(&self) -> &[(String, ReportValue)] {
        &self.0
    }
}

impl ReportData {
    /// Returns the text of a label, by which conditions compare it. A number is written in plain digits without trailing zeros.
    /// A label that is missing, null or empty has no text.
    pub fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        self.entries().iter().find(|(name, _)| name == key).and_then(|(_, value)| value.label())
    }

    /// Returns the labels that have a text, with their texts.
    pub fn labels(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        self.entries().iter().filter_map(|(key, value)| Some((key.as_str(), value.label()?)))
    }
}

/// Returns a JSON number in plain digits without trailing zeros, or as it is if it would be too long.
fn plain_number(number: &str) -> Cow<'_, str> {
    let (sign, unsigned) = number.strip_prefix('-').map_or(("", number), |unsigned| ("-", unsigned));
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let Ok(exponent) = exponent.parse::<i64>() else { return Cow::Borrowed(number) };
    let digits = format!("{integer}{fraction}");
    // The position of the decimal point within the digits without leading zeros.
    let significant = digits.trim_start_matches('0');
    let leading = i64::try_from(digits.len() - significant.len()).unwrap_or(0);
    let point = i64::try_from(integer.len()).unwrap_or(0).saturating_add(exponent).saturating_sub(leading);
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return Cow::Borrowed("0");
    }
    let (length, limit) = (i64::try_from(significant.len()).unwrap_or(i64::MAX), i64::try_from(MAX_PLAIN_DIGITS).unwrap_or(0));
    if point.max(length).saturating_sub(point.min(0)) > limit {
        return Cow::Borrowed(number);
    }
    let point = usize::try_from(point).map_err(|_| usize::try_from(point.unsigned_abs()).unwrap_or(0));
    Cow::Owned(match point {
        Ok(0) => format!("{sign}0.{significant}"),
        Ok(point) if point >= significant.len() => format!("{sign}{significant}{}", "0".repeat(point - significant.len())),
        Ok(point) => format!("{sign}{}.{}", &significant[..point], &significant[point..]),
        Err(zeros) => format!("{sign}0.{}{significant}", "0".repeat(zeros)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(entries: &[(&str, ReportValue)]) -> ReportData {
        ReportData::new(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())))
    }

    #[test]
    fn numbers_are_compared_in_plain_digits() {
        let long = format!("1{}", "0".repeat(127));
        let rows = [
            ("0", "0"),
            ("-0.0", "0"),
            ("0e9", "0"),
            ("1", "1"),
            ("1.50", "1.5"),
            ("1e3", "1000"),
            ("1.25E+1", "12.5"),
            ("-2.50e-3", "-0.0025"),
            ("100", "100"),
            ("0.1", "0.1"),
            ("10e-1", "1"),
            ("0.0001e4", "1"),
            ("12e-2", "0.12"),
            ("1e127", long.as_str()),
            ("1e128", "1e128"),
            ("1e999999", "1e999999"),
            ("1e-999999", "1e-999999"),
            ("1e99999999999999999999", "1e99999999999999999999"),
            ("-1e127", &format!("-{long}")),
        ];
        for (sent, text) in rows {
            assert_eq!(plain_number(sent), text, "{sent}");
        }
    }

    #[test]
    fn a_label_has_the_text_of_its_value() {
        let text = |value: ReportValue| data(&[("k", value)]).label("k").map(Cow::into_owned);
        assert_eq!(text(ReportValue::Text("gpt-5 ".to_owned())).as_deref(), Some("gpt-5 "));
        assert_eq!(text(ReportValue::Bool(true)).as_deref(), Some("true"));
        assert_eq!(text(ReportValue::Number("1.0".to_owned())).as_deref(), Some("1"));
        assert_eq!(text(ReportValue::Text(String::new())), None);
        assert_eq!(text(ReportValue::Null), None);
        assert_eq!(data(&[]).label("k"), None);
    }

    #[test]
    fn report_data_is_fitted_to_its_limits() {
        let text = |value: &str| ReportValue::Text(value.to_owned());
        let number = |value: &str| ReportValue::Number(value.to_owned());
        let longest = "é".repeat(1024);
        let cut = |kept: &str| text(&format!("{kept}…"));
        let rows = [
            ("k", text("a\nb\r\n\tc"), "k", text("a\nb\r\n\tc")),
            ("k", text("\0\u{7f}\u{85}\u{1b}[0m"), "k", text("\u{fffd}\u{fffd}\u{fffd}\u{fffd}[0m")),
            ("k", text(&longest), "k", text(&longest)),
            ("k", text(&"v".repeat(2049)), "k", cut(&"v".repeat(2045))),
            ("k", text(&format!("{longest}é")), "k", cut(&"é".repeat(1022))),
            ("k", text(&"\0".repeat(683)), "k", cut(&"\u{fffd}".repeat(681))),
            ("k", text(&"😀".repeat(9_999)), "k", cut(&"😀".repeat(511))),
            ("k", number("1.50"), "k", number("1.50")),
            ("k", number(&"1".repeat(2048)), "k", number(&"1".repeat(2048))),
            ("k", number(&"1".repeat(2049)), "k", cut(&"1".repeat(2045))),
            ("k", ReportValue::Null, "k", ReportValue::Null),
            ("k", ReportValue::Bool(true), "k", ReportValue::Bool(true)),
            ("a\nb\0c", text("v"), "a b c", text("v")),
            (&"é".repeat(129), text("v"), &"é".repeat(128), text("v")),
            (&format!("{}\n", "k".repeat(128)), text("v"), &"k".repeat(128), text("v")),
        ];
        for (key, value, kept_key, kept_value) in rows {
            let kept = data(&[(key, value)]);
            assert_eq!(kept.entries(), [(kept_key.to_owned(), kept_value)], "{key:?}");
            assert_eq!(ReportData::new(kept.0.clone()), kept, "what is kept is not changed again");
        }
    }

    #[test]
    fn of_equal_and_of_many_keys_the_first_are_kept() {
        let text = |value: &str| ReportValue::Text(value.to_owned());
        let twice = data(&[("z", text("1")), ("", text("2")), ("a b", text("3")), ("a\nb", text("4")), ("z", text("5"))]);
        assert_eq!(twice, data(&[("z", text("1")), ("a b", text("3"))]));
        let many = ReportData::new((0..1_000).map(|n| ((n / 2).to_string(), ReportValue::Bool(n % 2 == 0))));
        assert_eq!(many.entries().len(), MAX_REPORT_KEYS);
        assert!(many.entries().iter().enumerate().all(|(n, entry)| *entry == (n.to_string(), ReportValue::Bool(true))));
    }

    #[test]
    fn keys_that_are_named_have_limits() {
        assert_eq!(check_report_key(&"é".repeat(128)), Ok(()));
        for key in ["", "a\n", &"k".repeat(129)] {
            assert_eq!(check_report_key(key), Err(ReportKeyError::Invalid(key.to_owned())));
        }
    }
}
