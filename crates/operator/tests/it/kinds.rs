//! Kinds that are installed, change their versions or are removed while the operator runs.

use crate::crds::{bare, change, crd, install, remove};
use crate::operator::{NAMESPACE, Running, annotate, edit, eventually, quiet};
use kube::api::{Api, DynamicObject, PostParams};
use playground::audit::Kind;
use playground::{Playground, Scene, deployment};
use serde_json::{Value, json};

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/kinds");
const ROLE: &str = include_str!("../packs/kinds.role.yaml");
const HCO: &str = "hyperconvergeds.hco.kubevirt.io";

async fn running() -> Running {
    let running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    exists(&running, "kinds-steady").await;
    running
}

async fn exists(running: &Running, name: &str) -> DynamicObject {
    eventually(&format!("{name} exists"), async || running.config_maps().get_opt(name).await.unwrap()).await
}

async fn mode_is(running: &Running, mode: &str) {
    eventually(&format!("the mode is {mode}"), async || {
        (exists(running, "kinds-chooser").await.data["data"]["mode"] == mode).then_some(())
    })
    .await;
}

fn widgets(running: &Running) -> Api<DynamicObject> {
    deployment::objects(&running.playground, "kinds.example/v1", "Widget", Some(NAMESPACE))
}

fn widget(modes: &[&str]) -> Value {
    crd("widgets", "kinds.example", "Widget", "Namespaced", modes)
}

async fn widget_exists(running: &Running) -> DynamicObject {
    eventually("the widget exists", async || widgets(running).get_opt("kinds-widget").await.ok()?).await
}

/// How often the operator ran discovery.
fn discoveries(running: &Running, since: playground::audit::Mark) -> usize {
    let own = running.own(&running.audit().since(since).unwrap());
    own.filter(|request| request.resource == "/apis").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_are_installed_and_removed_without_a_restart_of_the_operator() {
    let mut running = running().await;
    let playground = &running.playground;
    mode_is(&running, "old").await;
    assert!(running.config_maps().get_opt("kinds-gated").await.unwrap().is_none());
    // A kind is installed and its object applied; then its schema changes, which a template looks up.
    install(playground, &widget(&["Old"])).await;
    let first = widget_exists(&running).await.metadata.uid;
    mode_is(&running, "old").await;
    let more = json!([{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/mode/enum/-", "value": "New"}]);
    change(playground, "widgets.kinds.example", &more).await;
    mode_is(&running, "new").await;
    // A gate CRD, and a kind that only the rendered object names.
    install(playground, &crd("gates", "kinds.example", "Gate", "Cluster", &["Old"])).await;
    exists(&running, "kinds-gated").await;
    install(playground, &crd("tolds", "told.example", "Told", "Cluster", &["Old"])).await;
    let rendered = deployment::objects(playground, "told.example/v1", "Told", None);
    eventually("the object of the rendered kind exists", async || rendered.get_opt("kinds-told").await.ok()?).await;
    // Its drift is corrected.
    edit(&widgets(&running), "kinds-widget", json!({"spec": {"mode": "New"}})).await;
    eventually("the drift is corrected", async || {
        (widget_exists(&running).await.data["spec"]["mode"] == "Old").then_some(())
    })
    .await;
    // Removing and reinstalling the kind with all its objects does not count as a deletion of the object.
    eventually("the correction is reported", async || running.events("DriftCorrected").await.pop()).await;
    for _ in 0..3 {
        remove(playground, "widgets.kinds.example").await;
        mode_is(&running, "old").await;
        install(playground, &widget(&["Old", "New"])).await;
        assert_ne!(widget_exists(&running).await.metadata.uid, first);
        mode_is(&running, "new").await;
    }
    quiet(&running).await;
    assert_eq!(running.events("DriftCorrected").await.len(), 1, "only the edit was drift");
    for reason in ["CRDMissing", "CRDDiscovered", "ApplyFailed", "ThrashingDetected"] {
        assert_eq!(running.events(reason).await, Vec::<String>::new(), "{reason}");
    }
    let budgets = running.config_maps().get_opt("virt-platform-autopilot-state").await.unwrap();
    assert!(budgets.is_none(), "no recreation budget was spent: {budgets:?}");
    // A CRD that no asset needs causes no discovery and no other request.
    let mark = running.audit().mark().unwrap();
    install(playground, &crd("others", "other.example", "Other", "Cluster", &["Old"])).await;
    quiet(&running).await;
    let own = running.own(&running.audit().since(mark).unwrap());
    assert_eq!(own.count() - own.of(Kind::Watch).count(), 0, "{:?}", own.table());
    assert!(running.is_alive(), "the operator did not restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_kind_is_reported_once_if_its_asset_was_requested() {
    let mut running = running().await;
    quiet(&running).await;
    assert_eq!(running.events("CRDMissing").await, Vec::<String>::new(), "no asset was requested");
    running.annotate_hco("kinds-gadget", Some("true")).await;
    let note = eventually("the missing kind is reported", async || running.events("CRDMissing").await.pop()).await;
    let expected = "kinds-gadget cannot be applied: the cluster does not serve Gadget of kinds.example/v1; install the operator that provides the API group kinds.example";
    assert_eq!(note, expected);
    // It is reported once, and so is the CRD when it is installed.
    running.annotate_hco("other", Some("true")).await;
    install(&running.playground, &crd("gadgets", "kinds.example", "Gadget", "Cluster", &["Old"])).await;
    let gadgets = deployment::objects(&running.playground, "kinds.example/v1", "Gadget", None);
    eventually("the gadget exists", async || gadgets.get_opt("kinds-gadget").await.ok()?).await;
    let note = eventually("the installed CRD is reported", async || running.events("CRDDiscovered").await.pop()).await;
    assert_eq!(note, "the cluster serves Gadget of kinds.example/v1 now, which kinds-gadget needs");
    assert_eq!(running.events("CRDMissing").await.len(), 1);
    // The value true requests every asset.
    running.annotate_hco("autopilot", Some("true")).await;
    eventually("the other missing kinds are reported", async || {
        let notes = running.events("CRDMissing").await;
        let is_reported = |text: &str| notes.iter().any(|note| note.contains(text));
        (is_reported("the CRD gates.kinds.example") && is_reported("Widget of") && is_reported("Told of")).then_some(())
    })
    .await;
    assert!(running.is_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_served_is_ignored_until_it_is_served_again() {
    let running = running().await;
    install(&running.playground, &widget(&["Old", "New"])).await;
    widget_exists(&running).await;
    quiet(&running).await;
    let served = |number: usize, value: bool| json!({"op": "replace", "path": format!("/spec/versions/{number}/served"), "value": value});
    change(&running.playground, "widgets.kinds.example", &json!([served(0, false), served(1, true)])).await;
    let newer = deployment::objects(&running.playground, "kinds.example/v2", "Widget", Some(NAMESPACE));
    eventually("only v2 is served", async || {
        let is_gone = widgets(&running).get("kinds-widget").await.is_err();
        (is_gone && newer.get("kinds-widget").await.is_ok()).then_some(())
    })
    .await;
    quiet(&running).await;
    // An object is not corrected while our version of its kind is not served.
    edit(&newer, "kinds-widget", json!({"spec": {"mode": "New"}})).await;
    let mark = running.audit().mark().unwrap();
    quiet(&running).await;
    assert_eq!(discoveries(&running, mark), 0);
    assert_eq!(newer.get("kinds-widget").await.unwrap().data["spec"]["mode"], "New");
    change(&running.playground, "widgets.kinds.example", &json!([served(0, true), served(1, false)])).await;
    eventually("the drift is corrected again", async || {
        let widget = widgets(&running).get("kinds-widget").await.ok()?;
        (widget.data["spec"]["mode"] == "Old").then_some(())
    })
    .await;
}

fn hco(playground: &Playground, version: &str) -> Api<DynamicObject> {
    deployment::objects(playground, &format!("hco.kubevirt.io/{version}"), "HyperConverged", Some(NAMESPACE))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_waits_for_the_hyperconverged_crd() {
    let scene = Scene::preset("small").unwrap();
    let mut running = Running::on(scene, ROLE, &["--assets-dir", PACK]).await;
    let crd = bare(&running.playground, HCO).await;
    let object = hco(&running.playground, "v1").get("kubevirt-hyperconverged").await.unwrap();
    remove(&running.playground, HCO).await;
    let port = running.restart_with_probes();
    eventually("/readyz names what the operator waits for", async || {
        crate::operator::readiness(port)
            .filter(|text| text.contains("503") && text.contains("HyperConverged, which the API server does not serve"))
    })
    .await;
    let mark = running.audit().mark().unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(discoveries(&running, mark), 0, "it watches for the CRD instead of polling discovery");
    install(&running.playground, &crd).await;
    let mut recreated = DynamicObject { metadata: Default::default(), ..object };
    recreated.metadata.name = Some("kubevirt-hyperconverged".into());
    eventually("the HyperConverged is created", async || {
        hco(&running.playground, "v1").create(&PostParams::default(), &recreated).await.ok()
    })
    .await;
    exists(&running, "kinds-steady").await;
    eventually("the operator is ready although kinds are missing", async || {
        crate::operator::readiness(port).filter(|text| text.contains("200"))
    })
    .await;
    assert!(running.is_alive());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_version_of_hyperconverged_is_followed() {
    let running = running().await;
    let mut both = bare(&running.playground, HCO).await;
    let versions = both["spec"]["versions"].as_array_mut().unwrap();
    let mut older = versions[0].clone();
    older["name"] = json!("v1beta1");
    older["storage"] = json!(false);
    let patch = json!([
        {"op": "add", "path": "/spec/versions/-", "value": older},
        {"op": "replace", "path": "/spec/versions/0/served", "value": false},
    ]);
    change(&running.playground, HCO, &patch).await;
    let older = hco(&running.playground, "v1beta1");
    eventually("v1beta1 is served", async || older.get("kubevirt-hyperconverged").await.ok()).await;
    install(&running.playground, &crd("gadgets", "kinds.example", "Gadget", "Cluster", &["Old"])).await;
    eventually("v1 is not served", async || hco(&running.playground, "v1").get("x").await.err()).await;
    annotate(&older, "kubevirt-hyperconverged", "kinds-gadget", Some("true")).await;
    let gadgets = deployment::objects(&running.playground, "kinds.example/v1", "Gadget", None);
    eventually("the annotation on the older version is honoured", async || {
        gadgets.get_opt("kinds-gadget").await.ok()?
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_serves_only_v1beta1_of_hyperconverged_is_managed() {
    let scene = Scene { hco: "v1beta1".into(), ..Scene::preset("small").unwrap() };
    let mut running = Running::on(scene, ROLE, &["--assets-dir", PACK]).await;
    running.restart();
    exists(&running, "kinds-steady").await;
    annotate(&hco(&running.playground, "v1beta1"), "kubevirt-hyperconverged", "autopilot", Some("false")).await;
    quiet(&running).await;
    running.config_maps().delete("kinds-steady", &Default::default()).await.unwrap();
    quiet(&running).await;
    assert!(running.config_maps().get_opt("kinds-steady").await.unwrap().is_none(), "the autopilot is off");
}
