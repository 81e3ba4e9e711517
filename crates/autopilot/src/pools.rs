//! The pool of nodes an object is for, and the nodes that restart with it.

use catalog::Node;
use change::Restarts;
use serde_json::Value;

/// The nodes that restart when an object for this pool is written.
pub(crate) fn restarts(nodes: &[Node], pool: Option<&str>) -> Restarts {
    let of_pool = nodes.iter().filter(|node| pool.is_some_and(|pool| node.has_role(pool)));
    Restarts { pool: pool.map(str::to_owned), nodes: of_pool.map(|node| node.name.clone()).collect() }
}

/// The pool an object is for: a MachineConfig names it by a label, a KubeletConfig by the label of the pool it selects, and a
/// MachineConfigPool is one.
pub(crate) fn pool(object: &Value) -> Option<&str> {
    let label = object["metadata"]["labels"]["machineconfiguration.openshift.io/role"].as_str();
    let selected = object["spec"]["machineConfigPoolSelector"]["matchLabels"].as_object();
    let by_selector =
        || selected?.keys().find_map(|key| key.strip_prefix("pools.operator.machineconfiguration.openshift.io/"));
    let itself = || object["metadata"]["name"].as_str().filter(|_| object["kind"] == "MachineConfigPool");
    itself().or(label).or_else(by_selector)
}

#[cfg(test)]
mod tests {
    use super::{pool, restarts};
    use catalog::Node;
    use serde_json::json;

    #[test]
    fn the_nodes_named_are_those_of_the_pool_an_object_is_for() {
        let node = |name: &str, role: &str| Node { name: name.into(), roles: vec![role.into()], ..Node::default() };
        let nodes = [node("w0", "worker"), node("m0", "master"), node("m1", "master")];
        let of_role = json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}}});
        assert_eq!(restarts(&nodes, pool(&of_role)).to_string(), "one node of pool worker: w0");
        let selecting = |key: &str| json!({"spec": {"machineConfigPoolSelector": {"matchLabels": {key: ""}}}});
        let masters = selecting("pools.operator.machineconfiguration.openshift.io/master");
        assert_eq!(restarts(&nodes, pool(&masters)).to_string(), "2 nodes of pool master: m0, m1");
        let itself = json!({"kind": "MachineConfigPool", "metadata": {"name": "worker"}});
        assert_eq!(restarts(&nodes, pool(&itself)).to_string(), "one node of pool worker: w0");
        assert_eq!(restarts(&nodes, pool(&selecting("custom"))).to_string(), "the nodes of the pools it selects");
    }
}
