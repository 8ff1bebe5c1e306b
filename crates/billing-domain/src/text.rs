//! Texts within the length and character limits of the API.

use std::fmt;
use std::sync::Arc;

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
    /// The text contains a character that readers cannot see: see [`InvisibleCharacter`].
    #[error("must not contain {0}")]
    Invisible(InvisibleCharacter),
}

/// A character that no name or note contains, because readers cannot see it. It could make two names look the same, or reverse
/// the order in which a name is displayed.
///
/// Names need these characters, so they are permitted: joiners (Persian, Indic scripts, emoji), direction marks and variation
/// selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvisibleCharacter(char);

impl InvisibleCharacter {
    /// Returns the first such character of a text.
    pub fn first_in(text: &str) -> Option<Self> {
        text.chars().find_map(Self::of)
    }

    /// Returns the character if it is one of these.
    pub fn of(character: char) -> Option<Self> {
        let found = Self(character);
        (!found.kind().is_empty()).then_some(found)
    }

    fn kind(self) -> &'static str {
        match self.0 {
            c if c.is_control() => "a control character",
            // The last two code points of each plane, and a block of their own.
            c if u32::from(c) & 0xFFFE == 0xFFFE => "a non-character",
            '\u{FDD0}'..='\u{FDEF}' => "a non-character",
            '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => "a character that changes the direction of text",
            '\u{2028}' | '\u{2029}' => "a separator of lines or paragraphs",
            '\u{200B}' | '\u{2060}' | '\u{FEFF}' => "a character without width",
            '\u{E0000}'..='\u{E007F}' => "a tag character",
            _ => "",
        }
    }
}

impl fmt::Display for InvisibleCharacter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "U+{:04X}, {}", u32::from(self.0), self.kind())
    }
}

/// A single line of text: 1 to 4096 bytes without [invisible characters](InvisibleCharacter).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OneLine(Arc<str>);

/// A text that may contain line breaks and tabs, for notes and addresses: 1 to 4096 bytes without other
/// [invisible characters](InvisibleCharacter).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prose(Arc<str>);

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

fn check(text: &str, allowed: impl Fn(char) -> bool) -> Result<Arc<str>, TextError> {
    if text.is_empty() {
        Err(TextError::Empty)
    } else if text.len() > MAX_TEXT_BYTES {
        Err(TextError::TooLong)
    } else {
        match text.chars().filter(|c| !allowed(*c)).find_map(InvisibleCharacter::of) {
            Some(character) => Err(TextError::Invisible(character)),
            None => Ok(text.into()),
        }
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

/// Returns an identifier as registers write it: without spaces, dots and hyphens, in capital letters. People type and copy it with
/// them.
pub(crate) fn compact(identifier: &str) -> String {
    let is_separator = |c: char| c.is_whitespace() || matches!(c, '.' | '-');
    identifier.chars().filter(|c| !is_separator(*c)).map(|c| c.to_ascii_uppercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_refuses_what_prose_allows() {
        assert!(OneLine::parse("Ünïcode ✓").is_ok());
        assert_eq!(OneLine::parse("a\nb"), Err(TextError::Invisible(InvisibleCharacter('\n'))));
        assert!(Prose::parse("a\n\tb\r\n").is_ok());
        for bad in ["\0", "\u{7f}", "\u{85}", "\u{1b}"] {
            assert!(matches!(Prose::parse(bad), Err(TextError::Invisible(_))), "{bad:?}");
        }
        assert_eq!(OneLine::parse(""), Err(TextError::Empty));
        assert!(OneLine::parse(&"x".repeat(4096)).is_ok());
        assert_eq!(OneLine::parse(&"x".repeat(4097)), Err(TextError::TooLong));
    }

    #[test]
    fn a_text_names_the_invisible_character_that_it_must_not_contain() {
        for bad in
            "\u{FDD0}\u{FDEF}\u{FFFE}\u{FFFF}\u{1FFFE}\u{10FFFF}\u{202A}\u{202E}\u{2066}\u{2069}\u{2028}\u{2029}\u{200B}\u{2060}\
                    \u{FEFF}\u{E0000}\u{E007F}"
                .chars()
        {
            let text = format!("Acme{bad} Inc.");
            assert_eq!(OneLine::parse(&text), Err(TextError::Invisible(InvisibleCharacter(bad))), "{bad:?}");
            assert!(Prose::parse(&text).is_err(), "{bad:?}");
        }
        let error = OneLine::parse("Acme\u{202E}").expect_err("an override").to_string();
        assert_eq!(error, "must not contain U+202E, a character that changes the direction of text");
        // Joiners, direction marks and variation selectors, as in Persian, Indic scripts, emoji and Japanese names.
        for good in
            ["می\u{200C}خواهم", "क\u{94D}\u{200D}ष", "👩\u{200D}💻", "a\u{200E}b\u{200F}c\u{61C}", "葛\u{E0100}", "☎\u{FE0F}"]
        {
            assert!(OneLine::parse(good).is_ok(), "{good:?}");
        }
    }
}
