//! CRDs of kinds that no package contains: structural schemas written from public documents, kept beside the table.

use super::table::Written;
use super::yaml;
use crate::tools::Tools;
use crate::user_error::UserError;
use serde_json::Value;

/// Reads one of them.
pub(super) fn load(written: &Written, tools: &Tools) -> Result<Value, UserError> {
    let text = tools.crds_written.get(&written.file).ok_or_else(|| {
        UserError::new(
            format!("tools/crds no longer contains {}", written.file),
            "restore the file, or correct its entry in tools/crds/crds.toml",
        )
    })?;
    yaml::find_crd(text, &written.crd, &written.file)
}
