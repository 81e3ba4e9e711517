//! Why an asset or an object is in its state: every gate in order, from the same values that the decisions are made of.

use super::Core;
use super::conditions::conditions;
use super::managed::{Known, Managed, Policy};
use crate::budget::Budget;
use crate::decide::{held_by_user, is_stamp};
use crate::effective::EffectiveDesired;
use crate::evaluate::Outcome;
use crate::evaluate::gates::{GateKind, GateOutcome, GateRow, gates};
use crate::ownership::{Origin, Ownership};
use crate::removal::overrides_of;
use crate::state_word::StateWord;
use crate::status::{LineState, ObjectState, StatusLine};
use api::annotation;
use change::consent::Needed;
use change::gate::PoolState;
use change::{Impact, Key, Live, Reason, Restarts, Window, redact};
use serde::Serialize;
use std::collections::BTreeSet;

/// Why an asset or an object is in its state.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The line that `status` shows.
    pub line: StatusLine,
    /// Its state in one word.
    pub word: StateWord,
    /// Every gate, in order.
    pub gates: Vec<GateRow>,
    /// The annotations of users on the object, with secrets redacted.
    pub overrides: Vec<(String, String)>,
    /// Who owns fields of the object.
    pub owners: Vec<Owner>,
    /// Settings on the object or the HyperConverged that have no effect.
    pub advice: Vec<String>,
}

/// A field manager of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Its name.
    pub manager: String,
    /// Whether it applies, and so objects to other values.
    pub applies: bool,
    /// When it last wrote.
    pub time: String,
    /// Some of its fields.
    pub fields: Vec<String>,
    /// The number of its fields.
    pub count: usize,
}

/// More fields of one manager are counted.
const SHOWN_FIELDS: usize = 6;

impl Core {
    /// Settings that have no effect, on the HyperConverged and on the objects that assets render now. The object of an asset that cannot be
    /// rendered is kept by an operator that has managed it before, and nobody else knows of it.
    pub fn advice(&self) -> Vec<String> {
        let rendered: BTreeSet<&Key> = self.outcomes.iter().filter_map(Outcome::rendered).collect();
        let objects = self.objects.iter().filter(|(key, _)| rendered.contains(key));
        let on_objects =
            objects.flat_map(|(key, object)| object.advised.iter().map(move |line| format!("{key}: {line}")));
        self.advice.iter().cloned().chain(on_objects).collect()
    }

    /// Explains every line of `status` that a predicate selects. An asset without an object here is also found by the object that it would
    /// have.
    pub fn explain(&self, is_asked: impl Fn(&StatusLine) -> bool) -> Vec<Explanation> {
        let evaluation = self.evaluation();
        let lines = self.status().into_iter().map(|line| {
            let outcome = evaluation.outcomes.iter().find(|outcome| outcome.asset == line.asset);
            let managed = line.key.clone();
            let key = managed.clone().or_else(|| outcome?.key.clone());
            (StatusLine { key, ..line }, managed, outcome)
        });
        lines
            .filter(|(line, ..)| is_asked(line))
            .map(|(line, managed, outcome)| {
                let mut rows =
                    outcome.map(|outcome| gates(&self.catalog, &self.facts, &evaluation, outcome)).unwrap_or_default();
                let object = managed.and_then(|key| self.objects.get(&key));
                if let Some(object) = object {
                    self.add_object_gates(object, &mut rows);
                }
                if let LineState::Object(ObjectState::Held(reason)) = &line.state {
                    mark(&mut rows, reason);
                }
                let live = object.and_then(Managed::live);
                Explanation {
                    word: StateWord::of(&line.state),
                    overrides: live
                        .zip(line.key.as_ref())
                        .map(|(live, key)| overrides_of(&key.kind, live))
                        .unwrap_or_default(),
                    owners: live.map(owners).unwrap_or_default(),
                    advice: self
                        .advice
                        .iter()
                        .chain(object.iter().flat_map(|object| &object.advised))
                        .cloned()
                        .collect(),
                    gates: rows,
                    line,
                }
            })
            .collect()
    }

    /// Adds the gates of one object. Those of a removal are few: its reason is the gate.
    fn add_object_gates(&self, object: &Managed, rows: &mut Vec<GateRow>) {
        let outlook = self.outlook(&object.object.key);
        let policy = Policy { outlook: outlook.as_ref(), ..self.policy(&object.object.key) };
        if object.removal.is_some() {
            let value = if policy.prune { "the operator prunes" } else { "the operator runs with --prune=false" };
            let outcome = if policy.prune { GateOutcome::Open } else { GateOutcome::Closed };
            if object.live().is_some() {
                rows.push(GateRow::new(GateKind::Removal, "not wanted any more", value, outcome));
            }
            return;
        }
        let is_stopped = rows.iter().any(|row| row.decides);
        let open = if is_stopped { GateOutcome::NotReached } else { GateOutcome::Open };
        match &object.live {
            Known::Unknown => {
                return rows.push(GateRow::new(GateKind::Object, "the object", "not read", GateOutcome::Unknown));
            }
            Known::Absent(_) => rows.push(GateRow::new(GateKind::Object, "the object", "does not exist", open)),
            Known::Present(live) => self.add_gates_of_existing(object, live, policy, open, rows),
        }
        self.add_restart_gates(object, policy, open, rows);
        let budget = object.live().and_then(|live| live.annotations.get(annotation::BUDGET)).map(String::as_str);
        let budget = Budget::read(budget, self.now.wall).at_most(object.budget, self.now.wall);
        let left = if budget.spend(self.now.wall).is_some() { "some are left" } else { "none are left" };
        rows.push(GateRow::new(GateKind::Budget, "corrections", left, open));
        let answer = match object.refused.last() {
            Some(refused) => refused.message.clone(),
            None => "has refused nothing".to_owned(),
        };
        rows.push(GateRow::new(GateKind::Server, "its last answer", answer, open));
    }

    fn add_gates_of_existing(
        &self,
        object: &Managed,
        live: &Live,
        policy: Policy<'_>,
        open: GateOutcome,
        rows: &mut Vec<GateRow>,
    ) {
        let text = |name: &str| {
            live.annotations.get(name).map(|value| redact::annotation(&object.object.key.kind, name, value))
        };
        let state = if live.deleting.is_some() { "is being deleted" } else { "exists" };
        rows.push(GateRow::new(GateKind::Object, "the object", state, open));
        let held = held_by_user(live, self.now).and_then(|decision| decision.held().map(gate_of));
        let steering =
            [(GateKind::Mode, annotation::MODE, "managed"), (GateKind::Pause, annotation::RECONCILE_PAUSED, "not set")];
        for (gate, key, default) in steering {
            let outcome = if held == Some(gate) { GateOutcome::Closed } else { open };
            rows.push(GateRow::new(gate, short(key), text(key).unwrap_or_else(|| default.to_owned()), outcome));
        }
        let restarts = Restarts::default();
        let refused = match EffectiveDesired::of(&object.observed(policy, &restarts), live) {
            Ok((_, refused)) => refused,
            Err(reason) => Some(reason),
        };
        let refused = refused.as_ref().map(gate_of);
        for (gate, key) in [(GateKind::Patch, annotation::PATCH), (GateKind::IgnoreFields, annotation::IGNORE_FIELDS)] {
            let outcome = if refused == Some(gate) { GateOutcome::Closed } else { open };
            rows.push(GateRow::new(gate, short(key), text(key).unwrap_or_else(|| "not set".to_owned()), outcome));
        }
        let others: Vec<String> = owners(live)
            .into_iter()
            .filter(|owner| owner.applies && owner.manager != api::FIELD_MANAGER)
            .map(|owner| owner.manager)
            .collect();
        let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
        rows.push(GateRow::new(GateKind::Owners, "others that apply fields", others, open));
        let origin = match Ownership::read(live) {
            Ownership::Ours(Origin::Created) => "created by the autopilot",
            Ownership::Ours(Origin::Adopted) => "adopted",
            Ownership::Inherited => "of the predecessor",
            Ownership::Foreign => "of somebody else, adopted after a backup",
        };
        rows.push(GateRow::new(GateKind::Adoption, "origin", origin, open));
    }

    /// Approval, pool and window, which matter only for what restarts nodes.
    fn add_restart_gates(&self, object: &Managed, policy: Policy<'_>, open: GateOutcome, rows: &mut Vec<GateRow>) {
        let impact = object.impact();
        let what = match impact {
            Impact::None => "no impact",
            Impact::Low => "low impact",
            Impact::Medium => "medium impact",
            Impact::High => "high impact",
        };
        if impact != Impact::High {
            return rows.push(GateRow::new(GateKind::Approval, what, "not needed", open));
        }
        let value = match policy.consent.is_waived(Needed::ApprovalOrPolicy) {
            true => "waived by approval: none",
            false => "needed for what restarts nodes",
        };
        rows.push(GateRow::new(GateKind::Approval, what, value, open));
        let conditions = conditions(policy);
        let (pool, answer) = match conditions.pool {
            PoolState::Unknown => ("not known yet".to_owned(), GateOutcome::NotReached),
            PoolState::Running => ("its nodes run this already".to_owned(), open),
            PoolState::Ready => ("healthy, or no node has to restart".to_owned(), open),
            PoolState::NotReady(why) => (why.to_owned(), GateOutcome::NotReached),
        };
        rows.push(GateRow::new(GateKind::Pool, "its pools of nodes", pool, answer));
        let (window, answer) = match conditions.window {
            Window::Open => ("open".to_owned(), open),
            Window::Closed { opens: Some(opens) } => {
                (format!("closed, opens {}", policy.maintenance.shown(opens)), GateOutcome::NotReached)
            }
            Window::Closed { opens: None } => ("closed".to_owned(), GateOutcome::NotReached),
        };
        rows.push(GateRow::new(GateKind::Window, "maintenance-window", window, answer));
    }
}

/// Marks the gate that holds an object; what was decided before it is not the last word any more.
fn mark(rows: &mut Vec<GateRow>, reason: &Reason) {
    let gate = gate_of(reason);
    let place = rows.iter().position(|row| row.gate == gate).unwrap_or_else(|| {
        rows.push(GateRow::new(gate, "the object", "", GateOutcome::Closed));
        rows.len() - 1
    });
    for (at, row) in rows.iter_mut().enumerate() {
        if at > place && row.outcome == GateOutcome::Open {
            row.outcome = GateOutcome::NotReached;
        }
        row.decides = at == place;
    }
    let row = &mut rows[place];
    row.outcome = GateOutcome::Closed;
    // What the gate looks at says enough where the user wrote it.
    if !matches!(gate, GateKind::Mode | GateKind::Pause | GateKind::Exclusion | GateKind::Governed | GateKind::Settings)
    {
        row.value = reason.to_string();
    }
}

/// The gate that a reason closes.
pub(crate) fn gate_of(reason: &Reason) -> GateKind {
    match reason {
        Reason::PatchRefused { .. } => GateKind::Patch,
        Reason::IgnoreFieldsRefused { .. } => GateKind::IgnoreFields,
        Reason::ModeUnknown { .. } | Reason::Unmanaged => GateKind::Mode,
        Reason::Paused | Reason::PauseUnclear { .. } => GateKind::Pause,
        Reason::Excluded => GateKind::Exclusion,
        Reason::Governed { .. } => GateKind::Governed,
        Reason::NeedsApproval { .. } | Reason::ManyDeletions { .. } => GateKind::Approval,
        Reason::PoolNotReady { .. } => GateKind::Pool,
        Reason::WindowClosed { .. } => GateKind::Window,
        Reason::LeftBehind { .. } | Reason::DeletionsUnknown { .. } | Reason::DeletionStuck { .. } => GateKind::Removal,
        Reason::BackupFailed { .. } | Reason::NoSafeBackup => GateKind::Adoption,
        Reason::Fighting { .. } | Reason::DeletedAgain => GateKind::Budget,
        Reason::Suspended { .. } | Reason::ExclusionsUnclear => GateKind::Settings,
        Reason::OwnedByAnother { .. } | Reason::OwnersUnreadable => GateKind::Owners,
        Reason::ReadFailed { .. } | Reason::DocumentUnreadable { .. } => GateKind::Object,
        Reason::RefusedByServer { .. } | Reason::WriteFailed { .. } => GateKind::Server,
    }
}

fn short(key: &str) -> &str {
    key.strip_prefix(annotation::PREFIX).unwrap_or(key)
}

fn owners(live: &Live) -> Vec<Owner> {
    let entries = live.managed_fields.entries();
    let owner = |entry: &change::Entry| {
        // What we write beside the desired state says nothing about it.
        let is_shown = |path: &String| entry.manager != api::FIELD_MANAGER || !is_stamp(path);
        let fields: Vec<String> = entry.fields.paths().filter(is_shown).collect();
        let count = fields.len();
        let fields = fields.into_iter().take(SHOWN_FIELDS).collect();
        Owner { manager: entry.manager.clone(), applies: entry.applied, time: entry.time.clone(), fields, count }
    };
    entries.iter().filter(|entry| entry.subresource.is_empty()).map(owner).collect()
}
