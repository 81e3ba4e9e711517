//! All that a judgement about one profile depends on.

use api::advisor::{Action, FailurePolicy, Input, ItemState};
use change::Digest;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What is known of one `VirtPlatformConfig` and of the cluster.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// What its spec asks for.
    pub request: &'a Request,
    /// How far its plan is.
    pub draft: &'a Draft,
    /// What was recorded, because it cannot be observed.
    pub memory: &'a Memory,
    /// The present moment.
    pub now: Timestamp,
}

/// What a spec asks for, as far as it decides.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// Its generation.
    pub generation: i64,
    /// What is done with the plan.
    pub action: RequestedAction,
    /// The digest of the plan that it names as approved, as it is written.
    pub approved_plan: Option<String>,
    /// Whether the rest of a plan is applied when an item fails.
    pub continues: bool,
    /// Whether a plan is applied although the cluster has changed since it was shown.
    pub bypasses: bool,
    /// Whether drift is corrected without a review.
    pub corrects: bool,
    /// How long an item may take to become healthy.
    pub wait: Option<Duration>,
    /// The digest of the options, and of whether it is a rollback: a plan for another one is another plan.
    pub options: Digest,
}

/// The action of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestedAction {
    /// The plan is shown.
    DryRun,
    /// It is applied.
    Apply,
    /// Everything is left alone.
    Ignore,
}

impl From<Action> for RequestedAction {
    fn from(action: Action) -> RequestedAction {
        match action {
            Action::DryRun => RequestedAction::DryRun,
            Action::Apply => RequestedAction::Apply,
            Action::Ignore => RequestedAction::Ignore,
        }
    }
}

/// Whether the rest of a plan is applied when an item fails.
pub fn continues(policy: FailurePolicy) -> bool {
    policy == FailurePolicy::Continue
}

/// How far a plan is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Draft {
    /// Nothing is known of the cluster yet.
    Unknown,
    /// Answers are on their way.
    Incomplete,
    /// The cluster lacks something, or the options cannot be used: what, and how to change that.
    Missing(Vec<String>),
    /// The plan cannot be made now; it is tried again.
    Failed(String),
    /// It is made.
    Made(Box<Candidate>),
}

/// A plan, as far as a judgement depends on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// The digest of all that is done, to what, and why.
    pub digest: Digest,
    /// The digest of what it makes of all objects, whatever they are now.
    pub content: Digest,
    /// The values of the cluster that it was derived from, by name.
    pub inputs: BTreeMap<String, String>,
    /// Its items in their order.
    pub items: Vec<CandidateItem>,
    /// The items of the profile that do not apply to this cluster, and why.
    pub not_applicable: Vec<String>,
}

/// One item of a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CandidateItem {
    /// Its name.
    pub name: String,
    /// Items that it relies on.
    pub needs: Vec<String>,
    /// The item before it, whose object does the same: both are written in one rollout.
    pub joins: Option<String>,
    /// The digest of what is done to its object.
    pub digest: Digest,
    /// What is wanted of its object; nothing if the profile wants nothing of it any more.
    pub wanted: Option<WantedContent>,
    /// Whether its object does not exist, and should.
    pub is_missing: bool,
    /// Whether there is nothing to do: the object is as it should be.
    pub is_done: bool,
    /// Why it is never done without a review; empty if it may be.
    pub review: BTreeSet<ReviewReason>,
    /// Why it is not written now, although it may be.
    pub hold: Option<Hold>,
    /// How the object is, once there is nothing to do.
    pub health: Health,
    /// Whether it was written under the approval that holds.
    pub is_written: bool,
    /// Why its last write failed, if it did.
    pub failure: Option<String>,
}

impl CandidateItem {
    /// Why it is not applied while this item has failed, which comes before it; nothing if it does not depend on that one.
    pub fn depends_on(&self, failed: &CandidateItem) -> Option<String> {
        if self.joins.as_ref() == Some(&failed.name) {
            return Some(format!("it stays until {} has replaced it, which has failed", failed.name));
        }
        let is_removal = self.review.contains(&ReviewReason::Removes);
        if !is_removal && self.needs.contains(&failed.name) {
            return Some(format!("it needs {}, which has failed", failed.name));
        }
        (is_removal && failed.needs.contains(&self.name))
            .then(|| format!("{} needs it until it has changed, which has failed", failed.name))
    }
}

/// Why an item is not written now, although it may be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// Why.
    pub why: String,
    /// When the maintenance window opens that it waits for; nothing if something else holds it. To wait for a window is no fault.
    pub opens: Option<Timestamp>,
}

/// Why something is never done without a review.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReviewReason {
    /// It deletes or restores something.
    Removes,
    /// Nodes restart.
    Restarts,
    /// It takes fields from this field manager, which applies them.
    TakesFrom(String),
}

/// What is wanted of an object, whatever it is now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedContent {
    /// The object.
    pub object: String,
    /// The digest of what is wanted of it.
    pub content: Digest,
}

/// How an object is that was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// It has had its effect.
    Healthy,
    /// It has not yet: what it waits for.
    Progressing(String),
    /// It has not, or not any more, as its own status says: why.
    Unready(String),
    /// It will not without help: why.
    Degraded(String),
}

/// What is recorded in the status, because it cannot be observed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Memory {
    /// The plan that was shown last.
    pub shown: Option<Shown>,
    /// The plan that a person approved.
    pub approved: Option<Approved>,
    /// The plan that was applied last.
    pub applied: Option<Applied>,
    /// How far each item was.
    pub items: BTreeMap<String, ItemMemory>,
    /// Whether a plan was shown that is not known any more: by the predecessor, or for options that were edited before another plan was made.
    pub had_another_plan: bool,
}

/// A plan that was shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    /// Its digest.
    pub digest: Digest,
    /// The digest of the options it was made with.
    pub options: Digest,
}

/// A plan that was approved.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Approved {
    /// Its digest.
    pub digest: Digest,
    /// The generation of the spec that approved it.
    pub generation: i64,
    /// What it makes of all objects; nothing if the cluster had changed before anything of it was applied.
    pub content: Option<Digest>,
    /// The digests of its items by name; none if nothing of it may be applied.
    pub items: BTreeMap<String, Digest>,
}

impl Approved {
    /// Whether nothing of it may be applied.
    pub fn is_void(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether a part of it was applied, and the rest may not be: then it counts no more, even if everything is again as it was.
    pub fn is_spent(&self) -> bool {
        self.is_void() && self.content.is_some()
    }
}

impl Memory {
    /// The plan before the next one: the same plan after it is another one, and needs another approval.
    pub fn last_plan(&self) -> Option<&Digest> {
        let spent = self.approved.as_ref().filter(|approved| approved.is_spent());
        spent.map(|spent| &spent.digest).or(self.applied.as_ref().map(|applied| &applied.digest))
    }
}

/// A plan that was applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Applied {
    /// Its digest.
    pub digest: Digest,
    /// What it makes of all objects.
    pub content: Digest,
    /// The digest of the options it was made with.
    pub options: Digest,
    /// When it was complete.
    pub time: Timestamp,
    /// The values it was derived from, by name.
    pub inputs: BTreeMap<String, String>,
    /// What it wanted of each object, by item; nothing if an earlier version recorded it.
    pub items: BTreeMap<String, WantedContent>,
    /// When drift was corrected in the last hour.
    pub corrections: Vec<Timestamp>,
}

/// How far an item was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemMemory {
    /// How far.
    pub state: Progress,
    /// Since when.
    pub since: Timestamp,
    /// When it was written, if it was under the approval that holds.
    pub written: Option<Timestamp>,
    /// Since when it is held, although it would be written next.
    pub held: Option<Timestamp>,
    /// Whether there was nothing to do: what it waited for was not the effect of a write, unless that is recorded.
    pub was_done: bool,
    /// What of it people could see that needs a review.
    pub review: BTreeSet<ReviewReason>,
}

impl ItemMemory {
    /// Whether it was written, and has not had its effect yet.
    pub fn is_rolling_out(&self) -> bool {
        let was_written = self.written.is_some() || (!self.was_done && self.held.is_none());
        was_written && matches!(self.state, Progress::InProgress | Progress::Failed)
    }
}

/// How far an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// It is not its turn yet.
    Pending,
    /// It is written, or waits until it is healthy.
    InProgress,
    /// It is done and healthy.
    Completed,
    /// It could not be written, or did not become healthy.
    Failed,
}

impl From<ItemState> for Progress {
    fn from(state: ItemState) -> Progress {
        match state {
            ItemState::Pending => Progress::Pending,
            ItemState::InProgress => Progress::InProgress,
            ItemState::Completed => Progress::Completed,
            ItemState::Failed => Progress::Failed,
        }
    }
}

impl From<Progress> for ItemState {
    fn from(state: Progress) -> ItemState {
        match state {
            Progress::Pending => ItemState::Pending,
            Progress::InProgress => ItemState::InProgress,
            Progress::Completed => ItemState::Completed,
            Progress::Failed => ItemState::Failed,
        }
    }
}

impl Candidate {
    /// Whether there is nothing to do.
    pub fn is_done(&self) -> bool {
        self.items.iter().all(|item| item.is_done)
    }

    /// Whether all that is to be done may be done without a review, if it restores what was approved before.
    pub fn is_correctable(&self) -> bool {
        self.items.iter().all(|item| item.is_done || item.review.is_empty())
    }

    /// Whether it needs no review for any reason that people could not see when a plan was shown last.
    pub fn is_no_worse_than_shown(&self, memory: &Memory) -> bool {
        let is_seen = |item: &CandidateItem, reason: &ReviewReason| {
            memory.items.get(&item.name).is_some_and(|shown| shown.review.contains(reason))
        };
        self.items.iter().all(|item| item.is_done || item.review.iter().all(|reason| is_seen(item, reason)))
    }

    /// What it wants of each object, by item.
    pub fn wanted(&self) -> BTreeMap<String, WantedContent> {
        let wanted = |item: &CandidateItem| Some((item.name.clone(), item.wanted.clone()?));
        self.items.iter().filter_map(wanted).collect()
    }

    /// The items that somebody changed after they were applied: the object is gone, or is not as it was applied although the same is wanted
    /// of it.
    pub fn drifted_from(&self, applied: &Applied) -> Vec<&str> {
        let is_drifted = |item: &&CandidateItem| {
            let (wanted, before) = (item.wanted.as_ref(), applied.items.get(&item.name));
            let is_same_object = || wanted.map(|wanted| &wanted.object) == before.map(|before| &before.object);
            !item.is_done && before.is_some() && (wanted == before || (item.is_missing && is_same_object()))
        };
        self.items.iter().filter(is_drifted).map(|item| item.name.as_str()).collect()
    }

    /// The approval of this plan by a spec of this generation.
    pub fn approved(&self, generation: i64) -> Approved {
        let items = self.items.iter().map(|item| (item.name.clone(), item.digest));
        Approved { digest: self.digest, generation, content: Some(self.content), items: items.collect() }
    }
}

/// The inputs as a status shows them.
pub fn shown_inputs(inputs: &BTreeMap<String, String>) -> Vec<Input> {
    inputs.iter().map(|(name, value)| Input { name: name.clone(), value: value.clone() }).collect()
}
