//! A process that ends after any write, and every fault of every write: the end is that of a run without faults, and each item is applied once.

use crate::testing::bed::{Fault, TestBed};
use crate::testing::pack::OBJECTS;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const FAULTS: [Fault; 6] =
    [Fault::Lost, Fault::Unanswered, Fault::Refused, Fault::Stale, Fault::KilledBefore, Fault::KilledAfter];

/// A person plans, approves, switches an option off, approves, and rolls back, with these faults of the writes in their order.
fn run(faults: Vec<Option<Fault>>) -> (Vec<Value>, usize, usize) {
    let mut bed = TestBed::new();
    bed.edit(OBJECTS[1], &json!({"data": {"limit": "theirs", "other": "stays"}}));
    bed.faults = faults.into();
    let approve = |bed: &mut TestBed, spec: Value, review: &str| {
        bed.ask(spec);
        bed.run_for(HOUR);
        assert_eq!(bed.phase(), review, "{}", bed.lines.concat());
        bed.approve();
        bed.run_for(3 * HOUR);
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    };
    approve(&mut bed, json!({"action": "DryRun"}), "ReviewRequired");
    approve(
        &mut bed,
        json!({"action": "DryRun", "options": {"advice": {"nodes": false, "size": 2}}}),
        "ReviewRequired",
    );
    bed.edit(OBJECTS[2], &json!({"data": {"size": "3"}}));
    approve(&mut bed, json!({"action": "DryRun"}), "Drifted");
    approve(
        &mut bed,
        json!({"action": "DryRun", "options": {"advice": {"nodes": false, "size": 4}}}),
        "ReviewRequired",
    );
    approve(&mut bed, json!({"action": "DryRun", "rollback": true}), "ReviewRequired");
    let restarts = [bed.restarts_of("w0"), bed.restarts_of("w1")];
    assert_eq!(restarts, [2, 2], "{}", bed.lines.concat());
    // Versions and times differ; contents do not.
    let content =
        |object: &&str| bed.stored(object).map_or(Value::Null, |stored| crate::before::content(&stored.object));
    (OBJECTS.iter().map(content).collect(), bed.sent.0 + bed.sent.1, bed.promises.checked)
}

#[test]
fn a_crash_or_any_other_fault_of_any_write_or_status_leads_to_the_same_end() {
    let (end, sent, checked) = run(Vec::new());
    assert_eq!(end[1]["data"], json!({"limit": "theirs", "other": "stays"}), "it is rolled back");
    assert_eq!((&end[0], &end[2]), (&Value::Null, &Value::Null), "what was created is gone");
    let mut plans = 0;
    for nth in 0..sent {
        for fault in FAULTS {
            let mut faults = vec![None; nth];
            faults.push(Some(fault));
            let (again, _, written) = run(faults);
            assert_eq!((&again, written), (&end, checked), "{fault:?} of write {nth}");
            plans += 1;
        }
    }
    assert_eq!((sent, plans), (36, 216), "writes of the run without faults, and plans of one fault");
}

#[test]
fn two_faults_one_after_the_other_lead_to_the_same_end() {
    let (end, sent, checked) = run(Vec::new());
    let mut plans = 0;
    for nth in 0..sent {
        for (index, first) in FAULTS.into_iter().enumerate() {
            let second = FAULTS[(index * 5 + nth) % FAULTS.len()];
            let mut faults = vec![None; nth];
            faults.extend([Some(first), Some(second)]);
            let (again, _, written) = run(faults);
            assert_eq!((&again, written), (&end, checked), "{first:?}, {second:?} from write {nth}");
            plans += 1;
        }
    }
    assert_eq!(plans, 216, "plans of two faults");
}
