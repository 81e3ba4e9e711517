//! The folder of one running playground, removed with it, and the removal of those whose owner was killed.

use crate::process::Family;
use crate::trouble::{self, Trouble};
use std::fs::File;
use std::path::Path;

const PREFIX: &str = "virtpilot-";
const LOCK: &str = "alive";

/// A private folder below the system's temporary one.
#[derive(Debug)]
pub struct RunFolder {
    folder: tempfile::TempDir,
}

impl RunFolder {
    /// Makes one. Sockets in it must have short paths, so it is not put into the cache.
    pub fn create() -> Result<RunFolder, Trouble> {
        let place = std::env::temp_dir();
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(&place)
            .map_err(|error| trouble::io("make a folder in", &place, error))?;
        Ok(RunFolder { folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a family that owns the folder and, unless it is to be kept, removes it at its end.
    pub fn give_to_family(self, keep: bool) -> Result<Family, Trouble> {
        if keep {
            let family = Family::new(None)?;
            let _ = self.folder.keep();
            return Ok(family);
        }
        let family = Family::new(Some(self.folder.path()))?;
        let _ = self.folder.keep();
        Ok(family)
    }
}

/// Marks a folder as in use for as long as the returned value lives: the kernel forgets the mark with the process.
pub fn mark(folder: &Path) -> std::io::Result<File> {
    let file = File::create(folder.join(LOCK))?;
    file.try_lock()?;
    Ok(file)
}

/// Removes the folders of playgrounds whose supervisor was killed and could not do it.
pub fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        if is_abandoned(&folder) {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// Ours by its name, marked once, and the mark is free now. A folder without a mark is just being made, or kept on purpose.
fn is_abandoned(folder: &Path) -> bool {
    let ours = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    ours && File::open(folder.join(LOCK)).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{is_abandoned, mark};

    #[test]
    fn only_a_folder_whose_owner_is_gone_is_abandoned() {
        let folder = tempfile::Builder::new().prefix("virtpilot-").tempdir().unwrap();
        let path = folder.path().to_owned();
        assert!(!is_abandoned(&path), "it has no mark");
        let owner = mark(&path).unwrap();
        assert!(!is_abandoned(&path), "its owner lives");
        drop(owner);
        assert!(is_abandoned(&path));
        let other = tempfile::tempdir().unwrap();
        drop(mark(other.path()).unwrap());
        assert!(!is_abandoned(other.path()), "it is not ours by name");
    }
}
