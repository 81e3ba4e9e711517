//! Pools and jobs that are not to be trusted, and what a platform does not show any more: others go on, and nothing is kept for ever.

use super::api_server::id;
use super::hub::LABEL;
use super::site::Site;
use crate::forge::Ask;
use serde_json::{Value, json};

fn condition(site: &Site, pool: &str, kind: &str) -> (String, String) {
    let status = &site.api.objects[&id("RunnerPool", pool)]["status"];
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

fn status(site: &Site, pool: &str) -> Value {
    site.api.objects[&id("RunnerPool", pool)]["status"].clone()
}

/// With the highest priority, a quota of nothing and a machine that waits for jobs.
#[test]
fn a_pool_whose_login_never_worked_takes_no_job_and_sets_no_quota() {
    let mut site = Site::new(1);
    site.webhooks = true;
    site.refused_pools.insert("evil");
    site.pool_of("evil", &json!({"priority": 1_000, "quotas": {"owner": 0}}), &json!({"scaling": {"minReplicas": 1}}));
    site.pool(&json!({}));
    site.run_for(20);
    site.push(LABEL);
    site.run_for(3);
    assert_eq!((site.waits(), status(&site, "evil")["queued"].as_i64()), (vec!["Booting"], Some(0)));
    site.run_for(90);
    assert!(site.hub.jobs.values().all(|job| job.is_done), "{}", site.status());
    site.delete("RunnerPool", "evil");
    site.run_for(60);
    assert_eq!(site.left(), [""; 0]);
}

#[test]
fn jobs_go_to_another_pool_while_the_login_of_the_preferred_one_is_refused() {
    let mut site = Site::new(2);
    site.webhooks = true;
    site.pool_of("first", &json!({"priority": 1}), &json!({}));
    site.pool(&json!({}));
    site.run_for(5);
    site.refused_pools.insert("first");
    site.run_for(310);
    assert_eq!(condition(&site, "first", "Connected").0, "ConfigurationError");
    site.push(LABEL);
    site.run_for(90);
    assert_eq!(site.left(), [""; 0]);
    // Without another one the job waits, and says so.
    site.refused_pools.insert("linux");
    site.run_for(310);
    site.push(LABEL);
    site.run_for(10);
    assert_eq!((site.waits(), site.hypervisor.clones), (vec!["NotReady"], 1));
    let (reason, message) = condition(&site, "first", "Demand");
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("JobsWaiting", "1 job waits: 1 because no machine can be made now")
    );
    site.refused_pools.clear();
    site.run_for(200);
    assert_eq!(site.left(), [""; 0]);
}

#[test]
fn jobs_go_to_another_pool_while_the_preferred_one_has_no_runner_version() {
    let mut site = Site::new(3);
    site.webhooks = true;
    // No version is offered.
    site.pool_of("first", &json!({"priority": 1, "runner": {"upkeep": {}}}), &json!({}));
    site.pool(&json!({}));
    site.run_for(5);
    site.push(LABEL);
    site.run_for(90);
    assert_eq!(site.left(), [""; 0]);
    assert_eq!(condition(&site, "first", "Scaling").0, "AsWanted");
}

/// Whether the object is changed, or deleted and made again while its claims exist.
#[test]
fn a_job_goes_on_and_no_other_runner_is_removed_when_its_pool_is_for_another_scope() {
    for is_made_again in [false, true] {
        let mut site = Site::new(4);
        site.webhooks = true;
        site.pool(&json!({"scaling": {"minReplicas": 2, "maxReplicas": 2}}));
        site.pool_of("other", &json!({"labels": ["x"]}), &json!({}));
        site.run_for(40);
        site.push(LABEL);
        site.run_for(5);
        if is_made_again {
            site.api.objects.remove(&id("RunnerPool", "linux"));
            site.pool_of("linux", &json!({"organization": "elsewhere"}), &json!({"scaling": {"maxReplicas": 2}}));
        } else {
            site.change(&json!({"organization": "elsewhere"}));
        }
        site.run_for(20);
        assert_eq!(site.hub.jobs.values().filter(|job| job.is_done).count(), 0);
        let removed = |site: &Site| {
            let removals = site.asked.iter().filter(|(_, ask)| matches!(ask, Ask::RemoveRunner(_)));
            removals.map(|(address, _)| address.clone()).collect::<Vec<String>>()
        };
        assert_eq!(removed(&site)[..1], ["https://github.com/acme"], "the idle one, where it is");
        assert!(site.hypervisor.vms.values().any(|vm| vm.power == crate::hypervisor::Power::Running));
        site.run_for(200);
        let wrong = removed(&site).into_iter().filter(|address| !address.ends_with("/acme")).count();
        assert!(site.hub.jobs.values().all(|job| job.is_done && job.runs == 1), "{:?}", site.left());
        assert_eq!((wrong, site.hub.broken.len(), site.hypervisor.broken.len()), (0, 0, 0), "{:?}", removed(&site));
    }
}

/// The server of the runner is not asked at all any more.
#[test]
fn machines_end_though_nobody_can_remove_their_runners_any_more() {
    let mut site = Site::new(5);
    site.webhooks = true;
    site.pool(&json!({}));
    site.run_for(5);
    site.push(LABEL);
    site.run_for(20);
    site.change(&json!({"server": "https://git.example"}));
    site.run_for(30);
    assert_eq!(site.hypervisor.vms.len(), 1, "its job runs");
    site.run_for(400);
    assert_eq!(site.left(), [""; 0]);
    let removed = site.asked.iter().filter(|(_, ask)| matches!(ask, Ask::RemoveRunner(_))).count();
    assert_eq!(removed, 0, "the other server knows no such runner");
}

/// And what is left on GitHub is removed as an orphan once it answers.
#[test]
fn machines_that_are_off_are_not_kept_while_github_cannot_be_asked() {
    let mut site = Site::new(6);
    site.webhooks = true;
    site.pool(&json!({"scaling": {"minReplicas": 2, "maxReplicas": 8}}));
    site.run_for(40);
    let first: Vec<String> = site.hypervisor.vms.keys().cloned().collect();
    assert_eq!((first.len(), site.hub.runners.len()), (2, 2));
    site.hub.is_down = true;
    site.fails_at = Some(bootstrap::Step::Idle);
    let kept = |site: &Site| first.iter().filter(|machine| site.hypervisor.vms.contains_key(*machine)).count();
    site.run_for(200);
    assert_eq!(kept(&site), 2, "for a few minutes a removal is tried");
    site.run_for(300);
    assert_eq!(kept(&site), 0);
    (site.hub.is_down, site.fails_at) = (false, None);
    site.run_for(900);
    let online = site.hub.runners.values().filter(|runner| runner.is_online).count();
    assert_eq!((site.hub.runners.len(), online), (2, 2), "{:?}", site.left());
}

/// As when the repository was deleted, transferred, or taken from the App.
#[test]
fn jobs_of_a_repository_that_is_gone_end_if_this_login_has_seen_it() {
    for has_seen in [true, false] {
        let mut site = Site::new(7);
        site.webhooks = true;
        site.pool(&json!({"scaling": {"maxReplicas": 0}}));
        site.hub.hides_repositories = !has_seen;
        site.run_for(5);
        site.push(LABEL);
        site.run_for(70);
        assert_eq!(site.waits(), ["PoolFull"]);
        site.hub.hides_repositories = true;
        site.run_for(500);
        let expected: &[&str] = if has_seen { &[] } else { &["PoolFull"] };
        assert_eq!(site.waits(), expected, "a login that never saw the repository says nothing about it");
    }
}

#[test]
fn a_pool_that_polls_does_so_beside_an_older_one_of_its_owner_that_does_not() {
    let mut site = Site::new(8);
    site.pool_of("a", &json!({"sources": ["Webhook"]}), &json!({}));
    site.run_for(200);
    let lists = |site: &Site| site.asked.iter().filter(|(_, ask)| matches!(ask, Ask::ListJobs { .. })).count();
    assert_eq!(lists(&site), 0);
    site.pool(&json!({}));
    site.run_for(5);
    site.push(LABEL);
    site.run_for(200);
    assert_eq!(site.left(), [""; 0]);
    assert!(lists(&site) >= 3);
}

#[test]
fn what_a_job_says_in_the_name_of_its_guest_stops_no_pool() {
    let mut site = Site::new(9);
    site.webhooks = true;
    site.hub.releases.offered = vec!["2.330.0"];
    site.pool_of("linux", &json!({"runner": {"upkeep": {}}}), &json!({}));
    site.run_for(5);
    site.has_liars = true;
    for _ in 0..8 {
        site.push(LABEL);
    }
    site.run_for(200);
    site.has_liars = false;
    let done = site.hub.jobs.values().filter(|job| job.is_done).count();
    assert_eq!(done, 8, "{}", site.status());
    let (reason, message) = condition(&site, "linux", "RunnerVersion");
    assert!(
        reason == "Trying" && message.contains("8 of 10 jobs") && message.contains("0 machines have failed"),
        "{message}"
    );
    site.push(LABEL);
    site.run_for(90);
    assert_eq!(site.left(), [""; 0]);
    assert_ne!(condition(&site, "linux", "Scaling").0, "BackingOff");
}

#[test]
fn a_pool_for_a_platform_without_runners_says_so() {
    let mut site = Site::new(10);
    for (name, kind) in [("linux", "buildkite"), ("hand", "generic")] {
        let workload = json!({"type": kind});
        site.create(
            "RunnerPool",
            name,
            &json!({"templateRef": {"name": "small"}, "scaling": {}, "workload": workload}),
        );
    }
    site.run_for(5);
    assert_eq!(condition(&site, "linux", "Connected").0, "NotSupported");
    assert_eq!(condition(&site, "hand", "Connected").0, "");
}
