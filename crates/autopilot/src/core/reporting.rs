//! What is reported about objects: each thing once, when it changes.

use super::Core;
use super::managed::Managed;
use crate::advice;
use crate::decision::{Decision, Verdict};
use crate::documents;
use crate::evaluate::Outcome;
use crate::notice::{Drift, Notice, ObjectNotice, OverrideKind, State};
use crate::removal::Cause;
use crate::status::ObjectState;
use change::{Key, Reason};

impl Core {
    /// Reports why an object is held, and its state for metrics.
    pub(super) fn report_decision(&mut self, key: &Key, decision: &Decision) {
        let Some(object) = self.objects.get(key) else { return };
        if let Some(state) = shown_state(object, decision) {
            self.show(key, state);
        }
        self.report_overrides(key);
        if let Some(drift) = &decision.drift {
            self.report_drift(key, drift.clone());
        }
        if let Some(reason) = decision.held() {
            self.report_held(key, reason.clone());
        }
    }

    /// Reports drift that is not corrected now, unless that was reported last.
    pub(super) fn report_drift(&mut self, key: &Key, drift: Drift) {
        let Some(object) = self.objects.get_mut(key) else { return };
        if object.last_drift.as_ref() != Some(&drift) {
            object.last_drift = Some(drift.clone());
            self.report_object(key, ObjectNotice::Drifted(drift));
        }
    }

    /// Reports why an object is held, unless that was reported last.
    pub(super) fn report_held(&mut self, key: &Key, reason: Reason) {
        let Some(object) = self.objects.get_mut(key) else { return };
        if object.last_reported.as_ref().is_some_and(|last| last.is_same(&reason)) {
            return;
        }
        object.last_reported = Some(reason.clone());
        self.report_object(key, ObjectNotice::Held(reason));
    }

    /// Reports settings on an object that have no effect, each once.
    pub(super) fn advise(&mut self, key: &Key) {
        let Some(object) = self.objects.get_mut(key) else { return };
        let wanted = || documents::with_places(object.object.desired.object(), &object.object.documents);
        let advice = match object.live().filter(|_| object.removal.is_none()) {
            Some(live) => advice::about_object(key, &live.annotations, wanted),
            None => Vec::new(),
        };
        let new: Vec<String> = advice.iter().filter(|line| !object.advised.contains(line)).cloned().collect();
        object.advised = advice;
        for line in new {
            self.report_object(key, ObjectNotice::Advice(line));
        }
    }

    /// Reports that nothing can be adopted without a place for its backup.
    pub(super) fn report_no_config_maps(&mut self, key: &Key) {
        self.show(key, State::Failed);
        self.report_held(key, Reason::BackupFailed { why: "the API server does not serve ConfigMaps".to_owned() });
    }

    pub(super) fn report_object(&mut self, key: &Key, notice: ObjectNotice) {
        let live = self.objects.get(key).and_then(Managed::live);
        let uid = live.map(|live| live.uid.clone()).filter(|uid| !uid.is_empty());
        self.notify(Notice::Object(key.clone(), notice, uid));
    }

    /// Reports the overrides on an object, if they have changed.
    fn report_overrides(&mut self, key: &Key) {
        let Some(object) = self.objects.get_mut(key) else { return };
        let overrides = object.live().map(|live| OverrideKind::of(&live.annotations)).unwrap_or_default();
        if object.overrides != overrides {
            object.overrides.clone_from(&overrides);
            self.notify(Notice::Overridden(key.clone(), overrides));
        }
    }

    /// Reports the state of an object for metrics, if it has changed.
    pub(super) fn show(&mut self, key: &Key, state: State) {
        let Some(object) = self.objects.get_mut(key) else { return };
        let state = match (state, object.removal) {
            (State::Failed, Some(Cause::Tombstone)) => State::TombstoneFailed,
            (state, _) => state,
        };
        if object.shown.as_ref() != Some(&state) {
            object.shown = Some(state.clone());
            self.notify(Notice::State(key.clone(), state));
        }
    }
}

/// What [`Core::status`] needs to know of the objects.
impl Core {
    pub(crate) fn state(&self, key: &Key) -> Option<ObjectState> {
        self.objects.get(key).map(|object| object.state.clone())
    }

    /// What every asset came to when it was rendered last.
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    pub(crate) fn removal_cause(&self, key: &Key) -> Option<Cause> {
        self.objects.get(key)?.removal
    }

    /// The existing objects that are to be removed for this cause, each with its asset and state.
    pub(crate) fn objects_to_remove(&self, cause: Cause) -> impl Iterator<Item = (&Key, &str, &ObjectState)> {
        let removed = self.objects.iter().filter(move |(_, object)| object.removal == Some(cause));
        let existing = removed.filter(|(_, object)| object.live().is_some());
        existing.map(|(key, object)| (key, object.asset.as_str(), &object.state))
    }
}

/// What the decision means for metrics.
fn shown_state(object: &Managed, decision: &Decision) -> Option<State> {
    match (decision.held(), object.removal, &decision.verdict) {
        (Some(reason), None, _) => Some(State::Held(reason.clone())),
        (Some(reason), Some(cause), _) => Some(State::RemovalHeld(cause, reason.clone())),
        (None, Some(Cause::Tombstone), Verdict::InSync) if !object.is_gone() => Some(State::TombstonePresent),
        (None, None, Verdict::InSync | Verdict::TakeOver { .. }) => Some(State::InSync),
        (None, _, _) => None,
    }
}

#[cfg(test)]
mod tests;
