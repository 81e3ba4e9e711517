//! Defects that were found by review, each as a story.

use super::{HOUR, KERNEL, SECOND, settled_with_kernel};
use crate::testing::bed::HCO;
use serde_json::json;

fn edit_while_held(hold: &str, resume: &str, on: &str) -> String {
    let mut bed = settled_with_kernel();
    bed.annotate(on, hold);
    bed.settle();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.advance(HOUR * 24);
    // By now every node runs the edited content.
    bed.annotate(on, resume);
    let lines = bed.advance(SECOND);
    let kernel_type = bed.value(KERNEL, "/spec/kernelType");
    assert_eq!(kernel_type, json!("realtime"), "written without an approval:\n{lines}");
    lines
}

#[test]
fn a_machine_config_edited_during_a_pause_is_not_written_without_approval() {
    edit_while_held("reconcile-paused=true", "reconcile-paused-", KERNEL);
}

#[test]
fn a_machine_config_edited_while_unmanaged_is_not_written_without_approval() {
    edit_while_held("mode=unmanaged", "mode-", KERNEL);
}

#[test]
fn a_machine_config_edited_while_excluded_is_not_written_without_approval() {
    edit_while_held("disabled-resources=MachineConfig/kernel", "disabled-resources-", HCO);
}

#[test]
fn control_a_machine_config_edited_while_not_watched_asks() {
    let mut bed = settled_with_kernel();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.roll_out();
    bed.restart();
    let lines = bed.advance(SECOND);
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"), "{lines}");
}

mod lost {
    use super::super::{HOUR, KERNEL, MINUTE, SECOND, kernel, kernel_template, on_request, settled};
    use crate::testing::bed::{DESCHEDULERS, HCO, MACHINE_CONFIGS, TestBed};
    use crate::testing::pack::{self, ALWAYS, Pack};
    use change::Kind;
    use protocol::{Command, Event};
    use serde_json::json;

    /// An API server that has just restarted does not serve a CRD for a moment, although its objects are still there.
    fn blink(bed: &mut TestBed, api_version: &str, kind: &str, pause: std::time::Duration) {
        let kind = Kind::new(api_version, kind);
        let index = bed.server.kinds.iter().position(|served| served.kind == kind).unwrap();
        let served = bed.server.kinds.remove(index);
        bed.server.discoveries += 1;
        bed.advance(pause);
        bed.server.kinds.push(served);
        bed.server.discoveries += 1;
        bed.advance(MINUTE);
    }

    #[test]
    fn an_approved_deletion_happens_although_the_kind_was_not_served_for_a_moment() {
        let mut bed = settled(Pack::default().asset("kernel", &on_request("kernel"), &kernel_template("quiet")));
        bed.annotate(HCO, "enable-kernel=true");
        bed.settle();
        bed.approve(KERNEL);
        bed.settle();
        bed.annotate(HCO, "enable-kernel-");
        bed.settle();
        blink(&mut bed, MACHINE_CONFIGS.api_version, MACHINE_CONFIGS.kind, SECOND);
        bed.approve(KERNEL);
        let lines = bed.advance(HOUR);
        assert!(bed.stored(KERNEL).is_none(), "the approved deletion never happens:\n{lines}");
    }

    #[test]
    fn a_tombstone_is_deleted_although_its_kind_was_not_served_for_a_moment() {
        let tombstone = kernel_template("quiet");
        let tombstone = serde_json::from_str::<serde_json::Value>(&tombstone).unwrap();
        let _ = tombstone;
        let old = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: kernel}\n";
        let mut bed =
            TestBed::of(Pack::default().asset("a", ALWAYS, &pack::config_map("a", "")).tombstone("kernel", old));
        bed.create_as_former_release(kernel("quiet"));
        bed.advance(MINUTE);
        blink(&mut bed, MACHINE_CONFIGS.api_version, MACHINE_CONFIGS.kind, SECOND);
        bed.approve(KERNEL);
        let lines = bed.advance(HOUR);
        assert!(bed.stored(KERNEL).is_none(), "{lines}");
    }

    #[test]
    fn an_object_that_is_recreated_during_an_inspection_is_decided_about() {
        let mut bed = TestBed::of(Pack::standard().only(&["kernel"]));
        bed.create("person", &kernel("debug"));
        bed.run_until(|command| matches!(command, Command::Inspect { .. }));
        let at = bed.requests.iter().position(|command| matches!(command, Command::Inspect { .. })).unwrap();
        let inspect = bed.requests.remove(at);
        bed.run();
        bed.delete(KERNEL);
        bed.carry_out(inspect);
        let late: Vec<Event> = std::mem::take(&mut bed.answers);
        bed.create("person", &kernel("debug"));
        bed.run();
        bed.answers.extend(late);
        bed.advance(HOUR);
        assert!(bed.asked_digest(KERNEL).is_some(), "nobody is asked");
    }

    #[test]
    fn a_failed_search_is_made_although_the_kind_was_not_served_for_a_moment() {
        let mut bed = settled(Pack::default().asset("kernel", &on_request("kernel"), &kernel_template("quiet")));
        bed.annotate(HCO, "enable-kernel=true");
        bed.settle();
        bed.approve(KERNEL);
        bed.settle();
        // It is opted out while the operator is down.
        bed.annotate(HCO, "enable-kernel-");
        bed.notices.clear();
        bed.restart();
        bed.run_until(|command| matches!(command, Command::Search { .. }));
        let is_search = |command: &Command<crate::notice::Notice>| matches!(command, Command::Search { .. });
        let at = bed.requests.iter().position(is_search).unwrap();
        let Command::Search { search, .. } = bed.requests.remove(at) else { panic!() };
        bed.handle(vec![Event::Found(search, Err("connection reset".into()))]);
        // Nothing watches the kind now: the CRD is reported as changed, and is not served for three seconds.
        let kind = Kind::new(MACHINE_CONFIGS.api_version, MACHINE_CONFIGS.kind);
        let index = bed.server.kinds.iter().position(|served| served.kind == kind).unwrap();
        let served = bed.server.kinds.remove(index);
        bed.server.discoveries += 1;
        bed.restore_watch("CustomResourceDefinition");
        bed.advance(SECOND * 3);
        bed.server.kinds.push(served);
        bed.server.discoveries += 1;
        bed.restore_watch("CustomResourceDefinition");
        bed.advance(MINUTE);
        let lines = bed.advance(HOUR);
        assert!(bed.asked_digest(KERNEL).is_some(), "nobody is asked: {lines}");
    }

    #[test]
    fn a_tombstone_whose_crd_is_installed_later_is_found() {
        let old =
            "apiVersion: operator.openshift.io/v1\nkind: KubeDescheduler\nmetadata: {name: cluster, namespace: virt}\n";
        let mut bed = settled(Pack::default().asset("a", ALWAYS, &pack::config_map("a", "")).tombstone("cluster", old));
        bed.install_crd(&DESCHEDULERS);
        let object = json!({"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "metadata": {"name": "cluster", "namespace": "virt"}, "spec": {}});
        bed.create_as_former_release(object);
        let lines = bed.advance(HOUR);
        assert!(bed.stored("KubeDescheduler virt/cluster").is_none(), "{lines}");
    }

    #[test]
    fn labels_that_are_text_do_not_panic() {
        for labels in ["labels: text", "labels: []", "annotations: text", "annotations: [a]"] {
            let template =
                format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: virt, {labels}}}\n");
            let ran = std::panic::catch_unwind(|| {
                let mut bed = TestBed::of(Pack::default().asset("a", ALWAYS, &template));
                bed.advance(SECOND);
            });
            assert!(ran.is_ok(), "{labels}");
        }
    }

    #[test]
    fn a_patch_that_makes_metadata_text_does_not_panic() {
        for patch in [
            r#"[{"op":"add","path":"/metadata/labels","value":"x"}]"#,
            r#"[{"op":"add","path":"/metadata/annotations","value":"x"}]"#,
            r#"[{"op":"add","path":"/metadata/annotations","value":[]}]"#,
            r#"[{"op":"replace","path":"/metadata","value":"x"}]"#,
        ] {
            let mut bed = settled(Pack::standard().only(&["plain"]));
            bed.annotate(super::super::PLAIN, &format!("patch={patch}"));
            let lines = bed.advance(SECOND);
            assert!(lines.contains("InvalidPatch"), "{patch}: {lines}");
        }
    }

    #[test]
    fn a_budget_that_cannot_be_read_at_the_start_is_not_a_full_one() {
        let mut bed = settled(Pack::standard().only(&["plain"]));
        for _ in 0..40 {
            if bed.stored(super::super::PLAIN).is_some() {
                bed.delete(super::super::PLAIN);
            }
            bed.settle();
        }
        assert!(bed.stored(super::super::PLAIN).is_none(), "held");
        bed.restart();
        bed.run_until(|command| matches!(command, Command::Query { .. }));
        bed.fail_reads(1);
        let lines = bed.settle();
        assert!(bed.stored(super::super::PLAIN).is_none(), "{lines}");
    }
}

mod more {
    use super::super::{HOUR, KERNEL, MINUTE, OPTED, PLAIN, SECOND, kernel, settled_with_kernel, started, unstarted};
    use crate::testing::bed::{HCO, MACHINE_CONFIGS, TestBed};
    use crate::testing::pack::Pack;
    use crate::testing::requests::Fault;
    use protocol::{Command, Event};
    use serde_json::json;

    #[test]
    fn a_machine_config_edited_while_its_watch_was_lost_for_a_day_asks() {
        let mut bed = settled_with_kernel();
        bed.lose_watch("MachineConfig");
        bed.settle();
        bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
        bed.advance(HOUR * 24);
        bed.restore_watch("MachineConfig");
        let lines = bed.advance(SECOND);
        assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"), "{lines}");
    }

    #[test]
    fn a_machine_config_that_could_not_be_corrected_for_a_day_asks() {
        let mut bed = settled_with_kernel();
        bed.fail_all(KERNEL, Fault::Refused(403, "forbidden"));
        bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
        bed.advance(HOUR * 24);
        bed.accept(KERNEL);
        let lines = bed.advance(HOUR);
        assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"), "{lines}");
    }

    #[test]
    fn an_opt_out_that_is_taken_back_at_once_is_not_reported_as_pruned_last() {
        let mut bed = started(&["plain", "opted"]);
        bed.annotate(HCO, "enable-opted=true");
        bed.settle();
        bed.hold_answers(OPTED);
        bed.annotate(HCO, "enable-opted-");
        bed.settle();
        bed.annotate(HCO, "enable-opted=true");
        bed.settle();
        bed.release(OPTED);
        let lines = bed.advance(MINUTE);
        assert!(bed.stored(OPTED).is_some());
        assert!(!lines.lines().last().unwrap().contains("Pruned"), "{lines}");
        assert!(!lines.contains("somebody deleted it"), "{lines}");
    }

    #[test]
    fn an_answer_from_before_the_crd_was_removed_is_no_deletion() {
        let mut bed = TestBed::of(Pack::standard().only(&["kernel"]));
        bed.create("person", &kernel("debug"));
        bed.run_until(|command| matches!(command, Command::Inspect { .. }));
        bed.answers.clear();
        let at = bed.requests.iter().position(|command| matches!(command, Command::Inspect { .. })).unwrap();
        let inspect = bed.requests.remove(at);
        bed.carry_out(inspect);
        let late: Vec<Event> = std::mem::take(&mut bed.answers);
        bed.annotate(HCO, "approval=none");
        bed.remove_crd(&MACHINE_CONFIGS);
        bed.advance(SECOND);
        bed.answers.extend(late);
        bed.settle();
        bed.install_crd(&MACHINE_CONFIGS);
        let lines = bed.advance(MINUTE);
        assert!(!lines.contains("somebody deleted it"), "{lines}");
    }

    #[test]
    fn control_a_budget_that_can_be_read_at_the_start_holds() {
        let mut bed = started(&["plain"]);
        for _ in 0..40 {
            if bed.stored(PLAIN).is_some() {
                bed.delete(PLAIN);
            }
            bed.settle();
        }
        bed.restart();
        let lines = bed.settle();
        assert!(bed.stored(PLAIN).is_none(), "{lines}");
    }

    #[test]
    fn status_shows_an_asset_whose_query_cannot_be_answered() {
        let mut bed = unstarted(&["plain", "asking"]);
        bed.config.writes = false;
        bed.restart();
        bed.silent.insert("ConfigMap".into());
        bed.advance(MINUTE);
        let assets: Vec<String> = bed.core.status().into_iter().map(|line| line.asset).collect();
        assert_eq!(assets, ["plain", "asking"]);
    }

    #[test]
    fn a_correction_after_an_unanswered_one_spends_the_budget() {
        let mut bed = started(&["plain"]);
        // Every write is made, but its answer is lost; somebody else changes the object after each.
        bed.fail_all(PLAIN, Fault::Unanswered);
        let mut corrections = 0;
        for _ in 0..200 {
            bed.edit("fighter", PLAIN, &json!({"data": {"level": "9"}}));
            bed.advance(SECOND * 30);
            if bed.value(PLAIN, "/data/level") == json!("1") {
                corrections += 1;
            }
        }
        let paused = bed.value(PLAIN, "/metadata/annotations")["platform.kubevirt.io/reconcile-paused"].clone();
        assert!(corrections <= 130 || !paused.is_null(), "{corrections} corrections in 100 minutes, never paused");
    }
}

/// The same for other reasons to hold an object.
mod other_holds {
    use super::super::{HOUR, KERNEL, SECOND, kernel, settled_with_kernel};
    use serde_json::json;

    #[test]
    fn a_machine_config_edited_while_its_mode_is_unknown_is_not_written_without_approval() {
        super::edit_while_held("mode=unmanagd", "mode-", KERNEL);
    }

    #[test]
    fn a_machine_config_that_another_manager_applied_is_not_reset_without_approval() {
        let mut bed = settled_with_kernel();
        bed.apply_by_force("gitops", &kernel("debug"));
        bed.advance(HOUR * 24);
        // GitOps stops managing it: its values stay and belong to a plain update.
        let mut empty = kernel("debug");
        empty.as_object_mut().unwrap().remove("spec");
        bed.edit("person", KERNEL, &json!({"spec": {"kernelArguments": ["debug", "x"], "kernelType": "realtime"}}));
        bed.apply_by_force("gitops", &empty);
        let lines = bed.advance(SECOND);
        assert_ne!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["quiet"]), "{lines}");
    }
}

mod requests {
    use super::super::{KERNEL, SECOND, kernel_template, settled_with_kernel};
    use serde_json::json;

    #[test]
    fn an_object_that_waits_for_approval_is_not_read_at_every_change_of_its_status() {
        let mut bed = settled_with_kernel();
        bed.upgrade(|pack| pack.with_template("kernel", &kernel_template("debug")));
        bed.advance(SECOND);
        let mut inspections = 0;
        for round in 0..50 {
            bed.edit("status", KERNEL, &json!({"status": {"heartbeat": round.to_string()}}));
            inspections += bed.advance_verbosely(SECOND).matches("inspect").count();
        }
        assert!(inspections < 30, "{inspections} inspections in 50 seconds");
    }
}
