//! What `plan` shows, and that a core which starts then does exactly that.

use super::{KERNEL, PLAIN, SECOND, SERVICE, config_map, kernel, painted, settled_with_kernel, started, unstarted};
use crate::plan::{Item, Operation, Plan, Source, moved};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{self, ALWAYS, Pack};
use crate::testing::requests::Fault;
use expect_test::{Expect, expect};
use serde_json::json;
use std::collections::BTreeSet;

fn line(item: &Item) -> String {
    let operation = item.operation.map_or("?".to_owned(), |operation| operation.to_string());
    let mut text = format!("{:?} {}: {operation}", item.state, item.name());
    if let Some(disruption) = item.disruption_with_cost() {
        text = format!("{text}, {disruption}");
    }
    if item.needs_approval {
        let digest = if item.approval.is_some() { "a digest" } else { "no digest" };
        text = format!("{text}, needs approval ({digest})");
    } else if !item.why.is_empty() {
        text = format!("{text}, {}", item.why);
    }
    match &item.source {
        Source::Server => {}
        Source::Local { why } => text = format!("{text}, local: {why}"),
        Source::None { why: Some(why) } => text = format!("{text}, no diff: {why}"),
        Source::None { why: None } => text = format!("{text}, no diff"),
    }
    let diff = item.diff.iter().map(|difference| format!("\n    {} {difference}", difference.edit.sign()));
    format!("{text}{}\n", diff.collect::<String>())
}

pub(super) fn check(bed: &TestBed, expected: &Expect) -> Plan {
    let plan = bed.plan();
    let lines: String = plan.items.iter().map(line).collect();
    expected.assert_eq(&format!("{lines}{plan}\n"));
    plan
}

/// The objects that are written by a core that starts, as far as that changes them.
pub(super) fn written(bed: &TestBed) -> BTreeSet<String> {
    let mut operator = bed.fork(bed.config.clone());
    operator.refusals = bed.refusals.clone();
    operator.advance(SECOND);
    let is_own = |name: &str| name == api::STATE || name.starts_with("virt-platform-autopilot-backup");
    let moved = operator.made.iter().filter(|made| made.has_moved() && !is_own(&made.write.key.name));
    moved.map(|made| made.write.key.to_string()).collect()
}

/// The objects that a plan says are written at once.
pub(super) fn planned(plan: &Plan) -> BTreeSet<String> {
    let ready = plan.items.iter().filter(|item| item.state == crate::plan::ItemState::Ready);
    ready.map(Item::name).collect()
}

#[test]
fn a_new_cluster() {
    let mut bed = TestBed::new();
    bed.create("person", &config_map("plain", &json!({"level": "9", "theirs": "x"})));
    bed.create_as_former_release(config_map("old", &json!({})));
    bed.inherit(kernel("debug"));
    let before = bed.server.version;
    let plan = check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: take over, restarts one node of pool worker: w0; about 10 min (a guess), needs approval (no digest)
                - .spec.kernelArguments[]: "debug"
                + .spec.kernelArguments[]: "quiet"
            Ready ConfigMap virt/plain: adopt
                ~ .data.level: "9" -> "1"
                + .data.mode: "auto"
            Ready Service virt/service: create
                + .spec.ports: [{"name":"metrics","port":8080}]
                + .spec.selector: {"app":"virt"}
            Ready ConfigMap virt/asking: create
                + .data: {"color":""}
            Ready ConfigMap virt/old: delete, no diff
            Plan: 2 to create, 1 to adopt, 1 to take over, 1 to delete; 1 needs approval.
        "#]],
    );
    assert_eq!(bed.server.version, before);
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn a_settled_cluster_has_only_what_waits() {
    let mut bed = TestBed::settled();
    let plan = check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: create, restarts one node of pool worker: w0; about 10 min (a guess), needs approval (a digest)
                + .metadata.labels.machineconfiguration.openshift.io/role: "worker"
                + .spec: {"kernelArguments":["quiet"],"kernelType":"default"}
            Plan: 1 to create; 1 needs approval (c1b473d2).
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
    bed.approve(KERNEL);
    let plan = check(
        &bed,
        &expect![[r#"
            Ready MachineConfig kernel: create, restarts one node of pool worker: w0; about 10 min (a guess)
                + .metadata.labels.machineconfiguration.openshift.io/role: "worker"
                + .spec: {"kernelArguments":["quiet"],"kernelType":"default"}
            Plan: 1 to create.
        "#]],
    );
    bed.settle();
    assert_eq!(planned(&plan), [KERNEL.to_owned()].into());
    check(
        &bed,
        &expect![[r#"
            Plan: nothing to do; 4 objects are in sync.
        "#]],
    );
}

#[test]
fn drift_is_shown_with_what_is_and_what_would_be() {
    let mut bed = started(&["plain", "service"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9", "theirs": "x"}}));
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change
                ~ .data.level: "9" -> "1"
            Plan: 1 to change.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn what_restarts_nodes_is_shown_with_its_difference_while_it_waits() {
    let mut bed = settled_with_kernel();
    bed.upgrade(|pack| pack.with_template("kernel", &super::kernel_template("nosmt")));
    let plan = check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: change, restarts one node of pool worker: w0; about 10 min (a guess), needs approval (a digest)
                - .spec.kernelArguments[]: "quiet"
                + .spec.kernelArguments[]: "nosmt"
            Plan: 1 to change; 1 needs approval (2f68889c).
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn what_an_apply_under_our_name_changed_is_found_by_the_dry_run() {
    let mut bed = started(&["plain"]);
    bed.run_for(SECOND);
    let mut ours = bed.stored(PLAIN).unwrap().object.clone();
    ours["metadata"] = json!({"name": "plain", "namespace": "virt", "labels": ours["metadata"]["labels"], "annotations": ours["metadata"]["annotations"]});
    ours["data"]["level"] = json!("9");
    bed.restart();
    bed.server.now = change::now::later(bed.server.now, SECOND);
    bed.apply_by_force(api::FIELD_MANAGER, &ours);
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change
                ~ .data.level: "9" -> "1"
            Plan: 1 to change.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn another_release_that_wants_the_same_only_records_it() {
    let pack = Pack::default().asset("a", ALWAYS, &pack::config_map("a", "data: {x: \"1\"}"));
    let mut bed = super::settled(pack);
    bed.upgrade(|pack| pack.with_template("a", &format!("{}\n# a comment", pack::config_map("a", "data: {x: \"1\"}"))));
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/a: record
            Plan: nothing to do.
        "#]],
    );
    assert_eq!(plan.items[0].operation, Some(Operation::Record));
    assert!(!plan.items[0].is_pending());
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn an_ignored_field_is_given_up_and_what_else_changes_is_shown() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "ignore-fields=/data/level");
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: record
            Plan: nothing to do.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
    bed.upgrade(|pack| pack.with_template("plain", &pack::config_map("plain", "data: {level: \"1\", more: \"2\"}")));
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change
                - .data.mode: "auto"
                + .data.more: "2"
            Plan: 1 to change.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn what_is_not_wanted_any_more_is_deleted_handed_back_or_held() {
    let mut bed = TestBed::settled();
    bed.annotate(HCO, "enable-opted=true");
    bed.annotate(HCO, "enable-lasting=true");
    bed.settle();
    bed.annotate(HCO, "autopilot=kernel");
    let plan = check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: create, restarts one node of pool worker: w0; about 10 min (a guess), needs approval (a digest)
                + .metadata.labels.machineconfiguration.openshift.io/role: "worker"
                + .spec: {"kernelArguments":["quiet"],"kernelType":"default"}
            Ready ConfigMap virt/plain: delete, no diff
            Ready Service virt/service: delete, no diff
            Ready ConfigMap virt/opted: delete, no diff
            Held ConfigMap virt/lasting: ?, not wanted any more, but kept: objects like it are never deleted, no diff
            Plan: 1 to create, 3 to delete; 1 needs approval (c1b473d2); 1 held.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn held_refused_and_broken_objects_are_shown_with_their_reason() {
    let mut bed = TestBed::of(painted().asset("broken", ALWAYS, "{{ .HCO.Object.spec.nothing.more }}"));
    bed.paint("invalid");
    check(
        &bed,
        &expect![[r#"
            Failed ConfigMap virt/painted: create, the API server refused it: data.color: Invalid value, no diff
            Failed asset broken: ?, active/broken.yaml.tpl:1: the map has no key "nothing", no diff
            Plan: nothing to do; 2 failed.
        "#]],
    );
    let mut bed = started(&["plain", "service"]);
    bed.annotate(PLAIN, "mode=unmanaged");
    bed.annotate(SERVICE, r#"patch=[{"op": "replace", "path": "/spec/selector", "value": {}}]"#);
    check(
        &bed,
        &expect![[r#"
            Held ConfigMap virt/plain: ?, mode is unmanaged: the object is left alone, no diff
            Held Service virt/service: ?, patch refused, the last good state is kept: operation 1: /spec/selector may not be patched in a Service: it redirects traffic of managed pods to other pods, no diff
            Plan: nothing to do; 2 held.
        "#]],
    );
    bed.annotate(PLAIN, "mode-");
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "invalid"}]"#);
    let plan = check(
        &bed,
        &expect![[r#"
            Held ConfigMap virt/plain: ?, patch refused, the last good state is kept: data.level: Invalid value, no diff
            Held Service virt/service: ?, patch refused, the last good state is kept: operation 1: /spec/selector may not be patched in a Service: it redirects traffic of managed pods to other pods, no diff
            Plan: nothing to do; 2 held.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn without_the_right_to_patch_the_difference_is_made_here() {
    let mut bed = unstarted(&["plain", "service", "kernel"]);
    bed.create("person", &config_map("plain", &json!({"level": "9", "theirs": "x"})));
    for object in [PLAIN, SERVICE, KERNEL] {
        bed.fail_all(object, Fault::Refused(403, r#"x is forbidden: User "person" cannot patch resource "x""#));
    }
    check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: create, restarts one node of pool worker: w0; about 10 min (a guess), needs approval (no digest), local: you may not patch MachineConfig
                + .metadata.labels.machineconfiguration.openshift.io/role: "worker"
                + .spec: {"kernelArguments":["quiet"],"kernelType":"default"}
            Ready ConfigMap virt/plain: adopt, local: you may not patch ConfigMap
                ~ .data.level: "9" -> "1"
                + .data.mode: "auto"
            Ready Service virt/service: create, local: you may not patch Service
                + .spec.ports: [{"name":"metrics","port":8080}]
                + .spec.selector: {"app":"virt"}
            Plan: 2 to create, 1 to adopt; 1 needs approval.
        "#]],
    );
    let mut bed = settled_with_kernel();
    for object in [PLAIN, KERNEL] {
        bed.fail_all(object, Fault::Refused(403, r#"x is forbidden: User "person" cannot patch resource "x""#));
    }
    check(
        &bed,
        &expect![[r#"
            Plan: nothing to do; 2 objects are in sync.
        "#]],
    );
    bed.fail_all(PLAIN, Fault::Refused(400, r#"admission webhook "w" does not support dry run"#));
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change, local: admission webhook "w" does not support dry run
                ~ .data.level: "9" -> "1"
            Plan: 1 to change.
        "#]],
    );
}

#[test]
fn many_deletions_share_one_digest() {
    let mut pack = Pack::default();
    for number in 0..7 {
        let name = format!("m{number}");
        pack = pack.asset(&name, ALWAYS, &pack::config_map(&name, ""));
    }
    pack = pack.asset("stays", ALWAYS, &pack::config_map("stays", ""));
    let mut bed = super::settled(pack);
    bed.annotate(HCO, "autopilot=stays");
    let plan = bed.plan();
    let digests: BTreeSet<_> = plan.items.iter().map(|item| item.approval).collect();
    assert_eq!((plan.items.len(), digests.len()), (7, 1));
    assert!(plan.items.iter().all(|item| item.operation == Some(Operation::Delete) && item.needs_approval));
    assert!(plan.to_string().starts_with("Plan: 7 to delete; 7 need approval ("), "{plan}");
}

#[test]
fn a_plan_says_the_same_as_long_as_nothing_moves() {
    let mut bed = settled_with_kernel();
    bed.upgrade(|pack| pack.with_template("kernel", &super::kernel_template("nosmt")));
    bed.settle();
    let saved = bed.plan();
    bed.run_for(SECOND * 100);
    assert_eq!(moved(&saved, &bed.plan()), []);
    let text = serde_json::to_string(&saved).unwrap();
    let read: Plan = serde_json::from_str(&text).unwrap();
    assert_eq!(moved(&read, &bed.plan()), [], "{text}");
}

#[test]
fn what_moved_since_a_plan_is_said() {
    let mut bed = settled_with_kernel();
    bed.upgrade(|pack| pack.with_template("kernel", &super::kernel_template("nosmt")));
    bed.settle();
    let saved = bed.plan();
    let said = |bed: &TestBed| moved(&saved, &bed.plan()).iter().map(|moved| format!("{moved}\n")).collect::<String>();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["debug"]}}));
    expect![[r#"
        MachineConfig kernel: planned: - .spec.kernelArguments[]: "quiet", and now: - .spec.kernelArguments[]: "debug"
    "#]]
    .assert_eq(&said(&bed));
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        MachineConfig kernel: planned: - .spec.kernelArguments[]: "quiet", and now: - .spec.kernelArguments[]: "debug"
        ConfigMap virt/plain: not planned, and now: change ~ .data.level: "9" -> "1"
    "#]]
    .assert_eq(&said(&bed));
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["nosmt"]}}));
    bed.settle();
    expect![[r#"
        MachineConfig kernel: nothing waits for an approval any more (planned: change - .spec.kernelArguments[]: "quiet"; + .spec.kernelArguments[]: "nosmt")
    "#]].assert_eq(&said(&bed));
    bed.delete(KERNEL);
    bed.settle();
    expect![[r#"
        MachineConfig kernel: planned: change - .spec.kernelArguments[]: "quiet"; + .spec.kernelArguments[]: "nosmt", and now: create
    "#]]
    .assert_eq(&said(&bed));
}
