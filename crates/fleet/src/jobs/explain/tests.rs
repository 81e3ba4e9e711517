//! Tests of what people read about jobs.

use super::wait;
use crate::forge::Platform;
use crate::jobs::demand::Wait;
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

fn now(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
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
        Wait::NotListening { pool: pool(), is_taken: true },
        Wait::NotListening { pool: pool(), is_taken: false },
        Wait::NotReady { pool: pool(), why: "NotConnected".into() },
    ];
    let sentences: std::collections::BTreeSet<String> =
        all.iter().map(|reason| wait(reason, Platform::GitHub, now(3_700).wall)).collect();
    assert_eq!(sentences.len(), all.len());
    assert!(wait(&all[8], Platform::GitHub, now(3_700).wall).ends_with("has been booting for 1 h 1 min"));
    assert!(
        wait(&all[9], Platform::GitHub, now(30).wall).ends_with("not given it a job yet"),
        "it has just come online"
    );
    assert!(wait(&all[9], Platform::GitHub, now(300).wall).contains("check that its runner group"));
}

#[test]
fn a_job_of_gitlab_is_told_of_in_the_words_of_gitlab() {
    let at = now(0).wall;
    for (reason, expected) in [
        (Wait::OnGitHub, "its resource group"),
        (Wait::NoPool { missing: vec!["gpu".into()] }, "has the tag gpu"),
        (Wait::Idle { runner: "vp-1".into(), since: at }, "has group runners enabled"),
        (Wait::RateLimited { until: at }, "requests to GitLab"),
    ] {
        let said = wait(&reason, Platform::GitLab, now(300).wall);
        assert!(said.contains(expected) && !said.contains("GitHub"), "{said}");
    }
}
