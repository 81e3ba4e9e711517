//! What restarts nodes waits for a maintenance window.

use super::{HOUR, KERNEL, MINUTE, SECOND, settled_with_kernel, started};
use crate::core::Config;
use crate::testing::bed::HCO;
use change::Digest;
use expect_test::expect;
use serde_json::json;

/// The clock of stories starts on Sunday, 2026-03-01, at midnight in UTC.
const NIGHT: &str = "maintenance-window=Sat,Sun 01:00-05:00 Europe/Berlin";

#[test]
fn an_approved_change_waits_for_the_window_and_goes_ahead_when_it_opens() {
    let mut bed = started(&["kernel"]);
    bed.advance(HOUR * 8);
    bed.annotate(HCO, NIGHT);
    bed.approve(KERNEL);
    expect![[r#"
        notice WindowClosed MachineConfig kernel: it restarts one node of pool worker: w0; it waits for the next maintenance window, which opens Sat 2026-03-07 01:00 Europe/Berlin
    "#]].assert_eq(&bed.settle());
    // Six days minus eight hours until midnight UTC, which is one o'clock in Berlin.
    expect![""].assert_eq(&bed.advance(HOUR * (6 * 24 - 8) - MINUTE));
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.advance(MINUTE * 2));
    bed.expect_silence();
}

#[test]
fn waiting_for_a_window_costs_no_request() {
    let mut bed = started(&["kernel"]);
    bed.advance(HOUR * 8);
    bed.annotate(HCO, NIGHT);
    bed.approve(KERNEL);
    bed.settle();
    let lines = bed.advance_verbosely(HOUR * 24 * 5);
    // The records are read once an hour, whatever waits.
    let others = lines.lines().filter(|line| !line.ends_with("virt-platform-autopilot-state"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn without_an_approval_no_window_lets_a_change_through() {
    let mut bed = started(&["kernel"]);
    bed.annotate(HCO, NIGHT);
    bed.settle();
    bed.advance(HOUR * 24 * 14);
    assert!(bed.stored(KERNEL).is_none());
}

#[test]
fn approval_none_waits_for_the_window_too() {
    let mut bed = started(&["kernel"]);
    bed.advance(HOUR * 8);
    bed.annotate(HCO, NIGHT);
    bed.annotate(HCO, "approval=none");
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none());
    bed.advance(HOUR * 24 * 7);
    assert!(bed.stored(KERNEL).is_some());
}

#[test]
fn a_window_that_cannot_be_read_is_closed_and_reported() {
    let mut bed = started(&["plain", "kernel"]);
    bed.annotate(HCO, "maintenance-window=Sat 01:00-05:00 Europe/Berlni");
    bed.approve(KERNEL);
    expect![[r#"
        notice Invalid: maintenance-window cannot be read, so nothing that restarts nodes goes ahead: "Sat 01:00-05:00 Europe/Berlni": "Europe/Berlni" is not the name of a time zone; write it like Sat,Sun 01:00-05:00 Europe/Berlin
        notice WindowClosed MachineConfig kernel: it restarts one node of pool worker: w0; no window is open, because the annotation maintenance-window cannot be read; write it like "Sat,Sun 01:00-05:00 Europe/Berlin"
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(HCO, "maintenance-window-");
    bed.settle();
    assert!(bed.stored(KERNEL).is_some());
}

#[test]
fn what_nodes_run_already_is_brought_back_outside_of_a_window() {
    let mut bed = settled_with_kernel();
    bed.advance(HOUR * 8);
    bed.annotate(HCO, NIGHT);
    bed.settle();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    expect![[r#"
        apply MachineConfig kernel
        notice DriftCorrected MachineConfig kernel: kubectl-edit changed .spec.kernelArguments; the drift was corrected: .spec.kernelArguments[0] "loud" -> "quiet"
    "#]]
    .assert_eq(&bed.advance(SECOND * 3));
}

#[test]
fn a_window_that_closes_does_not_stop_a_rollout() {
    let mut bed = started(&["kernel"]);
    bed.annotate(HCO, "maintenance-window=Sun 00:00-00:01 UTC");
    bed.approve(KERNEL);
    bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), 1);
    bed.expect_silence();
}

#[test]
fn digests_that_are_assumed_to_be_approved_count_instead_of_those_that_are_listed() {
    let mut bed = started(&["kernel"]);
    bed.advance(HOUR * 8);
    let digest = bed.asked_digest(KERNEL).and_then(|digest| Digest::parse(&digest)).unwrap();
    let seen = |bed: &crate::testing::bed::TestBed, approved: Option<&[Digest]>| {
        let approved = approved.map(|approved| approved.iter().copied().collect());
        let mut observer = bed.fork(Config { writes: false, approved, ..bed.config.clone() });
        observer.run();
        let line = observer.core.status().into_iter().find(|line| line.asset == "kernel").unwrap();
        line.state.to_string().split(&[':', ';'][..]).next().unwrap().to_owned()
    };
    let asked = "approval required";
    assert_eq!([seen(&bed, None), seen(&bed, Some(&[]))], [asked, asked]);
    assert_eq!(seen(&bed, Some(&[digest])), "it does not exist");
    bed.annotate(HCO, NIGHT);
    bed.approve(KERNEL);
    bed.settle();
    assert_eq!(seen(&bed, None), "it restarts one node of pool worker");
    assert_eq!(seen(&bed, Some(&[])), asked, "as if it were not approved");
}
