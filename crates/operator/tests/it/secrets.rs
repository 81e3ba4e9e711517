//! What the operator's own token opens: no Secret of anybody, and no way to make one. What it reports shows none either.

use crate::commands::virtpilot;
use crate::operator::{NAMESPACE, Running, annotate, edit, eventually, http, playground};
use k8s_openapi::api::authorization::v1::{ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use playground::service_account::Account;
use playground::{Scene, deployment};
use serde_json::{Value, json};

/// The role of our own pack, and those of the packs of other tests.
const ROLES: [&str; 6] = [
    include_str!("../../../../deploy/rbac/role.yaml"),
    include_str!("../packs/adopted.role.yaml"),
    include_str!("../packs/facts.role.yaml"),
    include_str!("../packs/kinds.role.yaml"),
    include_str!("../packs/life.role.yaml"),
    include_str!("../packs/scene.role.yaml"),
];
/// The pack of the second role.
const ADOPTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/adopted");
/// A Secret of somebody else.
const THEIRS: &str = "theirs";
/// An account with all rights.
const ADMIN: &str = "admin";

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"password": "hidden"}})
}

/// A Secret into which the server puts a token of another account.
fn token_of_another(name: &str) -> Value {
    let annotations = json!({"kubernetes.io/service-account.name": ADMIN});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "annotations": annotations},
        "type": "kubernetes.io/service-account-token"})
}

fn parse<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn is_forbidden<T>(result: Result<T, kube::Error>) -> bool {
    matches!(result, Err(kube::Error::Api(status)) if status.code == 403)
}

/// The names of ConfigMaps that the role may write in the operator's namespace: backups and state.
fn granted_names(role: &str) -> Vec<String> {
    let manifests: Vec<Value> = serde_saphyr::from_multiple(role).unwrap();
    let rules = manifests.iter().filter(|manifest| manifest["kind"] == "Role");
    let rules = rules.flat_map(|manifest| manifest["rules"].as_array().unwrap().clone());
    let names = rules.flat_map(|rule| rule["resourceNames"].as_array().cloned().unwrap_or_default());
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Tries everything that a thief of the token would try in one namespace.
async fn assert_no_secret_opens(account: &Account, namespace: &str, names: &[String]) {
    let secrets: Api<Secret> = Api::namespaced(account.client.clone(), namespace);
    let (post, patch) = (PostParams::default(), PatchParams::apply("thief").force());
    assert!(is_forbidden(secrets.list(&ListParams::default()).await), "list in {namespace}");
    assert!(is_forbidden(secrets.watch(&WatchParams::default(), "0").await.map(|_| ())), "watch in {namespace}");
    assert!(is_forbidden(secrets.delete_collection(&DeleteParams::default(), &ListParams::default()).await));
    for name in names.iter().map(String::as_str).chain([THEIRS, "new"]) {
        let what = format!("{name} in {namespace}");
        assert!(is_forbidden(secrets.get(name).await), "get {what}");
        assert!(is_forbidden(secrets.delete(name, &DeleteParams::default()).await), "delete {what}");
        for wanted in [secret(name), token_of_another(name)] {
            let object: Secret = parse(wanted.clone());
            assert!(is_forbidden(secrets.create(&post, &object).await), "create {what}");
            assert!(is_forbidden(secrets.replace(name, &post, &object).await), "replace {what}");
            assert!(is_forbidden(secrets.patch(name, &patch, &Patch::Apply(&wanted)).await), "apply {what}");
        }
    }
    // The other ways to the token of another account.
    let accounts: Api<ServiceAccount> = Api::namespaced(account.client.clone(), namespace);
    let request = parse(json!({"spec": {"audiences": []}}));
    assert!(is_forbidden(accounts.create_token_request(ADMIN, &post, &request).await), "a token in {namespace}");
    let pods: Api<Pod> = Api::namespaced(account.client.clone(), namespace);
    let pod = parse(
        json!({"metadata": {"name": "thief"}, "spec": {"serviceAccountName": ADMIN, "containers": [{"name": "a", "image": "a"}]}}),
    );
    assert!(is_forbidden(pods.create(&post, &pod).await), "a pod in {namespace}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_token_reads_creates_and_deletes_no_secret() {
    let playground = playground().await;
    for namespace in [NAMESPACE, "default"] {
        let secrets = deployment::objects(&playground, "v1", "Secret", Some(namespace));
        secrets.create(&PostParams::default(), &parse(secret(THEIRS))).await.unwrap();
        playground.account(namespace, ADMIN).await.unwrap_or_else(|error| panic!("{error}"));
    }
    for role in ROLES {
        let account = deployment::grant_for(&playground, role).await.unwrap_or_else(|error| panic!("{error}"));
        let names = granted_names(role);
        for namespace in [NAMESPACE, "default", "kube-system"] {
            assert_no_secret_opens(&account, namespace, &names).await;
            // The same by what the server says that the token may do.
            let spec = SelfSubjectRulesReviewSpec { namespace: Some(namespace.into()) };
            let review = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
            let reviews: Api<SelfSubjectRulesReview> = Api::all(account.client.clone());
            let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
            for rule in status.resource_rules {
                let ResourceRule { resources, verbs, .. } = &rule;
                // A standby replica reads the pod of the leader; whoever creates or changes a pod can mount a Secret.
                let only_reads = verbs.iter().all(|verb| ["get", "watch"].contains(&verb.as_str()));
                let opens = |resource: &String| match resource.as_str() {
                    "pods" => !only_reads || namespace != NAMESPACE,
                    other => ["secrets", "*", "serviceaccounts/token", "pods/exec"].contains(&other),
                };
                assert!(!resources.iter().flatten().any(opens), "{namespace}: {rule:?}");
                assert!(!verbs.iter().any(|verb| ["*", "impersonate", "bind", "escalate"].contains(&verb.as_str())));
            }
        }
        // In its namespace it makes no ConfigMap but its own, and deletes none of them.
        let maps: Api<ConfigMap> = Api::namespaced(account.client.clone(), NAMESPACE);
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let patch = PatchParams::apply("thief");
        assert!(is_forbidden(maps.create(&PostParams::default(), &parse(map("new"))).await));
        assert!(is_forbidden(maps.patch("new", &patch, &Patch::Apply(&map("new"))).await));
        assert!(is_forbidden(maps.delete(api::STATE, &DeleteParams::default()).await));
        let backup = names.iter().find(|name| name.contains("-backup-")).unwrap();
        maps.patch(backup, &patch, &Patch::Apply(&map(backup))).await.unwrap();
        assert!(is_forbidden(maps.delete(backup, &DeleteParams::default()).await));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_show_no_value_of_a_variable() {
    const MARKER: &str = "hunter2";
    let mut running = Running::on(Scene::preset("small").unwrap(), ROLES[1], &["--assets-dir", ADOPTED]).await;
    let workloads = deployment::objects(&running.playground, "apps/v1", "DaemonSet", Some(NAMESPACE));
    let containers = json!([{"name": "main", "image": "one"},
        {"name": "side", "image": "two", "env": [{"name": "PLAIN", "value": MARKER}], "args": ["--password", MARKER]}]);
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"no/where": "true"}, "containers": containers}});
    let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "adopted"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}});
    workloads.create(&PostParams::default(), &parse(object)).await.unwrap();
    running.annotate_hco("autopilot", Some("true")).await;
    running.restart();
    let about = async |reason: &str| {
        eventually(reason, async || {
            running.events(reason).await.into_iter().find(|note| note.starts_with("DaemonSet openshift-cnv/adopted"))
        })
        .await
    };
    let adopted = about("Adopted").await;
    assert!(adopted.contains("spec.containers") && !adopted.contains(MARKER), "{adopted}");
    // The server refuses a variable without a valid name and quotes it.
    let patch = json!([{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "A=hunter2", "value": MARKER}]}]);
    annotate(&workloads, "adopted", "patch", Some(&patch.to_string())).await;
    let refused = about("InvalidPatch").await;
    assert!(refused.contains("env[0].name: Invalid value: ") && !refused.contains(MARKER), "{refused}");
    workloads.delete("adopted", &DeleteParams::default()).await.unwrap();
    let recreated = about("DriftCorrected").await;
    assert!(recreated.contains("containers/0/env") && !recreated.contains(MARKER), "{recreated}");
}

/// Fifty values that nobody may show.
struct Canaries(Vec<String>);

impl Canaries {
    fn new() -> Canaries {
        Canaries((0..50_u32).map(|number| format!("hush{:08x}", number.wrapping_mul(2_654_435_761))).collect())
    }

    fn next(&self, places: &mut std::ops::Range<usize>) -> &str {
        &self.0[places.next().unwrap()]
    }

    /// Those in a text, with the lines that show them.
    fn hits(&self, surface: &str, text: &str) -> Vec<String> {
        let of =
            |canary: &String| text.lines().find(|line| line.contains(canary)).map(|line| format!("{surface}: {line}"));
        self.0.iter().filter_map(of).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_canaries_are_shown_nowhere() {
    let (canaries, mut places) = (Canaries::new(), 0..50);
    let mut next = || canaries.next(&mut places).to_owned();
    let mut running = Running::on(Scene::preset("small").unwrap(), ROLES[1], &["--assets-dir", ADOPTED]).await;
    // Eighteen in Secrets, which it cannot read.
    let secrets = deployment::objects(&running.playground, "v1", "Secret", Some(NAMESPACE));
    for number in 0..18 {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("canary-{number}")}, "stringData": {"password": next()}});
        secrets.create(&PostParams::default(), &parse(object)).await.unwrap();
    }
    // Sixteen in objects that it adopts: variables, arguments, annotations and data.
    let workloads = deployment::objects(&running.playground, "apps/v1", "DaemonSet", Some(NAMESPACE));
    let variables: Vec<Value> = (0..6).map(|number| json!({"name": format!("V{number}"), "value": next()})).collect();
    let containers = json!([{"name": "main", "image": "one", "env": variables, "args": ["--password", next(), format!("--token={}", next())]}]);
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"no/where": "true"}, "containers": containers}});
    let annotations = json!({"example.com/password": next(), "example.com/api-token": next()});
    let object = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "adopted", "annotations": annotations},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}});
    workloads.create(&PostParams::default(), &parse(object)).await.unwrap();
    let data = json!({"a": format!("password={}", next()), "c": format!("https://me:{}@example.com", next()),
        "db-password": next(), "token": next(), "config.yaml": format!("remoteWrite:\n- basicAuth:\n    password: {}\n", next())});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "adopted", "annotations": {"example.com/secret": next()}}, "data": data});
    running.config_maps().create(&PostParams::default(), &parse(object)).await.unwrap();
    // Eight in annotations of the HyperConverged.
    for name in [
        "db-password",
        "my-token",
        "api-key",
        "enable-password",
        "credentials",
        "secret",
        "private-key",
        "approved-token",
    ] {
        running.annotate_hco(name, Some(&next())).await;
    }
    running.annotate_hco("autopilot", Some("true")).await;
    let kubeconfig = running.kubeconfig().to_owned();
    let served = running.restart_served(&kubeconfig, &[]);
    eventually("both are adopted", async || (running.events("Adopted").await.len() >= 2).then_some(())).await;
    // The rest in overrides: what the server refuses, what is refused before, and what is applied.
    let variable = |name: String, value: String| json!([{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": name, "value": value}]}]);
    annotate(&workloads, "adopted", "patch", Some(&variable(format!("A={}", next()), next()).to_string())).await;
    eventually("it is refused", async || running.events("InvalidPatch").await.pop()).await;
    annotate(&workloads, "adopted", "patch", Some(&variable("PLAIN".into(), next()).to_string())).await;
    eventually("it is applied", async || {
        let object = workloads.get("adopted").await.unwrap();
        let env = &object.data["spec"]["template"]["spec"]["containers"][0]["env"];
        env.as_array()?.iter().any(|variable| variable["name"] == "PLAIN").then_some(())
    })
    .await;
    let maps = running.config_maps();
    for path in ["/data/password", "/data/token", "/metadata/annotations/example.com~1password", "/kind"] {
        let patch = json!([{"op": "add", "path": path, "value": next()}]);
        // The next one replaces it, so it has to be seen before.
        let version = annotate(&maps, "adopted", "patch", Some(&patch.to_string())).await;
        eventually("it is answered", async || {
            let log = std::fs::read_to_string(&served.log).unwrap();
            let is_newer = maps.get("adopted").await.unwrap().metadata.resource_version != version;
            (is_newer || log.matches("InvalidPatch").count() > 1).then_some(())
        })
        .await;
    }
    annotate(&maps, "adopted", "patch", None).await;
    annotate(&maps, "adopted", "ignore-fields", Some(&format!("password={}", next()))).await;
    eventually("they are refused", async || running.events("InvalidIgnoreFields").await.pop()).await;
    assert!(places.is_empty(), "all are placed");
    workloads.delete("adopted", &DeleteParams::default()).await.unwrap();
    eventually("it is recreated", async || {
        running.events("DriftCorrected").await.into_iter().find(|note| note.contains("deleted"))
    })
    .await;
    // Drift, of values that may be shown and of those that may not: the content of a MachineConfig is read before it is corrected.
    running.annotate_hco("approval", Some("none")).await;
    let machine_configs = running.machine_configs();
    eventually("the MachineConfig exists", async || machine_configs.get_opt("adopted").await.unwrap()).await;
    edit(&maps, "adopted", json!({"data": {"a": canaries.0[1], "c": format!("password={}", canaries.0[2])}})).await;
    edit(
        &machine_configs,
        "adopted",
        json!({"spec": {"kernelArguments": ["quiet", format!("rd.password={}", canaries.0[3])]}}),
    )
    .await;
    for (object, value) in [("ConfigMap", r#".data.a is "ours" again"#), ("MachineConfig", "")] {
        eventually("the drift is corrected", async || {
            let notes = running.events("DriftCorrected").await;
            notes.into_iter().find(|note| note.starts_with(object) && note.contains(value))
        })
        .await;
    }
    let mut hits = canaries.hits("log", &std::fs::read_to_string(&served.log).unwrap());
    let events: Api<Event> = Api::all(running.playground.client());
    let events = serde_json::to_string_pretty(&events.list(&ListParams::default()).await.unwrap().items).unwrap();
    assert!(events.contains("InvalidPatch") && events.contains("Adopted"), "nothing to look at");
    hits.extend(canaries.hits("events", &events));
    hits.extend(canaries.hits("metrics", &http(served.metrics, "GET", "/metrics").unwrap()));
    hits.extend(canaries.hits("readyz", &http(served.probes, "GET", "/readyz").unwrap()));
    for page in
        ["render?show-excluded=true", "render?format=json", "exclusions", "features", "tombstones", "render/daemonset"]
    {
        let text = http(served.debug, "GET", &format!("/debug/{page}")).unwrap();
        assert!(text.starts_with("HTTP/1.0 200"), "{page}: {text}");
        hits.extend(canaries.hits(page, &text));
    }
    let explain = ["explain", "ConfigMap/adopted"];
    for command in [&["status"][..], &["plan"], &explain, &["explain", "MachineConfig/adopted"]] {
        let output = virtpilot(Some(&running.playground.kubeconfig()), &[command, &["--assets-dir", ADOPTED]].concat());
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(command != explain || text.contains(r#".data.a is "ours" again"#), "{text}");
        hits.extend(canaries.hits(&command.join(" "), &text));
    }
    assert!(hits.is_empty(), "{}", hits.join("\n"));
}
