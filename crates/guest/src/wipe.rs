//! Overwriting and removing files that had secrets.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Overwrites a file with zeros and removes it. A link is removed, not followed. That it is not there is no error.
pub(crate) fn file(path: &Path) -> Result<(), String> {
    let wipe = || {
        let metadata = std::fs::symlink_metadata(path)?;
        if metadata.is_file() {
            let mut file: File = OpenOptions::new().write(true).open(path)?;
            let zeros = [0; 4096];
            let mut left = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
            while left > 0 {
                let size = left.min(zeros.len());
                file.write_all(&zeros[..size])?;
                left -= size;
            }
            file.sync_data()?;
        }
        std::fs::remove_file(path)
    };
    match wipe() {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("could not wipe {}: {error}", path.display())),
        _ => Ok(()),
    }
}

/// Wipes every file of a folder, and removes it with whatever else is in it: a job may have put folders there. What fails does not stop
/// the rest.
pub(crate) fn folder(path: &Path) -> Result<(), String> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("could not wipe {}: {error}", path.display())),
    };
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
    let failed = files.filter_map(|entry| file(&entry.path()).err()).collect::<Vec<_>>().join("; ");
    std::fs::remove_dir_all(path).map_err(|error| format!("could not remove {}: {error}; {failed}", path.display()))?;
    if failed.is_empty() { Ok(()) } else { Err(failed) }
}

#[cfg(test)]
mod tests {
    use super::{file, folder};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_overwritten_before_it_is_removed_and_a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let secrets = root.path().join("secrets");
        std::fs::create_dir(&secrets).unwrap();
        let (token, other) = (secrets.join("token"), root.path().join("other"));
        std::fs::write(&token, "canary".repeat(2_000)).unwrap();
        std::fs::write(&other, "keep").unwrap();
        // A second name of the same file shows what was written to it.
        std::fs::hard_link(&token, root.path().join("same")).unwrap();
        symlink(&other, secrets.join("link")).unwrap();
        // What a job could put there to stop the rest.
        std::fs::create_dir_all(secrets.join("a/b")).unwrap();
        folder(&secrets).unwrap();
        assert!(!secrets.exists());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "keep");
        assert_eq!(std::fs::read(root.path().join("same")).unwrap(), vec![0; 12_000]);
    }

    #[test]
    fn what_is_not_there_is_wiped() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(file(&root.path().join("a")), Ok(()));
        assert_eq!(folder(&root.path().join("a")), Ok(()));
    }
}
