//! SHA-256 and what is made of it.

use sha2::{Digest, Sha256};

/// The bytes that a block of SHA-256 has.
const BLOCK: usize = 64;

pub(crate) fn sha256(data: &[u8]) -> [u8; 32] {
    Sha256::digest(data).into()
}

/// HMAC with SHA-256.
pub(crate) fn hmac(key: &[u8], data: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK];
    match key.len() > BLOCK {
        true => block[..32].copy_from_slice(&sha256(key)),
        false => block[..key.len()].copy_from_slice(key),
    }
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = sha256(&[&pad(0x36), data].concat());
    sha256(&[pad(0x5C).as_slice(), &inner].concat())
}

/// Hexadecimal digits.
pub(crate) fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}
