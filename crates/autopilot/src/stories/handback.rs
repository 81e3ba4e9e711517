//! Adopted objects are handed back, never deleted.

use super::{MINUTE, OPTED, config_map, labelled, unstarted};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack;
use expect_test::expect;
use serde_json::json;
/// Somebody created `opted`, and we adopted it.
fn adopted() -> TestBed {
    let mut bed = unstarted(&["opted"]);
    bed.create("person", &config_map("opted", &json!({"size": "huge", "extra": "theirs"})));
    bed.annotate(HCO, "enable-opted=true");
    bed.advance(MINUTE);
    bed
}

#[test]
fn an_adopted_object_is_handed_back_with_its_values() {
    let mut bed = adopted();
    bed.annotate(OPTED, "mode=managed");
    bed.settle();
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        hand back ConfigMap virt/opted
        notice HandedBack ConfigMap virt/opted: handed back: it is not wanted any more, and somebody else created it; its values stay
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.value(OPTED, "/data"), json!({"size": "small", "extra": "theirs"}));
    assert_eq!(bed.value(OPTED, "/metadata/labels"), json!(null));
    assert_eq!(bed.value(OPTED, "/metadata/annotations"), json!({"platform.kubevirt.io/mode": "managed"}));
    bed.expect_silence();
}

#[test]
fn after_a_hand_back_nobody_but_its_owner_changes_it() {
    let mut bed = adopted();
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    bed.edit("person", OPTED, &json!({"data": {"size": "huge"}}));
    bed.restart();
    assert!(!bed.settle().contains("opted"));
    expect![[r#"
        person updated data.extra data.size
    "#]]
    .assert_eq(&bed.owners(OPTED));
    bed.expect_silence();
}

#[test]
fn an_adopted_object_is_handed_back_although_the_hyperconverged_is_younger() {
    let mut bed = unstarted(&["opted"]);
    bed.create("person", &config_map("opted", &json!({"size": "huge"})));
    bed.delete(HCO);
    bed.advance(MINUTE);
    bed.create_hco();
    bed.annotate(HCO, "enable-opted=true");
    bed.advance(MINUTE);
    bed.annotate(HCO, "enable-opted-");
    bed.restart();
    expect![[r#"
        hand back ConfigMap virt/opted
        notice HandedBack ConfigMap virt/opted: handed back: it is not wanted any more, and somebody else created it; its values stay
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_adopted_object_of_another_release_is_not_handed_back_without_a_users_act() {
    let mut bed = adopted();
    bed.annotate(HCO, "enable-opted-");
    bed.upgrade(|pack| pack.with_template("opted", &pack::config_map("opted", "data: {size: medium}")));
    expect![[r#"
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn without_prune_nothing_is_handed_back() {
    let mut bed = adopted();
    bed.restart_with(|config| config.prune = false);
    bed.settle();
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: the operator runs with --prune=false
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_adopted_object_of_a_former_release_is_handed_back() {
    let mut bed = unstarted(&["old"]);
    let mut object = labelled(config_map("old", &json!({"x": "1"})));
    object["metadata"]["annotations"] = json!({"platform.kubevirt.io/origin": "adopted"});
    bed.inherit(object);
    assert!(bed.settle().contains("hand back ConfigMap virt/old\n"));
    assert_eq!(bed.value("ConfigMap virt/old", "/data"), json!({"x": "1"}));
    bed.expect_silence();
}

#[test]
fn an_object_that_is_wanted_again_during_its_handback_is_adopted_again() {
    let mut bed = adopted();
    bed.annotate(HCO, "enable-opted-");
    // The handback is made, and its answer arrives after the next edit.
    let key = bed.key(OPTED);
    bed.held_answers.insert(key);
    let mut lines = bed.settle();
    bed.annotate(HCO, "enable-opted=true");
    lines += &bed.settle();
    bed.held_answers.clear();
    lines += &bed.settle();
    assert!(lines.contains("hand back ConfigMap virt/opted"), "{lines}");
    assert!(lines.contains("Adopted ConfigMap virt/opted"), "{lines}");
    assert_eq!(bed.stored(OPTED).unwrap().annotation(api::annotation::ORIGIN), Some("adopted"));
    bed.expect_silence();
}
