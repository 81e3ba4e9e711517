//! `HypervisorCluster`: a hypervisor, how it is reached, and what the fleet may use of it.

use super::measure::{Quantity, Span};
use super::reference::SecretKeyRef;
use super::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A hypervisor on which machines are created.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hyperfleet.io",
    version = "v1alpha1",
    kind = "HypervisorCluster",
    plural = "hypervisorclusters",
    singular = "hypervisorcluster",
    shortname = "hvc",
    category = "hyperfleet",
    namespaced,
    status = "HypervisorClusterStatus",
    derive = "PartialEq",
    doc = "A hypervisor on which machines are created.",
    printcolumn = r#"{"name": "Provider", "type": "string", "jsonPath": ".spec.provider"}"#,
    printcolumn = r#"{"name": "Endpoint", "type": "string", "jsonPath": ".spec.endpoint"}"#,
    printcolumn = r#"{"name": "Nodes", "type": "integer", "jsonPath": ".status.connectedNodes"}"#,
    printcolumn = r#"{"name": "Machines", "type": "integer", "jsonPath": ".status.machines"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.endpoint.startsWith('https://') || (self.allowInsecureHttp && self.endpoint.startsWith('http://'))",
        "message": "endpoint must start with https://; to use http://, which sends the credentials unencrypted, set allowInsecureHttp to true"
    },
    {
        "rule": "self.provider == oldSelf.provider",
        "message": "provider cannot be changed; create another HypervisorCluster"
    },
    {
        "rule": "self.provider != 'proxmox' || has(self.credentials)",
        "message": "provider proxmox needs credentials: set credentials.tokenId and credentials.tokenSecret"
    }
]))]
pub struct HypervisorClusterSpec {
    /// What kind of hypervisor it is.
    pub provider: Provider,
    /// The address of its API, such as `https://pve.example.com:8006`.
    #[schemars(length(min = 8, max = 512))]
    pub endpoint: String,
    /// Whether an address with http:// is allowed.
    #[serde(default)]
    pub allow_insecure_http: bool,
    /// How the fleet logs in: an API token, or a user with a password. The Secrets are in the namespace of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// How the certificate of the hypervisor is verified.
    #[serde(default)]
    pub tls: Tls,
    /// The namespaces whose templates may use it, beside its own; `*` stands for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub allowed_namespaces: Vec<String>,
    /// The nodes on which machines are created; without it, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub nodes: Vec<String>,
    /// The storage of full clones whose template names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_storage: Option<String>,
    /// The bridge of machines whose template names none; without it, the bridge of the hypervisor's template stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_network: Option<String>,
    /// The ids that machines get. No other operator should use ids of this range.
    #[serde(default)]
    pub vm_ids: VmIds,
    /// The resource pool of the hypervisor into which machines are put. The API token needs rights on this pool only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_pool: Option<String>,
    /// How much is done at the same time.
    #[serde(default)]
    pub limits: Limits,
    /// How much more than there is may be promised to machines.
    #[serde(default)]
    pub overcommit: Overcommit,
    /// What happens to machines of this installation that no claim refers to.
    #[serde(default)]
    pub orphans: Orphans,
    /// A machine that is not gone so long after its claim was deleted needs a person: the claim says so (`CleanupStuck`), and the fleet keeps trying.
    #[serde(default = "ten_minutes")]
    pub cleanup_deadline: Span,
    /// Put on every machine as tags `key-value`, in the characters that the hypervisor allows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// A kind of hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Proxmox VE.
    Proxmox,
    /// `VirtualMachine` objects of KubeVirt.
    Kubevirt,
}

/// How the fleet logs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.tokenId) && has(self.tokenSecret)) || (has(self.username) && has(self.password))",
    "message": "set tokenId and tokenSecret (preferred), or username and password"
}]))]
pub struct Credentials {
    /// The id of an API token, such as `fleet@pve!virtpilot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<SecretKeyRef>,
    /// The secret of that token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_secret: Option<SecretKeyRef>,
    /// A user, such as `fleet@pve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<SecretKeyRef>,
    /// The password of that user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretKeyRef>,
}

impl Credentials {
    /// All references, in a fixed order.
    pub fn refs(&self) -> impl Iterator<Item = &SecretKeyRef> {
        [&self.token_id, &self.token_secret, &self.username, &self.password].into_iter().flatten()
    }
}

/// How a certificate is verified.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!self.insecureSkipVerify || (!has(self.fingerprint) && !has(self.caCertificate))",
    "message": "insecureSkipVerify switches verification off, so that fingerprint and caCertificate have no effect: remove it, or remove them"
}]))]
pub struct Tls {
    /// With true, the certificate is not verified: whoever is in between learns the credentials.
    #[serde(default)]
    pub insecure_skip_verify: bool,
    /// The certificate authority, as PEM in a Secret of this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<SecretKeyRef>,
    /// The SHA-256 fingerprint of the hypervisor's certificate, as its web interface shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}$"), length(max = 95))]
    pub fingerprint: Option<String>,
}

/// A range of ids, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.from <= self.to",
    "message": "vmIds.from must not be greater than vmIds.to"
}]))]
pub struct VmIds {
    /// The first id.
    #[schemars(range(min = 100, max = 999_999_999))]
    pub from: u32,
    /// The last id.
    #[schemars(range(min = 100, max = 999_999_999))]
    pub to: u32,
}

impl Default for VmIds {
    fn default() -> VmIds {
        VmIds { from: 100_000, to: 199_999 }
    }
}

/// How much is done at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Clones of one storage: more of them run into its lock.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 100))]
    pub clones_per_storage: u32,
    /// Clones on one node.
    #[serde(default = "four")]
    #[schemars(range(min = 1, max = 100))]
    pub clones_per_node: u32,
    /// Machines of the fleet on this hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<u32>,
}

fn two() -> u32 {
    2
}

fn four() -> u32 {
    4
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { clones_per_storage: two(), clones_per_node: four(), machines: None }
    }
}

/// How much more than there is may be promised, in percent of what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overcommit {
    /// CPUs of machines, in percent of the CPUs of their node.
    #[serde(default = "four_hundred")]
    #[schemars(range(min = 10, max = 10_000))]
    pub cpu_percent: u32,
    /// Memory of machines, in percent of the memory of their node.
    #[serde(default = "hundred")]
    #[schemars(range(min = 10, max = 1_000))]
    pub memory_percent: u32,
    /// Disks of full clones, in percent of their storage.
    #[serde(default = "hundred")]
    #[schemars(range(min = 10, max = 1_000))]
    pub storage_percent: u32,
}

fn hundred() -> u32 {
    100
}

fn four_hundred() -> u32 {
    400
}

impl Default for Overcommit {
    fn default() -> Overcommit {
        Overcommit { cpu_percent: four_hundred(), memory_percent: hundred(), storage_percent: hundred() }
    }
}

/// What happens to machines of this installation that no claim refers to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Orphans {
    /// Delete destroys them, Report only names them.
    #[serde(default)]
    pub policy: OrphanPolicy,
    /// How long a machine must have been seen without a claim before it is destroyed.
    #[serde(default = "ten_minutes")]
    pub grace_period: Span,
}

fn ten_minutes() -> Span {
    Span("10m".into())
}

impl Default for Orphans {
    fn default() -> Orphans {
        Orphans { policy: OrphanPolicy::default(), grace_period: ten_minutes() }
    }
}

/// What happens to orphans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OrphanPolicy {
    /// They are named in the status, in events and in metrics.
    Report,
    /// They are destroyed: each has a record that this installation made it.
    #[default]
    Delete,
}

/// The state of a `HypervisorCluster`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HypervisorClusterStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The version of the hypervisor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The address at which its machines are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// How many nodes answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_nodes: Option<i32>,
    /// How many machines claims have on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machines: Option<i32>,
    /// What is left for further machines, in whole units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_resources: Option<AvailableResources>,
    /// Machines of this installation that no claim refers to. One with `(no owner record)` has the tag of the fleet, or is in its resource pool, and does not say whose it is: it is never destroyed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<String>,
    /// When this status was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,
    /// Ready: the hypervisor answers and the credentials suffice. NodesOnline: whether the nodes that may be used answer. InUse: which claims keep a deleted object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// What is left for further machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailableResources {
    /// CPUs.
    pub cpu: i64,
    /// Memory.
    pub memory: Quantity,
    /// Space on storages, each counted once.
    pub storage: Quantity,
}
