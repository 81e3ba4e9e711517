//! Runner versions from the list of GitHub to the grant of a guest, and back from what became of machines.

use super::api_server::id;
use super::hub::LABEL;
use super::releases::Fault;
use super::site::Site;
use crate::notice::Notice;
use crate::versions::{News, Warning};
use serde_json::{Value, json};

const OLD: &str = "2.330.0";
const NEW: &str = "2.331.0";
/// A little longer than between two lists.
const LISTED: u64 = 3_700;

/// A pool whose runners the fleet chooses, of a GitHub that offers one version.
fn site(upkeep: &Value) -> Site {
    let mut site = Site::new(7);
    site.webhooks = true;
    site.hub.releases.offered = vec![OLD];
    site.pool_of("linux", &json!({"runner": {"upkeep": upkeep}}), &json!({}));
    site.run_for(5);
    site
}

/// Some jobs at a time, all of which run.
fn run_jobs(site: &mut Site, rounds: usize, at_a_time: usize) {
    for _ in 0..rounds {
        for _ in 0..at_a_time {
            site.push(LABEL);
        }
        site.run_for(110);
        assert_eq!(site.left(), [""; 0], "{}", site.status());
    }
}

/// The same after ten jobs have shown that the version works.
fn proved(upkeep: &Value) -> Site {
    let mut site = site(upkeep);
    run_jobs(&mut site, 3, 4);
    assert_eq!(versions(&site)["current"], OLD, "{}", site.status());
    site
}

fn versions(site: &Site) -> Value {
    site.status()["runnerVersions"].clone()
}

fn condition(site: &Site, kind: &str) -> (String, String) {
    let all = site.status()["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

fn news(site: &Site) -> Vec<String> {
    let news = |notice: &Notice| match notice {
        Notice::RunnerVersion { news: News::RolledBack(version, _), .. } => Some(format!("{version} rolled back")),
        Notice::RunnerVersion { news: News::Promoted(version), .. } => Some(format!("{version} promoted")),
        Notice::RunnerVersion { news: News::CanaryStarted(version), .. } => Some(format!("{version} tried")),
        _ => None,
    };
    site.notices.iter().filter_map(news).collect()
}

#[test]
fn a_new_version_is_tried_on_one_machine_of_ten_and_is_then_for_all() {
    let mut site = proved(&json!({}));
    assert_eq!(condition(&site, "RunnerVersion"), ("Usable".into(), "machines get runner version 2.330.0".into()));
    site.hub.releases.offered = vec![NEW];
    site.run_for(LISTED);
    assert_eq!(condition(&site, "RunnerVersion").0, "Trying");
    for round in 1..=10 {
        run_jobs(&mut site, 1, 4);
        assert_eq!(site.hub.releases.count(NEW), round, "one of four machines at a time");
    }
    assert_eq!(versions(&site)["current"], NEW);
    let expected = ["2.330.0 tried", "2.330.0 promoted", "2.331.0 tried", "2.331.0 promoted"];
    assert_eq!(news(&site), expected);
    run_jobs(&mut site, 1, 4);
    assert_eq!(site.hub.releases.count(NEW), 14);
    assert!(site.hub.releases.asked < 5, "{} lists within an hour and a half", site.hub.releases.asked);
    assert!(!site.shows_a_token());
}

#[test]
fn the_version_of_a_claim_is_recorded_before_its_machine_exists_and_is_the_one_that_its_guest_gets() {
    let mut site = site(&json!({}));
    site.push(LABEL);
    site.run_for(20);
    let first = site.api.log.iter().find(|(_, (kind, _, _), _)| kind == "MachineClaim").unwrap();
    assert_eq!(first.2.as_ref().unwrap()["spec"]["runnerVersion"], OLD);
    assert_eq!(site.hub.releases.granted, [(OLD.to_owned(), None)]);
}

/// Runners of the new version fail in every way; jobs run on the one that has proved itself.
#[test]
fn a_version_that_fails_is_rolled_back_and_jobs_run_on_the_proved_one() {
    for fault in [Fault::NotStarted, Fault::NeverOnline, Fault::NoJob, Fault::Refused] {
        let mut site = proved(&json!({}));
        site.hub.releases.offered = vec![NEW];
        site.hub.releases.faults.insert(NEW, fault);
        site.run_for(LISTED);
        for _ in 0..4 {
            site.push(LABEL);
        }
        site.run_for(120);
        let done = site.hub.jobs.values().filter(|job| job.is_done).count();
        assert!(done >= 15, "{fault:?}: the other jobs do not wait for the machine that fails: {done}");
        site.run_for(2_000);
        assert_eq!(site.left(), [""; 0], "{fault:?}");
        assert_eq!(news(&site)[2..], ["2.331.0 tried", "2.331.0 rolled back"], "{fault:?}");
        assert_eq!(site.hub.releases.count(NEW), 2, "{fault:?}: two machines show it");
        assert_eq!(versions(&site)["current"], OLD);
        let (reason, message) = condition(&site, "RunnerVersion");
        assert_eq!(reason, "Usable", "{fault:?}: {message}");
        assert!(message.contains("2.331.0 was rolled back: 2 runners with it failed"), "{message}");
        run_jobs(&mut site, 2, 4);
        assert_eq!(site.hub.releases.count(NEW), 2, "{fault:?}");
    }
}

#[test]
fn what_is_known_of_versions_survives_a_restart() {
    let mut site = proved(&json!({}));
    site.hub.releases.offered = vec![NEW];
    site.run_for(LISTED);
    run_jobs(&mut site, 4, 1);
    let before = versions(&site);
    assert_eq!(before["canary"]["worked"].as_array().unwrap().len(), 4);
    site.crash();
    site.run_for(10);
    assert_eq!(versions(&site), before);
    run_jobs(&mut site, 5, 1);
    assert_eq!(versions(&site)["current"], OLD);
    site.crash();
    run_jobs(&mut site, 1, 1);
    assert_eq!(versions(&site)["current"], NEW, "ten jobs in three processes: {}", versions(&site));
    // What was rolled back stays so.
    site.hub.releases.faults.insert("2.332.0", Fault::NotStarted);
    site.hub.releases.offered = vec!["2.332.0"];
    site.run_for(LISTED);
    for _ in 0..2 {
        site.push(LABEL);
        site.run_for(300);
    }
    site.crash();
    run_jobs(&mut site, 3, 1);
    assert_eq!(site.hub.releases.count("2.332.0"), 2);
}

#[test]
fn without_a_version_the_pool_says_so_and_makes_no_machine_until_a_person_asks_for_one() {
    let mut site = site(&json!({}));
    site.hub.releases.faults.insert(OLD, Fault::NotStarted);
    site.push(LABEL);
    site.run_for(1_200);
    let machines = site.hypervisor.clones;
    assert_eq!((machines, site.hub.releases.count(OLD)), (2, 2));
    let (reason, message) = condition(&site, "RunnerVersion");
    assert_eq!(reason, "NoRunnerVersion");
    assert!(message.contains("2.330.0 was rolled back") && message.contains("retry-runner-version"), "{message}");
    assert_eq!(condition(&site, "Scaling").0, "NoRunnerVersion");
    let is_told =
        |notice: &&Notice| matches!(notice, Notice::RunnerVersionTrouble { warning: Warning::NoVersion(_), .. });
    assert_eq!(site.notices.iter().filter(is_told).count(), 1);
    site.run_for(4_000);
    assert_eq!(site.hypervisor.clones, machines, "no machine is made in vain");
    site.hub.releases.faults.clear();
    site.api.annotate(&id("RunnerPool", "linux"), "hyperfleet.io/retry-runner-version", Some(OLD));
    site.run_for(200);
    assert_eq!(site.left(), [""; 0]);
    assert_eq!(site.hub.releases.count(OLD), 3);
}

#[test]
fn a_proved_version_that_github_refuses_before_its_time_is_given_up() {
    let mut site = proved(&json!({"minimumAge": "30d"}));
    site.hub.releases.offered = vec![NEW];
    site.run_for(LISTED);
    run_jobs(&mut site, 1, 4);
    assert_eq!(site.hub.releases.count(NEW), 0, "it is too young");
    site.hub.releases.faults.insert(OLD, Fault::Refused);
    for _ in 0..4 {
        site.push(LABEL);
    }
    site.run_for(400);
    assert_eq!(site.left(), [""; 0], "{}", site.status());
    assert!(site.hub.releases.count(NEW) >= 4);
    assert!(news(&site).contains(&"2.330.0 rolled back".to_owned()), "{:?}", news(&site));
}

#[test]
fn a_version_that_the_pool_names_is_kept_and_only_warned_about() {
    let mut site = proved(&json!({}));
    let pin = |version: &str| json!({"upkeep": {"version": version}});
    let runner = |site: &mut Site, runner: Value| {
        site.api.edit(&id("RunnerPool", "linux"), |spec| spec["workload"]["config"]["github"]["runner"] = runner);
    };
    runner(&mut site, pin(OLD));
    site.hub.releases.offered = vec![NEW];
    site.run_for(LISTED);
    run_jobs(&mut site, 2, 4);
    assert_eq!(site.hub.releases.count(NEW), 0);
    site.run_for(21 * 24 * 3_600 / 40);
    assert_eq!(condition(&site, "RunnerVersion").0, "Usable");
    // One that was never offered has no checksum.
    runner(&mut site, pin("2.300.0"));
    site.push(LABEL);
    site.run_for(120);
    let (reason, message) = condition(&site, "RunnerVersion");
    assert_eq!(reason, "NoRunnerVersion");
    assert!(message.contains("does not offer runner version 2.300.0 (it offers 2.331.0)"), "{message}");
    runner(&mut site, json!({"version": "2.328.0"}));
    site.run_for(120);
    assert_eq!(site.left(), [""; 0]);
    let (reason, message) = condition(&site, "RunnerVersion");
    assert_eq!(reason, "RunnerVersionRefused", "{message}");
    assert!(message.contains("the image has runner version 2.328.0"), "{message}");
}

#[test]
fn an_archive_of_an_enterprise_server_is_trusted_by_its_authorities_and_another_one_is_not() {
    for (archives, expected) in [("https://git.example", Some("pem")), ("https://github.com", None)] {
        let mut site = Site::new(8);
        site.webhooks = true;
        site.hub.authorities = Some("pem".to_owned());
        archives.clone_into(&mut site.hub.releases.server);
        site.hub.releases.offered = vec![OLD];
        let ca = json!({"name": "git-ca", "key": "ca.crt"});
        let runner = json!({"upkeep": {}});
        site.pool_of(
            "linux",
            &json!({"server": "https://git.example", "caCertificate": ca, "runner": runner}),
            &json!({}),
        );
        site.run_for(5);
        run_jobs(&mut site, 1, 1);
        assert_eq!(site.hub.releases.granted, [(OLD.to_owned(), expected.map(str::to_owned))]);
    }
}
