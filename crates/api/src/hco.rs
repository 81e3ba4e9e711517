//! The HyperConverged object, with which users configure the whole platform.

/// Its API group.
pub const GROUP: &str = "hco.kubevirt.io";
/// Its kind.
pub const KIND: &str = "HyperConverged";
/// The versions a cluster may serve, newest first.
pub const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// Fields of the spec that v1 has in a group, and v1beta1 beside the others: the field and the group.
pub const GROUPED: [(&str, &str); 2] =
    [("higherWorkloadDensity", "virtualization"), ("ksmConfiguration", "virtualization")];
/// There is one per cluster, of this name.
pub const NAME: &str = "kubevirt-hyperconverged";
/// Its namespace, unless `--namespace` names another one.
pub const NAMESPACE: &str = "openshift-cnv";
/// The namespaces in which it usually is: on OpenShift, and on other clusters.
pub const NAMESPACES: [&str; 2] = [NAMESPACE, "kubevirt-hyperconverged"];
