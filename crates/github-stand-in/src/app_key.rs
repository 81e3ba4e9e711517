//! The key pair of the App that exists in every stand-in; it opens nothing else.

use crate::rsa::PublicKey;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::LazyLock;

/// The private key of the App of the stand-in, in the format in which GitHub hands out such keys (PKCS#1).
pub const APP_KEY: &str = include_str!("app_key.pem");

/// The public half of the key, which is worked out once because simulations make many stand-ins.
pub(crate) static PUBLIC_KEY: LazyLock<Option<PublicKey>> = LazyLock::new(|| {
    let lines: String = APP_KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    PublicKey::of_private_key(&STANDARD.decode(lines).ok()?)
});
