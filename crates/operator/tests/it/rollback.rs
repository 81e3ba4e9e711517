//! Rollback of adopted objects and handback of managed ones, with objects of many kinds.

use crate::commands::virtpilot;
use crate::operator::{NAMESPACE, Process, Running, SERVICE, SWAP, annotate, eventually, playground, quiet};
use change::backup::Unfit;
use change::{Effect, Key, Kind};
use cluster::{Permit, Server, Timeouts, backup, discovery, live};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use playground::{Playground, deployment};
use protocol::{Kinds, Served, WriteError};
use serde_json::{Value, json};

/// A pack of ten kinds and its role.
const ADOPTED: (&str, &str) =
    (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/adopted"), include_str!("../packs/adopted.role.yaml"));
const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/scene");
const ROLE: &str = include_str!("../packs/scene.role.yaml");

/// A cluster, and a connection to it as the commands have it.
struct TestCluster {
    playground: Playground,
    server: Server,
    kinds: Kinds,
}

impl TestCluster {
    async fn start() -> TestCluster {
        let playground = playground().await;
        let server = cluster::connect(
            cluster::KubeconfigContext::current(Some(&playground.kubeconfig())),
            Timeouts::default(),
            autopilot::IDENTITY,
        )
        .await
        .unwrap();
        let kinds = discovery::discover(&server).await.unwrap();
        TestCluster { playground, server, kinds }
    }

    fn api(&self, key: &Key) -> Api<DynamicObject> {
        let namespace = Some(key.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        deployment::objects(&self.playground, &key.kind.api_version(), &key.kind.kind, namespace)
    }

    fn served(&self, key: &Key) -> Served {
        self.kinds.find(&key.kind).unwrap()
    }

    fn config_maps(&self) -> Served {
        self.kinds.find(&Kind::new("v1", "ConfigMap")).unwrap()
    }

    /// Reads the whole object.
    async fn get(&self, key: &Key) -> Value {
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

    /// Creates an object with three field managers: one creates it, one applies to it, one edits it.
    async fn create(&self, object: &Value) -> Key {
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

    /// Backs the object up and applies to it as the operator does.
    async fn adopt(&self, key: &Key, wanted: &Value) {
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
        let (permit, config_maps) = (Permit::typed_command(), self.config_maps());
        backup::take(&self.server, &permit, &config_maps, NAMESPACE, &self.served(key), key).await.unwrap()
    }

    fn virtpilot(&self, arguments: &[&str]) -> (String, String, Option<i32>) {
        let output = virtpilot(Some(&self.playground.kubeconfig()), arguments);
        (output.stdout, output.stderr, output.code)
    }

    /// The value of `disabled-resources` on the HyperConverged.
    async fn exclusions(&self) -> String {
        let hco = deployment::objects(&self.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
        let annotations = hco.get(api::hco::NAME).await.unwrap().metadata.annotations.unwrap_or_default();
        annotations.get(api::annotation::DISABLED_RESOURCES).cloned().unwrap_or_default()
    }
}

/// Objects of ten kinds, as users create them.
fn objects() -> Vec<Value> {
    let namespaced = |api_version: &str, kind: &str, content: Value| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "adopted", "namespace": NAMESPACE,
            "labels": {"app": "mine"}, "annotations": {"example.com/owner": "storage"}}});
        for (key, value) in content.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let cluster_scoped = |api_version: &str, kind: &str, content: Value| {
        let mut object = namespaced(api_version, kind, content);
        object["metadata"].as_object_mut().unwrap().remove("namespace");
        object
    };
    let pod = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"no/where": "true"}, "containers": [{"name": "main", "image": "one"}]}});
    let rules = json!([{"name": "g", "rules": [{"record": "a:b", "expr": "vector(1)"}]}]);
    let pool = json!({"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}});
    let worker = json!({"matchLabels": {"node-role.kubernetes.io/worker": ""}});
    let remediation = json!({"apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate", "name": "automatic", "namespace": NAMESPACE});
    let kubelet = json!({"maxPods": 500, "evictionHard": {"memory.available": "1%"}});
    let (machines, x) = ("machineconfiguration.openshift.io/v1", json!({"matchLabels": {"app": "x"}}));
    vec![
        namespaced("v1", "ConfigMap", json!({"data": {"a": "1", "b": "2"}})),
        namespaced("v1", "Service", json!({"spec": {"selector": {"app": "x"}, "ports": [{"name": "m", "port": 80}]}})),
        namespaced("apps/v1", "DaemonSet", json!({"spec": {"selector": x, "template": pod}})),
        namespaced("monitoring.coreos.com/v1", "PrometheusRule", json!({"spec": {"groups": rules}})),
        namespaced(
            "monitoring.coreos.com/v1",
            "ServiceMonitor",
            json!({"spec": {"selector": x, "endpoints": [{"port": "metrics", "interval": "30s"}]}}),
        ),
        cluster_scoped(
            machines,
            "MachineConfig",
            json!({"spec": {"kernelArguments": ["psi=1"], "config": {"ignition": {"version": "3.4.0"}}}}),
        ),
        cluster_scoped(
            machines,
            "KubeletConfig",
            json!({"spec": {"kubeletConfig": kubelet, "machineConfigPoolSelector": pool}}),
        ),
        namespaced(
            "operator.openshift.io/v1",
            "KubeDescheduler",
            json!({"spec": {"mode": "Predictive", "deschedulingIntervalSeconds": 60, "profiles": ["LongLifecycle"]}}),
        ),
        cluster_scoped(
            "remediation.medik8s.io/v1alpha1",
            "NodeHealthCheck",
            json!({"spec": {"minHealthy": "51%", "selector": worker, "remediationTemplate": remediation}}),
        ),
        namespaced("v1", "ServiceAccount", json!({"imagePullSecrets": [{"name": "a"}]})),
    ]
}

/// The object without the fields that the server counts. A DaemonSet has a controller, which writes its status.
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
async fn a_rollback_restores_adopted_objects_byte_for_byte() {
    let test = TestCluster::start().await;
    let (mut keys, mut before) = (Vec::new(), Vec::new());
    for object in objects() {
        let key = test.create(&object).await;
        before.push(test.get(&key).await);
        keys.push(key);
    }
    let hco = deployment::objects(&test.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    annotate(&hco, api::hco::NAME, "approval", Some("none")).await;
    annotate(&hco, api::hco::NAME, "autopilot", Some("true")).await;
    let account = deployment::grant_for(&test.playground, ADOPTED.1).await.unwrap_or_else(|error| panic!("{error}"));
    let _operator = Process::start(&account.kubeconfig, &["--assets-dir", ADOPTED.0]);
    for (key, before) in keys.iter().zip(&before) {
        let adopted = eventually(&format!("{key} is adopted"), async || {
            let now = test.get(key).await;
            (now["metadata"]["annotations"][api::annotation::ORIGIN] == "adopted").then_some(now)
        })
        .await;
        assert_eq!(adopted["metadata"]["annotations"]["example.com/note"], "ours", "a plain update is drift");
        assert!(adopted["metadata"]["managedFields"].to_string().contains(r#""manager":"virt-platform-autopilot""#));
        let content = |object: &Value| ["spec", "data", "imagePullSecrets"].map(|part| object[part].clone());
        assert!(content(&adopted) != content(before), "{key}");
    }
    for (key, before) in keys.iter().zip(before) {
        let (stdout, stderr, code) = test.virtpilot(&["rollback", &key.kind.kind, &key.name]);
        assert_eq!(code, Some(0), "{key}: {stderr}");
        assert!(stdout.contains(&format!("restored {key} as it was at ")), "{stdout}");
        let after = test.get(key).await;
        assert!(before["metadata"]["managedFields"].as_array().unwrap().len() >= 3, "several managers");
        assert_eq!(plain(after), plain(before), "{key}");
        let rule = format!("kind: {}, name: \"{}\"", key.kind.kind, key.name);
        assert_eq!(test.exclusions().await.matches(&rule).count(), 1, "it is excluded once");
    }
    assert_eq!(test.exclusions().await.lines().count(), keys.len(), "earlier rules are kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_recreates_a_deleted_object_and_can_be_repeated() {
    let test = TestCluster::start().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopted", "namespace": NAMESPACE, "labels": {"app": "x"}}, "data": {"a": "1"}});
    let key = test.create(&object).await;
    let before = test.get(&key).await;
    test.adopt(&key, &json!({"data": {"a": "2"}})).await;
    test.api(&key).delete(&key.name, &DeleteParams::default()).await.unwrap();
    let (_, stderr, code) = test.virtpilot(&["rollback", "configmap.v1", "adopted", "--object-namespace", NAMESPACE]);
    assert_eq!(code, Some(0), "{stderr}");
    let recreated = |mut object: Value| {
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| !["uid", "creationTimestamp"].contains(&key.as_str()));
        plain(object)
    };
    assert_eq!(recreated(test.get(&key).await), recreated(before));
    let (stdout, stderr, _) = test.virtpilot(&["rollback", "ConfigMap", "adopted"]);
    assert!(stdout.contains("is already excluded") && stdout.contains("nothing was written"), "{stdout}{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_version_is_backed_up_once_and_the_last_three_backups_are_kept() {
    let test = TestCluster::start().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopted", "namespace": NAMESPACE}, "data": {"a": "0"}});
    let key = test.create(&object).await;
    let maps = deployment::objects(&test.playground, "v1", "ConfigMap", Some(NAMESPACE));
    let versions = async || {
        let list = maps.list(&ListParams::default().labels(&change::backup::selector(&key))).await.unwrap();
        let objects = list.items.iter().map(|map| change::backup::object(&serde_json::to_value(map).unwrap()).unwrap());
        let mut versions: Vec<String> =
            objects.map(|object| object["data"]["a"].as_str().unwrap().to_owned()).collect();
        versions.sort();
        versions
    };
    assert_eq!(test.back_up(&key).await, test.get(&key).await, "the backup contains the live object");
    test.back_up(&key).await;
    assert_eq!(versions().await, ["0"], "the same version is backed up once");
    for version in 1..=4 {
        test.edit("editor", &key, json!({"data": {"a": version.to_string()}})).await;
        test.back_up(&key).await;
    }
    assert_eq!(versions().await, ["2", "3", "4"]);
    let (stdout, ..) = test.virtpilot(&["rollback", "ConfigMap", "adopted", "--list"]);
    assert_eq!(stdout.lines().count(), 4, "{stdout}");
    let oldest = stdout.lines().last().unwrap().split_whitespace().last().unwrap().to_owned();
    let (_, stderr, code) = test.virtpilot(&["rollback", "ConfigMap", "adopted", "--to", &oldest]);
    assert_eq!((code, test.get(&key).await["data"]["a"].as_str()), (Some(0), Some("2")), "{stderr}");

    // An object of almost 512 KiB is backed up, also if its text is quoted twice.
    test.edit("editor", &key, json!({"data": {"a": "\"".repeat(255_000)}})).await;
    let large = test.back_up(&key).await;
    assert!(large.to_string().len() > 510_000 && versions().await.contains(&"\"".repeat(255_000)));
    // An object that is too large for a backup is an error.
    let large = json!({"data": {"a": "x".repeat(600_000)}});
    test.edit("editor", &key, large).await;
    let (permit, served) = (Permit::typed_command(), test.served(&key));
    let error = backup::take(&test.server, &permit, &test.config_maps(), NAMESPACE, &served, &key).await.unwrap_err();
    let backup::Error::Unfit { why: Unfit::TooLarge { bytes }, .. } = error else { panic!("{error}") };
    assert!(bytes > 600_000, "{bytes}");
}

/// Stores a backup as the first release did: in a Secret.
async fn store_in_secret(test: &TestCluster, object: &Value, name: &str) {
    let mut secret =
        change::backup::config_map(object, NAMESPACE, name, jiff::Timestamp::UNIX_EPOCH).unwrap_or_else(|_| {
            let text = format!("{} {} {NAMESPACE}/{}", "v1", "Secret", object["metadata"]["name"].as_str().unwrap());
            json!({"apiVersion": "v1", "metadata": {"name": name, "namespace": NAMESPACE, "labels": {api::BACKUP_OF: "x"},
                "annotations": {api::annotation::BACKUP_OBJECT: text}}})
        });
    secret["kind"] = json!("Secret");
    secret["type"] = json!(api::BACKUP_TYPE);
    secret["immutable"] = json!(true);
    secret.as_object_mut().unwrap().remove("data");
    secret["stringData"] = json!({"object": object.to_string()});
    secret["metadata"]["annotations"].as_object_mut().unwrap().remove(api::annotation::BACKUP_TAKEN);
    let secrets = deployment::objects(&test.playground, "v1", "Secret", Some(NAMESPACE));
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn backups_of_the_first_release_are_found_restored_and_moved() {
    let test = TestCluster::start().await;
    let object = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": {"a": "1"}});
    let (restored, moved) = (test.create(&object("restored")).await, test.create(&object("moved")).await);
    let (before, second) = (test.get(&restored).await, test.get(&moved).await);
    store_in_secret(&test, &before, "old-restored").await;
    store_in_secret(&test, &second, "old-moved").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": NAMESPACE}});
    store_in_secret(&test, &secret, "old-secret").await;
    for key in [&restored, &moved] {
        test.edit("editor", key, json!({"data": {"a": "2"}})).await;
    }
    let (stdout, stderr, _) = test.virtpilot(&["rollback", "--list"]);
    assert!(stdout.contains("Secret  old-restored") && stdout.contains("rollback --migrate"), "{stdout}{stderr}");
    let (stdout, stderr, code) = test.virtpilot(&["rollback", "ConfigMap", "restored"]);
    assert!(code == Some(0) && stdout.contains("(Secret openshift-cnv/old-restored)"), "{stdout}{stderr}");
    assert_eq!(plain(test.get(&restored).await), plain(before));

    let (stdout, stderr, code) = test.virtpilot(&["rollback", "--migrate"]);
    assert_eq!((code, stdout.matches("moved the backup of").count()), (Some(0), 2), "{stdout}{stderr}");
    assert!(stdout.contains("left Secret openshift-cnv/old-secret: it contains a Secret"), "{stdout}");
    let secrets = deployment::objects(&test.playground, "v1", "Secret", Some(NAMESPACE));
    let left = secrets.list(&ListParams::default().labels(api::BACKUP_OF)).await.unwrap();
    let left: Vec<String> = left.items.into_iter().filter_map(|secret| secret.metadata.name).collect();
    assert_eq!(left, ["old-secret"]);
    let (stdout, stderr, code) = test.virtpilot(&["rollback", "ConfigMap", "moved"]);
    assert!(
        code == Some(0) && stdout.contains("(ConfigMap openshift-cnv/virt-platform-autopilot-backup-"),
        "{stdout}{stderr}"
    );
    assert_eq!(plain(test.get(&moved).await), plain(second));
    let (stdout, ..) = test.virtpilot(&["rollback", "ConfigMap", "moved", "--migrate"]);
    assert_eq!(stdout, "no backups of the first release found\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_that_is_not_possible_changes_nothing_and_explains_why() {
    let test = TestCluster::start().await;
    let (_, stderr, code) = test.virtpilot(&["rollback", "ConfigMap", "nothing"]);
    assert!(
        code == Some(1) && stderr.contains("ConfigMap nothing has no backup, and neither has any other object; "),
        "{stderr}"
    );
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopted", "namespace": NAMESPACE}, "data": {"a": "1"}});
    let key = test.create(&object).await;
    test.adopt(&key, &json!({"data": {"a": "2"}})).await;
    let (_, stderr, _) = test.virtpilot(&["rollback", "ConfgMap", "adopted"]);
    assert!(stderr.contains("these objects have one: ConfigMap openshift-cnv/adopted"), "{stderr}");
    let (_, stderr, _) = test.virtpilot(&["rollback", "ConfigMap", "adopted", "--to", "other"]);
    assert!(
        stderr.contains("other is not a backup of ConfigMap openshift-cnv/adopted; choose one of virt-platform"),
        "{stderr}"
    );
    let hco = Key {
        kind: Kind::new("hco.kubevirt.io/v1", "HyperConverged"),
        namespace: NAMESPACE.into(),
        name: api::hco::NAME.into(),
    };
    let annotate = async |value: &str| {
        test.edit("person", &hco, json!({"metadata": {"annotations": {api::annotation::DISABLED_RESOURCES: value}}}))
            .await;
    };
    annotate("- {kind: ConfigMap, nmae: x}").await;
    let (_, stderr, code) = test.virtpilot(&["rollback", "ConfigMap", "adopted"]);
    assert!(code == Some(1) && stderr.contains("line 1") && stderr.contains("nothing was changed; "), "{stderr}");
    assert_eq!(test.get(&key).await["data"]["a"], "2");
    // A value in the older form keeps that form.
    annotate("Service/a, Service/b").await;
    let (_, stderr, code) = test.virtpilot(&["rollback", "ConfigMap", "adopted"]);
    assert_eq!(
        (code, test.exclusions().await.as_str()),
        (Some(0), "Service/a, Service/b, ConfigMap/adopted"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_goes_only_to_the_object_it_was_decided_for() {
    let test = TestCluster::start().await;
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": NAMESPACE}, "data": {"a": "1"}});
    let key = test.create(&object).await;
    let served = test.served(&key);
    let act = async |effect| {
        cluster::act::act(&test.server, &Permit::typed_command(), api::FIELD_MANAGER, &served, &key, effect, 0).await
    };
    let delete = |uid: &str, version: &str| Effect::Delete { uid: uid.into(), resource_version: version.into() };
    let live = cluster::live::read(&test.server, &served, &key).await.unwrap().unwrap();
    let (uid, version) = (live.uid.as_str(), live.resource_version.as_str());
    assert!(matches!(act(delete("another", version)).await, Err(WriteError::Stale(_))));
    assert!(matches!(act(delete(uid, "1")).await, Err(WriteError::Stale(_))));
    assert!(act(Effect::Create { object: object.clone() }).await.unwrap().live.is_none(), "the object already exists");
    test.edit("editor", &key, json!({"metadata": {"finalizers": ["example.com/wait"]}})).await;
    assert!(matches!(act(delete(uid, version)).await, Err(WriteError::Stale(_))), "the object was changed");
    assert!(matches!(act(Effect::HandBack { patch: change::handback::patch(&live) }).await, Err(WriteError::Stale(_))));
    let live = cluster::live::read(&test.server, &served, &key).await.unwrap().unwrap();
    let deleting = act(delete(uid, &live.resource_version)).await.unwrap().live.unwrap();
    assert!(deleting.deleting.is_some(), "a finalizer delays the deletion");
    test.edit("editor", &key, json!({"metadata": {"finalizers": null}})).await;
    assert!(act(delete(uid, version)).await.unwrap().live.is_none(), "deleting a missing object succeeds");
    let made = act(Effect::Create { object }).await.unwrap().live.unwrap();
    assert!(act(delete(&made.uid, &made.resource_version)).await.unwrap().live.is_none());
    assert!(cluster::live::read(&test.server, &served, &key).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handback_keeps_every_value_and_the_next_apply_needs_no_force() {
    let test = TestCluster::start().await;
    let ours = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE,
        "labels": {api::MANAGED_BY.0: api::MANAGED_BY.1, "app": "x"}, "annotations": {api::annotation::ORIGIN: "created"}}, "data": {"a": "1", "b": "2"}})
    };
    // Only we own the first object, others write to the second, the third has no annotation.
    for (name, entries) in [("alone", 1), ("shared", 1), ("bare", 1)] {
        let mut object = ours(name);
        if name == "bare" {
            object["metadata"].as_object_mut().unwrap().remove("annotations");
        }
        let key = Key::of(&object).unwrap();
        test.apply(api::FIELD_MANAGER, &key, &object).await;
        if name == "shared" {
            test.edit("person", &key, json!({"metadata": {"annotations": {api::annotation::MODE: "managed"}}})).await;
            // The operator's own write when it pauses the object.
            test.edit(
                api::FIELD_MANAGER,
                &key,
                json!({"metadata": {"annotations": {api::annotation::RECONCILE_PAUSED: "true"}}}),
            )
            .await;
        }
        let served = test.served(&key);
        let live = cluster::live::read(&test.server, &served, &key).await.unwrap().unwrap();
        let patch = change::handback::patch(&live);
        let effect = Effect::HandBack { patch };
        cluster::act::act(&test.server, &Permit::typed_command(), api::FIELD_MANAGER, &served, &key, effect, 0)
            .await
            .unwrap();
        let after = test.get(&key).await;
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
        // An apply of other values needs no force.
        let theirs = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\ndata: {{a: mine, b: mine}}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("theirs.yaml");
        std::fs::write(&file, theirs).unwrap();
        let kubectl = test.playground.folder().join("kubectl");
        let applied =
            std::process::Command::new(kubectl).args(["apply", "--server-side", "-f"]).arg(&file).output().unwrap();
        assert!(applied.status.success(), "{name}: {}", String::from_utf8_lossy(&applied.stderr));
        assert_eq!(test.get(&key).await["data"], json!({"a": "mine", "b": "mine"}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn handback_releases_every_object_and_deletes_nothing() {
    let running = Running::start(Some("true")).await;
    let (services, machines) = (running.services(), running.machine_configs());
    let existing = async |api: &Api<DynamicObject>, name: &str| {
        eventually("the object exists", async || api.get_opt(name).await.unwrap()).await
    };
    let before = (existing(&services, SERVICE).await, existing(&machines, SWAP).await);
    let kubeconfig = running.playground.kubeconfig();
    let dry = virtpilot(Some(&kubeconfig), &["handback", "--dry-run"]);
    assert_eq!((dry.code, dry.stdout.matches("would hand back").count()), (Some(0), 2), "{}{}", dry.stdout, dry.stderr);
    assert!(dry.stdout.contains("would set the annotation platform.kubevirt.io/autopilot"), "{}", dry.stdout);
    let is_managed = |object: &DynamicObject| {
        object.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(api::MANAGED_BY.0))
    };
    assert!(is_managed(&services.get(SERVICE).await.unwrap()), "a dry run changes nothing");

    // The operator keeps running: the command switches the autopilot off first.
    let output = virtpilot(Some(&kubeconfig), &["handback"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.starts_with("set the annotation platform.kubevirt.io/autopilot"), "{}", output.stdout);
    assert!(
        output
            .stdout
            .contains("configmap/virt-platform-autopilot-state configmap/virt-platform-autopilot-status lease/"),
        "{}",
        output.stdout
    );
    quiet(&running).await;
    let after = (services.get(SERVICE).await.unwrap(), machines.get(SWAP).await.unwrap());
    for (before, after) in [(before.0, after.0), (before.1, after.1)] {
        assert!(!is_managed(&after) && before.metadata.uid == after.metadata.uid);
        assert_eq!(before.data["spec"], after.data["spec"]);
        let owners = after.metadata.managed_fields.unwrap_or_default();
        assert!(owners.iter().all(|entry| entry.manager.as_deref() != Some(api::FIELD_MANAGER)), "{owners:?}");
    }
    // With an account that may not list a kind the handback is incomplete.
    let refused = virtpilot(Some(running.kubeconfig()), &["handback", "--assets-dir", PACK]);
    assert_eq!(refused.code, Some(1), "{}{}", refused.stdout, refused.stderr);
    let expected = "incomplete: could not list ConfigMap: configmaps is forbidden";
    assert!(refused.stdout.contains(expected), "{}", refused.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_while_the_operator_runs_is_not_overwritten() {
    let mut running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    let maps = running.config_maps();
    eventually("scene-settings exists", async || maps.get_opt("scene-settings").await.unwrap()).await;
    running.stop();
    maps.delete("scene-settings", &DeleteParams::default()).await.unwrap();
    let server = cluster::connect(
        cluster::KubeconfigContext::current(Some(&running.playground.kubeconfig())),
        Timeouts::default(),
        autopilot::IDENTITY,
    )
    .await
    .unwrap();
    let kinds = discovery::discover(&server).await.unwrap();
    let metadata = json!({"name": "scene-settings", "namespace": NAMESPACE, "labels": {"app": "mine"}});
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"first": "mine", "third": "3"}});
    let key = Key::of(&object).unwrap();
    maps.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let served = kinds.find(&key.kind).unwrap();
    let before = backup::take(&server, &Permit::typed_command(), &served, NAMESPACE, &served, &key).await.unwrap();
    running.restart();
    eventually("scene-settings is adopted", async || {
        (maps.get("scene-settings").await.unwrap().data["data"]["first"] == "one").then_some(())
    })
    .await;
    let output = virtpilot(Some(&running.playground.kubeconfig()), &["rollback", "ConfigMap", "scene-settings"]);
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    quiet(&running).await;
    let after = live::whole(&server, &served, &key).await.unwrap().unwrap();
    assert_eq!(plain(after), plain(before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_of_the_hyperconverged_keeps_its_exclusion() {
    let test = TestCluster::start().await;
    let kind = Kind::new("hco.kubevirt.io/v1", api::hco::KIND);
    let key = Key { kind, namespace: NAMESPACE.into(), name: api::hco::NAME.into() };
    let mut before = test.get(&key).await;
    test.adopt(&key, &json!({})).await;
    let (stdout, stderr, code) = test.virtpilot(&["rollback", api::hco::KIND, api::hco::NAME]);
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    let rules = test.exclusions().await;
    assert!(rules.contains("kind: HyperConverged"), "{rules}");
    before["metadata"]["annotations"][api::annotation::DISABLED_RESOURCES] = json!(rules);
    assert_eq!(plain(test.get(&key).await), plain(before));
}
