//! Pools with scale sets: their jobs run, whatever becomes of sessions, settings and the sets themselves.

use super::hub::LABEL;
use super::hub_sets::Assignment;
use super::site::Site;
use crate::forge::ScaleSetWanted;
use serde_json::{Value, json};

const MODES: [Assignment; 2] = [Assignment::Automatic, Assignment::Acquire];

fn site(seed: u64, assignment: Assignment, sources: &[&str], more: &Value) -> Site {
    let mut site = Site::new(seed);
    (site.hub.assignment, site.webhooks) = (assignment, sources.contains(&"Webhook"));
    site.pool_of("linux", &json!({"scaleSet": "vms", "sources": sources}), more);
    site
}

const ALL: [&str; 3] = ["Webhook", "ScaleSet", "Poll"];

/// Lets time pass until nothing is left.
fn finish(site: &mut Site, seconds: u64) {
    let end = site.second() + seconds;
    while site.second() < end && !site.left().is_empty() {
        site.run_for(5);
    }
    assert_eq!(site.left(), [""; 0]);
}

fn set(site: &Site) -> u64 {
    *site.hub.sets.keys().next_back().unwrap()
}

fn condition(site: &Site, kind: &str) -> (String, String) {
    let all = site.status()["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

#[test]
fn jobs_run_with_a_scale_set_alone_and_with_all_sources_in_both_modes() {
    for assignment in MODES {
        for sources in [&["ScaleSet"][..], &ALL, &["ScaleSet", "Poll"]] {
            let mut site = site(1, assignment, sources, &json!({}));
            site.run_for(5);
            for _ in 0..3 {
                site.push(LABEL);
            }
            site.run_for(4);
            let queued = site.status()["queued"].as_i64().unwrap();
            assert_eq!(queued, 3, "{assignment:?} {sources:?}: each job once");
            finish(&mut site, 300);
            let made = (site.hypervisor.clones, site.hub.registered);
            assert_eq!(made, (3, 3), "{assignment:?} {sources:?}: one machine and one runner for each job");
        }
    }
}

/// Jobs that come one by one, so that the set is idle before each.
#[test]
fn the_first_job_of_an_idle_set_gets_one_machine() {
    for assignment in MODES {
        let mut site = site(2, assignment, &["ScaleSet"], &json!({}));
        for _ in 0..3 {
            site.run_for(20);
            site.push(LABEL);
            finish(&mut site, 200);
        }
        assert_eq!((site.hypervisor.clones, site.hub.registered), (3, 3), "{assignment:?}");
    }
}

#[test]
fn quotas_count_a_job_once_although_two_sources_name_it() {
    let quotas = json!({"eachRepository": 2});
    for assignment in MODES {
        let mut site = Site::new(3);
        (site.hub.assignment, site.webhooks) = (assignment, true);
        site.pool_of("linux", &json!({"scaleSet": "vms", "quotas": quotas}), &json!({}));
        let other = json!({"labels": ["other"], "sources": ["Webhook", "Poll"], "quotas": quotas});
        site.pool_of("other", &other, &json!({}));
        site.run_for(5);
        site.push(LABEL);
        site.run_for(30);
        site.push("other");
        site.run_for(3);
        assert_eq!(site.hypervisor.clones, 2, "{assignment:?}: one of two runs, so that the other may");
    }
}

#[test]
fn without_the_source_jobs_run_on_other_runners_and_with_it_on_those_of_the_set() {
    let mut site = site(4, Assignment::Automatic, &ALL, &json!({"scaling": {"minReplicas": 1, "maxReplicas": 4}}));
    site.run_for(40);
    assert!(site.hub.runners.values().all(|runner| runner.set == Some(set(&site))), "a spare of the set");
    site.change(&json!({"sources": ["Webhook", "Poll"]}));
    site.run_for(2);
    assert!(site.hub.sets.is_empty(), "nobody listens to it any more");
    let job = site.push(LABEL);
    site.run_for(100);
    assert!(site.hub.jobs[&job].is_done && site.hub.jobs[&job].set.is_none());
    site.change(&json!({"sources": ALL}));
    site.run_for(5);
    let job = site.push(LABEL);
    site.run_for(100);
    assert!(site.hub.jobs[&job].is_done && site.hub.jobs[&job].set.is_some());
}

#[test]
fn another_name_or_group_is_another_set() {
    for changed in [json!({"scaleSet": "others"}), json!({"runnerGroup": "private"})] {
        let mut site = site(5, Assignment::Automatic, &["ScaleSet"], &json!({}));
        site.run_for(5);
        let before = set(&site);
        site.change(&changed);
        site.run_for(5);
        site.push(LABEL);
        finish(&mut site, 200);
        assert!(set(&site) != before && !site.hub.sets.contains_key(&before), "{:?}", site.hub.sets);
    }
}

#[test]
fn a_set_that_was_deleted_on_github_is_made_again() {
    for assignment in MODES {
        let mut site = site(6, assignment, &["ScaleSet"], &json!({}));
        site.run_for(5);
        site.push(LABEL);
        site.run_for(4);
        let before = set(&site);
        site.hub.delete_set(before);
        site.run_for(90);
        assert!(set(&site) != before, "{assignment:?}");
        finish(&mut site, 400);
    }
}

/// The session of the process before is open for two minutes.
#[test]
fn after_a_crash_runners_are_those_of_the_set() {
    for assignment in MODES {
        let mut site = site(7, assignment, &ALL, &json!({}));
        site.run_for(5);
        for _ in 0..2 {
            site.push(LABEL);
        }
        site.run_for(2);
        site.crash();
        site.run_for(60);
        assert!(site.hub.runners.values().all(|runner| runner.set.is_some()), "{:?}", site.hub.runners);
        finish(&mut site, 400);
        let made = (site.hypervisor.clones, site.hub.registered);
        assert_eq!(made, (2, 2), "{assignment:?}: no machine is in vain");
    }
}

/// The first one crashes before it has opened its session, and another listener keeps that.
#[test]
fn while_another_listener_has_the_session_other_pools_take_jobs_and_a_condition_says_why() {
    let mut site = Site::new(8);
    site.webhooks = true;
    let wanted = ScaleSetWanted { name: "vms".into(), group: None, labels: [LABEL.to_owned()].into() };
    let of = site.hub.add_set(&wanted);
    site.hub.occupy(of);
    site.pool_of("linux", &json!({"scaleSet": "vms", "priority": 1}), &json!({}));
    site.run_for(240);
    assert_eq!(condition(&site, "ScaleSet").0, "SessionTaken");
    site.push(LABEL);
    site.run_for(10);
    assert_eq!((site.hypervisor.clones, site.waits()), (0, vec!["NotListening"]), "a runner would be useless");
    site.pool_of("second", &json!({"sources": ["Webhook", "Poll"]}), &json!({}));
    finish(&mut site, 200);
    assert_eq!(site.hypervisor.clones, 1);
}

/// What was heard before counts from the moment when somebody listens.
#[test]
fn a_process_that_begins_while_github_is_down_keeps_the_runners_of_its_set() {
    let mut site = site(17, Assignment::Automatic, &ALL, &json!({"scaling": {"minReplicas": 1, "maxReplicas": 4}}));
    site.run_for(40);
    let before: Vec<u64> = site.hub.runners.keys().copied().collect();
    (site.hub.is_down, site.hub.is_service_down) = (true, true);
    site.crash();
    site.run_for(300);
    (site.hub.is_down, site.hub.is_service_down) = (false, false);
    site.run_for(60);
    let after: Vec<u64> = site.hub.runners.keys().copied().collect();
    assert_eq!((before.len(), after), (1, before));
}

/// Runners of the scope are registered as long as the service of scale sets does not answer.
#[test]
fn while_the_service_does_not_answer_jobs_run_on_other_runners() {
    let mut site = site(9, Assignment::Automatic, &ALL, &json!({}));
    site.run_for(60);
    site.hub.is_service_down = true;
    site.run_for(150);
    assert_eq!(condition(&site, "ScaleSet").0, "Unreachable");
    let job = site.push(LABEL);
    site.run_for(100);
    assert!(site.hub.jobs[&job].is_done && site.hub.jobs[&job].set.is_none());
    site.hub.is_service_down = false;
    site.run_for(120);
    assert_eq!(condition(&site, "ScaleSet").0, "Listening");
    let job = site.push(LABEL);
    finish(&mut site, 200);
    assert!(site.hub.jobs[&job].set.is_some());
}

#[test]
fn a_deleted_pool_deletes_the_set_that_it_has_made_and_no_other() {
    let wanted = ScaleSetWanted { name: "vms".into(), group: None, labels: [LABEL.to_owned()].into() };
    for is_found in [false, true] {
        let mut site = Site::new(10);
        if is_found {
            site.hub.add_set(&wanted);
        }
        site.pool_of("linux", &json!({"scaleSet": "vms", "sources": ["ScaleSet"]}), &json!({}));
        site.run_for(5);
        let record = site.status()["scaleSet"].clone();
        assert_eq!(
            record,
            match is_found {
                true => json!({"id": set(&site), "name": "vms", "scope": "https://github.com/acme"}),
                false =>
                    json!({"id": set(&site), "name": "vms", "scope": "https://github.com/acme", "isCreated": true}),
            }
        );
        site.push(LABEL);
        finish(&mut site, 200);
        // Another process deletes it.
        site.crash();
        site.run_for(2);
        site.delete("RunnerPool", "linux");
        site.run_for(20);
        assert!(site.api.all("RunnerPool").is_empty(), "{:?}", site.api.objects);
        assert_eq!(site.hub.sets.len(), usize::from(is_found), "somebody else's stays");
    }
    // A GitHub that does not answer keeps no pool.
    let mut site = site(11, Assignment::Automatic, &["ScaleSet"], &json!({}));
    site.run_for(5);
    site.hub.is_service_down = true;
    site.delete("RunnerPool", "linux");
    site.run_for(30);
    assert!(site.api.all("RunnerPool").is_empty());
}

#[test]
fn a_set_with_other_labels_is_made_again_when_it_is_idle_and_somebody_elses_is_left() {
    let mut site = site(12, Assignment::Automatic, &["ScaleSet"], &json!({}));
    site.run_for(5);
    let job = site.push(LABEL);
    site.run_for(15);
    let before = set(&site);
    site.change(&json!({"labels": [LABEL, "large"]}));
    site.run_for(3);
    let (reason, message) = condition(&site, "ScaleSet");
    assert_eq!((reason.as_str(), set(&site)), ("LabelsDiffer", before), "{message}");
    assert!(message.contains("has the labels pve instead of large, pve") && message.contains("created again"));
    assert!(!site.hub.jobs[&job].is_done);
    finish(&mut site, 200);
    site.run_for(60);
    assert!(set(&site) != before && site.hub.sets.len() == 1);
    assert_eq!(condition(&site, "ScaleSet").0, "Listening");
    site.push(LABEL);
    site.push("large");
    finish(&mut site, 200);

    let mut site = Site::new(13);
    let wanted = ScaleSetWanted { name: "vms".into(), group: None, labels: ["other".to_owned()].into() };
    let found = site.hub.add_set(&wanted);
    site.pool_of("linux", &json!({"scaleSet": "vms", "sources": ["ScaleSet"]}), &json!({}));
    site.run_for(90);
    let (reason, message) = condition(&site, "ScaleSet");
    assert!(reason == "LabelsDiffer" && message.contains("delete it on GitHub"), "{reason}: {message}");
    assert_eq!(set(&site), found);
}

/// Theme 20: what is reported is what there really is.
#[test]
fn the_capacity_is_what_the_hypervisor_has_room_for_and_what_quotas_allow() {
    let large = json!({"cpu": 1, "memory": "30Gi"});
    for (more, settings, expected) in [
        (json!({"scaling": {"maxReplicas": 10}}), json!({}), 4),
        (json!({"scaling": {"maxReplicas": 3}}), json!({}), 3),
        (json!({"scaling": {"maxReplicas": 10}, "quota": {"cpu": 2}}), json!({}), 2),
        (json!({"scaling": {"maxReplicas": 10}, "quota": {"memory": "100Gi"}}), json!({}), 3),
        (json!({"scaling": {"maxReplicas": 10}}), json!({"quotas": {"owner": 1}}), 1),
        (
            json!({"scaling": {"maxReplicas": 10}}),
            json!({"repositories": ["shop"], "quotas": {"eachRepository": 2}}),
            2,
        ),
    ] {
        let mut site = Site::new(14);
        site.api.edit(&super::api_server::id("HypervisorMachineTemplate", "small"), |spec| {
            spec["resources"] = large.clone();
        });
        let mut github = json!({"scaleSet": "vms", "sources": ["ScaleSet", "Webhook"]});
        github.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        site.webhooks = true;
        site.pool_of("linux", &github, &more);
        // A poll tells the capacity, so that the second one tells what is known by then.
        site.run_for(120);
        assert_eq!(site.hub.sets[&set(&site)].capacity, expected, "{more} {settings}");
        for _ in 0..6 {
            site.push(LABEL);
        }
        site.run_for(10);
        assert_eq!(site.hypervisor.clones, u64::from(expected), "{more} {settings}");
    }
}

#[test]
fn a_job_without_room_says_so_with_a_scale_set_and_without() {
    for scale_set in [true, false] {
        let mut site = Site::new(15);
        site.api.edit(&super::api_server::id("HypervisorMachineTemplate", "small"), |spec| {
            spec["resources"] = json!({"cpu": 1, "memory": "30Gi"});
        });
        let settings = if scale_set { json!({"scaleSet": "vms"}) } else { json!({"sources": ["Webhook", "Poll"]}) };
        site.webhooks = true;
        site.pool_of("linux", &settings, &json!({"scaling": {"maxReplicas": 10, "minReplicas": 5}}));
        site.run_for(120);
        assert_eq!(site.hypervisor.clones, 4, "the fifth has no room");
        for _ in 0..6 {
            site.push(LABEL);
        }
        site.run_for(15);
        let waits = site.waits();
        let without = waits.iter().filter(|wait| **wait == "NoCapacity").count();
        assert_eq!(without, 2, "{scale_set}: {waits:?}");
        finish_jobs(&mut site, 400);
    }
}

/// Until all jobs are done; spares stay.
fn finish_jobs(site: &mut Site, seconds: u64) {
    let end = site.second() + seconds;
    while site.second() < end && site.hub.jobs.values().any(|job| !job.is_done) {
        site.run_for(5);
    }
    assert!(site.hub.jobs.values().all(|job| job.is_done && job.runs == 1), "{:?}", site.hub.jobs);
}

/// Where offers are acquired, a repository gets no more machines than its quota allows.
#[test]
fn a_quota_of_a_repository_holds_where_jobs_are_acquired() {
    let quotas = json!({"repositories": [{"repository": "shop", "quota": 1}]});
    for sources in [&["ScaleSet"][..], &ALL] {
        let mut site = Site::new(16);
        (site.hub.assignment, site.webhooks) = (Assignment::Acquire, sources.contains(&"Webhook"));
        site.pool_of("linux", &json!({"scaleSet": "vms", "sources": sources, "quotas": quotas}), &json!({}));
        site.run_for(5);
        for _ in 0..3 {
            site.push(LABEL);
        }
        site.push_to("web");
        site.run_for(5);
        let waits = site.waits();
        assert!(waits.iter().filter(|wait| **wait == "Quota").count() >= 2, "{waits:?}");
        let end = site.second() + 600;
        while site.second() < end && !site.left().is_empty() {
            site.run_for(1);
            let runs = |job: &&super::hub::HubJob| job.set.is_some() && !job.is_done && job.repository == "shop";
            let running = site.hub.jobs.values().filter(runs).count();
            assert!(running <= 1, "{running} at second {}", site.second());
        }
        assert_eq!(site.left(), [""; 0]);
    }
}

/// Lost sessions, deleted scale sets, lost and late answers, crashes: every job runs once, and nothing is left.
#[test]
fn every_job_runs_once_with_a_scale_set_whatever_is_lost() {
    for seed in 0..super::seeds(40) {
        let sources = [&["ScaleSet"][..], &ALL, &["ScaleSet", "Poll"]][usize::try_from(seed % 3).unwrap()];
        let mut site = site(seed, MODES[usize::try_from(seed % 2).unwrap()], sources, &json!({}));
        site.has_faults = true;
        for round in 0..6 {
            for _ in 0..=site.random.below(3) {
                site.push(LABEL);
            }
            // Another process may end before it has recorded what it has created, and then that is left to people.
            let record = site.status()["scaleSet"].clone();
            let is_recorded =
                record["isCreated"] == true && record["id"].as_u64() == site.hub.sets.keys().next_back().copied();
            if round >= 3 && seed % 5 == 0 && is_recorded {
                site.change(&json!({"scaleSet": "others"}));
            }
            let pause = site.random.between(5, 120);
            site.run_for(pause);
        }
        site.has_faults = false;
        for _ in 0..60 {
            site.run_for(60);
            if site.left().is_empty() {
                break;
            }
        }
        let stands = || format!("{:?} {} {:?}", site.hub.sets, site.status(), site.waits());
        assert_eq!(site.left(), [""; 0], "seed {seed} at second {}: {}", site.second(), stands());
        assert!(!site.shows_a_token(), "seed {seed}");
    }
}
