//! The legal identifiers of parties and the legal settings of documents (billing rules 10).

use super::appearance::{AccentColor, Footer, Logo};
use crate::codes::{AddressScheme, CountryCode, FormError, IdentifierScheme, NoteSubject};
use crate::money::Currency;
use crate::text::{OneLine, Prose, compact};
use crate::violation::Violations;

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

/// A VAT number: a country prefix and 2 to 14 characters of `A–Z 0–9 + *`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VatId(Box<str>);

impl VatId {
    /// Parses a VAT number. The prefix is `EL` for Greece, `XI` for Northern Ireland, and the country code for any other country.
    /// Spaces, dots and hyphens are removed, and letters become capital letters.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `invalid_vat_id`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        let invalid = |remedy| Err(FormError::new("invalid_vat_id", remedy));
        let number = compact(text);
        let Some((prefix, rest)) = number.split_at_checked(2) else {
            return invalid("must begin with the prefix of a country, such as DE123456789");
        };
        if prefix == "GR" {
            return invalid("must begin with EL, the prefix of Greece");
        }
        if !matches!(prefix, "EL" | "XI") && CountryCode::parse(prefix).is_err() {
            return invalid("must begin with the prefix of a country in two letters, such as DE123456789");
        }
        let fits = |c: u8| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, b'+' | b'*');
        if !(2..=14).contains(&rest.len()) || !rest.bytes().all(fits) {
            return invalid("must have 2 to 14 characters of A-Z 0-9 + * after the prefix of its country");
        }
        Ok(Self(number.into()))
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
        OneLine::parse(text).map(Self).map_err(|_| FormError::new("invalid_format", "must not contain invisible characters"))
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
    /// Japanese.
    Ja,
    /// Swedish.
    Sv,
    /// Danish.
    Da,
    /// Norwegian Bokmål.
    Nb,
    /// Finnish.
    Fi,
    /// Czech.
    Cs,
    /// Hungarian.
    Hu,
    /// Romanian.
    Ro,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 16] = [
        Self::En,
        Self::De,
        Self::Fr,
        Self::Es,
        Self::It,
        Self::Nl,
        Self::Pt,
        Self::Pl,
        Self::Ja,
        Self::Sv,
        Self::Da,
        Self::Nb,
        Self::Fi,
        Self::Cs,
        Self::Hu,
        Self::Ro,
    ];
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

/// The kind of e-invoice of a document. It determines the required terms and the syntaxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EInvoiceProfile {
    /// No e-invoice.
    None,
    /// The European standard EN 16931 without further requirements, in both syntaxes.
    #[default]
    En16931,
    /// XRechnung, the German national specification, in both syntaxes.
    Xrechnung,
    /// Peppol BIS Billing 3.0, in UBL only.
    Peppol,
    /// Factur-X and ZUGFeRD: CII only, which the document's PDF file contains.
    FacturX,
}

/// The e-invoice settings of an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EInvoiceSettings {
    /// The profile of documents for customers without a profile of their own.
    pub profile: EInvoiceProfile,
    /// Whether documents that can't be e-invoices aren't issued.
    pub required: bool,
}

impl EInvoiceSettings {
    /// Returns whether these are the default settings.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
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

/// Returns the default name of taxes on documents: the seller's country determines the tax, the document's language the word.
pub fn tax_label(country: Option<CountryCode>, language: Language) -> OneLine {
    OneLine::constant(match (country.map(CountryCode::as_str), language) {
        (Some("US"), _) => sales_tax(language),
        (Some("AU" | "CA" | "IN" | "NZ" | "SG"), Language::Fr) => "TPS",
        (Some("AU" | "CA" | "IN" | "NZ" | "SG"), _) => "GST",
        (Some("JP"), Language::En) => "Consumption tax",
        (Some("JP"), Language::Ja) => "消費税",
        (Some("CH" | "LI"), Language::De) => "MWST",
        (_, Language::En | Language::Pl) => "VAT",
        (_, Language::De) => "USt.",
        (_, Language::Fr | Language::Ro) => "TVA",
        (_, Language::Es | Language::It | Language::Pt) => "IVA",
        (_, Language::Nl) => "Btw",
        (_, Language::Ja) => "付加価値税",
        (_, Language::Sv | Language::Da) => "Moms",
        (_, Language::Nb) => "MVA",
        (_, Language::Fi) => "ALV",
        (_, Language::Cs) => "DPH",
        (_, Language::Hu) => "ÁFA",
    })
}

/// Returns the name of a tax on sales that is not a value added tax.
const fn sales_tax(language: Language) -> &'static str {
    match language {
        Language::En => "Sales tax",
        Language::De => "Verkaufssteuer",
        Language::Fr => "Taxe de vente",
        Language::Es => "Impuesto sobre las ventas",
        Language::It => "Imposta sulle vendite",
        Language::Nl => "Omzetbelasting",
        Language::Pt => "Imposto sobre vendas",
        Language::Pl => "Podatek od sprzedaży",
        Language::Ja => "売上税",
        Language::Sv => "Försäljningsskatt",
        Language::Da => "Salgsskat",
        Language::Nb => "Salgsskatt",
        Language::Fi => "Myyntivero",
        Language::Cs => "Daň z prodeje",
        Language::Hu => "Forgalmi adó",
        Language::Ro => "Taxă pe vânzări",
    }
}

/// The legal and layout settings of an entity's documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentSettings {
    /// Whether the legally required information must be present.
    pub strictness: Strictness,
    /// The page size. `None` means the default of the entity's country.
    pub size: Option<PaperSize>,
    /// The name of taxes. `None` means the default of the entity's country in the document's language.
    pub tax_label: Option<OneLine>,
    /// The contact for payers.
    pub contact: Option<Contact>,
    /// The legal notes on documents, at most [`MAX_LEGAL_NOTES`].
    pub legal_notes: Vec<LegalNote>,
    /// The currency in which the entity accounts for tax, if it differs from the currency of a document.
    pub tax_currency: Option<Currency>,
    /// The e-invoice settings.
    pub e_invoice: EInvoiceSettings,
    /// The logo.
    pub logo: Option<Logo>,
    /// The color of headings and rules.
    pub accent_color: Option<AccentColor>,
    /// The text at the end of documents.
    pub footer: Option<Footer>,
}

impl DocumentSettings {
    /// Checks rules that involve more than one field.
    ///
    /// # Errors
    /// Returns `required` for each part of the contact that the e-invoice profile XRECHNUNG requires, and `not_allowed` for required
    /// e-invoices with the profile NONE.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        let EInvoiceSettings { profile, required } = self.e_invoice;
        if required && profile == EInvoiceProfile::None {
            found.add(&["e_invoice", "required"], "not_allowed", "must be false with the profile NONE: choose another profile");
        }
        if profile == EInvoiceProfile::Xrechnung {
            let contact = self.contact.clone().unwrap_or_default();
            let asked =
                [("name", contact.name.is_some()), ("phone", contact.phone.is_some()), ("email", contact.email.is_some())];
            for (part, _) in asked.into_iter().filter(|(_, is_there)| !is_there) {
                found.add(&["contact", part], "required", "must be given, because the e-invoice profile XRECHNUNG requires it");
            }
        }
        found.or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e_invoice_settings_agree_with_each_other_and_with_the_contact() {
        let text = |text: &str| OneLine::parse(text).ok();
        let whole = Contact { name: text("Billing"), phone: text("+49 421 1234"), email: text("billing@example.com") };
        let found = |profile, required, contact: Option<&Contact>| -> Vec<String> {
            let e_invoice = EInvoiceSettings { profile, required };
            let settings = DocumentSettings { contact: contact.cloned(), e_invoice, ..DocumentSettings::default() };
            let violations = settings.check().err().unwrap_or_default();
            violations.iter().map(|violation| format!("{} {}", violation.path.join("/"), violation.code)).collect()
        };
        assert_eq!(found(EInvoiceProfile::En16931, true, None), Vec::<String>::new());
        assert_eq!(found(EInvoiceProfile::None, false, None), Vec::<String>::new());
        assert_eq!(found(EInvoiceProfile::None, true, None), ["e_invoice/required not_allowed"]);
        assert_eq!(found(EInvoiceProfile::Xrechnung, true, Some(&whole)), Vec::<String>::new());
        let partial = Contact { phone: None, ..whole };
        assert_eq!(found(EInvoiceProfile::Xrechnung, false, Some(&partial)), ["contact/phone required"]);
        let all = ["contact/name required", "contact/phone required", "contact/email required"];
        assert_eq!(found(EInvoiceProfile::Xrechnung, false, None), all);
        assert!(EInvoiceSettings::default().is_default());
    }

    #[test]
    fn a_vat_id_has_the_prefix_of_a_country() {
        for good in
            ["DE123456789", "FR40303265045", "EL123456789", "XI123456789", "ATU12345678", "IE1234567WA", "ESX1234567X", "CY1+*Z"]
        {
            assert_eq!(VatId::parse(good).expect(good).as_str(), good);
        }
        for (typed, number) in [
            ("de 123 456 789", "DE123456789"),
            ("FR 40 303 265 045", "FR40303265045"),
            ("CHE-116.281.710 MWST", "CHE116281710MWST"),
            ("nl\u{a0}1234.56.789.b.01", "NL123456789B01"),
            ("DE12-34", "DE1234"),
        ] {
            assert_eq!(VatId::parse(typed).expect(typed).as_str(), number);
        }
        let bad = [
            "",
            "D",
            "DE",
            "DE1",
            "123456789",
            "GR123456789",
            "XX123456789",
            "DE123456789012345",
            "DE/123456789",
            "DE 1",
            " - . ",
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
    fn size_and_word_for_taxes_follow_the_country_and_the_language() {
        let country = |code| CountryCode::parse(code).ok();
        let rows = [
            (None, Language::En, PaperSize::A4, "VAT"),
            (country("DE"), Language::De, PaperSize::A4, "USt."),
            (country("DE"), Language::Fr, PaperSize::A4, "TVA"),
            (country("DE"), Language::En, PaperSize::A4, "VAT"),
            (country("CH"), Language::De, PaperSize::A4, "MWST"),
            (country("FR"), Language::Fr, PaperSize::A4, "TVA"),
            (country("GB"), Language::En, PaperSize::A4, "VAT"),
            (country("AU"), Language::En, PaperSize::A4, "GST"),
            (country("CA"), Language::Fr, PaperSize::Letter, "TPS"),
            (country("JP"), Language::Ja, PaperSize::A4, "消費税"),
            (country("JP"), Language::De, PaperSize::A4, "USt."),
            (country("US"), Language::En, PaperSize::Letter, "Sales tax"),
            (country("US"), Language::Fi, PaperSize::Letter, "Myyntivero"),
        ];
        for (country, language, size, label) in rows {
            let found = (PaperSize::of(country), tax_label(country, language));
            assert_eq!((found.0, found.1.as_str()), (size, label), "{country:?} {language:?}");
        }
    }
}
