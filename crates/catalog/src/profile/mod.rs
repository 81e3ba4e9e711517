//! Profiles: what a person reviews and approves as one plan, as data of a pack.

mod crd;
mod items;
mod options;
mod read;
mod wanted;

pub use crd::crd;
pub(crate) use read::read;
pub use wanted::{ProfileInputValue, ProfileWants, WantedItem, WantedResult, missing, rolled_back, wanted};

use serde_json::{Map, Value};

/// A profile of the platform.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name, which is also that of its `VirtPlatformConfig`.
    pub name: String,
    /// What it is about, in one word.
    pub category: String,
    /// What it does, in one sentence.
    pub description: String,
    /// What it does to nodes and virtual machines.
    pub impact_summary: String,
    /// Whether an object with the action Ignore tells of it.
    pub is_advertised: bool,
    /// What users choose, if anything.
    pub options: Option<ProfileOptions>,
    /// What it writes, in the order in which it is written.
    pub items: Vec<ProfileItem>,
    /// What the templates of its items are rendered with.
    pub settings: Vec<ProfileSetting>,
    /// Values of the cluster that its objects are derived from.
    pub inputs: Vec<ProfileInput>,
}

/// One object of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileItem {
    /// Its name, unique in the profile.
    pub name: String,
    /// What it does, in one sentence.
    pub description: String,
    /// The asset that renders it.
    pub asset: String,
    /// The boolean option that switches it on; without one it is always on.
    pub when: Option<String>,
    /// The boolean option that switches it off.
    pub unless: Option<String>,
    /// The name that the object had in the predecessor: one that exists is taken over.
    pub formerly: Option<String>,
    /// Earlier items that it relies on: it is not applied while one of them has failed.
    pub needs: Vec<String>,
}

/// An annotation of the HyperConverged, as the templates of a profile see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileSetting {
    /// Its key, with the prefix.
    pub key: String,
    /// Its value.
    pub value: SettingValue,
    /// The boolean option that, if it is true, leaves it out.
    pub unless: Option<String>,
}

/// Where the value of a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingValue {
    /// It is always this.
    Fixed(String),
    /// The value of this option; without one, the setting is not made.
    Option(String),
}

/// A value of the HyperConverged that objects of a profile are derived from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileInput {
    /// What it is called in a plan.
    pub name: String,
    /// Where it is, with dots; the first that exists counts.
    pub paths: Vec<String>,
    /// The option that replaces it.
    pub unless: Option<String>,
}

/// The options of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileOptions {
    /// Their key below `spec.options`.
    pub key: String,
    /// The schema of each option.
    pub properties: Map<String, Value>,
    /// What must hold of them together.
    pub rules: Vec<OptionRule>,
}

/// A condition in CEL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionRule {
    /// The condition.
    pub rule: String,
    /// What to do if it does not hold.
    pub message: String,
}
