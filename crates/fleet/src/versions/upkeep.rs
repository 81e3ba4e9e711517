//! The runner versions of one pool: what is offered and remembered, which version its next machine gets, and what people see of it.

use super::{
    Decision, GITHUB, Machine, Memory, News, NoVersion, Observed, Origin, Rules, Shown, Version, Warning, decide,
    shown, status,
};
use crate::forge::RunnerDownload;
use api::fleet::{Github, RETRY_RUNNER_VERSION, RunnerVersions, Span};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// The machines of runners run this.
const OS: &str = "linux";

/// What a pool wants of runner versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Where the runner comes from.
    pub origin: Origin,
    /// The rules.
    pub rules: Rules,
    /// Whether machines download what the platform offers.
    pub is_offered: bool,
    /// The server, and the architecture.
    of: String,
    architecture: &'static str,
}

impl Wanted {
    /// What the settings say; nothing if no version is known.
    pub fn read(github: &Github) -> Option<Wanted> {
        let program = &github.runner;
        let version = |text: &Option<String>| text.as_deref().and_then(Version::read);
        let origin = match (&program.upkeep, &program.download) {
            (Some(upkeep), _) => version(&upkeep.version).map_or(Origin::Download, Origin::Pinned),
            (None, Some(download)) => Origin::Pinned(version(&download.version)?),
            (None, None) => Origin::Image(version(&program.version)?),
        };
        let upkeep = program.upkeep.as_ref();
        let architecture = upkeep.map(|upkeep| upkeep.architecture).unwrap_or_default().name();
        let rules = upkeep.map_or(GITHUB, |upkeep| Rules {
            minimum_age: upkeep.minimum_age.as_ref().and_then(Span::duration).unwrap_or(Duration::ZERO),
            canary_percent: upkeep.canary_percent,
            ..GITHUB
        });
        let of = format!("{} {OS}-{architecture}", github.server.trim_end_matches('/'));
        Some(Wanted { origin, rules, is_offered: upkeep.is_some(), of, architecture })
    }
}

/// Where the archive of a version is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Its address.
    pub url: String,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

/// What is new since the last decision.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// What has happened to versions.
    pub news: Vec<News>,
    /// What people were not told yet.
    pub warnings: Vec<Warning>,
    /// Whether the status of the pool is another one.
    pub is_status: bool,
}

/// The runner versions of one pool.
#[derive(Debug)]
pub struct Upkeep {
    wanted: Wanted,
    memory: Memory,
    archives: BTreeMap<Version, Archive>,
    /// The last list; nothing before the first one of this process.
    offered: Option<Vec<Version>>,
    /// Why there is none, or nothing in it.
    trouble: Option<String>,
    decision: Option<Decision>,
}

impl Upkeep {
    /// What an earlier process has remembered goes on, unless it is about another server or architecture.
    pub fn new(wanted: Wanted, remembered: Option<&RunnerVersions>) -> Upkeep {
        let remembered = remembered.filter(|found| found.of == wanted.of);
        let (memory, archives) = remembered.map(status::memory).unwrap_or_default();
        Upkeep { wanted, memory, archives, offered: None, trouble: None, decision: None }
    }

    /// Takes settings; whether they are others, so that the platform is to be asked again.
    pub fn set(&mut self, wanted: Wanted, remembered: Option<&RunnerVersions>) -> bool {
        if self.wanted == wanted {
            return false;
        }
        let before = (self.wanted.of == wanted.of).then(|| self.status());
        *self = Upkeep::new(wanted, before.as_ref().or(remembered));
        true
    }

    /// Takes what the platform offers.
    pub fn listed(&mut self, downloads: &[RunnerDownload]) {
        let architecture = self.wanted.architecture;
        let mut offered = Vec::new();
        let is_for_us = |found: &&RunnerDownload| found.os == OS && found.architecture == architecture;
        for found in downloads.iter().filter(is_for_us) {
            let Some(version) = Version::read(&found.version) else { continue };
            let is_sum = |sum: &&String| sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
            let sha256 = found.sha256.as_ref().filter(is_sum).filter(|_| found.url.starts_with("https://"));
            match sha256 {
                Some(sha256) => {
                    let (url, sha256) = (found.url.clone(), sha256.to_lowercase());
                    self.archives.insert(version, Archive { url, sha256 });
                }
                // Nothing is run whose checksum nobody knows.
                None if self.wanted.is_offered => continue,
                None => {}
            }
            offered.push(version);
        }
        self.trouble = offered
            .is_empty()
            .then(|| format!("GitHub offers no runner for {OS} {architecture} with an https address and a SHA-256"));
        self.offered = Some(offered);
    }

    /// The platform did not say what it offers.
    pub fn not_listed(&mut self, why: String) {
        self.trouble = Some(why);
    }

    /// Decides.
    pub fn decide(&mut self, machines: &[Machine], retry: Option<&str>, now: Timestamp) -> Changes {
        let before = (self.status(), self.condition());
        let mut decision = decide(&Observed {
            rules: &self.wanted.rules,
            memory: &self.memory,
            origin: self.wanted.origin,
            offered: self.offered.as_deref(),
            machines,
            retry: retry.and_then(Version::read),
            now,
        });
        if let Some(why) = self.unavailable(&decision) {
            decision.warnings.retain(|warning| !matches!(warning, Warning::NoVersion(_)));
            decision.warnings.push(Warning::NoVersion(why.clone()));
            decision.choice = Err(why);
        }
        // Before the first answer nothing is wrong.
        decision.warnings.retain(|warning| *warning != Warning::NoVersion(NoVersion::NotKnown));
        let known = self.decision.take().map(|decision| decision.warnings).unwrap_or_default();
        let warnings = decision.warnings.iter().filter(|warning| !known.contains(warning)).cloned().collect();
        self.memory.clone_from(&decision.memory);
        let memory = &self.memory;
        let canary = memory.canary.as_ref().map(|canary| canary.version);
        self.archives.retain(|version, _| {
            memory.releases.iter().any(|release| release.version == *version)
                || [memory.current, canary].contains(&Some(*version))
        });
        let news = std::mem::take(&mut decision.news);
        self.decision = Some(decision);
        Changes { news, warnings, is_status: before != (self.status(), self.condition()) }
    }

    /// Why the version that was chosen cannot be downloaded.
    fn unavailable(&self, decision: &Decision) -> Option<NoVersion> {
        match &decision.choice {
            Ok(choice) if self.wanted.is_offered && !self.archives.contains_key(&choice.version) => {
                let Some(offered) = &self.offered else { return Some(NoVersion::NotKnown) };
                let offered = offered.iter().map(Version::to_string).collect::<Vec<_>>().join(", ");
                Some(NoVersion::NotOffered(format!(
                    "GitHub does not offer runner version {} (it offers {offered}): choose another one, or give its address and \
                     checksum in runner.download",
                    choice.version
                )))
            }
            Err(NoVersion::NotKnown) => self.trouble.clone().map(NoVersion::NotOffered),
            _ => None,
        }
    }

    /// The version of the next machine; nothing if the image or the pool has a runner of its own, and otherwise why there is none.
    pub fn next(&self) -> Result<Option<Version>, String> {
        if !self.wanted.is_offered {
            return Ok(None);
        }
        match self.decision.as_ref().map(|decision| &decision.choice) {
            Some(Ok(choice)) => Ok(Some(choice.version)),
            Some(Err(why)) => Err(explained(why)),
            None => Err(NoVersion::NotKnown.to_string()),
        }
    }

    /// Where a version is.
    pub fn archive(&self, version: Version) -> Option<&Archive> {
        self.archives.get(&version)
    }

    /// Whether a machine with this version is of no use: GitHub refuses it, or it was rolled back.
    pub fn is_given_up(&self, version: Version, now: Timestamp) -> bool {
        self.memory.rolled_back.iter().any(|found| found.version == version)
            || !self.wanted.rules.accepts(version, &self.memory.releases, now)
            || (self.offered.is_some() && !self.archives.contains_key(&version))
    }

    /// Whether a version has proved itself.
    pub fn is_proved(&self, version: Version) -> bool {
        self.memory.current == Some(version)
    }

    /// A runner that is online for so long while a job waits for it has failed.
    pub fn no_job_for(&self) -> Duration {
        self.wanted.rules.no_job_for
    }

    /// What the status of the pool remembers.
    pub fn status(&self) -> RunnerVersions {
        status::status(&self.wanted.of, &self.memory, &self.archives)
    }

    /// For metrics.
    pub fn shown(&self) -> Shown {
        self.decision.as_ref().map(|decision| shown(&self.wanted.rules, decision)).unwrap_or_default()
    }

    /// What keeps jobs from being run.
    pub fn trouble(&self) -> Option<String> {
        let (holds, reason, message) = self.condition()?;
        (!holds && reason != "NotKnown").then_some(message)
    }

    /// The condition RunnerVersion: whether it holds, why in one word, and why in a sentence.
    pub fn condition(&self) -> Option<(bool, &'static str, String)> {
        let decision = self.decision.as_ref()?;
        let choice = match &decision.choice {
            Err(why @ NoVersion::NotKnown) => return Some((false, "NotKnown", explained(why))),
            Err(why) => return Some((false, "NoRunnerVersion", explained(why))),
            Ok(choice) => choice,
        };
        let used = decision.memory.current.filter(|_| choice.is_canary).unwrap_or(choice.version);
        let mut said = match (&decision.memory.canary, self.wanted.origin) {
            (_, Origin::Image(version)) => format!("the image has runner version {version}"),
            (_, Origin::Pinned(version)) => format!("machines get runner version {version}, which the pool names"),
            (None, Origin::Download) => format!("machines get runner version {used}"),
            (Some(canary), Origin::Download) => {
                let (worked, failed) = (canary.worked.len(), canary.failed.len());
                let enough = self.wanted.rules.enough_successes;
                let proved = match decision.memory.current {
                    Some(current) => {
                        format!("machines get runner version {current}; {} is tried on some", canary.version)
                    }
                    None => format!("machines get runner version {}, which is tried", canary.version),
                };
                format!("{proved}: {worked} of {enough} jobs have ended with it, {failed} machines have failed")
            }
        };
        for found in decision.memory.rolled_back.iter().filter(|_| self.wanted.origin == Origin::Download) {
            said = format!("{said}; {} was rolled back: {}", found.version, found.why);
        }
        let warning = decision.warnings.first();
        if let Some(warning) = warning {
            said = format!("{warning}; {said}");
        }
        Some(match (warning, &decision.memory.canary) {
            (Some(warning @ Warning::Ageing { .. }), _) => (true, warning.reason(), said),
            (Some(warning), _) => (false, warning.reason(), said),
            (None, Some(_)) if self.wanted.origin == Origin::Download => (true, "Trying", said),
            (None, _) => (true, "Usable", said),
        })
    }
}

fn explained(why: &NoVersion) -> String {
    match why {
        NoVersion::NoneLeft(_) => {
            format!("{why}; the annotation {RETRY_RUNNER_VERSION} with a version of GitHub's tries that one again")
        }
        why => why.to_string(),
    }
}

#[cfg(test)]
mod tests;
