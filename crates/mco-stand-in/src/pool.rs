//! The node controller: which nodes belong to a pool, and which of them are updated next.

use crate::node::{Node, annotation};
use crate::selector;
use crate::snapshot::{Kind, Snapshot, Write};
use serde_json::{Value, json};

const ZONE: &str = "topology.kubernetes.io/zone";

/// The names of the nodes that a pool configures. A custom pool wins over `worker`, and `master` over both; a node that two custom pools
/// select belongs to none.
pub fn nodes_of_pool<'a>(snapshot: &'a Snapshot, pool: &str) -> Vec<&'a str> {
    let is_member = |node: &&Value| pool_of(snapshot, node) == Some(pool);
    snapshot.nodes.values().filter(is_member).map(|node| Node(node).name()).collect()
}

/// The pool that configures a node.
fn pool_of<'a>(snapshot: &'a Snapshot, node: &Value) -> Option<&'a str> {
    let selects = |pool: &Value| selector::selects(&pool["spec"]["nodeSelector"], &node["metadata"]["labels"]);
    let matching = || snapshot.pools.iter().filter(|(_, pool)| selects(pool)).map(|(name, _)| name.as_str());
    let plain = |name: &str| matching().find(|found| *found == name);
    let custom: Vec<&str> = matching().filter(|name| !["master", "worker"].contains(name)).collect();
    match custom.as_slice() {
        [] => plain("master").or(plain("worker")),
        [one] => plain("master").or(Some(one)),
        _ => None,
    }
}

/// The nodes of a pool: sorted by zone, the oldest first.
pub(crate) fn sorted_nodes<'a>(snapshot: &'a Snapshot, pool: &str) -> Vec<Node<'a>> {
    let names = nodes_of_pool(snapshot, pool);
    let mut nodes: Vec<Node> = names.into_iter().filter_map(|name| snapshot.nodes.get(name)).map(Node).collect();
    nodes.sort_by_key(|node| {
        let metadata = &node.0["metadata"];
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        (text(&metadata["labels"][ZONE]), text(&metadata["creationTimestamp"]), node.name())
    });
    nodes
}

/// How many of a number of nodes may be unavailable at a time: a number or a percentage, which is rounded down; one by default and at least.
/// Other text is an error, and no node is updated.
pub fn max_unavailable(pool: &Value, nodes: usize) -> Option<usize> {
    let most = match &pool["spec"]["maxUnavailable"] {
        Value::Null => 1,
        Value::Number(number) => usize::try_from(number.as_i64()?).ok()?,
        Value::String(text) => nodes * text.strip_suffix('%')?.parse::<usize>().ok()? / 100,
        _ => return None,
    };
    Some(most.max(1))
}

/// Tells the next nodes of a pool what to run.
pub(crate) fn step(snapshot: &Snapshot, name: &str, pool: &Value) -> Vec<Write> {
    let Some(target) = pool["spec"]["configuration"]["name"].as_str().filter(|target| !target.is_empty()) else {
        return Vec::new();
    };
    let nodes = sorted_nodes(snapshot, name);
    let set = |node: &Node, annotations: Value| {
        Write::patch(Kind::Node, node.name(), node.0, &json!({"metadata": {"annotations": annotations}}))
    };
    // A machine that joins is installed with what all others of the pool run, and updated after that.
    let running = pool["status"]["configuration"]["name"].as_str().filter(|name| !name.is_empty()).unwrap_or(target);
    let joins = nodes.iter().filter(|node| node.current().is_empty()).filter_map(|node| {
        set(node, json!({annotation::CURRENT: running, annotation::DESIRED: running, annotation::STATE: "Done"}))
    });
    let mut writes: Vec<Write> = joins.collect();
    if pool["spec"]["paused"] != true {
        let next = candidates(pool, target, &nodes);
        writes.extend(next.iter().filter_map(|node| set(node, json!({annotation::DESIRED: target}))));
    }
    writes
}

/// The nodes that may be updated now.
fn candidates<'a>(pool: &Value, target: &str, nodes: &[Node<'a>]) -> Vec<Node<'a>> {
    let managed = || nodes.iter().copied().filter(|node| !node.current().is_empty());
    let unavailable = managed().filter(|node| node.is_unavailable()).count();
    // A failure may pass, and then its node must not be updated together with others.
    let failing = managed().filter(|node| node.desired() == target && node.is_failing()).count();
    let capacity = max_unavailable(pool, nodes.len()).unwrap_or_default().saturating_sub(unavailable + failing);
    managed().filter(|node| node.desired() != target && node.is_ready()).take(capacity).collect()
}
