//! Tests of the life of a runner.

use super::{
    ABSENT_GRACE, Claim, Known, Machine, OFFLINE_GRACE, ONLINE_DEADLINE, Observed, Phase, RunnerRecord, Seen, Step,
    Why, Work, decide, prefix, runner_name,
};
use crate::jobs::job::JobKey;
use crate::object::Name;
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

const JOB: JobKey = JobKey::Job { id: 1, attempt: 1 };

fn now(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn claim(machine: Machine, runner: Option<RunnerRecord>) -> Claim {
    let (name, pool) = (Name::new("ci", "linux-x"), Name::new("ci", "linux"));
    Claim { uid: "uid".into(), machine, runner, ..Claim::starting(name, pool, now(0).wall) }
}

fn record(is_delivered: bool) -> Option<RunnerRecord> {
    let registered_time = now(0).wall;
    let delivered_time = is_delivered.then_some(registered_time);
    Some(RunnerRecord { id: 7, name: "vp".into(), scale_set: None, scope: None, registered_time, delivered_time })
}

fn step(claim: &Claim, known: &Known, work: Work, second: u64) -> (Phase, Step) {
    decide(&Observed { claim, known, work, name: "vp", is_foreign: false, now: now(second) })
}

fn seen(is_online: bool, is_busy: bool) -> Seen {
    Seen { id: 7, name: "vp".into(), is_online, is_busy }
}

#[test]
fn a_runner_is_registered_recorded_and_delivered_in_this_order() {
    let mut known = Known::default();
    assert_eq!(step(&claim(Machine::Starting, None), &known, Work::None, 0), (Phase::Starting, Step::Wait));
    let running = claim(Machine::Running, None);
    assert_eq!(step(&running, &known, Work::None, 0).1, Step::Register);
    known.is_waiting = true;
    assert_eq!(step(&running, &known, Work::None, 0).1, Step::Wait);
    let mut known = Known { registered: Some((7, now(0).wall)), ..Known::default() };
    assert_eq!(step(&running, &known, Work::None, 0).1, Step::Record(record(false)));
    let recorded = claim(Machine::Running, record(false));
    assert_eq!(step(&recorded, &known, Work::None, 0).1, Step::Deliver);
    let delivered = Known { delivered: Some(now(0).wall), ..known.clone() };
    assert_eq!(step(&recorded, &delivered, Work::None, 0).1, Step::Record(record(true)));
    known.failed_deliveries = 5;
    assert_eq!(step(&recorded, &known, Work::None, 0).1, Step::Remove(7), "a machine that takes nothing is given up");
    // After a crash the configuration is gone, unless the machine has it.
    let mut known = Known::default();
    assert_eq!(step(&recorded, &known, Work::None, 0).1, Step::Remove(7));
    known.is_removed = true;
    assert_eq!(step(&recorded, &known, Work::None, 0).1, Step::Record(None));
    let busy = Known { is_busy: true, ..Known::default() };
    assert!(matches!(step(&recorded, &busy, Work::None, 0), (Phase::Busy(None), Step::Record(Some(_)))));
    assert!(matches!(step(&recorded, &Known::default(), Work::Running(JOB), 0).1, Step::Record(Some(_))));
}

#[test]
fn a_name_that_is_taken_is_found_and_removed_before_the_next_registration() {
    let running = claim(Machine::Running, None);
    let mut known = Known { is_uncertain: true, ..Known::default() };
    assert_eq!(step(&running, &known, Work::None, 0).1, Step::Find);
    (known.is_uncertain, known.stray) = (false, Some(9));
    assert_eq!(step(&running, &known, Work::None, 0).1, Step::Remove(9));
    known.stray = None;
    assert_eq!(step(&running, &known, Work::None, 0).1, Step::Register);
    let ended = claim(Machine::Ended, None);
    let uncertain = Known { is_uncertain: true, ..Known::default() };
    assert_eq!(step(&ended, &uncertain, Work::None, 0).1, Step::Find, "no runner is left behind");
    assert_eq!(step(&ended, &known, Work::None, 0).1, Step::End(Why::MachineEnded));
    known.is_waiting = true;
    assert_eq!(step(&ended, &known, Work::None, 0).1, Step::Wait, "a registration may be on its way");
}

/// Theme 12: a runner that just got a job is not stopped.
#[test]
fn a_machine_ends_only_after_its_runner_is_removed() {
    let mut serving = claim(Machine::Running, record(true));
    let mut known = Known::default();
    known.listed(Some(&seen(true, false)), now(0).monotonic, now(0));
    assert_eq!(step(&serving, &known, Work::None, 0), (Phase::Online(now(0).wall), Step::Wait));
    serving.ends = true;
    assert_eq!(step(&serving, &known, Work::None, 0), (Phase::Ending, Step::Remove(7)));
    // GitHub refuses: it has a job.
    known.is_busy = true;
    assert_eq!(step(&serving, &known, Work::None, 0), (Phase::Busy(None), Step::Wait));
    assert_eq!(step(&serving, &known, Work::Running(JOB), 0), (Phase::Busy(Some(JOB)), Step::Wait));
    assert_eq!(step(&serving, &known, Work::Done(JOB), 0), (Phase::Ending, Step::Remove(7)));
    known.is_removed = true;
    assert_eq!(step(&serving, &known, Work::Done(JOB), 0), (Phase::Ending, Step::End(Why::JobDone)));
}

/// Theme 6 and 13: what GitHub does not list for a moment is not gone.
#[test]
fn a_runner_counts_as_gone_or_offline_only_after_a_grace_period() {
    let serving = claim(Machine::Running, record(true));
    let mut known = Known::default();
    known.listed(None, now(0).monotonic, now(0));
    known.listed(None, now(ABSENT_GRACE.as_secs() - 1).monotonic, now(0));
    assert_eq!(step(&serving, &known, Work::None, 1), (Phase::Starting, Step::Wait));
    known.listed(None, now(ABSENT_GRACE.as_secs()).monotonic, now(0));
    assert_eq!(step(&serving, &known, Work::None, 1).1, Step::Remove(7));
    assert_eq!(step(&serving, &known, Work::Running(JOB), 1).1, Step::Wait, "a job runs on it all the same");
    known.listed(Some(&seen(true, false)), now(100).monotonic, now(100));
    assert_eq!(step(&serving, &known, Work::None, 100).0, Phase::Online(now(100).wall));
    known.listed(Some(&seen(false, false)), now(110).monotonic, now(110));
    let deadline = 110 + OFFLINE_GRACE.as_secs();
    assert_eq!(step(&serving, &known, Work::None, deadline - 1).1, Step::Wait);
    assert_eq!(step(&serving, &known, Work::None, deadline).1, Step::Remove(7));
    let unseen = Known::default();
    let late = ONLINE_DEADLINE.as_secs();
    assert_eq!(step(&serving, &unseen, Work::None, late).1, Step::Wait, "after a restart nobody knows before a list");
    let mut never = Known::default();
    never.listed(Some(&seen(false, false)), now(0).monotonic, now(0));
    assert_eq!(step(&serving, &never, Work::None, ONLINE_DEADLINE.as_secs() - 1).1, Step::Wait);
    assert_eq!(step(&serving, &never, Work::None, ONLINE_DEADLINE.as_secs()).1, Step::Remove(7));
}

#[test]
fn the_runner_of_a_machine_that_ended_is_removed_however_long_github_calls_it_busy() {
    let ended = claim(Machine::Ended, record(true));
    let mut known = Known { is_busy: true, ..Known::default() };
    assert_eq!(step(&ended, &known, Work::Running(JOB), 0).1, Step::Remove(7));
    known.failed(now(0).monotonic, "uid");
    assert_eq!(step(&ended, &known, Work::Running(JOB), 1).1, Step::Wait);
    assert_eq!(step(&ended, &known, Work::Running(JOB), 200).1, Step::Remove(7));
    known.is_removed = true;
    assert_eq!(step(&ended, &known, Work::None, 200).1, Step::End(Why::MachineEnded));
}

#[test]
fn names_are_of_one_installation_and_one_claim_and_short_enough() {
    let long = Name::new("ci", &"x".repeat(63));
    let name = runner_name("operator-1", &long, "uid-1");
    assert!(name.len() <= 64 && name.starts_with(&prefix("operator-1")), "{name}");
    assert!(!name.starts_with(&prefix("operator-2")));
    assert_ne!(name, runner_name("operator-1", &long, "uid-2"));
    let odd = runner_name("operator-1", &Name::new("ci", "a.b"), "uid");
    assert!(odd.bytes().all(|byte| byte.is_ascii_graphic()), "{odd}");
}
