//! What `status` shows of the same decisions.

use super::{PLAIN, SERVICE, config_map, kernel, painted, settled, started, unstarted};
use crate::core::{Config, Previews};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{self, ALWAYS, Pack};
use crate::testing::requests::Fault;
use expect_test::expect;
use serde_json::json;
#[test]
fn a_settled_cluster() {
    let mut bed = TestBed::settled();
    expect![[r#"
        plain (ConfigMap virt/plain) InSync
        service (Service virt/service) InSync
        opted (ConfigMap virt/opted) Disabled: annotation `platform.kubevirt.io/enable-opted` of the HyperConverged object should be `true` and is not set
        lasting (ConfigMap virt/lasting) Disabled: annotation `platform.kubevirt.io/enable-lasting` of the HyperConverged object should be `true` and is not set
        gpu NotApplicable: no node has a GPU
        asking (ConfigMap virt/asking) InSync
        kernel (MachineConfig kernel) PendingApproval: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        descheduler NotApplicable: the cluster does not serve KubeDescheduler of operator.openshift.io/v1, which the Kube Descheduler Operator provides
    "#]].assert_eq(&bed.status());
}

#[test]
fn a_new_cluster_shows_what_will_be_done_and_does_nothing() {
    let mut bed = TestBed::new();
    bed.create("person", &config_map("plain", &json!({})));
    bed.create_as_former_release(config_map("old", &json!({})));
    bed.inherit(kernel("debug"));
    let before = bed.server.version;
    expect![[r#"
        plain (ConfigMap virt/plain) Pending: it differs from what is wanted
        service (Service virt/service) Pending: it does not exist
        opted (ConfigMap virt/opted) Disabled: annotation `platform.kubevirt.io/enable-opted` of the HyperConverged object should be `true` and is not set
        lasting (ConfigMap virt/lasting) Disabled: annotation `platform.kubevirt.io/enable-lasting` of the HyperConverged object should be `true` and is not set
        gpu NotApplicable: no node has a GPU
        asking (ConfigMap virt/asking) Pending: it does not exist
        kernel (MachineConfig kernel) PendingApproval: approval required: changing it restarts one node of pool worker: w0; the digest to approve is not known until the operator has written ConfigMap virt-platform-autopilot-state, or while that cannot be read. It would change .spec.kernelArguments[0] ("debug" -> "quiet")
        descheduler NotApplicable: the cluster does not serve KubeDescheduler of operator.openshift.io/v1, which the Kube Descheduler Operator provides
        tombstones/old.yaml (ConfigMap virt/old) PendingRemoval: it is not wanted any more
    "#]].assert_eq(&bed.status());
    assert_eq!(bed.server.version, before);
}

#[test]
fn every_reason_to_hold_an_object() {
    let mut bed = TestBed::settled();
    bed.annotate(PLAIN, "mode=unmanaged");
    bed.annotate(SERVICE, "reconcile-paused=true");
    bed.annotate(HCO, "disabled-resources=ConfigMap/asking");
    bed.settle();
    expect![[r#"
        plain (ConfigMap virt/plain) Unmanaged: mode is unmanaged: the object is left alone
        service (Service virt/service) Paused: paused; remove the annotation reconcile-paused to resume
        opted (ConfigMap virt/opted) Disabled: annotation `platform.kubevirt.io/enable-opted` of the HyperConverged object should be `true` and is not set
        lasting (ConfigMap virt/lasting) Disabled: annotation `platform.kubevirt.io/enable-lasting` of the HyperConverged object should be `true` and is not set
        gpu NotApplicable: no node has a GPU
        asking (ConfigMap virt/asking) Excluded: excluded by disabled-resources
        kernel (MachineConfig kernel) PendingApproval: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        descheduler NotApplicable: the cluster does not serve KubeDescheduler of operator.openshift.io/v1, which the Kube Descheduler Operator provides
    "#]].assert_eq(&bed.status());
}

#[test]
fn what_is_not_wanted_any_more() {
    let mut bed = TestBed::settled();
    bed.annotate(HCO, "enable-opted=true");
    bed.annotate(HCO, "enable-lasting=true");
    bed.settle();
    bed.annotate(HCO, "approval=high-impact");
    bed.annotate(HCO, "autopilot=kernel");
    expect![[r#"
        plain (ConfigMap virt/plain) PendingRemoval: it is not wanted any more
        service (Service virt/service) PendingRemoval: it is not wanted any more
        opted (ConfigMap virt/opted) PendingRemoval: it is not wanted any more
        lasting (ConfigMap virt/lasting) LeftBehind: not wanted any more, but kept: objects like it are never deleted
        gpu (ConfigMap virt/gpu) Disabled: the annotation autopilot does not name it
        asking Disabled: the annotation autopilot does not name it
        kernel (MachineConfig kernel) PendingApproval: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        descheduler (KubeDescheduler virt/cluster) Disabled: the annotation autopilot does not name it
    "#]].assert_eq(&bed.status());
}

#[test]
fn drift_and_another_release() {
    let pack = Pack::default().asset("a", ALWAYS, &pack::config_map("a", "data: {x: \"1\"}")).asset(
        "b",
        ALWAYS,
        &pack::config_map("b", "data: {x: \"1\"}"),
    );
    let mut bed = settled(pack);
    bed.edit("person", "ConfigMap virt/a", &json!({"data": {"x": "2"}}));
    bed.upgrade(|pack| pack.with_template("b", &pack::config_map("b", "data: {x: \"2\"}")));
    expect![[r#"
        a (ConfigMap virt/a) Pending: it differs from what is wanted
        b (ConfigMap virt/b) Pending: it differs from what is wanted
    "#]]
    .assert_eq(&bed.status());
}

#[test]
fn while_everything_is_off_or_unclear() {
    let mut bed = settled(Pack::default().asset("a", ALWAYS, &pack::config_map("a", "")));
    bed.annotate(HCO, "autopilot=false");
    expect![[r#"
        a Disabled: the autopilot is off
    "#]]
    .assert_eq(&bed.status());
    bed.annotate(HCO, "autopilot=b");
    expect![[r#"
        a (ConfigMap virt/a) Suspended: the annotation autopilot names "b" (did you mean a?), which is no feature, group or asset; nothing new is done until it is corrected; write true, false, or names of features, groups or assets
    "#]].assert_eq(&bed.status());
}

#[test]
fn the_status_after_the_core_has_acted_is_the_same() {
    let bed = TestBed::settled();
    let observed = bed.observe();
    assert_eq!(bed.core.status(), observed);
}

#[test]
fn what_the_server_refuses_is_shown_as_failed() {
    let mut bed = TestBed::of(painted());
    bed.paint("invalid");
    expect![[r#"
        painted (ConfigMap virt/painted) Failed: the API server refused it: data.color: Invalid value
    "#]]
    .assert_eq(&bed.status());
    bed.paint("red");
    bed.fail_all("ConfigMap virt/painted", Fault::Refused(403, "admission webhook denied it"));
    expect![[r#"
        painted (ConfigMap virt/painted) Failed: the API server refused it: admission webhook denied it
    "#]]
    .assert_eq(&bed.status());
}

#[test]
fn a_patch_that_the_server_refuses_is_shown_as_such() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "invalid"}]"#);
    expect![[r#"
        plain (ConfigMap virt/plain) InvalidOverride: patch refused, the last good state is kept: data.level: Invalid value
    "#]]
    .assert_eq(&bed.status());
}

#[test]
fn a_dry_run_that_says_nothing_about_the_write_changes_nothing() {
    let mut bed = unstarted(&["plain"]);
    for fault in [
        Fault::Refused(403, r#"configmaps "plain" is forbidden: User "person" cannot patch resource "configmaps""#),
        Fault::Refused(400, r#"admission webhook "w" does not support dry run"#),
        Fault::Refused(401, "Unauthorized"),
        Fault::Transient,
    ] {
        bed.fail_all(PLAIN, fault);
        expect![[r#"
            plain (ConfigMap virt/plain) Pending: it does not exist
        "#]]
        .assert_eq(&bed.status());
    }
}

#[test]
fn only_what_would_be_written_is_tried_and_only_once() {
    let mut bed = started(&["plain", "service"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    let config = Config { writes: false, previews: Previews::Check, ..bed.config.clone() };
    let mut observer = bed.fork(config);
    let lines = observer.settle_verbosely();
    let previews: Vec<&str> = lines.lines().filter(|line| line.starts_with("preview")).collect();
    assert_eq!(previews, ["preview ConfigMap virt/plain"]);
    observer.restore_watch("ConfigMap");
    assert!(!observer.settle_verbosely().contains("preview"), "it was tried already");
}

#[test]
fn a_list_item_with_another_key_is_repaired_in_our_objects_and_refused_in_those_of_others() {
    let mut bed = unstarted(&["plain"]);
    bed.fail_all(PLAIN, Fault::KeyChanged);
    for is_ours in [false, true] {
        let object = config_map("plain", &json!({"level": "9"}));
        match is_ours {
            false => bed.create("person", &object),
            true => bed.inherit(object),
        }
        let expected = match is_ours {
            false => "plain (ConfigMap virt/plain) Failed: the API server refused it: injected\n",
            true => "plain (ConfigMap virt/plain) Pending: it differs from what is wanted\n",
        };
        assert_eq!(bed.status(), expected);
    }
}
