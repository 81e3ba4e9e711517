//! Which changes restart every node of a cluster.

use super::impact::Impact;

#[test]
fn what_is_rendered_into_the_configuration_of_every_node_restarts_every_node() {
    for (group, kind, is_everywhere) in [
        ("config.openshift.io", "Proxy", true),
        ("config.openshift.io", "ClusterVersion", true),
        ("operator.openshift.io", "ImageContentSourcePolicy", true),
        ("machineconfiguration.openshift.io", "MachineConfig", false),
        ("config.openshift.io", "Scheduler", false),
        ("example.com", "Proxy", false),
        ("", "Service", false),
    ] {
        assert_eq!(Impact::is_everywhere(group, kind), is_everywhere, "{group} {kind}");
    }
}
