//! What was read of pools and their rendered configurations, and what an estimate still needs.

use super::contribution::Contribution;
use super::disruption::DisruptionPolicy;
use super::estimate::{Configuration, pool_change};
use super::nodes::{Estimate, PoolEstimate};
use crate::cluster::pool::Pool;
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
    /// Pools by name; `None` for one that does not exist.
    pub pools: BTreeMap<String, Option<Pool>>,
    /// Rendered configurations by name, whose content never changes; `None` for one that does not exist.
    pub configurations: BTreeMap<String, Option<Configuration>>,
}

/// Something that has to be read first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unread {
    /// A pool.
    Pool(String),
    /// A rendered configuration.
    Configuration(String),
}

impl Change<'_> {
    /// Whether the object does not say which pools it is for.
    pub fn is_vague(&self) -> bool {
        self.before.or(self.after).is_some_and(Contribution::is_vague)
    }

    /// Whether its effect can be told by content.
    fn has_contents(&self) -> bool {
        let is_known = |side: Option<&Contribution>| side.is_none_or(|side| side.contents.is_some());
        is_known(self.before) && is_known(self.after)
    }

    /// The pools among these that it concerns.
    pub fn pools<'p>(&self, pools: impl Iterator<Item = &'p Pool>) -> Vec<&'p Pool> {
        let concerns = |side: Option<&Contribution>, pool: &Pool| side.is_some_and(|side| side.is_for(pool));
        pools.filter(|pool| concerns(self.before, pool) || concerns(self.after, pool)).collect()
    }
}

impl Readings {
    /// What a change does to the pools that it concerns, among those that are watched; the error is what has to be read first. A pool is read
    /// although it is watched, because a watch may be late, and what the nodes run decides whether they restart.
    pub fn estimate(
        &self,
        change: &Change<'_>,
        watched: &BTreeMap<String, Pool>,
        policy: &DisruptionPolicy,
    ) -> Result<Estimate, BTreeSet<Unread>> {
        let (mut pools, mut unread) = (Vec::new(), BTreeSet::new());
        for known in change.pools(watched.values()) {
            if !change.has_contents() {
                pools.push(PoolEstimate { pool: known.clone(), change: None, rendered_at: None });
                continue;
            }
            let pool = match self.pools.get(&known.name) {
                Some(Some(pool)) => pool,
                Some(None) => continue,
                None => {
                    unread.insert(Unread::Pool(known.name.clone()));
                    continue;
                }
            };
            let Some(configuration) = self.configurations.get(&pool.wanted_configuration) else {
                unread.insert(Unread::Configuration(pool.wanted_configuration.clone()));
                continue;
            };
            pools.push(PoolEstimate {
                change: configuration.as_ref().map(|configuration| {
                    let side = |side: Option<&'_ Contribution>| {
                        side.filter(|side| side.is_for(pool)).and_then(|side| side.contents.clone())
                    };
                    let (before, after) = (side(change.before), side(change.after));
                    pool_change(configuration, pool, change.name, before.as_ref(), after.as_ref(), policy)
                }),
                rendered_at: configuration.as_ref().and_then(|configuration| configuration.rendered_at),
                pool: pool.clone(),
            });
        }
        if unread.is_empty() { Ok(Estimate { pools, is_vague: change.is_vague() }) } else { Err(unread) }
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
    fn pools_are_read_first_and_then_what_they_run() {
        let watched: BTreeMap<String, Pool> = ["worker", "infra"].map(|name| (name.to_owned(), pool(name))).into();
        let (mut readings, policy, after) = (Readings::default(), DisruptionPolicy::default(), ours("worker", "quiet"));
        let change = Change { name: "ours", before: None, after: Some(&after) };
        let missing = |readings: &Readings| readings.estimate(&change, &watched, &policy).unwrap_err();
        assert_eq!(missing(&readings), [Unread::Pool("worker".into())].into());
        readings.pools.insert("worker".into(), Some(pool("worker")));
        assert_eq!(missing(&readings), [Unread::Configuration("rendered-worker-1".into())].into());
        readings.configurations.insert("rendered-worker-1".into(), running(&json!({})));
        let estimate = readings.estimate(&change, &watched, &policy).unwrap();
        assert_eq!(estimate.pools[0].change.as_ref().unwrap().changed, ["kernel argument quiet"]);
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
}
