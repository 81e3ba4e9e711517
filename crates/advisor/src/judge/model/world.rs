//! A small world and what the advisor remembers of it: up to three objects, a pool of nodes that follows some of them, an input and a release.

use crate::judge::items::ItemJudgement;
use crate::judge::{Judgement, judge};
use crate::situation::{
    Approved, Candidate, CandidateItem, Draft, Health, Hold, ItemMemory, Memory, Progress, Request, RequestedAction,
    ReviewReason, Shown, Situation, WantedContent,
};
use api::advisor::Phase;
use change::Digest;
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An object as it was found. Only the second exists then.
pub(super) const FOUND: u8 = 0;
/// An object that somebody has edited.
pub(super) const EDITED: u8 = 99;
/// What nodes follow, what may need that, and the double of the first under its former name.
pub(super) const NODES: usize = 0;
pub(super) const SETTINGS: usize = 1;
pub(super) const DOUBLE: usize = 2;
/// The items of these objects, in the order of the profile.
const NAMES: [&str; 3] = ["nodes", "settings", "nodes-former"];
/// So long may an item take to become healthy.
const WAIT: u64 = 1_800;

/// What the profile is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scene {
    /// Two objects that do not depend on each other; an option changes the first, and nodes need not restart for it.
    Independent,
    /// The second needs the first, such as memory overcommit needs swap. An option switches the first off, and lowers the second.
    Needs,
    /// The first has a double under its former name, which goes in the same rollout.
    Replaces,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pool {
    Ready,
    Rolling,
    Degraded,
}

/// What the advisor cannot know, or not yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lack {
    Nothing,
    Prerequisite,
    Answers,
    Everything,
    /// The dry run of the second object fails.
    Preview,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    None,
    Written,
    Failed,
}

/// The world and what the advisor remembers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct World {
    pub scene: Scene,
    pub objects: [u8; 3],
    pub pool: Pool,
    /// Whether what the pool rolls out is the first object as it is, or its removal.
    pub rolls_ours: bool,
    /// Until when the maintenance window is closed.
    pub closed_until: i64,
    pub input: u8,
    pub release: u8,
    /// The objects of which writes are refused.
    pub refused: [bool; 3],
    /// Whether users have paused the second object.
    pub is_paused: bool,
    pub lacks: Lack,
    /// Seconds.
    pub now: i64,
    pub generation: i64,
    pub action: RequestedAction,
    pub options: u8,
    pub approved_plan: Option<String>,
    pub corrects: bool,
    pub continues: bool,
    pub bypasses: bool,
    pub rollback: bool,
    /// Whether items fail that take too long.
    pub is_limited: bool,
    pub memory: Memory,
    /// The phase that is published.
    pub phase: Option<Phase>,
    /// The options of the last plan that the status shows.
    pub planned: Option<Digest>,
    /// What became of writes, as far as this process knows.
    pub outcomes: [Outcome; 3],
    pub approval: Option<(Digest, i64, Option<Timestamp>)>,
    /// Whether it is time to try again what has failed.
    pub retries: bool,
    pub ghosts: Ghosts,
}

/// What the advisor does not know, to check what it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ghosts {
    /// What people saw: the objects when a plan was shown, and what it makes of them, by its digest.
    pub seen: BTreeMap<Digest, ([u8; 3], Digest)>,
    /// The plan that was on the screen when the spec was last changed, if it was made for the same options.
    pub acted_on: Option<Digest>,
    /// What needed a review in that plan, by item.
    pub acted_on_review: BTreeMap<String, BTreeSet<ReviewReason>>,
    /// The items that were written, by the plan that was approved.
    pub written: BTreeSet<(Digest, usize)>,
}

/// One item of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub object: usize,
    /// What is wanted of its object; nothing if what the profile did to it is to go.
    pub wanted: Option<u8>,
    pub is_done: bool,
    /// Whether it is deleted because the first object replaces it.
    pub joins: bool,
}

/// What one step did.
pub(super) enum Step {
    /// A status was published.
    Published(World),
    /// An object was written, or its write was refused.
    Wrote(World),
    /// The process forgot what became of earlier writes.
    Forgot(World),
}

impl World {
    pub fn new(scene: Scene) -> World {
        World {
            scene,
            objects: [FOUND, FOUND, u8::from(scene == Scene::Replaces)],
            pool: Pool::Ready,
            rolls_ours: false,
            closed_until: 0,
            input: 0,
            release: 0,
            refused: [false; 3],
            is_paused: false,
            lacks: Lack::Nothing,
            now: 0,
            generation: 1,
            action: RequestedAction::DryRun,
            options: 0,
            approved_plan: None,
            corrects: false,
            continues: false,
            bypasses: false,
            rollback: false,
            is_limited: true,
            memory: Memory::default(),
            phase: None,
            planned: None,
            outcomes: [Outcome::None; 3],
            approval: None,
            retries: false,
            ghosts: Ghosts::default(),
        }
    }

    pub fn options(&self) -> Digest {
        Digest::of(&json!([self.options, self.rollback]))
    }

    fn request(&self) -> Request {
        Request {
            generation: self.generation,
            action: self.action,
            approved_plan: self.approved_plan.clone(),
            continues: self.continues,
            bypasses: self.bypasses,
            corrects: self.corrects || self.bypasses,
            wait: self.is_limited.then_some(Duration::from_secs(WAIT)),
            options: self.options(),
        }
    }

    /// What is wanted of each object.
    pub fn wanted(&self, object: usize) -> Option<u8> {
        let is_off = self.scene == Scene::Needs && self.options == 1;
        match object {
            _ if self.rollback => None,
            NODES if self.scene == Scene::Independent => Some(1 + self.options),
            NODES if is_off => None,
            NODES => Some(1),
            SETTINGS => Some(3 + self.input + 2 * self.release + if is_off { 4 } else { 0 }),
            _ => None,
        }
    }

    /// Whether everything is as it is wanted.
    pub fn is_as_wanted(&self) -> bool {
        (0..3).all(|object| self.objects[object] == self.wanted(object).unwrap_or(FOUND))
    }

    /// The items of the plan, removals last and in the opposite order.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut removals = Vec::new();
        for object in [NODES, DOUBLE, SETTINGS] {
            let wanted = self.wanted(object);
            let joins = object == DOUBLE && self.wanted(NODES).is_some();
            let is_done = self.objects[object] == wanted.unwrap_or(FOUND);
            let remembered = self.memory.items.get(NAMES[object]).map(|item| item.state);
            let was_begun = remembered.is_some_and(|state| state != Progress::Pending);
            let approved = self.memory.approved.as_ref();
            let is_approved = approved.is_some_and(|approved| approved.items.contains_key(NAMES[object]));
            // What is gone is followed while it was begun. Of what exists under somebody else's hand people are told that it stays.
            let is_left_out =
                is_done && wanted.is_none() && object != SETTINGS && (!was_begun || (joins && !is_approved));
            let line = Line { object, wanted, is_done, joins };
            match (is_left_out, wanted.is_some() || joins) {
                (true, _) => {}
                (false, true) => lines.push(line),
                (false, false) => removals.push(line),
            }
        }
        lines.extend(removals.into_iter().rev());
        lines
    }

    /// Why an item needs a review.
    fn review(&self, line: Line) -> BTreeSet<ReviewReason> {
        let mut review = BTreeSet::new();
        if line.wanted.is_none() {
            review.insert(ReviewReason::Removes);
        }
        // Nodes have followed what somebody edited, so that they restart.
        let is_harmless = self.scene == Scene::Independent && self.objects[line.object] != EDITED;
        if line.object != SETTINGS && !is_harmless {
            review.insert(ReviewReason::Restarts);
        }
        review
    }

    /// Why an item is not written now.
    pub fn hold(&self, line: Line) -> Option<Hold> {
        let held = |why: &str| Some(Hold { why: why.to_owned(), opens: None });
        if line.object == SETTINGS {
            return held("it is paused").filter(|_| self.is_paused);
        }
        let replacement = self.memory.items.get(NAMES[NODES]).filter(|_| line.joins);
        let is_replaced = self.wanted(NODES) == Some(self.objects[NODES]);
        let follows = is_replaced && replacement.is_some_and(ItemMemory::is_rolling_out);
        // What exists may be what is rolled out, and another content or its removal may repair the pool.
        let may_repair = line.object == NODES && self.objects[NODES] != FOUND && self.rolls_ours;
        match self.scene == Scene::Independent || follows {
            true => None,
            false if self.pool != Pool::Ready && !may_repair => held("its pool is not ready"),
            false => self.window().map(|opens| Hold { why: "no window is open".to_owned(), opens: Some(opens) }),
        }
    }

    /// When the maintenance window opens; nothing if it is open.
    pub fn window(&self) -> Option<Timestamp> {
        (self.now < self.closed_until).then(|| Timestamp::from_second(self.closed_until).unwrap())
    }

    fn item(&self, line: Line) -> CandidateItem {
        let Line { object, wanted, is_done, joins } = line;
        let follows = object != SETTINGS;
        let replaces = (!is_done).then_some(self.objects[object]);
        CandidateItem {
            name: NAMES[object].to_owned(),
            needs: (object == SETTINGS && self.scene == Scene::Needs)
                .then(|| NAMES[NODES].to_owned())
                .into_iter()
                .collect(),
            joins: joins.then(|| NAMES[NODES].to_owned()),
            digest: Digest::of(&json!([object, wanted, replaces])),
            wanted: wanted
                .map(|wanted| WantedContent { object: NAMES[object].to_owned(), content: Digest::of(&json!(wanted)) }),
            is_missing: object == NODES && wanted.is_some() && self.objects[object] == FOUND,
            is_done,
            review: self.review(line),
            hold: self.hold(line).filter(|_| !is_done),
            health: match self.pool {
                Pool::Rolling if is_done && follows => Health::Progressing("rolling".into()),
                Pool::Degraded if is_done && follows => Health::Degraded("degraded".into()),
                _ => Health::Healthy,
            },
            is_written: self.outcomes[object] == Outcome::Written,
            failure: (self.outcomes[object] == Outcome::Failed).then(|| "refused".to_owned()),
        }
    }

    /// The plan after what is remembered here.
    pub fn plan(&self) -> Candidate {
        self.plan_after(&self.memory)
    }

    /// The same items after what is remembered there.
    fn plan_after(&self, memory: &Memory) -> Candidate {
        let lines = self.lines();
        let items: Vec<CandidateItem> = lines.iter().map(|line| self.item(*line)).collect();
        let digests: Vec<&Digest> = items.iter().map(|item| &item.digest).collect();
        let is_done = items.iter().all(|item| item.is_done);
        let after = memory.last_plan().filter(|_| !is_done);
        let contents: Vec<(usize, u8)> = lines.iter().filter_map(|line| Some((line.object, line.wanted?))).collect();
        Candidate {
            digest: Digest::of(&json!([digests, self.input, after, [self.bypasses, self.corrects, self.continues]])),
            content: Digest::of(&json!(contents)),
            inputs: [("input".to_owned(), self.input.to_string())].into(),
            items,
            not_applicable: Vec::new(),
        }
    }

    fn draft(&self, memory: &Memory) -> Draft {
        match self.lacks {
            Lack::Nothing => Draft::Made(Box::new(self.plan_after(memory))),
            Lack::Prerequisite => Draft::Missing(vec!["something".into()]),
            Lack::Answers => Draft::Incomplete,
            Lack::Everything => Draft::Unknown,
            Lack::Preview => Draft::Failed("denied".into()),
        }
    }

    /// Judges as the core does: once an approval is spent, and once that is forgotten, the plan has another digest, and this one is shown.
    pub fn judge(&self) -> Judgement {
        let now = Timestamp::from_second(self.now).unwrap();
        let judge_after =
            |memory: &Memory| judge(&Situation { request: &self.request(), draft: &self.draft(memory), memory, now });
        let memory = &self.memory;
        let judgement = judge_after(memory);
        let is_spent = |approved: &Option<Approved>| approved.as_ref().is_some_and(Approved::is_spent);
        let concerns_spent = is_spent(&judgement.approved) || is_spent(&memory.approved);
        let applies_nothing = judgement.approved.as_ref().is_none_or(Approved::is_void);
        match concerns_spent && applies_nothing && judgement.approved != memory.approved {
            true => judge_after(&Memory { approved: judgement.approved, ..memory.clone() }),
            false => judgement,
        }
    }

    /// What a judgement makes the status remember, and the options that it shows.
    fn recorded(&self, judgement: &Judgement) -> (Memory, Option<Digest>) {
        let is_void = judgement.approved.as_ref().is_none_or(Approved::is_void);
        let mut planned = self.planned;
        let (shown, items) = match self.lacks {
            _ if self.action == RequestedAction::Ignore => self.without_plan(judgement),
            Lack::Nothing => {
                planned = Some(self.options());
                let items = self.plan().items;
                let items = items.iter().zip(&judgement.items).map(|(item, judged)| {
                    let ItemJudgement { state, since, written, held, .. } = *judged;
                    let review = if item.is_done { BTreeSet::new() } else { item.review.clone() };
                    (item.name.clone(), ItemMemory { state, since, written, held, was_done: item.is_done, review })
                });
                (judgement.shown.clone(), items.collect())
            }
            Lack::Preview => {
                // Whoever writes Apply from now on has seen a part of a plan.
                if self.action != RequestedAction::Apply {
                    planned = planned.or_else(|| Some(World::new(self.scene).options()));
                }
                let digest = judgement.shown.as_ref().filter(|_| !is_void).map(|shown| shown.digest);
                let options = planned.unwrap_or_else(|| World::new(self.scene).options());
                let items = self.plan().items.into_iter().map(|item| self.unplanned(item, is_void));
                (digest.map(|digest| Shown { digest, options }), items.collect())
            }
            _ => self.without_plan(judgement),
        };
        let memory = Memory {
            had_another_plan: shown.is_none() && planned.is_some(),
            shown,
            approved: judgement.approved.clone(),
            applied: judgement.applied.clone(),
            items,
        };
        (memory, planned)
    }

    /// What is remembered of an item of a plan that is not complete.
    fn unplanned(&self, item: CandidateItem, is_void: bool) -> (String, ItemMemory) {
        let now = Timestamp::from_second(self.now).unwrap();
        let before = self.memory.items.get(&item.name);
        let is_planned = item.name != NAMES[SETTINGS] && !item.is_done;
        let review = match is_void {
            true if is_planned => item.review,
            true => BTreeSet::new(),
            false => before.map(|before| before.review.clone()).unwrap_or_default(),
        };
        let pending = ItemMemory {
            state: Progress::Pending,
            since: now,
            written: None,
            held: None,
            was_done: false,
            review: BTreeSet::new(),
        };
        (item.name, ItemMemory { review, ..before.cloned().unwrap_or(pending) })
    }

    /// What is remembered of the plan while there is none: nobody is to approve one for other options.
    fn without_plan(&self, judgement: &Judgement) -> (Option<Shown>, BTreeMap<String, ItemMemory>) {
        let mut items = self.memory.items.clone();
        if self.planned.is_none_or(|planned| planned == self.options()) {
            return (judgement.shown.clone(), items);
        }
        items.retain(|_, item| item.state != Progress::Pending);
        items.values_mut().for_each(|item| item.review.retain(|reason| *reason == ReviewReason::Removes));
        (None, items)
    }

    /// One step of the advisor, as its core takes it: publish first, then write. `None` if there is nothing to do.
    pub fn step(&self) -> Option<Step> {
        let judgement = self.judge();
        self.check(&judgement);
        let mut next = self.clone();
        let approval = judgement.approved.as_ref().filter(|approved| !approved.is_void());
        let corrected = judgement.applied.as_ref().and_then(|applied| applied.corrections.last().copied());
        let approval = approval.map(|approved| (approved.digest, approved.generation, corrected));
        if approval.is_none() {
            let is_unrecorded = judgement.approved.is_some() && judgement.approved != self.memory.approved;
            let is_kept = |outcome| is_unrecorded && outcome == Outcome::Written;
            next.outcomes = self.outcomes.map(|outcome| if is_kept(outcome) { outcome } else { Outcome::None });
        } else if approval != self.approval {
            next.approval = approval;
            next.outcomes = [Outcome::None; 3];
            if next.outcomes != self.outcomes {
                return Some(Step::Forgot(next));
            }
        }
        next.retries = false;
        let (memory, planned) = self.recorded(&judgement);
        if (&memory, planned, Some(judgement.phase)) != (&self.memory, self.planned, self.phase) {
            (next.memory, next.planned, next.phase) = (memory, planned, Some(judgement.phase));
            if let Some(shown) = &next.memory.shown
                && self.lacks == Lack::Nothing
            {
                next.ghosts.seen.entry(shown.digest).or_insert_with(|| (self.objects, self.plan().content));
            }
            return Some(Step::Published(next));
        }
        if next.outcomes != self.outcomes {
            return Some(Step::Forgot(next));
        }
        let index = judgement.write.or(judgement.retry.filter(|_| self.retries))?;
        let line = self.lines()[index];
        self.check_write(&judgement, index, line);
        next.write(line);
        Some(Step::Wrote(next))
    }

    fn write(&mut self, line: Line) {
        if self.refused[line.object] {
            self.outcomes[line.object] = Outcome::Failed;
            return;
        }
        self.objects[line.object] = line.wanted.unwrap_or(FOUND);
        self.outcomes[line.object] = Outcome::Written;
        // Nodes follow at once, and take their time.
        if line.object != SETTINGS && self.scene != Scene::Independent && self.pool == Pool::Ready {
            (self.pool, self.rolls_ours) = (Pool::Rolling, line.object == NODES);
        }
        if let Some(approved) = self.memory.approved.as_ref().filter(|_| !self.corrects && !self.bypasses) {
            self.ghosts.written.insert((approved.digest, line.object));
        }
    }

    pub fn name_of(object: usize) -> &'static str {
        NAMES[object]
    }
}
