//! The rules of the operator's ClusterRole, from which the roles of people follow.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What the operator reads and writes, by API group and resource.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// The resources that it reads, by group.
    pub(crate) reads: BTreeMap<String, BTreeSet<String>>,
    /// The names of the objects that it writes, by group and resource.
    pub(crate) writes: BTreeMap<(String, String), BTreeSet<String>>,
}

/// The rules of the ClusterRole among these objects.
pub(crate) fn of(operator: &[Value]) -> Rules {
    let mut found = Rules::default();
    let roles = operator.iter().filter(|object| object["kind"] == "ClusterRole");
    for rule in roles.flat_map(|role| role["rules"].as_array().into_iter().flatten()) {
        let verbs = texts(&rule["verbs"]);
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                if verbs.iter().any(|verb| ["get", "list", "watch"].contains(&verb.as_str())) {
                    found.reads.entry(group.clone()).or_default().insert(resource.clone());
                }
                // Events have no names that anybody knows in advance; people write none.
                let names = texts(&rule["resourceNames"]);
                if verbs.iter().any(|verb| verb == "patch") && !names.is_empty() {
                    found.writes.entry((group.clone(), resource)).or_default().extend(names);
                }
            }
        }
    }
    found
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
