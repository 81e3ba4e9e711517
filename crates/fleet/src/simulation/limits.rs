//! Not more clones at once than a storage and a node can make.

use super::api_server::id;
use super::scripted::{Reply, Scripted};
use crate::hypervisor::Operation;
use serde_json::json;
use std::collections::BTreeMap;

/// Clones take for ever.
fn hold_clones(operation: &Operation, _: u64) -> Reply {
    match operation {
        Operation::Create(_) => Reply::Later,
        _ => Reply::Usual,
    }
}

/// How many clones were begun on each node.
fn clones(world: &Scripted) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (_, operation) in &world.asked {
        if let Operation::Create(blueprint) = operation {
            *counts.entry(blueprint.node.clone()).or_default() += 1;
        }
    }
    counts
}

/// Eight claims with these limits, until nothing happens any more.
fn start(per_storage: u32, per_node: u32) -> Scripted {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| {
        spec["limits"] = json!({"clonesPerStorage": per_storage, "clonesPerNode": per_node});
    });
    for number in 0..8 {
        world.claim(&format!("c-{number}"));
    }
    world.run_until(20, hold_clones);
    world
}

#[test]
fn a_storage_makes_no_more_clones_at_once_than_its_limit() {
    for limit in 1..=3 {
        let mut world = start(limit, 100);
        let at_once = usize::try_from(limit).unwrap();
        assert_eq!(clones(&world).values().sum::<usize>(), at_once, "limit {limit}");
        world.release(hold_clones);
        assert_eq!(clones(&world).values().sum::<usize>(), 2 * at_once, "others follow when they have ended");
    }
}

#[test]
fn a_node_makes_no_more_clones_at_once_than_its_limit() {
    for limit in 1..=3 {
        let world = start(100, limit);
        let counts = clones(&world);
        let at_once = usize::try_from(limit).unwrap();
        assert_eq!(counts, [("a".to_owned(), at_once), ("b".to_owned(), at_once)].into(), "limit {limit}");
    }
}
