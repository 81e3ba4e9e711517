//! What the nodes of a cluster have inside them.

use crate::node_facts::NodeFacts;
use serde::{Deserialize, Serialize};

/// The names conditions use, in the order of [`Hardware`]'s fields.
pub const DETECTORS: [&str; 5] =
    ["pciDevicesPresent", "numaNodesPresent", "vfioCapable", "usbDevicesPresent", "gpuPresent"];

const FEATURE: &str = "feature.node.kubernetes.io";
/// Resources every node has.
const ORDINARY: [&str; 6] = ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi"];
const GPUS: [&str; 3] = ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"];

/// Hardware that at least one node has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Hardware {
    /// PCI devices, or any resource beyond the ordinary ones.
    pub pci_devices_present: bool,
    /// More than one NUMA node.
    pub numa_nodes_present: bool,
    /// An IOMMU that is switched on.
    pub vfio_capable: bool,
    /// USB devices.
    pub usb_devices_present: bool,
    /// A GPU.
    pub gpu_present: bool,
}

impl Hardware {
    /// What at least one of these nodes has.
    pub fn from_nodes(nodes: &[NodeFacts]) -> Hardware {
        let has_label = |label: &str| {
            let key = format!("{FEATURE}/{label}");
            nodes.iter().any(|node| node.labels.contains_key(&key))
        };
        let is_extraordinary = |resource: &String| !ORDINARY.contains(&resource.as_str());
        let has_extraordinary = nodes.iter().any(|node| node.capacity.keys().any(is_extraordinary));
        let has_numa_policy =
            nodes.iter().any(|node| node.annotations.contains_key("kubevirt.io/topology-manager-policy"));
        let iommu = format!("{FEATURE}/iommu-enabled");
        Hardware {
            pci_devices_present: has_label("pci-present") || has_extraordinary,
            numa_nodes_present: has_label("cpu-hardware_multithreading") || has_numa_policy,
            vfio_capable: nodes.iter().any(|node| node.labels.get(&iommu).is_some_and(|value| value == "true")),
            usb_devices_present: has_label("usb-present"),
            gpu_present: nodes.iter().any(|node| GPUS.iter().any(|gpu| node.capacity.contains_key(*gpu))),
        }
    }

    /// What a detector of this name says.
    pub fn detected(&self, detector: &str) -> Option<bool> {
        let values = [
            self.pci_devices_present,
            self.numa_nodes_present,
            self.vfio_capable,
            self.usb_devices_present,
            self.gpu_present,
        ];
        DETECTORS.iter().position(|name| *name == detector).map(|place| values[place])
    }
}

#[cfg(test)]
mod tests {
    use super::{DETECTORS, Hardware};
    use crate::node_facts::NodeFacts;

    fn detected(nodes: &[NodeFacts]) -> Vec<&'static str> {
        let hardware = Hardware::from_nodes(nodes);
        DETECTORS.into_iter().filter(|detector| hardware.detected(detector) == Some(true)).collect()
    }

    #[test]
    fn one_node_is_enough_for_the_cluster() {
        let plain = NodeFacts::of(&[], &[], &["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi"]);
        let label = |key: &str, value: &str| {
            NodeFacts::of(&[(&format!("feature.node.kubernetes.io/{key}"), value)], &[], &["cpu"])
        };
        let cases: [(NodeFacts, &[&str]); 8] = [
            (plain.clone(), &[]),
            (label("pci-present", ""), &["pciDevicesPresent"]),
            (NodeFacts::of(&[], &[], &["devices.kubevirt.io/kvm"]), &["pciDevicesPresent"]),
            (label("cpu-hardware_multithreading", "true"), &["numaNodesPresent"]),
            (NodeFacts::of(&[], &[("kubevirt.io/topology-manager-policy", "x")], &[]), &["numaNodesPresent"]),
            (label("iommu-enabled", "true"), &["vfioCapable"]),
            (label("iommu-enabled", "false"), &[]),
            (NodeFacts::of(&[], &[], &["nvidia.com/gpu"]), &["pciDevicesPresent", "gpuPresent"]),
        ];
        for (node, expected) in cases {
            assert_eq!(detected(&[plain.clone(), node]), expected);
        }
        assert_eq!(detected(&[]), Vec::<&str>::new());
    }
}
