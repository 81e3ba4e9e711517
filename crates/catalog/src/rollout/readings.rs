//! What was read of pools and their rendered configurations, and what an estimate still needs.

use super::contents::Contents;
use super::contribution::Contribution;
use super::disruption::DisruptionPolicy;
use super::estimate::{Configuration, PoolChange, is_explained, pool_change};
use super::nodes::{Estimate, PoolEstimate};
use crate::cluster::pool::Pool;
use change::restarts::NodeEffect;
use std::collections::{BTreeMap, BTreeSet};

/// A change of one object.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The name of the object.
    pub name: &'a str,
    /// What it brings in now, if it exists.
    pub before: Option<&'a Contribution>,
    /// What it is to bring in, unless it is to be deleted.
    pub after: Option<&'a Contribution>,
}

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Readings {
    /// Pools by name that were read after their watch has reported them; `None` for one that does not exist.
    pub pools: BTreeMap<String, Option<Pool>>,
    /// Rendered configurations by name, whose content never changes; `None` for one that does not exist.
    pub configurations: BTreeMap<String, Option<Configuration>>,
    /// MachineConfigs by name; `None` for one that does not exist.
    pub sources: BTreeMap<String, Option<Contents>>,
}

/// Something that has to be read first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// A rendered configuration.
    Configuration(String),
    /// A MachineConfig that it was rendered from.
    Source(String),
}

impl Change<'_> {
    /// Whether the object does not say which pools it is for.
    pub fn is_vague(&self) -> bool {
        self.before.or(self.after).is_some_and(Contribution::is_vague)
    }

    /// Whether its effect can be told by content.
    pub fn has_contents(&self) -> bool {
        let is_told =
            |side: Option<&Contribution>| side.is_none_or(|side| side.is_told_by_content(self.before.is_none()));
        is_told(self.before) && is_told(self.after)
    }

    /// The pools among these that it concerns.
    pub fn pools<'p>(&self, pools: impl Iterator<Item = &'p Pool>) -> Vec<&'p Pool> {
        let concerns = |side: Option<&Contribution>, pool: &Pool| side.is_some_and(|side| side.is_for(pool));
        pools.filter(|pool| concerns(self.before, pool) || concerns(self.after, pool)).collect()
    }
}

impl Readings {
    /// What a change does to the pools that it concerns, among those that are watched; the error is what has to be read first.
    pub fn estimate(
        &self,
        change: &Change<'_>,
        watched: &BTreeMap<String, Pool>,
        policy: &DisruptionPolicy,
    ) -> Result<Estimate, BTreeSet<Unread>> {
        let (mut pools, mut unread) = (Vec::new(), BTreeSet::new());
        for known in change.pools(watched.values()) {
            let pool = match self.pools.get(&known.name) {
                Some(Some(pool)) => pool,
                Some(None) => continue,
                None => known,
            };
            match self.pool(change, pool, policy) {
                Ok(estimate) => pools.push(estimate),
                Err(needed) => unread.extend(needed),
            }
        }
        if unread.is_empty() { Ok(Estimate { pools, is_vague: change.is_vague() }) } else { Err(unread) }
    }

    fn pool(
        &self,
        change: &Change<'_>,
        pool: &Pool,
        policy: &DisruptionPolicy,
    ) -> Result<PoolEstimate, BTreeSet<Unread>> {
        let unknown = |rendered_at| PoolEstimate { pool: pool.clone(), change: None, rendered_at };
        if !change.has_contents() || pool.wanted_configuration.is_empty() {
            return Ok(unknown(None));
        }
        // The nodes of a paused pool run something older than what was rendered; both count as what they run.
        let mut names = vec![&pool.wanted_configuration];
        if pool.paused && !pool.running_configuration.is_empty() {
            names.insert(0, &pool.running_configuration);
        }
        let missing: BTreeSet<Unread> = names
            .iter()
            .filter(|name| !self.configurations.contains_key(**name))
            .map(|name| Unread::Configuration((*name).clone()))
            .collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let mut first = None;
        for name in names {
            let Some(Some(configuration)) = self.configurations.get(name) else { return Ok(unknown(None)) };
            let side = |side: Option<&'_ Contribution>| {
                side.filter(|side| side.is_for(pool)).and_then(|side| side.contents.clone())
            };
            let (before, after) = (side(change.before), side(change.after));
            let mut found = pool_change(configuration, pool, change.name, before.as_ref(), after.as_ref(), policy);
            if found.effect == NodeEffect::None
                && !self.is_explained(configuration, pool, change.name, (before.as_ref(), after.as_ref()))?
            {
                found =
                    PoolChange { changed: vec!["what other objects bring in".to_owned()], effect: NodeEffect::Restart };
            }
            let rendered_at = configuration.rendered_at;
            let estimate = PoolEstimate { pool: pool.clone(), change: Some(found), rendered_at };
            if estimate.change.as_ref().is_some_and(|change| change.effect == NodeEffect::None) {
                return Ok(estimate);
            }
            first.get_or_insert(estimate);
        }
        Ok(first.unwrap_or_else(|| unknown(None)))
    }

    /// Whether a configuration is what an object and all others that the pool takes are rendered into, as far as that can be told.
    fn is_explained(
        &self,
        configuration: &Configuration,
        pool: &Pool,
        name: &str,
        (before, after): (Option<&Contents>, Option<&Contents>),
    ) -> Result<bool, BTreeSet<Unread>> {
        let others = || pool.sources.iter().filter(|source| *source != name);
        let unread: BTreeSet<Unread> =
            others().filter(|source| !self.sources.contains_key(*source)).cloned().map(Unread::Source).collect();
        if !unread.is_empty() {
            return Err(unread);
        }
        let known: Option<BTreeMap<&str, &Contents>> =
            others().map(|source| Some((source.as_str(), self.sources.get(source)?.as_ref()?))).collect();
        let nothing = Contents::default();
        let after = after.unwrap_or(&nothing);
        Ok(known.is_some_and(|others| is_explained(configuration, name, (before, after), &others)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Readings, Unread};
    use crate::cluster::pool::{Pool, ROLE};
    use crate::cluster::selector::Selector;
    use crate::rollout::{Configuration, Contribution, DisruptionPolicy};
    use change::Kind;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn pool(name: &str) -> Pool {
        let configuration = format!("rendered-{name}-1");
        Pool {
            name: name.into(),
            machine_config_selector: Selector::of(ROLE, name),
            wanted_configuration: configuration.clone(),
            running_configuration: configuration,
            ..Pool::default()
        }
    }

    fn ours(role: &str, argument: &str) -> Contribution {
        let object = json!({"metadata": {"labels": {ROLE: role}}, "spec": {"kernelArguments": [argument]}});
        Contribution::of(&Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig"), &object)
    }

    fn running(spec: &Value) -> Option<Configuration> {
        Some(Configuration::of(&json!({"spec": spec})))
    }

    #[test]
    fn what_pools_run_is_read_first() {
        let watched: BTreeMap<String, Pool> = ["worker", "infra"].map(|name| (name.to_owned(), pool(name))).into();
        let (mut readings, policy, after) = (Readings::default(), DisruptionPolicy::default(), ours("worker", "quiet"));
        let change = Change { name: "ours", before: None, after: Some(&after) };
        let missing = |readings: &Readings| readings.estimate(&change, &watched, &policy).unwrap_err();
        assert_eq!(missing(&readings), [Unread::Configuration("rendered-worker-1".into())].into());
        readings.configurations.insert("rendered-worker-1".into(), running(&json!({})));
        let estimate = readings.estimate(&change, &watched, &policy).unwrap();
        assert_eq!(estimate.pools[0].change.as_ref().unwrap().changed, ["kernel argument quiet"]);
        assert!(!estimate.is_vague, "it says which pools it is for");
        readings.configurations.insert("rendered-worker-1".into(), None);
        assert_eq!(readings.estimate(&change, &watched, &policy).unwrap().pools[0].change, None, "it is gone");
        readings.pools.insert("worker".into(), None);
        assert_eq!(readings.estimate(&change, &watched, &policy).unwrap().pools, []);
    }

    #[test]
    fn an_object_that_moves_to_another_pool_leaves_the_first() {
        let watched: BTreeMap<String, Pool> = ["worker", "infra"].map(|name| (name.to_owned(), pool(name))).into();
        let mut readings = Readings::default();
        for name in ["worker", "infra"] {
            let sources = vec!["ours".to_owned()];
            readings.pools.insert(name.into(), Some(Pool { sources, ..pool(name) }));
        }
        readings.configurations.insert("rendered-worker-1".into(), running(&json!({"kernelArguments": ["quiet"]})));
        readings.configurations.insert("rendered-infra-1".into(), running(&json!({})));
        let (before, after) = (ours("worker", "quiet"), ours("infra", "quiet"));
        let change = Change { name: "ours", before: Some(&before), after: Some(&after) };
        let estimate = readings.estimate(&change, &watched, &DisruptionPolicy::default()).unwrap();
        let changed = estimate.pools.iter().map(|pool| pool.change.as_ref().unwrap().changed.len());
        assert_eq!(changed.collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn what_cannot_be_told_by_content_needs_no_reads() {
        let watched: BTreeMap<String, Pool> = [("worker".to_owned(), pool("worker"))].into();
        let vague = Contribution::of(&Kind::new("performance.openshift.io/v2", "PerformanceProfile"), &json!({}));
        let change = Change { name: "p", before: Some(&vague), after: None };
        let estimate = Readings::default().estimate(&change, &watched, &DisruptionPolicy::default()).unwrap();
        assert!(estimate.is_vague && estimate.pools.len() == 1 && estimate.pools[0].change.is_none());
    }

    #[test]
    fn a_change_is_free_only_if_all_that_the_pool_runs_is_from_known_objects() {
        let arguments = |list: &[&str]| {
            let object = json!({"metadata": {"labels": {ROLE: "worker"}}, "spec": {"kernelArguments": list}});
            Contribution::of(&Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig"), &object)
        };
        let sources = ["a-theirs", "ours"].map(str::to_owned).to_vec();
        let watched: BTreeMap<String, Pool> = [("worker".to_owned(), Pool { sources, ..pool("worker") })].into();
        let (before, after) = (arguments(&["loud"]), arguments(&["quiet"]));
        let change = Change { name: "ours", before: Some(&before), after: Some(&after) };
        let policy = DisruptionPolicy::default();
        let changes_nothing = |running: &[&str], theirs: &[&str]| {
            let mut readings = Readings::default();
            readings
                .configurations
                .insert("rendered-worker-1".into(), self::running(&json!({"kernelArguments": running})));
            let missing = readings.estimate(&change, &watched, &policy);
            if let Err(missing) = missing {
                assert_eq!(missing, [Unread::Source("a-theirs".into())].into());
                readings.sources.insert("a-theirs".into(), arguments(theirs).contents);
            }
            readings.estimate(&change, &watched, &policy).unwrap().changes_nothing()
        };
        assert!(changes_nothing(&["x", "quiet"], &["x"]));
        assert!(!changes_nothing(&["quiet"], &["quiet"]), "it is theirs, and ours is appended");
        assert!(!changes_nothing(&["quiet", "x"], &["x"]), "another order");
        assert!(!changes_nothing(&["x", "loud"], &["x"]));
    }

    #[test]
    fn what_a_paused_pool_runs_and_what_was_rendered_for_it_both_count() {
        let file = json!({"path": "/etc/a", "mode": 420, "contents": {"source": "data:,a"}});
        let spec = json!({"config": {"storage": {"files": [file]}}});
        let object = json!({"metadata": {"labels": {ROLE: "worker"}}, "spec": spec});
        let after = Contribution::of(&Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig"), &object);
        let change = Change { name: "ours", before: None, after: Some(&after) };
        let estimate = |paused: bool, running: &str, configurations: &[(&str, &Value)]| {
            let (wanted_configuration, running_configuration) = ("new".to_owned(), running.to_owned());
            let pool = Pool { paused, wanted_configuration, running_configuration, ..pool("worker") };
            let mut readings = Readings::default();
            for (name, spec) in configurations {
                readings.configurations.insert((*name).to_owned(), self::running(spec));
            }
            let estimate =
                readings.estimate(&change, &[("worker".to_owned(), pool)].into(), &DisruptionPolicy::default());
            estimate.map(|estimate| estimate.changes_nothing())
        };
        let (with, without) = (&spec, &json!({}));
        let unread = |names: &[&str]| Err(names.iter().map(|name| Unread::Configuration((*name).to_owned())).collect());
        assert_eq!(estimate(true, "old", &[]), unread(&["new", "old"]));
        assert_eq!(estimate(false, "old", &[]), unread(&["new"]), "its nodes follow");
        assert_eq!(estimate(true, "", &[]), unread(&["new"]), "it runs nothing yet");
        assert_eq!(estimate(true, "old", &[("old", with), ("new", without)]), Ok(true));
        assert_eq!(estimate(true, "old", &[("old", without), ("new", with)]), Ok(true));
        assert_eq!(estimate(true, "old", &[("old", without), ("new", without)]), Ok(false));
        assert_eq!(estimate(false, "old", &[("old", with), ("new", without)]), Ok(false));
    }
}
