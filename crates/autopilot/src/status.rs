//! What `status` shows: the state of every asset and object, from the same decisions that the operator carries out.

use crate::core::Core;
use crate::evaluate::{AssetResult, Exclusion, Outcome};
use crate::removal::Cause;
use change::restarts::Scope;
use change::{Digest, Key, Reason};
use std::collections::BTreeMap;
use std::fmt;

/// The state of one object.
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectState {
    /// Nothing is known of it yet.
    Unknown,
    /// It is as it should be.
    InSync,
    /// It is held.
    Held(Reason),
    /// It does not exist and is to be created.
    ToCreate,
    /// It differs from what is wanted and is to be changed.
    ToChange,
    /// It is not wanted and is to be deleted.
    ToDelete,
    /// It is not wanted and is to be handed back.
    ToHandBack,
    /// It is being deleted.
    Deleting,
    /// It is not wanted, and gone or not ours.
    Gone,
}

/// The state of one asset, or of one object of a former release.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusLine {
    /// The asset, or the file of the tombstone.
    pub asset: String,
    /// Its object, if it is known.
    pub key: Option<Key>,
    /// Its component.
    pub component: String,
    /// Its state.
    pub state: LineState,
}

/// The state of one line.
#[derive(Debug, Clone, PartialEq)]
pub enum LineState {
    /// It has an object.
    Object(ObjectState),
    /// The user does not want it.
    NotWanted(Exclusion),
    /// It is unclear whether the user wants it, so it is left as it is.
    Unclear(Exclusion),
    /// The advisor governs it, and the autopilot has no object of it.
    Governed {
        /// The `VirtPlatformConfig`.
        by: String,
    },
    /// It does not apply to this cluster.
    NotApplicable(Exclusion),
    /// It cannot be rendered.
    Error(String),
}

/// The changes of one pool that wait for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingForPool {
    /// The pool, or all pools that these changes concern, separated by commas.
    pub pool: String,
    /// What would have to be approved, each with its object.
    pub changes: Vec<(Digest, String)>,
}

/// What waits for an approval and restarts nodes, by pool: together it is one rollout. What nobody can approve yet is not among it.
pub fn waiting_by_pool(lines: &[StatusLine]) -> Vec<WaitingForPool> {
    let mut pools: BTreeMap<String, Vec<(Digest, String)>> = BTreeMap::new();
    for line in lines {
        let LineState::Object(ObjectState::Held(Reason::NeedsApproval { digest: Some(digest), restarts, .. })) =
            &line.state
        else {
            continue;
        };
        let Scope::Pools(of) = &restarts.scope else { continue };
        let object = line.key.as_ref().map_or_else(|| line.component.clone(), ToString::to_string);
        if !of.is_empty() {
            // Whoever approves it for one pool would restart the nodes of the others, too.
            pools.entry(of.join(",")).or_default().push((*digest, object));
        }
    }
    pools.into_iter().map(|(pool, changes)| WaitingForPool { pool, changes }).collect()
}

impl Core {
    /// The state of every asset in the catalogue's order, then of the objects of former releases that still exist.
    pub fn status(&self) -> Vec<StatusLine> {
        let mut lines: Vec<StatusLine> = self.outcomes().iter().map(|outcome| self.line(outcome)).collect();
        for (key, asset, state) in self.objects_to_remove(Cause::Tombstone) {
            let (key, component) = (Some(key.clone()), key.kind.kind.clone());
            lines.push(StatusLine { asset: asset.to_owned(), key, component, state: LineState::Object(state.clone()) });
        }
        lines
    }

    fn line(&self, outcome: &Outcome) -> StatusLine {
        let (mut key, known) = (None, outcome.key.clone());
        let state = match &outcome.result {
            AssetResult::Included(object)
            | AssetResult::Filtered(object)
            | AssetResult::Governed { object: Some(object), .. } => {
                key = Some(object.key.clone());
                LineState::Object(self.state(&object.key).unwrap_or(ObjectState::Unknown))
            }
            AssetResult::Governed { by, object: None } => {
                key = known;
                LineState::Governed { by: by.clone() }
            }
            AssetResult::Unwanted { why, object, .. } => {
                key = object.as_ref().map(|object| object.key.clone());
                let state = key.as_ref().and_then(|key| self.removal_state(key));
                state.map_or_else(|| LineState::NotWanted(why.clone()), LineState::Object)
            }
            AssetResult::Excluded(why @ Exclusion::Off) => LineState::NotWanted(why.clone()),
            AssetResult::Excluded(why @ Exclusion::Unclear(_)) => {
                key = known;
                LineState::Unclear(why.clone())
            }
            AssetResult::Excluded(why) => LineState::NotApplicable(why.clone()),
            AssetResult::Missing { need, .. } => LineState::NotApplicable(Exclusion::Missing(need.clone())),
            AssetResult::Needs(_) => {
                key = known;
                LineState::Object(ObjectState::Unknown)
            }
            AssetResult::Error(why) => LineState::Error(why.clone()),
        };
        StatusLine { asset: outcome.asset.clone(), key, component: outcome.component.clone(), state }
    }

    /// The state of an object that is to be removed and exists. Where its kind is not served, there is none.
    fn removal_state(&self, key: &Key) -> Option<ObjectState> {
        let is_removal = self.removal_cause(key).is_some() && self.is_served(&key.kind);
        self.state(key).filter(|state| is_removal && *state != ObjectState::Gone)
    }
}

/// Why it is so; nothing where the name says it all.
impl fmt::Display for LineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineState::Object(state) => match state {
                ObjectState::InSync | ObjectState::Gone => Ok(()),
                ObjectState::Deleting => write!(f, "its deletion is not complete yet"),
                ObjectState::Unknown => write!(f, "it could not be read, or changes too fast"),
                ObjectState::Held(reason) => reason.fmt(f),
                ObjectState::ToCreate => write!(f, "it does not exist"),
                ObjectState::ToChange => write!(f, "it differs from what is wanted"),
                ObjectState::ToDelete | ObjectState::ToHandBack => write!(f, "it is not wanted any more"),
            },
            LineState::NotWanted(why) | LineState::Unclear(why) | LineState::NotApplicable(why) => why.fmt(f),
            LineState::Governed { by } => Reason::Governed { by: by.clone() }.fmt(f),
            LineState::Error(why) => f.write_str(why),
        }
    }
}
