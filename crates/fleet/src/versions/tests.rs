//! Tests of runner versions: single stories, and every sequence of events up to a length.

use super::{
    Choice, Decision, GITHUB, Machine, Memory, News, NoVersion, Observed, Origin, Outcome, Rules, Version, Warning,
    decide,
};
use jiff::Timestamp;
use std::collections::BTreeSet;

const OLD: Version = Version::new(2, 330, 0);
const NEW: Version = Version::new(2, 331, 0);
const NEWER: Version = Version::new(2, 332, 0);
const DAY: u64 = 24 * 3600;
/// Fewer successes and failures make sequences of events short.
const RULES: Rules = Rules { enough_successes: 2, too_many_failures: 2, canary_percent: 20, ..GITHUB };

fn at(second: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap()
}

/// A pool and what GitHub offers.
#[derive(Clone)]
struct Bed {
    rules: Rules,
    memory: Memory,
    offered: Vec<Version>,
    machines: Vec<Machine>,
    retry: Option<Version>,
    second: u64,
    made: usize,
    news: Vec<News>,
}

impl Bed {
    fn new(offered: &[Version]) -> Bed {
        let (memory, machines, news) = (Memory::default(), Vec::new(), Vec::new());
        Bed { rules: RULES, memory, offered: offered.to_vec(), machines, retry: None, second: 0, made: 0, news }
    }

    fn proved(current: Version, offered: &[Version]) -> Bed {
        let mut bed = Bed::new(offered);
        bed.memory.current = Some(current);
        bed
    }

    fn decide_as(&self, origin: Origin) -> Decision {
        let Bed { rules, memory, offered, machines, retry, second, .. } = self;
        decide(&Observed { rules, memory, origin, offered: Some(offered), machines, retry: *retry, now: at(*second) })
    }

    /// Decides; deciding again changes nothing.
    fn decide(&mut self) -> Decision {
        let decision = self.decide_as(Origin::Download);
        self.memory = decision.memory.clone();
        let again = self.decide_as(Origin::Download);
        assert_eq!((&again.memory, again.news.as_slice()), (&decision.memory, [].as_slice()), "it does not settle");
        self.news.extend(decision.news.clone());
        decision
    }

    /// Fills the pool up to a number of machines.
    fn fill(&mut self, count: usize) {
        while self.machines.len() < count {
            let Ok(Choice { version, .. }) = self.decide().choice else { return };
            self.made += 1;
            self.machines.push(Machine { uid: format!("u{}", self.made), version: Some(version), outcome: None });
        }
    }

    /// Something becomes of the first machine with this version, which is then gone.
    fn end(&mut self, version: Version, outcome: Outcome) -> bool {
        let found = self.machines.iter().position(|machine| machine.version == Some(version));
        let Some(index) = found else { return false };
        self.machines[index].outcome = Some(outcome);
        self.decide();
        self.machines.remove(index);
        true
    }

    fn count(&self, version: Version) -> usize {
        self.machines.iter().filter(|machine| machine.version == Some(version)).count()
    }
}

#[test]
fn a_new_version_goes_to_its_share_of_machines_and_to_all_after_enough_jobs() {
    let mut bed = Bed::proved(OLD, &[OLD, NEW]);
    bed.fill(10);
    assert_eq!((bed.count(OLD), bed.count(NEW)), (8, 2));
    assert!(bed.end(NEW, Outcome::Worked));
    bed.fill(10);
    assert_eq!(bed.count(NEW), 2, "never more than the share");
    assert!(bed.end(NEW, Outcome::Worked));
    assert_eq!(bed.memory.current, Some(NEW));
    assert_eq!(bed.news, [News::CanaryStarted(NEW), News::Promoted(NEW)]);
    while bed.end(OLD, Outcome::Worked) {}
    bed.fill(10);
    assert_eq!(bed.count(NEW), 10);
}

/// Theme 22.
#[test]
fn a_version_that_gets_no_job_is_rolled_back_and_not_tried_again() {
    for failure in [Outcome::NoJob, Outcome::NotStarted] {
        let mut bed = Bed::proved(OLD, &[OLD, NEW]);
        bed.fill(10);
        bed.end(NEW, failure);
        bed.fill(10);
        assert_eq!(bed.news, [News::CanaryStarted(NEW)], "one machine may fail");
        bed.end(NEW, failure);
        assert!(
            matches!(&bed.news[..], [_, News::RolledBack(NEW, why)] if why.contains(failure.message())),
            "{:?}",
            bed.news
        );
        bed.machines.clear();
        bed.second += 3 * DAY;
        bed.fill(10);
        assert_eq!(bed.count(OLD), 10);
        bed.offered.push(NEWER);
        bed.machines.clear();
        bed.fill(10);
        assert_eq!((bed.count(NEWER), bed.count(NEW)), (2, 0), "the next version is tried");
    }
}

#[test]
fn one_machine_counts_once_and_failures_of_all_versions_blame_none() {
    let mut bed = Bed::proved(OLD, &[OLD, NEW]);
    bed.fill(10);
    let tried = bed.machines.iter().position(|machine| machine.version == Some(NEW)).unwrap();
    bed.machines[tried].outcome = Some(Outcome::NoJob);
    for _ in 0..5 {
        bed.decide();
    }
    assert_eq!(bed.memory.canary.as_ref().map(|canary| canary.failed.len()), Some(1));
    let proved = bed.machines.iter().position(|machine| machine.version == Some(OLD)).unwrap();
    bed.machines[proved].outcome = Some(Outcome::NoJob);
    bed.decide();
    assert_eq!(bed.memory.canary.as_ref().map(|canary| canary.failed.len()), Some(0), "GitHub gives nobody a job");
    // A job that came late shows that the version works.
    let mut bed = Bed::proved(OLD, &[OLD, NEW]);
    bed.fill(10);
    let tried = bed.machines.iter().position(|machine| machine.version == Some(NEW)).unwrap();
    for outcome in [Outcome::NoJob, Outcome::Worked] {
        bed.machines[tried].outcome = Some(outcome);
        bed.decide();
    }
    let canary = bed.memory.canary.as_ref().unwrap();
    assert_eq!((canary.worked.len(), canary.failed.len()), (1, 0));
}

#[test]
fn without_a_good_version_the_pool_says_so_instead_of_looping() {
    let mut bed = Bed::new(&[OLD, NEW]);
    let unknown = Bed::new(&[]).decide();
    assert_eq!(unknown.choice, Err(NoVersion::NotKnown));
    let mut made = 0;
    while bed.decide().choice.is_ok() {
        bed.fill(1);
        let version = bed.machines[0].version.unwrap();
        bed.end(version, Outcome::NotStarted);
        made += 1;
        assert!(made < 10, "it loops");
    }
    assert_eq!(made, 4, "each version has two machines");
    let decision = bed.decide();
    let why = "no runner version is left that can be used: 2.331.0 was rolled back, 2.330.0 was rolled back";
    assert_eq!(decision.choice.as_ref().map_err(ToString::to_string), Err(why.to_owned()));
    assert_eq!(decision.warnings.last().map(ToString::to_string).as_deref(), Some(why));
    // A person asks once.
    bed.retry = Some(NEW);
    assert_eq!(bed.decide().choice.map(|choice| choice.version), Ok(NEW));
    for _ in 0..2 {
        bed.fill(1);
        bed.end(NEW, Outcome::NotStarted);
    }
    assert!(bed.decide().choice.is_err(), "it failed again, and was asked for once");
    bed.retry = None;
    bed.decide();
    bed.retry = Some(NEW);
    assert!(bed.decide().choice.is_ok(), "it is asked for again");
}

#[test]
fn people_hear_before_github_refuses_a_version_and_then_it_is_not_used() {
    let mut bed = Bed::proved(OLD, &[OLD, NEW]);
    bed.fill(10);
    for _ in 0..2 {
        bed.end(NEW, Outcome::NoJob);
        bed.fill(10);
    }
    let seen: Vec<(u64, String)> = (0..40)
        .filter_map(|day| {
            bed.second = day * DAY;
            let decision = bed.decide();
            let chosen = decision.choice.map_or_else(|_| "none".into(), |choice| choice.version.to_string());
            let warnings: Vec<String> = decision.warnings.iter().map(ToString::to_string).collect();
            [0, 19, 20, 29, 30].contains(&day).then(|| (day, format!("{chosen}: {}", warnings.join("; "))))
        })
        .collect();
    expect_test::expect![[r#"
        [
            (
                0,
                "2.330.0: ",
            ),
            (
                19,
                "2.330.0: ",
            ),
            (
                20,
                "2.330.0: GitHub gives runners of version 2.330.0 no jobs any more from 2027-02-14T08:00:00Z on",
            ),
            (
                29,
                "2.330.0: GitHub gives runners of version 2.330.0 no jobs any more from 2027-02-14T08:00:00Z on",
            ),
            (
                30,
                "none: GitHub refuses runners of version 2.330.0; no runner version is left that can be used: 2.331.0 was rolled back, 2.330.0 is refused by GitHub",
            ),
        ]
    "#]].assert_debug_eq(&seen);
    // The only one that works is refused, and the one that was rolled back is not taken for it.
    assert!(bed.decide().choice.is_err());
    bed.offered = vec![NEWER];
    assert_eq!(bed.decide().choice, Ok(Choice { version: NEWER, is_canary: true }));
    bed.machines.clear();
    bed.fill(10);
    assert_eq!(bed.count(NEWER), 10, "there is nothing to fall back on");
}

#[test]
fn a_version_that_a_person_or_an_image_has_chosen_stays_and_is_warned_about() {
    let below = Version::new(2, 328, 0);
    for origin in [Origin::Pinned(below), Origin::Image(below)] {
        let decision = Bed::new(&[OLD, NEW]).decide_as(origin);
        assert_eq!(decision.choice, Ok(Choice { version: below, is_canary: false }));
        assert_eq!(decision.warnings, [Warning::Refused { version: below }], "it is below the minimum");
        assert_eq!((decision.memory.canary, decision.news.len()), (None, 0));
    }
    let mut bed = Bed::new(&[OLD]);
    bed.memory = bed.decide_as(Origin::Image(OLD)).memory;
    bed.second = 100 * DAY;
    assert_eq!(bed.decide_as(Origin::Image(OLD)).warnings, [], "the newest one does not age");
    bed.offered = vec![NEW];
    bed.memory = bed.decide_as(Origin::Image(OLD)).memory;
    bed.second += 21 * DAY;
    assert!(matches!(bed.decide_as(Origin::Image(OLD)).warnings[..], [Warning::Ageing { version: OLD, .. }]));
}

#[test]
fn memory_is_bounded_and_survives_as_json() {
    let mut bed = Bed::new(&[]);
    for minor in 330..400 {
        bed.offered = vec![Version::new(2, minor, 0)];
        bed.fill(1);
        for _ in 0..2 {
            bed.end(Version::new(2, minor, 0), Outcome::NotStarted);
            bed.fill(1);
        }
    }
    let json = serde_json::to_string(&bed.memory).unwrap();
    assert!(json.len() < 4_000, "{} bytes", json.len());
    assert_eq!(serde_json::from_str::<Memory>(&json).unwrap(), bed.memory);
    assert_eq!(serde_json::from_str::<Memory>("{}").unwrap(), Memory::default());
}

/// Every sequence of these, up to a length.
#[derive(Debug, Clone, Copy)]
enum Step {
    Fill,
    Offer,
    Withdraw,
    Days,
    Canary(Outcome),
    Proved(Outcome),
    Forget,
}

const STEPS: [Step; 10] = [
    Step::Fill,
    Step::Offer,
    Step::Withdraw,
    Step::Days,
    Step::Canary(Outcome::Worked),
    Step::Canary(Outcome::NotStarted),
    Step::Canary(Outcome::NoJob),
    Step::Proved(Outcome::Worked),
    Step::Proved(Outcome::NoJob),
    Step::Forget,
];

fn step(bed: &mut Bed, step: Step, size: usize) {
    match step {
        Step::Fill => bed.fill(size),
        Step::Offer => {
            let next = [OLD, NEW, NEWER].into_iter().find(|version| !bed.offered.contains(version));
            bed.offered.extend(next);
        }
        Step::Withdraw if !bed.offered.is_empty() => drop(bed.offered.remove(0)),
        Step::Withdraw => {}
        Step::Days => bed.second += 16 * DAY,
        Step::Canary(outcome) => {
            let version = bed.memory.canary.as_ref().map(|canary| canary.version);
            version.map(|version| bed.end(version, outcome));
        }
        Step::Proved(outcome) => {
            bed.memory.current.map(|version| bed.end(version, outcome));
        }
        // The operator is restarted, and all machines are gone.
        Step::Forget => bed.machines.clear(),
    }
}

fn check(bed: &mut Bed, steps: &[Step]) {
    let before: BTreeSet<Version> = bed.memory.rolled_back.iter().map(|found| found.version).collect();
    let decision = bed.decide();
    let Ok(Choice { version, is_canary }) = decision.choice else { return };
    let memory = &decision.memory;
    assert!(!memory.rolled_back.iter().any(|found| found.version == version), "{version} is chosen again: {steps:?}");
    assert!(before.iter().all(|found| memory.rolled_back.iter().any(|kept| kept.version == *found)), "{steps:?}");
    assert!(bed.rules.accepts(version, &memory.releases, at(bed.second)), "{version} is refused: {steps:?}");
    let is_usable = |version: &Version| bed.rules.accepts(*version, &memory.releases, at(bed.second));
    if let (Some(canary), Some(_)) = (&memory.canary, memory.current.filter(is_usable)) {
        let tried = bed.count(canary.version) + usize::from(is_canary);
        let allowed = bed.rules.canaries(bed.machines.len() + 1);
        // Machines that were made while nothing else could be used, or that were more before some ended, are not ended for it.
        assert!(!is_canary || tried <= allowed, "{tried} of {allowed}: {steps:?}");
    }
}

/// Numbers that look random, from a seed.
fn next_number(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn whatever_happens_a_version_that_was_rolled_back_or_is_refused_is_not_chosen_and_canaries_are_few() {
    let starts = [Bed::new(&[OLD]), Bed::proved(OLD, &[OLD, NEW])];
    // All short stories, and many long ones.
    let mut count = 0;
    for (start, size) in starts.iter().flat_map(|start| [(start, 1), (start, 6)]) {
        let mut stack = vec![(start.clone(), Vec::new())];
        while let Some((bed, steps)) = stack.pop() {
            for next in STEPS {
                let (mut bed, mut steps) = (bed.clone(), steps.clone());
                steps.push(next);
                step(&mut bed, next, size);
                check(&mut bed, &steps);
                count += 1;
                if steps.len() < 4 {
                    stack.push((bed, steps));
                }
            }
        }
    }
    assert_eq!(count, 4 * 11_110);
    let (mut rolled_back, mut promoted) = (0, 0);
    for seed in 0..500 {
        let (mut bed, mut steps, mut state) = (starts[seed % 2].clone(), Vec::new(), seed as u64);
        for _ in 0..40 {
            steps.push(STEPS[next_number(&mut state) % STEPS.len()]);
            step(&mut bed, steps[steps.len() - 1], 1 + seed % 12);
            check(&mut bed, &steps);
        }
        rolled_back += bed.news.iter().filter(|news| matches!(news, News::RolledBack(..))).count();
        promoted += bed.news.iter().filter(|news| matches!(news, News::Promoted(_))).count();
    }
    assert!(rolled_back > 100 && promoted > 100, "{rolled_back} and {promoted}: nothing happened");
}
