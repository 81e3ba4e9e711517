//! Every CRD of the table is established, prunes unknown fields and rejects invalid objects.

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

/// The test cases of one CRD.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    crd: String,
    variant: Option<String>,
    accepted: Value,
    refused: Value,
    /// What rejects it: a CEL rule or the schema.
    by: String,
    /// Part of the error message.
    because: String,
    /// Where in the accepted object an unknown field is pruned; `false` if none is.
    prunes: Value,
}

fn examples() -> Vec<Example> {
    serde_saphyr::from_str(include_str!("crd_examples.yaml")).unwrap()
}

/// Creates the object as a dry run and returns what the server would store.
async fn create(playground: &Playground, discovery: &Discovery, object: &Value) -> kube::Result<Value> {
    create_with(playground, discovery, object, "").await
}

/// The same with another parameter of the request.
async fn create_with(
    playground: &Playground,
    discovery: &Discovery,
    object: &Value,
    parameter: &str,
) -> kube::Result<Value> {
    let text = |key: &str| object[key].as_str().unwrap().to_owned();
    let kind = GroupVersionKind::try_from(TypeMeta { api_version: text("apiVersion"), kind: text("kind") }).unwrap();
    let (resource, capabilities) = discovery.resolve_gvk(&kind).unwrap_or_else(|| panic!("{kind:?} is not served"));
    let namespace = (capabilities.scope == Scope::Namespaced).then_some("openshift-cnv");
    let params = PostParams { dry_run: true, field_manager: None };
    let path = DynamicObject::url_path(&resource, namespace);
    let mut request = Request::new(path).create(&params, object.to_string().into_bytes()).unwrap();
    *request.uri_mut() = format!("{}{parameter}", request.uri()).parse().unwrap();
    playground.client().request(request).await
}

async fn check_all(scene: Scene, is_selected: impl Fn(&Example) -> bool) -> usize {
    let playground = start_scene(scene).await;
    let discovery = Discovery::new(playground.client()).run_aggregated().await.unwrap();
    let ready = established(&playground.client()).await.unwrap();
    let mut failures = Vec::new();
    let mut checked = 0;
    for example in examples().iter().filter(|example| is_selected(example)) {
        checked += 1;
        let name = format!("{} {}", example.crd, example.variant.as_deref().unwrap_or_default());
        if !ready.contains(&example.crd) {
            failures.push(format!("{name} is not established"));
            continue;
        }
        let mut accepted = example.accepted.clone();
        if let Some(path) = example.prunes.as_str() {
            let parent =
                path.split('.').filter(|part| !part.is_empty()).fold(&mut accepted, |value, part| &mut value[part]);
            parent["virtpilotUnknown"] = "x".into();
        }
        match create(&playground, &discovery, &accepted).await {
            Err(error) => failures.push(format!("{name} rejected a valid object: {error}")),
            Ok(stored) if stored.to_string().contains("virtpilotUnknown") => {
                failures.push(format!("{name} does not prune an unknown field"));
            }
            Ok(_) => {}
        }
        match create(&playground, &discovery, &example.refused).await {
            Ok(_) => failures.push(format!("{name} accepted an invalid object")),
            Err(kube::Error::Api(status)) if status.message.contains(&example.because) => {}
            Err(error) => failures.push(format!("{name} rejected an object for another reason: {error}")),
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    checked
}

#[test]
fn the_examples_cover_exactly_the_crds_of_the_table() {
    let table = Table::parse(&Tools::load().unwrap().crds_table).unwrap();
    let expected: BTreeSet<_> = table.rows().into_iter().map(|row| (row.crd, row.variant)).collect();
    let actual: BTreeSet<_> = examples().into_iter().map(|example| (example.crd, example.variant)).collect();
    assert_eq!(actual, expected);
    assert!(examples().iter().all(|example| ["cel", "schema"].contains(&example.by.as_str())));
    assert!(examples().iter().filter(|example| example.by == "cel").count() >= 10, "CEL rules are covered");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crd_is_established_prunes_and_rejects_invalid_objects() {
    let is_default =
        |example: &Example| example.variant.as_deref().is_none_or(|variant| ["v1", "5.2"].contains(&variant));
    let checked = check_all(Scene::preset("small").unwrap(), is_default).await;
    assert!(checked > 40, "{checked}");
}

/// JSON pointers to this object and all objects in it, except maps whose keys are free.
fn objects_in(value: &Value, at: &str, found: &mut Vec<String>) {
    const MAPS: [&str; 5] = ["/labels", "/matchLabels", "/nodeSelector", "/limits/tenants", "/podAntiAffinity"];
    match value {
        Value::Object(fields) => {
            if !MAPS.iter().any(|map| at.ends_with(map)) {
                found.push(at.to_owned());
            }
            fields
                .iter()
                .for_each(|(name, field)| objects_in(field, &format!("{at}/{}", name.replace('/', "~1")), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| objects_in(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_field_of_a_crd_written_from_documents_is_refused() {
    let playground = start_scene(Scene::preset("small").unwrap()).await;
    let discovery = Discovery::new(playground.client()).run_aggregated().await.unwrap();
    let written = Table::parse(&Tools::load().unwrap().crds_table).unwrap().written;
    assert_eq!(written.len(), 3);
    let mut misspelt = 0;
    for example in examples().iter().filter(|example| written.iter().any(|written| written.crd == example.crd)) {
        let mut objects = Vec::new();
        objects_in(&example.accepted["spec"], "/spec", &mut objects);
        for at in objects {
            let mut object = example.accepted.clone();
            object.pointer_mut(&at).unwrap()["misspelt"] = "x".into();
            match create_with(&playground, &discovery, &object, "&fieldValidation=Strict").await {
                Err(kube::Error::Api(status)) if status.message.contains("unknown field \"spec.") => misspelt += 1,
                other => panic!("{} at {at}: {other:?}", example.crd),
            }
        }
    }
    assert!(misspelt > 25, "{misspelt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_hyperconverged_and_descheduler_crds_work() {
    let scene = Scene { hco: "v1beta1".into(), descheduler: "5.1".into(), ..Scene::preset("small").unwrap() };
    let checked = check_all(scene, |example| matches!(example.variant.as_deref(), Some("v1beta1" | "5.1"))).await;
    assert_eq!(checked, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newer_descheduler_crd_works() {
    let scene = Scene { descheduler: "5.3".into(), ..Scene::preset("small").unwrap() };
    assert_eq!(check_all(scene, |example| example.variant.as_deref() == Some("5.3")).await, 1);
}
