//! All that can happen to a small world, to a fixed depth: two objects, one of which nodes have to follow, an input, an upgrade, a person who
//! edits everything, rolls back and bypasses the lock, a server that refuses, and a process that ends between any two steps.

use super::items::ItemJudgement;
use super::{Judgement, judge};
use crate::situation::{
    Candidate, CandidateItem, Draft, Health, ItemMemory, Memory, Request, RequestedAction, ReviewReason, Situation,
    WantedContent,
};
use api::advisor::Phase;
use change::Digest;
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// So many events one after the other.
const DEPTH: usize = 4;
/// The controller alone takes no more steps than these between two events.
const STEPS: usize = 12;

/// More worlds after one event take too long.
const MOST_WORLDS: usize = 100_000;

/// The world and what the advisor remembers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    /// What each object is: 0 as found, 9 as somebody edited it, else what some plan wants.
    objects: [u8; 2],
    pool: Pool,
    input: u8,
    release: u8,
    is_refusing: bool,
    lacks: Lack,
    /// Seconds.
    now: i64,
    generation: i64,
    action: RequestedAction,
    options: u8,
    approved_plan: Option<String>,
    corrects: bool,
    continues: bool,
    bypasses: bool,
    rollback: bool,
    memory: Memory,
    /// What became of writes, as far as this process knows.
    outcomes: [Outcome; 2],
    approval: Option<(Digest, i64, Option<Timestamp>)>,
    /// What people saw: the objects when a plan was shown, by its digest.
    seen: BTreeMap<Digest, [u8; 2]>,
    /// The plan that was on the screen when the spec was last changed, if it was made for the same options.
    acted_on: Option<Digest>,
    /// What needed a review in that plan, by item.
    acted_on_review: [BTreeSet<ReviewReason>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    Ready,
    Rolling,
    Degraded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Nothing,
    Prerequisite,
    Answers,
    Everything,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    None,
    Written,
    Failed,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Act(RequestedAction),
    ApproveShown,
    ApproveAnother,
    Forget,
    Options,
    Correct,
    Continue,
    Bypass,
    Rollback,
    Edit(usize),
    /// Somebody edits an object and somebody else writes Apply, before the advisor has seen the edit.
    EditAndApply(usize),
    InputAndApply,
    Revert(usize),
    Input,
    Upgrade,
    Refuse,
    Pool(Pool),
    Lack(Lack),
    Hour,
    Restart,
}

const EVENTS: [Event; 30] = [
    Event::Act(RequestedAction::DryRun),
    Event::Act(RequestedAction::Apply),
    Event::Act(RequestedAction::Ignore),
    Event::ApproveShown,
    Event::ApproveAnother,
    Event::Forget,
    Event::Options,
    Event::Correct,
    Event::Continue,
    Event::Bypass,
    Event::Rollback,
    Event::Edit(0),
    Event::Edit(1),
    Event::EditAndApply(0),
    Event::EditAndApply(1),
    Event::InputAndApply,
    Event::Revert(0),
    Event::Revert(1),
    Event::Input,
    Event::Upgrade,
    Event::Refuse,
    Event::Pool(Pool::Ready),
    Event::Pool(Pool::Rolling),
    Event::Pool(Pool::Degraded),
    Event::Lack(Lack::Nothing),
    Event::Lack(Lack::Prerequisite),
    Event::Lack(Lack::Answers),
    Event::Lack(Lack::Everything),
    Event::Hour,
    Event::Restart,
];

impl World {
    fn new() -> World {
        World {
            objects: [0, 0],
            pool: Pool::Ready,
            input: 0,
            release: 0,
            is_refusing: false,
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
            memory: Memory::default(),
            outcomes: [Outcome::None; 2],
            approval: None,
            seen: BTreeMap::new(),
            acted_on: None,
            acted_on_review: [BTreeSet::new(), BTreeSet::new()],
        }
    }

    fn request(&self) -> Request {
        Request {
            generation: self.generation,
            action: self.action,
            approved_plan: self.approved_plan.clone(),
            continues: self.continues,
            bypasses: self.bypasses,
            corrects: self.corrects || self.bypasses,
            wait: Some(Duration::from_secs(1800)),
            options: Digest::of(&json!([self.options, self.rollback])),
        }
    }

    /// What is wanted of each object.
    fn wanted(&self) -> [u8; 2] {
        match self.rollback {
            true => [0, 0],
            false => [1 + self.options, 3 + self.input + 2 * self.release],
        }
    }

    /// Why an item needs a review. Nodes have followed what somebody edited, so that they restart.
    fn review(&self, index: usize) -> BTreeSet<ReviewReason> {
        let mut review = BTreeSet::new();
        if self.rollback {
            review.insert(ReviewReason::Removes);
        }
        if index == 0 && self.objects[index] == 9 {
            review.insert(ReviewReason::Restarts);
        }
        review
    }

    fn plan(&self) -> Candidate {
        let wanted = self.wanted();
        let items: Vec<CandidateItem> = (0..2)
            .map(|index| {
                let is_done = self.objects[index] == wanted[index];
                let replaces = (!is_done).then_some(self.objects[index]);
                CandidateItem {
                    name: format!("{index}"),
                    needs: Vec::new(),
                    joins: None,
                    digest: Digest::of(&json!([index, wanted[index], replaces])),
                    wanted: (!self.rollback).then(|| WantedContent {
                        object: format!("{index}"),
                        content: Digest::of(&json!(wanted[index])),
                    }),
                    is_missing: false,
                    is_done,
                    review: self.review(index),
                    hold: None,
                    health: match self.pool {
                        Pool::Rolling if index == 0 => Health::Progressing("rolling".into()),
                        Pool::Degraded if index == 0 => Health::Degraded("degraded".into()),
                        _ => Health::Healthy,
                    },
                    is_written: self.outcomes[index] == Outcome::Written,
                    failure: (self.outcomes[index] == Outcome::Failed).then(|| "refused".to_owned()),
                }
            })
            .collect();
        let digests: Vec<&Digest> = items.iter().map(|item| &item.digest).collect();
        let is_done = items.iter().all(|item| item.is_done);
        let after = self.memory.last_plan().filter(|_| !is_done);
        Candidate {
            digest: Digest::of(&json!([digests, self.input, after])),
            content: Digest::of(&json!((!self.rollback).then_some(wanted))),
            inputs: [("input".to_owned(), self.input.to_string())].into(),
            items,
            not_applicable: Vec::new(),
        }
    }

    fn draft(&self) -> Draft {
        match self.lacks {
            Lack::Nothing => Draft::Made(Box::new(self.plan())),
            Lack::Prerequisite => Draft::Missing(vec!["something".into()]),
            Lack::Answers => Draft::Incomplete,
            Lack::Everything => Draft::Unknown,
        }
    }

    fn judge(&self) -> Judgement {
        let now = Timestamp::from_second(self.now).unwrap();
        judge(&Situation { request: &self.request(), draft: &self.draft(), memory: &self.memory, now })
    }

    /// What a judgement makes the status remember.
    fn recorded(&self, judgement: &Judgement) -> Memory {
        let has_plan = self.lacks == Lack::Nothing && self.action != RequestedAction::Ignore;
        let items = match has_plan {
            true => self
                .plan()
                .items
                .iter()
                .zip(&judgement.items)
                .map(|(item, judged)| {
                    let ItemJudgement { state, since, written, .. } = *judged;
                    let review = if item.is_done { BTreeSet::new() } else { item.review.clone() };
                    (item.name.clone(), ItemMemory { state, since, written, review })
                })
                .collect(),
            false => self.memory.items.clone(),
        };
        Memory {
            had_another_plan: false,
            shown: judgement.shown.clone(),
            approved: judgement.approved.clone(),
            applied: judgement.applied.clone(),
            items,
        }
    }

    /// One step of the advisor, as its core takes it: record first, then write. `None` if there is nothing to do.
    fn step(&self) -> Option<World> {
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
            next.outcomes = [Outcome::None; 2];
            if next.outcomes != self.outcomes {
                return Some(next);
            }
        }
        let memory = self.recorded(&judgement);
        if memory != self.memory {
            next.memory = memory;
            if let Some(shown) = &next.memory.shown
                && self.lacks == Lack::Nothing
            {
                next.seen.entry(shown.digest).or_insert(self.objects);
            }
            return Some(next);
        }
        if next.outcomes != self.outcomes {
            return Some(next);
        }
        let index = judgement.write?;
        self.check_write(&judgement, index);
        match self.is_refusing {
            true => next.outcomes[index] = Outcome::Failed,
            false => {
                next.objects[index] = self.wanted()[index];
                next.outcomes[index] = Outcome::Written;
            }
        }
        Some(next)
    }

    /// What holds of every judgement.
    fn check(&self, judgement: &Judgement) {
        if self.action != RequestedAction::Apply {
            assert!(judgement.write.is_none() && judgement.retry.is_none(), "only Apply writes: {self:#?}");
            assert!(judgement.approved.is_none() || self.lacks != Lack::Nothing, "only Apply approves: {self:#?}");
        }
        if judgement.phase == Phase::Completed {
            assert_eq!(self.objects, self.wanted(), "Completed means that everything is as wanted: {self:#?}");
        }
        if judgement.phase == Phase::CompletedWithUpgrade {
            let applied = self.memory.applied.as_ref().expect("something was applied");
            let drifted = self.plan().items.into_iter().filter(|item| !item.is_done);
            let drifted = drifted.filter(|item| applied.items.get(&item.name) == item.wanted.as_ref());
            assert_eq!(drifted.count(), 0, "an upgrade that waits hides no drift: {self:#?}");
        }
        let is_ignored = self.action == RequestedAction::Ignore;
        assert_eq!(judgement.phase == Phase::Ignored, is_ignored);
        if judgement.write.is_some() {
            assert_eq!(judgement.phase, Phase::InProgress, "{self:#?}");
        }
    }

    /// What holds of every write.
    fn check_write(&self, judgement: &Judgement, index: usize) {
        let approved = self.memory.approved.as_ref().expect("an approval is recorded before a write");
        assert_eq!(judgement.approved.as_ref(), Some(approved));
        let item = &self.plan().items[index];
        assert_eq!(approved.items.get(&item.name), Some(&item.digest), "what is written was approved: {self:#?}");
        assert_eq!(approved.generation, self.generation, "by the spec as it is: {self:#?}");
        if self.bypasses {
            let unseen = item.review.difference(&self.acted_on_review[index]);
            assert_eq!(unseen.count(), 0, "what needs a review was shown: {self:#?}");
        }
        if self.corrects || self.bypasses {
            return;
        }
        if let Some(named) = &self.approved_plan {
            assert_eq!(approved.digest.to_string(), *named, "and is the plan that the spec names: {self:#?}");
        }
        if let Some(acted_on) = self.acted_on {
            assert_eq!(
                approved.digest, acted_on,
                "the plan that was on the screen is applied, and no other: {self:#?}"
            );
        }
        let seen = self.seen.get(&approved.digest).expect("a plan is shown before it is applied");
        assert_eq!(seen[index], self.objects[index], "nobody's edit is overwritten: {self:#?}");
        assert_eq!(self.outcomes[index], Outcome::None, "an item is written once: {self:#?}");
        if index == 1 && !self.continues {
            assert_eq!(self.objects[0], self.wanted()[0], "in order: {self:#?}");
            assert_eq!(self.memory.items["0"].state, crate::situation::Progress::Completed, "{self:#?}");
        }
    }

    /// Runs the advisor until it rests; every world on the way is one in which the process may end.
    fn settle(mut self, on_the_way: &mut Vec<World>) -> World {
        for _ in 0..STEPS {
            match self.step() {
                None => return self,
                Some(next) => {
                    on_the_way.push(self);
                    self = next;
                }
            }
        }
        panic!("it does not settle: {self:#?}\n{:#?}", self.judge());
    }

    fn after(&self, event: Event) -> World {
        let mut next = self.clone();
        let spec = match event {
            Event::Act(action) => std::mem::replace(&mut next.action, action) != action,
            Event::ApproveShown => {
                let shown = self.memory.shown.as_ref().map(|shown| shown.digest.to_string());
                next.action = RequestedAction::Apply;
                next.approved_plan = shown;
                next.approved_plan != self.approved_plan || next.action != self.action
            }
            Event::ApproveAnother => {
                next.approved_plan = Some(Digest::of(&json!("another")).to_string());
                next.approved_plan != self.approved_plan
            }
            Event::EditAndApply(index) => {
                (next.objects[index], next.action) = (9, RequestedAction::Apply);
                self.action != RequestedAction::Apply
            }
            Event::InputAndApply => {
                (next.input, next.action) = (1 - self.input, RequestedAction::Apply);
                self.action != RequestedAction::Apply
            }
            Event::Forget => next.approved_plan.take().is_some(),
            Event::Options => {
                next.options = 1 - self.options;
                true
            }
            Event::Bypass => {
                next.bypasses = !self.bypasses;
                true
            }
            Event::Rollback => {
                next.rollback = !self.rollback;
                true
            }
            Event::Correct => {
                next.corrects = !self.corrects;
                true
            }
            Event::Continue => {
                next.continues = !self.continues;
                true
            }
            other => {
                match other {
                    Event::Edit(index) => next.objects[index] = 9,
                    Event::Revert(index) => next.objects[index] = 0,
                    Event::Input => next.input = 1 - self.input,
                    Event::Upgrade => next.release = 1,
                    Event::Refuse => next.is_refusing = !self.is_refusing,
                    Event::Pool(pool) => next.pool = pool,
                    Event::Lack(lack) => next.lacks = lack,
                    Event::Hour => next.now += 3601,
                    Event::Restart => (next.outcomes, next.approval) = ([Outcome::None; 2], None),
                    _ => {}
                }
                false
            }
        };
        if spec {
            next.generation += 1;
            let options = next.request().options;
            let shown = self.memory.shown.as_ref().filter(|shown| shown.options == options);
            next.acted_on = shown.map(|shown| shown.digest);
            let review = |name: &str| self.memory.items.get(name).map(|item| item.review.clone());
            next.acted_on_review = ["0", "1"].map(|name| shown.and(review(name)).unwrap_or_default());
        }
        // What has failed is tried again after a while.
        if event == Event::Hour {
            next.outcomes =
                next.outcomes.map(|outcome| if outcome == Outcome::Failed { Outcome::None } else { outcome });
        }
        next
    }
}

#[test]
fn everything_that_can_happen_settles_and_never_writes_what_was_not_approved() {
    let mut visited: BTreeSet<World> = BTreeSet::new();
    let mut phases: BTreeSet<Phase> = BTreeSet::new();
    let (mut judgements, mut writes) = (0_u64, 0_u64);
    let mut frontier = vec![World::new().settle(&mut Vec::new())];
    for depth in 0..DEPTH {
        let mut next = Vec::new();
        for world in std::mem::take(&mut frontier) {
            for event in EVENTS {
                let mut on_the_way = Vec::new();
                let settled = world.after(event).settle(&mut on_the_way);
                judgements += on_the_way.len() as u64 + 1;
                phases.insert(settled.judge().phase);
                writes += on_the_way.windows(2).filter(|pair| pair[0].objects != pair[1].objects).count() as u64;
                // The process ends between two steps: what it goes on to is what it would have come to.
                for interrupted in on_the_way.iter().filter(|_| depth < 3) {
                    let again = interrupted.after(Event::Restart).settle(&mut Vec::new());
                    assert_eq!(again.objects, settled.objects, "{event:?} {interrupted:#?}");
                    assert_eq!(again.judge().phase, settled.judge().phase, "{event:?} {interrupted:#?}");
                }
                if visited.insert(settled.clone()) {
                    next.push(settled);
                }
            }
        }
        frontier = next;
        assert!(frontier.len() <= MOST_WORLDS, "too many to follow: {} after {} events", frontier.len(), depth + 1);
    }
    let size = (visited.len(), judgements, writes);
    assert!(visited.len() >= 73_000, "the model got smaller: {size:?} worlds, judgements, writes");
    assert!(judgements >= 260_000, "the model got smaller: {size:?} worlds, judgements, writes");
    assert!(writes >= 10_000, "the model got smaller: {size:?} worlds, judgements, writes");
    let all = [
        Phase::Pending,
        Phase::Drafting,
        Phase::PrerequisiteFailed,
        Phase::ReviewRequired,
        Phase::InProgress,
        Phase::Completed,
        Phase::CompletedWithErrors,
        Phase::CompletedWithUpgrade,
        Phase::Failed,
        Phase::Drifted,
        Phase::Ignored,
    ];
    assert_eq!(phases, all.into(), "every published phase is reached");
}
