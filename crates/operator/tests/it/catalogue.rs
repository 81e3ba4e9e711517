//! Our own catalogue on real API servers: every distinct object that it renders is accepted.

use crate::operator::{NAMESPACE, playground_of};
use catalog::{Answer, Asset, Catalog, Condition, Facts, Files, Query, Rendered, Resolved, render, resolve};
use futures::{StreamExt, stream};
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, Patch, PatchParams, PostParams,
};
use playground::deployment::{self, objects};
use playground::{Playground, Scene, status_writer};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

/// The role of the operator, and the roles that are installed together with an opt-in.
pub(crate) const ROLES: [&str; 3] = [
    include_str!("../../../../deploy/rbac/role.yaml"),
    include_str!("../../../../deploy/rbac/logging.yaml"),
    include_str!("../../../../deploy/rbac/kubevirt-metrics-exporter.yaml"),
];
/// Platforms, control planes, masters and workers.
pub(crate) const PLATFORMS: [&str; 8] = ["BareMetal", "AWS", "Azure", "GCP", "VSphere", "OpenStack", "None", ""];
pub(crate) const SHAPES: [(&str, i64, i64); 6] = [
    ("HighlyAvailable", 3, 3),
    ("HighlyAvailable", 3, 9),
    ("HighlyAvailable", 3, 60),
    ("HighlyAvailable", 3, 0),
    ("SingleReplica", 1, 0),
    ("External", 0, 3),
];

pub(crate) fn catalogue() -> Catalog {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets");
    let (mut files, mut folders) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    Catalog::load(Files::new(files)).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// The annotations that the conditions of the catalogue ask for.
pub(crate) fn switches(catalog: &Catalog) -> BTreeMap<String, String> {
    let conditions = catalog.assets.iter().flat_map(|asset| &asset.conditions).flat_map(Condition::leaves);
    let annotation = |condition: &Condition| match condition {
        Condition::Annotation { key, value } => Some((key.clone(), value.clone().unwrap_or_else(|| "true".into()))),
        _ => None,
    };
    conditions.filter_map(annotation).collect()
}

/// What users set: nothing, everything, or everything and settings beside it; a health check has one remediation.
pub(crate) fn settings(catalog: &Catalog) -> Vec<BTreeMap<String, String>> {
    let key = |name: &str| format!("{}{name}", api::annotation::PREFIX);
    let mut fencing = switches(catalog);
    fencing.remove(&key("enable-self-node-remediation"));
    let mut restarting = switches(catalog);
    restarting.remove(&key("enable-node-remediation"));
    restarting.extend([
        (key("enable-aaq"), "true".to_owned()),
        (key("enable-incident-detection"), "true".to_owned()),
        (key("logging-storage-class"), "fast".to_owned()),
        (key("numa-reserved-memory"), "8Gi".to_owned()),
        (key("vfio-pci-ids"), "10de:1eb8,8086:1572".to_owned()),
    ]);
    vec![BTreeMap::new(), fencing, restarting]
}

pub(crate) fn facts(
    catalog: &Catalog,
    api_version: &str,
    annotations: &BTreeMap<String, String>,
    platform: &str,
    shape: (&str, i64, i64),
) -> Facts {
    let (control_plane, masters, workers) = shape;
    let is = |name: &str| platform == name;
    let images = catalog.assets.iter().flat_map(|asset| &asset.conditions).filter_map(|condition| match condition {
        Condition::Image { key } => Some((key.clone(), json!(format!("registry.example/{key}:1")))),
        _ => None,
    });
    let pool = |name: &str| {
        let labels = json!({format!("pools.operator.machineconfiguration.openshift.io/{name}"): ""});
        json!({"name": name, "labels": labels, "sources": [format!("99-openshift-machineconfig-{name}-psi-karg")]})
    };
    let devices = json!({"usbHostDevices": [{"resourceName": "example.com/stick", "selectors": [{"vendor": "46f4", "product": "0001"}]}]});
    let facts = json!({
        "hco": {"apiVersion": api_version, "kind": api::hco::KIND, "spec": {"virtualization": {"permittedHostDevices": devices}},
            "metadata": {"name": api::hco::NAME, "namespace": NAMESPACE, "annotations": annotations, "labels": {}}},
        "hardware": {"pciDevicesPresent": true, "numaNodesPresent": true, "vfioCapable": true, "usbDevicesPresent": true, "gpuPresent": workers > 9},
        "topology": {"isHCP": control_plane == "External", "isCompact": workers == 0, "hasSchedulableMasters": workers == 0,
            "isAWS": is("AWS"), "isAzure": is("Azure"), "isGCP": is("GCP"), "isBareMetal": is("BareMetal"),
            "isVSphere": is("VSphere"), "isOpenStack": is("OpenStack"), "controlPlaneTopology": control_plane,
            "cloudProvider": platform, "masterCount": masters, "workerCount": workers, "totalNodeCount": masters + workers},
        "pools": [pool("master"), pool("worker")],
        "clusterVersion": "4.20.4",
        "images": images.collect::<Map<String, Value>>(),
    });
    serde_json::from_value(facts).unwrap()
}

/// What a cluster answers: its own CRDs, a shared storage class, with and without the rules of the descheduler.
pub(crate) struct Cluster {
    crds: BTreeMap<String, Value>,
    /// Of kinds that have a CRD.
    pub(crate) plurals: BTreeMap<String, String>,
    has_rules: bool,
}

impl Cluster {
    pub(crate) async fn of(playground: &Playground) -> Cluster {
        let api = objects(playground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
        let list = api.list(&ListParams::default()).await.unwrap();
        let plural = |crd: &DynamicObject| {
            let names = &crd.data["spec"]["names"];
            Some((names["kind"].as_str()?.to_owned(), names["plural"].as_str()?.to_owned()))
        };
        let plurals = list.items.iter().filter_map(plural).collect();
        let crd = |object: DynamicObject| {
            let name = object.metadata.name.clone().unwrap();
            (name, catalog::crd::read(&serde_json::to_string(&object).unwrap()).unwrap())
        };
        Cluster { crds: list.items.into_iter().map(crd).collect(), plurals, has_rules: false }
    }

    pub(crate) fn answer(&self, query: &Query) -> Answer {
        let shared = json!({"metadata": {"name": "shared"}, "status": {"claimPropertySets": [{"volumeMode": "Filesystem", "accessModes": ["ReadWriteMany"]}]}});
        match query {
            Query::Crd { name } => self.crds.get(name).cloned().map_or(Answer::Absent, Answer::Found),
            Query::List { kind, .. } if kind == "StorageProfile" => Answer::Found(json!([shared])),
            Query::List { .. } => Answer::Found(json!([])),
            Query::Object { kind, .. } if kind == "PrometheusRule" && self.has_rules => {
                let rule =
                    json!({"record": "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m"});
                Answer::Found(json!({"spec": {"groups": [{"rules": [rule]}]}}))
            }
            Query::Object { .. } => Answer::Absent,
        }
    }

    pub(crate) fn render(&self, catalog: &Catalog, asset: &Asset, facts: &Facts) -> Option<Value> {
        match resolve(catalog, asset, facts, |query| self.answer(query)) {
            Resolved::Object(object) => Some(object),
            Resolved::None(_) => None,
            Resolved::Broken(why) => panic!("{}: {why}", asset.name),
        }
    }
}

/// The distinct objects of the catalogue on one cluster with everything switched on.
static EVERYTHING: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let catalog = catalogue();
    let cluster = Cluster { crds: BTreeMap::new(), plurals: BTreeMap::new(), has_rules: false };
    let mut distinct = BTreeMap::new();
    for annotations in &settings(&catalog)[1..] {
        let facts = facts(&catalog, "hco.kubevirt.io/v1", annotations, "BareMetal", SHAPES[0]);
        let objects = catalog.assets.iter().filter_map(|asset| cluster.render(&catalog, asset, &facts));
        distinct.extend(objects.map(|object| (object.to_string(), object)));
    }
    distinct.into_values().collect()
});

/// All objects of a kind that the catalogue renders with everything switched on.
pub(crate) fn all_of(kind: &str) -> Vec<Value> {
    let objects: Vec<Value> = EVERYTHING.iter().filter(|object| object["kind"] == kind).cloned().collect();
    assert!(!objects.is_empty(), "the catalogue renders no {kind}");
    objects
}

pub(crate) async fn create_namespaces(playground: &Playground, objects: impl Iterator<Item = &Value>) {
    let api = deployment::objects(playground, "v1", "Namespace", None);
    let names: BTreeSet<&str> = objects.filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
    for name in names {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let namespace = DynamicObject { types: None, metadata, data: Value::Null };
        let _ = api.create(&PostParams::default(), &namespace).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_distinct_object_is_accepted_by_the_server_under_the_roles_that_are_installed() {
    let catalog = catalogue();
    let settings = settings(&catalog);
    let (mut renders, mut accepted) = (0, BTreeSet::new());
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (descheduler, hco) in [("5.3", "v1"), ("5.2", "v1"), ("5.1", "v1beta1")] {
        let mut scene = Scene::preset("small").unwrap();
        (scene.descheduler, scene.hco) = (descheduler.into(), hco.into());
        let playground = playground_of(scene).await;
        let mut cluster = Cluster::of(&playground).await;
        let mut distinct: BTreeMap<String, Value> = BTreeMap::new();
        for has_rules in [false, true] {
            cluster.has_rules = has_rules;
            // Only the descheduler looks at its rules, and without settings nothing looks at the platform; nor does what looks at CRDs.
            for annotations in if has_rules { &settings[..1] } else { &settings[..] } {
                let is_whole = !has_rules && descheduler == "5.3" && !annotations.is_empty();
                let platforms = if is_whole { &PLATFORMS[..] } else { &PLATFORMS[..1] };
                for &platform in platforms {
                    for shape in SHAPES {
                        let api_version = format!("{}/{hco}", api::hco::GROUP);
                        let facts = facts(&catalog, &api_version, annotations, platform, shape);
                        for asset in &catalog.assets {
                            renders += 1;
                            if let Some(object) = cluster.render(&catalog, asset, &facts) {
                                seen.insert(&asset.name);
                                distinct.insert(object.to_string(), object);
                            }
                        }
                    }
                }
            }
        }
        distinct.retain(|text, _| !accepted.contains(text));
        create_namespaces(&playground, distinct.values()).await;
        let mut account = None;
        for role in ROLES {
            account = Some(deployment::grant_for(&playground, role).await.unwrap_or_else(|error| panic!("{error}")));
        }
        let client = account.unwrap().client;
        // A binding is refused if its role does not exist, so roles are created.
        for role in distinct.values().filter(|object| object["kind"] == "ClusterRole" || object["kind"] == "Role") {
            assert_eq!(apply(client.clone(), &cluster.plurals, role, false).await, None);
        }
        let refused: Vec<String> = stream::iter(distinct.values())
            .map(|object| apply(client.clone(), &cluster.plurals, object, true))
            .buffer_unordered(8)
            .filter_map(async |refused| refused)
            .collect()
            .await;
        assert!(
            refused.is_empty(),
            "{} of {} are refused on {descheduler}:\n{}",
            refused.len(),
            distinct.len(),
            refused.join("\n")
        );
        accepted.extend(distinct.into_keys());
    }
    println!("{renders} renders, {} distinct objects, all accepted", accepted.len());
    let never: Vec<&str> =
        catalog.assets.iter().map(|asset| asset.name.as_str()).filter(|name| !seen.contains(name)).collect();
    assert_eq!(never, Vec::<&str>::new(), "these were never rendered");
}

/// Why the server refuses an object.
pub(crate) async fn apply(
    client: kube::Client,
    plurals: &BTreeMap<String, String>,
    object: &Value,
    dry_run: bool,
) -> Option<String> {
    let (api_version, kind) = (object["apiVersion"].as_str()?, object["kind"].as_str()?);
    let (name, namespace) = (object["metadata"]["name"].as_str()?, object["metadata"]["namespace"].as_str());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    if let Some(plural) = plurals.get(kind) {
        resource.plural.clone_from(plural);
    }
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let strict = Some(kube::api::ValidationDirective::Strict);
    let params = PatchParams { dry_run, field_validation: strict, ..PatchParams::apply(api::FIELD_MANAGER).force() };
    let refused = api.patch(name, &params, &Patch::Apply(object)).await.err()?;
    Some(format!("{kind} {name}: {refused}"))
}

#[test]
fn of_every_object_whose_operator_reports_a_playground_can_write_the_status() {
    let catalogue = catalogue();
    let used: BTreeSet<&str> =
        catalogue.profiles.iter().flat_map(|profile| &profile.items).map(|item| item.asset.as_str()).collect();
    let reporting = catalogue.all_assets().filter(|asset| asset.reports);
    let kinds: BTreeSet<(String, String)> = reporting
        .map(|asset| {
            assert!(used.contains(asset.entry()), "{} is in no profile, so nobody waits for its operator", asset.name);
            let kind = asset.kind.as_ref().unwrap();
            (kind.api_version(), kind.kind.clone())
        })
        .collect();
    let written = status_writer::KINDS.map(|(api_version, kind)| (api_version.to_owned(), kind.to_owned()));
    assert_eq!(kinds, BTreeSet::from(written));
}

#[test]
fn no_two_assets_write_the_same_object() {
    let catalog = catalogue();
    let cluster = Cluster { crds: BTreeMap::new(), plurals: BTreeMap::new(), has_rules: false };
    for annotations in settings(&catalog) {
        for shape in SHAPES {
            let facts = facts(&catalog, "hco.kubevirt.io/v1", &annotations, "BareMetal", shape);
            let mut owners: BTreeMap<String, &str> = BTreeMap::new();
            for asset in &catalog.assets {
                let Some(object) = cluster.render(&catalog, asset, &facts) else { continue };
                let metadata = &object["metadata"];
                let id = format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]);
                if let Some(other) = owners.insert(id.clone(), &asset.name) {
                    panic!("{other} and {} both write {id}", asset.name);
                }
            }
        }
    }
}

/// The role of the nodes and each field of the kubelet that an object sets: in a KubeletConfig, or in a file that the kubelet reads.
fn kubelet_fields(object: &Value) -> Vec<(String, String)> {
    let fields = |settings: &Value| settings.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    let (role, names): (String, Vec<String>) = match object["kind"].as_str() {
        Some("KubeletConfig") => {
            let is_master = object["spec"]["machineConfigPoolSelector"].get("matchLabels").is_some();
            let mut names: Vec<String> = fields(&object["spec"]["kubeletConfig"]);
            names.extend(object["spec"].get("autoSizingReserved").map(|_| "autoSizingReserved".to_owned()));
            (if is_master { "master" } else { "worker" }.to_owned(), names)
        }
        Some("MachineConfig") => {
            let role = object["metadata"]["labels"]["machineconfiguration.openshift.io/role"].as_str().unwrap();
            let files = object["spec"]["config"]["storage"]["files"].as_array().into_iter().flatten();
            let is_read = |path: &str| path.contains("kubelet.conf.d/") || path == "/etc/kubernetes/kubelet.conf";
            let read = files.filter(|file| is_read(file["path"].as_str().unwrap()));
            let settings = read.flat_map(|file| {
                let source = file["contents"]["source"].as_str().unwrap().strip_prefix("data:,").unwrap();
                let text = source.replace("%20", " ").replace("%0A", "\n");
                let settings: Value = serde_saphyr::from_str(&text).unwrap();
                fields(&settings)
            });
            (role.to_owned(), settings.filter(|name| name != "apiVersion" && name != "kind").collect())
        }
        _ => return Vec::new(),
    };
    names.into_iter().map(|name| (role.clone(), name)).collect()
}

#[test]
fn no_two_assets_write_the_same_field_of_the_kubelet() {
    let catalog = catalogue();
    let cluster = Cluster { crds: BTreeMap::new(), plurals: BTreeMap::new(), has_rules: false };
    let of_kubelet = |asset: &&Asset| matches!(asset.component.as_str(), "KubeletConfig" | "MachineConfig");
    let assets: Vec<&Asset> = catalog.assets.iter().filter(of_kubelet).collect();
    let switches: Vec<(String, String)> = switches(&catalog).into_iter().collect();
    let reserved = (format!("{}numa-reserved-memory", api::annotation::PREFIX), "8Gi".to_owned());
    let (mut pairs, mut seen) = (0, BTreeSet::new());
    for (index, first) in switches.iter().enumerate() {
        for second in &switches[index..] {
            pairs += 1;
            for shape in SHAPES {
                let annotations = [first.clone(), second.clone(), reserved.clone()].into();
                let facts = facts(&catalog, "hco.kubevirt.io/v1", &annotations, "BareMetal", shape);
                let mut owners: BTreeMap<(String, String), &str> = BTreeMap::new();
                for asset in &assets {
                    let Some(object) = cluster.render(&catalog, asset, &facts) else { continue };
                    for field in kubelet_fields(&object) {
                        seen.insert(field.clone());
                        if let Some(other) = owners.insert(field.clone(), &asset.name) {
                            panic!("{other} and {} both write {} on {} nodes", asset.name, field.1, field.0);
                        }
                    }
                }
            }
        }
    }
    println!("{pairs} pairs of switches, {} fields of kubelets", seen.len());
    let has = |name: &str| seen.contains(&("worker".to_owned(), name.to_owned()));
    assert!(has("failSwapOn") && has("cpuManagerPolicy") && has("reservedMemory"), "{seen:?}");
}

#[test]
fn every_annotation_that_a_template_reads_is_a_switch_or_documented() {
    let catalog = catalogue();
    let page = include_str!("../../../../docs/reference/annotations.md");
    let switches = switches(&catalog);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets");
    let mut found = BTreeSet::new();
    for path in catalog.assets.iter().map(|asset| &asset.path).filter(|path| path.ends_with(".tpl")) {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        for rest in text.split(&format!("\"{}", api::annotation::PREFIX)).skip(1) {
            found.insert(rest.split('"').next().unwrap().to_owned());
        }
    }
    // A label, and the beginning of switches.
    for known in ["managed-by", "enable-%s"] {
        assert!(found.remove(known), "{known}");
    }
    let is_known = |name: &String| {
        switches.contains_key(&format!("{}{name}", api::annotation::PREFIX)) || page.contains(&format!("| `{name}` |"))
    };
    let unknown: Vec<&String> = found.iter().filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty() && found.len() > 8, "{unknown:?}");
}

#[test]
fn the_object_of_an_asset_that_is_switched_off_is_known() {
    let catalog = catalogue();
    for shape in SHAPES {
        let facts = facts(&catalog, "hco.kubevirt.io/v1", &BTreeMap::new(), "BareMetal", shape);
        for asset in &catalog.assets {
            let is_rendered = matches!(render(&catalog, asset, &facts), Rendered::Object(_));
            assert!(is_rendered || catalog.plain_key(asset).is_some(), "{} could not be pruned", asset.name);
        }
    }
}
