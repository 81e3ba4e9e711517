//! Tests of what people read about jobs.

use super::{job, queue, wait};
use crate::jobs::demand::Wait;
use crate::jobs::demand::tests::{job as facts, pool};
use crate::jobs::dispatch::Dispatch;
use crate::jobs::exchange::{Event, Objects};
use crate::jobs::fair::Rules;
use crate::jobs::job::{JobKey, Observation, Source, State};
use change::{Moment, Now};
use expect_test::expect;
use jiff::Timestamp;
use std::time::Duration;

fn now(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn see(dispatch: &mut Dispatch, second: u64, id: u64, labels: &[&str], state: State, runner: Option<&str>) {
    let mut facts = facts(id, "acme/shop", labels);
    (facts.state, facts.runner) = (state, runner.map(str::to_owned));
    facts.created = Some(now(0).wall);
    facts.conclusion = (state == State::Completed).then(|| "success".into());
    let observation = Observation { source: Source::Webhook, at: now(second).wall, facts };
    dispatch.take(Event::Observed(Box::new(observation)), now(second));
}

fn dispatch() -> Dispatch {
    let mut dispatch = Dispatch::new("operator");
    let (pools, rules) = ([pool("linux", &["self-hosted", "pve"])], Rules::default());
    let objects = Objects { pools: &pools, claims: &[], is_complete: true, rules: &rules };
    let limits = Event::Limits { owner: "acme".into(), limit: 5_000, remaining: 5_000, reset: now(3_600).wall };
    dispatch.take(limits, now(0));
    see(&mut dispatch, 1, 7, &["pve"], State::Queued, None);
    see(&mut dispatch, 2, 8, &["pve", "pvee"], State::Queued, None);
    dispatch.decide(objects, now(2));
    see(&mut dispatch, 60, 9, &["pve"], State::InProgress, Some("vp-1"));
    dispatch.decide(objects, now(60));
    dispatch
}

#[test]
fn the_queue_says_why_each_job_waits() {
    let rows = queue(&dispatch(), now(90).wall);
    let lines: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {} {}s {:?}: {}", row.job, row.state, row.seconds, row.reason, row.message))
        .collect();
    expect![[r#"
        7 queued 90s Some("Creating"): a machine of pool ci/linux is being created
        8 queued 90s Some("NoPool"): no RunnerPool of its repository has the label pvee; correct runs-on of the job, or add the label to a pool
        9 in progress 30s None: runs on vp-1"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn a_job_has_a_story() {
    let mut dispatch = dispatch();
    see(&mut dispatch, 70, 7, &["pve"], State::InProgress, Some("vp-2"));
    see(&mut dispatch, 80, 7, &["pve"], State::Completed, Some("vp-2"));
    let story = |id: u64| job(&dispatch, &JobKey::Job { id, attempt: 1 }, now(90).wall).unwrap().join("\n");
    expect![[r#"
        job 7 "build" of acme/shop, run 7
        runs on: pve
        completed: success

        2027-01-15T08:00:01Z  it is queued, as a webhook says
        2027-01-15T08:00:02Z  a machine of pool ci/linux is being created
        2027-01-15T08:01:10Z  runner vp-2 has started it, as a webhook says
        2027-01-15T08:01:20Z  it is completed, as a webhook says"#]]
    .assert_eq(&story(7));
    expect![[r#"
        job 8 "build" of acme/shop, run 8
        runs on: pve, pvee
        queued for 1 min 30 s: no RunnerPool of its repository has the label pvee; correct runs-on of the job, or add the label to a pool

        2027-01-15T08:00:02Z  it is queued, as a webhook says
        2027-01-15T08:00:02Z  no RunnerPool of its repository has the label pvee; correct runs-on of the job, or add the label to a pool"#]].assert_eq(&story(8));
    assert_eq!(job(&dispatch, &JobKey::Job { id: 1, attempt: 1 }, now(90).wall), None);
}

#[test]
fn every_reason_to_wait_is_a_sentence_of_its_own() {
    let (at, pool) = (now(0).wall, || "ci/linux".to_owned());
    let all = [
        Wait::OnGitHub,
        Wait::NoPool { missing: vec![] },
        Wait::NoPool { missing: vec!["gpu".into()] },
        Wait::Paused { pool: pool() },
        Wait::Quota { of: "acme".into(), allowed: 3 },
        Wait::PoolFull { pool: pool(), max: 10 },
        Wait::NoCapacity { pool: pool() },
        Wait::Creating { pool: pool() },
        Wait::Booting { claim: "ci/linux-x".into(), since: at },
        Wait::Idle { runner: "vp-1".into(), since: at },
        Wait::RateLimited { until: at },
        Wait::NotAssigned { pool: pool(), capacity: 4 },
    ];
    let sentences: std::collections::BTreeSet<String> =
        all.iter().map(|reason| wait(reason, now(3_700).wall)).collect();
    assert_eq!(sentences.len(), all.len());
    assert!(wait(&all[8], now(3_700).wall).ends_with("has been booting for 1 h 1 min"));
    assert!(wait(&all[9], now(30).wall).ends_with("not given it a job yet"), "it has just come online");
    assert!(wait(&all[9], now(300).wall).contains("check that its runner group"));
}
