//! Writes files; errors name the path.

use crate::user_error::{self, UserError};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), UserError> {
    std::fs::write(path, contents).map_err(|error| user_error::io("write", path, error))
}

/// Writes a file that is created with this mode.
pub fn write_with_mode(path: &Path, contents: impl AsRef<[u8]>, mode: u32) -> Result<(), UserError> {
    std::fs::OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(contents.as_ref()))
        .map_err(|error| user_error::io("write", path, error))
}
