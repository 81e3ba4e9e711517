//! One asset of a pack: the object it renders, and when it applies.

use crate::pack::condition::Condition;
use crate::pack::notes::Notes;
use change::{Impact, Key, Kind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// More documents than a file has.
const DOCUMENTS: i64 = 1000;

/// An entry of the catalogue.
#[derive(Debug, Clone, PartialEq)]
pub struct Asset {
    /// The name, unique in the pack. An object of a file with several is named like `exporter/DaemonSet`.
    pub name: String,
    /// Which of several documents of its file it is; `None` if the file has one.
    pub document: Option<DocumentInFile>,
    /// The group that enables and disables it.
    pub group: Option<String>,
    /// A CRD that must be installed in addition to that of its own kind.
    pub gate_crd: Option<String>,
    /// The kind of the rendered object, if the file states it literally.
    pub kind: Option<Kind>,
    /// The file, relative to the root of the pack.
    pub path: String,
    /// The phase of the installation; informational.
    pub phase: i64,
    /// Whether it applies by default or only when it is requested.
    pub install: Install,
    /// The kind of the object, as shown to people.
    pub component: String,
    /// The order among the assets: lower comes first.
    pub reconcile_order: i64,
    /// The conditions under which it applies; all must be met.
    pub conditions: Vec<Condition>,
    /// The `.Params` of the template.
    pub template_params: BTreeMap<String, String>,
    /// The declared impact, if the pack declares one.
    pub impact: Option<Impact>,
    /// The objects that the template may query; `None` allows everything except Secrets.
    pub reads: Option<Vec<Read>>,
    /// Whether the object is pruned when the asset no longer applies.
    pub prune: Prune,
    /// Whether the operator of its kind reports in the status what it made of an object, so that an object without a status has had no effect yet.
    pub reports: bool,
    /// What people want to know about it.
    pub notes: Notes,
    /// The digest of all that its object is made of.
    pub source: String,
    /// Whether a condition or its template may make a query: else it does not depend on the answers.
    pub queries: bool,
}

/// One of several documents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentInFile {
    /// Its place in the file.
    pub index: usize,
    /// Its object; the namespace is as the file states it, and may be template code.
    pub key: Key,
}

/// Whether an asset applies by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Install {
    /// It applies unless a condition is not met.
    Always,
    /// It applies only if it has conditions and all are met.
    OptIn,
}

/// Whether an object is pruned when its asset no longer applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prune {
    /// As configured for the operator.
    #[default]
    Default,
    /// The object is never pruned.
    Never,
}

/// Objects that a template may query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Read {
    /// Group and version, such as `monitoring.coreos.com/v1`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace; `None` is any.
    pub namespace: Option<String>,
    /// The name; `None` is any.
    pub name: Option<String>,
}

impl Asset {
    /// Its place in the order of writes: that of its entry, and of its document in the file.
    pub fn order(&self) -> i64 {
        let index = self.document.as_ref().map_or(0, |document| document.index);
        self.reconcile_order.saturating_mul(DOCUMENTS).saturating_add(i64::try_from(index).unwrap_or(DOCUMENTS - 1))
    }

    /// The name by which the catalogue and users refer to it: that of all objects of its file.
    pub fn entry(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(entry, _)| entry)
    }

    /// All names that select it: its own, that of its entry and that of its group.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [self.name.as_str(), self.entry()].into_iter().chain(self.group.as_deref())
    }

    /// Whether one of its conditions is set by a user; if such an asset applies, a user has requested it.
    pub fn has_user_condition(&self) -> bool {
        let is_user_condition =
            |condition: &Condition| matches!(condition, Condition::Annotation { .. } | Condition::FeatureGate { .. });
        self.conditions.iter().flat_map(Condition::leaves).any(is_user_condition)
    }
}
