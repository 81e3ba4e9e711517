//! The differences that `plan` shows: of documents, of what restarts nodes, and of what only records something.

use super::plan::{check, planned, written};
use super::restarts_by_content::{OURS, release_to, running, with_files, with_units};
use super::{
    HOUR, KERNEL, PLAIN, SECOND, config_map, kernel_template, on_request, settled, settled_with_kernel, started,
    unstarted,
};
use crate::plan::{Operation, moved};
use crate::stories::documents::{self, SHARED, THEIRS};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{self, ALWAYS, Pack};
use crate::testing::requests::Fault;
use crate::testing::serving::Crd;
use expect_test::expect;
use serde_json::json;

const CANNOT_PATCH: Fault = Fault::Refused(403, r#"x is forbidden: User "person" cannot patch resource "x""#);

#[test]
fn the_keys_of_a_document_that_would_be_set_are_shown_without_their_values() {
    let mut bed = TestBed::of(documents::pack());
    bed.create("kubectl-create", &documents::shared(THEIRS));
    bed.advance(SECOND * 10);
    bed.restart();
    bed.advance(SECOND * 10);
    check(
        &bed,
        &expect![[r#"
            Plan: nothing to do; 1 object is in sync.
        "#]],
    );
    documents::write(&mut bed, THEIRS);
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/shared: change, no diff
                ~ nodeExporter.ksmd in /data/config.yaml: (redacted)
            Plan: 1 to change.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn a_document_is_shown_also_if_something_is_recorded_before() {
    let mut bed = TestBed::of(documents::pack());
    bed.create("kubectl-create", &documents::shared(THEIRS));
    bed.advance(SECOND * 10);
    check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/shared: record
            Plan: nothing to do.
        "#]],
    );
    documents::write(&mut bed, THEIRS);
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/shared: change, no diff
                ~ nodeExporter.ksmd in /data/config.yaml: (redacted)
            Plan: 1 to change.
        "#]],
    );
    assert_eq!(planned(&plan), [SHARED.to_owned()].into());
}

#[test]
fn an_object_with_a_document_is_shown_with_what_else_changes() {
    let data = "data:\n  size: small\n  config.yaml: |\n\
        {{ mergeOverwrite (getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml) \
        (dict \"nodeExporter\" (dict \"ksmd\" true)) | toYaml | indent 4 }}";
    let mut bed = TestBed::of(Pack::default().asset("monitoring", ALWAYS, &pack::config_map("shared", data)));
    bed.create("kubectl-create", &documents::shared(THEIRS));
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/shared: adopt
                + .data.size: "small"
            Plan: 1 to adopt.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
    bed.advance(SECOND * 10);
    bed.edit("kubectl-edit", SHARED, &json!({"data": {"size": "large"}}));
    check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/shared: change
                ~ .data.size: "large" -> "small"
            Plan: 1 to change.
        "#]],
    );
}

#[test]
fn what_is_not_wanted_any_more_is_shown_also_without_the_server() {
    let mut bed = started(&["plain"]);
    bed.fail_all(PLAIN, CANNOT_PATCH);
    bed.upgrade(|pack| pack.with_template("plain", &pack::config_map("plain", "data: {level: \"1\"}")));
    check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change, local: you may not patch ConfigMap
                - .data.mode
            Plan: 1 to change.
        "#]],
    );
}

#[test]
fn a_deletion_that_waits_for_an_approval_says_which_nodes_restart() {
    let pack = Pack::default().asset("kernel", &on_request("kernel"), &kernel_template("quiet"));
    let mut bed = settled(pack);
    bed.annotate(HCO, "enable-kernel=true");
    bed.settle();
    bed.approve(KERNEL);
    bed.advance(HOUR);
    bed.annotate(HCO, "enable-kernel=false");
    bed.annotate(HCO, "approved-");
    check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: delete, restarts one node of pool worker: w0; about 7 min, needs approval (a digest), no diff
            Plan: 1 to delete; 1 needs approval (1b6a8ad5).
        "#]],
    );
    bed.annotate(HCO, "maintenance-window=Mon 02:00-03:00 UTC");
    bed.annotate(HCO, "approval=none");
    check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: delete, restarts one node of pool worker: w0; about 7 min, it restarts one node of pool worker: w0; it waits for the next maintenance window, which opens Mon 2026-03-02 02:00 UTC, no diff
            Plan: 1 to delete; 1 waiting.
        "#]],
    );
}

#[test]
fn an_object_of_the_predecessor_with_an_ignored_field_is_taken_over() {
    let mut bed = unstarted(&["plain"]);
    let mut object = config_map("plain", &json!({"level": "9", "mode": "off"}));
    object["metadata"]["annotations"][api::annotation::IGNORE_FIELDS] = json!("/data/level");
    bed.inherit(object);
    let plan = check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: take over
                ~ .data.mode: "off" -> "auto"
            Plan: 1 to take over.
        "#]],
    );
    assert_eq!(planned(&plan), written(&bed));
}

#[test]
fn an_ignored_field_does_not_hide_a_change_that_restarts_nodes() {
    let mut bed = settled_with_kernel();
    bed.annotate(HCO, "approval=none");
    bed.settle();
    bed.upgrade(|pack| pack.with_template("kernel", &kernel_template("nosmt")));
    bed.annotate(KERNEL, "ignore-fields=/spec/kernelType");
    check(
        &bed,
        &expect![[r#"
            Ready MachineConfig kernel: change, restarts one node of pool worker: w0; about 10 min (a guess)
                - .spec.kernelArguments[]: "quiet"
                + .spec.kernelArguments[]: "nosmt"
            Plan: 1 to change.
        "#]],
    );
    let before = bed.restarts_of("w0");
    bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), before + 1);
}

#[test]
fn units_in_another_order_restart_nodes_although_no_unit_differs() {
    let units =
        |names: &[&str]| with_units(&names.iter().map(|name| json!({"name": name, "contents": "[Unit]"})).collect());
    let mut bed = running(&units(&["a.service", "b.service"]), &[]);
    release_to(&mut bed, &units(&["b.service", "a.service"]));
    let plan = bed.plan();
    let item = &plan.items[0];
    assert_eq!((item.operation, item.diff.len()), (Some(Operation::Change), 0), "{item:?}");
    assert!(item.restarts.is_some() && item.is_pending(), "{item:?}");
}

#[test]
fn what_changes_nothing_that_nodes_run_is_recorded_and_restarts_nothing() {
    let mut bed = settled_with_kernel();
    bed.annotate(KERNEL, "ignore-fields=/spec/kernelType");
    check(
        &bed,
        &expect![[r#"
            Ready MachineConfig kernel: record
            Plan: nothing to do; 1 object is in sync.
        "#]],
    );
}

const PROFILE: &str = "PerformanceProfile p";

/// A cluster with an object that does not say which nodes it is for.
fn with_profile() -> TestBed {
    let crd = Crd {
        api_version: "performance.openshift.io/v2",
        kind: "PerformanceProfile",
        plural: "performanceprofiles",
        namespaced: false,
    };
    let object = json!({"apiVersion": crd.api_version, "kind": crd.kind, "metadata": {"name": "p"},
        "spec": {"cpu": "1", "numa": "2"}});
    let mut bed = TestBed::of(Pack::default().asset("p", ALWAYS, &object.to_string()));
    bed.install_crd(&crd);
    bed.advance(SECOND);
    bed
}

#[test]
fn the_same_holds_for_an_object_that_does_not_say_which_nodes_it_is_for() {
    let mut bed = with_profile();
    check(
        &bed,
        &expect![[r#"
            Waiting PerformanceProfile p: create, restarts the nodes it selects, which may be all of the cluster, needs approval (a digest)
                + .spec: {"cpu":"1","numa":"2"}
            Plan: 1 to create; 1 needs approval (8519b35e).
        "#]],
    );
    bed.approve(PROFILE);
    bed.advance(SECOND);
    bed.annotate(PROFILE, "ignore-fields=/spec/numa");
    check(
        &bed,
        &expect![[r#"
            Ready PerformanceProfile p: record
            Plan: nothing to do.
        "#]],
    );
}

#[test]
fn what_the_server_only_shows_otherwise_than_it_was_written_waits_as_a_record() {
    let mut bed = with_profile();
    bed.approve(PROFILE);
    bed.advance(SECOND * 10);
    bed.annotate(HCO, "approved-");
    bed.server.shown = Some(|object| {
        if object["kind"] == "PerformanceProfile" {
            object["spec"]["cpu"] = json!("01");
        }
    });
    check(
        &bed,
        &expect![[r#"
            Waiting PerformanceProfile p: record, needs approval (a digest), no diff
            Plan: nothing to do; 1 waiting.
        "#]],
    );
}

#[test]
fn a_saved_plan_has_moved_if_the_value_that_it_replaces_is_another_one() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    let saved = bed.plan();
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "8"}}));
    let said: Vec<String> = moved(&saved, &bed.plan()).iter().map(ToString::to_string).collect();
    expect![[r#"ConfigMap virt/plain: planned: ~ .data.level: "9" -> "1", and now: ~ .data.level: "8" -> "1""#]]
        .assert_eq(&said.join("\n"));
}

#[test]
fn a_saved_plan_has_moved_if_somebody_adds_to_a_list_that_it_replaces() {
    let file =
        |content: &str| json!([{"path": "/etc/a", "mode": 420, "contents": {"source": format!("data:,{content}")}}]);
    let mut bed = running(&with_files(&file("1")), &[]);
    bed.annotate(HCO, "approval=none");
    bed.advance(SECOND);
    release_to(&mut bed, &with_files(&file("2")));
    let saved = bed.plan();
    let mut theirs = file("1");
    theirs[0]["user"] = json!({"name": "core"});
    bed.edit("kubectl-edit", OURS, &json!({"spec": {"config": {"storage": {"files": theirs}}}}));
    assert_ne!(moved(&saved, &bed.plan()), []);
}

#[test]
fn the_virtual_machines_that_move_are_counted_and_only_a_plan_follows_them() {
    let crd = Crd {
        api_version: "kubevirt.io/v1",
        kind: "VirtualMachineInstance",
        plural: "virtualmachineinstances",
        namespaced: true,
    };
    let mut bed = unstarted(&["kernel"]);
    bed.install_crd(&crd);
    for (name, node) in [("a", "w0"), ("b", "w0"), ("c", "elsewhere")] {
        bed.create(
            "person",
            &json!({"apiVersion": crd.api_version, "kind": crd.kind,
            "metadata": {"name": name, "namespace": "virt"}, "status": {"nodeName": node}}),
        );
    }
    bed.advance(SECOND);
    assert!(!bed.watches.keys().any(|target| target.kind.kind == crd.kind), "{:?}", bed.watches.keys());
    check(
        &bed,
        &expect![[r#"
            Waiting MachineConfig kernel: create, restarts one node of pool worker: w0; about 10 min (a guess), 2 VMs move, needs approval (a digest)
                + .metadata.labels.machineconfiguration.openshift.io/role: "worker"
                + .spec: {"kernelArguments":["quiet"],"kernelType":"default"}
            Plan: 1 to create; 1 needs approval (94e6ba27).
        "#]],
    );
}

#[test]
fn a_list_of_ours_that_has_to_be_repaired_first_is_compared_here_and_that_of_others_is_refused() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.fail_all(PLAIN, Fault::KeyChanged);
    check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change, local: the API server refuses it until a list in it is repaired, which comes first
                ~ .data.level: "9" -> "1"
            Plan: 1 to change.
        "#]],
    );
    let mut bed = unstarted(&["plain"]);
    bed.create("person", &config_map("plain", &json!({"level": "9"})));
    bed.fail_all(PLAIN, Fault::KeyChanged);
    check(
        &bed,
        &expect![[r#"
            Failed ConfigMap virt/plain: adopt, the API server refused it: injected, no diff
            Plan: nothing to do; 1 failed.
        "#]],
    );
}
