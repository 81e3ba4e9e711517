//! Playgrounds do not disturb each other.

use crate::marked::{Mark, run};
use crate::start;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use playground::{Options, Playground, Progress, Scene};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn two_playgrounds_side_by_side_do_not_disturb_each_other() {
    let first = start("small").await;
    // Not in turn: whoever holds a place and waits for another could wait for ever.
    let scene = Some(Scene::preset("compact").unwrap());
    let beside = Options { in_turn: false, scene, ..Options::for_test(Scene::preset("small").unwrap()) };
    let second = Playground::start(&beside, Progress::Silent).await.unwrap();
    assert_ne!(first.address(), second.address());
    assert_ne!(first.folder(), second.folder());
    let nodes = |playground: &Playground| {
        let api: Api<Node> = Api::all(playground.client());
        async move { api.list(&ListParams::default()).await.unwrap().items.len() }
    };
    assert_eq!((nodes(&first).await, nodes(&second).await), (6, 3));
    let api: Api<Node> = Api::all(first.client());
    api.delete("worker-0", &DeleteParams::default()).await.unwrap();
    assert_eq!((nodes(&first).await, nodes(&second).await), (5, 3));
    let folder = first.folder().to_owned();
    drop(first);
    assert!(!folder.exists());
    assert_eq!(nodes(&second).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_else_can_enter_the_folder_of_a_playground() {
    let playground = start("single-node").await;
    let mode = std::fs::metadata(playground.folder()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "it holds keys and an etcd that asks nobody who he is");
}

#[test]
fn a_proxy_for_the_rest_of_the_world_does_not_stop_it() {
    let mark = Mark::new("proxied");
    let said = run(mark
        .playground()
        .args(["up", "--output=json", "--scene=single-node"])
        .env("HTTPS_PROXY", "http://127.0.0.1:9"));
    assert_eq!(said.code, Some(0), "{}", said.err);
    mark.expect_gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_cluster_has_nothing_of_the_one_before() {
    let maps = |playground: &Playground| -> Api<ConfigMap> { Api::default_namespaced(playground.client()) };
    let map =
        ConfigMap { metadata: ObjectMeta { name: Some("left".into()), ..Default::default() }, ..Default::default() };
    let first = start("small").await;
    maps(&first).create(&PostParams::default(), &map).await.unwrap();
    drop(first);
    let second = start("small").await;
    assert!(maps(&second).get_opt("left").await.unwrap().is_none());
}

/// The controllers are alive: a namespace gets its service account, is emptied and goes; an owned object goes with its owner.
#[tokio::test(flavor = "multi_thread")]
async fn namespaces_tokens_and_garbage_collection_work() {
    let playground = start("small").await;
    let client = playground.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let named = |name: &str| ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    namespaces
        .create(&PostParams::default(), &Namespace { metadata: named("tried"), ..Default::default() })
        .await
        .unwrap();
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(client.clone(), "tried");
    eventually("the namespace has a service account", async || accounts.get_opt("default").await.unwrap().is_some())
        .await;
    let account = playground.account("tried", "default").await.unwrap();
    let refused = Api::<Node>::all(account.client).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("system:serviceaccount:tried:default"), "RBAC knows its token: {refused}");

    let maps: Api<ConfigMap> = Api::namespaced(client, "tried");
    let owner = maps
        .create(&PostParams::default(), &ConfigMap { metadata: named("owner"), ..Default::default() })
        .await
        .unwrap();
    let mut owned = ConfigMap { metadata: named("owned"), ..Default::default() };
    let reference = k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "owner".into(),
        uid: owner.metadata.uid.unwrap(),
        ..Default::default()
    };
    owned.metadata.owner_references = Some(vec![reference]);
    maps.create(&PostParams::default(), &owned).await.unwrap();
    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    eventually("the owned object is gone", async || maps.get_opt("owned").await.unwrap().is_none()).await;

    namespaces.delete("tried", &DeleteParams::default()).await.unwrap();
    eventually("the namespace is gone", async || namespaces.get_opt("tried").await.unwrap().is_none()).await;
}

/// Asks until it is so; the controllers need a moment, and a busy machine a longer one.
async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("after a minute it is still not so: {what}");
}
