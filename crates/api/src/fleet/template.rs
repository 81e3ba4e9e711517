//! `HypervisorMachineTemplate`: what a machine is made from, and how large it is.

use super::measure::{Quantity, Span};
use super::reference::Ref;
use super::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What machines are made from.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hyperfleet.io",
    version = "v1alpha1",
    kind = "HypervisorMachineTemplate",
    plural = "hypervisormachinetemplates",
    singular = "hypervisormachinetemplate",
    shortname = "hmt",
    category = "hyperfleet",
    namespaced,
    status = "HypervisorMachineTemplateStatus",
    derive = "PartialEq",
    doc = "What machines are made from.",
    printcolumn = r#"{"name": "Cluster", "type": "string", "jsonPath": ".spec.hypervisorClusterRef.name"}"#,
    printcolumn = r#"{"name": "Template", "type": "string", "jsonPath": ".status.resolvedTemplate"}"#,
    printcolumn = r#"{"name": "CPU", "type": "integer", "jsonPath": ".spec.resources.cpu"}"#,
    printcolumn = r#"{"name": "Memory", "type": "string", "jsonPath": ".spec.resources.memory"}"#,
    printcolumn = r#"{"name": "Available", "type": "boolean", "jsonPath": ".status.templateAvailable"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"TemplateValid\")].reason", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.hypervisorClusterRef == oldSelf.hypervisorClusterRef",
        "message": "hypervisorClusterRef cannot be changed; create another HypervisorMachineTemplate"
    },
    {
        "rule": "(has(self.cloudInit) ? self.cloudInit.delivery : 'Iso') == (has(oldSelf.cloudInit) ? oldSelf.cloudInit.delivery : 'Iso')",
        "message": "cloudInit.delivery cannot be changed, because machines that are being made got their data in the former way; create another HypervisorMachineTemplate"
    }
]))]
pub struct HypervisorMachineTemplateSpec {
    /// The hypervisor.
    pub hypervisor_cluster_ref: Ref,
    /// The template on the hypervisor.
    pub template: TemplateSource,
    /// How large a machine is.
    pub resources: Resources,
    /// Its network.
    #[serde(default)]
    pub network: Network,
    /// Its first configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cloud_init: Option<CloudInit>,
    /// When a machine counts as ready.
    #[serde(default)]
    pub readiness: Readiness,
    /// How a machine proves what it is; without it, it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<Attestation>,
    /// How a machine gets what its work needs; without it, only cloud-init does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,
}

/// The template on the hypervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.proxmox) != has(self.kubevirt)",
    "message": "set either template.proxmox or template.kubevirt, as the provider of the HypervisorCluster is"
}]))]
pub struct TemplateSource {
    /// On Proxmox VE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxmox: Option<ProxmoxTemplate>,
    /// With KubeVirt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubevirt: Option<KubevirtTemplate>,
}

/// A template of Proxmox VE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "[has(self.templateId), has(self.name), has(self.tag)].filter(is, is).size() == 1",
    "message": "set exactly one of templateId, name and tag"
}]))]
pub struct ProxmoxTemplate {
    /// Its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 999_999_999))]
    pub template_id: Option<u32>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// A tag: of several templates the one with the highest id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9_][a-z0-9_\-+.]*$"), length(max = 128))]
    pub tag: Option<String>,
    /// Machines are always clones; accepted for manifests of the predecessor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clone: Option<bool>,
    /// Whether a machine shares the disk of its template, which takes seconds and little space. Without it, wherever the storage can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_clone: Option<bool>,
    /// The storage of a full clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9._-]*$"))]
    pub storage: Option<String>,
}

/// A template of KubeVirt: a stopped `VirtualMachine` in the namespace of the `HypervisorCluster`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubevirtTemplate {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// How large a machine is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// CPUs.
    #[schemars(range(min = 1, max = 512))]
    pub cpu: u32,
    /// Memory.
    pub memory: Quantity,
    /// The size of its disk; without it, that of the template. A disk only grows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Quantity>,
}

/// The network of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.mode != 'static' || has(self.staticConfig)",
        "message": "mode static needs network.staticConfig with ip and gateway"
    },
    {
        "rule": "self.mode == 'static' || !has(self.staticConfig)",
        "message": "network.staticConfig has an effect only with mode static"
    }
]))]
pub struct Network {
    /// Where addresses come from.
    #[serde(default)]
    pub mode: NetworkMode,
    /// The bridge; without it, the default of the HypervisorCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"))]
    pub bridge: Option<String>,
    /// The VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094))]
    pub vlan: Option<u16>,
    /// For mode static. All machines of the template have the address, so that there can be only one at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_config: Option<StaticNetwork>,
}

/// Where addresses come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkMode {
    /// From a DHCP server.
    #[default]
    Dhcp,
    /// From staticConfig.
    Static,
    /// From cloudInit.networkData.
    CloudInit,
}

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StaticNetwork {
    /// The address with its prefix, such as `192.0.2.10/24`.
    #[schemars(regex(pattern = r"^[0-9a-fA-F.:]+/[0-9]{1,3}$"), length(max = 64))]
    pub ip: String,
    /// The gateway.
    #[schemars(regex(pattern = r"^[0-9a-fA-F.:]+$"), length(max = 64))]
    pub gateway: String,
    /// Name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub dns: Vec<String>,
}

/// The first configuration of a machine. It is readable by whoever can read this object: no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudInit {
    /// A cloud-config, which is merged with what the fleet adds, or a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65_536))]
    pub user_data: Option<String>,
    /// Further keys of the meta-data, as YAML; instance-id and local-hostname are the fleet's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16_384))]
    pub meta_data: Option<String>,
    /// The network configuration, version 1 or 2, as YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16_384))]
    pub network_data: Option<String>,
    /// How it gets into the machine: Iso attaches an image before the first boot, which is removed once the guest has reported an address,
    /// or with the machine unless network.mode is dhcp; GuestAgent writes files and runs cloud-init once the guest agent of a Linux guest
    /// answers, and needs no storage. It cannot be changed.
    #[serde(default)]
    pub delivery: SeedDelivery,
    /// The storage to which the image is uploaded; it has to allow ISO images.
    #[serde(default = "local")]
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9._-]*$"))]
    pub storage: String,
    /// Where the image is attached: `ide2`, or on arm64 `scsi2`.
    #[serde(default = "ide2")]
    #[schemars(regex(pattern = r"^(ide[0-3]|sata[0-5]|scsi[1-5])$"))]
    pub bus: String,
}

/// How the first configuration gets into a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SeedDelivery {
    /// By an image that is attached to the machine.
    #[default]
    Iso,
    /// By the guest agent.
    GuestAgent,
}

fn local() -> String {
    "local".into()
}

fn ide2() -> String {
    "ide2".into()
}

/// When a machine counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Readiness {
    /// The sign that it is ready.
    #[serde(default)]
    pub signal: ReadinessSignal,
    /// A machine that is not ready after this has failed.
    #[serde(default = "ten_minutes")]
    pub timeout: Span,
}

fn ten_minutes() -> Span {
    Span("10m".into())
}

impl Default for Readiness {
    fn default() -> Readiness {
        Readiness { signal: ReadinessSignal::default(), timeout: ten_minutes() }
    }
}

/// The sign that a machine is ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReadinessSignal {
    /// Its guest agent reports an address.
    #[default]
    AgentAddress,
    /// It runs.
    Running,
}

/// How a machine proves what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.method in ['join-token', 'tpm']",
    "message": "attestation.method must be join-token or tpm; to switch attestation off, remove attestation"
}]))]
pub struct Attestation {
    /// `join-token` or `tpm`.
    #[schemars(length(max = 32))]
    pub method: String,
    /// Settings of the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_fields")]
    pub config: Option<Map<String, Value>>,
}

/// How a machine gets what its work needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.method in ['runner-token', 'external-secrets']",
    "message": "bootstrap.method must be runner-token or external-secrets; to use cloud-init only, remove bootstrap"
}]))]
pub struct Bootstrap {
    /// `runner-token` or `external-secrets`.
    #[schemars(length(max = 32))]
    pub method: String,
    /// Settings of the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_fields")]
    pub config: Option<Map<String, Value>>,
}

/// An object with any fields.
pub(super) fn any_fields(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true})
}

/// The state of a `HypervisorMachineTemplate`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HypervisorMachineTemplateStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether machines can be made from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_available: Option<bool>,
    /// The template that was found: its name and its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_template: Option<String>,
    /// Why it is valid or not, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation_status: Option<String>,
    /// When that was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_validated: Option<Time>,
    /// TemplateValid, and InUse: which claims keep a deleted object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
