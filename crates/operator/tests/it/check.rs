//! `check` on a real API server, and `lint` without one.

use crate::commands::virtpilot;
use crate::operator::{Process, Running, SMALL, eventually};
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use playground::deployment::objects;
use serde_json::{Value, json};
use std::path::Path;

const MACHINE_CONFIGURATION: &str = "machineconfiguration.openshift.io/v1";

/// The exit code, and the rows of one check.
fn check(kubeconfig: &Path, name: &str) -> (Option<i32>, Vec<Value>) {
    let output = virtpilot(Some(kubeconfig), &["check", "--assets-dir", SMALL, "--output", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    (output.code, rows.into_iter().filter(|row| row["check"] == name).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_pools_clashes_and_the_operator_are_checked() {
    let running = Running::without_operator().await;
    let kubeconfig = running.playground.kubeconfig();
    let (code, rights) = check(&kubeconfig, "rights");
    assert_eq!((code, &rights[0]["verdict"]), (Some(0), &json!("ok")), "{rights:?}");
    assert_eq!(check(&kubeconfig, "api server").1[0]["verdict"], "ok");
    assert_eq!(check(&kubeconfig, "clock").1[0]["verdict"], "ok");
    assert_eq!(check(&kubeconfig, "operator").1[0]["found"], "no operator leads");

    // An annotation that cannot be read suspends everything.
    running.annotate_hco("autopilot", Some("ture")).await;
    let (code, found) = check(&kubeconfig, "hyperconverged");
    assert_eq!((code, &found[0]["found"]), (Some(1), &json!("everything is suspended")), "{found:?}");
    assert!(found[0]["remedy"].as_str().unwrap().contains("ture"), "{found:?}");
    running.annotate_hco("autopilot", None).await;

    // The operator's own account asks about itself; it may not read the account, and that is no reason to warn.
    let own = check(running.kubeconfig(), "rights").1;
    assert_eq!((&own[0]["verdict"], &own[0]["found"]), (&json!("ok"), &rights[0]["found"]), "{own:?}");

    let _operator = Process::start_as("pod-0", running.kubeconfig());
    eventually("the operator leads", async || {
        (check(&kubeconfig, "operator").1[0]["found"] == "pod-0 leads").then_some(())
    })
    .await;

    // A KubeletConfig of somebody else, and a paused pool.
    let api = objects(&running.playground, MACHINE_CONFIGURATION, "KubeletConfig", None);
    let selector = json!({"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}});
    let config = DynamicObject {
        types: Some(kube::api::TypeMeta { api_version: MACHINE_CONFIGURATION.into(), kind: "KubeletConfig".into() }),
        metadata: ObjectMeta { name: Some("custom".into()), ..ObjectMeta::default() },
        data: json!({"spec": {"machineConfigPoolSelector": selector, "kubeletConfig": {"maxPods": 300}}}),
    };
    api.create(&PostParams::default(), &config).await.unwrap();
    let clashes = check(&kubeconfig, "clashes").1;
    assert_eq!(
        (&clashes[0]["verdict"], &clashes[0]["found"]),
        (&json!("warn"), &json!("KubeletConfig custom selects pool worker"))
    );
    let pools = objects(&running.playground, MACHINE_CONFIGURATION, "MachineConfigPool", None);
    let paused = Patch::Merge(json!({"spec": {"paused": true}}));
    pools.patch("worker", &PatchParams::default(), &paused).await.unwrap();
    let found = check(&kubeconfig, "pools").1;
    assert_eq!((&found[0]["verdict"], &found[0]["found"]), (&json!("warn"), &json!("pool worker is paused")));

    // Without its role the operator has no rights, and the check says how to grant them.
    let bindings = objects(&running.playground, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", None);
    bindings.delete(api::FIELD_MANAGER, &DeleteParams::default()).await.unwrap();
    let (code, rights) = eventually("the rights are gone", async || {
        let (code, rights) = check(&kubeconfig, "rights");
        (rights[0]["verdict"] == "fail").then_some((code, rights))
    })
    .await;
    assert_eq!(code, Some(1));
    assert!(rights[0]["remedy"].as_str().unwrap().contains("virtpilot rbac | kubectl apply"), "{rights:?}");

    let elsewhere = virtpilot(Some(&kubeconfig), &["check", "--namespace", "default", "--assets-dir", SMALL]);
    assert_eq!(elsewhere.code, Some(1));
    assert!(elsewhere.stdout.contains("kubevirt-hyperconverged does not exist"), "{}", elsewhere.stdout);
}

#[test]
fn a_server_that_does_not_answer_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("closed");
    let closed = r#"{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}], "current-context": "c"}"#;
    std::fs::write(&path, closed).unwrap();
    let (code, rows) = check(&path, "api server");
    assert_eq!((code, &rows[0]["verdict"]), (Some(1), &json!("fail")), "{rows:?}");
}

#[test]
fn files_and_packs_are_linted_without_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let hco = |annotation: &str| {
        format!(
            "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nmetadata:\n  name: h\n  annotations:\n    platform.kubevirt.io/{annotation}\n"
        )
    };
    let right = write("right.yaml", &hco("enable-mtv: \"True\""));
    let output = virtpilot(None, &["lint", &right]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{}", output.stderr);
    let wrong = write("wrong.yaml", &hco("enable-mtvv: \"true\""));
    let output = virtpilot(None, &["lint", &right, &wrong]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.stdout.starts_with(&format!(
            "{wrong}:6: the annotation platform.kubevirt.io/enable-mtvv is not known (did you mean enable-mtv"
        )),
        "{}",
        output.stdout
    );
    let setting = write("setting.yaml", &hco("psi-enabled: ture"));
    let output = virtpilot(None, &["lint", &setting, "--output", "json"]);
    let lines: Value = serde_json::from_str(&output.stdout).unwrap();
    assert!(lines[0]["line"] == 6 && output.stdout.contains("did you mean true?"), "a declared setting: {lines}");
    assert_eq!(virtpilot(None, &["lint", SMALL]).code, Some(0));
    write("pack/active/metadata.yaml", "assets:\n- {name: a, path: active/a.yaml, instal: always}\n");
    let pack = folder.path().join("pack").display().to_string();
    let output = virtpilot(None, &["lint", &pack]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("/active/metadata.yaml:2: "), "{}", output.stdout);
    let missing = virtpilot(None, &["lint", "/missing.yaml"]);
    assert!(missing.code == Some(1) && missing.stderr.lines().count() == 1, "{}", missing.stderr);
}
