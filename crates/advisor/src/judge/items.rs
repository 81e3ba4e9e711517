//! How far each item of a plan is, and which one is written next.

use crate::situation::{Approved, Candidate, CandidateItem, Health, Hold, ItemMemory, Progress, Situation};
use change::now::later;
use jiff::Timestamp;
use std::time::Duration;

/// An item that is held for longer is reported as such where the spec has no limit.
pub const LONG_HOLD: Duration = Duration::from_secs(3600);

/// How far an item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemJudgement {
    /// How far.
    pub state: Progress,
    /// Since when.
    pub since: Timestamp,
    /// When it was written.
    pub written: Option<Timestamp>,
    /// Since when it is held, although it would be written next.
    pub held: Option<Timestamp>,
    /// Why.
    pub message: String,
}

/// How far all items are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    /// The items, in the order of the plan.
    pub items: Vec<ItemJudgement>,
    /// The item to write now.
    pub next: Option<usize>,
    /// The item whose write has failed and may be tried again.
    pub retry: Option<usize>,
    /// The items that are not what was approved.
    pub moved: Vec<String>,
    /// The items that somebody changed after they were written.
    pub drifted: Vec<String>,
    /// When an item has waited for too long.
    pub deadline: Option<Timestamp>,
    /// Whether one is held for long, and nothing limits that.
    pub is_held_for_long: bool,
    /// Whether one waits for a maintenance window.
    pub waits_for_window: bool,
}

/// Looks at all items; without an approval nothing is written.
pub fn walk(situation: &Situation<'_>, plan: &Candidate, approved: Option<&Approved>) -> Walk {
    let mut walk = Walk::default();
    let mut is_blocked = false;
    // What was so before the last item, and whether that one is written.
    let (mut was_blocked, mut is_last_done) = (false, false);
    // Items that have failed, or wait for one that has.
    let mut failed: Vec<&CandidateItem> = Vec::new();
    let is_spent = is_spent(situation);
    for (index, item) in plan.items.iter().enumerate() {
        let before = situation.memory.items.get(&item.name);
        let written = before.and_then(|before| before.written);
        // What is replaced is deleted without waiting until nodes run its replacement, so that they restart once, and never before it is
        // written.
        let joins = item.joins.is_some() && is_last_done;
        let must_wait = if joins { was_blocked } else { is_blocked || item.joins.is_some() };
        let mut held = None;
        let dependency = failed.iter().find_map(|failed| item.depends_on(failed));
        let (state, message, written) = match item.is_done {
            true => done(situation, item, before, approved, &mut walk),
            false => match approved {
                // Somebody has changed what was written under the approval that is spent.
                None => (Progress::Pending, String::new(), written.filter(|_| is_spent)),
                Some(_) if written.is_some() || item.is_written => {
                    walk.drifted.push(item.name.clone());
                    (Progress::Failed, "somebody changed it after it was written".to_owned(), written)
                }
                Some(approved) if approved.items.get(&item.name) != Some(&item.digest) => {
                    walk.moved.push(item.name.clone());
                    (Progress::Pending, "it is not what was approved any more".to_owned(), None)
                }
                Some(_) if let Some(why) = &dependency => (Progress::Pending, why.clone(), None),
                Some(_) if let Some(why) = &item.failure => {
                    walk.retry = walk.retry.or((!must_wait && item.hold.is_none()).then_some(index));
                    (Progress::Failed, why.clone(), None)
                }
                Some(_) if must_wait => (Progress::Pending, "it waits for the items before it".to_owned(), None),
                Some(_) if let Some(Hold { why, opens: Some(opens) }) = &item.hold => {
                    walk.wake(*opens);
                    walk.waits_for_window = true;
                    (Progress::Pending, why.clone(), None)
                }
                Some(_) if let Some(Hold { why, opens: None }) = &item.hold => {
                    let since = before.and_then(|before| before.held).unwrap_or(situation.now);
                    held = Some(since);
                    let (state, message) = hold(situation, why, since, &mut walk);
                    (state, message, None)
                }
                Some(_) => {
                    walk.next = walk.next.or(Some(index));
                    (Progress::InProgress, "it is being written".to_owned(), None)
                }
            },
        };
        // After a failure the pool of another item may stay as it is for long, and what does not depend on it goes on.
        let is_held = item.hold.is_some() && !is_blocked && !failed.is_empty();
        let waits_for_failed = dependency.is_some() && state == Progress::Pending;
        if state == Progress::Failed || waits_for_failed {
            failed.push(item);
        }
        (was_blocked, is_last_done) = (is_blocked, item.is_done);
        is_blocked |= match state {
            // Later items do not depend on one that waits because something has failed, unless they say so.
            Progress::Pending if waits_for_failed || is_held => !situation.request.continues,
            Progress::InProgress | Progress::Pending => true,
            Progress::Failed => !situation.request.continues,
            Progress::Completed => false,
        };
        let since = before.filter(|before| before.state == state).map_or(situation.now, |before| before.since);
        walk.items.push(ItemJudgement { state, since, written, held, message });
    }
    // What was approved and does not apply any more has changed, too.
    let is_left_out = |name: &&String| !plan.items.iter().any(|item| item.name == **name);
    walk.moved.extend(approved.into_iter().flat_map(|approved| approved.items.keys()).filter(is_left_out).cloned());
    if !walk.moved.is_empty() || !walk.drifted.is_empty() {
        walk.stop(situation, plan);
    }
    walk
}

impl Walk {
    /// Something is to be looked at again then.
    fn wake(&mut self, at: Timestamp) {
        self.deadline = Some(self.deadline.map_or(at, |earlier| earlier.min(at)));
    }

    /// Nothing is written, because the plan is not what was approved any more: what was not written waits for another approval, also what was
    /// refused or held for too long.
    fn stop(&mut self, situation: &Situation<'_>, plan: &Candidate) {
        (self.next, self.retry) = (None, None);
        for (item, judged) in plan.items.iter().zip(&mut self.items) {
            let is_waiting = judged.state == Progress::Pending || self.drifted.contains(&item.name);
            if !item.is_done && !is_waiting {
                (judged.state, judged.message) = (Progress::Pending, "it waits for another approval".to_owned());
                judged.since = situation.now;
            }
            judged.held = None;
        }
    }
}

/// Whether items were written under an approval that counts no more.
fn is_spent(situation: &Situation<'_>) -> bool {
    situation.memory.approved.as_ref().is_some_and(Approved::is_spent)
}

/// An item with nothing to do.
fn done(
    situation: &Situation<'_>,
    item: &CandidateItem,
    before: Option<&ItemMemory>,
    approved: Option<&Approved>,
    walk: &mut Walk,
) -> (Progress, String, Option<Timestamp>) {
    let state = before.map(|before| before.state);
    let written = before.and_then(|before| before.written);
    // Once it has had its effect, what happens to nodes later is somebody else's change. What its own status says is told.
    if state == Some(Progress::Completed) {
        let said = match &item.health {
            Health::Unready(why) | Health::Degraded(why) => why.clone(),
            Health::Healthy | Health::Progressing(_) => String::new(),
        };
        return (Progress::Completed, said, written);
    }
    // It was in progress, or had failed, and there is nothing to do any more: it was written just now. What was held was never sent, and
    // neither was what somebody else had done before.
    let was_sent = before.is_some_and(|before| before.held.is_none() && !before.was_done);
    let was_tried = matches!(state, Some(Progress::InProgress | Progress::Failed)) && was_sent;
    let is_new = (approved.is_some() || is_spent(situation)) && (was_tried || item.is_written);
    let written = written.or(is_new.then_some(situation.now));
    match &item.health {
        Health::Healthy => (Progress::Completed, String::new(), written),
        Health::Degraded(why) => (Progress::Failed, why.clone(), written),
        Health::Progressing(why) | Health::Unready(why) => {
            let since = written.or(before.filter(|_| state == Some(Progress::InProgress)).map(|before| before.since));
            let deadline = situation.request.wait.map(|wait| later(since.unwrap_or(situation.now), wait));
            let is_late = deadline.is_some_and(|deadline| deadline <= situation.now)
                || (state == Some(Progress::Failed) && written.is_none() && deadline.is_some());
            if is_late {
                let wait = situation.request.wait.unwrap_or_default();
                return (Progress::Failed, format!("not healthy after {}: {why}", text(wait)), written);
            }
            deadline.into_iter().for_each(|deadline| walk.wake(deadline));
            (Progress::InProgress, why.clone(), written)
        }
    }
}

/// An item that would be written next and is held: it has failed when that takes longer than the spec allows, and is written by itself in any
/// case once nothing holds it any more.
fn hold(situation: &Situation<'_>, why: &str, since: Timestamp, walk: &mut Walk) -> (Progress, String) {
    let deadline = later(since, situation.request.wait.unwrap_or(LONG_HOLD));
    if deadline > situation.now {
        walk.wake(deadline);
        return (Progress::Pending, why.to_owned());
    }
    match situation.request.wait {
        Some(wait) => (Progress::Failed, format!("not written after {}: {why}", text(wait))),
        None => {
            walk.is_held_for_long = true;
            (Progress::Pending, why.to_owned())
        }
    }
}

/// What the objects of completed items say of themselves, if something is wrong with one.
pub fn unhealthy<'a>(items: impl Iterator<Item = (&'a str, &'a ItemJudgement)>) -> Option<String> {
    let says = |judged: &ItemJudgement| judged.state == Progress::Completed && !judged.message.is_empty();
    let all: Vec<String> =
        items.filter(|(_, judged)| says(judged)).map(|(name, judged)| format!("{name}: {}", judged.message)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// A duration as people write it.
fn text(wait: std::time::Duration) -> String {
    match wait.as_secs() {
        seconds if seconds >= 3600 && seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds >= 60 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::walk;
    use crate::situation::{
        Candidate, CandidateItem, Draft, Health, Hold, Memory, Progress, Request, RequestedAction, ReviewReason,
        Situation,
    };
    use change::Digest;
    use jiff::Timestamp;
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};

    fn item(name: &str) -> CandidateItem {
        CandidateItem {
            name: name.to_owned(),
            needs: Vec::new(),
            joins: None,
            digest: Digest::of(&json!(name)),
            wanted: None,
            is_missing: false,
            is_done: false,
            review: BTreeSet::new(),
            hold: None,
            health: Health::Healthy,
            is_written: false,
            failure: None,
        }
    }

    #[test]
    fn what_is_replaced_waits_until_its_replacement_is_written_also_after_a_failure() {
        let replacement =
            CandidateItem { hold: Some(Hold { why: "its pool is degraded".into(), opens: None }), ..item("new") };
        let review = BTreeSet::from([ReviewReason::Removes]);
        let former = CandidateItem { joins: Some("new".into()), review, ..item("former") };
        let failed = CandidateItem { failure: Some("refused".into()), ..item("other") };
        let plan = Candidate {
            digest: Digest::of(&json!("plan")),
            content: Digest::of(&json!("content")),
            inputs: BTreeMap::new(),
            items: vec![failed, replacement, former],
            not_applicable: Vec::new(),
        };
        let request = Request {
            generation: 1,
            action: RequestedAction::Apply,
            approved_plan: None,
            continues: true,
            bypasses: false,
            corrects: false,
            wait: None,
            options: Digest::of(&json!("options")),
        };
        let (draft, memory) = (Draft::Made(Box::new(plan.clone())), Memory::default());
        let situation = Situation { request: &request, draft: &draft, memory: &memory, now: Timestamp::UNIX_EPOCH };
        let found = walk(&situation, &plan, Some(&plan.approved(1)));
        assert_eq!((found.next, found.items[2].state), (None, Progress::Pending), "{found:#?}");
    }
}
