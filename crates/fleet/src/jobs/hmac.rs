//! HMAC with SHA-256, and a comparison that takes the same time whatever is compared.

use sha2::{Digest, Sha256};

/// The bytes of a block of SHA-256.
const BLOCK: usize = 64;

/// The authentication code of some data.
pub(super) fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    match key.len() > BLOCK {
        true => block[..32].copy_from_slice(&Sha256::digest(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let hash = |pad: u8, data: &[u8]| -> [u8; 32] {
        Sha256::new().chain_update(block.map(|byte| byte ^ pad)).chain_update(data).finalize().into()
    };
    hash(0x5C, &hash(0x36, data))
}

/// Whether two codes are the same. Every byte is looked at, and the compiler may not leave one out.
pub(super) fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one.iter().zip(other).fold(0, |all, (one, other)| std::hint::black_box(all | (one ^ other)));
    difference == 0
}

/// 64 hexadecimal digits as 32 bytes.
pub(super) fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{hmac, is_same, unhex};

    /// RFC 4231, test cases 1, 2 and 6, and the example in GitHub's documentation.
    #[test]
    fn codes_are_those_of_the_standard_and_of_github() {
        let cases: [(&[u8], &[u8], &str); 4] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
            (
                b"It's a Secret to Everybody",
                b"Hello, World!",
                "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
            ),
        ];
        for (key, data, expected) in cases {
            assert!(is_same(&hmac(key, data), &unhex(expected).unwrap()), "{expected}");
        }
    }

    #[test]
    fn one_different_bit_is_a_difference() {
        let one = hmac(b"key", b"data");
        for bit in 0..256 {
            let mut other = one;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_same(&one, &other), "{bit}");
        }
        for text in ["", "xy", &"0".repeat(63), &"g".repeat(64), &"+1".repeat(32), &"é".repeat(32)] {
            assert!(unhex(text).is_none(), "{text}");
        }
    }
}
