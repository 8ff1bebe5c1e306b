//! Labels of usage events, and the conditions on them that select line items and products (billing rules 4).
//!
//! A label is one entry of an event's additional report data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest as _, Sha256};
use thiserror::Error;
use uuid::Uuid;

use crate::report_data::{MAX_REPORT_KEY_CHARS, ReportData, check_report_key};
use crate::violation::Violations;

/// The maximum number of label keys of a condition.
pub const MAX_WHERE_KEYS: usize = 5;
/// The maximum number of values of a label key.
pub const MAX_WHERE_VALUES: usize = 100;
/// The maximum length of a value in characters.
pub const MAX_WHERE_VALUE_CHARS: usize = 128;
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
            if let Err(error) = LabelKey::parse(&key) {
                found.add(&[&key], "invalid_key", error.to_string());
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

    /// Returns the keys whose labels aren't one of the values.
    pub fn unmet(&self, labels: Option<&ReportData>) -> impl Iterator<Item = &str> {
        let is_met = move |key: &str, values: &BTreeSet<String>| {
            labels.and_then(|labels| labels.label(key)).is_some_and(|text| values.contains(&*text))
        };
        self.entries().filter(move |(key, values)| !is_met(key, values)).map(|(key, _)| key)
    }

    /// Returns the first key whose label isn't one of the values, or `None` if the condition is met.
    pub fn first_unmet(&self, labels: Option<&ReportData>) -> Option<&str> {
        self.unmet(labels).next()
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

/// The key of a label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelKey(String);

/// An error: the text isn't the key of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be 1 to {MAX_REPORT_KEY_CHARS} characters without control characters, as label keys are")]
pub struct LabelKeyError;

impl LabelKey {
    /// Parses a key.
    ///
    /// # Errors
    /// Returns [`LabelKeyError`] if the text is empty, too long or has control characters.
    pub fn parse(text: &str) -> Result<Self, LabelKeyError> {
        if check_report_key(text).is_ok() { Ok(Self(text.to_owned())) } else { Err(LabelKeyError) }
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The digest of a label's text, by which `UNIQUE` compares events: the first 16 bytes of its SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelDigest(Uuid);

impl LabelDigest {
    /// Returns the digest of a label's text.
    pub fn of(text: &str) -> Self {
        let digest = Sha256::digest(text.as_bytes());
        Self(Uuid::from_bytes(std::array::from_fn(|i| digest[i])))
    }

    /// Creates a digest from its stored bytes.
    pub const fn from_uuid(bytes: Uuid) -> Self {
        Self(bytes)
    }

    /// Returns the bytes to store.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }
}

/// A label of an event for which no line item has a price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpricedLabel {
    /// The key of the label.
    pub key: String,
    /// The text of the label, if it has one.
    pub text: Option<String>,
    /// The values that are priced; empty if a line item counts the distinct values of the label, so that it only must have one.
    pub priced: BTreeSet<String>,
}

impl UnpricedLabel {
    /// Creates the description of a label of an event.
    pub(crate) fn new(key: &str, labels: Option<&ReportData>, priced: BTreeSet<String>) -> Self {
        let text = labels.and_then(|labels| labels.label(key)).map(std::borrow::Cow::into_owned);
        Self { key: key.to_owned(), text, priced }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report_data::ReportValue;

    fn condition(entries: &[(&str, &[&str])]) -> Where {
        let owned =
            |(key, values): &(&str, &[&str])| ((*key).to_owned(), values.iter().map(|value| (*value).to_owned()).collect());
        Where::new(entries.iter().map(owned)).expect("a condition")
    }

    fn data(entries: &[(&str, ReportValue)]) -> ReportData {
        ReportData::new(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())))
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
