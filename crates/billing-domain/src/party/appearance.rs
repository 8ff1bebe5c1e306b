//! The appearance of an entity's documents: logo, accent color and footer.

use std::fmt;
use std::sync::Arc;

use crate::codes::FormError;
use crate::text::{Prose, TextError};

/// The maximum size of a logo's file in bytes.
pub const MAX_LOGO_BYTES: usize = 256 * 1024;
/// The maximum length of a footer in characters.
pub const MAX_FOOTER_CHARS: usize = 500;
/// The number of hexadecimal digits of a SHA-256 hash.
const HASH_DIGITS: usize = 64;

/// The file format of a logo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogoFormat {
    /// Portable Network Graphics.
    Png,
    /// Scalable Vector Graphics.
    Svg,
}

impl LogoFormat {
    /// Returns the file extension.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
        }
    }

    /// Returns the name of a file with a logo of the format.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Png => "logo.png",
            Self::Svg => "logo.svg",
        }
    }
}

/// A logo. Entities and documents have only its hash; the image is stored once for each organization. The text form is the
/// format and the hash, such as `png:9f86d081…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Logo {
    /// The file format of the image.
    pub format: LogoFormat,
    /// The SHA-256 hash of the image.
    pub sha256: [u8; 32],
    /// The image, if the logo was just received or is about to be printed.
    pub image: Option<Arc<[u8]>>,
}

impl Logo {
    /// Parses the text form. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        let (format, digits) = text.split_once(':')?;
        let format = [LogoFormat::Png, LogoFormat::Svg].into_iter().find(|known| known.as_str() == format)?;
        let is_hash = digits.len() == HASH_DIGITS && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if !is_hash {
            return None;
        }
        let mut sha256 = [0; 32];
        for (byte, at) in sha256.iter_mut().zip((0..HASH_DIGITS).step_by(2)) {
            *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
        }
        Some(Self { format, sha256, image: None })
    }
}

impl fmt::Display for Logo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.format.as_str())?;
        self.sha256.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Logo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Logo({self}, {:?} bytes)", self.image.as_ref().map(|image| image.len()))
    }
}

/// The color of headings and rules, with enough contrast on white paper.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AccentColor([u8; 3]);

impl AccentColor {
    /// Parses a color in the form `#rrggbb`. Its contrast ratio to white must be at least 3, as WCAG 2.1 asks of large texts and
    /// graphics.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `invalid_format` or `out_of_range`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        const FORM: FormError = FormError::new("invalid_format", "must be a color such as #0b5cad: # and six hexadecimal digits");
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let channel = |at: usize| digits.and_then(|digits| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok());
        let (Some(red), Some(green), Some(blue)) = (channel(0), channel(2), channel(4)) else { return Err(FORM) };
        if luminance([red, green, blue]) > LIGHTEST {
            return Err(FormError::new(
                "out_of_range",
                "must have a contrast ratio of at least 3:1 to white paper: choose a darker color",
            ));
        }
        Ok(Self([red, green, blue]))
    }
}

from_str!(AccentColor: FormError);

impl fmt::Display for AccentColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl fmt::Debug for AccentColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text at the end of documents, such as the register court: 1 to [`MAX_FOOTER_CHARS`] characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer(Prose);

impl Footer {
    /// Parses a footer.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `too_short`, `too_long` or `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        const TOO_LONG: FormError = FormError::new("too_long", "must be at most 500 characters");
        if text.chars().count() > MAX_FOOTER_CHARS {
            return Err(TOO_LONG);
        }
        Prose::parse(text).map(Self).map_err(|error| match error {
            TextError::Empty => FormError::new("too_short", "must not be empty"),
            TextError::TooLong => TOO_LONG,
            TextError::Invisible(_) => {
                FormError::new("invalid_format", "must not contain invisible characters other than tabs and line breaks")
            }
        })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

from_str!(Footer: FormError);

/// The relative luminance of the lightest color with a contrast of 3:1 to white: (1 + 0.05) / 3 - 0.05, times [`SCALE`].
const LIGHTEST: u32 = SCALE / 10 * 3;
/// The luminance of white.
const SCALE: u32 = 10_000 * 10_000;

/// Returns the relative luminance of a color in sRGB, times [`SCALE`] (WCAG 2.1).
fn luminance([red, green, blue]: [u8; 3]) -> u32 {
    let linear = |channel: u8| u32::from(LINEAR[usize::from(channel)]);
    2126 * linear(red) + 7152 * linear(green) + 722 * linear(blue)
}

/// The linear intensity of each value of a channel in sRGB, times 10,000.
#[rustfmt::skip]
const LINEAR: [u16; 256] = [
    0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 33, 37, 40, 44, 48,
    52, 56, 60, 65, 70, 75, 80, 86, 91, 97, 103, 110, 116, 123, 130, 137,
    144, 152, 160, 168, 176, 185, 194, 203, 212, 222, 232, 242, 252, 262, 273, 284,
    296, 307, 319, 331, 343, 356, 369, 382, 395, 409, 423, 437, 452, 467, 482, 497,
    513, 529, 545, 561, 578, 595, 612, 630, 648, 666, 685, 704, 723, 742, 762, 782,
    802, 823, 844, 865, 887, 908, 931, 953, 976, 999, 1022, 1046, 1070, 1095, 1119, 1144,
    1170, 1195, 1221, 1248, 1274, 1301, 1329, 1356, 1384, 1413, 1441, 1470, 1500, 1529, 1559, 1590,
    1620, 1651, 1683, 1714, 1746, 1779, 1812, 1845, 1878, 1912, 1946, 1981, 2016, 2051, 2086, 2122,
    2159, 2195, 2232, 2270, 2307, 2346, 2384, 2423, 2462, 2502, 2542, 2582, 2623, 2664, 2705, 2747,
    2789, 2831, 2874, 2918, 2961, 3005, 3050, 3095, 3140, 3185, 3231, 3278, 3325, 3372, 3419, 3467,
    3515, 3564, 3613, 3663, 3712, 3763, 3813, 3864, 3916, 3968, 4020, 4072, 4125, 4179, 4233, 4287,
    4342, 4397, 4452, 4508, 4564, 4621, 4678, 4735, 4793, 4851, 4910, 4969, 5029, 5089, 5149, 5210,
    5271, 5333, 5395, 5457, 5520, 5583, 5647, 5711, 5776, 5841, 5906, 5972, 6038, 6105, 6172, 6240,
    6308, 6376, 6445, 6514, 6584, 6654, 6724, 6795, 6867, 6939, 7011, 7084, 7157, 7231, 7305, 7379,
    7454, 7529, 7605, 7682, 7758, 7835, 7913, 7991, 8070, 8148, 8228, 8308, 8388, 8469, 8550, 8632,
    8714, 8796, 8879, 8963, 9047, 9131, 9216, 9301, 9387, 9473, 9560, 9647, 9734, 9823, 9911, 10000,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_color_must_be_readable_on_white() {
        for (text, shown) in [("#000000", "#000000"), ("#0B5CAD", "#0b5cad"), ("#949494", "#949494"), ("#c2410c", "#c2410c")] {
            assert_eq!(AccentColor::parse(text).expect(text).to_string(), shown);
        }
        let refused = |text: &str| AccentColor::parse(text).expect_err(text).code;
        for text in ["", "0b5cad", "#0b5ca", "#0b5cadd", "#0b5cag", "#+12345", "blue", "#äöü"] {
            assert_eq!(refused(text), "invalid_format", "{text}");
        }
        for text in ["#ffffff", "#ffd700", "#00ff00", "#969696"] {
            assert_eq!(refused(text), "out_of_range", "{text}");
        }
        assert_eq!(luminance([255; 3]), SCALE);
    }

    #[test]
    fn a_footer_has_at_most_500_characters() {
        assert_eq!(Footer::parse(&"ä".repeat(500)).expect("a footer").as_str().chars().count(), 500);
        assert!(Footer::parse("one\ntwo").is_ok());
        let refused = |text: &str| Footer::parse(text).expect_err(text).code;
        assert_eq!(refused(&"a".repeat(501)), "too_long");
        assert_eq!(refused(""), "too_short");
        assert_eq!(refused("a\u{7}"), "invalid_format");
    }

    #[test]
    fn a_logo_is_named_by_its_hash() {
        let text = format!("svg:{}", "0f".repeat(32));
        let logo = Logo::parse(&text).expect("a logo");
        assert_eq!((logo.format, logo.sha256, logo.image.is_none()), (LogoFormat::Svg, [15; 32], true));
        assert_eq!(logo.to_string(), text);
        for text in ["", "svg", "svg:", "gif:0f", &"svg:0F".repeat(32), &text.to_uppercase(), &format!("{text}0")] {
            assert_eq!(Logo::parse(text), None, "{text}");
        }
    }
}
