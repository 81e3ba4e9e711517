//! What happens to the world: people edit everything, the server refuses, pools follow, time passes, and the process ends.

use super::world::{DOUBLE, EDITED, FOUND, Lack, NODES, Outcome, Pool, SETTINGS, Scene, World};
use crate::situation::RequestedAction;
use change::Digest;
use serde_json::json;

/// So long a window is closed: for longer than an item may be held.
const CLOSED: i64 = 5_400;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Act(RequestedAction),
    ApproveShown,
    ApproveAnother,
    Forget,
    Options,
    Correct,
    Continue,
    Bypass,
    Rollback,
    Limit,
    Edit(usize),
    /// Somebody edits an object and somebody else writes Apply, before the advisor has seen the edit.
    EditAndApply(usize),
    InputAndApply,
    /// Somebody makes an object as it was found.
    Revert(usize),
    Input,
    Upgrade,
    Refuse(usize),
    Pool(Pool),
    /// Somebody sets a maintenance window, which opens later.
    CloseWindow,
    Pause,
    Lack(Lack),
    Hour,
    Restart,
}

/// Who or what makes a phase another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// The spec was changed.
    Spec,
    /// Objects, inputs or what the profile wants have changed.
    World,
    /// Pools, pauses, or what the server refuses.
    Waiting,
    /// What is known of the cluster.
    Facts,
    /// Time has passed.
    Time,
    /// The advisor has written something.
    Write,
}

const ALL: [Event; 32] = [
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
    Event::Edit(NODES),
    Event::Edit(SETTINGS),
    Event::EditAndApply(NODES),
    Event::EditAndApply(SETTINGS),
    Event::InputAndApply,
    Event::Revert(NODES),
    Event::Revert(SETTINGS),
    Event::Input,
    Event::Upgrade,
    Event::Refuse(NODES),
    Event::Refuse(SETTINGS),
    Event::Pool(Pool::Ready),
    Event::Pool(Pool::Rolling),
    Event::Pool(Pool::Degraded),
    Event::Lack(Lack::Nothing),
    Event::Lack(Lack::Prerequisite),
    Event::Lack(Lack::Answers),
    Event::Lack(Lack::Everything),
    Event::Lack(Lack::Preview),
    Event::Hour,
    Event::Restart,
];

impl Scene {
    /// What happens in this scene.
    pub fn events(self) -> Vec<Event> {
        let is_common = |event: &Event| {
            !matches!(
                event,
                Event::InputAndApply
                    | Event::ApproveAnother
                    | Event::Forget
                    | Event::Lack(Lack::Answers | Lack::Everything)
            )
        };
        let common = ALL.into_iter().filter(is_common);
        match self {
            Scene::Independent => ALL.to_vec(),
            Scene::Needs => common.chain([Event::Pause, Event::CloseWindow, Event::Limit]).collect(),
            Scene::Replaces => common
                .chain([Event::Pause, Event::CloseWindow])
                .chain([Event::Edit(DOUBLE), Event::Revert(DOUBLE), Event::Refuse(DOUBLE)])
                .collect(),
        }
    }
}

impl Event {
    pub fn cause(self) -> Cause {
        match self {
            Event::Edit(_) | Event::Revert(_) | Event::Input | Event::Upgrade => Cause::World,
            Event::Refuse(_) | Event::Pool(_) | Event::CloseWindow | Event::Pause => Cause::Waiting,
            Event::Lack(_) => Cause::Facts,
            Event::Hour | Event::Restart => Cause::Time,
            _ => Cause::Spec,
        }
    }
}

impl World {
    pub fn after(&self, event: Event) -> World {
        let mut next = self.clone();
        let is_spec_changed = match event {
            Event::Act(action) => std::mem::replace(&mut next.action, action) != action,
            Event::ApproveShown => {
                let shown = self.memory.shown.as_ref().map(|shown| shown.digest.to_string());
                (next.action, next.approved_plan) = (RequestedAction::Apply, shown);
                next.approved_plan != self.approved_plan || next.action != self.action
            }
            Event::ApproveAnother => {
                next.approved_plan = Some(Digest::of(&json!("another")).to_string());
                next.approved_plan != self.approved_plan
            }
            Event::EditAndApply(object) => {
                (next.objects[object], next.action) = (EDITED, RequestedAction::Apply);
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
            Event::Limit => {
                next.is_limited = !self.is_limited;
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
                next.happens(other);
                false
            }
        };
        if is_spec_changed {
            next.generation += 1;
            let options = next.options();
            let shown = self.memory.shown.as_ref().filter(|shown| shown.options == options);
            next.ghosts.acted_on = shown.map(|shown| shown.digest);
            let review = self.memory.items.iter().map(|(name, item)| (name.clone(), item.review.clone()));
            next.ghosts.acted_on_review = shown.map(|_| review.collect()).unwrap_or_default();
        }
        next
    }

    /// What happens without a change of the spec.
    fn happens(&mut self, event: Event) {
        match event {
            // Nobody makes what is deleted under its former name again.
            Event::Edit(DOUBLE) if self.objects[DOUBLE] == FOUND => {}
            Event::Edit(object) => self.objects[object] = EDITED,
            Event::Revert(object) => self.objects[object] = FOUND,
            Event::Input => self.input = 1 - self.input,
            Event::Upgrade => self.release = 1,
            Event::Refuse(object) => self.refused[object] = !self.refused[object],
            // A rollout that fails is the same one.
            Event::Pool(pool) => {
                self.rolls_ours &= self.pool != Pool::Ready && pool != Pool::Ready;
                self.pool = pool;
            }
            Event::CloseWindow => self.closed_until = self.now + CLOSED,
            Event::Pause => self.is_paused = true,
            Event::Lack(lack) => self.lacks = lack,
            // What has failed is tried again after a while, and a pause is over.
            Event::Hour => {
                self.now += 3_601;
                self.is_paused = false;
                self.retries = self.outcomes.contains(&Outcome::Failed);
            }
            Event::Restart => (self.outcomes, self.approval, self.retries) = ([Outcome::None; 3], None, false),
            _ => {}
        }
    }
}
