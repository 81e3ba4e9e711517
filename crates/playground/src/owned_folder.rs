//! Temporary folders held by a file lock: the kernel releases it with the process, and the next run removes the folder.

use crate::user_error::{self, UserError};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const LOCK: &str = "alive";
/// Prefix of a folder that is not locked yet; it is never removed as abandoned.
const PENDING: &str = ".pending-";

/// A private folder (mode 0700) that stays locked as long as this value lives.
#[derive(Debug)]
pub struct OwnedFolder {
    folder: PathBuf,
    _lock: File,
}

impl OwnedFolder {
    /// Creates `parent/prefix...`, locked before it gets the name under which it could be removed as abandoned.
    pub fn create(parent: &Path, prefix: &str) -> Result<OwnedFolder, UserError> {
        let failed = |error| user_error::io("create a folder in", parent, error);
        std::fs::create_dir_all(parent).map_err(failed)?;
        let pending = tempfile::Builder::new()
            .prefix(PENDING)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(failed)?;
        let lock = File::create(pending.path().join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        let name =
            pending.path().file_name().map(|name| name.to_string_lossy().replace(PENDING, prefix)).unwrap_or_default();
        let folder = parent.join(name);
        std::fs::rename(pending.path(), &folder).map_err(failed)?;
        // Its drop removes only the old name, which no longer exists.
        drop(pending);
        Ok(OwnedFolder { folder, _lock: lock })
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Removes the lock file and keeps the folder: it is never removed as abandoned.
    pub fn keep(self) -> std::io::Result<()> {
        std::fs::remove_file(self.folder.join(LOCK))
    }

    /// Removes the lock file and moves the finished folder to `target`.
    pub fn rename(self, target: &Path) -> Result<(), UserError> {
        let failed = |error| user_error::io("move the finished files to", target, error);
        std::fs::remove_file(self.folder.join(LOCK)).map_err(failed)?;
        std::fs::rename(&self.folder, target).map_err(failed)
    }

    /// Removes the folder.
    pub fn remove(self) -> std::io::Result<()> {
        std::fs::remove_dir_all(&self.folder)
    }
}

/// Removes the folders with this prefix whose owner was killed before it could remove them.
pub fn remove_abandoned(parent: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for folder in entries.flatten().map(|entry| entry.path()) {
        let has_prefix = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
        if has_prefix && is_abandoned(&folder) {
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// Whether the folder belongs to this user, has a lock file, and no process holds the lock.
fn is_abandoned(folder: &Path) -> bool {
    let is_own = std::fs::symlink_metadata(folder)
        .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == rustix::process::getuid().as_raw());
    // Another user may have put a symbolic link or a pipe there: do not follow it and do not block on it.
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or_default();
    let open = || OpenOptions::new().read(true).custom_flags(flags).open(folder.join(LOCK));
    is_own && open().is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{OwnedFolder, is_abandoned, remove_abandoned};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_folder_whose_owner_has_exited_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let owned = OwnedFolder::create(parent.path(), "run-").unwrap();
        let folder = owned.path().to_owned();
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700, "no other user can enter");
        remove_abandoned(parent.path(), "run-");
        assert!(folder.is_dir(), "its owner is alive");
        drop(owned);
        remove_abandoned(parent.path(), "other-");
        assert!(folder.is_dir(), "its name has another prefix");
        // Between fork and exec, a child of another test holds our open files, the lock among them.
        let started = std::time::Instant::now();
        while folder.exists() {
            assert!(started.elapsed() < std::time::Duration::from_secs(30), "it is never removed");
            remove_abandoned(parent.path(), "run-");
        }
    }

    #[test]
    fn a_kept_folder_and_a_foreign_lock_file_are_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let owned = OwnedFolder::create(parent.path(), "run-").unwrap();
        let folder = owned.path().to_owned();
        owned.keep().unwrap();
        assert!(!is_abandoned(&folder));
        let status = std::process::Command::new("mkfifo").arg(folder.join("alive")).status().unwrap();
        assert!(status.success());
        // Opening a pipe without a writer does not block.
        let _ = is_abandoned(&folder);
    }
}
