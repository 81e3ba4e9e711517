//! The versions of the runner that the small GitHub offers, and how runners of each of them do.

use crate::forge::{Answer, RunnerDownload};
use bootstrap::Source;
use std::collections::BTreeMap;

/// What is wrong with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Its runner ends at once.
    NotStarted,
    /// Its runner never comes online.
    NeverOnline,
    /// GitHub gives it no job.
    NoJob,
    /// GitHub refuses it, and the runner says so.
    Refused,
}

#[derive(Debug)]
pub(super) struct Releases {
    /// Where archives are.
    pub(super) server: String,
    pub(super) offered: Vec<&'static str>,
    pub(super) faults: BTreeMap<&'static str, Fault>,
    pub(super) asked: usize,
    /// What guests were told to start, in their order: the version, and the authorities of its server.
    pub(super) granted: Vec<(String, Option<String>)>,
}

impl Default for Releases {
    fn default() -> Releases {
        Releases {
            server: "https://github.com".to_owned(),
            offered: Vec::new(),
            faults: BTreeMap::new(),
            asked: 0,
            granted: Vec::new(),
        }
    }
}

impl Releases {
    pub(super) fn answer(&mut self) -> Answer {
        self.asked += 1;
        let download = |version: &str, os: &str| RunnerDownload {
            version: version.to_owned(),
            os: os.to_owned(),
            architecture: "x64".to_owned(),
            url: format!("{}/runner/{version}/runner.tar.gz", self.server),
            sha256: Some("ab".repeat(32)),
        };
        let both = |version: &&str| ["win", "linux"].map(|os| download(version, os));
        Answer::RunnerVersions(self.offered.iter().flat_map(both).collect())
    }

    /// What becomes of a runner that a guest starts.
    pub(super) fn start(&mut self, source: &Source) -> Option<Fault> {
        let Source::Download { url, ca, .. } = source else { return None };
        let version = url.split('/').nth(4).unwrap_or_default().to_owned();
        let fault = self.faults.get(version.as_str()).copied();
        self.granted.push((version, ca.clone()));
        fault
    }

    /// How many guests were told to start a version.
    pub(super) fn count(&self, version: &str) -> usize {
        self.granted.iter().filter(|(granted, _)| granted == version).count()
    }
}
