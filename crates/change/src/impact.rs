//! What a change does to a running cluster.

use serde::{Deserialize, Serialize};

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

/// Kinds that configure the whole cluster, in addition to the `config.openshift.io` group.
const CLUSTER_WIDE: [&str; 6] =
    ["HyperConverged", "KubeDescheduler", "NodeHealthCheck", "SecurityContextConstraints", "Tuned", "MetalLB"];

impl Impact {
    /// The least impact of a write to an object of this kind.
    pub fn implied_by(group: &str, kind: &str) -> Impact {
        match (group, kind) {
            ("machineconfiguration.openshift.io", "MachineConfig" | "KubeletConfig") => Impact::High,
            ("config.openshift.io", _) => Impact::Medium,
            (_, kind) if CLUSTER_WIDE.contains(&kind) => Impact::Medium,
            _ => Impact::Low,
        }
    }

    /// The impact of an asset: a declared impact may raise what the kind implies, never lower it.
    #[must_use]
    pub fn at_least(declared: Option<Impact>, group: &str, kind: &str) -> Impact {
        let implied = Impact::implied_by(group, kind);
        declared.map_or(implied, |declared| declared.max(implied))
    }
}

#[cfg(test)]
mod tests {
    use super::Impact;

    #[test]
    fn a_pack_may_raise_an_impact_but_never_lower_it() {
        let machine_config = ("machineconfiguration.openshift.io", "MachineConfig");
        assert_eq!(Impact::at_least(None, machine_config.0, machine_config.1), Impact::High);
        assert_eq!(Impact::at_least(Some(Impact::Low), machine_config.0, machine_config.1), Impact::High);
        assert_eq!(Impact::at_least(Some(Impact::High), "", "Service"), Impact::High);
        assert_eq!(Impact::at_least(None, "", "Service"), Impact::Low);
        assert_eq!(Impact::at_least(None, "hco.kubevirt.io", "HyperConverged"), Impact::Medium);
    }
}
