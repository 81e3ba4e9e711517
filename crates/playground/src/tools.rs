//! The pinned sources of the control plane and of the third-party CRDs, compiled in or read from a folder.

use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};

/// The text of the files under `tools/`.
#[derive(Debug, Clone)]
pub struct Tools {
    /// `control-plane/go.mod`
    pub control_plane_mod: String,
    /// `control-plane/go.sum`
    pub control_plane_sum: String,
    /// `packaging/go.mod`
    pub packaging_mod: String,
    /// `packaging/go.sum`
    pub packaging_sum: String,
    /// `crds/go.mod`
    pub crds_mod: String,
    /// `crds/go.sum`
    pub crds_sum: String,
    /// `crds/crds.toml`
    pub crds_table: String,
}

impl Tools {
    /// The files this program was built with, or those in the folder `VIRTPILOT_TOOLS` (to try other versions).
    pub fn load() -> Result<Tools, UserError> {
        match std::env::var_os("VIRTPILOT_TOOLS") {
            Some(folder) => Tools::read(&PathBuf::from(folder)),
            None => Ok(Tools {
                control_plane_mod: include_str!("../../../tools/control-plane/go.mod").to_owned(),
                control_plane_sum: include_str!("../../../tools/control-plane/go.sum").to_owned(),
                packaging_mod: include_str!("../../../tools/packaging/go.mod").to_owned(),
                packaging_sum: include_str!("../../../tools/packaging/go.sum").to_owned(),
                crds_mod: include_str!("../../../tools/crds/go.mod").to_owned(),
                crds_sum: include_str!("../../../tools/crds/go.sum").to_owned(),
                crds_table: include_str!("../../../tools/crds/crds.toml").to_owned(),
            }),
        }
    }

    fn read(folder: &Path) -> Result<Tools, UserError> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|error| user_error::io("read", &path, error))
        };
        Ok(Tools {
            control_plane_mod: read("control-plane/go.mod")?,
            control_plane_sum: read("control-plane/go.sum")?,
            packaging_mod: read("packaging/go.mod")?,
            packaging_sum: read("packaging/go.sum")?,
            crds_mod: read("crds/go.mod")?,
            crds_sum: read("crds/go.sum")?,
            crds_table: read("crds/crds.toml")?,
        })
    }
}

/// The version of a module that a `go.mod` requires.
pub fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let mut fields = line.trim().trim_start_matches("require ").split_whitespace();
        (fields.next() == Some(module)).then(|| fields.next()).flatten().filter(|version| version.starts_with('v'))
    })
}

#[cfg(test)]
mod tests {
    use super::required_version;

    #[test]
    fn the_version_is_read_from_a_block_and_from_a_single_line() {
        let go_mod =
            "module m\n\nrequire a.b/c v1.2.3\nrequire (\n\td.e/f v0.1.0 // indirect\n)\nreplace d.e/f => x v9\n";
        assert_eq!(required_version(go_mod, "a.b/c"), Some("v1.2.3"));
        assert_eq!(required_version(go_mod, "d.e/f"), Some("v0.1.0"));
        assert_eq!(required_version(go_mod, "d.e"), None);
    }
}
