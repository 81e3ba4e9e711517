//! What waits for an approval, also if it has one, and what happens once it is approved.

use super::record::Record;
use crate::command::evaluation::Evaluation;
use autopilot::plan::Item;
use autopilot::{Core, LineState, ObjectState, Previews, StatusLine};
use catalog::Catalog;
use change::restarts::Scope;
use change::{Consent, Digest, Key, Reason};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One question: a change of one object, or many deletions.
pub(super) struct Change {
    /// Nothing if the operator has not asked yet.
    pub(super) digest: Option<Digest>,
    pub(super) objects: Vec<Object>,
    /// The pools whose nodes restart, separated by commas.
    pub(super) pool: Option<String>,
    /// Whether one edit deletes many objects.
    pub(super) is_deletions: bool,
    /// Why a person has to decide, if the change itself does not show it.
    pub(super) note: Option<String>,
}

pub(super) struct Object {
    pub(super) asset: String,
    /// Its asset, and the groups and features that the asset is part of.
    pub(super) names: BTreeSet<String>,
    pub(super) key: Option<Key>,
    pub(super) item: Option<Item>,
}

pub(super) type Names = BTreeMap<String, BTreeSet<String>>;

/// What waits, and what was approved.
pub(super) struct Waiting {
    pub(super) core: Core,
    pub(super) changes: Vec<Change>,
    /// Every asset with its names and those of the groups and features that it is part of.
    pub(super) names: Names,
    pub(super) approved: BTreeSet<Digest>,
    pub(super) records: Vec<Record>,
}

impl Waiting {
    /// Looks at the cluster as if nothing were approved, so that everything that needs an approval says so.
    pub(super) fn look(evaluation: &Evaluation) -> anyhow::Result<Waiting> {
        let catalog = evaluation.catalog()?;
        let names = names(&catalog);
        let core = evaluation.evaluate_with(catalog, Previews::Diff, Some(BTreeSet::new()))?;
        Ok(Waiting::of(core, names))
    }

    /// What a core has found.
    pub(super) fn of(core: Core, names: Names) -> Waiting {
        let annotation = |name: &str| core.facts().hco["metadata"]["annotations"][name].as_str().unwrap_or_default();
        let (approved, records) =
            (digests(annotation(api::annotation::APPROVED)), Record::read(annotation(api::annotation::APPROVED_BY)));
        Waiting { changes: changes(&core, &names), names, approved, records, core }
    }

    pub(super) fn is_approved(&self, digest: &Digest) -> bool {
        self.approved.contains(digest)
    }

    pub(super) fn record(&self, digest: &Digest) -> Option<&Record> {
        self.records.iter().find(|record| record.digest == *digest)
    }

    /// The objects of an asset, group or feature, each in one word.
    pub(super) fn objects_of(&self, name: &str) -> BTreeSet<String> {
        let is_named = |asset: &str| {
            let mut names = self.names.get(asset).into_iter().flatten();
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        let lines = self.core.status().into_iter().filter(|line| is_named(&line.asset));
        lines.filter_map(|line| line.key.as_ref().map(word)).collect()
    }

    pub(super) fn annotations(&self) -> &Value {
        &self.core.facts().hco["metadata"]["annotations"]
    }

    /// The state of everything once these digests are approved, too.
    pub(super) fn after(&self, evaluation: &Evaluation, digests: &[Digest]) -> anyhow::Result<Vec<StatusLine>> {
        let approved = self.approved.iter().chain(digests).copied().collect();
        Ok(evaluation.evaluate_with(evaluation.catalog()?, Previews::Off, Some(approved))?.status())
    }
}

/// The digests in a text.
pub(super) fn digests(text: &str) -> BTreeSet<Digest> {
    Consent::digests(text).filter_map(Digest::parse).collect()
}

/// Every asset with its names and those of the groups and features that it is part of.
pub(super) fn names(catalog: &Catalog) -> Names {
    let of = |asset: &catalog::Asset| {
        let mut names: BTreeSet<String> = asset.names().map(str::to_owned).collect();
        let features = catalog.features.iter().filter(|feature| {
            feature.name == asset.name || feature.assets.iter().chain(&feature.groups).any(|name| names.contains(name))
        });
        let features: Vec<String> = features.map(|feature| feature.name.clone()).collect();
        names.extend(features);
        (asset.name.clone(), names)
    };
    catalog.assets.iter().map(of).collect()
}

fn changes(core: &Core, names: &Names) -> Vec<Change> {
    let (plan, mut changes) = (core.plan(), Vec::<Change>::new());
    for StatusLine { asset, key, state, .. } in core.status() {
        let LineState::Object(ObjectState::Held(reason)) = state else { continue };
        let (digest, pool) = match &reason {
            Reason::NeedsApproval { digest, restarts, .. } => (
                *digest,
                match &restarts.scope {
                    Scope::Pools(pools) if !pools.is_empty() => Some(pools.join(",")),
                    _ => None,
                },
            ),
            reason if reason.asked().is_some() => (reason.asked().copied(), None),
            _ => continue,
        };
        let item = plan.items.iter().find(|item| item.asset == asset && item.object == key).cloned();
        let names = names.get(&asset).cloned().unwrap_or_else(|| BTreeSet::from([asset.clone()]));
        let object = Object { asset, names, key, item };
        match changes.iter_mut().find(|change| digest.is_some() && change.digest == digest) {
            Some(change) => change.objects.push(object),
            None => {
                let is_deletions = matches!(reason, Reason::ManyDeletions { .. });
                let note = match reason {
                    Reason::LeftBehind { .. } => Some("it has no origin annotation, so it may not be ours".to_owned()),
                    _ => None,
                };
                changes.push(Change { digest, objects: vec![object], pool, is_deletions, note });
            }
        }
    }
    changes
}

impl Object {
    /// The object in one word.
    pub(super) fn word(&self) -> String {
        self.key.as_ref().map_or_else(|| self.asset.clone(), word)
    }
}

/// `Kind/name` or `Kind/namespace/name`.
pub(super) fn word(Key { kind, namespace, name }: &Key) -> String {
    if namespace.is_empty() { format!("{}/{name}", kind.kind) } else { format!("{}/{namespace}/{name}", kind.kind) }
}

impl Change {
    /// What it is about, in one word.
    pub(super) fn word(&self) -> String {
        match self.objects.as_slice() {
            [object] => object.word(),
            objects => format!("deletion-of-{}-objects", objects.len()),
        }
    }

    /// What a person types to name it, and what it is.
    pub(super) fn with_name(&self) -> String {
        match self.objects.as_slice() {
            [object] => format!("{} {self}", object.asset),
            _ => format!("--deletions {self}"),
        }
    }
}

/// The digest and the object.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = self.digest.map_or_else(|| "not asked yet".to_owned(), |digest| digest.short());
        match self.objects.as_slice() {
            [object] => {
                let key = object.key.as_ref().map_or_else(|| object.asset.clone(), ToString::to_string);
                write!(f, "{digest} ({key})")
            }
            objects => write!(f, "{digest} (deletion of {} objects)", objects.len()),
        }
    }
}

/// What happens after an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    AtOnce,
    /// It waits for something else.
    Waits(String),
    /// It is done already, or another digest is asked for.
    Moved,
}

/// What happens to a change, in a state in which it is approved.
pub(super) fn next(after: &[StatusLine], change: &Change) -> Next {
    let mut next = Next::AtOnce;
    for object in &change.objects {
        let line = after.iter().find(|line| line.asset == object.asset && line.key == object.key);
        let of_object = match line.map(|line| &line.state) {
            Some(LineState::Object(ObjectState::Held(reason))) => match reason {
                Reason::WindowClosed { opens: Some(opens), .. } => Next::Waits(format!("the window opens {opens}")),
                Reason::PoolNotReady { why, .. } => Next::Waits(format!("it waits until the pool is healthy: {why}")),
                Reason::NeedsApproval { .. } => Next::Moved,
                reason if reason.asked().is_some() => Next::Moved,
                reason => Next::Waits(reason.to_string()),
            },
            Some(LineState::Object(ObjectState::InSync | ObjectState::Gone)) | None => Next::Moved,
            Some(LineState::Object(ObjectState::Unknown)) => Next::Waits("its state could not be read".to_owned()),
            Some(LineState::Object(_)) => Next::AtOnce,
            Some(_) => Next::Moved,
        };
        if next == Next::AtOnce || of_object == Next::Moved {
            next = of_object;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::{Change, Next, Object, next};
    use autopilot::{LineState, ObjectState, StatusLine};
    use change::{LeftBehind, Reason, Restarts};
    use std::collections::BTreeSet;

    #[test]
    fn what_happens_next_is_what_the_slowest_object_waits_for() {
        let line = |asset: &str, state: ObjectState| StatusLine {
            asset: asset.to_owned(),
            key: None,
            component: String::new(),
            state: LineState::Object(state),
        };
        let object = |asset: &str| Object { asset: asset.to_owned(), names: BTreeSet::new(), key: None, item: None };
        let of = |states: [ObjectState; 2]| {
            let objects = vec![object("a"), object("b")];
            let change = Change { digest: None, objects, pool: None, is_deletions: true, note: None };
            let [first, second] = states;
            next(&[line("a", first), line("b", second)], &change)
        };
        let restarts = || Box::new(Restarts::default());
        let pool =
            || ObjectState::Held(Reason::PoolNotReady { why: "pool a is updating".to_owned(), restarts: restarts() });
        let window = |opens: Option<&str>| {
            ObjectState::Held(Reason::WindowClosed { opens: opens.map(str::to_owned), restarts: restarts() })
        };
        let asked = ObjectState::Held(Reason::NeedsApproval {
            digest: None,
            restarts: restarts(),
            planned: Box::new(change::Planned::Create),
        });
        let waits = |why: &str| Next::Waits(why.to_owned());
        assert_eq!(of([ObjectState::ToDelete, ObjectState::ToCreate]), Next::AtOnce);
        assert_eq!(
            of([ObjectState::ToChange, pool()]),
            waits("it waits until the pool is healthy: pool a is updating")
        );
        assert_eq!(of([window(Some("Sat 01:00 UTC")), ObjectState::ToChange]), waits("the window opens Sat 01:00 UTC"));
        assert!(
            matches!(of([window(None), pool()]), Next::Waits(why) if why.contains("maintenance-window cannot be read"))
        );
        let kept = ObjectState::Held(Reason::LeftBehind { why: LeftBehind::PruneOff });
        assert!(matches!(of([ObjectState::ToDelete, kept]), Next::Waits(why) if why.contains("--prune=false")));
        assert_eq!(of([pool(), asked]), Next::Moved);
        assert_eq!(of([ObjectState::InSync, pool()]), Next::Moved, "it is done already");
        let unlisted = Change { digest: None, objects: vec![object("c")], pool: None, is_deletions: false, note: None };
        assert_eq!(next(&[line("a", ObjectState::ToCreate)], &unlisted), Next::Moved);
    }
}
