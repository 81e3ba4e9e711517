//! The folder outside any clone where what took long to make is kept.

use crate::abandoned::{self, Owned};
use crate::trouble::{self, Trouble};
use sha2::{Digest, Sha256};
use std::fs::{File, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is kept between runs, each thing under a key of what it was made from.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `VIRTPILOT_CACHE`, else `virtpilot` in the user's cache folder.
    pub fn open() -> Result<Cache, Trouble> {
        let folder = match std::env::var_os("VIRTPILOT_CACHE") {
            Some(folder) => PathBuf::from(folder),
            None => match (std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")) {
                (Some(cache), _) if !cache.is_empty() => PathBuf::from(cache).join("virtpilot"),
                (_, Some(home)) => PathBuf::from(home).join(".cache/virtpilot"),
                _ => {
                    return Err(Trouble::new(
                        "there is no place for the cache: neither HOME nor XDG_CACHE_HOME is set",
                        "set VIRTPILOT_CACHE to a folder with about 1 GB of space",
                    ));
                }
            },
        };
        let folder = std::path::absolute(&folder).map_err(|error| trouble::io("use", &folder, error))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| trouble::io("create the cache folder", &folder, error))?;
        let about =
            std::fs::metadata(&folder).map_err(|error| trouble::io("look at the cache folder", &folder, error))?;
        // Programs in it are run: nobody else may have put them there.
        if about.uid() != rustix::process::getuid().as_raw() || about.mode() & 0o022 != 0 {
            return Err(Trouble::new(
                format!("the cache folder {} belongs to somebody else, or others may write to it", folder.display()),
                format!(
                    "make it yours (`chmod go-w {}`), or set VIRTPILOT_CACHE to a folder of your own",
                    folder.display()
                ),
            ));
        }
        Ok(Cache { folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of one thing: `kind/key`.
    pub fn entry(&self, kind: &str, key: &Key) -> PathBuf {
        self.folder.join(kind).join(&key.0)
    }

    /// Lets one process at a time make a thing; the others wait and then find it made.
    ///
    /// The lock goes with the process that holds it, so a killed build never blocks the next one.
    pub async fn lock(&self, kind: &str, key: &Key, waiting: impl FnOnce()) -> Result<File, Trouble> {
        let folder = self.folder.join(kind);
        let path = folder.join(format!("{}.lock", key.0));
        let failed = |error| trouble::io("lock", &path, error);
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                // Asked again and again, so that Ctrl-C is heard meanwhile.
                Err(TryLockError::WouldBlock) => {
                    if let Some(say) = waiting.take() {
                        say();
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// A folder to make a thing in, beside its place so that `install` is one rename.
    pub fn workbench(&self, kind: &str) -> Result<Workbench, Trouble> {
        const PREFIX: &str = ".making-";
        let folder = self.folder.join(kind);
        // Those that a killed build has left.
        abandoned::sweep(&folder, PREFIX);
        Owned::create(&folder, PREFIX).map(|owned| Workbench { owned: Some(owned) })
    }

    /// Puts a finished folder in its place in one step: a thing in the cache is always whole.
    pub fn install(&self, mut made: Workbench, kind: &str, key: &Key) -> Result<PathBuf, Trouble> {
        let place = self.entry(kind, key);
        if let Some(owned) = made.owned.take() {
            owned.rename(&place)?;
        }
        Ok(place)
    }
}

/// A folder in which something is being made; dropped before it is finished, it is removed.
#[derive(Debug)]
pub struct Workbench {
    owned: Option<Owned>,
}

impl Workbench {
    /// Where it is.
    pub fn path(&self) -> &Path {
        self.owned.as_ref().map_or(Path::new(""), Owned::path)
    }
}

impl Drop for Workbench {
    fn drop(&mut self) {
        if let Some(owned) = self.owned.take() {
            let _ = owned.remove();
        }
    }
}

/// What a thing was made from, as a short fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The fingerprint of these parts, in this order.
    pub fn of<Part: AsRef<[u8]>>(parts: impl IntoIterator<Item = Part>) -> Key {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Key(hex(&hash.finalize()[..8]))
    }

    /// As it stands in paths.
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
    fn a_key_tells_where_one_part_ends_and_the_next_begins() {
        assert_eq!(Key::of(["ab", "c"]), Key::of(["ab", "c"]));
        assert_ne!(Key::of(["ab", "c"]), Key::of(["a", "bc"]));
        assert_eq!(Key::of(["ab"]).as_str().len(), 16);
    }
}
