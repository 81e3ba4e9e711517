//! The daemon of one node: cordon, drain, restart, and back.

use crate::disruption::{Disruption, disruption_between};
use crate::node::{Node, annotation, control};
use crate::snapshot::{Kind, Snapshot, Write};
use crate::timing::Timing;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// What is remembered of one node.
#[derive(Debug, Default)]
pub(crate) struct Daemon {
    update: Option<Update>,
    restarts: u64,
}

/// An update in progress.
#[derive(Debug)]
struct Update {
    /// The configuration that the node gets; another one that is desired meanwhile comes after it.
    target: String,
    disruption: Disruption,
    stage: Stage,
    until: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Draining,
    Applying,
    Restarting,
    Finishing,
}

/// The time of a step, as a duration and as text for conditions.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub(crate) now: Duration,
    pub(crate) text: &'a str,
}

impl Daemon {
    /// The daemon of a node that is seen for the first time.
    pub(crate) fn of(node: Node) -> Daemon {
        Daemon { update: None, restarts: node.annotation(control::RESTARTS).parse().unwrap_or_default() }
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    /// When it has something to do.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.update.as_ref().map(|update| update.until)
    }

    /// Continues or begins an update as far as it is time, and returns what is missing on the node.
    pub(crate) fn step(&mut self, node: Node, snapshot: &Snapshot, timing: &Timing, moment: Moment) -> Vec<Write> {
        if node.current().is_empty() || node.desired().is_empty() {
            return Vec::new();
        }
        if self.update.is_none()
            && let Some(write) = self.begin(node, snapshot, timing, moment.now)
        {
            return vec![write];
        }
        loop {
            let Some(update) = &mut self.update else { return Vec::new() };
            let writes = update.missing(node, self.restarts, moment);
            if !writes.is_empty() {
                return writes;
            }
            if update.stage == Stage::Finishing {
                self.update = None;
                return Vec::new();
            }
            let stays_away = update.stage == Stage::Restarting && node.has_annotation(control::DOES_NOT_COME_BACK);
            if moment.now < update.until || stays_away {
                return Vec::new();
            }
            let (stage, time) = match (update.stage, update.disruption) {
                (Stage::Draining, Disruption::Restart) => (Stage::Restarting, timing.restart),
                (Stage::Draining, _) => (Stage::Applying, timing.apply),
                _ => (Stage::Finishing, Duration::ZERO),
            };
            if stage == Stage::Restarting {
                self.restarts += 1;
            }
            (update.stage, update.until) = (stage, moment.now + time);
        }
    }

    /// Begins an update if one is wanted and possible; otherwise returns what the node's state should say.
    fn begin(&mut self, node: Node, snapshot: &Snapshot, timing: &Timing, now: Duration) -> Option<Write> {
        let target = node.desired();
        let state = |state: &str, reason: &str| {
            let annotations = json!({annotation::STATE: state, annotation::REASON: reason});
            Write::patch(Kind::Node, node.name(), node.0, &json!({"metadata": {"annotations": annotations}}))
        };
        if node.current() == target {
            // A node that was never asked for anything keeps its annotations as they are.
            return if node.state() == "Done" { None } else { state("Done", "") };
        }
        if node.has_annotation(control::UPDATE_FAILS) {
            return state("Degraded", node.annotation(control::UPDATE_FAILS));
        }
        let config = |name: &str| {
            let missing = || format!("machineconfig.machineconfiguration.openshift.io \"{name}\" not found");
            snapshot.machine_configs.get(name).ok_or_else(missing)
        };
        let (old, new) = match (config(node.current()), config(target)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(error), _) | (_, Err(error)) => return state("Degraded", &error),
        };
        let none = Value::Null;
        let policy =
            snapshot.machine_configuration.as_ref().map_or(&none, |object| &object["spec"]["nodeDisruptionPolicy"]);
        let disruption = match disruption_between(old, new, policy) {
            Ok(disruption) => disruption,
            Err(error) => {
                let current = node.current();
                let reason = format!("can't reconcile config {current} with {target}: {error}");
                return state("Unreconcilable", &reason);
            }
        };
        // A stand-in that has just started may find a node that is already on its way.
        let is_away = !node.is_up() && node.annotation(annotation::APPLIED_DRAIN) == format!("drain-{target}");
        let (stage, time) = match disruption {
            Disruption::Restart if is_away => (Stage::Restarting, timing.restart),
            Disruption::Restart | Disruption::Drain => (Stage::Draining, timing.drain),
            Disruption::None => (Stage::Applying, timing.apply),
        };
        self.update = Some(Update { target: target.to_owned(), disruption, stage, until: now + time });
        None
    }
}

impl Update {
    /// What the node does not show yet of this stage.
    fn missing(&self, node: Node, restarts: u64, moment: Moment) -> Vec<Write> {
        let drain = format!("drain-{}", self.target);
        let is_drained = self.disruption != Disruption::None;
        let mut annotations = json!({annotation::STATE: "Working", annotation::REASON: ""});
        if is_drained {
            annotations[annotation::DESIRED_DRAIN] = json!(drain);
        }
        if is_drained && self.stage != Stage::Draining {
            annotations[annotation::APPLIED_DRAIN] = json!(drain);
        }
        if self.stage == Stage::Restarting {
            annotations[control::RESTARTS] = json!(restarts.to_string());
        }
        let mut unschedulable = if is_drained { json!(true) } else { Value::Null };
        if self.stage == Stage::Finishing {
            annotations[annotation::STATE] = json!("Done");
            annotations[annotation::CURRENT] = json!(self.target);
            if is_drained {
                let uncordon = json!(format!("uncordon-{}", self.target));
                annotations[annotation::DESIRED_DRAIN] = uncordon.clone();
                annotations[annotation::APPLIED_DRAIN] = uncordon;
            }
            unschedulable = Value::Null;
        }
        let mut wanted = json!({"metadata": {"annotations": annotations}});
        if is_drained {
            wanted["spec"] = json!({"unschedulable": unschedulable});
        }
        // The status comes first, so that a node is never done while it is still away.
        let mut writes: Vec<Write> = self.missing_status(node, restarts, moment).into_iter().collect();
        writes.extend(Write::patch(Kind::Node, node.name(), node.0, &wanted));
        writes
    }

    fn missing_status(&self, node: Node, restarts: u64, moment: Moment) -> Option<Write> {
        let mut status = match (self.disruption, self.stage) {
            (Disruption::Restart, Stage::Restarting) => {
                json!({"conditions": node.status_with_ready(false, moment.text)})
            }
            (Disruption::Restart, Stage::Finishing) => {
                json!({"conditions": node.status_with_ready(true, moment.text)})
            }
            _ => return None,
        };
        if self.stage == Stage::Finishing {
            status["nodeInfo"] = json!({"bootID": boot_id(node.name(), restarts)});
        }
        Write::patch_status(Kind::Node, node.name(), node.0, &json!({"status": status}))
    }
}

/// The identity of a boot, which changes with every restart.
fn boot_id(node: &str, restarts: u64) -> String {
    let hash = Sha256::digest(format!("{node}/{restarts}"));
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
