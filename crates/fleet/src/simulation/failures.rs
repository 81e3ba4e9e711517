//! Jobs while everything fails: GitHub, webhooks, the hypervisor, the API server, machines and the operator.

use super::hub::LABEL;
use super::hub_sets::Assignment;
use super::site::Site;
use serde_json::json;

/// As many machines as the pool may have.
const MOST: usize = 4;

const SOURCES: [&[&str]; 5] =
    [&["Webhook", "Poll"], &["Poll"], &["Webhook", "ScaleSet", "Poll"], &["ScaleSet"], &["ScaleSet", "Poll"]];

/// What happened in a simulation.
#[derive(Debug, Default)]
struct Seen {
    jobs: u64,
    failed: u64,
    reruns: u64,
    power_failures: u64,
    limited: u64,
}

fn site(seed: u64) -> Site {
    let mut site = Site::new(seed);
    let sources = SOURCES[usize::try_from(seed % 5).unwrap()];
    site.webhooks = sources.contains(&"Webhook");
    site.hub.assignment = if seed.is_multiple_of(2) { Assignment::Automatic } else { Assignment::Acquire };
    site.hub.limit = seed.is_multiple_of(3).then_some(160);
    let mut settings = json!({"sources": sources});
    if sources.contains(&"ScaleSet") {
        settings["scaleSet"] = json!("vms");
    }
    site.pool_of("linux", &settings, &json!({}));
    site.api.edit(&super::api_server::id("HypervisorCluster", "pve"), |spec| {
        spec["vmIds"] = json!({"from": 200, "to": 239});
    });
    site
}

fn run(seed: u64, seen: &mut Seen) {
    let mut site = site(seed);
    (site.has_faults, site.is_rough) = (true, true);
    for _ in 0..8 {
        for _ in 0..=site.random.below(3) {
            site.push(LABEL);
        }
        let last = |(id, job): (&u64, &super::hub::HubJob)| (job.is_done && job.attempt < 3).then_some(*id);
        let done: Vec<u64> = site.hub.jobs.iter().filter_map(last).collect();
        if let Some(job) = done.get(usize::try_from(site.random.below(4)).unwrap()) {
            site.rerun(*job);
            seen.reruns += 1;
        }
        let pause = site.random.between(5, 150);
        site.run_for(pause);
    }
    site.calm_down();
    for _ in 0..180 {
        site.run_for(60);
        // Those that can never succeed are kept for people to look at.
        site.delete_failed_claims();
        if site.left().is_empty() {
            break;
        }
    }
    let stands = || format!("{:?} {} {:?}", site.hub.sets, site.status(), site.waits());
    assert_eq!(site.left(), [""; 0], "seed {seed} at second {}: {}", site.second(), stands());
    assert!(!site.shows_a_token(), "seed {seed}");
    assert!(site.most_claims <= MOST, "seed {seed}: {} claims", site.most_claims);
    seen.jobs += site.hub.jobs.len() as u64;
    seen.failed += site.hub.jobs.values().filter(|job| job.has_failed).count() as u64;
    seen.power_failures += site.power_failures;
    seen.limited += u64::from(site.hub.limit.is_some());
}

/// Crashes of the operator and of machines, a hypervisor and an API server that fail in every way, GitHub's answers and webhooks that are
/// lost or late, jobs that are run again, a limit of requests: what GitHub would give us is run once, or has failed with its machine.
#[test]
fn every_job_is_run_once_or_fails_with_its_machine_and_nothing_is_left_whatever_fails() {
    let (mut seen, seeds) = (Seen::default(), super::seeds(40));
    (0..seeds).for_each(|seed| run(seed, &mut seen));
    let Seen { jobs, failed, reruns, power_failures, limited } = seen;
    assert!(jobs > 15 * seeds && reruns > 2 * seeds && limited > seeds / 4, "{jobs} {reruns} {limited}");
    assert!(failed > seeds / 2 && power_failures > 2 * seeds, "{failed} {power_failures}");
}
