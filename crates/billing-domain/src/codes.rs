//! Codes from external lists: countries, units, identifier schemes, exemption reasons and others.
//!
//! The lists are text files with one code per line, in byte order. They contain the codes that the rules of EN 16931 allow
//! (billing rules 10). Codes are never removed from a list, because stored values are parsed with it.

use std::fmt;
use std::sync::LazyLock;

use thiserror::Error;

/// The error for text in an invalid form. It displays the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{remedy}")]
pub struct FormError {
    /// A stable error code for programs.
    pub code: &'static str,
    remedy: &'static str,
}

impl FormError {
    /// Creates an error from its code and remedy.
    pub(crate) const fn new(code: &'static str, remedy: &'static str) -> Self {
        Self { code, remedy }
    }
}

/// Declares a code type with the file of its list, its error code and its remedy.
macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident: $file:literal, $code:literal, $remedy:literal;)+) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(&'static str);

        impl $name {
            /// Parses a code.
            ///
            /// # Errors
            /// Returns a [`FormError`] if the list doesn't contain the code.
            pub fn parse(text: &str) -> Result<Self, FormError> {
                let list = Self::all();
                let found = list.binary_search(&text).map_err(|_| FormError::new($code, $remedy))?;
                Ok(Self(list[found]))
            }

            /// Returns the list of codes.
            pub fn all() -> &'static [&'static str] {
                static LIST: LazyLock<Vec<&'static str>> = LazyLock::new(|| include_str!($file).lines().collect());
                &LIST
            }

            /// Returns the code as text.
            pub const fn as_str(self) -> &'static str {
                self.0
            }
        }

        from_str!($name: FormError);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
        }
    )+};
}

codes! {
    /// A country code of ISO 3166-1 alpha-2.
    CountryCode: "codes/countries.txt", "invalid_country_code",
        "must be a country of ISO 3166-1 in two capital letters, such as DE, FR or US";
    /// A unit of quantities in UN/ECE Recommendations 20 and 21.
    UnitCode: "codes/units.txt", "unknown_unit_code",
        "must be a unit code of UN/ECE Recommendation 20 or 21, such as C62 (one), HUR (hour) or E34 (gigabyte)";
    /// A scheme of registration identifiers in ISO/IEC 6523.
    IdentifierScheme: "codes/identifier_schemes.txt", "unknown_scheme",
        "must be an identifier scheme of ISO/IEC 6523, such as 0002 (SIREN) or 0088 (GLN)";
    /// A scheme of electronic addresses for e-invoices (EAS).
    AddressScheme: "codes/address_schemes.txt", "unknown_scheme",
        "must be an electronic address scheme, such as 0204 (Leitweg-ID), 0225 (France) or EM (e-mail)";
    /// The subject of a document note in UNTDID 4451.
    NoteSubject: "codes/note_subjects.txt", "unknown_subject_code",
        "must be a text subject of UNTDID 4451, such as PMD, PMT or AAB";
    /// A tax exemption reason code (VATEX).
    ExemptionCode: "codes/tax_exemptions.txt", "unknown_exemption_code",
        "must be a VATEX code, such as VATEX-EU-AE (reverse charge) or VATEX-EU-O (not subject to VAT)";
}

impl UnitCode {
    /// The unit `C62` for a count without a unit of its own.
    pub const ONE: Self = Self("C62");
}

impl Default for UnitCode {
    fn default() -> Self {
        Self::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_in_the_order_of_its_bytes_with_each_code_once() {
        let lists = [
            (CountryCode::all(), 249),
            (UnitCode::all(), 2162),
            (IdentifierScheme::all(), 243),
            (AddressScheme::all(), 104),
            (NoteSubject::all(), 383),
            (ExemptionCode::all(), 88),
        ];
        for (list, length) in lists {
            assert_eq!(list.len(), length, "{:?}", list.first());
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", list.first());
            assert!(list.iter().all(|code| !code.is_empty() && code.trim() == *code), "{:?}", list.first());
        }
    }

    #[test]
    fn codes_are_found_as_they_are_written_and_nothing_else_is() {
        for code in ["AD", "DE", "US", "ZW"] {
            assert_eq!(CountryCode::parse(code).expect(code).as_str(), code);
        }
        for bad in ["", "de", "D", "DEU", "XX", "EL", "UK", " DE"] {
            assert_eq!(CountryCode::parse(bad).expect_err(bad).code, "invalid_country_code");
        }
        assert_eq!(UnitCode::parse("C62"), Ok(UnitCode::ONE));
        assert!(UnitCode::parse("HUR").is_ok() && UnitCode::parse("XPX").is_ok());
        assert_eq!(UnitCode::parse("call").expect_err("no unit").code, "unknown_unit_code");
        assert!(IdentifierScheme::parse("0002").is_ok() && IdentifierScheme::parse("EM").is_err());
        assert!(
            AddressScheme::parse("EM").is_ok() && AddressScheme::parse("0204").is_ok() && AddressScheme::parse("0003").is_err()
        );
        assert!(NoteSubject::parse("PMD").is_ok() && NoteSubject::parse("ZZZZ").is_err());
        assert!(ExemptionCode::parse("VATEX-EU-AE").is_ok() && ExemptionCode::parse("vatex-eu-ae").is_err());
    }
}
