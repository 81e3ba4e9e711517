//! What `plan` reads: no more than it needs, and what it shows where that changes meanwhile or cannot be read.

use super::plan::check;
use super::{PLAIN, SECOND, kernel, started, unstarted};
use crate::Notice;
use crate::plan::Source;
use crate::testing::bed::TestBed;
use crate::testing::requests::Fault;
use expect_test::expect;
use protocol::{Command, WatchTarget};
use serde_json::json;

const CANNOT_PATCH: Fault = Fault::Refused(403, r#"x is forbidden: User "person" cannot patch resource "x""#);

/// How many objects a plan reads as a whole.
fn reads(bed: &TestBed) -> usize {
    let lines = bed.planner().settle_verbosely();
    lines.lines().filter(|line| line.starts_with("inspect")).count()
}

#[test]
fn objects_that_are_in_sync_are_not_read_unless_they_were_written_just_now() {
    let mut bed = started(&["plain", "service", "asking"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.settle();
    let written_at = bed.server.now;
    let mut at = |seconds: u32| {
        bed.server.now = change::now::later(written_at, SECOND * seconds);
        reads(&bed)
    };
    assert_eq!(at(3), 1, "a change in the same second does not show in metadata");
    assert_eq!(at(4), 0);
    assert_eq!(at(1_000), 0);
}

#[test]
fn an_object_that_cannot_be_read_has_no_difference() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.unreadable = Some("ConfigMap".into());
    check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change, no diff: it could not be read: forbidden
            Plan: 1 to change.
        "#]],
    );
    bed.fail_all(PLAIN, CANNOT_PATCH);
    check(
        &bed,
        &expect![[r#"
            Ready ConfigMap virt/plain: change, no diff: it could not be read: forbidden
            Plan: 1 to change.
        "#]],
    );
}

#[test]
fn an_object_of_which_too_little_is_known_has_failed() {
    let mut bed = unstarted(&["kernel"]);
    bed.inherit(kernel("debug"));
    bed.unreadable = Some("MachineConfig".into());
    check(
        &bed,
        &expect![[r#"
            Failed MachineConfig kernel: ?, it could not be read, or changes too fast, no diff
            Plan: nothing to do; 1 failed.
        "#]],
    );
}

#[test]
fn an_object_that_is_being_deleted_is_held() {
    let mut bed = started(&["plain"]);
    bed.edit("owner", PLAIN, &json!({"metadata": {"finalizers": ["example.com/wait"]}}));
    bed.delete(PLAIN);
    check(
        &bed,
        &expect![[r#"
            Held ConfigMap virt/plain: ?, its deletion is not complete yet, no diff
            Plan: nothing to do; 1 held.
        "#]],
    );
}

fn is_dry_run(command: &Command<Notice>) -> bool {
    matches!(command, Command::Preview { .. })
}

/// What a plan shows of an object that changes so often while its dry run is on the way, each time reported before the answer.
fn source_after_changes(count: usize) -> Source {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "start"}}));
    let mut plan = bed.planner();
    let target = WatchTarget::of(&plan.key(PLAIN));
    for number in 0..count {
        plan.run_until(is_dry_run);
        plan.edit("kubectl-edit", PLAIN, &json!({"data": {"level": number.to_string()}}));
        for request in std::mem::take(&mut plan.requests) {
            plan.carry_out(request);
        }
        let answers = std::mem::take(&mut plan.answers);
        while let Some(event) = plan.next_event(&target) {
            plan.handle(vec![event]);
        }
        // Its next dry run is on the way when the answer to the one before arrives.
        plan.handle(answers);
        let (runs, reads): (Vec<_>, Vec<_>) = std::mem::take(&mut plan.requests).into_iter().partition(is_dry_run);
        reads.into_iter().for_each(|request| plan.carry_out(request));
        let answers = std::mem::take(&mut plan.answers);
        plan.handle(answers);
        // Only the last one is answered.
        let last = plan.requests.pop().or(runs.into_iter().last());
        plan.requests = last.into_iter().collect();
    }
    plan.run();
    let shown = plan.core.plan();
    let item = &shown.items[0];
    assert_eq!(item.diff.len(), 1, "{item:?}");
    item.source.clone()
}

#[test]
fn an_object_that_changes_meanwhile_is_tried_again_and_at_last_compared_here() {
    assert_eq!(source_after_changes(1), Source::Server);
    assert_eq!(source_after_changes(3), Source::Server);
    assert!(matches!(source_after_changes(4), Source::Local { .. }));
}
