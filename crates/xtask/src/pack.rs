//! Loads an asset pack, and tells everything that is wrong in one.

use anyhow::anyhow;
use catalog::{Catalog, Files};
use std::collections::BTreeMap;

/// The catalogue of a pack whose files are these.
pub(crate) fn load(files: BTreeMap<String, Vec<u8>>) -> anyhow::Result<Catalog> {
    Catalog::load(Files::new(files))
        .map_err(|faults| anyhow!("{}", faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))
}
