//! JSON web tokens: those that an App signs, and when those of others end.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

/// So much earlier than now a token says it was made, because clocks differ.
const BACK: i64 = 60;
/// How long it is valid; GitHub accepts ten minutes.
const VALID: i64 = 9 * 60;

/// The private key of an App.
pub(crate) struct Key(KeyPair);

impl Key {
    /// Reads a key in PEM, in the format of GitHub (PKCS#1) or in PKCS#8; what is wrong with it otherwise.
    pub(crate) fn parse(pem: &str) -> Result<Key, String> {
        let wrong = |what: &str| format!("the private key of the App {what}");
        let found = PrivateKeyDer::from_pem_slice(pem.trim().as_bytes());
        let key = match found.map_err(|_| wrong("is no key in PEM"))? {
            PrivateKeyDer::Pkcs1(der) => KeyPair::from_der(der.secret_pkcs1_der()),
            PrivateKeyDer::Pkcs8(der) => KeyPair::from_pkcs8(der.secret_pkcs8_der()),
            _ => return Err(wrong("is no RSA key")),
        };
        key.map(Key).map_err(|error| wrong(&format!("cannot be used: {error}")))
    }

    /// A token of an App at a moment of the server, in seconds since 1970.
    pub(crate) fn sign(&self, app: &str, now: i64) -> Result<String, String> {
        let text = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", text(&json!({"alg": "RS256", "typ": "JWT"})), text(&claims(app, now)));
        let mut signature = vec![0; self.0.public().modulus_len()];
        let done = self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature);
        done.map_err(|_| "the private key of the App cannot sign".to_owned())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

fn claims(app: &str, now: i64) -> Value {
    let issuer = app.parse::<u64>().map_or_else(|_| Value::from(app), Value::from);
    json!({"iat": now - BACK, "exp": now - BACK + VALID, "iss": issuer})
}

/// When a token ends by its own words, in seconds since 1970.
pub(crate) fn expires(token: &str) -> Option<i64> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    serde_json::from_slice::<Value>(&claims).ok()?["exp"].as_i64()
}

#[cfg(test)]
mod tests {
    use super::{Key, claims, expires};
    use serde_json::json;

    #[test]
    fn a_token_is_made_a_minute_ago_and_valid_for_less_than_ten() {
        assert_eq!(claims("42", 1000), json!({"iat": 940, "exp": 1480, "iss": 42}));
        assert_eq!(claims("Iv23li", 1000)["iss"], "Iv23li");
    }

    #[test]
    fn a_token_says_when_it_ends() {
        let key = Key::parse(playground::github::APP_KEY).unwrap();
        let token = key.sign("42", 1000).unwrap();
        assert_eq!((expires(&token), token.split('.').count()), (Some(1480), 3));
        assert_eq!((expires(""), expires("a.b.c"), expires("no token")), (None, None, None));
    }

    #[test]
    fn what_is_no_key_is_refused_without_showing_it() {
        let certificate = "-----BEGIN CERTIFICATE-----\naHVzaA==\n-----END CERTIFICATE-----\n";
        let broken = "-----BEGIN RSA PRIVATE KEY-----\naHVzaA==\n-----END RSA PRIVATE KEY-----\n";
        let elliptic = "-----BEGIN EC PRIVATE KEY-----\naHVzaA==\n-----END EC PRIVATE KEY-----\n";
        for (text, expected) in [
            ("hush", "is no key in PEM"),
            (certificate, "is no key in PEM"),
            (elliptic, "is no RSA key"),
            (broken, "cannot be used"),
        ] {
            let message = Key::parse(text).err().unwrap();
            assert!(message.contains(expected) && !message.contains("hush") && !message.contains("aHVz"), "{message}");
        }
    }
}
