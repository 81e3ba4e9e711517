//! The fixture of scenarios: a cluster, the operator behind a fault proxy, and the end state.

use crate::operator::{NAMESPACE, Process, eventually_within, playground};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use playground::fault::Proxy;
use playground::service_account::Account;
use playground::{Playground, deployment};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long one step may take; some faults are noticed only by a timeout.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// Without faults, a state that does not change for this long is the end state.
const QUIET: Duration = Duration::from_millis(700);

/// A cluster with the operator behind a fault proxy.
pub(crate) struct Fixture {
    pub(crate) playground: Playground,
    pub(crate) proxy: Proxy,
    pub(crate) operator: Arc<Mutex<Option<Process>>>,
    pub(crate) scenario: &'static Scenario,
    _account: Account,
}

/// One object: API version, kind, namespace and name.
pub(crate) type Object = (&'static str, &'static str, Option<&'static str>, &'static str);

/// The objects of a scenario.
pub(crate) struct Scenario {
    /// The asset pack.
    pub(crate) pack: &'static str,
    /// The role of the pack.
    pub(crate) role: &'static str,
    /// The objects of the end state.
    pub(crate) objects: &'static [Object],
    /// Further arguments of the operator.
    pub(crate) arguments: &'static [&'static str],
}

impl Fixture {
    pub(crate) async fn start(scenario: &'static Scenario) -> Fixture {
        let playground = playground().await;
        let account = deployment::grant_for(&playground, scenario.role).await.unwrap_or_else(|error| panic!("{error}"));
        let proxy = Proxy::start(&playground, &account).unwrap_or_else(|error| panic!("{error}"));
        let operator: Arc<Mutex<Option<Process>>> = Arc::default();
        // An operator that a fault kills is restarted, as a kubelet would do.
        let (killed, kubeconfig) = (operator.clone(), proxy.kubeconfig().to_owned());
        proxy.on_kill(move || {
            let mut operator = killed.lock().unwrap();
            drop(operator.take());
            *operator = Some(start(&kubeconfig, scenario));
        });
        Fixture { playground, proxy, operator, scenario, _account: account }
    }

    /// Starts the operator.
    pub(crate) fn start_operator(&self) {
        *self.operator.lock().unwrap() = Some(start(self.proxy.kubeconfig(), self.scenario));
    }

    pub(crate) fn objects(&self, kind: &str) -> Api<DynamicObject> {
        self.api((self.scenario.objects.iter().find(|object| object.1 == kind)).copied().unwrap())
    }

    fn api(&self, (api_version, kind, namespace, _): Object) -> Api<DynamicObject> {
        deployment::objects(&self.playground, api_version, kind, namespace)
    }

    /// Waits for the expected state, or without one until nothing changes any more; returns the state.
    pub(crate) async fn settled(&self, expected: Option<&Value>) -> Value {
        let begun = Instant::now();
        let mut before = self.state().await;
        loop {
            let wait = if expected.is_none() { QUIET } else { Duration::from_millis(100) };
            tokio::time::sleep(wait).await;
            let now = self.state().await;
            let is_expected = expected.is_none_or(|expected| now == *expected);
            if now == before && (is_expected || begun.elapsed() > STEP_TIMEOUT) {
                return now;
            }
            before = now;
        }
    }

    /// All objects, without the fields that differ from run to run.
    async fn state(&self) -> Value {
        let mut all = json!({});
        for object @ (_, kind, _, name) in self.scenario.objects {
            let object = self.api(*object).get_opt(name).await.unwrap();
            all[format!("{kind}/{name}")] = object.map_or(Value::Null, |object| plain(&object));
        }
        all
    }

    pub(crate) fn hco(&self) -> Api<DynamicObject> {
        deployment::objects(&self.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE))
    }

    /// The ConfigMaps with the backups of adopted objects.
    pub(crate) fn backups(&self) -> Api<DynamicObject> {
        deployment::objects(&self.playground, "v1", "ConfigMap", Some(NAMESPACE))
    }

    /// Stops the operator, deletes all objects and recreates the HyperConverged.
    pub(crate) async fn reset(&self) {
        drop(self.operator.lock().unwrap().take());
        for object in self.scenario.objects {
            let now = DeleteParams::background().grace_period(0);
            let _ = self.api(*object).delete(object.3, &now).await;
        }
        for object in self.scenario.objects {
            let api = self.api(*object);
            self.until("the object is gone", async || api.get_opt(object.3).await.unwrap().is_none().then_some(()))
                .await;
        }
        // Budgets of the last run must not affect the next one.
        let maps = deployment::objects(&self.playground, "v1", "ConfigMap", Some(NAMESPACE));
        let _ = maps.delete(api::STATE, &DeleteParams::default()).await;
        let backups = ListParams::default().labels(api::BACKUP_OF);
        self.backups().delete_collection(&DeleteParams::default(), &backups).await.unwrap();
        let hco = self.hco();
        let before = hco.get(api::hco::NAME).await.unwrap();
        hco.delete(api::hco::NAME, &DeleteParams::default()).await.unwrap();
        let metadata = ObjectMeta {
            name: before.metadata.name,
            annotations: Some(
                [
                    (api::annotation::AUTOPILOT.to_owned(), "true".to_owned()),
                    (api::annotation::APPROVAL.to_owned(), "none".to_owned()),
                ]
                .into(),
            ),
            ..ObjectMeta::default()
        };
        hco.create(&PostParams::default(), &DynamicObject { metadata, ..before }).await.unwrap();
    }

    pub(crate) async fn becomes(&self, api: &Api<DynamicObject>, name: &str, pointer: &str, wanted: Value) {
        self.until(&format!("{name}{pointer} is {wanted}"), async || {
            let object = serde_json::to_value(api.get_opt(name).await.ok()??).unwrap();
            (object.pointer(pointer) == Some(&wanted)).then_some(())
        })
        .await;
    }

    pub(crate) async fn until<T>(&self, what: &str, check: impl AsyncFn() -> Option<T>) -> T {
        eventually_within(STEP_TIMEOUT, what, check).await
    }
}

/// Starts the operator with short timeouts, so that a fault that only a timeout shows is noticed soon.
fn start(kubeconfig: &std::path::Path, scenario: &Scenario) -> Process {
    let mut arguments =
        vec!["--assets-dir", scenario.pack, "--watch-silence=3s", "--request-timeout=700ms", "--verify-every=1s"];
    arguments.extend(scenario.arguments);
    Process::start(kubeconfig, &arguments)
}

pub(crate) async fn create(api: &Api<DynamicObject>, name: &str, data: Value) {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let types = Some(kube::api::TypeMeta { api_version: "v1".into(), kind: "ConfigMap".into() });
    let params = PostParams { field_manager: Some("person".into()), ..PostParams::default() };
    api.create(&params, &DynamicObject { types, metadata, data }).await.unwrap();
}

pub(crate) async fn json_patch(api: &Api<DynamicObject>, name: &str, patch: Value) {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Json::<()>(serde_json::from_value(patch).unwrap())).await.unwrap();
}

/// Fails with the differences.
pub(crate) fn assert_same(found: &Value, wanted: &Value, when: &str) {
    let mut differences = Vec::new();
    compare(found, wanted, "", &mut differences);
    assert!(differences.is_empty(), "{when}:\n{}", differences.join("\n"));
}

fn compare(found: &Value, wanted: &Value, path: &str, differences: &mut Vec<String>) {
    match (found, wanted) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let at =
                    |fields: &serde_json::Map<String, Value>| fields.get(key).cloned().unwrap_or(json!("(nothing)"));
                compare(&at(one), &at(other), &format!("{path}/{key}"), differences);
            }
        }
        (one, other) if one != other => differences.push(format!("{path}: {one} instead of {other}")),
        _ => {}
    }
}

/// The content of an object and its field owners, without the fields that differ from run to run.
fn plain(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    let metadata = value["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| ["name", "namespace", "labels", "annotations", "managedFields"].contains(&key.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        // The rest of the budget depends on the number of corrections.
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
