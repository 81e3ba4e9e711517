//! Which nodes restart when an object is written, in which order, and for how long.

use serde::Serialize;
use std::fmt;

/// More names than these are counted.
const NAMED: usize = 5;

/// What a write does to nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Restarts {
    /// Whether they restart at all.
    pub effect: NodeEffect,
    /// Which nodes of the cluster they are.
    pub scope: Scope,
    /// Their names in the order in which they restart, as far as the scope tells them.
    pub nodes: Vec<String>,
    /// How many of them restart at a time, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<usize>,
    /// The pools that are paused: their nodes restart when they are resumed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paused: Vec<String>,
    /// How long that takes, as far as it can be estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<RolloutTime>,
    /// How many virtual machines run on them, if that was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_machines: Option<usize>,
}

/// What a change of their configuration does to nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NodeEffect {
    /// Nothing: they run it already.
    None,
    /// They take it without a restart.
    Reload,
    /// They restart, or it is not known whether they do.
    #[default]
    Restart,
}

/// Which nodes of the cluster restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Those that the object selects, in a way that is not evaluated here.
    #[default]
    Selected,
    /// Those of these pools.
    Pools(Vec<String>),
    /// All of them.
    Cluster,
}

/// How long a rollout takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolloutTime {
    /// In minutes.
    pub minutes: u64,
    /// Whether the last rollout of the pool took so long for each node; else it is a guess.
    pub is_measured: bool,
}

impl Restarts {
    /// Whether a node restarts.
    pub fn is_any(&self) -> bool {
        self.effect == NodeEffect::Restart && !(self.nodes.is_empty() && matches!(self.scope, Scope::Pools(_)))
    }

    /// How long it takes and how many virtual machines have to move, as far as that is known.
    pub fn cost(&self) -> String {
        let time = self.time.map(|time| time.to_string());
        let machines = self.virtual_machines.map(|count| match count {
            0 => "no VM has to move".to_owned(),
            1 => "1 VM moves".to_owned(),
            count => format!("{count} VMs move"),
        });
        let cost: Vec<String> = [time, machines].into_iter().flatten().filter(|_| self.is_any()).collect();
        cost.join(", ")
    }

    fn nodes(&self) -> String {
        let (all, of) = match &self.scope {
            Scope::Selected => return "the nodes it selects, which may be all of the cluster".to_owned(),
            Scope::Pools(pools) if pools.is_empty() => return "no node: no pool takes it".to_owned(),
            Scope::Pools(pools) if pools.len() > 1 => ("", format!("of the pools {}", pools.join(", "))),
            Scope::Pools(pools) => ("", format!("of pool {}", pools.join(", "))),
            Scope::Cluster => ("all ", "of the cluster".to_owned()),
        };
        let (nodes, pace) = (&self.nodes, self.order());
        match nodes.len() {
            0 => format!("the nodes {of} (there are none now)"),
            1 => format!("one node {of}: {}", nodes[0]),
            count if count > NAMED => {
                format!("{all}{count} nodes {of}: {} and {} more{pace}", nodes[..NAMED].join(", "), count - NAMED)
            }
            count => format!("{all}{count} nodes {of}: {}{pace}", nodes.join(", ")),
        }
    }

    fn order(&self) -> String {
        match self.at_a_time {
            None => String::new(),
            Some(1) => ", one at a time".to_owned(),
            Some(count) if count < self.nodes.len() => format!(", {count} at a time"),
            Some(_) => ", all at once".to_owned(),
        }
    }
}

impl fmt::Display for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.effect {
            NodeEffect::None => write!(f, "restarts no node")?,
            NodeEffect::Reload => write!(f, "reloads, without a restart, {}", self.nodes())?,
            NodeEffect::Restart => write!(f, "restarts {}", self.nodes())?,
        }
        match self.paused.as_slice() {
            [] => Ok(()),
            [pool] => write!(f, " (pool {pool} is paused: not before it is resumed)"),
            pools => write!(f, " (the pools {} are paused: not before they are resumed)", pools.join(", ")),
        }
    }
}

impl fmt::Display for RolloutTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guess = if self.is_measured { "" } else { " (a guess)" };
        match self.minutes {
            minutes @ 0..120 => write!(f, "about {minutes} min{guess}"),
            minutes => write!(f, "about {} h{guess}", (minutes + 30) / 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeEffect, Restarts, RolloutTime, Scope};

    fn restarts(pools: &[&str], count: usize) -> Restarts {
        let pools = pools.iter().map(|pool| (*pool).to_owned()).collect();
        let nodes = (1..=count).map(|number| format!("w{number}")).collect();
        Restarts { scope: Scope::Pools(pools), nodes, ..Restarts::default() }
    }

    #[test]
    fn more_than_five_nodes_are_counted() {
        let printed = |count: usize| restarts(&["worker"], count).to_string();
        assert_eq!(printed(0), "restarts the nodes of pool worker (there are none now)");
        assert_eq!(printed(5), "restarts 5 nodes of pool worker: w1, w2, w3, w4, w5");
        assert_eq!(printed(6), "restarts 6 nodes of pool worker: w1, w2, w3, w4, w5 and 1 more");
    }

    #[test]
    fn pools_and_their_order_are_printed_as_far_as_they_are_known() {
        let printed = |pools: &[&str], count: usize, at_a_time: Option<usize>| {
            Restarts { at_a_time, ..restarts(pools, count) }.to_string()
        };
        assert_eq!(printed(&["a", "b"], 2, Some(1)), "restarts 2 nodes of the pools a, b: w1, w2, one at a time");
        assert_eq!(printed(&["a"], 3, Some(2)), "restarts 3 nodes of pool a: w1, w2, w3, 2 at a time");
        assert_eq!(printed(&["a"], 3, Some(3)), "restarts 3 nodes of pool a: w1, w2, w3, all at once");
        assert_eq!(
            printed(&["a"], 6, Some(2)),
            "restarts 6 nodes of pool a: w1, w2, w3, w4, w5 and 1 more, 2 at a time"
        );
        assert_eq!(printed(&["a"], 1, Some(1)), "restarts one node of pool a: w1");
        assert_eq!(printed(&[], 0, None), "restarts no node: no pool takes it");
        let paused = |pools: &[&str]| {
            let paused = pools.iter().map(|pool| (*pool).to_owned()).collect();
            Restarts { paused, ..restarts(pools, 1) }.to_string()
        };
        assert_eq!(paused(&["a"]), "restarts one node of pool a: w1 (pool a is paused: not before it is resumed)");
        assert_eq!(
            paused(&["a", "b"]),
            "restarts one node of the pools a, b: w1 (the pools a, b are paused: not before they are resumed)"
        );
    }

    #[test]
    fn what_restarts_nothing_says_so() {
        let with = |effect: NodeEffect| Restarts { effect, ..restarts(&["a"], 1) };
        assert_eq!(with(NodeEffect::None).to_string(), "restarts no node");
        assert_eq!(with(NodeEffect::Reload).to_string(), "reloads, without a restart, one node of pool a: w1");
        assert!(!with(NodeEffect::None).is_any() && !with(NodeEffect::Reload).is_any());
        assert!(with(NodeEffect::Restart).is_any() && !restarts(&["a"], 0).is_any());
        assert!(Restarts::default().is_any(), "it is not known which");
    }

    #[test]
    fn the_time_says_whether_it_is_a_guess() {
        let cost = |minutes: u64, is_measured: bool, virtual_machines: Option<usize>| {
            let time = Some(RolloutTime { minutes, is_measured });
            Restarts { time, virtual_machines, ..restarts(&["a"], 1) }.cost()
        };
        assert_eq!(cost(25, true, Some(41)), "about 25 min, 41 VMs move");
        assert_eq!(cost(119, false, Some(1)), "about 119 min (a guess), 1 VM moves");
        assert_eq!(cost(25, true, Some(0)), "about 25 min, no VM has to move");
        assert_eq!(cost(210, false, None), "about 4 h (a guess)");
        assert_eq!(restarts(&["a"], 1).cost(), "");
        let reload = Restarts { virtual_machines: Some(1), effect: NodeEffect::Reload, ..restarts(&["a"], 1) };
        assert_eq!(reload.cost(), "");
    }
}
