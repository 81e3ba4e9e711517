//! The hostile and benign annotations of `change` on a real API server.

use crate::operator::{NAMESPACE, Running, edit, eventually, eventually_within, quiet};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use playground::audit::Kind;
use playground::deployment;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/scene");
const ROLE: &str = include_str!("../packs/scene.role.yaml");
const HOSTILE: &str = include_str!("../../../change/tests-data/hostile.yaml");
const BENIGN: &str = include_str!("../../../change/tests-data/benign.yaml");
const PREFIX: &str = "platform.kubevirt.io/";
const LABEL: &str = "platform.kubevirt.io/managed-by";
/// An object has a budget of ten corrections; after fewer rounds than that its budget is reset.
const ROUNDS_PER_BUDGET: usize = 6;

/// The objects of the pack, by kind.
const OBJECTS: [(&str, &str, Option<&str>, &str); 6] = [
    ("Service", "v1", Some(NAMESPACE), "scene-service"),
    ("ConfigMap", "v1", Some(NAMESPACE), "scene-settings"),
    ("PrometheusRule", "monitoring.coreos.com/v1", Some(NAMESPACE), "scene-rules"),
    ("DaemonSet", "apps/v1", Some(NAMESPACE), "scene-workload"),
    ("MachineConfig", "machineconfiguration.openshift.io/v1", None, "99-worker-scene"),
    ("HyperConverged", "hco.kubevirt.io/v1", Some(NAMESPACE), "kubevirt-hyperconverged"),
];

#[derive(Deserialize)]
struct Hostile {
    name: String,
    on: String,
    key: String,
    value: Option<String>,
    #[serde(default)]
    pieces: Vec<Piece>,
    #[serde(default)]
    with: BTreeMap<String, String>,
    outcome: String,
    #[serde(default)]
    unit: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Times { text: String, times: usize },
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Benign {
    name: String,
    on: String,
    patch: Option<String>,
    ignore_fields: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    gone: Vec<String>,
    #[serde(default)]
    unit: bool,
}

impl Hostile {
    fn annotations(&self) -> BTreeMap<String, String> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Times { text, times } => text.repeat(*times),
        });
        let value = self.value.clone().unwrap_or_else(|| pieces.collect());
        let mut all = self.with.clone();
        all.insert(self.key.clone(), value);
        all
    }
}

/// One of the pack's objects.
struct Subject {
    kind: &'static str,
    name: &'static str,
    api: Api<DynamicObject>,
    /// Its content without overrides.
    bare: Value,
}

impl Subject {
    async fn all(running: &Running) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for (kind, api_version, namespace, name) in OBJECTS {
            let api = deployment::objects(&running.playground, api_version, kind, namespace);
            eventually(&format!("{name} is managed"), async || {
                let object = api.get_opt(name).await.unwrap()?;
                object.metadata.labels?.get(LABEL).map(|_| ())
            })
            .await;
            let bare = plain(&api, name).await;
            subjects.push(Subject { kind, name, api, bare });
        }
        subjects
    }

    /// Sets or removes annotations with our prefix; returns false if the server refuses them, as it does beyond 256 KiB.
    async fn annotate(&self, annotations: &BTreeMap<String, Option<String>>) -> bool {
        let annotations: BTreeMap<String, &Option<String>> =
            annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), value)).collect();
        let patch = json!({"metadata": {"annotations": annotations}});
        let params = PatchParams { field_manager: Some("person".into()), ..PatchParams::default() };
        self.api.patch_metadata(self.name, &params, &Patch::Merge(&patch)).await.is_ok()
    }

    async fn drift(&self) {
        edit(&self.api, self.name, json!({"metadata": {"labels": {LABEL: "somebody"}}})).await;
    }

    async fn is_corrected(&self) -> Option<()> {
        let labels = self.api.get_metadata(self.name).await.unwrap().metadata.labels?;
        (labels.get(LABEL).map(String::as_str) == Some("virt-platform-autopilot")).then_some(())
    }

    async fn is_bare(&self) -> Option<()> {
        (plain(&self.api, self.name).await == self.bare).then_some(())
    }
}

/// The content of an object without fields that the server changes and without annotations with our prefix.
async fn plain(api: &Api<DynamicObject>, name: &str) -> Value {
    let mut value = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
    let metadata = value["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| !["resourceVersion", "generation", "managedFields"].contains(&key.as_str()));
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.starts_with(PREFIX) && key != "deprecated.daemonset.template.generation");
    }
    metadata.retain(|_, value| value.as_object().is_none_or(|fields| !fields.is_empty()));
    value.as_object_mut().unwrap().remove("status");
    value
}

fn some(annotations: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    annotations.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
}

fn none<'a>(keys: impl Iterator<Item = &'a String>) -> BTreeMap<String, Option<String>> {
    keys.map(|key| (key.clone(), None)).collect()
}

async fn start() -> Running {
    let running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    running.annotate_hco("approval", Some("none")).await;
    running.annotate_hco("autopilot", Some("true")).await;
    running
}

/// A list of exclusions that cannot be read holds every object, because each may be excluded: nothing else is gained by it.
async fn try_exclusions(running: &Running, subjects: &[Subject], cases: &[&Hostile]) {
    let hco = subjects.iter().find(|subject| subject.kind == "HyperConverged").unwrap();
    let next_event = async |reason: &str, before: usize, what: &str| {
        eventually(what, async || (running.events(reason).await.len() > before).then_some(())).await;
    };
    for (subject, case) in subjects.iter().cycle().zip(cases) {
        let (invalid, drifts) =
            (running.events("InvalidConfiguration").await.len(), running.events("DriftDetected").await.len());
        assert!(hco.annotate(&some(&case.annotations())).await, "{}", case.name);
        next_event("InvalidConfiguration", invalid, &format!("{} is reported", case.name)).await;
        subject.drift().await;
        next_event("DriftDetected", drifts, &format!("{}: drift is held", case.name)).await;
        assert_eq!(subject.is_corrected().await, None, "{}", case.name);
        assert!(hco.annotate(&none(case.annotations().keys())).await);
        for subject in subjects {
            eventually(&format!("{} is as before {}", subject.name, case.name), async || subject.is_bare().await).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_annotations_gain_nothing_and_drift_is_still_corrected() {
    let mut running = start().await;
    let subjects = Subject::all(&running).await;
    // The memory of ordinary work after a restart is the baseline.
    running.restart();
    let mut before = 0.0_f64;
    for team in ["one", "two", "three"] {
        for subject in &subjects {
            let patch = format!(r#"[{{"op": "add", "path": "/metadata/labels/team", "value": "{team}"}}]"#);
            subject.annotate(&BTreeMap::from([("patch".to_owned(), Some(patch))])).await;
            subject.drift().await;
        }
        for subject in &subjects {
            eventually("ordinary drift is corrected", async || subject.is_corrected().await).await;
            subject.annotate(&BTreeMap::from([("patch".to_owned(), None)])).await;
            eventually("the ordinary override is removed", async || subject.is_bare().await).await;
            before = before.max(running.memory());
        }
    }
    quiet(&running).await;
    let begin = running.audit().mark().unwrap();
    let cases: Vec<Hostile> = serde_saphyr::from_str(HOSTILE).unwrap();
    let mut pending: BTreeMap<&str, Vec<&Hostile>> = BTreeMap::new();
    let (exclusions, others): (Vec<&Hostile>, Vec<&Hostile>) =
        cases.iter().filter(|case| !case.unit).partition(|case| case.key == "disabled-resources");
    for case in others {
        pending.entry(case.on.as_str()).or_default().push(case);
    }
    let (mut tried, mut most, mut round) = (0, before, 0);
    // One case per object at a time: a case on one object must not block another object.
    while pending.values().any(|cases| !cases.is_empty()) {
        let mut now: Vec<(&Subject, &Hostile)> = Vec::new();
        for subject in &subjects {
            if let Some(case) = pending.get_mut(subject.kind).and_then(Vec::pop)
                && subject.annotate(&some(&case.annotations())).await
            {
                now.push((subject, case));
            }
        }
        for (subject, case) in &now {
            // An object that a case holds is not corrected.
            if case.outcome != "held" {
                subject.drift().await;
            }
        }
        for (subject, case) in &now {
            let what = format!("{} on {} ({})", case.name, subject.name, case.outcome);
            if case.outcome != "held" {
                eventually_within(Duration::from_secs(20), &format!("{what}: drift is corrected"), async || {
                    subject.is_corrected().await
                })
                .await;
            }
            let after = plain(&subject.api, subject.name).await;
            for protected in ["/kind", "/apiVersion", "/metadata/name", "/metadata/namespace", "/metadata/uid"] {
                assert_eq!(after.pointer(protected), subject.bare.pointer(protected), "{what}");
            }
            for never in ["ownerReferences", "finalizers", "generateName", "deletionTimestamp"] {
                assert_eq!(after["metadata"].get(never), None, "{what}");
            }
            if case.outcome == "refused" {
                assert_eq!(after, subject.bare, "{what}");
            }
            tried += 1;
        }
        let memory = running.memory();
        if memory > most {
            let names: Vec<&str> = now.iter().map(|(_, case)| case.name.as_str()).collect();
            println!("memory {memory:.1} MB with {}", names.join(", "));
            most = memory;
        }
        for (subject, case) in &now {
            assert!(subject.annotate(&none(case.annotations().keys())).await);
        }
        for (subject, case) in &now {
            let what = format!("after {} the overrides of {} are removed", case.name, subject.name);
            eventually(&what, async || subject.is_bare().await).await;
        }
        round += 1;
        if round % ROUNDS_PER_BUDGET == 0 {
            // A running operator remembers the budget.
            running.stop();
            for subject in &subjects {
                subject.annotate(&BTreeMap::from([("budget".to_owned(), None)])).await;
            }
            let mark = running.audit().mark().unwrap();
            running.restart();
            // A case that suspends everything must not come before the operator knows what is wanted. A start is one write per object.
            eventually("the operator has started", async || {
                let own = running.own(&running.audit().since(mark).unwrap());
                (own.of(Kind::Write).count() > OBJECTS.len()).then_some(())
            })
            .await;
        }
    }
    try_exclusions(&running, &subjects, &exclusions).await;
    tried += exclusions.len();
    println!("{tried} hostile annotations in {round} rounds; memory {before:.1} MB, at most {most:.1} MB");
    assert!(tried >= 80, "{tried}");
    assert!(most - before <= 4.0, "memory grew from {before:.1} to {most:.1} MB");
    // Only objects of the pack were written.
    let own = running.own(&running.audit().since(begin).unwrap()).of(Kind::Write);
    let written: BTreeSet<&str> = own.0.iter().map(|request| request.name.as_str()).collect();
    let known: BTreeSet<&str> = OBJECTS.iter().map(|object| object.3).chain(["scene-adopted"]).collect();
    assert!(written.is_subset(&known), "{written:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn benign_annotations_are_honoured_exactly() {
    let running = start().await;
    let subjects = Subject::all(&running).await;
    let cases: Vec<Benign> = serde_saphyr::from_str(BENIGN).unwrap();
    let mut tried = 0;
    for case in cases.iter().filter(|case| !case.unit) {
        let subject = subjects.iter().find(|subject| subject.kind == case.on).unwrap();
        let mut wanted = subject.bare.clone();
        for (pointer, value) in &case.set {
            put(&mut wanted, pointer, value.clone());
        }
        let is_ignored = |pointer: &String| case.ignore_fields.as_ref().is_some_and(|ignored| covers(ignored, pointer));
        for pointer in case.gone.iter().filter(|pointer| !is_ignored(pointer)) {
            remove(&mut wanted, pointer);
        }
        let overrides = [("patch", &case.patch), ("ignore-fields", &case.ignore_fields)];
        let overrides: BTreeMap<String, String> =
            overrides.iter().filter_map(|(key, value)| Some(((*key).to_owned(), (*value).clone()?))).collect();
        let mark = running.audit().mark().unwrap();
        assert!(subject.annotate(&some(&overrides)).await, "{}", case.name);
        // Every override causes a write, if only of the annotation with the last good value.
        eventually(&format!("{} is processed", case.name), async || {
            (running.own(&running.audit().since(mark).unwrap()).of(Kind::Write).count() > 0).then_some(())
        })
        .await;
        // Fields that the server adds are not compared.
        let begun = Instant::now();
        while !missing(&wanted, &plain(&subject.api, subject.name).await, "").is_empty()
            && begun.elapsed() < Duration::from_secs(10)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let live = plain(&subject.api, subject.name).await;
        assert_eq!(missing(&wanted, &live, ""), Vec::<String>::new(), "{}", case.name);
        for pointer in case.gone.iter().filter(|pointer| !is_ignored(pointer)) {
            assert_eq!(live.pointer(pointer), None, "{}", case.name);
        }
        for pointer in case.gone.iter().filter(|pointer| is_ignored(pointer)) {
            let live = serde_json::to_value(subject.api.get(subject.name).await.unwrap()).unwrap();
            assert_eq!(live.pointer(pointer), subject.bare.pointer(pointer), "{}: the value stays", case.name);
        }
        assert!(subject.annotate(&none(overrides.keys())).await);
        eventually(&format!("the overrides of {} are removed", case.name), async || subject.is_bare().await).await;
        tried += 1;
    }
    println!("{tried} benign annotations");
    assert!(tried >= 40, "{tried}");
}

/// The wanted fields that the live object does not have; lists of different lengths are compared as a whole.
fn missing(wanted: &Value, live: &Value, path: &str) -> Vec<String> {
    match (wanted, live) {
        (Value::Object(fields), Value::Object(found)) => fields
            .iter()
            .flat_map(|(key, value)| missing(value, found.get(key).unwrap_or(&Value::Null), &format!("{path}/{key}")))
            .collect(),
        (Value::Array(items), Value::Array(found)) if items.len() == found.len() => {
            items.iter().zip(found).flat_map(|(item, found)| missing(item, found, &format!("{path}[]"))).collect()
        }
        (wanted, live) if wanted != live => vec![format!("{path} is {live} and not {wanted}")],
        _ => Vec::new(),
    }
}

fn covers(ignored: &str, pointer: &str) -> bool {
    ignored.split(',').map(str::trim).any(|field| {
        pointer == field || pointer.starts_with(&format!("{field}/")) || field.starts_with(&format!("{pointer}/"))
    })
}

/// Sets the value at a pointer and creates missing parents.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut target = object;
    for step in pointer.trim_start_matches('/').split('/') {
        let step = step.replace("~1", "/").replace("~0", "~");
        target = match step.parse::<usize>() {
            Ok(index) if target.is_array() => &mut target[index],
            _ => &mut target[step],
        };
    }
    *target = value;
}

fn remove(object: &mut Value, pointer: &str) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let last = last.replace("~1", "/").replace("~0", "~");
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&last);
        }
        Some(Value::Array(items)) => {
            items.remove(last.parse().unwrap());
        }
        _ => {}
    }
}
