//! Tests of what is asked of GitHub: in which order, about what, and where.

use super::{Dispatch, UNCONFIRMED};
use crate::jobs::demand::tests::{job, pool};
use crate::jobs::demand::{Pool, Scope};
use crate::jobs::exchange::{Ask, Decision, Event, Objects};
use crate::jobs::fair::Rules;
use crate::jobs::job::{Facts, JobKey, Observation, Source, State};
use crate::jobs::runners::{Claim, Machine, RunnerRecord, Seen, runner_name};
use crate::jobs::table::LookUp;
use crate::object::Name;
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

struct Bed {
    dispatch: Dispatch,
    pools: Vec<Pool>,
    claims: Vec<Claim>,
}

fn now(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn scope(owner: &str) -> Scope {
    Scope { owner: owner.into(), repository: None }
}

impl Bed {
    /// One pool, and so many requests in the hour.
    fn new(limit: u32) -> Bed {
        let (dispatch, pools) = (Dispatch::new("operator"), vec![pool("linux", &["self-hosted", "pve"])]);
        let mut bed = Bed { dispatch, pools, claims: Vec::new() };
        let limits = Event::Limits { owner: "acme".into(), limit, remaining: limit, reset: now(3_600).wall };
        bed.dispatch.take(limits, now(0));
        bed
    }

    fn decide(&mut self, second: u64) -> Decision {
        let (pools, claims, rules) = (&self.pools, &self.claims, &Rules::default());
        self.dispatch.decide(Objects { pools, claims, is_complete: true, rules }, now(second))
    }

    fn see(&mut self, facts: Facts, second: u64) {
        let observation = Observation { source: Source::Webhook, at: now(second).wall, facts };
        self.dispatch.take(Event::Observed(Box::new(observation)), now(second));
    }

    /// A claim whose runner is registered in the organisation.
    fn claim(&mut self, machine: Machine, owner: &str) -> String {
        let name = Name::new("ci", "linux-1");
        let runner = runner_name("operator", &name, "u");
        let registered_time = now(0).wall;
        let record = RunnerRecord {
            id: 9,
            name: runner.clone(),
            scale_set: None,
            scope: Some(scope(owner)),
            registered_time,
            delivered_time: Some(registered_time),
        };
        let (pool, is_off) = (Name::new("ci", "linux"), machine == Machine::Ended);
        let claim = Claim::starting(name, pool, registered_time);
        self.claims = vec![Claim { machine, is_off, runner: Some(record), ..claim }];
        runner
    }
}

fn look_ups(decision: &Decision) -> Vec<JobKey> {
    let key = |ask: &Ask| match ask {
        Ask::LookUp(_, key) => Some(*key),
        _ => None,
    };
    decision.asks.iter().filter_map(key).collect()
}

#[test]
fn a_job_that_nobody_confirms_is_looked_up_also_if_its_repository_is_in_no_list() {
    let mut bed = Bed::new(5_000);
    bed.pools[0].polls = false;
    let facts = job(1, "acme/shop", &["pve"]);
    let key = facts.key;
    bed.see(facts.clone(), 0);
    let unconfirmed = UNCONFIRMED.as_secs();
    assert_eq!(look_ups(&bed.decide(unconfirmed - 1)), []);
    assert_eq!(look_ups(&bed.decide(unconfirmed)), [key]);
    let found = LookUp::Found(Box::new(facts));
    let asked = now(unconfirmed).wall;
    bed.dispatch.take(Event::LookedUp { key, asked, answer: found }, now(unconfirmed));
    assert_eq!(look_ups(&bed.decide(2 * unconfirmed - 1)), [], "it was confirmed");
    assert_eq!(look_ups(&bed.decide(2 * unconfirmed)), [key]);
    let asked = now(2 * unconfirmed).wall;
    bed.dispatch.take(Event::LookedUp { key, asked, answer: LookUp::Absent }, now(2 * unconfirmed));
    bed.decide(2 * unconfirmed + 1);
    assert!(bed.dispatch.table().all().all(|job| !job.is_open()));
}

#[test]
fn look_ups_that_fail_leave_the_limit_of_requests_to_lists() {
    let mut bed = Bed::new(1_000);
    for id in 0..300 {
        // Nobody answers for its repository, and no list has it.
        bed.see(Facts { run: 1, ..job(id, "acme/gone", &["pve"]) }, 0);
    }
    // All that polls may use at this moment.
    let first = bed.decide(UNCONFIRMED.as_secs());
    let is_list = |ask: &Ask| matches!(ask, Ask::ListJobs(_) | Ask::ListRunners(_));
    assert_eq!(first.asks.iter().filter(|ask| is_list(ask)).count(), 2, "{:?}", first.asks.len());
    let place = |wanted: &dyn Fn(&Ask) -> bool| first.asks.iter().position(wanted);
    assert!(place(&is_list) < place(&|ask| matches!(ask, Ask::LookUp(..))));
}

#[test]
fn an_event_about_a_job_of_the_machines_of_github_is_not_looked_up() {
    let mut bed = Bed::new(5_000);
    for (id, label) in [(1, "ubuntu-latest"), (2, "pve")] {
        let facts = job(id, "acme/shop", &[label]);
        let observation = Observation { source: Source::Webhook, at: Timestamp::UNIX_EPOCH, facts };
        bed.dispatch.take(Event::Observed(Box::new(observation)), now(0));
    }
    assert_eq!(look_ups(&bed.decide(0)), [JobKey::Job { id: 2, attempt: 1 }]);
}

#[test]
fn nobody_is_asked_for_the_jobs_of_an_owner_whose_pools_do_not_poll() {
    let mut bed = Bed::new(5_000);
    bed.pools[0].polls = false;
    let is_list = |decision: &Decision| decision.asks.contains(&Ask::ListJobs("acme".into()));
    assert!(!is_list(&bed.decide(0)) && !is_list(&bed.decide(100)));
    bed.pools.push(pool("other", &["gpu"]));
    assert!(is_list(&bed.decide(101)), "the pool that came later does");
}

/// The pool is of another organisation by now.
#[test]
fn a_runner_is_listed_and_removed_where_it_was_registered() {
    let mut bed = Bed::new(5_000);
    let name = bed.claim(Machine::Running, "acme");
    bed.pools[0].scope = scope("other");
    let limits = Event::Limits { owner: "other".into(), limit: 5_000, remaining: 5_000, reset: now(3_600).wall };
    bed.dispatch.take(limits, now(0));
    let mut running = job(1, "acme/shop", &["pve"]);
    (running.state, running.runner) = (State::InProgress, Some(name.clone()));
    bed.see(running, 0);
    let is_removal = |ask: &&Ask| matches!(ask, Ask::Remove { .. });
    for second in 1..400 {
        // Another one there has its id by chance, and no list there has it.
        let theirs = Seen { id: 9, name: "theirs".into(), is_online: true, is_busy: false };
        let event = Event::Runners { scope: scope("other"), asked: now(second).monotonic, runners: Some(vec![theirs]) };
        bed.dispatch.take(event, now(second));
        let decision = bed.decide(second);
        assert_eq!((decision.asks.iter().find(is_removal), decision.orders.len()), (None, 0), "its job runs");
    }
    bed.claims[0].machine = Machine::Ended;
    let claim = Some(bed.claims[0].name.clone());
    let expected = Ask::Remove { scope: scope("acme"), id: 9, claim };
    assert_eq!(bed.decide(400).asks.iter().find(is_removal), Some(&expected));
    bed.dispatch = Bed::new(5_000).dispatch;
    bed.claims[0].is_elsewhere = true;
    assert_eq!(bed.decide(401).asks.iter().find(is_removal), None, "this server does not know it");
}
