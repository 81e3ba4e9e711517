//! One write, and what became of it.

use crate::kinds::Served;
use change::{Effect, Key, Live};
use serde_json::Value;
use std::fmt;

/// One write, and the backup that has to be taken before it.
#[derive(Debug, Clone)]
pub struct Write {
    /// The object.
    pub key: Key,
    /// How the server serves its kind.
    pub served: Served,
    /// What is written.
    pub effect: Effect,
    /// How often it has failed before: each attempt gets more time.
    pub attempt: u32,
    /// A backup of the object as it is, taken before the write. Its failure stops the write.
    pub backup: Option<Backup>,
}

/// Where a backup goes.
#[derive(Debug, Clone)]
pub struct Backup {
    /// How the server serves ConfigMaps.
    pub config_maps: Served,
    /// The namespace of the backups.
    pub namespace: String,
}

/// What the server answered to a write.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// The object's metadata after it; nothing if it is gone, or existed already when it was to be created.
    pub live: Option<Live>,
    /// The object as its backup holds it.
    pub before: Option<Value>,
}

/// Why a write did not happen.
#[derive(Debug, Clone)]
pub enum WriteError {
    /// The object has changed since the decision.
    Stale(Key),
    /// The server refuses the object as it is; only another object or another permission helps.
    Refused {
        /// The object.
        key: Key,
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// A list item has the name of one of ours under another key: apply alone cannot repair that.
    KeyChanged {
        /// The object.
        key: Key,
        /// The server's message.
        message: String,
    },
    /// There is no backup, so the object is left as it is.
    NoBackup {
        /// The object.
        key: Key,
        /// Why.
        message: String,
    },
    /// No answer, or one that may be different next time.
    Transient {
        /// The object.
        key: Key,
        /// Why.
        message: String,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Stale(key) => write!(f, "{key} was changed meanwhile"),
            WriteError::Refused { key, message, .. } => write!(f, "the API server refused {key}: {message}"),
            WriteError::KeyChanged { key, message } => {
                write!(f, "the API server refused {key}, because the key of a list item was changed: {message}")
            }
            WriteError::NoBackup { key, message } => write!(f, "could not back up {key}: {message}"),
            WriteError::Transient { key, message } => write!(f, "could not write {key}: {message}"),
        }
    }
}

impl std::error::Error for WriteError {}

#[cfg(test)]
mod tests {
    use super::WriteError;
    use change::{Key, Kind};

    #[test]
    fn a_failed_write_says_of_which_object_and_why() {
        let key = || Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        let message = || "why".to_owned();
        for (error, text) in [
            (WriteError::Stale(key()), "Service n/s was changed meanwhile"),
            (
                WriteError::Refused { key: key(), code: 403, message: message() },
                "the API server refused Service n/s: why",
            ),
            (
                WriteError::KeyChanged { key: key(), message: message() },
                "the API server refused Service n/s, because the key of a list item was changed: why",
            ),
            (WriteError::NoBackup { key: key(), message: message() }, "could not back up Service n/s: why"),
            (WriteError::Transient { key: key(), message: message() }, "could not write Service n/s: why"),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }
}
