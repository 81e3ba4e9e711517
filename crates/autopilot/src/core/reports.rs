//! What was reported last, so that everything is reported on change and never per pass.

use crate::notice::Notice;
use catalog::Need;
use std::collections::{BTreeMap, BTreeSet};

/// What is missing, and the assets that need it.
pub(crate) type Missing = BTreeMap<Need, Vec<String>>;

/// What was reported last.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    complaints: BTreeSet<String>,
    missing: Missing,
    readiness: Option<Vec<String>>,
}

impl Reports {
    /// The complaints that are new.
    pub(crate) fn complaints(&mut self, complaints: BTreeSet<String>) -> Vec<Notice> {
        let new = complaints.difference(&self.complaints).cloned().map(Notice::Invalid).collect();
        self.complaints = complaints;
        new
    }

    /// What was last reported as missing for being ready.
    pub(crate) fn last_readiness(&self) -> &[String] {
        self.readiness.as_deref().unwrap_or_default()
    }

    /// What has become missing, and what is not missing any more.
    pub(crate) fn missing(&mut self, missing: Missing, absent: &BTreeSet<Need>) -> Vec<Notice> {
        let mut notices = Vec::new();
        for (need, assets) in missing.iter().filter(|(need, _)| !self.missing.contains_key(need)) {
            notices.push(Notice::Missing(need.clone(), assets.clone()));
        }
        for (need, assets) in std::mem::replace(&mut self.missing, missing) {
            if !self.missing.contains_key(&need) {
                let is_absent = absent.contains(&need);
                notices.push(if is_absent { Notice::NotNeeded(need) } else { Notice::Served(need, assets) });
            }
        }
        notices
    }

    /// The readiness, if it has changed.
    pub(crate) fn readiness(&mut self, waiting: Vec<String>) -> Option<Vec<String>> {
        if self.readiness.as_ref() == Some(&waiting) {
            return None;
        }
        self.readiness = Some(waiting.clone());
        Some(waiting)
    }
}
