//! Labels of usage events, and the conditions on them that select line items and products (billing rules 4).
//!
//! A label is one entry of an event's additional report data.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::usage::{MAX_REPORT_KEY_CHARS, ReportData, ReportValue};
use crate::violation::Violations;

/// The maximum number of label keys of a condition.
pub const MAX_WHERE_KEYS: usize = 5;
/// The maximum number of values of a label key.
pub const MAX_WHERE_VALUES: usize = 100;
/// The maximum length of a value in characters.
pub const MAX_WHERE_VALUE_CHARS: usize = 128;
/// The maximum length of a number in plain digits. A longer number is compared as it was sent.
const MAX_PLAIN_DIGITS: usize = 128;

impl ReportData {
    /// Returns the text of a label, by which conditions compare it. A number is written in plain digits without trailing zeros.
    /// A label that is missing, null or empty has no text.
    pub fn label(&self, key: &str) -> Option<Cow<'_, str>> {
        let (_, value) = self.entries().iter().find(|(name, _)| name == key)?;
        match value {
            ReportValue::Null => None,
            ReportValue::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            ReportValue::Number(number) => Some(plain_number(number)),
            ReportValue::Text(text) => Some(Cow::Borrowed(text.as_str())).filter(|text| !text.is_empty()),
        }
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

/// A condition on labels: for every key, the label's text is one of the values (the field `where`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Where(BTreeMap<String, BTreeSet<String>>);

impl Where {
    /// Creates a condition and checks its keys and values.
    ///
    /// # Errors
    /// Returns every violation, with paths below the condition.
    pub fn new(entries: impl IntoIterator<Item = (String, Vec<String>)>) -> Result<Self, Violations> {
        let (mut keys, mut found) = (BTreeMap::new(), Violations::none());
        for (key, values) in entries {
            let chars = key.chars().count();
            if chars == 0 || chars > MAX_REPORT_KEY_CHARS || key.chars().any(char::is_control) {
                let detail =
                    format!("must be 1 to {MAX_REPORT_KEY_CHARS} characters without control characters, as label keys are");
                found.add(&[&key], "invalid_key", detail);
            }
            if values.is_empty() || values.len() > MAX_WHERE_VALUES {
                found.add(&[&key], "out_of_range", format!("must have 1 to {MAX_WHERE_VALUES} values"));
            }
            let mut distinct = BTreeSet::new();
            for (i, value) in values.into_iter().enumerate() {
                let (index, chars) = (i.to_string(), value.chars().count());
                if chars == 0 || chars > MAX_WHERE_VALUE_CHARS || value.chars().any(char::is_control) {
                    let detail = format!("must be 1 to {MAX_WHERE_VALUE_CHARS} characters without control characters");
                    found.add(&[&key, &index], "invalid_length", detail);
                } else if !distinct.insert(value) {
                    found.add(&[&key, &index], "duplicate", "must not be listed twice");
                }
            }
            keys.insert(key, distinct);
        }
        if keys.is_empty() || keys.len() > MAX_WHERE_KEYS {
            found.add(&[], "out_of_range", format!("must have 1 to {MAX_WHERE_KEYS} label keys"));
        }
        found.or(Self(keys))
    }

    /// Returns the keys with their values, each in alphabetical order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, &BTreeSet<String>)> {
        self.0.iter().map(|(key, values)| (key.as_str(), values))
    }

    /// Returns the values of a key.
    pub fn values_of(&self, key: &str) -> Option<&BTreeSet<String>> {
        self.0.get(key)
    }

    /// Returns the first key whose label isn't one of the values, or `None` if the condition is met.
    pub fn first_unmet(&self, labels: Option<&ReportData>) -> Option<&str> {
        let is_met = |key: &str, values: &BTreeSet<String>| {
            labels.and_then(|labels| labels.label(key)).is_some_and(|text| values.contains(&*text))
        };
        self.entries().find(|(key, values)| !is_met(key, values)).map(|(key, _)| key)
    }

    /// Returns whether no labels meet both conditions, because they share a key without a common value.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.entries().any(|(key, values)| other.values_of(key).is_some_and(|others| values.is_disjoint(others)))
    }

    /// Returns whether all labels that meet the other condition meet this one, too.
    pub fn covers(&self, other: &Self) -> bool {
        self.entries().all(|(key, values)| other.values_of(key).is_some_and(|others| others.is_subset(values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(entries: &[(&str, &[&str])]) -> Where {
        let owned =
            |(key, values): &(&str, &[&str])| ((*key).to_owned(), values.iter().map(|value| (*value).to_owned()).collect());
        Where::new(entries.iter().map(owned)).expect("a condition")
    }

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
    fn a_condition_is_met_if_every_key_has_one_of_its_values() {
        let wanted = condition(&[("kind", &["input"]), ("model", &["a", "b"])]);
        let labels = |kind: &str, model: &str| {
            data(&[("model", ReportValue::Text(model.to_owned())), ("kind", ReportValue::Text(kind.to_owned()))])
        };
        assert_eq!(wanted.first_unmet(Some(&labels("input", "b"))), None);
        assert_eq!(wanted.first_unmet(Some(&labels("output", "b"))), Some("kind"));
        assert_eq!(wanted.first_unmet(Some(&labels("input", "c"))), Some("model"));
        assert_eq!(wanted.first_unmet(None), Some("kind"));
    }

    #[test]
    fn conditions_are_disjoint_by_a_shared_key_alone() {
        let input = condition(&[("kind", &["input"]), ("model", &["a", "b"])]);
        assert!(input.is_disjoint(&condition(&[("kind", &["output"])])));
        assert!(input.is_disjoint(&condition(&[("model", &["c", "d"]), ("kind", &["input"])])));
        assert!(!input.is_disjoint(&condition(&[("model", &["b", "c"])])));
        assert!(!input.is_disjoint(&condition(&[("region", &["eu"])])));
        assert!(condition(&[("model", &["a", "b", "c"])]).covers(&input));
        assert!(input.covers(&condition(&[("kind", &["input"]), ("model", &["a"]), ("region", &["eu"])])));
        assert!(!input.covers(&condition(&[("model", &["a"])])));
        assert!(!condition(&[("model", &["a"])]).covers(&input));
    }

    #[test]
    fn conditions_have_limits() {
        let codes = |entries: Vec<(String, Vec<String>)>| -> Vec<String> {
            let found = Where::new(entries).expect_err("invalid");
            found.iter().map(|violation| format!("{} {}", violation.path.join("/"), violation.code)).collect()
        };
        let values = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let keys = |count: usize| (0..count).map(|n| (format!("k{n}"), values(1))).collect::<Vec<_>>();
        assert!(Where::new(keys(5)).is_ok() && Where::new(vec![("k".to_owned(), values(100))]).is_ok());
        assert_eq!(codes(Vec::new()), [" out_of_range"]);
        assert_eq!(codes(keys(6)), [" out_of_range"]);
        assert_eq!(codes(vec![("k".to_owned(), values(101))]), ["k out_of_range"]);
        assert_eq!(codes(vec![("k".to_owned(), Vec::new())]), ["k out_of_range"]);
        assert_eq!(codes(vec![("k".repeat(129), values(1))]), [format!("{} invalid_key", "k".repeat(129))]);
        let twice = vec!["a".to_owned(), "a".to_owned(), String::new(), "v".repeat(129)];
        assert_eq!(codes(vec![("k".to_owned(), twice)]), ["k/1 duplicate", "k/2 invalid_length", "k/3 invalid_length"]);
    }
}
