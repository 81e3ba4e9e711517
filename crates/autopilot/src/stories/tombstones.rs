//! Objects that a former release created and none wants any more.

use super::{HOUR, MINUTE, OLD, SECOND, config_map, kernel, labelled, settled};
use crate::notice::{Notice, State};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{self, ALWAYS, Pack};
use crate::testing::requests::Fault;
use expect_test::expect;
use protocol::Command;
use serde_json::json;
/// A tombstone that names a namespace although its object has none.
const MACHINE_CONFIG: &str = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: kernel, namespace: virt}\n";

fn old() -> serde_json::Value {
    config_map("old", &json!({"x": "1"}))
}

/// A pack with one asset and the tombstone of `old`.
fn pack() -> Pack {
    Pack::default().asset("a", ALWAYS, &pack::config_map("a", "")).tombstone("old", &pack::config_map("old", ""))
}

/// A cluster on which the core has not run yet.
fn with_old(change: impl FnOnce(&mut TestBed)) -> TestBed {
    let mut bed = TestBed::of(pack());
    change(&mut bed);
    bed
}

#[test]
fn an_object_of_a_former_release_is_deleted() {
    let mut bed = with_old(|bed| bed.create_as_former_release(old()));
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        delete ConfigMap virt/old
        notice TombstoneDeleted ConfigMap virt/old: deleted: a former release created it
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn without_our_label_it_is_only_reported() {
    let mut bed = with_old(|bed| bed.create("person", &old()));
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice LeftBehind ConfigMap virt/old: not wanted any more, but kept: it does not carry our label
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_object_of_the_predecessor_is_deleted_only_with_an_approval() {
    let mut bed = with_old(|bed| bed.inherit(old()));
    bed.annotate(HCO, "approval=none");
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice LeftBehind ConfigMap virt/old: not wanted any more, but kept: it has no origin annotation, so a person has to decide; run "virtpilot approve sha256:*" to delete it
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    let digest = bed.digest_of_tombstone();
    bed.annotate(HCO, &format!("approved={digest}"));
    expect![[r#"
        delete ConfigMap virt/old
        notice TombstoneDeleted ConfigMap virt/old: deleted: a former release created it
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_approval_names_one_object_and_not_its_successor() {
    let mut bed = with_old(|bed| bed.inherit(old()));
    bed.settle();
    let digest = bed.digest_of_tombstone();
    bed.delete(OLD);
    bed.inherit(old());
    bed.annotate(HCO, &format!("approved={digest}"));
    expect![[r#"
        notice LeftBehind ConfigMap virt/old: not wanted any more, but kept: it has no origin annotation, so a person has to decide; run "virtpilot approve sha256:*" to delete it
    "#]].assert_eq(&bed.advance(HOUR));
    assert!(bed.stored(OLD).is_some());
}

#[test]
fn while_everything_is_off_nothing_is_deleted() {
    let mut bed = with_old(|bed| bed.create_as_former_release(old()));
    bed.annotate(HCO, "autopilot=false");
    expect![[r#"
        notice SwitchedOff
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
    bed.annotate(HCO, "autopilot=true");
    expect![[r#"
        delete ConfigMap virt/old
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice TombstoneDeleted ConfigMap virt/old: deleted: a former release created it
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn what_an_asset_still_wants_is_never_deleted() {
    let pack = Pack::default()
        .asset("old", ALWAYS, &pack::config_map("old", "data: {x: \"2\"}"))
        .tombstone("old", &pack::config_map("old", ""));
    let mut bed = TestBed::of(pack);
    bed.create_as_former_release(old());
    expect![[r#"
        apply ConfigMap virt/old
        notice AssetApplied ConfigMap virt/old: applied
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    bed.expect_silence();
}

#[test]
fn what_an_asset_may_render_once_it_knows_more_is_not_deleted_before() {
    let asking = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: virt, name: '{{ getConfigMapData \"virt\" \"source\" \"name\" }}'}\n";
    let pack = Pack::default().asset("a", ALWAYS, asking).tombstone("old", &pack::config_map("old", ""));
    let mut bed = TestBed::of(pack);
    bed.create_as_former_release(old());
    bed.create("person", &config_map("source", &json!({"name": "new"})));
    bed.run_until(|command| matches!(command, Command::Query { query, .. } if query.to_string().ends_with("source")));
    bed.fail_reads(1);
    expect![[r#"
        notice Invalid: asset a: v1 ConfigMap virt/source cannot be read now
    "#]]
    .assert_eq(&bed.advance(9 * SECOND));
    expect![[r#"
        delete ConfigMap virt/old
        create ConfigMap virt/new
        notice AssetApplied ConfigMap virt/new: applied
        notice TombstoneDeleted ConfigMap virt/old: deleted: a former release created it
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    bed.expect_silence();
}

#[test]
fn a_machine_config_of_a_former_release_waits() {
    let mut bed = TestBed::of(Pack::default().tombstone("kernel", MACHINE_CONFIG));
    bed.create_as_former_release(kernel("quiet"));
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: deleting it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.approve("MachineConfig kernel");
    expect![[r#"
        delete MachineConfig kernel
        notice TombstoneDeleted MachineConfig kernel: deleted: a former release created it
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_excluded_or_unmanaged_object_stays() {
    let mut bed = with_old(|bed| bed.create_as_former_release(old()));
    bed.annotate(HCO, "disabled-resources=ConfigMap/old");
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice Excluded ConfigMap virt/old: excluded by disabled-resources
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate(OLD, "mode=unmanaged");
    bed.annotate(HCO, "disabled-resources-");
    expect![[r#"
        notice UnmanagedMode ConfigMap virt/old: mode is unmanaged: the object is left alone
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn without_prune_a_tombstone_is_only_reported() {
    let mut bed = with_old(|bed| bed.create_as_former_release(old()));
    bed.restart_with(|config| config.prune = false);
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice LeftBehind ConfigMap virt/old: not wanted any more, but kept: the operator runs with --prune=false
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn while_the_settings_cannot_be_read_no_tombstone_is_deleted() {
    let mut bed = with_old(|bed| bed.create_as_former_release(old()));
    bed.annotate(HCO, "autopilot=plian");
    expect![[r#"
        notice Invalid: the annotation autopilot names "plian", which is no feature, group or asset; nothing new is done until it is corrected
        notice InvalidConfiguration ConfigMap virt/old: the annotation autopilot names "plian", which is no feature, group or asset; nothing new is done until it is corrected; write true, false, or names of features, groups or assets
    "#]].assert_eq(&bed.settle());
    bed.annotate(HCO, "autopilot-");
    expect![[r#"
        delete ConfigMap virt/old
        notice TombstoneDeleted ConfigMap virt/old: deleted: a former release created it
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_failed_search_is_repeated() {
    let mut bed = with_old(|bed| bed.create("person", &old()));
    bed.run_until(|command| matches!(command, Command::Search { .. }));
    bed.fail_reads(2);
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice SearchFailed ConfigMap: connection reset
    "#]]
    .assert_eq(&bed.settle());
    expect![[r#"
        notice SearchFailed ConfigMap: connection reset
        notice LeftBehind ConfigMap virt/old: not wanted any more, but kept: it does not carry our label
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    bed.expect_silence();
}

#[test]
fn an_object_with_our_label_that_no_tombstone_names_is_left_alone() {
    let mut bed = settled(pack());
    bed.create("person", &labelled(config_map("other", &json!({}))));
    expect![[r#""#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn a_list_does_not_consent_to_the_deletion_of_a_machine_config() {
    let pack = pack().tombstone("kernel", MACHINE_CONFIG);
    let mut bed = TestBed::of(pack);
    bed.create_as_former_release(kernel("quiet"));
    bed.annotate(HCO, "autopilot=a");
    expect![[r#"
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice ApprovalRequired MachineConfig kernel: approval required: deleting it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_node_is_never_a_tombstone() {
    let mut bed = TestBed::of(Pack::default().tombstone("w0", "apiVersion: v1\nkind: Node\nmetadata: {name: w0}\n"));
    let change = json!({"metadata": {"labels": {api::MANAGED_BY.0: api::MANAGED_BY.1}}});
    bed.edit("person", "Node w0", &change);
    let lines = bed.settle_verbosely();
    assert!(!lines.contains("search") && !lines.contains("LeftBehind"), "{lines}");
    bed.expect_silence();
}

#[test]
fn an_object_that_a_user_does_not_want_needs_a_users_act_although_a_tombstone_names_it() {
    let pack = Pack::standard().only(&["opted"]).tombstone("opted", &pack::config_map("opted", ""));
    let mut bed = TestBed::of(pack);
    bed.create_as_former_release(config_map("opted", &json!({"size": "small"})));
    expect![[r#"
        notice LeftBehind ConfigMap virt/opted: not wanted any more, but kept: no user of this HyperConverged opted out of it; delete it by hand
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn what_an_asset_would_render_on_another_cluster_is_not_deleted() {
    let pack = Pack::standard().only(&["gpu"]).tombstone("gpu", &pack::config_map("gpu", ""));
    let mut bed = TestBed::of(pack);
    bed.create_as_former_release(config_map("gpu", &json!({"driver": "open"})));
    expect![[r#""#]].assert_eq(&bed.advance(HOUR));
    assert!(bed.stored("ConfigMap virt/gpu").is_some());
    bed.expect_silence();
}

#[test]
fn a_deletion_that_fails_is_shown_as_failed() {
    let mut bed = with_old(|bed| bed.create_as_former_release(old()));
    bed.fail_all(OLD, Fault::Refused(403, "forbidden"));
    bed.settle();
    let key = bed.key(OLD);
    let shown = bed.notices.iter().rev().find_map(|notice| match notice {
        Notice::State(of, state) if *of == key => Some(state.clone()),
        _ => None,
    });
    assert_eq!(shown, Some(State::TombstoneFailed));
}

/// The states of an object that were reported for metrics.
fn states(bed: &TestBed, key: &str) -> Vec<String> {
    let key = bed.key(key);
    let states = bed.notices.iter().filter_map(|notice| match notice {
        Notice::State(of, state) if *of == key => Some(format!("{state:?}")),
        _ => None,
    });
    states.collect()
}

#[test]
fn metrics_show_an_absent_tombstone_once_and_a_deleted_one_as_absent() {
    let mut bed = with_old(|_| {});
    bed.settle();
    bed.annotate(HCO, "color=red");
    bed.settle();
    assert_eq!(states(&bed, OLD), ["TombstoneAbsent"]);
    let mut bed = with_old(|bed| bed.create_as_former_release(old()));
    bed.settle();
    assert_eq!(states(&bed, OLD), ["TombstoneAbsent", "Forgotten", "TombstoneAbsent"]);
}

#[test]
fn metrics_show_an_object_that_was_pruned_as_forgotten() {
    let mut bed = super::started(&["opted"]);
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.annotate(HCO, "enable-opted-");
    bed.settle();
    assert_eq!(states(&bed, super::OPTED), ["InSync", "Forgotten"]);
}
