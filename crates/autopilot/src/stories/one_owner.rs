//! Every object has one owner: what a VirtPlatformConfig governs is the advisor's, and the rest is the autopilot's.

use super::{HOUR, KERNEL, OPTED, PLAIN, SECOND, config_map, kernel, labelled, plain, settled};
use crate::state_word::StateWord;
use crate::testing::acts::HANDED_OVER;
use crate::testing::bed::{CONFIGS, HCO, TestBed};
use crate::testing::pack::Pack;
use expect_test::expect;
use serde_json::{Value, json};

/// The assets of the profile `density`, of which one is switched off, and another one.
fn pack() -> Pack {
    let pack = Pack::standard().only(&["plain", "service", "opted", "kernel"]);
    pack.profile("density", &["plain", "opted", "kernel"])
}

/// A cluster on which the core has not run yet, with the CRD of VirtPlatformConfig.
fn unstarted() -> TestBed {
    let mut bed = TestBed::of(pack());
    bed.install_crd(&CONFIGS);
    bed
}

/// A cluster with all objects as they should be, and the CRD.
fn started() -> TestBed {
    let mut bed = unstarted();
    bed.advance(SECOND);
    bed.approve(KERNEL);
    bed.advance(HOUR);
    bed.annotate(HCO, "approved-");
    bed.settle();
    bed
}

/// The same after somebody has created the VirtPlatformConfig.
fn governed() -> TestBed {
    let mut bed = started();
    bed.govern("density", "DryRun");
    bed.settle();
    bed
}

/// What the asset `plain` wants, with another level.
fn complete(level: &str) -> Value {
    config_map("plain", &json!({"level": level, "mode": "auto"}))
}

/// The state of each asset, as an observer sees it.
fn words(bed: &TestBed) -> Vec<(String, StateWord)> {
    bed.observe().into_iter().map(|line| (line.asset, StateWord::of(&line.state))).collect()
}

#[test]
fn without_the_crd_nothing_is_asked_and_with_it_there_is_one_watch() {
    let asked = |mut bed: TestBed| {
        let lines = bed.advance_verbosely(SECOND) + &bed.advance_verbosely(HOUR);
        let is_request = |line: &&str| !line.starts_with("notice") && !line.starts_with("waiting");
        let about = lines.lines().filter(is_request).filter(|line| line.contains("VirtPlatformConfig"));
        about.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(asked(TestBed::of(pack())), [""; 0]);
    let watch = "watch advisor.kubevirt.io/v1alpha1 VirtPlatformConfig (Part)";
    assert_eq!(asked(unstarted()), [watch]);
    let mut bed = unstarted();
    bed.govern("density", "Apply");
    assert_eq!(asked(bed), [watch]);
}

#[test]
fn a_governed_object_is_left_as_it_is_and_says_who_governs_it() {
    let mut bed = started();
    bed.govern("density", "DryRun");
    expect![[r#"
        notice Governed MachineConfig kernel: governed by VirtPlatformConfig density; to give it to the autopilot, set its spec.action to Ignore and its spec.handOver to true
        notice Governed ConfigMap virt/plain: governed by VirtPlatformConfig density; to give it to the autopilot, set its spec.action to Ignore and its spec.handOver to true
    "#]].assert_eq(&bed.settle());
    let moves = bed.moves();
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}, "metadata": {"labels": {api::MANAGED_BY.0: null}}}));
    bed.delete(KERNEL);
    bed.annotate(HCO, "enable-opted=true");
    expect![[r#"
        notice Governed ConfigMap virt/opted: governed by VirtPlatformConfig density; to give it to the autopilot, set its spec.action to Ignore and its spec.handOver to true
    "#]].assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.moves(), moves);
    assert!(bed.stored(OPTED).is_none() && bed.stored(KERNEL).is_none());
    bed.expect_silence();
}

#[test]
fn status_plan_and_explain_say_who_governs_an_object() {
    use StateWord::{Governed, InSync};
    let bed = governed();
    let expected = [("plain", Governed), ("service", InSync), ("opted", Governed), ("kernel", Governed)];
    assert_eq!(words(&bed), expected.map(|(asset, word)| (asset.to_owned(), word)));
    let held: Vec<String> =
        bed.plan().items.iter().map(|item| format!("{} {:?} {:?}", item.asset, item.operation, item.state)).collect();
    assert_eq!(held, ["kernel None Held", "plain None Held"]);
    for explanation in bed.explain().into_iter().filter(|explanation| explanation.word == Governed) {
        let deciding =
            explanation.gates.iter().find(|row| row.decides).map(|row| (row.gate.name(), row.value.as_str()));
        assert_eq!(deciding, Some(("governed by", "density")), "{explanation:#?}");
    }
}

#[test]
fn nothing_is_written_before_it_is_known_what_the_advisor_governs() {
    let mut bed = unstarted();
    bed.govern("density", "Apply");
    bed.annotate(HCO, "approval=none");
    let lines = bed.advance(HOUR);
    let written: Vec<&str> = lines.lines().filter(|line| !line.starts_with("notice")).collect();
    assert_eq!(written, ["create Service virt/service"]);
    bed.expect_silence();
}

#[test]
fn what_the_advisor_never_wrote_is_given_back_without_a_request() {
    for is_deleted in [false, true] {
        let mut bed = governed();
        match is_deleted {
            false => bed.govern("density", HANDED_OVER),
            true => bed.delete("VirtPlatformConfig density"),
        }
        let lines = bed.advance_verbosely(10 * SECOND);
        let requests = lines.lines().filter(|line| !line.starts_with("notice State")).collect::<Vec<_>>();
        assert_eq!(requests, [""; 0]);
        assert!(words(&bed).iter().all(|(_, word)| [StateWord::InSync, StateWord::Disabled].contains(word)));
        bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
        assert!(bed.settle().contains("notice DriftCorrected ConfigMap virt/plain"), "it is kept again");
    }
}

#[test]
fn what_is_left_alone_the_autopilot_does_not_write_until_it_is_handed_over() {
    let mut bed = governed();
    bed.advise(complete("7"));
    bed.advance(HOUR);
    let moves = bed.moves();
    bed.govern("density", "Ignore");
    bed.delete(KERNEL);
    bed.advance(HOUR);
    bed.restart();
    bed.advance(HOUR);
    assert_eq!((bed.moves(), bed.value(PLAIN, "/data/level")), (moves, json!("7")));
    assert_eq!(words(&bed)[0], ("plain".to_owned(), StateWord::Governed));
    bed.govern("density", HANDED_OVER);
    let lines = bed.advance(HOUR);
    assert!(lines.contains("ConfigMap virt/plain"), "it is said: {lines}");
    assert_eq!(bed.value(PLAIN, "/data/level"), json!("1"));
}

#[test]
fn a_profile_that_is_restored_from_a_backup_keeps_the_autopilot_away_although_it_was_made_to_tell_of_it() {
    let mut bed = started();
    bed.create(
        "velero-server",
        &json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "density", "annotations": {"advisor.kubevirt.io/auto-created": "true"}},
            "spec": {"profile": "density", "action": "Ignore"}}),
    );
    bed.advance(HOUR);
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    bed.advance(HOUR);
    assert_eq!(bed.value(PLAIN, "/data/level"), json!("9"), "somebody may have asked for that before");
}

#[test]
fn a_profile_that_is_only_told_of_keeps_nothing_from_the_autopilot_until_somebody_edits_it() {
    let mut bed = started();
    bed.create(
        "virt-advisor-operator",
        &json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "density", "annotations": {"advisor.kubevirt.io/auto-created": "true"}},
            "spec": {"profile": "density", "action": "Ignore"}}),
    );
    bed.advance(HOUR);
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    bed.advance(HOUR);
    assert_eq!(bed.value(PLAIN, "/data/level"), json!("1"));
    for action in ["DryRun", "Ignore"] {
        bed.govern("density", action);
        bed.settle();
        bed.edit("person", PLAIN, &json!({"data": {"level": action}}));
        bed.advance(HOUR);
        assert_eq!(bed.value(PLAIN, "/data/level"), json!(action), "a person has edited it");
    }
}

#[test]
fn without_its_crd_nothing_is_governed() {
    let mut bed = governed();
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    assert_eq!(bed.settle(), "");
    bed.remove_crd(&CONFIGS);
    bed.advance(HOUR);
    assert_eq!(bed.value(PLAIN, "/data/level"), json!("1"));
    bed.expect_silence();
}

#[test]
fn without_a_hyperconverged_a_new_governor_is_still_honoured() {
    let mut bed = started();
    bed.delete(HCO);
    bed.settle();
    bed.govern("density", "DryRun");
    bed.settle();
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    assert_eq!(bed.advance(HOUR), "");
    assert_eq!(bed.value(PLAIN, "/data/level"), json!("9"));
}

#[test]
fn an_object_of_the_advisor_that_is_as_wanted_is_read_once_and_never_written() {
    let mut bed = unstarted();
    bed.govern("density", "Apply");
    bed.advise(complete("1"));
    bed.advance(SECOND);
    bed.govern("density", HANDED_OVER);
    let lines = bed.advance_verbosely(SECOND);
    assert_eq!(lines.matches("inspect ConfigMap virt/plain").count(), 1, "{lines}");
    assert!(lines.contains("notice TakenOverAsIs ConfigMap virt/plain"), "{lines}");
    let is_written = |bed: &TestBed| bed.made.iter().any(|made| made.write.key.name == "plain");
    bed.edit("controller", PLAIN, &json!({"metadata": {"labels": {"theirs": "1"}}}));
    let lines = bed.advance_verbosely(HOUR);
    assert!(!lines.contains("inspect") && !is_written(&bed), "what others write beside it is not read: {lines}");
    assert!(words(&bed).contains(&("plain".to_owned(), StateWord::InSync)));
    bed.restart();
    bed.advance(HOUR);
    assert!(!is_written(&bed) && bed.value(PLAIN, "/metadata/labels").get(api::MANAGED_BY.0).is_none());
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.level ("9" -> "1")
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn what_the_advisor_changed_of_ours_is_taken_back_once_it_differs() {
    let mut bed = governed();
    bed.advise(complete("7"));
    assert_eq!(bed.advance(HOUR), "");
    bed.govern("density", HANDED_OVER);
    expect![[r#"
        apply ConfigMap virt/plain
        notice TakenOver ConfigMap virt/plain: taken over from the advisor, which governs it no more. Changed: .data.level ("7" -> "1")
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
    // It still applies the other fields, which is no reason to leave them to it.
    bed.upgrade(|pack| pack.with_template("plain", &complete("2").to_string().replace("auto", "manual")));
    bed.advance(HOUR);
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "2", "mode": "manual"}));
    bed.expect_silence();
}

#[test]
fn what_the_advisor_changed_of_ours_stays_if_it_is_wanted_now() {
    let mut bed = governed();
    bed.advise(complete("7"));
    bed.settle();
    bed.upgrade(|pack| pack.with_template("plain", &complete("7").to_string()));
    bed.advance(HOUR);
    let moves = bed.moves();
    bed.govern("density", HANDED_OVER);
    expect![[r#"
        notice TakenOverAsIs ConfigMap virt/plain
        apply MachineConfig kernel: no change
    "#]]
    .assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.moves(), moves);
    for change in [json!({"data": {"level": "9"}}), json!({"data": {"mode": "off"}})] {
        bed.edit("person", PLAIN, &change);
        bed.advance(HOUR);
        assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "7", "mode": "auto"}), "{change}");
    }
}

#[test]
fn what_restarts_nodes_is_taken_back_after_an_approval() {
    let mut bed = governed();
    bed.advise(kernel("debug"));
    bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), 2, "by the advisor");
    bed.govern("density", HANDED_OVER);
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.advance(HOUR));
    bed.approve(KERNEL);
    bed.advance(HOUR);
    assert_eq!((bed.value(KERNEL, "/spec/kernelArguments"), bed.restarts_of("w0")), (json!(["quiet"]), 3));
    bed.expect_silence();
}

#[test]
fn an_opt_out_removes_nothing_that_is_governed_or_that_the_advisor_wrote() {
    let opted = |bed: &mut TestBed| {
        bed.annotate(HCO, "enable-opted=true");
        bed.settle();
        bed.govern("density", "DryRun");
        bed.annotate(HCO, "enable-opted-");
        bed.advance(HOUR);
        assert!(bed.stored(OPTED).is_some());
    };
    let mut bed = started();
    opted(&mut bed);
    bed.govern("density", HANDED_OVER);
    expect![[r#"
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.advance(HOUR));
    let mut bed = started();
    opted(&mut bed);
    bed.advise(config_map("opted", &json!({"size": "huge"})));
    bed.settle();
    bed.govern("density", HANDED_OVER);
    expect![[r#"
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: the advisor applied some of it, too; delete it by hand
    "#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn an_object_that_a_former_process_opted_out_of_is_not_removed_while_it_is_governed() {
    let mut bed = started();
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.govern("density", "Apply");
    bed.annotate(HCO, "autopilot=service");
    bed.restart();
    bed.advance(HOUR);
    assert!(bed.stored(OPTED).is_some() && bed.stored(PLAIN).is_some());
    bed.expect_silence();
}

#[test]
fn an_object_of_another_asset_is_not_written_if_a_governed_asset_renders_it_too() {
    let twin = crate::testing::pack::config_map("plain", "data: {level: \"3\"}");
    let conditions =
        "install: opt-in, conditions: [{type: annotation, key: platform.kubevirt.io/enable-twin, value: \"true\"}]";
    let mut bed = settled(pack().asset("twin", conditions, &twin).profile("density", &["twin"]));
    bed.install_crd(&CONFIGS);
    bed.govern("density", "Apply");
    bed.advance(SECOND);
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    bed.advance(HOUR);
    assert_eq!(bed.value(PLAIN, "/data/level"), json!("9"));
}

#[test]
fn the_fields_that_the_advisor_governs_of_an_object_of_ours_are_not_fought_over() {
    let density = crate::testing::pack::config_map("plain", "data: {level: \"7\"}");
    let mut bed =
        settled(Pack::standard().only(&["plain"]).profile_asset("density", &density).profile("density", &["density"]));
    bed.install_crd(&CONFIGS);
    bed.govern("density", "Apply");
    bed.advance(SECOND);
    bed.advise(plain("7"));
    expect![[r#"
        notice OwnedByAnother ConfigMap virt/plain: virt-advisor-operator applies .data.level; these fields are left to it
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.govern("density", HANDED_OVER);
    expect![[r#"
        apply ConfigMap virt/plain
        notice TakenOver ConfigMap virt/plain: taken over from the advisor, which governs it no more. Changed: .data.level ("7" -> "1")
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn an_unknown_profile_governs_nothing() {
    let mut bed = started();
    bed.govern("another", "Apply");
    bed.edit("person", PLAIN, &labelled(plain("9")));
    assert!(bed.advance(HOUR).contains("notice DriftCorrected ConfigMap virt/plain"));
}
