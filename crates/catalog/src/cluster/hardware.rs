//! The hardware of the nodes of a cluster.

use crate::cluster::node::NodeDescription;
use serde::{Deserialize, Serialize};

/// The names of hardware detectors in conditions, in the order of [`Hardware`]'s fields.
pub const DETECTORS: [&str; 5] =
    ["pciDevicesPresent", "numaNodesPresent", "vfioCapable", "usbDevicesPresent", "gpuPresent"];

/// What a node of a detector has, in words.
pub(crate) fn device(detector: &str) -> &str {
    match detector {
        "pciDevicesPresent" => "PCI devices",
        "numaNodesPresent" => "several NUMA nodes",
        "vfioCapable" => "an enabled IOMMU",
        "usbDevicesPresent" => "USB devices",
        "gpuPresent" => "a GPU",
        other => other,
    }
}

const FEATURE: &str = "feature.node.kubernetes.io";
/// Resources that every node has.
const ORDINARY: [&str; 6] = ["cpu", "memory", "pods", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi"];
const GPUS: [&str; 3] = ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"];

/// Hardware that at least one node has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Hardware {
    /// PCI devices, or any resource that not every node has.
    pub pci_devices_present: bool,
    /// More than one NUMA node.
    pub numa_nodes_present: bool,
    /// An enabled IOMMU.
    pub vfio_capable: bool,
    /// USB devices.
    pub usb_devices_present: bool,
    /// A GPU.
    pub gpu_present: bool,
}

impl Hardware {
    /// The hardware of one node. A resource with a capacity of zero is not a device.
    pub(crate) fn of(node: &NodeDescription) -> Hardware {
        let has_label = |label: &str| node.labels.contains_key(&format!("{FEATURE}/{label}"));
        // Node Feature Discovery names devices by class and vendor: `pci-0302_10de.present`.
        let has_device = |bus: &str| {
            let features = node.labels.keys().filter_map(|key| key.strip_prefix(FEATURE)?.strip_prefix('/'));
            features.filter_map(|feature| feature.strip_prefix(bus)).any(|device| device.ends_with(".present"))
        };
        let mut resources = node.capacity.iter().filter(|(_, amount)| !is_zero(amount)).map(|(name, _)| name.as_str());
        let gpu_present = resources.clone().any(|resource| GPUS.contains(&resource));
        Hardware {
            pci_devices_present: has_label("pci-present")
                || has_device("pci-")
                || resources.any(|resource| !ORDINARY.contains(&resource)),
            numa_nodes_present: has_label("memory-numa")
                || has_label("cpu-hardware_multithreading")
                || node.annotations.contains_key("kubevirt.io/topology-manager-policy"),
            vfio_capable: node.labels.get(&format!("{FEATURE}/iommu-enabled")).is_some_and(|value| value == "true"),
            usb_devices_present: has_label("usb-present") || has_device("usb-"),
            gpu_present,
        }
    }

    /// The hardware that at least one of these has.
    pub fn of_any<'a>(all: impl Iterator<Item = &'a Hardware>) -> Hardware {
        all.fold(Hardware::default(), |sum, one| Hardware {
            pci_devices_present: sum.pci_devices_present || one.pci_devices_present,
            numa_nodes_present: sum.numa_nodes_present || one.numa_nodes_present,
            vfio_capable: sum.vfio_capable || one.vfio_capable,
            usb_devices_present: sum.usb_devices_present || one.usb_devices_present,
            gpu_present: sum.gpu_present || one.gpu_present,
        })
    }

    /// The result of a hardware detector; `None` if there is no detector of this name.
    pub fn detected(&self, detector: &str) -> Option<bool> {
        let values = [
            self.pci_devices_present,
            self.numa_nodes_present,
            self.vfio_capable,
            self.usb_devices_present,
            self.gpu_present,
        ];
        DETECTORS.iter().position(|name| *name == detector).map(|index| values[index])
    }
}

/// Whether a quantity is zero: `0`, `0Ki`, `0.0`.
fn is_zero(amount: &str) -> bool {
    !amount
        .chars()
        .take_while(|character| !character.is_ascii_alphabetic())
        .any(|character| ('1'..='9').contains(&character))
}

#[cfg(test)]
mod tests {
    use super::{DETECTORS, Hardware};
    use crate::cluster::node::NodeDescription;

    fn detected(nodes: &[NodeDescription]) -> Vec<&'static str> {
        let all: Vec<Hardware> = nodes.iter().map(Hardware::of).collect();
        let hardware = Hardware::of_any(all.iter());
        DETECTORS.into_iter().filter(|detector| hardware.detected(detector) == Some(true)).collect()
    }

    #[test]
    fn hardware_of_one_node_counts_for_the_cluster() {
        let label = |key: &str, value: &str| {
            NodeDescription::with(&[(&format!("feature.node.kubernetes.io/{key}"), value)], &[], &["cpu"])
        };
        let cases: [(NodeDescription, &[&str]); 11] = [
            (label("pci-present", ""), &["pciDevicesPresent"]),
            (NodeDescription::with(&[], &[], &["devices.kubevirt.io/kvm"]), &["pciDevicesPresent"]),
            (label("cpu-hardware_multithreading", "true"), &["numaNodesPresent"]),
            (NodeDescription::with(&[], &[("kubevirt.io/topology-manager-policy", "x")], &[]), &["numaNodesPresent"]),
            (label("pci-0302_10de.present", "true"), &["pciDevicesPresent"]),
            (label("usb-ff_1050_0407.present", "true"), &["usbDevicesPresent"]),
            (label("pci-0302_10de.sriov.capable", "true"), &[]),
            (label("memory-numa", "true"), &["numaNodesPresent"]),
            (label("iommu-enabled", "true"), &["vfioCapable"]),
            (label("iommu-enabled", "false"), &[]),
            (NodeDescription::with(&[], &[], &["nvidia.com/gpu"]), &["pciDevicesPresent", "gpuPresent"]),
        ];
        for (node, expected) in cases {
            let plain =
                NodeDescription::with(&[], &[], &["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi"]);
            assert_eq!(detected(&[plain, node]), expected);
        }
        assert_eq!(detected(&[label("usb-present", "true")]), ["usbDevicesPresent"]);
        let (usb, vfio) = (label("usb-present", "true"), label("iommu-enabled", "true"));
        assert_eq!(detected(&[usb, vfio]), ["vfioCapable", "usbDevicesPresent"], "of any node");
        assert_eq!(detected(&[]), Vec::<&str>::new());
    }

    #[test]
    fn a_resource_with_zero_capacity_is_not_a_device() {
        for (amount, is_present) in
            [("0", false), ("0Ki", false), ("0.0", false), ("1", true), ("10", true), ("1e3", true)]
        {
            let mut node = NodeDescription::with(&[], &[], &["nvidia.com/gpu"]);
            node.capacity.insert("nvidia.com/gpu".into(), amount.into());
            let hardware = Hardware::of(&node);
            assert_eq!((hardware.gpu_present, hardware.pci_devices_present), (is_present, is_present), "{amount}");
        }
    }
}
