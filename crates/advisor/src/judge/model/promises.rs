//! What holds of every judgement, and of every write.

use super::world::{DOUBLE, EDITED, FOUND, Lack, Line, NODES, Outcome, Pool, SETTINGS, Scene, World};
use crate::judge::{Judgement, UNHEALTHY};
use crate::situation::{Progress, RequestedAction};
use api::advisor::Phase;
use change::Digest;

impl World {
    /// What holds of every judgement.
    pub fn check(&self, judgement: &Judgement) {
        let is_writing = judgement.write.is_some() || judgement.retry.is_some();
        if self.action != RequestedAction::Apply {
            assert!(!is_writing, "only Apply writes: {self:#?}");
            assert!(judgement.approved.is_none() || self.lacks != Lack::Nothing, "only Apply approves: {self:#?}");
        }
        assert!(!is_writing || self.lacks == Lack::Nothing, "nothing is written without a plan: {self:#?}");
        if judgement.phase == Phase::Completed {
            assert!(self.is_as_wanted(), "Completed means that everything is as wanted: {self:#?}");
            let is_ailing = judgement.items.iter().any(|item| !item.message.is_empty());
            assert_eq!(judgement.reason == UNHEALTHY, is_ailing, "and says what is wrong nevertheless: {self:#?}");
        }
        if judgement.phase == Phase::CompletedWithUpgrade {
            let applied = self.memory.applied.as_ref().expect("something was applied");
            let drifted = self.plan().items.into_iter().filter(|item| !item.is_done);
            let drifted = drifted.filter(|item| applied.items.get(&item.name) == item.wanted.as_ref());
            assert_eq!(drifted.count(), 0, "an upgrade that waits hides no drift: {self:#?}");
        }
        if [Phase::Failed, Phase::CompletedWithErrors].contains(&judgement.phase) && self.lacks == Lack::Nothing {
            let failed = judgement.items.iter().filter(|item| item.state == Progress::Failed).count();
            assert!(failed > 0, "what has failed is an item, which says why: {self:#?}");
            assert_eq!(judgement.phase == Phase::CompletedWithErrors, self.continues, "by its policy: {self:#?}");
        }
        assert_eq!(judgement.phase == Phase::Ignored, self.action == RequestedAction::Ignore);
        if judgement.write.is_some() {
            assert_eq!(judgement.phase, Phase::InProgress, "{self:#?}");
        }
    }

    /// What holds of every write.
    pub fn check_write(&self, judgement: &Judgement, index: usize, line: Line) {
        let approved = self.memory.approved.as_ref().expect("an approval is recorded before a write");
        assert_eq!(judgement.approved.as_ref(), Some(approved));
        let plan = self.plan();
        let item = &plan.items[index];
        assert!(!item.is_done, "what is as wanted is not written: {self:#?}");
        assert_eq!(approved.items.get(&item.name), Some(&item.digest), "what is written was approved: {self:#?}");
        assert_eq!(approved.generation, self.generation, "by the spec as it is: {self:#?}");
        self.check_hold(line);
        self.check_order(index, line);
        if self.bypasses {
            let shown = self.ghosts.acted_on_review.get(&item.name).cloned().unwrap_or_default();
            assert_eq!(item.review.difference(&shown).count(), 0, "what needs a review was shown: {self:#?}");
        }
        if self.insists(plan.content) {
            return;
        }
        if let Some(named) = &self.approved_plan {
            assert_eq!(approved.digest.to_string(), *named, "and is the plan that the spec names: {self:#?}");
        }
        if let Some(acted_on) = self.ghosts.acted_on {
            assert_eq!(
                approved.digest, acted_on,
                "the plan that was on the screen is applied, and no other: {self:#?}"
            );
        }
        let seen = self.ghosts.seen.get(&approved.digest).expect("a plan is shown before it is applied");
        assert_eq!(seen.1, plan.content, "what is wanted was shown: {self:#?}");
        assert_eq!(seen.0[line.object], self.objects[line.object], "nobody's edit is overwritten: {self:#?}");
        assert_ne!(self.outcomes[line.object], Outcome::Written, "an item is written once: {self:#?}");
        let is_again = self.ghosts.written.contains(&(approved.digest, line.object));
        assert!(!is_again, "an item is written once for one approval: {self:#?}");
    }

    /// Whether the spec lets the advisor write what no plan has shown: what was applied, or is being applied after that, is put back as it was approved;
    /// and a first plan for these options may be another one than was shown.
    fn insists(&self, content: Digest) -> bool {
        let (applied, options) = (self.memory.applied.as_ref(), self.options());
        let is_for_options = applied.is_some_and(|applied| applied.options == options);
        let is_as_applied = applied.is_some_and(|applied| applied.content == content) && is_for_options;
        let acted_on = self.ghosts.acted_on.and_then(|digest| self.ghosts.seen.get(&digest));
        let is_as_acted_on = applied.is_some() && acted_on.is_some_and(|seen| seen.1 == content);
        let corrects = (self.corrects || self.bypasses) && (is_as_applied || is_as_acted_on);
        corrects || (self.bypasses && !is_for_options)
    }

    /// Nodes restart, also for a removal, while their pool is ready and a window is open; the pool is not ready while it rolls out what this may
    /// repair, and what is replaced goes in the rollout of its replacement. What users have paused is left alone.
    fn check_hold(&self, line: Line) {
        assert!(line.object != SETTINGS || !self.is_paused, "what is paused is not written: {self:#?}");
        if line.object == SETTINGS || self.scene == Scene::Independent {
            return;
        }
        let is_joined = line.joins && self.rolls_ours;
        let may_repair = self.rolls_ours && line.object == NODES && self.objects[NODES] != FOUND;
        assert!(self.pool == Pool::Ready || is_joined || may_repair, "no other node restarts: {self:#?}");
        assert!(self.window().is_none() || is_joined, "nodes restart in a window: {self:#?}");
    }

    /// Items are written one after the other, each when those before it are healthy.
    fn check_order(&self, index: usize, line: Line) {
        let lines = self.lines();
        let state = |line: &Line| self.memory.items.get(World::name_of(line.object)).map(|item| item.state);
        let is_complete = |line: &Line| line.is_done && state(line) == Some(Progress::Completed);
        // A replacement and what it replaces are one rollout: the second follows at once, and never comes first.
        let replacement = if line.joins { index.checked_sub(1) } else { None };
        if line.joins {
            let replacement = &lines[replacement.expect("it comes after its replacement")];
            assert_eq!((replacement.object, replacement.is_done), (NODES, true), "it is replaced first: {self:#?}");
        }
        for (place, before) in lines[..index].iter().enumerate() {
            if Some(place) == replacement || is_complete(before) {
                continue;
            }
            assert!(self.continues, "in order: {self:#?}");
            let is_needed = self.scene == Scene::Needs && line.object != DOUBLE;
            assert!(!is_needed, "one of both relies on the other: {self:#?}");
            let is_stuck = state(before) == Some(Progress::Failed)
                || (before.joins && !before.is_done)
                || (self.hold(*before).is_some() && state(before) == Some(Progress::Pending));
            assert!(is_stuck, "only what has failed, or waits for that, is left behind: {self:#?}");
        }
    }

    /// What holds where the advisor rests.
    pub fn check_rest(&self) {
        let judgement = self.judge();
        // Nothing is left half done: what joins goes with its replacement, unless something is in its way.
        let is_applying = judgement.phase == Phase::InProgress && self.action == RequestedAction::Apply;
        let is_refused = self.refused[DOUBLE] || self.outcomes[DOUBLE] == Outcome::Failed;
        let is_replaced = self.wanted(NODES) == Some(self.objects[NODES]) && self.objects[NODES] != EDITED;
        let is_held = self.lines().into_iter().any(|line| line.object == DOUBLE && self.hold(line).is_some());
        let is_left = self.scene == Scene::Replaces && is_applying && is_replaced && self.objects[DOUBLE] != FOUND;
        if is_left && !is_refused && !is_held {
            panic!("nodes restart twice: {self:#?}");
        }
        // Waiting alone changes nothing before it wakes.
        let wakes_at = judgement.wake.map(jiff::Timestamp::as_second);
        assert!(wakes_at.is_none_or(|wake| wake > self.now), "it would wake for ever: {self:#?}");
        let last = wakes_at.map_or(self.now + 1_000_000, |wake| wake - 1);
        let later = World { now: last, ..self.clone() }.judge();
        let of = |judgement: &Judgement| {
            let states: Vec<Progress> = judgement.items.iter().map(|item| item.state).collect();
            (judgement.phase, judgement.reason, judgement.write, judgement.approved.clone(), states)
        };
        assert_eq!(of(&later), of(&judgement), "it wakes when waiting alone changes something: {self:#?}");
    }
}
