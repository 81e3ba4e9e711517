//! Folders that go with their owner: marked by a lock the kernel forgets with the process, swept by whoever comes next.

use crate::trouble::{self, Trouble};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const LOCK: &str = "alive";
/// Under this name a folder is made before its owner is known; nobody sweeps it.
const UNBORN: &str = ".unborn-";

/// A folder that only we can enter, and that is known as ours while this value lives.
#[derive(Debug)]
pub struct Owned {
    folder: PathBuf,
    _mark: File,
}

impl Owned {
    /// Makes one: `place/prefix...`. It carries its mark before it has the name under which it could be swept.
    pub fn create(place: &Path, prefix: &str) -> Result<Owned, Trouble> {
        let failed = |error| trouble::io("make a folder in", place, error);
        std::fs::create_dir_all(place).map_err(failed)?;
        let made = tempfile::Builder::new()
            .prefix(UNBORN)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(place)
            .map_err(failed)?;
        let mark = File::create(made.path().join(LOCK)).map_err(failed)?;
        mark.try_lock().map_err(|error| failed(error.into()))?;
        let random =
            made.path().file_name().map(|name| name.to_string_lossy().replace(UNBORN, prefix)).unwrap_or_default();
        let folder = place.join(random);
        std::fs::rename(made.path(), &folder).map_err(failed)?;
        // It is not there any more under the name that would be removed.
        drop(made);
        Ok(Owned { folder, _mark: mark })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Leaves it as it is, without its mark: nobody will sweep it.
    pub fn keep(self) -> std::io::Result<()> {
        std::fs::remove_file(self.folder.join(LOCK))
    }

    /// Takes the mark away and gives the folder another name: it is finished, and nobody's to sweep.
    pub fn rename(self, place: &Path) -> Result<(), Trouble> {
        let failed = |error| trouble::io("move the finished files to", place, error);
        std::fs::remove_file(self.folder.join(LOCK)).map_err(failed)?;
        std::fs::rename(&self.folder, place).map_err(failed)
    }

    /// Removes it.
    pub fn remove(self) -> std::io::Result<()> {
        std::fs::remove_dir_all(&self.folder)
    }
}

/// Removes the folders of that prefix whose owner was killed and could not do it.
pub fn sweep(place: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        let ours = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
        if ours && is_abandoned(&folder) {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// Belongs to us, was marked once, and the mark is free now.
fn is_abandoned(folder: &Path) -> bool {
    let own = std::fs::symlink_metadata(folder)
        .is_ok_and(|about| about.is_dir() && about.uid() == rustix::process::getuid().as_raw());
    // Whatever somebody else may have put there: it is not followed and not waited for.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or_default();
    let mark = || OpenOptions::new().read(true).custom_flags(flags).open(folder.join(LOCK));
    own && mark().is_ok_and(|mark| mark.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{Owned, is_abandoned, sweep};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_folder_whose_owner_is_gone_is_swept() {
        let place = tempfile::tempdir().unwrap();
        let owned = Owned::create(place.path(), "run-").unwrap();
        let folder = owned.path().to_owned();
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "nobody else can enter");
        sweep(place.path(), "run-");
        assert!(folder.is_dir(), "its owner lives");
        drop(owned);
        sweep(place.path(), "other-");
        assert!(folder.is_dir(), "it is not one of those by name");
        // A child of another test has our files until it becomes a program of its own, the mark among them.
        let begun = std::time::Instant::now();
        while folder.exists() {
            assert!(begun.elapsed() < std::time::Duration::from_secs(30), "it is never swept");
            sweep(place.path(), "run-");
        }
    }

    #[test]
    fn a_kept_folder_and_a_stranger_are_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let owned = Owned::create(place.path(), "run-").unwrap();
        let folder = owned.path().to_owned();
        owned.keep().unwrap();
        assert!(!is_abandoned(&folder));
        let status = std::process::Command::new("mkfifo").arg(folder.join("alive")).status().unwrap();
        assert!(status.success());
        // A pipe nobody writes to does not hold us up.
        let _ = is_abandoned(&folder);
    }
}
