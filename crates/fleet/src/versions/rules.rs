//! What CI platforms demand of runner versions, as data, and how carefully a new one is taken.

use super::version::Version;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Older versions are refused at their registration.
    pub minimum: Option<Version>,
    /// A version gets no jobs any more so long after a newer one is out.
    pub longest_behind: Option<Duration>,
    /// People hear so long before that that it comes.
    pub warn_before: Duration,
    /// A new version is tried so long after it was offered first, if another one can be used.
    pub minimum_age: Duration,
    /// So many percent of the machines of a pool may have a new version; one may in any case.
    pub canary_percent: u32,
    /// After so many jobs that machines with it have run to their end, a new version is for all.
    pub enough_successes: usize,
    /// After so many machines that have failed with it, it is rolled back.
    pub too_many_failures: usize,
    /// A runner that is online for so long while a job waits for it has failed: GitHub gives a version that it refuses no job.
    pub no_job_for: Duration,
}

/// The rules of GitHub.
///
/// A runner that does not update itself has to be updated within 30 days of a newer release, and one older than 2.329.0 cannot register
/// (<https://docs.github.com/en/actions/reference/runners/self-hosted-runners>). After a critical security update GitHub may refuse older
/// versions at once; then their machines fail, and the newer version is taken.
pub const GITHUB: Rules = Rules {
    minimum: Some(Version::new(2, 329, 0)),
    longest_behind: Some(DAY.saturating_mul(30)),
    warn_before: DAY.saturating_mul(10),
    minimum_age: Duration::ZERO,
    canary_percent: 10,
    enough_successes: 10,
    too_many_failures: 2,
    no_job_for: Duration::from_secs(600),
};

/// A version that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// The version.
    pub version: Version,
    /// When it was offered first, as far as the fleet knows. It was out then at the latest.
    pub since: Timestamp,
}

impl Rules {
    /// When a version gets no jobs any more, by the releases that are known; nothing while it is the newest.
    pub fn refused_at(&self, version: Version, releases: &[Release]) -> Option<Timestamp> {
        let newer = releases.iter().filter(|release| release.version > version).map(|release| release.since).min()?;
        Some(change::now::later(newer, self.longest_behind?))
    }

    /// Whether a version can be used.
    pub fn accepts(&self, version: Version, releases: &[Release], now: Timestamp) -> bool {
        self.minimum.is_none_or(|minimum| version >= minimum)
            && self.refused_at(version, releases).is_none_or(|refused| refused > now)
    }

    /// Whether a version was offered for long enough to be tried.
    pub fn is_ripe(&self, version: Version, releases: &[Release], now: Timestamp) -> bool {
        let found = releases.iter().find(|release| release.version == version);
        found.is_some_and(|release| change::now::later(release.since, self.minimum_age) <= now)
    }

    /// How many of so many machines may have a new version.
    pub fn canaries(&self, machines: usize) -> usize {
        let percent = usize::try_from(self.canary_percent.min(100)).unwrap_or(100);
        (machines.saturating_mul(percent) / 100).max(1)
    }
}
