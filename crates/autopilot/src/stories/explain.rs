//! Why an asset or an object is in its state.

use super::{PLAIN, started};
use crate::core::explain::Explanation;
use crate::evaluate::gates::GateKind;
use crate::testing::bed::{HCO, TestBed};
use serde_json::json;

fn explain(bed: &TestBed, asset: &str) -> Explanation {
    bed.explain().into_iter().find(|explanation| explanation.line.asset == asset).unwrap()
}

fn deciding(explanation: &Explanation) -> Option<(GateKind, &str)> {
    explanation.gates.iter().find(|row| row.decides).map(|row| (row.gate, row.value.as_str()))
}

#[test]
fn an_asset_that_does_not_apply_is_explained_with_the_object_that_it_would_have() {
    let bed = started(&["plain", "gpu"]);
    let gpu = explain(&bed, "gpu");
    assert_eq!(gpu.line.key.as_ref().unwrap().to_string(), "ConfigMap virt/gpu");
    assert_eq!(deciding(&gpu), Some((GateKind::Fact, "no node has a GPU")));
    assert_eq!(deciding(&explain(&bed, "plain")), None);
}

#[test]
fn what_the_user_wrote_on_an_object_decides_and_secrets_are_redacted() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "reconcile-paused=true");
    bed.settle();
    assert_eq!(deciding(&explain(&bed, "plain")), Some((GateKind::Pause, "true")));
    bed.annotate(PLAIN, "reconcile-paused-");
    bed.annotate(PLAIN, r#"patch=[{"op": "add", "path": "/data/password", "value": "hunter2"}]"#);
    bed.settle();
    let patched = explain(&bed, "plain");
    assert_eq!(deciding(&patched), None, "{patched:#?}");
    assert!(patched.overrides.len() == 1 && !format!("{patched:?}").contains("hunter2"), "{patched:#?}");
}

#[test]
fn owners_of_fields_are_named() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"extra": "1"}}));
    bed.settle();
    let plain = explain(&bed, "plain");
    let editor = plain.owners.iter().find(|owner| owner.manager == "kubectl-edit").unwrap();
    assert!(!editor.applies && editor.fields == [".data.extra"], "{editor:?}");
}

#[test]
fn an_object_that_is_to_be_removed_says_what_it_waits_for() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.restart_with(|config| config.prune = false);
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    let opted = explain(&bed, "opted");
    assert_eq!(deciding(&opted).map(|(gate, _)| gate), Some(GateKind::Removal), "{opted:#?}");
}
