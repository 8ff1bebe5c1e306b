//! API keys and other random secrets. They contain 256 random bits from the operating system, so one SHA-256 protects
//! them. Passwords need a slow hash, see `passwords`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use billing_domain::access::SecretDigest;
use billing_domain::ports::{KeyMaker, NewKey, SecretError};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::failed;

const KEY_CHARS: usize = 20;
const KEY_ALPHABET: &[u8; 36] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// The largest multiple of 36 that fits a byte. Bytes from this value on are drawn again, because a plain remainder
/// would favor the first four letters.
const UNBIASED_BELOW: u8 = 252;
const SECRET_BYTES: usize = 32;

/// A generator of random keys that compares keys in constant time.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomKeys;

impl KeyMaker for RandomKeys {
    fn new_key(&self) -> Result<NewKey, SecretError> {
        let password = self.new_secret()?;
        let digest = self.digest(&password);
        Ok(NewKey { api_key: random_name()?, password, digest })
    }

    fn new_secret(&self) -> Result<String, SecretError> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(failed)?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    fn digest(&self, secret: &str) -> SecretDigest {
        SecretDigest(Sha256::digest(secret.as_bytes()).into())
    }

    fn matches(&self, secret: &str, digest: Option<&SecretDigest>) -> bool {
        let known = digest.copied().unwrap_or(SecretDigest([0; 32]));
        let equal = self.digest(secret).0.ct_eq(&known.0);
        // `&` instead of `&&`, so that both sides are always computed.
        bool::from(equal) & digest.is_some()
    }
}

fn random_name() -> Result<String, SecretError> {
    let mut name = String::with_capacity(KEY_CHARS);
    while name.len() < KEY_CHARS {
        let mut bytes = [0; 2 * KEY_CHARS];
        getrandom::fill(&mut bytes).map_err(failed)?;
        name.extend(bytes.into_iter().filter_map(letter).take(KEY_CHARS - name.len()));
    }
    Ok(name)
}

fn letter(byte: u8) -> Option<char> {
    (byte < UNBIASED_BELOW).then(|| char::from(KEY_ALPHABET[usize::from(byte) % KEY_ALPHABET.len()]))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn a_key_is_a_name_of_20_characters_and_a_password_of_32_random_bytes() {
        let key = RandomKeys.new_key().expect("randomness");
        assert_eq!(key.api_key.len(), 20);
        assert!(key.api_key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()), "{}", key.api_key);
        assert_eq!(key.password.len(), 43);
        assert_eq!(URL_SAFE_NO_PAD.decode(&key.password).expect("base64url without padding").len(), 32);
        assert!(RandomKeys.matches(&key.password, Some(&key.digest)));
    }

    #[test]
    fn no_two_keys_are_alike() {
        let keys: Vec<_> = (0..1000).map(|_| RandomKeys.new_key().expect("randomness")).collect();
        assert_eq!(keys.iter().map(|key| &key.api_key).collect::<HashSet<_>>().len(), keys.len());
        assert_eq!(keys.iter().map(|key| &key.password).collect::<HashSet<_>>().len(), keys.len());
    }

    #[test]
    fn every_letter_of_a_name_is_equally_likely() {
        let mut counts = HashMap::new();
        for byte in 0..=u8::MAX {
            *counts.entry(letter(byte)).or_insert(0) += 1;
        }
        assert_eq!(counts.remove(&None), Some(4));
        assert_eq!(counts.len(), 36);
        assert!(counts.values().all(|count| *count == 7));
    }

    #[test]
    fn a_digest_is_sha_256_of_the_text() {
        let digest = RandomKeys.digest("abc").0;
        assert_eq!(digest[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert_eq!(digest[28..], [0xf2, 0x00, 0x15, 0xad]);
    }

    #[test]
    fn only_the_secret_of_a_digest_matches_it() {
        let digest = RandomKeys.digest("right");
        assert!(RandomKeys.matches("right", Some(&digest)));
        for wrong in ["", "wrong", "right ", "Right"] {
            assert!(!RandomKeys.matches(wrong, Some(&digest)), "{wrong:?}");
        }
        assert!(!RandomKeys.matches("right", None));
    }

    #[test]
    fn a_key_does_not_show_its_password_when_printed() {
        let key = RandomKeys.new_key().expect("randomness");
        assert!(!format!("{key:?}").contains(&key.password));
    }
}
