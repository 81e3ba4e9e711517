//! Where the folders of running playgrounds are.

use crate::trouble::Trouble;
use std::path::PathBuf;

/// What they begin with.
pub const PREFIX: &str = "virtpilot-";
/// A socket's path may not be longer than 107 bytes; this leaves room for a folder and a name in it.
const LONGEST: usize = 70;

/// The system's temporary folder. Sockets in it must have short paths, so it is not the cache.
pub fn place() -> Result<PathBuf, Trouble> {
    let place = std::env::temp_dir();
    match std::path::absolute(&place) {
        Ok(place) if place.as_os_str().len() <= LONGEST => Ok(place),
        _ => Err(Trouble::new(
            format!("{} is too long a path for the sockets of a control plane", place.display()),
            format!("set TMPDIR to a folder whose path has at most {LONGEST} bytes, such as /tmp"),
        )),
    }
}
