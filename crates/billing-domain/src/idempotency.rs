//! Requests that may be sent again: the key a caller names one by, and the answer that its repeats are given.
//! How long a repeat waits for its twin, and what of an answer is secret, is not decided here.

use std::fmt;

use thiserror::Error;

use crate::calendar::Timestamp;
use crate::refs::OrganizationId;

/// The most characters of a key.
pub const MAX_KEY_CHARS: usize = 255;
/// How long an answer is given again, in seconds: seven days.
pub const ANSWER_KEPT_SECONDS: i64 = 7 * 24 * 3600;

/// Why a text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IdempotencyKeyError {
    /// No character in it.
    #[error("must not be empty")]
    Empty,
    /// More than [`MAX_KEY_CHARS`].
    #[error("must be at most {MAX_KEY_CHARS} characters of UTF-8")]
    TooLong,
    /// A C0, DEL or C1 character.
    #[error("must not contain control characters")]
    ControlCharacter,
}

/// What a caller names one request by, so that its repeats are known: 1 to 255 characters, none of them a control
/// character.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    /// Checks a text.
    ///
    /// # Errors
    /// [`IdempotencyKeyError`] says which limit it breaks.
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

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdempotencyKey({:?})", self.0)
    }
}

/// What tells one request of an organization from its others: where it was sent, and the key it was sent with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopedIdempotencyKey {
    /// The path with its reference and without a slash at its end.
    pub path: String,
    /// The caller's key.
    pub key: IdempotencyKey,
}

impl ScopedIdempotencyKey {
    /// Where a sealed answer belongs: it can't be opened in another one's place.
    pub fn place(&self, organization: OrganizationId) -> String {
        format!("{organization}\n{}\n{}", self.path, self.key.as_str())
    }
}

/// SHA-256 of what a request says: equal for bodies that are the same as JSON, however they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyHash(pub [u8; 32]);

impl BodyHash {
    /// As much of it as is kept for ever.
    pub fn digest(&self) -> BodyDigest {
        BodyDigest(std::array::from_fn(|i| self.0[i]))
    }
}

/// The first half of a [`BodyHash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyDigest(pub [u8; 16]);

/// An answer, as its repeats are given it: to the byte. What the bytes say is for the interface that answers.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse(pub Vec<u8>);

impl fmt::Debug for StoredResponse {
    /// Without the bytes, which may hold what is nobody else's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptAnswer({} bytes)", self.0.len())
    }
}

/// The answer to a request under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotentResponse {
    /// The answer, the same for the first and for every repeat.
    pub answer: StoredResponse,
    /// Whether it was given before.
    pub is_repeat: bool,
}

/// A request that succeeded under its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// What it said.
    pub body: BodyHash,
    /// What was answered.
    pub answer: StoredResponse,
    /// When.
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
