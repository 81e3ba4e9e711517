//! A loaded and validated pack.

use crate::pack::asset::Asset;
use crate::pack::fault::Fault;
use crate::pack::feature::{Feature, Framework};
use crate::pack::files::Files;
use crate::pack::load;
use crate::pack::notes::Notes;
use crate::pack::requirement;
use crate::pack::setting::Setting;
use crate::pack::tombstone::Tombstone;
use crate::profile::{Profile, ProfileItem};
use crate::role;
use crate::template::Gzipped;
use change::{Key, Kind};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A pack without faults.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// The assets in the order of the catalogue file.
    pub assets: Vec<Asset>,
    /// Assets that only profiles use: the autopilot never applies them.
    pub profile_assets: Vec<Asset>,
    /// The features that the assets implement.
    pub features: Vec<Feature>,
    /// The framework itself, as a feature.
    pub framework: Framework,
    /// Assets that deliberately belong to no feature.
    pub excluded_assets: Vec<String>,
    /// Annotations that choose a value.
    pub settings: Vec<Setting>,
    /// What people review and approve as one plan.
    pub profiles: Vec<Profile>,
    /// Objects of former releases that must be deleted.
    pub tombstones: Vec<Tombstone>,
    /// The annotations that its files name, such as those that templates read.
    pub annotations: BTreeSet<String>,
    pub(crate) files: Files,
    pub(crate) gzipped: Gzipped,
}

/// An object that the Go advisor made under another name than its asset does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerObject {
    /// The asset.
    pub asset: String,
    /// The object as the asset names it.
    pub own: Key,
    /// The object as the Go advisor named it.
    pub former: Key,
}

impl Catalog {
    /// Loads a pack; the error is the list of all faults.
    pub fn load(files: Files) -> Result<Catalog, Vec<Fault>> {
        load::load(files)
    }

    /// The digest of all files: `sha256:` and hexadecimal digits.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, content) in self.files.iter() {
            // The lengths separate a path from its content.
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

    /// One asset by name, also of those that only profiles use.
    pub fn profile_asset(&self, name: &str) -> Option<&Asset> {
        self.all_assets().find(|asset| asset.name == name)
    }

    /// All assets, also those that only profiles use.
    pub fn all_assets(&self) -> impl Iterator<Item = &Asset> {
        self.assets.iter().chain(&self.profile_assets)
    }

    /// The features that an asset belongs to.
    pub fn features_of<'a>(&'a self, asset: &'a Asset) -> impl Iterator<Item = &'a Feature> {
        self.features.iter().filter(|feature| feature.has(asset))
    }

    /// What people want to know about an asset: its own notes, completed by those of its feature.
    pub fn notes(&self, asset: &Asset) -> Notes {
        self.features_of(asset).fold(asset.notes.clone(), |notes, feature| notes.or(&feature.notes))
    }

    /// The objects that the Go advisor made under another name than their assets do, with the HyperConverged in this namespace.
    pub fn former_objects(&self, namespace: &str) -> Vec<FormerObject> {
        let of = |item: &ProfileItem| {
            let (asset, name) = (self.asset(&item.asset)?, item.formerly.clone()?);
            let own = role::key(self, asset, namespace)?;
            Some(FormerObject { asset: asset.name.clone(), former: Key { name, ..own.clone() }, own })
        };
        self.profiles.iter().flat_map(|profile| &profile.items).filter_map(of).collect()
    }

    /// The name that the Go advisor gave the object of an asset.
    pub fn former_name(&self, asset: &str) -> Option<&str> {
        let mut items = self.profiles.iter().flat_map(|profile| &profile.items);
        items.find_map(|item| item.formerly.as_deref().filter(|_| item.asset == asset))
    }

    /// Whether an asset may render this object, as far as its file says without being rendered.
    pub fn may_render(&self, asset: &Asset, key: &Key) -> bool {
        let is_same_kind = |kind: &Kind| (&kind.group, &kind.kind) == (&key.kind.group, &key.kind.kind);
        match self.plain_key(asset) {
            Some(plain) => plain.is_same_object(key),
            None => asset.kind.as_ref().is_none_or(is_same_kind),
        }
    }

    /// The key of an asset's object, if the file states it literally, or with parameters of the asset.
    pub fn plain_key(&self, asset: &Asset) -> Option<Key> {
        let key = match &asset.document {
            Some(document) => document.key.clone(),
            None => {
                let text = std::str::from_utf8(self.files.get(&asset.path)?).ok()?.to_owned();
                let with_parameter = |text: String, (key, value): (&String, &String)| {
                    text.replace(&format!("{{{{ .Params.{key} }}}}"), value)
                };
                let text = asset.template_params.iter().fold(text, with_parameter);
                let (namespace, name) = requirement::name(&text)?;
                Key { kind: asset.kind.clone()?, namespace, name }
            }
        };
        Some(key).filter(|key| !key.namespace.contains("{{"))
    }
}
