//! The legal identifiers of parties and the legal settings of documents (billing rules 10).

use crate::codes::{AddressScheme, CountryCode, FormError, IdentifierScheme, NoteSubject};
use crate::money::Currency;
use crate::text::{OneLine, Prose};

/// The maximum length of a buyer reference in characters.
pub const MAX_BUYER_REFERENCE_CHARS: usize = 100;
/// The maximum number of legal notes of an entity.
pub const MAX_LEGAL_NOTES: usize = 5;

/// The legal identifiers that customers and entities have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LegalProfile {
    /// The VAT number.
    pub vat_id: Option<VatId>,
    /// The number in a register of legal persons.
    pub registration: Option<Registration>,
    /// The address for e-invoices.
    pub electronic_address: Option<ElectronicAddress>,
    /// The language of documents for this party.
    pub language: Option<Language>,
}

/// A VAT number: a country prefix and 2 to 13 characters of `A–Z 0–9 + *`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VatId(Box<str>);

impl VatId {
    /// Parses a VAT number. The prefix is `EL` for Greece, `XI` for Northern Ireland, and the country code for any other country.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `invalid_vat_id`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        let invalid = |remedy| Err(FormError::new("invalid_vat_id", remedy));
        let Some((prefix, rest)) = text.split_at_checked(2) else {
            return invalid("must begin with the prefix of a country, such as DE123456789");
        };
        if prefix == "GR" {
            return invalid("must begin with EL, the prefix of Greece");
        }
        if !matches!(prefix, "EL" | "XI") && CountryCode::parse(prefix).is_err() {
            return invalid("must begin with the prefix of a country in two capital letters, such as DE123456789");
        }
        let fits = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, b'+' | b'*');
        if !(2..=13).contains(&rest.len()) || !rest.bytes().all(fits) {
            return invalid("must have 2 to 13 characters of A-Z 0-9 + * after the prefix of its country, and no spaces");
        }
        Ok(Self(text.into()))
    }

    /// Returns the number as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

from_str!(VatId: FormError);

/// A number in a register of legal persons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The register, or `None` if the number needs no register name.
    pub scheme: Option<IdentifierScheme>,
    /// The number.
    pub value: OneLine,
}

/// An address in an e-invoicing network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectronicAddress {
    /// The scheme of the address.
    pub scheme: AddressScheme,
    /// The address.
    pub value: OneLine,
}

/// The contact of the seller for payers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// A person or a department.
    pub name: Option<OneLine>,
    /// A telephone number.
    pub phone: Option<OneLine>,
    /// An e-mail address.
    pub email: Option<OneLine>,
}

/// A text that the seller's law requires on documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegalNote {
    /// The subject of the note.
    pub subject_code: Option<NoteSubject>,
    /// The text.
    pub text: Prose,
}

/// A reference that the payer requires on documents: 1 to [`MAX_BUYER_REFERENCE_CHARS`] characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuyerReference(OneLine);

impl BuyerReference {
    /// Parses a buyer reference.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `too_short`, `too_long` or `invalid_format`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        if text.chars().count() > MAX_BUYER_REFERENCE_CHARS {
            return Err(FormError::new("too_long", "must be at most 100 characters"));
        }
        if text.is_empty() {
            return Err(FormError::new("too_short", "must not be empty"));
        }
        OneLine::parse(text).map(Self).map_err(|_| FormError::new("invalid_format", "must not contain control characters"))
    }

    /// Returns the reference as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

from_str!(BuyerReference: FormError);

/// A language of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// German.
    De,
    /// French.
    Fr,
    /// Spanish.
    Es,
    /// Italian.
    It,
    /// Dutch.
    Nl,
    /// Portuguese.
    Pt,
    /// Polish.
    Pl,
}

/// Whether documents without the legally required information are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// Incomplete documents are issued with a list of the missing information.
    #[default]
    Lenient,
    /// Incomplete documents aren't issued.
    Strict,
}

/// The page size of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaperSize {
    /// 210 × 297 mm.
    A4,
    /// 8.5 × 11 in.
    Letter,
}

impl PaperSize {
    /// Returns the usual page size in the seller's country.
    pub fn of(country: Option<CountryCode>) -> Self {
        match country.map(CountryCode::as_str) {
            Some("BZ" | "CA" | "CL" | "CO" | "CR" | "GT" | "MX" | "NI" | "PA" | "PH" | "PR" | "SV" | "US" | "VE") => Self::Letter,
            _ => Self::A4,
        }
    }
}

/// Returns the default name of taxes on documents in the seller's country.
pub fn tax_label(country: Option<CountryCode>) -> OneLine {
    OneLine::constant(match country.map(CountryCode::as_str) {
        Some("US") => "Sales tax",
        Some("AU" | "CA" | "IN" | "NZ" | "SG") => "GST",
        Some("DE" | "AT") => "USt.",
        Some("FR" | "LU" | "MC") => "TVA",
        _ => "VAT",
    })
}

/// The legal and layout settings of an entity's documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentSettings {
    /// Whether the legally required information must be present.
    pub strictness: Strictness,
    /// The page size. `None` means the default of the entity's country.
    pub size: Option<PaperSize>,
    /// The name of taxes. `None` means the default of the entity's country.
    pub tax_label: Option<OneLine>,
    /// The contact for payers.
    pub contact: Option<Contact>,
    /// The legal notes on documents, at most [`MAX_LEGAL_NOTES`].
    pub legal_notes: Vec<LegalNote>,
    /// The currency in which the entity accounts for tax, if it differs from the currency of a document.
    pub tax_currency: Option<Currency>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vat_id_has_the_prefix_of_a_country() {
        for good in
            ["DE123456789", "FR40303265045", "EL123456789", "XI123456789", "ATU12345678", "IE1234567WA", "ESX1234567X", "CY1+*Z"]
        {
            assert_eq!(VatId::parse(good).expect(good).as_str(), good);
        }
        let bad = [
            "",
            "D",
            "DE",
            "DE1",
            "123456789",
            "GR123456789",
            "XX123456789",
            "de123456789",
            "DE 123456789",
            "DE12345678901234",
            "DE12-34",
            "ÄÖ123",
            "D€123",
        ];
        for bad in bad {
            assert_eq!(VatId::parse(bad).expect_err(bad).code, "invalid_vat_id", "{bad}");
        }
    }

    #[test]
    fn a_buyer_reference_has_at_most_a_hundred_characters() {
        assert!(BuyerReference::parse(&"ä".repeat(100)).is_ok());
        let refused = |text: &str| BuyerReference::parse(text).expect_err(text).code;
        assert_eq!(refused(&"a".repeat(101)), "too_long");
        assert_eq!(refused(""), "too_short");
        assert_eq!(refused("a\nb"), "invalid_format");
    }

    #[test]
    fn size_and_word_for_taxes_follow_the_country() {
        let country = |code| CountryCode::parse(code).ok();
        let rows = [
            (None, PaperSize::A4, "VAT"),
            (country("DE"), PaperSize::A4, "USt."),
            (country("FR"), PaperSize::A4, "TVA"),
            (country("GB"), PaperSize::A4, "VAT"),
            (country("AU"), PaperSize::A4, "GST"),
            (country("CA"), PaperSize::Letter, "GST"),
            (country("US"), PaperSize::Letter, "Sales tax"),
        ];
        for (country, size, label) in rows {
            assert_eq!((PaperSize::of(country), tax_label(country).as_str()), (size, label), "{country:?}");
        }
    }
}
