//! Every CRD of the table lives: it is established, prunes, and refuses what its rules forbid.

use crate::start_scene;
use kube::Resource;
use kube::api::{DynamicObject, PostParams};
use kube::core::{GroupVersionKind, Request, TypeMeta};
use kube::discovery::{Discovery, Scope};
use playground::crds::{Table, established};
use playground::tools::Tools;
use playground::{Playground, Scene};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// What is tried on one CRD.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    crd: String,
    variant: Option<String>,
    accepted: Value,
    refused: Value,
    /// What refuses it: a CEL rule or the schema.
    by: String,
    /// Words of the refusal.
    because: String,
    /// Where in the accepted object an unknown field vanishes; `false` where none does.
    prunes: Value,
}

fn examples() -> Vec<Example> {
    serde_saphyr::from_str(include_str!("crd_examples.yaml")).unwrap()
}

/// Sends the object as it is, as a dry run, and returns what the server would store.
async fn create(playground: &Playground, discovery: &Discovery, object: &Value) -> kube::Result<Value> {
    let text = |key: &str| object[key].as_str().unwrap().to_owned();
    let kind = GroupVersionKind::try_from(TypeMeta { api_version: text("apiVersion"), kind: text("kind") }).unwrap();
    let (resource, capabilities) = discovery.resolve_gvk(&kind).unwrap_or_else(|| panic!("{kind:?} is not served"));
    let namespace = (capabilities.scope == Scope::Namespaced).then_some("openshift-cnv");
    let params = PostParams { dry_run: true, field_manager: None };
    let path = DynamicObject::url_path(&resource, namespace);
    let request = Request::new(path).create(&params, object.to_string().into_bytes()).unwrap();
    playground.client().request(request).await
}

async fn try_all(variants: Scene, fits: impl Fn(&Example) -> bool) -> usize {
    let playground = start_scene(variants).await;
    let discovery = Discovery::new(playground.client()).run_aggregated().await.unwrap();
    let ready = established(&playground.client()).await.unwrap();
    let mut failures = Vec::new();
    let mut tried = 0;
    for example in examples().iter().filter(|example| fits(example)) {
        tried += 1;
        let name = format!("{} {}", example.crd, example.variant.as_deref().unwrap_or_default());
        if !ready.contains(&example.crd) {
            failures.push(format!("{name} is not established"));
            continue;
        }
        let mut accepted = example.accepted.clone();
        if let Some(path) = example.prunes.as_str() {
            let place =
                path.split('.').filter(|part| !part.is_empty()).fold(&mut accepted, |value, part| &mut value[part]);
            place["virtpilotUnknown"] = "x".into();
        }
        match create(&playground, &discovery, &accepted).await {
            Err(error) => failures.push(format!("{name} refused what it should accept: {error}")),
            Ok(answer) if answer.to_string().contains("virtpilotUnknown") => {
                failures.push(format!("{name} does not prune"));
            }
            Ok(_) => {}
        }
        match create(&playground, &discovery, &example.refused).await {
            Ok(_) => failures.push(format!("{name} accepted what it should refuse")),
            Err(kube::Error::Api(status)) if status.message.contains(&example.because) => {}
            Err(error) => failures.push(format!("{name} refused for another reason: {error}")),
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    tried
}

#[test]
fn every_crd_of_the_table_has_an_example_and_no_other() {
    let table = Table::parse(&Tools::load().unwrap().crds_table).unwrap();
    let wanted: BTreeSet<_> = table.rows().into_iter().map(|row| (row.crd, row.variant)).collect();
    let given: BTreeSet<_> = examples().into_iter().map(|example| (example.crd, example.variant)).collect();
    assert_eq!(given, wanted);
    assert!(examples().iter().all(|example| ["cel", "schema"].contains(&example.by.as_str())));
    assert!(examples().iter().filter(|example| example.by == "cel").count() >= 10, "CEL rules are tried");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crd_is_established_prunes_and_refuses() {
    let is_default =
        |example: &Example| example.variant.as_deref().is_none_or(|variant| ["v1", "5.2"].contains(&variant));
    let tried = try_all(Scene::preset("small").unwrap(), is_default).await;
    assert!(tried > 40, "{tried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_older_hyperconverged_and_descheduler_live_too() {
    let scene = Scene { hco: "v1beta1".into(), descheduler: "5.1".into(), ..Scene::preset("small").unwrap() };
    let tried = try_all(scene, |example| matches!(example.variant.as_deref(), Some("v1beta1" | "5.1"))).await;
    assert_eq!(tried, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newer_descheduler_lives_too() {
    let scene = Scene { descheduler: "5.3".into(), ..Scene::preset("small").unwrap() };
    assert_eq!(try_all(scene, |example| example.variant.as_deref() == Some("5.3")).await, 1);
}
