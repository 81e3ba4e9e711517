//! Loads an asset pack and reports all its errors.

use anyhow::anyhow;
use catalog::{Catalog, Files};
use std::collections::BTreeMap;

/// Loads the catalogue of a pack from its files.
pub(crate) fn load(files: BTreeMap<String, Vec<u8>>) -> anyhow::Result<Catalog> {
    Catalog::load(Files::new(files))
        .map_err(|errors| anyhow!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}
