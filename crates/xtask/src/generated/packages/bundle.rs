//! Bundles for the Operator Lifecycle Manager: `deploy/olm/bundle` with autopilot and advisor, and `deploy/olm/fleet`.

use super::super::{File, fleet_samples};
use super::{one, yaml};
use install::Installation;
use serde_json::{Map, Value, json};

const CHANNEL: &str = "alpha";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const DESCRIPTION: &str = "Applies the recommended configuration of KubeVirt and OpenShift Virtualization, corrects drift, and never \
restarts a node without consent. Users control it with annotations on the HyperConverged and on the objects that it manages. Profiles are \
planned as VirtPlatformConfigs, and applied exactly as they were approved.

Before you uninstall it, run `virtpilot handback`: it stops managing every object and keeps every value.";
/// What a console offers to create: it plans, and writes nothing.
const EXAMPLES: &str = r#"[{"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": "load-aware-rebalancing"}, "spec": {"profile": "load-aware-rebalancing", "action": "DryRun"}}]"#;
const FLEET_DESCRIPTION: &str = "Creates one virtual machine for each MachineClaim on Proxmox VE or with KubeVirt, and destroys it with the claim. \
Whose a machine is, is written on the machine in the request that creates it; no other machine is touched.

Install it into the namespace virtpilot-fleet, which its rights name. The fleet reads only the Secrets that it is granted by name: `virtpilot rbac --product fleet --namespace NAMESPACE --fleet-secrets NAMESPACE/NAME | kubectl apply -f -`. \
Delete pools and claims before you uninstall it: if the fleet goes first, its machines stay.";
const ICON: &str = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA2NCA2NCI+PHBhdGggZmlsbD0iIzJiNmNiMCIgZD0iTTggMTIgMzIgNTYgNTYgMTIgMzIgMjZ6Ii8+PC9zdmc+";

/// One bundle.
struct Bundle<'a> {
    folder: &'static str,
    package: &'static str,
    title: &'static str,
    /// In one line.
    summary: &'static str,
    description: &'static str,
    examples: String,
    keywords: &'static [&'static str],
    namespace: &'static str,
    min_kubernetes: &'static str,
    /// The service account, and whose rights it has.
    account: &'static str,
    rights: Vec<&'a [Value]>,
    installation: &'a Installation,
}

pub(super) fn files(both: &Installation, fleet: &Installation) -> anyhow::Result<Vec<File>> {
    let platform = Bundle {
        folder: "deploy/olm/bundle",
        package: "virtpilot",
        title: "Virtpilot",
        summary: "Configures and maintains KubeVirt and OpenShift Virtualization clusters",
        description: DESCRIPTION,
        examples: EXAMPLES.to_owned(),
        keywords: &["kubevirt", "virtualization", "configuration"],
        namespace: api::hco::NAMESPACE,
        min_kubernetes: "1.30.0",
        account: install::NAME,
        rights: vec![&both.operator, &both.advisor],
        installation: both,
    };
    let machines = Bundle {
        folder: "deploy/olm/fleet",
        package: "virtpilot-fleet",
        title: "Virtpilot fleet",
        summary: "Creates short-lived virtual machines on Proxmox VE and KubeVirt, and destroys them",
        description: FLEET_DESCRIPTION,
        examples: json!(fleet_samples::objects()).to_string(),
        keywords: &["proxmox", "kubevirt", "virtual machines", "ci"],
        namespace: install::FLEET_NAMESPACE,
        min_kubernetes: "1.29.0",
        account: install::FLEET,
        rights: vec![&fleet.fleet],
        installation: fleet,
    };
    let mut files = manifests(&platform)?;
    files.extend(manifests(&machines)?);
    Ok(files)
}

fn manifests(bundle: &Bundle<'_>) -> anyhow::Result<Vec<File>> {
    let Bundle { folder, package, installation, .. } = bundle;
    let manifest = |name: &str, object: &Value| yaml(&format!("{folder}/manifests/{name}.yaml"), [object]);
    let mut files = vec![
        manifest(&format!("{package}.clusterserviceversion"), &service_version(bundle)?),
        yaml(&format!("{folder}/metadata/annotations.yaml"), [&annotations(package)]),
    ];
    let workload = installation
        .workload
        .iter()
        .filter(|object| !["Deployment", "Namespace"].iter().any(|kind| object["kind"] == *kind));
    // A bundle cannot have the admission policy, and without it the roles of those who change something give root on the nodes.
    let is_safe = |role: &&Value| {
        let is_viewer = role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-viewer"));
        is_viewer || installation.policy.is_empty()
    };
    for object in installation.crds.iter().chain(installation.people.iter().filter(is_safe)).chain(workload) {
        let mut object = object.clone();
        // The manager puts objects into the namespace of the operator.
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
        files.push(manifest(&format!("{}_{}", text(&object["metadata"]["name"]), text(&object["kind"])), &object));
    }
    Ok(files)
}

fn annotations(package: &str) -> Value {
    let key = |name: &str| format!("operators.operatorframework.io.bundle.{name}");
    let entries = [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", package),
        ("channels.v1", CHANNEL),
        ("channel.default.v1", CHANNEL),
    ];
    let entries: Map<String, Value> = entries.map(|(name, value)| (key(name), json!(value))).into_iter().collect();
    json!({"annotations": entries})
}

/// What a console shows of the kind of a CRD.
fn owned(crd: &Value) -> Value {
    let kind = &crd["spec"]["names"]["kind"];
    let (name, description) = match kind.as_str().unwrap_or_default() {
        "HypervisorCluster" => ("Hypervisor", "A hypervisor on which machines are created."),
        "HypervisorMachineTemplate" => ("Machine template", "What machines are made from."),
        "MachineClaim" => ("Machine claim", "One machine, for as long as the claim exists."),
        "RunnerPool" => ("Runner pool", "A number of machines of one template."),
        _ => ("Platform profile", "A profile of the platform, planned and applied as it was approved."),
    };
    json!({
        "name": crd["metadata"]["name"],
        "kind": kind,
        "version": crd["spec"]["versions"][0]["name"],
        "displayName": name,
        "description": description,
    })
}

fn service_version(bundle: &Bundle<'_>) -> anyhow::Result<Value> {
    let Bundle { package, installation, .. } = bundle;
    let deployment = one(&installation.workload, "Deployment")?;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let permissions = |kind: &str| -> anyhow::Result<Value> {
        let of = |objects: &&[Value]| -> anyhow::Result<Value> {
            Ok(json!({"serviceAccountName": bundle.account, "rules": one(objects, kind)?["rules"]}))
        };
        Ok(json!(bundle.rights.iter().map(of).collect::<anyhow::Result<Vec<Value>>>()?))
    };
    let owned: Vec<Value> = installation.crds.iter().map(owned).collect();
    let mode = |name: &str| json!({"type": name, "supported": name == "OwnNamespace"});
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"].map(mode);
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{package}.v{VERSION}"),
            "annotations": {
                "alm-examples": bundle.examples,
                "capabilities": "Seamless Upgrades",
                "categories": "OpenShift Optional",
                "containerImage": image,
                "description": bundle.summary,
                "operatorframework.io/suggested-namespace": bundle.namespace,
            },
        },
        "spec": {
            "displayName": bundle.title,
            "description": bundle.description,
            "version": VERSION,
            "maturity": CHANNEL,
            "minKubeVersion": bundle.min_kubernetes,
            "provider": {"name": "Virtpilot"},
            "keywords": bundle.keywords,
            "icon": [{"base64data": ICON, "mediatype": "image/svg+xml"}],
            "installModes": modes,
            "customresourcedefinitions": {"owned": owned},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": permissions("ClusterRole")?,
                    "permissions": permissions("Role")?,
                    "deployments": [{
                        "name": bundle.account,
                        "label": deployment["metadata"]["labels"],
                        "spec": deployment["spec"],
                    }],
                },
            },
            "relatedImages": [{"name": package, "image": image}],
        },
    }))
}
