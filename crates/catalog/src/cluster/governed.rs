//! Which assets a `VirtPlatformConfig` governs, so that every object has one owner.

use crate::cluster::facts::Facts;
use crate::pack::catalog::Catalog;
use crate::profile::Profile;
use std::collections::BTreeMap;

/// The assets of a profile, those that an option switches off included.
pub fn governs(profile: &Profile) -> impl Iterator<Item = &str> {
    profile.items.iter().map(|item| item.asset.as_str())
}

/// The governed assets, each with the name of its `VirtPlatformConfig`; the first one where several name an asset.
pub fn governed<'a>(catalog: &'a Catalog, facts: &'a Facts) -> BTreeMap<&'a str, &'a str> {
    let mut governed = BTreeMap::new();
    for profile in &catalog.profiles {
        if let Some(name) = facts.governing.get(&profile.name) {
            for asset in governs(profile) {
                governed.entry(asset).or_insert(name.as_str());
            }
        }
    }
    governed
}
