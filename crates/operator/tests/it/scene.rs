//! One play with everything users do, on a small pack of its own: what comes out must not depend on what goes wrong meanwhile.

use crate::operator::{NAMESPACE, Process, annotate, edit, eventually_within, playground};
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use playground::fault::Proxy;
use playground::service_account::Account;
use playground::{Playground, deployment};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/scene");
const ROLE: &str = include_str!("../packs/scene.role.yaml");
const PATCH: &str = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
const REFUSED: &str = r#"[{"op": "replace", "path": "/metadata/name", "value": "other"}]"#;

/// How long one step may take: a fault that is only noticed by a timeout is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster with the operator behind a proxy.
pub(crate) struct Stage {
    pub(crate) playground: Playground,
    pub(crate) proxy: Proxy,
    pub(crate) operator: Arc<Mutex<Option<Process>>>,
    _account: Account,
}

/// The objects of the pack: api version, kind, namespace, name.
const OBJECTS: [(&str, &str, Option<&str>, &str); 6] = [
    ("v1", "Service", Some(NAMESPACE), "scene-service"),
    ("v1", "ConfigMap", Some(NAMESPACE), "scene-settings"),
    ("v1", "ConfigMap", Some(NAMESPACE), "scene-adopted"),
    ("monitoring.coreos.com/v1", "PrometheusRule", Some(NAMESPACE), "scene-rules"),
    ("apps/v1", "DaemonSet", Some(NAMESPACE), "scene-workload"),
    ("machineconfiguration.openshift.io/v1", "MachineConfig", None, "99-worker-scene"),
];

impl Stage {
    pub(crate) async fn build() -> Stage {
        let playground = playground().await;
        let account = deployment::grant_for(&playground, ROLE).await.unwrap_or_else(|trouble| panic!("{trouble}"));
        let proxy = Proxy::start(&playground, &account).unwrap_or_else(|trouble| panic!("{trouble}"));
        let operator: Arc<Mutex<Option<Process>>> = Arc::default();
        // Whoever is killed by a fault is started again, as a kubelet would.
        let (killed, kubeconfig) = (operator.clone(), proxy.kubeconfig().to_owned());
        proxy.on_kill(move || {
            let mut operator = killed.lock().unwrap();
            drop(operator.take());
            *operator = Some(start(&kubeconfig));
        });
        Stage { playground, proxy, operator, _account: account }
    }

    fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let (api_version, kind, namespace, _) = OBJECTS.iter().find(|object| object.1 == kind).unwrap();
        deployment::objects(&self.playground, api_version, kind, *namespace)
    }

    /// Plays everything from an empty stage; returns what came of it.
    pub(crate) async fn play(&self) -> Value {
        self.clear().await;
        let (services, maps) = (self.objects("Service"), self.objects("ConfigMap"));
        let (rules, workloads) = (self.objects("PrometheusRule"), self.objects("DaemonSet"));
        // Somebody made one of them before us, and it is not as we want it.
        let theirs = json!({"data": {"first": "theirs", "mine": "stays"}});
        create(&maps, "scene-adopted", theirs).await;
        *self.operator.lock().unwrap() = Some(start(self.proxy.kubeconfig()));
        // Created and adopted.
        self.until("everything exists", async || {
            for (api_version, kind, namespace, name) in OBJECTS {
                let api = deployment::objects(&self.playground, api_version, kind, namespace);
                let object = api.get_opt(name).await.ok()??;
                object.metadata.labels?.get("platform.kubevirt.io/managed-by")?;
            }
            Some(())
        })
        .await;
        self.becomes(&maps, "scene-adopted", "/data/first", json!("one")).await;
        // Drift of every shape: a value, a label, an item of a list, a key of a list, a deletion.
        edit(&maps, "scene-settings", json!({"data": {"first": "edited"}})).await;
        edit(&workloads, "scene-workload", json!({"metadata": {"labels": {"platform.kubevirt.io/managed-by": null}}}))
            .await;
        json_patch(&rules, "scene-rules", json!([{"op": "remove", "path": "/spec/groups/0/rules/0"}])).await;
        json_patch(&services, "scene-service", json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 9999}]))
            .await;
        self.becomes(&maps, "scene-settings", "/data/first", json!("one")).await;
        self.becomes(
            &workloads,
            "scene-workload",
            "/metadata/labels/platform.kubevirt.io~1managed-by",
            json!("virt-platform-autopilot"),
        )
        .await;
        self.becomes(&rules, "scene-rules", "/spec/groups/0/rules/0/record", json!("scene:one")).await;
        self.becomes(&services, "scene-service", "/spec/ports/0/port", json!(8080)).await;
        maps.delete("scene-adopted", &DeleteParams::default()).await.unwrap();
        // A patch is honoured; another one is refused and what was good is defended.
        annotate(&services, "scene-service", "patch", Some(PATCH)).await;
        self.becomes(&services, "scene-service", "/spec/sessionAffinity", json!("ClientIP")).await;
        annotate(&rules, "scene-rules", "patch", Some(REFUSED)).await;
        json_patch(
            &rules,
            "scene-rules",
            json!([{"op": "replace", "path": "/spec/groups/0/rules/0/expr", "value": "vector(9)"}]),
        )
        .await;
        self.becomes(&rules, "scene-rules", "/spec/groups/0/rules/0/expr", json!("vector(1)")).await;
        self.becomes(&maps, "scene-adopted", "/data/first", json!("one")).await;
        // An ignored field is the user's.
        annotate(&maps, "scene-settings", "ignore-fields", Some("/data/second")).await;
        self.until("the field is nobody's", async || {
            let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scene-settings"}, "data": {"second": "mine"}});
            maps.patch("scene-settings", &PatchParams::apply("person"), &Patch::Apply(&theirs)).await.ok()
        })
        .await;
        // Paused, edited, resumed.
        annotate(&workloads, "scene-workload", "reconcile-paused", Some("true")).await;
        edit(
            &workloads,
            "scene-workload",
            json!({"spec": {"template": {"spec": {"nodeSelector": {"scene/nowhere": "no"}}}}}),
        )
        .await;
        annotate(&workloads, "scene-workload", "reconcile-paused", None).await;
        self.becomes(&workloads, "scene-workload", "/spec/template/spec/nodeSelector/scene~1nowhere", json!("true"))
            .await;
        // Left alone.
        annotate(&maps, "scene-adopted", "mode", Some("unmanaged")).await;
        edit(&maps, "scene-adopted", json!({"data": {"first": "mine"}})).await;
        self.settled().await
    }

    /// Waits until the operator has nothing left to do, whatever it was; returns what there is then.
    async fn settled(&self) -> Value {
        let mut before = self.look().await;
        loop {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let now = self.look().await;
            if now == before {
                return now;
            }
            before = now;
        }
    }

    /// All objects, without what differs from run to run.
    async fn look(&self) -> Value {
        let mut all = json!({});
        for (api_version, kind, namespace, name) in OBJECTS {
            let api = deployment::objects(&self.playground, api_version, kind, namespace);
            let object = api.get_opt(name).await.unwrap();
            all[format!("{kind}/{name}")] = object.map_or(Value::Null, |object| plain(&object));
        }
        all
    }

    /// Ends the operator and removes everything.
    async fn clear(&self) {
        drop(self.operator.lock().unwrap().take());
        for (api_version, kind, namespace, name) in OBJECTS {
            let api = deployment::objects(&self.playground, api_version, kind, namespace);
            let _ = api.delete(name, &DeleteParams::background().grace_period(0)).await;
        }
        for (api_version, kind, namespace, name) in OBJECTS {
            let api = deployment::objects(&self.playground, api_version, kind, namespace);
            self.until("it is gone", async || api.get_opt(name).await.unwrap().is_none().then_some(())).await;
        }
        let hco = deployment::objects(&self.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
        annotate(&hco, "kubevirt-hyperconverged", "autopilot", Some("true")).await;
    }

    async fn becomes(&self, api: &Api<DynamicObject>, name: &str, pointer: &str, wanted: Value) {
        self.until(&format!("{name}{pointer} is {wanted}"), async || {
            let object = serde_json::to_value(api.get_opt(name).await.ok()??).unwrap();
            (object.pointer(pointer) == Some(&wanted)).then_some(())
        })
        .await;
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        eventually_within(PATIENCE, what, look).await
    }
}

/// Starts the operator with short patience: what is noticed by a timeout is noticed soon.
fn start(kubeconfig: &std::path::Path) -> Process {
    Process::start(kubeconfig, &["--assets-dir", PACK, "--watch-silence=1s", "--request-timeout=1s"])
}

async fn create(api: &Api<DynamicObject>, name: &str, data: Value) {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let types = Some(kube::api::TypeMeta { api_version: "v1".into(), kind: "ConfigMap".into() });
    let params = PostParams { field_manager: Some("person".into()), ..PostParams::default() };
    api.create(&params, &DynamicObject { types, metadata, data }).await.unwrap();
}

async fn json_patch(api: &Api<DynamicObject>, name: &str, patch: Value) {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Json::<()>(serde_json::from_value(patch).unwrap())).await.unwrap();
}

/// Fails with what differs, and only that.
pub(crate) fn assert_same(found: &Value, wanted: &Value, when: &str) {
    let mut differences = Vec::new();
    compare(found, wanted, "", &mut differences);
    assert!(differences.is_empty(), "{when}:\n{}", differences.join("\n"));
}

fn compare(found: &Value, wanted: &Value, way: &str, differences: &mut Vec<String>) {
    match (found, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let at =
                    |fields: &serde_json::Map<String, Value>| fields.get(key).cloned().unwrap_or(json!("(nothing)"));
                compare(&at(one), &at(other), &format!("{way}/{key}"), differences);
            }
        }
        (one, other) if one != other => differences.push(format!("{way}: {one} instead of {other}")),
        _ => {}
    }
}

/// An object as it would be in any run: with its owners, without its times and numbers.
fn plain(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    let metadata = value["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| ["name", "namespace", "labels", "annotations", "managedFields"].contains(&key.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        // How much of it is left depends on how often somebody was corrected.
        annotations.retain(|key, _| {
            !["platform.kubevirt.io/budget", "deprecated.daemonset.template.generation"].contains(&key.as_str())
        });
    }
    let mut owners: Vec<Value> = metadata
        .remove("managedFields")
        .and_then(|entries| entries.as_array().cloned())
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry["operation"] == "Apply" && entry.get("subresource").is_none())
        .map(|entry| json!({"manager": entry["manager"], "fields": entry["fieldsV1"]}))
        .collect();
    owners.sort_by_key(ToString::to_string);
    metadata.insert("owners".into(), owners.into());
    if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, _| !["clusterIP", "clusterIPs"].contains(&key.as_str()));
    }
    value.as_object_mut().unwrap().remove("status");
    value
}
