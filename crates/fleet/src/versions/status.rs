//! The memory of runner versions as the status of a pool has it.

use super::upkeep::Archive;
use super::{Canary, Memory, Release, RolledBack, Version};
use crate::conditions::{read, shown};
use api::fleet::{RolledBackVersion, RunnerCanary, RunnerRelease, RunnerVersions};
use std::collections::BTreeMap;

/// What a status remembers. What cannot be read is forgotten.
pub(super) fn memory(status: &RunnerVersions) -> (Memory, BTreeMap<Version, Archive>) {
    let version = |text: &String| Version::read(text);
    let archives = status.releases.iter().filter_map(|release| {
        let (url, sha256) = (release.url.clone()?, release.sha256.clone()?);
        Some((Version::read(&release.version)?, Archive { url, sha256 }))
    });
    let canary = status.canary.as_ref().and_then(|canary| {
        Some(Canary {
            version: Version::read(&canary.version)?,
            since: read(&canary.since)?,
            worked: canary.worked.iter().cloned().collect(),
            failed: canary.failed.iter().cloned().collect(),
        })
    });
    let rolled_back = status.rolled_back.iter().filter_map(|found| {
        Some(RolledBack { version: Version::read(&found.version)?, at: read(&found.time)?, why: found.message.clone() })
    });
    let releases = status.releases.iter().filter_map(|release| {
        Some(Release { version: Version::read(&release.version)?, since: read(&release.since)? })
    });
    let memory = Memory {
        current: status.current.as_ref().and_then(version),
        refused: status.refused.iter().cloned().collect(),
        canary,
        rolled_back: rolled_back.collect(),
        retried: status.retried.as_ref().and_then(version),
        releases: releases.collect(),
    };
    (memory, archives.collect())
}

/// The status that remembers this.
pub(super) fn status(of: &str, memory: &Memory, archives: &BTreeMap<Version, Archive>) -> RunnerVersions {
    let text = |version: &Version| version.to_string();
    let release = |release: &Release| {
        let archive = archives.get(&release.version);
        RunnerRelease {
            version: text(&release.version),
            since: shown(release.since),
            url: archive.map(|archive| archive.url.clone()),
            sha256: archive.map(|archive| archive.sha256.clone()),
        }
    };
    RunnerVersions {
        of: of.to_owned(),
        current: memory.current.as_ref().map(text),
        refused: memory.refused.iter().cloned().collect(),
        canary: memory.canary.as_ref().map(|canary| RunnerCanary {
            version: text(&canary.version),
            since: shown(canary.since),
            worked: canary.worked.iter().cloned().collect(),
            failed: canary.failed.iter().cloned().collect(),
        }),
        rolled_back: memory
            .rolled_back
            .iter()
            .map(|found| RolledBackVersion {
                version: text(&found.version),
                time: shown(found.at),
                message: found.why.clone(),
            })
            .collect(),
        retried: memory.retried.as_ref().map(text),
        releases: memory.releases.iter().map(release).collect(),
    }
}
