//! `virtpilot plan`: what it shows, that it writes nothing, and what can be approved from a saved plan.

use crate::commands::{Output, virtpilot};
use crate::fixture::create;
use crate::operator::{NAMESPACE, Running, SERVICE, SWAP, edit, eventually, quiet};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use playground::audit::Kind;
use playground::certificates::ADMIN_USER;
use playground::deployment;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The plan as JSON, and the exit code.
pub(crate) fn plan(kubeconfig: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = virtpilot(Some(kubeconfig), &[&["plan", "--output", "json"], arguments].concat());
    let plan = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    (plan, output.code)
}

/// Operation, state and origin of the difference of one object in a plan.
fn item<'a>(plan: &'a Value, name: &str) -> &'a Value {
    let items = plan["items"].as_array().unwrap();
    items.iter().find(|item| item["object"]["name"] == name).unwrap_or_else(|| panic!("{name} is not in {plan:#}"))
}

/// The paths that change.
fn paths(item: &Value) -> Vec<&str> {
    item["diff"].as_array().unwrap().iter().map(|difference| difference["path"].as_str().unwrap()).collect()
}

async fn create_role(running: &Running, name: &str, rules: Value) {
    let group = "rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": group, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE});
    let binding = json!({"apiVersion": group, "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference, "subjects": [subject]});
    for (kind, object) in [("ClusterRole", role), ("ClusterRoleBinding", binding)] {
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let api = deployment::objects(&running.playground, group, kind, None);
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_shows_what_the_server_would_make_and_writes_nothing() {
    let mut running = Running::without_operator().await;
    let admin = running.playground.kubeconfig();
    let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": {"selector": {"app": "handmade"}, "ports": [{"name": "theirs", "port": 9}]}});
    let theirs: DynamicObject = serde_json::from_value(theirs).unwrap();
    running.services().create(&PostParams::default(), &theirs).await.unwrap();

    // Before the installation, with all rights: the server's own answers.
    let mark = running.audit().mark().unwrap();
    let (shown, code) = plan(&admin, &[]);
    let requests = running.audit().since(mark).unwrap().by(ADMIN_USER);
    assert_eq!((requests.of(Kind::Write).count(), requests.of(Kind::DryRun).count()), (0, 2));
    assert_eq!(code, Some(2));
    let (swap, service) = (item(&shown, SWAP), item(&shown, SERVICE));
    assert_eq!(
        (&swap["operation"], &swap["state"], &swap["source"]["from"]),
        (&json!("create"), &json!("waiting"), &json!("server"))
    );
    // The oldest comes first, and they were created at the same time, so that a second may begin in between.
    let nodes: Api<Node> = Api::all(running.playground.client());
    let workers = nodes.list(&ListParams::default().labels("node-role.kubernetes.io/worker")).await.unwrap();
    let created = |node: Node| (node.metadata.creation_timestamp.unwrap().0, node.metadata.name.unwrap());
    let created: BTreeSet<_> = workers.into_iter().map(created).collect();
    let oldest_first: Vec<String> = created.into_iter().map(|(_, name)| name).collect();
    assert_eq!((oldest_first.len(), &swap["restarts"]["nodes"]), (3, &json!(oldest_first)));
    assert!(paths(swap).contains(&"file /etc/openshift/kubelet.conf.d/90-swap.conf"), "{swap:#}");
    assert_eq!((&service["operation"], &service["state"]), (&json!("adopt"), &json!("ready")));
    let selector =
        service["diff"].as_array().unwrap().iter().find(|difference| difference["path"] == ".spec.selector.app");
    assert_eq!(selector.unwrap()["before"], json!({"value": "handmade"}));
    assert!(!paths(service).iter().any(|path| path.contains("clusterIP")), "{service:#}");

    // A person who may only look gets the same with local differences, and the plan says so once.
    create_role(
        &running,
        "viewer",
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]),
    )
    .await;
    let viewer = running.playground.account(NAMESPACE, "viewer").await.unwrap_or_else(|error| panic!("{error}"));
    let mark = running.audit().mark().unwrap();
    let (local, code) = eventually("the viewer may look", async || {
        let output = virtpilot(Some(&viewer.kubeconfig), &["plan", "--output", "json"]);
        Some((serde_json::from_str::<Value>(&output.stdout).ok()?, output.code))
    })
    .await;
    let requests = running.audit().since(mark).unwrap().by("openshift-cnv/viewer");
    assert_eq!((requests.of(Kind::Write).count(), code), (0, Some(2)));
    for name in [SWAP, SERVICE] {
        let (here, there) = (item(&local, name), item(&shown, name));
        assert_eq!(here["source"]["from"], "local", "{here:#}");
        assert_eq!((&here["operation"], &here["digest"]), (&there["operation"], &there["digest"]));
    }
    assert!(paths(item(&local, SERVICE)).contains(&".spec.selector.app"));
    let text = virtpilot(Some(&viewer.kubeconfig), &["plan"]);
    assert_eq!(
        text.stdout.matches("Local diff instead of the API server's: you may not patch").count(),
        1,
        "{}",
        text.stdout
    );
    assert!(!text.stdout.contains('\u{1b}'), "colour only on a terminal");

    // One asset only; a wrong name is an error.
    let (one, code) = plan(&admin, &["--asset", "metrics-service"]);
    assert_eq!((one["items"].as_array().unwrap().len(), code), (1, Some(2)));
    let wrong = virtpilot(Some(&admin), &["plan", "--asset", "none"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("choose one of swap-enable"), "{}", wrong.stderr);

    // Everything is applied: nothing to do.
    running.annotate_hco("approval", Some("none")).await;
    running.restart();
    eventually("the MachineConfig exists", async || running.machine_configs().get_opt(SWAP).await.unwrap()).await;
    quiet(&running).await;
    running.stop();
    let output = virtpilot(Some(&admin), &["plan"]);
    assert_eq!((output.stdout.as_str(), output.code), ("Plan: nothing to do; 2 objects are in sync.\n", Some(0)));

    // What the server refuses makes the plan incomplete.
    let patch = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "Sometimes"}]"#;
    crate::operator::annotate(&running.services(), SERVICE, "patch", Some(patch)).await;
    let (held, code) = plan(&admin, &[]);
    assert_eq!((item(&held, SERVICE)["state"].as_str(), code), (Some("held"), Some(0)), "the last good state is kept");
    crate::operator::annotate(&running.services(), SERVICE, "patch", None).await;
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "x"}}})).await;
    let (drift, code) = plan(&admin, &[]);
    assert_eq!((item(&drift, SERVICE)["operation"].as_str(), code), (Some("change"), Some(2)));
    assert_eq!(paths(item(&drift, SERVICE)), [".spec.selector.app"]);
}

/// Saves a plan, and runs `approve --plan` with it.
fn approve(kubeconfig: &Path, file: &str) -> Output {
    virtpilot(Some(kubeconfig), &["approve", "--plan", file])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_plan_is_approved_as_it_is_or_refused_with_what_moved() {
    let mut running = Running::start(None).await;
    let admin = running.playground.kubeconfig();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    eventually("the operator asks", async || {
        let (shown, _) = plan(&admin, &[]);
        item(&shown, SWAP)["approval"].as_str().map(str::to_owned)
    })
    .await;
    quiet(&running).await;
    let save = |name: &str| plan(&admin, &["--out", &path(name)]);

    // What is no plan, is of another cluster or pack, or has nothing to approve.
    std::fs::write(path("text"), "a: 1").unwrap();
    std::fs::write(path("json"), "{\"kind\": \"List\"}").unwrap();
    for wrong in ["text", "json"] {
        let output = approve(&admin, &path(wrong));
        assert!(output.code == Some(1) && output.stderr.contains("is not a plan"), "{}", output.stderr);
    }
    assert!(approve(&admin, &path("missing")).stderr.contains("could not read"));
    let (saved, code) = save("plan");
    assert_eq!(code, Some(2));
    assert_eq!(serde_json::from_str::<Value>(&std::fs::read_to_string(path("plan")).unwrap()).unwrap(), saved);
    let rewritten = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut plan = saved.clone();
        change(&mut plan);
        std::fs::write(path(name), plan.to_string()).unwrap();
        approve(&admin, &path(name))
    };
    for (name, change, expected) in [
        (
            "cluster",
            (&|plan: &mut Value| plan["cluster"] = json!("other")) as &dyn Fn(&mut Value),
            "is a plan for another cluster",
        ),
        ("offline", &|plan: &mut Value| plan["cluster"] = Value::Null, "was made without a cluster"),
        ("pack", &|plan: &mut Value| plan["catalogue"] = json!("sha256:0"), "was made with the asset pack sha256:0"),
        ("format", &|plan: &mut Value| plan["format"] = json!(2), "is a plan of format 2"),
        ("nothing", &|plan: &mut Value| plan["items"] = json!([]), "waits for an approval"),
    ] {
        let output = rewritten(name, change);
        assert!(output.code == Some(1) && output.stderr.contains(expected), "{name}: {}", output.stderr);
    }
    // A digest of somebody else's making is not what would be done.
    let forged = rewritten("forged", &|plan| {
        let items = plan["items"].as_array_mut().unwrap();
        for item in items {
            (item["approval"], item["digest"]) =
                (json!(format!("sha256:{}", "0".repeat(64))), json!(format!("sha256:{}", "0".repeat(64))));
        }
    });
    assert!(forged.code == Some(1) && forged.stderr.contains("the cluster has moved"), "{}", forged.stderr);
    let smuggled = rewritten("smuggled", &|plan| {
        plan["items"][0]["approval"] = json!(format!("sha256:{}", "0".repeat(64)));
    });
    assert!(smuggled.code == Some(1) && smuggled.stderr.contains("the cluster has moved"), "{}", smuggled.stderr);

    // The cluster moves: somebody creates the MachineConfig with other content, and another object drifts.
    running.stop();
    let theirs = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": SWAP}, "spec": {"kernelArguments": ["theirs"]}});
    let theirs: DynamicObject = serde_json::from_value(theirs).unwrap();
    running.machine_configs().create(&PostParams::default(), &theirs).await.unwrap();
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "x"}}})).await;
    let output = approve(&admin, &path("plan"));
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert!(
        output.stderr.contains(&format!("moved: MachineConfig {SWAP}: planned: create, and now: adopt")),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains(&format!(
            "moved: Service {NAMESPACE}/{SERVICE}: not planned, and now: change ~ .spec.selector.app: \"x\" -> "
        )),
        "{}",
        output.stderr
    );
    let hco = deployment::objects(&running.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    let approved = || async {
        hco.get(api::hco::NAME)
            .await
            .unwrap()
            .metadata
            .annotations
            .unwrap_or_default()
            .get(api::annotation::APPROVED)
            .cloned()
    };
    assert_eq!(approved().await, None, "nothing is approved");

    // As it was again: exactly the saved digest is approved, and the operator creates the object.
    running.machine_configs().delete(SWAP, &DeleteParams::default()).await.unwrap();
    running.restart();
    quiet(&running).await;
    let output = approve(&admin, &path("plan"));
    let digest = item(&saved, SWAP)["approval"].as_str().unwrap();
    let short = &digest["sha256:".len()..][..8];
    let expected = format!(
        "approved {short} (MachineConfig {SWAP}) by playground-admin; no operator leads in namespace openshift-cnv; the change is made when one runs\n"
    );
    assert_eq!((output.stdout, output.code), (expected, Some(0)), "{}", output.stderr);
    assert_eq!(approved().await.as_deref(), Some(digest));
    eventually("the MachineConfig exists", async || running.machine_configs().get_opt(SWAP).await.unwrap()).await;
    quiet(&running).await;
    // It is used: the plan does not fit any more.
    let again = approve(&admin, &path("plan"));
    assert!(
        again.code == Some(1) && again.stderr.contains("nothing waits for an approval any more"),
        "{}",
        again.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_digest_that_was_approved_lets_no_other_content_through() {
    let mut running = Running::start(None).await;
    let admin = running.playground.kubeconfig();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan").display().to_string();
    eventually("the operator asks", async || {
        let (shown, _) = plan(&admin, &["--out", &file]);
        item(&shown, SWAP)["approval"].as_str().map(str::to_owned)
    })
    .await;
    // The operator does not run, so that the approval waits; then the content changes.
    quiet(&running).await;
    running.stop();
    assert_eq!(approve(&admin, &file).code, Some(0));
    let theirs = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": SWAP}, "spec": {"kernelArguments": ["theirs"]}});
    let theirs: DynamicObject = serde_json::from_value(theirs).unwrap();
    running.machine_configs().create(&PostParams::default(), &theirs).await.unwrap();
    let (shown, _) = plan(&admin, &[]);
    assert_eq!(item(&shown, SWAP)["state"], "waiting", "another content needs another approval");
    running.restart();
    quiet(&running).await;
    let spec = running.machine_configs().get(SWAP).await.unwrap().data["spec"].clone();
    assert_eq!(spec["kernelArguments"], json!(["theirs"]), "it is left as it is");
}

#[test]
fn a_plan_without_a_cluster_creates_everything() {
    let folder = tempfile::tempdir().unwrap();
    let facts = folder.path().join("facts.yaml");
    let text = "hco: {apiVersion: hco.kubevirt.io/v1, kind: HyperConverged, metadata: {name: kubevirt-hyperconverged}}\npools: [{name: worker, machineCount: 3, maxUnavailable: \"2\"}]\n";
    std::fs::write(&facts, text).unwrap();
    let output = virtpilot(None, &["plan", "--facts", &facts.display().to_string()]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    assert!(output.stdout.contains("restarts 3 nodes of pool worker, 2 at a time"), "{}", output.stdout);
    assert!(output.stdout.contains("Offline: every object counts as absent"), "{}", output.stdout);
    assert!(output.stdout.ends_with("Plan: 2 to create; 1 needs approval.\n"), "{}", output.stdout);
    let markdown = virtpilot(None, &["plan", "--facts", &facts.display().to_string(), "--output", "markdown"]);
    assert!(markdown.stdout.starts_with("### Virtpilot plan: 2 to create; 1 needs approval\n"), "{}", markdown.stdout);
    let off = folder.path().join("off.yaml");
    std::fs::write(
        &off,
        text.replace(
            "kubevirt-hyperconverged}",
            "kubevirt-hyperconverged, annotations: {platform.kubevirt.io/autopilot: \"false\"}}",
        ),
    )
    .unwrap();
    let off = virtpilot(None, &["plan", "--facts", &off.display().to_string()]);
    assert_eq!((off.code, off.stdout.lines().last()), (Some(0), Some("Plan: nothing to do.")), "{}", off.stderr);
}

/// Creates the ConfigMap of somebody else, if there is none.
pub(crate) async fn create_foreign(running: &Running, name: &str, data: Value) {
    if running.config_maps().get_opt(name).await.unwrap().is_none() {
        create(&running.config_maps(), name, json!({"data": data})).await;
    }
}
