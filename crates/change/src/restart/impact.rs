//! What a change does to a running cluster.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How disruptive a change is. High means that nodes reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Impact {
    /// No effect on the running cluster.
    None,
    /// Only the managed object itself.
    Low,
    /// Cluster-wide configuration.
    Medium,
    /// Nodes reboot.
    High,
}

/// The impact of a kind, and why. The first row that matches counts; a kind without a row has a low impact.
#[derive(Debug, Clone, Copy)]
struct ImpactRow {
    group: &'static str,
    /// The kind; `*` is any kind of the group.
    kind: &'static str,
    /// Only objects with this field, where `*` is any item of a list.
    field: Option<&'static str>,
    impact: Impact,
    /// Whether it restarts every node of the cluster.
    everywhere: bool,
    #[cfg_attr(not(test), expect(dead_code, reason = "it is for readers of the table, and a test requires it"))]
    why: &'static str,
}

const fn high(group: &'static str, kind: &'static str, why: &'static str) -> ImpactRow {
    ImpactRow { group, kind, field: None, impact: Impact::High, everywhere: false, why }
}

const fn high_everywhere(group: &'static str, kind: &'static str, why: &'static str) -> ImpactRow {
    ImpactRow { everywhere: true, ..high(group, kind, why) }
}

const fn medium(group: &'static str, kind: &'static str, why: &'static str) -> ImpactRow {
    ImpactRow { group, kind, field: None, impact: Impact::Medium, everywhere: false, why }
}

const MACHINES: &str = "machineconfiguration.openshift.io";
const CONFIG: &str = "config.openshift.io";

const ROWS: &[ImpactRow] = &[
    high(MACHINES, "MachineConfig", "it is a part of the configuration that nodes boot with"),
    high(MACHINES, "KubeletConfig", "it is rendered into a MachineConfig"),
    high(MACHINES, "ContainerRuntimeConfig", "it is rendered into a MachineConfig"),
    high(MACHINES, "MachineConfigPool", "it chooses which nodes get which configuration, and when"),
    high(MACHINES, "MachineOSConfig", "nodes reboot into the image that it builds"),
    medium(MACHINES, "*", "it configures how nodes are managed"),
    high(
        "performance.openshift.io",
        "PerformanceProfile",
        "it is rendered into MachineConfig, KubeletConfig and Tuned",
    ),
    ImpactRow {
        group: "tuned.openshift.io",
        kind: "Tuned",
        field: Some("/spec/recommend/*/machineConfigLabels"),
        impact: Impact::High,
        everywhere: false,
        why: "its kernel arguments are rendered into a MachineConfig",
    },
    medium("tuned.openshift.io", "Tuned", "it configures kernels while they run"),
    high(
        "sriovnetwork.openshift.io",
        "SriovNetworkNodePolicy",
        "nodes are drained, and reboot to set up their devices",
    ),
    high_everywhere(CONFIG, "Proxy", "it is rendered into the configuration of every node"),
    high_everywhere(CONFIG, "Image", "its registries are rendered into the configuration of every node"),
    high_everywhere(CONFIG, "ImageDigestMirrorSet", "its mirrors are rendered into the configuration of every node"),
    high_everywhere(CONFIG, "ImageTagMirrorSet", "its mirrors are rendered into the configuration of every node"),
    high_everywhere(
        "operator.openshift.io",
        "ImageContentSourcePolicy",
        "its mirrors are rendered into the configuration of every node",
    ),
    high_everywhere(CONFIG, "ClusterImagePolicy", "its policy is rendered into the configuration of every node"),
    high_everywhere(CONFIG, "ImagePolicy", "its policy is rendered into the configuration of every node"),
    high_everywhere(
        CONFIG,
        "Node",
        "its cgroup mode and latency profile are rendered into every kubelet's configuration",
    ),
    high_everywhere(CONFIG, "FeatureGate", "its gates are rendered into every kubelet's configuration"),
    high_everywhere(CONFIG, "APIServer", "its TLS profile is rendered into every kubelet's configuration"),
    high_everywhere(CONFIG, "ClusterVersion", "an upgrade of the cluster reboots every node"),
    medium(CONFIG, "*", "it configures the whole cluster"),
    medium("operator.openshift.io", "*", "it configures an operator of the whole cluster"),
    medium("security.openshift.io", "SecurityContextConstraints", "it decides what pods of all namespaces may do"),
    medium("hco.kubevirt.io", "HyperConverged", "it configures the whole platform"),
    medium("remediation.medik8s.io", "NodeHealthCheck", "it decides when nodes are remediated"),
    medium("metallb.io", "MetalLB", "it configures load balancers of the whole cluster"),
];

impl Impact {
    /// The least impact of a write to an object of this kind, whatever its content.
    pub fn implied_by(group: &str, kind: &str) -> Impact {
        implied(ROWS.iter(), group, kind, None)
    }

    /// Whether a write to an object of this kind restarts every node of the cluster.
    pub fn is_everywhere(group: &str, kind: &str) -> bool {
        ROWS.iter().any(|row| row.everywhere && (row.group, row.kind) == (group, kind))
    }

    /// The impact of an asset that renders this object: a declared impact may raise what the object implies, never lower it.
    #[must_use]
    pub fn at_least(declared: Option<Impact>, group: &str, kind: &str, object: &Value) -> Impact {
        let implied = implied(ROWS.iter(), group, kind, Some(object));
        declared.map_or(implied, |declared| declared.max(implied))
    }
}

/// The impact of an object; content that is not known may have any field.
fn implied<'a>(
    mut rows: impl Iterator<Item = &'a ImpactRow>,
    group: &str,
    kind: &str,
    object: Option<&Value>,
) -> Impact {
    let has = |field: &str| object.is_none_or(|object| has_field(object, field.split('/').skip(1)));
    let row = rows.find(|row| row.group == group && ["*", kind].contains(&row.kind) && row.field.is_none_or(has));
    row.map_or(Impact::Low, |row| row.impact)
}

fn has_field<'a>(value: &Value, mut steps: impl Iterator<Item = &'a str> + Clone) -> bool {
    match (steps.next(), value) {
        (None, _) => true,
        (Some("*"), Value::Array(items)) => items.iter().any(|item| has_field(item, steps.clone())),
        (Some(step), _) => value.get(step).is_some_and(|below| has_field(below, steps)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Impact, ROWS, has_field, implied};
    use serde_json::{Value, json};

    /// An object that the row at this index is for.
    fn object(index: usize) -> Value {
        match ROWS[index].field {
            Some("/spec/recommend/*/machineConfigLabels") => {
                json!({"spec": {"recommend": [{"priority": 1}, {"machineConfigLabels": {"a": "b"}}]}})
            }
            Some(field) => panic!("there is no object with {field}"),
            None => json!({"spec": {"recommend": [{"match": []}]}}),
        }
    }

    #[test]
    fn every_row_has_a_reason_and_without_it_the_impact_is_lower() {
        for (index, row) in ROWS.iter().enumerate() {
            let kind = if row.kind == "*" { "Other" } else { row.kind };
            let of = |left_out: Option<usize>| {
                let rows = ROWS.iter().enumerate().filter(|(index, _)| Some(*index) != left_out).map(|(_, row)| row);
                implied(rows, row.group, kind, Some(&object(index)))
            };
            assert_eq!(of(None), row.impact, "{} {}", row.group, row.kind);
            assert!(of(Some(index)) < row.impact, "{} {} is not needed", row.group, row.kind);
            assert!(row.why.len() > 10, "{} {}", row.group, row.kind);
            assert!(implied(ROWS.iter(), "example.com", kind, None) == Impact::Low, "another group: {}", row.kind);
        }
    }

    #[test]
    fn what_reboots_nodes_is_high_and_the_rest_of_the_cluster_medium() {
        let high = ["MachineConfig", "KubeletConfig", "ContainerRuntimeConfig", "MachineConfigPool"];
        for kind in high {
            assert_eq!(Impact::implied_by("machineconfiguration.openshift.io", kind), Impact::High, "{kind}");
        }
        for kind in ["Image", "Proxy", "Node", "ImageDigestMirrorSet", "ImageTagMirrorSet"] {
            assert_eq!(Impact::implied_by("config.openshift.io", kind), Impact::High, "{kind}");
        }
        for kind in ["Infrastructure", "Scheduler", "Console", "Ingress"] {
            assert_eq!(Impact::implied_by("config.openshift.io", kind), Impact::Medium, "{kind}");
        }
        assert_eq!(Impact::implied_by("operator.openshift.io", "KubeDescheduler"), Impact::Medium);
        for (group, kind) in [("", "ConfigMap"), ("", "Node"), ("apps", "DaemonSet"), ("", "Service")] {
            assert_eq!(Impact::implied_by(group, kind), Impact::Low, "{kind}");
        }
    }

    #[test]
    fn a_tuned_reboots_nodes_only_with_kernel_arguments() {
        let of = |object: &Value| Impact::at_least(None, "tuned.openshift.io", "Tuned", object);
        assert_eq!(of(&json!({"spec": {"recommend": [{"machineConfigLabels": {"a": "b"}}]}})), Impact::High);
        assert_eq!(of(&json!({"spec": {"recommend": [{"match": []}], "profile": []}})), Impact::Medium);
        assert_eq!(of(&json!({})), Impact::Medium);
        assert_eq!(Impact::implied_by("tuned.openshift.io", "Tuned"), Impact::High, "its content is not known");
        assert!(!has_field(&json!({"a": []}), ["a", "*", "b"].into_iter()));
    }

    #[test]
    fn a_pack_may_raise_an_impact_but_never_lower_it() {
        let of = |declared, group, kind| Impact::at_least(declared, group, kind, &Value::Null);
        let machine_config = ("machineconfiguration.openshift.io", "MachineConfig");
        assert_eq!(of(None, machine_config.0, machine_config.1), Impact::High);
        assert_eq!(of(Some(Impact::Low), machine_config.0, machine_config.1), Impact::High);
        assert_eq!(of(Some(Impact::High), "", "Service"), Impact::High);
        assert_eq!(of(None, "", "Service"), Impact::Low);
        assert_eq!(of(None, "hco.kubevirt.io", "HyperConverged"), Impact::Medium);
    }
}
