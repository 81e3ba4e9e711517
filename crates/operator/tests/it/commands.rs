//! What a person types, and what they read.

use crate::operator::{Running, digest_in, eventually};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn virtpilot(kubeconfig: Option<&Path>, arguments: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(arguments).stdin(Stdio::null()).env_remove("KUBECONFIG");
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { out: text(&output.stdout), err: text(&output.stderr), code: output.status.code() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_sees_what_is_held_says_yes_and_sees_it_kept() {
    let running = Running::start(None).await;
    let kubeconfig = running.playground.kubeconfig();
    let state = |asset: &str| {
        let said = virtpilot(Some(&kubeconfig), &["status", "--output", "json"]);
        let lines: serde_json::Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}", said.err));
        lines.as_array().unwrap().iter().find(|line| line["asset"] == asset).unwrap().clone()
    };
    let held = state("swap-enable");
    assert_eq!(held["state"], "held");
    let digest = digest_in(held["why"].as_str().unwrap()).unwrap().to_owned();
    assert_eq!(virtpilot(Some(&kubeconfig), &["approve", &digest]).out, format!("approved {digest}\n"));
    assert_eq!(virtpilot(Some(&kubeconfig), &["approve", &digest]).out, format!("{digest} was approved before\n"));
    eventually("both are kept", async || {
        (state("swap-enable")["state"] == "in sync" && state("metrics-service")["state"] == "in sync").then_some(())
    })
    .await;
    let rendered = virtpilot(Some(&kubeconfig), &["render"]);
    assert_eq!((rendered.code, rendered.out.matches("# Status: INCLUDED").count()), (Some(0), 2), "{}", rendered.err);
}

#[test]
fn wrong_input_is_told_in_one_message() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let said = virtpilot(None, &["approve", "yes"]);
    assert!(said.err.contains("\"yes\" is no digest\n  fix: copy it from `virtpilot status`"), "{}", said.err);
    let nowhere = virtpilot(Some(Path::new("/nowhere")), &["status"]);
    assert!(nowhere.err.contains("/nowhere") && nowhere.code == Some(1), "{}", nowhere.err);
    let closed = r#"{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}], "current-context": "c"}"#;
    let closed = virtpilot(None, &["status", "--kubeconfig", &write("closed", closed)]);
    assert!(
        closed.err.starts_with("error: could not ask the API server at https://127.0.0.1:1/ what it serves"),
        "{}",
        closed.err
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
    let said = render(&pack);
    assert!(said.err.contains("active/metadata.yaml:8: ") && said.err.contains("colour"), "{}", said.err);
    assert_eq!(said.code, Some(1));
    write("pack/active/metadata.yaml", catalogue);
    let said = render(&pack);
    assert_eq!(said.code, Some(3), "{}", said.err);
    assert!(said.out.contains("# Status: ERROR\n# Reason: active/a.yaml.tpl:4: "), "{}", said.out);
}
