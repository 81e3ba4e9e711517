//! The eight clusters.

use catalog::{Answer, Catalog, Condition, Facts, Hardware, Need, Pool, Query, Topology};
use serde_json::{Map, Value, json};

/// A cluster to render for.
pub(in crate::generated) struct Cluster {
    pub(in crate::generated) name: &'static str,
    pub(in crate::generated) facts: Facts,
    /// The release of the descheduler operator.
    descheduler: &'static str,
}

/// What distinguishes a cluster from the first one.
struct Shape {
    name: &'static str,
    platform: &'static str,
    control_plane: &'static str,
    masters: i64,
    workers: i64,
    version: &'static str,
    descheduler: &'static str,
    has_gpu: bool,
    has_psi: bool,
    has_openshift: bool,
    has_secure_metrics: bool,
    api_version: &'static str,
}

const BARE_METAL: Shape = Shape {
    name: "bare-metal",
    platform: "BareMetal",
    control_plane: "HighlyAvailable",
    masters: 3,
    workers: 6,
    version: "4.20.4",
    descheduler: "5.3",
    has_gpu: false,
    has_psi: true,
    has_openshift: true,
    has_secure_metrics: false,
    api_version: "hco.kubevirt.io/v1",
};

const SHAPES: [Shape; 8] = [
    BARE_METAL,
    Shape { name: "compact", workers: 0, ..BARE_METAL },
    Shape {
        name: "single-node",
        platform: "None",
        control_plane: "SingleReplica",
        masters: 1,
        workers: 0,
        ..BARE_METAL
    },
    Shape {
        name: "hosted",
        platform: "None",
        control_plane: "External",
        masters: 0,
        workers: 3,
        has_secure_metrics: true,
        ..BARE_METAL
    },
    Shape { name: "aws", platform: "AWS", workers: 12, descheduler: "5.2", ..BARE_METAL },
    Shape {
        name: "vsphere",
        platform: "VSphere",
        version: "4.18.9",
        descheduler: "5.1",
        api_version: "hco.kubevirt.io/v1beta1",
        ..BARE_METAL
    },
    Shape { name: "gpu", workers: 60, has_gpu: true, has_psi: false, ..BARE_METAL },
    Shape {
        name: "plain-kubernetes",
        platform: "",
        control_plane: "",
        version: "",
        has_openshift: false,
        has_secure_metrics: true,
        ..BARE_METAL
    },
];

/// API groups that only OpenShift serves.
const OPENSHIFT: [&str; 3] = ["openshift.io", "loki.grafana.com", "forklift.konveyor.io"];

pub(in crate::generated) fn all(catalog: &Catalog) -> Vec<Cluster> {
    SHAPES.iter().map(|shape| cluster(catalog, shape)).collect()
}

fn cluster(catalog: &Catalog, shape: &Shape) -> Cluster {
    let mut annotations = Map::new();
    let mut facts = Facts { secure_metrics: shape.has_secure_metrics, ..Facts::default() };
    for condition in catalog.assets.iter().flat_map(|asset| &asset.conditions).flat_map(Condition::leaves) {
        match condition {
            Condition::Annotation { key, value } => {
                annotations.insert(key.clone(), json!(value.as_deref().unwrap_or("true")));
            }
            Condition::Image { key } => {
                facts.images.insert(key.clone(), format!("registry.example/{key}:1.0"));
            }
            _ => {}
        }
    }
    // A health check has one remediation: fencing where there are management controllers, else the nodes restart themselves.
    let other = if shape.platform == "BareMetal" { "enable-self-node-remediation" } else { "enable-node-remediation" };
    annotations.remove(&format!("{}{other}", api::annotation::PREFIX));
    for setting in ["enable-aaq", "enable-incident-detection", "enable-audit-logging", "enable-cpu-manager"] {
        annotations.insert(format!("{}{setting}", api::annotation::PREFIX), json!("true"));
    }
    if shape.platform == "BareMetal" {
        annotations.insert(format!("{}logging-storage-class", api::annotation::PREFIX), json!("fast"));
    }
    facts.hco = json!({"apiVersion": shape.api_version, "kind": api::hco::KIND,
        "metadata": {"name": api::hco::NAME, "namespace": api::hco::NAMESPACE, "annotations": annotations, "labels": {}},
        "spec": {"virtualization": {"permittedHostDevices": {"usbHostDevices": [{"resourceName": "example.com/stick", "selectors": [{"vendor": "46f4", "product": "0001"}]}]}}}});
    facts.hardware = Hardware {
        pci_devices_present: true,
        numa_nodes_present: true,
        vfio_capable: true,
        usb_devices_present: true,
        gpu_present: shape.has_gpu,
    };
    facts.topology = topology(shape);
    facts.cluster_version = shape.version.to_owned();
    if shape.has_openshift && shape.control_plane != "External" {
        facts.pools = ["master", "worker"].map(|name| pool(name, shape.has_psi)).into();
    }
    let needs = catalog.all_assets().flat_map(Need::all_of);
    facts.absent = needs.filter(|need| is_absent(need, shape)).collect();
    Cluster { name: shape.name, facts, descheduler: shape.descheduler }
}

fn topology(shape: &Shape) -> Topology {
    let is = |platform: &str| shape.platform == platform;
    let is_compact = shape.workers == 0;
    Topology {
        is_hcp: shape.control_plane == "External",
        is_compact,
        has_schedulable_masters: is_compact,
        is_aws: is("AWS"),
        is_azure: is("Azure"),
        is_gcp: is("GCP"),
        is_bare_metal: is("BareMetal"),
        is_vsphere: is("VSphere"),
        is_open_stack: is("OpenStack"),
        control_plane_topology: shape.control_plane.to_owned(),
        cloud_provider: shape.platform.to_owned(),
        master_count: shape.masters,
        worker_count: shape.workers,
        total_node_count: shape.masters + shape.workers,
    }
}

fn pool(name: &str, has_psi: bool) -> Pool {
    let label = format!("pools.operator.machineconfiguration.openshift.io/{name}");
    let sources = if has_psi { vec![format!("99-openshift-machineconfig-{name}-psi-karg")] } else { Vec::new() };
    Pool { name: name.to_owned(), labels: [(label, String::new())].into(), sources, ..Pool::default() }
}

fn is_absent(need: &Need, shape: &Shape) -> bool {
    let group = need.labels().group;
    let is_of_nodes = group == "machineconfiguration.openshift.io" && shape.control_plane == "External";
    is_of_nodes
        || (!shape.has_openshift && OPENSHIFT.iter().any(|of| group == *of || group.ends_with(&format!(".{of}"))))
}

impl Cluster {
    /// What the cluster answers.
    pub(in crate::generated) fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::Crd { name } => Answer::Found(crd(name, self.descheduler)),
            Query::List { kind, .. } if kind == "StorageProfile" => Answer::Found(json!([storage_profile()])),
            Query::List { .. } => Answer::Found(json!([])),
            Query::Object { .. } => Answer::Absent,
        }
    }
}

fn storage_profile() -> Value {
    json!({"metadata": {"name": "shared"}, "status": {"claimPropertySets": [{"volumeMode": "Filesystem", "accessModes": ["ReadWriteMany"]}]}})
}

/// The part of a CRD that templates look at.
fn crd(name: &str, descheduler: &str) -> Value {
    let spec = match name {
        "kubedeschedulers.operator.openshift.io" => descheduler_spec(descheduler),
        "uiplugins.observability.openshift.io" => {
            json!({"monitoring": {"properties": {"perses": {}, "incidents": {}, "clusterHealthAnalyzer": {}}}})
        }
        _ => json!({}),
    };
    let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": spec}}}});
    json!({"spec": {"versions": [{"storage": true, "schema": schema}]}})
}

fn descheduler_spec(release: &str) -> Value {
    let (profile, limits) = match release {
        "5.1" => ("LongLifecycle", json!({"total": {}})),
        "5.2" => ("DevKubeVirtRelieveAndMigrate", json!({"total": {}})),
        _ => ("KubeVirtRelieveAndMigrate", json!({"total": {}, "node": {}})),
    };
    let customizations = json!({
        "devEnableEvictionsInBackground": {},
        "devEnableSoftTainter": {},
        "devActualUtilizationProfile": {"enum": ["PrometheusCPUUsage", "PrometheusCPUCombined", "PrometheusCPUMemoryCombinedProfile"]},
        "devDeviationThresholds": {"enum": ["Low", "Medium", "High", "AsymmetricLow"]},
    });
    json!({"profiles": {"items": {"enum": ["LifecycleAndUtilization", profile]}}, "evictionLimits": {"properties": limits},
        "profileCustomizations": {"properties": customizations}, "mode": {"enum": ["Automatic", "Predictive"]}})
}
