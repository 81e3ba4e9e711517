//! Backs up an object before it is changed for the first time.

use crate::read::live;
use crate::request::Failure;
use crate::server::Server;
use crate::write::act::act;
use crate::write::permit::Permit;
use change::backup::slots::{self, Slot, Slots};
use change::backup::{self, Unfit};
use change::{Effect, Key, Kind};
use jiff::Timestamp;
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
    /// The object is too large or a Secret: only a person can help.
    #[error("{key}: {why}")]
    Unfit {
        /// The object.
        key: Key,
        /// Why.
        why: Unfit,
    },
    /// The ConfigMaps of earlier backups could not be read.
    #[error("could not read {slot}, a place for the backup of {key}: {source}")]
    Slot {
        /// The object.
        key: Key,
        /// The ConfigMap.
        slot: Key,
        /// Why.
        source: Failure,
    },
    /// The ConfigMap could not be written.
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
            Error::Read { key, source } | Error::Slot { key, source, .. } if !source.is_refusal() => {
                WriteError::Transient { key, message }
            }
            Error::Write { key, source: WriteError::Stale(_) } => WriteError::Stale(key),
            Error::Write { source: source @ WriteError::Transient { .. }, .. } => source,
            Error::Write { key, source } => WriteError::NoBackup { key, message: source.to_string() },
            Error::Read { key, .. } | Error::Slot { key, .. } => WriteError::NoBackup { key, message },
            Error::Unfit { key, why } => WriteError::NoBackup { key, message: why.to_string() },
        }
    }
}

/// Writes a backup of an object into a ConfigMap of this namespace and returns the object as it was read.
///
/// An object has three ConfigMaps of fixed names. The oldest backup is replaced when all of them are taken.
pub async fn take(
    server: &Server,
    permit: &Permit,
    config_maps: &Served,
    namespace: &str,
    served: &Served,
    key: &Key,
) -> Result<Value, Error> {
    let read = live::whole(server, served, key).await;
    let object = read.map_err(|source| Error::Read { key: key.clone(), source })?;
    let object = object.ok_or_else(|| Error::Gone(key.clone()))?;
    let existing = existing(server, config_maps, namespace, key).await?;
    let time = slots::time_of_next(&existing, Timestamp::now());
    let Slot::Write { index, precondition } = slots::choose(&existing, &object, time) else { return Ok(object) };
    let slot = slot_key(namespace, &backup::names(key)[index]);
    let config_map = backup::config_map(&object, namespace, &slot.name, time);
    let config_map = config_map.map_err(|why| Error::Unfit { key: key.clone(), why })?;
    let effect = Effect::apply(config_map, precondition, true);
    let written = act(server, permit, server.identity.field_manager, config_maps, &slot, effect, 0).await;
    written.map_err(|source| Error::Write { key: key.clone(), source })?;
    Ok(object)
}

/// Reads the ConfigMaps of an object's backups. They are read by name: the operator's role lists no ConfigMaps for them.
pub async fn existing(server: &Server, config_maps: &Served, namespace: &str, key: &Key) -> Result<Slots, Error> {
    let mut slots = Slots::default();
    for (slot, name) in slots.iter_mut().zip(backup::names(key)) {
        let slot_key = slot_key(namespace, &name);
        let read = live::whole(server, config_maps, &slot_key).await;
        *slot = read.map_err(|source| Error::Slot { key: key.clone(), slot: slot_key, source })?;
    }
    Ok(slots)
}

fn slot_key(namespace: &str, name: &str) -> Key {
    Key { kind: Kind::new("v1", "ConfigMap"), namespace: namespace.to_owned(), name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::Error;
    use crate::request::Failure;
    use change::backup::Unfit;
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
        assert!(matches!(Error::Unfit { key: key(), why: Unfit::Secret }.into(), WriteError::NoBackup { .. }));
        let slot =
            |code| Error::Slot { key: key(), slot: key(), source: Failure::Answered { code, message: "no".into() } };
        assert!(matches!(slot(403).into(), WriteError::NoBackup { .. }));
        assert!(matches!(slot(503).into(), WriteError::Transient { .. }));
        let refused = WriteError::Refused { key: key(), code: 403, message: "no".into() };
        assert!(matches!(write(refused).into(), WriteError::NoBackup { .. }));
        let transient = WriteError::Transient { key: key(), message: "no".into() };
        assert!(matches!(write(transient).into(), WriteError::Transient { .. }));
        assert!(matches!(write(WriteError::Stale(key())).into(), WriteError::Stale(_)));
    }
}
