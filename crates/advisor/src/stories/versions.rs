//! The HyperConverged is served in another version than the one in which a profile has changed it.

use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{NAMESPACE, RATIO};
use serde_json::{Value, json};
use server_model::serving::Crd;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const NEW: Crd =
    Crd { api_version: "hco.kubevirt.io/v1", kind: "HyperConverged", plural: "hyperconvergeds", namespaced: true };
const OLD: Crd = Crd { api_version: "hco.kubevirt.io/v1beta1", ..NEW };
const OLD_RATIO: &str = "/spec/higherWorkloadDensity/memoryOvercommitPercentage";
const NEW_RATIO: &str = "/spec/virtualization/higherWorkloadDensity/memoryOvercommitPercentage";

/// A cluster whose HyperConverged was changed in the old version, had `before` and is in the new one now.
fn upgraded(before: &Value) -> TestBed {
    let mut bed = TestBed::of(RATIO);
    bed.server.remove_crd(&NEW);
    bed.server.install_crd(&OLD);
    bed.create(&json!({"apiVersion": OLD.api_version, "kind": OLD.kind,
        "metadata": {"name": api::hco::NAME, "namespace": NAMESPACE}, "spec": before}));
    bed.complete();
    let old = bed.server.kind_called(OLD.kind);
    let old = change::Key { kind: old, ..bed.key(HCO) };
    let found = bed.server.get(&old).expect("it exists").object.clone();
    assert_eq!(found.pointer(OLD_RATIO), Some(&json!(150)));
    // What a conversion makes of it.
    bed.server
        .update("conversion", &old, |object| {
            let density = object["spec"]["higherWorkloadDensity"].take();
            object["spec"] = json!({"virtualization": {"higherWorkloadDensity": density}});
        })
        .expect("it can be changed");
    bed.server.serve(NEW.api_version, NEW.kind, NEW.plural, true);
    bed.edit("CustomResourceDefinition hyperconvergeds.hco.kubevirt.io", &json!({"spec": {"v": 1}}));
    bed.run_for(HOUR);
    bed
}

#[test]
fn what_was_changed_in_an_older_version_is_rolled_back_in_the_present_one() {
    let mut bed = upgraded(&json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 110}}));
    bed.complete_with(json!({"rollback": true}));
    assert_eq!((bed.value(HCO, NEW_RATIO), bed.value(HCO, OLD_RATIO)), (json!(110), Value::Null), "{:#}", bed.status());
}

#[test]
fn what_nobody_can_translate_stays_and_the_plan_says_what_to_do() {
    let mut bed = upgraded(&json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 110}}));
    let before = json!({"apiVersion": OLD.api_version, "spec": {"other": 1}}).to_string();
    bed.edit(HCO, &json!({"metadata": {"annotations": {"advisor.kubevirt.io/before": before}}}));
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    let item = bed.item("ratio");
    let message = item["message"].as_str().unwrap_or_default();
    assert_eq!(item["operation"], "Keep", "{item:#}");
    assert!(
        message.contains("has the values of hco.kubevirt.io/v1beta1") && message.contains("set them by hand"),
        "{message}"
    );
    let sent = bed.sent.1;
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("Completed", sent), "{}", bed.lines.concat());
}
