//! JSON web tokens: those that an App signs, and those that the stand-in hands out.

use crate::hash::hmac;
use crate::response::Refusal;
use crate::rsa::PublicKey;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

/// How far the clock of a client may be ahead. GitHub says that it allows for none, and clients are told to subtract a minute.
const AHEAD: i64 = 60;
/// How long a token may be valid.
const VALID: i64 = 600;

/// Checks the token of an App at a moment, in seconds since 1970; returns who issued it.
pub(crate) fn verify(token: &str, public_key: Option<&PublicKey>, now: i64) -> Result<String, Refusal> {
    let undecodable = || Refusal::new(401, "A JSON web token could not be decoded").documented("rest");
    let (signed, signature) = token.rsplit_once('.').ok_or_else(undecodable)?;
    let (header, claims) = signed.split_once('.').ok_or_else(undecodable)?;
    let header = read(header).ok_or_else(undecodable)?;
    let claims = read(claims).ok_or_else(undecodable)?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| undecodable())?;
    if header["alg"] != "RS256" {
        return Err(undecodable());
    }
    let refuse = |text: &str| Err(Refusal::new(401, text).documented("rest"));
    let Some(issued) = claims["iat"].as_i64().filter(|&issued| issued <= now + AHEAD) else {
        return refuse(
            "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued",
        );
    };
    let Some(expires) = claims["exp"].as_i64().filter(|&expires| expires > now) else {
        return refuse(
            "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
        );
    };
    // Both against the clock of the server and against the claim of the client.
    if expires > now + VALID || expires > issued + VALID + AHEAD {
        return refuse("'Expiration time' claim ('exp') is too far in the future");
    }
    let issuer = match &claims["iss"] {
        Value::String(issuer) => issuer.clone(),
        Value::Number(issuer) => issuer.to_string(),
        _ => return refuse("'Issuer' claim ('iss') must be an Integer or String"),
    };
    match public_key.is_some_and(|key| key.verify(signed.as_bytes(), &signature)) {
        true => Ok(issuer),
        false => Err(undecodable()),
    }
}

/// A token of our own.
pub(crate) fn sign(claims: &Value, secret: &str) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"HS256"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac(secret.as_bytes(), signed.as_bytes())))
}

fn read(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}
