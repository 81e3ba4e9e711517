//! What was taken over becomes what it was, and what was kept is let go of: on real objects of many kinds.

use crate::commands::virtpilot;
use crate::operator::{NAMESPACE, Process, Running, SERVICE, SWAP, annotate, eventually, playground, quiet};
use change::{Effect, Key, Kind};
use cluster::{Permit, Server, Timeouts, backup, discovery, live};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use playground::{Playground, deployment};
use protocol::{Kinds, Served, WriteError};
use serde_json::{Value, json};

/// A pack of ten kinds and its rights.
const ADOPTED: (&str, &str) =
    (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/adopted"), include_str!("../packs/adopted.role.yaml"));
const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/scene");
const ROLE: &str = include_str!("../packs/scene.role.yaml");

/// A cluster and a connection to it that is ours.
struct Stage {
    playground: Playground,
    server: Server,
    kinds: Kinds,
}

impl Stage {
    async fn set() -> Stage {
        let playground = playground().await;
        let server =
            cluster::connect(Some(&playground.kubeconfig()), Timeouts::default(), autopilot::IDENTITY).await.unwrap();
        let kinds = discovery::discover(&server).await.unwrap();
        Stage { playground, server, kinds }
    }

    fn api(&self, key: &Key) -> Api<DynamicObject> {
        let namespace = Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        deployment::objects(&self.playground, &key.kind.api_version(), &key.kind.kind, namespace)
    }

    fn served(&self, key: &Key) -> Served {
        self.kinds.find(&key.kind).unwrap()
    }

    fn secrets(&self) -> Served {
        self.kinds.find(&Kind::new("v1", "Secret")).unwrap()
    }

    /// As the server sends it.
    async fn look(&self, key: &Key) -> Value {
        live::whole(&self.server, &self.served(key), key).await.unwrap().unwrap()
    }

    async fn apply(&self, manager: &str, key: &Key, object: &Value) {
        let params = PatchParams::apply(manager).force();
        self.api(key).patch(&key.name, &params, &Patch::Apply(object)).await.unwrap();
    }

    async fn edit(&self, manager: &str, key: &Key, patch: Value) {
        let params = PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
        self.api(key).patch(&key.name, &params, &Patch::Merge(&patch)).await.unwrap();
    }

    /// Creates an object as people do: one creates it, one applies to it, one edits it.
    async fn make(&self, object: &Value) -> Key {
        let key = Key::of(object).unwrap();
        let params = PostParams { field_manager: Some("person".into()), ..PostParams::default() };
        let whole: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        self.api(&key).create(&params, &whole).await.unwrap();
        let applied = json!({"apiVersion": object["apiVersion"], "kind": object["kind"],
            "metadata": {"name": key.name, "labels": {"team": "storage"}, "annotations": {"example.com/ticket": "7"}}});
        self.apply("gitops", &key, &applied).await;
        self.edit("editor", &key, json!({"metadata": {"annotations": {"example.com/note": "by hand"}}})).await;
        key
    }

    /// Takes a backup and then changes the object as the operator does.
    async fn take_over(&self, key: &Key, wanted: &Value) {
        self.back_up(key).await;
        let mut object = wanted.clone();
        object["apiVersion"] = json!(key.kind.api_version());
        object["kind"] = json!(key.kind.kind);
        object["metadata"]["name"] = json!(key.name);
        object["metadata"]["labels"] = json!({api::MANAGED_BY.0: api::MANAGED_BY.1, "team": "autopilot"});
        object["metadata"]["annotations"] =
            json!({api::annotation::ORIGIN: "adopted", api::annotation::BUDGET: "x", "example.com/note": "ours"});
        self.apply(api::FIELD_MANAGER, key, &object).await;
    }

    async fn back_up(&self, key: &Key) -> Value {
        let (permit, secrets) = (Permit::typed_command(), self.secrets());
        backup::take(&self.server, &permit, &secrets, NAMESPACE, &self.served(key), key).await.unwrap()
    }

    fn say(&self, words: &[&str]) -> (String, String, Option<i32>) {
        let said = virtpilot(Some(&self.playground.kubeconfig()), words);
        (said.out, said.err, said.code)
    }

    /// What the annotation on the HyperConverged says.
    async fn rules(&self) -> String {
        let hco = deployment::objects(&self.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
        let annotations = hco.get(api::hco::NAME).await.unwrap().metadata.annotations.unwrap_or_default();
        annotations.get(api::annotation::DISABLED_RESOURCES).cloned().unwrap_or_default()
    }
}

/// Objects of ten kinds, as people made them.
fn kinds() -> Vec<Value> {
    let here = |api_version: &str, kind: &str, content: Value| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "adopted", "namespace": NAMESPACE,
            "labels": {"app": "mine"}, "annotations": {"example.com/owner": "storage"}}});
        for (key, value) in content.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let wide = |api_version: &str, kind: &str, content: Value| {
        let mut object = here(api_version, kind, content);
        object["metadata"].as_object_mut().unwrap().remove("namespace");
        object
    };
    let pod = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"no/where": "true"}, "containers": [{"name": "main", "image": "one"}]}});
    let rules = json!([{"name": "g", "rules": [{"record": "a:b", "expr": "vector(1)"}]}]);
    let pool = json!({"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}});
    let worker = json!({"matchLabels": {"node-role.kubernetes.io/worker": ""}});
    let remedy = json!({"apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate", "name": "automatic", "namespace": NAMESPACE});
    let kubelet = json!({"maxPods": 500, "evictionHard": {"memory.available": "1%"}});
    let (machines, x) = ("machineconfiguration.openshift.io/v1", json!({"matchLabels": {"app": "x"}}));
    vec![
        here("v1", "ConfigMap", json!({"data": {"a": "1", "b": "2"}})),
        here("v1", "Service", json!({"spec": {"selector": {"app": "x"}, "ports": [{"name": "m", "port": 80}]}})),
        here("apps/v1", "DaemonSet", json!({"spec": {"selector": x, "template": pod}})),
        here("monitoring.coreos.com/v1", "PrometheusRule", json!({"spec": {"groups": rules}})),
        here(
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            json!({"spec": {"selector": x, "endpoints": [{"port": "metrics", "interval": "30s"}]}}),
        ),
        wide(
            machines,
            "MachineConfig",
            json!({"spec": {"kernelArguments": ["psi=1"], "config": {"ignition": {"version": "3.4.0"}}}}),
        ),
        wide(machines, "KubeletConfig", json!({"spec": {"kubeletConfig": kubelet, "machineConfigPoolSelector": pool}})),
        here(
            "operator.openshift.io/v1",
            "KubeDescheduler",
            json!({"spec": {"mode": "Predictive", "deschedulingIntervalSeconds": 60, "profiles": ["LongLifecycle"]}}),
        ),
        wide(
            "remediation.medik8s.io/v1alpha1",
            "NodeHealthCheck",
            json!({"spec": {"minHealthy": "51%", "selector": worker, "remediationTemplate": remedy}}),
        ),
        here("v1", "ServiceAccount", json!({"imagePullSecrets": [{"name": "a"}]})),
    ]
}

/// Without what the server counts by itself. A DaemonSet has a controller, which tells in its status what it saw, and when.
fn plain(mut object: Value) -> String {
    let has_controller = object["kind"] == "DaemonSet";
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| !["resourceVersion", "generation"].contains(&key.as_str()));
    if has_controller {
        metadata["annotations"].as_object_mut().unwrap().remove("deprecated.daemonset.template.generation");
        metadata["managedFields"].as_array_mut().unwrap().retain(|entry| entry.get("subresource").is_none());
        object.as_object_mut().unwrap().remove("status");
    }
    serde_json::to_string_pretty(&object).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_over_is_brought_back_to_the_byte() {
    let stage = Stage::set().await;
    let (mut keys, mut before) = (Vec::new(), Vec::new());
    for object in kinds() {
        let key = stage.make(&object).await;
        before.push(stage.look(&key).await);
        keys.push(key);
    }
    let hco = deployment::objects(&stage.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    annotate(&hco, api::hco::NAME, "autopilot", Some("true")).await;
    let account =
        deployment::grant_for(&stage.playground, ADOPTED.1).await.unwrap_or_else(|trouble| panic!("{trouble}"));
    let _operator = Process::start(&account.kubeconfig, &["--assets-dir", ADOPTED.0]);
    for (key, before) in keys.iter().zip(&before) {
        let taken = eventually(&format!("{key} is taken over"), async || {
            let now = stage.look(key).await;
            (now["metadata"]["annotations"][api::annotation::ORIGIN] == "adopted").then_some(now)
        })
        .await;
        assert_eq!(
            taken["metadata"]["annotations"]["example.com/note"], "ours",
            "it was edited by hand, which is drift"
        );
        assert!(taken["metadata"]["managedFields"].to_string().contains(r#""manager":"virt-platform-autopilot""#));
        let content = |object: &Value| ["spec", "data", "imagePullSecrets"].map(|part| object[part].clone());
        assert!(content(&taken) != content(before), "{key}");
    }
    for (key, before) in keys.iter().zip(before) {
        let (out, err, code) = stage.say(&["rollback", &key.kind.kind, &key.name]);
        assert_eq!(code, Some(0), "{key}: {err}");
        assert!(out.contains(&format!("restored {key} as it was at ")), "{out}");
        let after = stage.look(key).await;
        assert!(before["metadata"]["managedFields"].as_array().unwrap().len() >= 3, "several managers");
        assert_eq!(plain(after), plain(before), "{key}");
        let rule = format!("kind: {}, name: \"{}\"", key.kind.kind, key.name);
        assert_eq!(stage.rules().await.matches(&rule).count(), 1, "it is excluded, once");
    }
    assert_eq!(stage.rules().await.lines().count(), keys.len(), "every rule is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_brings_back_what_is_gone_and_may_be_made_again() {
    let stage = Stage::set().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopted", "namespace": NAMESPACE, "labels": {"app": "x"}}, "data": {"a": "1"}});
    let key = stage.make(&object).await;
    let before = stage.look(&key).await;
    stage.take_over(&key, &json!({"data": {"a": "2"}})).await;
    stage.api(&key).delete(&key.name, &DeleteParams::default()).await.unwrap();
    let (_, err, code) = stage.say(&["rollback", "configmap.v1", "adopted", "--object-namespace", NAMESPACE]);
    assert_eq!(code, Some(0), "{err}");
    let anew = |mut object: Value| {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| !["uid", "creationTimestamp"].contains(&key.as_str()));
        plain(object)
    };
    assert_eq!(anew(stage.look(&key).await), anew(before));
    let (out, err, _) = stage.say(&["rollback", "ConfigMap", "adopted"]);
    assert!(out.contains("was excluded before") && out.contains("nothing was written"), "{out}{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_are_made_once_a_version_and_the_last_three_are_kept() {
    let stage = Stage::set().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopted", "namespace": NAMESPACE}, "data": {"a": "0"}});
    let key = stage.make(&object).await;
    let secrets = deployment::objects(&stage.playground, "v1", "Secret", Some(NAMESPACE));
    let names = async || {
        let params = ListParams::default().labels(&change::backup::selector(&key));
        let list = secrets.list(&params).await.unwrap();
        list.items.into_iter().map(|secret| secret.metadata.name.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(stage.back_up(&key).await, stage.look(&key).await, "what was read is what there is");
    stage.back_up(&key).await;
    assert_eq!(names().await.len(), 1, "the same version is backed up once");
    let first = names().await;
    for version in 1..=4 {
        // The server tells the time of a backup in seconds.
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        stage.edit("editor", &key, json!({"data": {"a": version.to_string()}})).await;
        stage.back_up(&key).await;
    }
    let left = names().await;
    assert!(left.len() == 3 && !left.contains(&first[0]), "{left:?}");
    let (out, ..) = stage.say(&["rollback", "ConfigMap", "adopted", "--list"]);
    assert_eq!(out.lines().count(), 4, "{out}");
    let oldest = out.lines().last().unwrap().split_whitespace().last().unwrap().to_owned();
    let (_, err, code) = stage.say(&["rollback", "ConfigMap", "adopted", "--to", &oldest]);
    assert_eq!((code, stage.look(&key).await["data"]["a"].as_str()), (Some(0), Some("2")), "{err}");

    // Too large for a Secret of ours: it says so, and makes none.
    let large = json!({"data": {"a": "x".repeat(600_000)}});
    stage.edit("editor", &key, large).await;
    let (permit, served) = (Permit::typed_command(), stage.served(&key));
    let error = backup::take(&stage.server, &permit, &stage.secrets(), NAMESPACE, &served, &key).await.unwrap_err();
    assert!(matches!(error, backup::Error::TooLarge { bytes, .. } if bytes > 600_000), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_cannot_be_made_does_nothing_and_says_why() {
    let stage = Stage::set().await;
    let (_, err, code) = stage.say(&["rollback", "ConfigMap", "nothing"]);
    assert!(
        code == Some(1) && err.contains("there is no backup of ConfigMap nothing, nor of anything else\n  why: "),
        "{err}"
    );
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopted", "namespace": NAMESPACE}, "data": {"a": "1"}});
    let key = stage.make(&object).await;
    stage.take_over(&key, &json!({"data": {"a": "2"}})).await;
    let (_, err, _) = stage.say(&["rollback", "ConfgMap", "adopted"]);
    assert!(err.contains("there are backups of ConfigMap openshift-cnv/adopted"), "{err}");
    let (_, err, _) = stage.say(&["rollback", "ConfigMap", "adopted", "--to", "other"]);
    assert!(
        err.contains("other is no backup of ConfigMap openshift-cnv/adopted\n  fix: choose one of virt-platform"),
        "{err}"
    );
    let hco = Key {
        kind: Kind::new("hco.kubevirt.io/v1", "HyperConverged"),
        namespace: NAMESPACE.into(),
        name: api::hco::NAME.into(),
    };
    let annotate = async |value: &str| {
        stage
            .edit("person", &hco, json!({"metadata": {"annotations": {api::annotation::DISABLED_RESOURCES: value}}}))
            .await;
    };
    annotate("- {kind: ConfigMap, nmae: x}").await;
    let (_, err, code) = stage.say(&["rollback", "ConfigMap", "adopted"]);
    assert!(code == Some(1) && err.contains("line 1") && err.contains("nothing was done\n  fix: "), "{err}");
    assert_eq!(stage.look(&key).await["data"]["a"], "2");
    // The older form stays in its form.
    annotate("Service/a, Service/b").await;
    let (_, err, code) = stage.say(&["rollback", "ConfigMap", "adopted"]);
    assert_eq!((code, stage.rules().await.as_str()), (Some(0), "Service/a, Service/b, ConfigMap/adopted"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_goes_only_to_the_object_it_was_decided_for() {
    let stage = Stage::set().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": NAMESPACE}, "data": {"a": "1"}});
    let key = stage.make(&object).await;
    let served = stage.served(&key);
    let act = async |effect| {
        cluster::act::act(&stage.server, &Permit::typed_command(), api::FIELD_MANAGER, &served, &key, effect, 0).await
    };
    let delete = |uid: &str, version: &str| Effect::Delete { uid: uid.into(), resource_version: version.into() };
    let live = cluster::live::read(&stage.server, &served, &key).await.unwrap().unwrap();
    let (uid, version) = (live.uid.as_str(), live.resource_version.as_str());
    assert!(matches!(act(delete("another", version)).await, Err(WriteError::Stale(_))));
    assert!(matches!(act(delete(uid, "1")).await, Err(WriteError::Stale(_))));
    assert!(act(Effect::Create { object: object.clone() }).await.unwrap().live.is_none(), "it exists");
    stage.edit("editor", &key, json!({"metadata": {"finalizers": ["example.com/wait"]}})).await;
    assert!(matches!(act(delete(uid, version)).await, Err(WriteError::Stale(_))), "it was changed");
    assert!(matches!(act(Effect::HandBack { patch: change::handback::patch(&live) }).await, Err(WriteError::Stale(_))));
    let live = cluster::live::read(&stage.server, &served, &key).await.unwrap().unwrap();
    let deleting = act(delete(uid, &live.resource_version)).await.unwrap().live.unwrap();
    assert!(deleting.deleting.is_some(), "somebody has to let go of it first");
    stage.edit("editor", &key, json!({"metadata": {"finalizers": null}})).await;
    assert!(act(delete(uid, version)).await.unwrap().live.is_none(), "gone is gone");
    let made = act(Effect::Create { object }).await.unwrap().live.unwrap();
    assert!(act(delete(&made.uid, &made.resource_version)).await.unwrap().live.is_none());
    assert!(cluster::live::read(&stage.server, &served, &key).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_handed_back_keeps_every_value_and_belongs_to_whoever_applies_it() {
    let stage = Stage::set().await;
    let ours = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE,
        "labels": {api::MANAGED_BY.0: api::MANAGED_BY.1, "app": "x"}, "annotations": {api::annotation::ORIGIN: "created"}}, "data": {"a": "1", "b": "2"}})
    };
    // One that is ours alone, one that others wrote to as well, one with no annotation at all.
    for (name, entries) in [("alone", 1), ("shared", 1), ("bare", 1)] {
        let mut object = ours(name);
        if name == "bare" {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        let key = Key::of(&object).unwrap();
        stage.apply(api::FIELD_MANAGER, &key, &object).await;
        if name == "shared" {
            stage.edit("person", &key, json!({"metadata": {"annotations": {api::annotation::MODE: "managed"}}})).await;
            // As when we pause it.
            stage
                .edit(
                    api::FIELD_MANAGER,
                    &key,
                    json!({"metadata": {"annotations": {api::annotation::RECONCILE_PAUSED: "true"}}}),
                )
                .await;
        }
        let served = stage.served(&key);
        let live = cluster::live::read(&stage.server, &served, &key).await.unwrap().unwrap();
        let patch = change::handback::patch(&live);
        let effect = Effect::HandBack { patch };
        cluster::act::act(&stage.server, &Permit::typed_command(), api::FIELD_MANAGER, &served, &key, effect, 0)
            .await
            .unwrap();
        let after = stage.look(&key).await;
        assert_eq!(
            (&after["data"], &after["metadata"]["labels"]),
            (&ours(name)["data"], &json!({"app": "x"})),
            "{name}"
        );
        let owners = after["metadata"]["managedFields"].as_array().unwrap();
        assert!(
            owners.len() == entries && owners.iter().all(|entry| entry["manager"] != api::FIELD_MANAGER),
            "{owners:?}"
        );
        let users = if name == "shared" {
            json!({api::annotation::MODE: "managed", api::annotation::RECONCILE_PAUSED: "true"})
        } else {
            Value::Null
        };
        assert_eq!(after["metadata"]["annotations"], users, "{name}");
        // With other values, and no force.
        let theirs = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\ndata: {{a: mine, b: mine}}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("theirs.yaml");
        std::fs::write(&file, theirs).unwrap();
        let kubectl = stage.playground.folder().join("kubectl");
        let applied =
            std::process::Command::new(kubectl).args(["apply", "--server-side", "-f"]).arg(&file).output().unwrap();
        assert!(applied.status.success(), "{name}: {}", String::from_utf8_lossy(&applied.stderr));
        assert_eq!(stage.look(&key).await["data"], json!({"a": "mine", "b": "mine"}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uninstall_hands_everything_back_and_deletes_nothing() {
    let running = Running::start(Some("true")).await;
    let (services, machines) = (running.services(), running.machine_configs());
    let kept = async |api: &Api<DynamicObject>, name: &str| {
        eventually("it is kept", async || api.get_opt(name).await.unwrap()).await
    };
    let before = (kept(&services, SERVICE).await, kept(&machines, SWAP).await);
    let kubeconfig = running.playground.kubeconfig();
    let dry = virtpilot(Some(&kubeconfig), &["handback", "--dry-run"]);
    assert_eq!((dry.code, dry.out.matches("would hand back").count()), (Some(0), 2), "{}{}", dry.out, dry.err);
    assert!(dry.out.contains("would set the annotation platform.kubevirt.io/autopilot"), "{}", dry.out);
    let is_ours = |object: &DynamicObject| {
        object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(api::MANAGED_BY.0))
    };
    assert!(is_ours(&services.get(SERVICE).await.unwrap()), "that was only a look");

    // While the operator runs: it was told first.
    let said = virtpilot(Some(&kubeconfig), &["handback"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.starts_with("set the annotation platform.kubevirt.io/autopilot"), "{}", said.out);
    assert!(said.out.contains("delete configmap/virt-platform-autopilot-state lease/"), "{}", said.out);
    quiet(&running).await;
    let after = (services.get(SERVICE).await.unwrap(), machines.get(SWAP).await.unwrap());
    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        assert!(!is_ours(&after) && before.metadata.uid == after.metadata.uid);
        assert_eq!(before.data["spec"], after.data["spec"]);
        let owners = after.metadata.managed_fields.unwrap_or_default();
        assert!(owners.iter().all(|entry| entry.manager.as_deref() != Some(api::FIELD_MANAGER)), "{owners:?}");
    }
    // An account that may not list a kind is told that it is not done.
    let refused = virtpilot(Some(running.kubeconfig()), &["handback", "--assets-dir", PACK]);
    assert_eq!(refused.code, Some(1), "{}{}", refused.out, refused.err);
    assert!(refused.out.contains("not done: ConfigMap cannot be listed: configmaps is forbidden"), "{}", refused.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_beside_a_running_operator_stays() {
    let mut running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    let maps = running.config_maps();
    eventually("it is kept", async || maps.get_opt("scene-settings").await.unwrap()).await;
    running.stop();
    maps.delete("scene-settings", &DeleteParams::default()).await.unwrap();
    let server = cluster::connect(Some(&running.playground.kubeconfig()), Timeouts::default(), autopilot::IDENTITY)
        .await
        .unwrap();
    let kinds = discovery::discover(&server).await.unwrap();
    let metadata = json!({"name": "scene-settings", "namespace": NAMESPACE, "labels": {"app": "mine"}});
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"first": "mine", "third": "3"}});
    let key = Key::of(&object).unwrap();
    maps.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let (served, secrets) = (kinds.find(&key.kind).unwrap(), kinds.find(&Kind::new("v1", "Secret")).unwrap());
    let before = backup::take(&server, &Permit::typed_command(), &secrets, NAMESPACE, &served, &key).await.unwrap();
    running.restart();
    eventually("it is taken over", async || {
        (maps.get("scene-settings").await.unwrap().data["data"]["first"] == "one").then_some(())
    })
    .await;
    let said = virtpilot(Some(&running.playground.kubeconfig()), &["rollback", "ConfigMap", "scene-settings"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    quiet(&running).await;
    let after = live::whole(&server, &served, &key).await.unwrap().unwrap();
    assert_eq!(plain(after), plain(before));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hyperconverged_is_brought_back_and_its_exclusion_stays() {
    let stage = Stage::set().await;
    let kind = Kind::new("hco.kubevirt.io/v1", api::hco::KIND);
    let key = Key { kind, namespace: NAMESPACE.into(), name: api::hco::NAME.into() };
    let mut before = stage.look(&key).await;
    stage.take_over(&key, &json!({})).await;
    let (out, err, code) = stage.say(&["rollback", api::hco::KIND, api::hco::NAME]);
    assert_eq!(code, Some(0), "{out}{err}");
    let rules = stage.rules().await;
    assert!(rules.contains("kind: HyperConverged"), "{rules}");
    before["metadata"]["annotations"][api::annotation::DISABLED_RESOURCES] = json!(rules);
    assert_eq!(plain(stage.look(&key).await), plain(before));
}
