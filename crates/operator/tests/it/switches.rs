//! Every feature of our own catalogue is switched on and off on a real API server, and the operator's role has no right that this does not use.

use crate::catalogue::{Cluster, ROLES, SHAPES, catalogue, create_namespaces, facts, settings, switches};
use crate::commands::virtpilot;
use crate::operator::{ACCOUNT, NAMESPACE, Process, Running, SERVICE, digest_in, edit, eventually};
use catalog::Catalog;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use playground::audit::{Mark, Request};
use playground::deployment::{self, objects};
use playground::{Playground, Scene};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets");

/// The kinds of the catalogue.
fn kinds(catalog: &Catalog, cluster: &Cluster) -> Vec<ApiResource> {
    let mut kinds: BTreeMap<String, ApiResource> = BTreeMap::new();
    for kind in catalog.assets.iter().filter_map(|asset| asset.kind.as_ref()) {
        let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind));
        if let Some(plural) = cluster.plurals.get(&kind.kind) {
            resource.plural.clone_from(plural);
        }
        kinds.insert(kind.kind.clone(), resource);
    }
    kinds.into_values().collect()
}

/// Every object with our label and its content, by kind, namespace and name.
async fn managed(playground: &Playground, kinds: &[ApiResource]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for resource in kinds {
        let api: Api<DynamicObject> = Api::all_with(playground.client(), resource);
        let (label, value) = api::MANAGED_BY;
        let list = api.list(&ListParams::default().labels(&format!("{label}={value}"))).await.unwrap();
        for object in list.items {
            let (namespace, name) =
                (object.metadata.namespace.unwrap_or_default(), object.metadata.name.unwrap_or_default());
            let mut content = object.data;
            content.as_object_mut().unwrap().remove("status");
            content["labels"] = json!(object.metadata.labels);
            found.insert(format!("{} {namespace}/{name}", resource.kind), content);
        }
    }
    found
}

/// What is not as it should be, by `status`.
fn pending(running: &Running) -> Vec<String> {
    let output = virtpilot(
        Some(&running.playground.kubeconfig()),
        &["status", "--evaluate", "--output=json", "--assets-dir", OWN],
    );
    let lines: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    let is_done = |line: &&Value| {
        let is_kept = line["why"].as_str().unwrap_or_default().contains("never deleted");
        let done = ["InSync", "Disabled", "NotApplicable", "Gone"];
        is_kept || done.contains(&line["state"].as_str().unwrap_or_default())
    };
    let lines = lines["assets"].as_array().unwrap().iter().filter(|line| !is_done(line));
    lines.map(|line| format!("{}: {} {}", line["asset"], line["state"], line["why"])).collect()
}

async fn settled(running: &Running, what: &str) {
    let begun = std::time::Instant::now();
    loop {
        let pending = pending(running);
        if pending.is_empty() {
            return;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{what}: {}", pending.join("\n"));
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// A former release made these, and now nobody wants them. One that it adopted is handed back; one that it made is deleted.
async fn former_objects_go(running: &mut Running, catalog: &Catalog) {
    // A former release of the CRD accepted any name.
    let plugins = "uiplugins.observability.openshift.io";
    edit_schema(running, plugins, |schema| drop(schema.as_object_mut().unwrap().remove("x-kubernetes-validations")))
        .await;
    for is_adopted in [true, false] {
        for tombstone in &catalog.tombstones {
            let spec = match tombstone.kind.as_str() {
                "NodeHealthCheck" => {
                    json!({"selector": {}, "remediationTemplate": {"apiVersion": "v1", "kind": "T", "name": "t", "namespace": "n"}})
                }
                "UIPlugin" => json!({"type": "Dashboards"}),
                _ => json!({}),
            };
            let (label, value) = api::MANAGED_BY;
            let annotations = if is_adopted { json!({(api::annotation::ORIGIN): "adopted"}) } else { json!({}) };
            let metadata = json!({"name": tombstone.name, "labels": {(label): value}, "annotations": annotations});
            let object = json!({"apiVersion": tombstone.api_version, "kind": tombstone.kind, "metadata": metadata, "spec": spec});
            // The server takes a moment until it follows the changed CRD.
            eventually("it is created", async || apply(&running.playground, api::FIELD_MANAGER, &object).await.ok())
                .await;
        }
        // They are searched for when the operator starts.
        running.restart();
        if !is_adopted {
            approve_deletions(running, catalog.tombstones.len()).await;
        }
        for tombstone in &catalog.tombstones {
            let api = objects(&running.playground, &tombstone.api_version, &tombstone.kind, None);
            eventually("it is handed back or deleted", async || {
                let found = api.get_opt(&tombstone.name).await.unwrap();
                found.is_none_or(|found| found.metadata.labels.unwrap_or_default().is_empty()).then_some(())
            })
            .await;
            let _ = api.delete(&tombstone.name, &DeleteParams::default()).await;
        }
    }
}

/// Changes the schema of a CRD.
async fn edit_schema(running: &Running, crd: &str, edit: impl FnOnce(&mut Value)) {
    let crds = objects(&running.playground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let mut object = crds.get(crd).await.unwrap();
    edit(&mut object.data["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    crds.replace(crd, &PostParams::default(), &object).await.unwrap();
}

/// Approves that these objects are deleted, as `status` says.
async fn approve_deletions(running: &Running, count: usize) {
    let deletions = async || {
        let held: Vec<String> = pending(running).into_iter().filter(|line| line.contains("to delete it")).collect();
        (held.len() == count).then_some(held)
    };
    for held in eventually("the deletions wait for an approval", deletions).await {
        let kubeconfig = running.playground.kubeconfig();
        let output =
            virtpilot(Some(&kubeconfig), &["approve", "--yes", digest_in(&held).unwrap(), "--assets-dir", OWN]);
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
}

async fn apply(playground: &Playground, manager: &str, object: &Value) -> kube::Result<DynamicObject> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let api = objects(playground, &text(&object["apiVersion"]), &text(&object["kind"]), metadata["namespace"].as_str());
    api.patch(&text(&metadata["name"]), &PatchParams::apply(manager).force(), &Patch::Apply(object)).await
}

/// Somebody else made one object of each kind before the operator started: all are adopted.
async fn one_of_each_kind_is_adopted(
    running: &mut Running,
    catalog: &Catalog,
    cluster: &Cluster,
    kinds: &[ApiResource],
) {
    running.stop();
    let by_kind: BTreeMap<String, Value> =
        everything(catalog, cluster).into_iter().map(|object| (object["kind"].to_string(), object)).collect();
    for object in by_kind.values().filter(|object| object["kind"] != api::hco::KIND) {
        let resource = kinds.iter().find(|resource| object["kind"] == resource.kind).unwrap();
        let metadata = &object["metadata"];
        let (client, name) = (running.playground.client(), metadata["name"].as_str().unwrap());
        let api: Api<DynamicObject> = match metadata["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        };
        if is_kept(&resource.kind) {
            let mut kept = api.get(name).await.unwrap();
            (kept.metadata.labels, kept.metadata.annotations) = (None, None);
            kept.metadata.managed_fields = Some(Vec::new());
            api.replace(name, &PostParams::default(), &kept).await.unwrap();
            continue;
        }
        let _ = api.delete(name, &DeleteParams::default()).await;
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let what = format!("{} {name} is created by a person", resource.kind);
        eventually(&what, async || {
            let created = api.create(&PostParams::default(), &object).await;
            created.inspect_err(|error| println!("{what}: {error}")).ok()
        })
        .await;
    }
    for (key, value) in &settings(catalog)[1] {
        running.annotate_hco(key.strip_prefix(api::annotation::PREFIX).unwrap(), Some(value)).await;
    }
    running.restart();
    settled(running, "with everything").await;
}

/// The objects of the catalogue with everything switched on.
fn everything(catalog: &Catalog, cluster: &Cluster) -> Vec<Value> {
    let mut annotations = settings(catalog)[1].clone();
    annotations.insert(format!("{}logging-storage-class", api::annotation::PREFIX), "fast".to_owned());
    let facts = facts(catalog, "hco.kubevirt.io/v1", &annotations, "BareMetal", SHAPES[1]);
    catalog.assets.iter().filter_map(|asset| cluster.render(catalog, asset, &facts)).collect()
}

/// These are never deleted: a namespace may contain what others made, a LokiStack holds logs, and the rest depends on the HyperConverged.
fn is_kept(kind: &str) -> bool {
    api::NEVER_REMOVED.contains(&kind)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_feature_is_switched_on_and_off_and_leaves_the_cluster_as_before() {
    let catalog = catalogue();
    // The roles are those of the autopilot.
    let arguments = ["--assets-dir", OWN, "--leader-elect", "--products=autopilot"];
    let mut running = Running::on(Scene::preset("gpu").unwrap(), ROLES[0], &arguments).await;
    for role in &ROLES[1..] {
        deployment::grant_for(&running.playground, role).await.unwrap_or_else(|error| panic!("{error}"));
    }
    let metadata = json!({"name": "virt-platform-autopilot-0", "namespace": NAMESPACE});
    let spec = json!({"containers": [{"name": "manager", "image": "registry.example/virtpilot:1"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    apply(&running.playground, "person", &pod).await.unwrap();
    let cluster = Cluster::of(&running.playground).await;
    let kinds = kinds(&catalog, &cluster);
    let rendered = everything(&catalog, &cluster);
    // The exporter makes its namespace by itself.
    let others = rendered.iter().filter(|object| object["metadata"]["namespace"] != "kubevirt-metrics-exporter");
    create_namespaces(&running.playground, others).await;
    let shared = json!({"claimPropertySets": [{"volumeMode": "Filesystem", "accessModes": ["ReadWriteMany"]}]});
    let metadata = json!({"name": "shared"});
    let profile = json!({"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "StorageProfile", "metadata": metadata, "spec": shared});
    apply(&running.playground, "person", &profile).await.unwrap();
    let profiles = objects(&running.playground, "cdi.kubevirt.io/v1beta1", "StorageProfile", None);
    let status = Patch::Merge(json!({"status": shared}));
    profiles.patch_status("shared", &PatchParams::default(), &status).await.unwrap();
    crate::crds::install(&running.playground, &catalog::profile::crd(&catalog.profiles)).await;
    running.restart();
    eventually("a change waits for an approval", async || {
        pending(&running).iter().any(|line| line.contains("virtpilot approve")).then_some(())
    })
    .await;
    let kubeconfig = running.playground.kubeconfig();
    let output = virtpilot(Some(&kubeconfig), &["approve", "--yes", "--pool", "gpu,worker", "--assets-dir", OWN]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    running.annotate_hco("approval", Some("none")).await;
    running.annotate_hco("logging-storage-class", Some("fast")).await;
    running.annotate_hco("psi-enabled", Some("true")).await;
    former_objects_go(&mut running, &catalog).await;
    settled(&running, "with default settings").await;
    let before = managed(&running.playground, &kinds).await;
    assert!(before.len() > 5, "{before:?}");
    for (key, value) in switches(&catalog) {
        let name = key.strip_prefix(api::annotation::PREFIX).unwrap();
        running.annotate_hco(name, Some(&value)).await;
        settled(&running, &format!("with {name}")).await;
        running.annotate_hco(name, None).await;
        settled(&running, &format!("without {name}")).await;
        let mut after = managed(&running.playground, &kinds).await;
        after.retain(|object, _| before.contains_key(object) || !is_kept(object.split(' ').next().unwrap()));
        assert_eq!(after, before, "after {name}");
    }
    // What is not in the list any more is pruned.
    for feature in ["load-aware-descheduler", "observability"] {
        running.annotate_hco("autopilot", Some(feature)).await;
        settled(&running, feature).await;
    }
    running.annotate_hco("autopilot", None).await;
    one_of_each_kind_is_adopted(&mut running, &catalog, &cluster, &kinds).await;
    // The same event twice is one that is counted.
    let services = running.services();
    for times in 1..=2 {
        edit(&services, SERVICE, json!({"spec": {"selector": {"app": "edited"}}})).await;
        eventually("it is corrected", async || {
            (running.events("DriftCorrected").await.iter().filter(|note| note.contains("rogue")).count() == times)
                .then_some(())
        })
        .await;
    }
    let _standby = Process::start_as("virt-platform-autopilot-1", running.kubeconfig());
    eventually("a standby follows the pod of the leader", async || {
        let own = running.own(&running.audit().since(Mark::BEGINNING).unwrap());
        own.0.iter().any(|request| request.resource == "pods" && request.verb == "watch").then_some(())
    })
    .await;
    no_right_is_unused(&running);
}

/// Every verb of the operator's role has been used, for each resource, and nothing was refused.
fn no_right_is_unused(running: &Running) {
    let requests = running.audit().since(Mark::BEGINNING).unwrap().by(ACCOUNT);
    let refused: Vec<&Request> = requests.0.iter().filter(|request| request.code == 403).collect();
    assert!(refused.is_empty(), "{refused:#?}");
    let (mut rights, mut unused) = (0, Vec::new());
    let documents: Vec<Value> = serde_saphyr::from_multiple(ROLES[0]).unwrap();
    for rule in documents.iter().filter_map(|document| document["rules"].as_array()).flatten() {
        let names: Option<Vec<&str>> =
            rule.get("resourceNames").map(|names| names.as_array().unwrap().iter().filter_map(Value::as_str).collect());
        let group = rule["apiGroups"][0].as_str().unwrap();
        for resource in rule["resources"].as_array().unwrap().iter().filter_map(Value::as_str) {
            let resource = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
            for verb in rule["verbs"].as_array().unwrap().iter().filter_map(Value::as_str) {
                rights += 1;
                let uses = |request: &Request| {
                    let is_named = names.as_ref().is_none_or(|names| names.contains(&request.name.as_str()));
                    // An apply that creates an object needs both.
                    let is_verb =
                        request.verb == verb || (verb == "create" && request.verb == "patch" && request.code == 201);
                    request.resource == resource && is_named && is_verb
                };
                if !requests.0.iter().any(uses) {
                    unused.push(format!(
                        "{verb} {resource} {}",
                        names.as_ref().map(|names| names.join(" ")).unwrap_or_default()
                    ));
                }
            }
        }
    }
    assert!(unused.is_empty(), "{} of {rights} are unused:\n{}", unused.len(), unused.join("\n"));
    println!("{rights} rights, all used");
}
