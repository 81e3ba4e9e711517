//! Nodes, pools and cluster-wide settings, kept up to date by watches.

use catalog::{ClusterState, FACT_SOURCES, FactSource, Facts, Node};
use protocol::{Body, WatchEvent, WatchTarget};
use std::collections::BTreeSet;

/// What facts are read from.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    state: ClusterState,
    is_changed: bool,
    /// Targets that must be listed before anything is rendered: a cluster of which nothing is known is not an empty one.
    awaited: BTreeSet<WatchTarget>,
}

impl Surroundings {
    /// The nodes, by name.
    pub(crate) fn nodes(&self) -> &[Node] {
        self.state.nodes()
    }

    /// The targets, each with whether nothing can be rendered before it is listed.
    pub(crate) fn targets() -> impl Iterator<Item = (WatchTarget, bool)> {
        FACT_SOURCES.iter().map(|source| (WatchTarget::all(source.api_version, source.kind), source.first))
    }

    /// Nothing is rendered before this target is listed.
    pub(crate) fn wait_for(&mut self, target: WatchTarget) {
        self.awaited.insert(target);
    }

    /// Whether everything that must be known is known.
    pub(crate) fn is_known(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Takes what a watch reports, if facts are read from it.
    pub(crate) fn observe(&mut self, target: &WatchTarget, event: &WatchEvent) {
        let Some(source) = source_of(target) else { return };
        match event {
            WatchEvent::Present { body: Body::Part(part), .. } => self.state.put(part.clone()),
            WatchEvent::Gone { name, .. } => self.state.retain(source.kind, |known| known != name),
            WatchEvent::Listed { all, .. } => {
                self.state.retain(source.kind, |known| all.contains(&(String::new(), known.to_owned())));
                self.awaited.remove(target);
            }
            WatchEvent::Present { .. } | WatchEvent::Unseen | WatchEvent::WentBack | WatchEvent::Lost { .. } => return,
        }
        self.is_changed = true;
    }

    /// A kind that is not served has no objects.
    pub(crate) fn forget(&mut self, target: &WatchTarget) {
        if let Some(source) = source_of(target) {
            self.state.retain(source.kind, |_| false);
            self.awaited.remove(target);
            self.is_changed = true;
        }
    }

    /// Brings the facts up to date; whether anything that an asset can depend on is different.
    pub(crate) fn update(&mut self, facts: &mut Facts) -> bool {
        std::mem::take(&mut self.is_changed) && self.state.update(facts)
    }
}

fn source_of(target: &WatchTarget) -> Option<&'static FactSource> {
    let fits =
        |source: &&FactSource| source.kind == target.kind.kind && source.api_version == target.kind.api_version();
    FACT_SOURCES.iter().find(fits)
}
