//! Finds a CRD in a YAML file of several documents.

use crate::user_error::UserError;
use serde_json::Value;

const FIX: &str = "correct the entry in tools/crds/crds.toml";

/// The CRD with this name; `file` is what the error names.
pub(super) fn find_crd(text: &str, crd: &str, file: &str) -> Result<Value, UserError> {
    // The largest file has a few hundred thousand nodes; the files are verified by checksum, so no budget is needed.
    let options = serde_saphyr::options! { budget: None, legacy_octal_numbers: true };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| UserError::new(format!("{file} is not YAML"), FIX).with_detail(error.to_string()))?;
    let found = documents.into_iter().find(|document| document["metadata"]["name"] == crd);
    found.ok_or_else(|| UserError::new(format!("{file} no longer contains the CRD {crd}"), FIX))
}
