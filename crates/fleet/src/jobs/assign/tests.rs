//! Tests of the assignment of jobs to pools.

use super::{Assignment, Observed, Supply, assign};
use crate::jobs::demand::tests::{job, pool};
use crate::jobs::demand::{Hearing, Pool, Readiness, Scope, Wait};
use crate::jobs::fair::Rules;
use crate::jobs::job::{Facts, JobKey, Observation, Repository, Source, State};
use crate::jobs::table::Table;
use crate::object::Name;
use change::{Moment, Now};
use jiff::Timestamp;
use std::collections::BTreeMap;

#[derive(Default)]
struct Case {
    table: Table,
    pools: Vec<Pool>,
    supply: BTreeMap<Name, Supply>,
    assigned: BTreeMap<u64, u32>,
    rules: Rules,
    limited: BTreeMap<String, Timestamp>,
}

impl Case {
    fn queued(labels: &[&str], count: u64) -> Case {
        let mut case = Case { pools: vec![pool("linux", &["self-hosted", "pve"])], ..Case::default() };
        (0..count).for_each(|id| case.see(job(id, "acme/shop", labels)));
        case
    }

    fn see(&mut self, facts: Facts) {
        let at = Timestamp::UNIX_EPOCH;
        self.table.observe(&Observation { source: Source::Poll, at, facts }, at);
    }

    fn has(&mut self, starting: usize, idle: usize, busy: u32) {
        let at = Timestamp::UNIX_EPOCH;
        let named = |prefix: &str, count: usize| (0..count).map(|number| (format!("{prefix}{number}"), at)).collect();
        let supply = Supply {
            starting: named("claim-", starting),
            idle: named("vp-", idle),
            busy,
            others: 0,
            unplaced: 0,
            unnamed: 0,
        };
        self.supply.insert(Name::new("ci", "linux"), supply);
    }

    fn assign(&self) -> Assignment {
        assign(&Observed {
            table: &self.table,
            pools: &self.pools,
            supply: &self.supply,
            assigned: &self.assigned,
            rules: &self.rules,
            limited: &self.limited,
            runners: &["vp-0", "vp-1"].into(),
            now: Now { wall: Timestamp::UNIX_EPOCH, monotonic: Moment::default() },
        })
    }

    fn demand(&self) -> i32 {
        self.assign().scale[&Name::new("ci", "linux")].demand
    }

    fn reasons(&self) -> Vec<&'static str> {
        self.assign().waits.values().map(Wait::reason).collect()
    }
}

/// Theme 21 and 23: a job needs a machine until a runner has started it, whichever machine was made for it.
#[test]
fn a_job_is_unmet_until_a_runner_starts_it() {
    let mut case = Case::queued(&["pve"], 3);
    assert_eq!((case.demand(), case.reasons()), (3, vec!["Creating"; 3]));
    case.has(1, 0, 0);
    assert_eq!((case.demand(), case.reasons()), (3, vec!["Booting", "Creating", "Creating"]));
    case.has(1, 1, 0);
    assert_eq!((case.demand(), case.reasons()), (3, vec!["Idle", "Booting", "Creating"]));
    case.has(0, 1, 0);
    assert_eq!((case.demand(), case.reasons()), (3, vec!["Idle", "Creating", "Creating"]), "a failed boot re-opens it");
    // The machine takes another job: this one still needs one.
    case.has(0, 0, 1);
    assert_eq!(case.demand(), 4);
    let mut started = job(0, "acme/shop", &["pve"]);
    (started.state, started.runner) = (State::InProgress, Some("vp-0".into()));
    case.see(started);
    assert_eq!((case.demand(), case.reasons()), (3, vec!["Creating", "Creating"]));
}

#[test]
fn a_job_that_a_guest_has_just_reported_needs_no_other_machine_before_jobs_are_listed() {
    for (jobs, expected) in [(0, 1), (1, 1), (2, 2)] {
        let mut case = Case::queued(&["pve"], jobs);
        case.has(0, 1, 0);
        case.supply.values_mut().for_each(|supply| supply.unnamed = 1);
        assert_eq!(case.demand(), expected, "{jobs} jobs wait, as far as is known, and one of them runs");
        case.has(0, 0, 1);
        assert_eq!(case.demand(), i32::try_from(jobs).unwrap() + 1, "it ran before all of them");
    }
}

#[test]
fn limits_are_named_in_the_order_in_which_they_hold() {
    let mut case = Case::queued(&["pve"], 3);
    case.pools[0].scaling.max_replicas = 1;
    assert_eq!((case.demand(), case.reasons()), (1, vec!["Creating", "PoolFull", "PoolFull"]));
    case.pools[0].scaling.max_replicas = 10;
    case.pools[0].room = Some(2);
    assert_eq!((case.demand(), case.reasons()), (2, vec!["Creating", "Creating", "NoCapacity"]));
    case.has(1, 0, 0);
    assert_eq!(case.demand(), 3, "the machine that starts needs no more room");
    case.rules.repositories.entry(Repository::new("acme", "shop")).or_default().quota = Some(1);
    assert_eq!((case.demand(), case.reasons()), (1, vec!["Booting", "Quota", "Quota"]));
    case.rules.repositories.clear();
    case.rules.owners.insert("acme".into(), 2);
    assert_eq!((case.demand(), case.reasons()), (2, vec!["Booting", "Creating", "Quota"]));
    case.rules.owners.clear();
    case.limited.insert("acme".into(), Timestamp::UNIX_EPOCH);
    assert_eq!((case.demand(), case.reasons()), (3, vec!["Booting", "RateLimited", "RateLimited"]));
    case.pools[0].is_paused = true;
    assert_eq!((case.demand(), case.reasons()), (1, vec!["Booting", "Paused", "Paused"]));
    case.pools[0].labels = ["pv".to_owned()].into();
    assert_eq!((case.demand(), case.reasons()), (0, vec!["NoPool"; 3]));
}

#[test]
fn a_full_pool_leaves_jobs_to_the_next_one_that_fits() {
    let mut case = Case::queued(&["pve"], 3);
    case.pools[0].scaling.max_replicas = 1;
    case.pools.push(pool("large", &["self-hosted", "pve", "large"]));
    let assignment = case.assign();
    assert_eq!(assignment.scale[&Name::new("ci", "linux")].demand, 1);
    assert_eq!(assignment.scale[&Name::new("ci", "large")].demand, 2);
    assert_eq!(assignment.scale[&Name::new("ci", "linux")].waiting, 3);
    case.pools.iter_mut().for_each(|pool| pool.room = Some(2));
    assert_eq!(case.reasons(), ["Creating", "Creating", "PoolFull"], "pools share the room of a hypervisor");
}

#[test]
fn spares_minimum_and_maximum_bound_what_is_wanted() {
    let mut case = Case::queued(&["pve"], 3);
    let desired = |case: &Case| case.assign().scale[&Name::new("ci", "linux")].desired;
    case.pools[0].scaling.spares.booted = 2;
    assert_eq!(desired(&case), 5);
    case.pools[0].scaling.max_replicas = 4;
    assert_eq!(desired(&case), 4);
    case.pools[0].scaling.min_replicas = 9;
    assert_eq!(desired(&case), 4);
    case.pools[0].is_paused = true;
    assert_eq!(desired(&case), 0, "a pool that is paused keeps nothing ready");
}

/// Theme 20: the capacity is what there really is.
#[test]
fn a_scale_set_needs_what_is_assigned_to_it_and_reports_what_it_can_run() {
    let mut case = Case::queued(&["pve"], 3);
    case.pools[0].scale_set = Some(7);
    let scale = |case: &Case| case.assign().scale[&Name::new("ci", "linux")];
    assert_eq!((scale(&case).demand, scale(&case).capacity, case.reasons()), (0, 10, vec!["NotAssigned"; 3]));
    case.assigned.insert(7, 2);
    assert_eq!(scale(&case).demand, 2);
    case.has(1, 1, 1);
    case.pools[0].room = Some(1);
    assert_eq!((scale(&case).demand, scale(&case).capacity), (2, 4));
    case.rules.owners.insert("acme".into(), 2);
    assert_eq!(scale(&case).capacity, 2);
    case.pools[0].is_paused = true;
    assert_eq!(scale(&case).capacity, 1, "what runs goes on");
    case.see(Facts { key: JobKey::Request { scale_set: 7, id: 1 }, ..job(9, "acme/shop", &["pve"]) });
    assert_eq!(case.assign().waits[&JobKey::Request { scale_set: 7, id: 1 }].reason(), "Idle");
}

/// A pool that prefers jobs and has a scale set, and another one without.
fn set_and_other(jobs: u64) -> Case {
    let mut case = Case::queued(&["pve"], jobs);
    (case.pools[0].scale_set, case.pools[0].priority) = (Some(7), 1);
    case.pools.push(pool("other", &["self-hosted", "pve"]));
    case
}

#[test]
fn what_a_scale_set_cannot_run_is_left_to_the_next_pool() {
    let mut case = set_and_other(3);
    let demands = |case: &Case| ["linux", "other"].map(|name| case.assign().scale[&Name::new("ci", name)].demand);
    assert_eq!((demands(&case), case.reasons()), ([0, 0], vec!["NotAssigned"; 3]));
    case.pools[0].scaling.max_replicas = 2;
    assert_eq!((demands(&case), case.reasons()), ([0, 1], vec!["NotAssigned", "NotAssigned", "Creating"]));
    case.assigned.insert(7, 1);
    assert_eq!(demands(&case), [1, 2], "one place is taken by a job that is assigned already");
    case.pools[0].room = Some(0);
    assert_eq!(demands(&case), [1, 3]);
    (case.pools[0].room, case.pools[0].is_paused) = (None, true);
    assert_eq!(demands(&case), [1, 3]);
    (case.pools[0].is_paused, case.pools[0].hearing) = (false, Hearing::Taken);
    assert_eq!(demands(&case), [0, 3], "the assigned one is the other listener's");
    case.pools.pop();
    assert_eq!(case.reasons(), ["NotListening"; 3]);
    case.pools[0].hearing = Hearing::Deaf;
    case.pools[0].scaling.max_replicas = 3;
    assert_eq!((case.demand(), case.reasons()), (3, vec!["Creating"; 3]), "runners without the scale set run them");
    case.pools[0].hearing = Hearing::Opening;
    assert_eq!((case.demand(), case.reasons()), (1, vec!["NotAssigned", "NotAssigned", "PoolFull"]));
}

#[test]
fn offers_are_acquired_as_far_as_quotas_and_capacity_allow() {
    let mut case = set_and_other(0);
    for id in 1..=3 {
        let key = JobKey::Request { scale_set: 7, id };
        case.see(Facts { key, state: State::Waiting, ..job(id, "acme/shop", &["pve"]) });
    }
    let acquired = |case: &Case| case.assign().acquire.into_values().flatten().collect::<Vec<u64>>();
    assert_eq!((acquired(&case), case.reasons()), (vec![1, 2, 3], vec!["NotAssigned"; 3]));
    case.pools[0].scaling.max_replicas = 2;
    assert_eq!((acquired(&case), case.reasons()), (vec![1, 2], vec!["NotAssigned", "NotAssigned", "PoolFull"]));
    case.rules.repositories.entry(Repository::new("acme", "shop")).or_default().quota = Some(1);
    assert_eq!((acquired(&case), case.reasons()), (vec![1], vec!["NotAssigned", "Quota", "Quota"]));
    // One that was acquired waits for room, and counts all the same.
    case.see(Facts { key: JobKey::Request { scale_set: 7, id: 3 }, ..job(3, "acme/shop", &["pve"]) });
    case.assigned.insert(7, 1);
    case.pools[0].room = Some(0);
    assert_eq!((acquired(&case), case.reasons()), (vec![], vec!["Quota", "Quota", "NoCapacity"]));
    let mut case = Case { pools: case.pools, rules: case.rules, ..Case::default() };
    case.pools[0].room = None;
    for id in 1..=3 {
        let key = JobKey::Request { scale_set: 7, id };
        case.see(Facts { key, state: State::Waiting, ..job(id, "acme/shop", &["pve"]) });
    }
    case.rules.repositories.clear();
    // Another source knows them, too: who has no place here goes elsewhere.
    (1..=3).for_each(|id| case.see(job(id, "acme/shop", &["pve"])));
    assert_eq!(acquired(&case), [1, 2]);
    assert_eq!(case.assign().scale[&Name::new("ci", "other")].demand, 1);
    assert_eq!(case.assign().waits.len(), 6, "each name of a job says why it waits");
}

#[test]
fn a_job_that_two_sources_name_counts_once() {
    let mut case = set_and_other(0);
    let of = |id| JobKey::Request { scale_set: 7, id };
    for key in [JobKey::Job { id: 1, attempt: 1 }, of(1)] {
        let (state, runner) = (State::InProgress, Some("vp-1".to_owned()));
        case.see(Facts { key, state, runner, ..job(1, "acme/shop", &["pve"]) });
    }
    case.rules.each.insert(Scope { owner: "acme".into(), repository: None }, 2);
    case.pools.remove(0);
    case.see(job(2, "acme/shop", &["pve"]));
    assert_eq!(case.reasons(), ["Creating"], "one of two runs");
    let mut case = set_and_other(1);
    case.see(Facts { key: of(9), ..job(0, "acme/shop", &["pve"]) });
    let assignment = case.assign();
    assert_eq!(assignment.scale[&Name::new("ci", "linux")].waiting, 1);
    case.see(Facts { key: of(9), state: State::InProgress, ..job(0, "acme/shop", &["pve"]) });
    assert_eq!(case.assign().waits.len(), 0, "it runs, as one of them says");
}

#[test]
fn machines_that_cannot_run_jobs_of_the_scale_set_do_not_count_for_it() {
    let mut case = set_and_other(0);
    case.assigned.insert(7, 2);
    case.has(0, 0, 3);
    assert_eq!(case.demand(), 3);
    case.supply.values_mut().for_each(|supply| supply.others = 2);
    assert_eq!(case.demand(), 4, "two of its own, and two that end with their jobs");
}

#[test]
fn a_pool_that_can_make_no_machine_leaves_jobs_to_others_and_keeps_what_its_machines_will_run() {
    let mut case = Case::queued(&["pve"], 2);
    let first = Name::new("ci", "first");
    case.pools.push(Pool { name: first.clone(), priority: 1, ..case.pools[0].clone() });
    let at = Timestamp::UNIX_EPOCH;
    let starting = vec![("ci/first-1".to_owned(), at)];
    case.supply.insert(first.clone(), Supply { starting, ..Supply::default() });
    let demands = |case: &Case| {
        let found = case.assign().scale;
        (found[&first].demand, found[&Name::new("ci", "linux")].demand)
    };
    assert_eq!(demands(&case), (2, 0));
    case.pools[1].readiness = Readiness::Held("BackingOff");
    assert_eq!((demands(&case), case.reasons()), ((1, 1), vec!["Booting", "Creating"]));
    case.pools[1].readiness = Readiness::Disconnected;
    assert_eq!((demands(&case), case.reasons()), ((0, 2), vec!["Creating"; 2]), "its machine gets no runner");
    case.pools[1].readiness = Readiness::Unproved;
    let waiting = |case: &Case| case.assign().scale[&first].waiting;
    assert_eq!((demands(&case), waiting(&case)), ((0, 2), 0), "it learns nothing of jobs");
    case.pools.remove(0);
    assert_eq!(case.reasons(), ["NotReady"; 2]);
    assert_eq!((case.assign().scale[&first].demand, waiting(&case)), (0, 0));
    // What nobody else runs is what a held pool says it cannot meet.
    case.pools[0].readiness = Readiness::Held("NoRunnerVersion");
    assert_eq!((case.assign().scale[&first].demand, case.reasons()), (2, vec!["Booting", "NotReady"]));
}

#[test]
fn a_scale_set_of_a_pool_that_can_make_no_machine_reports_what_there_is() {
    let mut case = Case::queued(&["pve"], 3);
    case.pools[0].scale_set = Some(7);
    case.has(1, 1, 1);
    let capacity = |case: &Case| case.assign().scale[&Name::new("ci", "linux")].capacity;
    assert_eq!(capacity(&case), 10);
    case.pools[0].readiness = Readiness::Held("BackingOff");
    assert_eq!((capacity(&case), case.reasons()), (3, vec!["NotAssigned", "NotAssigned", "NotReady"]));
    case.pools[0].readiness = Readiness::Disconnected;
    assert_eq!(capacity(&case), 2);
}

/// GitHub shows a job as one that runs for a while after its machine is gone, and for ever if its repository is.
#[test]
fn a_quota_counts_only_machines_that_exist() {
    let mut case = Case::queued(&["pve"], 1);
    case.rules.owners.insert("acme".into(), 1);
    let mut running = job(7, "acme/shop", &["pve"]);
    (running.state, running.runner) = (State::InProgress, Some("vp-gone".into()));
    case.see(running.clone());
    assert_eq!(case.reasons(), ["Creating"]);
    case.see(Facts { key: JobKey::Job { id: 8, attempt: 1 }, runner: Some("vp-0".into()), ..running });
    assert_eq!(case.reasons(), ["Quota"]);
}
