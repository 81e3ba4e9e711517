//! How a CI platform is reached. The operator makes it from an object and its Secrets.

use fleet::forge::budget;
use fleet::forge::listener::{POLL, POLL_MARGIN};
use secrecy::{ExposeSecret, SecretString};
use std::time::Duration;

/// Everything that is needed to talk to one CI platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whose runners: `https://github.com/ORGANISATION`, `https://github.com/OWNER/REPOSITORY` or `https://HOST/enterprises/ENTERPRISE`; of
    /// GitLab `https://gitlab.com/GROUP`, `https://gitlab.com/groups/GROUP/SUBGROUP`, `https://gitlab.com/projects/GROUP/PROJECT` or `https://HOST`.
    pub address: String,
    /// Whether an address with `http://` is allowed: credentials then travel in clear text.
    pub allows_http: bool,
    /// How to log in.
    pub credentials: Credentials,
    /// How certificates are checked.
    pub tls: Tls,
    /// How long things may take, and how many at once.
    pub limits: Limits,
}

/// How to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A GitHub App.
    App {
        /// Its id or its client id.
        id: String,
        /// The id of its installation; it is looked up if it is not given.
        installation: Option<u64>,
        /// Its private key, in PEM.
        key: Secret,
    },
    /// A personal access token; of GitLab also one of a group or a project.
    Token(Secret),
}

/// How certificates are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// By the certificate authorities of the system.
    System,
    /// By these certificate authorities, in PEM.
    Authorities(String),
}

/// How long things may take, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For one request and its answer.
    pub request: Duration,
    /// How long the platform keeps a poll without a message.
    pub poll: Duration,
    /// An answer to a poll that is so much later does not come any more.
    pub poll_margin: Duration,
    /// How long a request may wait for a limit of the platform before it fails.
    pub wait: Duration,
    /// The same for lists, which have time.
    pub bulk_wait: Duration,
    /// What is allowed whatever the platform says.
    pub budget: budget::Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            request: Duration::from_secs(30),
            poll: POLL,
            poll_margin: POLL_MARGIN,
            wait: Duration::from_secs(3),
            bulk_wait: Duration::from_secs(75),
            budget: budget::Limits::default(),
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
        let app = Credentials::App { id: "42".into(), installation: None, key: "hush".into() };
        let shown = format!("{app:?} {:?}", Credentials::Token("hush".into()));
        assert!(shown.contains("42") && !shown.contains("hush"), "{shown}");
    }
}
