//! Texts within the length and character limits of the API.

use std::fmt;

use thiserror::Error;

/// The maximum length of a text in bytes.
pub const MAX_TEXT_BYTES: usize = 4096;

/// An error of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// The text is empty.
    #[error("must not be empty")]
    Empty,
    /// The text has more than [`MAX_TEXT_BYTES`] bytes.
    #[error("must be at most 4096 bytes of UTF-8")]
    TooLong,
    /// The text contains a C0, DEL or C1 character.
    #[error("must not contain control characters")]
    ControlCharacter,
}

/// A single line of text: 1 to 4096 bytes without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OneLine(Box<str>);

/// A text that may contain line breaks and tabs, for notes and addresses: 1 to 4096 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prose(Box<str>);

impl OneLine {
    /// Parses a text.
    ///
    /// # Errors
    /// Returns a [`TextError`] that names the violated limit.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check(text, |_| false).map(Self)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OneLine {
    /// Creates a text from a constant that is within the limits.
    pub(crate) fn constant(text: &'static str) -> Self {
        debug_assert!(check(text, |_| false).is_ok());
        Self(text.into())
    }
}

impl OneLine {
    /// Creates a text from a line item id, which has stricter limits.
    pub(crate) fn of_id(id: &crate::refs::LineItemId) -> Self {
        Self(id.as_str().into())
    }
}

impl Prose {
    /// Joins texts with line breaks. Returns `None` if there are no texts. The result may exceed the length limit.
    pub fn joined(texts: &[&str]) -> Option<Self> {
        (!texts.is_empty()).then(|| Self(texts.join("\n").into()))
    }

    /// Parses a text.
    ///
    /// # Errors
    /// Returns a [`TextError`] that names the violated limit.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check(text, |c| matches!(c, '\n' | '\r' | '\t')).map(Self)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check(text: &str, allowed: impl Fn(char) -> bool) -> Result<Box<str>, TextError> {
    if text.is_empty() {
        Err(TextError::Empty)
    } else if text.len() > MAX_TEXT_BYTES {
        Err(TextError::TooLong)
    } else if text.chars().any(|c| c.is_control() && !allowed(c)) {
        Err(TextError::ControlCharacter)
    } else {
        Ok(text.into())
    }
}

macro_rules! shown {
    ($($name:ident),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )+};
}
shown!(OneLine, Prose);

from_str!(OneLine: TextError, Prose: TextError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_refuses_what_prose_allows() {
        assert!(OneLine::parse("Ünïcode ✓").is_ok());
        assert_eq!(OneLine::parse("a\nb"), Err(TextError::ControlCharacter));
        assert!(Prose::parse("a\n\tb\r\n").is_ok());
        for bad in ["\0", "\u{7f}", "\u{85}", "\u{1b}"] {
            assert_eq!(Prose::parse(bad), Err(TextError::ControlCharacter), "{bad:?}");
        }
        assert_eq!(OneLine::parse(""), Err(TextError::Empty));
        assert!(OneLine::parse(&"x".repeat(4096)).is_ok());
        assert_eq!(OneLine::parse(&"x".repeat(4097)), Err(TextError::TooLong));
    }
}
