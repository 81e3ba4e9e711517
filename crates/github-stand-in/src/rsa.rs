//! Verifies signatures of the App (RSASSA-PKCS1-v1_5 with SHA-256), without a library that also makes random numbers.

use crate::hash::sha256;
use std::cmp::Ordering;

/// What the padded hash starts with: that it is a SHA-256.
const ALGORITHM: [u8; 19] =
    [0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20];

/// A public key whose exponent is 65537, as those of all Apps. Numbers have their lowest part first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    modulus: Vec<u32>,
    /// The negative inverse of the lowest part of the modulus.
    inverse: u32,
    /// The square of the factor that Montgomery multiplication divides by.
    square: Vec<u32>,
}

impl PublicKey {
    /// The public half of a private key in DER (PKCS#1): the second number in it is the modulus.
    pub(crate) fn of_private_key(der: &[u8]) -> Option<PublicKey> {
        let (sequence, _) = element(der, 0x30)?;
        let (_version, rest) = element(sequence, 0x02)?;
        let (modulus, _) = element(rest, 0x02)?;
        let bytes = modulus.strip_prefix(&[0]).unwrap_or(modulus);
        let modulus = number(bytes);
        let lowest = *modulus.first()?;
        // Each step doubles the number of correct bits.
        let inverse = (0..5).fold(1_u32, |found, _| found.wrapping_mul(2_u32.wrapping_sub(lowest.wrapping_mul(found))));
        let mut square = vec![0; modulus.len()];
        square[0] = 1;
        for _ in 0..modulus.len() * 64 {
            double(&mut square, &modulus);
        }
        Some(PublicKey { modulus, inverse: inverse.wrapping_neg(), square })
    }

    /// Whether the owner of the key signed this.
    pub(crate) fn verify(&self, signed: &[u8], signature: &[u8]) -> bool {
        let length = self.modulus.len() * 4;
        let signature_number = number(signature);
        if signature.len() != length || compare(&signature_number, &self.modulus) != Ordering::Less {
            return false;
        }
        let base = self.multiply(&signature_number, &self.square);
        let mut power = base.clone();
        for _ in 0..16 {
            power = self.multiply(&power, &power);
        }
        power = self.multiply(&power, &base);
        let mut one = vec![0; self.modulus.len()];
        one[0] = 1;
        let found: Vec<u8> = self.multiply(&power, &one).iter().rev().flat_map(|part| part.to_be_bytes()).collect();
        let hash = sha256(signed);
        let mut expected = vec![0xFF; length];
        expected[0] = 0;
        expected[1] = 1;
        let start = length - ALGORITHM.len() - hash.len();
        expected[start - 1] = 0;
        expected[start..start + ALGORITHM.len()].copy_from_slice(&ALGORITHM);
        expected[start + ALGORITHM.len()..].copy_from_slice(&hash);
        found == expected
    }

    /// The product of two numbers, divided by the factor, modulo the modulus.
    fn multiply(&self, one: &[u32], other: &[u32]) -> Vec<u32> {
        let (modulus, length) = (&self.modulus, self.modulus.len());
        let mut sum = vec![0_u32; length + 2];
        for &part in other {
            add_product(&mut sum, one, part);
            let factor = sum[0].wrapping_mul(self.inverse);
            add_product(&mut sum, modulus, factor);
            // The lowest part is zero now.
            sum.rotate_left(1);
        }
        sum.truncate(length + 1);
        let is_longer = sum[length] != 0;
        sum.truncate(length);
        if is_longer || compare(&sum, modulus) != Ordering::Less {
            subtract(&mut sum, modulus);
        }
        sum
    }
}

/// The content of the first element, if it has this type, and what follows it.
fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
        }
    };
    (found == kind).then(|| rest.split_at_checked(length)).flatten()
}

fn number(bytes: &[u8]) -> Vec<u32> {
    let part = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    bytes.rchunks(4).map(part).collect()
}

fn compare(one: &[u32], other: &[u32]) -> Ordering {
    one.iter().rev().cmp(other.iter().rev())
}

fn low(number: u64) -> u32 {
    u32::try_from(number & 0xFFFF_FFFF).unwrap_or(u32::MAX)
}

/// Adds a number times one part.
fn add_product(sum: &mut [u32], number: &[u32], factor: u32) {
    let mut carry = 0_u64;
    for (at, place) in sum.iter_mut().enumerate() {
        let part = u64::from(number.get(at).copied().unwrap_or(0));
        let total = u64::from(*place) + part * u64::from(factor) + carry;
        *place = low(total);
        carry = total >> 32;
    }
}

fn subtract(number: &mut [u32], other: &[u32]) {
    let mut borrow = 0_u64;
    for (place, part) in number.iter_mut().zip(other) {
        let total = (1 << 32) + u64::from(*place) - u64::from(*part) - borrow;
        *place = low(total);
        borrow = 1 - (total >> 32);
    }
}

/// Doubles a number modulo the modulus.
fn double(number: &mut [u32], modulus: &[u32]) {
    let mut carry = 0;
    for place in number.iter_mut() {
        let next = *place >> 31;
        *place = *place << 1 | carry;
        carry = next;
    }
    if carry == 1 || compare(number, modulus) != Ordering::Less {
        subtract(number, modulus);
    }
}
