//! What an asset needs the cluster to serve, and which operator provides it.

use crate::pack::asset::Asset;
use change::Kind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One need of an asset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Need {
    /// A kind in one version.
    Kind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// A CustomResourceDefinition in any version.
    Crd {
        /// Its name, `plural.group`.
        name: String,
    },
}

impl Need {
    /// The need for this kind to be served.
    pub fn of(kind: &Kind) -> Need {
        Need::Kind { api_version: kind.api_version(), kind: kind.kind.clone() }
    }

    /// The needs of an asset: its own kind, if its file states it, and its `gate_crd`.
    pub fn all_of(asset: &Asset) -> impl Iterator<Item = Need> {
        let gate = asset.gate_crd.iter().map(|name| Need::Crd { name: name.clone() });
        asset.kind.iter().map(Need::of).chain(gate)
    }

    /// Group, version and kind, as far as they are known: the name of a missing CRD has only the group and the plural.
    pub fn labels(&self) -> Kind {
        match self {
            Need::Kind { api_version, kind } => Kind::new(api_version, kind),
            Need::Crd { name } => {
                let (plural, group) = name.split_once('.').unwrap_or((name, ""));
                Kind { group: group.to_owned(), version: String::new(), kind: plural.to_owned() }
            }
        }
    }

    /// Why an asset with this need is not applied, and what to install.
    pub fn why(&self) -> String {
        let Kind { group, kind, .. } = self.labels();
        match provider(&group, &kind) {
            Some(operator) => format!("the cluster does not serve {self}, which {operator} provides"),
            None => {
                format!("the cluster does not serve {self}; install the operator that provides the API group {group}")
            }
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Kind { api_version, kind } => write!(f, "{kind} of {api_version}"),
            Need::Crd { name } => write!(f, "the CRD {name}"),
        }
    }
}

/// The provider of an API group; where operators share a group, the prefix of a kind or plural selects one.
const PROVIDERS: [(&str, &str, &str); 21] = [
    ("machineconfiguration.openshift.io", "", "OpenShift's machine-config operator"),
    ("operator.openshift.io", "kubedescheduler", "the Kube Descheduler Operator"),
    ("monitoring.coreos.com", "", "the Prometheus Operator (on OpenShift: cluster monitoring)"),
    ("perses.dev", "", "the Cluster Observability Operator"),
    ("observability.openshift.io", "uiplugin", "the Cluster Observability Operator"),
    ("observability.openshift.io", "clusterlogforwarder", "the Red Hat OpenShift Logging Operator"),
    ("loki.grafana.com", "", "the Loki Operator"),
    ("forklift.konveyor.io", "", "the Migration Toolkit for Virtualization"),
    ("metallb.io", "", "the MetalLB Operator"),
    ("remediation.medik8s.io", "", "the Node Health Check Operator"),
    ("fence-agents-remediation.medik8s.io", "", "the Fence Agents Remediation Operator"),
    ("storage-based-remediation.medik8s.io", "", "the Storage Based Remediation Operator"),
    ("cdi.kubevirt.io", "", VIRTUALIZATION),
    ("kubevirt.io", "", VIRTUALIZATION),
    ("hco.kubevirt.io", "", VIRTUALIZATION),
    ("ifo.kubevirt.io", "", "In-Flight Operations"),
    ("velero.io", "", "OADP"),
    ("oadp.openshift.io", "", "OADP"),
    ("security.openshift.io", "", "OpenShift itself"),
    ("config.openshift.io", "", "OpenShift itself"),
    ("operator.openshift.io", "", "OpenShift itself"),
];
const VIRTUALIZATION: &str = "OpenShift Virtualization (the HyperConverged Cluster Operator)";

/// The operator that provides a kind, if it is known.
fn provider(group: &str, kind: &str) -> Option<&'static str> {
    let kind = kind.to_lowercase();
    let found = PROVIDERS.iter().find(|(one, prefix, _)| *one == group && kind.starts_with(prefix));
    found.map(|(.., operator)| *operator)
}

#[cfg(test)]
mod tests {
    use super::Need;
    use change::Kind;
    use expect_test::expect;

    #[test]
    fn a_missing_kind_is_reported_with_its_provider() {
        let kind = |api_version: &str, kind: &str| Need::of(&Kind::new(api_version, kind)).why();
        let crd = |name: &str| Need::Crd { name: name.into() }.why();
        let summary = [
            kind("operator.openshift.io/v1", "KubeDescheduler"),
            kind("observability.openshift.io/v1", "ClusterLogForwarder"),
            crd("uiplugins.observability.openshift.io"),
            crd("things.example.io"),
        ];
        expect![[r#"
            the cluster does not serve KubeDescheduler of operator.openshift.io/v1, which the Kube Descheduler Operator provides
            the cluster does not serve ClusterLogForwarder of observability.openshift.io/v1, which the Red Hat OpenShift Logging Operator provides
            the cluster does not serve the CRD uiplugins.observability.openshift.io, which the Cluster Observability Operator provides
            the cluster does not serve the CRD things.example.io; install the operator that provides the API group example.io"#]]
        .assert_eq(&summary.join("\n"));
    }
}
