//! Follows the rollouts of pools, whoever started them, and counts restarts of nodes.

use super::Core;
use crate::notice::{Notice, Rollout, RolloutState};
use catalog::Pool;
use catalog::rollout::pool_of;
use std::collections::BTreeMap;

/// What was reported last of each pool, and what each node booted with.
#[derive(Debug, Default)]
pub(crate) struct Rollouts {
    pools: BTreeMap<String, Rollout>,
    /// The last state of each pool that has an event.
    reported: BTreeMap<String, RolloutState>,
    /// By node.
    boots: BTreeMap<String, String>,
}

impl Core {
    /// The pools whose nodes do not all run what they should.
    pub fn unfinished_rollouts(&self) -> impl Iterator<Item = Rollout> {
        self.surroundings.pools().values().map(rollout).filter(|rollout| rollout.state != RolloutState::Done)
    }

    /// Reports how far the rollouts of pools are, if that has changed.
    pub(super) fn follow_rollouts(&mut self) {
        let now: BTreeMap<String, Rollout> =
            self.surroundings.pools().iter().map(|(name, pool)| (name.clone(), rollout(pool))).collect();
        let mut notices = Vec::new();
        for (name, rollout) in &now {
            let last = self.rollouts.pools.get(name);
            if last != Some(rollout) {
                let before = self.rollouts.reported.get(name).copied();
                notices.push(Notice::Rollout { rollout: rollout.clone(), before });
                // A pool that is degraded again and again is reported once, until it is done.
                if before != Some(RolloutState::Degraded) || rollout.state == RolloutState::Done {
                    self.rollouts.reported.insert(name.clone(), rollout.state);
                }
            }
        }
        let gone = self.rollouts.pools.keys().filter(|name| !now.contains_key(*name));
        notices.extend(gone.map(|name| Notice::PoolGone(name.clone())));
        self.rollouts.pools = now;
        notices.into_iter().for_each(|notice| self.notify(notice));
    }

    /// Reports nodes that have restarted.
    pub(super) fn count_restarts(&mut self) {
        let mut boots = BTreeMap::new();
        let mut notices = Vec::new();
        for node in self.surroundings.nodes().iter().filter(|node| !node.boot_id.is_empty()) {
            let last = self.rollouts.boots.get(&node.name);
            if last.is_some_and(|last| *last != node.boot_id) {
                let pool = pool_of(node).unwrap_or_default().to_owned();
                notices.push(Notice::NodeRestarted { node: node.name.clone(), pool });
            }
            boots.insert(node.name.clone(), node.boot_id.clone());
        }
        self.rollouts.boots = boots;
        notices.into_iter().for_each(|notice| self.notify(notice));
    }
}

fn rollout(pool: &Pool) -> Rollout {
    let is_behind = pool.why_not_ready().is_some() || pool.wanted_configuration != pool.running_configuration;
    let state = match (pool.degraded, is_behind, pool.paused) {
        (true, _, _) => RolloutState::Degraded,
        (false, false, _) => RolloutState::Done,
        (false, true, true) => RolloutState::Paused,
        (false, true, false) => RolloutState::Updating,
    };
    Rollout { pool: pool.name.clone(), state, updated: pool.updated_machine_count, machines: pool.machine_count }
}
