//! The commands and their output.

use crate::operator::{IMAGE, NAMESPACE, Process, Running, digest_in, eventually, quiet, with_pack};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, DeleteParams};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) struct Output {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

pub(crate) fn virtpilot(kubeconfig: Option<&Path>, arguments: &[&str]) -> Output {
    let takes_pack = ["status", "plan", "approve", "render", "facts", "handback", "rbac"];
    match arguments.first() {
        Some(name) if takes_pack.contains(name) => virtpilot_as_given(kubeconfig, &with_pack(arguments)),
        _ => virtpilot_as_given(kubeconfig, arguments),
    }
}

/// The same without the pack of the tests: with a pack, `status` evaluates the cluster itself.
pub(crate) fn virtpilot_as_given(kubeconfig: Option<&Path>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(arguments).stdin(Stdio::null()).env_remove("KUBECONFIG").env("HOME", "/missing").env(IMAGE.0, IMAGE.1);
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
        lines["assets"].as_array().unwrap().iter().find(|line| line["asset"] == asset).unwrap().clone()
    };
    let digest = eventually("the operator asks", async || {
        let held = state("swap-enable");
        assert_eq!(held["state"], "PendingApproval");
        digest_in(held["why"].as_str().unwrap()).map(str::to_owned)
    })
    .await;
    let nobody = virtpilot(Some(&kubeconfig), &["approve", &format!("sha256:{}", "0".repeat(64))]);
    assert_eq!(nobody.code, Some(1));
    let short = &digest["sha256:".len()..][..8];
    assert!(nobody.stderr.contains("nobody asks to approve") && nobody.stderr.contains(short), "{}", nobody.stderr);
    let approved = virtpilot(Some(&kubeconfig), &["approve", &digest, "--yes"]);
    assert!(approved.stdout.contains(&format!("approved {short} (MachineConfig ")), "{}", approved.stderr);
    let again = virtpilot(Some(&kubeconfig), &["approve", &digest]);
    assert!(again.stdout.starts_with(short) && again.stdout.contains(" is already approved"), "{}", again.stderr);
    eventually("both objects are in sync", async || {
        (state("swap-enable")["state"] == "InSync" && state("metrics-service")["state"] == "InSync").then_some(())
    })
    .await;
    // The approval is used: it is still listed, and does not approve the same write again.
    running.machine_configs().delete(crate::operator::SWAP, &DeleteParams::default()).await.unwrap();
    let why = eventually("another approval is asked for", async || {
        let held = state("swap-enable");
        (held["state"] == "PendingApproval").then(|| held["why"].as_str().unwrap().to_owned())
    })
    .await;
    assert_ne!(digest_in(&why).unwrap(), digest);
    let used = virtpilot(Some(&kubeconfig), &["approve", &digest]);
    assert_eq!(used.stdout, format!("{short} is already approved; nothing waits for it now\n"));
    quiet(&running).await;
    assert!(running.machine_configs().get_opt(crate::operator::SWAP).await.unwrap().is_none());
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
    let missing = virtpilot(Some(Path::new("/missing")), &["--namespace", "x", "status"]);
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

/// A folder with one file.
fn file(content: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, content).unwrap();
    let path = path.display().to_string();
    (folder, path)
}

#[test]
fn every_command_reports_an_unusable_kubeconfig_in_one_line() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let commands: [&[&str]; 12] = [
        &["status"],
        &["plan"],
        &["approve", "load-aware-rebalancing", "--digest", &digest],
        &["rollback", "load-aware-rebalancing"],
        &["explain", "load-aware-rebalancing"],
        &["render"],
        &["facts"],
        &["approve", &digest],
        &["rollback", "ConfigMap", "x"],
        &["rollback", "--list"],
        &["handback"],
        &["run"],
    ];
    let (_folder, binary) = file(b"\xff\xfe\x00");
    let (_folder, broken) = file(b"clusters: [{name: 1");
    for command in commands {
        let none = virtpilot(None, command);
        assert!(
            none.stderr.contains("error: found no cluster: neither --kubeconfig nor KUBECONFIG is given"),
            "{}",
            none.stderr
        );
        for (path, why) in [
            ("/missing", "No such file"),
            (&*binary, "not a text file"),
            (&*broken, "unclosed bracket"),
            ("/", "Is a directory"),
        ] {
            let from_variable = virtpilot(Some(Path::new(path)), command);
            let from_flag = virtpilot(None, &[command, &["--kubeconfig", path]].concat());
            for (output, place) in [(from_variable, " (from KUBECONFIG)"), (from_flag, "")] {
                let errors: Vec<&str> = output.stderr.lines().filter(|line| !line.contains(" starts: ")).collect();
                let start = format!("error: could not use the kubeconfig {path}{place}: ");
                assert!(
                    errors.len() == 1 && errors[0].starts_with(&start) && errors[0].contains(why),
                    "{command:?} {errors:?}"
                );
                assert_eq!(output.code, Some(1));
            }
        }
    }
}

#[test]
fn an_unknown_log_level_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(["run", "--kubeconfig", "/missing"]).env("LOG_LEVEL", "loud").stdin(Stdio::null());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(stderr, "error: LOG_LEVEL has the unknown level \"loud\"; use off, error, warn, info, debug or trace\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn one_line_says_what_the_operator_starts_with() {
    let unnamed = virtpilot(None, &["--kubeconfig", "/missing"]);
    assert!(unnamed.stderr.starts_with("error: name a command: ") && unnamed.code == Some(1), "{}", unnamed.stderr);
    let output = virtpilot(None, &["run", "-leader-elect=true", "-namespace=home", "-kubeconfig", "/missing"]);
    let line = output.stderr.lines().next().unwrap_or_default();
    for part in [
        concat!("virtpilot ", env!("CARGO_PKG_VERSION")),
        "catalogue sha256:",
        "namespace home",
        "flags: --kubeconfig=/missing --namespace=home --leader-elect=true",
    ] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
}

#[test]
fn files_without_a_hyperconverged_are_refused() {
    let (_folder, empty) = file(b"");
    let (_folder, service) = file(b"apiVersion: v1\nkind: Service\n");
    let (_folder, broken) = file(b"a: [1\n b: }");
    for (flag, path, why) in [
        ("--facts", &empty, " has no facts about a HyperConverged; "),
        ("--hco-file", &empty, " is nothing; it must be a HyperConverged of hco.kubevirt.io"),
        ("--hco-file", &service, " is a Service of v1; it must be a HyperConverged of hco.kubevirt.io"),
        ("--hco-file", &broken, ":2: illegal placement of ':' indicator\n"),
    ] {
        let output = virtpilot(None, &["render", flag, path]);
        assert!(output.stderr.starts_with(&format!("error: {path}{why}")), "{}", output.stderr);
        assert_eq!((output.stderr.lines().count(), output.stdout.as_str(), output.code), (1, "", Some(1)));
    }
}

#[test]
fn the_role_of_a_pack_in_a_folder_is_the_generated_one() {
    let packs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs");
    for pack in ["adopted", "facts", "kinds", "life", "scene"] {
        let output = virtpilot(None, &["rbac", "--assets-dir", &format!("{packs}/{pack}")]);
        let generated = std::fs::read_to_string(format!("{packs}/{pack}.role.yaml")).unwrap();
        let without_header = |text: &str| text.split_once('\n').unwrap().1.to_owned();
        assert_eq!(without_header(&output.stdout), without_header(&generated), "{}", output.stderr);
    }
    let built_in = virtpilot(None, &["rbac", "--namespace", "home"]).stdout;
    assert!(
        built_in.contains("resourceNames: [\"90-worker-swap-online\"]\n    verbs: [create, get, patch, delete]\n"),
        "{built_in}"
    );
    assert_eq!((built_in.matches("  namespace: home\n").count(), built_in.contains("openshift-cnv")), (5, false));
    for forbidden in ["\"*\"", "bind]", "escalate]", "impersonate"] {
        assert!(!built_in.contains(forbidden), "{forbidden}");
    }
    // The object of one asset of this pack cannot be known.
    let unknown = virtpilot(None, &["rbac", "--assets-dir", &format!("{packs}/troubled")]);
    assert!(unknown.stderr.starts_with("error: there is no role for the asset pack in "), "{}", unknown.stderr);
    assert_eq!((unknown.stdout.as_str(), unknown.code), ("", Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_warn_about_another_release_and_explain_what_the_cluster_refuses() {
    let running = Running::without_operator().await;
    let kubeconfig = running.playground.kubeconfig();
    let _operator = Process::start_as("pod-one", running.kubeconfig());
    let leases: Api<Lease> = Api::namespaced(running.playground.client(), NAMESPACE);
    eventually("the operator leads", async || leases.get_opt(api::LEASE).await.unwrap()).await;
    assert_eq!(virtpilot(Some(&kubeconfig), &["status"]).stderr, "", "it is the same release");
    let other_pack = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/scene");
    for command in ["status", "render"] {
        let output = virtpilot(Some(&kubeconfig), &[command, "--assets-dir", other_pack]);
        let start = "warning: the operator in pod pod-one has the asset pack sha256:";
        assert!(output.stderr.starts_with(start) && output.stderr.lines().count() == 1, "{}", output.stderr);
    }

    let digest = format!("sha256:{}", "a".repeat(64));
    let commands: [&[&str]; 4] =
        [&["status"], &["approve", &digest], &["rollback", "--list"], &["handback", "--dry-run"]];
    let wrong_token = folder_with_wrong_token(&std::fs::read_to_string(&kubeconfig).unwrap());
    for command in commands {
        let output = virtpilot(Some(&kubeconfig), &[command, &["--namespace", "nowhere"]].concat());
        let wanted = "error: HyperConverged nowhere/kubevirt-hyperconverged does not exist; create it, or name its namespace with --namespace\n";
        assert_eq!((output.stderr.as_str(), output.code), (wanted, Some(1)), "{command:?}");
        let output = virtpilot(Some(&wrong_token.path().join("file")), command);
        assert!(
            output.stderr.contains("Unauthorized")
                && output.stderr.lines().count() == 1
                && !output.stderr.contains('{'),
            "{command:?} {}",
            output.stderr
        );
    }
}

/// The kubeconfig of the same server with credentials that it does not accept.
fn folder_with_wrong_token(kubeconfig: &str) -> tempfile::TempDir {
    let mut config: serde_json::Value = serde_saphyr::from_str(kubeconfig).unwrap();
    config["users"][0]["user"] = serde_json::json!({"token": "wrong"});
    file(config.to_string().as_bytes()).0
}
