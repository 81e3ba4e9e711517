//! Profiles: what a person reviews and approves as one plan, as data of a pack.

mod crd;
mod read;

pub use crd::crd;
pub(crate) use read::read;

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
