//! Which version of the runner program new machines of a pool get.
//!
//! A new version goes to a few machines first. When enough jobs have run on these it is for all; when machines fail with it, it is rolled
//! back and never taken again, unless a person asks for it. What cannot be observed later is in [`Memory`], which the status of the pool keeps.

mod rules;
mod status;
pub mod upkeep;
mod version;

pub use rules::{GITHUB, Release, Rules};
pub use upkeep::{Upkeep, Wanted};
pub use version::Version;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// So many releases are remembered: those that say when an older one is refused.
const MOST_RELEASES: usize = 8;
/// So many versions that were rolled back are remembered; the newest ones, since older ones are refused some day anyway.
const MOST_ROLLED_BACK: usize = 16;

/// What has to be remembered. It is in the status of the pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// The version that has proved itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<Version>,
    /// Machines with it that GitHub has refused.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub refused: BTreeSet<String>,
    /// The version that is tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// Versions that were rolled back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rolled_back: Vec<RolledBack>,
    /// The version that a person has asked to try again, once that was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<Version>,
    /// Releases, and since when they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Release>,
}

/// A version that is tried. Machines are remembered by the uids of their claims, so that none counts twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// The version.
    pub version: Version,
    /// Since when.
    pub since: Timestamp,
    /// Machines with it that ran a job to its end.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub worked: BTreeSet<String>,
    /// Machines that failed with it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub failed: BTreeSet<String>,
}

/// A version that was rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledBack {
    /// The version.
    pub version: Version,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub why: String,
}

/// What became of a machine, as far as it says something about its runner's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It ran a job to its end, however that ended.
    Worked,
    /// Its runner did not start, or never came online.
    NotStarted,
    /// Its runner was online and was given no job, though one waited for it.
    NoJob,
    /// GitHub has refused the version of its runner.
    Refused,
}

impl Outcome {
    /// Whether the guest of the machine says that its runner is of no use.
    pub fn is_claimed_failure(self) -> bool {
        matches!(self, Outcome::NotStarted | Outcome::Refused)
    }

    /// In a sentence.
    pub fn message(self) -> &'static str {
        match self {
            Outcome::Worked => "ran a job",
            Outcome::NotStarted => "did not start",
            Outcome::NoJob => "was online and got no job, though one waited for it",
            Outcome::Refused => "was refused by GitHub",
        }
    }
}

/// A machine of the pool that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The uid of its claim.
    pub uid: String,
    /// The version of its runner, once it was decided.
    pub version: Option<Version>,
    /// What became of it, once that is known.
    pub outcome: Option<Outcome>,
}

/// Where the runner program comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The guest downloads it, in the version that it is given.
    Download,
    /// The image has it in this version; only another image changes that.
    Image(Version),
    /// A person has chosen the version.
    Pinned(Version),
}

/// All that a decision depends on.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The rules of the platform.
    pub rules: &'a Rules,
    /// What is remembered.
    pub memory: &'a Memory,
    /// Where the runner comes from.
    pub origin: Origin,
    /// The versions that the platform offers for the machines of the pool; nothing if that is not known now.
    pub offered: Option<&'a [Version]>,
    /// All machines of the pool.
    pub machines: &'a [Machine],
    /// A version that was rolled back and that a person asks to try again.
    pub retry: Option<Version>,
    /// The present moment.
    pub now: Timestamp,
}

/// What follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to remember.
    pub memory: Memory,
    /// The version for the next machine, or why there is none.
    pub choice: Result<Choice, NoVersion>,
    /// What people should know now, also if nothing has changed.
    pub warnings: Vec<Warning>,
    /// What has changed.
    pub news: Vec<News>,
}

/// The version for the next machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The version.
    pub version: Version,
    /// Whether it is being tried.
    pub is_canary: bool,
}

/// Why no machine can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoVersion {
    /// The platform has not said yet which versions it offers.
    NotKnown,
    /// All versions that it offers were rolled back, or are refused.
    NoneLeft(String),
    /// It does not offer what is wanted, or could not be asked.
    NotOffered(String),
}

/// What people should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The version that machines get is refused soon.
    Ageing {
        /// The version.
        version: Version,
        /// When it is refused.
        refused: Timestamp,
    },
    /// The version that machines get is refused.
    Refused {
        /// The version.
        version: Version,
    },
    /// Nothing can be chosen.
    NoVersion(NoVersion),
}

/// What has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A version is tried.
    CanaryStarted(Version),
    /// A version is for all.
    Promoted(Version),
    /// A version was rolled back.
    RolledBack(Version, String),
}

impl News {
    /// The reason of its event.
    pub fn reason(&self) -> &'static str {
        match self {
            News::CanaryStarted(_) => "RunnerVersionCanary",
            News::Promoted(_) => "RunnerVersionPromoted",
            News::RolledBack(..) => "RunnerVersionRolledBack",
        }
    }
}

impl Warning {
    /// The reason of its event.
    pub fn reason(&self) -> &'static str {
        match self {
            Warning::Ageing { .. } => "RunnerVersionAgeing",
            Warning::Refused { .. } => "RunnerVersionRefused",
            Warning::NoVersion(_) => "NoRunnerVersion",
        }
    }
}

impl fmt::Display for NoVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoVersion::NotKnown => f.write_str("GitHub has not said yet which runner versions it offers"),
            NoVersion::NoneLeft(why) => write!(f, "no runner version is left that can be used: {why}"),
            NoVersion::NotOffered(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Ageing { version, refused } => {
                write!(f, "GitHub gives runners of version {version} no jobs any more from {refused} on")
            }
            Warning::Refused { version } => write!(f, "GitHub refuses runners of version {version}"),
            Warning::NoVersion(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            News::CanaryStarted(version) => write!(f, "runner version {version} is tried on some machines"),
            News::Promoted(version) => write!(f, "runner version {version} is for all machines now"),
            News::RolledBack(version, why) => write!(f, "runner version {version} is not used any more: {why}"),
        }
    }
}

/// The versions of a pool, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// The version that has proved itself, or that a person or an image has chosen.
    pub current: Option<Version>,
    /// The version that is tried.
    pub canary: Option<Version>,
    /// Versions that were rolled back.
    pub rolled_back: Vec<Version>,
    /// When the version that machines get is refused, if it is not the newest.
    pub refused: Option<(Version, Timestamp)>,
}

/// What metrics show of a decision.
pub fn shown(rules: &Rules, decision: &Decision) -> Shown {
    let Memory { current, canary, rolled_back, releases, .. } = &decision.memory;
    let chosen = decision.choice.as_ref().ok();
    let current = chosen.filter(|choice| !choice.is_canary).map(|choice| choice.version).or(*current);
    let used = current.or(chosen.map(|choice| choice.version));
    Shown {
        current,
        canary: canary.as_ref().map(|canary| canary.version),
        rolled_back: rolled_back.iter().map(|found| found.version).collect(),
        refused: used.and_then(|version| Some((version, rules.refused_at(version, releases)?))),
    }
}

/// Decides about the versions of a pool.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let mut state = State { observed, memory: observed.memory.clone(), news: Vec::new() };
    state.note_releases();
    let fixed = match observed.origin {
        Origin::Image(version) | Origin::Pinned(version) => Some(version),
        Origin::Download => None,
    };
    let choice = match fixed {
        // A person decides about it: nothing is tried and nothing rolled back.
        Some(version) => Ok(Choice { version, is_canary: false }),
        None => {
            state.retry();
            state.count_refused();
            state.count();
            state.start_canary();
            state.choose()
        }
    };
    let mut warnings = Vec::new();
    let used = fixed.or(state.memory.current).or(choice.as_ref().ok().map(|choice| choice.version));
    warnings.extend(used.and_then(|version| state.ageing(version)));
    warnings.extend(choice.as_ref().err().cloned().map(Warning::NoVersion));
    Decision { memory: state.memory, choice, warnings, news: state.news }
}

struct State<'a> {
    observed: &'a Observed<'a>,
    memory: Memory,
    news: Vec<News>,
}

impl State<'_> {
    fn note_releases(&mut self) {
        for version in self.observed.offered.into_iter().flatten() {
            if !self.memory.releases.iter().any(|release| release.version == *version) {
                self.memory.releases.push(Release { version: *version, since: self.observed.now });
            }
        }
        self.memory.releases.sort();
        let surplus = self.memory.releases.len().saturating_sub(MOST_RELEASES);
        self.memory.releases.drain(..surplus);
    }

    /// A person asks once: if it fails again, it is rolled back again, until the person asks for another one in between.
    fn retry(&mut self) {
        let Some(version) = self.observed.retry else {
            self.memory.retried = None;
            return;
        };
        if self.memory.retried != Some(version) {
            self.memory.retried = Some(version);
            self.memory.rolled_back.retain(|found| found.version != version);
        }
    }

    /// GitHub may refuse a version before its time, for example because of a hole in it.
    fn count_refused(&mut self) {
        let Some(current) = self.memory.current else { return };
        let is_refused =
            |machine: &&Machine| machine.version == Some(current) && machine.outcome == Some(Outcome::Refused);
        let refused = self.observed.machines.iter().filter(is_refused).map(|machine| machine.uid.clone());
        self.memory.refused.extend(refused);
        let count = self.memory.refused.len();
        if count >= self.observed.rules.too_many_failures {
            self.roll_back(current, format!("GitHub has refused {count} runners with it"));
        }
    }

    /// What became of machines counts for the version that is tried.
    fn count(&mut self) {
        let Some(canary) = &mut self.memory.canary else { return };
        let mut why = None;
        let (tried, others): (Vec<&Machine>, Vec<&Machine>) =
            self.observed.machines.iter().partition(|machine| machine.version == Some(canary.version));
        for machine in tried {
            match machine.outcome {
                Some(Outcome::Worked) if canary.worked.len() < self.observed.rules.enough_successes => {
                    canary.failed.remove(&machine.uid);
                    canary.worked.insert(machine.uid.clone());
                }
                Some(failure @ (Outcome::NotStarted | Outcome::NoJob | Outcome::Refused))
                    if !canary.worked.contains(&machine.uid) =>
                {
                    canary.failed.insert(machine.uid.clone());
                    why = Some(failure);
                }
                _ => {}
            }
        }
        // When machines with the proved version fail as well, it is not the version.
        let is_general = others.iter().any(|machine| {
            machine.version.is_some()
                && machine.version == self.memory.current
                && matches!(machine.outcome, Some(Outcome::NotStarted | Outcome::NoJob))
        });
        if is_general {
            canary.failed.clear();
        }
        let version = canary.version;
        if canary.failed.len() >= self.observed.rules.too_many_failures {
            let what = why.map_or("failed", Outcome::message);
            let why = format!("{} runners with it failed; the last one {what}", canary.failed.len());
            self.roll_back(version, why);
        } else if canary.worked.len() >= self.observed.rules.enough_successes {
            self.memory.current = Some(version);
            self.memory.refused.clear();
            self.memory.canary = None;
            self.news.push(News::Promoted(version));
        }
    }

    fn roll_back(&mut self, version: Version, why: String) {
        self.memory.canary.take_if(|canary| canary.version == version);
        if self.memory.current == Some(version) {
            self.memory.current = None;
            self.memory.refused.clear();
        }
        self.memory.rolled_back.push(RolledBack { version, at: self.observed.now, why: why.clone() });
        self.memory.rolled_back.sort_by_key(|found| found.version);
        let surplus = self.memory.rolled_back.len().saturating_sub(MOST_ROLLED_BACK);
        self.memory.rolled_back.drain(..surplus);
        self.news.push(News::RolledBack(version, why));
    }

    fn is_rolled_back(&self, version: Version) -> bool {
        self.memory.rolled_back.iter().any(|found| found.version == version)
    }

    fn accepts(&self, version: Version) -> bool {
        self.observed.rules.accepts(version, &self.memory.releases, self.observed.now)
    }

    fn is_ripe(&self, version: Version) -> bool {
        self.observed.rules.is_ripe(version, &self.memory.releases, self.observed.now)
    }

    /// Tries the newest version that can be used, if it is newer than the one that has proved itself, or that one is refused.
    fn start_canary(&mut self) {
        let Some(offered) = self.observed.offered else { return };
        let current = self.memory.current.filter(|version| self.accepts(*version));
        let best = offered
            .iter()
            .copied()
            .filter(|version| self.accepts(*version) && !self.is_rolled_back(*version))
            .filter(|version| current.is_none_or(|current| *version > current && self.is_ripe(*version)))
            .max();
        let tried = self.memory.canary.as_ref().map(|canary| canary.version);
        // A version that is not offered any more, but still accepted, is tried to its end unless a newer one is there.
        let Some(best) = best.filter(|best| tried.is_none_or(|tried| *best > tried || !self.accepts(tried))) else {
            if tried.is_some_and(|tried| !self.accepts(tried)) {
                self.memory.canary = None;
            }
            return;
        };
        let (worked, failed) = (BTreeSet::new(), BTreeSet::new());
        self.memory.canary = Some(Canary { version: best, since: self.observed.now, worked, failed });
        self.news.push(News::CanaryStarted(best));
    }

    fn choose(&self) -> Result<Choice, NoVersion> {
        let current = self.memory.current.filter(|version| self.accepts(*version) && !self.is_rolled_back(*version));
        let canary = self.memory.canary.as_ref().map(|canary| canary.version);
        let Some(current) = current else {
            // There is nothing to fall back on, so that all machines get it.
            return canary.map(|version| Choice { version, is_canary: true }).ok_or_else(|| self.none_left());
        };
        let Some(canary) = canary else { return Ok(Choice { version: current, is_canary: false }) };
        // One of which something has become takes no part any more, also if it is kept for inspection.
        let machines = self.observed.machines.iter().filter(|machine| machine.outcome.is_none());
        let tried = machines.clone().filter(|machine| machine.version == Some(canary)).count();
        let room = self.observed.rules.canaries(machines.count().saturating_add(1));
        let is_canary = tried < room;
        Ok(Choice { version: if is_canary { canary } else { current }, is_canary })
    }

    fn none_left(&self) -> NoVersion {
        if self.memory.releases.is_empty() {
            return NoVersion::NotKnown;
        }
        let why = |version: Version| match () {
            () if self.is_rolled_back(version) => format!("{version} was rolled back"),
            () if !self.accepts(version) => format!("{version} is refused by GitHub"),
            () => format!("{version} is not offered any more"),
        };
        let all = self.memory.releases.iter().rev().map(|release| why(release.version));
        NoVersion::NoneLeft(all.collect::<Vec<String>>().join(", "))
    }

    fn ageing(&self, version: Version) -> Option<Warning> {
        let (rules, releases, now) = (self.observed.rules, &self.memory.releases, self.observed.now);
        if !rules.accepts(version, releases, now) {
            return Some(Warning::Refused { version });
        }
        let refused = rules.refused_at(version, releases)?;
        let is_soon = change::now::later(now, rules.warn_before) >= refused;
        is_soon.then_some(Warning::Ageing { version, refused })
    }
}

#[cfg(test)]
mod tests;
