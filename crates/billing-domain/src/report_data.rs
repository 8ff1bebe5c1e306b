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
    /// Returns the text as which the value is a label.
    fn label(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Self::Number(number) => Some(plain_number(number)),
            Self::Text(text) => Some(Cow::Borrowed(text.as_str())).filter(|text| !text.is_empty()),
        }
    }

    /// Returns the length of the value's text in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(text) | Self::Text(text) => text.len(),
        }
    }
}

/// Additional report data of an event: ordered keys and values that become columns of the usage report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportData(Vec<(String, ReportValue)>);

/// An error of report data.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReportDataError {
    /// There are more than [`MAX_REPORT_KEYS`] keys.
    #[error("must have at most {MAX_REPORT_KEYS} keys")]
    TooManyKeys,
    /// The key is empty, too long or contains control characters.
    #[error("keys must be 1 to {MAX_REPORT_KEY_CHARS} characters without control characters")]
    Key(String),
    /// The value of the key is too long or contains control characters.
    #[error("values must be at most {MAX_REPORT_VALUE_BYTES} bytes without control characters")]
    Value(String),
}

/// Returns whether a text can be a key: 1 to [`MAX_REPORT_KEY_CHARS`] characters without control characters.
pub(crate) fn is_report_key(text: &str) -> bool {
    let is_short = text.chars().nth(MAX_REPORT_KEY_CHARS).is_none();
    !text.is_empty() && is_short && !text.chars().any(char::is_control)
}

impl ReportData {
    /// Creates report data after checking the limits of keys and values.
    ///
    /// # Errors
    /// Returns a [`ReportDataError`] for the first violation.
    pub fn new(entries: Vec<(String, ReportValue)>) -> Result<Self, ReportDataError> {
        if entries.len() > MAX_REPORT_KEYS {
            return Err(ReportDataError::TooManyKeys);
        }
        for (key, value) in &entries {
            if !is_report_key(key) {
                return Err(ReportDataError::Key(key.clone()));
            }
            let text = match value {
                ReportValue::Number(text) | ReportValue::Text(text) => text,
                ReportValue::Null | ReportValue::Bool(_) => continue,
            };
            if text.len() > MAX_REPORT_VALUE_BYTES || text.chars().any(char::is_control) {
                return Err(ReportDataError::Value(key.clone()));
            }
        }
        Ok(Self(entries))
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
        ReportData::new(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect()).expect("report data")
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
    fn report_data_keeps_its_order_and_limits() {
        let entry = |key: &str, value: &str| (key.to_owned(), ReportValue::Text(value.to_owned()));
        let data = ReportData::new(vec![entry("z", "1"), entry("a", "2")]).expect("two entries");
        assert_eq!(data.entries()[0].0, "z");
        assert!(ReportData::new(vec![entry("", "1")]).is_err());
        assert!(ReportData::new(vec![entry(&"k".repeat(129), "1")]).is_err());
        assert!(ReportData::new(vec![entry("k", &"v".repeat(2049))]).is_err());
        assert!(ReportData::new(vec![entry("k", "\0")]).is_err());
        assert_eq!(ReportData::new(vec![entry("k", "v"); 101]), Err(ReportDataError::TooManyKeys));
    }
}
