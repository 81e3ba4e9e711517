//! Playgrounds are isolated from each other.

use crate::marked_process::{ProcessMark, run};
use crate::{eventually, start};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, PostParams};
use playground::{Options, Playground, Progress, Scene};
use std::os::unix::fs::PermissionsExt;

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_playgrounds_are_isolated() {
    let first = start("small").await;
    // Without a slot: holding one while waiting for another could deadlock.
    let scene = Some(Scene::preset("compact").unwrap());
    let options = Options { wait_for_slot: false, scene, ..Options::for_test(Scene::preset("small").unwrap()) };
    let second = Playground::start(&options, Progress::Silent).await.unwrap();
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
async fn other_users_cannot_enter_the_folder_of_a_playground() {
    let playground = start("single-node").await;
    let mode = std::fs::metadata(playground.folder()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "it contains keys and the socket of an etcd without authentication");
}

#[test]
fn a_proxy_from_the_environment_is_not_used() {
    let mark = ProcessMark::new("proxied");
    let output = run(mark
        .playground()
        .args(["up", "--output=json", "--scene=single-node"])
        .env("HTTPS_PROXY", "http://127.0.0.1:9"));
    assert_eq!(output.code, Some(0), "{}", output.err);
    mark.expect_gone();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_has_no_objects_of_the_previous_one() {
    let maps = |playground: &Playground| -> Api<ConfigMap> { Api::default_namespaced(playground.client()) };
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("leftover".into()), ..Default::default() },
        ..Default::default()
    };
    let first = start("small").await;
    maps(&first).create(&PostParams::default(), &map).await.unwrap();
    drop(first);
    let second = start("small").await;
    assert!(maps(&second).get_opt("leftover").await.unwrap().is_none());
}

/// The controllers work: a namespace gets a service account and is deleted with its content; an owned object is deleted with its owner.
#[tokio::test(flavor = "multi_thread")]
async fn namespace_token_and_garbage_collection_controllers_work() {
    let playground = start("small").await;
    let client = playground.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let named = |name: &str| ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    namespaces
        .create(&PostParams::default(), &Namespace { metadata: named("test"), ..Default::default() })
        .await
        .unwrap();
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = Api::namespaced(client.clone(), "test");
    eventually("the namespace has a service account", async || accounts.get_opt("default").await.unwrap().is_some())
        .await;
    let account = playground.account("test", "default").await.unwrap();
    let refused = Api::<Node>::all(account.client).list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("system:serviceaccount:test:default"), "RBAC accepts its token: {refused}");

    let maps: Api<ConfigMap> = Api::namespaced(client, "test");
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
    eventually("the owned object is deleted", async || maps.get_opt("owned").await.unwrap().is_none()).await;

    namespaces.delete("test", &DeleteParams::default()).await.unwrap();
    eventually("the namespace is deleted", async || namespaces.get_opt("test").await.unwrap().is_none()).await;
}
