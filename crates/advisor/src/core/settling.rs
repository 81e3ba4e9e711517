//! Judges a profile, publishes its status, and then makes the write that follows from it.

use super::drafting::Drafted;
use super::managed::Managed;
use super::{Core, Timer, kind};
use crate::conditions;
use crate::judge::{Judgement, judge};
use crate::memory::{options_digest, whole_second};
use crate::notice::Notice;
use crate::plan::{Outcome, Plan};
use crate::situation::{Approved, Draft, Memory, Request, RequestedAction, Situation};
use crate::status::{Parts, status};
use api::advisor::{Phase, VirtPlatformConfigStatus};
use change::{Backoff, Effect, Key, Precondition};
use protocol::{Command, Write};
use serde_json::{Map, json};
use std::time::Duration;

/// What is said of a profile that is ignored and keeps nothing from the autopilot.
const HANDED_OVER: &str =
    "the action is Ignore: the advisor leaves everything as it is, and the autopilot takes care of its own objects";
/// A plan that takes longer is announced.
const SLOW: Duration = Duration::from_secs(1);
/// A status that could not be published is published again after this.
const PUBLISH_AGAIN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(15) };
/// What has failed is tried again after this.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(120) };

impl Core {
    /// Reconciles one profile.
    pub(super) fn reconcile(&mut self, name: &str) {
        let Some(managed) = self.profiles.get(name).filter(|managed| !managed.is_restored) else { return };
        let request = Request::of(&managed.spec, managed.generation);
        let is_ignored = managed.spec.action == api::advisor::Action::Ignore;
        let (drafted, request) = match request {
            _ if is_ignored => (Drafted::Not(Draft::Unknown), ignoring(managed.generation)),
            Ok(request) => {
                let drafted = self.draft(name);
                (self.unwatched(name, drafted), request)
            }
            Err(why) => (Drafted::Not(Draft::Missing(vec![why])), reviewing(managed.generation)),
        };
        self.settle(name, drafted, &request);
    }

    fn settle(&mut self, name: &str, drafted: Drafted, request: &Request) {
        let now = self.now;
        let Some(managed) = self.profiles.get_mut(name) else { return };
        if is_ignored(request) {
            managed.work.clear();
        }
        let mut memory = managed.memory.clone();
        let draft_of = |drafted: &Drafted, memory: &Memory| match drafted {
            Drafted::Not(draft) => draft.clone(),
            Drafted::Made(plan) if let Some(why) = plan.failure() => Draft::Failed(why),
            Drafted::Made(plan) => Draft::Made(Box::new(plan.candidate(memory.last_plan(), &managed.outcomes))),
        };
        let mut draft = draft_of(&drafted, &memory);
        let now_seconds = whole_second(now.wall);
        let mut judgement = judge(&Situation { request, draft: &draft, memory: &memory, now: now_seconds });
        // Once an approval is spent, and once that is forgotten, the plan has another digest, and this one is shown.
        let is_spent = |approved: &Option<Approved>| approved.as_ref().is_some_and(Approved::is_spent);
        let concerns_spent = is_spent(&judgement.approved) || is_spent(&memory.approved);
        let applies_nothing = judgement.approved.as_ref().is_none_or(Approved::is_void);
        if concerns_spent && applies_nothing && judgement.approved != memory.approved {
            memory.approved.clone_from(&judgement.approved);
            draft = draft_of(&drafted, &memory);
            judgement = judge(&Situation { request, draft: &draft, memory: &memory, now: now_seconds });
        }
        if judgement.phase == Phase::Ignored && !managed.spec.governs(managed.only_tells) {
            judgement.message = HANDED_OVER.to_owned();
        }
        let plan = match drafted {
            Drafted::Not(_) => None,
            Drafted::Made(plan) => Some(plan),
        };
        match judgement.phase {
            Phase::Pending | Phase::Drafting => {
                // What failed is tried again, and the status says that already. It is not over before there is a plan.
                let is_observed = managed.published.observed_generation == Some(managed.generation);
                if managed.failures > 0 && is_observed {
                    return;
                }
                let since = *managed.drafting_since.get_or_insert(now.monotonic);
                if now.monotonic < since.after(SLOW) {
                    return self.timers.set(Timer::Reconcile(name.to_owned()), since.after(SLOW));
                }
            }
            _ => managed.drafting_since = None,
        }
        // Another approval starts anew, and so does a correction of drift. What was written under one that is void is remembered until that is
        // recorded.
        let approval = judgement.approved.as_ref().filter(|approved| !approved.is_void());
        let corrected = judgement.applied.as_ref().and_then(|applied| applied.corrections.last().copied());
        let approval = approval.map(|approved| (approved.digest, approved.generation, corrected));
        if approval.is_none() {
            let is_unrecorded = judgement.approved.is_some() && judgement.approved != managed.memory.approved;
            managed.outcomes.retain(|_, outcome| is_unrecorded && *outcome == Outcome::Written);
        } else if approval != managed.approval {
            managed.approval = approval;
            if !managed.outcomes.is_empty() {
                managed.outcomes.clear();
                self.due.insert(name.to_owned());
                return;
            }
        }
        let wanted = status(&Parts {
            judgement: &judgement,
            plan: plan.as_ref(),
            spec: &managed.spec,
            generation: managed.generation,
            before: &managed.published,
            memory: &managed.memory,
            version: &self.config.version,
            now: whole_second(now.wall),
        });
        managed.plan = plan;
        let is_retrying = std::mem::take(&mut managed.retries);
        let is_published = managed.published == wanted;
        if is_published {
            // The server has it although its answer was lost.
            let memory = Memory::of(&managed.published);
            if memory != managed.memory {
                managed.memory = memory;
                self.due.insert(name.to_owned());
                return;
            }
        }
        let has_failed = managed.outcomes.values().any(|outcome| matches!(outcome, Outcome::Failed(_)));
        match matches!(draft, Draft::Failed(_)) || has_failed {
            true => self.try_again(name),
            // What is still to be written may have failed before.
            false if judgement.write.is_some() => {}
            false => (managed.failures, managed.retry_at) = (0, None),
        }
        if let Some(wake) = judgement.wake {
            self.timers.set(Timer::Reconcile(name.to_owned()), now.moment_of(wake));
        }
        self.report_written(name, &judgement);
        let drifted = drifted(&judgement, &draft, &memory, request);
        self.report(name, &judgement, &wanted, drifted, !is_published);
        match is_published {
            false => self.publish(name, wanted),
            true => {
                let is_paused = self.profiles.get(name).is_some_and(|managed| managed.retry_at.is_some());
                let next = judgement.write.filter(|_| !is_paused || is_retrying);
                self.write(name, next.or(judgement.retry.filter(|_| is_retrying)));
            }
        }
    }

    /// Reconciles a profile because it is time to try again what has failed.
    pub(super) fn reconcile_again(&mut self, name: String) {
        let now = self.now.monotonic;
        if let Some(managed) =
            self.profiles.get_mut(&name).filter(|managed| managed.retry_at.is_some_and(|at| at <= now))
        {
            let mut has_failed = false;
            for work in managed.work.values_mut().filter(|work| work.failure.is_some()) {
                work.restart();
                has_failed = true;
            }
            managed.failures = managed.failures.saturating_add(u32::from(has_failed));
            (managed.retries, managed.retry_at) = (true, None);
        }
        self.due.insert(name);
    }

    /// Reconciles a profile again after a while, because something has failed.
    pub(super) fn try_again(&mut self, name: &str) {
        let Some(managed) = self.profiles.get_mut(name) else { return };
        let at = *managed.retry_at.get_or_insert(self.now.monotonic.after(AGAIN.pause(managed.failures)));
        self.timers.set(Timer::Retry(name.to_owned()), at);
    }

    /// Publishes the status of a profile again after a while.
    pub(super) fn publish_again(&mut self, name: &str) {
        let Some(managed) = self.profiles.get_mut(name) else { return };
        let at = self.now.monotonic.after(PUBLISH_AGAIN.pause(managed.publish_failures));
        managed.publish_failures = managed.publish_failures.saturating_add(1);
        managed.publish_at = Some(at);
        self.timers.set(Timer::Publish(name.to_owned()), at);
    }

    /// Reports items that turn out to be written although the answer was lost, or the process that wrote them has ended.
    fn report_written(&mut self, name: &str, judgement: &Judgement) {
        let Some(managed) = self.profiles.get_mut(name) else { return };
        let Managed { uid, memory, plan, announced, .. } = managed;
        let is_recorded = |item: &str| memory.items.get(item).is_some_and(|memory| memory.written.is_some());
        announced.retain(|item| !is_recorded(item));
        let items = plan.iter().flat_map(|plan| &plan.items).zip(&judgement.items);
        let written = items.filter(|(item, judged)| judged.written.is_some() && !is_recorded(&item.name));
        let mut notices = Vec::new();
        for (item, _) in written.filter(|(item, _)| announced.insert(item.name.clone())) {
            let (item, key, is_deleted) = (item.name.clone(), item.key.clone(), item.compared.deletes());
            notices.push(Notice::Applied { name: name.to_owned(), uid: uid.clone(), item, key, is_deleted });
        }
        notices.into_iter().for_each(|notice| self.notify(notice));
    }

    /// Reports a phase, another reason for it, or another plan that waits for a review.
    fn report(
        &mut self,
        name: &str,
        judgement: &Judgement,
        status: &VirtPlatformConfigStatus,
        drifted: usize,
        is_news: bool,
    ) {
        let Some(managed) = self.profiles.get_mut(name) else { return };
        let digest = judgement.shown.as_ref().map(|shown| shown.digest);
        let waits = matches!(judgement.phase, Phase::ReviewRequired | Phase::Drifted | Phase::CompletedWithUpgrade);
        let said = (judgement.phase, judgement.message.clone(), digest.filter(|_| waits));
        if managed.is_writing() || managed.reported.as_ref() == Some(&said) {
            return;
        }
        managed.reported = Some(said);
        let phase = conditions::name(judgement.phase);
        let condition = status.conditions.iter().find(|condition| condition.r#type == phase);
        let since = condition.and_then(|condition| condition.last_transition_time.0.parse().ok());
        let notice = Notice::Judged {
            name: name.to_owned(),
            uid: managed.uid.clone(),
            phase: judgement.phase,
            reason: judgement.reason,
            message: judgement.message.clone(),
            digest,
            drifted,
            since: since.unwrap_or(self.now.wall),
            is_news,
        };
        self.notify(notice);
    }

    fn publish(&mut self, name: &str, status: VirtPlatformConfigStatus) {
        let key = key(name);
        let Some(served) = self.discovery.kinds.find(&key.kind) else { return };
        // Its answer would be mistaken for that of the creation.
        let is_creating = self.is_creating(name);
        let Some(managed) = self.profiles.get_mut(name) else { return };
        let is_early = managed.publish_at.is_some_and(|at| self.now.monotonic < at);
        if managed.is_writing() || is_creating || is_early {
            return;
        }
        let object = json!({
            "apiVersion": key.kind.api_version(),
            "kind": key.kind.kind,
            "metadata": {"name": name, "uid": managed.uid},
            "status": status,
        });
        managed.publishing = Some(Box::new(status));
        let effect = Effect::ReplaceStatus { object };
        self.commands.push(Command::Write(Box::new(Write { key, served, effect, attempt: 0, backup: None })));
    }

    /// Makes the write that a judgement asks for. All that it follows from is recorded by now.
    fn write(&mut self, name: &str, next: Option<usize>) {
        let Some(managed) = self.profiles.get_mut(name) else { return };
        let item = next.zip(managed.plan.as_ref()).and_then(|(next, plan): (usize, &Plan)| plan.items.get(next));
        let Some(item) = item.filter(|_| managed.publishing.is_none() && managed.writing.is_none()) else { return };
        let Some(served) = self.discovery.kinds.find(&item.key.kind) else { return };
        let compared = &item.compared;
        let effect = match (&compared.applied, &compared.precondition) {
            (Some(object), precondition) => Effect::apply(object.clone(), precondition.clone(), true),
            (None, Precondition::Present { uid, resource_version }) => {
                Effect::Delete { uid: uid.clone(), resource_version: resource_version.clone() }
            }
            (None, _) => return,
        };
        let (key, attempt) = (item.key.clone(), managed.failures.min(3));
        managed.writing = Some((item.name.clone(), key.clone()));
        self.commands.push(Command::Write(Box::new(Write { key, served, effect, attempt, backup: None })));
    }
}

/// The key of the `VirtPlatformConfig` of a profile.
pub(super) fn key(name: &str) -> Key {
    Key { kind: kind(), namespace: String::new(), name: name.to_owned() }
}

fn is_ignored(request: &Request) -> bool {
    request.action == RequestedAction::Ignore
}

/// How many objects somebody changed after they were applied. That is so also while a changed input asks for a review.
fn drifted(judgement: &Judgement, draft: &Draft, memory: &Memory, request: &Request) -> usize {
    let (Draft::Made(plan), Phase::Drifted | Phase::ReviewRequired) = (draft, judgement.phase) else { return 0 };
    let applied = memory.applied.as_ref().filter(|applied| applied.options == request.options);
    let of_applied = applied.map_or(0, |applied| plan.drifted_from(applied).len());
    if of_applied > 0 || judgement.phase == Phase::ReviewRequired {
        return of_applied;
    }
    // Before all of the plan was applied: what was written, and is not so any more.
    let items = plan.items.iter().zip(&judgement.items);
    items.filter(|(item, judged)| !item.is_done && judged.written.is_some()).count().max(1)
}

/// What a spec asks for that wants to be left alone, whatever else it says.
fn ignoring(generation: i64) -> Request {
    Request { action: RequestedAction::Ignore, ..reviewing(generation) }
}

/// What a spec asks for that cannot be read.
fn reviewing(generation: i64) -> Request {
    Request {
        generation,
        action: RequestedAction::DryRun,
        approved_plan: None,
        continues: false,
        bypasses: false,
        corrects: false,
        wait: None,
        options: options_digest(Some(&Map::new()), None),
    }
}
