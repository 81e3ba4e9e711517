//! What holds of every write of the advisor, checked where the server makes it: a plan is written as it was shown, once, and after it was approved.

use crate::before::unmarked;
use crate::identity::FIELD_MANAGER;
use crate::plan;
use api::advisor::{Remediation, VirtPlatformConfig, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use change::{Effect, diff};
use protocol::{Body, Event, WatchEvent, Write};
use serde_json::Value;
use server_model::stored::Stored;
use std::collections::{BTreeMap, BTreeSet};

/// What was shown, what people did, and what was written.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// The diff of each item of every plan that was ever shown, by the digest of the plan.
    shown: BTreeMap<String, BTreeMap<String, String>>,
    /// What the spec of a profile says of approval, and how often a person has changed that.
    last_act: BTreeMap<String, (api::advisor::Action, Option<String>)>,
    approvals: BTreeMap<String, usize>,
    /// The inputs of these plans.
    inputs: BTreeMap<String, BTreeMap<String, String>>,
    /// The specs as the core knows them.
    known: BTreeMap<String, VirtPlatformConfigSpec>,
    /// The HyperConverged as the core knows it.
    hco: Value,
    /// The kinds whose watch the core knows to be lost.
    lost: BTreeSet<String>,
    /// The profile, the plan and the item of each write that is on its way, by object.
    sent: BTreeMap<String, (String, String)>,
    /// The statuses on the server.
    statuses: BTreeMap<String, VirtPlatformConfigStatus>,
    /// The items that were written, with the plan that was approved.
    written: BTreeSet<(String, String, String, usize)>,
    /// How many writes of objects were checked.
    pub(crate) checked: usize,
    /// How many of them had to be exactly what a plan has shown, once.
    pub(crate) strict: usize,
    /// Objects whose last write was made, and its answer lost.
    unanswered: BTreeSet<String>,
}

/// What users say on an object holds for a write.
fn honours(before: &Value, after: Option<&Value>) -> Result<(), String> {
    let said = |key: &str| before["metadata"]["annotations"][format!("platform.kubevirt.io/{key}")].as_str();
    if said("mode") == Some("unmanaged") {
        return Err("an object is written that is unmanaged".to_owned());
    }
    let ignored = said("ignore-fields").and_then(|field| Some((before.pointer(field)?, after?.pointer(field))));
    match ignored {
        Some((before, after)) if Some(before) != after => Err(format!("{before} is ignored, and becomes {after:?}")),
        _ => Ok(()),
    }
}

impl Promises {
    /// A person has changed the spec of a profile.
    pub(crate) fn acted(&mut self, profile: &str, object: &Value) {
        let config: VirtPlatformConfig = serde_json::from_value(object.clone()).expect("it can be read");
        let approval = (config.spec.action, config.spec.approved_plan.clone());
        let last = self.last_act.get(profile);
        // To name no plan any more approves nothing.
        let is_cleared = last.is_some_and(|last| last.0 == approval.0) && approval.1.is_none();
        if last != Some(&approval) && !is_cleared {
            *self.approvals.entry(profile.to_owned()).or_default() += 1;
            self.last_act.insert(profile.to_owned(), approval);
        }
    }

    /// The core gets to know this.
    pub(crate) fn delivered(&mut self, events: &[Event]) {
        for event in events {
            let Event::Watched(target, event) = event else { continue };
            match event {
                WatchEvent::Present { body: Body::Whole(object), name, .. }
                    if target.kind.kind == "VirtPlatformConfig" =>
                {
                    let spec = serde_json::from_value(object["spec"].clone()).expect("it can be read");
                    self.known.insert(name.clone(), spec);
                }
                WatchEvent::Present { body: Body::Whole(object), .. } => self.hco.clone_from(object),
                WatchEvent::Lost { .. } => drop(self.lost.insert(target.kind.kind.clone())),
                WatchEvent::Listed { .. } => drop(self.lost.remove(&target.kind.kind)),
                _ => {}
            }
        }
    }

    /// What the core knows is not outdated, as it may be while nobody watches it.
    fn check_watches(&self, write: &Write) {
        for kind in ["VirtPlatformConfig", "HyperConverged"] {
            assert!(!self.lost.contains(kind), "nobody watches objects of the kind {kind}: {write:?}");
        }
        let restarts = write.key.kind.kind == "MachineConfig";
        assert!(!restarts || !self.lost.contains("MachineConfigPool"), "nobody watches the pools: {write:?}");
    }

    /// What an object is derived from is so as it was when the plan was approved.
    fn check_inputs(&self, write: &Write, spec: &VirtPlatformConfigSpec, digest: &str) {
        let is_derived = write.key.name == "limits" && matches!(write.effect, Effect::Apply { .. });
        if !is_derived || spec.rollback == Some(true) {
            return;
        }
        let limit = &self.hco["spec"]["limit"];
        let limit = if limit.is_null() { "not set".to_owned() } else { limit.to_string() };
        let approved = self.inputs.get(digest).and_then(|inputs| inputs.get("limit"));
        assert!(approved.is_none_or(|approved| *approved == limit), "{approved:?} is {limit} now: {write:?}");
    }

    /// The core sends this.
    pub(crate) fn sent(&mut self, write: &Write) {
        let Some((profile, status)) = self.profile_of(write) else { return };
        let spec = &self.known[&profile];
        assert_eq!(spec.action, api::advisor::Action::Apply, "only Apply writes: {write:?}");
        let Some(approved) = status.approved.as_ref() else {
            panic!("an approval is recorded before a write: {write:?}\n{status:#?}")
        };
        let corrects = spec.bypass_optimistic_lock || spec.remediation == Some(Remediation::Automatic);
        self.check_watches(write);
        if !corrects {
            self.check_inputs(write, spec, &approved.digest);
        }
        if let Some(digest) = spec.approved_plan.as_ref().filter(|_| !corrects) {
            assert_eq!(approved.digest, *digest, "the plan that the spec names is written, and no other");
        }
        self.sent.insert(write.key.to_string(), (profile, approved.digest.clone()));
    }

    /// A write was made, and its answer is lost.
    pub(crate) fn unanswered(&mut self, write: &Write) {
        self.unanswered.insert(write.key.to_string());
    }

    /// A new process knows nothing.
    pub(crate) fn restart(&mut self) {
        self.known.clear();
        self.lost.clear();
        self.hco = Value::Null;
    }

    /// The server was restored and has these objects: what was written since is not written.
    pub(crate) fn restored<'a>(&mut self, objects: impl Iterator<Item = &'a Stored>) {
        self.written.clear();
        self.statuses.clear();
        for stored in objects.filter(|stored| stored.object["kind"] == "VirtPlatformConfig") {
            let config: VirtPlatformConfig = serde_json::from_value(stored.object.clone()).expect("it can be read");
            self.statuses.insert(config.spec.profile, config.status.unwrap_or_default());
        }
    }

    /// The server has made a write.
    pub(crate) fn made(
        &mut self,
        write: &Write,
        before: Option<&Stored>,
        after: Option<&Stored>,
    ) -> Result<(), String> {
        if write.key.kind.kind == "VirtPlatformConfig" {
            self.published(write, after);
            return Ok(());
        }
        let Some((profile, digest)) = self.sent.get(&write.key.to_string()).cloned() else { return Ok(()) };
        if before == after {
            return Ok(());
        }
        // An object that a finalizer keeps goes later.
        let is_deletion = matches!(write.effect, Effect::Delete { .. });
        let after = after.filter(|_| !is_deletion);
        let api_version = write.key.kind.api_version();
        let whole = |stored: Option<&Stored>| stored.map(|stored| unmarked(&stored.whole(&api_version)));
        let (before, after) = (whole(before), whole(after));
        let made = match (&before, &after) {
            (Some(before), None) => diff::text(&plan::deletion(&write.key, before).diff),
            (_, after) => {
                diff::text(&diff::of_answer(before.as_ref(), after.as_ref().unwrap_or(&Value::Null), FIELD_MANAGER))
            }
        };
        if let Some(before) = &before {
            honours(before, after.as_ref())?;
        }
        let item = self.item_of(&profile, &write.key.name).ok_or(format!("{} is no item", write.key))?;
        let spec = &self.known.get(&profile);
        let corrects =
            spec.is_none_or(|spec| spec.bypass_optimistic_lock || spec.remediation == Some(Remediation::Automatic));
        let shown = self.shown.get(&digest).and_then(|plan| plan.get(&item)).cloned().unwrap_or_default();
        // Drift that is corrected is shown by no plan, but nothing is deleted and no node restarts that no plan has named.
        if corrects && shown.is_empty() && (is_deletion || write.key.kind.kind == "MachineConfig") {
            return Err(format!("{item} of {digest} does\n{made}and was never shown"));
        }
        if !corrects {
            if shown != made {
                return Err(format!("{item} of {digest} does\n{made}and was shown as\n{shown}"));
            }
            let approvals = self.approvals.get(&profile).copied().unwrap_or_default();
            // Somebody deleted it before it could be known that it was made: that is the same as if it had not arrived.
            let is_unknown = self.unanswered.remove(&write.key.to_string()) && before.is_none();
            if !self.written.insert((profile.clone(), digest.clone(), item.clone(), approvals)) && !is_unknown {
                return Err(format!("{item} of {digest} is written twice"));
            }
            self.strict += 1;
        }
        self.checked += 1;
        Ok(())
    }

    fn published(&mut self, write: &Write, after: Option<&Stored>) {
        let Some(after) = after.filter(|_| matches!(write.effect, Effect::ReplaceStatus { .. })) else { return };
        let config: VirtPlatformConfig = serde_json::from_value(after.object.clone()).expect("it can be read");
        let status = config.status.unwrap_or_default();
        if let Some(digest) = &status.plan_digest {
            let diffs = status.items.iter().map(|item| (item.name.clone(), item.diff.clone().unwrap_or_default()));
            // The first time it is shown it is what it was approved as; later its items are done one after the other.
            self.shown.entry(digest.clone()).or_insert_with(|| diffs.collect());
            let inputs = status.inputs.iter().map(|input| (input.name.clone(), input.value.clone()));
            self.inputs.entry(digest.clone()).or_insert_with(|| inputs.collect());
        }
        self.statuses.insert(write.key.name.clone(), status);
    }

    /// The profile that writes an object, with its status.
    fn profile_of(&self, write: &Write) -> Option<(String, &VirtPlatformConfigStatus)> {
        if write.key.kind.kind == "VirtPlatformConfig" || write.key.name == "virt-advisor-state" {
            return None;
        }
        let annotated = match &write.effect {
            Effect::Apply { object, .. } => {
                object.value()["metadata"]["annotations"][crate::identity::PROFILE].as_str().map(str::to_owned)
            }
            _ => None,
        };
        let is_of = |(_, status): &(&String, &VirtPlatformConfigStatus)| {
            status.items.iter().any(|item| item.target_ref.name == write.key.name)
        };
        let profile = annotated.or_else(|| self.statuses.iter().find(is_of).map(|(name, _)| name.clone()))?;
        let status = self.statuses.get(&profile)?;
        Some((profile, status))
    }

    fn item_of(&self, profile: &str, object: &str) -> Option<String> {
        let status = self.statuses.get(profile)?;
        status.items.iter().find(|item| item.target_ref.name == object).map(|item| item.name.clone())
    }
}
