//! The features of a pack, for its readers.

use crate::pack::asset::Asset;
use crate::pack::notes::Notes;
use serde::Serialize;

/// The maturity of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Maturity {
    /// Generally available.
    Ga,
    /// Technology preview.
    Tp,
    /// Developer preview.
    Dp,
}

/// A named group of assets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// The name.
    pub name: String,
    /// What it provides, in one sentence.
    pub description: String,
    /// The maturity, if the pack declares it.
    pub maturity: Option<Maturity>,
    /// Names of its assets.
    pub assets: Vec<String>,
    /// Groups of its assets.
    pub groups: Vec<String>,
    /// What it requires.
    pub requires: Vec<String>,
    /// What is recommended with it.
    pub recommended: Vec<String>,
    /// What people want to know about it.
    pub notes: Notes,
    /// What switches it on, if that is not in the conditions of its assets.
    pub opt_in: Option<String>,
}

/// The framework itself, as a feature.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Framework {
    /// The maturity.
    pub maturity: Option<Maturity>,
    /// How users opt in.
    pub opt_in: Option<String>,
}

impl Feature {
    /// Whether an asset belongs to it.
    pub fn has(&self, asset: &Asset) -> bool {
        let is_in_group = asset.group.as_ref().is_some_and(|group| self.groups.contains(group));
        is_in_group || self.assets.iter().any(|name| *name == asset.name || *name == asset.entry())
    }
}
