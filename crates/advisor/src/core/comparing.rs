//! Compares what is wanted of one object with the object as it is and as the server would make it.

use super::Core;
use super::statuses::StatusRead;
use super::targets::Seen;
use crate::overrides::{self, Honoured};
use crate::plan::{self, Compared, Removal};
use change::{Effect, Key, Live, Precondition, Restarts};
use protocol::{Command, Content, WatchTarget, WriteError};
use serde_json::Value;

/// What a plan wants of one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Aim {
    /// This content.
    Content(Value),
    /// That the profile's changes of it go.
    Removal,
    /// That it goes, if the Go operator made it: another object does the same.
    Replaced,
}

/// The comparison of one object.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) key: Key,
    aim: Aim,
    /// Whether it has the name that the Go operator gave it.
    is_former: bool,
    /// Whether its own template looks at it.
    is_looked_at: bool,
    /// Whether its operator says in its status what it made of it.
    pub(super) reports: bool,
    /// What the watch said of the object when it was read.
    content: Option<u64>,
    /// The version that was read.
    pub(super) version: Option<u128>,
    /// What was read of its status since.
    pub(super) status: StatusRead,
    /// Whether a read or a dry run is on its way.
    is_asking: bool,
    /// Whether it is read before anything is tried, because users say how far it is managed.
    is_read_first: bool,
    /// Whether users said so on it when it was read last. Its watch does not always tell: an annotation may have no owner.
    was_overridden: bool,
    /// Whether something has changed since that was sent.
    is_outdated: bool,
    /// The object as it is, once it is read: nothing if there is none.
    live: Option<Option<Value>>,
    /// What users say about it.
    honoured: Option<Honoured>,
    /// What the server would make of it.
    answer: Option<Value>,
    /// The result.
    pub(super) found: Option<Found>,
    /// Why there is none.
    pub(super) failure: Option<String>,
    /// Whether its status matters, because it is waited for.
    pub(super) is_watched_closely: bool,
    /// What a write does to nodes.
    pub(super) restarts: Option<Restarts>,
}

/// The result of a comparison.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// What is done to the object.
    Compared(Box<Compared>),
    /// It is none of the profile's, so there is nothing to remove: the object as it is, if there is one.
    NotOurs(Option<Box<Value>>),
}

impl Work {
    pub(super) fn new(key: Key, aim: Aim, [is_former, is_looked_at, reports]: [bool; 3]) -> Work {
        Work {
            key,
            aim,
            is_former,
            is_looked_at,
            reports,
            content: None,
            version: None,
            status: StatusRead::default(),
            is_asking: false,
            is_read_first: false,
            was_overridden: false,
            is_outdated: false,
            live: None,
            honoured: None,
            answer: None,
            found: None,
            failure: None,
            is_watched_closely: false,
            restarts: None,
        }
    }

    /// Whether it is about this.
    pub(super) fn is_about(&self, key: &Key, aim: &Aim) -> bool {
        self.key == *key && self.aim == *aim
    }

    /// Forgets the result: the object is compared again, once what is on its way has arrived.
    pub(super) fn restart(&mut self) {
        if self.is_asking {
            self.is_outdated = true;
            return;
        }
        (self.live, self.answer, self.found, self.failure) = (None, None, None, None);
        (self.honoured, self.restarts) = (None, None);
    }

    /// The version that was read says nothing any more: the object is compared again.
    pub(super) fn forget_version(&mut self) {
        (self.version, self.status) = (None, StatusRead::default());
        self.restart();
    }

    /// Whether an object that is waited for may have changed since it was read.
    pub(super) fn is_older_than(&self, seen: Option<&Seen>) -> bool {
        self.is_watched_closely && seen.is_some_and(|seen| seen.version > self.version)
    }

    /// What a dry run has to try, once the object is read; nothing if it needs none.
    fn to_try(&self) -> Option<Value> {
        match (&self.aim, &self.honoured) {
            _ if self.live.is_none() => None,
            (Aim::Removal | Aim::Replaced, _) | (_, Some(Honoured::Skipped(_))) => None,
            (Aim::Content(_), Some(Honoured::Written { wanted: Some(wanted), .. })) => Some(wanted.clone()),
            (Aim::Content(wanted), _) => Some(wanted.clone()),
        }
    }

    /// Takes a result, if everything is there.
    fn compare(&mut self, profile: &str) {
        let Some(live) = &self.live else { return };
        let found = match (&self.aim, live) {
            (aim, Some(_)) if let Some(Honoured::Skipped(why)) = &self.honoured => {
                Found::Compared(Box::new(plan::skipped(why, !matches!(aim, Aim::Content(_)))))
            }
            (Aim::Content(wanted), live) => {
                let Some(answer) = &self.answer else { return };
                let wanted = match &self.honoured {
                    Some(Honoured::Written { wanted: Some(wanted), .. }) => wanted,
                    _ => wanted,
                };
                Found::Compared(Box::new(plan::compare(
                    profile,
                    &self.key,
                    wanted,
                    live.as_ref(),
                    answer,
                    [self.is_former, self.is_looked_at, self.reports],
                )))
            }
            (Aim::Removal | Aim::Replaced, None) => Found::NotOurs(None),
            (Aim::Replaced, Some(live)) if !plan::is_of_advisor(live) => Found::NotOurs(Some(Box::new(live.clone()))),
            (Aim::Replaced, Some(live)) if is_deleted(live) => Found::Compared(Box::new(plan::being_deleted())),
            (Aim::Replaced, Some(live)) => Found::Compared(Box::new(plan::deletion(&self.key, live))),
            (Aim::Removal, Some(live))
                if is_deleted(live) && plan::removal(profile, &self.key, live, self.is_former).is_some() =>
            {
                Found::Compared(Box::new(plan::being_deleted()))
            }
            (Aim::Removal, Some(live)) => match (plan::removal(profile, &self.key, live, self.is_former), &self.answer)
            {
                (None, _) => Found::NotOurs(Some(Box::new(live.clone()))),
                (Some(Removal::Delete), _) => Found::Compared(Box::new(plan::deletion(&self.key, live))),
                (Some(Removal::Restore(restoring)), Some(answer)) => {
                    Found::Compared(Box::new(plan::restoration(&self.key, &restoring, live, answer)))
                }
                (Some(Removal::Restore(_)), None) => return,
                (Some(Removal::Leave(version)), _) => Found::Compared(Box::new(plan::untranslated(live, &version))),
            },
        };
        let found = match (found, self.honoured.take()) {
            (Found::Compared(compared), Some(Honoured::Written { note, hold, .. })) => {
                Found::Compared(Box::new(compared.said(note, hold)))
            }
            (found, _) => found,
        };
        // The whole objects are large, and not needed any more.
        (self.live, self.answer, self.found) = (None, None, Some(found));
    }
}

/// Whether somebody has deleted an object that is kept by a finalizer.
fn is_deleted(live: &Value) -> bool {
    !live["metadata"]["deletionTimestamp"].is_null()
}

impl Core {
    /// Goes on with the comparison of an item; whether its result is there and about the object as it is.
    pub(super) fn go_on_comparing(&mut self, profile: &str, item: &str) -> bool {
        let Some(work) = self.profiles.get_mut(profile).and_then(|managed| managed.work.get_mut(item)) else {
            return false;
        };
        let target = WatchTarget::of(&work.key);
        if !self.watches.is_open(&target) {
            self.watch(&target, Content::Metadata);
            return false;
        }
        if !self.watches.is_listed(&target) {
            // What was found before the watch was lost counts until it says otherwise.
            return work.found.is_some() && !work.is_asking;
        }
        let seen = self.targets.get(&work.key);
        let is_news = seen.is_none_or(|seen| seen.version > work.version);
        let is_older = work.is_older_than(seen);
        let is_overridden = seen.is_some_and(|seen| seen.is_overridden);
        let seen = seen.map(|seen| seen.content);
        if work.content != seen && !is_news {
            // The watch reports what was read before.
            work.content = seen;
        }
        let is_changed = (work.found.is_some() || work.is_asking) && work.content != seen;
        if is_changed || (work.found.is_some() && is_older) {
            work.restart();
        }
        if work.is_asking {
            return false;
        }
        if work.found.is_some() {
            self.follow_status(profile, item);
            return true;
        }
        if work.failure.is_some() {
            return false;
        }
        if self.asked.contains_key(&work.key) {
            return false;
        }
        let Some(served) = self.watches.served(&target) else { return false };
        (work.content, work.is_asking, work.is_outdated) = (seen, true, false);
        work.is_read_first = is_overridden || work.was_overridden;
        let key = work.key.clone();
        match seen {
            Some(_) => {
                *self.asked.entry(key.clone()).or_default() += 1;
                self.commands.push(Command::Inspect { key: key.clone(), served: served.clone() });
            }
            None => work.live = Some(None),
        }
        match (&work.aim, seen) {
            // What is tried depends on what users say on it.
            (Aim::Content(_), Some(_)) if work.is_read_first => false,
            (Aim::Content(wanted), _) => {
                let effect = Effect::apply(wanted.clone(), Precondition::None, true);
                *self.asked.entry(key.clone()).or_default() += 1;
                self.commands.push(Command::Preview { key, served, effect });
                false
            }
            (Aim::Removal | Aim::Replaced, None) => {
                work.is_asking = false;
                work.compare(profile);
                true
            }
            (Aim::Removal | Aim::Replaced, Some(_)) => false,
        }
    }

    /// Takes an object that was read.
    pub(super) fn inspected(&mut self, key: &Key, found: &Result<Option<(Live, Value)>, String>) {
        let content = found.as_ref().map(|found| found.as_ref().map(|(_, content)| content));
        self.configuration_read(key, content.map_err(String::as_str));
        self.advertised_read(key, found);
        self.answered_about(key);
        self.status_read(key, found);
        let mut commands = Vec::new();
        for (name, managed) in &mut self.profiles {
            // Also a comparison that has waited for this answer goes on.
            if managed.work.values().any(|work| work.key == *key) {
                self.due.insert(name.clone());
            }
            for work in managed.work.values_mut().filter(|work| work.key == *key && work.is_asking) {
                if work.live.is_some() {
                    continue;
                }
                match found {
                    Ok(found) => {
                        work.version = found.as_ref().and_then(|(live, _)| live.version());
                        work.live = Some(found.as_ref().map(|(_, content)| content.clone()));
                    }
                    Err(why) => work.failure = Some(format!("could not read {key}: {why}")),
                }
                work.was_overridden = matches!(&work.live, Some(Some(content)) if overrides::are_on(content));
                if let Some(Some(content)) = &work.live
                    && work.was_overridden
                {
                    let wanted = match &work.aim {
                        Aim::Content(wanted) => Some(wanted),
                        Aim::Removal | Aim::Replaced => None,
                    };
                    work.honoured = Some(overrides::honoured(key, wanted, content, &self.config.patchable));
                }
                if work.is_read_first
                    && let Some(wanted) = work.to_try()
                    && let Some(served) = self.watches.served(&WatchTarget::of(key))
                {
                    let effect = Effect::apply(wanted, Precondition::None, true);
                    *self.asked.entry(key.clone()).or_default() += 1;
                    commands.push(Command::Preview { key: key.clone(), served, effect });
                    continue;
                }
                if !work.is_read_first && work.honoured.is_some() && matches!(work.aim, Aim::Content(_)) {
                    // Its watch has not reported that, so something else was tried.
                    work.is_outdated = true;
                }
                if work.aim == Aim::Removal
                    && !matches!(work.honoured, Some(Honoured::Skipped(_)))
                    && let Some(Some(live)) = &work.live
                    && !is_deleted(live)
                    && let Some(Removal::Restore(restoring)) = plan::removal(name, key, live, work.is_former)
                    && let Some(served) = self.watches.served(&WatchTarget::of(key))
                {
                    let effect = Effect::apply(restoring, Precondition::None, true);
                    *self.asked.entry(key.clone()).or_default() += 1;
                    commands.push(Command::Preview { key: key.clone(), served, effect });
                    continue;
                }
                finish(work, name);
            }
        }
        self.commands.extend(commands);
    }

    /// One of the reads and dry runs of an object is answered.
    fn answered_about(&mut self, key: &Key) {
        if let Some(left) = self.asked.get_mut(key) {
            *left -= 1;
            if *left == 0 {
                self.asked.remove(key);
            }
        }
    }

    /// Takes what the server would make of an object.
    pub(super) fn previewed(&mut self, key: &Key, result: &Result<Value, WriteError>) {
        self.answered_about(key);
        for (name, managed) in &mut self.profiles {
            for work in managed.work.values_mut().filter(|work| work.key == *key && work.is_asking) {
                match result {
                    Ok(answer) => work.answer = Some(answer.clone()),
                    Err(error) => work.failure = Some(format!("{error}{}", remedy(error))),
                }
                finish(work, name);
            }
            self.due.insert(name.clone());
        }
    }
}

/// What helps against a dry run that fails.
fn remedy(error: &WriteError) -> &'static str {
    match error {
        WriteError::Refused { code: 403, .. } => {
            "; change the policy or the webhook that denies it, or give the advisor the right (its role: virtpilot rbac)"
        }
        WriteError::Refused { .. } | WriteError::KeyChanged { .. } => {
            "; correct the object or the webhook that refuses it, or choose other options"
        }
        WriteError::Stale(_) | WriteError::NoBackup { .. } | WriteError::Transient { .. } => {
            "; it is tried again, see that the API server and its webhooks answer"
        }
    }
}

/// Ends the asking once everything is there, or something has failed.
fn finish(work: &mut Work, profile: &str) {
    work.compare(profile);
    if work.found.is_some() || work.failure.is_some() {
        work.is_asking = false;
        if std::mem::take(&mut work.is_outdated) {
            work.restart();
        }
    }
}
