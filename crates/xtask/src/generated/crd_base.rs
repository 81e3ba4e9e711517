//! The CRD of `VirtPlatformConfig` as its types say, before the profiles of a pack are added.

use super::File;
use api::advisor::VirtPlatformConfig;
use kube_core::CustomResourceExt;

/// After a change of the types, generate twice: the packages are made from the file as it was compiled in.
pub(super) fn file() -> anyhow::Result<File> {
    let mut text = serde_json::to_string_pretty(&VirtPlatformConfig::crd())?;
    text.push('\n');
    Ok(File { path: "crates/catalog/src/profile/crd.json".to_owned(), text })
}
