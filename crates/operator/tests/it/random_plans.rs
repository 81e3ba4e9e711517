//! `plan`, then `run`: what changes is exactly what the plan said, on random clusters.

use crate::life_cycle_scenario::{LIFE_CYCLE, apply_as_us, labelled};
use crate::operator::{NAMESPACE, Running, annotate, eventually, quiet, readiness};
use crate::plan::{create_foreign, plan};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use playground::audit::Kind;
use playground::certificates::ADMIN_USER;
use playground::{Scene, deployment};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How many random clusters a test run tries; `make faults` tries more.
const FEW: usize = 10;
const MANY: usize = 50;

const MAPS: [&str; 4] = ["life-settings", "life-extra", "life-adopted", "life-kept"];

/// The objects of the pack: kind, resource as the audit log names it, API version, namespace and name.
const OBJECTS: [(&str, &str, &str, Option<&str>, &str); 10] = [
    ("ConfigMap", "configmaps", "v1", Some(NAMESPACE), "life-settings"),
    ("ConfigMap", "configmaps", "v1", Some(NAMESPACE), "life-extra"),
    ("ConfigMap", "configmaps", "v1", Some(NAMESPACE), "life-adopted"),
    ("ConfigMap", "configmaps", "v1", Some(NAMESPACE), "life-kept"),
    ("ConfigMap", "configmaps", "v1", Some(NAMESPACE), "life-old"),
    ("ConfigMap", "configmaps", "v1", Some(NAMESPACE), "life-older"),
    (
        "PrometheusRule",
        "prometheusrules.monitoring.coreos.com",
        "monitoring.coreos.com/v1",
        Some(NAMESPACE),
        "life-rules",
    ),
    (
        "MachineConfig",
        "machineconfigs.machineconfiguration.openshift.io",
        "machineconfiguration.openshift.io/v1",
        None,
        "99-worker-life",
    ),
    ("Namespace", "namespaces", "v1", None, "life-space"),
    ("HyperConverged", "hyperconvergeds.hco.kubevirt.io", "hco.kubevirt.io/v1", Some(NAMESPACE), api::hco::NAME),
];

/// A small generator of numbers, so that a failing seed can be tried again.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or_default() % limit
    }

    fn one<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }
}

fn api(running: &Running, index: usize) -> Api<DynamicObject> {
    let (kind, _, api_version, namespace, _) = OBJECTS[index];
    deployment::objects(&running.playground, api_version, kind, namespace)
}

/// Something that a person, another tool or a former release does; it is described in the result.
async fn act(running: &Running, random: &mut Random, last: &Value) -> String {
    let maps = running.config_maps();
    let map = random.one(&MAPS);
    let exists = maps.get_opt(map).await.unwrap().is_some();
    match random.below(16) {
        0 if exists => {
            maps.delete(map, &DeleteParams::default()).await.unwrap();
            format!("delete {map}")
        }
        1 | 2 if exists => {
            crate::operator::edit(&maps, map, json!({"data": {"first": "edited", "more": "x"}})).await;
            format!("edit {map}")
        }
        3 if exists => {
            let value = random.one(&[Some("unmanaged"), None, None].each_ref());
            annotate(&maps, map, "mode", *value).await;
            format!("mode of {map} is {value:?}")
        }
        4 if exists => {
            let patches = [
                Some(r#"[{"op": "replace", "path": "/data/first", "value": "patched"}]"#),
                Some(r#"[{"op": "remove", "path": "/data/none"}]"#),
                Some("nonsense"),
                None,
            ];
            let value = random.one(&patches.each_ref());
            annotate(&maps, map, "patch", *value).await;
            format!("patch of {map} is {value:?}")
        }
        5 if exists => {
            let value = random.one(&[Some("/data/first"), Some("/data"), None].each_ref());
            annotate(&maps, map, "ignore-fields", *value).await;
            format!("ignore-fields of {map} is {value:?}")
        }
        6 if exists => {
            let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": map}, "data": {"first": "gitops"}});
            maps.patch(map, &PatchParams::apply("gitops").force(), &Patch::Apply(&theirs)).await.unwrap();
            format!("gitops applies {map}")
        }
        7 if exists => {
            // GitOps gives it up again, and its value goes with it.
            let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": map}});
            maps.patch(map, &PatchParams::apply("gitops").force(), &Patch::Apply(&nothing)).await.unwrap();
            format!("gitops gives up {map}")
        }
        8 => {
            create_foreign(running, map, json!({"first": "theirs", "mine": "stays"})).await;
            format!("somebody creates {map}")
        }
        9 => {
            let name = random.one(&["life-old", "life-older"]);
            let origin = random.one(&[Some("created"), None].each_ref());
            if maps.get_opt(name).await.unwrap().is_none() {
                apply_as_us(&maps, &labelled(name, *origin)).await;
            }
            format!("a former release created {name} with origin {origin:?}")
        }
        10 => {
            let (machines, rules) = (running.machine_configs(), api(running, 6));
            if let Ok(Some(_)) = rules.get_opt("life-rules").await {
                crate::operator::edit(&rules, "life-rules", json!({"spec": {"groups": [{"name": "other"}]}})).await;
            }
            if random.below(2) == 0 && machines.get_opt("99-worker-life").await.unwrap().is_some() {
                crate::operator::edit(&machines, "99-worker-life", json!({"spec": {"kernelArguments": ["other=1"]}}))
                    .await;
            }
            "edit the rules, and perhaps the MachineConfig".to_owned()
        }
        11 => {
            let waiting = last["items"].as_array().into_iter().flatten().find_map(|item| item["approval"].as_str());
            running.annotate_hco("approved", waiting).await;
            format!("approve {waiting:?}")
        }
        12 => {
            let values =
                [None, Some("true"), Some("life-settings, life-extra"), Some("life"), Some("false"), Some("lif")];
            let value = random.one(&values.each_ref());
            running.annotate_hco("autopilot", *value).await;
            format!("autopilot is {value:?}")
        }
        13 => {
            let values = [None, Some("ConfigMap/life-extra"), Some("- kind: [")];
            let value = random.one(&values.each_ref());
            running.annotate_hco("disabled-resources", *value).await;
            format!("disabled-resources is {value:?}")
        }
        14 => {
            let value = random.one(&[Some("true"), Some("true"), None].each_ref());
            running.annotate_hco("enable-machines", *value).await;
            format!("enable-machines is {value:?}")
        }
        _ => {
            let value = random.one(&[Some("true"), Some("true"), None].each_ref());
            running.annotate_hco("enable-extra", *value).await;
            format!("enable-extra is {value:?}")
        }
    }
}

/// The version of every object of the pack that exists.
async fn versions(running: &Running) -> BTreeMap<(&'static str, &'static str), String> {
    let mut versions = BTreeMap::new();
    for (index, (_, resource, _, _, name)) in OBJECTS.into_iter().enumerate() {
        if let Some(object) = api(running, index).get_opt(name).await.unwrap() {
            versions.insert((resource, name), object.metadata.resource_version.unwrap());
        }
    }
    versions
}

/// Checks that the data of a ConfigMap is what the plan said it would become.
async fn check_values(running: &Running, item: &Value, round: usize) {
    let is_map = item["object"]["kind"]["kind"] == "ConfigMap" && item["state"] == "ready";
    let name = item["object"]["name"].as_str().unwrap_or_default();
    let Some(map) = running.config_maps().get_opt(name).await.unwrap().filter(|_| is_map) else { return };
    for difference in item["diff"].as_array().unwrap() {
        let Some(key) = difference["path"].as_str().unwrap().strip_prefix(".data.") else { continue };
        assert_eq!(map.data["data"].get(key), difference["after"].get("value"), "{name} in round {round}: {item:#}");
    }
}

/// Every write that the plan says is made at once: verb, resource and name.
fn planned(plan: &Value) -> BTreeSet<(String, String, String)> {
    let ready = plan["items"].as_array().unwrap().iter().filter(|item| item["state"] == "ready");
    let write = |item: &Value| {
        let (kind, name) = (item["object"]["kind"]["kind"].as_str().unwrap(), item["object"]["name"].as_str().unwrap());
        let resource = OBJECTS.iter().find(|object| object.0 == kind).unwrap().1;
        let verb = if item["operation"] == "delete" { "delete" } else { "patch" };
        (verb.to_owned(), resource.to_owned(), name.to_owned())
    };
    ready.map(write).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_exactly_what_the_operator_writes_on_random_clusters() {
    let rounds = if std::env::var_os("VIRTPILOT_ALL_FAULTS").is_some() { MANY } else { FEW };
    let small = Scene::preset("small").unwrap();
    let mut running = Running::on(small, LIFE_CYCLE.role, &["--assets-dir", LIFE_CYCLE.pack]).await;
    let admin = running.playground.kubeconfig();
    let (mut last, mut operations, mut story) = (Value::Null, BTreeMap::<String, usize>::new(), Vec::new());
    for round in 0..rounds {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (round as u64 + 1).wrapping_mul(0x1234_5678_9abc_def1));
        // What holds everything does not last.
        for key in ["autopilot", "disabled-resources"] {
            running.annotate_hco(key, None).await;
        }
        if round % 8 == 7 {
            for map in MAPS {
                let _ = running.config_maps().delete(map, &DeleteParams::default()).await;
            }
            story.push(format!("{round}: delete every ConfigMap"));
        }
        for _ in 0..1 + random.below(5) {
            story.push(format!("{round}: {}", act(&running, &mut random, &last).await));
        }
        let before = versions(&running).await;
        let mark = running.audit().mark().unwrap();
        last = plan(&admin, &["--assets-dir", LIFE_CYCLE.pack]).0;
        let own = running.audit().since(mark).unwrap().by(ADMIN_USER);
        assert_eq!(own.of(Kind::Write).count(), 0, "a plan writes nothing");
        let mark = running.audit().mark().unwrap();
        let port = running.restart_with_probes();
        eventually("the operator is ready", async || readiness(port).filter(|answer| answer.contains(" 200 "))).await;
        quiet(&running).await;
        running.stop();
        let after = versions(&running).await;
        let writes = running.own(&running.audit().since(mark).unwrap()).of(Kind::Write);
        let written = writes.0.iter().filter(|request| request.code < 300).filter_map(|request| {
            let (_, resource, _, _, name) =
                OBJECTS.into_iter().find(|object| object.1 == request.resource && object.4 == request.name)?;
            // An apply that changes nothing is free of effect.
            let is_change = before.get(&(resource, name)) != after.get(&(resource, name));
            is_change.then(|| (request.verb.clone(), resource.to_owned(), name.to_owned()))
        });
        let written: BTreeSet<_> = written.collect();
        assert_eq!(planned(&last), written, "left is the plan of round {round}\n{last:#}\n{}", story.join("\n"));
        for item in last["items"].as_array().unwrap() {
            check_values(&running, item, round).await;
            let what =
                format!("{} {}", item["state"].as_str().unwrap(), item["operation"].as_str().unwrap_or("nothing"));
            *operations.entry(what).or_default() += 1;
        }
    }
    println!("{rounds} random clusters: {operations:?}");
    assert!(operations.len() >= 6, "{operations:?}");
}
