//! A seeded simulation of GitHub, machines, and an operator that crashes: every job is run once, and nothing is left behind.

mod github;
pub(in crate::jobs) mod random;
mod scaling;
mod world;

use world::World;

/// Faults for so long, in seconds.
const TROUBLE: u64 = 25 * 60;
/// Everything has come to rest so long after the last fault: the longest is the grace of orphans and of runners that are never online.
const CALM: u64 = 40 * 60;

/// Runs one seed to its end; what was broken, how many jobs there were, and how many machines.
fn run(seed: u64, faults: bool, remembers: bool) -> (Vec<String>, usize, u64, Vec<String>) {
    let mut world = World::new(seed, faults);
    if remembers {
        world.history = Some(Vec::new());
    }
    let foreign = world.foreign();
    for _ in 0..TROUBLE {
        world.tick();
    }
    world.calm_down();
    let (mut settled_for, end) = (0, world.now + CALM);
    while world.now < end && settled_for < 120 {
        world.tick();
        settled_for = if world.is_settled() { settled_for + 1 } else { 0 };
    }
    let mut broken = std::mem::take(&mut world.broken);
    broken.extend(world.left());
    if world.foreign() < foreign.saturating_sub(1) {
        broken.push("a runner of somebody else is gone".into());
    }
    let (jobs, machines) = (world.github.jobs.len(), world.machines);
    (broken, jobs, machines, world.history.unwrap_or_default())
}

fn seeds(few: u64) -> u64 {
    option_env!("VIRTPILOT_SEEDS").and_then(|text| text.parse().ok()).unwrap_or(few)
}

fn check(seeds: std::ops::Range<u64>, faults: bool) -> (usize, u64) {
    let (mut all_jobs, mut all_machines) = (0, 0);
    for seed in seeds {
        let (broken, jobs, machines, _) = run(seed, faults, false);
        if !broken.is_empty() {
            let history = run(seed, faults, true).3;
            // The first job, claim or runner that is named.
            let is_named = |word: &&str| word.chars().any(|letter| letter.is_ascii_digit());
            let word = broken[0].split([' ', '/', '"', ',']).find(is_named).unwrap_or_default().to_owned();
            let about = history.into_iter().filter(|line| line.contains(&word) || line.ends_with("crash"));
            let about: Vec<String> = about.map(|line| line.chars().take(300).collect()).collect();
            panic!("seed {seed}:\n{}\n\n{}", broken.join("\n"), about.join("\n"));
        }
        (all_jobs, all_machines) = (all_jobs + jobs, all_machines + machines);
    }
    (all_jobs, all_machines)
}

/// P11 to P13 under faults: webhooks that are lost, late, repeated and replayed; lists that are late or fail; answers that get lost; runners
/// that take other jobs or never start; machines that fail or crash; crashes of the operator; a limit of requests.
#[test]
fn every_job_is_run_once_and_nothing_is_left_behind() {
    let (jobs, machines) = check(0..seeds(300), true);
    assert!(jobs as u64 > 20 * seeds(300) && machines > 20 * seeds(300), "only {jobs} jobs and {machines} machines");
}

#[test]
fn without_faults_there_is_about_one_machine_for_each_job() {
    let (jobs, machines) = check(0..20, false);
    let jobs = jobs as u64;
    assert!(jobs > 600 && machines < jobs + jobs / 10, "{jobs} jobs and {machines} machines");
}
