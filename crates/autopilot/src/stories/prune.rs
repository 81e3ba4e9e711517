//! Objects that a user does not want any more.

use super::{HOUR, MINUTE, OPTED, PLAIN, SECOND, SERVICE, config_map, on_request, settled, started, unstarted};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{self, Pack};
use crate::testing::requests::Fault;
use change::Effect;
use expect_test::expect;
use protocol::Command;
use serde_json::json;
/// Somebody has asked for `opted` and `lasting`, a second after the HyperConverged was created.
fn asked() -> TestBed {
    let mut bed = started(&["opted", "lasting"]);
    bed.annotate(HCO, "enable-opted=true");
    bed.annotate(HCO, "enable-lasting=true");
    bed.settle();
    bed
}

#[test]
fn an_opt_in_that_is_taken_back_prunes_what_was_created_and_what_is_never_pruned_stays() {
    let mut bed = asked();
    bed.annotate(HCO, "enable-opted-");
    bed.annotate(HCO, "enable-lasting=false");
    expect![[r#"
        notice LeftBehind ConfigMap virt/lasting: not wanted any more, but kept: objects like it are never deleted
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_opt_in_that_is_taken_back_during_a_restart_prunes_as_well() {
    let mut bed = asked();
    bed.annotate(HCO, "enable-opted-");
    bed.restart();
    expect![[r#"
        apply ConfigMap virt/lasting: no change
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_list_that_is_narrowed_prunes_what_it_does_not_name() {
    let mut bed = started(&["plain", "service"]);
    bed.annotate(HCO, "autopilot=plain");
    expect![[r#"
        delete Service virt/service
        notice Pruned Service virt/service: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    assert!(bed.stored(PLAIN).is_some());
    bed.expect_silence();
}

#[test]
fn a_deletion_names_the_uid_and_the_version_it_was_decided_for() {
    let mut bed = asked();
    let before = bed.stored(OPTED).unwrap();
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    let Effect::Delete { uid, resource_version } = &bed.made.last().unwrap().write.effect else { panic!() };
    assert_eq!((uid.as_str(), resource_version.as_str()), (before.uid(), before.version()));
}

#[test]
fn an_object_that_somebody_takes_over_while_its_deletion_is_sent_stays() {
    let mut bed = asked();
    bed.hold_writes(OPTED);
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    bed.annotate(OPTED, "mode=unmanaged");
    bed.release(OPTED);
    expect![[r#"
        delete ConfigMap virt/opted: stale
        notice Retry in 200 ms
        notice UnmanagedMode ConfigMap virt/opted: mode is unmanaged: the object is left alone
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn an_object_of_the_predecessor_is_not_pruned() {
    let mut bed = unstarted(&["opted"]);
    bed.inherit(config_map("opted", &json!({"size": "small"})));
    expect![[r#"
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: it has no origin annotation, so we may not have created it
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_origin_that_somebody_else_wrote_is_no_proof() {
    let mut bed = asked();
    bed.annotate(HCO, "enable-opted-");
    bed.hold_writes(OPTED);
    bed.settle();
    bed.annotate(OPTED, "origin-");
    bed.annotate(OPTED, "origin=created");
    bed.release(OPTED);
    expect![[r#"
        delete ConfigMap virt/opted: stale
        notice Retry in 200 ms
        hand back ConfigMap virt/opted
        notice HandedBack ConfigMap virt/opted: handed back: it is not wanted any more, and somebody else created it; its values stay
    "#]].assert_eq(&bed.advance(SECOND));
    assert!(bed.stored(OPTED).is_some());
    bed.expect_silence();
}

#[test]
fn an_object_that_lost_our_label_is_not_ours_to_prune() {
    let mut bed = asked();
    bed.hold_writes(OPTED);
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    bed.edit("person", OPTED, &json!({"metadata": {"labels": null}}));
    bed.release(OPTED);
    expect![[r#"
        delete ConfigMap virt/opted: stale
        notice Retry in 200 ms
    "#]]
    .assert_eq(&bed.advance(SECOND));
    assert!(bed.stored(OPTED).is_some());
    bed.expect_silence();
}

#[test]
fn a_namespace_is_never_pruned() {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: extra}\n";
    let mut bed = TestBed::of(Pack::default().asset("extra", &on_request("extra"), namespace));
    bed.server.serve("v1", "Namespace", "namespaces", false);
    bed.annotate(HCO, "enable-extra=true");
    expect![[r#"
        create Namespace extra
        notice AssetApplied Namespace extra: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.annotate(HCO, "enable-extra-");
    expect![[r#"
        notice LeftBehind Namespace extra: not wanted any more, but kept: objects like it are never deleted
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn without_prune_it_is_only_reported() {
    let mut bed = asked();
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
fn an_excluded_object_is_not_pruned() {
    let mut bed = asked();
    bed.annotate(HCO, "disabled-resources=ConfigMap/opted");
    expect![[r#"
        notice Excluded ConfigMap virt/opted: excluded by disabled-resources
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate(HCO, "enable-opted-");
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(HCO, "disabled-resources-");
    expect![[r#"
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
}

#[test]
fn an_unmanaged_object_is_not_pruned() {
    let mut bed = asked();
    bed.annotate(OPTED, "mode=unmanaged");
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        notice UnmanagedMode ConfigMap virt/opted: mode is unmanaged: the object is left alone
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_paused_object_is_pruned_when_the_pause_is_over() {
    let mut bed = asked();
    bed.annotate(OPTED, "reconcile-paused=2026-03-01T00:30:00Z");
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        notice Paused ConfigMap virt/opted: paused; remove the annotation reconcile-paused to resume
    "#]]
    .assert_eq(&bed.advance(29 * MINUTE));
    expect![[r#"
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more, without its overrides: platform.kubevirt.io/reconcile-paused: 2026-03-01T00:30:00Z
    "#]].assert_eq(&bed.advance(MINUTE));
    bed.expect_silence();
}

#[test]
fn nothing_is_pruned_while_the_settings_cannot_be_read() {
    let mut bed = asked();
    bed.annotate(HCO, "autopilot=plian");
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        notice Invalid: the annotation autopilot names "plian", which is no feature, group or asset; nothing new is done until it is corrected. Write true, false, or names such as extras; "virtpilot status --all" lists the assets
        notice InvalidConfiguration ConfigMap virt/opted: the annotation autopilot names "plian", which is no feature, group or asset; nothing new is done until it is corrected; write true, false, or names of features, groups or assets
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(HCO, "autopilot-");
    expect![[r#"
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_object_of_another_release_is_not_pruned_without_a_users_act() {
    let mut bed = asked();
    bed.annotate(HCO, "enable-opted-");
    bed.upgrade(|pack| pack.with_template("opted", &pack::config_map("opted", "data: {size: medium}")));
    expect![[r#"
        apply ConfigMap virt/lasting: no change
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_recreated_hyperconverged_prunes_nothing() {
    let mut bed = asked();
    bed.delete(HCO);
    bed.advance(MINUTE);
    bed.create_hco();
    expect![[r#"
        notice LeftBehind ConfigMap virt/lasting: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
    "#]].assert_eq(&bed.settle());
    assert!(bed.server.deletions.iter().all(|deletion| deletion.by == "person"));
    bed.restart();
    expect![[r#"
        notice LeftBehind ConfigMap virt/lasting: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn finalizers_that_delay_a_deletion_are_reported_after_a_minute_and_the_event_comes_when_it_is_gone() {
    let mut bed = asked();
    bed.edit("owner", OPTED, &json!({"metadata": {"finalizers": ["example.com/wait"]}}));
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        delete ConfigMap virt/opted
    "#]]
    .assert_eq(&bed.advance(59 * SECOND));
    expect![[r#"
        notice DeletionStuck ConfigMap virt/opted: deletion waits for the finalizers example.com/wait; check their controllers
    "#]].assert_eq(&bed.advance(2 * SECOND));
    bed.expect_silence();
    bed.edit("owner", OPTED, &json!({"metadata": {"finalizers": null}}));
    expect![[r#"
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn overrides_that_are_lost_with_a_pruned_object_are_reported() {
    let mut bed = asked();
    bed.annotate(OPTED, "ignore-fields=/data/size");
    bed.settle();
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more, without its overrides: platform.kubevirt.io/ignore-fields: /data/size
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_refused_deletion_is_reported_and_tried_again() {
    let mut bed = asked();
    bed.fail_next(OPTED, Fault::Refused(403, "forbidden"));
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        delete ConfigMap virt/opted: refused with 403: forbidden
        notice Retry in 2000 ms
        notice ApplyFailed ConfigMap virt/opted: the API server refused it: forbidden
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    bed.expect_silence();
}

#[test]
fn an_object_that_is_wanted_again_while_it_is_deleted_is_created_again() {
    let mut bed = asked();
    bed.edit("owner", OPTED, &json!({"metadata": {"finalizers": ["example.com/wait"]}}));
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    bed.annotate(HCO, "enable-opted=true");
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.edit("owner", OPTED, &json!({"metadata": {"finalizers": null}}));
    expect![[r#"
        create ConfigMap virt/opted
        notice AssetApplied ConfigMap virt/opted: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_object_that_another_asset_renders_is_not_pruned() {
    let same = pack::config_map("shared", "data: {x: \"1\"}");
    let pack = Pack::default().asset("one", &on_request("one"), &same).asset("two", pack::ALWAYS, &same);
    let mut bed = settled(pack);
    bed.annotate(HCO, "enable-one=true");
    bed.settle();
    bed.annotate(HCO, "enable-one-");
    expect![[r#""#]].assert_eq(&bed.settle());
    assert!(bed.stored("ConfigMap virt/shared").is_some());
    bed.expect_silence();
}

#[test]
fn a_list_that_names_nothing_prunes_nothing() {
    let mut bed = started(&["plain", "service"]);
    bed.annotate(HCO, "autopilot=,");
    expect![[r#"
        notice SwitchedOff
    "#]]
    .assert_eq(&bed.settle());
    assert!(bed.stored(PLAIN).is_some() && bed.stored(SERVICE).is_some());
    bed.expect_silence();
}

#[test]
fn an_opt_in_that_is_neither_true_nor_false_holds_the_object() {
    let mut bed = asked();
    bed.annotate(HCO, "enable-opted=ture");
    expect![[r#"
        notice Invalid: asset opted: annotation `platform.kubevirt.io/enable-opted` is `ture`; write true or false
    "#]]
    .assert_eq(&bed.settle());
    bed.edit("kubectl-edit", OPTED, &json!({"data": {"size": "huge"}}));
    bed.settle();
    bed.expect_silence();
    bed.annotate(HCO, "enable-opted=TRUE");
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.annotate(HCO, "enable-opted=False");
    expect![[r#"
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_opt_in_that_is_neither_true_nor_false_creates_nothing() {
    let mut bed = started(&["opted"]);
    bed.annotate(HCO, "enable-opted=yes");
    expect![[r#"
        notice Invalid: asset opted: annotation `platform.kubevirt.io/enable-opted` is `yes`; write true or false
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_deletion_without_finalizers_is_not_reported_as_stuck() {
    let mut bed = asked();
    bed.edit("owner", OPTED, &json!({"metadata": {"finalizers": ["example.com/wait"]}}));
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    let mut live = bed.stored(OPTED).unwrap().live();
    (live.finalizers, live.resource_version) = (Vec::new(), format!("{}0", live.resource_version));
    bed.report_live(OPTED, live);
    expect![[r#""#]].assert_eq(&bed.advance(5 * MINUTE));
}

#[test]
fn what_a_former_hyperconverged_wanted_stays_whether_or_not_the_operator_ran_when_it_was_recreated() {
    let mut bed = asked();
    bed.delete(HCO);
    bed.advance(MINUTE);
    bed.create_hco();
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.annotate(HCO, "enable-opted-");
    for restarts in [false, true] {
        if restarts {
            bed.restart();
        }
        let lines = bed.settle();
        assert!(lines.contains("LeftBehind ConfigMap virt/opted: not wanted any more, but kept: no user"), "{lines}");
        bed.expect_silence();
    }
    // One that is created for the new HyperConverged is its own.
    bed.delete(OPTED);
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    assert!(bed.stored(OPTED).is_none());
}

#[test]
fn an_object_that_is_created_after_the_autopilot_was_switched_off_is_pruned_later() {
    for fault in [None, Some(Fault::Unanswered)] {
        let mut bed = started(&["plain"]);
        bed.upgrade(|_| Pack::standard().only(&["plain", "service"]));
        let key = bed.key(SERVICE);
        bed.held_writes.insert(key);
        bed.settle();
        // The creation is on its way.
        bed.annotate(HCO, "autopilot=false");
        bed.settle();
        fault.into_iter().for_each(|fault| bed.fail_next(SERVICE, fault));
        bed.held_writes.clear();
        bed.settle();
        assert!(bed.stored(SERVICE).is_some());
        bed.annotate(HCO, "autopilot=plain");
        bed.advance(MINUTE);
        assert!(bed.stored(SERVICE).is_none(), "nobody wants it");
        bed.expect_silence();
    }
}

#[test]
fn an_object_whose_creation_had_no_answer_is_pruned() {
    for off in ["plain", "false"] {
        let mut bed = started(&["plain"]);
        bed.upgrade(|_| Pack::standard().only(&["plain", "service"]));
        bed.fail_next(SERVICE, Fault::Unanswered);
        bed.run_until(|command| matches!(command, Command::Write(write) if write.key.name == "service"));
        bed.silent.insert("Service".into());
        bed.annotate(HCO, &format!("autopilot={off}"));
        bed.advance(SECOND);
        bed.annotate(HCO, "autopilot=plain");
        bed.silent.clear();
        bed.advance(MINUTE);
        assert!(bed.stored(SERVICE).is_none(), "nobody wants it");
    }
}

#[test]
fn the_watch_of_a_kind_is_closed_with_its_last_object() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: virt}\nspec: {clusterIP: None}\n";
    let mut bed = super::settled(Pack::default().asset("s", &super::on_request("s"), service));
    bed.annotate(HCO, "enable-s=true");
    bed.settle();
    let is_watched = |bed: &TestBed| bed.watches.keys().any(|target| target.kind.kind == "Service");
    assert!(is_watched(&bed));
    bed.annotate(HCO, "enable-s-");
    bed.settle();
    assert!(bed.stored("Service virt/s").is_none() && !is_watched(&bed));
}
