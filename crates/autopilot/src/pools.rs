//! The pool of nodes an object is for, and the nodes that restart with it.

use catalog::Node;
use change::restarts::Scope;
use change::{Impact, Kind, Restarts};
use serde_json::Value;

/// The nodes that restart when an object of this kind, for this pool, is written.
pub(crate) fn restarts(nodes: &[Node], kind: &Kind, pool: Option<&str>) -> Restarts {
    let scope = match pool {
        Some(pool) => Scope::Pools(vec![pool.to_owned()]),
        None if Impact::is_everywhere(&kind.group, &kind.kind) => Scope::Cluster,
        None => Scope::Selected,
    };
    let restarts = |node: &&Node| match &scope {
        Scope::Pools(pools) => pools.iter().any(|pool| node.has_role(pool)),
        Scope::Cluster => true,
        Scope::Selected => false,
    };
    let nodes = nodes.iter().filter(restarts).map(|node| node.name.clone()).collect();
    Restarts { nodes, scope, at_a_time: None }
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
    use change::Kind;
    use serde_json::{Value, json};

    #[test]
    fn the_nodes_named_are_those_of_the_pool_an_object_is_for() {
        let node = |name: &str, role: &str| Node { name: name.into(), roles: vec![role.into()], ..Node::default() };
        let nodes = [node("w0", "worker"), node("m0", "master"), node("m1", "master")];
        let of = |object: &Value| restarts(&nodes, &Kind::new("example.com/v1", "X"), pool(object)).to_string();
        let of_role = json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}}});
        assert_eq!(of(&of_role), "one node of pool worker: w0");
        let selecting = |key: &str| json!({"spec": {"machineConfigPoolSelector": {"matchLabels": {key: ""}}}});
        let masters = selecting("pools.operator.machineconfiguration.openshift.io/master");
        assert_eq!(of(&masters), "2 nodes of pool master: m0, m1");
        let itself = json!({"kind": "MachineConfigPool", "metadata": {"name": "worker"}});
        assert_eq!(of(&itself), "one node of pool worker: w0");
        assert_eq!(of(&selecting("custom")), "the nodes it selects, which may be all of the cluster");
        let proxy = restarts(&nodes, &Kind::new("config.openshift.io/v1", "Proxy"), None);
        assert_eq!(proxy.to_string(), "all 3 nodes of the cluster: w0, m0, m1");
    }
}
