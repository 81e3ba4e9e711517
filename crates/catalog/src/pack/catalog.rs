//! A loaded pack.

use crate::pack::asset::Asset;
use crate::pack::fault::Fault;
use crate::pack::feature::{Feature, Framework};
use crate::pack::files::Files;
use crate::pack::load;
use crate::pack::requirement;
use crate::pack::tombstone::Tombstone;
use change::Key;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A pack, read and checked as a whole.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// Its assets in the order of the catalogue file.
    pub assets: Vec<Asset>,
    /// What they add up to.
    pub features: Vec<Feature>,
    /// The engine itself.
    pub framework: Framework,
    /// Assets that belong to no feature on purpose.
    pub excluded_assets: Vec<String>,
    /// Objects of former releases that must go.
    pub tombstones: Vec<Tombstone>,
    pub(crate) files: Files,
}

impl Catalog {
    /// Reads a pack. A pack with a fault is refused, with all faults that can be told at once.
    pub fn load(files: Files) -> Result<Catalog, Vec<Fault>> {
        load::load(files)
    }

    /// The fingerprint of all files: `sha256:` and hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, content) in self.files.iter() {
            // The lengths keep a path from running into its content.
            hasher.update((path.len() as u64).to_be_bytes());
            hasher.update(path);
            hasher.update((content.len() as u64).to_be_bytes());
            hasher.update(content);
        }
        let mut digest = "sha256:".to_owned();
        for byte in hasher.finalize() {
            let _ = write!(digest, "{byte:02x}");
        }
        digest
    }

    /// One asset by name.
    pub fn asset(&self, name: &str) -> Option<&Asset> {
        self.assets.iter().find(|asset| asset.name == name)
    }

    /// What an asset's object is called, where its file says it in plain words.
    pub fn plain_key(&self, asset: &Asset) -> Option<Key> {
        let text = std::str::from_utf8(self.files.get(&asset.path)?).ok()?;
        let (namespace, name) = requirement::name(text)?;
        Some(Key { kind: asset.kind.clone()?, namespace, name })
    }
}
