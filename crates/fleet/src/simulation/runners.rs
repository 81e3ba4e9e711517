//! Jobs, runners and machines together: each job becomes a runner on a machine of its own, and nothing is left.

use super::site::Site;
use crate::jobs::job::{Facts, JobKey, Repository, State};
use crate::notice::Notice;
use crate::object::Name;
use bootstrap::Step;
use serde_json::{Value, json};

fn condition(status: &Value, kind: &str) -> (String, String) {
    let all = status["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("reason"), text("message"))
}

fn counts(status: &Value) -> [i64; 4] {
    ["queued", "starting", "idle", "busy"].map(|field| status[field].as_i64().unwrap_or(-1))
}

/// The smallest story, found by polls alone.
#[test]
fn a_queued_job_becomes_a_runner_on_a_machine_and_nothing_is_left() {
    let mut site = Site::new(1);
    site.pool(&json!({}));
    site.run_for(5);
    assert_eq!((counts(&site.status()), site.hypervisor.clones), ([0, 0, 0, 0], 0), "there is no job");
    assert_eq!(condition(&site.status(), "Connected").0, "Connected");
    site.push(super::hub::LABEL);
    site.run_for(70);
    let booting = site.status();
    let seen: Vec<i64> = counts(&booting).to_vec();
    assert!(site.hypervisor.clones == 1, "{seen:?} {booting}");
    site.run_for(120);
    assert_eq!(site.left(), [""; 0]);
    assert_eq!((site.hypervisor.clones, site.hub.registered), (1, 1), "one job, one machine, one runner");
    assert_eq!(counts(&site.status()), [0, 0, 0, 0]);
    assert!(!site.shows_a_token(), "no secret is in any object");
    assert!(site.notices.iter().any(|notice| matches!(notice, Notice::GuestEnded { is_expected: true, .. })));
}

#[test]
fn a_webhook_leads_to_a_machine_at_once_and_the_counts_of_the_pool_say_how_far_it_is() {
    let mut site = Site::new(2);
    site.webhooks = true;
    site.pool(&json!({}));
    site.run_for(5);
    site.push(super::hub::LABEL);
    site.push(super::hub::LABEL);
    site.run_for(2);
    assert_eq!(site.hypervisor.clones, 2, "polls come every minute");
    assert_eq!(counts(&site.status()), [2, 2, 0, 0]);
    assert_eq!(
        condition(&site.status(), "Demand"),
        ("JobsWaiting".into(), "2 jobs wait: 2 for a machine that boots".into())
    );
    site.run_for(20);
    assert_eq!(counts(&site.status()), [0, 0, 0, 2]);
    site.run_for(60);
    assert_eq!(site.left(), [""; 0]);
}

#[test]
fn a_runner_is_removed_before_its_machine_and_a_job_that_runs_is_waited_for() {
    let mut site = Site::new(3);
    site.webhooks = true;
    site.pool(&json!({"scaling": {"minReplicas": 2, "maxReplicas": 2}}));
    site.run_for(40);
    assert_eq!(counts(&site.status()), [0, 0, 2, 0]);
    site.push(super::hub::LABEL);
    site.run_for(5);
    assert_eq!(counts(&site.status())[3], 1);
    site.delete("RunnerPool", "linux");
    site.run_for(10);
    assert_eq!(site.hypervisor.vms.len(), 1, "the idle one is gone, the busy one is not");
    assert_eq!(site.hub.runners.len(), 1);
    site.run_for(60);
    assert_eq!(site.left(), [""; 0]);
    assert!(site.api.all("RunnerPool").is_empty());
}

/// GitHub gives the runner a job while its claim is being deleted, a moment before its guest hears of either.
#[test]
fn a_guest_is_asked_to_end_only_when_its_runner_is_removed() {
    let mut site = Site::new(12);
    site.webhooks = true;
    site.pool(&json!({"scaling": {"minReplicas": 1, "maxReplicas": 1}}));
    site.run_for(59);
    assert_eq!(counts(&site.status()), [0, 0, 1, 0]);
    let job = site.push(super::hub::LABEL);
    let (_, claim) = site.api.all("MachineClaim").into_iter().next().unwrap();
    site.delete("MachineClaim", &claim);
    site.run_for(120);
    assert_eq!(site.hub.broken, [""; 0]);
    assert!(site.hub.jobs[&job].is_done && !site.hub.jobs[&job].has_failed);
}

#[test]
fn a_token_is_useless_after_its_first_use() {
    let mut site = Site::new(4);
    site.pool(&json!({"scaling": {"minReplicas": 1, "maxReplicas": 1}}));
    site.run_for(40);
    assert_eq!(counts(&site.status()), [0, 0, 1, 0]);
    let machine = site.hypervisor.vms.keys().next().cloned().unwrap();
    let token = site.token_of(&machine);
    assert_eq!(site.tokens, [token], "one machine, one token");
    assert!(!site.shows_a_token());
}

/// Crashes of the operator, lost and late answers of GitHub, lost webhooks: every job runs once, and nothing is left.
#[test]
fn every_job_runs_once_and_nothing_is_left_whatever_is_lost_and_however_often_the_operator_ends() {
    for seed in 0..super::seeds(40) {
        let mut site = Site::new(seed);
        (site.has_faults, site.webhooks) = (true, seed % 3 > 0);
        site.pool(&json!({}));
        for _ in 0..6 {
            for _ in 0..=site.random.below(3) {
                site.push(super::hub::LABEL);
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
        assert_eq!(site.left(), [""; 0], "seed {seed} at second {}", site.second());
        assert!(!site.shows_a_token(), "seed {seed}");
    }
}

/// Nobody can list the jobs of an enterprise: its webhooks tell of them, and each is looked up.
#[test]
fn a_webhook_leads_to_a_machine_of_an_enterprise_and_a_lost_end_is_looked_up() {
    let mut site = Site::new(5);
    site.webhooks = true;
    let github = json!({
        "enterprise": "corp", "labels": [super::hub::LABEL], "credentials": {"token": {"name": "gh", "key": "token"}},
        "quotas": {"owner": 1},
    });
    site.pool(&json!({"workload": {"type": "github-actions", "config": {"github": github}}}));
    site.run_for(5);
    site.push(super::hub::LABEL);
    site.push(super::hub::LABEL);
    site.run_for(5);
    assert_eq!(site.hypervisor.clones, 1, "the quota of the enterprise is one machine");
    assert_eq!(condition(&site.status(), "Demand").1, "2 jobs wait: 1 because of a quota, 1 for a machine that boots");
    site.run_for(180);
    assert_eq!(site.left(), [""; 0]);
    site.push(super::hub::LABEL);
    site.run_for(20);
    assert_eq!(counts(&site.status()), [0, 0, 0, 1]);
    site.webhooks = false;
    site.run_for(60);
    site.webhooks = true;
    site.push(super::hub::LABEL);
    site.run_for(400);
    assert_eq!(site.left(), [""; 0], "the job whose end was lost is not counted for ever");
}

/// Each login sees other repositories: a list of one says nothing about those of another.
#[test]
fn jobs_of_an_organisation_are_found_beside_a_pool_of_one_of_its_repositories() {
    let mut site = Site::new(6);
    let github = json!({
        "repository": "acme/other", "labels": [super::hub::LABEL], "credentials": {"token": {"name": "gh", "key": "other"}},
    });
    let workload = json!({"type": "github-actions", "config": {"github": github}});
    // The first by its name.
    site.create("RunnerPool", "a", &json!({"templateRef": {"name": "small"}, "scaling": {}, "workload": workload}));
    site.pool(&json!({}));
    site.run_for(5);
    site.push(super::hub::LABEL);
    site.run_for(430);
    assert_eq!(site.left(), [""; 0]);
}

/// Whoever has stolen the token of a guest that works cannot make its claim look as if it had failed.
#[test]
fn a_guest_that_ends_as_it_should_has_not_failed_although_its_token_was_presented_again() {
    let mut site = Site::new(11);
    site.webhooks = true;
    site.pool(&json!({}));
    site.run_for(5);
    site.push(super::hub::LABEL);
    site.run_for(30);
    assert_eq!(counts(&site.status())[3], 1);
    let machine = site.hypervisor.vms.keys().next().cloned().unwrap();
    site.present_token_of(&machine);
    site.run_for(120);
    assert_eq!(site.left(), [""; 0]);
    assert!(site.notices.iter().any(|notice| matches!(notice, Notice::TokenReused { .. })));
    let reasons = site.reasons();
    assert!(!reasons.iter().any(|(reason, _)| reason == "GuestFailed"), "{reasons:?}");

    // One whose token somebody else has used first says nothing more.
    site.push(super::hub::LABEL);
    site.run_for(4);
    let machine = site.hypervisor.vms.keys().next().cloned().unwrap();
    site.present_token_of(&machine);
    site.run_for(180);
    let reasons = site.reasons();
    let expected = "StepFailed at Exchange: the token was used before";
    assert!(reasons.iter().any(|(_, message)| message.starts_with(expected)), "{reasons:?}");
}

/// An event that says that a job has ended.
fn completed(id: u64, repository: &str) -> Facts {
    Facts {
        key: JobKey::Job { id, attempt: 1 },
        repository: Repository::read(repository).unwrap(),
        run: id,
        name: "build".into(),
        labels: [super::hub::LABEL.to_owned()].into(),
        group: None,
        state: State::Completed,
        runner: None,
        conclusion: Some("success".into()),
        created: None,
        started: None,
        completed: None,
    }
}

/// Whoever knows the secret of one pool can say nothing about the jobs of others.
#[test]
fn an_event_is_taken_only_for_the_pools_whose_secret_has_signed_it() {
    for (scope, repository) in [
        (json!({"organization": "other"}), "acme/shop"),
        (json!({"organization": "other"}), "other/x"),
        (json!({"repository": "acme/other"}), "acme/shop"),
        (json!({"enterprise": "corp"}), "acme/shop"),
    ] {
        let mut site = Site::new(7);
        let mut github = json!({"labels": ["x"], "credentials": {"token": {"name": "gh", "key": "other"}}});
        github.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
        let workload = json!({"type": "github-actions", "config": {"github": github}});
        site.create("RunnerPool", "a", &json!({"templateRef": {"name": "small"}, "scaling": {}, "workload": workload}));
        site.pool(&json!({}));
        site.run_for(5);
        let id = site.push(super::hub::LABEL);
        site.hear(completed(id, repository), [Name::new("ci", "a")].into());
        site.run_for(200);
        assert_eq!(site.left(), [""; 0], "{scope} {repository}");
        // The machine of another job is not ended by it either.
        let id = site.push(super::hub::LABEL);
        site.run_for(90);
        assert_eq!(counts(&site.status())[3], 1, "{scope} {repository}");
        let runner = site.hub.runners.values().next().unwrap().name.clone();
        site.hear(Facts { runner: Some(runner), ..completed(id + 1_000, repository) }, [Name::new("ci", "a")].into());
        site.run_for(120);
        assert_eq!(site.left(), [""; 0], "{scope} {repository}");
    }
}

/// A pool may name any organisation: only a login shows that it is in these hands.
#[test]
fn an_event_is_not_taken_for_a_pool_whose_login_never_worked() {
    let mut site = Site::new(8);
    site.refuses_logins = true;
    site.pool(&json!({}));
    site.run_for(5);
    site.webhooks = true;
    site.push(super::hub::LABEL);
    site.run_for(20);
    assert_eq!(site.hypervisor.clones, 0);
}

#[test]
fn jobs_for_the_machines_of_github_are_not_kept() {
    let mut site = Site::new(9);
    site.webhooks = true;
    site.pool(&json!({}));
    site.run_for(5);
    site.hear(
        Facts { state: State::Queued, labels: ["ubuntu-latest".to_owned()].into(), ..completed(77, "acme/shop") },
        [Name::new("ci", "linux")].into(),
    );
    site.hear(
        Facts { state: State::Queued, labels: ["self-hosted".to_owned()].into(), ..completed(78, "acme/shop") },
        [Name::new("ci", "linux")].into(),
    );
    site.run_for(5);
    assert_eq!(site.jobs(), [78], "what asks for a runner of somebody's own is shown, even if no pool has it");
}

/// Before a guest has its credentials it cannot say why it ends: then it is what the operator has seen of it.
#[test]
fn a_claim_ends_with_the_reason_that_its_guest_gave_for_every_step() {
    use Step::{Configure, Credentials, Download, Exchange, Idle, Job, Start, Unpack, Verify};
    for step in [Configure, Exchange, Download, Verify, Unpack, Credentials, Start, Idle, Job] {
        let mut site = Site::new(10);
        site.webhooks = true;
        site.fails_at = Some(step);
        site.pool(&json!({}));
        site.run_for(5);
        site.push(super::hub::LABEL);
        // As long as a job takes: until then GitHub says that its runner is busy.
        site.run_for(90);
        let expected = match step {
            Configure => "its guest stopped before it asked for credentials".to_owned(),
            Exchange => "StepFailed at Exchange: the token has expired before the machine asked".to_owned(),
            _ => format!("StepFailed at {step:?}: the disk is full"),
        };
        let reasons = site.reasons();
        let found = reasons.iter().find(|(reason, _)| reason == "GuestFailed");
        assert!(
            found.is_some_and(|(_, message)| message.starts_with(&expected) && message.len() <= 1_000),
            "{reasons:?}"
        );
        assert!(!reasons.iter().any(|(reason, _)| reason == "VMShutdownDetected"), "{reasons:?}");
        site.fails_at = None;
        site.run_for(600);
        assert_eq!(site.left(), [""; 0], "{step:?}");
    }
}
