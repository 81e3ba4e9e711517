//! The profiles of our pack on real API servers: samples and everything that profiles write are accepted.

use crate::catalogue::{Cluster, SHAPES, apply, catalogue, create_namespaces, facts};
use crate::crds::install;
use crate::operator::{eventually, playground_of};
use catalog::profile::{self, Profile};
use catalog::{Catalog, Facts, ProfileWants, Query, WantedResult, wanted};
use playground::{Scene, deployment};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The defaults, everything that is true or false both ways, and each other option at the end of its range.
fn choices(profile: &Profile) -> Vec<Map<String, Value>> {
    let Some(options) = &profile.options else { return vec![Map::new()] };
    let all = |value: bool| -> Map<String, Value> {
        let booleans = options.properties.iter().filter(|(_, schema)| schema["type"] == "boolean");
        booleans.map(|(name, _)| (name.clone(), json!(value))).collect()
    };
    let mut choices = vec![Map::new(), all(true), all(false)];
    for (name, schema) in &options.properties {
        let value = match schema["type"].as_str().unwrap() {
            "integer" => schema["maximum"].clone(),
            "string" => schema["enum"].as_array().map_or(json!("8Gi"), |values| values.last().unwrap().clone()),
            "object" => json!({"nodeLabelSelector": {"matchLabels": {"a": "b"}}}),
            _ => continue,
        };
        let mut choice = all(true);
        choice.insert(name.clone(), value);
        choices.push(choice);
    }
    choices
}

fn wants(
    catalog: &Catalog,
    profile: &Profile,
    choice: &Map<String, Value>,
    facts: &Facts,
    on: &Cluster,
) -> ProfileWants {
    let mut facts = facts.clone();
    for _ in 0..8 {
        let wants = wanted(catalog, profile, Some(choice), &facts);
        let needs = |result: &WantedResult| match result {
            WantedResult::Needs(queries) => queries.clone(),
            WantedResult::Held(query) => panic!("{query} is answered"),
            // More overcommit than is safe is refused where there is no swap.
            WantedResult::Broken(why) if why.contains("needs swap") => Vec::new(),
            WantedResult::Broken(why) => panic!("{}: {why}", profile.name),
            _ => Vec::new(),
        };
        let queries: Vec<Query> = wants.items.iter().flat_map(|item| needs(&item.result)).collect();
        if queries.is_empty() {
            return wants;
        }
        facts.answers.extend(queries.into_iter().map(|query| (query.clone(), on.answer(&query))));
    }
    panic!("{} asks for more after every answer", profile.name)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_of_a_profile_is_accepted_by_the_server() {
    let catalog = catalogue();
    let mut written = BTreeSet::new();
    for (descheduler, hco) in [("5.3", "v1"), ("5.2", "v1beta1"), ("5.1", "v1beta1")] {
        let mut scene = Scene::preset("small").unwrap();
        (scene.descheduler, scene.hco) = (descheduler.into(), hco.into());
        let playground = playground_of(scene).await;
        let cluster = Cluster::of(&playground).await;
        let mut distinct: BTreeMap<String, Value> = BTreeMap::new();
        for shape in SHAPES {
            let facts = facts(&catalog, &format!("{}/{hco}", api::hco::GROUP), &BTreeMap::new(), "VSphere", shape);
            for profile in &catalog.profiles {
                for choice in choices(profile) {
                    for item in wants(&catalog, profile, &choice, &facts, &cluster).items {
                        let WantedResult::Object { object, .. } = item.result else { continue };
                        written.insert(format!("{}/{}", profile.name, item.name));
                        distinct.insert(object.to_string(), object);
                    }
                }
            }
        }
        create_namespaces(&playground, distinct.values()).await;
        let mut refused = Vec::new();
        for object in distinct.values() {
            refused.extend(apply(playground.client(), &cluster.plurals, object, true).await);
        }
        assert!(refused.is_empty(), "{} of {}: {}", refused.len(), distinct.len(), refused.join("\n"));
    }
    let items = catalog.profiles.iter().flat_map(|profile| {
        profile.items.iter().map(|item| format!("{}/{}", profile.name, item.name)).collect::<Vec<_>>()
    });
    let never: Vec<String> = items.filter(|name| !written.contains(name)).collect();
    assert_eq!(never, Vec::<String>::new(), "these items never have an object");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_sample_and_every_choice_of_options_is_accepted() {
    let catalog = catalogue();
    let playground = playground_of(Scene::preset("small").unwrap()).await;
    install(&playground, &profile::crd(&catalog.profiles)).await;
    let objects = deployment::objects(&playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None);
    eventually("the kind is served", async || objects.list(&Default::default()).await.ok()).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/samples/advisor");
    for profile in &catalog.profiles {
        let text = std::fs::read_to_string(folder.join(format!("{}.yaml", profile.name))).unwrap();
        let mut sample: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(apply(playground.client(), &BTreeMap::new(), &sample, true).await, None);
        let Some(options) = &profile.options else { continue };
        for choice in choices(profile) {
            sample["spec"]["options"] = json!({options.key.as_str(): choice});
            assert_eq!(apply(playground.client(), &BTreeMap::new(), &sample, true).await, None, "{sample}");
        }
    }
    let none: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|file| file != "monitoring.yaml")
        .filter(|file| !catalog.profiles.iter().any(|profile| format!("{}.yaml", profile.name) == *file))
        .collect();
    assert_eq!(none, Vec::<String>::new(), "samples without a profile");
}
