//! Codes of a second factor as a device generates them (RFC 6238).
//!
//! This module has its own SHA-1, so that the tests do not check the service with the implementation that the service
//! uses.

use crate::when::Day;

const BLOCK: usize = 64;

/// Returns the code of a base32 secret for the 30-second step that contains an instant. The instant is in seconds since
/// 1970.
///
/// # Panics
/// Panics if the secret is not base32.
pub fn code(secret: &str, at_seconds: i64) -> String {
    let step = at_seconds.div_euclid(30).to_be_bytes();
    let tag = hmac(&from_base32(secret), &step);
    let offset = usize::from(tag[19] & 0x0f);
    let number = u32::from_be_bytes([tag[offset], tag[offset + 1], tag[offset + 2], tag[offset + 3]]) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

/// Returns the code of a secret at an instant such as `2026-11-10T12:00:00Z`.
///
/// # Panics
/// Panics if the text is not an instant in UTC with a precision of seconds.
pub fn code_at(secret: &str, instant: &str) -> String {
    let days = Day::new(1970, 1, 1).days_until(Day::parse(&instant[..10]));
    let part = |range| instant.get(range).and_then(|part: &str| part.parse::<i64>().ok()).expect("an instant");
    code(secret, days * 86_400 + part(11..13) * 3600 + part(14..16) * 60 + part(17..19))
}

fn from_base32(text: &str) -> Vec<u8> {
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'2'..=b'7' => letter - b'2' + 26,
            _ => panic!("{text} is not base32"),
        };
        bits = (bits << 5 | u32::from(value)) & 0x1fff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("a byte"));
        }
    }
    bytes
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 20] {
    let mut padded = [0; BLOCK];
    padded[..key.len()].copy_from_slice(key);
    let with = |pad: u8| padded.map(|byte| byte ^ pad).to_vec();
    let inner = sha1(&[with(0x36), message.to_vec()].concat());
    sha1(&[with(0x5c), inner.to_vec()].concat())
}

fn sha1(message: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = [message, &[0x80]].concat();
    while padded.len() % BLOCK != BLOCK - 8 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(BLOCK) {
        let mut words: Vec<u32> = block.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four bytes"))).collect();
        for i in 16..80 {
            words.push((words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16]).rotate_left(1));
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (i, word) in words.iter().enumerate() {
            let (mixed, constant) = match i {
                0..20 => (b & c | !b & d, 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant).wrapping_add(*word);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (kept, added) in state.iter_mut().zip([a, b, c, d, e]) {
            *kept = kept.wrapping_add(added);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_rfcs() {
        let hex: String = sha1(b"abc").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
        let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
        assert_eq!(from_base32(secret), b"12345678901234567890");
        for (seconds, expected) in [(59, "287082"), (1_111_111_109, "081804"), (20_000_000_000, "353130")] {
            assert_eq!(code(secret, seconds), expected, "{seconds}");
        }
    }
}
