//! What a pool wants, what is offered, and what its status remembers.

use super::{Changes, Upkeep, Wanted};
use crate::forge::RunnerDownload;
use crate::versions::{Machine, Origin, Outcome, Version};
use api::fleet::{Github, RunnerVersions};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

const OLD: Version = Version::new(2, 330, 0);
const NEW: Version = Version::new(2, 331, 0);

fn wanted(runner: &Value) -> Option<Wanted> {
    let github: Github = serde_json::from_value(json!({"organization": "acme", "runner": runner})).unwrap();
    Wanted::read(&github)
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn download(version: Version, architecture: &str, sum: Option<&str>) -> RunnerDownload {
    RunnerDownload {
        version: version.to_string(),
        os: "linux".into(),
        architecture: architecture.into(),
        url: format!("https://github.com/{version}"),
        sha256: sum.map(str::to_owned),
    }
}

fn decide(upkeep: &mut Upkeep, machines: &[Machine]) -> Changes {
    upkeep.decide(machines, None, now())
}

fn worked(version: Version, count: usize) -> Vec<Machine> {
    let machine =
        |number| Machine { uid: format!("u{number}"), version: Some(version), outcome: Some(Outcome::Worked) };
    (0..count).map(machine).collect()
}

#[test]
fn a_version_comes_from_the_upkeep_the_pool_or_the_image() {
    for (runner, expected) in [
        (json!({}), None),
        (json!({"folder": "/opt/runner"}), None),
        (json!({"upkeep": {}}), Some(Origin::Download)),
        (json!({"upkeep": {"version": "2.330.0"}}), Some(Origin::Pinned(OLD))),
        (json!({"version": "2.330.0"}), Some(Origin::Image(OLD))),
        (json!({"download": {"url": "https://a", "sha256": "ab"}}), None),
        (json!({"download": {"url": "https://a", "sha256": "ab", "version": "v2.330.0"}}), Some(Origin::Pinned(OLD))),
    ] {
        assert_eq!(wanted(&runner).map(|wanted| wanted.origin), expected, "{runner}");
    }
    let rules = wanted(&json!({"upkeep": {"minimumAge": "2d", "canaryPercent": 50}})).unwrap().rules;
    assert_eq!((rules.minimum_age, rules.canary_percent), (Duration::from_secs(2 * 86_400), 50));
    assert_eq!(rules.canaries(10), 5);
}

#[test]
fn only_an_archive_for_the_machines_with_a_checksum_is_used() {
    let sum = "AB".repeat(32);
    let mut upkeep = Upkeep::new(wanted(&json!({"upkeep": {"architecture": "arm64"}})).unwrap(), None);
    assert!(decide(&mut upkeep, &[]).warnings.is_empty(), "nobody was asked yet");
    assert_eq!(upkeep.next(), Err("GitHub has not said yet which runner versions it offers".into()));
    for wrong in [download(NEW, "x64", Some(&sum)), download(NEW, "arm64", None), download(NEW, "arm64", Some("ab"))] {
        upkeep.listed(&[wrong]);
        assert_eq!(decide(&mut upkeep, &[]).warnings.len(), usize::from(upkeep.next().is_err()).min(1));
        assert!(upkeep.next().unwrap_err().contains("offers no runner for linux arm64"), "{:?}", upkeep.next());
        upkeep = Upkeep::new(wanted(&json!({"upkeep": {"architecture": "arm64"}})).unwrap(), None);
    }
    upkeep.listed(&[download(OLD, "arm64", Some(&sum))]);
    decide(&mut upkeep, &[]);
    assert_eq!(upkeep.next(), Ok(Some(OLD)));
    let archive = upkeep.archive(OLD).unwrap();
    assert_eq!((archive.url.as_str(), archive.sha256.clone()), ("https://github.com/2.330.0", "ab".repeat(32)));
}

#[test]
fn the_status_remembers_everything_and_counts_only_for_the_same_server_and_architecture() {
    let upkept = || wanted(&json!({"upkeep": {}})).unwrap();
    let sum = "ab".repeat(32);
    let mut upkeep = Upkeep::new(upkept(), None);
    upkeep.listed(&[download(OLD, "x64", Some(&sum))]);
    decide(&mut upkeep, &[]);
    decide(&mut upkeep, &worked(OLD, 10));
    // The proved version is not offered any more, and is downloaded all the same.
    upkeep.listed(&[download(NEW, "x64", Some(&sum))]);
    decide(&mut upkeep, &[]);
    decide(&mut upkeep, &worked(NEW, 1));
    let status = upkeep.status();
    assert_eq!(
        (status.current.as_deref(), status.canary.as_ref().map(|found| found.worked.len())),
        (Some("2.330.0"), Some(1))
    );
    let json = serde_json::to_value(&status).unwrap();
    let read: RunnerVersions = serde_json::from_value(json).unwrap();
    let mut after = Upkeep::new(upkept(), Some(&read));
    assert_eq!(after.status(), status);
    let changes = decide(&mut after, &[]);
    assert!(changes.news.is_empty() && changes.warnings.is_empty(), "{changes:?}");
    assert_eq!(after.next(), Ok(Some(NEW)), "the next machine is the one that tries it");
    assert!(after.archive(OLD).is_some() && !after.is_given_up(OLD, now()));
    let other = Upkeep::new(wanted(&json!({"upkeep": {"architecture": "arm"}})).unwrap(), Some(&read));
    assert_eq!((other.status().current, other.status().releases.len()), (None, 0));
    // Foreign text in a status is no version.
    let mut broken = read;
    broken.current = Some("latest".into());
    assert_eq!(Upkeep::new(upkept(), Some(&broken)).status().current, None);
}
