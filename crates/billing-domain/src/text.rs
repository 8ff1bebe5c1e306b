//! Texts with the limits every text of the interface has. What a text means is its owner's business.

use std::fmt;

use thiserror::Error;

/// The most bytes of a text.
pub const MAX_TEXT_BYTES: usize = 4096;

/// Why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// No character in it.
    #[error("must not be empty")]
    Empty,
    /// More than [`MAX_TEXT_BYTES`].
    #[error("must be at most 4096 bytes of UTF-8")]
    TooLong,
    /// A C0, DEL or C1 character.
    #[error("must not contain control characters")]
    ControlCharacter,
}

/// One line: 1 to 4096 bytes without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OneLine(Box<str>);

/// Text that may have line breaks and tabs: notes and addresses. 1 to 4096 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prose(Box<str>);

impl OneLine {
    /// Checks a text.
    ///
    /// # Errors
    /// [`TextError`] says which limit it breaks.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check(text, |_| false).map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl OneLine {
    /// A text of our own, known to keep the limits.
    pub(crate) fn constant(text: &'static str) -> Self {
        debug_assert!(check(text, |_| false).is_ok());
        Self(text.into())
    }
}

impl OneLine {
    /// The text of a line item's identifier, which keeps stricter limits.
    pub(crate) fn of_id(id: &crate::refs::LineItemId) -> Self {
        Self(id.as_str().into())
    }
}

impl Prose {
    /// Several texts, one per line; `None` for none. Each kept the limits, the whole may be longer.
    pub fn joined(texts: &[&str]) -> Option<Self> {
        (!texts.is_empty()).then(|| Self(texts.join("\n").into()))
    }

    /// Checks a text.
    ///
    /// # Errors
    /// [`TextError`] says which limit it breaks.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        check(text, |c| matches!(c, '\n' | '\r' | '\t')).map(Self)
    }

    /// The text.
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
