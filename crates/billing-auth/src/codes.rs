//! Second factors: time-based codes (RFC 6238), and recovery codes for a lost device.
//!
//! SHA-1 is the algorithm that authenticator apps support. Its known weakness is collisions, which do not affect HMAC.

use aws_lc_rs::hmac;
use billing_domain::access::CodeSecret;
use billing_domain::calendar::Timestamp;
use billing_domain::ports::{CodeChecker, SecretError};
use subtle::ConstantTimeEq as _;

use crate::failed;

const STEP_SECONDS: i64 = 30;
const DIGITS: usize = 6;
const MODULUS: u32 = 1_000_000;
/// The number of steps that a device's clock may be ahead or behind.
const TOLERATED_STEPS: i64 = 1;
/// The size of a secret, equal to the hash size.
const SECRET_BYTES: usize = 20;
const RECOVERY_BYTES: usize = 10;
const RECOVERY_GROUP: usize = 4;
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BITS_PER_LETTER: usize = 5;

/// The codes of RFC 6238.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimedCodes;

impl CodeChecker for TimedCodes {
    fn new_code_secret(&self) -> Result<CodeSecret, SecretError> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(failed)?;
        Ok(CodeSecret(bytes.to_vec()))
    }

    fn spelled(&self, secret: &CodeSecret) -> String {
        base32(&secret.0)
    }

    fn step_of(&self, secret: &CodeSecret, code: &str, now: Timestamp, after: Option<i64>) -> Option<i64> {
        let code: Vec<u8> = code.bytes().filter(|byte| *byte != b' ').collect();
        let present = now.as_micros().div_euclid(1_000_000 * STEP_SECONDS);
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &secret.0);
        // All codes are compared, so that the time does not depend on which one matches.
        let equal = |step: &i64| bool::from(code_of(&key, *step).as_bytes().ct_eq(&code));
        let steps: Vec<i64> = (present - TOLERATED_STEPS..=present + TOLERATED_STEPS).filter(equal).collect();
        steps.into_iter().find(|step| after.is_none_or(|after| *step > after))
    }

    fn new_recovery_code(&self) -> Result<String, SecretError> {
        let mut bytes = [0; RECOVERY_BYTES];
        getrandom::fill(&mut bytes).map_err(failed)?;
        let letters = base32(&bytes).into_bytes();
        let groups: Vec<String> =
            letters.chunks(RECOVERY_GROUP).map(|group| String::from_utf8_lossy(group).into_owned()).collect();
        Ok(groups.join("-"))
    }
}

/// Returns the code of a step (RFC 4226, 5.3).
fn code_of(key: &hmac::Key, step: i64) -> String {
    let tag = hmac::sign(key, &step.to_be_bytes());
    let bytes = tag.as_ref();
    let offset = usize::from(bytes.last().copied().unwrap_or_default() & 0x0f);
    let number = bytes.iter().skip(offset).take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte)) & 0x7fff_ffff;
    format!("{:0DIGITS$}", number % MODULUS)
}

/// Encodes bytes in base 32 (RFC 4648) without padding.
fn base32(bytes: &[u8]) -> String {
    let bits: Vec<u8> = bytes.iter().flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1)).collect();
    let letter = |bits: &[u8]| {
        let number = (0..BITS_PER_LETTER).fold(0, |number, place| number << 1 | bits.get(place).copied().unwrap_or_default());
        char::from(BASE32[usize::from(number)])
    };
    bits.chunks(BITS_PER_LETTER).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn secret() -> CodeSecret {
        CodeSecret(b"12345678901234567890".to_vec())
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000).expect("an instant")
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // Appendix B has eight digits; its last six are the six-digit code.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(TimedCodes.step_of(&secret(), code, at(seconds), None), Some(seconds / 30), "{seconds}");
        }
    }

    #[test]
    fn hotp_values_are_those_of_rfc_4226() {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &secret().0);
        let expected = ["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"];
        for (step, code) in (0..).zip(expected) {
            assert_eq!(code_of(&key, step), code, "{step}");
        }
    }

    #[test]
    fn base32_is_that_of_rfc_4648() {
        for (bytes, letters) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(bytes.as_bytes()), letters, "{bytes}");
        }
        assert_eq!(TimedCodes.spelled(&secret()), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }

    #[test]
    fn a_clock_may_be_off_by_a_step_and_no_more() {
        for (seconds, is_taken) in [(29, true), (30, true), (59, true), (60, true), (89, true), (90, false), (0, true)] {
            assert_eq!(TimedCodes.step_of(&secret(), "287082", at(seconds), None).is_some(), is_taken, "{seconds}");
        }
        assert_eq!(TimedCodes.step_of(&secret(), "28 7082", at(59), None), Some(1), "as apps show it");
        for wrong in ["", "28708", "2870822", "287083", "28708a", "+87082"] {
            assert_eq!(TimedCodes.step_of(&secret(), wrong, at(59), None), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_code_is_not_taken_after_it_was() {
        assert_eq!(TimedCodes.step_of(&secret(), "287082", at(59), Some(0)), Some(1));
        for after in [1, 2] {
            assert_eq!(TimedCodes.step_of(&secret(), "287082", at(59), Some(after)), None, "{after}");
        }
    }

    #[test]
    fn secrets_and_recovery_codes_are_random() {
        let secrets: HashSet<Vec<u8>> = (0..100).map(|_| TimedCodes.new_code_secret().expect("randomness").0).collect();
        assert!(secrets.len() == 100 && secrets.iter().all(|secret| secret.len() == SECRET_BYTES));
        let codes: HashSet<String> = (0..100).map(|_| TimedCodes.new_recovery_code().expect("randomness")).collect();
        assert_eq!(codes.len(), 100);
        for code in codes {
            let groups: Vec<&str> = code.split('-').collect();
            assert!(groups.len() == 4 && groups.iter().all(|group| group.len() == 4), "{code}");
            assert!(code.bytes().all(|byte| byte == b'-' || BASE32.contains(&byte)), "{code}");
        }
    }
}
