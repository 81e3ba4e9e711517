//! A scenario of the advisor: plan, approval, drift, another approval, and a rollback; its end state must not depend on faults.

use crate::crds;
use crate::fixture::{Fixture, Scenario, create};
use crate::operator::{NAMESPACE, edit};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use playground::deployment;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The scenario.
pub(crate) const ADVICE: Scenario = Scenario {
    pack: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/advice"),
    role: include_str!("../packs/advice.role.yaml"),
    objects: &[
        ("v1", "ConfigMap", Some(NAMESPACE), "advice-first"),
        ("v1", "ConfigMap", Some(NAMESPACE), "advice-second"),
    ],
    arguments: &["--products=advisor"],
};

/// The only profile of its pack.
pub(crate) const PROFILE: &str = "advice";

/// The CRD for the profile of the pack.
fn crd() -> Value {
    let folder = Path::new(ADVICE.pack);
    let mut files = BTreeMap::new();
    for part in ["active", "profiles"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{part}/{}", path.file_name().unwrap().to_string_lossy());
            files.insert(name, std::fs::read(path).unwrap());
        }
    }
    let catalog = catalog::Catalog::load(catalog::Files::new(files)).unwrap_or_else(|faults| panic!("{faults:?}"));
    catalog::profile::crd(&catalog.profiles)
}

pub(crate) fn profiles(fixture: &Fixture) -> Api<DynamicObject> {
    deployment::objects(&fixture.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None)
}

/// Installs the kind, once.
pub(crate) async fn prepare(fixture: &Fixture) {
    let name = "virtplatformconfigs.advisor.kubevirt.io";
    if crds::crds(&fixture.playground).get_opt(name).await.unwrap().is_none() {
        crds::install(&fixture.playground, &crd()).await;
        fixture.until("the kind is served", async || profiles(fixture).list(&Default::default()).await.ok()).await;
    }
}

/// Asks for something, as a person does with kubectl apply.
pub(crate) async fn ask(fixture: &Fixture, mut spec: Value) {
    spec["profile"] = json!(PROFILE);
    let object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": PROFILE}, "spec": spec});
    profiles(fixture).patch(PROFILE, &PatchParams::apply("person").force(), &Patch::Apply(&object)).await.unwrap();
}

/// Waits for a phase of the present spec; returns the digest of the plan.
pub(crate) async fn phase(fixture: &Fixture, phase: &str) -> String {
    fixture
        .until(&format!("the phase is {phase}"), async || {
            let object = profiles(fixture).get_opt(PROFILE).await.ok()??;
            let status = &object.data["status"];
            let is_current = status["observedGeneration"].as_i64() == object.metadata.generation;
            (is_current && status["phase"] == phase).then(|| status["planDigest"].as_str().unwrap_or("").to_owned())
        })
        .await
}

/// Deletes the object of the profile.
pub(crate) async fn withdraw(fixture: &Fixture) {
    let _ = profiles(fixture).delete(PROFILE, &DeleteParams::default()).await;
    fixture
        .until("the object is gone", async || profiles(fixture).get_opt(PROFILE).await.ok()?.is_none().then_some(()))
        .await;
}

/// Runs the scenario on a reset cluster; returns the end state, or the expected one as soon as it is reached.
pub(crate) async fn run(fixture: &Fixture, expected: Option<&Value>) -> Value {
    prepare(fixture).await;
    fixture.reset().await;
    withdraw(fixture).await;
    let maps = fixture.objects("ConfigMap");
    create(&maps, "advice-first", json!({"data": {"value": "theirs", "other": "stays"}})).await;
    fixture.start_operator();
    ask(fixture, json!({"action": "DryRun"})).await;
    let digest = phase(fixture, "ReviewRequired").await;
    ask(fixture, json!({"action": "Apply", "approvedPlan": digest})).await;
    phase(fixture, "Completed").await;
    fixture.becomes(&maps, "advice-first", "/data/value", json!("wanted")).await;
    // Drift is shown, and corrected when a person says so.
    edit(&maps, "advice-second", json!({"data": {"value": "edited"}})).await;
    let digest = phase(fixture, "Drifted").await;
    ask(fixture, json!({"action": "Apply", "approvedPlan": digest})).await;
    phase(fixture, "Completed").await;
    fixture.becomes(&maps, "advice-second", "/data/value", json!("wanted")).await;
    // What was there before comes back, and what was created goes.
    ask(fixture, json!({"action": "DryRun", "rollback": true})).await;
    let digest = phase(fixture, "ReviewRequired").await;
    ask(fixture, json!({"action": "Apply", "rollback": true, "approvedPlan": digest})).await;
    phase(fixture, "Completed").await;
    fixture.becomes(&maps, "advice-first", "/data/value", json!("theirs")).await;
    fixture.settled(expected).await
}
