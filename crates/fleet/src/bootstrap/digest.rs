//! Digests of tokens: what is kept in place of them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use std::fmt::{Debug, Formatter};

/// The SHA-256 of a secret. It is compared in constant time.
#[derive(Clone, Copy, Eq)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a secret for one purpose.
    pub(super) fn of(purpose: &str, secret: &str) -> Digest {
        Digest(sha256(&[purpose, secret]))
    }
}

/// Not derived: how long a comparison takes must not say how many bytes are right.
impl PartialEq for Digest {
    fn eq(&self, other: &Digest) -> bool {
        let differences = self.0.iter().zip(&other.0).fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b)));
        differences == 0
    }
}

impl Debug for Digest {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&hexadecimal(&self.0))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hexadecimal(&self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        parsed(&text).ok_or_else(|| de::Error::custom("a digest has 64 hexadecimal digits"))
    }
}

fn parsed(text: &str) -> Option<Digest> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let digits: [u32; 64] = digits.try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::try_from(pair.iter().fold(0, |value, digit| value * 16 + digit)).ok()?;
    }
    Some(Digest(bytes))
}

/// The token that these random bytes make.
pub(super) fn token(random: [u8; 32]) -> String {
    format!("vpb1_{}", hexadecimal(&random))
}

/// The token of later reports. Only who knows both the token and the nonce can derive it, so it need not be kept for a repeated request.
pub(super) fn report_token(token: &str, nonce: &str) -> String {
    format!("vpr1_{}", hexadecimal(&sha256(&["report", token, nonce])))
}

fn sha256(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or_default().to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Digest, report_token, sha256, token};

    #[test]
    fn a_digest_is_equal_only_to_itself() {
        let digest = Digest::of("token", "a");
        assert_eq!(digest, Digest::of("token", "a"));
        assert_ne!(digest, Digest::of("nonce", "a"));
        for byte in 0..32 {
            for bit in 0..8 {
                let mut other = digest;
                other.0[byte] ^= 1 << bit;
                assert_ne!(digest, other);
            }
        }
    }

    #[test]
    fn a_digest_survives_storage_and_a_broken_one_is_refused() {
        let digest = Digest::of("token", "a");
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
        for broken in ["\"\"", "\"ab\"", &text.replacen('"', "\"0", 1), "\"zz\"", &format!("\"{}\"", "g".repeat(64))] {
            assert!(serde_json::from_str::<Digest>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn parts_cannot_be_shifted_into_each_other() {
        assert_ne!(sha256(&["ab", "c"]), sha256(&["a", "bc"]));
        assert_ne!(report_token("ab", "c"), report_token("a", "bc"));
        assert_eq!(token([0xab; 32]), format!("vpb1_{}", "ab".repeat(32)));
    }
}
