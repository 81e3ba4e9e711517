//! What the hands promise, on a real control plane.

// Clippy takes only functions marked as tests for tests.
#![allow(clippy::unwrap_used, clippy::panic)]

mod driving;
mod writing;

use change::{Identity, Key, Kind};
use cluster::{Server, Timeouts};
use playground::{Options, Playground, Progress, Scene};
use serde_json::{Value, json};

const IDENTITY: Identity = Identity {
    field_manager: "tester",
    label: ("example.io/managed-by", "tester"),
    annotation_prefix: "example.io/",
    lease: "tester",
};

/// A cluster and a connection to it.
async fn start() -> (Playground, Server) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = Options::for_test(Scene::preset("small").unwrap());
    let started = Playground::start(&options, Progress::Silent).await;
    let playground = started.unwrap_or_else(|trouble| panic!("{trouble}"));
    let server = cluster::connect(
        cluster::KubeconfigContext::current(Some(&playground.kubeconfig())),
        Timeouts::default(),
        IDENTITY,
    )
    .await
    .unwrap();
    (playground, server)
}

fn config_map(name: &str) -> Key {
    Key { kind: Kind::new("v1", "ConfigMap"), namespace: "default".into(), name: name.into() }
}

fn desired(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "labels": {"example.io/managed-by": "tester"}},
        "data": {"a": value},
    })
}
