//! Tests of when the queue is published.

use super::{Chronicle, STARTS, Told};
use crate::jobs::demand::Scope;
use crate::jobs::demand::tests::{job, pool};
use crate::jobs::dispatch::Dispatch;
use crate::jobs::exchange::{Ask, Decision, Event, Objects};
use crate::jobs::fair::Rules;
use crate::jobs::figures::Beside;
use crate::jobs::job::{Observation, Source, State};
use crate::jobs::milestones::Milestone;
use crate::jobs::published::{Operator, Report};
use crate::jobs::runners::{Claim, Phase};
use crate::notice::Notice;
use crate::object::Name;
use change::{Effect, Moment, Now};
use jiff::Timestamp;
use protocol::{WriteError, Written};
use serde_json::json;
use std::time::Duration;

fn now(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn claim(name: &str) -> Claim {
    Claim::starting(Name::new("ci", name), Name::new("ci", "linux"), now(0).wall)
}

struct Bed {
    dispatch: Dispatch,
    chronicle: Chronicle,
}

impl Bed {
    fn new() -> Bed {
        Bed { dispatch: Dispatch::new("operator"), chronicle: Chronicle::default() }
    }

    fn see(&mut self, second: u64, id: u64, state: State) {
        let mut facts = job(id, "acme/shop", &["pve"]);
        facts.state = state;
        let observation = Observation { source: Source::Webhook, at: now(second).wall, facts };
        self.dispatch.take(Event::Observed(Box::new(observation)), now(second));
    }

    /// Decides, and writes the document if one is due; how many jobs it has.
    fn look(&mut self, second: u64) -> Option<usize> {
        let (pools, rules) = ([pool("linux", &["pve"])], Rules::default());
        let objects = Objects { pools: &pools, claims: &[], is_complete: true, rules: &rules };
        let decision = self.dispatch.decide(objects, now(second));
        let (operator, none) = (Operator::default(), Beside::default());
        self.chronicle.take((&operator, "api"), &self.dispatch, objects, &decision, &none, now(second));
        self.chronicle.publish(now(second).monotonic).map(|report| report.jobs.len())
    }

    fn written(&mut self, second: u64, is_written: bool) -> bool {
        self.chronicle.published(is_written, 100, now(second).monotonic)
    }
}

#[test]
fn a_fleet_that_is_idle_writes_nothing_and_a_busy_one_every_five_seconds() {
    let mut bed = Bed::new();
    assert_eq!(bed.look(0), None, "changes within a second are one document");
    assert_eq!(bed.look(1), Some(0), "the pool");
    bed.written(1, true);
    let writes = (2..600).filter(|second| bed.look(*second).is_some()).count();
    assert_eq!((writes, bed.chronicle.due()), (0, None), "nothing happens");
    let mut written = Vec::new();
    for second in 600..660 {
        bed.see(second, second, State::Queued);
        if bed.look(second).is_some() {
            bed.written(second, true);
            written.push(second);
        }
    }
    assert!((11..=12).contains(&written.len()), "{written:?}");
    assert!(written.windows(2).all(|pair| pair[1] - pair[0] >= 5), "{written:?}");
}

#[test]
fn a_document_that_cannot_be_written_is_written_later_with_what_is_new_then() {
    let mut bed = Bed::new();
    bed.look(0);
    assert_eq!(bed.look(1), Some(0));
    assert_eq!(bed.look(2), None, "it is on its way");
    bed.see(2, 7, State::Queued);
    bed.look(2);
    assert!(bed.written(3, false), "the first failure is news");
    assert_eq!(bed.chronicle.due(), Some(now(8).monotonic));
    assert_eq!(bed.look(8), Some(1));
    assert!(!bed.written(9, false), "the second is not");
    assert_eq!((bed.look(12), bed.chronicle.due()), (None, Some(now(19).monotonic)), "the pause grows");
    assert_eq!(bed.look(19), Some(1));
    bed.written(19, true);
    assert_eq!(bed.chronicle.due(), None);
}

#[test]
fn numbers_are_told_when_they_change_and_jobs_are_counted_once() {
    let mut bed = Bed::new();
    let (pools, rules) = ([pool("linux", &["pve"])], Rules::default());
    let objects = Objects { pools: &pools, claims: &[], is_complete: true, rules: &rules };
    let take = |bed: &mut Bed, second: u64| {
        let decision = bed.dispatch.decide(objects, now(second));
        let (operator, none) = (Operator::default(), Beside::default());
        bed.chronicle.take((&operator, "api"), &bed.dispatch, objects, &decision, &none, now(second))
    };
    let limits = Event::Limits { owner: "acme".into(), limit: 5_000, remaining: 5_000, reset: now(3_600).wall };
    bed.dispatch.take(limits, now(0));
    bed.see(1, 7, State::Queued);
    bed.see(3, 8, State::Queued);
    let told = take(&mut bed, 4);
    assert_eq!(told.milestones, [Milestone::Noticed(Source::Webhook), Milestone::Noticed(Source::Webhook)]);
    let figures = told.figures.unwrap();
    assert_eq!(figures.waiting["Creating"], (2, now(1).wall), "since the first one waits");
    assert_eq!(figures.runners[&("ci/linux".to_owned(), "busy")], 0);
    let (left, limit) = figures.budgets["acme"];
    assert!((4_990..=5_000).contains(&left) && limit == 5_000, "{left}");
    let told = take(&mut bed, 5);
    assert_eq!((told.milestones.len(), told.figures), (0, None));
}

#[test]
fn the_document_is_a_config_map_and_its_failure_is_reported_once() {
    let mut bed = Bed::new();
    bed.look(0);
    let write = |bed: &mut Bed, second: u64| {
        let (pools, rules) = ([pool("linux", &["pve"])], Rules::default());
        let objects = Objects { pools: &pools, claims: &[], is_complete: true, rules: &rules };
        let decision = bed.dispatch.decide(objects, now(second));
        let (operator, none) = (Operator::default(), Beside::default());
        bed.chronicle.take((&operator, "api"), &bed.dispatch, objects, &decision, &none, now(second));
        bed.chronicle.write("home", now(second))
    };
    let sent = write(&mut bed, 1).unwrap();
    assert_eq!(sent.key.to_string(), "ConfigMap home/virtpilot-fleet-queue");
    assert!(Chronicle::is_mine(&sent.key) && write(&mut bed, 2).is_none(), "one is on its way");
    let Effect::Apply { object, .. } = &sent.effect else { panic!("{:?}", sent.effect) };
    let object = object.value();
    let report: Report = serde_json::from_str(object["data"]["queue.json"].as_str().unwrap()).unwrap();
    assert_eq!((report.pools.len(), &object["data"]["reported"]), (1, &json!(now(1).wall.to_string())));
    let refused: Result<Written, WriteError> =
        Err(WriteError::Refused { key: sent.key.clone(), code: 403, message: "forbidden".into() });
    let notice = bed.chronicle.answered(&refused, now(2).monotonic);
    assert!(matches!(notice, Some(Notice::QueueNotWritten(why)) if why.contains("forbidden")));
    write(&mut bed, 7).unwrap();
    assert_eq!(bed.chronicle.answered(&refused, now(8).monotonic), None);
    write(&mut bed, 18).unwrap();
    assert_eq!(bed.chronicle.answered(&Ok(Written::default()), now(18).monotonic), None);
    assert!(write(&mut bed, 60).is_none());
}

#[test]
fn machines_that_come_online_say_how_long_others_will_take() {
    let mut chronicle = Chronicle::default();
    let (pools, rules) = ([pool("linux", &["pve"])], Rules::default());
    let mut look = |second: u64, phases: &[(&str, Phase)]| {
        let claims: Vec<Claim> = phases.iter().map(|(name, _)| claim(name)).collect();
        let objects = Objects { pools: &pools, claims: &claims, is_complete: true, rules: &rules };
        let phases = phases.iter().map(|(name, phase)| (Name::new("ci", name), phase.clone())).collect();
        let decision = Decision { phases, ..Decision::default() };
        chronicle.note_starts("api", objects, &decision, now(second));
        chronicle.usual().get(&pools[0].name).map(Duration::as_secs)
    };
    let (starting, online) = (|| Phase::Starting, |second: u64| Phase::Online(now(second).wall));
    assert_eq!(look(0, &[("old", starting())]), None);
    assert_eq!(
        look(5, &[("old", online(5)), ("a", starting()), ("b", starting())]),
        None,
        "nobody knows when it began"
    );
    assert_eq!(look(30, &[("a", online(26)), ("b", starting())]), Some(21));
    assert_eq!(look(40, &[("a", online(26)), ("b", Phase::Busy(None))]), Some(35), "the higher one of two");
    assert_eq!(look(50, &[("c", starting()), ("b", Phase::Busy(None))]), Some(35));
    assert_eq!(look(51, &[("c", Phase::Ending)]), Some(35), "it has failed");
}

#[test]
fn the_usual_start_is_the_median_of_the_last_ones() {
    let mut chronicle = Chronicle::default();
    let pool = Name::new("ci", "linux");
    for seconds in [500, 21, 19, 20, 22, 18, 20, 300, 20, 21] {
        chronicle.started(&pool, Duration::from_secs(seconds));
    }
    assert_eq!((chronicle.usual()[&pool], chronicle.starts[&pool].len()), (Duration::from_secs(20), STARTS));
}

#[test]
fn a_runner_without_a_claim_is_told_once() {
    let mut chronicle = Chronicle::default();
    let scope = Scope { owner: "acme".into(), repository: None };
    let remove = |id: u64| Ask::Remove { scope: scope.clone(), id, claim: None };
    let of_claim = Ask::Remove { scope: scope.clone(), id: 9, claim: Some(Name::new("ci", "a")) };
    let decision = Decision { asks: vec![remove(1), remove(1), remove(2), of_claim], ..Decision::default() };
    let orphans = chronicle.orphans(&decision);
    assert_eq!(orphans, [(scope.clone(), 1), (scope.clone(), 2)]);
    assert_eq!(chronicle.orphans(&decision), []);
    let told = Told { orphans, ..Told::default() };
    let notices = told.notices(|found| (*found == scope).then(|| (Name::new("ci", "linux"), "u".to_owned())));
    assert!(matches!(&notices[..], [Notice::OrphanRunner { id: 1, owner, .. }, _] if owner == "acme"), "{notices:?}");
}

#[test]
fn two_servers_are_one_queue_and_one_that_no_pool_names_is_forgotten() {
    let (mut bed, other) = (Bed::new(), Bed::new());
    bed.see(1, 7, State::Queued);
    let (pools, rules) = ([pool("linux", &["pve"])], Rules::default());
    let objects = Objects { pools: &pools, claims: &[], is_complete: true, rules: &rules };
    let decision = bed.dispatch.decide(objects, now(2));
    let (operator, none) = (Operator::default(), Beside::default());
    let mut chronicle = Chronicle::default();
    let take = |chronicle: &mut Chronicle, server: &str, second: u64| {
        chronicle.take((&operator, server), &bed.dispatch, objects, &decision, &none, now(second))
    };
    take(&mut chronicle, "one", 2);
    let told = take(&mut chronicle, "two", 2);
    assert_eq!(told.figures.unwrap().waiting["Creating"].0, 2);
    take(&mut chronicle, "one", 3);
    take(&mut chronicle, "two", 3);
    let report = chronicle.publish(now(3).monotonic).unwrap();
    assert_eq!((report.jobs.len(), report.pools.len(), report.total.waiting), (2, 2, 2));
    chronicle.published(true, 100, now(3).monotonic);
    chronicle.retain(|server| server == "one");
    let decision = Decision::default();
    chronicle.take((&operator, "one"), &other.dispatch, objects, &decision, &none, now(60));
    let report = chronicle.publish(now(70).monotonic).unwrap();
    assert_eq!((report.jobs.len(), report.pools.len()), (0, 1));
}
