//! Backs up an object before it is changed for the first time.

use crate::read::{list, live};
use crate::request::Failure;
use crate::server::Server;
use crate::write::act::act;
use crate::write::permit::Permit;
use change::backup::{self, TooLarge};
use change::{Effect, Key, Kind};
use protocol::{Served, WriteError};
use serde_json::Value;

/// Why there is no backup. Without one the object must not be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object could not be read.
    #[error("could not read {key} to back it up: {source}")]
    Read {
        /// The object.
        key: Key,
        /// Why.
        source: Failure,
    },
    /// The object does not exist.
    #[error("{0} is gone, so there is nothing to back up")]
    Gone(Key),
    /// The object is larger than a backup may be: only a person can help.
    #[error("{key} has {bytes} bytes, more than the {} of a backup", backup::MOST_BYTES)]
    TooLarge {
        /// The object.
        key: Key,
        /// Its size.
        bytes: usize,
    },
    /// The Secret could not be written.
    #[error("could not back up {key}")]
    Write {
        /// The object.
        key: Key,
        /// Why.
        source: WriteError,
    },
}

/// What a missing backup means for the write that needs it: a transient failure is tried again soon.
impl From<Error> for WriteError {
    fn from(error: Error) -> WriteError {
        let message = error.to_string();
        match error {
            Error::Gone(key) => WriteError::Stale(key),
            Error::Read { key, source } if !source.is_refusal() => WriteError::Transient { key, message },
            Error::Write { key, source: WriteError::Stale(_) } => WriteError::Stale(key),
            Error::Write { source: source @ WriteError::Transient { .. }, .. } => source,
            Error::Write { key, source } => WriteError::NoBackup { key, message: source.to_string() },
            Error::Read { key, .. } | Error::TooLarge { key, .. } => WriteError::NoBackup { key, message },
        }
    }
}

/// Writes a backup of an object into a Secret of this namespace and returns the object as it was read.
///
/// Surplus older backups are deleted afterwards; if that fails, the next backup deletes them.
pub async fn take(
    server: &Server,
    permit: &Permit,
    secrets: &Served,
    namespace: &str,
    served: &Served,
    key: &Key,
) -> Result<Value, Error> {
    let read = live::whole(server, served, key).await;
    let object = read.map_err(|source| Error::Read { key: key.clone(), source })?;
    let object = object.ok_or_else(|| Error::Gone(key.clone()))?;
    let secret =
        backup::secret(&object, namespace).map_err(|TooLarge { bytes }| Error::TooLarge { key: key.clone(), bytes })?;
    let name = secret["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let secret_key = |name: String| Key { kind: Kind::new("v1", "Secret"), namespace: namespace.to_owned(), name };
    let manager = server.identity.field_manager;
    let create = Effect::Create { object: secret };
    let written = act(server, permit, manager, secrets, &secret_key(name), create, 0).await;
    let created = written.map_err(|source| Error::Write { key: key.clone(), source })?.live.is_some();
    if created && let Ok(all) = list::metadata(server, secrets, namespace, &backup::selector(key)).await {
        for surplus in backup::surplus(&all) {
            let delete = Effect::Delete { uid: surplus.uid, resource_version: surplus.resource_version };
            let _ = act(server, permit, manager, secrets, &secret_key(surplus.name), delete, 0).await;
        }
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::Error;
    use crate::request::Failure;
    use change::{Key, Kind};
    use protocol::WriteError;

    #[test]
    fn only_a_failure_that_does_not_pass_means_that_there_is_no_backup() {
        let key = || Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        let read = |code| Error::Read { key: key(), source: Failure::Answered { code, message: "no".into() } };
        let write = |source| Error::Write { key: key(), source };
        assert!(matches!(read(403).into(), WriteError::NoBackup { .. }));
        assert!(matches!(read(500).into(), WriteError::Transient { .. }));
        assert!(matches!(Error::Gone(key()).into(), WriteError::Stale(_)));
        assert!(matches!(Error::TooLarge { key: key(), bytes: 1 }.into(), WriteError::NoBackup { .. }));
        let refused = WriteError::Refused { key: key(), code: 403, message: "no".into() };
        assert!(matches!(write(refused).into(), WriteError::NoBackup { .. }));
        let transient = WriteError::Transient { key: key(), message: "no".into() };
        assert!(matches!(write(transient).into(), WriteError::Transient { .. }));
        assert!(matches!(write(WriteError::Stale(key())).into(), WriteError::Stale(_)));
    }
}
