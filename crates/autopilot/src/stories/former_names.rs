//! Objects that the Go advisor made under another name: they are managed there, and never doubled.

use super::{HOUR, KERNEL, SECOND, kernel};
use crate::state_word::StateWord;
use crate::testing::acts::HANDED_OVER;
use crate::testing::bed::{CONFIGS, HCO, TestBed};
use crate::testing::pack::Pack;
use expect_test::expect;
use serde_json::{Value, json};

const FORMER: &str = "MachineConfig 99-kernel";

/// A cluster on which the core has not run yet, and a profile whose object the Go advisor named otherwise.
fn unstarted() -> TestBed {
    let pack = Pack::standard().only(&["kernel"]).profile_with_former("density", "kernel", "99-kernel");
    let mut bed = TestBed::of(pack);
    bed.install_crd(&CONFIGS);
    bed
}

/// The object under its former name, with these arguments.
fn former(argument: &str) -> Value {
    let mut object = kernel(argument);
    object["metadata"]["name"] = json!("99-kernel");
    object["spec"]["kernelType"] = json!("default");
    object
}

fn word(bed: &TestBed) -> StateWord {
    let lines = bed.observe();
    StateWord::of(&lines.iter().find(|line| line.asset == "kernel").unwrap().state)
}

#[test]
fn an_object_of_the_advisor_under_its_former_name_is_given_to_the_autopilot_without_a_write_and_a_double() {
    for (is_deleted, restarts) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut bed = unstarted();
        bed.govern("density", "Apply");
        bed.advise(former("quiet"));
        bed.advance(HOUR);
        assert_eq!(word(&bed), StateWord::Governed);
        let (moves, restarted) = (bed.moves(), bed.restarts_of("w0"));
        match is_deleted {
            false => bed.govern("density", HANDED_OVER),
            true => bed.delete("VirtPlatformConfig density"),
        }
        if restarts {
            bed.restart();
        }
        bed.annotate(HCO, "approval=none");
        bed.advance(HOUR);
        assert!(bed.stored(KERNEL).is_none(), "it would be a double");
        assert_eq!((word(&bed), bed.moves(), bed.restarts_of("w0")), (StateWord::InSync, moves, restarted));
        bed.expect_silence();
    }
}

#[test]
fn an_object_of_the_go_advisor_that_differs_is_changed_where_it_is_after_an_approval() {
    let mut bed = unstarted();
    bed.advise(former("debug"));
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none());
    bed.approve(FORMER);
    bed.advance(HOUR);
    assert_eq!((bed.value(FORMER, "/spec/kernelArguments"), bed.stored(KERNEL).is_none()), (json!(["quiet"]), true));
    assert_eq!(word(&bed), StateWord::InSync);
    bed.annotate(HCO, "approved-");
    bed.restart();
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none());
    bed.expect_silence();
    // Whoever deletes it gets the object under our own name.
    bed.delete(FORMER);
    bed.advance(SECOND);
    bed.approve(KERNEL);
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_some() && bed.stored(FORMER).is_none());
}

#[test]
fn what_exists_under_both_names_is_reported_and_nothing_is_deleted() {
    let mut bed = unstarted();
    bed.advance(SECOND);
    bed.approve(KERNEL);
    bed.advance(HOUR);
    bed.advise(former("quiet"));
    let lines = bed.advance(HOUR);
    expect![[r#"
        notice Invalid: MachineConfig 99-kernel of the Go advisor does the same as MachineConfig kernel; delete it, or let the advisor replace it
    "#]]
    .assert_eq(&lines);
    assert!(bed.stored(KERNEL).is_some() && bed.stored(FORMER).is_some());
    assert_eq!(word(&bed), StateWord::InSync);
}

#[test]
fn an_object_of_a_person_under_the_former_name_is_none_of_ours() {
    let mut bed = unstarted();
    bed.create("person", &former("quiet"));
    bed.advance(SECOND);
    bed.approve(KERNEL);
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_some());
}

#[test]
fn an_exclusion_by_either_name_holds_whichever_name_the_object_has() {
    for (excluded, is_advised) in [("kernel", true), ("99-kernel", true), ("99-kernel", false), ("kernel", false)] {
        let mut bed = unstarted();
        if is_advised {
            bed.advise(former("debug"));
        }
        bed.annotate(HCO, "approval=none");
        bed.annotate(HCO, &format!("disabled-resources=MachineConfig/{excluded}"));
        let moves = bed.moves();
        let lines = bed.advance(HOUR);
        let case = format!("{excluded} {is_advised}: {lines}");
        assert_eq!((word(&bed), bed.moves()), (StateWord::Excluded, moves), "{case}");
        assert!(bed.stored(KERNEL).is_none() && !lines.contains("Invalid"), "{case}");
        bed.expect_silence();
    }
}
