//! A cluster that profiles are rendered for.

use super::super::resolved;
use catalog::profile::Profile;
use catalog::{Answer, Catalog, Facts, Hardware, Pool, ProfileWants, Query, Topology};
use serde_json::{Map, Value, json};

/// Facts, and the answers to queries.
pub(super) struct Bed {
    pub(super) facts: Facts,
    /// The release of the descheduler operator.
    pub(super) descheduler: &'static str,
    /// The live KubeDescheduler, if there is one.
    pub(super) live: Option<Value>,
    /// Whether the descheduler operator has installed its recording rules.
    pub(super) rules: Option<Value>,
}

impl Default for Bed {
    /// Three masters, three workers, and the newest releases.
    fn default() -> Bed {
        let topology = Topology {
            is_bare_metal: true,
            master_count: 3,
            worker_count: 3,
            total_node_count: 6,
            ..Topology::default()
        };
        let hco = json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged",
            "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv", "annotations": {}},
            "spec": {"virtualization": {"liveMigrationConfig":
                {"parallelMigrationsPerCluster": 5, "parallelOutboundMigrationsPerNode": 2}}}});
        let label = |name: &str| (format!("pools.operator.machineconfiguration.openshift.io/{name}"), String::new());
        let pool = |name: &str| Pool { name: name.to_owned(), labels: [label(name)].into(), ..Pool::default() };
        let pools = vec![pool("master"), pool("worker")];
        let hardware = Hardware { numa_nodes_present: true, ..Hardware::default() };
        Bed {
            facts: Facts { hco, topology, hardware, pools, ..Facts::default() },
            descheduler: "v532",
            live: None,
            rules: None,
        }
    }
}

impl Bed {
    pub(super) fn wants(
        &self,
        catalog: &Catalog,
        profile: &Profile,
        options: Option<&Map<String, Value>>,
    ) -> ProfileWants {
        resolved::wants(catalog, profile, options, &self.facts, |query| self.answer(query))
    }

    /// The same, with options as JSON.
    pub(super) fn with(&self, catalog: &Catalog, profile: &str, options: &Value) -> ProfileWants {
        self.wants(catalog, super::profile(catalog, profile), options.as_object())
    }

    /// A cluster whose every node is a master.
    pub(super) fn compact(nodes: i64) -> Bed {
        let mut bed = Bed::default();
        let topology = &mut bed.facts.topology;
        (topology.is_compact, topology.has_schedulable_masters) = (true, true);
        (topology.master_count, topology.worker_count, topology.total_node_count) = (nodes, 0, nodes);
        bed
    }

    fn answer(&self, query: &Query) -> Answer {
        let live = |found: &Option<Value>| found.clone().map_or(Answer::Absent, Answer::Found);
        match query {
            Query::Crd { name } => Answer::Found(crd(name, self.descheduler)),
            Query::Object { kind, .. } if kind == "KubeDescheduler" => live(&self.live),
            Query::Object { kind, .. } if kind == "PrometheusRule" => live(&self.rules),
            Query::Object { .. } => Answer::Absent,
            Query::List { .. } => Answer::Found(json!([])),
        }
    }
}

fn crd(name: &str, descheduler: &str) -> Value {
    let spec = match name {
        "kubedeschedulers.operator.openshift.io" => descheduler_spec(descheduler),
        "uiplugins.observability.openshift.io" => {
            json!({"monitoring": {"properties": {"perses": {}, "clusterHealthAnalyzer": {}}}})
        }
        _ => json!({}),
    };
    let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": spec}}}});
    json!({"spec": {"versions": [{"storage": true, "schema": schema}]}})
}

/// What releases of the descheduler operator offer: 5.1.0, 5.1.4, 5.2.1 and 5.3.2.
fn descheduler_spec(release: &str) -> Value {
    let (newest, limits) = match release {
        "v500" => (vec![], json!({})),
        "v510" => (vec!["LongLifecycle"], json!({"total": {}})),
        "v514" | "v521" => (vec!["LongLifecycle", "DevKubeVirtRelieveAndMigrate"], json!({"total": {}})),
        _ => (
            vec!["LongLifecycle", "DevKubeVirtRelieveAndMigrate", "KubeVirtRelieveAndMigrate"],
            json!({"total": {}, "node": {}}),
        ),
    };
    let profiles: Vec<&str> = ["AffinityAndTaints", "LifecycleAndUtilization", "SoftTopologyAndDuplicates"]
        .into_iter()
        .chain(newest)
        .collect();
    let deviation = ["Low", "Medium", "High", "AsymmetricLow", "AsymmetricMedium", "AsymmetricHigh", ""];
    json!({"profiles": {"items": {"enum": profiles}}, "evictionLimits": {"properties": limits},
        "mode": {"enum": ["Automatic", "Predictive"]},
        "profileCustomizations": {"properties": {"devEnableEvictionsInBackground": {}, "devEnableSoftTainter": {},
            "devActualUtilizationProfile": {}, "devDeviationThresholds": {"enum": deviation}}}})
}
