//! Idempotency keys, and stored responses for repeated requests.
//!
//! Callers decide how long a repeated request waits for one in flight, and which responses are encrypted.

use std::fmt;

use thiserror::Error;

use crate::calendar::Timestamp;
use crate::refs::OrganizationId;

/// The maximum length of a key in characters.
pub const MAX_KEY_CHARS: usize = 255;
/// The time in seconds for which a response is replayed: seven days.
pub const ANSWER_KEPT_SECONDS: i64 = 7 * 24 * 3600;

/// An error of an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IdempotencyKeyError {
    /// The key is empty.
    #[error("must not be empty")]
    Empty,
    /// The key has more than [`MAX_KEY_CHARS`] characters.
    #[error("must be at most {MAX_KEY_CHARS} characters of UTF-8")]
    TooLong,
    /// The key contains a C0, DEL or C1 character.
    #[error("must not contain control characters")]
    ControlCharacter,
}

/// An idempotency key, which identifies a request and its repeats: 1 to 255 characters without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    /// Parses a key.
    ///
    /// # Errors
    /// Returns an [`IdempotencyKeyError`] that names the violated limit.
    pub fn parse(text: &str) -> Result<Self, IdempotencyKeyError> {
        if text.is_empty() {
            return Err(IdempotencyKeyError::Empty);
        }
        if text.chars().nth(MAX_KEY_CHARS).is_some() {
            return Err(IdempotencyKeyError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(IdempotencyKeyError::ControlCharacter);
        }
        Ok(Self(text.into()))
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({:?})", self.0)
    }
}

/// The path and key that identify a request within an organization.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopedIdempotencyKey {
    /// The path with its references and without a trailing slash.
    pub path: String,
    /// The caller's key.
    pub key: IdempotencyKey,
}

impl ScopedIdempotencyKey {
    /// Returns the context that an encrypted response is bound to. A response can't be decrypted in the context of another request.
    pub fn place(&self, organization: OrganizationId) -> String {
        format!("{organization}\n{}\n{}", self.path, self.key.as_str())
    }
}

/// The SHA-256 digest of a request body. Bodies that are equal as JSON have the same digest, regardless of formatting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyHash(pub [u8; 32]);

/// A stored response that repeated requests get, byte for byte. Its format is defined by the API layer.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse(pub Vec<u8>);

impl fmt::Debug for StoredResponse {
    /// Omits the bytes, which may be confidential.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptAnswer({} bytes)", self.0.len())
    }
}

/// The response to a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentResponse {
    /// The response, which is the same for the first and every repeated request.
    pub answer: StoredResponse,
    /// Whether the response is replayed.
    pub is_repeat: bool,
}

/// The idempotency record of a successful request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The hash of the request body.
    pub body: BodyHash,
    /// The stored response.
    pub answer: StoredResponse,
    /// The time at which the record was stored.
    pub kept_at: Timestamp,
}

from_str!(IdempotencyKey: IdempotencyKeyError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_1_to_255_characters_of_any_script() {
        for text in ["k", "8e03978e-40d5-43dd-bc93-6894a57f9324", "a b", "\"quoted\"", "schlüssel-鍵", &"é".repeat(255)] {
            assert_eq!(IdempotencyKey::parse(text).map(|key| key.as_str().to_owned()).as_deref(), Ok(text));
        }
        for (text, reason) in [
            (String::new(), IdempotencyKeyError::Empty),
            ("k".repeat(256), IdempotencyKeyError::TooLong),
            ("é".repeat(256), IdempotencyKeyError::TooLong),
            ("a\tb".to_owned(), IdempotencyKeyError::ControlCharacter),
            ("a\u{0}".to_owned(), IdempotencyKeyError::ControlCharacter),
            ("\u{7f}".to_owned(), IdempotencyKeyError::ControlCharacter),
            ("\u{85}".to_owned(), IdempotencyKeyError::ControlCharacter),
        ] {
            assert_eq!(IdempotencyKey::parse(&text), Err(reason), "{text:?}");
        }
    }

    #[test]
    fn keys_differ_in_every_character_and_in_case() {
        let key = |text| IdempotencyKey::parse(text).expect("a key");
        assert_ne!(key("a"), key("A"));
        assert_ne!(key("a"), key("a "));
    }

    #[test]
    fn an_answer_does_not_show_its_bytes_when_printed() {
        assert_eq!(format!("{:?}", StoredResponse(b"a password".to_vec())), "KeptAnswer(10 bytes)");
    }
}
