//! The topology of a cluster: its control plane, nodes and platform.

use crate::cluster::node::Node;
use serde::{Deserialize, Serialize};

/// The booleans that a condition may name, in the order of [`Topology`]'s fields.
pub const BOOLEANS: [&str; 9] = [
    "isHCP",
    "isCompact",
    "hasSchedulableMasters",
    "isAWS",
    "isAzure",
    "isGCP",
    "isBareMetal",
    "isVSphere",
    "isOpenStack",
];

/// What a boolean of the topology says, as a sentence.
pub(crate) fn sentence(boolean: &str, value: bool) -> String {
    let runs = if value { "runs" } else { "does not run" };
    match (boolean, value) {
        ("isHCP", true) => "the control plane is hosted elsewhere".to_owned(),
        ("isHCP", false) => "the control plane is part of the cluster".to_owned(),
        ("isCompact", true) => "every node is both control plane and worker".to_owned(),
        ("isCompact", false) => "control plane and workers are different nodes".to_owned(),
        ("hasSchedulableMasters", true) => "control plane nodes run ordinary workloads".to_owned(),
        ("hasSchedulableMasters", false) => "control plane nodes run no ordinary workloads".to_owned(),
        ("isBareMetal", _) => format!("the cluster {runs} on bare metal"),
        ("isVSphere", _) => format!("the cluster {runs} on vSphere"),
        (other, _) => format!("the cluster {runs} on {}", other.trim_start_matches("is")),
    }
}

const MASTER: [&str; 2] = ["master", "control-plane"];
const WORKER: &str = "worker";

/// The `Infrastructure` named `cluster`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Infrastructure {
    /// `HighlyAvailable`, `SingleReplica`, `External` or empty.
    pub control_plane_topology: String,
    /// The platform's name, or empty.
    pub platform: String,
}

/// The topology of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Topology {
    /// The control plane is hosted outside of the cluster.
    #[serde(rename = "isHCP")]
    pub is_hcp: bool,
    /// Every node is both master and worker.
    pub is_compact: bool,
    /// Masters run ordinary workloads.
    pub has_schedulable_masters: bool,
    /// Amazon Web Services.
    #[serde(rename = "isAWS")]
    pub is_aws: bool,
    /// Microsoft Azure.
    pub is_azure: bool,
    /// Google Cloud.
    #[serde(rename = "isGCP")]
    pub is_gcp: bool,
    /// Bare metal.
    pub is_bare_metal: bool,
    /// VMware vSphere.
    #[serde(rename = "isVSphere")]
    pub is_vsphere: bool,
    /// OpenStack.
    pub is_open_stack: bool,
    /// `HighlyAvailable`, `SingleReplica`, `External` or empty.
    pub control_plane_topology: String,
    /// The platform's name, or empty.
    pub cloud_provider: String,
    /// The number of masters.
    pub master_count: i64,
    /// The number of workers that are not masters.
    pub worker_count: i64,
    /// The number of nodes.
    pub total_node_count: i64,
}

impl Topology {
    /// Derives the topology from the nodes, and from the `Infrastructure` and the `Scheduler` named `cluster`.
    pub fn of(nodes: &[Node], infrastructure: &Infrastructure, schedulable_masters: bool) -> Topology {
        let is_master = |node: &&Node| MASTER.iter().any(|role| node.has_role(role));
        let is_worker = |node: &&Node| node.has_role(WORKER);
        let masters: Vec<&Node> = nodes.iter().filter(is_master).collect();
        let workers = nodes.iter().filter(|node| is_worker(node) && !is_master(node)).count();
        let Infrastructure { control_plane_topology, platform: cloud_provider } = infrastructure.clone();
        let is_on = |provider: &str| cloud_provider == provider;
        Topology {
            is_hcp: control_plane_topology == "External",
            is_compact: !masters.is_empty() && workers == 0 && masters.iter().all(is_worker),
            has_schedulable_masters: schedulable_masters,
            is_aws: is_on("AWS"),
            is_azure: is_on("Azure"),
            is_gcp: is_on("GCP"),
            is_bare_metal: is_on("BareMetal"),
            is_vsphere: is_on("VSphere"),
            is_open_stack: is_on("OpenStack"),
            master_count: masters.len() as i64,
            worker_count: workers as i64,
            total_node_count: nodes.len() as i64,
            control_plane_topology,
            cloud_provider,
        }
    }

    /// The value of a boolean; `None` if there is none of this name.
    pub fn boolean(&self, field: &str) -> Option<bool> {
        let values = [
            self.is_hcp,
            self.is_compact,
            self.has_schedulable_masters,
            self.is_aws,
            self.is_azure,
            self.is_gcp,
            self.is_bare_metal,
            self.is_vsphere,
            self.is_open_stack,
        ];
        BOOLEANS.iter().position(|name| *name == field).map(|index| values[index])
    }
}

#[cfg(test)]
mod tests {
    use super::{Infrastructure, Topology};
    use crate::cluster::node::Node;
    use expect_test::{Expect, expect};

    fn check(nodes: &str, (control_plane, platform): (&str, &str), schedulable: bool, expected: &Expect) {
        let node = |roles: &str| Node { roles: roles.split('+').map(str::to_owned).collect(), ..Node::default() };
        let nodes: Vec<Node> = nodes.split_whitespace().map(node).collect();
        let (control_plane_topology, platform) = (control_plane.to_owned(), platform.to_owned());
        let topology = Topology::of(&nodes, &Infrastructure { control_plane_topology, platform }, schedulable);
        let booleans = super::BOOLEANS.into_iter().filter(|field| topology.boolean(field) == Some(true));
        let counts = [topology.master_count, topology.worker_count, topology.total_node_count];
        let summary = format!(
            "{counts:?} {:?} {:?} {:?}",
            topology.control_plane_topology,
            topology.cloud_provider,
            booleans.collect::<Vec<_>>()
        );
        expected.assert_eq(&summary);
    }

    #[test]
    fn a_cluster_is_compact_when_all_masters_are_workers_and_there_are_no_others() {
        let bare = ("HighlyAvailable", "BareMetal");
        let six = "master master control-plane worker worker worker";
        check(six, bare, false, &expect![[r#"[3, 3, 6] "HighlyAvailable" "BareMetal" ["isBareMetal"]"#]]);
        let three = "master+worker control-plane+worker master+worker";
        check(
            three,
            bare,
            true,
            &expect![[
                r#"[3, 0, 3] "HighlyAvailable" "BareMetal" ["isCompact", "hasSchedulableMasters", "isBareMetal"]"#
            ]],
        );
        check("master+worker master", ("", ""), false, &expect![[r#"[2, 0, 2] "" "" []"#]]);
        check("master+worker worker", ("", ""), false, &expect![[r#"[1, 1, 2] "" "" []"#]]);
    }

    #[test]
    fn a_hosted_control_plane_has_no_masters() {
        check(
            "worker worker",
            ("External", "AWS"),
            false,
            &expect![[r#"[0, 2, 2] "External" "AWS" ["isHCP", "isAWS"]"#]],
        );
        check("", ("", ""), false, &expect![[r#"[0, 0, 0] "" "" []"#]]);
    }
}
