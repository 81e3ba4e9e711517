//! One opinion: the object it makes, and when it is wanted.

use crate::pack::condition::Condition;
use change::{Impact, Kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An entry of the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct Asset {
    /// Its name, unique in the pack.
    pub name: String,
    /// The group it is switched on and off with.
    pub group: Option<String>,
    /// A CRD that must be installed beside that of its own kind.
    pub gate_crd: Option<String>,
    /// The kind of object it makes, where its file says it in plain words.
    pub kind: Option<Kind>,
    /// Its file, relative to the pack's folder.
    pub path: String,
    /// When it belongs to the installation; informational.
    pub phase: i64,
    /// Whether it is wanted unless something speaks against it, or only when asked for.
    pub install: Install,
    /// The kind of object, as people call it.
    pub component: String,
    /// Its place among the others: low comes first.
    pub reconcile_order: i64,
    /// What must hold for it to be wanted.
    pub conditions: Vec<Condition>,
    /// What the template sees as `.Params`.
    pub template_params: BTreeMap<String, String>,
    /// How much it is felt, where the pack says more than the kind does.
    pub impact: Option<Impact>,
    /// What the template may look up; `None` leaves it to what the functions are known to read.
    pub reads: Option<Vec<Read>>,
    /// Whether the object goes when the opinion goes.
    pub prune: Prune,
}

/// Whether an asset is wanted by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// Wanted unless a condition speaks against it.
    Always,
    /// Wanted only when its conditions ask for it.
    OptIn,
}

/// Whether an object goes when its opinion goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prune {
    /// As the operator is told in general.
    #[default]
    Default,
    /// The object stays, whatever happens.
    Never,
}

/// Objects a template may look up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Read {
    /// Group and version, such as `monitoring.coreos.com/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace, or any.
    pub namespace: Option<String>,
    /// The name, or any.
    pub name: Option<String>,
}

impl Asset {
    /// Whether one of its conditions is a person's wish; where such a condition holds, somebody asked for the asset.
    pub fn has_user_condition(&self) -> bool {
        let is_user_condition =
            |condition: &Condition| matches!(condition, Condition::Annotation { .. } | Condition::FeatureGate { .. });
        self.conditions.iter().any(is_user_condition)
    }
}
