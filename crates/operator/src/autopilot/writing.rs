//! From an effect to a write, and from its answer to what is remembered of it.

use super::engine::Engine;
use super::item::Repair;
use super::places::Place;
use autopilot::{Budget, Effect, Origin, Refused, Remembered, Tell};
use change::{Digest, Key, Kind, Reason, content};
use cluster::act::{self, Act, Acted};
use cluster::backup;
use serde_json::Value;
use std::time::Instant;

/// The watch tells of a newer version, as a rule at once; if it does not after so many tries, the object is read.
const READ_AFTER: u32 = 2;
/// A failure that may pass is told when it has not after so many tries.
const TELL_AFTER: u32 = 4;

/// A write that has ended.
pub(super) struct Done {
    pub(super) key: Key,
    effect: Kept,
    tell: Option<Tell>,
    outcome: Result<Acted, act::Error>,
    /// What an adoption changed, in words.
    changes: Vec<String>,
}

/// What is to be remembered of a write that succeeded.
pub(super) enum Kept {
    Applied { digest: Digest, budget: Budget, deletions: Option<Budget>, origin: Option<Origin>, adopts: bool },
    Annotated { budget: Budget },
    Repaired,
    Released,
    Deleted,
    HandedBack,
}

impl Engine {
    pub(super) fn start_write(&mut self, key: &Key, effect: Effect, tell: Option<Tell>) {
        let Some(item) = self.items.get_mut(key) else { return };
        // After a failure the same is not tried again at once, whatever happens; something else is.
        let is_something_else = |effect: &Effect| match (effect, &item.failed) {
            (Effect::Apply { digest, .. }, Some(failed)) => digest != failed,
            _ => false,
        };
        if item.not_before.is_some_and(|moment| Instant::now() < moment) && !is_something_else(&effect) {
            return;
        }
        let (act, kept) = match effect {
            // The next apply after it succeeds.
            Effect::Apply { object, .. } if item.repair == Repair::Due => {
                let Act::Apply(text) = Act::apply(object, item.guard()) else { return };
                (Act::Repair(text), Kept::Repaired)
            }
            Effect::Apply { object, digest, budget, deletions, origin, adopts } => {
                (Act::apply(object, item.guard()), Kept::Applied { digest, budget, deletions, origin, adopts })
            }
            Effect::Delete { uid, resource_version } => (Act::Delete { uid, resource_version }, Kept::Deleted),
            Effect::HandBack { patch } => (Act::HandBack(patch), Kept::HandedBack),
            Effect::Release { patch } => (Act::Patch(patch), Kept::Released),
            Effect::Annotate { annotations, resource_version, budget } => {
                (Act::Annotate { annotations, resource_version }, Kept::Annotated { budget })
            }
        };
        self.send(key, act, kept, tell);
    }

    fn send(&mut self, key: &Key, act: Act, effect: Kept, tell: Option<Tell>) {
        let (Some(item), Some(served)) = (self.items.get_mut(key), self.places.served(&Place::of(key))) else { return };
        item.busy = true;
        let now = (self.settings.clock)().as_millisecond();
        let record = match &effect {
            Kept::Applied { deletions: Some(left), .. } if left.is_worn(now) => {
                self.deletions.insert(key, *left);
                self.deletions.record(&self.kinds, now)
            }
            _ => None,
        };
        let (server, permit, key, tries) =
            (self.server.clone(), self.settings.permit.clone(), key.clone(), item.failures);
        let is_adoption = matches!(effect, Kept::Applied { adopts: true, .. });
        let backup = self.kinds.find(&Kind::new("v1", "Secret")).filter(|_| is_adoption);
        let namespace = self.settings.namespace.clone();
        self.writes.spawn(async move {
            if let Some(record) = record {
                // Before it is created: whoever kills us then gives nobody a new budget.
                record.write(&server, &permit).await;
            }
            let mut changes = Vec::new();
            if is_adoption && backup.is_none() {
                let words = "the API server does not serve Secrets".to_owned();
                let outcome = Err(act::Error::NoBackup { key: key.clone(), words });
                return Done { key, effect, tell, outcome, changes };
            }
            if let (Some(secrets), Act::Apply(wanted)) = (backup, &act) {
                match cluster::backup::take(&server, &permit, &secrets, &namespace, &served, &key).await {
                    Ok(before) => changes = changed(wanted, &before),
                    Err(error) => {
                        let outcome = Err(no_backup(&key, error));
                        return Done { key, effect, tell, outcome, changes };
                    }
                }
            }
            let outcome = act::act(&server, &permit, &served, &key, act, tries).await;
            Done { key, effect, tell, outcome, changes }
        });
    }

    /// Takes the answer to a write, says what was done, and looks again.
    pub(super) fn finish(&mut self, done: Done) {
        let Done { key, effect, mut tell, outcome, changes } = done;
        let now = (self.settings.clock)().as_millisecond();
        let Some(item) = self.items.get_mut(&key) else { return };
        item.busy = false;
        let is_adoption = matches!(effect, Kept::Applied { adopts: true, .. });
        let is_over = matches!(effect, Kept::HandedBack);
        match outcome {
            Ok(acted) => {
                (item.not_before, item.failed) = (None, None);
                match effect {
                    Kept::Applied { digest, budget, deletions, origin, adopts } => {
                        (item.failures, item.repair, item.budget) = (0, Repair::None, Some(budget));
                        item.deletions = deletions.or(item.deletions);
                        item.refused.retain(|refused| refused.digest != digest);
                        // What was begun and had to be repaired first is told as what it was.
                        tell = item.owed.take().or(tell);
                        if adopts {
                            tell = Some(Tell::Adopted { changes });
                        }
                        if let Some(live) = &acted.live {
                            let claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
                            item.remembered = Some(Remembered { digest, claim, uid: live.uid.clone(), origin });
                        }
                        item.inspected = None;
                    }
                    Kept::Annotated { budget } => item.budget = Some(budget),
                    Kept::Repaired => (item.repair, tell) = (Repair::Done, None),
                    Kept::Released | Kept::HandedBack => {}
                    Kept::Deleted => {
                        // It is gone when whoever keeps it has let go; then it is told.
                        item.owed = tell.take();
                        if acted.live.is_none() {
                            item.miss(None, now);
                        }
                        // We did it: that costs nobody anything.
                        (item.deletions, item.dropped) = (None, Vec::new());
                    }
                }
                if let Some(live) = acted.live {
                    item.see(live);
                }
                match tell {
                    Some(Tell::Held(reason)) => self.say_held(&key, reason),
                    Some(tell) => self.say(&key, &tell),
                    None => {}
                }
                if is_over {
                    return self.forget(&key);
                }
                self.look_at(&key);
            }
            // What is somebody else's is not taken apart to make room for ours.
            Err(act::Error::KeyChanged { .. }) if item.repair == Repair::None && !is_adoption => {
                (item.repair, item.owed) = (Repair::Due, tell);
                self.look_at(&key);
            }
            Err(error) => self.fail(&key, effect, error),
        }
    }

    /// Waits before the same is tried again; what the server refused is told.
    fn fail(&mut self, key: &Key, effect: Kept, error: act::Error) {
        let Some(item) = self.items.get_mut(key) else { return };
        let refused =
            matches!(error, act::Error::Refused { .. } | act::Error::KeyChanged { .. } | act::Error::NoBackup { .. });
        // What is wrong with the object itself, and not with who writes it.
        let is_wrong =
            matches!(error, act::Error::Refused { code: 400 | 413 | 422, .. } | act::Error::KeyChanged { .. });
        let wait = item.wait(refused);
        if refused && item.repair != Repair::None {
            // It did not help this time; what is tried next may need another.
            item.repair = Repair::None;
        }
        item.failed = match effect {
            Kept::Applied { digest, .. } => Some(digest),
            Kept::Annotated { .. } | Kept::Repaired | Kept::Released | Kept::Deleted | Kept::HandedBack => None,
        };
        tracing::debug!(asset = item.asset, "{error}; the next try is in {} ms", wait.as_millis());
        let failures = item.failures;
        if !matches!(error, act::Error::Stale(_)) || failures >= READ_AFTER {
            item.not_before = Some(Instant::now() + wait);
        }
        self.look_later(key, wait);
        if matches!(error, act::Error::Stale(_)) {
            if failures >= READ_AFTER {
                self.read(key.clone(), wait);
            }
            return;
        }
        if let act::Error::NoBackup { words, .. } = error {
            self.settings.metrics.failed(key);
            return self.say_held(key, Reason::BackupFailed { why: words });
        }
        let words = match error {
            act::Error::Refused { words, .. } | act::Error::KeyChanged { words, .. } => words,
            // It may pass; if it does not, somebody should know.
            act::Error::Passing { words, .. } if failures >= TELL_AFTER => words,
            act::Error::Passing { .. } | act::Error::Stale(_) | act::Error::NoBackup { .. } => return,
        };
        let Some(item) = self.items.get_mut(key) else { return };
        match (&item.failed, is_wrong) {
            // With the user's wishes left out it may be accepted; the next decision tells, and waits if it is the same.
            (Some(digest), true) => {
                item.refuse(Refused { digest: digest.clone(), words });
                self.look_at(key);
            }
            _ => {
                self.settings.metrics.failed(key);
                self.say_held(key, Reason::RefusedByServer { words });
            }
        }
    }
}

/// Why there is no copy: what may pass is tried again soon.
fn no_backup(key: &Key, error: backup::Error) -> act::Error {
    let (key, words) = (key.clone(), error.to_string());
    match error {
        backup::Error::Gone(_) => act::Error::Stale(key),
        backup::Error::Read { source, .. } if !source.is_refusal() => act::Error::Passing { key, words },
        backup::Error::Write { source: source @ (act::Error::Passing { .. } | act::Error::Stale(_)), .. } => source,
        backup::Error::Write { source, .. } => act::Error::NoBackup { key, words: source.to_string() },
        backup::Error::Read { .. } | backup::Error::TooLarge { .. } => act::Error::NoBackup { key, words },
    }
}

/// What applying this changes about an object as it was, in words.
fn changed(wanted: &str, before: &Value) -> Vec<String> {
    let wanted: Value = serde_json::from_str(wanted).unwrap_or_default();
    let mut changes = content::changes(&wanted, before, false);
    // What we write on every object goes without saying.
    changes.retain(|change| !change.path.contains(api::annotation::PREFIX));
    content::words(&changes)
}
