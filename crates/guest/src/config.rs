//! Reading the configuration, which holds the token: once, and then it is gone.

use crate::operator::Operator;
use crate::output::Output;
use crate::wipe;
use bootstrap::{Attestation, Config, Exchange, Limits, Secret};
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::Path;
use zeroize::Zeroizing;

/// The longest configuration.
const MAX_CONFIG: usize = 256 * 1024;
/// The most copies of it that are removed.
const MAX_COPIES: usize = 32;

/// What the configuration says.
pub(crate) struct Configured {
    pub(crate) operator: Operator,
    pub(crate) exchange: Exchange,
    pub(crate) limits: Limits,
}

/// Reads the configuration, and overwrites and removes it and its copies, also if something is wrong with it.
pub(crate) fn read(path: &Path, output: &Output) -> Result<Configured, String> {
    let remedy = "the operator writes it for each machine; see its template's cloud-init";
    let bytes = std::fs::read(path).map(Zeroizing::new);
    let bytes = bytes.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!(
            "there is no configuration {}: the machine has run before, or cloud-init has not: {remedy}",
            path.display()
        ),
        _ => format!("could not read the configuration {}: {error}", path.display()),
    })?;
    let config = parse(&bytes, output)
        .map_err(|error| format!("the configuration {} is wrong: {error}; {remedy}", path.display()));
    let copies = config.as_ref().map(|config| config.copies.clone()).unwrap_or_default();
    // A token that stays on the disk is worse than a job that does not run.
    wipe::file(path)?;
    for copy in copies.iter().take(MAX_COPIES) {
        if let Err(error) = wipe::file(Path::new(copy)) {
            output.say(&error);
        }
    }
    let config = config?;
    let operator = Operator::new(&config.operator, &config.ca)
        .map_err(|error| format!("the configuration {} is wrong: {error}; {remedy}", path.display()))?;
    let exchange = Exchange {
        claim: config.claim,
        attestation: config.attestation,
        nonce: nonce()?,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    output.hide(exchange.nonce.expose());
    Ok(Configured { operator, exchange, limits: config.limits })
}

fn parse(bytes: &[u8], output: &Output) -> Result<Config, String> {
    if bytes.len() > MAX_CONFIG {
        return Err(format!("it has more than {MAX_CONFIG} bytes"));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    // A message about a wrong value quotes it.
    hide_all(&value["attestation"], output);
    let config: Config = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let claim = &config.claim;
    if [&claim.namespace, &claim.name, &claim.uid].iter().any(|part| part.is_empty()) {
        return Err("claim.namespace, claim.name and claim.uid must not be empty".to_owned());
    }
    let Attestation::Token { token } = &config.attestation;
    if token.expose().is_empty() {
        return Err("attestation.token is empty".to_owned());
    }
    config.limits.check()?;
    Ok(config)
}

fn hide_all(value: &Value, output: &Output) {
    match value {
        Value::String(text) if text != "token" => output.hide(text),
        Value::Array(values) => values.iter().for_each(|value| hide_all(value, output)),
        Value::Object(fields) => fields.values().for_each(|value| hide_all(value, output)),
        _ => {}
    }
}

fn nonce() -> Result<Secret, String> {
    let mut bytes = Zeroizing::new([0; 16]);
    SystemRandom::new().fill(bytes.as_mut()).map_err(|_| "the machine has no random numbers".to_owned())?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
}

#[cfg(test)]
mod tests {
    use super::{nonce, read};
    use crate::output::Output;

    #[test]
    fn a_wrong_configuration_is_explained_and_its_token_neither_shown_nor_left() {
        let token = "canary-token-0123456789";
        let claim = r#"{"namespace": "a", "name": "b", "uid": "c"}"#;
        let right = format!(
            r#"{{"operator": "https://a", "ca": "x", "claim": {claim}, "attestation": {{"method": "token", "token": "{token}"}}}}"#
        );
        for (text, expected) in [
            (right.replace("https", "http"), "https://HOST:PORT"),
            (right.clone(), "BEGIN"),
            (right.replace("\"b\"", "\"\""), "must not be empty"),
            (right.replace("\"method\": \"token\"", "\"method\": \"spire\""), "spire"),
            (
                right.replace(
                    "{\"method\": \"token\", \"token\": \"canary-token-0123456789\"}",
                    "\"canary-token-0123456789\"",
                ),
                "Attestation",
            ),
            (right.replace(token, ""), "attestation.token is empty"),
            (right.replace("\"ca\"", "\"limits\": {\"jobSeconds\": 0}, \"ca\""), "limits.jobSeconds"),
            (right.replace("\"ca\"", "\"CA\""), "CA"),
            (right[..40].to_owned(), "line 1"),
            (String::new(), "line 1"),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let output = Output::default();
            std::fs::write(file.path(), text).unwrap();
            let error = output.redacted(&read(file.path(), &output).err().unwrap());
            let is_named = error.contains(&file.path().display().to_string());
            assert!(error.contains(expected) && is_named, "{error}");
            assert!(!error.contains("canary") && !file.path().exists(), "{error}");
        }
        let error = read(std::path::Path::new("/nowhere"), &Output::default()).err().unwrap();
        assert!(error.contains("/nowhere") && error.contains("cloud-init"), "{error}");
    }

    #[test]
    fn nonces_differ() {
        let (first, second) = (nonce().unwrap(), nonce().unwrap());
        assert!(first != second && bootstrap::NONCE.contains(&first.expose().len()));
    }
}
