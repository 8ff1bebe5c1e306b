//! Metadata: keys and values that callers attach to customers, contracts and payments. The service returns them and finds
//! resources by them, and gives them no meaning.

use std::collections::BTreeMap;

use thiserror::Error;
use uuid::Uuid;

use crate::refs::{ContractRef, CustomerId, PaymentRef};
use crate::text::InvisibleCharacter;

/// The maximum number of keys.
pub const MAX_METADATA_KEYS: usize = 20;
/// The maximum length of a key in characters.
pub const MAX_METADATA_KEY_CHARS: usize = 64;
/// The maximum length of a value in characters.
pub const MAX_METADATA_VALUE_CHARS: usize = 256;

/// An error of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MetadataError {
    /// There are more than [`MAX_METADATA_KEYS`] keys.
    #[error("must have at most {MAX_METADATA_KEYS} keys")]
    TooManyKeys,
    /// A key is empty, too long, or contains invisible characters or square brackets.
    #[error("keys must be 1 to {MAX_METADATA_KEY_CHARS} characters without invisible characters and square brackets")]
    Key,
    /// A value is too long or contains invisible characters.
    #[error("must be at most {MAX_METADATA_VALUE_CHARS} characters without invisible characters")]
    Value,
}

/// Keys and values, ordered by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// Creates metadata after checking its limits. Of equal keys, the last one counts.
    ///
    /// # Errors
    /// Returns a [`MetadataError`] for the first violation.
    pub fn new(entries: impl IntoIterator<Item = (String, String)>) -> Result<Self, MetadataError> {
        let mut checked = BTreeMap::new();
        for (key, value) in entries {
            check_entry(&key, &value)?;
            checked.insert(key, value);
        }
        if checked.len() > MAX_METADATA_KEYS { Err(MetadataError::TooManyKeys) } else { Ok(Self(checked)) }
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the keys with their values, ordered by key.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

/// Checks the limits of a key and its value.
///
/// # Errors
/// Returns [`MetadataError::Key`] or [`MetadataError::Value`].
pub fn check_entry(key: &str, value: &str) -> Result<(), MetadataError> {
    let is_bad = |character: char| InvisibleCharacter::of(character).is_some() || matches!(character, '[' | ']');
    if key.is_empty() || key.chars().count() > MAX_METADATA_KEY_CHARS || key.chars().any(is_bad) {
        return Err(MetadataError::Key);
    }
    if value.chars().count() > MAX_METADATA_VALUE_CHARS || InvisibleCharacter::first_in(value).is_some() {
        return Err(MetadataError::Value);
    }
    Ok(())
}

/// A resource that has metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetadataSubject {
    /// A customer.
    Customer(CustomerId),
    /// A contract of a customer.
    Contract(CustomerId, ContractRef),
    /// A payment or refund of a customer.
    Payment(CustomerId, PaymentRef),
}

impl MetadataSubject {
    /// Returns the customer.
    pub const fn customer(self) -> CustomerId {
        match self {
            Self::Customer(customer) | Self::Contract(customer, _) | Self::Payment(customer, _) => customer,
        }
    }

    /// Returns the identifier of the resource.
    pub const fn id(self) -> Uuid {
        match self {
            Self::Customer(customer) => customer.as_uuid(),
            Self::Contract(_, contract) => contract.as_uuid(),
            Self::Payment(_, payment) => payment.as_uuid(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(entries: &[(&str, &str)]) -> Result<Metadata, MetadataError> {
        Metadata::new(entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn metadata_is_ordered_by_key_within_its_limits() {
        let metadata = of(&[("b", "2"), ("a", "1"), ("b", "3")]).expect("valid");
        assert_eq!(metadata.entries().collect::<Vec<_>>(), [("a", "1"), ("b", "3")]);
        assert_eq!((metadata.get("a"), metadata.get("c"), metadata.is_empty()), (Some("1"), None, false));
        assert!(of(&[("\u{e9}".repeat(64).as_str(), "\u{e9}".repeat(256).as_str()), ("empty", "")]).is_ok());
        let long_key = "k".repeat(65);
        for key in ["", "a\tb", "a[b", "a]b", long_key.as_str()] {
            assert_eq!(of(&[(key, "v")]), Err(MetadataError::Key), "{key}");
        }
        for value in ["v\u{0}".to_owned(), "v".repeat(257)] {
            assert_eq!(of(&[("k", value.as_str())]), Err(MetadataError::Value), "{value}");
        }
        let many = |count: u32| Metadata::new((0..count).map(|n| (n.to_string(), String::new())));
        assert!(many(20).is_ok());
        assert_eq!(many(21), Err(MetadataError::TooManyKeys));
    }
}
