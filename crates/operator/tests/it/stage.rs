//! A stage for plays: a cluster, the operator behind a proxy, and what there is at the end.

use crate::operator::{NAMESPACE, Process, eventually_within, playground};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use playground::fault::Proxy;
use playground::service_account::Account;
use playground::{Playground, deployment};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long one step may take: a fault that is only noticed by a timeout is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nothing that is still to come takes longer, where nothing goes wrong.
const QUIET: Duration = Duration::from_millis(700);

/// A cluster with the operator behind a proxy.
pub(crate) struct Stage {
    pub(crate) playground: Playground,
    pub(crate) proxy: Proxy,
    pub(crate) operator: Arc<Mutex<Option<Process>>>,
    pub(crate) play: &'static Play,
    _account: Account,
}

/// One object: api version, kind, namespace, name.
pub(crate) type Object = (&'static str, &'static str, Option<&'static str>, &'static str);

/// What is played.
pub(crate) struct Play {
    /// The asset pack.
    pub(crate) pack: &'static str,
    /// The rights that come with it.
    pub(crate) role: &'static str,
    /// Everything that is looked at in the end.
    pub(crate) objects: &'static [Object],
}

impl Stage {
    pub(crate) async fn build(play: &'static Play) -> Stage {
        let playground = playground().await;
        let account = deployment::grant_for(&playground, play.role).await.unwrap_or_else(|trouble| panic!("{trouble}"));
        let proxy = Proxy::start(&playground, &account).unwrap_or_else(|trouble| panic!("{trouble}"));
        let operator: Arc<Mutex<Option<Process>>> = Arc::default();
        // Whoever is killed by a fault is started again, as a kubelet would.
        let (killed, kubeconfig) = (operator.clone(), proxy.kubeconfig().to_owned());
        proxy.on_kill(move || {
            let mut operator = killed.lock().unwrap();
            drop(operator.take());
            *operator = Some(start(&kubeconfig, play));
        });
        Stage { playground, proxy, operator, play, _account: account }
    }

    /// Starts the operator.
    pub(crate) fn start(&self) {
        *self.operator.lock().unwrap() = Some(start(self.proxy.kubeconfig(), self.play));
    }

    pub(crate) fn objects(&self, kind: &str) -> Api<DynamicObject> {
        self.all((self.play.objects.iter().find(|object| object.1 == kind)).copied().unwrap())
    }

    fn all(&self, (api_version, kind, namespace, _): Object) -> Api<DynamicObject> {
        deployment::objects(&self.playground, api_version, kind, namespace)
    }

    /// Waits until everything is as expected, or if nothing is, until nothing changes any more; returns what there is then.
    pub(crate) async fn settled(&self, expected: Option<&Value>) -> Value {
        let begun = Instant::now();
        let mut before = self.look().await;
        loop {
            let wait = if expected.is_none() { QUIET } else { Duration::from_millis(100) };
            tokio::time::sleep(wait).await;
            let now = self.look().await;
            let is_expected = expected.is_none_or(|expected| now == *expected);
            if now == before && (is_expected || begun.elapsed() > PATIENCE) {
                return now;
            }
            before = now;
        }
    }

    /// All objects, without what differs from run to run.
    async fn look(&self) -> Value {
        let mut all = json!({});
        for object @ (_, kind, _, name) in self.play.objects {
            let object = self.all(*object).get_opt(name).await.unwrap();
            all[format!("{kind}/{name}")] = object.map_or(Value::Null, |object| plain(&object));
        }
        all
    }

    pub(crate) fn hco(&self) -> Api<DynamicObject> {
        deployment::objects(&self.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE))
    }

    /// Copies of objects that were somebody else's.
    pub(crate) fn backups(&self) -> Api<DynamicObject> {
        deployment::objects(&self.playground, "v1", "Secret", Some(NAMESPACE))
    }

    /// Ends the operator, removes everything and makes the HyperConverged anew.
    pub(crate) async fn clear(&self) {
        drop(self.operator.lock().unwrap().take());
        for object in self.play.objects {
            let gone = DeleteParams::background().grace_period(0);
            let _ = self.all(*object).delete(object.3, &gone).await;
        }
        for object in self.play.objects {
            let api = self.all(*object);
            self.until("it is gone", async || api.get_opt(object.3).await.unwrap().is_none().then_some(())).await;
        }
        // What is left of a budget is nothing to a play that begins anew.
        let maps = deployment::objects(&self.playground, "v1", "ConfigMap", Some(NAMESPACE));
        let _ = maps.delete(api::STATE, &DeleteParams::default()).await;
        let copies = ListParams::default().labels(api::BACKUP_OF);
        self.backups().delete_collection(&DeleteParams::default(), &copies).await.unwrap();
        let hco = self.hco();
        let before = hco.get(api::hco::NAME).await.unwrap();
        hco.delete(api::hco::NAME, &DeleteParams::default()).await.unwrap();
        let metadata = ObjectMeta {
            name: before.metadata.name,
            annotations: Some([(api::annotation::AUTOPILOT.to_owned(), "true".to_owned())].into()),
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

    pub(crate) async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        eventually_within(PATIENCE, what, look).await
    }
}

/// Starts the operator with short patience: what is noticed by a timeout is noticed soon.
fn start(kubeconfig: &std::path::Path, play: &Play) -> Process {
    Process::start(
        kubeconfig,
        &["--assets-dir", play.pack, "--watch-silence=1s", "--request-timeout=700ms", "--verify-every=1s"],
    )
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
