//! What restarts nodes is not undone or changed unasked, however it came about.

use super::{KERNEL, MINUTE, SECOND, kernel, settled};
use crate::testing::bed::HCO;
use crate::testing::pack::Pack;
use serde_json::{Value, json};

#[test]
fn empty_annotations_of_an_asset_ask_for_no_approval_every_day() {
    let mut object = kernel("quiet");
    object["metadata"]["annotations"] = Value::Null;
    let mut bed = settled(Pack::default().asset("kernel", "install: always, reconcile_order: 1", &object.to_string()));
    bed.approve(KERNEL);
    bed.advance(SECOND);
    bed.annotate(HCO, "approved-");
    bed.advance(MINUTE);
    bed.verify();
    let lines = bed.advance(MINUTE);
    assert_eq!(lines, "");
}

#[test]
fn a_key_with_a_dot_is_not_part_of_an_ignored_field() {
    let template = |extra: Value| {
        let mut object = kernel("quiet");
        object["spec"]["extra"] = extra;
        object.to_string()
    };
    let keys = "install: always, reconcile_order: 1";
    let before = template(json!({"x": "1", "x.y": "2", "z": "3"}));
    let mut bed = settled(Pack::default().asset("kernel", keys, &before));
    bed.approve(KERNEL);
    bed.advance(SECOND);
    bed.annotate(HCO, "approved-");
    bed.annotate(KERNEL, "ignore-fields=/spec/extra/x");
    bed.advance(MINUTE);
    assert_eq!(bed.value(KERNEL, "/spec/extra/x.y"), json!("2"));
    bed.upgrade(|pack| pack.with_template("kernel", &template(json!({"x": "1", "z": "3"}))));
    let lines = bed.advance(MINUTE);
    assert_eq!(bed.value(KERNEL, "/spec/extra/x.y"), json!("2"), "it waits for an approval: {lines}");
}

#[test]
fn an_unseen_change_is_not_undone_together_with_a_seen_one_without_approval() {
    let mut bed = super::settled_with_kernel();
    let mut object = bed.stored(KERNEL).unwrap().object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
    }
    object["spec"]["kernelArguments"] = json!(["theirs"]);
    bed.apply_by_force(api::FIELD_MANAGER, &object);
    let lines = bed.advance(super::HOUR * 12);
    assert_eq!(lines, "");
    // Nodes run it for hours. Then somebody changes another field.
    bed.edit("kubectl-edit", KERNEL, &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "x"}}}));
    let lines = bed.advance(MINUTE);
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["theirs"]), "{lines}");
}
