//! Tests of the table: whatever order observations have, the table is the same.

use super::{Change, FRESH, KEPT, List, LookUp, Table};
use crate::jobs::job::{Facts, JobKey, Observation, Repository, Source, State};
use crate::jobs::simulation::random::Random;
use jiff::Timestamp;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn facts(id: u64, attempt: u32, state: State) -> Facts {
    Facts {
        key: JobKey::Job { id, attempt },
        repository: Repository::new("acme", "shop"),
        run: 7,
        name: "build".into(),
        labels: ["pve".to_owned()].into(),
        group: None,
        state,
        runner: (state >= State::InProgress).then(|| format!("runner-{id}-{attempt}")),
        conclusion: (state == State::Completed).then(|| "success".into()),
        created: Some(at(0)),
        started: (state >= State::InProgress).then(|| at(10)),
        completed: (state == State::Completed).then(|| at(20)),
    }
}

fn seen(id: u64, attempt: u32, state: State, second: i64) -> Box<Observation> {
    Box::new(Observation { source: Source::Webhook, at: at(second), facts: facts(id, attempt, state) })
}

fn list(asked: i64, jobs: Vec<Facts>) -> List {
    let read = [Repository::new("acme", "shop")].into();
    List { owner: "acme".into(), read, asked: at(asked), jobs }
}

#[derive(Clone)]
enum Step {
    Seen(Box<Observation>),
    LookedUp(u64, i64, LookUp),
}

fn truths(steps: &[Step]) -> Vec<String> {
    let mut table = Table::default();
    for (number, step) in steps.iter().enumerate() {
        // Received late, but not so late that it has to be looked up.
        let received = at(100 + i64::try_from(number).unwrap());
        match step {
            Step::Seen(observation) => drop(table.observe(observation, received)),
            Step::LookedUp(id, asked, answer) => {
                table.looked_up(&JobKey::Job { id: *id, attempt: 1 }, at(*asked), answer, received);
            }
        }
    }
    table.all().map(|job| format!("{:?}", job.truth())).collect()
}

/// Theme 11: attempts and repetitions; every order of eight observations, with each one twice.
#[test]
fn the_order_of_observations_makes_no_difference() {
    let mut other = facts(1, 1, State::InProgress);
    (other.runner, other.group, other.started) = (Some("another".into()), Some("g".into()), None);
    let found = LookUp::Found(Box::new(facts(1, 1, State::Queued)));
    let all = [
        Step::Seen(seen(1, 1, State::Queued, 0)),
        Step::Seen(seen(1, 1, State::Waiting, 1)),
        Step::Seen(seen(1, 1, State::InProgress, 10)),
        Step::Seen(seen(1, 1, State::Completed, 20)),
        Step::Seen(seen(1, 2, State::Queued, 30)),
        Step::Seen(Box::new(Observation { source: Source::ScaleSet, at: at(12), facts: other })),
        Step::LookedUp(1, 25, found),
    ];
    let expected = truths(&all);
    let mut orders = 0;
    let mut order: Vec<usize> = (0..all.len()).collect();
    permute(&mut order, 0, &mut |order| {
        let steps: Vec<Step> = order.iter().map(|index| all[*index].clone()).collect();
        assert_eq!(truths(&steps), expected, "{order:?}");
        orders += 1;
    });
    assert_eq!(orders, 5_040);
    let mut random = Random(1);
    for _ in 0..2_000 {
        let mut steps: Vec<Step> = all.to_vec();
        for _ in 0..random.below(9) {
            steps.push(all[usize::try_from(random.below(all.len() as u64)).unwrap()].clone());
        }
        for end in (1..steps.len()).rev() {
            steps.swap(end, usize::try_from(random.below(end as u64 + 1)).unwrap());
        }
        assert_eq!(truths(&steps), expected);
    }
}

fn permute(order: &mut Vec<usize>, from: usize, check: &mut impl FnMut(&[usize])) {
    if from == order.len() {
        return check(order);
    }
    for index in from..order.len() {
        order.swap(from, index);
        permute(order, from + 1, check);
        order.swap(from, index);
    }
}

#[test]
fn a_job_that_is_not_listed_ends_only_after_it_was_looked_up() {
    let mut table = Table::default();
    let key = JobKey::Job { id: 1, attempt: 1 };
    table.observe(&seen(1, 1, State::Queued, 0), at(0));
    table.observe(&seen(2, 1, State::Queued, 50), at(50));
    table.listed(&list(40, vec![]), at(60));
    assert!(table.get(&key).unwrap().is_suspect() && table.get(&key).unwrap().is_unmet(), "it still needs a runner");
    assert!(!table.get(&JobKey::Job { id: 2, attempt: 1 }).unwrap().is_suspect(), "it was reported after the list");
    assert_eq!(table.looked_up(&key, at(61), &LookUp::Failed, at(62)), Change::Nothing);
    assert!(table.get(&key).unwrap().is_unmet(), "an API that fails says nothing");
    table.looked_up(&key, at(63), &LookUp::Found(Box::new(facts(1, 1, State::Queued))), at(64));
    assert!(!table.get(&key).unwrap().is_suspect(), "the list was late");
    table.listed(&list(70, vec![]), at(71));
    assert_eq!(table.looked_up(&key, at(72), &LookUp::Absent, at(73)), Change::Advanced);
    assert!(!table.get(&key).unwrap().is_open());
    // A repetition of an old event does not bring it back, a list does.
    table.observe(&seen(1, 1, State::Queued, 0), at(80));
    assert!(!table.get(&key).unwrap().is_open());
    table.listed(&list(90, vec![facts(1, 1, State::Queued)]), at(91));
    assert!(table.get(&key).unwrap().is_unmet());
}

#[test]
fn a_list_says_nothing_about_repositories_that_it_does_not_cover() {
    for read in [vec![], vec![Repository::new("acme", "other"), Repository::new("other", "shop")]] {
        let list = List { read: read.into_iter().collect(), ..list(40, vec![]) };
        let mut table = Table::default();
        table.observe(&seen(1, 1, State::Queued, 0), at(0));
        table.listed(&list, at(60));
        assert!(!table.all().any(super::Job::is_suspect), "{list:?}");
    }
}

#[test]
fn ended_jobs_are_kept_for_a_while_and_old_events_do_not_bring_them_back() {
    let mut table = Table::default();
    table.observe(&seen(1, 1, State::Completed, 20), at(20));
    table.observe(&seen(2, 1, State::Queued, 20), at(20));
    let kept = i64::try_from(KEPT.as_secs()).unwrap();
    table.prune(at(20 + kept - 1));
    assert_eq!(table.len(), 2);
    assert!(table.of_runner("runner-1-1").is_some());
    table.prune(at(20 + kept));
    assert_eq!((table.len(), table.of_runner("runner-1-1").is_some()), (1, false), "an open one is never dropped");
    assert!(FRESH < KEPT, "otherwise a repetition may be about a job that was dropped");
    assert_eq!(table.observe(&seen(1, 1, State::Queued, 0), at(kept + 20)), Change::Unproven);
    assert_eq!(table.len(), 1);
    let found = LookUp::Found(Box::new(facts(1, 1, State::Queued)));
    assert_eq!(table.looked_up(&JobKey::Job { id: 1, attempt: 1 }, at(kept), &found, at(kept)), Change::New);
}

fn request(id: u64, state: State, second: i64) -> Observation {
    let facts = Facts { key: JobKey::Request { scale_set: 7, id }, ..facts(id, 1, state) };
    Observation { source: Source::ScaleSet, at: at(second), facts }
}

/// An offer comes before anything is assigned, so that the scale set seems to be idle.
#[test]
fn an_offer_of_an_idle_scale_set_is_no_job_that_has_ended() {
    let (mut table, key) = (Table::default(), JobKey::Request { scale_set: 7, id: 1 });
    let state = |table: &Table| table.get(&key).map(|job| (job.facts.state, job.is_open()));
    table.observe(&request(1, State::Waiting, 1), at(1));
    table.scale_set_stands(7, 0, 1, at(1));
    table.scale_set_stands(7, 0, 1, at(2));
    assert_eq!(state(&table), Some((State::Waiting, true)));
    table.withdrawn(7, &[1].into(), at(2));
    assert_eq!(state(&table), Some((State::Waiting, false)), "another scale set has it");
    table.observe(&request(1, State::Queued, 3), at(3));
    assert_eq!(state(&table), Some((State::Queued, true)), "a message that is later brings it back");
    table.scale_set_stands(7, 0, 5, at(3));
    assert_eq!(state(&table), Some((State::Queued, true)), "said at the same moment");
    table.scale_set_stands(8, 0, 0, at(4));
    assert_eq!(state(&table), Some((State::Queued, true)), "another scale set");
    table.scale_set_stands(7, 0, 5, at(4));
    assert_eq!(state(&table), Some((State::Queued, false)), "the message of its end was lost");
    table.observe(&request(1, State::InProgress, 5), at(5));
    assert_eq!(super::super::runners::work(&table, "runner-1-1"), super::super::runners::Work::Running(key));
    table.scale_set_is_gone(7, at(5));
    assert_eq!(state(&table), Some((State::InProgress, false)));
}

/// A scale set and a webhook name a job differently, and neither is always first.
#[test]
fn the_runner_of_a_job_has_done_it_as_soon_as_one_source_says_so() {
    for is_webhook_first in [true, false] {
        let mut table = Table::default();
        let mut steps = [*seen(1, 1, State::Completed, 5), request(1, State::InProgress, 6)];
        if !is_webhook_first {
            steps = [request(1, State::Completed, 5), *seen(1, 1, State::InProgress, 6)];
        }
        for step in &steps {
            table.observe(step, at(7));
        }
        let found = super::super::runners::work(&table, "runner-1-1");
        assert!(matches!(found, super::super::runners::Work::Done(_)), "{found:?}");
    }
}

/// GitHub ends them, and nobody could be asked whether it has.
#[test]
fn a_job_that_nobody_confirms_is_forgotten_after_the_longest_time_that_it_can_be_open() {
    let mut table = Table::default();
    table.observe(&seen(1, 1, State::Queued, 0), at(0));
    table.observe(&seen(2, 1, State::InProgress, 0), at(0));
    table.observe(&seen(3, 1, State::Waiting, 0), at(0));
    let left = |table: &mut Table, hours: i64| {
        table.prune(at(hours * 3_600));
        table.len()
    };
    assert_eq!((left(&mut table, 24), left(&mut table, 25)), (3, 2));
    assert_eq!((left(&mut table, 5 * 24), left(&mut table, 5 * 24 + 1)), (2, 1));
}
