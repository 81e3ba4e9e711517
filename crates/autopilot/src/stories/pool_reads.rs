//! Pools are read right before a write that may restart nodes; what happens while that is slow or fails.

use super::{HOUR, KERNEL, MINUTE, PLAIN, SECOND, kernel, settled_with_kernel, started};
use crate::Notice;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{ALWAYS, Pack};
use protocol::Command;
use serde_json::json;

fn is_read_of_pool(command: &Command<Notice>) -> bool {
    matches!(command, Command::Inspect { key, .. } if key.kind.kind == "MachineConfigPool")
}

/// The next read of the pool is answered after five seconds.
fn answer_slowly(bed: &mut TestBed) {
    bed.run_until(is_read_of_pool);
    bed.set_clock(bed.now().monotonic.after(SECOND * 5));
    for request in std::mem::take(&mut bed.requests) {
        bed.carry_out(request);
    }
}

#[test]
fn pools_that_are_read_too_slowly_are_reported_after_four_answers() {
    let mut bed = started(&["plain", "kernel"]);
    bed.advance(MINUTE);
    bed.approve(KERNEL);
    for _ in 0..3 {
        answer_slowly(&mut bed);
        // Other objects are corrected meanwhile.
        bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    }
    bed.run_until(is_read_of_pool);
    assert!(!bed.lines.concat().contains("too slowly"), "{:?}", bed.lines);
    answer_slowly(&mut bed);
    bed.run_until(is_read_of_pool);
    assert!(bed.lines.concat().contains("pools are read too slowly"), "{:?}", bed.lines);
    bed.advance(MINUTE);
    assert!(bed.stored(KERNEL).is_some(), "it goes ahead once the server is fast enough");
}

#[test]
fn pools_that_are_read_in_time_are_never_reported_as_slow() {
    let mut bed = settled_with_kernel();
    for number in 0..8 {
        bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": [format!("x{number}")]}}));
        let lines = bed.settle();
        assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["quiet"]), "{lines}");
        assert!(!lines.contains("too slowly"), "{lines}");
        bed.advance(HOUR * 24);
    }
}

#[test]
fn many_objects_that_wait_for_the_same_pool_are_not_reported_as_slow() {
    let pack = (0..8).fold(Pack::default(), |pack, number| {
        let template = kernel("quiet").to_string().replace("\"kernel\"", &format!("\"kernel-{number}\""));
        pack.asset(&format!("kernel-{number}"), ALWAYS, &template)
    });
    let mut bed = TestBed::of(pack);
    bed.annotate(HCO, "approval=none");
    let lines = bed.advance(MINUTE);
    assert!(!lines.contains("too slowly"), "{lines}");
    assert_eq!(lines.matches("create MachineConfig kernel-").count(), 8, "{lines}");
}

#[test]
fn a_pool_that_cannot_be_read_is_reported_after_four_attempts_and_then_read_again() {
    let mut bed = started(&["kernel"]);
    bed.advance(MINUTE);
    bed.unreadable = Some("MachineConfigPool".into());
    bed.approve(KERNEL);
    let lines = bed.advance(SECOND * 6);
    assert!(!lines.contains("notice"), "it is tried again after one, two and four seconds: {lines}");
    let lines = bed.advance(SECOND);
    assert!(lines.contains("could not read MachineConfigPool worker: forbidden"), "{lines}");
    bed.unreadable = None;
    bed.advance(MINUTE);
    assert!(bed.stored(KERNEL).is_some());
}
