//! The facts about a cluster.

use crate::cluster::hardware::Hardware;
use crate::cluster::need::Need;
use crate::cluster::pool::Pool;
use crate::cluster::query::{Answer, Query};
use crate::cluster::topology::Topology;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that rendering may depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Facts {
    /// The HyperConverged object.
    pub hco: Value,
    /// The hardware of at least one node.
    pub hardware: Hardware,
    /// The topology of the cluster.
    pub topology: Topology,
    /// The MachineConfigPools.
    pub pools: Vec<Pool>,
    /// The version of OpenShift; empty on other platforms.
    pub cluster_version: String,
    /// The images that the operator is configured with, by name.
    pub images: BTreeMap<String, String>,
    /// Whether the operator serves its metrics over TLS, and only to those who may read them.
    pub secure_metrics: bool,
    /// The profiles whose `VirtPlatformConfig` governs the objects of their items, each with its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub governing: BTreeMap<String, String>,
    /// Assets whose object exists, but under the name that the Go advisor gave it: it is managed there, and not made a second time.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub formerly_named: BTreeSet<String>,
    /// What assets need but the cluster does not serve.
    pub absent: BTreeSet<Need>,
    /// The answers to queries so far.
    #[serde(with = "as_list")]
    pub answers: BTreeMap<Query, Answer>,
}

/// Serializes a map as a list of pairs, because its keys are not strings.
mod as_list {
    use super::{Answer, BTreeMap, Deserialize, Query, Serialize};
    use serde::{Deserializer, Serializer};

    #[derive(Serialize)]
    struct PairRef<'a> {
        query: &'a Query,
        answer: &'a Answer,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        query: Query,
        answer: Answer,
    }

    pub fn serialize<S: Serializer>(answers: &BTreeMap<Query, Answer>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(answers.iter().map(|(query, answer)| PairRef { query, answer }))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Query, Answer>, D::Error> {
        let pairs = Vec::<Pair>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|pair| (pair.query, pair.answer)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::Facts;
    use crate::cluster::need::Need;
    use crate::cluster::pool::Pool;
    use crate::cluster::query::{Answer, Query};
    use serde_json::json;

    #[test]
    fn facts_survive_serialization() {
        let mut facts = Facts { hco: json!({"kind": "HyperConverged"}), ..Facts::default() };
        facts.topology.is_hcp = true;
        facts.pools.push(Pool { name: "worker".into(), machine_count: 3, ..Pool::default() });
        facts.governing.insert("profile".into(), "config".into());
        facts.formerly_named.insert("asset".into());
        facts.absent.insert(Need::Crd { name: "a.b".into() });
        facts.absent.insert(Need::Kind { api_version: "g/v1".into(), kind: "K".into() });
        facts.answers.insert(Query::Crd { name: "a.b".into() }, Answer::Found(json!({"x": 1})));
        facts.answers.insert(
            Query::Object {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: "n".into(),
                name: "m".into(),
            },
            Answer::Absent,
        );
        facts.answers.insert(Query::List { api_version: "v1".into(), kind: "Pod".into() }, Answer::Unknown);
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
        assert!(text.contains(r#"{"query":{"object":{"apiVersion":"v1","kind":"ConfigMap","namespace":"n","name":"m"}},"answer":"absent"}"#), "{text}");
    }

    #[test]
    fn fields_of_a_facts_file_are_optional_and_checked() {
        assert_eq!(serde_json::from_str::<Facts>("{}").unwrap(), Facts::default());
        assert!(serde_json::from_str::<Facts>(r#"{"hardwear": {}}"#).is_err());
    }
}
