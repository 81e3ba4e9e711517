//! The key pair of the App that exists in every stand-in; it opens nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rsa::KeyPair;

/// The private key of the App of the stand-in, in the format in which GitHub hands out such keys (PKCS#1).
pub const APP_KEY: &str = include_str!("app_key.pem");

/// The public half of the key, as an RSAPublicKey in DER.
pub(crate) fn public_key() -> Vec<u8> {
    let lines: String = APP_KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(lines).unwrap_or_default();
    KeyPair::from_der(&der).map(|pair| pair.public().as_ref().to_vec()).unwrap_or_default()
}
