//! Tests of the assignment of jobs to pools.

use super::{Assignment, Observed, Supply, assign};
use crate::jobs::demand::tests::{job, pool};
use crate::jobs::demand::{Pool, Wait};
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
        let supply = Supply { starting: named("claim-", starting), idle: named("vp-", idle), busy, unnamed: 0 };
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
            prefix: "vp-",
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
