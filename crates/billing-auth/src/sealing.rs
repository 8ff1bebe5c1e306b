//! Encryption of stored secrets: AES-256-GCM under a key derived from another secret. It seals stored responses under a
//! secret that the store does not contain, and the secrets of second factors.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use billing_domain::ports::{Sealer, SecretError};

use crate::failed;

/// The purpose of the derived key. No other key is derived from the same secret.
const PURPOSE: &[u8] = b"usage-billing sealed answer 1";

/// A sealer with AES-256-GCM. The key is derived from the secret with HKDF-SHA-256; a sealed value begins with its
/// random nonce.
#[derive(Clone, Copy, Debug, Default)]
pub struct AesSealer;

impl Sealer for AesSealer {
    fn seal(&self, secret: &str, place: &str, text: &[u8]) -> Result<Vec<u8>, SecretError> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(failed)?;
        let mut encrypted = text.to_vec();
        let key = key(secret).ok_or_else(|| failed("no key could be derived"))?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut encrypted).map_err(failed)?;
        Ok([&nonce[..], &encrypted].concat())
    }

    fn open(&self, secret: &str, place: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, encrypted) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = encrypted.to_vec();
        let length = key(secret)?.open_in_place(nonce, Aad::from(place), &mut text).ok()?.len();
        text.truncate(length);
        Some(text)
    }
}

fn key(secret: &str) -> Option<LessSafeKey> {
    let derived = Salt::new(HKDF_SHA256, &[]).extract(secret.as_bytes());
    let purpose = [PURPOSE];
    derived.expand(&purpose, &AES_256_GCM).ok().map(|key| LessSafeKey::new(UnboundKey::from(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "rJ3mM2w6p8S1xq0vTtLk9nZcYbHdGfEaQsWuIoP5R4c";
    const TEXT: &[u8] = br#"{"password":"shown once"}"#;

    #[test]
    fn what_is_sealed_is_opened_by_the_same_secret_in_the_same_place_alone() {
        let sealed = AesSealer.seal(SECRET, "here", TEXT).expect("sealed");
        assert_eq!(AesSealer.open(SECRET, "here", &sealed).as_deref(), Some(TEXT));
        assert_eq!(AesSealer.open("another secret", "here", &sealed), None);
        assert_eq!(AesSealer.open(SECRET, "there", &sealed), None);
        let empty = AesSealer.seal(SECRET, "here", b"").expect("sealed");
        assert_eq!(AesSealer.open(SECRET, "here", &empty).as_deref(), Some(&b""[..]));
    }

    #[test]
    fn the_text_is_not_readable_and_never_sealed_alike() {
        let sealed = [(); 2].map(|()| AesSealer.seal(SECRET, "here", TEXT).expect("sealed"));
        assert_ne!(sealed[0], sealed[1]);
        assert_ne!(sealed[0][..NONCE_LEN], sealed[1][..NONCE_LEN]);
        for sealed in sealed {
            assert!(!sealed.windows(4).any(|window| TEXT.windows(4).any(|text| text == window)));
        }
    }

    #[test]
    fn bytes_that_were_changed_or_cut_are_not_opened() {
        let sealed = AesSealer.seal(SECRET, "here", TEXT).expect("sealed");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(AesSealer.open(SECRET, "here", &changed), None, "byte {at}");
            assert_eq!(AesSealer.open(SECRET, "here", &sealed[..at]), None, "{at} bytes");
        }
    }
}
