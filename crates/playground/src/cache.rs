//! The cache of built and downloaded files, outside any clone.

use crate::owned_folder::{self, OwnedFolder};
use crate::poll;
use crate::user_error::{self, UserError};
use sha2::{Digest, Sha256};
use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder kept between runs; every entry is stored under a hash of its inputs.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `VIRTPILOT_CACHE`, else `virtpilot` in the user's cache folder.
    pub fn open() -> Result<Cache, UserError> {
        let folder = match std::env::var_os("VIRTPILOT_CACHE") {
            Some(folder) => PathBuf::from(folder),
            None => match (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")) {
                (Some(cache), _) if !cache.is_empty() => PathBuf::from(cache).join("virtpilot"),
                (_, Some(home)) => PathBuf::from(home).join(".cache/virtpilot"),
                _ => {
                    return Err(UserError::new(
                        "the cache has no location: neither HOME nor XDG_CACHE_HOME is set",
                        "set VIRTPILOT_CACHE to a folder with about 1 GB of space",
                    ));
                }
            },
        };
        let folder = std::path::absolute(&folder).map_err(|error| user_error::io("use", &folder, error))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| user_error::io("create the cache folder", &folder, error))?;
        let metadata =
            std::fs::metadata(&folder).map_err(|error| user_error::io("read the cache folder", &folder, error))?;
        // Programs in it are executed, so no other user may be able to write there.
        if metadata.uid() != rustix::process::getuid().as_raw() || metadata.mode() & 0o022 != 0 {
            return Err(UserError::new(
                format!("the cache folder {} belongs to another user or is writable by others", folder.display()),
                format!(
                    "restrict it (`chmod go-w {}`), or set VIRTPILOT_CACHE to a folder that you own",
                    folder.display()
                ),
            ));
        }
        Ok(Cache { folder })
    }

    /// The cache folder's path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of one entry: `kind/key`.
    pub fn entry(&self, kind: &str, key: &Key) -> PathBuf {
        self.folder.join(kind).join(&key.0)
    }

    /// Lets one process at a time create an entry; the others wait and then find it.
    ///
    /// The kernel releases the lock with the process, so a killed build never blocks the next one.
    pub async fn lock(&self, kind: &str, key: &Key, waiting: impl FnOnce()) -> Result<File, UserError> {
        let folder = self.folder.join(kind);
        let path = folder.join(format!("{}.lock", key.0));
        let failed = |error| user_error::io("lock", &path, error);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        let mut waiting = Some(waiting);
        // Polled instead of blocking, so that Ctrl-C is handled meanwhile.
        poll::until_some(Duration::from_millis(100), async || match file.try_lock() {
            Ok(()) => Ok(Some(())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                if let Some(notify) = waiting.take() {
                    notify();
                }
                Ok(None)
            }
        })
        .await?;
        Ok(file)
    }

    /// A folder to create an entry in, on the same file system so that `install` is one rename.
    pub fn staging_folder(&self, kind: &str) -> Result<StagingFolder, UserError> {
        const PREFIX: &str = ".staging-";
        let folder = self.folder.join(kind);

        owned_folder::remove_abandoned(&folder, PREFIX);
        OwnedFolder::create(&folder, PREFIX).map(|owned| StagingFolder { owned: Some(owned) })
    }

    /// Moves a finished folder to its entry with one rename: an entry is complete or absent.
    pub fn install(&self, mut staging: StagingFolder, kind: &str, key: &Key) -> Result<PathBuf, UserError> {
        let entry = self.entry(kind, key);
        if let Some(owned) = staging.owned.take() {
            owned.rename(&entry)?;
        }
        Ok(entry)
    }
}

/// A folder for an unfinished entry; dropped before `install`, it is removed.
#[derive(Debug)]
pub struct StagingFolder {
    owned: Option<OwnedFolder>,
}

impl StagingFolder {
    /// The folder's path.
    pub fn path(&self) -> &Path {
        self.owned.as_ref().map_or(Path::new(""), OwnedFolder::path)
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        if let Some(owned) = self.owned.take() {
            let _ = owned.remove();
        }
    }
}

/// A short hash of an entry's inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The hash of these parts, in this order.
    pub fn of<Part: AsRef<[u8]>>(parts: impl IntoIterator<Item = Part>) -> Key {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Key(hex(&hash.finalize()[..8]))
    }

    /// The key as it appears in paths.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::Key;

    #[test]
    fn a_key_depends_on_where_one_part_ends_and_the_next_begins() {
        assert_eq!(Key::of(["ab", "c"]), Key::of(["ab", "c"]));
        assert_ne!(Key::of(["ab", "c"]), Key::of(["a", "bc"]));
        assert_eq!(Key::of(["ab"]).as_str().len(), 16);
    }
}
