//! Bank accounts that receive payments, and checks of their numbers.

use crate::calendar::Timestamp;
use crate::codes::{CountryCode, FormError};
use crate::refs::BankAccountRef;
use crate::text::{OneLine, compact};
use crate::violation::Violations;

/// The maximum length of an IBAN in characters.
const MAX_IBAN_CHARS: usize = 34;
/// The checksum weights of a routing number's digits.
const ROUTING_WEIGHTS: [u32; 9] = [3, 7, 1, 3, 7, 1, 3, 7, 1];

/// A bank account that payment details refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankAccount {
    /// The reference in payment details.
    pub account_ref: BankAccountRef,
    /// The editable data. Issued documents keep the data they were issued with.
    pub profile: BankAccountProfile,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

/// The editable data of a bank account. Its number is either an IBAN or an account number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankAccountProfile {
    /// The account holder.
    pub account_name: Option<OneLine>,
    /// The IBAN.
    pub iban: Option<Iban>,
    /// The national account number.
    pub account_number: Option<OneLine>,
    /// The routing number of the bank in the United States, for a national account number.
    pub routing_number: Option<RoutingNumber>,
    /// The BIC of the bank.
    pub bic: Option<Bic>,
    /// The name of the bank.
    pub bank_name: Option<OneLine>,
}

impl BankAccountProfile {
    /// Checks rules that involve more than one field.
    ///
    /// # Errors
    /// Returns `required` without a number, `conflicting_fields` with two numbers, and `not_allowed` for a routing number without an
    /// account number.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        match (&self.iban, &self.account_number) {
            (None, None) => found.add(&["iban"], "required", "must be given, or account_number"),
            (Some(_), Some(_)) => {
                found.add(&["account_number"], "conflicting_fields", "must be omitted or null, because iban is given");
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        if self.routing_number.is_some() && self.account_number.is_none() {
            found.add(&["routing_number"], "not_allowed", "must be omitted, because account_number is missing");
        }
        found.or(())
    }
}

/// An international bank account number (IBAN) without spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iban(Box<str>);

impl Iban {
    /// Parses an IBAN. Spaces, dots and hyphens are removed, and letters become capital letters.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `invalid_iban`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        let invalid = |remedy| Err(FormError::new("invalid_iban", remedy));
        let number = compact(text);
        let form = "must be a country, two check digits and up to 30 characters of A-Z 0-9, such as DE89370400440532013000";
        let fits = number.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        if !fits || !(15..=MAX_IBAN_CHARS).contains(&number.len()) {
            return invalid(form);
        }
        let (country, rest) = number.split_at(2);
        if !(CountryCode::parse(country).is_ok() || country == "XK") || !rest.as_bytes()[..2].iter().all(u8::is_ascii_digit) {
            return invalid(form);
        }
        // Letters count as 10 to 35. The first four characters move to the end.
        let remainder = number.bytes().cycle().skip(4).take(number.len()).fold(0, |remainder: u32, b| match b {
            b'0'..=b'9' => (remainder * 10 + u32::from(b - b'0')) % 97,
            _ => (remainder * 100 + u32::from(b - b'A') + 10) % 97,
        });
        if remainder == 1 {
            Ok(Self(number.into()))
        } else {
            invalid("must have correct check digits: check the number for a typing error")
        }
    }

    /// Returns the number as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

from_str!(Iban: FormError);

/// A bank identifier code (BIC) of ISO 9362.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bic(Box<str>);

impl Bic {
    /// Parses a BIC of 8 or 11 characters. Spaces, dots and hyphens are removed, and letters become capital letters.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `invalid_bic`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        let code = compact(text);
        let bytes = code.as_bytes();
        let alphanumeric = |bytes: &[u8]| bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
        let fits = matches!(bytes.len(), 8 | 11)
            && alphanumeric(bytes)
            && code.get(4..6).is_some_and(|country| CountryCode::parse(country).is_ok() || country == "XK");
        let remedy = "must be 8 or 11 characters of A-Z 0-9 with a country at the fifth, such as DEUTDEFF";
        if fits { Ok(Self(code.into())) } else { Err(FormError::new("invalid_bic", remedy)) }
    }

    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

from_str!(Bic: FormError);

/// A routing number of a bank in the United States: nine digits, assigned by the American Bankers Association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingNumber(Box<str>);

impl RoutingNumber {
    /// Parses a routing number. Spaces, dots and hyphens are removed.
    ///
    /// # Errors
    /// Returns a [`FormError`] with the code `invalid_routing_number`.
    pub fn parse(text: &str) -> Result<Self, FormError> {
        let invalid = |remedy| Err(FormError::new("invalid_routing_number", remedy));
        let text = compact(text);
        if text.len() != ROUTING_WEIGHTS.len() || !text.bytes().all(|b| b.is_ascii_digit()) {
            return invalid("must be nine digits, such as 021000021");
        }
        let sum: u32 = text.bytes().zip(ROUTING_WEIGHTS).map(|(b, weight)| u32::from(b - b'0') * weight).sum();
        if sum == 0 || !sum.is_multiple_of(10) {
            return invalid("must have a correct check digit: check the number for a typing error");
        }
        Ok(Self(text.into()))
    }

    /// Returns the number as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

from_str!(RoutingNumber: FormError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iban_has_the_right_check_digits() {
        let good = [
            "DE89370400440532013000",
            "FR1420041010050500013M02606",
            "GB29NWBK60161331926819",
            "NO9386011117947",
            "XK051212012345678906",
        ];
        for good in good {
            assert_eq!(Iban::parse(good).expect(good).as_str(), good);
        }
        for typed in ["DE89 3704 0044 0532 0130 00", "de89-3704-0044-0532-0130-00", "DE89\u{a0}3704 0044.0532.0130.00"] {
            assert_eq!(Iban::parse(typed).expect(typed).as_str(), "DE89370400440532013000");
        }
        let bad = [
            "",
            "DE",
            "DE88370400440532013000",
            "DE89370400440532013001",
            "DE89370400440532031000",
            "XX89370400440532013000",
            "DEAA370400440532013000",
            "DE89-3704",
            "NO938601111794",
            &"1".repeat(35),
            "DÄ89370400440532013000",
        ];
        for bad in bad {
            assert_eq!(Iban::parse(bad).expect_err(bad).code, "invalid_iban", "{bad}");
        }
    }

    #[test]
    fn a_bic_has_its_form() {
        for good in ["DEUTDEFF", "DEUTDEFF500", "BNPAFRPPXXX", "CHASUS33"] {
            assert_eq!(Bic::parse(good).expect(good).as_str(), good);
        }
        assert_eq!(Bic::parse("deut de ff-500").expect("as typed").as_str(), "DEUTDEFF500");
        for bad in ["", "DEUTDEF", "DEUTDEFF5", "DEUTXXFF", "DEUT-EFF", "DEUTÄFFF"] {
            assert_eq!(Bic::parse(bad).expect_err(bad).code, "invalid_bic", "{bad}");
        }
    }

    #[test]
    fn a_routing_number_has_the_right_check_digit() {
        for good in ["021000021", "011401533", "111000025"] {
            assert_eq!(RoutingNumber::parse(good).expect(good).as_str(), good);
        }
        assert_eq!(RoutingNumber::parse("0210-0002 1").expect("as typed").as_str(), "021000021");
        for bad in ["", "02100002", "021000022", "012000021", "02100002a", "000000000", "0210000210"] {
            assert_eq!(RoutingNumber::parse(bad).expect_err(bad).code, "invalid_routing_number", "{bad}");
        }
    }

    #[test]
    fn an_account_has_one_number() {
        let iban = || Iban::parse("DE89370400440532013000").ok();
        let number = || OneLine::parse("12345678").ok();
        let routing = || RoutingNumber::parse("021000021").ok();
        let refused = |iban, account_number, routing_number| -> Vec<&str> {
            let profile = BankAccountProfile { iban, account_number, routing_number, ..BankAccountProfile::default() };
            profile.check().err().unwrap_or_default().iter().map(|violation| violation.code).collect()
        };
        assert!(refused(iban(), None, None).is_empty());
        assert!(refused(None, number(), None).is_empty());
        assert!(refused(None, number(), routing()).is_empty());
        assert_eq!(refused(None, None, None), ["required"]);
        assert_eq!(refused(iban(), number(), None), ["conflicting_fields"]);
        assert_eq!(refused(iban(), None, routing()), ["not_allowed"]);
    }
}
