//! Writes kubeconfig files.

use crate::certificates::Identity;
use crate::files;
use crate::user_error::{self, UserError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use std::path::Path;

/// A user's credential.
#[derive(Debug)]
pub enum Credential<'a> {
    /// A client certificate.
    Certificate(&'a Identity),
    /// A bearer token.
    Token(&'a str),
}

/// Writes a self-contained kubeconfig.
pub fn write(path: &Path, address: &str, authority: &Path, credential: &Credential<'_>) -> Result<(), UserError> {
    let user = match credential {
        Credential::Token(token) => json!({"token": token}),
        Credential::Certificate(identity) => json!({
            "client-certificate-data": encoded(&identity.public)?,
            "client-key-data": encoded(&identity.private)?,
        }),
    };
    let config: Value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "playground", "cluster": {
            "server": address,
            "certificate-authority-data": encoded(authority)?,
        }}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "playground", "context": {"cluster": "playground", "user": "user"}}],
        "current-context": "playground",
    });
    save(path, &config)
}

/// Copies a kubeconfig and replaces the server's address.
pub fn redirect(from: &Path, to: &Path, address: &str) -> Result<(), UserError> {
    let text = std::fs::read(from).map_err(|error| user_error::io("read the kubeconfig", from, error))?;
    let mut config: Value = serde_json::from_slice(&text).map_err(|error| {
        let message = format!("the kubeconfig {} was not written by a playground", from.display());
        UserError::new(message, "pass a kubeconfig that a playground wrote").with_source(error)
    })?;
    config["clusters"][0]["cluster"]["server"] = address.into();
    save(to, &config)
}

fn save(path: &Path, config: &Value) -> Result<(), UserError> {
    // JSON is valid YAML, so every client reads it.
    files::write_with_mode(path, format!("{config:#}\n"), 0o600)
}

fn encoded(path: &Path) -> Result<String, UserError> {
    std::fs::read(path).map(|bytes| STANDARD.encode(bytes)).map_err(|error| user_error::io("read", path, error))
}
