//! `deploy/olm/bundle`, a bundle for the Operator Lifecycle Manager.

use super::super::File;
use super::{one, yaml};
use install::Installation;
use serde_json::{Map, Value, json};

const FOLDER: &str = "deploy/olm/bundle";
const PACKAGE: &str = "virtpilot";
const CHANNEL: &str = "alpha";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const DESCRIPTION: &str = "Applies the recommended configuration of KubeVirt and OpenShift Virtualization, corrects drift, and never \
restarts a node without consent. Users control it with annotations on the HyperConverged and on the objects that it manages. Profiles are \
planned as VirtPlatformConfigs, and applied exactly as they were approved.

Before you uninstall it, run `virtpilot handback`: it stops managing every object and keeps every value.";
/// What a console offers to create: it plans, and writes nothing.
const EXAMPLES: &str = r#"[{"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": "load-aware-rebalancing"}, "spec": {"profile": "load-aware-rebalancing", "action": "DryRun"}}]"#;
const ICON: &str = "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCA2NCA2NCI+PHBhdGggZmlsbD0iIzJiNmNiMCIgZD0iTTggMTIgMzIgNTYgNTYgMTIgMzIgMjZ6Ii8+PC9zdmc+";

pub(super) fn files(installation: &Installation) -> anyhow::Result<Vec<File>> {
    let manifest = |name: &str, object: &Value| yaml(&format!("{FOLDER}/manifests/{name}.yaml"), [object]);
    let mut files = vec![
        manifest(&format!("{PACKAGE}.clusterserviceversion"), &service_version(installation)?),
        yaml(&format!("{FOLDER}/metadata/annotations.yaml"), [&annotations()]),
    ];
    let workload = installation.workload.iter().filter(|object| object["kind"] != "Deployment");
    // A bundle cannot have the admission policy, and without it the roles of those who change something give root on the nodes.
    let is_viewer = |role: &&Value| role["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-viewer"));
    for object in installation.crds.iter().chain(installation.people.iter().filter(is_viewer)).chain(workload) {
        let mut object = object.clone();
        // The manager puts objects into the namespace of the operator.
        object["metadata"].as_object_mut().map(|metadata| metadata.remove("namespace"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_lowercase();
        files.push(manifest(&format!("{}_{}", text(&object["metadata"]["name"]), text(&object["kind"])), &object));
    }
    Ok(files)
}

fn annotations() -> Value {
    let key = |name: &str| format!("operators.operatorframework.io.bundle.{name}");
    let entries = [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
        ("package.v1", PACKAGE),
        ("channels.v1", CHANNEL),
        ("channel.default.v1", CHANNEL),
    ];
    let entries: Map<String, Value> = entries.map(|(name, value)| (key(name), json!(value))).into_iter().collect();
    json!({"annotations": entries})
}

/// What a console shows of the kind of a CRD.
fn owned(crd: &Value) -> Value {
    json!({
        "name": crd["metadata"]["name"],
        "kind": crd["spec"]["names"]["kind"],
        "version": crd["spec"]["versions"][0]["name"],
        "displayName": "Platform profile",
        "description": "A profile of the platform, planned and applied as it was approved.",
    })
}

fn service_version(installation: &Installation) -> anyhow::Result<Value> {
    let deployment = one(&installation.workload, "Deployment")?;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    let permissions = |kind: &str| -> anyhow::Result<Value> {
        let of = |objects: &[Value]| -> anyhow::Result<Value> {
            Ok(json!({"serviceAccountName": install::NAME, "rules": one(objects, kind)?["rules"]}))
        };
        Ok(json!([of(&installation.operator)?, of(&installation.advisor)?]))
    };
    let owned: Vec<Value> = installation.crds.iter().map(owned).collect();
    let mode = |name: &str| json!({"type": name, "supported": name == "OwnNamespace"});
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"].map(mode);
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{PACKAGE}.v{VERSION}"),
            "annotations": {
                "alm-examples": EXAMPLES,
                "capabilities": "Seamless Upgrades",
                "categories": "OpenShift Optional",
                "containerImage": image,
                "description": "Configures and maintains KubeVirt and OpenShift Virtualization clusters",
                "operatorframework.io/suggested-namespace": api::hco::NAMESPACE,
            },
        },
        "spec": {
            "displayName": "Virtpilot",
            "description": DESCRIPTION,
            "version": VERSION,
            "maturity": CHANNEL,
            "minKubeVersion": "1.30.0",
            "provider": {"name": "Virtpilot"},
            "keywords": ["kubevirt", "virtualization", "configuration"],
            "icon": [{"base64data": ICON, "mediatype": "image/svg+xml"}],
            "installModes": modes,
            "customresourcedefinitions": {"owned": owned},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": permissions("ClusterRole")?,
                    "permissions": permissions("Role")?,
                    "deployments": [{
                        "name": install::NAME,
                        "label": deployment["metadata"]["labels"],
                        "spec": deployment["spec"],
                    }],
                },
            },
            "relatedImages": [{"name": PACKAGE, "image": image}],
        },
    }))
}
