//! One `VirtPlatformConfig`: what it asks for, what was published of it, and the work on its plan.

use super::comparing::Work;
use super::observing::requests;
use crate::plan::{Outcome, Plan};
use crate::situation::Memory;
use api::advisor::{Phase, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use catalog::profile::ProfileWants;
use change::{Digest, Key, Moment};
use jiff::Timestamp;
use protocol::WatchTarget;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a profile wants, and what it was rendered from.
#[derive(Debug, Clone)]
pub(super) struct Wants {
    /// The version of the facts.
    pub(super) facts: u64,
    /// The generation of the spec.
    pub(super) generation: i64,
    /// The result.
    pub(super) all: Arc<ProfileWants>,
    /// What the cluster lacks for it, and how to change that.
    pub(super) missing: Vec<String>,
}

/// One `VirtPlatformConfig`.
#[derive(Debug)]
pub(super) struct Managed {
    pub(super) uid: String,
    pub(super) generation: i64,
    /// Whether it only tells of the profile.
    pub(super) only_tells: bool,
    pub(super) spec: VirtPlatformConfigSpec,
    /// The status as the server has it.
    pub(super) published: VirtPlatformConfigStatus,
    /// The version in which we know it.
    pub(super) version: Option<u128>,
    /// What our own status remembers. What others write into a status does not get here.
    pub(super) memory: Memory,
    /// Whether the server was restored, and its object not reported since: the status that it has is to be remembered.
    pub(super) is_restored: bool,
    /// What the profile wants, as it was rendered last.
    pub(super) wants: Option<Wants>,
    /// The comparisons of its objects, by item.
    pub(super) work: BTreeMap<String, Work>,
    /// What became of the last write of each item.
    pub(super) outcomes: BTreeMap<String, Outcome>,
    /// The approval under which they were made: its plan, the generation of its spec, and the last correction of drift.
    pub(super) approval: Option<(Digest, i64, Option<Timestamp>)>,
    /// How often writes and plans have failed in a row.
    pub(super) failures: u32,
    /// When to try again what has failed.
    pub(super) retry_at: Option<Moment>,
    /// Whether it is time for that.
    pub(super) retries: bool,
    /// How often the status could not be published in a row.
    pub(super) publish_failures: u32,
    /// When to publish it again.
    pub(super) publish_at: Option<Moment>,
    /// Since when there is no plan.
    pub(super) drafting_since: Option<Moment>,
    /// The plan that was made last.
    pub(super) plan: Option<Plan>,
    /// The status on its way to the server.
    pub(super) publishing: Option<Box<VirtPlatformConfigStatus>>,
    /// A status that may or may not have reached the server.
    pub(super) unanswered: Option<Box<VirtPlatformConfigStatus>>,
    /// The item that is being written, and its object.
    pub(super) writing: Option<(String, Key)>,
    /// The items that are reported as written, and not recorded as written yet.
    pub(super) announced: BTreeSet<String>,
    /// What was reported last, with the plan if one waits for a review.
    pub(super) reported: Option<(Phase, String, Option<Digest>)>,
}

impl Managed {
    pub(super) fn new(
        uid: String,
        generation: i64,
        spec: VirtPlatformConfigSpec,
        status: VirtPlatformConfigStatus,
    ) -> Managed {
        Managed {
            uid,
            generation,
            only_tells: false,
            spec,
            memory: Memory::of(&status),
            is_restored: false,
            published: status,
            version: None,
            wants: None,
            work: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            approval: None,
            failures: 0,
            publish_failures: 0,
            publish_at: None,
            retry_at: None,
            retries: false,
            drafting_since: None,
            plan: None,
            publishing: None,
            unanswered: None,
            writing: None,
            announced: BTreeSet::new(),
            reported: None,
        }
    }

    /// Whether a write is on its way.
    pub(super) fn is_writing(&self) -> bool {
        self.publishing.is_some() || self.writing.is_some()
    }

    /// The server has older versions of these objects than were known: no version that is known counts any more, nor what was remembered since.
    pub(super) fn went_back(&mut self, target: &WatchTarget) {
        if *target == requests() {
            (self.version, self.is_restored) = (None, true);
        }
        for work in self.work.values_mut().filter(|work| WatchTarget::of(&work.key) == *target) {
            work.forget_version();
        }
    }

    /// Takes the object as it is now.
    pub(super) fn observe(
        &mut self,
        generation: i64,
        version: Option<u128>,
        spec: VirtPlatformConfigSpec,
        status: VirtPlatformConfigStatus,
    ) {
        (self.generation, self.spec) = (generation, spec);
        // The watch may be faster than the answer, or the answer may be lost. Nothing else is sent before the answer is there: it would be
        // mistaken for the answer to what was sent later.
        if std::mem::take(&mut self.is_restored) {
            self.memory = Memory::of(&status);
            self.outcomes.clear();
            // The same generation may be another spec now.
            self.wants = None;
        }
        if [&self.publishing, &self.unanswered].iter().any(|sent| sent.as_deref() == Some(&status)) {
            self.unanswered = None;
            self.memory = Memory::of(&status);
        }
        // An older report says nothing about a status that we have written since.
        if version >= self.version {
            (self.published, self.version) = (status, version);
        }
    }
}
