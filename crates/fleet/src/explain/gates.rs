//! What has to be true before a claim has a machine that is ready, in the order in which the fleet looks at it.

use super::{Facts, cluster_of, condition};
use api::fleet::{CLEANUP_FINALIZER, ClaimPhase, ClaimPower, ReadinessSignal, Truth};
use serde::Serialize;

/// One thing that has to be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// What it is about.
    pub name: &'static str,
    /// Whether it is true.
    pub outcome: Outcome,
    /// What was found.
    pub found: String,
    /// Whether it is what the claim waits for.
    pub decides: bool,
}

/// Whether something is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// It was not looked at, because something before it is not true.
    Later,
}

impl Outcome {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Yes => "yes",
            Outcome::No => "no",
            Outcome::Later => "-",
        }
    }
}

/// The gates. The first that is not true decides.
pub(super) fn gates(facts: &Facts<'_>) -> Vec<Gate> {
    let mut gates = Vec::new();
    let mut is_open = true;
    let all = if facts.claim.deleting.is_some() { ending(facts) } else { all(facts) };
    for Look { name, holds, mut found, waits } in all {
        let outcome = match (is_open, holds) {
            (false, _) => Outcome::Later,
            (true, true) => Outcome::Yes,
            (true, false) => Outcome::No,
        };
        let decides = outcome == Outcome::No;
        if decides && !waits.is_empty() {
            found = if found.is_empty() { waits } else { format!("{found}; {waits}") };
        }
        is_open &= holds;
        gates.push(Gate { name, outcome, found, decides });
    }
    gates
}

/// A gate before it is known whether it is reached.
struct Look {
    name: &'static str,
    holds: bool,
    found: String,
    /// What is said only if it is what the claim waits for.
    waits: String,
}

fn look(name: &'static str, holds: bool, found: String) -> Look {
    Look { name, holds, found, waits: String::new() }
}

/// The gates of a claim that is being deleted.
fn ending(facts: &Facts<'_>) -> Vec<Look> {
    let (claim, status) = (facts.claim, &facts.claim.status);
    let Some(vm_ref) = &status.vm_ref else {
        return vec![look("machine gone", true, "no machine was created".to_owned())];
    };
    let [exists, ready] = hypervisor(facts);
    let cleaned = condition(&status.conditions, "VMCleanedUp");
    let is_gone = cleaned.is_some_and(|found| found.status == Truth::True) || !claim.has_finalizer(CLEANUP_FINALIZER);
    let waits = cleaned.map(|found| format!("{}: {}", found.reason, found.message)).unwrap_or_default();
    vec![exists, ready, Look { name: "machine gone", holds: is_gone, found: vm_ref.vm_id.clone(), waits }]
}

/// Whether the hypervisor exists, and whether it can be used.
fn hypervisor(facts: &Facts<'_>) -> [Look; 2] {
    let exists = facts.cluster.is_some();
    let found = match cluster_of(facts.claim, facts.template) {
        Some(name) if exists => name.to_string(),
        Some(name) => format!("there is no HypervisorCluster {name}"),
        None => "its template would name it".to_owned(),
    };
    let ready = facts.cluster.and_then(|cluster| condition(&cluster.status.conditions, "Ready"));
    let is_ready = ready.is_some_and(|found| found.status == Truth::True);
    let why = ready.map_or("not checked yet".to_owned(), |found| format!("{}: {}", found.reason, found.message));
    let is_settled = matches!(facts.claim.status.phase, Some(ClaimPhase::Ready | ClaimPhase::Failed));
    let why = if is_settled && !is_ready { format!("not needed now; {why}") } else { why };
    [look("hypervisor exists", exists, found), look("hypervisor ready", is_ready || is_settled, why)]
}

/// Every gate with whether it holds and what was found.
fn all(facts: &Facts<'_>) -> Vec<Look> {
    let (claim, status) = (facts.claim, &facts.claim.status);
    let ready = condition(&status.conditions, "Ready");
    let (reason, message) = ready.map_or(("", ""), |ready| (ready.reason.as_str(), ready.message.as_str()));
    let is_placed = status.vm_ref.is_some();
    let is_created = status.created_time.is_some();
    // What is looked at only to create a machine does not matter any more once there is one.
    let past = |what: &str| format!("{what}, which was needed only until the machine was created");
    let mut gates = Vec::new();
    let mut add = |name, holds, found: String| gates.push(look(name, holds, found));
    add(
        "accepted",
        ready.is_some(),
        match (ready.is_some(), claim.has_finalizer(CLEANUP_FINALIZER)) {
            (true, true) => format!("finalizer {CLEANUP_FINALIZER} is set"),
            (true, false) => "the finalizer is removed".to_owned(),
            (false, _) => "the claim has no status".to_owned(),
        },
    );
    let template_name = claim.name.beside(None, &claim.spec.template_ref.name);
    let (exists, found) = match facts.template {
        None => (false, format!("there is no HypervisorMachineTemplate {template_name}")),
        Some(template) if template.deleting.is_some() => (is_placed, format!("{template_name} is being deleted")),
        Some(_) => (true, template_name.to_string()),
    };
    add("template exists", exists || is_created, if exists || !is_created { found } else { past(&found) });
    gates.extend(hypervisor(facts));
    let mut add = |name, holds, found: String| gates.push(look(name, holds, found));
    let of_template = facts.template.and_then(|template| condition(&template.status.conditions, "TemplateValid"));
    let is_valid = of_template.is_some_and(|found| found.status == Truth::True);
    let found =
        of_template.map_or("not checked yet".to_owned(), |found| format!("{}: {}", found.reason, found.message));
    add("template valid", is_valid || is_created, if is_valid || !is_created { found } else { past(&found) });
    place(facts, reason, message, &mut add);
    gates.extend(provision(facts, reason, message));
    gates
}

/// Room, and an id.
fn place(facts: &Facts<'_>, reason: &str, message: &str, add: &mut impl FnMut(&'static str, bool, String)) {
    let is_placed = facts.claim.status.vm_ref.is_some();
    let limit = facts.cluster.and_then(|cluster| cluster.spec.limits.machines);
    let count = facts.machines;
    add(
        "limit",
        is_placed || reason != "LimitReached",
        match limit {
            Some(most) => format!("{count} of {most} machines (limits.machines)"),
            None => format!("{count} machines, and limits.machines is not set"),
        },
    );
    let available = facts.cluster.and_then(|cluster| cluster.status.available_resources.as_ref());
    let left = available.map(|left| format!("{} CPUs and {} of memory are left", left.cpu, left.memory.0));
    let left = left.unwrap_or_else(|| "not known".to_owned());
    let is_full = reason == "InsufficientResources";
    let need = facts.template.map(|template| {
        let resources = &template.spec.resources;
        format!("{} CPUs and {} of memory are needed, ", resources.cpu, resources.memory.0)
    });
    let found = if is_full { message.to_owned() } else { format!("{}{left}", need.unwrap_or_default()) };
    let is_created = facts.claim.status.created_time.is_some();
    add("capacity", is_created || !is_full, if is_created { "the machine has its place".to_owned() } else { found });
    let range = facts.cluster.map(|cluster| cluster.spec.vm_ids);
    let range = range.map_or_else(String::new, |range| format!(" of {} to {}", range.from, range.to));
    let waits = ["NoFreeId", "Surveying", "TemplateUnchecked", "Waiting", "Accepted"].contains(&reason);
    add(
        "id",
        is_placed || !waits,
        match &facts.claim.status.vm_ref {
            Some(vm_ref) => format!("{} is recorded", vm_ref.vm_id),
            None if waits => message.to_owned(),
            None => format!("none recorded{range}"),
        },
    );
}

/// What is done with the machine.
fn provision(facts: &Facts<'_>, reason: &str, message: &str) -> [Look; 3] {
    let (claim, status) = (facts.claim, &facts.claim.status);
    let step = |name, time: Option<&api::fleet::Time>, found: String| Look {
        name,
        holds: time.is_some(),
        found: time.map_or(found, |time| time.0.clone()),
        waits: format!("{reason}: {message}"),
    };
    let is_standby = claim.spec.power == ClaimPower::Stopped;
    let power = if is_standby { "spec.power is Stopped" } else { "" };
    let signal = facts.template.map(|template| {
        let readiness = &template.spec.readiness;
        let signal = match readiness.signal {
            ReadinessSignal::AgentAddress => "the guest agent reports an address",
            ReadinessSignal::Running => "the machine runs",
        };
        format!("{signal}, within {}", readiness.timeout.0)
    });
    let mut ready = step("ready", status.ready_time.as_ref(), signal.unwrap_or_default());
    ready.holds &= status.phase != Some(ClaimPhase::Failed);
    [
        step("created", status.created_time.as_ref(), String::new()),
        step("started", status.started_time.as_ref(), power.to_owned()),
        ready,
    ]
}
