//! Takes a backup of an object before we change it for the first time.

use crate::act::{self, Act, act};
use crate::kinds::Served;
use crate::list;
use crate::permit::Permit;
use crate::request::Failure;
use crate::server::Server;
use change::backup::{self, TooLarge};
use change::{Key, Kind};
use serde_json::Value;

/// Why there is no backup. Without one the object must not be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be read.
    #[error("could not read {key} to back it up: {source}")]
    Read {
        /// The object.
        key: Key,
        /// Why.
        source: Failure,
    },
    /// It is gone: there is nothing to back up.
    #[error("{0} is gone, so there is nothing to back up")]
    Gone(Key),
    /// It is larger than a backup may be: only a person can help.
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
        source: act::Error,
    },
}

/// Reads an object, writes its backup into a Secret of this namespace, and returns it as it was read. What is kept from earlier is thinned
/// out afterwards; if that fails, the next backup does it.
pub async fn take(
    server: &Server,
    permit: &Permit,
    secrets: &Served,
    namespace: &str,
    served: &Served,
    key: &Key,
) -> Result<Value, Error> {
    let read = list::whole(server, served, key).await;
    let object = read.map_err(|source| Error::Read { key: key.clone(), source })?;
    let object = object.ok_or_else(|| Error::Gone(key.clone()))?;
    let secret =
        backup::secret(&object, namespace).map_err(|TooLarge { bytes }| Error::TooLarge { key: key.clone(), bytes })?;
    let name = secret["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let secret_key = |name: String| Key { kind: Kind::new("v1", "Secret"), namespace: namespace.to_owned(), name };
    let written = act(server, permit, secrets, &secret_key(name), Act::Create(secret), 0).await;
    let created = written.map_err(|source| Error::Write { key: key.clone(), source })?.live.is_some();
    if created && let Ok(all) = list::metadata(server, secrets, namespace, &backup::selector(key)).await {
        for surplus in backup::surplus(&all) {
            let delete = Act::Delete { uid: surplus.uid, resource_version: surplus.resource_version };
            let _ = act(server, permit, secrets, &secret_key(surplus.name), delete, 0).await;
        }
    }
    Ok(object)
}
