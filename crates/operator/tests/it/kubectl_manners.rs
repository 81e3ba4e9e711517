//! `virtpilot` as users of kubectl expect it: as its plugin, with completions, contexts and errors of one line.

use crate::commands::virtpilot;
use crate::operator::Running;
use serde_json::Value;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_runs_and_completes_it_as_a_plugin() {
    let running = Running::without_operator().await;
    let plugins = tempfile::tempdir().unwrap();
    for name in ["kubectl-virtpilot", "kubectl_complete-virtpilot"] {
        symlink(env!("CARGO_BIN_EXE_virtpilot"), plugins.path().join(name)).unwrap();
    }
    let path = format!("{}:{}", plugins.path().display(), std::env::var("PATH").unwrap());
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new(running.playground.binaries().kubectl.clone());
        let output =
            command.args(arguments).env("PATH", &path).env("KUBECONFIG", running.playground.kubeconfig()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(kubectl(&["virtpilot", "status"]).starts_with("Operator  none leads in namespace openshift-cnv"));
    assert!(kubectl(&["virtpilot", "plan", "--help"]).contains("Usage: kubectl virtpilot plan [OPTIONS]"));
    let completed = kubectl(&["__complete", "virtpilot", "features", "sw"]);
    assert!(completed.starts_with("swap\tSwap for virtual machines") && completed.ends_with(":4\n"), "{completed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_is_chosen_and_a_wrong_one_is_named_in_one_line() {
    let running = Running::without_operator().await;
    let text = std::fs::read_to_string(running.playground.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    let name = config["current-context"].as_str().unwrap().to_owned();
    config["current-context"] = "elsewhere".into();
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("kubeconfig");
    std::fs::write(&other, config.to_string()).unwrap();

    let output = virtpilot(Some(&other), &["status"]);
    assert!(output.stderr.contains("its current-context \"elsewhere\" is not among its contexts"), "{}", output.stderr);
    let output = virtpilot(Some(&other), &["status", "--context", &name, "-n", "openshift-cnv"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let output = virtpilot(Some(&other), &["status", "--context", "nowhere"]);
    assert!(output.stderr.ends_with(&format!("it has no context \"nowhere\"; it has {name}\n")), "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1);
}

/// Answers CONNECT requests, and hands each one's head to the test.
async fn proxy(listener: TcpListener, heads: tokio::sync::mpsc::UnboundedSender<String>) {
    while let Ok((client, _)) = listener.accept().await {
        let heads = heads.clone();
        tokio::spawn(async move {
            let (mut client, mut head) = (BufReader::new(client), String::new());
            while !head.ends_with("\r\n\r\n") {
                client.read_line(&mut head).await.unwrap();
            }
            let mut server = TcpStream::connect(head.split(' ').nth(1).unwrap()).await.unwrap();
            heads.send(head).unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_reached_through_the_proxy_of_the_kubeconfig() {
    let running = Running::without_operator().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, mut heads) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(proxy(listener, sender));
    let text = std::fs::read_to_string(running.playground.kubeconfig()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["proxy-url"] = format!("http://user:word@{address}").into();
    let folder = tempfile::tempdir().unwrap();
    let proxied = folder.path().join("kubeconfig");
    std::fs::write(&proxied, config.to_string()).unwrap();
    let mut facts = async |kubeconfig: &Path| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.arg("facts").env("KUBECONFIG", kubeconfig).env("HTTPS_PROXY", format!("http://{address}"));
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::iter::from_fn(|| heads.try_recv().ok()).collect::<Vec<_>>()
    };
    let tunnels = facts(&proxied).await;
    let (server, user) = (tunnels[0].lines().next().unwrap(), "proxy-authorization: basic dxnlcjp3b3jk");
    assert!(server.starts_with("CONNECT 127.0.0.1:"), "{server}");
    assert!(tunnels[0].to_lowercase().contains(user), "{}", tunnels[0]);
    assert!(
        facts(&running.playground.kubeconfig()).await.is_empty(),
        "this machine is reached without the variable's proxy"
    );
}
