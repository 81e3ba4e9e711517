//! Nodes, pools and cluster-wide settings, kept up to date by watches.

use catalog::rollout::DisruptionPolicy;
use catalog::{ClusterState, FACT_SOURCES, FactSource, Facts, GOVERNING, Node, Pool};
use protocol::{Body, WatchEvent, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};

/// What facts are read from.
#[derive(Debug, Default)]
pub struct Surroundings {
    state: ClusterState,
    is_changed: bool,
    /// Targets that must be listed before anything is rendered: a cluster of which nothing is known is not an empty one.
    awaited: BTreeSet<WatchTarget>,
}

impl Surroundings {
    /// The nodes, by name.
    pub fn nodes(&self) -> &[Node] {
        self.state.nodes()
    }

    /// The pools, by name.
    pub fn pools(&self) -> &BTreeMap<String, Pool> {
        self.state.pools()
    }

    /// After which changes nodes need no restart.
    pub fn disruption_policy(&self) -> &DisruptionPolicy {
        self.state.disruption_policy()
    }

    /// How many virtual machines run on these nodes.
    pub fn virtual_machines_on(&self, nodes: &[String]) -> usize {
        self.state.virtual_machines_on(nodes)
    }

    /// The targets, each with whether nothing can be rendered before it is listed.
    pub fn targets(plans: bool) -> impl Iterator<Item = (WatchTarget, bool)> {
        let sources = FACT_SOURCES.iter().filter(move |source| plans || !source.only_for_plans);
        sources.map(|source| (WatchTarget::all(source.api_version, source.kind), source.first))
    }

    /// What the autopilot watches beside them, to leave to the advisor what the advisor governs.
    pub fn governing() -> WatchTarget {
        WatchTarget::all(GOVERNING.api_version, GOVERNING.kind)
    }

    /// Nothing is rendered before this target is listed.
    pub fn wait_for(&mut self, target: WatchTarget) {
        self.awaited.insert(target);
    }

    /// Whether everything that must be known is known.
    pub fn is_known(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Takes what a watch reports, if facts are read from it. The pools that have changed in a way that a restart of nodes depends on are
    /// returned.
    pub fn observe(&mut self, target: &WatchTarget, event: &WatchEvent) -> Vec<String> {
        let Some(source) = source_of(target) else { return Vec::new() };
        let before: Option<BTreeMap<String, Pool>> =
            (source.kind == "MachineConfigPool").then(|| self.state.pools().clone());
        match event {
            WatchEvent::Present { body: Body::Part(part), .. } => self.state.put(part.clone()),
            WatchEvent::Gone { name, .. } => self.state.retain(source.kind, |known| known != name),
            WatchEvent::Listed { all, .. } => {
                self.state.retain(source.kind, |known| all.contains(&(String::new(), known.to_owned())));
                self.awaited.remove(target);
            }
            WatchEvent::Present { .. } | WatchEvent::Unseen | WatchEvent::WentBack | WatchEvent::Lost { .. } => {
                return Vec::new();
            }
        }
        self.is_changed = true;
        let Some(before) = before else { return Vec::new() };
        let after = self.state.pools();
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let is_changed = |name: &str| before.get(name).map(Pool::condition) != after.get(name).map(Pool::condition);
        let is_first = matches!(event, WatchEvent::Listed { .. });
        names.into_iter().filter(|name| is_first || is_changed(name)).cloned().collect()
    }

    /// A kind that is not served has no objects.
    pub fn forget(&mut self, target: &WatchTarget) {
        if let Some(source) = source_of(target) {
            self.state.retain(source.kind, |_| false);
            self.awaited.remove(target);
            self.is_changed = true;
        }
    }

    /// Brings the facts up to date; whether anything that an asset can depend on is different.
    pub fn update(&mut self, facts: &mut Facts) -> bool {
        std::mem::take(&mut self.is_changed) && self.state.update(facts)
    }
}

fn source_of(target: &WatchTarget) -> Option<&'static FactSource> {
    let fits =
        |source: &&FactSource| source.kind == target.kind.kind && source.api_version == target.kind.api_version();
    FACT_SOURCES.iter().chain([&GOVERNING]).find(fits)
}
