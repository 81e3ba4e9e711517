//! Kubeconfig files: who one is, and where the API server is.

use crate::certificates::Identity;
use crate::trouble::{self, Trouble};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How one proves who one is.
#[derive(Debug)]
pub enum Credential<'a> {
    /// A client certificate.
    Certificate(&'a Identity),
    /// A bearer token.
    Token(&'a str),
}

/// Writes a kubeconfig that needs no other file.
pub fn write(path: &Path, address: &str, authority: &Path, who: &Credential<'_>) -> Result<(), Trouble> {
    let user = match who {
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

/// Writes a kubeconfig that is another one in all but the server's address.
pub fn redirect(from: &Path, to: &Path, address: &str) -> Result<(), Trouble> {
    let text = std::fs::read(from).map_err(|error| trouble::io("read the kubeconfig", from, error))?;
    let mut config: Value = serde_json::from_slice(&text).map_err(|error| {
        let what = format!("the kubeconfig {} is not one of a playground", from.display());
        Trouble::new(what, "name one that a playground wrote").from(error)
    })?;
    config["clusters"][0]["cluster"]["server"] = address.into();
    save(to, &config)
}

fn save(path: &Path, config: &Value) -> Result<(), Trouble> {
    // JSON is YAML, and every client reads it.
    let text = format!("{config:#}\n");
    std::fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
        .map_err(|error| trouble::io("write the kubeconfig", path, error))
}

fn encoded(path: &Path) -> Result<String, Trouble> {
    std::fs::read(path).map(|bytes| STANDARD.encode(bytes)).map_err(|error| trouble::io("read", path, error))
}
