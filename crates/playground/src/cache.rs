//! The folder outside any clone where what took long to make is kept.

use crate::trouble::{self, Trouble};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What is kept between runs, each thing under a key of what it was made from.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `VIRTPILOT_CACHE`, else `virtpilot` in the user's cache folder.
    pub fn open() -> Result<Cache, Trouble> {
        let folder = match std::env::var_os("VIRTPILOT_CACHE") {
            Some(folder) => {
                std::path::absolute(&folder).map_err(|error| trouble::io("use", Path::new(&folder), error))?
            }
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
        std::fs::create_dir_all(&folder).map_err(|error| trouble::io("create the cache folder", &folder, error))?;
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
    pub fn lock(&self, kind: &str, key: &Key, waiting: impl FnOnce()) -> Result<File, Trouble> {
        let folder = self.folder.join(kind);
        let path = folder.join(format!("{}.lock", key.0));
        let attempt = || -> std::io::Result<(File, bool)> {
            std::fs::create_dir_all(&folder)?;
            let file = File::create(&path)?;
            let free = file.try_lock().is_ok();
            Ok((file, free))
        };
        let (file, free) = attempt().map_err(|error| trouble::io("lock", &path, error))?;
        if !free {
            waiting();
            file.lock().map_err(|error| trouble::io("lock", &path, error))?;
        }
        Ok(file)
    }

    /// A folder to make a thing in, beside its place so that `install` is one rename.
    pub fn workbench(&self, kind: &str) -> Result<tempfile::TempDir, Trouble> {
        let folder = self.folder.join(kind);
        std::fs::create_dir_all(&folder)
            .and_then(|()| tempfile::Builder::new().prefix(".making-").tempdir_in(&folder))
            .map_err(|error| trouble::io("make a folder in", &folder, error))
    }

    /// Puts a finished folder in its place in one step: a thing in the cache is always whole.
    pub fn install(&self, made: tempfile::TempDir, kind: &str, key: &Key) -> Result<PathBuf, Trouble> {
        let place = self.entry(kind, key);
        let made = made.keep();
        std::fs::rename(&made, &place).map_err(|error| trouble::io("move the finished files to", &place, error))?;
        Ok(place)
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
