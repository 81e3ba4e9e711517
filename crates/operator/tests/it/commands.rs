//! The commands and their output.

use crate::operator::{Running, digest_in, eventually};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn virtpilot(kubeconfig: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(arguments).stdin(Stdio::null()).env_remove("KUBECONFIG");
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Output { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_object_changes_from_held_to_in_sync() {
    let running = Running::start(None).await;
    let kubeconfig = running.playground.kubeconfig();
    let state = |asset: &str| {
        let output = virtpilot(Some(&kubeconfig), &["status", "--output", "json"]);
        let lines: serde_json::Value =
            serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
        lines.as_array().unwrap().iter().find(|line| line["asset"] == asset).unwrap().clone()
    };
    let held = state("swap-enable");
    assert_eq!(held["state"], "held");
    let digest = digest_in(held["why"].as_str().unwrap()).unwrap().to_owned();
    assert_eq!(virtpilot(Some(&kubeconfig), &["approve", &digest]).stdout, format!("approved {digest}\n"));
    assert_eq!(virtpilot(Some(&kubeconfig), &["approve", &digest]).stdout, format!("{digest} is already approved\n"));
    eventually("both objects are in sync", async || {
        (state("swap-enable")["state"] == "in sync" && state("metrics-service")["state"] == "in sync").then_some(())
    })
    .await;
    let rendered = virtpilot(Some(&kubeconfig), &["render"]);
    assert_eq!(
        (rendered.code, rendered.stdout.matches("# Status: INCLUDED").count()),
        (Some(0), 2),
        "{}",
        rendered.stderr
    );
}

#[test]
fn invalid_input_is_reported_in_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let output = virtpilot(None, &["approve", "yes"]);
    assert!(
        output.stderr.contains("\"yes\" is not a digest\n  fix: copy it from \"virtpilot status\""),
        "{}",
        output.stderr
    );
    let missing = virtpilot(Some(Path::new("/missing")), &["status"]);
    assert!(missing.stderr.contains("/missing") && missing.code == Some(1), "{}", missing.stderr);
    let closed = r#"{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}], "current-context": "c"}"#;
    let closed = virtpilot(None, &["status", "--kubeconfig", &write("closed", closed)]);
    assert!(
        closed.stderr.starts_with("error: could not ask the API server at https://127.0.0.1:1/ what it serves"),
        "{}",
        closed.stderr
    );

    let hco = write(
        "hco.yaml",
        "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nmetadata: {name: h, namespace: n}\nspec: {}\n",
    );
    let pack = folder.path().join("pack").display().to_string();
    let catalogue = "assets:\n  - name: a\n    path: active/a.yaml.tpl\n    phase: 1\n    install: always\n    component: ConfigMap\n    reconcile_order: 1\n";
    write("pack/active/metadata.yaml", &format!("{catalogue}    colour: red\n"));
    write(
        "pack/active/a.yaml.tpl",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .HCO.Object.spec.nothing }}\n",
    );
    let render = |pack: &str| virtpilot(None, &["render", "--hco-file", &hco, "--assets-dir", pack]);
    let output = render(&pack);
    assert!(
        output.stderr.contains("active/metadata.yaml:8: ") && output.stderr.contains("colour"),
        "{}",
        output.stderr
    );
    assert_eq!(output.code, Some(1));
    write("pack/active/metadata.yaml", catalogue);
    let output = render(&pack);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(output.stdout.contains("# Status: ERROR\n# Reason: active/a.yaml.tpl:4: "), "{}", output.stdout);
}
