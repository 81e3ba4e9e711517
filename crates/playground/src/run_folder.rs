//! Where the folders of running playgrounds are created.

use crate::user_error::UserError;
use std::path::PathBuf;

/// The prefix of their names.
pub const PREFIX: &str = "virtpilot-";
/// A Unix socket path is limited to 107 bytes; this leaves room for the folder's and the socket's name.
const MAX_LENGTH: usize = 70;

/// The system's temporary folder; not the cache, whose path may be too long for sockets.
pub fn parent() -> Result<PathBuf, UserError> {
    let parent = std::env::temp_dir();
    match std::path::absolute(&parent) {
        Ok(parent) if parent.as_os_str().len() <= MAX_LENGTH => Ok(parent),
        _ => Err(UserError::new(
            format!("the path {} is too long for the sockets of a control plane", parent.display()),
            format!("set TMPDIR to a folder whose path has at most {MAX_LENGTH} bytes, such as /tmp"),
        )),
    }
}
