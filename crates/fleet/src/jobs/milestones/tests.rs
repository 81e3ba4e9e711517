//! Tests of what is counted about jobs.

use super::{Milestone, Milestones, StartPhase};
use crate::jobs::demand::Wait;
use crate::jobs::demand::tests::job;
use crate::jobs::job::{Facts, JobKey, Observation, Source, State};
use crate::jobs::story::What;
use crate::jobs::table::{KEPT, Table};
use jiff::Timestamp;
use std::time::Duration;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn see(table: &mut Table, second: i64, state: State) {
    let facts = Facts {
        state,
        runner: (state >= State::InProgress).then(|| "vp-1".into()),
        created: Some(at(0)),
        started: (state >= State::InProgress).then(|| at(second)),
        conclusion: (state == State::Completed).then(|| "failure".into()),
        ..job(7, "acme/shop", &["pve"])
    };
    table.observe(&Observation { source: Source::Webhook, at: at(second), facts }, at(second));
}

fn add(table: &mut Table, second: i64, what: What) {
    table.story_of(&JobKey::Job { id: 7, attempt: 1 }).unwrap().add(at(second), what);
}

fn on() -> What {
    What::On { claim: "ci/linux-a".into(), pool: "ci/linux".into() }
}

#[test]
fn each_job_is_counted_once_with_the_time_of_each_phase() {
    let (mut table, mut milestones) = (Table::default(), Milestones::default());
    see(&mut table, 3, State::Queued);
    assert_eq!(milestones.take(&table), [Milestone::Noticed(Source::Webhook)]);
    let pool = || "ci/linux".to_owned();
    add(&mut table, 4, What::Waits(Wait::PoolFull { pool: pool(), max: 2 }));
    add(&mut table, 24, What::Waits(Wait::Creating { pool: pool() }));
    add(&mut table, 26, What::Waits(Wait::Booting { claim: "ci/linux-b".into(), since: at(26) }));
    add(&mut table, 30, What::MachineFailed("ci/linux-b".into()));
    add(&mut table, 31, What::Waits(Wait::Creating { pool: pool() }));
    add(&mut table, 33, What::Waits(Wait::Booting { claim: "ci/linux-a".into(), since: at(33) }));
    add(&mut table, 53, What::Waits(Wait::Idle { runner: "vp-1".into(), since: at(53) }));
    assert_eq!(milestones.take(&table), []);
    see(&mut table, 55, State::InProgress);
    assert_eq!(milestones.take(&table), [], "the runner may be somebody else's");
    add(&mut table, 56, on());
    let found = milestones.take(&table);
    let [Milestone::Started { queued, phases, pool, .. }] = found.as_slice() else { panic!("{found:?}") };
    let seconds: Vec<(StartPhase, u64)> = phases.iter().map(|(phase, time)| (*phase, time.as_secs())).collect();
    use StartPhase::{Admission, Assignment, Boot, Creation, Notice};
    assert_eq!(seconds, [(Notice, 3), (Admission, 21), (Creation, 4), (Boot, 25), (Assignment, 2)]);
    assert_eq!((*queued, pool.as_str()), (Duration::from_secs(55), "ci/linux"));
    assert_eq!(phases.iter().map(|(_, time)| *time).sum::<Duration>(), *queued);
    see(&mut table, 90, State::Completed);
    let ended = milestones.take(&table);
    assert!(matches!(&ended[..], [Milestone::Ended { conclusion, .. }] if conclusion == "failure"), "{ended:?}");
    assert_eq!(milestones.take(&table), []);
    table.prune(at(91 + i64::try_from(KEPT.as_secs()).unwrap()));
    assert_eq!(milestones.take(&table), []);
    assert!(milestones.noticed.is_empty());
    milestones.started.extend((0..1_001).map(|number| number.to_string()));
    milestones.take(&table);
    assert!(milestones.started.is_empty() && milestones.ended.is_empty(), "runners are not remembered for ever");
}

#[test]
fn a_job_that_a_scale_set_names_differently_is_started_and_ends_once() {
    let (mut table, mut milestones) = (Table::default(), Milestones::default());
    let request = JobKey::Request { scale_set: 3, id: 9 };
    let see_request = |table: &mut Table, second: i64, state: State| {
        let runner = (state >= State::InProgress).then(|| "vp-1".into());
        let facts = Facts { key: request, state, runner, ..job(7, "acme/shop", &["pve"]) };
        table.observe(&Observation { source: Source::ScaleSet, at: at(second), facts }, at(second));
    };
    see(&mut table, 1, State::Queued);
    see_request(&mut table, 1, State::Queued);
    milestones.take(&table);
    let mut count = 0;
    for state in [State::InProgress, State::Completed] {
        see_request(&mut table, 5, state);
        table.story_of(&request).unwrap().add(at(5), on());
        count += milestones.take(&table).len();
        see(&mut table, 6, state);
        add(&mut table, 6, on());
        count += milestones.take(&table).len();
    }
    assert_eq!(count, 2, "a start and an end");
}

#[test]
fn what_happened_before_this_process_is_not_counted_but_its_end_is() {
    let (mut table, mut milestones) = (Table::default(), Milestones::default());
    see(&mut table, 3, State::InProgress);
    add(&mut table, 3, on());
    assert_eq!(milestones.take(&table), [], "nobody knows how long it waited");
    see(&mut table, 9, State::Completed);
    assert_eq!(milestones.take(&table).len(), 1);
    let (mut table, mut milestones) = (Table::default(), Milestones::default());
    see(&mut table, 3, State::Completed);
    add(&mut table, 3, on());
    assert_eq!(milestones.take(&table), []);
}
