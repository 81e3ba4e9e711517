//! The nodes of pools, and how long their rollout takes.

use super::estimate::PoolChange;
use crate::cluster::node::Node;
use crate::cluster::pool::Pool;
use change::Restarts;
use change::restarts::{NodeEffect, RolloutTime, Scope};
use jiff::Timestamp;

/// A guess: draining and restarting one node of a virtualization cluster.
const MINUTES_A_NODE: u64 = 10;
/// A rollout that took longer for a node waited for somebody, or the pool returned to a configuration that was rendered long ago.
const LONGEST_MINUTES_A_NODE: u64 = 30;

/// What a change does to one pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolEstimate {
    /// The pool.
    pub pool: Pool,
    /// What becomes different; `None` if that is not known.
    pub change: Option<PoolChange>,
    /// When the configuration that its nodes run was rendered: the last rollout began then.
    pub rendered_at: Option<Timestamp>,
}

/// What a change does to all pools that it concerns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The pools.
    pub pools: Vec<PoolEstimate>,
    /// Whether the object does not say which pools it is for, so that these are all of them.
    pub is_vague: bool,
}

impl PoolEstimate {
    fn effect(&self) -> NodeEffect {
        self.change.as_ref().map_or(NodeEffect::Restart, |change| change.effect)
    }

    /// How long its last rollout took for so many rounds.
    fn last_minutes(&self) -> Option<u64> {
        let seconds = self.pool.updated_at?.duration_since(self.rendered_at?).as_secs();
        let minutes = u64::try_from(seconds).ok()?.div_ceil(60);
        let is_done = self.pool.wanted_configuration == self.pool.running_configuration;
        let longest = LONGEST_MINUTES_A_NODE * u64::try_from(self.pool.machine_count).unwrap_or_default();
        (1..=longest).contains(&minutes).then_some(minutes).filter(|_| is_done)
    }

    fn time(&self, nodes: usize) -> RolloutTime {
        let rounds = |machines: usize| machines.div_ceil(self.pool.at_a_time(machines)) as u64;
        let machines = usize::try_from(self.pool.machine_count).unwrap_or_default();
        match self.last_minutes() {
            Some(minutes) => {
                RolloutTime { minutes: (minutes * rounds(nodes)).div_ceil(rounds(machines)), is_measured: true }
            }
            None => RolloutTime { minutes: MINUTES_A_NODE * rounds(nodes), is_measured: false },
        }
    }
}

impl Estimate {
    /// Whether every pool is known to run the result already. Where no pool takes it, nobody runs it.
    pub fn changes_nothing(&self) -> bool {
        !self.pools.is_empty() && self.pools.iter().all(|pool| pool.effect() == NodeEffect::None)
    }

    /// Why the pools cannot take a change now.
    pub fn why_not_ready(&self) -> Option<String> {
        let concerned = self.pools.iter().filter(|estimate| estimate.effect() != NodeEffect::None);
        concerned.filter_map(|estimate| estimate.pool.why_not_ready()).next()
    }

    /// The nodes that restart, in the order of their pools.
    pub fn restarts(&self, nodes: &[Node]) -> Restarts {
        if self.is_vague {
            return Restarts::default();
        }
        let concerned: Vec<&PoolEstimate> =
            self.pools.iter().filter(|estimate| estimate.effect() != NodeEffect::None).collect();
        let effect = concerned.iter().map(|estimate| estimate.effect()).max();
        let effect = effect.unwrap_or(if self.pools.is_empty() { NodeEffect::Restart } else { NodeEffect::None });
        let mut restarts = Restarts { effect, ..Restarts::default() };
        let mut pools = Vec::new();
        for estimate in concerned {
            let pool = &estimate.pool;
            let members = nodes.iter().filter(|node| pool_of(node) == Some(pool.name.as_str()));
            let mut members: Vec<&Node> = members.collect();
            members.sort_by_key(|node| (&node.turn, &node.name));
            let names: Vec<String> = members.into_iter().map(|node| node.name.clone()).collect();
            pools.push(pool.name.clone());
            if names.is_empty() {
                continue;
            }
            restarts.at_a_time =
                Some(restarts.at_a_time.unwrap_or_default() + pool.at_a_time(names.len()).min(names.len()));
            // Pools are rolled out at the same time.
            let time = estimate.time(names.len());
            restarts.time = Some(match restarts.time {
                Some(longest) if longest.minutes >= time.minutes => longest,
                _ => time,
            });
            if pool.paused {
                restarts.paused.push(pool.name.clone());
            }
            restarts.nodes.extend(names);
        }
        restarts.scope = Scope::Pools(pools);
        restarts
    }
}

/// What a restart of the named nodes costs. `machines` are the nodes of all virtual machines that run, if they are known.
pub fn restarts_of(names: &[String], nodes: &[Node], pools: &[Pool], machines: Option<&[String]>) -> Restarts {
    let nodes: Vec<Node> = nodes.iter().filter(|node| names.contains(&node.name)).cloned().collect();
    let is_concerned = |pool: &&Pool| nodes.iter().any(|node| pool_of(node) == Some(pool.name.as_str()));
    let estimate = |pool: &Pool| PoolEstimate { pool: pool.clone(), change: None, rendered_at: None };
    let pools = pools.iter().filter(is_concerned).map(estimate).collect();
    let virtual_machines = machines.map(|machines| machines.iter().filter(|node| names.contains(node)).count());
    let estimate = Estimate { pools, is_vague: false }.restarts(&nodes);
    Restarts { nodes: names.to_vec(), virtual_machines, ..estimate }
}

/// The pool of a node: the one whose configuration it is to run or, before there is any, the one of its role. A master is in no other pool,
/// and a custom pool takes a worker from the pool `worker`.
pub fn pool_of(node: &Node) -> Option<&str> {
    if let Some(pool) = &node.pool {
        return Some(pool);
    }
    let has = |role: &str| node.has_role(role);
    if has("master") || has("control-plane") {
        return Some("master");
    }
    let custom = node.roles.iter().find(|role| *role != "worker");
    custom.map(String::as_str).or_else(|| has("worker").then_some("worker"))
}

#[cfg(test)]
mod tests {
    use super::{Estimate, PoolEstimate, pool_of};
    use crate::cluster::node::Node;
    use crate::cluster::pool::Pool;
    use crate::rollout::PoolChange;
    use change::restarts::NodeEffect;

    fn node(name: &str, roles: &[&str], pool: Option<&str>) -> Node {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        Node { name: name.into(), roles, pool: pool.map(str::to_owned), ..Node::default() }
    }

    fn pool(name: &str, machines: i64) -> Pool {
        let (machine_count, updated_machine_count) = (machines, machines);
        Pool { name: name.into(), machine_count, updated_machine_count, is_observed: true, ..Pool::default() }
    }

    fn estimate(pool: Pool, effect: Option<NodeEffect>) -> PoolEstimate {
        let change = effect.map(|effect| PoolChange { changed: Vec::new(), effect });
        PoolEstimate { pool, change, rendered_at: None }
    }

    fn of(pools: Vec<PoolEstimate>) -> Estimate {
        Estimate { pools, is_vague: false }
    }

    #[test]
    fn a_node_is_in_one_pool() {
        for (roles, configured, expected) in [
            (&["worker"][..], None, Some("worker")),
            (&["worker", "infra"], None, Some("infra")),
            (&["control-plane", "master", "worker"], None, Some("master")),
            (&["control-plane"], None, Some("master")),
            (&["master"], None, Some("master")),
            (&["worker"], Some("infra"), Some("infra")),
            (&[], None, None),
        ] {
            assert_eq!(pool_of(&node("n", roles, configured)), expected, "{roles:?}");
        }
    }

    #[test]
    fn nodes_restart_in_every_pool_that_runs_something_else() {
        let nodes =
            [node("i0", &["worker", "infra"], None), node("w0", &["worker"], None), node("w1", &["worker"], None)];
        let restart = Some(NodeEffect::Restart);
        let (worker, infra) =
            (|effect| estimate(pool("worker", 2), effect), |effect| estimate(pool("infra", 1), effect));
        let printed = |pools: Vec<PoolEstimate>| of(pools).restarts(&nodes).to_string();
        assert_eq!(
            printed(vec![worker(restart), infra(restart)]),
            "restarts 3 nodes of the pools worker, infra: w0, w1, i0, 2 at a time"
        );
        assert_eq!(
            printed(vec![worker(None), infra(Some(NodeEffect::None))]),
            "restarts 2 nodes of pool worker: w0, w1, one at a time"
        );
        let reload = printed(vec![worker(Some(NodeEffect::Reload))]);
        assert_eq!(reload, "reloads, without a restart, 2 nodes of pool worker: w0, w1, one at a time");
        assert_eq!(printed(vec![infra(Some(NodeEffect::None))]), "restarts no node");
        assert_eq!(printed(vec![]), "restarts no node: no pool takes it");
        let vague = Estimate { is_vague: true, ..of(vec![worker(None)]) };
        assert_eq!(
            vague.restarts(&nodes).to_string(),
            "restarts the nodes it selects, which may be all of the cluster"
        );
        let paused = estimate(Pool { paused: true, ..pool("infra", 1) }, restart);
        assert_eq!(
            printed(vec![paused]),
            "restarts one node of pool infra: i0 (pool infra is paused: not before it is resumed)"
        );
    }

    #[test]
    fn pools_are_updated_at_the_same_time_so_the_longest_counts() {
        let nodes =
            [node("i0", &["worker", "infra"], None), node("w0", &["worker"], None), node("w1", &["worker"], None)];
        let (worker, infra) = (|| estimate(pool("worker", 2), None), || estimate(pool("infra", 1), None));
        for pools in [vec![worker(), infra()], vec![infra(), worker()]] {
            let time = of(pools).restarts(&nodes).time.unwrap();
            assert_eq!(time.to_string(), "about 20 min (a guess)");
        }
    }

    #[test]
    fn nodes_are_updated_by_zone_and_the_oldest_first() {
        let node = |name: &str, zone: &str, created: &str| Node {
            turn: (zone.to_owned(), created.to_owned()),
            ..node(name, &["worker"], None)
        };
        let nodes = [node("a", "z2", "1"), node("b", "z1", "2"), node("c", "z1", "1"), node("d", "z1", "1")];
        let restarts = of(vec![estimate(pool("worker", 4), None)]).restarts(&nodes);
        assert_eq!(restarts.nodes, ["c", "d", "b", "a"]);
    }

    #[test]
    fn only_pools_that_run_the_result_need_nothing_and_only_the_others_must_be_ready() {
        let none = Some(NodeEffect::None);
        let broken = || Pool { degraded: true, ..pool("infra", 1) };
        let changes_nothing = |pools: Vec<PoolEstimate>| of(pools).changes_nothing();
        assert!(changes_nothing(vec![estimate(pool("worker", 2), none), estimate(broken(), none)]));
        assert!(!changes_nothing(vec![estimate(pool("worker", 2), none), estimate(broken(), None)]));
        assert!(!changes_nothing(vec![estimate(pool("worker", 2), Some(NodeEffect::Reload))]));
        assert!(!changes_nothing(vec![]), "nobody runs it");
        let why = |pools: Vec<PoolEstimate>| of(pools).why_not_ready();
        assert_eq!(why(vec![estimate(pool("worker", 2), None), estimate(broken(), none)]), None);
        assert_eq!(
            why(vec![estimate(pool("worker", 2), None), estimate(broken(), None)]).as_deref(),
            Some("pool infra is degraded")
        );
    }

    #[test]
    fn the_time_is_that_of_the_last_rollout_or_a_guess() {
        let nodes: Vec<Node> = (0..6).map(|number| node(&format!("w{number}"), &["worker"], None)).collect();
        let time = |took: Option<&str>, most: &str, machines: i64| {
            let updated_at = took.map(|end| format!("2026-01-01T{end}Z").parse().unwrap());
            let pool = Pool { updated_at, max_unavailable: Some(most.into()), ..pool("worker", machines) };
            let rendered_at = Some("2026-01-01T00:00:00Z".parse().unwrap());
            let time = of(vec![PoolEstimate { pool, change: None, rendered_at }]).restarts(&nodes).time;
            time.map(|time| time.to_string()).unwrap_or_default()
        };
        assert_eq!(time(None, "1", 6), "about 60 min (a guess)");
        assert_eq!(time(None, "4", 6), "about 20 min (a guess)");
        assert_eq!(time(Some("00:24:00"), "1", 6), "about 24 min");
        assert_eq!(time(Some("00:24:00"), "1", 3), "about 48 min", "there were three machines then");
        assert_eq!(time(Some("00:00:00"), "1", 6), "about 60 min (a guess)", "it is not known");
        assert_eq!(time(Some("01:30:00"), "1", 3), "about 3 h");
        assert_eq!(time(Some("01:31:00"), "1", 3), "about 60 min (a guess)", "nobody restarts nodes so slowly");
    }
}
