//! Replaces files together: all new contents are on disk before the first name changes.

use crate::user_error::{self, UserError};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file with its content when it was read and its new content.
pub(super) struct Change<'a> {
    pub(super) file: &'a str,
    pub(super) old: &'a str,
    pub(super) new: &'a str,
}

/// Fails if files in the folder cannot be replaced.
pub(super) fn check_writable(folder: &Path) -> Result<(), UserError> {
    new_file(folder).map(drop)
}

/// Replaces the files that differ; after an error, all are as before.
pub(super) fn replace(folder: &Path, changes: &[Change<'_>]) -> Result<(), UserError> {
    let changes: Vec<&Change<'_>> = changes.iter().filter(|change| change.old != change.new).collect();
    let mut staged = Vec::new();
    for change in &changes {
        let path = folder.join(change.file);
        let current = std::fs::read_to_string(&path).map_err(|error| user_error::io("read", &path, error))?;
        if current != change.old {
            return Err(UserError::new(
                format!("{} has changed since it was read, so nothing was replaced", path.display()),
                "run again",
            ));
        }
        staged.push((stage(folder, &path, change.new)?, stage(folder, &path, change.old)?, path));
    }
    let mut replaced: Vec<(NamedTempFile, PathBuf)> = Vec::new();
    for (new, old, path) in staged {
        if let Err(failed) = new.persist(&path) {
            for (old, path) in replaced.into_iter().rev() {
                old.persist(&path).map_err(|error| user_error::io("restore", &path, error.error))?;
            }
            return Err(user_error::io("replace", &path, failed.error));
        }
        replaced.push((old, path));
    }
    Ok(())
}

/// A file beside `path` with its permissions and this content.
fn stage(folder: &Path, path: &Path, content: &str) -> Result<NamedTempFile, UserError> {
    let mut file = new_file(folder)?;
    let failed = |error| user_error::io("write a file beside", path, error);
    let permissions = std::fs::metadata(path).map_err(failed)?.permissions();
    file.write_all(content.as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(permissions).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    Ok(file)
}

fn new_file(folder: &Path) -> Result<NamedTempFile, UserError> {
    tempfile::Builder::new().prefix(".update-").tempfile_in(folder).map_err(|error| {
        UserError::new(
            format!("{} cannot be written", folder.display()),
            "run this in a checkout that you can write, or name its folder with --tools",
        )
        .with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::{Change, check_writable, replace};
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn files(folder: &Path) -> BTreeMap<String, String> {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap_or_default())).collect()
    }

    fn changes() -> [Change<'static>; 3] {
        [
            Change { file: "a", old: "1", new: "2" },
            Change { file: "b", old: "same", new: "same" },
            Change { file: "c", old: "3", new: "4" },
        ]
    }

    #[test]
    fn changed_files_are_replaced_and_keep_their_permissions() {
        let folder = tempfile::tempdir().unwrap();
        for change in changes() {
            std::fs::write(folder.path().join(change.file), change.old).unwrap();
        }
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(folder.path().join("a"), mode.clone()).unwrap();
        check_writable(folder.path()).unwrap();
        replace(folder.path(), &changes()).unwrap();
        let expected = [("a", "2"), ("b", "same"), ("c", "4")].map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(files(folder.path()), expected.into());
        let kept = std::fs::metadata(folder.path().join("a")).unwrap().permissions().mode();
        assert_eq!(kept & 0o777, 0o640);
    }

    #[test]
    fn after_an_error_all_files_are_as_before() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "1").unwrap();
        std::fs::write(folder.path().join("c"), "edited").unwrap();
        let before = files(folder.path());
        let error = replace(folder.path(), &changes()).unwrap_err().to_string();
        assert!(error.contains("has changed since it was read"), "{error}");
        assert_eq!(files(folder.path()), before);
        std::fs::remove_file(folder.path().join("c")).unwrap();
        let before = files(folder.path());
        replace(folder.path(), &changes()).unwrap_err();
        assert_eq!(files(folder.path()), before);
        assert!(check_writable(&folder.path().join("nowhere")).is_err());
    }
}
