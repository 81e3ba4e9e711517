//! How a hypervisor is reached. The operator makes it from a `HypervisorCluster` and its Secrets.

use fleet::connection::Cloned;
use fleet::hypervisor::Network;
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeSet;
use std::time::Duration;

/// Everything that is needed to talk to one Proxmox VE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its address, such as `https://pve.example.com:8006`.
    pub endpoint: String,
    /// Whether an endpoint with `http://` is allowed: credentials then travel in clear text.
    pub allows_http: bool,
    /// How to log in.
    pub credentials: Credentials,
    /// How its certificate is checked.
    pub tls: Tls,
    /// What the `HypervisorCluster` names, for the check.
    pub scope: Scope,
    /// How long things may take, and how many at once.
    pub limits: Limits,
}

/// How to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// An API token.
    Token {
        /// `USER@REALM!NAME`.
        id: String,
        /// Its secret.
        secret: Secret,
    },
    /// A user with a password, for tickets.
    Password {
        /// `USER@REALM`.
        username: String,
        /// The password.
        password: Secret,
    },
}

impl Credentials {
    /// Whom they belong to; no secret.
    pub fn user(&self) -> &str {
        match self {
            Credentials::Token { id, .. } => id,
            Credentials::Password { username, .. } => username,
        }
    }
}

/// How the certificate of the hypervisor is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// By the certificate authorities of the system.
    System,
    /// By these certificate authorities, in PEM.
    Authorities(String),
    /// By its SHA-256 fingerprint, as Proxmox VE shows it: `AB:CD:...`.
    Fingerprint(String),
    /// Not at all.
    SkipVerify,
}

/// The names that a `HypervisorCluster` uses, and its templates where they are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Its nodes; all if there are none.
    pub nodes: BTreeSet<String>,
    /// Storages of disks.
    pub storages: BTreeSet<String>,
    /// Storages that seeds are uploaded to.
    pub seed_storages: BTreeSet<String>,
    /// Bridges, and VLANs on them.
    pub networks: BTreeSet<Network>,
    /// Templates that are cloned. Without any, all storages of disks count as used.
    pub templates: BTreeSet<Cloned>,
    /// Whether commands are run in guests by their agent.
    pub runs_in_guests: bool,
    /// Resource pools.
    pub pools: BTreeSet<String>,
}

/// How long things may take, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight to one hypervisor. The API server of Proxmox VE has three workers by default, which block.
    pub requests: usize,
    /// For one request and its answer.
    pub request: Duration,
    /// For one upload.
    pub upload: Duration,
    /// For a task from its start to its end: a full clone copies a whole disk.
    pub task: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            requests: 8,
            request: Duration::from_secs(30),
            upload: Duration::from_secs(120),
            task: Duration::from_secs(900),
        }
    }
}

/// A text that is never shown and is wiped from memory.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    pub(crate) fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret(text.into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.into())
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::Credentials;

    #[test]
    fn secrets_are_not_shown() {
        let token = Credentials::Token { id: "fleet@pve!ci".into(), secret: "hush".into() };
        let password = Credentials::Password { username: "fleet@pve".into(), password: "hush".into() };
        let shown = format!("{token:?} {password:?}");
        assert!(shown.contains("fleet@pve!ci") && !shown.contains("hush"), "{shown}");
    }
}
